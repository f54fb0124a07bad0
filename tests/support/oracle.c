#include "support/oracle.h"

#include <math.h>

/* Errors of the factors' rounding to the computing type, of the operands', of each product and of the sum. */
static const long double steps = 4;

static dmt_expected start(dmt_case *c, const dmt_host *like)
{
    dmt_expected e;
    e.want = dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape);
    e.bound = dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape);
    return e;
}

bool dmt_all_whole(const dmt_host *a, const dmt_host *b, const dmt_host *out)
{
    return !dmt_is_float(a->dtype) && !dmt_is_float(b->dtype) && !dmt_is_float(out->dtype);
}

static uint64_t bits_of(const dmt_host *h, const dmt_host *out, int64_t i)
{
    return (uint64_t)(int64_t)h->v[dmt_broadcast(h, out, i)];
}

static long double element(const dmt_host *h, const dmt_host *out, int64_t i)
{
    return h->v[dmt_broadcast(h, out, i)];
}

/* The error that a result of that magnitude may have when it is made in that type. */
static long double error_of(dm_dtype computing, long double magnitude)
{
    return steps * (dmt_eps(computing) * magnitude + dmt_tiny(computing));
}

dmt_expected dmt_expect_add(dmt_case *c, double alpha, const dmt_host *a, double beta, const dmt_host *b,
                            const dmt_host *like)
{
    dmt_expected e = start(c, like);
    dm_dtype computing = dmt_computing(a->dtype, b->dtype, like->dtype);
    for (int64_t i = 0; i < like->count; i++) {
        if (dmt_all_whole(a, b, like)) {
            uint64_t sum =
                (uint64_t)(int64_t)alpha * bits_of(a, like, i) + (uint64_t)(int64_t)beta * bits_of(b, like, i);
            e.want->v[i] = dmt_from_whole(like->dtype, (int64_t)sum);
            continue;
        }
        long double left = alpha == 0 ? 0 : (long double)alpha * element(a, like, i);
        long double right = beta == 0 ? 0 : (long double)beta * element(b, like, i);
        e.want->v[i] = left + right;
        e.bound->v[i] = error_of(computing, fabsl(left) + fabsl(right));
    }
    return e;
}

dmt_expected dmt_expect_multiply(dmt_case *c, double alpha, const dmt_host *a, const dmt_host *b,
                                 const dmt_host *like)
{
    dmt_expected e = start(c, like);
    dm_dtype computing = dmt_computing(a->dtype, b->dtype, like->dtype);
    for (int64_t i = 0; i < like->count; i++) {
        if (dmt_all_whole(a, b, like)) {
            uint64_t product = (uint64_t)(int64_t)alpha * bits_of(a, like, i) * bits_of(b, like, i);
            e.want->v[i] = dmt_from_whole(like->dtype, (int64_t)product);
            continue;
        }
        e.want->v[i] = alpha == 0 ? 0 : (long double)alpha * element(a, like, i) * element(b, like, i);
        e.bound->v[i] = error_of(computing, fabsl(e.want->v[i]));
    }
    return e;
}

dmt_expected dmt_expect_scale(dmt_case *c, double alpha, const dmt_host *a, const dmt_host *like)
{
    return dmt_expect_add(c, alpha, a, 0, a, like);
}

dmt_host *dmt_host_for_ewise(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    int kind = dmt_is_float(dtype) ? (dmt_chance(&c->random, 40) ? DMT_ODD : DMT_SMOOTH)
                                   : (dmt_chance(&c->random, 30) ? DMT_WILD : DMT_SMOOTH);
    dmt_host_random(h, &c->random, kind);
    return h;
}

dmt_host *dmt_broadcast_operand(dmt_case *c, int ndim, const int64_t *shape)
{
    int64_t own[DM_MAX_DIMS];
    bool full = dmt_chance(&c->random, 60);
    int own_ndim = full ? ndim : dmt_shape_narrowed(c, ndim, shape, own);
    return dmt_host_for_ewise(c, dmt_ewise_random(c), own_ndim, full ? shape : own);
}

int dmt_ewise_shape(dmt_case *c, int64_t *shape)
{
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 10) ? DM_MAX_DIMS : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 30000 : 2500, shape);
    return ndim;
}

dmt_shifted dmt_shifted_make(dmt_case *c, dm_dtype dtype, int64_t down, int64_t right)
{
    const int64_t shape[] = {12, 9}, extent[] = {8, 6}, origin[] = {1, 1};
    dmt_shifted s = {.lo = {1 + down, 1 + right}};
    dmt_host *h = dmt_host_make(&c->scratch, dtype, 2, shape);
    dmt_host_random(h, &c->random, DMT_SMALL);
    s.whole = dmt_operand_make(c, "whole", h, 0);
    s.first_value = dmt_host_make(&c->scratch, dtype, 2, extent);
    s.second_value = dmt_host_make(&c->scratch, dtype, 2, extent);
    dmt_host_take(h, origin, s.first_value);
    dmt_host_take(h, s.lo, s.second_value);
    DMT_OK(c, dm_array_view(c->session, s.whole->array, origin, extent, &s.first));
    DMT_OK(c, dm_array_view(c->session, s.whole->array, s.lo, extent, &s.second));
    dmt_say(c, "\n    its views of [8, 6] at [1, 1] and at [%d, %d]", (int)s.lo[0], (int)s.lo[1]);
    return s;
}

void dmt_shifted_check(dmt_case *c, dmt_shifted *s, dm_status status, dmt_expected expected, const char *call)
{
    dmt_host *want = dmt_host_copy(&c->scratch, s->whole->value);
    dmt_host *bound = dmt_host_make(&c->scratch, want->dtype, want->ndim, want->shape);
    if (status != DM_ERR_OVERLAP) {
        dmt_status_is(c, status, DM_OK, call);
        dmt_host_put(want, s->lo, expected.want);
        dmt_host_put(bound, s->lo, expected.bound);
    }
    dmt_operand_check(c, s->whole, want, bound);
    DMT_OK(c, dm_array_destroy(c->session, s->first));
    DMT_OK(c, dm_array_destroy(c->session, s->second));
}
