/* The pool: cases made by hand. */
#include "pool_oracle.h"

/* After the first round a loop of the same requests never asks the system again. */
static void test_steady_state(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    int64_t calls = 0;
    for (int round = 0; round < 200; round++) {
        static const int64_t sizes[] = {30000, 100, 65536, 5000, 64, 70000, 12345, 30000};
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            o->asked = rounded(o, sizes[i]);
            assert_int_equal(dmi_pool_alloc(pool, sizes[i], 0, &o->block[i]), DM_OK);
            check_new_block(o, i, sizes[i], 0);
        }
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            one_free(o, pool, (i * 3 + round) % DMI_COUNT(sizes));
        }
        calls = round == 0 ? o->calls : calls;
        assert_true(o->calls == calls);
    }
    dmi_pool_destroy(pool);
    free(o);
}

/* Within one class of sizes the exact piece is taken, not a larger one cut. */
static void test_tightest_of_class(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    o->slab_bytes = 60 * 4096;
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    static const int64_t sizes[] = {8300, 64, 8256, 64, 8192, 64, 8320, 64};
    for (int i = 0; i < DMI_COUNT(sizes); i++) {
        o->asked = rounded(o, sizes[i]);
        assert_int_equal(dmi_pool_alloc(pool, sizes[i], 0, &o->block[i]), DM_OK);
    }
    int64_t hole = o->block[4].offset, other = o->block[2].offset;
    for (int i = 0; i < DMI_COUNT(sizes); i += 2) {
        assert_int_equal(dmi_pool_free(pool, &o->block[i], NULL), DM_OK);
    }
    dmi_allocation block;
    assert_int_equal(dmi_pool_alloc(pool, 8192, 0, &block), DM_OK);
    assert_true(block.offset == hole);
    assert_int_equal(dmi_pool_alloc(pool, 8192, 0, &block), DM_OK); /* no exact one is left: the next larger */
    assert_true(block.offset == other);
    dmi_pool_destroy(pool);
    free(o);
}

static void test_edges(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    dmi_pool_config config = {.align = 256, .redzone = 512};
    assert_true(dmi_pool_rounded(&config, 0) == 0);
    assert_true(dmi_pool_rounded(&config, 1) == 1280 && dmi_pool_rounded(&config, 257) == 1536);
    assert_true(dmi_pool_rounded(&config, INT64_MAX) > INT64_MAX - 256);
    assert_true(dmi_pool_rounded(&config, INT64_MAX - 1000) > INT64_MAX - 256);

    dmi_allocation block;
    o->asked = INT64_MAX - 63; /* beyond any memory, refused by the system and not by overflow */
    o->fail_every = 1;
    assert_int_equal(dmi_pool_alloc(pool, INT64_MAX, 0, &block), DM_ERR_NOMEM);
    o->fail_every = 0;
    o->refused = false;
    o->asked = 64;
    assert_int_equal(dmi_pool_alloc(pool, 10, DMI_OWNER_ARRAY, &block), DM_OK);

    /* What is not handed out cannot be freed, and the attempt changes nothing. */
    dmi_allocation wrong = block;
    wrong.offset += 64;
    assert_int_equal(dmi_pool_free(pool, &wrong, NULL), DM_ERR_INTERNAL);
    wrong = block;
    wrong.node = 1000000;
    assert_int_equal(dmi_pool_free(pool, &wrong, NULL), DM_ERR_INTERNAL);
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_ERR_INTERNAL);
    dmi_pool_stats stats;
    dmi_pool_stats_get(pool, &stats);
    assert_true(stats.live_total == 0 && stats.live_allocations[DMI_OWNER_ARRAY] == 0);
    dmi_pool_destroy(pool);
    dmi_pool_destroy(NULL);
    free(o);
}

/* The limit can be reached exactly and not passed by a byte. */
static void test_exact_limit(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    o->limit = 3 * 64;
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    dmi_allocation a, b, c;
    o->asked = 128;
    assert_int_equal(dmi_pool_alloc(pool, 193, 0, &a), DM_ERR_LIMIT);
    assert_int_equal(dmi_pool_alloc(pool, 128, 0, &a), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 65, 0, &b), DM_ERR_LIMIT);
    assert_int_equal(dmi_pool_alloc(pool, 64, 0, &b), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 1, 0, &c), DM_ERR_LIMIT);
    assert_int_equal(dmi_pool_alloc(pool, 0, 0, &c), DM_OK); /* nothing still fits */
    assert_int_equal(dmi_pool_free(pool, &c, NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &a, NULL), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 128, 0, &a), DM_OK);
    dmi_pool_destroy(pool);
    free(o);
}

static void test_bad_config(void **state)
{
    (void)state;
    static const dmi_pool_config good = {.slab_bytes = 4096, .align = 64, .redzone = 0, .limit_bytes = 0};
    dmi_pool_config bad[7] = {good, good, good, good, good, good, good};
    bad[0].align = 32;
    bad[1].align = 96;
    bad[2].redzone = 32;
    bad[3].redzone = -64;
    bad[4].slab_bytes = 0;
    bad[5].limit_bytes = -1;
    bad[6].slab_bytes = INT64_MAX;
    for (int i = 0; i < DMI_COUNT(bad); i++) {
        dmi_pool *pool = (dmi_pool *)state;
        assert_int_equal(dmi_pool_create(&bad[i], &pool), DM_ERR_ARG);
        assert_ptr_equal(pool, state);
    }
}

static void test_stamps_by_hand(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    dmi_allocation a, b, c;
    static const dmi_stamp first = {{5, 1, 0}}, second = {{2, 9, 0}};
    o->asked = o->slab_bytes / 2;
    assert_int_equal(dmi_pool_alloc(pool, o->asked, 0, &a), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, o->asked, 0, &b), DM_OK);
    assert_true(a.ready.seq[0] == 0 && b.ready.seq[1] == 0);
    assert_int_equal(dmi_pool_free(pool, &a, &first), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 64, 0, &c), DM_OK);
    assert_true(c.ready.seq[0] == 5 && c.ready.seq[1] == 1);
    assert_int_equal(dmi_pool_free(pool, &b, &second), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &c, NULL), DM_OK); /* unused: what it waited for is not forgotten */
    assert_int_equal(dmi_pool_alloc(pool, o->slab_bytes, 0, &a), DM_OK);
    assert_true(a.ready.seq[0] == 5 && a.ready.seq[1] == 9 && a.ready.seq[2] == 0);
    dmi_pool_destroy(pool);
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_state), cmocka_unit_test(test_tightest_of_class),
        cmocka_unit_test(test_edges),        cmocka_unit_test(test_exact_limit),
        cmocka_unit_test(test_bad_config),   cmocka_unit_test(test_stamps_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
