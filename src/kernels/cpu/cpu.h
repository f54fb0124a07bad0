/* The kernels of the CPU, and the parts of them that tests reach for. */
#ifndef DMI_CPU_H
#define DMI_CPU_H

#include "kernels/gemm/gemm.h"
#include "kernels/random/fill.h"
#include "kernels/reduce/reduce.h"

void dmi_cpu_copy(const dmi_copy *d, const void *src, void *dst);
void dmi_cpu_gemm(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c);
void dmi_cpu_fill(const dmi_fill *d, const dmi_fill_values *v, void *out);
void dmi_cpu_acc_add(const dmi_acc_add *d, const void *part, void *acc);
void dmi_cpu_acc_store(const dmi_acc_store *d, double scale, const void *acc, double beta, void *out);
void dmi_cpu_fold(const dmi_fold *d, double scale, const void *rows, const void *own, double beta, void *out);

/* sum[i] += x[i], i < n, of real addends in that type; lo[i]: what sum[i] rounds away, of pairs only. */
void dmi_cpu_add_across(int acc, const void *x, int64_t n, void *sum, double *lo);

/* May this thread call BLAS? OpenBLAS would hang where it gets no memory; then this says so. */
DM_CHECKED dm_status dmi_cpu_blas_ready(void);

/* Product in tiles of which no extent, and no leading dimension that matters, is above `limit`: what the BLAS
 * interface can take. */
void dmi_cpu_gemm_limited(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c,
                          int64_t limit);

/* The product where c has few columns or few rows (DMI_CPU_THIN at most) and k > 0; whether that beats one thread of
 * BLAS. */
enum { DMI_CPU_THIN = 16 };
void dmi_cpu_thin(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c);
bool dmi_cpu_thin_pays(const dmi_gemm *d);
/* One tile of a product in C64 or C128. */
void dmi_cpu_gemm_complex(const dmi_gemm *d, int m, int n, int k, const int ld[3], double alpha, const void *a,
                          const void *b, double beta, void *c);

/* Elements of `bytes` between two strided planes of n0 x n1 (strides s0, s1 and d0, d1). */
void dmi_move_plane(int64_t bytes, int64_t n0, int64_t n1, const void *src, int64_t s0, int64_t s1, void *dst,
                    int64_t d0, int64_t d1);

#endif
