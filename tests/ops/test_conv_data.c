/* The gradient of a convolution by its input: against loops, and the same bits in all layouts */
#include "support/layers.h"

enum { DY, W, DX };

typedef struct terms {
    dmt_sums *sums;
    const dmt_host *dy, *w;
} terms;

static void add_term(void *context, int64_t x, int64_t w, int64_t y)
{
    terms *t = context;
    dmt_sums_add(t->sums, x, t->dy->v[y], t->w->v[w]);
}

static void data_case(dmt_case *c)
{
    dmt_conv v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_conv_random(c, &v);
    dmt_layer_add(c, &l, "dy", 0, 4, v.y);
    dmt_layer_add(c, &l, "w", 0, 4, v.w);
    dmt_layer_add(c, &l, "dx", 0, 4, v.x);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    dmt_conv_visit(&v, &(terms){&sums, l.host[DY], l.host[W]}, add_term);
    sums.terms += 60 * sums.want->count; /* windows of an element, in unequal numbers */
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_conv_backward_data(c->session, &v.conv, l.array[DY], l.array[W], l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.conv.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_conv_backward_data(c->session, &v.conv, alone.array[DY], alone.array[W], alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static void test_conv_data(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "conv_data", .cases = 400, .fn = data_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv_data)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
