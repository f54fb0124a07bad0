/* One product of dmath bench gemm: its arrays, its check, its runs. */
#ifndef DMATH_TOOL_BENCH_GEMM_H
#define DMATH_TOOL_BENCH_GEMM_H

#include "dmath_bench.h"

typedef struct gemm_size {
    int64_t m, n, k;
} gemm_size;
typedef struct gemm_layouts {
    tool_layout of[3]; /* A, B, C */
} gemm_layouts;

/* A product of the measurement: matrices and results. */
typedef struct gemm_type {
    dm_dtype dtype;
    int compute; /* DM_COMPUTE_TF32 for the name tf32 */
} gemm_type;

typedef struct gemm_case {
    gemm_size size;
    dm_dtype dtype;
    int compute;
    const gemm_layouts *layouts;
    int threads;         /* of OpenBLAS alone */
    dm_dtype host_dtype; /* f64 or f32: what OpenBLAS computes in */
    dm_array array[3];   /* A, B, C */
    void *host[3];
    double error; /* of the check, in multiples of the rounding bound: below 1 */
} gemm_case;

/* Makes and fills the arrays, multiplies, and checks the product: DM_ERR_INTERNAL where it is wrong. */
dm_status tool_gemm_begin(dm_session *s, gemm_case *g);
dm_status tool_gemm_end(dm_session *s, gemm_case *g); /* frees everything, also after a failed begin */
/* One product, until it is done; seconds. */
dm_status tool_gemm_ours(dm_session *s, gemm_case *g, double *seconds);
void tool_gemm_theirs(gemm_case *g, double *seconds);

#endif
