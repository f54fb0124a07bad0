/* Elementwise functions on random layouts: exp, tanh, relu. The values of all rows are compared with NumPy's elsewhere. */
#include "support/oracle.h"

#include <math.h>

typedef struct function {
    const char *name;
    dm_status (*call)(dm_session *session, dm_array a, dm_array out);
    long double (*value)(long double v);
    bool floats_only;
} function;

static long double positive_part(long double v)
{
    return isnan(v) || v > 0 ? v : 0;
}

static const function functions[] = {
    {"exp", dm_exp, expl, true},
    {"tanh", dm_tanh, tanhl, true},
    {"relu", dm_relu, positive_part, false},
};

/* Numbers where exp and tanh change character, kept where exp of them fits the type that computes it. */
static void add_range(dmt_case *c, dmt_host *h)
{
    static const double points[] = {-80, -30, -9, -1e-3, -1e-6, 1e-9, 1e-4, 0.5, 9, 20, 30, 80};
    for (int64_t i = 0; i < h->count; i++) {
        if (dmt_is_float(h->dtype) && dmt_chance(&c->random, 30)) {
            h->v[i] = dmt_from_real(h->dtype,
                                    points[dmt_int(&c->random, 0, 11)] * (0.9 + 0.1 * dmt_unit(&c->random)));
        }
    }
}

static dmt_expected expect(dmt_case *c, const function *f, const dmt_host *a, const dmt_host *like)
{
    dmt_expected e = {dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape),
                      dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape)};
    dm_dtype computing = dmt_computing(a->dtype, a->dtype, like->dtype);
    for (int64_t i = 0; i < like->count; i++) {
        long double v = f->value(a->v[i]);
        if (dmt_all_whole(a, a, like)) {
            e.want->v[i] = dmt_from_whole(like->dtype, (int64_t)v);
        } else {
            e.want->v[i] = v;
            e.bound->v[i] = f->floats_only ? 4 * (dmt_eps(computing) * fabsl(v) + dmt_tiny(computing))
                                           : dmt_eps(computing) * (dmt_is_float(a->dtype) ? 0 : fabsl(v));
        }
    }
    return e;
}

static void function_case(dmt_case *c)
{
    const function *f = c->user;
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dm_dtype from = f->floats_only ? dmt_float_random(c) : dmt_ewise_random(c);
    dm_dtype to = dmt_chance(&c->random, 50) ? from
                  : f->floats_only           ? dmt_float_random(c)
                                             : dmt_ewise_random(c);
    dmt_host *a_value = dmt_host_for_ewise(c, from, ndim, shape);
    add_range(c, a_value);
    bool in_place = from == to && dmt_chance(&c->random, 30);
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0);
    dmt_operand *out = a;
    if (!in_place) {
        out = dmt_operand_make(c, "out", dmt_host_for_ewise(c, to, ndim, shape), DMT_UNSET);
    }
    dmt_expected e = expect(c, f, a_value, out->value);
    dmt_status_is(c, f->call(c->session, a->array, out->array), DM_OK, f->name);
    dmt_operand_check(c, out, e.want, e.bound);
    if (!in_place) {
        dmt_operand_unchanged(c, a);
    }
}

static void run_function(int which)
{
    function f = functions[which];
    dmt_run(&(dmt_suite){.name = f.name, .cases = 600, .fn = function_case, .user = &f});
}

static void test_exp(void **state)
{
    (void)state;
    run_function(0);
}

static void test_tanh(void **state)
{
    (void)state;
    run_function(1);
}

static void test_relu(void **state)
{
    (void)state;
    run_function(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_relu),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
