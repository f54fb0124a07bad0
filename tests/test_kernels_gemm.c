/* Products: whole numbers, so that every order of summation gives the same, against integer arithmetic. */
#include "kernel_oracle.h"
#include "kernels/cpu/cpu.h"
#include "kernels/direct.h"

static double get(dm_dtype t, const void *p, int64_t i)
{
    return t == DM_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}
static void set(dm_dtype t, void *p, int64_t i, double v)
{
    if (t == DM_F64) {
        ((double *)p)[i] = v;
    } else {
        ((float *)p)[i] = (float)v;
    }
}

static void *whole_numbers(rng *r, dm_dtype t, int64_t n)
{
    void *p = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        set(t, p, i, (double)rng_in(r, -9, 9));
    }
    return p;
}

static void make_product(rng *r, dm_dtype t, int64_t most, dmi_gemm *d)
{
    *d = (dmi_gemm){.dtype = t, .trans_a = (int)rng_in(r, 0, 1), .trans_b = (int)rng_in(r, 0, 1)};
    d->m = rng_in(r, 0, most);
    d->n = rng_in(r, 0, most);
    d->k = rng_in(r, 0, most);
    d->lda = (d->trans_a ? d->m : d->k) + rng_in(r, 0, 3);
    d->ldb = (d->trans_b ? d->k : d->n) + rng_in(r, 0, 3);
    d->ldc = d->n + rng_in(r, 0, 3);
    d->a_offset = rng_in(r, 0, 4);
    d->b_offset = rng_in(r, 0, 4);
    d->c_offset = rng_in(r, 0, 4);
}

static double product_at(const dmi_gemm *d, const void *a, const void *b, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t p = 0; p < d->k; p++) {
        int64_t x = d->a_offset + (d->trans_a ? p * d->lda + i : i * d->lda + p);
        int64_t y = d->b_offset + (d->trans_b ? j * d->ldb + p : p * d->ldb + j);
        sum += (int64_t)get(d->dtype, a, x) * (int64_t)get(d->dtype, b, y);
    }
    return (double)sum;
}

enum { THIN = -1 }; /* instead of a limit: by the loops for thin products */

static void check_product(rng *r, const dmi_gemm *d, double alpha, double beta, int64_t limit)
{
    dm_dtype t = d->dtype;
    int64_t size_c = d->c_offset + d->m * d->ldc + 1;
    void *a = whole_numbers(r, t, d->a_offset + (d->trans_a ? d->k : d->m) * d->lda);
    void *b = whole_numbers(r, t, d->b_offset + (d->trans_b ? d->n : d->k) * d->ldb);
    void *c = whole_numbers(r, t, size_c), *before = malloc((size_t)(size_c * width_of(t)));
    assert_non_null(before);
    for (int64_t i = 0; i < d->m && beta == 0; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            set(t, c, d->c_offset + i * d->ldc + j, i % 2 == 0 ? NAN : INFINITY); /* must not be read */
        }
    }
    memcpy(before, c, (size_t)(size_c * width_of(t)));
    if (limit == THIN) {
        dmi_cpu_thin(d, alpha, a, b, beta, c);
    } else if (limit == 0) {
        dmi_run_gemm(dmi_backend_cpu(), NULL, d, alpha, a, b, beta, c, NULL);
    } else {
        dmi_cpu_gemm_limited(d, alpha, a, b, beta, c, limit);
    }
    for (int64_t at = 0; at < size_c; at++) {
        int64_t rel = at - d->c_offset, i = rel < 0 || d->ldc == 0 ? -1 : rel / d->ldc, j = rel - i * d->ldc;
        double old = get(t, before, at), expected = old;
        if (i >= 0 && i < d->m && j < d->n) {
            expected = alpha * product_at(d, a, b, i, j) + (beta == 0 ? 0 : beta * old);
        }
        if (!(get(t, c, at) == expected) && !(isnan(expected) && isnan(get(t, c, at)))) {
            fail_msg("%lldx%lldx%lld trans %d%d alpha %g beta %g limit %lld: c[%lld][%lld] is %g, not %g",
                     (long long)d->m, (long long)d->n, (long long)d->k, d->trans_a, d->trans_b, alpha, beta,
                     (long long)limit, (long long)i, (long long)j, get(t, c, at), expected);
        }
    }
    free(a);
    free(b);
    free(c);
    free(before);
}

