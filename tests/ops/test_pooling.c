/* y = the largest element of each window of x, or the mean: against loops */
#include "support/layers.h"
#include "support/refusal.h"

#include <math.h>
#include <stdlib.h>

enum { X, Y, WHICH };

static void pooling_case(dmt_case *c)
{
    dmt_pool v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t elements[DMT_POOL_MOST], size, shape[4];
    dmt_pool_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, 4, v.x);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 50) ? DMT_SMALL : DMT_SMOOTH); /* small: ties */
    dmt_layer_add(c, &l, "y", 0, 4, v.y);
    bool taps = dmt_chance(&c->random, 40);
    dmt_layer_add(c, &l, "which", taps ? DM_U8 : dmt_chance(&c->random, 50) ? DM_I32 : DM_I64, 4, v.y);
    v.pool.relu = dmt_chance(&c->random, 30);
    l.left_out[WHICH] = v.pool.method != DM_POOL_MAX || dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, 1u << Y | 1u << WHICH);
    DMT_OK(c, dm_pool_shape(&v.pool, v.x, shape));
    if (memcmp(shape, v.y, sizeof shape) != 0) {
        dmt_fail(c, "dm_pool_shape says %d x %d, not %d x %d", (int)shape[1], (int)shape[2], (int)v.y[1],
                 (int)v.y[2]);
    }
    dmt_sums sums = dmt_sums_make(c, l.host[Y]);
    dmt_host *which = dmt_host_make(&c->scratch, l.host[WHICH]->dtype, 4, v.y);
    for (int64_t i = 0; i < sums.want->count; i++) {
        int64_t n = dmt_pool_window(&v, i, elements, &size), best = -1;
        for (int64_t k = 0; k < n; k++) {
            best = best < 0 || x->v[elements[k]] > x->v[best] ? elements[k] : best;
            if (v.pool.method == DM_POOL_AVERAGE) {
                dmt_sums_add(&sums, i, x->v[elements[k]], 1.0L / (long double)size);
            }
        }
        bool none = best < 0 || (taps && v.pool.relu && !(x->v[best] > 0));
        which->v[i] = none   ? (taps ? DMT_POOL_NONE : -1)
                      : taps ? (long double)dmt_pool_tap(&v, i, best)
                             : (long double)(best / v.x[3] % (v.x[1] * v.x[2]));
        if (v.pool.method == DM_POOL_MAX) {
            sums.want->v[i] = best < 0 ? 0 : x->v[best];
        }
    }
    sums.terms += 200 * sums.want->count;
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_pool_forward(c->session, &v.pool, l.array[X], l.array[Y], l.array[WHICH]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    if (!l.left_out[WHICH]) {
        dmt_operand_check_same(c, l.operand[WHICH], which);
    }
    if (v.pool.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_pool_forward(c->session, &v.pool, alone.array[X], alone.array[Y], alone.array[WHICH]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

/* A number in a window, as it was taken forward, is all that the gradient needs. */
static void taps_back(dmt_case *c, dmt_pool *v, dm_array x, dm_array dy, const dmt_host *want)
{
    char text[400];
    dm_array y, which, dx;
    DMT_OK(c, dm_array_like(c->session, dy, 0, &y));
    DMT_OK(c, dm_array_like(c->session, dy, DM_U8, &which));
    DMT_OK(c, dm_array_create(c->session, want->dtype, 4, v->x, NULL, &dx));
    DMT_OK(c, dm_pool_forward(c->session, &v->pool, x, y, which));
    DMT_OK(c, dm_pool_backward_which(c->session, &v->pool, which, dy, dx));
    if (!dmt_host_same(dmt_read(c, dx, want->dtype, 4, v->x), want, text, sizeof text)) {
        dmt_fail(c, "the gradient by u8: %s", text);
    }
    DMT_OK(c, dm_array_destroy(c->session, y));
    DMT_OK(c, dm_array_destroy(c->session, which));
    DMT_OK(c, dm_array_destroy(c->session, dx));
}

/* Elements that are taken at random: by the numbers of a fill, with the same seed backward. Values are whole,
 * so that sums are exact. */
static void stochastic_case(dmt_case *c)
{
    dmt_pool v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : DM_F64};
    int64_t elements[DMT_POOL_MOST], size;
    dmt_pool_random(c, &v);
    v.pool.seed = dmt_bits(&c->random);
    v.pool.method = dmt_chance(&c->random, 70) ? DM_POOL_STOCHASTIC : DM_POOL_WEIGHTED;
    bool weighted = v.pool.method == DM_POOL_WEIGHTED;
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, 4, v.x);
    dmt_host_random(x, &c->random, DMT_SMALL);
    for (int64_t i = 0; i < x->count; i++) {
        x->v[i] = fabsl(x->v[i]);
    }
    dmt_layer_add(c, &l, "y", 0, 4, v.y);
    dmt_layer_add(c, &l, "which", DM_I32, 4, v.y);
    l.left_out[WHICH] = weighted;
    dmt_layer_make(c, &l, 1u << Y | 1u << WHICH);
    dm_array random, dx;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 4, v.y, NULL, &random));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 4, v.x, NULL, &dx));
    DMT_OK(c, dm_fill_uniform(c->session, random, 0, 1, v.pool.seed));
    dmt_host *u = dmt_read(c, random, DM_F32, 4, v.y);
    dmt_sums y = dmt_sums_make(c, l.host[Y]);
    dmt_host *which = dmt_host_make(&c->scratch, DM_I32, 4, v.y),
             *want = dmt_host_make(&c->scratch, DM_F64, 4, v.x);
    for (int64_t i = 0; i < u->count; i++) {
        int64_t n = dmt_pool_window(&v, i, elements, &size), k = 0;
        long double sum = 0, squares = 0, reached = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += x->v[elements[j]];
            squares += x->v[elements[j]] * x->v[elements[j]];
        }
        long double threshold = l.all == DM_F32 ? (float)sum * (float)u->v[i] : (double)sum * (double)u->v[i];
        for (k = 0; k < n - 1 && reached + x->v[elements[k]] < threshold; k++) {
            reached += x->v[elements[k]];
        }
        which->v[i] = n > 0 ? (long double)(elements[k] / v.x[3] % (v.x[1] * v.x[2])) : -1;
        dmt_sums_add(&y, i, weighted ? (sum > 0 ? squares / sum : 0) : n > 0 ? x->v[elements[k]] : 0, 1);
        if (n > 0) {
            want->v[elements[k]] += y.want->v[i];
        }
    }
    dmt_sums_end(&y, NULL, 0, weighted ? dmt_layer_eps(&l) : 0);
    DMT_OK(c, dm_pool_forward(c->session, &v.pool, l.array[X], l.array[Y], l.array[WHICH]));
    dmt_operand_check(c, l.operand[Y], y.want, y.bound);
    if (weighted) {
        DMT_REFUSED(c, DM_ERR_ARG, dm_pool_backward(c->session, &v.pool, l.array[X], l.array[Y], dx));
    } else {
        char text[400];
        dmt_operand_check_same(c, l.operand[WHICH], which);
        DMT_OK(c, dm_pool_backward(c->session, &v.pool, l.array[X], l.array[Y], dx));
        if (!dmt_host_same(dmt_read(c, dx, DM_F64, 4, v.x), want, text, sizeof text)) {
            dmt_fail(c, "the gradient: %s", text);
        }
        taps_back(c, &v, l.array[X], l.array[Y], want);
    }
    DMT_OK(c, dm_array_destroy(c->session, random));
    DMT_OK(c, dm_array_destroy(c->session, dx));
}

