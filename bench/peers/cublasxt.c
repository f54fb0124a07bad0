/* Square f32 products by cuBLASXt, which cuts matrices into tiles and deals them to the GPUs of a host: what a
 * program gets that keeps its matrices in one place.
 *
 *   cublasxt SIZES [GPUS [host|pinned|device [TILE [SECONDS [SAMPLES]]]]]
 *   cublasxt 4096,8192,16384,32768,65536 1,2,4 pinned 4096
 *
 * A size is repeated until there are SAMPLES (20) or its SECONDS (20) are over, thrice at least: `samples` says
 * how often. Lines as peer.py describes; a call returns when its result is there, so that batched and single
 * times are the same. */
#include <cublasXt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_GPUS = 16, MOST_SAMPLES = 100, PICKED = 64, THREADS = 16 };
typedef enum place { HOST, PINNED, DEVICE } place;
static const char *const place_names[] = {"host", "pinned", "device"};

typedef struct settings {
    place where;
    int tile, samples;
    double seconds;
} settings;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* An element from its place alone, so that any can be had again: uniform in [-1, 1). */
static float element(uint64_t seed, int64_t row, int64_t col)
{
    uint64_t x = (uint64_t)row * 0x9e3779b97f4a7c15u + (uint64_t)col * 0xc2b2ae3d27d4eb4fu + seed;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(x >> 32) * 0x1p-31f;
}

typedef struct part {
    float *at;
    int64_t n, first, last; /* columns */
    uint64_t seed;
} part;

static void *fill_part(void *arg)
{
    const part *p = arg;
    for (int64_t j = p->first; j < p->last; j++) {
        for (int64_t i = 0; i < p->n; i++) {
            p->at[j * p->n + i] = element(p->seed, i, j);
        }
    }
    return NULL;
}

/* Column-major, by several threads: their first touch of fresh memory takes longer than the arithmetic. */
static void fill(float *at, int64_t n, uint64_t seed)
{
    pthread_t thread[THREADS];
    part parts[THREADS];
    bool started[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t] = (part){at, n, n * t / THREADS, n * (t + 1) / THREADS, seed};
        started[t] = pthread_create(&thread[t], NULL, fill_part, &parts[t]) == 0;
        if (!started[t]) {
            fill_part(&parts[t]);
        }
    }
    for (int t = 0; t < THREADS; t++) {
        if (started[t]) {
            pthread_join(thread[t], NULL);
        }
    }
}

static void *get(place where, size_t bytes)
{
    void *p = NULL;
    if (where == HOST) {
        return malloc(bytes);
    }
    cudaError_t e = where == PINNED ? cudaMallocHost(&p, bytes) : cudaMalloc(&p, bytes);
    return e == cudaSuccess ? p : NULL;
}

static void put_back(place where, void *p)
{
    if (where == HOST) {
        free(p);
    } else {
        (void)(where == PINNED ? cudaFreeHost(p) : cudaFree(p));
    }
}

/* A filled matrix; on a device by way of the host, since the elements are made there. */
static float *make(place where, int64_t n, uint64_t seed)
{
    size_t bytes = (size_t)n * (size_t)n * sizeof(float);
    float *p = get(where, bytes), *host = where == DEVICE && p ? malloc(bytes) : p;
    bool good = p && host;
    if (good) {
        fill(host, n, seed);
    }
    if (good && where == DEVICE) {
        good = cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess;
    }
    if (where == DEVICE) {
        free(host);
    }
    if (!good && p) {
        put_back(where, p);
    }
    return good ? p : NULL;
}

