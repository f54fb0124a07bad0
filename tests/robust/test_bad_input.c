/* Calls with anything: null pointers, wild handles, layouts and sizes, options that make no sense. An error
 * that says something, never a crash, and nothing has changed. */
#include "robust.h"

#include <float.h>
#include <math.h>

enum { N = 6 };

static uint64_t random_bits(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15); /* SplitMix64 */
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static void refused_at(dm_status status, unsigned wanted, const char *word, const char *call, int line)
{
    if (status == DM_OK || !(wanted >> status & 1)) {
        fail_msg("line %d: %s gave %s", line, call, dm_status_name(status));
    }
    const char *text = dm_error_message();
    if (!*text || (word && !strstr(text, word))) {
        fail_msg("line %d: %s: the message does not name %s: \"%s\"", line, call, word ? word : "anything",
                 text);
    }
}

#define ONE(name) (1u << DM_ERR_##name)
#define REFUSED(wanted, word, call) refused_at((call), (wanted), (word), #call, __LINE__)

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

static const int64_t numbers[] = {
    0,         1,         2,         3,         7,         1 << 20,       INT32_MAX,
    -1,        -2,        INT32_MIN, INT64_MIN, INT64_MAX, INT64_MAX - 1, INT64_MAX / 2,
    1LL << 31, 1LL << 32, 1LL << 40, 1LL << 61, 1LL << 62, 3037000500};

static int64_t any_number(uint64_t *random)
{
    return numbers[random_bits(random) % (sizeof numbers / sizeof *numbers)];
}

static int small_number(uint64_t *random)
{
    static const int small[] = {0, 1, 2, 3, -1, 5, INT32_MAX, INT32_MIN, 65536, 0, 1, 1, 2};
    return small[random_bits(random) % (sizeof small / sizeof *small)];
}

/* Layouts of random fields: refused with a text, or they work. */
static void test_wild_layouts(void **state)
{
    (void)state;
    uint64_t random = 2;
    int made = 0;
    const int some[4] = {0, 1, 2, 0};
    dm_session *s = open_session(3, "log=error");
    dm_array whole = make_matrix(s, N, NULL, 3);
    for (int i = 0; i < 20000; i++) {
        const int64_t shape[2] = {N, N};
        dm_array a = {77};
        dm_layout layout = dm_layout_default();
        layout.kind = small_number(&random) % 4;
        layout.single = small_number(&random);
        layout.replicas = small_number(&random);
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            bool tame = random_bits(&random) % 4 != 0;
            layout.block[d] = tame ? (int64_t)(random_bits(&random) % 4) : any_number(&random);
            layout.grid[d] = tame ? d < 2 : small_number(&random);
            layout.order[d] = tame ? 0 : small_number(&random);
        }
        if (random_bits(&random) % 3 == 0) {
            layout.workers = some;
            layout.nworkers = (int)(random_bits(&random) % 5) - 1; /* no more than there are */
        }
        if (random_bits(&random) % 3 == 0) {
            layout.map = some;
            layout.map_count = (int64_t)(random_bits(&random) % 5);
        }
        dm_status status = dm_array_create(s, DM_F64, 2, shape, &layout, &a);
        if (status == DM_OK) {
            made++;
            OK(dm_copy(s, whole, a));
            matrix_is(s, a, N, 3);
            OK(dm_array_destroy(s, a));
        } else {
            assert_true(status == DM_ERR_LAYOUT || status == DM_ERR_ARG);
            assert_true(strlen(dm_error_message()) > 8);
            assert_true(a.id == 77);
        }
    }
    print_message("%d of 20000 layouts were possible\n", made);
    assert_true(made > 100);
    matrix_is(s, whole, N, 3);
    OK(dm_array_destroy(s, whole));
    close_session(s);
}

