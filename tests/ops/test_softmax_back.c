/* The gradient of softmax with loss: against loops, and against central differences of the loss */
#include "support/factors.h"
#include "support/labelled.h"

#include <math.h>

enum { PROB, LABELS, DX };

static void back_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_factor scale = dmt_factor_make(c, "scale", false, false);
    dmt_labelled_random(c, &v);
    dmt_host *prob = dmt_layer_add(c, &l, "prob", 0, v.ndim, v.shape);
    dmt_host *labels = dmt_labels_add(c, &l, &v);
    dmt_layer_add(c, &l, "dx", 0, v.ndim, v.shape);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    long double divisor = dmt_normaliser(&v, labels);
    for (int64_t i = 0; i < prob->count; i++) {
        int64_t at = i / v.classes;
        long double factor = dmt_ignored(&v, labels->v[at]) ? 0 : (long double)scale.value / divisor;
        dmt_sums_add(&sums, i, prob->v[i], factor);
        dmt_sums_add(&sums, i, (long double)(i % v.classes) == labels->v[at] ? -1 : 0, factor);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_softmax_loss_backward_by(c->session, &v.options, l.array[PROB], l.array[LABELS], scale.given,
                                          l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_softmax_loss_backward_by(c->session, &v.options, alone.array[PROB], alone.array[LABELS],
                                              scale.given, alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static double loss_of(dmt_case *c, const dmt_labelled *v, dmt_layer *l, dm_array prob, dm_array loss)
{
    double value;
    DMT_OK(c, dm_softmax_loss(c->session, &v->options, l->array[0], l->array[1], prob, loss));
    DMT_OK(c, dm_item(c->session, loss, (int64_t[]){0}, &value));
    return value;
}

/* In f64: (loss(x + h) - loss(x - h)) / 2 h for some elements of x. */
static void differences_case(dmt_case *c)
{
    const double h = 1e-5;
    dmt_labelled v;
    dmt_layer l = {.all = DM_F64};
    dm_array prob, loss, dx;
    dmt_labelled_random(c, &v);
    v.options.ignores = 0;
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_labels_add(c, &l, &v);
    dmt_layer_make(c, &l, 0);
    DMT_OK(c, dm_array_create(c->session, DM_F64, v.ndim, v.shape, NULL, &prob));
    DMT_OK(c, dm_array_create(c->session, DM_F64, v.ndim, v.shape, NULL, &dx));
    DMT_OK(c, dm_vector(c->session, DM_F64, 1, &loss));
    (void)loss_of(c, &v, &l, prob, loss);
    DMT_OK(c, dm_softmax_loss_backward(c->session, &v.options, prob, l.array[1], 1, dx));
    for (int64_t i = 0; i < x->count; i += 1 + x->count / 5) {
        int64_t at[4];
        double got;
        dmt_unlinear(v.ndim, v.shape, i, at);
        DMT_OK(c, dm_set_item(c->session, l.array[0], at, (double)x->v[i] + h));
        double up = loss_of(c, &v, &l, DM_NO_ARRAY, loss);
        DMT_OK(c, dm_set_item(c->session, l.array[0], at, (double)x->v[i] - h));
        double down = loss_of(c, &v, &l, DM_NO_ARRAY, loss);
        DMT_OK(c, dm_set_item(c->session, l.array[0], at, (double)x->v[i]));
        DMT_OK(c, dm_item(c->session, dx, at, &got));
        if (fabs(got - (up - down) / (2 * h)) > 1e-7) {
            dmt_fail(c, "element %d: the gradient is %.12g, the difference %.12g", (int)i, got,
                     (up - down) / (2 * h));
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, prob));
    DMT_OK(c, dm_array_destroy(c->session, dx));
    DMT_OK(c, dm_array_destroy(c->session, loss));
}

static void test_softmax_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "softmax_back", .cases = 400, .fn = back_case});
}

static void test_differences(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "softmax_differences", .cases = 30, .fn = differences_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax_back), cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
