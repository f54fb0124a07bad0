/* What kernels of layers on CPUs share. */
#ifndef DMI_DNN_CPU_H
#define DMI_DNN_CPU_H

#include "kernels/cpu/cpu.h"
#include "kernels/kernel.h"

/* Reference r of a call; NULL: the call has none. */
static inline void *dmi_dnn_at(const dmi_kernel_call *call, int r)
{
    const dmi_dnn *d = call->desc;
    return d->count[r] == 0 ? NULL : (char *)call->at[r] + d->offset[r] * dmi_dtype_bytes(d->type[r]);
}
/* Writes `rows` rows of `bias`, of n elements each, one every n elements. */
void dmi_dnn_repeat(dm_dtype dtype, const void *bias, int64_t rows, int64_t n, void *out);
/* sums[i] = the sum of rows x[., i], of type dtype too, added up in f64. */
void dmi_dnn_sum_rows(dm_dtype dtype, const void *x, int64_t rows, int64_t n, void *sums);
/* sums[i] = the sum of x[., i] y[., i], or where y is NULL of x[., i]. */
void dmi_dnn_products_f32(const float *x, const float *y, int64_t rows, int64_t n, double *sums);
void dmi_dnn_products_f64(const double *x, const double *y, int64_t rows, int64_t n, double *sums);
/* What a loss of the batch is divided by; valid: labels that are not ignored. */
double dmi_labelled_divisor(const dmi_labelled *d, int64_t valid);

#endif
