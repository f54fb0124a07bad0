/* Elementwise ops and fills whose factors are elements of arrays; what is refused, and what moves */
#include "support/factors.h"
#include "support/oracle.h"
#include "support/refusal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void axpby_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *x_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *y_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    bool whole = dmt_all_whole(x_value, y_value, y_value);
    dmt_factor alpha = dmt_factor_make(c, "alpha", whole, false),
               beta = dmt_factor_make(c, "beta", whole, false);
    dmt_operand *x = dmt_operand_make(c, "x", x_value, 0);
    dmt_operand *y = dmt_operand_make(c, "y", y_value, 0);
    DMT_OK(c, dm_axpby_by(c->session, alpha.given, x->array, beta.given, y->array));
    dmt_expected e = dmt_expect_add(c, alpha.value, x_value, beta.value, y_value, y_value);
    dmt_operand_check(c, y, e.want, e.bound);
    dmt_operand_unchanged(c, x);
    dmt_factor_unchanged(c, &alpha);
    dmt_factor_unchanged(c, &beta);
}

static void binary_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    bool adds = dmt_chance(&c->random, 50);
    dmt_host *a_value = dmt_broadcast_operand(c, ndim, shape), *b_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *out_value = dmt_host_make(&c->scratch, dmt_ewise_random(c), ndim, shape);
    bool whole = dmt_all_whole(a_value, b_value, out_value);
    dmt_factor alpha = dmt_factor_make(c, "alpha", whole, false), beta = {.value = 0};
    if (adds) {
        beta = dmt_factor_make(c, "beta", whole, false);
    }
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0), *b = dmt_operand_make(c, "b", b_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, DMT_UNSET);
    dmt_say(c, adds ? "\n    add" : "\n    multiply");
    if (adds) {
        DMT_OK(c, dm_add_by(c->session, alpha.given, a->array, beta.given, b->array, out->array));
    } else {
        DMT_OK(c, dm_multiply_by(c->session, alpha.given, a->array, b->array, out->array));
    }
    dmt_expected e = adds ? dmt_expect_add(c, alpha.value, a_value, beta.value, b_value, out_value)
                          : dmt_expect_multiply(c, alpha.value, a_value, b_value, out_value);
    dmt_operand_check(c, out, e.want, e.bound);
}

static void scale_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *a_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *out_value = dmt_host_make(&c->scratch, dmt_ewise_random(c), ndim, shape);
    dmt_factor alpha = dmt_factor_make(c, "alpha", dmt_all_whole(a_value, a_value, out_value), false);
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, DMT_UNSET);
    DMT_OK(c, dm_scale_by(c->session, alpha.given, a->array, out->array));
    dmt_expected e = dmt_expect_scale(c, alpha.value, a_value, out_value);
    dmt_operand_check(c, out, e.want, e.bound);
}

/* Fills against those with numbers, which test_fill compares with loops; and of a value, against the loops
 * here. */
