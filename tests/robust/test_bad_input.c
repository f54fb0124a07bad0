/* Calls with anything: null pointers, wild handles, arguments that make no sense. An error that says something,
 * never a crash, and nothing has changed. */
#include "bad_input.h"

#include <float.h>
#include <math.h>

static void test_null(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1), b = make_matrix(s, N, NULL, 2), out = {77};
    const int64_t shape[2] = {N, N}, zero[2] = {0, 0};
    double values[N * N];
    int worker = 0;
    const unsigned none = ONE(HANDLE) | ONE(ARG);
    REFUSED(ONE(ARG), "session", dm_init(NULL, NULL));
    REFUSED(none, "session", dm_finalize(NULL, NULL));
    REFUSED(none, "session", dm_sync(NULL));
    REFUSED(none, "session", dm_noop(NULL));
    REFUSED(none, "session", dm_memory_trim(NULL));
    assert_int_equal(dm_workers(NULL), 0);
    REFUSED(ONE(ARG), "shape", dm_array_create(s, DM_F64, 2, NULL, NULL, &out));
    REFUSED(ONE(ARG), "out", dm_array_create(s, DM_F64, 2, shape, NULL, NULL));
    REFUSED(ONE(ARG), "out", dm_matrix(s, DM_F64, 2, 2, NULL));
    REFUSED(ONE(ARG), "info", dm_array_query(s, a, NULL));
    REFUSED(ONE(ARG), "index", dm_array_owner(s, a, NULL, &worker));
    REFUSED(ONE(ARG), "worker", dm_array_owner(s, a, zero, NULL));
    REFUSED(ONE(ARG), "lo", dm_array_view(s, a, NULL, shape, &out));
    REFUSED(ONE(ARG), "extent", dm_array_view(s, a, zero, NULL, &out));
    REFUSED(ONE(ARG), "out", dm_array_view(s, a, zero, shape, NULL));
    REFUSED(ONE(ARG), "shape", dm_array_reshape(s, a, 2, NULL, &out));
    REFUSED(ONE(ARG), "out", dm_array_reshape(s, a, 2, shape, NULL));
    REFUSED(ONE(ARG), "host", dm_array_write(s, a, NULL, NULL, NULL, 0));
    REFUSED(ONE(ARG), "host", dm_array_read(s, a, NULL, NULL, NULL, 0));
    REFUSED(ONE(ARG), "extent", dm_array_read(s, a, zero, NULL, values, 0));
    REFUSED(ONE(ARG), "lo", dm_array_write(s, a, NULL, shape, values, 0));
    REFUSED(ONE(ARG), "path", dm_array_load(s, NULL, NULL, &out));
    REFUSED(ONE(ARG), "out", dm_array_load(s, "x.npy", NULL, NULL));
    REFUSED(ONE(ARG), "path", dm_array_save(s, a, NULL));
    REFUSED(ONE(ARG), "path", dm_array_load(s, "", NULL, &out));
    REFUSED(ONE(ARG), "path", dm_array_load_as(s, "", DM_F32, NULL, &out));
    REFUSED(ONE(ARG), "path", dm_array_save(s, a, ""));
    REFUSED(ONE(ARG), "perm", dm_permute(s, a, NULL, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, NULL, 1, 1, 0, b));
    REFUSED(ONE(ARG), "name", dm_apply(s, NULL, 0, NULL, NULL, NULL, 0));
    REFUSED(ONE(ARG) | ONE(STATE), NULL, dm_register(NULL, NULL));
    OK(dm_explain_begin(s));
    REFUSED(ONE(ARG), "text", dm_explain_end(s, NULL));
    char *text = NULL;
    OK(dm_explain_end(s, &text));
    free(text);
    REFUSED(ONE(ARG), "out", dm_counters_get(s, 0, NULL));
    REFUSED(ONE(ARG), "out", dm_memory_report(s, 0, NULL));
    assert_true(out.id == 77);
    dm_layout layout = dm_layout_explicit(2, NULL, NULL, 4);
    REFUSED(ONE(LAYOUT) | ONE(ARG), "layout", dm_array_create(s, DM_F64, 2, shape, &layout, &out));
    (void)dm_layout_rows(NULL);
    (void)dm_layout_replicated(NULL);
    (void)dm_layout_cyclic(NULL, -5, -5);
    matrix_is(s, a, N, 1);
    matrix_is(s, b, N, 2);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

