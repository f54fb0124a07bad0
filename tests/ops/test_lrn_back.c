/* The gradient of local response normalisation: against central differences of loops, and the same bits in all
 * layouts */
#include "support/lrn.h"

enum { X, DY, DX };

/* The sum of dy y over the elements that x[at] acts on. */
static long double inner(const dmt_lrn *v, const dmt_host *x, const dmt_host *dy, int64_t at)
{
    long double sum = 0;
    for (int64_t i = 0; i < x->count; i++) {
        if (dmt_lrn_near(v, i, at)) {
            sum += dy->v[i] * x->v[i] * powl(dmt_lrn_scale(v, x, i), -(long double)v->lrn.beta);
        }
    }
    return sum;
}

static void back_case(dmt_case *c)
{
    const long double h = 1e-6L;
    dmt_lrn v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_lrn_random(c, &v);
    v.lrn.relu = dmt_chance(&c->random, 30);
    v.shape[0] = v.shape[0] > 4 ? 4 : v.shape[0];
    for (int d = 1; d < v.ndim; d++) {
        v.shape[d] = v.shape[d] > 5 ? 5 : v.shape[d];
    }
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *dy = dmt_layer_add(c, &l, "dy", 0, v.ndim, v.shape);
    dmt_layer_add(c, &l, "dx", 0, v.ndim, v.shape);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_operand *out = l.operand[DX];
    DMT_OK(c, dm_lrn_backward(c->session, &v.lrn, l.array[X], l.array[DY], l.array[DX]));
    dmt_host *got = dmt_read(c, out->array, l.host[DX]->dtype, v.ndim, v.shape);
    for (int64_t i = 0; i < x->count; i += 1 + x->count / 12) {
        long double old = x->v[i], size = 1e-3L;
        x->v[i] = old + h;
        long double up = inner(&v, x, dy, i);
        x->v[i] = old - h;
        long double want = (up - inner(&v, x, dy, i)) / (2 * h);
        want = v.lrn.relu && !(old > 0) ? 0 : want;
        x->v[i] = old;
        for (int64_t j = 0; j < x->count; j++) {
            size += dmt_lrn_near(&v, i, j)
                        ? fabsl(dy->v[j]) * (1 + dmt_lrn_factor(&v) * 4 * fabsl(x->v[j] * old))
                        : 0;
        }
        long double bound = size * (60 * dmt_layer_eps(&l) + 4 * dmt_eps(got->dtype) + 1e-9L);
        if (!(fabsl(got->v[i] - want) <= bound)) {
            dmt_fail(c, "element %d: %.9Lg, but the difference is %.9Lg", (int)i, got->v[i], want);
        }
    }
    if (v.lrn.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_lrn_backward(c->session, &v.lrn, alone.array[X], alone.array[DY], alone.array[DX]));
        dmt_operand_check_same(c, alone.operand[DX], got);
    }
}

static void test_lrn_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "lrn_back", .cases = 150, .fn = back_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lrn_back)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