static void fill_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    bool square = dmt_chance(&c->random, 25);
    int ndim = square ? 2 : dmt_ewise_shape(c, shape), kind = square ? 4 : (int)dmt_int(&c->random, 0, 3);
    if (square) {
        dmt_shape_random(c, 2, 2500, shape);
    }
    dm_dtype dtype = kind == 3 ? dmt_float_random(c) : dmt_dtype_random(c);
    dmt_host *x_value = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_factor p = dmt_factor_make(c, "p", !dmt_is_float(dtype) || kind == 2, true), q = {.value = 0};
    if (kind > 0 && kind < 4) {
        q = dmt_factor_make(c, "q", !dmt_is_float(dtype) || kind == 2, true);
    }
    bool p_fits = p.element || dmt_is_float(dtype) || dmt_convert(DM_F64, dtype, p.value) == p.value;
    bool q_fits =
        q.element || kind == 2 || dmt_is_float(dtype) || dmt_convert(DM_F64, dtype, q.value) == q.value;
    if ((p.element == NULL && q.element == NULL) || !p_fits || !q_fits ||
        (kind == 3 && !q.element && q.value < 0)) {
        return; /* those numbers may be refused */
    }
    long double lo = p.value, hi = q.value, range = hi - lo;
    dmt_operand *x = dmt_operand_make(c, "x", x_value, DMT_UNSET), *numbers = NULL;
    dmt_host *want = dmt_host_copy(&c->scratch, x_value), *bound = dmt_host_copy(&c->scratch, x_value);
    dmt_host *unit =
        dmt_host_make(&c->scratch, dtype == DM_F64 || !dmt_is_float(dtype) ? DM_F64 : DM_F32, ndim, shape);
    uint64_t seed = dmt_bits(&c->random);
    dmt_say(c, "\n    kind %d", kind);
    numbers = dmt_operand_make(c, "numbers", unit, DMT_UNSET);
    if (kind == 1) {
        DMT_OK(c, dm_fill_uniform(c->session, numbers->array, 0, 1, seed));
        DMT_OK(c, dm_fill_uniform_by(c->session, x->array, p.given, q.given, seed));
    } else if (kind == 3) {
        DMT_OK(c, dm_fill_normal(c->session, numbers->array, 0, 1, seed));
        DMT_OK(c, dm_fill_normal_by(c->session, x->array, p.given, q.given, seed));
    } else if (kind == 2) {
        DMT_OK(c, dm_fill_arange_by(c->session, x->array, p.given, q.given));
    } else if (kind == 4) {
        DMT_OK(c, dm_fill_identity_by(c->session, x->array, p.given));
    } else {
        DMT_OK(c, dm_fill_by(c->session, x->array, p.given));
    }
    dmt_host *u = kind == 1 || kind == 3 ? dmt_read(c, numbers->array, unit->dtype, ndim, shape) : unit;
    long double eps = dmt_eps(unit->dtype);
    for (int64_t i = 0; i < want->count; i++) {
        long double v = lo + range * u->v[i];
        if (kind == 1) {
            want->v[i] = !(lo < hi) ? lo : dmt_is_float(dtype) ? v : floorl(v);
            bound->v[i] = dmt_is_float(dtype) ? 4 * eps * (fabsl(lo) + fabsl(hi)) : 0;
        } else if (kind == 3) {
            want->v[i] = lo + hi * u->v[i];
            bound->v[i] = 4 * eps * (fabsl(lo) + fabsl(hi * u->v[i]));
        } else if (kind == 2) {
            want->v[i] = dmt_is_float(dtype) ? lo + hi * (long double)i
                                             : dmt_from_whole(dtype, (int64_t)lo + (int64_t)hi * i);
        } else {
            bool here = kind == 0 || i / shape[1] == i % shape[1];
            dm_dtype from = p.element->value->dtype;
            want->v[i] = here ? dmt_convert(from, dtype, lo) : 0;
        }
    }
    if (dmt_is_float(dtype)) {
        dmt_operand_check(c, x, want, bound);
        return;
    }
    for (int64_t i = 0; i < want->count && kind == 1; i++) {
        want->v[i] = dmt_from_real(dtype, want->v[i]);
    }
    dmt_operand_check(c, x, want, NULL);
}

/* The same bits as with numbers: where they are made from random numbers, and everywhere else in one rounding.
 */
static void same_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dm_dtype dtype = dmt_chance(&c->random, 50) ? DM_F64 : DM_F32;
    double p = dmt_unit(&c->random) - 2, q = dmt_unit(&c->random) * 5;
    p = (double)dmt_from_real(dtype, p);
    q = (double)dmt_from_real(dtype, q);
    dmt_host *value = dmt_host_for_ewise(c, dtype, ndim, shape);
    dmt_host *one = dmt_host_make(&c->scratch, dtype, 0, NULL), *two = dmt_host_copy(&c->scratch, one);
    dmt_host_set(one, p);
    dmt_host_set(two, q);
    dm_factor f = dm_element(dmt_operand_make(c, "one", one, 0)->array),
              g = dm_element(dmt_operand_make(c, "two", two, 0)->array);
    dmt_operand *x = dmt_operand_make(c, "x", value, 0), *y = dmt_operand_make(c, "y", value, 0);
    dmt_operand *z = dmt_operand_make(c, "z", value, 0);
    DMT_OK(c, dm_axpby(c->session, p, x->array, q, y->array));
    DMT_OK(c, dm_axpby_by(c->session, f, x->array, g, z->array));
    dmt_operand_check_same(c, z, dmt_read(c, y->array, dtype, ndim, shape));
    DMT_OK(c, dm_fill_uniform(c->session, y->array, p, q, 7));
    DMT_OK(c, dm_fill_uniform_by(c->session, z->array, f, g, 7));
    dmt_operand_check_same(c, z, dmt_read(c, y->array, dtype, ndim, shape));
}

