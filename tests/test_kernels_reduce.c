/* Sums over any dims, accumulators added and stored, against integer and long double arithmetic. */
#include "kernel_oracle.h"
#include "kernels/direct.h"

__extension__ typedef __int128 wide;

static int64_t results_of(const dmi_reduce *d)
{
    int64_t n = 1;
    for (int k = 0; k < d->ndim; k++) {
        n *= d->reduced >> k & 1 ? 1 : d->extent[k];
    }
    return n;
}

/* Visits every element: its position in memory and the result it belongs to. */
typedef void visit_fn(void *context, int64_t at, int64_t result);
static void visit(const dmi_reduce *d, int dim, int64_t at, int64_t result, visit_fn *fn, void *context)
{
    if (dim == d->ndim) {
        fn(context, at, result);
        return;
    }
    bool reduced = d->reduced >> dim & 1;
    for (int64_t i = 0; i < d->extent[dim]; i++) {
        visit(d, dim + 1, at + i * d->stride[dim], reduced ? result : result * d->extent[dim] + i, fn, context);
    }
}

typedef struct exact {
    dm_dtype dtype;
    const char *in;
    wide *sum;
} exact;
static void add_exact(void *context, int64_t at, int64_t result)
{
    exact *e = context;
    e->sum[result] += (wide)decode(e->dtype, e->in + at * width_of(e->dtype));
}

static wide acc_value(int acc, const void *p, int64_t i)
{
    const double *d = p;
    const int64_t *l = p;
    return acc == DMI_ACC_I64   ? (wide)l[i]
           : acc == DMI_ACC_U64 ? (wide)(uint64_t)l[i]
           : acc == DMI_ACC_F64 ? (wide)d[i]
                                : (wide)d[2 * i] + (wide)d[2 * i + 1];
}

/* Whole numbers whose sum is exact in the accumulator. */
static void exact_element(rng *r, dm_dtype t, void *at)
{
    int64_t v = rng_in(r, -1000, 1000);
    if (width_of(t) == 8) { /* 53 bits, far apart: a plain double sum would lose most of them */
        v = rng_in(r, -(INT64_C(1) << 52), INT64_C(1) << 52) >> rng_in(r, 0, 50);
    }
    encode_int(t,
               t == DM_BF16                      ? v / 8
               : floating(t) && width_of(t) == 1 ? v % 5
               : has_sign(t)                     ? v
               : v < 0                           ? -v
                                                 : v,
               at);
}

static void check_reduce(rng *r, dmi_reduce *d)
{
    int64_t span = rng_in(r, 0, 3), results = results_of(d), bytes = width_of(d->dtype);
    int acc = dmi_acc_of(d->dtype);
    d->offset = span;
    span += random_strides(r, d->ndim, d->extent, d->stride);
    char *in = malloc((size_t)(span * bytes) + 1), *out = malloc((size_t)(results * dmi_acc_bytes(acc)) + 1);
    wide *sum = calloc((size_t)results + 1, sizeof *sum);
    assert_true(in != NULL && out != NULL && sum != NULL);
    for (int64_t i = 0; i < span; i++) {
        exact_element(r, d->dtype, in + i * bytes);
    }
    memset(out, 0x7f, (size_t)(results * dmi_acc_bytes(acc)));
    exact e = {d->dtype, in, sum};
    visit(d, 0, d->offset, 0, add_exact, &e);
    dmi_run_reduce(dmi_backend_cpu(), NULL, d, in, out);
    for (int64_t i = 0; i < results; i++) {
        if (acc_value(acc, out, i) != sum[i]) {
            fail_msg("%s, %d dims, mask %x: sum %lld is %Lg, not %Lg", dmi_dtype_name(d->dtype), d->ndim,
                     d->reduced, (long long)i, (real)acc_value(acc, out, i), (real)sum[i]);
        }
    }
    free(in);
    free(out);
    free(sum);
}