static void test_products(void **state)
{
    (void)state;
    static const double coefficient[] = {0, 1, -1, 0.5, 2};
    rng r = {31};
    for (int round = 0; round < 3000; round++) {
        dmi_gemm d;
        make_product(&r, round % 2 == 0 ? DM_F64 : DM_F32, round % 100 == 0 ? 90 : 14, &d);
        double alpha = coefficient[rng_in(&r, 0, 4)], beta = coefficient[rng_in(&r, 0, 4)];
        check_product(&r, &d, alpha, beta, round % 3 == 0 ? rng_in(&r, 1, 9) : 0);
    }
}

/* Every number of columns or rows that the loops for thin products take, and c as it lies in two of them. */
static void test_thin(void **state)
{
    (void)state;
    static const double coefficient[] = {1, -1, 0.5, 2};
    rng r = {34};
    for (int round = 0; round < 3000; round++) {
        dmi_gemm d;
        dm_dtype t = round % 2 == 0 ? DM_F64 : DM_F32;
        int64_t most = round % 50 == 0 ? 700 : 40, thin = 1 + round / 2 % DMI_CPU_THIN;
        make_product(&r, t, 3, &d);
        bool columns = rng_in(&r, 0, 1);
        d.m = columns ? rng_in(&r, 1, most) : thin;
        d.n = columns ? thin : rng_in(&r, 1, most);
        d.k = rng_in(&r, 1, most);
        d.lda = (d.trans_a ? d.m : d.k) + rng_in(&r, 0, 3);
        d.ldb = (d.trans_b ? d.k : d.n) + rng_in(&r, 0, 3);
        d.ldc = d.n + rng_in(&r, 0, 3);
        check_product(&r, &d, coefficient[rng_in(&r, 0, 3)], round % 3 == 0 ? 0 : coefficient[rng_in(&r, 0, 3)],
                      THIN);
    }
}

/* More of k than is packed at once, and a's rows in several turns; large enough for dmi_cpu_gemm to take them.
 */
static void test_thin_large(void **state)
{
    (void)state;
    static const int64_t shape[][3] = {
        {70, 7, 9001}, {9001, 3, 67}, {2, 5000, 70}, {1030, 16, 1031}, {13, 1030, 1031}};
    rng r = {35};
    for (int i = 0; i < 4 * DMI_COUNT(shape); i++) {
        for (int t = 0; t < 2; t++) {
            const int64_t *s = shape[i / 4];
            dmi_gemm d = {.dtype = t ? DM_F32 : DM_F64, .trans_a = i & 1, .trans_b = i >> 1 & 1};
            d.m = s[0];
            d.n = s[1];
            d.k = s[2];
            d.lda = (d.trans_a ? d.m : d.k) + 1;
            d.ldb = d.trans_b ? d.k : d.n;
            d.ldc = d.n;
            check_product(&r, &d, 1, 0, THIN);
            check_product(&r, &d, 2, -1, 0);
        }
    }
}

/* With several threads of BLAS vectors go to its gemv. */
static void test_vectors(void **state)
{
    (void)state;
    static const double coefficient[] = {0, 1, -1, 2};
    rng r = {36};
    int before = dmi_cpu_blas_threads(2);
    for (int round = 0; round < 1000; round++) {
        dmi_gemm d;
        make_product(&r, round % 2 == 0 ? DM_F64 : DM_F32, 20, &d);
        d.k = round % 50 == 0 ? 9001 : d.k;
        *(round / 2 % 2 ? &d.m : &d.n) = 1;
        d.lda = (d.trans_a ? d.m : d.k) + rng_in(&r, 0, 3);
        d.ldb = (d.trans_b ? d.k : d.n) + rng_in(&r, 0, 3);
        d.ldc = d.n + rng_in(&r, 0, 3);
        check_product(&r, &d, coefficient[rng_in(&r, 0, 3)], coefficient[rng_in(&r, 0, 3)],
                      round % 3 == 0 ? rng_in(&r, 1, 9) : 0);
    }
    (void)dmi_cpu_blas_threads(before);
}

