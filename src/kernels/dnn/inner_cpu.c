/* Inner products and sums by channel. */
#include "kernels/dnn/dnn_cpu.h"

#include <string.h>

void dmi_dnn_repeat(dm_dtype dtype, const void *bias, int64_t rows, int64_t n, int64_t pitch, void *out)
{
    int64_t elem = dmi_dtype_bytes(dtype);
    for (int64_t i = 0; i < rows; i++) {
        memcpy((char *)out + i * pitch * elem, bias, (size_t)(n * elem));
    }
}

enum { TILE = 64 }; /* channels whose sums stay in registers or the first cache */

#define PRODUCTS(name, type)                                                                                   \
    void dmi_dnn_products_##name(const type *x, const type *y, int64_t rows, int64_t n, double *sums)          \
    {                                                                                                          \
        for (int64_t c = 0; c < n; c += TILE) {                                                                \
            double sum[TILE] = {0};                                                                            \
            int64_t width = DMI_MIN(TILE, n - c);                                                              \
            for (int64_t i = 0; i < rows; i++) {                                                               \
                const type *a = x + i * n + c, *b = y ? y + i * n + c : NULL;                                  \
                for (int64_t k = 0; k < width; k++) {                                                          \
                    sum[k] += b ? (double)a[k] * (double)b[k] : (double)a[k];                                  \
                }                                                                                              \
            }                                                                                                  \
            memcpy(sums + c, sum, (size_t)width * sizeof *sum);                                                \
        }                                                                                                      \
    }
PRODUCTS(f32, float)
PRODUCTS(f64, double)

void dmi_dnn_sum_rows(dm_dtype dtype, const void *x, int64_t rows, int64_t n, void *sums)
{
    if (dtype == DM_F64) {
        dmi_dnn_products_f64(x, NULL, rows, n, sums);
        return;
    }
    for (int64_t c = 0; c < n; c += TILE) {
        double sum[TILE] = {0};
        int64_t width = DMI_MIN(TILE, n - c);
        for (int64_t i = 0; i < rows; i++) {
            const float *a = (const float *)x + i * n + c;
            for (int64_t k = 0; k < width; k++) {
                sum[k] += (double)a[k];
            }
        }
        for (int64_t k = 0; k < width; k++) {
            ((float *)sums)[c + k] = (float)sum[k];
        }
    }
}

dm_status dmi_channel_sums_cpu(const dmi_kernel_call *call)
{
    const dmi_channel_rows *d = call->desc;
    const void *x = dmi_dnn_at(call, 0), *y = dmi_dnn_at(call, 2);
    double *sums = dmi_dnn_at(call, 1);
    int64_t rows = d->rows * d->dnn.samples;
    if (d->dnn.dtype == DM_F64) {
        dmi_dnn_products_f64(x, y, rows, d->channels, sums);
    } else {
        dmi_dnn_products_f32(x, y, rows, d->channels, sums);
    }
    return DM_OK;
}

#define RELU_SUMS(name, type)                                                                                  \
    static void relu_sums_##name(const dmi_channel_rows *d, int64_t rows, const type *restrict x,              \
                                 const type *restrict dy, type *restrict dx, double *restrict sums)            \
    {                                                                                                          \
        memset(sums, 0, (size_t)d->channels * sizeof *sums);                                                   \
        for (int64_t i = 0; i < rows;                                                                          \
             i++, x += d->dnn.pitch[0], dy += d->dnn.pitch[1], dx += d->dnn.pitch[2]) {                        \
            for (int64_t c = 0; c < d->channels; c++) {                                                        \
                dx[c] = x[c] > 0 ? dy[c] : 0;                                                                  \
                sums[c] += (double)dx[c];                                                                      \
            }                                                                                                  \
        }                                                                                                      \
    }
RELU_SUMS(f32, float)
RELU_SUMS(f64, double)

dm_status dmi_relu_sums_cpu(const dmi_kernel_call *call)
{
    const dmi_channel_rows *d = call->desc;
    const void *x = dmi_dnn_at(call, 0), *dy = dmi_dnn_at(call, 1);
    void *dx = dmi_dnn_at(call, 2);
    double *sums = dmi_dnn_at(call, 3);
    int64_t rows = x ? d->rows * d->dnn.samples : 0;
    if (!sums) { /* no channels */
        return DM_OK;
    }
    if (d->dnn.dtype == DM_F64) {
        relu_sums_f64(d, rows, x, dy, dx, sums);
    } else {
        relu_sums_f32(d, rows, x, dy, dx, sums);
    }
    return DM_OK;
}

static dm_status product(const dmi_inner *d, dmi_gemm g, const void *a, const void *b, double beta, void *c)
{
    dm_status status = dmi_cpu_blas_ready();
    g.dtype = d->dnn.dtype;
    g.lda = DMI_MAX(g.lda, 1);
    g.ldb = DMI_MAX(g.ldb, 1);
    if (status == DM_OK) {
        dmi_cpu_gemm(&g, 1, a, b, beta, c);
    }
    return status;
}

dm_status dmi_inner_cpu(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    void *y = dmi_dnn_at(call, 2), *bias = dmi_dnn_at(call, 3);
    if (y && bias) {
        dmi_dnn_repeat(d->dnn.dtype, bias, d->dnn.samples, d->out, d->out, y);
    }
    dmi_gemm g = {
        .trans_b = 1, .m = d->dnn.samples, .n = d->out, .k = d->in, .lda = d->in, .ldb = d->in, .ldc = d->out};
    return product(d, g, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1), bias ? 1 : 0, y);
}

dm_status dmi_inner_data_cpu(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    dmi_gemm g = {.m = d->dnn.samples, .n = d->in, .k = d->out, .lda = d->out, .ldb = d->in, .ldc = d->in};
    return product(d, g, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1), 0, dmi_dnn_at(call, 2));
}

dm_status dmi_inner_weights_cpu(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    void *y = dmi_dnn_at(call, 1), *bias = dmi_dnn_at(call, 3);
    dmi_gemm g = {
        .trans_a = 1, .m = d->out, .n = d->in, .k = d->dnn.samples, .lda = d->out, .ldb = d->in, .ldc = d->in};
    dm_status status = product(d, g, y, dmi_dnn_at(call, 0), 0, dmi_dnn_at(call, 2));
    if (bias) {
        dmi_dnn_sum_rows(d->dnn.dtype, y, y ? d->dnn.samples : 0, d->out, bias);
    }
    return status;
}