static void test_reduce_all(void **state)
{
    (void)state;
    rng r = {41};
    for (int round = 0; round < 30; round++) {
        for (int t = 0; t < 7; t++) {
            for (int ndim = 0; ndim <= 4; ndim++) {
                for (unsigned mask = 0; mask < 1u << ndim; mask++) {
                    dm_dtype type = all_dtypes[rng_in(&r, 0, ALL_DTYPES - 1)];
                    dmi_reduce d = {.ndim = ndim, .dtype = type, .reduced = mask};
                    for (int k = 0; k < ndim; k++) {
                        int64_t longest = ndim == 1 ? 3000 : ndim == 2 ? 60 : 9;
                        d.extent[k] = rng_in(&r, 0, 25) == 0 ? 0 : rng_in(&r, 1, longest);
                    }
                    check_reduce(&r, &d);
                }
            }
        }
    }
}

static void test_reduce_shapes(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{3, 5000}, {5000, 3},  {2, 4097},  {700, 40}, {1, 2049},
                                        {2048, 1}, {19, 3001}, {40, 2100}, {8, 4097}};
    rng r = {42};
    for (int s = 0; s < DMI_COUNT(shapes); s++) {
        for (int t = 0; t < ALL_DTYPES; t++) {
            for (unsigned mask = 0; mask < 4; mask++) {
                dmi_reduce d = {.ndim = 2, .dtype = all_dtypes[t], .reduced = mask};
                memcpy(d.extent, shapes[s], sizeof shapes[s]);
                check_reduce(&r, &d);
            }
        }
    }
    for (int t = 0; t < ALL_DTYPES; t++) { /* several rows at a time, in two dims */
        dmi_reduce d = {.ndim = 3, .dtype = all_dtypes[t], .reduced = 3, .extent = {3, 17, 2100}};
        check_reduce(&r, &d);
    }
    for (unsigned mask = 0; mask < 256; mask += 5) {
        dmi_reduce d = {.ndim = 8, .dtype = all_dtypes[mask % ALL_DTYPES], .reduced = mask};
        for (int k = 0; k < 8; k++) {
            d.extent[k] = rng_in(&r, 1, 3);
        }
        check_reduce(&r, &d);
    }
}

static void test_reduce_special(void **state)
{
    (void)state;
    enum { N = 100 };
    double in[N], acc[2 * N];
    dmi_reduce d = {.ndim = 2, .dtype = DM_F64, .extent = {N, 1}, .stride = {1, 1}};
    for (int form = 0; form < 2; form++) { /* along, and across */
        d.reduced = 1;
        d.extent[0] = form == 0 ? N : 2;
        d.stride[0] = form == 0 ? 1 : N / 2;
        d.extent[1] = form == 0 ? 1 : N / 2;
        for (int kind = 0; kind < 4; kind++) {
            for (int i = 0; i < N; i++) {
                in[i] = i;
            }
            in[3] = kind == 0 ? INFINITY : kind == 1 ? -INFINITY : kind == 2 ? NAN : INFINITY;
            in[3 + N / 2] = kind == 3 ? -INFINITY : 1;
            dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, acc);
            int at = form == 0 ? 0 : 6;
            assert_true(kind < 2 ? isinf(acc[at]) && (acc[at] > 0) == (kind == 0) : isnan(acc[at]));
            assert_true(acc[at + 1] == 0);
        }
    }
}

/* What a pair that is kept stands for: kernels/reduce/scaled_sums.h. */
static real kept_pair(const double *pair)
{
    bool scaled = fabs(pair[0]) < fabs(pair[1]);
    return ldexpl((real)pair[0] + (real)pair[1], scaled ? 64 : 0);
}

/* Sums of multiples of 2^1000 up to the largest double, and, at the last result, Inf. Tiles and lanes, and the
 * two parts of complex numbers. */