/* A stack of products in one call: each like a product by itself, and nothing beside them is written. */
static void test_stacks(void **state)
{
    (void)state;
    rng r = {37};
    for (int round = 0; round < 600; round++) {
        dm_dtype t = round % 2 == 0 ? DM_F64 : DM_F32;
        dmi_gemm d;
        make_product(&r, t, 9, &d);
        int64_t count = rng_in(&r, 1, 6), a_size = (d.trans_a ? d.k : d.m) * d.lda,
                b_size = (d.trans_b ? d.n : d.k) * d.ldb;
        d.count = count;
        d.a_step = rng_in(&r, 0, 2) ? a_size + rng_in(&r, 0, 3) : 0; /* 0: the same matrix for all */
        d.b_step = rng_in(&r, 0, 2) ? b_size + rng_in(&r, 0, 3) : 0;
        d.c_step = d.m * d.ldc + rng_in(&r, 0, 3);
        int64_t c_size = d.c_offset + count * d.c_step + 1;
        void *a = whole_numbers(&r, t, d.a_offset + a_size + count * d.a_step),
             *c = whole_numbers(&r, t, c_size);
        void *b = whole_numbers(&r, t, d.b_offset + b_size + count * d.b_step),
             *want = malloc((size_t)(c_size * width_of(t)));
        assert_non_null(want);
        memcpy(want, c, (size_t)(c_size * width_of(t)));
        for (int64_t s = 0; s < count; s++) {
            dmi_gemm one = d;
            one.a_offset = d.a_offset + s * d.a_step;
            one.b_offset = d.b_offset + s * d.b_step;
            for (int64_t i = 0; i < d.m * d.n; i++) {
                int64_t at = d.c_offset + s * d.c_step + i / d.n * d.ldc + i % d.n;
                set(t, want, at, 2 * product_at(&one, a, b, i / d.n, i % d.n) - get(t, want, at));
            }
        }
        dmi_run_gemm(dmi_backend_cpu(), NULL, &d, 2, a, b, -1, c, NULL);
        for (int64_t i = 0; i < c_size; i++) {
            assert_true(get(t, c, i) == get(t, want, i));
        }
        free(a);
        free(b);
        free(c);
        free(want);
    }
}

/* The range [k0, k1) of k of an operand, as a shard of its own at `shard`; in the operand there are other
 * numbers after it. */
static void take_shard(const dmi_fused_gemm *f, int which, void *operand, void *shard)
{
    const dmi_gemm *d = &f->gemm;
    bool by_rows = which == 0 ? !d->trans_a : d->trans_b; /* k runs along its rows */
    int64_t others = which == 0 ? d->m : d->n, ld = which == 0 ? d->lda : d->ldb,
            offset = which == 0 ? d->a_offset : d->b_offset;
    for (int64_t o = 0; o < others; o++) {
        for (int64_t p = f->own_k0; p < f->own_k1; p++) {
            int64_t own = p - f->own_k0, from = offset + (by_rows ? o * ld + p : p * ld + o),
                    to = f->own_offset[which] +
                         (by_rows ? o * f->ld_own[which] + own : own * f->ld_own[which] + o);
            set(d->dtype, shard, to, get(d->dtype, operand, from));
            set(d->dtype, operand, from, NAN);
        }
    }
}

/* A product whose operands have come but for the worker's own shards, which lie elsewhere; and what it says
 * that it touches. */
