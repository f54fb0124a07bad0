/* One product of dmath bench gemm: its arrays, its check, its runs. */
#include "dmath_bench_gemm.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads an array as the host's type, through a converted copy where it has another. */
static dm_status read_host(dm_session *s, const gemm_case *g, int which, const int64_t *shape, void **host)
{
    dm_array a = g->array[which], wide = DM_NO_ARRAY;
    dm_status status = DM_OK;
    if (!*host) {
        *host = malloc((size_t)(shape[0] * shape[1] * dm_dtype_bytes(g->host_dtype)));
    }
    if (!*host) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a matrix of %lld x %lld", (long long)shape[0],
                        (long long)shape[1]);
    }
    if (g->host_dtype != g->dtype) {
        status = dm_array_create(s, g->host_dtype, 2, shape, NULL, &wide);
        if (status == DM_OK) {
            status = dm_copy(s, a, wide);
        }
        a = wide;
    }
    if (status == DM_OK) {
        status = dm_array_read(s, a, NULL, NULL, *host, 0);
    }
    dm_status freed = dm_array_destroy(s, wide);
    return status == DM_OK ? freed : status;
}

static double element(const gemm_case *g, int which, int64_t at)
{
    return g->host_dtype == DM_F64 ? ((const double *)g->host[which])[at] : ((const float *)g->host[which])[at];
}

/* Half the distance of two neighbours at 1. */
static double roundoff(dm_dtype dtype)
{
    return dtype == DM_F64 ? 0x1p-53 : dtype == DM_F32 ? 0x1p-24 : dtype == DM_F16 ? 0x1p-11 : 0x1p-8;
}

/* A row of M x, in more digits than any product has, the root of the sum of the squares of its terms, and that
 * row of |M| w. */
typedef struct applied {
    long double value;
    double root, weighed;
} applied;

static void apply(const gemm_case *g, int which, int64_t rows, int64_t cols, const long double *x,
                  const double *w, applied *y)
{
    for (int64_t i = 0; i < rows; i++) {
        applied sum = {0, 0, 0};
        for (int64_t j = 0; j < cols; j++) {
            double e = element(g, which, i * cols + j);
            long double term = e * x[j];
            sum.value += term;
            sum.root += (double)(term * term);
            sum.weighed += fabs(e) * (w ? w[j] : 0);
        }
        y[i] = (applied){sum.value, sqrt(sum.root), sum.weighed};
    }
}

/* C x against A (B x). The roundings in the elements of a row of C differ and add up as random numbers do, as
 * the root of the sum of their squares. Allowed are four where C was stored, relative to its elements, and four
 * of the type computed in, relative to |A| |B|, which also covers the partial sums: those of an element add up
 * at worst. TF32 has f16's digits, and both operands are rounded to it, perhaps towards zero. */
static dm_status check(gemm_case *g)
{
    int64_t m = g->size.m, n = g->size.n, k = g->size.k, most = DMI_MAX(DMI_MAX(m, n), k);
    long double *x = malloc((size_t)(2 * most) * sizeof *x);
    double *z_root = malloc((size_t)most * sizeof *z_root);
    applied *y = malloc((size_t)(3 * most) * sizeof *y);
    if (!x || !y || !z_root) {
        free(x);
        free(y);
        free(z_root);
        return dmi_fail(DM_ERR_NOMEM, "no memory for the check of a product");
    }
    long double *z = x + most;
    applied *bx = y, *abx = y + most, *cx = y + 2 * most;
    uint64_t random = 88172645463325252u;
    for (int64_t j = 0; j < n; j++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        x[j] = (double)(int64_t)(random >> 11) * 0x1p-52 - 1;
    }
    apply(g, 1, k, n, x, NULL, bx);
    for (int64_t i = 0; i < k; i++) {
        z[i] = bx[i].value;
        z_root[i] = bx[i].root;
    }
    apply(g, 0, m, k, z, z_root, abx);
    apply(g, 2, m, n, x, NULL, cx);
    g->error = 0;
    double computed = roundoff(g->compute == DM_COMPUTE_TF32 ? DM_F16 : g->host_dtype);
    for (int64_t i = 0; i < m; i++) {
        double allowed = 4 * roundoff(g->dtype) * cx[i].root + 4 * computed * abx[i].weighed;
        double off = (double)fabsl(cx[i].value - abx[i].value) / (allowed > 0 ? allowed : 1);
        g->error = off <= g->error ? g->error : off; /* NaN counts as wrong */
    }
    free(x);
    free(y);
    free(z_root);
    if (!(g->error <= 1)) {
        return dmi_fail(DM_ERR_INTERNAL,
                        "the product is wrong: C x is %g times as far from A (B x) as rounding explains",
                        g->error);
    }
    return DM_OK;
}

dm_status tool_gemm_begin(dm_session *s, gemm_case *g)
{
    const int64_t shape[3][2] = {{g->size.m, g->size.k}, {g->size.k, g->size.n}, {g->size.m, g->size.n}};
    dm_status status = DM_OK;
    double seconds;
    g->host_dtype = g->dtype == DM_F64 ? DM_F64 : DM_F32;
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        dm_layout layout = tool_layout_make(&g->layouts->of[i], dm_workers(s));
        status = dm_array_create(s, g->dtype, 2, shape[i], &layout, &g->array[i]);
        if (status == DM_OK) {
            status =
                i < 2 ? dm_fill_uniform(s, g->array[i], -1, 1, (uint64_t)i + 1) : dm_fill(s, g->array[i], NAN);
        }
    }
    if (status == DM_OK) {
        status = tool_gemm_ours(s, g, &seconds);
    }
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        status = read_host(s, g, i, shape[i], &g->host[i]);
    }
    return status == DM_OK ? check(g) : status;
}

dm_status tool_gemm_end(dm_session *s, gemm_case *g)
{
    dm_status status = DM_OK;
    for (int i = 0; i < 3; i++) {
        dm_status freed = dm_array_destroy(s, g->array[i]);
        status = status == DM_OK ? freed : status;
        free(g->host[i]);
    }
    return status;
}

dm_status tool_gemm_ours(dm_session *s, gemm_case *g, double *seconds)
{
    int64_t begin = dmi_now_ns();
    dm_gemm_options options = DM_GEMM_OPTIONS_INIT;
    options.compute = g->compute;
    dm_status status = dm_gemm_with(s, DM_N, DM_N, 1, g->array[0], g->array[1], 0, g->array[2], &options);
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    *seconds = tool_seconds_since(begin);
    return status;
}

/* The session has set how many threads BLAS takes, for the whole process: that is put back. Its workers are
 * idle. */
void tool_gemm_theirs(gemm_case *g, double *seconds)
{
    int before = openblas_get_num_threads(), m = (int)g->size.m, n = (int)g->size.n, k = (int)g->size.k;
    openblas_set_num_threads(g->threads);
    int64_t begin = dmi_now_ns();
    if (g->host_dtype == DM_F64) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, g->host[0], k, g->host[1], n, 0,
                    g->host[2], n);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, g->host[0], k, g->host[1], n, 0,
                    g->host[2], n);
    }
    *seconds = tool_seconds_since(begin);
    openblas_set_num_threads(before);
}