static void test_reduce_extreme(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{3, 5000}, {5000, 3}, {2, 4097}, {700, 40}, {2048, 1}, {40, 600}};
    rng r = {47};
    for (int s = 0; s < 4 * DMI_COUNT(shapes); s++) {
        const int64_t *shape = shapes[s / 4], parts = s % 2 + 1, n = shape[0] * shape[1] * parts;
        dmi_reduce d = {.ndim = 2, .dtype = parts == 1 ? DM_F64 : DM_C128, .reduced = s / 2 % 2 + 1};
        memcpy(d.extent, shape, sizeof shapes[0]);
        d.stride[0] = shape[1];
        d.stride[1] = 1;
        int64_t results = shape[d.reduced == 1] * parts, *units = calloc((size_t)results, sizeof *units);
        double *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)results * 2 * sizeof *out);
        assert_true(units && in && out);
        for (int64_t i = 0; i < n; i++) {
            int64_t k = rng_in(&r, -(1 << 24) + 1, (1 << 24) - 1), row = i / parts / shape[1];
            int64_t at = (d.reduced == 1 ? i / parts % shape[1] : row) * parts + i % parts;
            in[i] = i == n - 1 ? INFINITY : ldexp((double)k, 1000);
            units[at] += i == n - 1 ? 0 : k;
        }
        dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, out);
        for (int64_t i = 0; i < results; i++) {
            real want = i == results - 1 ? (real)INFINITY : ldexpl((real)units[i], 1000);
            if (kept_pair(out + 2 * i) != want) {
                fail_msg("%s, %lld x %lld, mask %x: sum %lld is %Lg, not %Lg", dmi_dtype_name(d.dtype),
                         (long long)shape[0], (long long)shape[1], d.reduced, (long long)i,
                         kept_pair(out + 2 * i), want);
            }
        }
        free(units);
        free(in);
        free(out);
    }
}

/* Sums whose rounding a plain double loses; and the bits do not depend on where the array lies. */
static void test_reduce_accuracy(void **state)
{
    (void)state;
    enum { N = 100003 };
    double *in = malloc((N + 8) * sizeof *in), first[2], acc[2], plain = 0;
    real exactly = 0, size = 0;
    rng r = {43};
    assert_non_null(in);
    dmi_reduce d = {.ndim = 1, .dtype = DM_F64, .reduced = 1, .extent = {N}, .stride = {1}};
    for (int i = 0; i < N; i++) {
        in[i] = ldexp((double)rng_in(&r, -(INT64_C(1) << 52), INT64_C(1) << 52), (int)rng_in(&r, -80, -40));
        exactly += in[i];
        size += fabsl(in[i]);
        plain += in[i];
    }
    dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, first);
    assert_true(fabsl((real)first[0] + first[1] - exactly) <= N * 0x1p-64L * size);
    assert_true(fabs(first[1]) <= 0x1p-53 * fabs(first[0]));
    assert_true(first[0] != plain); /* else this test shows nothing */
    for (int shift = 1; shift < 8; shift++) {
        memmove(in + shift, in + shift - 1, N * sizeof *in);
        dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in + shift, acc);
        assert_memory_equal(acc, first, sizeof acc);
    }
    free(in);
}

