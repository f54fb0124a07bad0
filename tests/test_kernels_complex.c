/* The kernels on complex elements: conversions, copies, fills and sums, part by part against plain loops. */
#include "kernel_oracle.h"
#include "kernels/box/convert.h"
#include "kernels/direct.h"

static const dm_dtype complex_dtypes[2] = {DM_C64, DM_C128};

static void convert_number(dm_dtype from, const char *src, dm_dtype to, char *dst)
{
    dm_dtype f = part_of(from), t = part_of(to);
    if (to == DM_BOOL) {
        *dst = decode(f, src) != 0 || (is_complex(from) && decode(f, src + width_of(f)) != 0);
        return;
    }
    convert_one(f, src, t, dst);
    if (is_complex(to) && is_complex(from)) {
        convert_one(f, src + width_of(f), t, dst + width_of(t));
    } else if (is_complex(to)) {
        memset(dst + width_of(t), 0, (size_t)width_of(t));
    }
}

static void check_numbers(const char *what, dm_dtype t, const void *got, const void *expected, int64_t n)
{
    check_same(what, part_of(t), got, expected, n * (is_complex(t) ? 2 : 1));
}

static void test_convert(void **state)
{
    (void)state;
    enum { N = DMI_CHUNK + 37 };
    rng r = {71};
    for (int i = 0; i < 2 * (ALL_DTYPES + 2); i++) {
        dm_dtype z = complex_dtypes[i % 2],
                 x = i < 2 * ALL_DTYPES ? all_dtypes[i / 2] : complex_dtypes[i / 2 % 2];
        for (int way = 0; way < 2; way++) {
            dm_dtype from = way ? x : z, to = way ? z : x;
            char *src = random_array(&r, from, N), *got = malloc(N * 16), *expected = malloc(N * 16);
            assert_true(got != NULL && expected != NULL);
            for (int64_t k = 0; k < N; k++) {
                convert_number(from, src + k * width_of(from), to, expected + k * width_of(to));
            }
            dmi_convert_row(from, to, src, got, N);
            check_numbers("convert", to, got, expected, N);
            free(src);
            free(got);
            free(expected);
        }
    }
}

static void naive(const dmi_copy *d, int dim, int64_t src_at, int64_t dst_at, const char *src, char *dst)
{
    if (dim == d->ndim) {
        convert_number(d->src_dtype, src + src_at * width_of(d->src_dtype), d->dst_dtype,
                       dst + dst_at * width_of(d->dst_dtype));
        return;
    }
    for (int64_t q = 0; q < d->nrun[dim]; q++) {
        const dmi_run *run = &d->run[dim][q];
        for (int64_t i = 0; i < run->len; i++) {
            naive(d, dim + 1, src_at + (run->a + i) * d->src_stride[dim],
                  dst_at + (run->b + i) * d->dst_stride[dim], src, dst);
        }
    }
}

static void test_copy(void **state)
{
    (void)state;
    rng r = {72};
    for (int round = 0; round < 400; round++) {
        geometry g;
        int ndim = (int)rng_in(&r, 0, 4);
        make_geometry(&r, ndim, ndim <= 1 ? 2000 : ndim == 2 ? 60 : 6, &g);
        dm_dtype z = complex_dtypes[round % 2], x = rng_in(&r, 0, 1) ? z : any_dtype(&r);
        g.d.src_dtype = round % 3 ? z : x;
        g.d.dst_dtype = round % 3 ? x : z;
        char *src = random_array(&r, g.d.src_dtype, g.src_span),
             *dst = random_array(&r, g.d.dst_dtype, g.dst_span);
        size_t bytes = (size_t)(g.dst_span * width_of(g.d.dst_dtype));
        char *expected = malloc(bytes + 1);
        assert_non_null(expected);
        memcpy(expected, dst, bytes);
        naive(&g.d, 0, g.d.src_offset, g.d.dst_offset, src, expected);
        dmi_run_copy(dmi_backend_cpu(), NULL, &g.d, src, dst);
        check_numbers("copy", g.d.dst_dtype, dst, expected, g.dst_span);
        free(src);
        free(dst);
        free(expected);
        free_geometry(&g);
    }
}

