/* Triangular solves by BLAS, whose interface takes int: right-hand sides go in slices. */
#include "kernels/box/convert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/kernel.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>

static void solve(const dmi_trsm *s, int m, int n, const void *a, void *b)
{
    CBLAS_SIDE side = s->right ? CblasRight : CblasLeft;
    CBLAS_UPLO uplo = s->upper ? CblasUpper : CblasLower;
    CBLAS_TRANSPOSE trans = s->trans == 2 ? CblasConjTrans : s->trans ? CblasTrans : CblasNoTrans;
    CBLAS_DIAG diag = s->unit ? CblasUnit : CblasNonUnit;
    int lda = (int)s->lda, ldb = (int)s->ldb;
    switch ((int)s->dtype) {
    case DM_F64:
        cblas_dtrsm(CblasRowMajor, side, uplo, trans, diag, m, n, 1, a, lda, b, ldb);
        break;
    case DM_F32:
        cblas_strsm(CblasRowMajor, side, uplo, trans, diag, m, n, 1, a, lda, b, ldb);
        break;
    case DM_C128:
        cblas_ztrsm(CblasRowMajor, side, uplo, trans, diag, m, n, &(dm_c128){1, 0}, a, lda, b, ldb);
        break;
    case DM_C64:
        cblas_ctrsm(CblasRowMajor, side, uplo, trans, diag, m, n, &(dm_c64){1, 0}, a, lda, b, ldb);
        break;
    default:
        assert(!"not a type of solves");
    }
}

dm_status dmi_trsm_cpu(const dmi_kernel_call *call)
{
    enum { SLICE = 1 << 20 };
    const dmi_trsm *s = call->desc;
    int64_t bytes = dmi_dtype_bytes(s->dtype), sides = s->right ? s->m : s->n;
    if (s->m > INT_MAX || s->lda > INT_MAX || s->ldb > INT_MAX) {
        return dmi_fail(DM_ERR_UNSUPPORTED, "trsm: more than 2^31 - 1 rows or columns at a worker");
    }
    dm_status status = dmi_cpu_blas_ready();
    for (int64_t i = 0; i < sides && status == DM_OK; i += SLICE) {
        int count = (int)DMI_MIN(SLICE, sides - i);
        int64_t at = s->b_offset + i * (s->right ? s->ldb : 1);
        solve(s, s->right ? count : (int)s->m, s->right ? (int)s->n : count,
              dmi_at(call->at[0], s->a_offset * bytes), dmi_at_mut(call->at[1], at * bytes));
    }
    return status;
}