/* A real element of f64 beside c64 becomes f32, as a number does: the products are not computed in c128. */
static void narrowed_case(dmt_case *c)
{
    enum { COUNT = 64 };
    const int64_t n = COUNT;
    const double p = 0.1;
    dm_session *s = c->session;
    dm_c64 value[COUNT], want[COUNT], got[COUNT];
    dm_array x, out, alpha;
    for (int i = 0; i < COUNT; i++) {
        value[i] = (dm_c64){(float)(i + 1), (float)(2 - i)};
        want[i] =
            (dm_c64){value[i].re * (float)p, value[i].im * (float)p}; /* one rounding each: the rest is 0 */
    }
    DMT_OK(c, dm_array_create(s, DM_C64, 1, &n, NULL, &x));
    DMT_OK(c, dm_array_create(s, DM_C64, 1, &n, NULL, &out));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &alpha));
    DMT_OK(c, dm_write(s, alpha, &p));
    DMT_OK(c, dm_write(s, x, value));
    DMT_OK(c, dm_scale_by(s, dm_element(alpha), x, out));
    DMT_OK(c, dm_read(s, out, got));
    if (memcmp(got, want, sizeof got) != 0) {
        dmt_fail(c, "scale_by: of 9-6i it makes %.9g%+.9gi, not %.9g%+.9gi", got[8].re, got[8].im, want[8].re,
                 want[8].im);
    }
    const dm_array made[] = {x, out, alpha};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

