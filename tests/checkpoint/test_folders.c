/* What stands beside checkpoints, or in their place: folders and files of others, pipes, standard streams that
 * are closed. Nothing of others is removed, and what was saved with OK can be loaded. */
#include "robust/robust.h"

#include <fcntl.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_closed_streams, deadline)};
    char folder[] = "folders-XXXXXX", command[64];
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        return 1;
    }
    OK(dm_register("fails", fails));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || chdir("..") != 0 || system(command) != 0;
}
