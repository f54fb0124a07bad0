/* NCCL's all-reduce and all-gather of f32 on the GPUs of one host, for comparison with bench_reduce.
 *   nccl_allreduce SAMPLES GPUS MIB...    GPUS 0: all. MIB: size of the result
 * One process, a communicator and a stream a GPU, calls in groups. A sample is a batch of calls over their
 * number, by events, of the slowest GPU; `alone` is one call that is waited for, by the clock. Without NVLink
 * multicast, which belongs to the host and not to the process. */
#include "../bench_time.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 16, MOST_SAMPLES = 1001, WINDOW = 512 };
enum { ALL_REDUCE, ALL_GATHER, CASES };
static const char *const names[CASES] = {"all_reduce", "all_gather"};

typedef struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    float *in, *out;
} rank;

typedef struct job {
    int gpus;
    size_t n; /* elements of the result */
    rank rank[MOST_GPUS];
} job;

static void cuda(cudaError_t e)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "nccl_allreduce: CUDA: %s\n", cudaGetErrorString(e));
        exit(2);
    }
}

static void nccl(ncclResult_t e)
{
    if (e != ncclSuccess) {
        fprintf(stderr, "nccl_allreduce: NCCL: %s\n", ncclGetErrorString(e));
        exit(2);
    }
}

static void call(job *j, int which)
{
    nccl(ncclGroupStart());
    for (int g = 0; g < j->gpus; g++) {
        rank *r = &j->rank[g];
        nccl(which == ALL_REDUCE
                 ? ncclAllReduce(r->in, r->out, j->n, ncclFloat32, ncclSum, r->comm, r->stream)
                 : ncclAllGather(r->in, r->out, j->n / (size_t)j->gpus, ncclFloat32, r->comm, r->stream));
    }
    nccl(ncclGroupEnd());
}

static void wait_all(job *j)
{
    for (int g = 0; g < j->gpus; g++) {
        cuda(cudaSetDevice(g));
        cuda(cudaStreamSynchronize(j->rank[g].stream));
    }
}

/* ms a call, of the slowest GPU */
static double batch(job *j, int which, int times)
{
    double most = 0;
    for (int g = 0; g < j->gpus; g++) {
        cuda(cudaSetDevice(g));
        cuda(cudaEventRecord(j->rank[g].begin, j->rank[g].stream));
    }
    for (int i = 0; i < times; i++) {
        call(j, which);
    }
    for (int g = 0; g < j->gpus; g++) {
        cuda(cudaSetDevice(g));
        cuda(cudaEventRecord(j->rank[g].end, j->rank[g].stream));
    }
    wait_all(j);
    for (int g = 0; g < j->gpus; g++) {
        float ms = 0;
        cuda(cudaEventElapsedTime(&ms, j->rank[g].begin, j->rank[g].end));
        most = fmax(most, (double)ms);
    }
    return most / times;
}

/* A number for element i of a GPU's operand: the same without keeping it. */
static float value(int gpu, size_t i)
{
    return (float)((i * 2654435761u + (size_t)gpu * 40503u) % 4096) / 2048.0f - 1.0f;
}

