/* What the tests of take and put share: random indices, and what they mean. */
#ifndef DMT_INDEX_CASES_H
#define DMT_INDEX_CASES_H

#include "support/cases.h"

static const char *const index_options[] = {NULL, "index_algorithm=fetch", "index_algorithm=exchange",
                                            "index_algorithm=list", "index_algorithm=lend"};

/* Indices into a dim of n, of a random integer type and a mode; DM_RAISE: all inside. */
static inline dmt_host *indices_random(dmt_case *c, int ndim, const int64_t *shape, int64_t n, int mode)
{
    static const dm_dtype types[] = {DM_I64, DM_I32, DM_I16, DM_I8, DM_U8, DM_U16, DM_U32, DM_U64};
    static const int64_t most[] = {INT64_MAX, INT32_MAX, 32767, 127, 255, 65535, UINT32_MAX, INT64_MAX};
    int type = (int)dmt_int(&c->random, 0, 7);
    bool sign = type < 4;
    dmt_host *h = dmt_host_make(&c->scratch, types[type], ndim, shape);
    int64_t hi = mode == DM_RAISE ? n - 1 : 3 * n, lo = !sign ? 0 : mode == DM_RAISE ? -n : -3 * n;
    hi = hi > most[type] ? most[type] : hi;
    lo = lo < -most[type] ? -most[type] : lo;
    int64_t few =
        dmt_chance(&c->random, 30) ? dmt_int(&c->random, lo, hi) : hi; /* the same ones again and again */
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)dmt_int(&c->random, lo, few);
    }
    return h;
}

/* 0 .. n-1 */
static inline int64_t index_meant(long double v, int mode, int64_t n)
{
    int64_t i = (int64_t)v;
    if (mode == DM_CLIP) {
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
    while (i < 0) { /* mode RAISE: once at most */
        i += n;
    }
    while (i >= n) {
        i -= n;
    }
    return i;
}

/* Position in an array of h's shape of the element at index[], but along dim at `at`. */
static inline int64_t replaced(const dmt_host *h, const int64_t *index, int dim, int64_t at)
{
    int64_t there[DM_MAX_DIMS];
    for (int d = 0; d < h->ndim; d++) {
        there[d] = d == dim ? at : index[d];
    }
    return dmt_linear(h->ndim, h->shape, there);
}

/* The indices' element for a position: along all dims, of which some are 1, or along dim alone. */
static inline long double index_at(const dmt_host *h, const int64_t *position, int dim, bool along)
{
    int64_t there[DM_MAX_DIMS] = {position[dim]};
    for (int d = 0; d < h->ndim && along; d++) {
        there[d] = h->shape[d] == 1 ? 0 : position[d];
    }
    return h->v[dmt_linear(h->ndim, h->shape, there)];
}

/* A random array, a dim of it, the shape of the positions, indices; everything beside the values. */
typedef struct index_case {
    int ndim, dim, mode;
    bool along;
    int64_t shape[DM_MAX_DIMS], positions[DM_MAX_DIMS];
    dmt_host *x, *indices;
} index_case;

static inline void index_case_random(dmt_case *c, index_case *k, dm_dtype dtype)
{
    int64_t indexed[DM_MAX_DIMS];
    k->ndim = (int)dmt_int(&c->random, 1, dmt_chance(&c->random, 10) ? 5 : 3);
    dmt_shape_random(c, k->ndim, 3000, k->shape);
    k->dim = (int)dmt_int(&c->random, 0, k->ndim - 1);
    k->mode = (int)dmt_int(&c->random, DM_RAISE, DM_CLIP);
    k->along = dmt_chance(&c->random, 40);
    int64_t n = k->shape[k->dim], others = dmt_count(k->ndim, k->shape) / (n > 0 ? n : 1);
    int64_t m = n == 0 ? 0 : dmt_int(&c->random, 0, 3000 / (others + 1) < 60 ? 3000 / (others + 1) : 60);
    for (int d = 0; d < k->ndim; d++) {
        k->positions[d] = d == k->dim ? m : k->shape[d];
        indexed[d] = d != k->dim && dmt_chance(&c->random, 15) ? 1 : k->positions[d];
    }
    k->x = dmt_host_make(&c->scratch, dtype, k->ndim, k->shape);
    dmt_host_random(k->x, &c->random, DMT_ODD);
    k->indices = indices_random(c, k->along ? k->ndim : 1, k->along ? indexed : &m, n, k->mode);
    dmt_say(c, "\n    dim %d, mode %d%s", k->dim, k->mode, k->along ? ", along dim" : "");
}

/* Half of the time counted from the end. */
static inline int dim_given(dmt_case *c, const index_case *k)
{
    return dmt_chance(&c->random, 50) ? k->dim : k->dim - k->ndim;
}

#endif
