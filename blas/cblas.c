/* The CBLAS interface of level 3. */
#include "entry.h"

/* CBLAS' numbers. */
enum { ROWS = 101, COLUMNS = 102, NO_TRANS = 111, UPPER = 121, NON_UNIT = 131, LEFT = 141 };

/* value - first, where that is 0 to most; else -1 */
static int option(int value, int first, int most)
{
    return value >= first && value <= first + most ? value - first : -1;
}
#define TRANS(v) option(v, NO_TRANS, 2)
#define SIDE(v) option(v, LEFT, 1)
#define DIAG(v) option(v, NON_UNIT, 1)
#define UPLO(v) (option(v, UPPER, 1) < 0 ? -1 : 1 - option(v, UPPER, 1))
#define ORDER(v, right) ((v) == ROWS || (v) == COLUMNS ? (right) : -1) /* a wrong order makes another argument wrong */

/* scalar: the type in which a factor is given; at: & where that is by value */
#define GEMM_TYPES(scalar)                                                                                     \
    (int order, int ta, int tb, int m, int n, int k, scalar alpha, const void *a, int lda, const void *b, int ldb, \
     scalar beta, void *c, int ldc)
#define GEMM(name, type, scalar, at)                                                                           \
    DECLARE(name, GEMM_TYPES(scalar));                                                                         \
    void name GEMM_TYPES(scalar)                                                                               \
    {                                                                                                          \
        dmb_request r = {DMB_GEMM, type, order == COLUMNS, .trans = {ORDER(order, TRANS(ta)), TRANS(tb)},      \
                         .m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .lda = lda, .ldb = ldb, .ldc = ldc};  \
        take(type, at alpha, r.alpha);                                                                         \
        take(type, at beta, r.beta);                                                                           \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, GEMM_TYPES(scalar), (order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));     \
        }                                                                                                      \
    }
GEMM(cblas_sgemm, DM_F32, float, &)
GEMM(cblas_dgemm, DM_F64, double, &)
GEMM(cblas_cgemm, DM_C64, const void *, )
GEMM(cblas_zgemm, DM_C128, const void *, )

#define SYMM_TYPES(scalar)                                                                                     \
    (int order, int side, int uplo, int m, int n, scalar alpha, const void *a, int lda, const void *b, int ldb, \
     scalar beta, void *c, int ldc)
#define SYMM(name, kind, type, scalar, at)                                                                     \
    DECLARE(name, SYMM_TYPES(scalar));                                                                         \
    void name SYMM_TYPES(scalar)                                                                               \
    {                                                                                                          \
        dmb_request r = {kind, type, order == COLUMNS, .side = ORDER(order, SIDE(side)), .uplo = UPLO(uplo),   \
                         .m = m, .n = n, .a = a, .b = b, .c = c, .lda = lda, .ldb = ldb, .ldc = ldc};          \
        take(type, at alpha, r.alpha);                                                                         \
        take(type, at beta, r.beta);                                                                           \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYMM_TYPES(scalar), (order, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc));    \
        }                                                                                                      \
    }
SYMM(cblas_ssymm, DMB_SYMM, DM_F32, float, &)
SYMM(cblas_dsymm, DMB_SYMM, DM_F64, double, &)
SYMM(cblas_csymm, DMB_SYMM, DM_C64, const void *, )
SYMM(cblas_zsymm, DMB_SYMM, DM_C128, const void *, )
SYMM(cblas_chemm, DMB_HEMM, DM_C64, const void *, )
SYMM(cblas_zhemm, DMB_HEMM, DM_C128, const void *, )

#define SYRK_TYPES(scalar)                                                                                     \
    (int order, int uplo, int trans, int n, int k, scalar alpha, const void *a, int lda, scalar beta, void *c, int ldc)
#define SYRK(name, kind, type, scalar, at, factor)                                                             \
    DECLARE(name, SYRK_TYPES(scalar));                                                                         \
    void name SYRK_TYPES(scalar)                                                                               \
    {                                                                                                          \
        dmb_request r = {kind, type, order == COLUMNS, .uplo = ORDER(order, UPLO(uplo)), .trans = {TRANS(trans)}, \
                         .m = n, .n = n, .k = k, .a = a, .c = c, .lda = lda, .ldc = ldc};                      \
        take(factor, at alpha, r.alpha);                                                                       \
        take(factor, at beta, r.beta);                                                                         \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYRK_TYPES(scalar), (order, uplo, trans, n, k, alpha, a, lda, beta, c, ldc));           \
        }                                                                                                      \
    }
