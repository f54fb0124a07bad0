/* Fills: the values asked for, and for random ones the same bits whatever the layout and number of workers. */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* A fill's output: an array or view of undefined or other contents. */
static dmt_operand *make_output(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    return dmt_operand_make(c, "x", h, DMT_UNSET);
}

static dmt_operand *random_output(dmt_case *c, dm_dtype dtype)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 15) ? DM_MAX_DIMS : 3);
    dmt_shape_random(c, ndim, 3000, shape);
    return make_output(c, dtype, ndim, shape);
}

/* The largest number of an integer type that a double holds beside all before it. */
static int64_t whole_most(dm_dtype dtype)
{
    long double most = dmt_int_max(dtype);
    return most < 0x1p53L ? (int64_t)most : INT64_C(1) << 53;
}

/* A number that may be asked of any type: whole and in range for integers, anything for floats. */
static double random_number(dmt_case *c, dm_dtype dtype)
{
    static const double extremes[] = {INFINITY, -INFINITY, NAN, 65504, 65520, 1e300, 1e-310, 0.1, -0.0};
    if (!dmt_is_float(dtype)) {
        int64_t most = whole_most(dtype);
        double far = dtype == DM_U64 && dmt_chance(&c->random, 30) ? 0x1p63 : 0;
        return (double)dmt_int(&c->random, dmt_int_min(dtype) < 0 ? -most : 0, most) + far;
    }
    return dmt_chance(&c->random, 25) ? extremes[dmt_int(&c->random, 0, 8)] : 200 * dmt_unit(&c->random) - 100;
}

static void constant_case(dmt_case *c)
{
    dm_dtype dtype = dmt_dtype_random(c);
    double value = random_number(c, dtype);
    dmt_operand *x = random_output(c, dtype);
    dmt_say(c, "\n    dm_fill %.17g", value);
    DMT_OK(c, dm_fill(c->session, x->array, value));
    dmt_host *want = dmt_host_make(&c->scratch, dtype, x->value->ndim, x->value->shape);
    dmt_host_set(want, dmt_from_real(dtype, value));
    dmt_operand_check_same(c, x, want);
}

static void identity_case(dmt_case *c)
{
    int64_t shape[2];
    dm_dtype dtype = dmt_dtype_random(c);
    double value = dmt_chance(&c->random, 50) ? 1 : random_number(c, dtype);
    dmt_shape_random(c, 2, 20000, shape);
    dmt_operand *x = make_output(c, dtype, 2, shape);
    dmt_say(c, "\n    dm_fill_identity %.17g", value);
    DMT_OK(c, dm_fill_identity(c->session, x->array, value));
    dmt_host *want = dmt_host_make(&c->scratch, dtype, 2, shape);
    for (int64_t i = 0; i < shape[0] && i < shape[1]; i++) {
        want->v[i * shape[1] + i] = dmt_from_real(dtype, value);
    }
    dmt_operand_check_same(c, x, want);
}

