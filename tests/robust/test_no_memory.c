/* Memory that is not there: the N-th block of every worker for every N, limits, and arrays no machine can hold.
 */
#include "robust.h"

enum { N = 24, WORKERS = 3 };

/* Either right, or said to be wrong. */
static bool right_or_poisoned(dm_session *s, dm_array a, const double *want)
{
    dm_status status = read_matrix(s, a, N, want);
    if (status != DM_OK && status != DM_ERR_POISONED) {
        fail_msg("reading gave %s: %s", dm_status_name(status), dm_error_message());
    }
    return status == DM_OK;
}

static dm_array empty_matrix(dm_session *s, const dm_layout *layout)
{
    const int64_t shape[2] = {N, N};
    dm_array a = DM_NO_ARRAY;
    OK(dm_array_create(s, DM_F64, 2, shape, layout, &a));
    return a;
}

/* Products, copies and sums over arrays some of which have no memory. Returns true if the fault was met. */
static bool one_run(const char *options, int at)
{
    char text[128];
    double values[N * N], b[N * N], want[N * N];
    snprintf(text, sizeof text, "%sfault='alloc:%d',log=error", options, at);
    dm_session *s = open_session(WORKERS, text);
    dm_layout layouts[] = {dm_layout_rows(s), dm_layout_cols(s), dm_layout_cyclic(s, 0, 2),
                           dm_layout_replicated(s)};
    enum { ARRAYS = 6 };
    dm_array array[ARRAYS], safe;
    bool met = false;
    element_matrix(N, 1, values);
    element_matrix(N, 2, b);
    product(N, values, b, want);
    for (int i = 0; i < ARRAYS; i++) {
        array[i] = empty_matrix(s, &layouts[i % 4]);
    }
    met = dm_array_write(s, array[0], NULL, NULL, values, 0) != DM_OK;
    met = dm_array_write(s, array[1], NULL, NULL, b, 0) != DM_OK || met;
    OK(dm_gemm(s, DM_N, DM_N, 1, array[0], array[1], 0, array[2]));
    OK(dm_copy(s, array[2], array[3]));
    OK(dm_transpose(s, array[3], array[4]));
    OK(dm_add(s, 1, array[4], 1, array[0], array[5]));
    OK(dm_fill(s, array[5], 7));
    met = dm_sync(s) != DM_OK || met;
    if (met) {
        assert_non_null(strstr(dm_error_message(), "planted fault"));
        assert_non_null(strstr(dm_error_message(), "worker "));
    }
    OK(dm_sync(s));
    (void)right_or_poisoned(s, array[0], values);
    (void)right_or_poisoned(s, array[1], b);
    (void)right_or_poisoned(s, array[2], want);
    (void)right_or_poisoned(s, array[3], want);
    for (int i = 0; i < N * N; i++) {
        values[i] = 7;
    }
    (void)right_or_poisoned(s, array[5], values);
    for (int i = 0; i < ARRAYS; i++) { /* also onto memory that is not there */
        OK(dm_fill(s, array[i], 7));
        (void)right_or_poisoned(s, array[i], values);
        OK(dm_array_destroy(s, array[i]));
    }
    for (int i = 0; i < at; i++) { /* workers that took fewer blocks have their failure still before them */
        OK(dm_array_destroy(s, empty_matrix(s, &layouts[3])));
    }
    (void)!dm_sync(s);
    safe = make_matrix(s, N, &layouts[1], 4);
    matrix_is(s, safe, N, 4);
    OK(dm_array_destroy(s, safe));
    for (int w = 0; w < WORKERS; w++) {
        dm_memory memory = {.size = sizeof memory};
        OK(dm_memory_report(s, w, &memory));
        assert_int_equal(memory.arrays + memory.workspace, 0);
    }
    close_session(s);
    return met;
}

