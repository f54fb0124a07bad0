/* Local response normalisation and pooling at once: against loops, and to the bit against the two calls */
#include "support/lrn_pool.h"
#include "support/refusal.h"

#include <stdlib.h>
#include <string.h>

enum { X, Y, WHICH };

/* What LRN makes of each element. */
static long double *normalised(dmt_case *c, const dmt_lrn_pool *v, const dmt_host *x)
{
    long double *out = dmt_host_make(&c->scratch, DM_F64, 4, v->pool.x)->v;
    for (int64_t i = 0; i < x->count; i++) {
        out[i] = x->v[i] * powl(dmt_lrn_scale(&v->lrn, x, i), -(long double)v->lrn.lrn.beta);
    }
    return out;
}

/* Elements that are nearly as large may have been taken. */
static void check_which(dmt_case *c, const dmt_lrn_pool *v, const long double *norm, const dmt_host *which,
                        long double near)
{
    int64_t elements[DMT_POOL_MOST], size;
    for (int64_t i = 0; i < which->count; i++) {
        int64_t n = dmt_pool_window(&v->pool, i, elements, &size), at = -1;
        long double most = -HUGE_VALL;
        for (int64_t k = 0; k < n; k++) {
            most = fmaxl(most, norm[elements[k]]);
            at = dmt_pool_tap(&v->pool, i, elements[k]) == (int64_t)which->v[i] ? elements[k] : at;
        }
        long double slack = near * (1 + fabsl(most));
        bool none = which->v[i] == DMT_POOL_NONE;
        bool fits = none     ? n == 0 || (v->pool.pool.relu && most <= slack)
                    : at < 0 ? false
                             : norm[at] >= most - slack && (!v->pool.pool.relu || norm[at] > -slack);
        if (!fits) {
            dmt_fail(c, "which[%d] is %d", (int)i, (int)which->v[i]);
        }
    }
}

static void check_apart(dmt_case *c, const dmt_lrn_pool *v, const dmt_layer *l)
{
    char text[400];
    dm_session *s = c->session;
    dm_array between, y, which;
    dm_pool pool = v->pool.pool;
    pool.slices = v->lrn.lrn.slices;
    DMT_OK(c, dm_array_like(s, l->array[X], 0, &between));
    DMT_OK(c, dm_array_like(s, l->array[Y], 0, &y));
    DMT_OK(c, dm_array_create(s, DM_U8, 4, v->pool.y, NULL, &which));
    DMT_OK(c, dm_lrn_forward(s, &v->lrn.lrn, l->array[X], between));
    DMT_OK(c, dm_pool_forward(s, &pool, between, y, which));
    const dmt_host *want = dmt_read(c, y, l->host[Y]->dtype, 4, v->pool.y);
    if (!dmt_host_same(dmt_read(c, l->array[Y], l->host[Y]->dtype, 4, v->pool.y), want, text, sizeof text)) {
        dmt_fail(c, "apart: y: %s", text);
    }
    want = dmt_read(c, which, DM_U8, 4, v->pool.y);
    if (!l->left_out[WHICH] &&
        !dmt_host_same(dmt_read(c, l->array[WHICH], DM_U8, 4, v->pool.y), want, text, sizeof text)) {
        dmt_fail(c, "apart: which: %s", text);
    }
    DMT_OK(c, dm_array_destroy(s, between));
    DMT_OK(c, dm_array_destroy(s, y));
    DMT_OK(c, dm_array_destroy(s, which));
}