static double differs(job *j, int which)
{
    static float got[WINDOW];
    double most = 0;
    size_t part = j->n / (size_t)j->gpus;
    call(j, which);
    wait_all(j);
    for (int g = 0; g < j->gpus; g++) {
        size_t at[] = {0, (j->n - WINDOW) / 2, j->n - WINDOW};
        cuda(cudaSetDevice(g));
        for (int w = 0; w < 3; w++) {
            cuda(cudaMemcpy(got, j->rank[g].out + at[w], sizeof got, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < WINDOW; i++) {
                size_t k = at[w] + i;
                double want = which == ALL_GATHER ? (double)value((int)(k / part), k % part) : 0;
                for (int r = 0; r < j->gpus && which == ALL_REDUCE; r++) {
                    want += (double)value(r, k);
                }
                most = fmax(most, fabs(want - (double)got[i]));
            }
        }
    }
    return most;
}

static int measure(job *j, int which, int mib, int samples)
{
    static double row[MOST_SAMPLES], alone[MOST_SAMPLES];
    double error = differs(j, which);
    for (int i = 0; i < 5; i++) {
        call(j, which);
    }
    wait_all(j);
    double about = batch(j, which, 3);
    int times = about < 1 ? 20 : about < 10 ? 5 : 1;
    for (int i = 0; i < samples; i++) {
        row[i] = batch(j, which, times);
    }
    for (int i = 0; i < samples; i++) {
        double begin = now_ms();
        call(j, which);
        wait_all(j);
        alone[i] = now_ms() - begin;
    }
    qsort(row, (size_t)samples, sizeof *row, by_value);
    qsort(alone, (size_t)samples, sizeof *alone, by_value);
    double least = (double)j->n * 4 * (j->gpus - 1) / j->gpus * (which == ALL_GATHER ? 1 : 2);
    double range = samples < 4 ? 0 : row[samples - 1 - samples / 4] - row[samples / 4];
    printf(
        "{\"peer\":\"nccl\",\"case\":\"%s\",\"dtype\":\"f32\",\"n\":%d,\"gpus\":%d,\"ms_median\":%.5f,"
        "\"ms_min\":%.5f,\"iqr\":%.5f,\"alone_ms\":%.5f,\"checked\":%s,\"largest_error\":%.3g,\"samples\":%d,"
        "\"link_gbps\":%.1f}\n",
        names[which], mib, j->gpus, row[samples / 2], row[0], range, alone[samples / 2],
        error < 1e-5 ? "true" : "false", error, samples, least / row[samples / 2] * 1e-6);
    fflush(stdout);
    return error < 1e-5 ? 0 : 1;
}

static void start(job *j)
{
    ncclComm_t comm[MOST_GPUS];
    nccl(ncclCommInitAll(comm, j->gpus, NULL));
    for (int g = 0; g < j->gpus; g++) {
        rank *r = &j->rank[g];
        r->comm = comm[g];
        cuda(cudaSetDevice(g));
        cuda(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
        cuda(cudaEventCreate(&r->begin));
        cuda(cudaEventCreate(&r->end));
    }
}

static void fill(job *j)
{
    float *host = malloc(j->n * sizeof *host);
    if (!host) {
        fprintf(stderr, "nccl_allreduce: no memory\n");
        exit(2);
    }
    for (int g = 0; g < j->gpus; g++) {
        for (size_t i = 0; i < j->n; i++) {
            host[i] = value(g, i);
        }
        cuda(cudaSetDevice(g));
        cuda(cudaMalloc((void **)&j->rank[g].in, j->n * sizeof *host));
        cuda(cudaMalloc((void **)&j->rank[g].out, j->n * sizeof *host));
        cuda(cudaMemcpy(j->rank[g].in, host, j->n * sizeof *host, cudaMemcpyHostToDevice));
    }
    free(host);
}

static void drop(job *j)
{
    for (int g = 0; g < j->gpus; g++) {
        cuda(cudaSetDevice(g));
        cuda(cudaFree(j->rank[g].in));
        cuda(cudaFree(j->rank[g].out));
    }
}

int main(int argc, char **argv)
{
    static job j;
    int samples = argc > 1 ? atoi(argv[1]) : 0, wrong = 0;
    j.gpus = argc > 2 ? atoi(argv[2]) : -1;
    if (samples < 1 || samples > MOST_SAMPLES || j.gpus < 0 || j.gpus > MOST_GPUS || argc < 4) {
        fprintf(stderr, "nccl_allreduce SAMPLES GPUS MIB...\n");
        return 2;
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    if (j.gpus == 0) {
        cuda(cudaGetDeviceCount(&j.gpus));
        j.gpus = j.gpus > MOST_GPUS ? MOST_GPUS : j.gpus;
    }
    start(&j);
    for (int i = 3; i < argc; i++) {
        int mib = atoi(argv[i]);
        j.n = (size_t)mib << 18;
        if (mib < 1) {
            fprintf(stderr, "nccl_allreduce: %s: at least 1 MiB\n", argv[i]);
            return 2;
        }
        fill(&j);
        for (int which = 0; which < CASES; which++) {
            wrong |= measure(&j, which, mib, samples);
        }
        drop(&j);
    }
    for (int g = 0; g < j.gpus; g++) {
        nccl(ncclCommDestroy(j.rank[g].comm));
    }
    return wrong;
}
