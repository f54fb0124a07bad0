/* The definition of layouts, element by element: who holds it, and where in the shard. */
#ifndef LAYOUT_ORACLE_H
#define LAYOUT_ORACLE_H

#include "layout/layout.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SESSION = 8, MOST = 4096 };

/* Of each element (row-major): its holder, and its place in the holder's shard. A holder is a grid position, or
 * with an explicit map a worker. */
typedef struct oracle {
    int64_t count;
    int holders;
    int holder[MOST];
    int64_t place[MOST];
    int64_t held[SESSION]; /* elements of each holder */
} oracle;

static uint64_t random_state = 12345;

static inline int64_t pick(int64_t lo, int64_t hi)
{
    random_state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = random_state;
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return lo + (int64_t)((x ^ x >> 31) % (uint64_t)(hi - lo + 1));
}

static inline int64_t div_up(int64_t a, int64_t b)
{
    int64_t q = 0;
    while (q * b < a) {
        q++;
    }
    return q;
}

static inline int64_t block_of(const dmi_layout_spec *s, int d)
{
    if (s->block[d] > 0) {
        return s->block[d];
    }
    int grid = s->kind == DMI_LAYOUT_GRID ? s->grid[d] : 1;
    int64_t block = div_up(s->shape[d], grid);
    if (grid > 1 && s->order[d] == DMI_ORDER_CYCLIC && block > 64) {
        block = 64;
    }
    return block < 1 ? 1 : block;
}

static inline void element_index(const dmi_layout_spec *s, int64_t e, int64_t *index)
{
    for (int d = s->ndim - 1; d >= 0; d--) {
        index[d] = e % s->shape[d];
        e /= s->shape[d];
    }
}

static inline int64_t element_number(const dmi_layout_spec *s, const int64_t *index)
{
    int64_t e = 0;
    for (int d = 0; d < s->ndim; d++) {
        e = e * s->shape[d] + index[d];
    }
    return e;
}

static inline int64_t elements(const dmi_layout_spec *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) {
        n *= s->shape[d];
    }
    return n;
}

static inline int64_t blocks_in_all(const dmi_layout_spec *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) {
        n *= div_up(s->shape[d], block_of(s, d));
    }
    return n;
}

static inline int grid_holder(const dmi_layout_spec *s, const int64_t *index)
{
    int at = 0;
    for (int d = 0; d < s->ndim; d++) {
        int64_t b = index[d] / block_of(s, d), g = s->grid[d];
        int64_t each = div_up(div_up(s->shape[d], block_of(s, d)), g);
        at = at * s->grid[d] + (int)(s->order[d] == DMI_ORDER_CYCLIC ? b % g : b / each);
    }
    return at;
}

static inline int64_t block_number(const dmi_layout_spec *s, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < s->ndim; d++) {
        at = at * div_up(s->shape[d], block_of(s, d)) + index[d] / block_of(s, d);
    }
    return at;
}

/* A grid shard is dense and row-major, so its elements come in the order in which the array's do; an explicit
 * one has its blocks one after the other. */
static inline void make_oracle(const dmi_layout_spec *s, oracle *o)
{
    int64_t index[DM_MAX_DIMS];
    memset(o->held, 0, sizeof o->held);
    o->count = elements(s);
    o->holders = 1;
    for (int d = 0; d < s->ndim && s->kind == DMI_LAYOUT_GRID; d++) {
        o->holders *= s->grid[d];
    }
    int64_t passes = s->kind == DMI_LAYOUT_GRID ? 1 : blocks_in_all(s);
    for (int64_t pass = 0; pass < passes; pass++) {
        for (int64_t e = 0; e < o->count; e++) {
            element_index(s, e, index);
            if (s->kind == DMI_LAYOUT_EXPLICIT && block_number(s, index) != pass) {
                continue;
            }
            o->holder[e] = s->kind == DMI_LAYOUT_EXPLICIT ? s->map[pass] : grid_holder(s, index);
            o->place[e] = o->held[o->holder[e]]++;
        }
    }
}

/* Which holder worker w is, and of which replica; -1 when it takes no part. */
static inline int holder_of(const dmi_layout_spec *s, const oracle *o, int w, int *replica)
{
    *replica = 0;
    if (s->kind == DMI_LAYOUT_EXPLICIT) {
        *replica = o->held[w] > 0 ? 0 : -1;
        return o->held[w] > 0 ? w : -1;
    }
    int replicas = s->replicas > 0 ? s->replicas : 1;
    for (int i = 0; i < o->holders * replicas; i++) {
        if ((s->workers ? s->workers[i] : i) == w) {
            *replica = i / o->holders;
            return i % o->holders;
        }
    }
    *replica = -1;
    return -1;
}

#endif
