/* What stands beside checkpoints, or in their place: folders and files of others, pipes, standard streams that
 * are closed. Nothing of others is removed, and what was saved with OK can be loaded. */
#include "robust/robust.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- standard input, output and error are closed --- */

static int fails(const dm_task *t)
{
    return dm_task_fail(t, "this must not be in any file");
}

/* 0: what was saved is right. */
static int saved_without_streams(void)
{
    dm_session *s = NULL;
    dm_array a, z;
    dm_event event;
    int mode = DM_WRITE, done = 0;
    char link[300];
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    for (int file = 0; file < 3; file++) {
        (void)close(file);
    }
    if (dm_init(&config, &s) != DM_OK || dm_matrix(s, DM_F64, 1000, 500, &a) != DM_OK ||
        dm_fill(s, a, 1) != DM_OK || dm_vector(s, DM_F64, 10, &z) != DM_OK) {
        return 1;
    }
    const dm_checkpoint_item items[] = {DM_KEEP_ARRAY("a", a)};
    for (int i = 0; i < 3; i++) {
        if (dm_checkpoint_save(s, "streams", 1, items, NULL, &event) != DM_OK) {
            return 2;
        }
        for (done = 0; !done;) {
            (void)!write(STDOUT_FILENO, "this must not be in any file", 28);
            (void)!dm_apply(s, "fails", 1, &z, &mode, NULL, 0); /* and is a line in the log */
            (void)!dm_sync(s);
            if (dm_event_done(s, event, &done) != DM_OK) {
                return 3;
            }
        }
        if (dm_event_wait(s, event, -1) != DM_OK || dm_checkpoint_verify("streams", NULL, NULL) != DM_OK) {
            return 4;
        }
    }
    for (int file = 0; file < 3; file++) {
        char name[40];
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t n = readlink(name, link, sizeof link - 1);
        if (n < 0 || strncmp(link, "/dev/null", (size_t)n) != 0) {
            return 5;
        }
    }
    return 0;
}

static void test_closed_streams(void **state)
{
    (void)state;
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(saved_without_streams());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(dm_checkpoint_verify("streams", NULL, NULL));
}

/* --- folders and files of others in a series --- */

static double value;
static const dm_checkpoint_item item[] = {DM_KEEP_VALUE("value", &value)};

static dm_status save_keeping(const char *path, double number, int keep)
{
    dm_session *s = open_session(2, "log=error");
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    dm_array a;
    options.keep = keep;
    value = number;
    OK(dm_vector(s, DM_F64, 100, &a));
    OK(dm_fill(s, a, number));
    const dm_checkpoint_item items[] = {item[0], DM_KEEP_ARRAY("a", a)};
    dm_status status = dm_checkpoint_save(s, path, 2, items, &options, NULL);
    OK(dm_array_destroy(s, a));
    close_session(s);
    return status;
}

static void newest_is(const char *path, double number)
{
    dm_session *s = open_session(1, "log=error");
    value = -1;
    OK(dm_checkpoint_load(s, path, 1, item));
    assert_true(value == number);
    assert_int_equal(dm_checkpoint_exists(path), 1);
    OK(dm_checkpoint_verify(path, NULL, NULL));
    close_session(s);
}

static void make_file(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("of another program", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

static bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void test_others(void **state)
{
    (void)state;
    static const char *const files[] = {
        "others/20240101/data.csv",      "others/20240101/w.npy",          "others/20240102",
        "others/20240103/manifest.json", "others/20240103/inner/data.csv", "others/99999999999999999/data.npy",
        "others/000000007/data.npy"};
    make_folder("others");
    make_folder("others/20240101");
    make_folder("others/20240103");
    make_folder("others/20240103/inner");
    make_folder("others/00000002"); /* empty */
    make_folder("others/99999999999999999");
    make_folder("others/000000007");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        make_file(files[i]);
    }
    for (int i = 1; i <= 3; i++) {
        OK(save_keeping("others", i, 1));
        newest_is("others", i);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_true(there(files[i]));
    }
    assert_true(there("others/00000002") && !there("others/00000002/manifest.json"));
    assert_true(!there("others/00000001") && !there("others/00000003") && there("others/00000004"));
}

/* A checkpoint of another series, by a link. */
static void test_link(void **state)
{
    (void)state;
    OK(save_keeping("archive", 1, 0));
    make_folder("linked");
    assert_int_equal(symlink("../archive/00000001", "linked/00000001"), 0);
    assert_int_equal(symlink("nowhere", "linked/00000002"), 0);
    OK(save_keeping("linked", 2, 1));
    OK(save_keeping("linked", 3, 1));
    assert_true(there("linked/00000001") && there("linked/00000002") && !there("linked/00000003"));
    newest_is("archive", 1);
    newest_is("linked/00000001", 1);
    newest_is("linked", 3);
}

/* What a program has put beside a checkpoint's files keeps it. */
static void test_more_in_it(void **state)
{
    (void)state;
    OK(save_keeping("more", 1, 0));
    OK(save_keeping("more", 2, 0));
    make_file("more/00000001/mine.npy");
    make_folder("more/00000002/plots");
    OK(save_keeping("more", 3, 1));
    OK(save_keeping("more", 4, 1));
    assert_true(there("more/00000001/mine.npy") && there("more/00000002/plots") && !there("more/00000003"));
    newest_is("more/00000001", 1);
    newest_is("more/00000002", 2);
    newest_is("more", 4);
}

/* What would never be found again is not saved. */
static void test_no_series(void **state)
{
    (void)state;
    OK(save_keeping("series", 1, 0));
    assert_int_equal(save_keeping("series/00000001", 2, 0), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "manifest.json"));
    newest_is("series", 1);
    make_folder("foreign");
    make_file("foreign/manifest.json");
    assert_int_equal(save_keeping("foreign", 1, 0), DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_exists("foreign"), 0);
    assert_true(!there("foreign/00000001"));
    OK(save_keeping("last", 1, 0));
    assert_int_equal(rename("last/00000001", "last/99999999999999999"), 0); /* the last number */
    newest_is("last", 1);
    assert_int_equal(save_keeping("last", 2, 0), DM_ERR_LIMIT);
    newest_is("last", 1);
}