/* The largest error of some entries, as a part of what a typical one has. */
static double error_of(place where, const float *c, int64_t n)
{
    double worst = 0;
    for (int64_t p = 0; p < PICKED; p++) {
        int64_t i = (p * 2654435761) % n, j = (p * 40503 + 7919 * p * p) % n;
        double wanted = 0;
        float got = NAN;
        for (int64_t k = 0; k < n; k++) {
            wanted += (double)element(1, i, k) * element(2, k, j);
        }
        if (where != DEVICE) {
            got = c[j * n + i];
        } else if (cudaMemcpy(&got, &c[j * n + i], sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess) {
            got = NAN;
        }
        double off =
            fabs(got - wanted) / (sqrt((double)n) / 3); /* the product of two uniforms deviates by 1/3 */
        worst = off <= worst ? worst : off;
    }
    return worst;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const settings *o, int64_t n, int gpus, double *ms, int count, double error)
{
    char peer[64];
    snprintf(peer, sizeof peer, "cublasxt %s tile %d", place_names[o->where], o->tile);
    qsort(ms, (size_t)count, sizeof *ms, by_value);
    double median = count % 2 ? ms[count / 2] : (ms[count / 2 - 1] + ms[count / 2]) / 2;
    printf("{\"peer\": \"%s\", \"case\": \"single\", \"dtype\": \"f32\", \"n\": %lld, \"gpus\": %d, "
           "\"ms_median\": %.4f, \"ms_min\": %.4f, \"iqr\": %.4f, \"alone_ms\": %.4f, \"checked\": %s, "
           "\"largest_error\": %.3g, \"samples\": %d}\n",
           peer, (long long)n, gpus, median, ms[0], ms[(3 * (count - 1)) / 4] - ms[(count - 1) / 4], median,
           error <= 1e-4 ? "true" : "false", error, count);
    fflush(stdout);
}

static const char *multiply(const settings *o, int64_t n, int gpus)
{
    int devices[MOST_GPUS];
    double ms[MOST_SAMPLES];
    const float one = 1, zero = 0;
    const char *why = NULL;
    cublasXtHandle_t handle = NULL;
    float *a = make(o->where, n, 1), *b = a ? make(o->where, n, 2) : NULL, *c = b ? make(o->where, n, 3) : NULL;
    for (int i = 0; i < gpus; i++) {
        devices[i] = i;
    }
    if (!c) {
        why = "no memory for the matrices";
    } else if (cublasXtCreate(&handle) != CUBLAS_STATUS_SUCCESS ||
               cublasXtDeviceSelect(handle, gpus, devices) != CUBLAS_STATUS_SUCCESS ||
               cublasXtSetBlockDim(handle, o->tile) != CUBLAS_STATUS_SUCCESS) {
        why = "cublasXtCreate, DeviceSelect or SetBlockDim failed";
    }
    double begin = now_ms();
    int count = 0;
    for (int i = -1; i < o->samples && !why && (i < 3 || now_ms() - begin < o->seconds * 1e3); i++) {
        double start = now_ms();
        cublasStatus_t status = cublasXtSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, (size_t)n, (size_t)n, (size_t)n,
                                              &one, a, (size_t)n, b, (size_t)n, &zero, c, (size_t)n);
        if (status == CUBLAS_STATUS_SUCCESS && cudaDeviceSynchronize() != cudaSuccess) {
            status = CUBLAS_STATUS_EXECUTION_FAILED;
        }
        if (status != CUBLAS_STATUS_SUCCESS) {
            why = cublasGetStatusString(status);
        } else if (i >= 0) {
            ms[count++] = now_ms() - start;
        }
    }
    if (!why) {
        print(o, n, gpus, ms, count, error_of(o->where, c, n));
    }
    if (handle) {
        (void)cublasXtDestroy(handle);
    }
    float *all[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        if (all[i]) {
            put_back(o->where, all[i]);
        }
    }
    return why;
}

int main(int argc, char **argv)
{
    settings o = {PINNED, 4096, 20, 20};
    int there = 0, failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: cublasxt SIZES [GPUS [host|pinned|device [TILE [SECONDS [SAMPLES]]]]]\n");
        return 2;
    }
    for (int w = HOST; argc > 3 && w <= DEVICE; w++) {
        o.where = strcmp(argv[3], place_names[w]) == 0 ? (place)w : o.where;
    }
    o.tile = argc > 4 ? atoi(argv[4]) : o.tile;
    o.seconds = argc > 5 ? atof(argv[5]) : o.seconds;
    o.samples = argc > 6 && atoi(argv[6]) > 0 ? atoi(argv[6]) : o.samples;
    o.samples = o.samples < MOST_SAMPLES ? o.samples : MOST_SAMPLES;
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1); /* f32 means f32 */
    if (cudaGetDeviceCount(&there) != cudaSuccess || there == 0) {
        fprintf(stderr, "cublasxt: skipped: no GPU\n");
        return 77;
    }
    for (const char *g = argc > 2 ? argv[2] : "1"; g; g = strchr(g, ',') ? strchr(g, ',') + 1 : NULL) {
        for (const char *s = argv[1]; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
            int gpus = atoi(g);
            int64_t n = atoll(s);
            const char *why = gpus < 1 || gpus > there || gpus > MOST_GPUS ? "so many GPUs are not here"
                              : n < 1                                      ? "not a size"
                                                                           : multiply(&o, n, gpus);
            if (why) {
                printf("{\"peer\": \"cublasxt %s tile %d\", \"case\": \"single\", \"dtype\": \"f32\", \"n\": "
                       "%lld, "
                       "\"gpus\": %d, \"checked\": false, \"error\": \"%s\"}\n",
                       place_names[o.where], o.tile, (long long)n, gpus, why);
                fflush(stdout);
                failed = 1;
            }
        }
    }
    return failed;
}
