/* Files that are saved: on the disk before they have their name, with the mode of the file that they replace;
 * what dead savers leave is removed, what living ones write is not; `ulimit -f` and a disk that fails are
 * errors. This program stands between the library and the system: it has the calls' order, and makes them fail.
 */
#include "../support/child.h"
#include "io/folder.h"
#include "io/partial.h"
#include "io/unfinished.h"
#include "robust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NOTHING, DIE, STAY, FAIL_SYNC };
static int plan, calls;
static char order[64];
static int left_open[2]; /* a child says that it is about to rename */

int fsync(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    strcat(order, S_ISDIR(st.st_mode) ? "folder " : "file ");
    if (plan == FAIL_SYNC) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    strcat(order, "rename ");
    calls++;
    if (plan == DIE) {
        raise(SIGKILL);
    }
    while (plan == STAY) {
        (void)!write(left_open[1], "x", 1);
        pause();
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static char folder[] = "durable-XXXXXX";

static int partials(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        count += strstr(e->d_name, ".partial-") != NULL;
    }
    closedir(dir);
    return count;
}

static const char *in_folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static dm_status save(const char *name, int64_t n)
{
    dm_session *s = open_session(2, "log=error");
    dm_array a;
    OK(dm_vector(s, DM_F64, n, &a));
    OK(dm_fill(s, a, (double)n));
    order[0] = 0;
    dm_status status = dm_array_save(s, a, in_folder(name));
    OK(dm_array_destroy(s, a));
    close_session(s);
    return status;
}

static off_t bytes_of(const char *name)
{
    struct stat st;
    return stat(in_folder(name), &st) == 0 ? st.st_size : -1;
}

static void test_order(void **state)
{
    (void)state;
    OK(save("a.npy", 10));
    assert_string_equal(order, "file rename folder ");
}

static void test_mode(void **state)
{
    (void)state;
    struct stat st;
    static const mode_t modes[] = {0600, 0640, 0444, 0755};
    mode_t mask = umask(022);
    (void)unlink(in_folder("mode.npy"));
    OK(save("mode.npy", 3));
    assert_int_equal(stat(in_folder("mode.npy"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(chmod(in_folder("mode.npy"), modes[i]), 0);
        OK(save("mode.npy", 1000 + i));
        assert_int_equal(stat(in_folder("mode.npy"), &st), 0);
        assert_int_equal(st.st_mode & 07777, modes[i]);
        assert_true(st.st_size > 8000);
    }
    umask(mask);
}

/* A child that is killed in its save, or stays in it. */
static pid_t saver(int how)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        plan = how;
        (void)!save("killed.npy", 5000);
        _exit(1);
    }
    return child;
}

static void test_left(void **state)
{
    (void)state;
    int status = 0;
    char byte;
    assert_int_equal(pipe(left_open), 0);
    for (int i = 0; i < 3; i++) {
        pid_t dead = saver(DIE);
        assert_int_equal(waitpid(dead, &status, 0), dead);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(partials(), 1); /* the child before it is dead, too */
    }
    assert_int_equal(bytes_of("killed.npy"), -1);
    pid_t alive = saver(STAY);
    assert_int_equal(read(left_open[0], &byte, 1), 1);
    assert_int_equal(partials(), 1);
    OK(save("other.npy", 7));
    assert_int_equal(partials(), 1);
    assert_int_equal(kill(alive, SIGKILL), 0);
    assert_int_equal(waitpid(alive, &status, 0), alive);
    OK(save("other.npy", 7));
    assert_int_equal(partials(), 0);
}

/* Of another host, of an older library, and what only looks like one: not ours to remove. */
static void test_others(void **state)
{
    (void)state;
    static const char *const names[] = {"x.npy.partial-999999-1-abc-0", "x.npy.partial-999999-3", "x.partial-",
                                        "partial-1"};
    for (int i = 0; i < 4; i++) {
        int fd = open(in_folder(names[i]), O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0 && close(fd) == 0);
    }
    OK(save("other.npy", 8));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(unlink(in_folder(names[i])), 0);
    }
}

