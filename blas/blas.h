/* libdmath_blas: BLAS of level 3 on a session of dmath. Calls of Fortran and of CBLAS become a request; what
 * the session does not take goes to OpenBLAS. */
#ifndef DMB_BLAS_H
#define DMB_BLAS_H

#include <dmath/dmath.h>
#include <dmath/linalg.h>
#include <stdbool.h>

#define DMB_API __attribute__((visibility("default")))

enum dmb_kind { DMB_GEMM, DMB_SYMM, DMB_HEMM, DMB_SYRK, DMB_HERK, DMB_SYR2K, DMB_HER2K, DMB_TRMM, DMB_TRSM };

/* One call. side, uplo, trans and diag are dmath's numbers (DM_LEFT, ...); -1: the caller gave something else.
 * Of TRMM and TRSM, c is the matrix that Fortran calls b. */
typedef struct dmb_request {
    enum dmb_kind kind;
    dm_dtype dtype;
    bool by_columns; /* as Fortran's matrices lie; else by rows */
    int side, uplo, trans[2], diag;
    int64_t m, n, k;
    double alpha[2], beta[2];
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
} dmb_request;

/* --- run.c */
/* Computes it. False: nothing has changed, and the caller hands the call to OpenBLAS: it is small, or wrong, or
 * the session is busy or cannot start. */
bool dmb_run(dmb_request request);

/* --- session.c */
/* The session, for the calling thread alone until dmb_leave. NULL: it is in use, or there is none. */
dm_session *dmb_enter(void);
void dmb_leave(void);
double dmb_threshold(void); /* floating-point operations from which a call goes to the workers */
/* To stderr, the first time only. */
__attribute__((format(printf, 1, 2))) void dmb_say_once(const char *format, ...);

/* --- real.c */
/* A function of OpenBLAS. */
void *dmb_real(const char *name);

#endif
