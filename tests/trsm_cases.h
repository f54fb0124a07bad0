/* Triangular systems whose solution is known: of whole numbers, with 1, -1, 2 or -2 on the diagonal. What must
 * not be read is NaN. */
#ifndef DMT_TRSM_CASES_H
#define DMT_TRSM_CASES_H

#include "kernel_oracle.h"
#include "kernels/kernel.h"

#include <complex.h>

typedef struct trsm_case {
    dmi_trsm d;
    int64_t order, a_count, b_count;
    void *a, *b;       /* [a_count], [b_count] elements of memory */
    double complex *x; /* [m * n] the solution */
} trsm_case;

static inline void trsm_put(dm_dtype t, void *p, int64_t i, double complex v)
{
    if (t == DM_F64) {
        ((double *)p)[i] = creal(v);
    } else if (t == DM_F32) {
        ((float *)p)[i] = (float)creal(v);
    } else if (t == DM_C128) {
        ((double complex *)p)[i] = v;
    } else {
        ((float complex *)p)[i] = (float complex)v;
    }
}

static inline double complex trsm_get(dm_dtype t, const void *p, int64_t i)
{
    return t == DM_F64    ? ((const double *)p)[i]
           : t == DM_F32  ? (double)((const float *)p)[i]
           : t == DM_C128 ? ((const double complex *)p)[i]
                          : (double complex)((const float complex *)p)[i];
}

static inline double complex trsm_number(rng *r, dm_dtype t, int64_t most)
{
    double re = (double)rng_in(r, -most, most), im = (double)rng_in(r, -most, most);
    return t == DM_C64 || t == DM_C128 ? CMPLX(re, im) : re;
}

/* op(a)[i, j] of a full matrix of that order with zeros where a is not read */
static inline double complex trsm_at(const trsm_case *c, const double complex *full, int64_t i, int64_t j)
{
    double complex v = c->d.trans ? full[j * c->order + i] : full[i * c->order + j];
    return c->d.trans == 2 ? conj(v) : v;
}

static inline void trsm_fill(trsm_case *c, rng *r, double complex *full)
{
    dmi_trsm *d = &c->d;
    for (int64_t i = 0; i < c->a_count; i++) {
        trsm_put(d->dtype, c->a, i, (double)NAN);
    }
    for (int64_t i = 0; i < c->b_count; i++) {
        trsm_put(d->dtype, c->b, i, 77);
    }
    for (int64_t i = 0; i < c->order; i++) {
        for (int64_t j = 0; j < c->order; j++) {
            bool read = i == j ? !d->unit : d->upper ? i < j : i > j;
            double complex v = i != j    ? trsm_number(r, d->dtype, 1)
                               : d->unit ? 1
                                         : (double)((rng_in(r, 0, 1) ? 1 : -1) * rng_in(r, 1, 2));
            full[i * c->order + j] = read || i == j ? v : 0;
            if (read) {
                trsm_put(d->dtype, c->a, d->a_offset + i * d->lda + j, v);
            }
        }
    }
}

static inline void trsm_make(rng *r, dm_dtype t, int64_t most, trsm_case *c)
{
    *c = (trsm_case){.d = {.dtype = t,
                           .right = rng_in(r, 0, 1),
                           .upper = rng_in(r, 0, 1),
                           .unit = rng_in(r, 0, 1),
                           .trans = (int)rng_in(r, 0, 2),
                           .m = rng_in(r, 0, most),
                           .n = rng_in(r, 0, most),
                           .a_offset = rng_in(r, 0, 4),
                           .b_offset = rng_in(r, 0, 4)}};
    dmi_trsm *d = &c->d;
    c->order = d->right ? d->n : d->m;
    d->lda = c->order + rng_in(r, 0, 3) + (c->order == 0);
    d->ldb = d->n + rng_in(r, 0, 3) + (d->n == 0);
    c->a_count = d->a_offset + c->order * d->lda + 1;
    c->b_count = d->b_offset + d->m * d->ldb + 1;
    c->a = malloc((size_t)c->a_count * 16);
    c->b = malloc((size_t)c->b_count * 16);
    c->x = malloc((size_t)(d->m * d->n + 1) * sizeof *c->x);
    double complex *full = malloc((size_t)(c->order * c->order + 1) * sizeof *full);
    assert_true(c->a && c->b && c->x && full);
    trsm_fill(c, r, full);
    for (int64_t i = 0; i < d->m * d->n; i++) {
        c->x[i] = trsm_number(r, t, 3);
    }
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            double complex sum = 0;
            for (int64_t k = 0; k < c->order; k++) {
                sum += d->right ? c->x[i * d->n + k] * trsm_at(c, full, k, j)
                                : trsm_at(c, full, i, k) * c->x[k * d->n + j];
            }
            trsm_put(t, c->b, d->b_offset + i * d->ldb + j, sum);
        }
    }
    free(full);
}

/* b against the solution, and what lies beside it. */
static inline void trsm_check(const trsm_case *c, const void *b)
{
    const dmi_trsm *d = &c->d;
    for (int64_t at = 0; at < c->b_count; at++) {
        int64_t i = d->ldb > 0 ? (at - d->b_offset) / d->ldb : 0,
                j = d->ldb > 0 ? (at - d->b_offset) % d->ldb : 0;
        bool in = at >= d->b_offset && i < d->m && j < d->n;
        double complex got = trsm_get(d->dtype, b, at), want = in ? c->x[i * d->n + j] : 77;
        if (!(cabs(got - want) <= (in ? 1e-3 : 0))) {
            fail_msg("%dx%d, right %d upper %d unit %d trans %d: element %d of b is %g%+gi, not %g%+gi",
                     (int)d->m, (int)d->n, d->right, d->upper, d->unit, d->trans, (int)at, creal(got),
                     cimag(got), creal(want), cimag(want));
        }
    }
}

static inline void trsm_free(trsm_case *c)
{
    free(c->a);
    free(c->b);
    free(c->x);
}

#endif
