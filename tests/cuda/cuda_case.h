/* What the tests of the CUDA kernels share: a queue, memory on the device, and the comparison with the CPU
 * backend, which gets the same descriptor. Skips where there is no GPU. */
#ifndef CUDA_CASE_H
#define CUDA_CASE_H

#include "kernel_oracle.h"
#include "kernels/cuda/cuda.h"
#include <cuda_runtime_api.h>

typedef struct fixture {
    dmi_queue *q;
    int64_t cases;
    double scale; /* of the number of cases */
} fixture;

static inline void check_cuda(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fail_msg("line %d: %s", line, cudaGetErrorString(e));
    }
}
#define CUDA(call) check_cuda((call), __LINE__)

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    const char *scale = getenv("DMATH_TEST_CASES");
    assert_non_null(f);
    f->scale = scale != NULL ? atof(scale) : 1;
    if (dmi_cuda_queue_create(0, &f->q) != DM_OK) {
        printf("no GPU, skipped: %s\n", dmi_error_text());
        f->q = NULL;
    } else if (!dmi_cuda_queue_libraries(f->q)) {
        fail_msg("%s", f->q->error_text);
    }
    *state = f;
    return 0;
}
static inline int tear_down(void **state)
{
    fixture *f = *state;
    printf("%lld cases\n", (long long)f->cases);
    dmi_cuda_queue_destroy(f->q);
    free(f);
    return 0;
}
static inline fixture *begin_test(void **state)
{
    fixture *f = *state;
    if (f->q == NULL) {
        skip();
    }
    return f;
}
static inline int64_t rounds(const fixture *f, int64_t n)
{
    int64_t scaled = (int64_t)((double)n * f->scale);
    return scaled < 1 ? 1 : scaled;
}
/* Waits for the queue; what went wrong in it fails the test. */
static inline void finish(fixture *f)
{
    if (f->q->error != 0) {
        fail_msg("the queue failed: %s", f->q->error_text);
    }
    CUDA(cudaStreamSynchronize(f->q->stream));
    f->cases++;
}

/* Device memory with a copy of n bytes of host memory, of exactly that size. */
static inline void *upload(const void *host, int64_t n)
{
    void *p = NULL;
    CUDA(cudaMalloc(&p, (size_t)(n > 0 ? n : 1)));
    CUDA(cudaMemcpy(p, host, (size_t)n, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize()); /* the queue's stream does not wait for the default one */
    return p;
}
static inline void *download(const void *device, int64_t n)
{
    void *host = malloc((size_t)n + 1);
    assert_non_null(host);
    CUDA(cudaMemcpy(host, device, (size_t)n, cudaMemcpyDeviceToHost));
    return host;
}

/* Tables of runs in device memory, as the caller of a copy provides them. */
typedef struct tables {
    const dmi_run *run[DM_MAX_DIMS];
} tables;
static inline void upload_tables(fixture *f, const dmi_copy *d, tables *t)
{
    memset(t, 0, sizeof *t);
    for (int k = 0; k < d->ndim; k++) {
        if (d->nrun[k] > 1) {
            t->run[k] = upload(d->run[k], d->nrun[k] * (int64_t)sizeof(dmi_run));
        }
    }
    f->q->device_run = t->run;
}
static inline void free_tables(fixture *f, tables *t)
{
    for (int k = 0; k < DM_MAX_DIMS; k++) {
        CUDA(cudaFree((void *)t->run[k]));
    }
    f->q->device_run = NULL;
}

#endif
