/* The pool against a naive oracle that knows, for every 64 bytes of every slab, which block holds them and the
 * stamps they were freed with. The slabs of most tests are addresses without memory: a pool must not touch it.
 */
#include "worker/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 64, SLABS_MOST = 64, UNITS_MOST = 4096, BLOCKS_MOST = 512 };

typedef struct place {
    int holder; /* block + 1; 0: free */
    dmi_stamp stamp;
} place;

typedef struct oracle {
    uint64_t random;
    uintptr_t address; /* of the next slab */
    int64_t align, redzone, limit, slab_bytes;
    int64_t calls, fail_every;
    int64_t asked; /* rounded size of the request under way; 0: no slab may be asked for */
    bool refused;
    int64_t units[SLABS_MOST]; /* 0: no such slab */
    char *base[SLABS_MOST];
    place place[SLABS_MOST][UNITS_MOST];
    dmi_block block[BLOCKS_MOST];
    bool live[BLOCKS_MOST];
    int64_t peak;
} oracle;

static uint64_t next(oracle *o, uint64_t below)
{
    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    return (o->random >> 33) % below;
}

static int64_t longest_free_run(const oracle *o)
{
    int64_t longest = 0;
    for (int s = 0; s < SLABS_MOST; s++) {
        int64_t run = 0;
        for (int64_t u = 0; u < o->units[s]; u++) {
            run = o->place[s][u].holder ? 0 : run + 1;
            longest = run > longest ? run : longest;
        }
    }
    return longest * UNIT;
}

static void *oracle_get(void *context, int index, int64_t bytes)
{
    oracle *o = context;
    assert_in_range(index, 0, SLABS_MOST - 1);
    assert_true(o->units[index] == 0 && bytes % o->align == 0);
    for (int i = 0; i < index; i++) {
        assert_true(o->units[i] > 0); /* numbers given back come again */
    }
    /* A slab is asked for only when no free piece is long enough, and is no larger than it must be. */
    assert_true(o->asked > 0 && longest_free_run(o) < o->asked);
    assert_true(bytes == (o->asked > o->slab_bytes ? o->asked : o->slab_bytes));
    o->calls++;
    if (o->fail_every && o->calls % o->fail_every == 0) {
        o->refused = true;
        return NULL;
    }
    assert_true(bytes <= UNITS_MOST * UNIT);
    o->units[index] = bytes / UNIT;
    memset(o->place[index], 0, sizeof o->place[index]);
    o->base[index] = (char *)o->address; /* NOLINT: an address nobody may use */
    o->address += UINT64_C(1) << 32;
    return o->base[index];
}

static void oracle_give_back(void *context, int index, void *base, int64_t bytes)
{
    oracle *o = context;
    assert_true(o->units[index] * UNIT == bytes && o->base[index] == base && bytes > 0);
    o->units[index] = 0;
}

static dmi_pool *make(oracle *o, uintptr_t address)
{
    o->address = address;
    dmi_pool_config config = {.ops = {.context = o, .get = oracle_get, .give_back = oracle_give_back},
                              .slab_bytes = o->slab_bytes,
                              .limit_bytes = o->limit,
                              .align = o->align,
                              .redzone = o->redzone};
    dmi_pool *pool = NULL;
    assert_int_equal(dmi_pool_create(&config, &pool), DM_OK);
    return pool;
}

static int64_t rounded(const oracle *o, int64_t bytes)
{
    int64_t size = 0;
    while (size < bytes) {
        size += o->align;
    }
    return bytes ? size + 2 * o->redzone : 0;
}