static void arange_case(dmt_case *c)
{
    dm_dtype dtype = dmt_dtype_random(c);
    dmt_operand *x = random_output(c, dtype);
    int64_t count = x->value->count;
    double start = random_number(c, DM_F64),
           step = dmt_chance(&c->random, 50) ? 1 : 3 * dmt_unit(&c->random) - 1;
    if (!dmt_is_float(dtype)) {
        /* all of start + step * i stays in range */
        int64_t room = whole_most(dtype) < INT32_MAX ? whole_most(dtype) : INT32_MAX;
        int64_t most = count > 1 ? room / (count - 1) : 9;
        step = (double)dmt_int(&c->random, 0, most < 9 ? most : 9);
        start = (double)dmt_int(&c->random, 0, room - (int64_t)step * (count > 1 ? count - 1 : 0));
        if (dtype == DM_I64 || dtype == DM_U64) {
            start = dtype == DM_I64 ? -start * 4096 : 0x1p63 + start * 4096;
        }
    } else if (!isfinite(start) || fabs(start) > 1e200) {
        start = 0;
    }
    dmt_say(c, "\n    dm_fill_arange %.17g %.17g", start, step);
    DMT_OK(c, dm_fill_arange(c->session, x->array, start, step));
    dmt_host *want = dmt_host_make(&c->scratch, dtype, x->value->ndim, x->value->shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    for (int64_t i = 0; i < count; i++) {
        want->v[i] = (long double)start + (long double)step * (long double)i;
        bound->v[i] = dmt_is_float(dtype)
                          ? dmt_eps(DM_F64) * (fabsl(start) + fabsl((long double)step * (long double)i))
                          : 0;
    }
    dmt_operand_check(c, x, want, bound);
}

/* What one worker makes of the same call: the reference of every other number of workers. */
typedef struct reference {
    dm_session *session;
} reference;

enum { UNIFORM, NORMAL, GAMMA, POISSON };

static dmt_host *on_one_worker(dmt_case *c, const dmt_host *like, int kind, double p0, double p1, uint64_t seed)
{
    dm_session *session = ((reference *)c->user)->session;
    dm_array x;
    dm_layout layout = dm_layout_single(0);
    dmt_host *h = dmt_host_make(&c->scratch, like->dtype, like->ndim, like->shape);
    void *bytes = dmt_alloc(&c->scratch, h->count * dmt_bytes(h->dtype));
    DMT_OK(c, dm_array_create(session, h->dtype, h->ndim, h->shape, &layout, &x));
    DMT_OK(c, kind == UNIFORM  ? dm_fill_uniform(session, x, p0, p1, seed)
              : kind == NORMAL ? dm_fill_normal(session, x, p0, p1, seed)
              : kind == GAMMA  ? dm_fill_gamma(session, x, p0, p1, seed)
                               : dm_fill_poisson(session, x, p0, seed));
    DMT_OK(c, dm_array_read(session, x, NULL, NULL, bytes, 0));
    DMT_OK(c, dm_array_destroy(session, x));
    dmt_host_unpack(h, bytes);
    return h;
}

static void check_range(dmt_case *c, const dmt_host *h, double lo, double hi)
{
    for (int64_t i = 0; i < h->count; i++) {
        long double v = h->v[i], top = dmt_is_float(h->dtype) ? dmt_from_real(h->dtype, hi) : (long double)hi;
        if (!(v >= dmt_from_real(h->dtype, lo) && v < top)) {
            dmt_fail(c, "element %d is %.17Lg, outside [%.17g, %.17g)", (int)i, v, lo, hi);
        }
    }
}

static void uniform_case(dmt_case *c)
{
    dm_dtype dtype = dmt_dtype_random(c);
    uint64_t seed = dmt_bits(&c->random);
    double lo = !dmt_is_float(dtype) && dmt_int_min(dtype) == 0 ? 3 : (double)dmt_int(&c->random, -50, 20);
    double hi = lo + (double)dmt_int(&c->random, 1, 100);
    bool short_float = dmt_is_float(dtype) && dmt_bytes(dtype) == 1; /* lo and hi are to differ in it */
    if (dtype == DM_BOOL || short_float || (dmt_is_float(dtype) && dmt_chance(&c->random, 50))) {
        lo = 0;
        hi = dtype == DM_BOOL ? 2 : 1;
    } else if (dtype == DM_U64) {
        lo = 0x1p63 - 0x1p62;
        hi = 0x1p64 - 4096;
    }
    dmt_operand *x = random_output(c, dtype);
    dmt_say(c, "\n    dm_fill_uniform %.17g %.17g %llu", lo, hi, (unsigned long long)seed);
    DMT_OK(c, dm_fill_uniform(c->session, x->array, lo, hi, seed));
    dmt_host *want = on_one_worker(c, x->value, UNIFORM, lo, hi, seed);
    dmt_operand_check_same(c, x, want);
    check_range(c, want, lo, hi);
}

static void normal_case(dmt_case *c)
{
    dm_dtype dtype = dmt_float_random(c);
    uint64_t seed = dmt_bits(&c->random);
    double mean = dmt_factor_random(c, false), deviation = fabs(dmt_factor_random(c, false));
    dmt_operand *x = random_output(c, dtype);
    dmt_say(c, "\n    dm_fill_normal %.17g %.17g %llu", mean, deviation, (unsigned long long)seed);
    DMT_OK(c, dm_fill_normal(c->session, x->array, mean, deviation, seed));
    dmt_host *want = on_one_worker(c, x->value, NORMAL, mean, deviation, seed);
    dmt_operand_check_same(c, x, want);
    for (int64_t i = 0; i < want->count; i++) {
        /* 10 deviations: not once in the life of the universe */
        if (!(fabsl(want->v[i] - mean) <= 10 * deviation + 0.02)) {
            dmt_fail(c, "element %d is %.17Lg", (int)i, want->v[i]);
        }
    }
}

/* Gamma and Poisson numbers by a parameter that an array of any real type holds, or by the number. */
static void single_case(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64,
                                     DM_I32, DM_U8,  DM_I16, DM_U64,  DM_BOOL};
    static const double parameters[] = {1, 2, 9, 40, 0.5, 0.75};
    static const int64_t ones[3] = {1, 1, 1};
    int kind = dmt_chance(&c->random, 50) ? GAMMA : POISSON;
    dm_dtype dtype = kind == GAMMA ? dmt_float_random(c) : dmt_dtype_random(c),
             type = types[dmt_int(&c->random, 0, 9)];
    uint64_t seed = dmt_bits(&c->random);
    double p = type == DM_BOOL ? 1 : parameters[dmt_int(&c->random, 0, dmt_is_float(type) ? 5 : 3)];
    double scale = kind == GAMMA ? (double)dmt_int(&c->random, 1, 3) / 2 : 0;
    if (dtype == DM_BOOL || dtype == DM_C64 || dtype == DM_C128) { /* which Poisson does not take */
        dtype = DM_U16;
    }
    dmt_host *one = dmt_host_make(&c->scratch, type, (int)dmt_int(&c->random, 0, 3), ones);
    dmt_host_set(one, p);
    dmt_operand *x = random_output(c, dtype),
                *parameter = dmt_operand_make(c, kind == GAMMA ? "shape" : "rate", one, 0);
    dm_factor factor = dmt_chance(&c->random, 80) ? dm_element(parameter->array) : dm_value(p);
    dmt_say(c, "\n    %s by %g, %s, scale %g, seed %llu", kind == GAMMA ? "gamma" : "Poisson", p,
            factor.element ? "an element" : "a number", scale, (unsigned long long)seed);
    DMT_OK(c, kind == GAMMA ? dm_fill_gamma_by(c->session, x->array, factor, dm_value(scale), seed)
                            : dm_fill_poisson_by(c->session, x->array, factor, seed));
    dmt_operand_check_same(c, x, on_one_worker(c, x->value, kind, p, scale, seed));
    dmt_operand_unchanged(c, parameter);
}

