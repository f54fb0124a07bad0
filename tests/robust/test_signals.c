/* The options catch_signals and interrupt: notes of signals; Ctrl-C cancels commands, and the second one ends
 * the process. */
#include "robust.h"

#include "base/fault.h"

#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

static int nap(const dm_task *task)
{
    (void)task;
    usleep(200000);
    return 0;
}

static void other(int number)
{
    (void)number;
}

static void is_handler(int number, void (*want)(int))
{
    struct sigaction now;
    assert_int_equal(sigaction(number, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, want);
}

static void test_notes(void **state)
{
    (void)state;
    int number = -1, leave = -1;
    signal(SIGUSR1, other);
    dm_session *without = open_session(1, "log=error");
    is_handler(SIGUSR1, other);
    OK(dm_session_signalled(without, &number));
    assert_int_equal(number, 0);
    close_session(without);
    dm_session *s = open_session(2, "log=error,catch_signals=1"),
               *second = open_session(1, "log=error,catch_signals=1");
    OK(dm_session_signalled(s, &number));
    assert_int_equal(number, 0);
    OK(dm_checkpoint_boundary(s, "nothing", NULL, &leave));
    assert_int_equal(leave, 0);
    assert_int_not_equal(access("nothing", F_OK), 0);
    close_session(second);
    raise(SIGTERM);
    raise(SIGUSR1);
    OK(dm_session_signalled(s, &number));
    assert_int_equal(number, SIGTERM);
    int64_t value = 5, loaded = 0;
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("value", &value)));
    char folder[] = "signals-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    OK(dm_checkpoint_boundary(s, folder, NULL, &leave));
    assert_int_equal(leave, 1);
    OK(dm_checkpoint_load(s, folder, 1, (dm_checkpoint_item[]){DM_KEEP_VALUE("value", &loaded)}));
    assert_int_equal(loaded, 5);
    close_session(s);
    is_handler(SIGUSR1, other);
    is_handler(SIGTERM, SIG_DFL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    s = open_session(1, "log=error,catch_signals=1"); /* a new session, a new note */
    OK(dm_session_signalled(s, &number));
    assert_int_equal(number, 0);
    close_session(s);
}

/* In a child, which dies. */
static void interrupted_twice(void)
{
    dm_session *s = open_session(2, "log=error,interrupt=1");
    dm_array a;
    dm_file *file = NULL;
    if (dm_file_begin("twice.txt", &file) != DM_OK || access(dm_file_path(file), F_OK) != 0) {
        _exit(6);
    }
    OK(dm_matrix(s, DM_F64, 8, 8, &a));
    for (int turn = 0; turn < 2; turn++) {
        OK(dm_fill(s, a, 1)); /* what was cancelled is poisoned */
        for (int i = 0; i < 100; i++) {
            OK(dm_apply(s, "nap", 1, &a, (int[]){DM_READWRITE}, NULL, 0));
        }
        usleep(30000);
        raise(SIGINT);
        double begin = seconds();
        if (dm_sync(s) != DM_ERR_CANCELLED || seconds() - begin > 15) { /* of 20 */
            _exit(3);
        }
        if (turn == 1) {
            sleep(60); /* it ends meanwhile */
            _exit(4);
        }
    }
}

/* In a child: a session that asks for Ctrl-C, whose N-th allocation fails. Returns what became of it. */
enum { STARTED = 3, WITHOUT_THREAD, NOT_STARTED, WRONG };

static void own_handler(int number)
{
    (void)number;
}

static int started_without(int number)
{
    char options[80];
    struct sigaction now;
    dm_session *s = NULL;
    dm_array a;
    dm_config config = DM_CONFIG_INIT;
    snprintf(options, sizeof options, "device=cpu,log=error,interrupt=1,fault='malloc:%d'", number);
    config.workers = 1;
    config.options = options;
    signal(SIGINT, own_handler);
    dm_status status = dm_init(&config, &s);
    bool met = dmi_fault_calls() >= number;
    dmi_fault_plant("");
    if (status != DM_OK) {
        return met && status == DM_ERR_NOMEM ? NOT_STARTED : WRONG;
    }
    sigaction(SIGINT, NULL, &now);
    bool works = dm_vector(s, DM_F64, 8, &a) == DM_OK && dm_fill(s, a, 1) == DM_OK && dm_sync(s) == DM_OK &&
                 dm_array_destroy(s, a) == DM_OK;
    return dm_finalize(s, NULL) != DM_OK || !works ? WRONG
           : now.sa_handler == own_handler         ? WITHOUT_THREAD
                                                   : STARTED;
}