static void same_channels(dmt_case *c, const char *what, dm_array a, dm_array wide, const int64_t *shape)
{
    dm_array view, one;
    double apart;
    DMT_OK(c, dm_array_view(c->session, wide, (int64_t[]){0, 0, 0, 0}, shape, &view));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &one));
    DMT_OK(c, dm_map(c->session, "sum(abs(f64(a) - f64(b)))", 2,
                     (dm_map_arg[]){DM_ARG("a", a), DM_ARG("b", view)}, one));
    DMT_OK(c, dm_item(c->session, one, NULL, &apart));
    if (apart != 0) {
        dmt_fail(c, "%s differs by %g in all", what, apart);
    }
    DMT_OK(c, dm_array_destroy(c->session, view));
    DMT_OK(c, dm_array_destroy(c->session, one));
}

/* 64 channels beside the first 64 of 65. GPUs take the former by strips of windows, where there are as many as
 * here, and the latter window by window: bits are the same. */
static void neighbours_case(dmt_case *c)
{
    enum { SIDE = 64, FEW = 64, MORE = 65 };
    static const dm_dtype types[] = {DM_F32, DM_BF16, DM_F64, DM_F16};
    const char *device = getenv("DMATH_DEVICE");
    bool slow = dmt_on_cpu() || (device && strcmp(device, "emulated") == 0), max = c->number / 4 % 2 == 0;
    const int64_t samples = slow ? 1 : 128;
    const dm_dtype type = types[c->number % 4];
    dm_session *s = c->session;
    dm_pool pool = DM_POOL_INIT;
    pool.method = max ? DM_POOL_MAX : DM_POOL_AVERAGE;
    pool.relu = max && dmt_chance(&c->random, 30);
    pool.slices = 1;
    int kernel = (int)dmt_int(&c->random, 2, 3), stride = (int)dmt_int(&c->random, 1, 2);
    for (int d = 0; d < 2; d++) {
        pool.kernel[d] = kernel;
        pool.stride[d] = stride;
        pool.pad[d] = (int)dmt_int(&c->random, 0, kernel - 1);
    }
    const int64_t x_shape[] = {samples, SIDE, SIDE, FEW};
    int64_t y_shape[4];
    dm_array x[2], y[2], which[2] = {DM_NO_ARRAY, DM_NO_ARRAY}, dx[2];
    DMT_OK(c, dm_pool_shape(&pool, x_shape, y_shape));
    for (int k = 0; k < 2; k++) {
        const int64_t channels = k == 0 ? FEW : MORE, in[] = {samples, SIDE, SIDE, channels},
                      out[] = {samples, y_shape[1], y_shape[2], channels};
        DMT_OK(c, dm_array_create(s, type, 4, in, NULL, &x[k]));
        DMT_OK(c, dm_array_create(s, type, 4, out, NULL, &y[k]));
        DMT_OK(c, dm_array_create(s, type, 4, in, NULL, &dx[k]));
        if (max) {
            DMT_OK(c, dm_array_create(s, DM_U8, 4, out, NULL, &which[k]));
        }
    }
    dm_array view;
    DMT_OK(c, dm_map(s, "floor(9 * uniform(1)) / 8 - 0.5", 0, NULL, x[0])); /* many are equal */
    DMT_OK(c, dm_fill(s, x[1], 1));
    DMT_OK(c, dm_array_view(s, x[1], (int64_t[]){0, 0, 0, 0}, x_shape, &view));
    DMT_OK(c, dm_copy(s, x[0], view));
    DMT_OK(c, dm_array_destroy(s, view));
    for (int k = 0; k < 2; k++) {
        DMT_OK(c, dm_pool_forward(s, &pool, x[k], y[k], which[k]));
        DMT_OK(c, max ? dm_pool_backward_which(s, &pool, which[k], y[k], dx[k])
                      : dm_pool_backward(s, &pool, x[k], y[k], dx[k]));
    }
    same_channels(c, "y", y[0], y[1], y_shape);
    same_channels(c, "dx", dx[0], dx[1], x_shape);
    if (max) {
        same_channels(c, "which", which[0], which[1], y_shape);
    }
    for (int k = 0; k < 2; k++) {
        const dm_array all[] = {x[k], y[k], which[k], dx[k]};
        for (int i = 0; i < 4; i++) {
            DMT_OK(c, dm_array_destroy(s, all[i]));
        }
    }
}