/* Every call with a handle that stands for nothing. */
static void wild(dm_session *s, dm_array bad, dm_array good)
{
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1};
    const int perm[2] = {1, 0};
    double values[N * N];
    int worker;
    dm_array out = {77};
    dm_array_info info = {.size = sizeof info};
    const unsigned handle = ONE(HANDLE);
    REFUSED(handle, "a ", dm_array_query(s, bad, &info));
    REFUSED(handle, "a ", dm_array_owner(s, bad, zero, &worker));
    REFUSED(handle, "a ", dm_array_view(s, bad, zero, one, &out));
    REFUSED(handle, "a ", dm_array_reshape(s, bad, 2, one, &out));
    REFUSED(handle, "a ", dm_array_read(s, bad, NULL, NULL, values, 0));
    REFUSED(handle, "a ", dm_array_read(s, bad, zero, one, values, 0));
    REFUSED(handle, "a ", dm_array_write(s, bad, NULL, NULL, values, 0));
    REFUSED(handle, "a ", dm_array_save(s, bad, "/tmp/never.npy"));
    REFUSED(handle, "x ", dm_fill(s, bad, 1));
    REFUSED(handle, "x ", dm_fill_identity(s, bad, 1));
    REFUSED(handle, "x ", dm_fill_arange(s, bad, 1, 1));
    REFUSED(handle, "x ", dm_fill_uniform(s, bad, 0, 1, 1));
    REFUSED(handle, "x ", dm_fill_normal(s, bad, 0, 1, 1));
    REFUSED(handle, "src", dm_copy(s, bad, good));
    REFUSED(handle, "dst", dm_copy(s, good, bad));
    REFUSED(handle, "src", dm_transpose(s, bad, good));
    REFUSED(handle, "dst", dm_permute(s, good, perm, bad));
    REFUSED(handle, "x ", dm_axpby(s, 1, bad, 1, good));
    REFUSED(handle, "y ", dm_axpby(s, 1, good, 1, bad));
    REFUSED(handle, "b ", dm_add(s, 1, good, 1, bad, good));
    REFUSED(handle, "out ", dm_multiply(s, 1, good, good, bad));
    REFUSED(handle, "a ", dm_scale(s, 1, bad, good));
    REFUSED(handle, "out ", dm_exp(s, good, bad));
    REFUSED(handle, "a ", dm_tanh(s, bad, good));
    REFUSED(handle, "a ", dm_relu(s, bad, good));
    REFUSED(handle, "x ", dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", bad)}, good));
    REFUSED(handle, "out ", dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", good)}, bad));
    REFUSED(handle, "x ", dm_map_new(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", bad)}, NULL, &out));
    REFUSED(handle, "x ", dm_sum(s, bad, NULL, 0, 1, 0, good));
    REFUSED(handle, "a ", dm_gemm(s, DM_N, DM_N, 1, bad, good, 0, good));
    REFUSED(handle, "b ", dm_gemm(s, DM_N, DM_N, 1, good, bad, 0, good));
    REFUSED(handle, "c ", dm_gemm(s, DM_N, DM_N, 1, good, good, 0, bad));
    assert_true(out.id == 77);
    if (bad.id != 0) {
        REFUSED(handle, "a ", dm_array_destroy(s, bad));
    }
}

static void test_wild_handles(void **state)
{
    (void)state;
    uint64_t random = 1;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    wild(s, DM_NO_ARRAY, a);
    for (int i = 0; i < 300; i++) {
        dm_array bad = {random_bits(&random)};
        if (i % 3 == 1) {
            bad.id = (a.id & ~UINT64_C(0xffffffff)) | (bad.id & 0xff); /* right but for the slot */
        } else if (i % 3 == 2) {
            bad.id = (a.id & UINT64_C(0xff000000ffffffff)) | (bad.id & UINT64_C(0x00ffffff00000000));
        }
        if (bad.id != a.id) {
            wild(s, bad, a);
        }
    }
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    wild(s, a, make_matrix(s, N, NULL, 2));
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
}

static void test_wild_arguments(void **state)
{
    (void)state;
    dm_session *s = open_session(3, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1), b = make_matrix(s, N, NULL, 2);
    const int64_t zero[2] = {0, 0}, one[2] = {1, 1}, whole[2] = {N, N};
    double values[N * N];
    const int twice[2] = {0, 0}, outside[2] = {0, 2}, below[2] = {-1, 0};
    const int many[9] = {0};
    REFUSED(ONE(ARG), "trans", dm_gemm(s, 3, DM_N, 1, a, b, 0, b));
    REFUSED(ONE(ARG), "trans", dm_gemm(s, DM_N, -1, 1, a, b, 0, a));
    REFUSED(ONE(OVERLAP), NULL, dm_gemm(s, DM_N, DM_N, 1, a, b, 0, a));
    REFUSED(ONE(ARG), "perm", dm_permute(s, a, twice, b));
    REFUSED(ONE(ARG), "perm", dm_permute(s, a, outside, b));
    REFUSED(ONE(ARG), "perm", dm_permute(s, a, below, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, twice, 2, 1, 0, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, outside, 2, 1, 0, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, below, 1, 1, 0, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, many, 9, 1, 0, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, many, -1, 1, 0, b));
    REFUSED(ONE(ARG), "dims", dm_sum(s, a, many, INT32_MAX, 1, 0, b));
    const int64_t lds[] = {-1, 1, INT64_MIN, N - 1, INT64_MAX, INT64_MAX / 2, INT64_MAX / N + 1};
    for (size_t i = 0; i < sizeof lds / sizeof *lds; i++) {
        REFUSED(ONE(ARG), "ld", dm_array_read(s, a, NULL, NULL, values, lds[i]));
        REFUSED(ONE(ARG), "ld", dm_array_write(s, a, zero, whole, values, lds[i]));
    }
    OK(dm_array_read(s, a, zero, one, values, INT32_MAX)); /* one row: as good as any other */
    dm_counters counters = {.size = sizeof counters};
    dm_memory memory = {.size = sizeof memory};
    const int workers[] = {-1, 3, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        REFUSED(ONE(ARG), "worker", dm_counters_get(s, workers[i], &counters));
        REFUSED(ONE(ARG), "worker", dm_memory_report(s, workers[i], &memory));
    }
    const double odd[] = {NAN, INFINITY, -INFINITY, DBL_MAX, -DBL_MAX, DBL_MIN, -0.0, 1e300};
    for (int i = 0; i < 8; i++) { /* floats take anything; nobody falls over */
        OK(dm_fill(s, b, odd[i]));
        OK(dm_fill_arange(s, b, odd[i], odd[7 - i]));
        OK(dm_axpby(s, odd[i], a, odd[7 - i], b));
        (void)!dm_fill_uniform(s, b, odd[i], odd[7 - i], UINT64_MAX);
        (void)!dm_fill_normal(s, b, odd[i], odd[7 - i], UINT64_MAX);
        OK(dm_gemm(s, DM_N, DM_T, odd[i], a, a, odd[7 - i], b));
    }
    OK(dm_sync(s));
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_null, deadline),
        cmocka_unit_test_setup(test_wild_handles, deadline),
        cmocka_unit_test_setup(test_wild_arguments, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
