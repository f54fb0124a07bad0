/* Calls made of several reductions and expressions, against loops in long double: log_softmax, standardise,
 * layer_norm, and the loss of a classifier with its gradient. */
#include "support/reduced.h"
#include "support/refusal.h"

#include <dmath/linalg.h>
#include <math.h>

/* For each element of x: the largest of its group, the sum of e^(x - m), the mean and the squared deviations.
 */
typedef struct groups {
    int64_t count, *of;
    long double *top, *sum, *mean, *square, n;
} groups;

static groups group(dmt_case *c, const dmt_host *x, const dmt_dims *dims)
{
    groups g = {.count = 1};
    int64_t index[DM_MAX_DIMS] = {0}, size = x->count + 1;
    for (int d = 0; d < x->ndim; d++) {
        g.count *= dims->reduced[d] ? 1 : x->shape[d];
    }
    g.of = dmt_alloc(&c->scratch, size * (int64_t)sizeof *g.of);
    long double **all[] = {&g.top, &g.sum, &g.mean, &g.square};
    for (int i = 0; i < 4; i++) {
        *all[i] = dmt_alloc(&c->scratch, (g.count + 1) * (int64_t)sizeof(long double));
    }
    for (int64_t i = 0; i < x->count; i++, dmt_next(x->ndim, x->shape, index)) {
        for (int d = 0; d < x->ndim; d++) {
            g.of[i] = dims->reduced[d] ? g.of[i] : g.of[i] * x->shape[d] + index[d];
        }
    }
    g.n = g.count > 0 ? (long double)x->count / (long double)g.count : 0;
    for (int64_t i = 0; i < g.count; i++) {
        g.top[i] = -INFINITY;
    }
    for (int64_t i = 0; i < x->count; i++) {
        g.top[g.of[i]] = fmaxl(g.top[g.of[i]], x->v[i]);
        g.mean[g.of[i]] += x->v[i] / g.n;
    }
    for (int64_t i = 0; i < x->count; i++) {
        g.sum[g.of[i]] += expl(x->v[i] - g.top[g.of[i]]);
        g.square[g.of[i]] += (x->v[i] - g.mean[g.of[i]]) * (x->v[i] - g.mean[g.of[i]]);
    }
    return g;
}

typedef struct subject {
    dmt_host *x, *want, *bound;
    dmt_dims dims;
    groups g;
    bool in_place;
    dmt_operand *in, *out;
} subject;

static subject begin(dmt_case *c)
{
    subject s = {0};
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 10) ? 5 : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_float_random(c);
    from = from == DM_BOOL ? DM_I8 : from;
    dmt_shape_random(c, ndim, 2000, shape);
    s.x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host_random(s.x, &c->random, DMT_SMOOTH);
    dmt_dims_random(c, s.x, &s.dims);
    s.in_place = from == to && dmt_chance(&c->random, 30);
    s.want = dmt_host_make(&c->scratch, to, ndim, shape);
    s.bound = dmt_host_copy(&c->scratch, s.want);
    s.g = group(c, s.x, &s.dims);
    return s;
}

static void place(dmt_case *c, subject *s)
{
    s->in = dmt_operand_make(c, "x", s->x, 0);
    s->out = s->in_place ? s->in : dmt_operand_make(c, "out", s->want, DMT_UNSET);
    dmt_say_dims(c, &s->dims);
}

static void check(dmt_case *c, subject *s)
{
    dmt_operand_check(c, s->out, s->want, s->bound);
    if (!s->in_place) {
        dmt_operand_unchanged(c, s->in);
    }
}

static void log_softmax_case(dmt_case *c)
{
    subject s = begin(c);
    for (int64_t i = 0; i < s.x->count; i++) {
        int64_t at = s.g.of[i];
        s.want->v[i] = s.x->v[i] - s.g.top[at] - logl(s.g.sum[at]);
        s.bound->v[i] = 1e-6L * (fabsl(s.x->v[i]) + fabsl(s.g.top[at]) + 10);
    }
    place(c, &s);
    DMT_OK(c, dm_log_softmax(c->session, s.in->array, dmt_dims_given(&s.dims), s.dims.ndims, s.out->array));
    check(c, &s);
}

