/* From some allocation on there is no host memory, for good: of one worker, of the master, or of all. Every call returns, the
 * session goes on or has failed with an error, dm_finalize ends it though there still is no memory, and when there is memory
 * again, the process starts another session, whose results are right. DMATH_TEST_POINTS: how many points (60). */
#include "robust.h"

#include "base/fault.h"
#include <dmath/program.h>

#include <signal.h>

enum { WORKERS = 3, SIDE = 40, MASTER = -1, EVERYBODY = -3 };

static char now[96]; /* the point, for a hang */

static void hangs(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, "hangs: ", 7);
    (void)!write(STDERR_FILENO, now, strlen(now));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(1);
}

/* Calls of many kinds; how many of them failed. */
static int calls(dm_session *s, dm_array a, dm_array b, dm_array c)
{
    double values[SIDE * SIDE];
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        dm_array view = {0}, made = {0};
        failed += dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c) != DM_OK;
        failed += dm_transpose(s, c, b) != DM_OK;
        failed += dm_matrix(s, DM_F32, SIDE + i, SIDE, &made) != DM_OK;
        failed += dm_array_view(s, a, (int64_t[]){0, 0}, (int64_t[]){SIDE / 2, SIDE}, &view) != DM_OK;
        failed += view.id && dm_fill(s, view, 1) != DM_OK;
        failed += dm_map(s, "a * 2 + b", 2, (dm_map_arg[]){{.name = "a", .array = a}, {.name = "b", .array = b}}, c) != DM_OK;
        failed += dm_array_read(s, c, NULL, NULL, values, 0) != DM_OK;
        failed += made.id && dm_array_destroy(s, made) != DM_OK;
        failed += view.id && dm_array_destroy(s, view) != DM_OK;
        failed += dm_sync(s) != DM_OK;
    }
    return failed;
}

/* A program with a loop, whose frames and runs need memory of the workers, once recorded and run. */
static int programs(dm_session *s, dm_array a, dm_array b, dm_array c)
{
    dm_program program = {0};
    int failed = dm_program_begin(s) != DM_OK;
    failed += dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c) != DM_OK;
    failed += dm_program_repeat(s, 3) != DM_OK;
    failed += dm_transpose(s, c, b) != DM_OK;
    failed += dm_add(s, 1, a, 1, b, c) != DM_OK;
    failed += dm_program_repeat_end(s) != DM_OK;
    failed += dm_program_end(s, &program) != DM_OK;
    for (int i = 0; i < 2 && program.id; i++) {
        failed += dm_program_run(s, program, 2, 0, NULL) != DM_OK;
    }
    failed += dm_sync(s) != DM_OK;
    failed += program.id && dm_program_destroy(s, program) != DM_OK;
    return failed;
}

