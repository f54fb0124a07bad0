/* A GPU's memory that is used up: the call that asked for too much is an error with numbers, what came before
 * it is whole, and the session works on. Takes the memory in eighths of what is free, so that it is done in
 * seconds on any GPU. */
#include "dmath/dmath.h"
#include "gpu/gpu_case.h"

#ifdef DMATH_WITH_CUDA
#define DEVICE "device=cuda"
#else
#define DEVICE "device=emulated"
#endif

enum { MOST_ARRAYS = 16, N = 200 };

static dm_session *open_session(const char *options)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.options = options;
    ok(dm_init(&config, &s));
    return s;
}

static int64_t free_bytes(int device)
{
    int64_t unused = 0, total = 0;
    ok(dmi_cu_use(device));
    ok(dmi_cu_memory(&unused, &total));
    return unused;
}

/* One worker a GPU, at most two: bytes free on the fuller one, workers' own memory taken. */
static int64_t least_free(dm_session *s)
{
    int64_t least = free_bytes(0);
    return dm_workers(s) > 1 ? DMI_MIN(least, free_bytes(1)) : least;
}

/* An array with `bytes` on each worker. */
static dm_array flat(dm_session *s, int64_t bytes)
{
    dm_array a;
    dm_layout rows = dm_layout_split(s, 0);
    ok(dm_array_create(s, DM_U8, 1, (int64_t[]){bytes * dm_workers(s)}, &rows, &a));
    return a;
}

/* c = a b with known elements: a is 1, b is the identity twice over. */
static void product_works(dm_session *s)
{
    dm_array a, b, c;
    dm_layout rows = dm_layout_rows(s);
    int64_t shape[] = {N, N};
    float *got = malloc(N * N * sizeof *got);
    assert_non_null(got);
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &a));
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &b));
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &c));
    ok(dm_fill_arange(s, a, 0, 1));
    ok(dm_fill_identity(s, b, 2));
    ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    ok(dm_array_read(s, c, NULL, NULL, got, 0));
    for (int i = 0; i < N * N; i++) {
        assert_true(got[i] == 2 * (float)i);
    }
    ok(dm_array_destroy(s, a));
    ok(dm_array_destroy(s, b));
    ok(dm_array_destroy(s, c));
    free(got);
}

static void message_has_numbers(dm_session *s, int64_t bytes)
{
    char asked[64];
    const char *text = dm_error_message();
    snprintf(asked, sizeof asked, "%lld bytes", (long long)bytes);
    (void)s;
    if (!strstr(text, asked) || !strstr(text, "arrays ") || !strstr(text, "workspace ") ||
        !strstr(text, "bytes free of ") || !strstr(text, "worker ")) {
        fail_msg("the message lacks numbers (asked: %s): %s", asked, text);
    }
}

static const char *options_for(int gpus)
{
    return gpus > 1 ? DEVICE ",workers=2,slab=4M,log=error" : DEVICE ",workers=1,slab=4M,log=error";
}

static void test_arrays(void **state)
{
    (void)state;
    int gpus = gpus_or_skip(), n = 0;
    ok(dmi_cu_use(gpus - 1));
    dm_session *s = open_session(options_for(gpus));
    assert_int_equal(dmi_cu_current(), gpus - 1); /* the program's device is its own */
    dm_array a[MOST_ARRAYS];
    int64_t bytes = least_free(s) / 8 / 4096 * 4096;
    product_works(s);
    dmi_log_set_level(-1);
    dm_status status = DM_OK;
    while (status == DM_OK && n < MOST_ARRAYS) {
        a[n] = flat(s, bytes);
        ok(dm_fill(s, a[n++], 3)); /* of the one that has no memory: fails in silence */
        status = dm_sync(s);
    }
    assert_int_equal(status, DM_ERR_NOMEM);
    assert_in_range(n, 5, 9); /* eight at most fit */
    message_has_numbers(s, bytes);
    while (dm_sync(s) != DM_OK) { /* the other worker's */
    }
    dmi_log_set_level(DMI_LOG_WARN);
    unsigned char last = 0;
    ok(dm_array_read(s, a[n - 2], (int64_t[]){bytes - 1}, (int64_t[]){1}, &last,
                     0)); /* the one before is whole */
    assert_int_equal(last, 3);
    ok(dm_array_destroy(s, a[--n]));
    ok(dm_array_destroy(s, a[--n]));
    product_works(s);
    while (n > 0) {
        ok(dm_array_destroy(s, a[--n]));
    }
    dm_array large = flat(s, 5 * bytes); /* the slabs of the others are in its way, and hold nothing */
    ok(dm_fill(s, large, 1));
    ok(dm_sync(s));
    product_works(s);
    ok(dm_array_destroy(s, large));
    int64_t alive = -1;
    ok(dm_finalize(s, &alive));
    assert_int_equal(alive, 0);
}