/* Such a session starts a thread, once in a process. Where it cannot, a warning says so, and the session goes
 * without: the program's own handler stays. */
static void test_no_thread(void **state)
{
    (void)state;
    enum { NUMBERS = 400 };
    int seen[WRONG] = {0};
    for (int number = 1; number < NUMBERS && seen[WITHOUT_THREAD] == 0; number++) {
        int status = 0;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            _exit(started_without(number));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) >= STARTED && WEXITSTATUS(status) < WRONG);
        seen[WEXITSTATUS(status)]++;
    }
    assert_int_equal(seen[WITHOUT_THREAD], 1);
}

/* Every session that has the option, however many there are; not one that has it not, nor one that has ended.
 */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 21, WITHOUT = MANY - 1 };
    dm_session *s[MANY];
    dm_array a[MANY];
    close_session(open_session(1, "log=error,interrupt=1"));
    for (int i = 0; i < MANY; i++) {
        s[i] = open_session(1, i == WITHOUT ? "log=error" : "log=error,interrupt=1");
        OK(dm_vector(s[i], DM_F64, 8, &a[i]));
        OK(dm_fill(s[i], a[i], 1));
        OK(dm_sync(s[i]));
    }
    for (int i = 0; i < MANY; i++) {
        for (int n = 0; n < (i == WITHOUT ? 1 : 20); n++) { /* none is done when the signal comes */
            OK(dm_apply(s[i], "nap", 1, &a[i], (int[]){DM_READWRITE}, NULL, 0));
        }
    }
    raise(SIGINT);
    for (int i = 0; i < MANY; i++) {
        dm_status status = dm_sync(s[i]);
        if (status != (i == WITHOUT ? DM_OK : DM_ERR_CANCELLED)) {
            fail_msg("session %d gave %s", i + 1, dm_status_name(status));
        }
        OK(dm_array_destroy(s[i], a[i]));
        close_session(s[i]);
    }
}

static void test_interrupt(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        interrupted_twice();
        _exit(5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGINT) {
        fail_msg("the child ended with %x", (unsigned)status);
    }
    glob_t left;
    assert_int_equal(glob("twice.txt*", 0, NULL, &left), GLOB_NOMATCH); /* what it had begun to write */
}

/* In a child, which has a session with the option and forks: signals of the child of the child are its own. */
static void forked(void)
{
    dm_session *s = open_session(1, "log=error,interrupt=1,catch_signals=1");
    for (int way = 0; way < 2; way++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            dm_session *own = open_session(1, way ? "log=error,interrupt=1" : "log=error");
            for (int i = 0; i < 2; i++) {
                raise(SIGINT);
            }
            sleep(60); /* it ends meanwhile */
            close_session(own);
            _exit(3);
        }
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGINT) {
            _exit(4 + way);
        }
        usleep(200000); /* this process does not */
    }
    pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM); /* nobody could ask the session for a note */
        _exit(6);
    }
    int status = 0, number = -1;
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM) {
        _exit(7);
    }
    OK(dm_session_signalled(s, &number));
    close_session(s);
    _exit(number == 0 ? 0 : 8);
}

static void test_forked(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) /* it knows no threads of a child by fork */
    skip();
#endif
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        forked();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the child ended with %x", (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_thread, deadline), /* before the thread is there */
        cmocka_unit_test_setup(test_interrupt, deadline), cmocka_unit_test_setup(test_forked, deadline),
        cmocka_unit_test_setup(test_many, deadline), cmocka_unit_test_setup(test_notes, deadline)};
    OK(dm_register("nap", nap));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
