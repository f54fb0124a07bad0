/* Reports on workers that are stuck: the message names a file with the last commands of each worker. */
#include "robust.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { N = 16, WORKERS = 3, EARLIER = 100 };

static atomic_int release;

static int hang(const dm_task *task)
{
    while (task->worker == 1 && !atomic_load(&release)) {
        usleep(1000);
    }
    return 0;
}

/* The part of the report on a worker: up to the empty line. */
static void part_of(const char *report, int worker, char *out, size_t room)
{
    char head[32];
    snprintf(head, sizeof head, "\nworker %d (", worker);
    const char *at = strstr(report, head), *end = at ? strstr(at, "\n\n") : NULL;
    assert_non_null(at);
    snprintf(out, room, "%.*s", (int)(end ? end + 1 - at : (long)strlen(at)), at);
}

static int lines(const char *text, const char *begin)
{
    int n = 0;
    size_t length = strlen(begin);
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n')) {
        n += strncmp(at + 1, begin, length) == 0;
    }
    return n;
}

static void read_report(const char *folder, char *path, size_t path_room, char *out, size_t room)
{
    const char *words = "Last commands of each worker: ", *at = strstr(dm_error_message(), words);
    struct stat st;
    if (!at) {
        fail_msg("no report is named: %s", dm_error_message());
        return;
    }
    snprintf(path, path_room, "%s", at + strlen(words));
    assert_memory_equal(path, folder, strlen(folder));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    out[fread(out, 1, room - 1, from)] = 0;
    fclose(from);
}

static void test_stuck(void **state)
{
    (void)state;
    static char report[1 << 17], part[1 << 16];
    char folder[] = "/tmp/dmath-reports-XXXXXX", options[128], path[256];
    const int modes[1] = {DM_READWRITE};
    assert_non_null(mkdtemp(folder));
    OK(dm_register("hang", hang));
    snprintf(options, sizeof options, "log=error,watchdog_s=0.3,report_dir=%s", folder);
    dm_session *s = open_session(WORKERS, options);
    dm_array a = make_matrix(s, N, NULL, 1), b = make_matrix(s, N, NULL, 2);
    for (int i = 0; i < EARLIER; i++) {
        OK(dm_scale(s, 1, b, b));
    }
    OK(dm_apply(s, "hang", 1, &a, modes, NULL, 0));
    OK(dm_transpose(s, a, b)); /* waits for worker 1 on the others */
    assert_int_equal(dm_sync(s), DM_ERR_TIMEOUT);
    read_report(folder, path, sizeof path, report, sizeof report);
    assert_non_null(strstr(report, "no progress for"));
    for (int w = 0; w < WORKERS; w++) {
        part_of(report, w, part, sizeof part);
        assert_true(lines(part, "done ") >= 60);
        assert_in_range(lines(part, "done ") + lines(part, "runs ") + lines(part, "waits ") +
                            lines(part, "begun "),
                        62, 64);
        assert_non_null(strstr(part, "scale (a f64 16x16 on 3x1"));
        assert_non_null(strstr(part, w == 1 ? "runs     command" : "waits    command"));
    }
    part_of(report, 1, part, sizeof part);
    assert_non_null(strstr(strstr(part, "runs "), "apply of hang (a"));
    assert_non_null(strstr(strstr(part, "runs "), "step 1 of 1"));
    part_of(report, 0, part, sizeof part);
    assert_non_null(strstr(strstr(part, "waits "), "transpose (src f64"));
    assert_non_null(strstr(part, "it waits for worker 1"));
    atomic_store(&release, 1);
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Where no file can be, the message is what it was. */
static void test_no_folder(void **state)
{
    (void)state;
    const int modes[1] = {DM_READWRITE};
    atomic_store(&release, 0);
    dm_session *s = open_session(WORKERS, "log=error,watchdog_s=0.3,report_dir=/nowhere/at/all");
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_apply(s, "hang", 1, &a, modes, NULL, 0));
    assert_int_equal(dm_sync(s), DM_ERR_TIMEOUT);
    assert_null(strstr(dm_error_message(), "Last commands"));
    assert_non_null(strstr(dm_error_message(), "apply of hang"));
    atomic_store(&release, 1);
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* With `ulimit -f 0`: the files of a report, a journal and a profile are errors that are said, and the program
 * goes on. */
static void limited(int said)
{
    const int modes[1] = {DM_READWRITE};
    char folder[] = "/tmp/dmath-reports-XXXXXX", options[256], path[64];
    struct rlimit none = {0, 0};
    assert_non_null(mkdtemp(folder));
    snprintf(options, sizeof options, "log=warn,watchdog_s=0.3,report_dir=%s,journal=%s/j,profile=%s/p", folder,
             folder, folder);
    if (setrlimit(RLIMIT_FSIZE, &none) != 0 || dup2(said, STDERR_FILENO) < 0) {
        _exit(2);
    }
    atomic_store(&release, 0);
    dm_session *s = open_session(WORKERS, options);
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_apply(s, "hang", 1, &a, modes, NULL, 0));
    if (dm_sync(s) != DM_ERR_TIMEOUT || !strstr(dm_error_message(), "cannot be written to") ||
        !strstr(dm_error_message(), "File too large")) {
        _exit(3);
    }
    atomic_store(&release, 1);
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    close_session(s);
    static const char *const names[] = {"j", "p"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "rm -r %s", folder);
    _exit(system(path) == 0 ? 0 : 4);
}

static void test_limited(void **state)
{
    (void)state;
    static char text[1 << 16];
    int said[2], status = 0;
    size_t used = 0;
    assert_int_equal(pipe(said), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        limited(said[1]);
    }
    close(said[1]);
    for (ssize_t n; (n = read(said[0], text + used, sizeof text - 1 - used)) > 0;) {
        used += (size_t)n;
    }
    close(said[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the child ended with %x: %s", (unsigned)status, text);
    }
    const char *journal = strstr(text, "/j is not complete: File too large"),
               *profile = strstr(text, "/p: File too large");
    if (!journal || !profile) {
        fail_msg("it said: %s", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_stuck, deadline),
        cmocka_unit_test_setup(test_no_folder, deadline),
        cmocka_unit_test_setup(test_limited, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
