#include "device/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 64 };

/* Clears an error that is reported here or ignored, so that the check after a later launch does not find it.
 * Sticky device errors return at the next call. */
static void forget(cudaError_t code)
{
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

static _Atomic(const char *) lost; /* why, set after */
static atomic_int lost_device;

/* The calling thread's device is the one that fails: each thread that calls uses that of its worker. Who comes
 * later leaves with `lost` set, too, before it counts anything as done. */
static void lose(cudaError_t code)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int device = -1;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&lost)) {
        forget(cudaGetDevice(&device));
        atomic_store(&lost_device, device);
        atomic_store(&lost, cudaGetErrorString(code));
    }
    pthread_mutex_unlock(&lock);
}

/* Errors after which nothing of the process on the device can be used. */
static bool loses_device(cudaError_t code)
{
    switch (code) {
    case cudaErrorIllegalAddress: /* 700 */
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
        return true;
    default:
        return false;
    }
}

static dm_status check(cudaError_t code, const char *call)
{
    forget(code);
    if (loses_device(code)) {
        lose(code);
    }
    return code == cudaSuccess ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "%s: %s", call, cudaGetErrorString(code));
}

bool dmi_cu_timed(void)
{
    return true;
}

dm_status dmi_cu_settings(void)
{
    return DM_OK;
}

int dmi_cu_devices(void)
{
    int n = 0;
    /* A kernel that is loaded at its first launch waits for the whole device, streams that wait for peers
     * included. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess) {
        (void)cudaGetLastError(); /* no driver, no device: not an error here */
        static atomic_bool told;
        if (!atomic_exchange(&told, true)) {
            dmi_log(DMI_LOG_INFO, "CUDA finds no GPU: %s", cudaGetErrorString(code));
        }
        return 0;
    }
    return n;
}

const char *dmi_cu_why_none(void)
{
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);
    (void)cudaGetLastError();
    return code != cudaSuccess ? cudaGetErrorString(code) : n == 0 ? "there is none" : "";
}

dm_status dmi_cu_use(int device)
{
    dm_status status = check(cudaSetDevice(device), "cudaSetDevice");
    return status == DM_OK ? check(cudaFree(NULL), "cudaFree") : status;
}

