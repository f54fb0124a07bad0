/* The pool on a GPU's memory as debug builds have it: red zones, poison, and blocks that are allocations of
 * their own; and a kernel that writes behind its output is found from end to end. */
#include "dmath/dmath.h"
#include "exec/gpu/gpu.h"
#include "gpu/gpu_case.h"
#include "memory/pool.h"

enum { ZONE = 256, BYTES = 1000 };

#ifdef DMATH_WITH_CUDA
#define ON_GPUS "device=cuda,share_gpu=1,workers=2"
#else
#define ON_GPUS "device=emulated,share_gpu=1,workers=2"
#endif

static dmi_pool *pool_make(int64_t redzone, bool own)
{
    dmi_pool_config config = {
        .ops = dmi_gpu_slabs(NULL), .slab_bytes = 1 << 20, .align = 256, .redzone = redzone, .own = own};
    dmi_pool *pool = NULL;
    ok(dmi_pool_create(&config, &pool));
    return pool;
}

/* One byte of device memory by way of a stream, as a kernel would. */
static void write_byte(dmi_stream s, char *at, unsigned char byte)
{
    ok(dmi_cu_copy(s, at, &byte, 1));
    ok(dmi_cu_stream_wait(s));
}

static void is_poisoned(const char *at, int64_t bytes)
{
    unsigned char host[BYTES];
    ok(dmi_cu_move(host, at, bytes));
    for (int64_t i = 0; i < bytes; i++) {
        assert_int_equal(host[i], DMI_DEBUG_FILL);
    }
}

static void test_red_zones(void **state)
{
    static const int at[] = {-ZONE, -1, 0, BYTES - 1, BYTES, BYTES + 23, BYTES + ZONE - 1};
    (void)state;
    gpus_or_skip();
    dmi_stream s = NULL;
    ok(dmi_cu_stream_create(&s));
    dmi_pool *pool = pool_make(ZONE, false);
    dmi_allocation before, block, behind;
    ok(dmi_pool_alloc(pool, 1, DMI_OWNER_ARRAY, &before));
    ok(dmi_pool_alloc(pool, BYTES, DMI_OWNER_WORKSPACE, &block));
    ok(dmi_pool_alloc(pool, 1, DMI_OWNER_ARRAY, &behind));
    dmi_log_set_level(-1);
    for (int i = 0; i < DMI_COUNT(at); i++) {
        bool inside = at[i] >= 0 && at[i] < BYTES;
        char *base = block.base;
        is_poisoned(base, BYTES);
        write_byte(s, base + at[i], 7);
        assert_int_equal(dmi_pool_free(pool, &block, NULL), inside ? DM_OK : DM_ERR_INTERNAL);
        if (!inside) {
            assert_non_null(strstr(dmi_error_text(), "an allocation of 1000 bytes (workspace"));
        }
        is_poisoned(base, BYTES); /* what was freed is no number any more */
        ok(dmi_pool_alloc(pool, BYTES, DMI_OWNER_WORKSPACE, &block));
        assert_ptr_equal(block.base, base);
    }
    dmi_log_set_level(DMI_LOG_WARN);
    ok(dmi_pool_free(pool, &block, NULL));
    ok(dmi_pool_free(pool, &before, NULL));
    ok(dmi_pool_free(pool, &behind, NULL));
    dmi_pool_destroy(pool);
    dmi_cu_stream_destroy(s);
}

static void test_own(void **state)
{
    dmi_allocation block[20];
    dmi_pool_stats stats;
    (void)state;
    gpus_or_skip();
    dmi_pool *pool = pool_make(0, true);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < DMI_COUNT(block); i++) {
            ok(dmi_pool_alloc(pool, 1 + 37 * i, DMI_OWNER_ARRAY, &block[i]));
            is_poisoned(block[i].base, 1 + 37 * i);
            assert_int_equal(block[i].offset, 0);
        }
        dmi_pool_stats_get(pool, &stats);
        assert_int_equal(stats.slabs, DMI_COUNT(block));
        assert_int_equal(stats.slab_calls, (round + 1) * DMI_COUNT(block));
        for (int i = 0; i < DMI_COUNT(block); i++) {
            ok(dmi_pool_free(pool, &block[(i * 7) % DMI_COUNT(block)], NULL)); /* in another order */
        }
        dmi_pool_stats_get(pool, &stats);
        assert_int_equal(stats.slabs, 0);
        assert_int_equal(stats.slab_bytes, 0);
        assert_int_equal(stats.live_total, 0);
    }
    dmi_pool_destroy(pool);
    dmi_pool_config both = {
        .ops = dmi_gpu_slabs(NULL), .slab_bytes = 1, .align = 256, .redzone = ZONE, .own = true};
    assert_int_equal(dmi_pool_create(&both, &pool), DM_ERR_ARG);
}

/* --- from end to end --------------------------------------------------------------------------------- */
static dm_session *open_session(const char *options)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.options = options;
    ok(dm_init(&config, &s));
    return s;
}

/* y = 2 x + y, over all workers; the sum of y is known. */
static dm_status compute(dm_session *s, dm_array x, dm_array y, double *sum)
{
    dm_array total;
    ok(dm_array_create(s, DM_F64, 2, (int64_t[]){1, 1}, NULL, &total));
    ok(dm_fill(s, x, 1));
    ok(dm_fill(s, y, 3));
    ok(dm_axpby(s, 2, x, 1, y));
    ok(dm_sum(s, y, NULL, 0, 1, 0, total));
    dm_status status = dm_array_read(s, total, NULL, NULL, sum, 0);
    ok(dm_array_destroy(s, total));
    return status;
}

