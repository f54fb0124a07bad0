/* out = e^(x - m) / sum(e^(x - m)) over dims, against loops in long double */
#include "support/reduced.h"

#include <math.h>

static void softmax_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 10) ? 5 : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_float_random(c);
    dmt_dims dims;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host_random(x, &c->random, DMT_SMOOTH);
    dmt_dims_random(c, x, &dims);
    bool in_place = from == to && dmt_chance(&c->random, 30);
    dmt_host *want = dmt_host_make(&c->scratch, to, ndim, shape), *bound = dmt_host_copy(&c->scratch, want);
    dmt_host *results = dmt_reduced_make(c, x, &dims, DM_F64);
    long double *top = dmt_alloc(&c->scratch, (results->count + 1) * (int64_t)sizeof *top);
    for (int64_t i = 0; i < results->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        top[i] = -INFINITY;
        for (int64_t k = 0; k < n; k++) {
            top[i] = v[k] > top[i] ? v[k] : top[i];
        }
        for (int64_t k = 0; k < n; k++) {
            results->v[i] += expl(v[k] - top[i]);
        }
    }
    int64_t index[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < ndim; d++) {
            at = dims.reduced[d] ? at : at * shape[d] + index[d];
        }
        want->v[i] = expl(x->v[i] - top[at]) / results->v[at];
        bound->v[i] = 1e-6L * (fabsl(x->v[i] - top[at]) + 2) * want->v[i] + dmt_tiny(DM_F32);
        dmt_next(ndim, shape, index);
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0);
    dmt_operand *out = in_place ? in : dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say_dims(c, &dims);
    DMT_OK(c, dm_softmax(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array));
    dmt_operand_check(c, out, want, bound);
    if (!in_place) {
        dmt_operand_unchanged(c, in);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "softmax", .cases = 1500, .fn = softmax_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