/* Complex factors of real arrays, where the output is complex. */
static void complex_out_case(dmt_case *c)
{
    const int64_t n = 3;
    const float value[3] = {1, -2, 3};
    const int32_t whole[3] = {4, 5, -6};
    const dm_c128 number = {3, -4};
    dm_session *s = c->session;
    dm_array x, y, alpha, out, narrow;
    dm_c128 got[3];
    dm_c64 got_narrow[3];
    DMT_OK(c, dm_array_create(s, DM_F32, 1, &n, NULL, &x));
    DMT_OK(c, dm_array_create(s, DM_I32, 1, &n, NULL, &y));
    DMT_OK(c, dm_array_create(s, DM_C128, 0, NULL, NULL, &alpha));
    DMT_OK(c, dm_array_create(s, DM_C128, 1, &n, NULL, &out));
    DMT_OK(c, dm_array_create(s, DM_C64, 1, &n, NULL, &narrow));
    DMT_OK(c, dm_write(s, x, value));
    DMT_OK(c, dm_write(s, y, whole));
    DMT_OK(c, dm_write(s, alpha, &number));
    DMT_OK(c, dm_add_by(s, dm_element(alpha), x, dm_complex(0, 2), y, out));
    DMT_OK(c, dm_scale_by(s, dm_complex(1, -1), x, narrow));
    DMT_OK(c, dm_read(s, out, got));
    DMT_OK(c, dm_read(s, narrow, got_narrow));
    for (int i = 0; i < 3; i++) {
        double re = 3 * value[i], im = -4 * value[i] + 2 * whole[i];
        if (got[i].re != re || got[i].im != im) {
            dmt_fail(c, "add_by: %g%+gi, not %g%+gi", got[i].re, got[i].im, re, im);
        }
        if (got_narrow[i].re != value[i] || got_narrow[i].im != -value[i]) {
            dmt_fail(c, "scale_by: %g%+gi of %g", got_narrow[i].re, got_narrow[i].im, value[i]);
        }
    }
    const dm_array made[] = {x, y, alpha, out, narrow};
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

static void refused_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t corner[2] = {0, 0}, one[2] = {1, 1}, two[1] = {2}, sixth[1] = {6};
    dm_array element, pair = dmt_thing_make(c, DM_F32, 1, two), six, real, number, none, complex, inside;
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &element));
    DMT_OK(c, dm_array_create(s, DM_C64, 0, NULL, NULL, &complex));
    DMT_OK(c, dm_array_create(s, DM_F32, 1, sixth, NULL, &six));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, one, NULL, &real));
    DMT_OK(c, dm_array_create(s, DM_I32, 0, NULL, NULL, &number));
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &none));
    DMT_OK(c, dm_array_destroy(s, none));
    DMT_OK(c, dm_array_view(s, t.g, corner, one, &inside));
    dm_factor e = dm_element(element), n = dm_value(2), bad = {0, {0}, 2};
    REFUSED(DMT_ONE(SHAPE), "axpby_by: alpha", dm_axpby_by(s, dm_element(pair), t.f, n, t.g));
    REFUSED(DMT_ONE(SHAPE), "axpby_by: x", dm_axpby_by(s, e, t.wide, n, t.g));
    REFUSED(DMT_ONE(SHAPE), "axpby_by: x", dm_axpby_by(s, dm_value(0), t.wide, e, t.g));
    REFUSED(DMT_ONE(HANDLE), "axpby_by: beta", dm_axpby_by(s, n, t.f, dm_element(none), t.g));
    REFUSED(DMT_ONE(HANDLE), "axpby_by: beta", dm_axpby_by(s, n, t.f, dm_element(DM_NO_ARRAY), t.g));
    REFUSED(DMT_ONE(HANDLE), "alpha",
            dm_scale_by(s, dm_element((dm_array){element.id + (UINT64_C(1) << 40)}), t.f, t.g));
    REFUSED(DMT_ONE(DTYPE), "axpby_by: alpha", dm_axpby_by(s, e, t.whole, n, t.byte));
    REFUSED(DMT_ONE(DTYPE), "add_by: beta", dm_add_by(s, n, t.whole, e, t.byte, t.whole));
    REFUSED(DMT_ONE(ARG), "add_by: alpha",
            dm_add_by(s, dm_value(0.5), t.whole, dm_element(number), t.byte, t.whole));
    REFUSED(DMT_ONE(DTYPE), "scale_by: alpha", dm_scale_by(s, dm_element(complex), t.f, t.g));
    REFUSED(DMT_ONE(OVERLAP), "multiply_by: alpha", dm_multiply_by(s, dm_element(inside), t.f, t.f, t.g));
    REFUSED(DMT_ONE(ARG), "scale_by: alpha", dm_scale_by(s, bad, t.f, t.g));
    REFUSED(DMT_ONE(OVERLAP), "fill_by: value", dm_fill_by(s, t.g, dm_element(inside)));
    REFUSED(DMT_ONE(SHAPE), "fill_identity_by: x", dm_fill_identity_by(s, t.cube, e));
    REFUSED(DMT_ONE(SHAPE), "fill_identity_by: x", dm_fill_identity_by(s, t.cube, n));
    REFUSED(DMT_ONE(DTYPE), "fill_normal_by: x", dm_fill_normal_by(s, t.whole, e, n, 1));
    REFUSED(DMT_ONE(DTYPE), "fill_normal_by: x", dm_fill_normal_by(s, t.whole, n, n, 1));
    REFUSED(DMT_ONE(ARG), "fill_normal_by: deviation", dm_fill_normal_by(s, t.f, n, dm_value(-1), 1));
    REFUSED(DMT_ONE(ARG), "fill_uniform_by: lo", dm_fill_uniform_by(s, t.f, n, dm_value(1), 1));
    REFUSED(DMT_ONE(ARG), "fill_arange_by: with start", dm_fill_arange_by(s, t.byte, n, dm_value(100)));
    REFUSED(DMT_ONE(ARG), "fill_gamma_by: shape", dm_fill_gamma_by(s, t.f, dm_value(-1), n, 1));
    REFUSED(DMT_ONE(ARG), "fill_gamma_by: scale is -1", dm_fill_gamma_by(s, t.f, e, dm_value(-1), 1));
    REFUSED(DMT_ONE(SHAPE), "fill_gamma_by: shape", dm_fill_gamma_by(s, t.f, dm_element(pair), n, 1));
    REFUSED(DMT_ONE(DTYPE), "fill_gamma_by: shape", dm_fill_gamma_by(s, t.f, dm_element(complex), n, 1));
    REFUSED(DMT_ONE(OVERLAP), "fill_gamma_by: shape", dm_fill_gamma_by(s, t.g, dm_element(inside), n, 1));
    REFUSED(DMT_ONE(OVERLAP), "fill_gamma_by: scale", dm_fill_gamma_by(s, t.g, n, dm_element(inside), 1));
    REFUSED(DMT_ONE(DTYPE), "fill_gamma_by: x has dtype", dm_fill_gamma_by(s, t.whole, e, n, 1));
    REFUSED(DMT_ONE(ARG), "fill_poisson_by: rate is -1", dm_fill_poisson_by(s, t.f, dm_value(-1), 1));
    REFUSED(DMT_ONE(ARG), "fill_poisson_by: rate is no factor", dm_fill_poisson_by(s, t.f, bad, 1));
    REFUSED(DMT_ONE(SHAPE), "fill_poisson_by: rate", dm_fill_poisson_by(s, t.f, dm_element(pair), 1));
    REFUSED(DMT_ONE(DTYPE), "fill_poisson_by: rate", dm_fill_poisson_by(s, t.f, dm_complex(1, 1), 1));
    REFUSED(DMT_ONE(OVERLAP), "fill_poisson_by: rate", dm_fill_poisson_by(s, t.g, dm_element(inside), 1));
    REFUSED(DMT_ONE(DTYPE), "fill_poisson_by: x has dtype", dm_fill_poisson_by(s, complex, e, 1));
    REFUSED(DMT_ONE(ARG), "require_range_by: low is nan", dm_require_range_by(s, t.f, dm_value(NAN), e));
    REFUSED(DMT_ONE(ARG), "require_range_by: high is no factor", dm_require_range_by(s, t.f, e, bad));
    REFUSED(DMT_ONE(SHAPE), "require_range_by: high", dm_require_range_by(s, t.f, n, dm_element(pair)));
    REFUSED(DMT_ONE(DTYPE), "require_range_by: low", dm_require_range_by(s, t.f, dm_element(complex), n));
    REFUSED(DMT_ONE(OVERLAP), "require_range_by: high", dm_require_range_by(s, t.g, n, dm_element(inside)));
    REFUSED(DMT_ONE(DTYPE), "fill_uniform_by: hi", dm_fill_uniform_by(s, t.f, n, dm_element(complex), 1));
    REFUSED(DMT_ONE(ARG), "fill_arange_by: start is 0.5", dm_fill_arange_by(s, t.whole, dm_value(0.5), e));
    REFUSED(DMT_ONE(ARG), "fill_arange_by: start is 256",
            dm_fill_arange_by(s, t.byte, dm_value(256), dm_element(number)));
    REFUSED(DMT_ONE(ARG), "fill_arange_by: step is nan", dm_fill_arange_by(s, t.byte, e, dm_value(NAN)));
    REFUSED(DMT_ONE(ARG), "fill_uniform_by: lo is -1", dm_fill_uniform_by(s, t.byte, dm_value(-1), e, 1));
    REFUSED(DMT_ONE(ARG), "fill_uniform_by: hi is inf", dm_fill_uniform_by(s, t.f, e, dm_value(INFINITY), 1));
    REFUSED(DMT_ONE(ARG), "fill_normal_by: deviation is -1", dm_fill_normal_by(s, t.f, e, dm_value(-1), 1));
    REFUSED(DMT_ONE(SHAPE), "sum_by: x is", dm_sum_by(s, t.f, NULL, 0, e, n, t.row));
    REFUSED(DMT_ONE(SHAPE), "sum_by: scale", dm_sum_by(s, t.f, NULL, 0, dm_element(pair), n, element));
    REFUSED(DMT_ONE(OVERLAP), "sum_by: scale", dm_sum_by(s, t.f, NULL, 0, dm_element(element), n, element));
    REFUSED(DMT_ONE(DTYPE), "sum_by: beta", dm_sum_by(s, t.whole, NULL, 0, n, dm_element(real), number));
    REFUSED(DMT_ONE(ARG), "sum_by: dims", dm_sum_by(s, t.whole, NULL, 3, n, dm_element(real), number));
    REFUSED(DMT_ONE(SHAPE), "gemm_by", dm_gemm_by(s, DM_N, DM_N, e, t.f, t.f, n, t.g, NULL));
    REFUSED(DMT_ONE(SHAPE), "gemm_by: alpha",
            dm_gemm_by(s, DM_N, DM_T, dm_element(pair), t.row, t.row, n, element, NULL));
    REFUSED(DMT_ONE(OVERLAP), "gemm_by: beta", dm_gemm_by(s, DM_N, DM_T, n, t.row, t.row, e, element, NULL));
    REFUSED(DMT_ONE(DTYPE), "gemm_by: a", dm_gemm_by(s, DM_N, DM_N, e, t.whole, t.row, n, six, NULL));
    dm_array tall, flat; /* their product has elements, and nothing to add up */
    DMT_OK(c, dm_matrix(s, DM_F32, 6, 0, &tall));
    DMT_OK(c, dm_matrix(s, DM_F32, 0, 5, &flat));
    REFUSED(DMT_ONE(HANDLE), "gemm_by: alpha",
            dm_gemm_by(s, DM_N, DM_N, dm_element(none), tall, flat, n, t.g, NULL));
    REFUSED(DMT_ONE(ARG), "gemm_by: alpha", dm_gemm_by(s, DM_N, DM_N, bad, tall, flat, e, t.g, NULL));
    REFUSED(DMT_ONE(OVERLAP), "gemm_by: alpha",
            dm_gemm_by(s, DM_N, DM_N, dm_element(inside), tall, flat, n, t.g, NULL));
    DMT_OK(c, dm_array_destroy(s, tall));
    DMT_OK(c, dm_array_destroy(s, flat));
    const dm_array made[] = {element, complex, real, number, inside, six};
    for (int i = 0; i < 6; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
    dmt_thing_end(c, pair, DM_F32, 1, two);
    dmt_things_end(c, &t);
}

