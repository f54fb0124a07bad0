/* The pool against the oracle: random calls, the same ones twice. */
#include "pool_oracle.h"

static void check_stats(oracle *o, const dmi_pool *pool)
{
    dmi_pool_stats stats, want = {0};
    for (int i = 0; i < BLOCKS_MOST; i++) {
        if (o->live[i] && o->block[i].bytes) {
            want.live_bytes[o->block[i].owner] += rounded(o, o->block[i].bytes);
            want.live_allocations[o->block[i].owner]++;
            want.live_total += rounded(o, o->block[i].bytes);
        }
    }
    for (int s = 0; s < SLABS_MOST; s++) {
        want.slabs += o->units[s] > 0;
        want.slab_bytes += o->units[s] * UNIT;
    }
    want.peak_total = o->peak;
    want.slab_calls = o->calls;
    dmi_pool_stats_get(pool, &stats);
    assert_memory_equal(stats.live_bytes, want.live_bytes, sizeof want.live_bytes);
    assert_memory_equal(stats.live_allocations, want.live_allocations, sizeof want.live_allocations);
    assert_true(stats.live_total == want.live_total && stats.peak_total == want.peak_total);
    assert_true(stats.slab_bytes == want.slab_bytes && stats.slab_calls == want.slab_calls);
    assert_int_equal(stats.slabs, want.slabs);
}

static int64_t some_size(oracle *o)
{
    static const int64_t usual[] = {64, 4096, 10000, 16384, 40000};
    switch (next(o, 8)) {
    case 0:
        return 0;
    case 1:
        return 1 + (int64_t)next(o, 100000); /* some larger than a slab */
    case 2:
    case 3:
        return usual[next(o, 5)];
    default:
        return 1 + (int64_t)next(o, UINT64_C(64) << next(o, 9));
    }
}

static void one_alloc(oracle *o, dmi_pool *pool, int i)
{
    int64_t bytes = some_size(o), live = 0;
    int owner = (int)next(o, DMI_OWNERS);
    for (int k = 0; k < BLOCKS_MOST; k++) {
        live += o->live[k] ? rounded(o, o->block[k].bytes) : 0;
    }
    o->asked = rounded(o, bytes);
    o->refused = false;
    bool over = bytes && o->limit && live + o->asked > o->limit;
    o->block[i] = (dmi_allocation){.slab = -77};
    dm_status status = dmi_pool_alloc(pool, bytes, owner, &o->block[i]);
    assert_int_equal(status, over ? DM_ERR_LIMIT : o->refused ? DM_ERR_NOMEM : DM_OK);
    o->asked = 0;
    if (status == DM_OK) {
        check_new_block(o, i, bytes, owner);
        o->live[i] = true;
        o->peak = live + rounded(o, bytes) > o->peak ? live + rounded(o, bytes) : o->peak;
    } else {
        char number[30]; /* the text names the size asked for and what is live */
        snprintf(number, sizeof number, "%" PRId64, bytes);
        assert_non_null(strstr(dmi_error_text(), number));
        snprintf(number, sizeof number, "%" PRId64, live);
        assert_non_null(strstr(dmi_error_text(), number));
        assert_int_equal(o->block[i].slab, -77);
    }
}

/* Exactly the slabs go that nobody holds a part of and whose stamps are all reached. */
static void one_trim(oracle *o, dmi_pool *pool)
{
    dmi_stamp done;
    bool kept[SLABS_MOST];
    int64_t want = 0;
    for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
        done.seq[lane] = 600 + next(o, 500);
    }
    for (int s = 0; s < SLABS_MOST; s++) {
        kept[s] = false;
        for (int64_t u = 0; u < o->units[s]; u++) {
            const place *p = &o->place[s][u];
            kept[s] = kept[s] || p->holder;
            for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
                kept[s] = kept[s] || p->stamp.seq[lane] > done.seq[lane];
            }
        }
        want += kept[s] ? 0 : o->units[s] * UNIT;
    }
    assert_true(dmi_pool_trim(pool, &done) == want);
    for (int s = 0; s < SLABS_MOST; s++) {
        assert_true(kept[s] == (o->units[s] > 0));
    }
}

/* With everything free the pieces are joined again: the largest slab is there as one, and the system not asked.
 */
static void free_all(oracle *o, dmi_pool *pool)
{
    for (int i = 0; i < BLOCKS_MOST; i++) {
        if (o->live[i]) {
            one_free(o, pool, i);
        }
    }
    dmi_allocation whole;
    int64_t bytes = longest_free_run(o) - 2 * o->redzone;
    if (bytes > 0 && (!o->limit || longest_free_run(o) <= o->limit)) {
        o->peak = longest_free_run(o) > o->peak ? longest_free_run(o) : o->peak;
        assert_int_equal(dmi_pool_alloc(pool, bytes, 0, &whole), DM_OK);
        assert_int_equal(dmi_pool_free(pool, &whole, NULL), DM_OK);
    }
}

static void run_random(oracle *o, dmi_pool *pool, int steps)
{
    for (int step = 0; step < steps; step++) {
        int most = next(o, 400) == 0 ? BLOCKS_MOST : 40; /* mostly few blocks, now and then many */
        int i = (int)next(o, (uint64_t)most);
        if (o->live[i]) {
            one_free(o, pool, i);
        } else {
            one_alloc(o, pool, i);
        }
        if (next(o, 500) == 0) {
            one_trim(o, pool);
        }
        if (next(o, 1500) == 0) {
            free_all(o, pool);
        }
        check_stats(o, pool);
    }
}

static void test_random(void **state)
{
    (void)state;
    for (int v = 0; v < DMI_COUNT(variants); v++) {
        oracle *o = make_oracle(v, 100 + (uint64_t)v);
        dmi_pool *pool = make(o, UINT64_C(1) << 40);
        run_random(o, pool, 40000);
        dmi_pool_destroy(pool);
        for (int s = 0; s < SLABS_MOST; s++) {
            assert_true(o->units[s] == 0); /* all given back, though blocks were live */
        }
        free(o);
    }
}

/* The same calls at other addresses: the same slabs, offsets and stamps. */
static void test_deterministic(void **state)
{
    (void)state;
    for (int v = 0; v < DMI_COUNT(variants); v++) {
        oracle *a = make_oracle(v, 7), *b = make_oracle(v, 7);
        dmi_pool *pa = make(a, UINT64_C(1) << 40), *pb = make(b, UINT64_C(3) << 44);
        for (int round = 0; round < 200; round++) {
            run_random(a, pa, 10);
            run_random(b, pb, 10);
            for (int i = 0; i < BLOCKS_MOST; i++) {
                const dmi_allocation *x = &a->block[i], *y = &b->block[i];
                assert_true(a->live[i] == b->live[i]);
                assert_true(x->slab == y->slab && x->offset == y->offset && x->node == y->node);
                assert_memory_equal(&x->ready, &y->ready, sizeof x->ready);
            }
        }
        dmi_pool_destroy(pa);
        dmi_pool_destroy(pb);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
