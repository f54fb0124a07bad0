/* Elementwise operations over all triples of types, strides, broadcasts and aliases, one element at a time. */
#include "kernel_oracle.h"
#include "kernels/direct.h"

static dm_dtype promoted(dm_dtype a, dm_dtype b)
{
    if (a == b) {
        return a;
    }
    if (!floating(a) && !floating(b)) {
        return a == DM_I64 || b == DM_I64 ? DM_I64 : DM_I32;
    }
    if (floating(a) && floating(b)) {
        return a == DM_F64 || b == DM_F64 ? DM_F64 : DM_F32;
    }
    dm_dtype x = floating(a) ? a : b, whole = floating(a) ? b : a;
    return x == DM_F64 || (x != DM_BF16 && width_of(whole) > 2) ? DM_F64 : DM_F32;
}

typedef struct one {
    int op;
    dm_dtype a, b, out;
    double alpha, beta;
} one;

static bool is_binary(int op)
{
    return op == DMI_EW_ADD || op == DMI_EW_MUL;
}

static real whole_result(const one *o, int64_t x, int64_t y)
{
    uint64_t alpha = (uint64_t)(int64_t)o->alpha, beta = (uint64_t)(int64_t)o->beta, r;
    switch (o->op) {
    case DMI_EW_ADD:
        r = alpha * (uint64_t)x + beta * (uint64_t)y;
        break;
    case DMI_EW_MUL:
        r = alpha * (uint64_t)x * (uint64_t)y;
        break;
    case DMI_EW_SCALE:
        r = alpha * (uint64_t)x;
        break;
    default:
        r = x > 0 ? alpha * (uint64_t)x : 0;
        break;
    }
    return (real)(int64_t)r;
}

static double double_result(const one *o, double x, double y)
{
    switch (o->op) {
    case DMI_EW_ADD:
        x = o->alpha == 0 ? 0 : o->alpha * x;
        y = o->beta == 0 ? 0 : o->beta * y;
        return x + y;
    case DMI_EW_MUL:
        return o->alpha * x * y;
    case DMI_EW_SCALE:
        return o->alpha * x;
    case DMI_EW_RELU:
        return o->alpha * (isnan(x) ? x : x > 0 ? x : 0);
    case DMI_EW_EXP:
        return o->alpha * (double)expl(x);
    default:
        return o->alpha * (double)tanhl(x);
    }
}

static float float_result(const one *o, float x, float y)
{
    float alpha = (float)o->alpha, beta = (float)o->beta;
    switch (o->op) {
    case DMI_EW_ADD:
        x = alpha == 0 ? 0 : alpha * x;
        y = beta == 0 ? 0 : beta * y;
        return x + y;
    case DMI_EW_MUL:
        return alpha * x * y;
    case DMI_EW_SCALE:
        return alpha * x;
    case DMI_EW_RELU:
        return alpha * (isnan(x) ? x : x > 0 ? x : 0);
    case DMI_EW_EXP:
        return alpha * (float)expl(x);
    default:
        return alpha * (float)tanhl(x);
    }
}

/* The result before conversion: for floats in the type it is computed in. */
static void expect_one(const one *o, const void *a, const void *b, void *out)
{
    real x = decode(o->a, a), y = is_binary(o->op) ? decode(o->b, b) : 0;
    dm_dtype t = is_binary(o->op) ? promoted(o->a, o->b) : o->a;
    bool transcendental = o->op == DMI_EW_EXP || o->op == DMI_EW_TANH;
    if (!floating(t) && !floating(o->out) && !transcendental) {
        encode_int(o->out, (int64_t)whole_result(o, (int64_t)x, (int64_t)y), out);
    } else if (t == DM_F64 || !floating(t)) {
        encode_float(o->out, double_result(o, (double)x, (double)y), out);
    } else {
        encode_float(o->out, float_result(o, (float)x, (float)y), out);
    }
}

static bool agrees(const one *o, const void *got, const void *expected)
{
    if (same_element(o->out, got, expected)) {
        return true;
    }
    if (o->op != DMI_EW_EXP && o->op != DMI_EW_TANH) {
        return false;
    }
    real g = decode(o->out, got), e = decode(o->out, expected);
    dm_dtype computed = o->a == DM_F64 || !floating(o->a) ? DM_F64 : DM_F32;
    real eps = computed == DM_F64 ? 0x1p-50L : 0x1p-21L;
    real unit = o->out == DM_F16 ? 0x1p-10L : o->out == DM_BF16 ? 0x1p-7L : o->out == DM_F32 ? 0x1p-23L : 0;
    real least = o->out == DM_F16 ? 0x1p-24L : floating(o->out) ? 1e-37L : 1;
    return fabsl(g - e) <= (eps + unit) * fabsl(e) + least;
}

