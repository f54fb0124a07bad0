/* The gradient of local response normalisation and pooling at once: against central differences of loops, and
 * to the bit against the two calls */
#include "support/lrn_pool.h"

#include <stdlib.h>
#include <string.h>

enum { X, WHICH, DY, DX };

/* The sum of dy y over the elements that x[at] acts on; dy: the gradient by what LRN makes. */
static long double inner(const dmt_lrn *v, const dmt_host *x, const long double *dy, int64_t at)
{
    long double sum = 0;
    for (int64_t i = 0; i < x->count; i++) {
        if (dmt_lrn_near(v, i, at) && dy[i] != 0) {
            sum += dy[i] * x->v[i] * powl(dmt_lrn_scale(v, x, i), -(long double)v->lrn.beta);
        }
    }
    return sum;
}

static void check_apart(dmt_case *c, const dmt_lrn_pool *v, const dmt_layer *l, const dmt_host *got)
{
    char text[400];
    dm_session *s = c->session;
    dm_array between, dx;
    dm_pool pool = v->pool.pool;
    pool.slices = v->lrn.lrn.slices;
    DMT_OK(c, dm_array_like(s, l->array[X], 0, &between));
    DMT_OK(c, dm_array_like(s, l->array[DX], 0, &dx));
    DMT_OK(c, dm_pool_backward_which(s, &pool, l->array[WHICH], l->array[DY], between));
    DMT_OK(c, dm_lrn_backward(s, &v->lrn.lrn, l->array[X], between, dx));
    if (!dmt_host_same(dmt_read(c, dx, got->dtype, 4, v->pool.x), got, text, sizeof text)) {
        dmt_fail(c, "apart: %s", text);
    }
    DMT_OK(c, dm_array_destroy(s, between));
    DMT_OK(c, dm_array_destroy(s, dx));
}

/* Windows take elements at random: the gradient needs no more than their numbers. */
static void take_any(dmt_case *c, const dmt_lrn_pool *v, dmt_host *which, const dmt_host *dy,
                     long double *given)
{
    int64_t elements[DMT_POOL_MOST], size;
    for (int64_t i = 0; i < which->count; i++) {
        int64_t n = dmt_pool_window(&v->pool, i, elements, &size);
        bool none = n == 0 || dmt_chance(&c->random, 10);
        int64_t e = none ? -1 : elements[dmt_int(&c->random, 0, n - 1)];
        which->v[i] = none ? DMT_POOL_NONE : (long double)dmt_pool_tap(&v->pool, i, e);
        if (!none) {
            given[e] += dy->v[i];
        }
    }
}

static void back_case(dmt_case *c)
{
    const long double h = 1e-6L;
    dmt_lrn_pool v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_lrn_pool_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, 4, v.pool.x);
    dmt_host *which = dmt_layer_add(c, &l, "which", DM_U8, 4, v.pool.y);
    dmt_host *dy = dmt_layer_add(c, &l, "dy", 0, 4, v.pool.y);
    dmt_layer_add(c, &l, "dx", 0, 4, v.pool.x);
    long double *given = dmt_host_make(&c->scratch, DM_F64, 4, v.pool.x)->v;
    for (int64_t i = 0; i < x->count; i++) {
        given[i] = 0;
    }
    take_any(c, &v, which, dy, given);
    dmt_layer_make(c, &l, 1u << DX);
    DMT_OK(c, dm_lrn_pool_backward(c->session, &v.lrn.lrn, &v.pool.pool, l.array[X], l.array[WHICH],
                                   l.array[DY], l.array[DX]));
    dmt_host *got = dmt_read(c, l.array[DX], l.host[DX]->dtype, 4, v.pool.x);
    for (int64_t i = 0; i < x->count; i += 1 + x->count / 12) {
        long double old = x->v[i], size = 1e-3L;
        x->v[i] = old + h;
        long double up = inner(&v.lrn, x, given, i);
        x->v[i] = old - h;
        long double want = (up - inner(&v.lrn, x, given, i)) / (2 * h);
        want = v.lrn.lrn.relu && !(old > 0) ? 0 : want;
        x->v[i] = old;
        for (int64_t j = 0; j < x->count; j++) {
            size += dmt_lrn_near(&v.lrn, i, j)
                        ? fabsl(given[j]) * (1 + dmt_lrn_factor(&v.lrn) * 4 * fabsl(x->v[j] * old))
                        : 0;
        }
        long double bound = size * (60 * dmt_layer_eps(&l) + 4 * dmt_eps(got->dtype) + 1e-9L);
        if (!(fabsl(got->v[i] - want) <= bound)) {
            dmt_fail(c, "element %d: %.9Lg, but the difference is %.9Lg", (int)i, got->v[i], want);
        }
    }
    if (dmt_lrn_pool_same_bits(&l, (int[]){X, DY, DX}, 3)) {
        check_apart(c, &v, &l, got);
    }
    if (v.lrn.lrn.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_lrn_pool_backward(c->session, &v.lrn.lrn, &v.pool.pool, alone.array[X], alone.array[WHICH],
                                       alone.array[DY], alone.array[DX]));
        dmt_operand_check_same(c, alone.operand[DX], got);
    }
}

static void test_lrn_pool_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "lrn_pool_back", .cases = 150, .fn = back_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lrn_pool_back)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