/* Large enough to go through tiles and past the caches. */
static void test_transpose(void **state)
{
    (void)state;
    rng r = {73};
    for (int i = 0; i < 2; i++) {
        int64_t rows = 613, cols = 517, n = rows * cols, bytes = width_of(complex_dtypes[i]);
        dmi_run run[2] = {{0, 0, 0, rows}, {0, 0, 0, cols}};
        dmi_copy d = {.ndim = 2, .nrun = {1, 1}, .run = {&run[0], &run[1]}, .count = n};

        d.src_stride[0] = 1;
        d.src_stride[1] = rows;
        d.dst_stride[0] = cols;
        d.dst_stride[1] = 1;
        d.src_dtype = d.dst_dtype = complex_dtypes[i];
        char *src = random_array(&r, d.src_dtype, n), *dst = malloc((size_t)(n * bytes));
        assert_non_null(dst);
        dmi_run_copy(dmi_backend_cpu(), NULL, &d, src, dst);
        for (int64_t k = 0; k < n; k++) {
            assert_memory_equal(dst + k * bytes, src + (k % cols * rows + k / cols) * bytes, (size_t)bytes);
        }
        free(src);
        free(dst);
    }
}

static void test_fill(void **state)
{
    (void)state;
    const int64_t shape[2] = {37, 41};
    dmi_fill_values v = {.p0 = 1.1, .p1 = -0.3};
    for (int t = 0; t < 2; t++) {
        dm_dtype part = part_of(complex_dtypes[t]);
        for (int kind = DMI_FILL_CONST; kind <= DMI_FILL_ARANGE; kind++) {
            dmi_fill d;
            char out[37 * 41 * 16], number[16] = {0};
            whole_fill(kind, complex_dtypes[t], 2, shape, &d);
            memset(out, 0x7f, sizeof out);
            dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, out);
            for (int64_t i = 0; i < 37 * 41; i++) {
                bool on = kind != DMI_FILL_IDENTITY || i / 41 == i % 41;
                encode_float(part, on ? v.p0 + (kind == DMI_FILL_ARANGE ? v.p1 * (double)i : 0) : 0, number);
                assert_memory_equal(out + i * width_of(complex_dtypes[t]), number,
                                    (size_t)width_of(complex_dtypes[t]));
            }
        }
    }
}

/* --- sums: of whole numbers, exact in every accumulator ------------------------------------------- */
static void whole_numbers(rng *r, dm_dtype t, char *p, int64_t n)
{
    for (int64_t i = 0; i < n * (is_complex(t) ? 2 : 1); i++) {
        encode_int(part_of(t), rng_in(r, has_sign(part_of(t)) || is_complex(t) ? -3 : 0, t == DM_BOOL ? 1 : 3),
                   p + i * width_of(part_of(t)));
    }
}
static double number_part(dm_dtype t, const char *at, int part)
{
    return part == 0 || is_complex(t) ? (double)decode(part_of(t), at + part * width_of(part_of(t))) : 0;
}
/* Part of accumulator i. */
static double acc_number(int acc, const char *p, int64_t i, int part)
{
    double v[4] = {0};
    int64_t whole;
    memcpy(v, p + i * dmi_acc_bytes(acc), (size_t)dmi_acc_bytes(acc));
    memcpy(&whole, v, sizeof whole);
    switch (acc) {
    case DMI_ACC_F64:
    case DMI_ACC_C64:
        return v[part];
    case DMI_ACC_DD:
    case DMI_ACC_C128:
        return v[2 * part] + v[2 * part + 1];
    default:
        return part == 0 ? (double)whole : 0;
    }
}
static void make_acc(rng *r, int acc, char *p, int64_t n)
{
    for (int64_t i = 0; i < n * dmi_acc_bytes(acc) / 8; i++) {
        bool low = dmi_acc_part(acc) == DMI_ACC_DD && i % 2;
        encode_int(dmi_acc_whole(acc) ? DM_I64 : DM_F64, low ? 0 : rng_in(r, acc == DMI_ACC_U64 ? 0 : -9, 9),
                   p + i * 8);
    }
}