static void test_acc_add(void **state)
{
    (void)state;
    rng r = {44};
    for (int round = 0; round < 600; round++) {
        geometry g;
        int acc = round % 4; /* complex ones: test_kernels_complex */
        dm_dtype t = dmi_acc_whole(acc) ? DM_I64 : DM_F64;
        make_geometry(&r, (int)rng_in(&r, 0, 4), 5, &g);
        int64_t bytes = dmi_acc_bytes(acc), words = bytes / 8;
        int64_t ns = g.src_span * words, nd = g.dst_span * words;
        char *part = malloc((size_t)(ns * 8) + 1), *sum = malloc((size_t)(nd * 8) + 1);
        wide *expected = calloc((size_t)g.dst_span + 1, sizeof *expected);
        int64_t *hits = calloc((size_t)g.dst_span + 1, sizeof *hits);
        assert_true(part != NULL && sum != NULL && expected != NULL && hits != NULL);
        for (int64_t i = 0; i < ns; i++) {
            encode_int(t,
                       i % words == 1 ? rng_in(&r, -3, 3) : rng_in(&r, -(INT64_C(1) << 50), INT64_C(1) << 50),
                       part + i * 8);
        }
        for (int64_t i = 0; i < nd; i++) {
            encode_int(t,
                       i % words == 1 ? rng_in(&r, -3, 3) : rng_in(&r, -(INT64_C(1) << 50), INT64_C(1) << 50),
                       sum + i * 8);
        }
        for (int64_t i = 0; i < ns + nd && acc == DMI_ACC_DD; i += 2) { /* as pairs are kept: hi is their sum */
            double pair[2], *at = (double *)(void *)(i < ns ? part + i * 8 : sum + (i - ns) * 8);
            memcpy(pair, at, sizeof pair);
            at[0] = pair[0] + pair[1];
            at[1] = pair[1] - (at[0] - pair[0]);
        }
        for (int64_t i = 0; i < g.dst_span; i++) {
            expected[i] = acc_value(acc, sum, i);
        }
        /* The positions of the copy: one at a time, by ordinals. */
        for (int64_t e = 0; e < g.d.count; e++) {
            int64_t rest = e, a = g.d.src_offset, b = g.d.dst_offset;
            for (int k = g.d.ndim - 1; k >= 0; k--) {
                int64_t count = 0;
                for (int64_t q = 0; q < g.d.nrun[k]; q++) {
                    count += g.d.run[k][q].len;
                }
                int64_t o = rest % count, q = 0;
                rest /= count;
                while (o >= g.d.run[k][q].len) {
                    o -= g.d.run[k][q++].len;
                }
                a += (g.d.run[k][q].a + o) * g.d.src_stride[k];
                b += (g.d.run[k][q].b + o) * g.d.dst_stride[k];
            }
            expected[b] += acc_value(acc, part, a);
        }
        dmi_acc_add d = {.acc = acc, .geometry = g.d};
        dmi_run_acc_add(dmi_backend_cpu(), NULL, &d, part, sum);
        for (int64_t i = 0; i < g.dst_span; i++) {
            wide differs = acc_value(acc, sum, i) - expected[i];
            assert_true(acc == DMI_ACC_U64 ? (uint64_t)differs == 0 : differs == 0);
        }
        free(part);
        free(sum);
        free(expected);
        free(hits);
        free_geometry(&g);
    }
}

/* -0 and 0 are one. */
static bool same_number(dm_dtype t, const void *a, const void *b)
{
    return same_element(t, a, b) || decode(t, a) == decode(t, b);
}

static void expect_store(const dmi_acc_store *d, double scale, const void *acc, int64_t i, double beta,
                         void *out)
{
    const double *f = acc;
    const int64_t *l = acc;
    real old = beta == 0 ? 0 : decode(d->out_dtype, out);
    if (dmi_acc_whole(d->acc) && !floating(d->out_dtype)) {
        uint64_t y = beta == 0 ? 0 : (uint64_t)(int64_t)beta * wrapped(old);
        encode_int(d->out_dtype, (int64_t)((uint64_t)(int64_t)scale * (uint64_t)l[i] + y), out);
        return;
    }
    bool plain = scale == 1 && beta == 0;
    real x = d->acc == DMI_ACC_I64   ? (real)l[i]
             : d->acc == DMI_ACC_U64 ? (real)(uint64_t)l[i]
             : d->acc == DMI_ACC_F64 ? (real)f[i]
                                     : (real)f[2 * i] + f[2 * i + 1];
    if (plain) {
        encode_float(d->out_dtype, x, out);
        return;
    }
    double term = beta == 0 ? 0 : beta * (double)old;
    encode_float(d->out_dtype, (d->divides ? (double)x / scale : scale * (double)x) + term, out);
}

