/* libdmath_blas: BLAS on a session of dmath. Calls of Fortran and of CBLAS become a request; what the session
 * does not take goes to OpenBLAS. */
#ifndef DMB_BLAS_H
#define DMB_BLAS_H

#include <dmath/dmath.h>
#include <dmath/factors.h>
#include <dmath/linalg.h>
#include <stdbool.h>

#define DMB_API __attribute__((visibility("default")))

/* By levels; of level 1 first what has one vector. */
enum dmb_kind {
    DMB_NRM2,
    DMB_ASUM,
    DMB_IAMAX,
    DMB_SCAL,
    DMB_DOT,
    DMB_DOTC,
    DMB_COPY,
    DMB_SWAP,
    DMB_AXPY,
    DMB_ROT,
    DMB_GEMV,
    DMB_SYMV,
    DMB_HEMV,
    DMB_GER,
    DMB_GERC,
    DMB_SYR,
    DMB_HER,
    DMB_SYR2,
    DMB_HER2,
    DMB_TRMV,
    DMB_TRSV,
    DMB_GEMM,
    DMB_SYMM,
    DMB_HEMM,
    DMB_SYRK,
    DMB_HERK,
    DMB_SYR2K,
    DMB_HER2K,
    DMB_TRMM,
    DMB_TRSM
};

/* One call. side, uplo, trans and diag are dmath's numbers (DM_LEFT, ...); -1: the caller gave something else.
 * c is the matrix that is written: b of TRMM and TRSM, a of GER and the updates of rank 1 and 2. */
typedef struct dmb_request {
    enum dmb_kind kind;
    dm_dtype dtype;
    int by_columns; /* 1: as Fortran's matrices lie; 0: by rows; -1: the caller gave something else */
    int side, uplo, trans[2], diag;
    int64_t m, n, k;     /* of square matrices and of vectors m and n are the same */
    dm_c128 alpha, beta; /* of ROT the cosine and the sine */
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    void *x, *y;
    int64_t incx, incy;
    dm_c128 found; /* the result of NRM2, ASUM, IAMAX (from 0), DOT and DOTC */
} dmb_request;

/* A matrix of the caller, by rows. */
typedef struct dmb_matrix {
    const void *at;
    int64_t rows, cols, ld;
} dmb_matrix;

static inline bool dmb_is_complex(dm_dtype dtype)
{
    return dtype == DM_C64 || dtype == DM_C128;
}

static inline bool dmb_is_zero(dm_c128 factor)
{
    return factor.re == 0 && factor.im == 0;
}

static inline void dmb_swap(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* --- run.c */
/* Computes it. False: nothing has changed, and the caller hands the call to OpenBLAS: it is small, or wrong, or
 * the session is busy or cannot start. */
bool dmb_run(dmb_request *request);
/* A new array for the matrix; put: with its elements. */
dm_status dmb_make(dm_session *s, dm_dtype dtype, const dmb_matrix *x, dm_array *out);
dm_status dmb_put(dm_session *s, dm_dtype dtype, const dmb_matrix *x, dm_array *out);

/* --- matrices.c: level 3; vectors.c: levels 1 and 2 */
/* What is wrong, OpenBLAS says by XERBLA. */
bool dmb_matrices_valid(const dmb_request *r);
bool dmb_vectors_valid(const dmb_request *r);
/* Operations, complex ones counted as one. */
double dmb_matrices_flops(const dmb_request *r);
/* Until all is computed, the caller's memory is as it was. They may change the request. */
dm_status dmb_matrices_compute(dm_session *s, dmb_request *r);
dm_status dmb_vectors_compute(dm_session *s, dmb_request *r);

/* --- session.c */
/* The session, for the calling thread alone until dmb_leave. NULL: it is in use, or there is none. */
dm_session *dmb_enter(void);
void dmb_leave(void);
double dmb_threshold(
    void); /* floating-point operations from which a call of level 3 goes to the workers; 0: all calls do */
extern _Atomic double dmb_known_threshold; /* the same; -1: before the first call of it */
/* To stderr, the first time only. */
__attribute__((format(printf, 1, 2))) void dmb_say_once(const char *format, ...);

/* --- real.c */
/* A function of OpenBLAS. */
void *dmb_real(const char *name);

#endif