/* The workspace of a product that has its arrays, and no more. */
static void test_workspace(void **state)
{
    (void)state;
    int gpus = gpus_or_skip();
    if (gpus < 2) {
        puts("one GPU: a product needs no workspace, skipped");
        skip();
    }
    dm_session *s = open_session(DEVICE ",workers=2,slab=4M,log=error,replicas=0,gemm_algorithm=cyclic");
    dm_array a, b, c;
    dm_layout rows = dm_layout_rows(s);
    int64_t n = 3072, shape[] = {n, n};
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &a));
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &b));
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &c));
    ok(dm_fill(s, a, 1));
    ok(dm_fill(s, b, 1));
    ok(dm_fill(s, c, 7));
    ok(dm_sync(s));
    int64_t all = least_free(s) - (6 << 20); /* less than a block of b; more than the driver rounds up to */
    dm_array rest = flat(s, all / 4096 * 4096);
    ok(dm_sync(s));
    dmi_log_set_level(-1);
    ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    dm_status status = dm_sync(s);
    assert_int_equal(status, DM_ERR_NOMEM);
    if (!strstr(dm_error_message(), "workspace of ") || !strstr(dm_error_message(), "bytes free of ")) {
        fail_msg("%s", dm_error_message());
    }
    while (dm_sync(s) != DM_OK) {
    }
    float one = 0;
    assert_int_equal(dm_array_read(s, c, (int64_t[]){0, 0}, (int64_t[]){1, 1}, &one, 0), DM_ERR_POISONED);
    while (dm_sync(s) != DM_OK) {
    }
    dmi_log_set_level(DMI_LOG_WARN);
    ok(dm_array_destroy(s, rest));
    ok(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c)); /* whole again */
    ok(dm_array_read(s, c, (int64_t[]){n - 1, n - 1}, (int64_t[]){1, 1}, &one, 0));
    assert_true(one == (float)n);
    ok(dm_finalize(s, NULL));
}

/* What is destroyed is free for the next command at once, though the GPU still works on it. */
static void test_destroyed(void **state)
{
    (void)state;
    dm_session *s = open_session(options_for(gpus_or_skip()));
    int64_t bytes = least_free(s) / 16 / 4096 * 4096;
    dm_array a = flat(s, 6 * bytes);
    for (int i = 0; i < 4; i++) {
        ok(dm_scale(s, 1, a, a));
    }
    ok(dm_array_destroy(s, a));
    dm_array b = flat(s, 12 * bytes);
    ok(dm_fill(s, b, 2));
    ok(dm_sync(s));
    ok(dm_array_destroy(s, b));
    ok(dm_finalize(s, NULL));
}

/* Six matrices and the workspace of a product fit under the limit; what is kept of an operand does not beside
 * them: it gives way, and is not made where there is no room for it. */
static void test_replicas_give_way(void **state)
{
    (void)state;
    enum { SIDE = 512, MATRICES = 6 };
    int workers = gpus_or_skip() > 1 ? 2 : 1;
    char options[160];
    int64_t bytes = SIDE * SIDE * (int64_t)sizeof(float), limit = MATRICES * bytes / workers + bytes * 5 / 2;
    snprintf(options, sizeof options, "%s,replica_limit=64M,pool_debug=0,pool_own=0,slab=64K,memory_limit=%lld",
             options_for(workers), (long long)limit);
    char *slab = strstr(options, ",slab=4M"); /* once is enough */
    memmove(slab, slab + 8, strlen(slab + 8) + 1);
    dm_session *s = open_session(options);
    dm_array m[MATRICES];
    for (int i = 0; i < MATRICES / 2; i++) {
        ok(dm_matrix(s, DM_F32, SIDE, SIDE, &m[i]));
        ok(dm_fill(s, m[i], 1));
    }
    ok(dm_gemm(s, DM_N, DM_N, 1, m[0], m[1], 0, m[2]));
    ok(dm_sync(s));
    for (int i = MATRICES / 2; i < MATRICES; i++) {
        ok(dm_matrix(s, DM_F32, SIDE, SIDE, &m[i]));
        ok(dm_fill(s, m[i], 2));
    }
    for (int i = 0; i < 3; i++) {
        float first = 0;
        dm_array c = m[i % 2 ? 2 : 5];
        ok(dm_gemm(s, DM_N, DM_N, 1, m[i % 2 ? 0 : 3], m[i % 2 ? 1 : 4], 0, c));
        ok(dm_array_read(s, c, (int64_t[]){0, 0}, (int64_t[]){1, 1}, &first, 0));
        assert_true(first == (i % 2 ? 1.0F : 4.0F) * SIDE);
    }
    ok(dm_finalize(s, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays), cmocka_unit_test(test_workspace),
                                       cmocka_unit_test(test_destroyed),
                                       cmocka_unit_test(test_replicas_give_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