dm_status dmi_cu_own_thread(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    return check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

int dmi_cu_current(void)
{
    int device = -1;
    forget(cudaGetDevice(&device));
    return device;
}

/* Asked for twice it is an error, which others who use these GPUs may cause, and which tools report. */
dm_status dmi_cu_peer(int peer)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool enabled[MOST_DEVICES][MOST_DEVICES];
    int here = 0;
    dm_status status = check(cudaGetDevice(&here), "cudaGetDevice");
    bool counted = here < MOST_DEVICES && peer < MOST_DEVICES;
    pthread_mutex_lock(&lock);
    if (status == DM_OK && !(counted && enabled[here][peer])) {
        cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
        if (code == cudaErrorPeerAccessAlreadyEnabled) {
            (void)cudaGetLastError();
            code = cudaSuccess;
        }
        status = check(code, "cudaDeviceEnablePeerAccess");
        if (counted) {
            enabled[here][peer] = status == DM_OK;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

bool dmi_cu_can_peer(int device, int peer)
{
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, device, peer) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return can != 0;
}

dm_status dmi_cu_name(int device, char *bus, size_t bus_room, char *model, size_t model_room)
{
    struct cudaDeviceProp properties;
    dm_status status = check(cudaDeviceGetPCIBusId(bus, (int)bus_room, device), "cudaDeviceGetPCIBusId");
    if (status == DM_OK && model_room > 0) {
        status = check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        snprintf(model, model_room, "%s", status == DM_OK ? properties.name : "");
    }
    return status;
}

dm_status dmi_cu_memory(int64_t *free_bytes, int64_t *total_bytes)
{
    size_t unused = 0, total = 0;
    dm_status status = check(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
    *free_bytes = (int64_t)unused;
    *total_bytes = (int64_t)total;
    return status;
}

/* An extension of Open MPI and MPICH. The symbol is weak, so that one program runs with MPIs that have it and with
 * those that do not, whatever it was built with. */
int MPIX_Query_cuda_support(void) __attribute__((weak));

bool dmi_cu_in_mpi(void)
{
    return MPIX_Query_cuda_support && MPIX_Query_cuda_support() != 0;
}

dm_status dmi_cu_export(void *p, dmi_cu_handle *out)
{
    _Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof out->bytes, "a handle is kept in these bytes");
    cudaIpcMemHandle_t handle;
    dm_status status = check(cudaIpcGetMemHandle(&handle, p), "cudaIpcGetMemHandle");
    if (status == DM_OK) {
        memcpy(out->bytes, &handle, sizeof out->bytes);
    }
    return status;
}

dm_status dmi_cu_open(const dmi_cu_handle *handle, void **out)
{
    cudaIpcMemHandle_t h;
    memcpy(&h, handle->bytes, sizeof h);
    return check(cudaIpcOpenMemHandle(out, h, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
}

void dmi_cu_close(void *p)
{
    forget(cudaIpcCloseMemHandle(p));
}

void *dmi_cu_malloc(int64_t bytes)
{
    void *p = NULL;
    if (dmi_fault(DMI_FAULT_MALLOC) || cudaMalloc(&p, (size_t)bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return p;
}

void dmi_cu_release(void *p)
{
    forget(cudaFree(p));
}

void *dmi_cu_malloc_host(int64_t bytes)
{
    void *p = NULL;
    if (dmi_fault(DMI_FAULT_MALLOC) || cudaHostAlloc(&p, (size_t)bytes, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return p;
}

void dmi_cu_release_host(void *p)
{
    forget(cudaFreeHost(p));
}

dm_status dmi_cu_pin(void *p, int64_t bytes)
{
    return check(cudaHostRegister(p, (size_t)bytes, cudaHostRegisterPortable), "cudaHostRegister");
}

dm_status dmi_cu_pin_to_read(const void *p, int64_t bytes)
{
    int device = 0, read_only = 0, same_address = 0;
    dm_status status = check(cudaGetDevice(&device), "cudaGetDevice");
    if (status == DM_OK) {
        forget(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, device));
        forget(cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, device));
    }
    if (status == DM_OK && !same_address) {
        return dmi_fail(DM_ERR_UNSUPPORTED, "GPU %d does not read memory of the host by its address", device);
    }
    const unsigned flags = cudaHostRegisterMapped | (read_only ? cudaHostRegisterReadOnly : 0);
    return status == DM_OK
               ? check(cudaHostRegister((void *)(uintptr_t)p, (size_t)bytes, flags), "cudaHostRegister")
               : status;
}

void dmi_cu_unpin(void *p)
{
    forget(cudaHostUnregister(p));
}

/* The default stream alone is waited for: all of ours are of the kind that has nothing to do with it. */
dm_status dmi_cu_move(void *dst, const void *src, int64_t bytes)
{
    dm_status status = check(cudaMemcpy(dst, src, (size_t)bytes, cudaMemcpyDefault), "cudaMemcpy");
    return status == DM_OK ? check(cudaStreamSynchronize(NULL), "cudaStreamSynchronize") : status;
}

dm_status dmi_cu_set(void *p, int byte, int64_t bytes)
{
    dm_status status = check(cudaMemset(p, byte, (size_t)bytes), "cudaMemset");
    return status == DM_OK ? check(cudaStreamSynchronize(NULL), "cudaStreamSynchronize") : status;
}

dm_status dmi_cu_zero(void *p, int64_t bytes)
{
    return dmi_cu_set(p, 0, bytes);
}

dm_status dmi_cu_stream_create(dmi_stream *out)
{
    int least = 0, greatest = 0;
    dm_status status = check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    return status != DM_OK ? status
                           : check(cudaStreamCreateWithPriority((cudaStream_t *)out, cudaStreamNonBlocking, greatest),
                                   "cudaStreamCreateWithPriority");
}

void dmi_cu_stream_destroy(dmi_stream s)
{
    if (s) {
        forget(cudaStreamDestroy(s));
    }
}

void dmi_cu_quiesce(int64_t until_ns)
{
    (void)until_ns; /* nothing to do: the driver ends the device's work */
}

dm_status dmi_cu_stream_wait(dmi_stream s)
{
    return check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
}

dm_status dmi_cu_event_create(bool timing, dmi_event *out)
{
    return check(cudaEventCreateWithFlags((cudaEvent_t *)out, timing ? cudaEventDefault : cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
}

dm_status dmi_cu_event_between(dmi_event from, dmi_event to, double *seconds)
{
    float ms = 0;
    dm_status status = check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    *seconds = (double)ms * 1e-3;
    return status;
}

void dmi_cu_event_destroy(dmi_event e)
{
    if (e) {
        forget(cudaEventDestroy(e));
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
    cudaError_t code = cudaEventQuery(e);
    if (code != cudaSuccess && code != cudaErrorNotReady) {
        forget(code);
        lose(code);
    }
    return code != cudaErrorNotReady;
}

const char *dmi_cu_lost(int *device)
{
    const char *why = atomic_load(&lost);
    *device = why ? atomic_load(&lost_device) : -1;
    return why;
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

#if CUDART_VERSION >= 13000
/* Faster than a call each: one copy begins before the one before it ends. */
static bool fetch_together(dmi_stream s, const dmi_cu_piece *piece, int64_t count)
{
    enum { MOST = 256 };
    void *to[MOST];
    const void *from[MOST];
    size_t bytes[MOST], first = 0;
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    for (int64_t done = 0; done < count;) {
        size_t n = 0;
        for (; n < MOST && done < count; n++, done++) {
            to[n] = piece[done].to;
            from[n] = piece[done].from;
            bytes[n] = (size_t)piece[done].bytes;
        }
        if (cudaMemcpyBatchAsync(to, from, bytes, n, &how, &first, 1, s) != cudaSuccess) {
            (void)cudaGetLastError(); /* an older driver */
            return false;
        }
    }
    return true;
}
#else
static bool fetch_together(dmi_stream s, const dmi_cu_piece *piece, int64_t count)
{
    (void)s;
    (void)piece;
    return count == 0;
}
#endif

dm_status dmi_cu_fetch(dmi_stream s, const dmi_cu_piece *piece, int64_t count)
{
    dm_status status = DM_OK;
    if (fetch_together(s, piece, count)) {
        return DM_OK;
    }
    for (int64_t i = 0; status == DM_OK && i < count; i++) {
        status = dmi_cu_copy(s, piece[i].to, piece[i].from, piece[i].bytes);
    }
    return status;
}

/* A function of the driver, which is the same for all threads: found once. */
static dm_status driver_entry(_Atomic(void *) *entry, const char *name, void **f)
{
    *f = atomic_load_explicit(entry, memory_order_relaxed);
    if (!*f) {
        enum cudaDriverEntryPointQueryResult found;
        dm_status status = check(cudaGetDriverEntryPointByVersion(name, f, 12000, cudaEnableDefault, &found),
                                 "cudaGetDriverEntryPointByVersion");
        if (status != DM_OK || found != cudaDriverEntryPointSuccess) {
            return status != DM_OK ? status : dmi_fail(DM_ERR_UNSUPPORTED, "the driver lacks %s", name);
        }
        atomic_store_explicit(entry, *f, memory_order_relaxed);
    }
    return DM_OK;
}

dm_status dmi_cu_wait_value(dmi_stream s, uint32_t *flag, uint32_t value)
{
    typedef CUresult (*wait_function)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    static _Atomic(void *) entry;
    void *f;
    dm_status status = driver_entry(&entry, "cuStreamWaitValue32", &f);
    if (status != DM_OK) {
        return status;
    }
    CUresult code = ((wait_function)f)(s, (CUdeviceptr)(uintptr_t)flag, value, CU_STREAM_WAIT_VALUE_GEQ);
    return code == CUDA_SUCCESS ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "cuStreamWaitValue32: error %d", (int)code);
}

/* Waits and writes as one request. */
static dm_status put_words(dmi_stream s, const dmi_cu_word *word, int count, bool write)
{
    typedef CUresult (*batch_function)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
    static _Atomic(void *) entry;
    CUstreamBatchMemOpParams op[DMI_CU_WORDS];
    void *f;
    dm_status status = driver_entry(&entry, "cuStreamBatchMemOp", &f);
    if (status != DM_OK) {
        return status;
    }
    memset(op, 0, sizeof op);
    for (int i = 0; i < count; i++) {
        CUdeviceptr at = (CUdeviceptr)(uintptr_t)word[i].word;
        if (write) {
            op[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
            op[i].writeValue.address = at;
            op[i].writeValue.value = word[i].value;
            op[i].writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT; /* a barrier before it */
        } else {
            op[i].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
            op[i].waitValue.address = at;
            op[i].waitValue.value = word[i].value;
            op[i].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
        }
    }
    CUresult code = ((batch_function)f)(s, (unsigned)count, op, 0);
    return code == CUDA_SUCCESS ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "cuStreamBatchMemOp: error %d", (int)code);
}

dm_status dmi_cu_wait_words(dmi_stream s, const dmi_cu_word *word, int count)
{
    return count == 1 ? dmi_cu_wait_value(s, word->word, word->value) : put_words(s, word, count, false);
}

dm_status dmi_cu_set_words(dmi_stream s, const dmi_cu_word *word, int count)
{
    return put_words(s, word, count, true);
}

dm_status dmi_cu_capture_begin(dmi_stream s)
{
    return check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

dm_status dmi_cu_capture_end(dmi_stream s, dmi_graph **out)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    dm_status status = check(cudaStreamEndCapture(s, &graph), "cudaStreamEndCapture");
    status = status == DM_OK ? check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate") : status;
    if (graph) {
        forget(cudaGraphDestroy(graph));
    }
    if (status != DM_OK) {
        (void)cudaGetLastError(); /* reported here; clear it, so that no later call finds it */
        return status;
    }
    *out = (dmi_graph *)exec;
    return DM_OK;
}

dm_status dmi_cu_capture_mark(dmi_event e, dmi_stream s)
{
    return dmi_cu_event_record(e, s);
}

dm_status dmi_cu_capture_after(dmi_stream s, dmi_event e)
{
    return dmi_cu_event_after(s, e);
}

dm_status dmi_cu_graph_upload(dmi_graph *graph, dmi_stream s)
{
    return check(cudaGraphUpload((cudaGraphExec_t)graph, s), "cudaGraphUpload");
}

dm_status dmi_cu_graph_launch(dmi_graph *graph, dmi_stream s)
{
    return check(cudaGraphLaunch((cudaGraphExec_t)graph, s), "cudaGraphLaunch");
}

void dmi_cu_graph_destroy(dmi_graph *graph)
{
    if (graph) {
        forget(cudaGraphExecDestroy((cudaGraphExec_t)graph));
    }
}