static void test_reduce(void **state)
{
    (void)state;
    rng r = {74};
    for (int round = 0; round < 1500; round++) {
        int64_t stride = 1, results = 1;
        dmi_reduce d = {.ndim = (int)rng_in(&r, 0, 4), .dtype = complex_dtypes[round % 2]};
        for (int k = 0; k < d.ndim; k++) {
            d.extent[k] = rng_in(&r, 0, 20) == 0 ? 0 : rng_in(&r, 1, d.ndim == 1 ? 1500 : d.ndim == 2 ? 50 : 7);
            d.reduced |= rng_in(&r, 0, 1) ? 1u << k : 0;
            results *= d.reduced >> k & 1 ? 1 : d.extent[k];
        }
        d.offset = rng_in(&r, 0, 3);
        int64_t span = d.offset + random_strides(&r, d.ndim, d.extent, d.stride), elem = width_of(d.dtype);
        int acc = dmi_acc_of(d.dtype);
        char *in = malloc((size_t)(span * elem) + 1), *out = malloc((size_t)(results * dmi_acc_bytes(acc)) + 1);
        double *sum = calloc((size_t)(2 * results) + 1, sizeof *sum);
        assert_true(in != NULL && out != NULL && sum != NULL);
        whole_numbers(&r, d.dtype, in, span);
        for (int k = 0; k < d.ndim; k++) {
            stride *= d.extent[k];
        }
        for (int64_t i = 0; i < stride; i++) {
            int64_t rest = i, at = d.offset, result = 0, weight = 1;
            for (int k = d.ndim - 1; k >= 0; k--) {
                int64_t x = rest % d.extent[k];
                rest /= d.extent[k];
                at += x * d.stride[k];
                result += d.reduced >> k & 1 ? 0 : x * weight;
                weight *= d.reduced >> k & 1 ? 1 : d.extent[k];
            }
            sum[2 * result] += number_part(d.dtype, in + at * elem, 0);
            sum[2 * result + 1] += number_part(d.dtype, in + at * elem, 1);
        }
        memset(out, 0x7f, (size_t)(results * dmi_acc_bytes(acc)));
        dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, out);
        for (int64_t i = 0; i < 2 * results; i++) {
            assert_true(acc_number(acc, out, i / 2, (int)(i % 2)) == sum[i]);
        }
        free(in);
        free(out);
        free(sum);
    }
}

static void test_acc_add(void **state)
{
    (void)state;
    rng r = {75};
    for (int round = 0; round < 300; round++) {
        int acc = round % 2 ? DMI_ACC_C64 : DMI_ACC_C128;
        int64_t m = rng_in(&r, 1, 9), n = rng_in(&r, 1, 9), gap = rng_in(&r, 0, 2), bytes = dmi_acc_bytes(acc);
        dmi_run run[2] = {{0, 0, 0, m}, {0, 0, 0, n}};
        dmi_acc_add d = {.acc = acc};
        d.geometry = (dmi_copy){.ndim = 2, .nrun = {1, 1}, .run = {&run[0], &run[1]}, .count = m * n};
        d.geometry.src_stride[0] = n;
        d.geometry.src_stride[1] = 1;
        d.geometry.dst_stride[0] = 1 + gap;
        d.geometry.dst_stride[1] = m * (1 + gap);
        d.geometry.src_offset = gap;
        char *part = malloc((size_t)((m * n + gap) * bytes)),
             *sum = malloc((size_t)(m * n * (1 + gap) * bytes));
        char *old = malloc((size_t)(m * n * (1 + gap) * bytes));
        assert_true(part != NULL && sum != NULL && old != NULL);
        make_acc(&r, acc, part, m * n + gap);
        make_acc(&r, acc, sum, m * n * (1 + gap));
        memcpy(old, sum, (size_t)(m * n * (1 + gap) * bytes));
        dmi_run_acc_add(dmi_backend_cpu(), NULL, &d, part, sum);
        for (int64_t i = 0; i < m * n * (1 + gap) * 2; i++) {
            int64_t at = i / 2, place = at / (1 + gap), from = place % m * n + place / m + gap;
            double more = at % (1 + gap) == 0 ? acc_number(acc, part, from, (int)(i % 2)) : 0;
            assert_true(acc_number(acc, sum, at, (int)(i % 2)) ==
                        acc_number(acc, old, at, (int)(i % 2)) + more);
        }
        free(part);
        free(sum);
        free(old);
    }
}