static void test_fused(void **state)
{
    (void)state;
    rng r = {38};
    for (int round = 0; round < 600; round++) {
        dm_dtype t = round % 2 == 0 ? DM_F64 : DM_F32;
        dmi_fused_gemm f = {.chunks = 0};
        make_product(&r, t, 12, &f.gemm);
        dmi_gemm *d = &f.gemm;
        f.own_k0 = rng_in(&r, 0, d->k);
        f.own_k1 = rng_in(&r, f.own_k0, d->k);
        bool own_a = rng_in(&r, 0, 1);
        int64_t own = f.own_k1 - f.own_k0;
        for (int o = 0; o < 2; o++) {
            bool by_rows = o == 0 ? !d->trans_a : d->trans_b;
            f.own_offset[o] = rng_in(&r, 0, 3);
            f.ld_own[o] = o == 0 && !own_a ? 0 : 1 + rng_in(&r, 0, 2) + (by_rows ? own : o == 0 ? d->m : d->n);
        }
        int64_t size_c = d->c_offset + d->m * d->ldc + 1;
        void *a = whole_numbers(&r, t, d->a_offset + (d->trans_a ? d->k : d->m) * d->lda);
        void *b = whole_numbers(&r, t, d->b_offset + (d->trans_b ? d->n : d->k) * d->ldb);
        void *c = whole_numbers(&r, t, size_c), *want = malloc((size_t)(size_c * width_of(t)));
        void *shard_a = whole_numbers(&r, t, 1000), *shard_b = whole_numbers(&r, t, 1000);
        assert_non_null(want);
        memcpy(want, c, (size_t)(size_c * width_of(t)));
        for (int64_t i = 0; i < d->m * d->n; i++) {
            int64_t at = d->c_offset + i / d->n * d->ldc + i % d->n;
            set(t, want, at, 2 * product_at(d, a, b, i / d->n, i % d->n) - get(t, want, at));
        }
        if (own_a) {
            take_shard(&f, 0, a, shard_a);
        }
        take_shard(&f, 1, b, shard_b);
        const dmi_kernel_call call = {
            .desc = &f, .at = {a, b, c, shard_b, shard_a}, .scalar = {2, -1}, .refs = 5};
        assert_int_equal(dmi_kernels[DMI_KERNEL_fused].cpu(&call), DM_OK);
        for (int64_t i = 0; i < size_c; i++) {
            assert_true(get(t, c, i) == get(t, want, i));
        }
        dmi_touch touch[DMI_MAX_REFS] = {0};
        dmi_kernels[DMI_KERNEL_fused].touches(&(dmi_touching){.desc = &f, .refs = 5}, touch);
        for (int o = 0; o < 2 && own > 0 && d->m > 0 && d->n > 0;
             o++) { /* an empty box may be said to be read or not */
            assert_int_equal(touch[4 - o].rw, o == 0 && !own_a ? 0 : DMI_READ);
            assert_true(touch[4 - o].rw == 0 || touch[4 - o].offset == f.own_offset[o] * width_of(t));
        }
        void *all[] = {a, b, c, want, shard_a, shard_b};
        for (int i = 0; i < 6; i++) {
            free(all[i]);
        }
    }
}

static void test_empty(void **state)
{
    (void)state;
    rng r = {32};
    for (int mask = 0; mask < 8; mask++) {
        for (int trans = 0; trans < 4; trans++) {
            dmi_gemm d = {.dtype = DM_F64, .trans_a = trans & 1, .trans_b = trans >> 1};
            d.m = mask & 1 ? 0 : 3;
            d.n = mask & 2 ? 0 : 4;
            d.k = mask & 4 ? 0 : 5;
            d.lda = d.trans_a ? d.m : d.k;
            d.ldb = d.trans_b ? d.k : d.n;
            d.ldc = d.n;
            check_product(&r, &d, 1, 0, 0);
            check_product(&r, &d, 2, 2, 0);
        }
    }
}

/* Fractions: within k roundings of the exact sum. */
static void test_rounding(void **state)
{
    (void)state;
    enum { N = 130 };
    rng r = {33};
    static double a[N * N], b[N * N], c[N * N];
    dmi_gemm d = {.dtype = DM_F64, .m = N, .n = N, .k = N, .lda = N, .ldb = N, .ldc = N};
    for (int i = 0; i < N * N; i++) {
        a[i] = (double)rng_in(&r, -1000000, 1000000) / 999983;
        b[i] = (double)rng_in(&r, -1000000, 1000000) / 999983;
        c[i] = NAN;
    }
    dmi_run_gemm(dmi_backend_cpu(), NULL, &d, 1, a, b, 0, c, NULL);
    for (int i = 0; i < N * N; i++) {
        real sum = 0, size = 0;
        for (int p = 0; p < N; p++) {
            real term = (real)a[i / N * N + p] * b[p * N + i % N];
            sum += term;
            size += fabsl(term);
        }
        assert_true(fabsl(sum - c[i]) <= N * 0x1p-53L * size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_thin),  cmocka_unit_test(test_thin_large),
        cmocka_unit_test(test_vectors),  cmocka_unit_test(test_empty), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_stacks),   cmocka_unit_test(test_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
