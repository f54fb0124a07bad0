/* Rates of the CUDA kernels: bytes read and written a second, beside the driver's copy on the device; products
 * in operations a second. Medians of some runs, timed on the device. bench_cuda_kernels [GiB of an f32 matrix,
 * default 4] [ewise|programs|sums|layers|order]: those of single elementwise functions, or of programs, or of
 * sums and fills, or of layers, or of scans and sorting, alone */
#include "cuda_kernels/cuda_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9 };

void cuda_bench_check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float cuda_bench_median(const bench *t, bench_fn *fn, int times)
{
    cudaEvent_t begin, end;
    float ms[RUNS];
    cuda_bench_check(cudaEventCreate(&begin), "event");
    cuda_bench_check(cudaEventCreate(&end), "event");
    for (int run = -2; run < RUNS; run++) {
        cuda_bench_check(cudaEventRecord(begin, t->q->stream), "record");
        for (int k = 0; k < times; k++) {
            fn(t);
        }
        cuda_bench_check(cudaEventRecord(end, t->q->stream), "record");
        cuda_bench_check(cudaEventSynchronize(end), "kernel");
        cuda_bench_check(cudaEventElapsedTime(&ms[run < 0 ? 0 : run], begin, end), "time");
    }
    if (t->q->error != 0) {
        fprintf(stderr, "%s\n", t->q->error_text);
        exit(1);
    }
    cuda_bench_check(cudaEventDestroy(begin), "event");
    cuda_bench_check(cudaEventDestroy(end), "event");
    qsort(ms, RUNS, sizeof *ms, compare);
    return ms[RUNS / 2] / (float)times;
}

double cuda_bench_report(const bench *t, const char *what, double bytes, bench_fn *fn)
{
    float ms = cuda_bench_median(t, fn, 1);
    double rate = bytes / ms * 1e-6;
    printf("%-40s %8.0f GB/s %9.3f ms", what, rate, (double)ms);
    if (t->copy_rate > 0) {
        printf("  %5.2f of copy", rate / t->copy_rate);
    }
    printf("\n");
    fflush(stdout);
    return rate;
}

static void run_driver(const bench *t)
{
    cuda_bench_check(
        cudaMemcpyAsync(t->b, t->a, (size_t)(t->rows * t->cols * 4), cudaMemcpyDeviceToDevice, t->q->stream),
        "copy");
}

static void small_kernels(bench *t)
{
    static const int64_t sides[] = {16, 64, 256, 512};
    t->type = t->to = DM_F32;
    for (int k = 0; k < DMI_COUNT(sides); k++) {
        t->n = sides[k];
        t->kind = DENSE;
        float copy = cuda_bench_median(t, cuda_bench_copy, 100);
        t->kind = DMI_EW_linear;
        float add = cuda_bench_median(t, cuda_bench_ewise, 100);
        t->kind = 3;
        float sum = cuda_bench_median(t, cuda_bench_reduce, 100);
        printf("f32 %" PRId64 " x %" PRId64 ", one after the other: copy %.2f us, add %.2f us, sum %.2f us\n",
               t->n, t->n, (double)copy * 1e3, (double)add * 1e3, (double)sum * 1e3);
    }
}

int main(int argc, char **argv)
{
    bench t = {.copy_rate = 0};
    double gib = argc > 1 ? atof(argv[1]) : 4;
    if (dmi_cuda_queue_create(0, &t.q) != DM_OK || !dmi_cuda_queue_libraries(t.q)) {
        printf("no GPU, nothing measured: %s\n", dmi_error_text());
        return 0;
    }
    while ((double)(t.cols * 2) * (double)(t.cols * 2) * 4 <= gib * 1073741824.0 || t.cols < 1024) {
        t.cols = t.cols == 0 ? 1024 : t.cols * 2;
    }
    t.rows = t.cols;
    size_t bytes = (size_t)(t.rows * (t.cols + PITCH) * 4);
    cuda_bench_check(cudaMalloc(&t.a, bytes), "memory");
    cuda_bench_check(cudaMalloc(&t.b, bytes), "memory");
    cuda_bench_check(cudaMalloc(&t.c, bytes), "memory");
    t.host_runs = calloc((size_t)t.cols, sizeof *t.host_runs);
    cuda_bench_check(cudaMalloc((void **)&t.gpu_runs, (size_t)t.cols * sizeof *t.gpu_runs), "memory");
    for (int k = 0; k < 3; k++) { /* never zeros: data may change the speed */
        void *at = k == 0 ? t.a : k == 1 ? t.b : t.c;
        cuda_bench_fill(&t, DMI_FILL_NORMAL, DM_F32, t.cols * t.cols, -1, 11, at);
    }
    printf("f32 %" PRId64 " x %" PRId64 ", %.2f GiB\n", t.rows, t.cols,
           (double)(t.rows * t.cols) / 268435456.0);
    t.copy_rate = cuda_bench_report(&t, "the driver's copy", 8.0 * (double)t.rows * (double)t.cols, run_driver);
    if (argc > 2 && strcmp(argv[2], "ewise") == 0) {
        cuda_bench_ewises(&t);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "programs") == 0) {
        cuda_bench_programs(&t);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "sums") == 0) {
        cuda_bench_sums_and_fills(&t);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "layers") == 0) {
        cuda_bench_layers(&t);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "order") == 0) {
        cuda_bench_order(&t);
        return 0;
    }
    cuda_bench_copies(&t);
    cuda_bench_ewises(&t);
    cuda_bench_programs(&t);
    cuda_bench_sums_and_fills(&t);
    cuda_bench_gemms(&t);
    cuda_bench_layers(&t);
    cuda_bench_order(&t);
    small_kernels(&t);
    cuda_bench_check(cudaFree(t.gpu_runs), "memory");
    cuda_bench_check(cudaFree(t.a), "memory");
    cuda_bench_check(cudaFree(t.b), "memory");
    cuda_bench_check(cudaFree(t.c), "memory");
    free(t.host_runs);
    dmi_cuda_queue_destroy(t.q);
    return 0;
}