static void with_reference(const dmt_suite *plain)
{
    dmt_suite suite = *plain;
    reference one = {dmt_session_open(1, NULL)};
    suite.user = &one;
    dmt_run(&suite);
    dmt_session_close(one.session, 0);
}

/* Mean, variance, correlation of neighbours, and the largest distance of the distribution function from what it
 * should be (Kolmogorov and Smirnov), each within five deviations of an honest sample. */
static int compare_reals(const void *a, const void *b)
{
    long double x = *(const long double *)a, y = *(const long double *)b;
    return (x > y) - (x < y);
}

static void check_sample(dmt_case *c, dmt_host *h, long double mean, long double variance, bool normal)
{
    long double n = (long double)h->count, sum = 0, squares = 0, beside = 0, farthest = 0;
    for (int64_t i = 0; i < h->count; i++) {
        long double z = (h->v[i] - mean) / sqrtl(variance);
        sum += z;
        squares += z * z;
        beside += i > 0 ? z * (h->v[i - 1] - mean) / sqrtl(variance) : 0;
    }
    qsort(h->v, (size_t)h->count, sizeof *h->v, compare_reals);
    for (int64_t i = 0; i < h->count; i++) {
        long double z = (h->v[i] - mean) / sqrtl(variance);
        long double below = normal ? 0.5L * erfcl(-z / sqrtl(2)) : h->v[i];
        long double apart = fabsl(below - ((long double)i + 0.5L) / n);
        farthest = apart > farthest ? apart : farthest;
    }
    if (fabsl(sum / n) > 5 / sqrtl(n) || fabsl(squares / n - 1) > 5 * sqrtl(2 / n) ||
        fabsl(beside / n) > 5 / sqrtl(n) || farthest > 2.5L / sqrtl(n)) {
        dmt_fail(c,
                 "mean %.4Lg, variance %.4Lg, neighbours %.4Lg, distribution %.4Lg of %d standardised elements",
                 sum / n, squares / n, beside / n, farthest, (int)h->count);
    }
}

