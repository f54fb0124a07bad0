/* y = x convolved with w, + bias: against loops, and the same bits in all layouts */
#include "support/layers.h"
#include "support/refusal.h"

#include <stdlib.h>
#include <string.h>

enum { X, W, BIAS, Y };

typedef struct terms {
    dmt_sums *sums;
    const dmt_host *x, *w;
} terms;

static void add_term(void *context, int64_t x, int64_t w, int64_t y)
{
    terms *t = context;
    dmt_sums_add(t->sums, y, t->x->v[x], t->w->v[w]);
}

static void conv_case(dmt_case *c)
{
    dmt_conv v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t shape[4];
    dmt_conv_random(c, &v);
    dmt_layer_add(c, &l, "x", 0, 4, v.x);
    dmt_layer_add(c, &l, "w", 0, 4, v.w);
    dmt_layer_add(c, &l, "bias", 0, 1, &v.w[0]);
    dmt_layer_add(c, &l, "y", 0, 4, v.y);
    l.left_out[BIAS] = dmt_chance(&c->random, 30);
    v.conv.relu = dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, 1u << Y);
    DMT_OK(c, dm_conv_shape(&v.conv, v.x, v.w, shape));
    if (memcmp(shape, v.y, sizeof shape) != 0) {
        dmt_fail(c, "dm_conv_shape says %d x %d", (int)shape[1], (int)shape[2]);
    }
    dmt_sums sums = dmt_sums_make(c, l.host[Y]);
    dmt_host *before = dmt_sums_make(c, l.host[Y]).bound;
    dmt_conv_visit(&v, &(terms){&sums, l.host[X], l.host[W]}, add_term);
    for (int64_t i = 0; i < sums.want->count && !l.left_out[BIAS]; i++) {
        dmt_sums_add(&sums, i, l.host[BIAS]->v[i % v.y[3]], 1);
    }
    dm_dtype type = l.host[Y]->dtype;
    bool twice =
        !l.left_out[BIAS] && !dmt_on_cpu() && dmt_eps(type) > dmt_eps(DM_F32); /* cuDNN may round y before */
    for (int64_t i = 0; i < sums.want->count; i++) {
        before->v[i] = twice ? sums.bound->v[i] * dmt_eps(type) + dmt_tiny(type) : 0;
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    for (int64_t i = 0; i < sums.want->count; i++) {
        sums.bound->v[i] += before->v[i];
        sums.want->v[i] = v.conv.relu && sums.want->v[i] < 0 ? 0 : sums.want->v[i];
    }
    DMT_OK(c, dm_conv_forward(c->session, &v.conv, l.array[X], l.array[W], l.array[BIAS], l.array[Y]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    dmt_operand_unchanged(c, l.operand[X]);
    if (v.conv.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_conv_forward(c->session, &v.conv, alone.array[X], alone.array[W], alone.array[BIAS],
                                  alone.array[Y]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

static double differs(dmt_case *c, const char *text, dm_array a, dm_array b)
{
    dm_array one;
    double value;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &one));
    DMT_OK(c, dm_map(c->session, text, 2, (dm_map_arg[]){DM_ARG("a", a), DM_ARG("b", b)}, one));
    DMT_OK(c, dm_item(c->session, one, NULL, &value));
    DMT_OK(c, dm_array_destroy(c->session, one));
    return value;
}

/* y is some channels of a wider array, as before a concatenation: the others stay. Sums of small integers, so
 * that no order of them rounds. */
static void view_case(dmt_case *c)
{
    enum { SAMPLES = 12, SIDE = 5, IN = 16, WIDE = 64 };
    static const dm_dtype types[] = {DM_F32, DM_F64, DM_BF16, DM_F16};
    const int64_t lo = dmt_int(&c->random, 0, 4) * 8 + (c->number % 3 == 2),
                  channels = dmt_int(&c->random, 1, 3) * 8;
    const int64_t kernel = dmt_int(&c->random, 0, 1) * 2 + 1, group = dmt_chance(&c->random, 20) ? 2 : 1;
    const dm_dtype type = types[c->number / 3 % 4];
    dm_session *s = c->session;
    dm_conv conv = DM_CONV_INIT;
    conv.pad[0] = conv.pad[1] = (int)kernel / 2;
    conv.group = (int)group;
    conv.relu = dmt_chance(&c->random, 50);
    conv.slices = (int)dmt_int(&c->random, 0, 4);
    const int64_t x_shape[] = {SAMPLES, SIDE, SIDE, IN}, w_shape[] = {channels, kernel, kernel, IN / group};
    const int64_t y_shape[] = {SAMPLES, SIDE, SIDE, channels}, wide[] = {SAMPLES, SIDE, SIDE, WIDE};
    dm_layout rows = dm_layout_rows(s);
    dm_array x, w, bias, y, all, before, view;
    DMT_OK(c, dm_array_create(s, type, 4, x_shape, &rows, &x));
    DMT_OK(c, dm_array_create(s, type, 4, w_shape, NULL, &w));
    DMT_OK(c, dm_array_create(s, type == DM_F64 ? DM_F64 : DM_F32, 1, &channels, NULL, &bias));
    DMT_OK(c, dm_array_create(s, type, 4, y_shape, &rows, &y));
    DMT_OK(c, dm_array_create(s, type, 4, wide, &rows, &all));
    DMT_OK(c, dm_array_create(s, type, 4, wide, &rows, &before));
    DMT_OK(c, dm_map(s, "floor(3 * uniform(1)) - 1", 0, NULL, x));
    DMT_OK(c, dm_map(s, "floor(3 * uniform(2)) - 1", 0, NULL, w));
    DMT_OK(c, dm_map(s, "floor(9 * uniform(3)) - 4", 0, NULL, bias));
    DMT_OK(c, dm_map(s, "floor(9 * uniform(4)) - 4", 0, NULL, all));
    DMT_OK(c, dm_copy(s, all, before));
    DMT_OK(c, dm_array_view(s, all, (int64_t[]){0, 0, 0, lo}, y_shape, &view));
    dm_array with = dmt_chance(&c->random, 70) ? bias : DM_NO_ARRAY;
    DMT_OK(c, dm_conv_forward(s, &conv, x, w, with, y));
    DMT_OK(c, dm_conv_forward(s, &conv, x, w, with, view));
    double made = differs(c, "sum(abs(a - b))", view, y);
    DMT_OK(c, dm_array_destroy(s, view));
    DMT_OK(c, dm_array_view(s, before, (int64_t[]){0, 0, 0, lo}, y_shape, &view));
    DMT_OK(c, dm_copy(s, y, view));
    double beside = differs(c, "sum(abs(a - b))", all, before);
    if (made != 0 || beside != 0) {
        dmt_fail(c, "channels %d to %d of %d, kernel %d: they differ by %g, with all others by %g", (int)lo,
                 (int)(lo + channels), WIDE, (int)kernel, made, beside);
    }
    dm_array arrays[] = {x, w, bias, y, view, all, before};
    for (int i = 0; i < 7; i++) {
        DMT_OK(c, dm_array_destroy(s, arrays[i]));
    }
}

static void refusals(dmt_case *c)
{
    dm_conv v = DM_CONV_INIT, bad = v, old = v;
    int64_t y[4];
    const int64_t x_shape[] = {5, 6, 6, 4}, w_shape[] = {8, 3, 3, 4}, y_shape[] = {5, 4, 4, 8};
    dm_array x = dmt_thing_make(c, DM_F32, 4, x_shape), w = dmt_thing_make(c, DM_F32, 4, w_shape),
             out = dmt_thing_make(c, DM_F32, 4, y_shape), flat = dmt_thing_make(c, DM_F32, 1, (int64_t[]){8}),
             whole = dmt_thing_make(c, DM_I32, 4, y_shape);
    bad.stride[1] = 0;
    REFUSED(DMT_ONE(ARG), "stride[1]", dm_conv_forward(c->session, &bad, x, w, flat, out));
    bad = v;
    bad.group = 3;
    REFUSED(DMT_ONE(SHAPE), "groups", dm_conv_forward(c->session, &bad, x, w, flat, out));
    bad = v;
    bad.slices = -1;
    REFUSED(DMT_ONE(ARG), "slices", dm_conv_forward(c->session, &bad, x, w, flat, out));
    bad = v;
    bad.pad[0] = 1;
    REFUSED(DMT_ONE(SHAPE), "y is 5x4x4x8, but", dm_conv_forward(c->session, &bad, x, w, flat, out));
    REFUSED(DMT_ONE(ARG), "DM_CONV_INIT", dm_conv_forward(c->session, NULL, x, w, flat, out));
    old.size = 8;
    REFUSED(DMT_ONE(ARG), "DM_CONV_INIT", dm_conv_forward(c->session, &old, x, w, flat, out));
    bad = v;
    bad.wire = DM_F32;
    REFUSED(DMT_ONE(ARG), "wire is f32", dm_conv_forward(c->session, &bad, x, w, flat, out));
    bad.wire = (dm_dtype)99;
    REFUSED(DMT_ONE(ARG), "(99), not 0 or DM_BF16", dm_conv_shape(&bad, x_shape, w_shape, y));
    REFUSED(DMT_ONE(SHAPE), "x has 1 dims", dm_conv_forward(c->session, &v, flat, w, flat, out));
    REFUSED(DMT_ONE(SHAPE), "bias", dm_conv_forward(c->session, &v, x, w, x, out));
    REFUSED(DMT_ONE(DTYPE), "y has dtype i32", dm_conv_forward(c->session, &v, x, w, flat, whole));
    REFUSED(DMT_ONE(HANDLE), NULL, dm_conv_forward(c->session, &v, x, DM_NO_ARRAY, flat, out));
    REFUSED(DMT_ONE(SHAPE), "does not fit", dm_conv_shape(&v, (int64_t[]){1, 2, 9, 4}, w_shape, y));
    dmt_thing_end(c, x, DM_F32, 4, x_shape);
    dmt_thing_end(c, w, DM_F32, 4, w_shape);
    dmt_thing_end(c, out, DM_F32, 4, y_shape);
    dmt_thing_end(c, flat, DM_F32, 1, (int64_t[]){8});
    dmt_thing_end(c, whole, DM_I32, 4, y_shape);
}
DMT_ONE_CASE(refusals)

static void test_conv(void **state)
{
    const char *device = getenv("DMATH_DEVICE");
    const bool emulated = device && strcmp(device, "emulated") == 0;
    /* GPUs' libraries plan each new shape for some third of a second: all cases would take longer than CTest
     * lets them. */
    const int part = dmt_on_cpu() || emulated ? 1 : 4;
    (void)state;
    dmt_run(&(dmt_suite){.name = "conv", .cases = 400 / part, .fn = conv_case});
    dmt_run(&(dmt_suite){.name = "conv_views", .cases = 100 / part, .fn = view_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