static void check_stats(oracle *o, const dmi_pool *pool)
{
    dmi_pool_stats stats, want = {0};
    for (int i = 0; i < BLOCKS_MOST; i++) {
        if (o->live[i] && o->block[i].bytes) {
            want.live_bytes[o->block[i].owner] += rounded(o, o->block[i].bytes);
            want.live_blocks[o->block[i].owner]++;
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
    assert_memory_equal(stats.live_blocks, want.live_blocks, sizeof want.live_blocks);
    assert_true(stats.live_total == want.live_total && stats.peak_total == want.peak_total);
    assert_true(stats.slab_bytes == want.slab_bytes && stats.slab_calls == want.slab_calls);
    assert_int_equal(stats.slabs, want.slabs);
}

/* The places a block takes, its red zones included. */
static place *places(oracle *o, const dmi_block *b, int64_t *count)
{
    int64_t first = (b->offset - o->redzone) / UNIT;
    *count = rounded(o, b->bytes) / UNIT;
    assert_in_range(b->slab, 0, SLABS_MOST - 1);
    assert_true(b->offset >= o->redzone && first + *count <= o->units[b->slab]);
    return &o->place[b->slab][first];
}

static void check_new_block(oracle *o, int i, int64_t bytes, int owner)
{
    const dmi_block *b = &o->block[i];
    assert_true(b->bytes == bytes && b->owner == owner);
    if (bytes == 0) {
        return;
    }
    assert_true(b->offset % o->align == 0 && (uintptr_t)b->base % (uintptr_t)o->align == 0);
    assert_ptr_equal(b->base, o->base[b->slab] + b->offset);
    int64_t count;
    place *p = places(o, b, &count);
    for (int64_t u = 0; u < count; u++) {
        assert_int_equal(p[u].holder, 0);
        p[u].holder = i + 1;
        for (int lane = 0; lane < DMI_LANES; lane++) {
            assert_true(b->ready.seq[lane] >= p[u].stamp.seq[lane]);
        }
    }
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
    o->block[i] = (dmi_block){.slab = -77};
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

static void one_free(oracle *o, dmi_pool *pool, int i)
{
    dmi_stamp stamp;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        stamp.seq[lane] = next(o, 1000); /* in no order at all */
    }
    bool no_stamp = next(o, 10) == 0;
    assert_int_equal(dmi_pool_free(pool, &o->block[i], no_stamp ? NULL : &stamp), DM_OK);
    o->live[i] = false;
    if (o->block[i].bytes == 0) {
        return;
    }
    int64_t count;
    place *p = places(o, &o->block[i], &count);
    for (int64_t u = 0; u < count; u++) {
        assert_int_equal(p[u].holder, i + 1);
        p[u].holder = 0;
        if (!no_stamp) {
            dmi_stamp_merge(&p[u].stamp, &stamp);
        }
    }
}

/* Exactly the slabs go that nobody holds a part of and whose stamps are all reached. */
static void one_trim(oracle *o, dmi_pool *pool)
{
    dmi_stamp done;
    bool kept[SLABS_MOST];
    int64_t want = 0;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        done.seq[lane] = 600 + next(o, 500);
    }
    for (int s = 0; s < SLABS_MOST; s++) {
        kept[s] = false;
        for (int64_t u = 0; u < o->units[s]; u++) {
            const place *p = &o->place[s][u];
            kept[s] = kept[s] || p->holder;
            for (int lane = 0; lane < DMI_LANES; lane++) {
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
    dmi_block whole;
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

static const struct {
    int64_t align, redzone, limit, slab_bytes, fail_every;
} variants[] = {
    {64, 0, 0, 65536, 0},         {256, 0, 0, 65536, 0},      {64, 64, 0, 65536, 0},
    {256, 512, 300000, 32768, 0}, {64, 0, 150000, 65536, 0},  {64, 0, 0, 16384, 2},
    {128, 0, 0, 4096, 3},         {4096, 4096, 0, 100000, 0}, {64, 0, 0, 1, 0},
};

static oracle *make_oracle(int variant, uint64_t seed)
{
    oracle *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->random = seed;
    o->align = variants[variant].align;
    o->redzone = variants[variant].redzone;
    o->limit = variants[variant].limit;
    o->slab_bytes = (variants[variant].slab_bytes + o->align - 1) / o->align * o->align;
    o->fail_every = variants[variant].fail_every;
    return o;
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
                const dmi_block *x = &a->block[i], *y = &b->block[i];
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
    dmi_block block;
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

    dmi_block block;
    o->asked = INT64_MAX - 63; /* beyond any memory, refused by the system and not by overflow */
    o->fail_every = 1;
    assert_int_equal(dmi_pool_alloc(pool, INT64_MAX, 0, &block), DM_ERR_NOMEM);
    o->fail_every = 0;
    o->asked = 64;
    assert_int_equal(dmi_pool_alloc(pool, 10, DMI_OWNER_ARRAY, &block), DM_OK);

    /* What is not handed out cannot be freed, and the attempt changes nothing. */
    dmi_block wrong = block;
    wrong.offset += 64;
    assert_int_equal(dmi_pool_free(pool, &wrong, NULL), DM_ERR_INTERNAL);
    wrong = block;
    wrong.node = 1000000;
    assert_int_equal(dmi_pool_free(pool, &wrong, NULL), DM_ERR_INTERNAL);
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_ERR_INTERNAL);
    dmi_pool_stats stats;
    dmi_pool_stats_get(pool, &stats);
    assert_true(stats.live_total == 0 && stats.live_blocks[DMI_OWNER_ARRAY] == 0);
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
    dmi_block a, b, c;
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

static void test_redzones(void **state)
{
    (void)state;
    dmi_pool_config config = {
        .ops = dmi_slab_ops_anonymous(), .slab_bytes = 1 << 20, .align = 64, .redzone = 128};
    dmi_pool *pool;
    assert_int_equal(dmi_pool_create(&config, &pool), DM_OK);
    dmi_log_set_level(DMI_LOG_ERROR);
    static const int at[] = {-128, -1, 0, 99, 100, 127, 128, 255}; /* of a block of 100 bytes */
    dmi_block around[2], block;
    assert_int_equal(dmi_pool_alloc(pool, 1, 0, &around[0]), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 100, DMI_OWNER_STAGING, &block), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 1, 0, &around[1]), DM_OK);
    for (int i = 0; i < DMI_COUNT(at); i++) {
        bool inside = at[i] >= 0 && at[i] < 100;
        ((char *)block.base)[at[i]] ^= 1;
        assert_int_equal(dmi_pool_free(pool, &block, NULL), inside ? DM_OK : DM_ERR_INTERNAL);
        if (!inside) {
            assert_non_null(strstr(dmi_error_text(), at[i] < 0 ? "memory before a block of 100 bytes (staging"
                                                               : "memory after a block of 100 bytes (staging"));
        }
        void *base = block.base; /* freed all the same, and clean when handed out again */
        assert_int_equal(dmi_pool_alloc(pool, 100, DMI_OWNER_STAGING, &block), DM_OK);
        assert_ptr_equal(block.base, base);
        memset(block.base, 0, 100);
    }
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &around[0], NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &around[1], NULL), DM_OK);
    dmi_log_set_level(DMI_LOG_WARN);
    dmi_pool_destroy(pool);
}

/* KiB of address space of this process. */
static long address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages * 4;
}

