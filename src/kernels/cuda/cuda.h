/* The CUDA backend: the kernels of the table put into a queue (the pointers and handles are CUDA's own; this
 * header is read by host code that may not have CUDA's headers, whose types stay opaque here). */
#ifndef DMI_CUDA_H
#define DMI_CUDA_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream with what its kernels need. Made by dmi_cuda_queue_create, used by one host thread at a time. Calls
 * make the queue's device current and only enqueue; the first error stays in `error` (a cudaError_t, or -1 - a
 * cublasStatus_t; 0: none), and later calls do nothing. */
struct dmi_queue {
    void *stream;    /* cudaStream_t, non-blocking */
    void *blas;      /* cublasHandle_t bound to the stream and the workspace; made on first use */
    void *workspace; /* of cuBLAS and of sums in parts */
    int64_t workspace_bytes;
    uint32_t *ticket; /* a word of the device, 0 between kernels: of pushes, which of their blocks is the last */
    int device, multiprocessors;
    bool fused; /* its is the right to products that wait, see dmi_cuda_fused_take */
    int error;
    char error_text[200]; /* "function: text" of the first error */
    /* Runs of the copy (or acc_add) about to be called, in device memory: run[d] for dims with more than one
     * run, else NULL. NULL altogether: there is none, and runs that are no strided boxes take a launch each. */
    const dmi_run *const *device_run;
};

/* A queue on a device, which becomes the current one of this thread.
 * DM_ERR_STATE: no such device, or no driver; DM_ERR_NOMEM: no room on the device. */
DM_CHECKED dm_status dmi_cuda_queue_create(int device, dmi_queue **out);
/* Waits for what is in the queue. NULL is fine. */
void dmi_cuda_queue_destroy(dmi_queue *q);
/* Makes q->blas now. The first product does it too, but it allocates, so it must not be the first time while
 * the stream is captured. False: see q->error. */
bool dmi_cuda_queue_blas(dmi_queue *q);

/* What is in it goes before what is in other queues, wherever multiprocessors are short. Only while it is empty and
 * has no cuBLAS. */
DM_CHECKED dm_status dmi_cuda_queue_first(dmi_queue *q);

/* Rows of bytes into memory of a peer, and behind all of them *counter = *value: one launch in place of two copies.
 * Whoever has seen the counter (a stream that waited for it, or a load that acquires) sees the bytes. */
typedef struct dmi_push {
    const void *src;
    void *dst;
    int64_t src_pitch, dst_pitch, width, height; /* bytes; rows do not overlap */
    uint32_t *counter;     /* the peer's */
    const uint32_t *value; /* in memory of this device; nobody writes it */
} dmi_push;
enum { DMI_PUSH_MOST = 1 << 30 }; /* bytes */
void dmi_cuda_push(dmi_queue *q, const dmi_push *p);

/* Has this GPU (and the build) products that wait for their operand piece by piece, and does no other queue of this
 * process have them there? Two such kernels at once could wait for each other's senders. Until the queue's end. */
bool dmi_cuda_fused_take(dmi_queue *q);
void dmi_cuda_fused_give(dmi_queue *q);

#ifdef __cplusplus
}
#endif
#endif