/* out = convert(scale * sum + beta * out), part by part; sums are whole numbers. */
static void expect_store(dm_dtype type, double scale, const double sum[2], double beta, char *out)
{
    dm_dtype part = part_of(type);
    for (int k = 0; k < (is_complex(type) ? 2 : 1); k++) {
        char *at = out + k * width_of(part);
        double old = beta == 0 ? 0 : beta * (double)decode(part, at);
        double v = (scale == 1 ? sum[k] : scale * sum[k]) + old;
        encode_float(part, v, at);
    }
}

static void test_acc_store(void **state)
{
    (void)state;
    static const double scales[] = {1, 1, 0.25, -3}, betas[] = {0, 0, 2, 0.5};
    rng r = {76};
    for (int round = 0; round < 1500; round++) {
        int acc = (int)rng_in(&r, 0, DMI_ACC_SUMS - 1);
        bool complex_acc = dmi_acc_parts(acc) == 2;
        dmi_acc_store d = {.acc = acc, .ndim = 2, .extent = {rng_in(&r, 1, 9), rng_in(&r, 1, 700)}};
        d.out_dtype = complex_acc ? any_dtype(&r) : complex_dtypes[round % 2];
        int64_t n = d.extent[0] * d.extent[1], span = random_strides(&r, 2, d.extent, d.out_stride);
        char *sum = malloc((size_t)(n * dmi_acc_bytes(acc))),
             *out = malloc((size_t)(span * width_of(d.out_dtype)));
        char *expected = malloc((size_t)(span * width_of(d.out_dtype)));
        double scale = scales[rng_in(&r, 0, 3)], beta = betas[rng_in(&r, 0, 3)];
        assert_true(sum != NULL && out != NULL && expected != NULL);
        make_acc(&r, acc, sum, n);
        whole_numbers(&r, d.out_dtype, out, span);
        memcpy(expected, out, (size_t)(span * width_of(d.out_dtype)));
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i / d.extent[1] * d.out_stride[0] + i % d.extent[1] * d.out_stride[1];
            double v[2] = {acc_number(acc, sum, i, 0), acc_number(acc, sum, i, 1)};
            expect_store(d.out_dtype, scale, v, beta, expected + at * width_of(d.out_dtype));
        }
        dmi_run_acc_store(dmi_backend_cpu(), NULL, &d, scale, sum, beta, out);
        for (int64_t i = 0; i < span * (is_complex(d.out_dtype) ? 2 : 1); i++) {
            dm_dtype part = part_of(d.out_dtype);
            real got = decode(part, out + i * width_of(part)),
                 want = decode(part, expected + i * width_of(part));
            if (!(got == want || (isnan(got) && isnan(want)))) {
                fail_msg("acc %d to %s, scale %g beta %g: %Lg, not %Lg", acc, dmi_dtype_name(d.out_dtype),
                         scale, beta, got, want);
            }
        }
        free(sum);
        free(out);
        free(expected);
    }
}

