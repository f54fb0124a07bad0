/* Handles and sessions that have seen better days: of an earlier session, of a slot used many times, in a child
 * of fork, and at the end of a program that has forgotten dm_finalize. */
#include "robust.h"

#include <sys/wait.h>

enum { N = 8, LARGE = 300 };

static void dead(dm_session *s, dm_array a, const char *word)
{
    dm_array_info info = {.size = sizeof info};
    assert_int_equal(dm_array_query(s, a, &info), DM_ERR_HANDLE);
    assert_non_null(strstr(dm_error_message(), word));
    assert_int_equal(dm_array_destroy(s, a), DM_ERR_HANDLE);
    assert_int_equal(dm_fill(s, a, 1), DM_ERR_HANDLE);
}

static void test_600_sessions(void **state)
{
    (void)state;
    enum { SESSIONS = 600 };
    static dm_array old[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        dm_session *s = open_session(1, "");
        OK(dm_matrix(s, DM_F64, N, N, &old[i]));
        for (int k = 0; k < i; k++) {
            dead(s, old[k], "another session");
        }
        OK(dm_array_destroy(s, old[i]));
        close_session(s);
    }
}

/* More arrays one after the other than a slot has generations. */
static void test_dead_handles_stay_dead(void **state)
{
    (void)state;
    dm_session *s = open_session(1, "");
    dm_array first, kept, next;
    OK(dm_matrix(s, DM_F64, 1, 1, &first));
    OK(dm_array_destroy(s, first));
    for (int i = 0; i < 140000; i++) {
        OK(dm_matrix(s, DM_F64, 1, 1, &next));
        assert_true(next.id != first.id);
        if (i % 1000 == 0 || (i > 65000 && i < 66000)) {
            dead(s, first, i < 65000 ? "has been destroyed" : "");
        }
        if (i == 65534) {
            kept = next;
        } else {
            OK(dm_array_destroy(s, next));
        }
    }
    OK(dm_fill(s, kept, 1));
    OK(dm_array_destroy(s, kept));
    close_session(s);
}

/* In a child of fork the session is refused, a new one works, and the parent's goes on. */
static void test_fork(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        double values[N * N];
        dm_array b;
        alarm(90);
        bool right = dm_sync(s) == DM_ERR_STATE && strstr(dm_error_message(), "fork");
        right = right && dm_fill(s, a, 1) == DM_ERR_STATE && dm_matrix(s, DM_F64, 2, 2, &b) == DM_ERR_STATE;
        right = right && dm_array_read(s, a, NULL, NULL, values, 0) == DM_ERR_STATE;
        right = right && dm_workers(s) == 0 && dm_finalize(s, NULL) == DM_ERR_STATE;
#if !defined(__SANITIZE_THREAD__) /* which does not like threads after fork */
        dm_session *own = open_session(1, "log=error");
        dm_array c = make_matrix(own, N, NULL, 2);
        matrix_is(own, c, N, 2);
        OK(dm_array_destroy(own, c));
        close_session(own);
#endif
        _exit(right ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* What a child writes to stderr before it ends by exit(3). */
static int ending_of(void (*program)(void), char *text, size_t room)
{
    int end[2], status = 0;
    size_t length = 0;
    ssize_t n = 0;
    fflush(NULL);
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(90);
        dup2(end[1], STDERR_FILENO);
        close(end[0]);
        close(end[1]);
        program();
        exit(3);
    }
    close(end[1]);
    while (length + 1 < room && (n = read(end[0], text + length, room - 1 - length)) > 0) {
        length += (size_t)n;
    }
    text[length] = 0;
    close(end[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void forgets(void)
{
    dm_session *s = open_session(2, "");
    (void)make_matrix(s, N, NULL, 1);
    (void)make_matrix(s, N, NULL, 2);
}

static void remembers(void)
{
    close_session(open_session(2, ""));
}

static void forks(void)
{
    forgets();
    pid_t child = fork();
    if (child == 0) {
        exit(0); /* not its session: no word */
    }
    (void)waitpid(child, NULL, 0);
}

static void test_forgotten_finalize(void **state)
{
    (void)state;
    static char text[20000];
    void (*const program[])(void) = {forgets, remembers, forks};
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* a session that is left open is a leak, and an exit status of its own */
#endif
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ending_of(program[i], text, sizeof text), 3);
        const char *at = strstr(text, "dm_finalize was not called");
        assert_int_equal(at != NULL, i != 1);
        assert_true(!at || (strstr(at, "2 arrays") && !strstr(at + 1, "dm_finalize was not called")));
    }
}

/* With products under way, whose kernels call libraries that exit() takes down. */
static const char *where;
static void leaves_work(void)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.workers = 3;
    config.options = where;
    if (dm_init(&config, &s) != DM_OK) { /* a build without emulated GPUs */
        return;
    }
    dm_array a, b, c;
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &a));
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &b));
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &c));
    OK(dm_fill(s, a, 1));
    OK(dm_fill(s, b, 2));
    for (int i = 0; i < 12; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    }
}

static void test_work_left(void **state)
{
    (void)state;
    static char text[20000];
    static const char *const places[] = {"device=cpu", "device=emulated,share_gpu=1"};
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    for (int i = 0; i < 24; i++) {
        where = places[i % 2];
        if (ending_of(leaves_work, text, sizeof text) != 3) {
            fail_msg("%s: %s", where, text);
        }
    }
}

/* A program that finalizes in a handler of exit(), set before or after dm_init. */
static dm_session *opened;
static bool early;
static void finalizes(void)
{
    dm_status status = dm_finalize(opened, NULL);
    fprintf(stderr, "%s: %s\n", dm_status_name(status), status == DM_OK ? "" : dm_error_message());
    if (status != DM_OK) { /* neither does a new one begin */
        dm_session *next;
        if (dm_init(NULL, &next) != DM_ERR_STATE) {
            _exit(1);
        }
    }
}

static void ends_by_handler(void)
{
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    config.options = where;
    if (early) {
        atexit(finalizes);
    }
    if (dm_init(&config, &opened) != DM_OK) {
        _exit(77);
    }
    if (!early) {
        atexit(finalizes);
    }
}

static void test_handlers_of_exit(void **state)
{
    (void)state;
    static char text[20000];
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    for (int i = 0; i < 4; i++) {
        bool gpus = i / 2;
        early = i % 2;
        where = gpus ? "device=emulated" : "device=cpu";
        int status = ending_of(ends_by_handler, text, sizeof text);
        if (gpus && status == 77) { /* a build without emulated GPUs */
            continue;
        }
        assert_int_equal(status, 3);
        if (!strstr(text, gpus && early ? "ERR_STATE: finalize: the program is ending. Call dm_finalize" : "OK: ")) {
            fail_msg("%s, %s: %s", where, early ? "early" : "late", text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_600_sessions, deadline),
        cmocka_unit_test_setup(test_dead_handles_stay_dead, deadline),
        cmocka_unit_test_setup(test_fork, deadline),
        cmocka_unit_test_setup(test_forgotten_finalize, deadline),
        cmocka_unit_test_setup(test_work_left, deadline),
        cmocka_unit_test_setup(test_handlers_of_exit, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