static void statistics_case(dmt_case *c)
{
    const int64_t shape[] = {200, 151};
    dm_array x;
    dm_dtype dtype = c->number % 2 ? DM_F32 : DM_F64;
    uint64_t seed = (uint64_t)c->number / 4;
    dmt_say(c, "%s seed %d", dmt_name(dtype), (int)seed);
    DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, NULL, &x));
    DMT_OK(c, dm_fill_uniform(c->session, x, 0, 1, seed));
    check_sample(c, dmt_read(c, x, dtype, 2, shape), 0.5L, 1 / 12.0L, false);
    DMT_OK(c, dm_fill_normal(c->session, x, 3, 2, seed));
    check_sample(c, dmt_read(c, x, dtype, 2, shape), 3, 4, true);
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void seeds_case(dmt_case *c)
{
    const int64_t shape[] = {64};
    dm_array x;
    int equal = 0;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, shape, NULL, &x));
    uint64_t seed = dmt_bits(&c->random);
    DMT_OK(c, dm_fill_uniform(c->session, x, 0, 1, seed));
    dmt_host *one = dmt_read(c, x, DM_F64, 1, shape);
    DMT_OK(c, dm_fill_uniform(c->session, x, 0, 1, seed ^ (UINT64_C(1) << dmt_int(&c->random, 0, 63))));
    dmt_host *other = dmt_read(c, x, DM_F64, 1, shape);
    for (int i = 0; i < 64; i++) {
        equal += one->v[i] == other->v[i];
    }
    if (equal) {
        dmt_fail(c, "%d of 64 elements do not depend on a bit of the seed", equal);
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
}

/* Two clocks of a part of an array, with work between: later at each element, and on CPUs between two times of
 * the program. What is beside the part stays. */
