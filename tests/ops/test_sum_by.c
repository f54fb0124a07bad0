/* out = scale * (sum of x over dims) + beta * out, with factors that are elements of arrays */
#include "support/factors.h"
#include "support/reduced.h"

#include <math.h>

/* Sums of few elements of one size, in long double: what is rounded in them does not count. */
static void expect(dmt_case *c, const dmt_host *x, const dmt_dims *d, const dmt_factor *scale,
                   const dmt_factor *beta, const dmt_host *out, dmt_host *want, dmt_host *bound)
{
    bool whole_x = !dmt_is_float(x->dtype), whole = whole_x && !dmt_is_float(out->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, d, i, &n);
        long double sum = 0, magnitude = 0;
        uint64_t bits = 0;
        for (int64_t k = 0; k < n; k++) {
            sum += v[k];
            magnitude += fabsl(v[k]);
            bits += whole_x ? dmt_wrapped(v[k]) : 0;
        }
        bool reads = beta->element || beta->value != 0;
        if (whole) {
            uint64_t old = reads ? dmt_wrapped(out->v[i]) : 0;
            want->v[i] = dmt_from_whole(want->dtype, (int64_t)((uint64_t)(int64_t)scale->value * bits +
                                                               (uint64_t)(int64_t)beta->value * old));
            continue;
        }
        long double old = reads ? (long double)beta->value * out->v[i] : 0,
                    term = (long double)scale->value * sum;
        want->v[i] = term + old;
        bound->v[i] =
            dmt_eps(DM_F64) * (fabsl(scale->value) * (long double)(n + 4) * magnitude + 4 * fabsl(old)) +
            4 * dmt_tiny(DM_F64);
    }
}

static void sum_by_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 50) ? from : dmt_dtype_random(c);
    bool whole = !dmt_is_float(from) && !dmt_is_float(to);
    dmt_dims d = {{0}};
    dmt_shape_random(c, ndim, 3000, shape);
    dmt_host *x_value = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host_random(x_value, &c->random, DMT_SMOOTH);
    dmt_dims_random(c, x_value, &d);
    dmt_host *out_value = dmt_reduced_make(c, x_value, &d, to);
    dmt_host_random(out_value, &c->random, DMT_SMOOTH);
    dmt_factor scale = dmt_factor_make(c, "scale", whole, true), beta = dmt_factor_make(c, "beta", whole, true);
    bool reads = beta.element || beta.value != 0;
    for (int64_t i = 0; i < out_value->count && !reads && dmt_is_float(to); i++) {
        out_value->v[i] = NAN; /* must not be read */
    }
    dmt_operand *x = dmt_operand_make(c, "x", x_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, reads ? 0 : DMT_UNSET);
    dmt_say_dims(c, &d);
    dmt_host *want = dmt_host_make(&c->scratch, to, out_value->ndim, out_value->shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    expect(c, x_value, &d, &scale, &beta, out_value, want, bound);
    DMT_OK(c,
           dm_sum_by(c->session, x->array, dmt_dims_given(&d), d.ndims, scale.given, beta.given, out->array));
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, x);
    dmt_factor_unchanged(c, &scale);
    dmt_factor_unchanged(c, &beta);
}

static void test_sum_by(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_by", .cases = 1200, .fn = sum_by_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_by),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
