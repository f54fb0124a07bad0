/* The part of labels whose score is among the top_k largest: against loops */
#include "support/labelled.h"

enum { X, LABELS, OUT };

static void accuracy_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : 0}, alone;
    dmt_labelled_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 70) ? DMT_SMALL : DMT_SMOOTH); /* small: ties */
    dmt_host *labels = dmt_labels_add(c, &l, &v);
    dmt_layer_add(c, &l, "out", 0, 1, (int64_t[]){1});
    if (v.options.ignore_label >= v.classes) {
        v.options.ignore_label = 0;
    }
    for (int64_t i = 0; i < labels->count; i++) {
        labels->v[i] = labels->v[i] >= v.classes ? 0 : labels->v[i];
    }
    int top = (int)dmt_int(&c->random, 1, v.classes);
    dmt_say(c, "\n    top_k %d", top);
    dmt_layer_make(c, &l, 1u << OUT);
    int64_t counted = 0, right = 0;
    for (int64_t i = 0; i < v.count; i++) {
        if (dmt_ignored(&v, labels->v[i])) {
            continue;
        }
        int64_t larger = 0;
        for (int64_t k = 0; k < v.classes; k++) { /* the label's own score is counted too */
            larger += x->v[i * v.classes + k] >= x->v[i * v.classes + (int64_t)labels->v[i]];
        }
        counted++;
        right += larger <= top;
    }
    dmt_sums sums = dmt_sums_make(c, l.host[OUT]);
    dmt_sums_add(&sums, 0, counted > 0 ? (long double)right / (long double)counted : 0, 1);
    dmt_sums_end(&sums, NULL, 0, dmt_eps(DM_F64) * 4);
    DMT_OK(c, dm_accuracy(c->session, &v.options, top, l.array[X], l.array[LABELS], l.array[OUT]));
    dmt_operand_check(c, l.operand[OUT], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c,
               dm_accuracy(c->session, &v.options, top, alone.array[X], alone.array[LABELS], alone.array[OUT]));
        dmt_layer_same(c, &l, &alone, OUT);
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "accuracy", .cases = 500, .fn = accuracy_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accuracy)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
