/* What kernels of layers on CPUs share. */
#ifndef DMI_DNN_CPU_H
#define DMI_DNN_CPU_H

#include "kernels/cpu/cpu.h"
#include "kernels/dnn/dnn_parts.h"

/* Writes `rows` rows of `bias`, of n elements each, one every `pitch` elements. */
void dmi_dnn_repeat(dm_dtype dtype, const void *bias, int64_t rows, int64_t n, int64_t pitch, void *out);
/* sums[i] = the sum of rows x[., i], of type dtype too, added up in f64. */
void dmi_dnn_sum_rows(dm_dtype dtype, const void *x, int64_t rows, int64_t n, void *sums);
/* sums[i] = the sum of x[., i] y[., i], or where y is NULL of x[., i]. */
void dmi_dnn_products_f32(const float *x, const float *y, int64_t rows, int64_t n, double *sums);
void dmi_dnn_products_f64(const double *x, const double *y, int64_t rows, int64_t n, double *sums);

#endif
