/* Memory in the steady state: a loop of products takes nothing from the system, and a product's peak is what
 * its plan said. */
#include <dmath/dmath.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dm_status_name(status), dm_error_message());
    }
}

static dm_session *open_session(int workers, const char *options)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.workers = workers;
    config.options = options;
    ok(dm_init(&config, &s));
    return s;
}

static dm_memory report(dm_session *s, int worker)
{
    dm_memory m = {.size = sizeof m};
    ok(dm_memory_report(s, worker, &m));
    return m;
}

/* Products with temporaries, created and destroyed arrays: after the first rounds nothing new is asked of the
 * system, and what is held does not grow. */
static void test_steady_state(void **state)
{
    (void)state;
    enum { N = 96, LOOPS = 1000, WARM = 5, WORKERS = 3 };
    dm_session *s = open_session(WORKERS, NULL);
    dm_array a, b, c;
    dm_layout cols = dm_layout_cols(s);
    int64_t shape[2] = {N, N};
    ok(dm_matrix(s, DM_F32, N, N, &a));
    ok(dm_array_create(s, DM_F64, 2, shape, &cols, &b));
    ok(dm_matrix(s, DM_F64, N, N, &c));
    ok(dm_fill_uniform(s, a, 0, 1, 1));
    ok(dm_fill_uniform(s, b, 0, 1, 2));
    dm_memory before[WORKERS];
    for (int i = 0; i < LOOPS; i++) {
        dm_array t;
        ok(dm_matrix(s, DM_F32, N, N, &t));
        ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        ok(dm_gemm(s, DM_T, DM_N, 1, c, b, 0, t));
        ok(dm_array_destroy(s, t));
        for (int w = 0; w < WORKERS && i == WARM; w++) {
            before[w] = report(s, w);
        }
    }
    for (int w = 0; w < WORKERS; w++) {
        dm_memory after = report(s, w);
        assert_int_equal(after.system_calls, before[w].system_calls);
        assert_int_equal(after.held, before[w].held);
        assert_int_equal(after.workspace, 0);
        assert_int_equal(after.arrays, before[w].arrays);
    }
    ok(dm_finalize(s, NULL));
}

/* What explain says of worker w in its first call. */
static long long explained(const char *text, int worker, const char *key)
{
    char line[32];
    snprintf(line, sizeof line, "worker %d:", worker);
    const char *at = strstr(text, line);
    assert_non_null(at);
    at = strstr(at, key);
    assert_non_null(at);
    return atoll(at + strlen(key));
}

/* One product at a time: the peak above the arrays is the plan's workspace, up to the rounding of each piece.
 */
static void test_peak(void **state)
{
    (void)state;
    static const char *const forms[] = {"gemm_algorithm=cyclic",
                                        "gemm_algorithm=two_block",
                                        "gemm_algorithm=stationary",
                                        "gemm_algorithm=contract",
                                        "gemm_workspace=64K,gemm_algorithm=stationary",
                                        "gemm_workspace=64K"};
    enum { N = 200, WORKERS = 4, ROUNDING = 256 * 16 };
    for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++) {
        dm_session *s = open_session(WORKERS, forms[f]);
        bool contract = f == 3;
        dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
        int64_t shape[2] = {N, N};
        dm_array a, b, c;
        ok(dm_array_create(s, DM_F64, 2, shape, contract ? &cols : &rows, &a));
        ok(dm_array_create(s, DM_F64, 2, shape, &rows, &b));
        ok(dm_array_create(s, DM_F64, 2, shape, &rows, &c));
        ok(dm_fill_uniform(s, a, 0, 1, 1));
        ok(dm_fill_uniform(s, b, 0, 1, 2));
        char *text = NULL;
        ok(dm_explain_begin(s));
        ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        ok(dm_explain_end(s, &text));
        ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        for (int w = 0; w < WORKERS; w++) {
            dm_memory m = report(s, w);
            dm_counters k = {.size = sizeof k};
            ok(dm_counters_get(s, w, &k));
            long long said = explained(text, w, " workspace ");
            assert_int_equal(k.workspace_peak_bytes, said);
            assert_true(m.peak - m.arrays >= said && m.peak - m.arrays <= said + ROUNDING);
            if (f >= 4) {
                assert_true(said <= 64 << 10);
            }
        }
        free(text);
        ok(dm_finalize(s, NULL));
    }
}

