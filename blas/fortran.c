/* The Fortran interface of level 3. What dmb_run does not take goes to OpenBLAS as it came; the hidden lengths of character
 * arguments, which BLAS in C does not read, are left out. */
#include "entry.h"

static int option(const char *given, const char *values)
{
    for (int i = 0; values[i]; i++) {
        if (*given == values[i] || *given == values[i] + ('a' - 'A')) {
            return i;
        }
    }
    return -1;
}
#define SIDE(c) option(c, "LR")
#define UPLO(c) option(c, "LU")
#define TRANS(c) option(c, "NTC")
#define DIAG(c) option(c, "NU")

#define CHAR const char *
#define INT const int *
#define IN const void *

#define GEMM_TYPES (CHAR ta, CHAR tb, INT m, INT n, INT k, IN alpha, IN a, INT lda, IN b, INT ldb, IN beta, void *c, INT ldc)
#define GEMM(name, type)                                                                                       \
    DECLARE(name, GEMM_TYPES);                                                                                 \
    void name GEMM_TYPES                                                                                       \
    {                                                                                                          \
        dmb_request r = {DMB_GEMM, type, true, .trans = {TRANS(ta), TRANS(tb)}, .m = *m, .n = *n, .k = *k,     \
                         .a = a, .b = b, .c = c, .lda = *lda, .ldb = *ldb, .ldc = *ldc};                       \
        take(type, alpha, r.alpha);                                                                            \
        take(type, beta, r.beta);                                                                              \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, GEMM_TYPES, (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));                    \
        }                                                                                                      \
    }
GEMM(sgemm_, DM_F32)
GEMM(dgemm_, DM_F64)
GEMM(cgemm_, DM_C64)
GEMM(zgemm_, DM_C128)

#define SYMM_TYPES                                                                                             \
    (CHAR side, CHAR uplo, INT m, INT n, IN alpha, IN a, INT lda, IN b, INT ldb, IN beta, void *c, INT ldc)
#define SYMM(name, kind, type)                                                                                 \
    DECLARE(name, SYMM_TYPES);                                                                                 \
    void name SYMM_TYPES                                                                                       \
    {                                                                                                          \
        dmb_request r = {kind, type, true, .side = SIDE(side), .uplo = UPLO(uplo), .m = *m, .n = *n,           \
                         .a = a, .b = b, .c = c, .lda = *lda, .ldb = *ldb, .ldc = *ldc};                       \
        take(type, alpha, r.alpha);                                                                            \
        take(type, beta, r.beta);                                                                              \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYMM_TYPES, (side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc));                   \
        }                                                                                                      \
    }
SYMM(ssymm_, DMB_SYMM, DM_F32)
SYMM(dsymm_, DMB_SYMM, DM_F64)
SYMM(csymm_, DMB_SYMM, DM_C64)
SYMM(zsymm_, DMB_SYMM, DM_C128)
SYMM(chemm_, DMB_HEMM, DM_C64)
SYMM(zhemm_, DMB_HEMM, DM_C128)

#define SYRK_TYPES (CHAR uplo, CHAR trans, INT n, INT k, IN alpha, IN a, INT lda, IN beta, void *c, INT ldc)
#define SYRK(name, kind, type, factor)                                                                         \
    DECLARE(name, SYRK_TYPES);                                                                                 \
    void name SYRK_TYPES                                                                                       \
    {                                                                                                          \
        dmb_request r = {kind, type, true, .uplo = UPLO(uplo), .trans = {TRANS(trans)}, .m = *n, .n = *n,      \
                         .k = *k, .a = a, .c = c, .lda = *lda, .ldc = *ldc};                                   \
        take(factor, alpha, r.alpha);                                                                          \
        take(factor, beta, r.beta);                                                                            \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYRK_TYPES, (uplo, trans, n, k, alpha, a, lda, beta, c, ldc));                          \
        }                                                                                                      \
    }
SYRK(ssyrk_, DMB_SYRK, DM_F32, DM_F32)
SYRK(dsyrk_, DMB_SYRK, DM_F64, DM_F64)
SYRK(csyrk_, DMB_SYRK, DM_C64, DM_C64)
SYRK(zsyrk_, DMB_SYRK, DM_C128, DM_C128)
SYRK(cherk_, DMB_HERK, DM_C64, part(DM_C64))
SYRK(zherk_, DMB_HERK, DM_C128, part(DM_C128))

#define SYR2K_TYPES                                                                                            \
    (CHAR uplo, CHAR trans, INT n, INT k, IN alpha, IN a, INT lda, IN b, INT ldb, IN beta, void *c, INT ldc)
#define SYR2K(name, kind, type, last)                                                                          \
    DECLARE(name, SYR2K_TYPES);                                                                                \
    void name SYR2K_TYPES                                                                                      \
    {                                                                                                          \
        dmb_request r = {kind, type, true, .uplo = UPLO(uplo), .trans = {TRANS(trans)}, .m = *n, .n = *n,      \
                         .k = *k, .a = a, .b = b, .c = c, .lda = *lda, .ldb = *ldb, .ldc = *ldc};              \
        take(type, alpha, r.alpha);                                                                            \
        take(last, beta, r.beta);                                                                              \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, SYR2K_TYPES, (uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc));                 \
        }                                                                                                      \
    }
SYR2K(ssyr2k_, DMB_SYR2K, DM_F32, DM_F32)
SYR2K(dsyr2k_, DMB_SYR2K, DM_F64, DM_F64)
SYR2K(csyr2k_, DMB_SYR2K, DM_C64, DM_C64)
SYR2K(zsyr2k_, DMB_SYR2K, DM_C128, DM_C128)
SYR2K(cher2k_, DMB_HER2K, DM_C64, part(DM_C64))
SYR2K(zher2k_, DMB_HER2K, DM_C128, part(DM_C128))

#define TRMM_TYPES                                                                                             \
    (CHAR side, CHAR uplo, CHAR trans, CHAR diag, INT m, INT n, IN alpha, IN a, INT lda, void *b, INT ldb)
#define TRMM(name, kind, type)                                                                                 \
    DECLARE(name, TRMM_TYPES);                                                                                 \
    void name TRMM_TYPES                                                                                       \
    {                                                                                                          \
        dmb_request r = {kind, type, true, .side = SIDE(side), .uplo = UPLO(uplo), .trans = {TRANS(trans)},    \
                         .diag = DIAG(diag), .m = *m, .n = *n, .a = a, .c = b, .lda = *lda, .ldc = *ldb};      \
        take(type, alpha, r.alpha);                                                                            \
        if (!dmb_run(r)) {                                                                                     \
            PASS(name, TRMM_TYPES, (side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb));                    \
        }                                                                                                      \
    }
TRMM(strmm_, DMB_TRMM, DM_F32)
TRMM(dtrmm_, DMB_TRMM, DM_F64)
TRMM(ctrmm_, DMB_TRMM, DM_C64)
TRMM(ztrmm_, DMB_TRMM, DM_C128)
TRMM(strsm_, DMB_TRSM, DM_F32)
TRMM(dtrsm_, DMB_TRSM, DM_F64)
TRMM(ctrsm_, DMB_TRSM, DM_C64)
TRMM(ztrsm_, DMB_TRSM, DM_C128)