/* Calls made of others: nothing is changed. */
static void refused_algebra_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t first[2] = {0, 0}, one[2] = {1, 1}, two[1] = {2}, six[1] = {6};
    dm_array complex, square, tall, other, vector, corner, inside, none, labels,
        pair = dmt_thing_make(c, DM_F32, 1, two);
    DMT_OK(c, dm_array_create(s, DM_C64, 0, NULL, NULL, &complex));
    DMT_OK(c, dm_matrix(s, DM_C64, 3, 3, &square));
    DMT_OK(c, dm_matrix(s, DM_C64, 3, 2, &tall));
    DMT_OK(c, dm_matrix(s, DM_C64, 3, 2, &other));
    DMT_OK(c, dm_vector(s, DM_C64, 3, &vector));
    DMT_OK(c, dm_array_create(s, DM_I32, 1, six, NULL, &labels));
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &none));
    DMT_OK(c, dm_array_destroy(s, none));
    DMT_OK(c, dm_array_view(s, square, first, one, &corner));
    DMT_OK(c, dm_array_view(s, t.g, first, one, &inside));
    dm_factor n = dm_value(2);
    REFUSED(DMT_ONE(DTYPE), "herk_by: beta",
            dm_herk_by(s, DM_LOWER, DM_N, n, tall, dm_element(complex), square));
    REFUSED(DMT_ONE(DTYPE), "her_by: alpha", dm_her_by(s, DM_LOWER, dm_complex(1, 2), vector, square));
    REFUSED(DMT_ONE(OVERLAP), "syr_by: alpha", dm_syr_by(s, DM_LOWER, dm_element(corner), vector, square));
    REFUSED(DMT_ONE(SHAPE), "trsm_by: alpha",
            dm_trsm_by(s, DM_LEFT, DM_LOWER, DM_N, DM_NONUNIT, dm_element(pair), square, tall));
    REFUSED(DMT_ONE(HANDLE), "symm_by: beta",
            dm_symm_by(s, DM_LEFT, DM_LOWER, n, square, tall, dm_element(none), other));
    REFUSED(DMT_ONE(DTYPE), "rot_by: s", dm_rot_by(s, t.f, t.g, n, dm_element(complex)));
    REFUSED(DMT_ONE(OVERLAP), "rot_by: c", dm_rot_by(s, t.f, t.g, dm_element(inside), n));
    REFUSED(DMT_ONE(OVERLAP), "pad_by: value",
            dm_pad_by(s, t.f, (int64_t[]){0, 0}, (int64_t[]){0, 0}, DM_PAD_CONSTANT, dm_element(inside), t.g));
    REFUSED(DMT_ONE(SHAPE), "channel_sums_by: scale",
            dm_channel_sums_by(s, 0, dm_element(pair), t.f, DM_NO_ARRAY, n, t.row));
    REFUSED(DMT_ONE(SHAPE), "cross_entropy_gradient_by: scale",
            dm_cross_entropy_gradient_by(s, t.f, labels, dm_element(pair), t.g));
    dm_array one_f, rows, bias, wide_out, half[2];
    const int64_t places[2] = {1, 0};
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &one_f));
    DMT_OK(c, dm_matrix(s, DM_I32, 5, 5, &rows));
    DMT_OK(c, dm_vector(s, DM_F32, 5, &bias));
    DMT_OK(c, dm_matrix(s, DM_F32, 5, 5, &wide_out));
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_matrix(s, DM_F16, 6, 5, &half[i]));
    }
    dm_factor e = dm_element(one_f);
    const dm_loss loss = DM_LOSS_INIT;
    dm_array last;
    DMT_OK(c, dm_array_view(s, wide_out, places, (int64_t[]){1, 5}, &last));
    REFUSED(DMT_ONE(DTYPE), "inner_backward_weights_by: dw",
            dm_inner_backward_weights_by(s, 4, t.f, t.g, e, rows, DM_NO_ARRAY));
    REFUSED(DMT_ONE(HANDLE), "inner_backward_weights_by: dy",
            dm_inner_backward_weights_by(s, 4, t.f, none, e, wide_out, DM_NO_ARRAY));
    REFUSED(DMT_ONE(OVERLAP), "inner_backward_weights_by: dw and db",
            dm_inner_backward_weights_by(s, 4, t.f, t.g, e, wide_out, last));
    REFUSED(DMT_ONE(DTYPE), "channel_sums_by: out", dm_channel_sums_by(s, 4, e, t.f, DM_NO_ARRAY, n, vector));
    REFUSED(DMT_ONE(OVERLAP), "sigmoid_loss_backward_by: x and dx",
            dm_sigmoid_loss_backward_by(s, &loss, half[0], half[1], e, half[0]));
    REFUSED(DMT_ONE(OVERLAP), "sigmoid_loss_backward_by: targets and dx",
            dm_sigmoid_loss_backward_by(s, &loss, half[0], half[1], e, half[1]));
    REFUSED(DMT_ONE(DTYPE), "softmax_loss_backward_by: dx",
            dm_softmax_loss_backward_by(s, &loss, t.f, labels, e, t.whole));
    REFUSED(DMT_ONE(HANDLE), "softmax_loss_backward_by: prob",
            dm_softmax_loss_backward_by(s, &loss, none, labels, e, t.g));
    REFUSED(DMT_ONE(HANDLE), "hinge_loss_backward_by: labels",
            dm_hinge_loss_backward_by(s, 1, 4, t.f, none, e, t.g));
    const dm_array made[] = {corner, inside, complex, square,   tall,    other,   vector, labels,
                             one_f,  rows,   bias,    wide_out, half[0], half[1], last};
    for (int i = 0; i < (int)(sizeof made / sizeof *made); i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
    dmt_thing_end(c, pair, DM_F32, 1, two);
    dmt_things_end(c, &t);
}