SYRK(cblas_ssyrk, DMB_SYRK, DM_F32, float, &, DM_F32)
SYRK(cblas_dsyrk, DMB_SYRK, DM_F64, double, &, DM_F64)
SYRK(cblas_csyrk, DMB_SYRK, DM_C64, const void *, , DM_C64)
SYRK(cblas_zsyrk, DMB_SYRK, DM_C128, const void *, , DM_C128)
SYRK(cblas_cherk, DMB_HERK, DM_C64, float, &, part(DM_C64))
SYRK(cblas_zherk, DMB_HERK, DM_C128, double, &, part(DM_C128))

#define SYR2K_TYPES(first, last)                                                                               \
    (int order, int uplo, int trans, int n, int k, first alpha, const void *a, int lda, const void *b, int ldb, last beta, \
     void *c, int ldc)
#define SYR2K(name, kind, type, first, at, last, last_at, factor)                                              \
    DECLARE(name, SYR2K_TYPES(first, last));                                                                   \
    void name SYR2K_TYPES(first, last)                                                                         \
    {                                                                                                          \
        dmb_request r = {kind, type, order == COLUMNS, .uplo = ORDER(order, UPLO(uplo)), .trans = {TRANS(trans)}, \
                         .m = n, .n = n, .k = k, .a = a, .b = b, .c = c, .lda = lda, .ldb = ldb, .ldc = ldc};  \
        take(type, at alpha, r.alpha);                                                                         \
        take(factor, last_at beta, r.beta);                                                                    \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYR2K_TYPES(first, last), (order, uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc)); \
        }                                                                                                      \
    }
SYR2K(cblas_ssyr2k, DMB_SYR2K, DM_F32, float, &, float, &, DM_F32)
SYR2K(cblas_dsyr2k, DMB_SYR2K, DM_F64, double, &, double, &, DM_F64)
SYR2K(cblas_csyr2k, DMB_SYR2K, DM_C64, const void *, , const void *, , DM_C64)
SYR2K(cblas_zsyr2k, DMB_SYR2K, DM_C128, const void *, , const void *, , DM_C128)
SYR2K(cblas_cher2k, DMB_HER2K, DM_C64, const void *, , float, &, part(DM_C64))
SYR2K(cblas_zher2k, DMB_HER2K, DM_C128, const void *, , double, &, part(DM_C128))

#define TRMM_TYPES(scalar)                                                                                     \
    (int order, int side, int uplo, int trans, int diag, int m, int n, scalar alpha, const void *a, int lda, void *b, int ldb)
#define TRMM(name, kind, type, scalar, at)                                                                     \
    DECLARE(name, TRMM_TYPES(scalar));                                                                         \
    void name TRMM_TYPES(scalar)                                                                               \
    {                                                                                                          \
        dmb_request r = {kind, type, order == COLUMNS, .side = ORDER(order, SIDE(side)), .uplo = UPLO(uplo),   \
                         .trans = {TRANS(trans)}, .diag = DIAG(diag), .m = m, .n = n, .a = a, .c = b,          \
                         .lda = lda, .ldc = ldb};                                                              \
        take(type, at alpha, r.alpha);                                                                         \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, TRMM_TYPES(scalar), (order, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb));     \
        }                                                                                                      \
    }
TRMM(cblas_strmm, DMB_TRMM, DM_F32, float, &)
TRMM(cblas_dtrmm, DMB_TRMM, DM_F64, double, &)
TRMM(cblas_ctrmm, DMB_TRMM, DM_C64, const void *, )
TRMM(cblas_ztrmm, DMB_TRMM, DM_C128, const void *, )
TRMM(cblas_strsm, DMB_TRSM, DM_F32, float, &)
TRMM(cblas_dtrsm, DMB_TRSM, DM_F64, double, &)
TRMM(cblas_ctrsm, DMB_TRSM, DM_C64, const void *, )
TRMM(cblas_ztrsm, DMB_TRSM, DM_C128, const void *, )