static void standardise_case(dmt_case *c)
{
    subject s = begin(c);
    double correction = s.g.n > 2 && dmt_chance(&c->random, 50) ? 1 : 0;
    for (int64_t i = 0; i < s.x->count; i++) {
        int64_t at = s.g.of[i];
        long double d = sqrtl(s.g.square[at] / (s.g.n - correction)), off = s.x->v[i] - s.g.mean[at];
        s.want->v[i] = s.g.n == 1 ? 0 : off / d; /* equal numbers: below */
        s.bound->v[i] =
            s.g.n == 1 ? 0 : 1e-6L * (fabsl(s.want->v[i]) + (fabsl(s.x->v[i]) + fabsl(s.g.mean[at])) / d + 1);
        if (s.g.n > 1 && d < 1e-3L) {
            s.want->v[i] = 0;
            s.bound->v[i] = s.g.square[at] == 0 ? 0 : 1e4L;
        }
    }
    place(c, &s);
    DMT_OK(c, dm_standardise(c->session, s.in->array, dmt_dims_given(&s.dims), s.dims.ndims, correction,
                             s.out->array));
    check(c, &s);
}

static dmt_host *factor(dmt_case *c, const dmt_host *x)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_shape_narrowed(c, x->ndim, x->shape, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_float_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_SMOOTH);
    return h;
}

static void layer_norm_case(dmt_case *c)
{
    subject s = begin(c);
    double eps = dmt_chance(&c->random, 50) ? 1e-2 : 0.5;
    dmt_host *gain = dmt_chance(&c->random, 60) ? factor(c, s.x) : NULL,
             *bias = dmt_chance(&c->random, 60) ? factor(c, s.x) : NULL;
    for (int64_t i = 0; i < s.x->count; i++) {
        int64_t at = s.g.of[i];
        long double root = sqrtl(s.g.square[at] / s.g.n + eps),
                    g = gain ? gain->v[dmt_broadcast(gain, s.want, i)] : 1;
        long double b = bias ? bias->v[dmt_broadcast(bias, s.want, i)] : 0;
        s.want->v[i] = (s.x->v[i] - s.g.mean[at]) / root * g + b;
        s.bound->v[i] = 2e-6L * ((fabsl(s.x->v[i]) + fabsl(s.g.mean[at]) + 1) / root * fabsl(g) + fabsl(b));
    }
    place(c, &s);
    dmt_operand *one = gain ? dmt_operand_make(c, "gain", gain, 0) : NULL,
                *two = bias ? dmt_operand_make(c, "bias", bias, 0) : NULL;
    dmt_say(c, "\n    eps %g", eps);
    DMT_OK(c, dm_layer_norm(c->session, s.in->array, dmt_dims_given(&s.dims), s.dims.ndims,
                            one ? one->array : DM_NO_ARRAY, two ? two->array : DM_NO_ARRAY, eps, s.out->array));
    check(c, &s);
}

/* Labels of all rows, some outside the classes. */
static dmt_host *make_labels(dmt_case *c, int64_t rows, int64_t classes)
{
    static const dm_dtype types[] = {DM_I64, DM_I32, DM_U8, DM_I16};
    dmt_host *labels = dmt_host_make(&c->scratch, types[dmt_int(&c->random, 0, 3)], 1, &rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t label = dmt_int(&c->random, 0, classes - 1), odd = labels->dtype == DM_U8 ? 255 : -1;
        labels->v[i] = dmt_chance(&c->random, 15) || classes == 0 ? odd : classes > 200 ? label % 200 : label;
    }
    return labels;
}