/* Two blocks of workspace a worker, not a byte more. */
static void test_two_block(void **state)
{
    (void)state;
    enum { N = 128, WORKERS = 4 };
    dm_session *s = open_session(WORKERS, "gemm_algorithm=two_block");
    dm_array a, b, c;
    char *text = NULL;
    ok(dm_matrix(s, DM_F64, N, N, &a));
    ok(dm_matrix(s, DM_F64, N, N, &b));
    ok(dm_matrix(s, DM_F64, N, N, &c));
    ok(dm_explain_begin(s));
    ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    ok(dm_explain_end(s, &text));
    for (int w = 0; w < WORKERS; w++) {
        assert_int_equal(explained(text, w, " workspace "), 2 * (N / WORKERS) * N * 8);
    }
    free(text);
    ok(dm_finalize(s, NULL));
}

/* Under a limit a product takes what room there is: right in any, and within it, down to an eighth of what it
 * would have taken; refused where not even that is there. What explain says holds here too. */
static void test_room(void **state)
{
    (void)state;
    enum { N = 200, WORKERS = 4, ROOMS = 11, ROUNDING = 256 * 4 };
    static double got[N * N];
    int served = 0, refused = 0;
    for (int combination = 0; combination < 4 * ROOMS; combination++) {
        int64_t room = (INT64_C(512) << 10) >> combination % ROOMS, arrays = 3 * N * N / WORKERS * 8;
        char options[80];
        snprintf(options, sizeof options, "pool_debug=0,memory_limit=%lld", (long long)(arrays + room + ROUNDING));
        dm_session *s = open_session(WORKERS, options);
        dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
        int64_t shape[2] = {N, N};
        dm_array a, b, c;
        ok(dm_array_create(s, DM_F64, 2, shape, combination / ROOMS & 1 ? &cols : &rows, &a));
        ok(dm_array_create(s, DM_F64, 2, shape, &rows, &b));
        ok(dm_array_create(s, DM_F64, 2, shape, combination / ROOMS & 2 ? &cols : &rows, &c));
        ok(dm_fill_arange(s, a, 1, 1));
        ok(dm_fill_identity(s, b, 3));
        char *text = NULL;
        ok(dm_explain_begin(s));
        dm_status told = dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c);
        ok(dm_explain_end(s, &text));
        dm_status status = dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c);
        assert_int_equal(status, told);
        assert_true(status == DM_OK || status == DM_ERR_LIMIT);
        for (int w = 0; w < WORKERS && status == DM_OK; w++) {
            dm_memory m = report(s, w);
            dm_counters k = {.size = sizeof k};
            ok(dm_counters_get(s, w, &k));
            assert_int_equal(k.workspace_peak_bytes, explained(text, w, " workspace "));
            assert_true(m.peak <= m.limit);
        }
        if (status == DM_OK) {
            ok(dm_array_read(s, c, NULL, NULL, got, 0));
            for (int i = 0; i < N * N; i++) {
                assert_true(got[i] == 3 * (1.0 + i));
            }
        }
        served += status == DM_OK;
        refused += status != DM_OK;
        assert_true(status == DM_OK || room < 32 << 10);
        free(text);
        ok(dm_finalize(s, NULL));
    }
    assert_true(served > 0 && refused > 0);
}

/* Unused memory goes back to the system on request, and comes again when needed. */
static void test_trim(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "slab=1M");
    dm_array a;
    ok(dm_matrix(s, DM_F64, 1024, 1024, &a));
    ok(dm_fill(s, a, 1));
    ok(dm_array_destroy(s, a));
    assert_true(report(s, 0).held >= 4 << 20);
    ok(dm_memory_trim(s));
    assert_int_equal(report(s, 0).held, 0);
    ok(dm_matrix(s, DM_F64, 64, 64, &a));
    ok(dm_fill(s, a, 1));
    assert_true(report(s, 0).held > 0);
    ok(dm_finalize(s, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_state), cmocka_unit_test(test_peak), cmocka_unit_test(test_two_block),
        cmocka_unit_test(test_room),         cmocka_unit_test(test_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
