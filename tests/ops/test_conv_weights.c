/* The gradients of a convolution by its weights and its bias: against loops, and the same bits in all layouts
 */
#include "support/factors.h"
#include "support/layers.h"
#include "support/refusal.h"

enum { X, DY, DW, DB };

typedef struct terms {
    dmt_sums *sums;
    const dmt_host *x, *dy;
} terms;

static void add_term(void *context, int64_t x, int64_t w, int64_t y)
{
    terms *t = context;
    dmt_sums_add(t->sums, w, t->x->v[x], t->dy->v[y]);
}

static void weights_case(dmt_case *c)
{
    dmt_conv v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_factor beta = dmt_factor_make(c, "beta", false, false);
    dmt_conv_random(c, &v);
    if (dmt_chance(&c->random, 10)) { /* so large that the sum goes in segments */
        v.conv.group = 1;
        v.w[0] = v.y[3] = 150;
        v.w[3] = v.x[3] = 30;
    }
    dmt_layer_add(c, &l, "x", 0, 4, v.x);
    dmt_layer_add(c, &l, "dy", 0, 4, v.y);
    dmt_layer_add(c, &l, "dw", 0, 4, v.w);
    dmt_layer_add(c, &l, "db", 0, 1, &v.w[0]);
    l.left_out[DB] = dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, beta.value == 0 ? 1u << DW | 1u << DB : 0);
    dmt_sums w = dmt_sums_make(c, l.host[DW]), b = dmt_sums_make(c, l.host[DB]);
    dmt_conv_visit(&v, &(terms){&w, l.host[X], l.host[DY]}, add_term);
    for (int64_t i = 0; i < l.host[DY]->count; i++) {
        dmt_sums_add(&b, i % v.y[3], l.host[DY]->v[i], 1);
    }
    dm_dtype type = l.host[X]->dtype;
    bool rounds = !dmt_on_cpu() && type == l.host[DY]->dtype && dmt_eps(type) > dmt_eps(DM_F32);
    v.conv.wire =
        dmt_layer_wire(c, l.host[X], l.host[DY]); /* GPUs round what a slice has to the type of x and dy */
    dmt_host *rounded = v.conv.wire || rounds ? dmt_sums_rounded(c, &w, v.conv.wire ? DM_BF16 : type) : NULL;
    w.terms += 60 * w.want->count;
    dmt_sums_end(&w, l.host[DW], beta.value, dmt_layer_eps(&l));
    dmt_sums_end(&b, l.host[DB], beta.value, dmt_layer_eps(&l));
    dmt_sums_widen(&w, rounded);
    DMT_OK(c, dm_conv_backward_weights_by(c->session, &v.conv, l.array[X], l.array[DY], beta.given, l.array[DW],
                                          l.array[DB]));
    dmt_operand_check(c, l.operand[DW], w.want, w.bound);
    if (!l.left_out[DB]) {
        dmt_operand_check(c, l.operand[DB], b.want, b.bound);
    }
    if (v.conv.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_conv_backward_weights_by(c->session, &v.conv, alone.array[X], alone.array[DY], beta.given,
                                              alone.array[DW], alone.array[DB]));
        dmt_layer_same(c, &l, &alone, DW);
        dmt_layer_same(c, &l, &alone, DB);
    }
}

/* Without channels in x there are no weights, and y is the bias. (UBSan: kernels are given no NULL to fill.) */
static void no_channels(dmt_case *c)
{
    const int64_t x_shape[4] = {2, 3, 3, 0}, w_shape[4] = {1, 2, 2, 0}, y_shape[4] = {2, 2, 2, 1}, one = 1;
    const dm_conv conv = DM_CONV_INIT;
    dm_session *s = c->session;
    dm_array x, w, y, bias;
    double got[8], sum = 0;
    DMT_OK(c, dm_array_create(s, DM_F64, 4, x_shape, NULL, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 4, w_shape, NULL, &w));
    DMT_OK(c, dm_array_create(s, DM_F64, 4, y_shape, NULL, &y));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, &one, NULL, &bias));
    DMT_OK(c, dm_fill(s, bias, 3));
    DMT_OK(c, dm_conv_forward(s, &conv, x, w, bias, y));
    DMT_OK(c, dm_read(s, y, got));
    for (int i = 0; i < 8; i++) {
        if (got[i] != 3) {
            dmt_fail(c, "y[%d] is %g, not 3", i, got[i]);
        }
    }
    DMT_OK(c, dm_conv_backward_data(s, &conv, y, w, x));
    DMT_OK(c, dm_conv_backward_weights(s, &conv, x, y, 2, w, bias));
    DMT_OK(c, dm_read(s, bias, &sum));
    if (sum != 2 * 3 + 8 * 3) {
        dmt_fail(c, "db is %g, not 30", sum);
    }
    const dm_array made[] = {x, w, y, bias};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}
DMT_ONE_CASE(no_channels)

static void test_conv_weights(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "conv_weights", .cases = 400, .fn = weights_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv_weights), cmocka_unit_test(test_no_channels)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