static void lrn_pool_case(dmt_case *c)
{
    dmt_lrn_pool v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t elements[DMT_POOL_MOST], size;
    dmt_lrn_pool_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, 4, v.pool.x);
    dmt_layer_add(c, &l, "y", 0, 4, v.pool.y);
    dmt_layer_add(c, &l, "which", DM_U8, 4, v.pool.y);
    l.left_out[WHICH] = dmt_chance(&c->random, 20);
    dmt_layer_make(c, &l, 1u << Y | 1u << WHICH);
    const long double *norm = normalised(c, &v, x);
    dmt_sums sums = dmt_sums_make(c, l.host[Y]);
    for (int64_t i = 0; i < sums.want->count; i++) {
        int64_t n = dmt_pool_window(&v.pool, i, elements, &size), best = -1;
        for (int64_t k = 0; k < n; k++) {
            best = best < 0 || norm[elements[k]] > norm[best] ? elements[k] : best;
        }
        if (best >= 0) {
            dmt_sums_add(&sums, i, norm[best], 1);
        }
    }
    sums.terms += 60 * x->count + 200 * sums.want->count;
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    const long double eps = fmaxl(dmt_eps(l.host[X]->dtype), dmt_eps(l.host[Y]->dtype));
    for (int64_t i = 0; i < sums.want->count; i++) { /* of 16 bits it may have been rounded in between */
        sums.bound->v[i] += 2 * eps * fabsl(sums.want->v[i]);
    }
    DMT_OK(c,
           dm_lrn_pool_forward(c->session, &v.lrn.lrn, &v.pool.pool, l.array[X], l.array[Y], l.array[WHICH]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    if (!l.left_out[WHICH]) {
        check_which(c, &v, norm, dmt_read(c, l.array[WHICH], DM_U8, 4, v.pool.y),
                    4 * eps + 100 * dmt_layer_eps(&l));
    }
    if (dmt_lrn_pool_same_bits(&l, (int[]){X, Y}, 2)) {
        check_apart(c, &v, &l);
    }
    if (v.lrn.lrn.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_lrn_pool_forward(c->session, &v.lrn.lrn, &v.pool.pool, alone.array[X], alone.array[Y],
                                      alone.array[WHICH]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

static void refusals(dmt_case *c)
{
    const int64_t x[] = {2, 6, 6, 3}, y[] = {2, 3, 3, 3};
    dm_lrn lrn = DM_LRN_INIT, bad = lrn;
    dm_pool pool = DM_POOL_INIT, mean = pool, wide = pool;
    dmt_things t = dmt_things_make(c);
    dm_array in, out, other, taps, places, none = DM_NO_ARRAY;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 4, x, NULL, &in));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 4, y, NULL, &out));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 4, y, NULL, &other));
    DMT_OK(c, dm_array_create(c->session, DM_U8, 4, y, NULL, &taps));
    DMT_OK(c, dm_array_create(c->session, DM_I32, 4, y, NULL, &places));
    DMT_OK(c, dm_fill(c->session, in, 1));
    bad.within = 1;
    mean.method = DM_POOL_AVERAGE;
    wide.kernel[0] = 3;
    REFUSED(DMT_ONE(ARG), "within", dm_lrn_pool_forward(c->session, &bad, &pool, in, out, none));
    REFUSED(DMT_ONE(ARG), "method is 1", dm_lrn_pool_forward(c->session, &lrn, &mean, in, out, none));
    REFUSED(DMT_ONE(ARG), "DM_LRN_INIT", dm_lrn_pool_forward(c->session, NULL, &pool, in, out, none));
    REFUSED(DMT_ONE(ARG), "DM_POOL_INIT", dm_lrn_pool_forward(c->session, &lrn, NULL, in, out, none));
    REFUSED(DMT_ONE(DTYPE), "which has dtype i32",
            dm_lrn_pool_forward(c->session, &lrn, &pool, in, out, places));
    REFUSED(DMT_ONE(SHAPE), "pooling makes", dm_lrn_pool_forward(c->session, &lrn, &wide, in, in, none));
    REFUSED(DMT_ONE(SHAPE), "dims", dm_lrn_pool_forward(c->session, &lrn, &pool, t.f, out, none));
    REFUSED(DMT_ONE(SHAPE), "dx is", dm_lrn_pool_backward(c->session, &lrn, &pool, in, taps, out, other));
    REFUSED(DMT_ONE(OVERLAP), "share", dm_lrn_pool_backward(c->session, &lrn, &pool, in, taps, out, in));
    dm_array made[] = {in, out, other, taps, places};
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(c->session, made[i]));
    }
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_lrn_pool(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "lrn_pool", .cases = 200, .fn = lrn_pool_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lrn_pool), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
