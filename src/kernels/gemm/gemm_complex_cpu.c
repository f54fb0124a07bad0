/* Complex products by BLAS: one tile of those that gemm_cpu.c cuts. */
#include "kernels/cpu/cpu.h"

#include <assert.h>
#include <cblas.h>

/* Only what is transposed may be conjugated. */
static CBLAS_TRANSPOSE form_of(int trans, bool conjugate)
{
    assert(trans || !conjugate);
    return conjugate ? CblasConjTrans : trans ? CblasTrans : CblasNoTrans;
}

void dmi_cpu_gemm_complex(const dmi_gemm *d, int m, int n, int k, const int ld[3], double alpha, const void *a,
                          const void *b, double beta, void *c)
{
    CBLAS_TRANSPOSE ta = form_of(d->trans_a, d->conj_a), tb = form_of(d->trans_b, d->conj_b);
    if (d->dtype == DM_C128) {
        const dm_c128 factor = {alpha, 0}, keep = {beta, 0};
        cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &factor, a, ld[0], b, ld[1], &keep, c, ld[2]);
    } else {
        const dm_c64 factor = {(float)alpha, 0}, keep = {(float)beta, 0};
        cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &factor, a, ld[0], b, ld[1], &keep, c, ld[2]);
    }
}
