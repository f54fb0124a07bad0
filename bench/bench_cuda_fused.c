/* The fused product beside cuBLAS, after a check of both against each other: N x N bf16 matrices on four GPUs,
 * as one of them sees it, with all of b here and with three quarters of it arriving. With a second GPU the
 * chunks come from there; else they are here, and only their counters are raised, at the rate given.
 * bench_cuda_fused [check] [GB/s, default 390] [N, default 4096 8192 16384; -N: nothing arrives] */
#include "cuda_fused/fused_bench.h"

#include <cublas_v2.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 9, RUN_KINDS = 4, GPUS = 4 };

/* A product as it is timed. */
typedef struct timed {
    fused_bench *t;
    dmi_fused d;
    dmi_fused_arrival chunk[DMI_FUSED_CHUNKS];
    fused_spread spread;
    int64_t n;
    void *a, *b, *gathered, *c; /* b: of the other GPU, NULL where there is none; own: this GPU's part */
    const void *own;
    cudaEvent_t heated, begin, end;
} timed;

void fused_check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(1);
    }
}

void fused_check_queue(const dmi_queue *q)
{
    if (q->error != 0) {
        fprintf(stderr, "%s\n", q->error_text);
        exit(1);
    }
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* --- data ----------------------------------------------------------------------------------------------- */
/* About normal, from a pattern whose length shares no factor with the rows'. */
static void fill(void *at, int64_t count, uint64_t seed, double width)
{
    enum { PATTERN = 4194301 };
    uint16_t *v = malloc(PATTERN * 2);
    fused_check(v == NULL ? cudaErrorMemoryAllocation : cudaSuccess, "memory");
    for (int64_t i = 0; i < PATTERN; i++) {
        float sum = 0;
        uint32_t bits;
        for (int j = 0; j < 4; j++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            sum += (float)((double)(seed >> 40) / 16777216.0 - 0.5);
        }
        sum *= (float)(1.7 * width);
        memcpy(&bits, &sum, 4);
        v[i] = (uint16_t)(bits >> 16);
    }
    for (int64_t i = 0; i < count; i += PATTERN) {
        size_t part = (size_t)DMI_MIN(PATTERN, count - i);
        fused_check(cudaMemcpy((uint16_t *)at + i, v, part * 2, cudaMemcpyDefault), "copy");
    }
    free(v);
}

/* --- what is timed ------------------------------------------------------------------------------------ */
static void run_blas(timed *x)
{
    float one = 1, zero = 0;
    const dmi_fused *d = &x->d;
    cublasStatus_t s =
        cublasGemmEx(x->t->q->library[DMI_LIBRARY_CUBLAS], CUBLAS_OP_N, CUBLAS_OP_N, (int)d->n, (int)d->m, (int)d->k, &one,
                     x->gathered, CUDA_R_16BF, (int)d->ldb, x->a, CUDA_R_16BF, (int)d->lda, &zero, x->c,
                     CUDA_R_16BF, (int)d->ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    fused_check(s == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown, "cuBLAS");
}

static void run_fused(timed *x)
{
    const void *own[2] = {NULL, x->own};
    dmi_cuda_launch_fused(x->t->q, &x->d, 1, x->a, x->gathered, own, 0, x->c);
    fused_check_queue(x->t->q);
}

/* The same order of work, and nothing to wait for. */
static void run_here(timed *x)
{
    for (int i = 0; i < x->d.chunks; i++) {
        x->chunk[i].counter = NULL;
    }
    run_fused(x);
}

static void run_nothing(timed *x)
{
    (void)x;
}

/* Runs of several kinds take turns, so that the GPU is as hot for one as for another. */
typedef void run_fn(timed *x);
static void time_in_turn(timed *x, float (*once)(timed *, run_fn *), run_fn *const *run, int runs, float *ms)
{
    float all[RUN_KINDS][RUNS];
    for (int i = -1; i < RUNS; i++) {
        for (int k = 0; k < runs; k++) {
            all[k][i < 0 ? 0 : i] = once(x, run[k]);
        }
    }
    for (int k = 0; k < runs; k++) {
        qsort(all[k], RUNS, sizeof **all, by_size);
        ms[k] = all[k][RUNS / 2];
    }
}

static int some(const timed *x)
{
    return x->n <= 4096 ? 60 : x->n <= 8192 ? 12 : 3;
}

/* Milliseconds a call, back to back. */
static float once_alone(timed *x, run_fn *run)
{
    float ms;
    fused_check(cudaEventRecord(x->begin, x->t->q->stream), "record");
    for (int k = 0; k < some(x); k++) {
        run(x);
    }
    fused_check(cudaEventRecord(x->end, x->t->q->stream), "record");
    fused_check(cudaEventSynchronize(x->end), "product");
    fused_check(cudaEventElapsedTime(&ms, x->begin, x->end), "time");
    return ms / (float)some(x);
}

/* Milliseconds from the moment when chunks begin to come: until the product is done, or (run_nothing) until the
 * last chunk is here. Other products go before, as in a longer computation. */
static float once_arriving(timed *x, run_fn *run)
{
    float ms;
    fused_bench *t = x->t;
    t->value++;
    for (int k = 0; k < some(x); k++) {
        run_blas(x);
    }
    fused_check(cudaEventRecord(x->heated, t->q->stream), "record");
    fused_spread_chunks(t, &x->spread, &x->d, x->chunk);
    fused_wait_gate(t);
    fused_check(cudaEventRecord(x->begin, t->q->stream), "record");
    run(x);
    if (run == run_blas || run == run_here) {
        fused_open_gate(t);
    } else {
        while (cudaEventQuery(x->heated) == cudaErrorNotReady) { /* the stream stands at the gate */
        }
        fused_arrive(t, &x->d, x->b, x->gathered, true);
    }
    if (run == run_nothing) {
        fused_check(cudaStreamSynchronize(t->arrivals), "arrivals");
    }
    fused_check(cudaEventRecord(x->end, t->q->stream), "record");
    fused_check(cudaEventSynchronize(x->end), "product");
    fused_check(cudaStreamSynchronize(t->arrivals), "arrivals");
    fused_check(cudaEventElapsedTime(&ms, x->begin, x->end), "time");
    return ms;
}

static void report(const timed *x, const char *what, float ms, float blas)
{
    double flop = 2.0 * (double)x->d.m * (double)x->d.n * (double)x->d.k;
    printf("%6" PRId64 "  %-46s %8.4f ms %7.1f TFLOP/s %6.3f of cuBLAS's time\n", x->n, what, (double)ms,
           flop / (double)ms * 1e-9, (double)(ms / blas));
    fflush(stdout);
}

/* Microseconds of the host a launch. */
static double host_time(timed *x)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 20; i++) {
        run_fused(x);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    fused_check(cudaStreamSynchronize(x->t->q->stream), "product");
    return ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) * 1e-3) / 20;
}

