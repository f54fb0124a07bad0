/* Queues of a GPU, where kernels are put. The pointers and handles are CUDA's own; this header is read by host code that
 * may not have CUDA's headers, whose types stay opaque here. */
#ifndef DMI_QUEUE_H
#define DMI_QUEUE_H

#include "layout/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Libraries of which a queue has a handle (device/cuda/libraries.c). */
enum {
    DMI_LIBRARY_CUBLAS, /* cublasHandle_t; also a cublasLtHandle_t */
    DMI_LIBRARY_CUDNN,  /* dmi_cudnn; NULL in a build without it */
    DMI_LIBRARIES
};

/* A stream with what its kernels need. Made by dmi_cuda_queue_create, used by one host thread at a time. Calls
 * make the queue's device current and only enqueue; the first error stays in `error` (a cudaError_t, or -1 - a
 * cublasStatus_t; 0: none), and later calls do nothing. */
typedef struct dmi_queue {
    void *stream;                 /* cudaStream_t, non-blocking */
    void *library[DMI_LIBRARIES]; /* handles, bound to the stream and the workspace; NULL before dmi_cuda_queue_libraries */
    void *workspace;              /* of libraries and of sums in parts */
    int64_t workspace_bytes;
    /* words of the device, 0 between kernels: which thread block is the last; of pushes and others, and of
     * small products */
    uint32_t *ticket;
    int device, multiprocessors;
    int capability;        /* of the device: ten times the major number and the minor one; 90: Hopper */
    bool overlaps;         /* a kernel may begin while the one before it ends; of elementwise kernels in a graph */
    bool repeats;          /* what comes now comes again and again: programs are worth compiling */
    bool fused;            /* this queue may run fused products; one queue per GPU may (dmi_cuda_queue_claim) */
    int compile;           /* elementwise programs: enum dmi_config_map_compile */
    void *scratch;         /* where that of steps is; NULL: where they say. Owned by the creator of the queue */
    const char *cache_dir; /* the option; NULL: not set. Owned by the creator of the queue */
    int error;
    char error_text[200]; /* "function: text" of the first error */
    /* Runs of the copy (or acc_add) about to be called, in device memory: run[d] for dims with more than one
     * run, else NULL. NULL altogether: there is none, and runs that are no strided boxes take a launch each. */
    const dmi_run *const *device_run;
} dmi_queue;

/* A queue on a device, which becomes the current one of this thread.
 * DM_ERR_STATE: no such device, or no driver; DM_ERR_NOMEM: no room on the device. */
DM_CHECKED dm_status dmi_cuda_queue_create(int device, dmi_queue **out);
/* Waits for the queue's work. NULL is fine. */
void dmi_cuda_queue_destroy(dmi_queue *q);
/* Makes the handles of libraries, for a queue of kernels that call them. It allocates, so it is done at the start, and
 * never while the stream is captured. False: see q->error. */
bool dmi_cuda_queue_libraries(dmi_queue *q);
/* For dmi_cuda_queue_destroy. */
void dmi_cuda_queue_end_libraries(dmi_queue *q);

/* How elementwise programs are compiled here, in words: "NVRTC 13.0", or why they are not. */
const char *dmi_cuda_compiler(void);
/* Are they, or need they not be? Emulated GPUs run the CPU's kernels. */
bool dmi_cuda_compiles(void);

/* Gives the queue the highest priority. Only while it is empty and has no handles of libraries. */
DM_CHECKED dm_status dmi_cuda_queue_first(dmi_queue *q);

/* Takes the right to run fused products for this queue, until it is destroyed. False: another queue of this
 * process has it on this GPU. Two fused products at once could wait for each other's senders. */
bool dmi_cuda_queue_claim(dmi_queue *q);

/* Keeps the first error. */
void dmi_cuda_failed(dmi_queue *q, const char *what, int error, const char *text);
/* The error of the launch before. */
void dmi_cuda_launched(dmi_queue *q, const char *what);

#ifdef __cplusplus
}
#endif
#endif
