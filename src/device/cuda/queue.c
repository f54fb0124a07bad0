/* Queues of the CUDA backend: a stream and its workspace. */
#include "device/queue.h"
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE_BYTES = 32 << 20, TICKET_BYTES = 512 };

void dmi_cuda_failed(dmi_queue *q, const char *what, int error, const char *text)
{
    if (q->error == 0) {
        q->error = error;
        snprintf(q->error_text, sizeof q->error_text, "%s: %s", what, text);
    }
}

static bool done(dmi_queue *q, const char *what, cudaError_t e)
{
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, what, (int)e, cudaGetErrorString(e));
    }
    return e == cudaSuccess;
}

void dmi_cuda_launched(dmi_queue *q, const char *what)
{
    done(q, what, cudaGetLastError());
}

dm_status dmi_cuda_queue_create(int device, dmi_queue **out)
{
    dmi_queue *q = calloc(1, sizeof *q);
    cudaStream_t stream;
    int devices = 0, major = 0, minor = 0;
    dm_status status = DM_OK;
    if (q == NULL) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a CUDA queue");
    }
    q->device = device;
    q->workspace_bytes = WORKSPACE_BYTES;
    if (done(q, "cudaGetDeviceCount", cudaGetDeviceCount(&devices)) &&
        done(q, "cudaSetDevice",
             device < 0 || device >= devices ? cudaErrorInvalidDevice : cudaSetDevice(device)) &&
        done(q, "cudaDeviceGetAttribute",
             cudaDeviceGetAttribute(&q->multiprocessors, cudaDevAttrMultiProcessorCount, device)) &&
        done(q, "cudaDeviceGetAttribute",
             cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) &&
        done(q, "cudaDeviceGetAttribute",
             cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)) &&
        done(q, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) {
        q->stream = stream;
        q->capability = 10 * major + minor;
        if (done(q, "cudaMalloc", cudaMalloc(&q->workspace, (size_t)q->workspace_bytes + TICKET_BYTES))) {
            q->ticket = (uint32_t *)(void *)((char *)q->workspace + q->workspace_bytes);
            done(q, "cudaMemsetAsync", cudaMemsetAsync(q->ticket, 0, TICKET_BYTES, stream));
        }
    }
    if (q->error != 0) {
        status = q->error == cudaErrorMemoryAllocation ? DM_ERR_NOMEM : DM_ERR_STATE;
        status = dmi_fail(status, "CUDA device %d: %s", device, q->error_text);
        (void)cudaGetLastError(); /* reported here; clear it, so that no later call finds it */
        dmi_cuda_queue_destroy(q);
        return status;
    }
    *out = q;
    return DM_OK;
}

dm_status dmi_cuda_queue_first(dmi_queue *q)
{
    cudaStream_t stream = NULL;
    int least = 0, greatest = 0;
    if (done(q, "cudaSetDevice", cudaSetDevice(q->device)) &&
        done(q, "cudaStreamSynchronize", cudaStreamSynchronize(q->stream)) &&
        done(q, "cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest)) &&
        done(q, "cudaStreamCreateWithPriority",
             cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest))) {
        cudaStreamDestroy(q->stream);
        q->stream = stream;
    }
    return q->error == 0 ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "CUDA device %d: %s", q->device, q->error_text);
}

/* Devices with higher numbers cannot run fused products. */
static atomic_bool claimed[256];

bool dmi_cuda_queue_claim(dmi_queue *q)
{
    q->fused =
        q->device < (int)(sizeof claimed / sizeof *claimed) && !atomic_exchange(&claimed[q->device], true);
    return q->fused;
}

void dmi_cuda_queue_destroy(dmi_queue *q)
{
    if (q == NULL) {
        return;
    }
    if (q->stream != NULL && cudaSetDevice(q->device) == cudaSuccess) {
        cudaStreamSynchronize(q->stream);
        dmi_cuda_queue_end_libraries(q);
        cudaFree(q->workspace);
        cudaStreamDestroy(q->stream);
    }
    if (q->fused) {
        atomic_store(&claimed[q->device], false);
    }
    free(q);
}
