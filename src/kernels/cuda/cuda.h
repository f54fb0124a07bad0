/* The CUDA backend, as C sees it: kernels, queues, and thin calls around the runtime (the only file outside
 * kernels/cuda that may know CUDA types is none: they stay opaque here). */
#ifndef DMI_CUDA_H
#define DMI_CUDA_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream with what its kernels need. Made by dmi_cuda_queue_create on the current device; used by one host thread
 * at a time. Calls only enqueue; the first error stays in `error` (a cudaError_t; 0: none), and later calls do
 * nothing. */
struct dmi_queue {
    void *stream;        /* cudaStream_t, non-blocking */
    void *blas;          /* cublasHandle_t bound to the stream, with its own workspace; made on first use */
    void *workspace;     /* of cuBLAS, and its bytes */
    int64_t workspace_bytes;
    int device, multiprocessors;
    int error;
    char error_text[200]; /* "function: text" of the first error */
    bool tf32;            /* f32 products may use TF32 */
    /* Runs of the copy (or acc_add) about to be called, in device memory: run[d] for dims with more than one run, else
     * NULL. NULL altogether: every dim has one run. */
    const dmi_run *const *device_run;
};

const dmi_backend *dmi_backend_cuda(void);

#ifdef __cplusplus
}
#endif
#endif