/* A whole session in which all is right. */
static void healthy(void)
{
    dm_session *s = open_session(WORKERS, "log=error,fault=''");
    dm_array a = make_matrix(s, SIDE, NULL, 1), b = make_matrix(s, SIDE, NULL, 2);
    OK(dm_copy(s, a, b));
    matrix_is(s, b, SIDE, 1);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

static void point(int64_t number, int worker, int (*use)(dm_session *s, dm_array a, dm_array b, dm_array c))
{
    char fault[64];
    dm_session *s = open_session(WORKERS, "log=error,fault=''");
    dm_layout cols = dm_layout_cols(s);
    dm_array a = make_matrix(s, SIDE, NULL, 1), b = make_matrix(s, SIDE, &cols, 2), c = make_matrix(s, SIDE, NULL, 3);
    if (worker == EVERYBODY) {
        snprintf(fault, sizeof fault, "malloc:%lld:on", (long long)number);
    } else {
        snprintf(fault, sizeof fault, "malloc:%lld:worker=%d:on", (long long)number, worker);
    }
    snprintf(now, sizeof now, "%s", fault);
    alarm(100);
    double begin = seconds();
    dmi_fault_plant(fault);
    int failed = use(s, a, b, c);
    (void)!dm_finalize(s, NULL);
    dmi_fault_plant("");
    fprintf(stderr, "%s: %d calls failed, %.2f s\n", fault, failed, seconds() - begin);
    healthy();
    alarm(0);
}

static void test_points(void **state)
{
    (void)state;
    const char *text = getenv("DMATH_TEST_POINTS");
    int points = text ? atoi(text) : 60;
    static const int who[] = {0, 1, 2, MASTER, EVERYBODY};
    signal(SIGALRM, hangs);
    unsigned seed = 11;
    for (int i = 0; i < points; i++) {
        point(1 + (int64_t)(rand_r(&seed) % (i % 2 ? 30 : 300)), who[i % 5], calls);
    }
}

static void test_programs(void **state)
{
    (void)state;
    signal(SIGALRM, hangs);
    for (int i = 0; i < 8; i++) {
        point(1 + 7 * i, i % WORKERS, programs);
    }
}

/* Halves x, 16 at first, until it is below 1. */
static dm_program halving(dm_session *s, dm_array *x)
{
    dm_layout everywhere = dm_layout_replicated(s);
    dm_program program;
    OK(dm_array_create(s, DM_F64, 0, NULL, &everywhere, x));
    OK(dm_program_begin(s));
    OK(dm_program_repeat(s, 100));
    OK(dm_scale(s, 0.5, *x, *x));
    OK(dm_program_repeat_until(s, 1, *x, 1));
    OK(dm_program_end(s, &program));
    OK(dm_fill(s, *x, 16));
    return program;
}

/* The same of one worker while a run of a program begins and goes on, whose workers look at a number after each
 * pass: whatever it has no memory for, the run says so. */
static void test_runs(void **state)
{
    (void)state;
    int at = 1;
    signal(SIGALRM, hangs);
    for (bool met = true; met; at++) {
        dm_session *s = open_session(WORKERS, "log=error,fault=''");
        dm_array x;
        char fault[64];
        dm_program program = halving(s, &x);
        OK(dm_sync(s));
        snprintf(fault, sizeof fault, "malloc:%d:worker=1:on", at);
        snprintf(now, sizeof now, "a run, %s", fault);
        alarm(100);
        dmi_fault_plant(fault);
        (void)!dm_program_run(s, program, 1, 0, NULL);
        dm_status status = dm_sync(s);
        met = dmi_fault_calls() >= at;
        if ((status != DM_OK) != met ||
            (met && (status != DM_ERR_NOMEM || !strstr(dm_error_message(), "worker 1 (")))) {
            fail_msg("%s: %s: %s", now, dm_status_name(status), dm_error_message());
        }
        (void)!dm_finalize(s, NULL);
        dmi_fault_plant("");
        healthy();
        alarm(0);
    }
    assert_in_range(at, 5, 40);
}

/* A kernel of every worker fails in such a run, the N-th for each N: what is looked at is not known any more,
 * so the run ends and says so, and where it is the look that fails, the session too. */
static void test_looks(void **state)
{
    (void)state;
    int at = 1, ended = 0;
    signal(SIGALRM, hangs);
    for (dm_status status = DM_ERR_INTERNAL; status != DM_OK; at++) {
        char options[64];
        dm_array x;
        snprintf(options, sizeof options, "log=error,fault='compute:%d'", at);
        snprintf(now, sizeof now, "a look, %s", options);
        alarm(100);
        dm_session *s = open_session(WORKERS, options);
        dm_program program = halving(s, &x);
        OK(dm_program_run(s, program, 1, 0, NULL));
        status = dm_sync(s);
        if (status != DM_OK && !strstr(dm_error_message(), "planted fault")) {
            fail_msg("%s: %s: %s", now, dm_status_name(status), dm_error_message());
        }
        ended += status != DM_OK && dm_sync(s) != DM_OK;
        double value = 0;
        assert_int_equal(dm_read(s, x, &value) == DM_OK && value == 0.5, status == DM_OK);
        (void)!dm_finalize(s, NULL);
        healthy();
        alarm(0);
    }
    print_message("%d kernels, %d of them ended the session\n", at - 2, ended);
    assert_in_range(at, 6, 40);
    assert_in_range(ended, 1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_points), cmocka_unit_test(test_programs),
                                       cmocka_unit_test(test_runs), cmocka_unit_test(test_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