static void test_every_block(void **state)
{
    (void)state;
    const char *const options[] = {"", "gemm_workspace=4K,", "slab=8K,", "pool_debug=1,"};
    for (int i = 0; i < 4; i++) {
        int at = 1;
        while (at <= 60 && one_run(options[i], at)) {
            at++;
        }
        assert_in_range(at, 8, 60);
    }
}

/* A program with a loop that looks at a value, in a group. A worker that cannot look does not know what the
 * others do: the session fails, and ends; nobody waits for that worker. Returns whether the fault was met. */
static bool looks_run(const char *fault, int at)
{
    char text[64];
    snprintf(text, sizeof text, "fault='%s:%d',log=error", fault, at);
    dm_session *s = open_session(WORKERS, text);
    dm_array x, rows;
    dm_program program;
    dm_group all;
    double got = 0;
    bool met = false;
    OK(dm_group_create(s, (int[]){2, 1, 0}, 3, &all));
    OK(dm_group_begin(s, all));
    OK(dm_vector(s, DM_F64, 1, &x));
    rows = empty_matrix(s, NULL);
    OK(dm_fill(s, x, 64));
    OK(dm_program_begin(s));
    OK(dm_program_repeat(s, 10));
    OK(dm_map(s, "0.5 * x", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    OK(dm_fill(s, rows, 1));
    OK(dm_program_repeat_until(s, 1, x, 1.5));
    met = dm_program_end(s, &program) != DM_OK;
    for (int i = 0; i < 2 && !met; i++) {
        met = dm_program_run(s, program, 2, 0, NULL) != DM_OK || dm_read(s, x, &got) != DM_OK;
    }
    if (!met) { /* seven passes, and one in each run after these */
        assert_true(got == 1.0 / 8);
    }
    const dm_status sync = dm_sync(s), end = dm_finalize(s, NULL);
    const dm_status kind = strcmp(fault, "alloc") == 0 ? DM_ERR_NOMEM : DM_ERR_INTERNAL;
    assert_true(sync == DM_OK || sync == kind || sync == DM_ERR_POISONED);
    assert_true(end == DM_OK || end == kind || end == DM_ERR_POISONED);
    return sync != DM_OK || end != DM_OK || met;
}

static void test_looks(void **state)
{
    (void)state;
    static const char *const faults[] = {"alloc", "compute"};
    for (int kind = 0; kind < 2; kind++) {
        int at = 1, clean = 0;
        for (; at <= 60 && clean < 6; at++) {
            clean = looks_run(faults[kind], at) ? 0 : clean + 1;
        }
        assert_in_range(at, 10, 60);
    }
}

/* What has been admitted runs, though a debug pool hands memory on only when its last user is done. */
static void test_queued(void **state)
{
    (void)state;
    dm_session *s = open_session(7, "memory_limit=262K,pool_debug=1,log=error");
    const int64_t shape[2] = {37, 196}, square[2] = {196, 196};
    dm_layout everywhere = dm_layout_replicated(s), halves = dm_layout_grid(2, 1, 0, 0);
    dm_array a, c;
    halves.replicas = 2;
    OK(dm_array_create(s, DM_BF16, 2, shape, &halves, &a));
    OK(dm_array_create(s, DM_BF16, 2, square, &everywhere, &c));
    OK(dm_fill(s, a, 1));
    OK(dm_fill(s, c, 0));
    for (int i = 0; i < 6; i++) {
        dm_status status = dm_gemm(s, DM_T, DM_N, 1, a, a, 1, c);
        assert_true(status == DM_OK || status == DM_ERR_LIMIT);
    }
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, c));
    close_session(s);
}