/* What Caffe makes of some sizes: rounded up, and clipped only with padding. */
static void sizes(dmt_case *c)
{
    static const struct {
        int x, kernel, stride, pad, y;
    } row[] = {{24, 2, 2, 0, 12}, {55, 3, 2, 0, 27}, {32, 3, 2, 0, 16}, {112, 3, 2, 0, 56}, {28, 3, 2, 1, 15},
               {14, 3, 1, 1, 14}, {7, 2, 2, 1, 4},   {5, 1, 5, 0, 2},   {2, 3, 2, 0, 1},    {1, 4, 2, 1, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        dm_pool p = DM_POOL_INIT;
        int64_t y[4];
        for (int d = 0; d < 2; d++) {
            p.kernel[d] = row[i].kernel;
            p.stride[d] = row[i].stride;
            p.pad[d] = row[i].pad;
        }
        DMT_OK(c, dm_pool_shape(&p, (int64_t[]){1, row[i].x, row[i].x, 1}, y));
        if (y[1] != row[i].y || y[2] != row[i].y) {
            dmt_fail(c, "row %d gives %d", (int)i, (int)y[1]);
        }
    }
}
DMT_ONE_CASE(sizes)

static void refusals(dmt_case *c)
{
    dm_pool p = DM_POOL_INIT, bad = p;
    const int64_t x_shape[] = {5, 6, 6, 4}, y_shape[] = {5, 3, 3, 4};
    dm_array x = dmt_thing_make(c, DM_F32, 4, x_shape), y = dmt_thing_make(c, DM_F32, 4, y_shape),
             at = dmt_thing_make(c, DM_I32, 4, y_shape);
    const int64_t large_shape[] = {1, 6, 6, 4}, wide_shape[] = {1, 16, 16, 1}, one_shape[] = {1, 1, 1, 1};
    dm_array wide = dmt_thing_make(c, DM_F32, 4, wide_shape), one = dmt_thing_make(c, DM_F32, 4, one_shape),
             few = dmt_thing_make(c, DM_U8, 4, one_shape), byte = dmt_thing_make(c, DM_U8, 4, large_shape),
             tap = dmt_thing_make(c, DM_U8, 4, y_shape);
    dm_pool whole = p;
    whole.global = 1;
    bad.pad[0] = 2;
    REFUSED(DMT_ONE(ARG), "pad[0]", dm_pool_forward(c->session, &bad, x, y, at));
    bad = p;
    bad.method = 7;
    REFUSED(DMT_ONE(ARG), "method", dm_pool_forward(c->session, &bad, x, y, at));
    bad = p;
    bad.method = DM_POOL_AVERAGE;
    REFUSED(DMT_ONE(ARG), "which", dm_pool_forward(c->session, &bad, x, y, at));
    REFUSED(DMT_ONE(DTYPE), "which", dm_pool_forward(c->session, &p, x, y, y));
    REFUSED(DMT_ONE(SHAPE), "y is", dm_pool_forward(c->session, &p, y, x, at));
    REFUSED(DMT_ONE(HANDLE), NULL, dm_pool_backward(c->session, &p, DM_NO_ARRAY, y, x));
    REFUSED(DMT_ONE(DTYPE), "pool_backward_which: which", dm_pool_backward_which(c->session, &p, at, y, x));
    REFUSED(DMT_ONE(DTYPE), "pool_backward_which: which", dm_pool_backward_which(c->session, &p, y, y, x));
    REFUSED(DMT_ONE(DTYPE), "pool_backward: x", dm_pool_backward(c->session, &p, byte, y, x));
    REFUSED(DMT_ONE(SHAPE), "which", dm_pool_backward_which(c->session, &p, byte, y, x));
    REFUSED(DMT_ONE(ARG), "pool_backward_which", dm_pool_backward_which(c->session, &bad, tap, y, x));
    REFUSED(DMT_ONE(DTYPE), "256 elements", dm_pool_forward(c->session, &whole, wide, one, few));
    REFUSED(DMT_ONE(DTYPE), "256 elements", dm_pool_backward_which(c->session, &whole, few, one, wide));
    bad.global = 0;
    bad.method = DM_POOL_MAX;
    bad.kernel[0] = bad.kernel[1] = bad.stride[0] = bad.stride[1] = 1;
    REFUSED(DMT_ONE(OVERLAP), "share memory", dm_pool_forward(c->session, &bad, x, x, DM_NO_ARRAY));
    bad.kernel[1] = 9;
    REFUSED(DMT_ONE(SHAPE), "does not fit", dm_pool_forward(c->session, &bad, x, y, at));
    bad.kernel[1] = 8; /* larger by a stride */
    bad.stride[1] = 2;
    REFUSED(DMT_ONE(SHAPE), "does not fit", dm_pool_forward(c->session, &bad, x, y, at));
    bad.kernel[1] = 7; /* by less than a stride, but rounded down */
    bad.round_down = 1;
    REFUSED(DMT_ONE(SHAPE), "does not fit", dm_pool_forward(c->session, &bad, x, y, at));
    dmt_thing_end(c, x, DM_F32, 4, x_shape);
    dmt_thing_end(c, y, DM_F32, 4, y_shape);
    dmt_thing_end(c, at, DM_I32, 4, y_shape);
    dmt_thing_end(c, wide, DM_F32, 4, wide_shape);
    dmt_thing_end(c, one, DM_F32, 4, one_shape);
    dmt_thing_end(c, few, DM_U8, 4, one_shape);
    dmt_thing_end(c, byte, DM_U8, 4, large_shape);
    dmt_thing_end(c, tap, DM_U8, 4, y_shape);
}
DMT_ONE_CASE(refusals)

static void test_pooling(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pooling", .cases = 400, .fn = pooling_case});
}

static void test_stochastic(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pooling_stochastic", .cases = 150, .fn = stochastic_case});
}

static void test_neighbours(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pooling_neighbours", .cases = 8, .fn = neighbours_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pooling), cmocka_unit_test(test_stochastic),
                                       cmocka_unit_test(test_neighbours), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