/* Extents, strides and offsets; `share`: 1 out is a, 2 out is b. */
static void make_case(rng *r, int ndim, int64_t longest, int share, dmi_ewise *d, int64_t *span)
{
    d->ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        d->extent[k] = rng_in(r, 0, 30) == 0 ? 0 : rng_in(r, 1, rng_in(r, 0, 2) == 0 ? 2 : longest);
    }
    d->a_offset = rng_in(r, 0, 3);
    d->b_offset = rng_in(r, 0, 3);
    d->out_offset = rng_in(r, 0, 3);
    span[0] = d->a_offset + random_strides(r, ndim, d->extent, d->a_stride);
    span[1] = d->b_offset + random_strides(r, ndim, d->extent, d->b_stride);
    span[2] = d->out_offset + random_strides(r, ndim, d->extent, d->out_stride);
    for (int k = 0; k < ndim; k++) {
        d->a_stride[k] = rng_in(r, 0, 5) == 0 && share != 1 ? 0 : d->a_stride[k];
        d->b_stride[k] = rng_in(r, 0, 5) == 0 && share != 2 ? 0 : d->b_stride[k];
    }
    if (share == 1) {
        memcpy(d->a_stride, d->out_stride, sizeof d->a_stride);
        d->a_offset = d->out_offset;
    }
    if (share == 2) {
        memcpy(d->b_stride, d->out_stride, sizeof d->b_stride);
        d->b_offset = d->out_offset;
    }
}

static void expect_all(const dmi_ewise *d, const one *o, const char *a, const char *b, char *out)
{
    int64_t index[DM_MAX_DIMS] = {0};
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0) {
            return;
        }
    }
    for (;;) {
        int64_t x = d->a_offset, y = d->b_offset, z = d->out_offset;
        for (int k = 0; k < d->ndim; k++) {
            x += index[k] * d->a_stride[k];
            y += index[k] * d->b_stride[k];
            z += index[k] * d->out_stride[k];
        }
        expect_one(o, a + x * width_of(o->a), b + y * width_of(o->b), out + z * width_of(o->out));
        int k = d->ndim - 1;
        while (k >= 0 && ++index[k] == d->extent[k]) {
            index[k--] = 0;
        }
        if (k < 0) {
            return;
        }
    }
}

static void check_ewise(rng *r, one *o, int ndim, int64_t longest, int share)
{
    dmi_ewise d = {.op = o->op, .a_dtype = o->a, .b_dtype = o->b, .out_dtype = o->out};
    int64_t span[3];
    make_case(r, ndim, longest, share, &d, span);
    char *a = random_array(r, o->a, span[0]), *b = random_array(r, o->b, span[1]);
    char *out = random_array(r, o->out, span[2]);
    size_t bytes = (size_t)(span[2] * width_of(o->out));
    char *expected = malloc(bytes + 1), *before = malloc(bytes + 1);
    assert_true(expected != NULL && before != NULL);
    memcpy(expected, out, bytes);
    memcpy(before, out, bytes);
    expect_all(&d, o, share == 1 ? before : a, share == 2 ? before : b, expected);
    const char *use_a = share == 1 ? out : a, *use_b = share == 2 ? out : b;
    bool no_a = o->op == DMI_EW_ADD && o->alpha == 0,
         no_b = !is_binary(o->op) || (o->op == DMI_EW_ADD && o->beta == 0);
    dmi_run_ewise(dmi_backend_cpu(), NULL, &d, o->alpha, no_a ? NULL : use_a, o->beta, no_b ? NULL : use_b, out);
    for (int64_t i = 0; i < span[2]; i++) {
        if (!agrees(o, out + i * width_of(o->out), expected + i * width_of(o->out))) {
            fail_msg("op %d %s,%s -> %s alpha %g beta %g share %d: element %lld is %Lg, not %Lg", o->op,
                     dmi_dtype_name(o->a), dmi_dtype_name(o->b), dmi_dtype_name(o->out), o->alpha, o->beta,
                     share, (long long)i, decode(o->out, out + i * width_of(o->out)),
                     decode(o->out, expected + i * width_of(o->out)));
        }
    }
    free(a);
    free(b);
    free(out);
    free(expected);
    free(before);
}