static void time_spread(timed *x, bool by_col, int panels, int slices)
{
    static run_fn *const run[] = {run_blas, run_here, run_fused, run_nothing};
    char what[80];
    float ms[RUN_KINDS];
    x->spread = (fused_spread){GPUS, by_col, panels, slices};
    fused_spread_chunks(x->t, &x->spread, &x->d, x->chunk);
    x->own = fused_own(&x->d, x->gathered);
    time_in_turn(x, once_arriving, run, DMI_COUNT(run), ms);
    snprintf(what, sizeof what, "b by %s, %d x %d chunks an owner: arriving", by_col ? "columns" : "rows",
             panels, slices);
    report(x, what, ms[2], ms[0]);
    report(x, "   in the same order, all here", ms[1], ms[0]);
    printf("           the chunks alone %8.4f ms, %.1f GB/s; cuBLAS %8.4f ms\n", (double)ms[3],
           1.5 * (double)x->n * (double)x->n / (double)ms[3] * 1e-6, (double)ms[0]);
    fflush(stdout);
    x->d.chunks = 0;
    x->d.own_k1 = 0;
}

static void time_size(fused_bench *t, int64_t n, bool arriving)
{
    static run_fn *const run[] = {run_blas, run_fused};
    timed x = {.t = t, .n = n};
    float ms[RUN_KINDS];
    size_t bytes = (size_t)(n * n) * 2;
    x.d = (dmi_fused){.dtype = DM_BF16, .m = n / GPUS, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    fused_check(cudaEventCreate(&x.begin), "event");
    fused_check(cudaEventCreateWithFlags(&x.heated, cudaEventDisableTiming), "event");
    fused_check(cudaEventCreate(&x.end), "event");
    fused_check(cudaMalloc(&x.a, bytes / GPUS), "memory");
    fused_check(cudaMalloc(&x.c, bytes / GPUS), "memory");
    fused_check(cudaMalloc(&x.gathered, bytes), "memory");
    fill(x.a, n * n / GPUS, 1, 1);
    fill(x.gathered, n * n, 2, 1);
    if (t->other_gpu) {
        fused_check(cudaSetDevice(1), "device");
        fused_check(cudaMalloc(&x.b, bytes), "memory");
        fill(x.b, n * n, 2, 1);
    }
    fused_check(cudaSetDevice(t->q->device), "device");
    fused_check(cudaDeviceSynchronize(), "data");
    time_in_turn(&x, once_alone, run, DMI_COUNT(run), ms);
    report(&x, "cuBLAS", ms[0], ms[0]);
    report(&x, "fused, all of b here", ms[1], ms[0]);
    printf("        a launch: %.1f us of the host\n", host_time(&x));
    for (int by_col = 0; by_col < 2 && arriving; by_col++) {
        int panels = (n <= 4096 ? 1 : n <= 8192 ? 4 : 8) / (1 + by_col);
        time_spread(&x, by_col, DMI_MAX(panels, 1), n <= 4096 ? 4 : 1);
        time_spread(&x, by_col, DMI_MAX(panels, 1), n <= 4096 ? 8 : 2);
    }
    fused_check(cudaEventDestroy(x.begin), "event");
    fused_check(cudaEventDestroy(x.heated), "event");
    fused_check(cudaEventDestroy(x.end), "event");
    fused_check(cudaFree(x.a), "memory");
    fused_check(cudaFree(x.b), "memory");
    fused_check(cudaFree(x.c), "memory");
    fused_check(cudaFree(x.gathered), "memory");
}

static void set_up(fused_bench *t)
{
    int devices = 0;
    fused_check(cudaGetDeviceCount(&devices), "devices");
    t->other_gpu = devices > 1;
    fused_check(cudaMalloc((void **)&t->counter, DMI_FUSED_CHUNKS * 4), "memory");
    fused_check(cudaMemset(t->counter, 0, DMI_FUSED_CHUNKS * 4), "memory");
    fused_check(cudaHostAlloc((void **)&t->source, DMI_FUSED_CHUNKS * 4, cudaHostAllocPortable), "memory");
    fused_check(cudaHostAlloc((void **)&t->gate, 4, cudaHostAllocPortable | cudaHostAllocMapped), "memory");
    *t->gate = 0;
    if (t->other_gpu) {
        fused_check(cudaSetDevice(1), "device");
        fused_check(cudaDeviceEnablePeerAccess(t->q->device, 0), "peers");
    }
    fused_check(cudaStreamCreateWithFlags(&t->arrivals, cudaStreamNonBlocking), "stream");
    fused_check(cudaSetDevice(t->q->device), "device");
    if (t->other_gpu) {
        fused_check(cudaDeviceEnablePeerAccess(1, 0), "peers");
    }
    fused_check_queue(t->q);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {4096, 8192, 16384};
    bool check = argc > 1 && strcmp(argv[1], "check") == 0;
    fused_bench t = {.rate = (argc > 1 + check ? atof(argv[1 + check]) : 390) * 1e9};
    if (dmi_cuda_queue_create(0, &t.q) != DM_OK || !dmi_cuda_queue_libraries(t.q)) {
        printf("no GPU, nothing measured: %s\n", dmi_error_text());
        return 0;
    }
    set_up(&t);
    if (check) {
        int bad = fused_check_all(&t);
        printf("%d wrong\n", bad);
        if (bad > 0) {
            return 1;
        }
    }
    for (int i = 2 + check; i < argc; i++) {
        time_size(&t, llabs(atoll(argv[i])), atoll(argv[i]) > 0);
    }
    for (int i = 0; argc <= 2 + check && i < DMI_COUNT(sizes); i++) {
        time_size(&t, sizes[i], true);
    }
    dmi_cuda_queue_destroy(t.q);
    return 0;
}
