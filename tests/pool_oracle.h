/* A naive oracle of the pool: it knows, for every 64 bytes of every slab, which block holds them and the stamps
 * they were freed with. Its slabs are addresses without memory: a pool must not touch it. */
#ifndef POOL_ORACLE_H
#define POOL_ORACLE_H

#include "memory/pool.h"

/* cmocka wants these first */
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
    dmi_allocation block[BLOCKS_MOST];
    bool live[BLOCKS_MOST];
    int64_t peak;
} oracle;

static inline uint64_t next(oracle *o, uint64_t below)
{
    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    return (o->random >> 33) % below;
}

static inline int64_t longest_free_run(const oracle *o)
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

static inline void *oracle_get(void *context, int index, int64_t bytes)
{
    oracle *o = context;
    assert_in_range(index, 0, SLABS_MOST - 1);
    assert_true(o->units[index] == 0 && bytes % o->align == 0);
    for (int i = 0; i < index; i++) {
        assert_true(o->units[i] > 0); /* numbers given back come again */
    }
    /* A slab is asked for only when no free piece is long enough, and is no larger than it must be; a second
     * time, after a refusal, no larger than is needed now. */
    assert_true(o->asked > 0 && longest_free_run(o) < o->asked);
    assert_true(bytes == (o->asked > o->slab_bytes || o->refused ? o->asked : o->slab_bytes));
    o->calls++;
    o->refused = false;
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

static inline void oracle_give_back(void *context, int index, void *base, int64_t bytes)
{
    oracle *o = context;
    assert_true(o->units[index] * UNIT == bytes && o->base[index] == base && bytes > 0);
    o->units[index] = 0;
}

static inline dmi_pool *make(oracle *o, uintptr_t address)
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

static inline int64_t rounded(const oracle *o, int64_t bytes)
{
    int64_t size = 0;
    while (size < bytes) {
        size += o->align;
    }
    return bytes ? size + 2 * o->redzone : 0;
}

/* The places a block takes, its red zones included. */
static inline place *places(oracle *o, const dmi_allocation *b, int64_t *count)
{
    int64_t first = (b->offset - o->redzone) / UNIT;
    *count = rounded(o, b->bytes) / UNIT;
    assert_in_range(b->slab, 0, SLABS_MOST - 1);
    assert_true(b->offset >= o->redzone && first + *count <= o->units[b->slab]);
    return &o->place[b->slab][first];
}

static inline void check_new_block(oracle *o, int i, int64_t bytes, int owner)
{
    const dmi_allocation *b = &o->block[i];
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
        for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
            assert_true(b->ready.seq[lane] >= p[u].stamp.seq[lane]);
        }
    }
}

static inline void one_free(oracle *o, dmi_pool *pool, int i)
{
    dmi_stamp stamp;
    for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
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

static const struct {
    int64_t align, redzone, limit, slab_bytes, fail_every;
} variants[] = {
    {64, 0, 0, 65536, 0},         {256, 0, 0, 65536, 0},      {64, 64, 0, 65536, 0},
    {256, 512, 300000, 32768, 0}, {64, 0, 150000, 65536, 0},  {64, 0, 0, 16384, 2},
    {128, 0, 0, 4096, 3},         {4096, 4096, 0, 100000, 0}, {64, 0, 0, 1, 0},
};

static inline oracle *make_oracle(int variant, uint64_t seed)
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

#endif