static void coefficients(rng *r, one *o)
{
    static const double whole[] = {0, 1, -1, 2, -3, 1000003}, any[] = {0, 1, -1, 0.5, 0.1, -2.3, 1e-46};
    bool integers = !floating(o->a) && !floating(o->b) && !floating(o->out);
    o->alpha = integers ? whole[rng_in(r, 0, 5)] : any[rng_in(r, 0, 6)];
    o->beta = integers ? whole[rng_in(r, 0, 5)] : any[rng_in(r, 0, 6)];
    bool single = promoted(o->a, is_binary(o->op) ? o->b : o->a) != DM_F64;
    if (single && !integers) { /* 1e-46 is 0 in f32: one value for both sides to agree on */
        o->alpha = (float)o->alpha;
        o->beta = (float)o->beta;
    }
}

static void test_all_triples(void **state)
{
    (void)state;
    rng r = {21};
    for (int triple = 0; triple < 343; triple++) {
        for (int op = 0; op < DMI_EW_OPS; op++) {
            one o = {.op = op,
                     .a = all_dtypes[triple % 7],
                     .b = all_dtypes[triple / 7 % 7],
                     .out = all_dtypes[triple / 49]};
            for (int ndim = 0; ndim <= 4; ndim++) {
                coefficients(&r, &o);
                check_ewise(&r, &o, ndim, ndim <= 1 ? 1200 : ndim == 2 ? 30 : 5, 0);
            }
        }
    }
}

static void test_in_place(void **state)
{
    (void)state;
    rng r = {22};
    for (int t = 0; t < 49; t++) {
        for (int op = 0; op < DMI_EW_OPS; op++) {
            for (int round = 0; round < 6; round++) {
                one o = {.op = op, .a = all_dtypes[t % 7], .b = all_dtypes[t / 7], .out = all_dtypes[t % 7]};
                coefficients(&r, &o);
                check_ewise(&r, &o, (int)rng_in(&r, 0, 3), 20, 1);
                check_ewise(&r, &o, 1, 3000, 1);
                o.a = all_dtypes[t / 7];
                o.b = o.out;
                coefficients(&r, &o);
                if (is_binary(op)) {
                    check_ewise(&r, &o, (int)rng_in(&r, 0, 3), 20, 2);
                }
            }
        }
    }
}

static void test_eight_dims_and_shapes(void **state)
{
    (void)state;
    rng r = {23};
    one o = {.op = DMI_EW_ADD, .a = DM_F32, .b = DM_F32, .out = DM_F32};
    for (int round = 0; round < 10; round++) {
        coefficients(&r, &o);
        check_ewise(&r, &o, 8, 2, 0);
        check_ewise(&r, &o, 2, 1500, 0);
    }
}

/* NaN and Inf pass; a term with a coefficient of 0 does not. */
static void test_special(void **state)
{
    (void)state;
    const float a[3] = {NAN, INFINITY, -INFINITY}, b[3] = {1, 2, 3};
    float out[3];
    dmi_ewise d = {.op = DMI_EW_ADD,
                   .ndim = 1,
                   .extent = {3},
                   .a_dtype = DM_F32,
                   .b_dtype = DM_F32,
                   .out_dtype = DM_F32,
                   .a_stride = {1},
                   .b_stride = {1},
                   .out_stride = {1}};
    dmi_run_ewise(dmi_backend_cpu(), NULL, &d, 0, a, 2, b, out);
    assert_true(out[0] == 2 && out[1] == 4 && out[2] == 6);
    dmi_run_ewise(dmi_backend_cpu(), NULL, &d, 2, b, 0, a, out);
    assert_true(out[0] == 2 && out[1] == 4 && out[2] == 6);
    d.op = DMI_EW_RELU;
    dmi_run_ewise(dmi_backend_cpu(), NULL, &d, 1, a, 0, NULL, out);
    assert_true(isnan(out[0]) && isinf(out[1]) && out[2] == 0);
    d.op = DMI_EW_TANH;
    dmi_run_ewise(dmi_backend_cpu(), NULL, &d, 1, a, 0, NULL, out);
    assert_true(isnan(out[0]) && out[1] == 1 && out[2] == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_triples),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_eight_dims_and_shapes),
        cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