static void cross_entropy_case(dmt_case *c)
{
    int64_t shape[2];
    dmt_shape_random(c, 2, 3000, shape);
    shape[1] = shape[1] > 250 ? 250 : shape[1];
    dm_dtype from = dmt_float_random(c), to = dmt_float_random(c);
    dmt_host *x = dmt_host_make(&c->scratch, from, 2, shape), *labels = make_labels(c, shape[0], shape[1]);
    dmt_host_random(x, &c->random, DMT_SMOOTH);
    dmt_dims dims = {.dims = {1}, .ndims = 1, .reduced = {false, true}};
    groups g = group(c, x, &dims);
    dmt_host *loss =
                 dmt_host_make(&c->scratch, to, dmt_chance(&c->random, 30) ? 2 : 1, (int64_t[]){shape[0], 1}),
             *bound = dmt_host_copy(&c->scratch, loss);
    dmt_host *slope = dmt_host_make(&c->scratch, to, 2, shape), *slack = dmt_host_copy(&c->scratch, slope);
    double scale = 0.25;
    for (int64_t i = 0; i < shape[0]; i++) {
        bool counts = labels->v[i] >= 0 && labels->v[i] < shape[1];
        for (int64_t j = 0; j < shape[1]; j++) {
            long double v = x->v[i * shape[1] + j], p = expl(v - g.top[i]) / g.sum[i];
            bool label = labels->v[i] == j;
            loss->v[i] = label ? g.top[i] - v + logl(g.sum[i]) : loss->v[i];
            slope->v[i * shape[1] + j] = counts ? scale * (p - label) : 0;
            slack->v[i * shape[1] + j] = counts ? 1e-6L * (fabsl(v - g.top[i]) + 3) : 0;
        }
        bound->v[i] = counts ? 1e-6L * (fabsl(g.top[i]) + fabsl(loss->v[i]) + 10) : 0;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *l = dmt_operand_make(c, "labels", labels, 0);
    dmt_operand *out = dmt_operand_make(c, "loss", loss, DMT_UNSET);
    DMT_OK(c, dm_cross_entropy(c->session, in->array, l->array, out->array));
    dmt_operand_check(c, out, loss, bound);
    bool in_place = from == to && dmt_chance(&c->random, 30);
    dmt_operand *gradient = in_place ? in : dmt_operand_make(c, "gradient", slope, DMT_UNSET);
    dm_array element;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 3, (int64_t[]){1, 1, 1}, NULL, &element));
    DMT_OK(c, dm_fill(c->session, element, scale));
    DMT_OK(c, dmt_chance(&c->random, 50)
                  ? dm_cross_entropy_gradient(c->session, in->array, l->array, scale, gradient->array)
                  : dm_cross_entropy_gradient_by(c->session, in->array, l->array, dm_element(element),
                                                 gradient->array));
    DMT_OK(c, dm_array_destroy(c->session, element));
    dmt_operand_check(c, gradient, slope, slack);
    dmt_operand_unchanged(c, l);
    if (!in_place) {
        dmt_operand_unchanged(c, in);
    }
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int one[] = {1}, outside[] = {2};
    REFUSED(DMT_ONE(SHAPE), NULL, dm_log_softmax(s, t.f, one, 1, t.wide));
    REFUSED(DMT_ONE(ARG), "dims", dm_log_softmax(s, t.f, outside, 1, t.g));
    REFUSED(DMT_ONE(DTYPE), NULL, dm_log_softmax(s, t.f, one, 1, t.whole));
    REFUSED(DMT_ONE(HANDLE), "x", dm_log_softmax(s, DM_NO_ARRAY, one, 1, t.f));
    REFUSED(DMT_ONE(ARG), "correction", dm_standardise(s, t.f, one, 1, NAN, t.g));
    REFUSED(DMT_ONE(ARG), "eps", dm_layer_norm(s, t.f, one, 1, t.row, t.row, -1, t.g));
    REFUSED(DMT_ONE(SHAPE), "gain", dm_layer_norm(s, t.f, one, 1, t.wide, t.row, 0, t.g));
    REFUSED(DMT_ONE(OVERLAP), "loss", dm_cross_entropy(s, t.f, t.whole, t.f));
    REFUSED(DMT_ONE(SHAPE), "labels", dm_cross_entropy(s, t.f, t.whole, t.row));
    REFUSED(DMT_ONE(DTYPE), "labels", dm_cross_entropy(s, t.f, t.row, t.row));
    REFUSED(DMT_ONE(SHAPE), "x", dm_cross_entropy(s, t.cube, t.whole, t.row));
    dmt_things_end(c, &t);
}

#define TEST(test, cases_of)                                                                                   \
    static void test_##test(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #test, .cases = (cases_of), .fn = test##_case});                          \
    }
TEST(log_softmax, 400)
TEST(standardise, 400)
TEST(layer_norm, 400)
TEST(cross_entropy, 400)
DMT_ONE_CASE(errors_case)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_log_softmax), cmocka_unit_test(test_standardise),
                                       cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_cross_entropy),
                                       cmocka_unit_test(test_errors_case)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
