/* What the tests of layers share: shapes, operands, and oracles by plain loops. */
#ifndef DMT_LAYERS_H
#define DMT_LAYERS_H

#include "support/cases.h"

#include <dmath/layers.h>
#include <string.h>

enum { DMT_LAYER_OPERANDS = 4 };

/* The operands of a call: random values in random layouts, views and types. */
typedef struct dmt_layer {
    int count;
    dmt_host *host[DMT_LAYER_OPERANDS]; /* before the call */
    dmt_operand *operand[DMT_LAYER_OPERANDS];
    dm_array array[DMT_LAYER_OPERANDS];
    const char *name[DMT_LAYER_OPERANDS];
    dm_dtype all; /* 0: each of its own type */
    bool left_out[DMT_LAYER_OPERANDS];
} dmt_layer;
/* Adds one; flags: of dmt_operand_make. dtype 0: a float. */
dmt_host *dmt_layer_add(dmt_case *c, dmt_layer *l, const char *name, dm_dtype dtype, int ndim,
                        const int64_t *shape);
/* Makes the arrays. written: bit i: operand i is written, and not read. */
void dmt_layer_make(dmt_case *c, dmt_layer *l, unsigned written);
/* One type for all operands, or 0. */
dm_dtype dmt_layer_all(dmt_case *c);
/* The same operands, whole on worker 0: makes them in `alone`. */
void dmt_layer_alone(dmt_case *c, const dmt_layer *l, dmt_layer *alone);
/* Operand i of both holds the same bits. */
void dmt_layer_same(dmt_case *c, const dmt_layer *l, const dmt_layer *alone, int i);
/* Rounding of the type that the call computes in. */
long double dmt_layer_eps(const dmt_layer *l);
int dmt_layer_slices(dmt_case *c);

/* A sum with what it may be wrong by. */
typedef struct dmt_sums {
    dmt_host *want, *bound;
    int64_t terms;
} dmt_sums;
dmt_sums dmt_sums_make(dmt_case *c, const dmt_host *like);
void dmt_sums_add(dmt_sums *s, int64_t at, long double a, long double b);
/* want = beta old + want; old may be NULL. bound: so many terms in arithmetic of that eps. */
void dmt_sums_end(dmt_sums *s, const dmt_host *old, double beta, long double eps);

/* DM_BF16, or 0: what slices of the gradient by weights are rounded to; not of f16. */
dm_dtype dmt_layer_wire(dmt_case *c, const dmt_host *x, const dmt_host *dy);
/* Before the end: what the sum is wrong by where parts of it are rounded to that type; it is added later. */
dmt_host *dmt_sums_rounded(dmt_case *c, const dmt_sums *s, dm_dtype dtype);
void dmt_sums_widen(dmt_sums *s, const dmt_host *rounded); /* NULL: by nothing */

/* --- convolution */
typedef struct dmt_conv {
    dm_conv conv;
    int64_t x[4], w[4], y[4];
} dmt_conv;
void dmt_conv_random(dmt_case *c, dmt_conv *v);
/* Calls visit with the elements of x, w and y of every product of the convolution. */
void dmt_conv_visit(const dmt_conv *v, void *context,
                    void (*visit)(void *context, int64_t x, int64_t w, int64_t y));

/* --- pooling */
typedef struct dmt_pool {
    dm_pool pool;
    int64_t x[4], y[4];
} dmt_pool;
void dmt_pool_random(dmt_case *c, dmt_pool *v);
/* The elements of x in window `at` of y's elements; returns how many. size: by what a mean divides. */
int64_t dmt_pool_window(const dmt_pool *v, int64_t at, int64_t *elements, int64_t *size);
/* The number that an element of x has in it, its places in the padding counted. */
int64_t dmt_pool_tap(const dmt_pool *v, int64_t at, int64_t element);
enum { DMT_POOL_MOST = 400, DMT_POOL_NONE = 255 };

#endif