/* Of an array split over 4 workers, the element goes to three of them, and explain says so. */
static void moved_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout single = dm_layout_single(c->workers > 1), rows = dm_layout_rows(s);
    const int64_t shape[2] = {40, 7};
    dm_array x, alpha;
    char *text = NULL;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, &single, &alpha));
    DMT_OK(c, dm_fill(s, x, 3));
    DMT_OK(c, dm_fill(s, alpha, 2));
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_scale_by(s, dm_element(alpha), x, x));
    DMT_OK(c, dm_explain_end(s, &text));
    if (!strstr(text, "operand alpha: f64") || !strstr(text, "operand out: f64")) {
        dmt_fail(c, "explain does not name the operands: %s", text);
    }
    free(text);
    int64_t before = dmt_bytes_sent(c);
    DMT_OK(c, dm_scale_by(s, dm_element(alpha), x, x));
    int64_t sent = dmt_bytes_sent(c);
    if (sent - before != 8 * (c->workers - 1)) {
        dmt_fail(c, "%d bytes were sent, not %d", (int)(sent - before), 8 * (c->workers - 1));
    }
    double got;
    DMT_OK(c, dm_item(s, x, (int64_t[]){39, 6}, &got));
    if (got != 6) {
        dmt_fail(c, "2 * 3 is %g", got);
    }
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, alpha));
}