static void test_counts_beside_short_lists(void **state)
{
    (void)state;
    dm_session *s = open_session(3, "log=error");
    const int64_t shape[2] = {N, N}, block[2] = {3, 3};
    int *list = malloc(4 * sizeof *list); /* its end is where a sanitizer sees it */
    dm_array a = {77};
    assert_non_null(list);
    for (int i = 0; i < 4; i++) {
        list[i] = i % 3;
    }
    const int counts[] = {-1, 5, 1000, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 5; i++) {
        dm_layout layout = dm_layout_rows(s);
        layout.workers = list;
        layout.nworkers = counts[i];
        REFUSED(ONE(LAYOUT) | ONE(ARG), "nworkers", dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        dm_layout layout = dm_layout_explicit(2, block, list, numbers[i]);
        REFUSED(ONE(LAYOUT) | ONE(ARG), "map", dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    }
    free(list);
    close_session(s);
}

static void test_wild_sizes(void **state)
{
    (void)state;
    uint64_t random = 3;
    dm_session *s = open_session(3, "log=error");
    int made = 0;
    for (int i = 0; i < 4000; i++) {
        int64_t shape[DM_MAX_DIMS];
        int ndim = i % 10 == 0 ? small_number(&random) : (int)(random_bits(&random) % 4);
        dm_array a = {77}, v = {77};
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            shape[d] = any_number(&random);
        }
        dm_layout layout = i % 2 ? dm_layout_cyclic(s, 0, any_number(&random)) : dm_layout_default();
        dm_status status = dm_array_create(s, DM_U8, ndim, shape, i % 3 ? &layout : NULL, &a);
        if (status != DM_OK) {
            assert_true(a.id == 77 && strlen(dm_error_message()) > 8);
            continue;
        }
        made++;
        int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
        uint8_t byte = 0;
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            lo[d] = any_number(&random);
            extent[d] = any_number(&random);
        }
        if (dm_array_view(s, a, lo, extent, &v) == DM_OK) {
            OK(dm_array_destroy(s, v));
        }
        if (dm_array_reshape(s, a, 2, extent, &v) == DM_OK) {
            OK(dm_array_destroy(s, v));
        }
        int worker;
        (void)!dm_array_owner(s, a, lo, &worker);
        memset(extent, 0, sizeof extent); /* nothing of it */
        memset(lo, 0, sizeof lo);
        (void)!dm_array_read(s, a, lo, extent, ndim ? NULL : &byte, 0);
        OK(dm_array_destroy(s, a));
        (void)!dm_sync(s);
    }
    print_message("%d of 4000 arrays were possible\n", made);
    close_session(s);
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
    REFUSED(ONE(ARG), "trans", dm_gemm(s, 2, DM_N, 1, a, b, 0, b));
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

static void options_refused(const char *options, int workers, const char *word)
{
    dm_config config = {sizeof config, workers, options};
    dm_session *s = (dm_session *)&config;
    dm_status status = dm_init(&config, &s);
    if (status == DM_OK || !strstr(dm_error_message(), word)) {
        fail_msg("options \"%.80s\", %d workers: %s: %s", options ? options : "", workers,
                 dm_status_name(status), dm_error_message());
    }
    assert_true(s == (dm_session *)&config);
    assert_true(status == DM_ERR_CONFIG || status == DM_ERR_ARG);
}

static void test_options(void **state)
{
    (void)state;
    static const struct {
        const char *options, *word;
    } bad[] = {
        {"=", "option"},
        {"=1", "option"},
        {",,=,", "option"},
        {"workers", "workers"},
        {"workers=", "workers"},
        {"workers=1e99", "workers"},
        {"workers=-1", "workers"},
        {"workers=65537", "workers"},
        {"workers=99999999999999999999999", "workers"},
        {"workers=2x", "workers"},
        {"workers='2", "workers"},
        {"workers='2'3", "workers"},
        {"ring=4095", "ring"},
        {"ring=2G", "ring"},
        {"ring=-1M", "ring"},
        {"ring=9999999999999G", "ring"},
        {"slab=0", "slab"},
        {"slab=9223372036854775807", "slab"},
        {"memory_limit=9T9", "memory_limit"},
        {"memory_limit=99999999T", "memory_limit"},
        {"watchdog_s=nan", "watchdog_s"},
        {"watchdog_s=inf", "watchdog_s"},
        {"link_gbps=-1", "link_gbps"},
        {"link_gbps=1e400", "link_gbps"},
        {"sync=maybe", "sync"},
        {"transport=carrier_pigeon", "transport"},
        {"gemm_algorithm=auto|cyclic", "gemm_algorithm"},
        {"plan_cache=0", "plan_cache"},
        {"blas_threads=0", "blas_threads"},
        {"\x80\xff=1", "option"},
        {"workers=2;ring=1M", "workers"},
        {"%s%n%s%n=%s%n", "option"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options_refused(bad[i].options, 0, bad[i].word);
    }
    options_refused(NULL, -1, "workers");
    options_refused(NULL, INT32_MIN, "workers");
    options_refused(NULL, 65537, "workers");
    options_refused(NULL, INT32_MAX, "workers");
    char *longest = malloc(100001);
    assert_non_null(longest);
    memset(longest, 'x', 100000);
    longest[100000] = 0;
    options_refused(longest, 0, "option");
    longest[7] = '=';
    options_refused(longest, 0, "option");
    memcpy(longest, "trace=", 6);
    options_refused(longest, 0, "trace");
    free(longest);
    dm_config sizes[] = {{0, 0, NULL}, {1, 0, NULL}, {sizeof(dm_config) + 8, 0, NULL}, {SIZE_MAX, 0, NULL}};
    for (int i = 0; i < 4; i++) {
        dm_session *s = NULL;
        REFUSED(ONE(ARG), "size", dm_init(&sizes[i], &s));
    }
}

static void test_random_options(void **state)
{
    (void)state;
    static const char letters[] = "workers=ring,slab'transport\\ 0123456789.KMG-+e=,=,''\t\n%\"|";
    uint64_t random = 4;
    for (int i = 0; i < 20000; i++) {
        char text[40];
        size_t length = random_bits(&random) % sizeof text;
        for (size_t k = 0; k < length; k++) {
            text[k] = letters[random_bits(&random) % (sizeof letters - 1)];
        }
        text[length < sizeof text ? length : sizeof text - 1] = 0;
        if (strspn(text, ", \t\n") == strlen(text)) {
            continue; /* nothing: all defaults */
        }
        dm_config config = {sizeof config, 1, text};
        dm_session *s = NULL;
        dm_status status = dm_init(&config, &s);
        if (status == DM_OK) {
            close_session(s);
        } else {
            assert_true(status == DM_ERR_CONFIG && strlen(dm_error_message()) > 8);
        }
    }
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const bad[] = {"x", "-1", "1e9", "0x", "99999999999999999999", "'1'"};
    for (int i = 0; i < 6; i++) {
        dm_session *s = NULL;
        setenv("DMATH_WORKERS", bad[i], 1);
        REFUSED(ONE(CONFIG), "DMATH_WORKERS", dm_init(NULL, &s));
        assert_null(s);
    }
    setenv("DMATH_WORKERS", " ", 1);
    setenv("DMATH_RING", "", 1);
    dm_session *s = NULL;
    OK(dm_init(NULL, &s));
    unsetenv("DMATH_WORKERS");
    unsetenv("DMATH_RING");
    close_session(s);
}

/* Half of the machine's patience: as many workers as make no sense, but can be. */
static void test_crowd(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    enum { CROWD = 40 };
#else
    enum { CROWD = 200 };
#endif
    dm_session *s = open_session(CROWD, "");
    dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
    dm_array a = make_matrix(s, MOST, &rows, 1), b = make_matrix(s, MOST, &columns, 2);
    OK(dm_copy(s, a, b));
    matrix_is(s, b, MOST, 1);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_null, deadline),
        cmocka_unit_test_setup(test_wild_handles, deadline),
        cmocka_unit_test_setup(test_wild_layouts, deadline),
        cmocka_unit_test_setup(test_counts_beside_short_lists, deadline),
        cmocka_unit_test_setup(test_wild_sizes, deadline),
        cmocka_unit_test_setup(test_wild_arguments, deadline),
        cmocka_unit_test_setup(test_options, deadline),
        cmocka_unit_test_setup(test_random_options, deadline),
        cmocka_unit_test_setup(test_environment, deadline),
        cmocka_unit_test_setup(test_crowd, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