static void test_host_slabs(void **state)
{
    (void)state;
    static const int64_t sizes[] = {64, 4096, 5000, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 7 << 20, 64 << 20};
    dmi_slab_ops ops = dmi_slab_ops_anonymous();
    long before = address_space();
    for (int round = 0; round < 20; round++) {
        char *slab[DMI_COUNT(sizes)];
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            slab[i] = ops.get(ops.context, i, sizes[i]);
            assert_non_null(slab[i]);
            assert_int_equal((uintptr_t)slab[i] % (sizes[i] >= 2 << 20 ? 2 << 20 : 4096), 0);
            assert_int_equal(slab[i][0] | slab[i][sizes[i] / 2] | slab[i][sizes[i] - 1], 0);
            slab[i][0] = slab[i][sizes[i] - 1] = 1;
        }
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            ops.give_back(ops.context, i, slab[i], sizes[i]);
        }
    }
    assert_true(address_space() - before < 4096); /* the C library may have taken a little meanwhile */
    assert_null(ops.get(ops.context, 0, INT64_MAX));
    assert_null(ops.get(ops.context, 0, INT64_MAX / 2));
}

static void test_stamps_by_hand(void **state)
{
    (void)state;
    oracle *o = make_oracle(0, 3);
    dmi_pool *pool = make(o, UINT64_C(1) << 40);
    dmi_block a, b, c;
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
        cmocka_unit_test(test_random),       cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_steady_state), cmocka_unit_test(test_tightest_of_class),
        cmocka_unit_test(test_edges),        cmocka_unit_test(test_exact_limit),
        cmocka_unit_test(test_bad_config),   cmocka_unit_test(test_redzones),
        cmocka_unit_test(test_host_slabs),   cmocka_unit_test(test_stamps_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