/* A recorded loop: y = y / |y| of A y in each run, with the factor in an array; against the calls one by one,
 * to the bit. */
static void power_step(dmt_case *c, dm_array a, dm_array y, dm_array next, dm_array factor, dm_array total)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_gemm_by(s, DM_N, DM_N, dm_element(factor), a, y, dm_value(0), next, NULL));
    DMT_OK(c, dm_sum_by(s, next, NULL, 0, dm_element(factor), dm_value(0.5), total));
    DMT_OK(c, dm_reciprocal(s, total, factor));
    DMT_OK(c, dm_scale_by(s, dm_element(factor), next, y));
}

static void program_case(dmt_case *c)
{
    enum { N = 13, RUNS = 4 };
    const int64_t shape[] = {N, N};
    dm_session *s = c->session;
    dm_program program;
    dmt_host *a_value = dmt_host_make(&c->scratch, DM_F64, 2, shape),
             *y_value = dmt_host_make(&c->scratch, DM_F64, 1, shape);
    dmt_host *one = dmt_host_make(&c->scratch, DM_F64, 0, NULL), *got[2];
    dmt_host_random(a_value, &c->random, DMT_SMOOTH);
    dmt_host_set(y_value, 1);
    dmt_host_set(one, 1);
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0), *y = dmt_operand_make(c, "y", y_value, 0);
    dmt_operand *next = dmt_operand_make(c, "next", y_value, 0),
                *factor = dmt_operand_make(c, "factor", one, 0);
    dmt_operand *total = dmt_operand_make(c, "total", one, 0);
    for (int recorded = 0; recorded < 2; recorded++) {
        DMT_OK(c, dm_fill(s, y->array, 1));
        DMT_OK(c, dm_fill(s, factor->array, 1));
        DMT_OK(c, dm_fill(s, total->array, 1));
        if (recorded) {
            DMT_OK(c, dm_program_begin(s));
        }
        for (int i = 0; i < (recorded ? 1 : RUNS); i++) {
            power_step(c, a->array, y->array, next->array, factor->array, total->array);
        }
        if (recorded) {
            DMT_OK(c, dm_program_end(s, &program));
            DMT_OK(c, dm_program_run(s, program, RUNS, 0, NULL));
            DMT_OK(c, dm_program_destroy(s, program));
        }
        got[recorded] = dmt_read(c, y->array, DM_F64, 1, shape);
    }
    dmt_operand_check_same(c, y, got[0]);
    char text[256];
    if (!dmt_host_same(got[1], got[0], text, sizeof text)) {
        dmt_fail(c, "recorded, the loop gives something else: %s", text);
    }
}

/* Complex factors of complex and real arrays: elements and numbers. */
typedef struct complex_value {
    double re, im;
} complex_value;