/* An accumulator close to a tie of some type, so that rounding twice would show. */
static void tricky_acc(rng *r, int acc, char *at)
{
    uint64_t bits = UINT64_C(1) << rng_in(r, 1, 40);
    double hi = (double)(rng_in(r, 1, 3000) * 2 + 1) * (rng_in(r, 0, 1) ? 1 : -1);
    double lo = rng_in(r, -1, 1) * ldexp(hi, -56);
    uint64_t top = (uint64_t)rng_in(r, 0, 1) << 63; /* a sign, or more than an int64 holds */
    int64_t whole = (int64_t)(top + bits * 513 + (uint64_t)rng_in(r, -1, 1));
    switch (acc) {
    case DMI_ACC_I64:
    case DMI_ACC_U64:
        memcpy(at, &whole, 8);
        break;
    case DMI_ACC_F64:
        hi = rng_in(r, 0, 9) == 0 ? (rng_in(r, 0, 1) ? INFINITY : NAN) : ldexp(hi, (int)rng_in(r, -30, 10));
        memcpy(at, &hi, 8);
        break;
    default:
        if (rng_in(r, 0, 9) == 0) {
            hi = rng_in(r, 0, 1) ? INFINITY : NAN;
            lo = 0;
        }
        memcpy(at, &hi, 8);
        memcpy(at + 8, &lo, 8);
        break;
    }
}

static void check_store(rng *r, int acc, dm_dtype out_dtype, int ndim, double scale, double beta)
{
    dmi_acc_store d = {.acc = acc, .ndim = ndim, .out_dtype = out_dtype, .out_offset = rng_in(r, 0, 3)};
    int64_t n = 1, bytes = width_of(out_dtype);
    d.divides = floating(out_dtype) && rng_in(r, 0, 1);
    for (int k = 0; k < ndim; k++) {
        d.extent[k] = rng_in(r, 0, 20) == 0 ? 0 : rng_in(r, 1, ndim == 1 ? 1300 : 8);
        n *= d.extent[k];
    }
    int64_t span = d.out_offset + random_strides(r, ndim, d.extent, d.out_stride);
    char *sum = malloc((size_t)(n * dmi_acc_bytes(acc)) + 1), *out = random_array(r, out_dtype, span);
    char *expected = malloc((size_t)(span * bytes) + 1);
    assert_true(sum != NULL && expected != NULL);
    memcpy(expected, out, (size_t)(span * bytes));
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = d.out_offset;
        tricky_acc(r, acc, sum + i * dmi_acc_bytes(acc));
        for (int k = ndim - 1; k >= 0; k--) {
            at += rest % d.extent[k] * d.out_stride[k];
            rest /= d.extent[k];
        }
        expect_store(&d, scale, sum, i, beta, expected + at * bytes);
    }
    dmi_run_acc_store(dmi_backend_cpu(), NULL, &d, scale, sum, beta, out);
    for (int64_t i = 0; i < span; i++) {
        if (!same_number(out_dtype, out + i * bytes, expected + i * bytes)) {
            fail_msg("acc %d -> %s scale %g beta %g: %La, not %La", acc, dmi_dtype_name(out_dtype), scale, beta,
                     decode(out_dtype, out + i * bytes), decode(out_dtype, expected + i * bytes));
        }
    }
    free(sum);
    free(out);
    free(expected);
}

static void test_acc_store(void **state)
{
    (void)state;
    static const double scales[] = {1, 0.25, 49, 1, 1.0 / 7}, betas[] = {0, 0, 2, 0.5};
    rng r = {45};
    for (int acc = 0; acc < 4; acc++) {
        for (int t = 0; t < ALL_DTYPES; t++) {
            for (int round = 0; round < 25; round++) {
                bool whole = dmi_acc_whole(acc) && !floating(all_dtypes[t]);
                double scale = whole ? (double)rng_in(&r, -2, 3) : scales[rng_in(&r, 0, 4)];
                double beta = whole ? (double)rng_in(&r, -1, 2) : betas[rng_in(&r, 0, 3)];
                check_store(&r, acc, all_dtypes[t], (int)rng_in(&r, 0, 4), scale, beta);
            }
        }
    }
}

