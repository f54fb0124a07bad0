/* Softmax with loss: against loops, and the same bits in all layouts */
#include "support/labelled.h"
#include "support/refusal.h"

#include <float.h>
#include <math.h>

enum { X, LABELS, PROB, LOSS };

/* The labels are within the classes, or ignored. */
static void keep_labels(dmt_labelled *v)
{
    bool outside = v->options.ignore_label >= v->classes;
    v->options.ignores = outside ? 0 : v->options.ignores;
}

static void loss_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_labelled_random(c, &v);
    keep_labels(&v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *labels = dmt_labels_add(c, &l, &v);
    dmt_host *prob = dmt_layer_add(c, &l, "prob", 0, v.ndim, v.shape);
    dmt_layer_add(c, &l, "loss", 0, (int)dmt_int(&c->random, 0, 2), (int64_t[]){1, 1});
    l.left_out[PROB] = dmt_chance(&c->random, 30);
    if (dmt_chance(&c->random, 15) && x->dtype == DM_F32) { /* probabilities below FLT_MIN */
        for (int64_t i = 0; i < x->count; i++) {
            x->v[i] *= 128;
        }
    }
    dmt_layer_make(c, &l, 1u << PROB | 1u << LOSS);
    long double eps = dmt_layer_eps(&l), divisor = dmt_normaliser(&v, labels);
    dmt_host *p = dmt_host_make(&c->scratch, prob->dtype, v.ndim, v.shape),
             *bound = dmt_host_copy(&c->scratch, p);
    dmt_sums loss = dmt_sums_make(c, l.host[LOSS]);
    long double wrong = 0;
    for (int64_t i = 0; i < v.count; i++) {
        long double top = -INFINITY, sum = 0, spread = 0;
        for (int64_t k = 0; k < v.classes; k++) {
            top = fmaxl(top, x->v[i * v.classes + k]);
        }
        for (int64_t k = 0; k < v.classes; k++) {
            sum += expl(x->v[i * v.classes + k] - top);
        }
        for (int64_t k = 0; k < v.classes; k++) {
            int64_t at = i * v.classes + k;
            spread = fmaxl(spread, top - x->v[at]);
            p->v[at] = expl(x->v[at] - top) / sum;
            bound->v[at] = p->v[at] * eps * (top - x->v[at] + 20) + 1e-37L; /* f32 has no exact small ones */
        }
        if (!dmt_ignored(&v, labels->v[i])) {
            long double at = p->v[i * v.classes + (int64_t)labels->v[i]];
            dmt_sums_add(&loss, 0, -logl(fmaxl(at, FLT_MIN)) / divisor, 1);
            wrong += eps * (spread + 20) * 3 / divisor + (at < 4 * FLT_MIN ? 0.5L / divisor : 0);
        }
    }
    dmt_sums_end(&loss, NULL, 0, eps);
    loss.bound->v[0] += wrong;
    DMT_OK(c,
           dm_softmax_loss(c->session, &v.options, l.array[X], l.array[LABELS], l.array[PROB], l.array[LOSS]));
    dmt_operand_check(c, l.operand[LOSS], loss.want, loss.bound);
    if (!l.left_out[PROB]) {
        dmt_operand_check(c, l.operand[PROB], p, bound);
    }
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_softmax_loss(c->session, &v.options, alone.array[X], alone.array[LABELS],
                                  alone.array[PROB], alone.array[LOSS]));
        dmt_layer_same(c, &l, &alone, PROB);
        dmt_layer_same(c, &l, &alone, LOSS);
    }
}

/* A probability that is too small to be told from 0 costs as much as FLT_MIN. */
static void floor_case(dmt_case *c)
{
    dm_loss options = DM_LOSS_INIT;
    dm_array x, labels, loss;
    double got;
    DMT_OK(c, dm_matrix(c->session, DM_F32, 1, 2, &x));
    DMT_OK(c, dm_vector(c->session, DM_F32, 1, &labels));
    DMT_OK(c, dm_vector(c->session, DM_F64, 1, &loss));
    DMT_OK(c, dm_array_write(c->session, x, NULL, NULL, (float[]){500, 0}, 0));
    DMT_OK(c, dm_array_write(c->session, labels, NULL, NULL, (float[]){1}, 0));
    DMT_OK(c, dm_softmax_loss(c->session, &options, x, labels, DM_NO_ARRAY, loss));
    DMT_OK(c, dm_item(c->session, loss, (int64_t[]){0}, &got));
    if (fabs(got - 87.33654475055310898657) > 1e-10) { /* 126 log 2 */
        dmt_fail(c, "the loss is %.17g", got);
    }
    DMT_OK(c, dm_fill(c->session, labels, 2));
    DMT_OK(c, dm_softmax_loss(c->session, &options, x, labels, DM_NO_ARRAY, loss));
    DMT_OK(c, dm_item(c->session, loss, (int64_t[]){0}, &got));
    if (!isnan(got)) {
        dmt_fail(c, "with a label outside the classes the loss is %.17g", got);
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, labels));
    DMT_OK(c, dm_array_destroy(c->session, loss));
}
DMT_ONE_CASE(floor_case)

static void refusals(dmt_case *c)
{
    dm_loss options = DM_LOSS_INIT, bad = options;
    dmt_things t = dmt_things_make(c);
    dm_array labels = dmt_thing_make(c, DM_F32, 1, (int64_t[]){6}), loss = dmt_thing_make(c, DM_F32, 0, NULL);
    bad.normalize = 4;
    REFUSED(DMT_ONE(ARG), "normalize", dm_softmax_loss(c->session, &bad, t.f, labels, DM_NO_ARRAY, loss));
    REFUSED(DMT_ONE(ARG), "DM_LOSS_INIT", dm_softmax_loss(c->session, NULL, t.f, labels, DM_NO_ARRAY, loss));
    REFUSED(DMT_ONE(SHAPE), "labels", dm_softmax_loss(c->session, &options, t.f, t.row, DM_NO_ARRAY, loss));
    REFUSED(DMT_ONE(SHAPE), "loss", dm_softmax_loss(c->session, &options, t.f, labels, DM_NO_ARRAY, t.row));
    REFUSED(DMT_ONE(SHAPE), "prob", dm_softmax_loss(c->session, &options, t.f, labels, t.wide, loss));
    REFUSED(DMT_ONE(SHAPE), "N x ... x C",
            dm_softmax_loss(c->session, &options, labels, labels, DM_NO_ARRAY, loss));
    REFUSED(DMT_ONE(SHAPE), "dx", dm_softmax_loss_backward(c->session, &options, t.f, labels, 1, t.wide));
    REFUSED(DMT_ONE(ARG), "top_k", dm_accuracy(c->session, &options, 6, t.f, labels, loss));
    REFUSED(DMT_ONE(ARG), "top_k", dm_accuracy(c->session, &options, 0, t.f, labels, loss));
    dmt_thing_end(c, labels, DM_F32, 1, (int64_t[]){6});
    dmt_thing_end(c, loss, DM_F32, 0, NULL);
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_softmax_loss(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "softmax_loss", .cases = 400, .fn = loss_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax_loss), cmocka_unit_test(test_floor_case),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