static complex_value product(complex_value a, complex_value b)
{
    return (complex_value){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static void expect(dmt_case *c, dm_array x, const complex_value *want, const char *what)
{
    dm_c128 got[3];
    DMT_OK(c, dm_array_read(c->session, x, NULL, NULL, got, 0));
    for (int i = 0; i < 3; i++) {
        if (got[i].re != want[i].re || got[i].im != want[i].im) {
            dmt_fail(c, "%s: element %d is %g%+gi, not %g%+gi", what, i, got[i].re, got[i].im, want[i].re,
                     want[i].im);
        }
    }
}

static void complex_case(dmt_case *c)
{
    const dm_c128 value[3] = {{1, 2}, {-3, 0.5}, {0, 4}}, factor = {2, -1};
    const float real[3] = {4, -1, 0.5};
    const complex_value alpha_value = {2, -1}, beta = {0, 3};
    const int64_t n = 3, square[2] = {3, 3}, column[2] = {3, 1};
    complex_value x_value[3], y_value[3], want[3];
    dm_array x, y, alpha, one, out, twice;
    dm_session *s = c->session;
    DMT_OK(c, dm_array_create(s, DM_C128, 1, &n, NULL, &x));
    DMT_OK(c, dm_array_create(s, DM_F32, 1, &n, NULL, &y));
    DMT_OK(c, dm_array_create(s, DM_C128, 0, NULL, NULL, &alpha));
    DMT_OK(c, dm_array_write(s, x, NULL, NULL, value, 0));
    DMT_OK(c, dm_array_write(s, y, NULL, NULL, real, 0));
    DMT_OK(c, dm_array_write(s, alpha, NULL, NULL, &factor, 0));
    for (int i = 0; i < 3; i++) {
        x_value[i] = product(alpha_value, (complex_value){value[i].re, value[i].im});
        y_value[i] = product(beta, (complex_value){real[i], 0});
    }
    DMT_OK(c, dm_scale_by(s, dm_element(alpha), x, x));
    expect(c, x, x_value, "scale by an element");
    for (int i = 0; i < 3; i++) { /* (3i) y + (2 - i) x */
        want[i] = product(alpha_value, x_value[i]);
        want[i] = (complex_value){want[i].re + y_value[i].re, want[i].im + y_value[i].im};
    }
    DMT_OK(c, dm_axpby_by(s, dm_complex(0, 3), y, dm_complex(2, -1), x));
    expect(c, x, want, "axpby by numbers");
    /* (2 - i) 1 x + (3i) x of a product with the identity */
    DMT_OK(c, dm_array_create(s, DM_C128, 2, square, NULL, &one));
    DMT_OK(c, dm_array_create(s, DM_C128, 2, column, NULL, &out));
    DMT_OK(c, dm_array_create(s, DM_C128, 2, column, NULL, &twice));
    DMT_OK(c, dm_fill_identity_by(s, one, dm_complex(0, 1)));
    DMT_OK(c, dm_array_write(s, out, NULL, NULL, value, 0));
    DMT_OK(c, dm_array_write(s, twice, NULL, NULL, value, 0));
    DMT_OK(c, dm_gemm_by(s, 0, 0, dm_complex(2, -1), one, twice, dm_complex(0, 3), out, NULL));
    for (int i = 0; i < 3; i++) {
        complex_value v = {value[i].re, value[i].im},
                      a = product(alpha_value, product((complex_value){0, 1}, v)), b = product(beta, v);
        want[i] = (complex_value){a.re + b.re, a.im + b.im};
    }
    expect(c, out, want, "product by numbers");
    dmt_status_is(c, dm_scale_by(s, dm_complex(1, 1), y, y), DM_ERR_DTYPE, "a complex factor of a real array");
    const dm_array made[] = {x, y, alpha, one, out, twice};
    for (int i = 0; i < 6; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

#define TEST(what, suite_name, number)                                                                         \
    static void test_##what(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = suite_name, .cases = number, .fn = what##_case});                         \
    }
TEST(axpby, "axpby_by", 900)
TEST(binary, "binary_by", 600)
TEST(scale, "scale_by", 400)
TEST(fill, "fill_by", 800)
TEST(same, "factors_same", 150)
TEST(program, "factors_program", 60)
DMT_ONE_CASE(narrowed_case)
DMT_ONE_CASE(complex_out_case)
DMT_ONE_CASE(refused_case)
DMT_ONE_CASE(refused_algebra_case)

static void test_few(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "factors_moved", .cases = 1, .fn = moved_case, .workers = 4, .each = true});
    dmt_run(
        &(dmt_suite){.name = "factors_complex", .cases = 1, .fn = complex_case, .workers = 3, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axpby),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_narrowed_case),
        cmocka_unit_test(test_complex_out_case),
        cmocka_unit_test(test_refused_case),
        cmocka_unit_test(test_refused_algebra_case),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_program),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