static void test_overrun_is_found(void **state)
{
    (void)state;
    gpus_or_skip();
    dm_session *s = open_session(ON_GPUS ",pool_debug=1,pool_own=0,fault=overrun:2,log=error");
    dm_array x, y;
    double sum = 0;
    int64_t shape[] = {30, 40};
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &x));
    ok(dm_array_create(s, DM_F32, 2, shape, &cols, &y));
    dmi_log_set_level(-1);
    dm_status status = compute(s, x, y, &sum);
    ok(dm_array_destroy(s, x)); /* now, if it was the memory of one of these */
    ok(dm_array_destroy(s, y));
    status = status == DM_OK ? dm_sync(s) : status;
    assert_int_equal(status, DM_ERR_INTERNAL);
    assert_non_null(strstr(dm_error_message(), "was overwritten"));
    (void)!dm_sync(s); /* the other worker's report */
    dmi_log_set_level(DMI_LOG_WARN);
    ok(dm_array_create(s, DM_F32, 2, shape, &rows, &x));
    ok(dm_array_create(s, DM_F32, 2, shape, &cols, &y));
    ok(compute(s, x, y, &sum));
    assert_true(sum == 5.0 * 30 * 40);
    ok(dm_finalize(s, NULL));
}

/* Whatever kernel does it, and whatever it overwrites: an array, or workspace, which is kept for the next
 * command with the plan and looked at when it is given back. */
static void test_any_overrun_is_found(void **state)
{
    (void)state;
    int found = 0, workspace = 0;
    gpus_or_skip();
    for (int at = 1; at <= 8; at++) {
        char options[200];
        snprintf(options, sizeof options, ON_GPUS ",pool_debug=1,pool_own=0,fault=overrun:%d,log=error", at);
        dm_session *s = open_session(options);
        dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
        dm_status status = DM_OK;
        dmi_log_set_level(-1);
        for (int i = 0; i < 24 && status == DM_OK; i++) { /* plans enough that those before give way */
            dm_array x, y;
            double sum = 0;
            const int64_t shape[] = {30 + i, 40};
            ok(dm_array_create(s, DM_F32, 2, shape, &rows, &x));
            ok(dm_array_create(s, DM_F32, 2, shape, &cols, &y));
            status = compute(s, x, y, &sum);
            ok(dm_array_destroy(s, x));
            ok(dm_array_destroy(s, y));
            status = status == DM_OK ? dm_sync(s) : status;
        }
        found += status == DM_ERR_INTERNAL && strstr(dm_error_message(), "was overwritten");
        workspace += strstr(dm_error_message(), "workspace of an earlier command on worker ") != NULL;
        (void)!dm_finalize(s, NULL);
        dmi_log_set_level(DMI_LOG_WARN);
    }
    print_message("%d found, %d of them in workspace\n", found, workspace);
    assert_int_equal(found, 8);
    assert_true(workspace > 0);
}

static void test_sessions(void **state)
{
    static const char *const options[] = {ON_GPUS ",pool_debug=1", ON_GPUS ",pool_own=1",
                                          ON_GPUS ",pool_own=1,pool_debug=1"};
    (void)state;
    gpus_or_skip();
    for (int i = 0; i < DMI_COUNT(options); i++) {
        dm_session *s = open_session(options[i]);
        dm_array x, y;
        double sum = 0;
        int64_t shape[] = {300, 17}, alive = 0;
        dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
        ok(dm_array_create(s, DM_F32, 2, shape, &rows, &x));
        ok(dm_array_create(s, DM_F32, 2, shape, &cols, &y));
        ok(dm_sum(s, x, NULL, 0, 1, 0, y) == DM_ERR_SHAPE ? DM_OK : DM_ERR_INTERNAL);
        ok(dm_copy(s, x, y)); /* never written: poison goes through */
        float first[300 * 17];
        ok(dm_array_read(s, y, NULL, NULL, first, 0));
        for (int k = 0; k < DMI_COUNT(first); k++) {
            assert_true(first[k] != first[k]);
        }
        ok(compute(s, x, y, &sum));
        assert_true(sum == 5.0 * 300 * 17);
        ok(dm_finalize(s, &alive));
        assert_int_equal(alive, 2);
    }
}

/* For a sanitizer to find (it then ends the program, or has told of it): a kernel writes behind its output,
 * which is an allocation of its own. test_gpu_pool overrun OPTIONS */
static int overrun(const char *device)
{
    char options[200];
    dm_session *s;
    dm_array x, y;
    double sum;
    snprintf(options, sizeof options, "%s,pool_own=1,fault=overrun:2", device);
    dm_config config = DM_CONFIG_INIT;
    config.options = options;
    if (dm_init(&config, &s) != DM_OK) {
        fprintf(stderr, "%s\n", dm_error_message());
        return 77;
    }
    ok(dm_array_create(s, DM_F32, 2, (int64_t[]){30, 41}, NULL, &x));
    ok(dm_array_create(s, DM_F32, 2, (int64_t[]){30, 41}, NULL, &y));
    dm_status status = compute(s, x, y, &sum);
    printf("%s: %s\n", dmi_status_name(status), "a kernel wrote behind its output, and nobody has said so");
    return dm_finalize(s, NULL) == DM_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "overrun") == 0) {
        return overrun(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_red_zones),        cmocka_unit_test(test_own),
        cmocka_unit_test(test_overrun_is_found), cmocka_unit_test(test_any_overrun_is_found),
        cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
