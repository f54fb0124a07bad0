#include "kernels/cuda/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

static dm_status check(cudaError_t code, const char *call)
{
    return code == cudaSuccess ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "%s: %s", call, cudaGetErrorString(code));
}

int dmi_cu_devices(void)
{
    int n = 0;
    /* A kernel that is loaded at its first launch waits for the whole device, streams that wait for peers
     * included. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        (void)cudaGetLastError(); /* no driver, no device: not an error here */
        return 0;
    }
    return n;
}

dm_status dmi_cu_use(int device)
{
    dm_status status = check(cudaSetDevice(device), "cudaSetDevice");
    return status == DM_OK ? check(cudaFree(NULL), "cudaFree") : status;
}

dm_status dmi_cu_peer(int peer)
{
    cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        code = cudaSuccess;
    }
    return check(code, "cudaDeviceEnablePeerAccess");
}

void *dmi_cu_malloc(int64_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, (size_t)bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return p;
}

void dmi_cu_release(void *p)
{
    (void)cudaFree(p);
}

void *dmi_cu_malloc_host(int64_t bytes)
{
    void *p = NULL;
    if (cudaHostAlloc(&p, (size_t)bytes, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return p;
}

void dmi_cu_release_host(void *p)
{
    (void)cudaFreeHost(p);
}

dm_status dmi_cu_zero(void *p, int64_t bytes)
{
    dm_status status = check(cudaMemset(p, 0, (size_t)bytes), "cudaMemset");
    return status == DM_OK ? check(cudaDeviceSynchronize(), "cudaDeviceSynchronize") : status;
}

dm_status dmi_cu_stream_create(dmi_stream *out)
{
    return check(cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags");
}

void dmi_cu_stream_destroy(dmi_stream s)
{
    if (s) {
        (void)cudaStreamDestroy(s);
    }
}

dm_status dmi_cu_stream_wait(dmi_stream s)
{
    return check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
}

dm_status dmi_cu_event_create(dmi_event *out)
{
    return check(cudaEventCreateWithFlags((cudaEvent_t *)out, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
}

void dmi_cu_event_destroy(dmi_event e)
{
    if (e) {
        (void)cudaEventDestroy(e);
    }
}

dm_status dmi_cu_event_record(dmi_event e, dmi_stream s)
{
    return check(cudaEventRecord(e, s), "cudaEventRecord");
}

dm_status dmi_cu_event_after(dmi_stream s, dmi_event e)
{
    return check(cudaStreamWaitEvent(s, e, 0), "cudaStreamWaitEvent");
}

bool dmi_cu_event_reached(dmi_event e)
{
    return cudaEventQuery(e) != cudaErrorNotReady; /* a broken device is found by the next call */
}

dm_status dmi_cu_copy(dmi_stream s, void *dst, const void *src, int64_t bytes)
{
    return check(cudaMemcpyAsync(dst, src, (size_t)bytes, cudaMemcpyDefault, s), "cudaMemcpyAsync");
}

dm_status dmi_cu_copy_2d(dmi_stream s, void *dst, int64_t dst_pitch, const void *src, int64_t src_pitch,
                         int64_t width, int64_t height)
{
    return check(cudaMemcpy2DAsync(dst, (size_t)dst_pitch, src, (size_t)src_pitch, (size_t)width,
                                   (size_t)height, cudaMemcpyDefault, s),
                 "cudaMemcpy2DAsync");
}

dm_status dmi_cu_wait_value(dmi_stream s, uint32_t *flag, uint32_t value)
{
    typedef CUresult (*wait_function)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    static _Atomic(void *) entry; /* the driver's function: the same for all */
    void *f = atomic_load_explicit(&entry, memory_order_relaxed);
    if (!f) {
        enum cudaDriverEntryPointQueryResult found;
        dm_status status =
            check(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &f, 12000, cudaEnableDefault, &found),
                  "cudaGetDriverEntryPointByVersion");
        if (status != DM_OK || found != cudaDriverEntryPointSuccess) {
            return status != DM_OK ? status
                                   : dmi_fail(DM_ERR_UNSUPPORTED, "the driver lacks cuStreamWaitValue32");
        }
        atomic_store_explicit(&entry, f, memory_order_relaxed);
    }
    CUresult code = ((wait_function)f)(s, (CUdeviceptr)(uintptr_t)flag, value, CU_STREAM_WAIT_VALUE_GEQ);
    return code == CUDA_SUCCESS ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "cuStreamWaitValue32: error %d", (int)code);
}