static void test_sync_fails(void **state)
{
    (void)state;
    OK(save("whole.npy", 11));
    off_t before = bytes_of("whole.npy");
    plan = FAIL_SYNC;
    dm_status status = save("whole.npy", 12);
    plan = NOTHING;
    assert_int_equal(status, DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "whole.npy"));
    assert_int_equal(bytes_of("whole.npy"), before);
    assert_int_equal(partials(), 0);
}

static void test_limit(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        struct rlimit limit = {20000, 20000};
        bool right = setrlimit(RLIMIT_FSIZE, &limit) == 0 && save("small.npy", 100) == DM_OK;
        right = right && save("large.npy", 10000) == DM_ERR_IO && strstr(dm_error_message(), "File too large");
        _exit(right && save("small.npy", 101) == DM_OK && partials() == 0 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(bytes_of("large.npy"), -1);
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "mode.npy", "other.npy", "whole.npy", "small.npy"};
    for (int i = 0; i < 5; i++) {
        (void)unlink(in_folder(names[i]));
    }
    return rmdir(folder);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

/* A thread makes files while the process forks: no child finds a lock held, and no child removes a file of its
 * parent.
 */
static atomic_int enough;
static void *make_files(void *context)
{
    (void)context;
    char at[64];
    snprintf(at, sizeof at, "%s", in_folder("thread.npy"));
    while (!atomic_load(&enough)) {
        dmi_partial p;
        if (dmi_partial_begin(at, "x", 1, 1, &p) != DM_OK) {
            return p.path;
        }
        dmi_partial_end(&p);
    }
    return NULL;
}

static void test_forks(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) /* whose allocator may be locked for ever in a child by fork */
    skip();
#endif
    pthread_t thread;
    void *failed = NULL;
    dmi_partial mine;
    int status = 0, hung = 0;
    atomic_store(&enough, 0);
    OK(dmi_partial_begin(in_folder("mine.npy"), "x", 1, 1, &mine));
    assert_int_equal(pthread_create(&thread, NULL, make_files, NULL), 0);
    for (int i = 0; i < 40 && hung == 0; i++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            dmi_partial p;
            alarm(20);
            if (dmi_partial_begin(in_folder("child.npy"), "x", 1, 1, &p) != DM_OK) {
                _exit(1);
            }
            dmi_unfinished_remove_all();
            _exit(access(p.path, F_OK) == 0 ? 2 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        hung += WIFSIGNALED(status);
        assert_true(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
    }
    atomic_store(&enough, 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(hung, 0);
    assert_int_equal(access(mine.path, F_OK), 0);
    dmi_partial_end(&mine);
}

/* A process that ends in the middle of many saves removes all of them, and the folder of a checkpoint. */
enum { MANY = 70 };
static int end_in_the_middle(void)
{
    static dmi_partial p[MANY];
    char name[32], *checkpoint = NULL;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many%d.npy", i);
        CHECK(dmi_partial_begin(in_folder(name), "x", 1, 1, &p[i]) == DM_OK);
    }
    dmi_partial_end(&p[MANY / 2]);
    CHECK(dmi_folder_begin(in_folder("series"), &checkpoint) == DM_OK);
    CHECK(dmi_folder_file(checkpoint, "a.npy", "x", 1, 1) == DM_OK);
    CHECK(partials() == MANY - 1 && access(checkpoint, F_OK) == 0);
    dmi_unfinished_remove_all();
    CHECK(partials() == 0 && access(checkpoint, F_OK) != 0);
    /* no more are begun */
    CHECK(dmi_partial_begin(in_folder("late.npy"), "x", 1, 1, &p[0]) == DM_ERR_IO && partials() == 0);
    CHECK(dmi_folder_begin(in_folder("series"), &checkpoint) == DM_ERR_IO);
    CHECK(dmi_folder_file(folder, "late.npy", "x", 1, 1) == DM_ERR_IO && bytes_of("late.npy") < 0);
    return 0;
}

static void test_ending(void **state)
{
    (void)state;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(end_in_the_middle());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(rmdir(in_folder("series")), 0);
}

/* --- files that the program writes itself */
static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void expect_text(const char *name, const char *text)
{
    char found[64] = "";
    FILE *f = fopen(in_folder(name), "r");
    assert_non_null(f);
    (void)!fread(found, 1, sizeof found - 1, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(found, text);
}

static void test_file(void **state)
{
    (void)state;
    dm_file *file = NULL, *other = NULL;
    struct stat st;
    OK(dm_file_begin(in_folder("own.txt"), &file));
    assert_int_equal(bytes_of("own.txt"), -1);
    assert_int_equal(stat(dm_file_path(file), &st), 0);
    assert_int_equal(st.st_size, 0);
    write_text(dm_file_path(file), "first");
    order[0] = 0;
    OK(dm_file_finish(file));
    assert_string_equal(order, "file rename folder ");
    expect_text("own.txt", "first");
    /* dropped: the old one stays; of two at once each is its own */
    assert_int_equal(chmod(in_folder("own.txt"), 0640), 0);
    OK(dm_file_begin(in_folder("own.txt"), &file));
    OK(dm_file_begin(in_folder("own.txt"), &other));
    assert_string_not_equal(dm_file_path(file), dm_file_path(other));
    write_text(dm_file_path(file), "dropped");
    write_text(dm_file_path(other), "second");
    dm_file_drop(file);
    assert_int_equal(partials(), 1);
    expect_text("own.txt", "first");
    OK(dm_file_finish(other));
    expect_text("own.txt", "second");
    assert_int_equal(stat(in_folder("own.txt"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    /* what a link leads to */
    assert_int_equal(symlink("own.txt", in_folder("link.txt")), 0);
    OK(dm_file_begin(in_folder("link.txt"), &file));
    write_text(dm_file_path(file), "third");
    OK(dm_file_finish(file));
    expect_text("own.txt", "third");
    assert_int_equal(lstat(in_folder("link.txt"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    plan = FAIL_SYNC;
    OK(dm_file_begin(in_folder("own.txt"), &file));
    assert_int_equal(dm_file_finish(file), DM_ERR_IO);
    plan = NOTHING;
    expect_text("own.txt", "third");
    assert_int_equal(partials(), 0);
    assert_int_equal(unlink(in_folder("link.txt")), 0);
    assert_int_equal(unlink(in_folder("own.txt")), 0);
}

/* A process that is killed leaves one, which the next one that begins there removes. */
static void test_file_left(void **state)
{
    (void)state;
    int status = 0;
    dm_file *file = NULL;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)!dm_file_begin(in_folder("dead.txt"), &file);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(partials(), 1);
    OK(dm_file_begin(in_folder("next.txt"), &file));
    assert_int_equal(partials(), 1);
    assert_non_null(strstr(dm_file_path(file), "next.txt.partial-"));
    dm_file_drop(file);
    assert_int_equal(partials(), 0);
}

static void test_file_errors(void **state)
{
    (void)state;
    dm_file *file = NULL;
    assert_int_equal(dm_file_begin(NULL, &file), DM_ERR_ARG);
    assert_int_equal(dm_file_begin("", &file), DM_ERR_ARG);
    assert_int_equal(dm_file_begin(in_folder("x"), NULL), DM_ERR_ARG);
    assert_int_equal(dm_file_finish(NULL), DM_ERR_ARG);
    assert_int_equal(dm_file_begin(folder, &file), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "file_begin: "));
    assert_non_null(strstr(dm_error_message(), "is there and is not a regular file"));
    assert_int_equal(dm_file_begin(in_folder("none/x"), &file), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "No such file or directory"));
    assert_null(file);
    assert_null(dm_file_path(NULL));
    dm_file_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order, deadline),       cmocka_unit_test_setup(test_mode, deadline),
        cmocka_unit_test_setup(test_left, deadline),        cmocka_unit_test_setup(test_others, deadline),
        cmocka_unit_test_setup(test_sync_fails, deadline),  cmocka_unit_test_setup(test_limit, deadline),
        cmocka_unit_test_setup(test_forks, deadline),       cmocka_unit_test_setup(test_ending, deadline),
        cmocka_unit_test_setup(test_file, deadline),        cmocka_unit_test_setup(test_file_left, deadline),
        cmocka_unit_test_setup(test_file_errors, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