static void test_fold(void **state)
{
    (void)state;
    rng r = {77};
    for (int round = 0; round < 600; round++) {
        dm_dtype type = rng_in(&r, 0, 2) ? complex_dtypes[round % 2] : any_dtype(&r);
        dm_dtype out_type = is_complex(type) ? (rng_in(&r, 0, 1) ? type : DM_F32) : complex_dtypes[round % 2];
        dmi_fold d;
        int64_t span[3], n = 1, bytes = width_of(type), out_bytes = width_of(out_type);
        double beta = (double)rng_in(&r, 0, 1);
        random_fold(&r, type, out_type, &d, span);
        char *rows = malloc((size_t)(span[0] * bytes)), *own = malloc((size_t)(span[2] * bytes));
        char *out = malloc((size_t)(span[1] * out_bytes)), *expected = malloc((size_t)(span[1] * out_bytes));
        assert_true(rows != NULL && own != NULL && out != NULL && expected != NULL);
        whole_numbers(&r, type, rows, span[0]);
        whole_numbers(&r, type, own, span[2]);
        whole_numbers(&r, out_type, out, span[1]);
        memcpy(expected, out, (size_t)(span[1] * out_bytes));
        for (int k = 0; k < d.store.ndim; k++) {
            n *= d.store.extent[k];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, at = d.store.out_offset, own_at = d.own_offset;
            double v[2] = {0};
            for (int k = d.store.ndim - 1; k >= 0; k--) {
                at += rest % d.store.extent[k] * d.store.out_stride[k];
                own_at += rest % d.store.extent[k] * d.own_stride[k];
                rest /= d.store.extent[k];
            }
            for (int k = 0; k < 2; k++) {
                for (int row = 0; row < d.addends - (d.own >= 0); row++) {
                    v[k] += number_part(type, rows + (row * d.pitch + i) * bytes, k);
                }
                v[k] += d.own >= 0 ? number_part(type, own + own_at * bytes, k) : 0;
            }
            expect_store(out_type, 1, v, beta, expected + at * out_bytes);
        }
        dmi_run_fold(dmi_backend_cpu(), NULL, &d, 1, rows, d.own >= 0 ? own : NULL, beta, out);
        for (int64_t i = 0; i < span[1] * (is_complex(out_type) ? 2 : 1); i++) {
            dm_dtype part = part_of(out_type);
            assert_true(decode(part, out + i * width_of(part)) == decode(part, expected + i * width_of(part)));
        }
        free(rows);
        free(own);
        free(out);
        free(expected);
    }
}

/* p r - q s with each product rounded: no part of it may be fused. */
static void times(const double *a, const double *b, double *out)
{
    volatile double pr = a[0] * b[0], qs = a[1] * b[1], ps = a[0] * b[1], qr = a[1] * b[0];
    out[0] = pr - qs;
    out[1] = ps + qr;
}

static void test_multiply(void **state)
{
    (void)state;
    enum { N = 203 };
    rng r = {79};
    double a[2 * N], b[2 * N], got[2 * N], want[2 * N];
    for (int i = 0; i < 2 * N; i++) {
        a[i] = (double)rng_in(&r, -1000000, 1000000) / 999983;
        b[i] = (double)rng_in(&r, -1000000, 1000000) / 999979;
    }
    dmi_map d = {.ndim = 1, .extent = {N}, .dtype = {DM_C128, DM_C128, DM_C128}, .stride = {{1}, {1}, {1}}};
    assert_int_equal(dmi_map_row(DMI_EW_multiply, d.dtype, NULL, DM_C128, &d.program), DM_OK);
    dmi_run_map(dmi_backend_cpu(), NULL, &d, NULL, 0, (void *[]){a, b, got});
    for (int i = 0; i < N; i++) {
        times(a + 2 * i, b + 2 * i, want + 2 * i);
    }
    check_numbers("multiply", DM_C128, got, want, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert),   cmocka_unit_test(test_copy),   cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_fill),      cmocka_unit_test(test_reduce), cmocka_unit_test(test_acc_add),
        cmocka_unit_test(test_acc_store), cmocka_unit_test(test_fold),   cmocka_unit_test(test_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