static int64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void clock_case(dmt_case *c)
{
    dm_session *s = c->session;
    int64_t shape[DM_MAX_DIMS], lo[DM_MAX_DIMS], extent[DM_MAX_DIMS], step[DM_MAX_DIMS];
    const int ndim = (int)dmt_int(&c->random, 1, 3), kind = (int)dmt_int(&c->random, 0, 2);
    const dm_layout layout = kind == 0   ? dm_layout_rows(s)
                             : kind == 1 ? dm_layout_single((int)dmt_int(&c->random, 0, c->workers - 1))
                                         : dm_layout_cols(s);
    dm_array x[2], part[2], work;
    dmt_host *got[2];
    dmt_shape_random(c, ndim, 3000, shape);
    for (int d = 0; d < ndim; d++) {
        extent[d] = dmt_int(&c->random, 0, shape[d]);
        step[d] = extent[d] > 1 && dmt_chance(&c->random, 30) ? (shape[d] - 1) / (extent[d] - 1) : 1;
        lo[d] = dmt_int(&c->random, 0, extent[d] > 0 ? shape[d] - 1 - (extent[d] - 1) * step[d] : shape[d]);
    }
    dmt_say(c, "%d dims, layout %d", ndim, kind);
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_array_create(s, DM_I64, ndim, shape, ndim == 1 && kind == 2 ? NULL : &layout, &x[i]));
        DMT_OK(c, dm_fill(s, x[i], -1));
        DMT_OK(c, dm_array_slice(s, x[i], lo, extent, step, &part[i]));
    }
    DMT_OK(c, dm_array_create(s, DM_F64, 1, (int64_t[]){999}, NULL, &work));
    const int64_t from = host_ns();
    DMT_OK(c, dm_clock(s, part[0]));
    DMT_OK(c, dm_fill_uniform(s, work, 0, 1, 7));
    DMT_OK(c, dm_clock(s, part[1]));
    DMT_OK(c, dm_sync(s));
    const int64_t to = host_ns();
    for (int i = 0; i < 2; i++) {
        got[i] = dmt_read(c, x[i], DM_I64, ndim, shape);
    }
    for (int64_t k = 0; k < got[0]->count; k++) {
        bool inside = true;
        int64_t rest = k;
        for (int d = ndim - 1; d >= 0; rest /= shape[d--]) {
            const int64_t at = rest % shape[d] - lo[d];
            inside = inside && at >= 0 && at % step[d] == 0 && at / step[d] < extent[d];
        }
        const long double first = got[0]->v[k], second = got[1]->v[k];
        if (inside ? first <= 0 || second < first || (dmt_on_cpu() && (first < from || second > to))
                   : first != -1 || second != -1) {
            dmt_fail(c, "element %d is %.20Lg, then %.20Lg; the program saw %lld to %lld", (int)k, first,
                     second, (long long)from, (long long)to);
        }
    }
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_array_destroy(s, part[i]));
        DMT_OK(c, dm_array_destroy(s, x[i]));
    }
    DMT_OK(c, dm_array_destroy(s, work));
}

static void refused_clock_case(dmt_case *c)
{
    dm_array x;
    const dm_layout everywhere = dm_layout_replicated(c->session);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, (int64_t[]){9}, NULL, &x));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_clock(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, (int64_t[]){9}, &everywhere, &x));
    DMT_REFUSED(c, c->workers > 1 ? DM_ERR_LAYOUT : DM_OK, dm_clock(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void test_constant(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fill", .cases = 600, .fn = constant_case});
}

static void test_identity(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fill_identity", .cases = 400, .fn = identity_case});
}

static void test_arange(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fill_arange", .cases = 600, .fn = arange_case});
}

static void test_uniform(void **state)
{
    (void)state;
    with_reference(&(dmt_suite){.name = "fill_uniform", .cases = 600, .fn = uniform_case});
}

static void test_normal(void **state)
{
    (void)state;
    with_reference(&(dmt_suite){.name = "fill_normal", .cases = 600, .fn = normal_case});
}

static void test_single(void **state)
{
    (void)state;
    with_reference(&(dmt_suite){.name = "fill_single", .cases = 500, .fn = single_case});
}

static void test_statistics(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "fill_statistics", .cases = 4, .fn = statistics_case, .workers = 3, .each = true});
}

static void test_clock(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "clock", .cases = 300, .fn = clock_case});
    dmt_run(&(dmt_suite){.name = "clock_refused", .cases = 8, .fn = refused_clock_case});
}

static void test_seeds(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fill_seeds", .cases = 20, .fn = seeds_case, .workers = 2, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant), cmocka_unit_test(test_identity), cmocka_unit_test(test_arange),
        cmocka_unit_test(test_uniform),  cmocka_unit_test(test_normal),   cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_single),   cmocka_unit_test(test_seeds),    cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