/* --- a saver that removes what is being loaded --- */

static void save_for_ever(const char *path)
{
    dm_session *s = NULL;
    dm_array a;
    double number = 0;
    dm_config config = DM_CONFIG_INIT;
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    config.workers = 2;
    options.keep = 1;
    if (dm_init(&config, &s) != DM_OK || dm_vector(s, DM_F64, 1000, &a) != DM_OK) {
        return;
    }
    const dm_checkpoint_item items[] = {DM_KEEP_VALUE("value", &number), DM_KEEP_ARRAY("a", a)};
    do {
        number++;
    } while (dm_fill(s, a, number) == DM_OK && dm_checkpoint_save(s, path, 2, items, &options, NULL) == DM_OK);
}

static double last_of(dm_session *s, dm_array a)
{
    double x = -1;
    OK(dm_item(s, a, (int64_t[]){999}, &x));
    return x;
}

static void test_beside_a_saver(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        save_for_ever("saver");
        _exit(1);
    }
    while (!dm_checkpoint_exists("saver")) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* it lives */
        usleep(1000);
    }
    dm_session *s = open_session(2, "log=error");
    dm_array a, b, kept;
    double before = 0;
    OK(dm_vector(s, DM_F64, 1000, &a));
    const dm_checkpoint_item items[] = {item[0], DM_KEEP_ARRAY("a", a)};
    OK(dm_keep(s, &item[0]));
    for (double until = seconds() + 3; seconds() < until;) {
        assert_int_equal(dm_checkpoint_exists("saver"), 1);
        OK(dm_checkpoint_load(s, "saver", 2, items));
        assert_true(last_of(s, a) == value && value >= before);
        OK(dm_checkpoint_array(s, "saver", "a", (dm_dtype)0, NULL, &b));
        assert_true(last_of(s, b) >= value);
        OK(dm_array_destroy(s, b));
        OK(dm_session_load(s, "saver"));
        OK(dm_kept_array(s, "a", &kept));
        assert_true(last_of(s, kept) == value);
        before = value;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    OK(dm_sync(s));
    OK(dm_array_destroy(s, kept));
    OK(dm_array_destroy(s, a));
    close_session(s);
    assert_true(before > 3); /* the saver went on */
}

/* --- pipes --- */

/* Nobody writes to them, nor reads. Whoever waits for that is ended by the clock. */
static void test_pipes(void **state)
{
    (void)state;
    dm_session *s = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    make_folder("pipes");
    make_folder("pipes/00000001");
    assert_int_equal(mkfifo("pipes/manifest.json", 0666), 0);
    assert_int_equal(mkfifo("pipes/00000001/manifest.json", 0666), 0);
    alarm(30);
    assert_int_equal(dm_checkpoint_exists("pipes"), 0);
    assert_int_equal(dm_checkpoint_exists("pipes/00000001"), 0);
    assert_int_equal(dm_checkpoint_verify("pipes", NULL, NULL), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "not a regular file"));
    config.options = "load=./pipes/manifest.json";
    assert_int_equal(dm_init(&config, &s), DM_ERR_CONFIG);
    s = open_session(2, "journal=pipes/manifest.json,profile=pipes/manifest.json,log=error"); /* without them */
    close_session(s);
}

/* A manifest has a largest size: no larger one is written, and a reader says so. */
static void test_large_manifest(void **state)
{
    (void)state;
    enum { VALUES = 520, BYTES = 1 << 20 };
    static char bytes[BYTES], name[VALUES][16];
    dm_checkpoint_item many[VALUES];
    OK(save_keeping("large", 1, 1));
    dm_session *s = open_session(2, "log=error");
    for (int i = 0; i < VALUES; i++) {
        snprintf(name[i], sizeof name[i], "v%d", i);
        many[i] = (dm_checkpoint_item)DM_KEEP_BYTES(name[i], bytes, BYTES);
    }
    assert_int_equal(dm_checkpoint_save(s, "large", VALUES, many, NULL, NULL), DM_ERR_LIMIT);
    close_session(s);
    newest_is("large", 1);
    assert_true(!there("large/00000002"));
    assert_int_equal(truncate("large/00000001/manifest.json", (1L << 30) + 1), 0);
    assert_int_equal(dm_checkpoint_verify("large", NULL, NULL), DM_ERR_LIMIT);
    assert_non_null(strstr(dm_error_message(), "1073741824"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_closed_streams, deadline), /* these two fork before there are sessions */
        cmocka_unit_test_setup(test_beside_a_saver, deadline),
        cmocka_unit_test_setup(test_others, deadline),
        cmocka_unit_test_setup(test_link, deadline),
        cmocka_unit_test_setup(test_more_in_it, deadline),
        cmocka_unit_test_setup(test_no_series, deadline),
        cmocka_unit_test_setup(test_large_manifest, deadline),
        cmocka_unit_test_setup(test_pipes, deadline)};
    char folder[] = "folders-XXXXXX", command[64];
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        return 1;
    }
    OK(dm_register("fails", fails));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || chdir("..") != 0 || system(command) != 0;
}
