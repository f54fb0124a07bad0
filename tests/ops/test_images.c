/* Images of bytes as the input of a net: against loops, and the same bits in all layouts */
#include "support/layers.h"
#include "support/refusal.h"

#include <math.h>

enum { X, PLACES, MEAN, Y };
enum { NO_MEAN, OF_CHANNELS, OF_ELEMENTS };

static int64_t within(long double at, int64_t most)
{
    return at < 0 ? 0 : at > (long double)most ? most : (int64_t)at;
}

static void images_case(dmt_case *c)
{
    dmt_random *r = &c->random;
    dm_images images = DM_IMAGES_INIT;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    const int64_t n = dmt_int(r, dmt_chance(r, 10) ? 0 : 1, 9), channels = dmt_int(r, 1, 4);
    const int64_t rows = dmt_int(r, 1, 5), columns = dmt_int(r, 1, dmt_chance(r, 5) ? 600 : 7);
    const int64_t whole[2] = {rows + dmt_int(r, 0, 4), columns + dmt_int(r, 0, 4)};
    const bool cut = dmt_chance(r, 50); /* x is the windows */
    const int64_t in[2] = {cut ? rows : whole[0], cut ? columns : whole[1]};
    const int kind = (int)dmt_int(r, NO_MEAN, OF_ELEMENTS);
    images.slices = dmt_layer_slices(c);
    images.scale = dmt_chance(r, 30) ? 1 : 0.25 * (double)dmt_int(r, -8, 8);
    dmt_say(c, "\n    windows %d mean %d scale %g slices %d", (int)cut, kind, images.scale, images.slices);

    dmt_host *x =
        dmt_layer_add(c, &l, "x", dmt_chance(r, 60) ? DM_U8 : 0, 4, (int64_t[]){n, channels, in[0], in[1]});
    dmt_host *places =
        dmt_layer_add(c, &l, "places", dmt_chance(r, 70) ? DM_I32 : DM_I64, 2, (int64_t[]){n, 3});
    dmt_host *mean =
        dmt_layer_add(c, &l, "mean", 0, kind == OF_ELEMENTS ? 3 : 1, (int64_t[]){channels, whole[0], whole[1]});
    dmt_host *y = dmt_layer_add(c, &l, "y", 0, 4, (int64_t[]){n, rows, columns, channels});
    l.left_out[MEAN] = kind == NO_MEAN;
    for (int64_t i = 0; i < x->count && x->dtype == DM_U8; i++) {
        x->v[i] = (long double)dmt_int(r, 0, 255);
    }
    for (int64_t i = 0; i < places->count; i++) { /* some outside */
        places->v[i] = (long double)(i % 3 == 2 ? dmt_int(r, 0, 1) : dmt_int(r, -1, 5));
    }
    dmt_layer_make(c, &l, 1u << Y);

    dmt_sums sums = dmt_sums_make(c, y);
    for (int64_t e = 0; e < y->count; e++) {
        int64_t at[4];
        dmt_unlinear(4, y->shape, e, at);
        const long double *place = places->v + 3 * at[0];
        const bool larger = !cut || kind == OF_ELEMENTS; /* what a place is in */
        const int64_t top = larger ? within(place[0], whole[0] - rows) : 0,
                      left = larger ? within(place[1], whole[1] - columns) : 0;
        const int64_t i = at[1], j = place[2] != 0 ? columns - 1 - at[2] : at[2];
        const int64_t from =
            ((at[0] * channels + at[3]) * in[0] + (cut ? 0 : top) + i) * in[1] + (cut ? 0 : left) + j;
        const long double less = kind == NO_MEAN ? 0
                                 : kind == OF_CHANNELS
                                     ? mean->v[at[3]]
                                     : mean->v[(at[3] * whole[0] + top + i) * whole[1] + left + j];
        dmt_sums_add(&sums, e, x->v[from] - less, images.scale);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_images_forward(c->session, &images, l.array[X], l.array[PLACES], l.array[MEAN], l.array[Y]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    if (images.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_images_forward(c->session, &images, alone.array[X], alone.array[PLACES], alone.array[MEAN],
                                    alone.array[Y]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

static void refusals(dmt_case *c)
{
    dm_images v = DM_IMAGES_INIT, bad = v;
    dmt_things t = dmt_things_make(c);
    const int64_t xs[] = {2, 3, 5, 6}, ys[] = {2, 4, 4, 3}, ps[] = {2, 3}, larger[] = {2, 6, 4, 3},
                  cubes[] = {2, 3, 3, 3}, bs[] = {3}, planes[] = {3, 5, 5};
    dm_array x = dmt_thing_make(c, DM_U8, 4, xs), y = dmt_thing_make(c, DM_F32, 4, ys),
             p = dmt_thing_make(c, DM_I32, 2, ps), large = dmt_thing_make(c, DM_F32, 4, larger),
             cube = dmt_thing_make(c, DM_F32, 4, cubes), mean = dmt_thing_make(c, DM_F32, 1, bs),
             plane = dmt_thing_make(c, DM_F32, 3, planes);
    bad.slices = -1;
    REFUSED(DMT_ONE(ARG), "DM_IMAGES_INIT", dm_images_forward(c->session, NULL, x, p, mean, y));
    REFUSED(DMT_ONE(ARG), "slices", dm_images_forward(c->session, &bad, x, p, mean, y));
    REFUSED(DMT_ONE(SHAPE), "x has 2 dims", dm_images_forward(c->session, &v, t.f, p, mean, y));
    REFUSED(DMT_ONE(SHAPE), "y has 2 dims", dm_images_forward(c->session, &v, x, p, mean, t.f));
    REFUSED(DMT_ONE(SHAPE), "y is", dm_images_forward(c->session, &v, x, p, mean, large));
    REFUSED(DMT_ONE(SHAPE), "places is", dm_images_forward(c->session, &v, x, t.whole, mean, y));
    REFUSED(DMT_ONE(DTYPE), "places", dm_images_forward(c->session, &v, x, t.f, mean, y));
    REFUSED(DMT_ONE(SHAPE), "mean is", dm_images_forward(c->session, &v, x, p, t.row, y));
    REFUSED(DMT_ONE(SHAPE), "mean is", dm_images_forward(c->session, &v, x, p, plane, y));
    REFUSED(DMT_ONE(OVERLAP), "share", dm_images_forward(c->session, &v, cube, p, mean, cube));
    dmt_thing_end(c, x, DM_U8, 4, xs);
    dmt_thing_end(c, y, DM_F32, 4, ys);
    dmt_thing_end(c, p, DM_I32, 2, ps);
    dmt_thing_end(c, large, DM_F32, 4, larger);
    dmt_thing_end(c, cube, DM_F32, 4, cubes);
    dmt_thing_end(c, mean, DM_F32, 1, bs);
    dmt_thing_end(c, plane, DM_F32, 3, planes);
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_images(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "images", .cases = 300, .fn = images_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_images), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
