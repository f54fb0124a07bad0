/* What the parts of bench_cuda_kernels share. */
#ifndef CUDA_BENCH_H
#define CUDA_BENCH_H

#include "kernels/cuda/cuda.h"
#include <cuda_runtime_api.h>

enum { PITCH = 64 }; /* elements between rows, where they have a gap */

typedef struct bench {
    dmi_queue *q;
    int64_t rows, cols; /* of f32; the buffers have room for a pitch */
    void *a, *b, *c;
    double copy_rate; /* GB/s of the driver's copy */
    dmi_run *host_runs, *gpu_runs;
    int64_t nrun;
    /* what is run: */
    dm_dtype type, to;
    int kind;  /* op, layout, axis */
    int64_t n; /* rows and columns where the matrix has other types */
    int64_t m; /* columns, of some */
} bench;

typedef void bench_fn(const bench *t);

/* Ends the process where a call of CUDA has failed. */
void cuda_bench_check(cudaError_t e, const char *what);
/* Median milliseconds of one call, timed on the device over `times` of them in a row. */
float cuda_bench_median(const bench *t, bench_fn *fn, int times);
/* Prints and returns the GB/s of a call that moves so many bytes. */
double cuda_bench_report(const bench *t, const char *what, double bytes, bench_fn *fn);

/* The parts: copies.c, ewise.c, programs.c, sums.c (fills too), gemm.c, layers.c, order.c. */
void cuda_bench_copies(bench *t);
void cuda_bench_ewises(bench *t);
void cuda_bench_programs(bench *t);
void cuda_bench_sums_and_fills(bench *t);
void cuda_bench_gemms(bench *t);
void cuda_bench_layers(bench *t);
void cuda_bench_order(bench *t);
/* Single calls that small matrices are measured with too. */
enum {
    DENSE,
    PITCHED,
    ODD_PITCH,
    TRANSPOSED,
    TRANSPOSED_ODD,
    CYCLIC,
    IRREGULAR
}; /* kinds of cuda_bench_copy */
bench_fn cuda_bench_copy, cuda_bench_ewise, cuda_bench_reduce;
/* Fills n elements of `type` at `at`; uniform numbers begin at `mean`, normals have it. */
void cuda_bench_fill(const bench *t, int kind, dm_dtype type, int64_t n, double mean, uint64_t seed, void *at);

#endif