/* The accumulator that has this sum exactly. */
static void exact_acc(int acc, wide sum, char *at)
{
    double hi = (double)sum, lo = (double)(sum - (wide)hi);
    uint64_t bits = (uint64_t)sum;
    memcpy(at, dmi_acc_whole(acc) ? (const void *)&bits : &hi, 8);
    if (acc == DMI_ACC_DD) {
        memcpy(at + 8, &lo, 8);
    }
}

static void check_fold(rng *r, dm_dtype type, dm_dtype out_type, double scale, double beta)
{
    dmi_fold d;
    int64_t span[3], n = 1, bytes = width_of(type), out_bytes = width_of(out_type);
    random_fold(r, type, out_type, &d, span);
    d.store.divides = floating(out_type) && rng_in(r, 0, 1);
    char *rows = random_array(r, type, span[0]), *own = random_array(r, type, span[2]);
    char *out = random_array(r, out_type, span[1]), *expected = malloc((size_t)(span[1] * out_bytes));
    assert_non_null(expected);
    for (int64_t i = 0; i < span[0]; i++) {
        exact_element(r, type, rows + i * bytes);
    }
    for (int64_t i = 0; i < span[2]; i++) {
        exact_element(r, type, own + i * bytes);
    }
    memcpy(expected, out, (size_t)(span[1] * out_bytes));
    for (int k = 0; k < d.store.ndim; k++) {
        n *= d.store.extent[k];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = d.store.out_offset, own_at = d.own_offset;
        char acc[16];
        wide sum = 0;
        for (int k = d.store.ndim - 1; k >= 0; k--) {
            at += rest % d.store.extent[k] * d.store.out_stride[k];
            own_at += rest % d.store.extent[k] * d.own_stride[k];
            rest /= d.store.extent[k];
        }
        for (int row = 0; row < d.addends - (d.own >= 0); row++) {
            sum += (wide)decode(type, rows + (row * d.pitch + i) * bytes);
        }
        sum += d.own >= 0 ? (wide)decode(type, own + own_at * bytes) : 0;
        exact_acc(d.store.acc, sum, acc);
        expect_store(&d.store, scale, acc, 0, beta, expected + at * out_bytes);
    }
    dmi_run_fold(dmi_backend_cpu(), NULL, &d, scale, rows, d.own >= 0 ? own : NULL, beta, out);
    for (int64_t i = 0; i < span[1]; i++) {
        if (!same_number(out_type, out + i * out_bytes, expected + i * out_bytes)) {
            fail_msg("fold of %d %s -> %s scale %g beta %g: %La, not %La", d.addends, dmi_dtype_name(type),
                     dmi_dtype_name(out_type), scale, beta, decode(out_type, out + i * out_bytes),
                     decode(out_type, expected + i * out_bytes));
        }
    }
    free(rows);
    free(own);
    free(out);
    free(expected);
}

static void test_fold(void **state)
{
    (void)state;
    static const double scales[] = {1, 0.25, 49, 1, 1.0 / 7}, betas[] = {0, 0, 2, 0.5};
    rng r = {46};
    for (int type = 0; type < ALL_DTYPES; type++) {
        for (int out = 0; out < ALL_DTYPES; out++) {
            for (int round = 0; round < 12; round++) {
                bool whole = !floating(all_dtypes[type]) && !floating(all_dtypes[out]);
                double scale = whole ? (double)rng_in(&r, -2, 3) : scales[rng_in(&r, 0, 4)];
                double beta = whole ? (double)rng_in(&r, -1, 2) : betas[rng_in(&r, 0, 3)];
                check_fold(&r, all_dtypes[type], all_dtypes[out], scale, beta);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_all),     cmocka_unit_test(test_reduce_shapes),
        cmocka_unit_test(test_reduce_special), cmocka_unit_test(test_reduce_accuracy),
        cmocka_unit_test(test_acc_add),        cmocka_unit_test(test_acc_store),
        cmocka_unit_test(test_fold),           cmocka_unit_test(test_reduce_extreme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