/* Refused at the call, with the numbers, and nothing has changed. */
static void test_limit(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "memory_limit=64K,pool_debug=0,log=error");
    const int64_t large[2] = {100, 100}, product_shape[2] = {60, 60};
    dm_layout rows = dm_layout_rows(s), everywhere = dm_layout_replicated(s);
    dm_array a = make_matrix(s, 40, &rows, 1), refused = {77}, big[3];
    dm_memory before = {.size = sizeof before}, after = {.size = sizeof after};
    OK(dm_memory_report(s, 0, &before));
    assert_int_equal(dm_array_create(s, DM_F64, 2, large, &everywhere, &refused), DM_ERR_LIMIT);
    assert_non_null(strstr(dm_error_message(), "80128")); /* 80000 in whole pieces of 256 */
    assert_non_null(strstr(dm_error_message(), "65536"));
    assert_ptr_equal(strstr(dm_error_message(), "array_create: worker"), dm_error_message());
    assert_true(refused.id == 77);
    OK(dm_memory_report(s, 0, &after));
    assert_int_equal(before.arrays, after.arrays);
    assert_int_equal(before.peak, after.peak);
    matrix_is(s, a, 40, 1);
    for (int i = 0; i < 3; i++) {
        OK(dm_array_create(s, DM_F64, 2, product_shape, &rows, &big[i]));
        OK(dm_fill(s, big[i], 1));
    }
    dm_status status = dm_gemm(s, DM_T, DM_N, 1, big[0], big[1], 0, big[2]);
    assert_true(status == DM_OK || status == DM_ERR_LIMIT);
    if (status == DM_ERR_LIMIT) {
        assert_non_null(strstr(dm_error_message(), "65536"));
    }
    OK(dm_sync(s));
    for (int i = 0; i < 3; i++) {
        OK(dm_array_destroy(s, big[i]));
    }
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* Where there is no room for a temporary of the call, that call is named. */
static void test_limit_of_temporaries(void **state)
{
    (void)state;
    dm_session *s = open_session(1, "memory_limit=32K,pool_debug=0,log=error");
    dm_array a = make_matrix(s, 50, NULL, 1), x, y; /* 20000 bytes */
    OK(dm_vector(s, DM_F64, 50, &x));
    OK(dm_vector(s, DM_F64, 50, &y));
    assert_int_equal(dm_symv(s, DM_LOWER, 1, a, x, 0, y), DM_ERR_LIMIT);
    assert_ptr_equal(strstr(dm_error_message(), "symv: worker 0"), dm_error_message());
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, x));
    OK(dm_array_destroy(s, y));
    close_session(s);
}

/* Sizes that pass every check but that of the system: an error at the next wait, and the session goes on. */
static void test_more_than_there_is(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    const int64_t sizes[] = {INT64_C(1) << 46, INT64_C(1) << 55, INT64_C(1) << 59};
    for (int turn = 0; turn < 3; turn++) {
        dm_array huge[8], a;
        int made = 0;
        for (int i = 0; i < 8; i++) {
            dm_status status = dm_array_create(s, DM_F64, 1, &sizes[turn], NULL, &huge[made]);
            made += status == DM_OK;
            assert_true(status == DM_OK || status == DM_ERR_LIMIT || status == DM_ERR_ARG);
        }
        dm_status status = dm_sync(s);
        assert_true(made == 0 || status == DM_ERR_NOMEM);
        const int64_t index[1] = {1}, one[1] = {1};
        double value;
        for (int i = 0; i < made; i++) {
            assert_int_equal(dm_array_read(s, huge[i], index, one, &value, 0), DM_ERR_POISONED);
            OK(dm_array_destroy(s, huge[i]));
        }
        a = make_matrix(s, 10, NULL, 2);
        matrix_is(s, a, 10, 2);
        OK(dm_array_destroy(s, a));
    }
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_block, deadline),
        cmocka_unit_test_setup(test_looks, deadline),
        cmocka_unit_test_setup(test_limit, deadline),
        cmocka_unit_test_setup(test_limit_of_temporaries, deadline),
        cmocka_unit_test_setup(test_queued, deadline),
        cmocka_unit_test_setup(test_more_than_there_is, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
