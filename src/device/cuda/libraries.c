/* The libraries that kernels call: one row each. A queue's handles are made at the start of a session, for
 * making one allocates and takes milliseconds. */
#include "base/base.h"
#include "device/queue.h"
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#ifdef DMATH_WITH_CUDNN
#include "device/cuda/cudnn.h"
#include <cudnn.h>
#include <stdlib.h>
#endif

static bool make_cublas(dmi_queue *q, void **out)
{
    cublasHandle_t blas = NULL;
    cublasStatus_t s = cublasCreate(&blas);
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasSetStream(blas, q->stream);
    }
    if (s == CUBLAS_STATUS_SUCCESS) { /* after the stream, which sets it back */
        s = cublasSetWorkspace(blas, q->workspace, (size_t)q->workspace_bytes);
    }
    if (s == CUBLAS_STATUS_SUCCESS) { /* sums in parts are added in f32, whatever the elements are */
        s = cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    }
    if (s == CUBLAS_STATUS_SUCCESS) {
        *out = blas;
        return true;
    }
    if (blas != NULL) {
        cublasDestroy(blas);
    }
    dmi_cuda_failed(q, "cuBLAS", -1 - (int)s, cublasGetStatusString(s));
    return false;
}

static void end_cublas(void *handle)
{
    cublasDestroy(handle);
}

#ifdef DMATH_WITH_CUDNN
static void end_cudnn(void *library)
{
    dmi_cudnn *dnn = library;
    if (dnn->free != NULL) {
        dnn->free(dnn->kept);
    }
    if (dnn->handle != NULL) {
        cudnnDestroy(dnn->handle);
    }
    free(dnn);
}

static bool make_cudnn(dmi_queue *q, void **out)
{
    dmi_cudnn *dnn = calloc(1, sizeof *dnn);
    cudnnHandle_t handle = NULL;
    if (dnn == NULL) {
        dmi_cuda_failed(q, "cuDNN", -1, "no memory for its handle");
        return false;
    }
    cudnnStatus_t s = cudnnCreate(&handle);
    dnn->handle = handle;
    if (s == CUDNN_STATUS_SUCCESS) {
        s = cudnnSetStream(handle, q->stream);
    }
    if (s == CUDNN_STATUS_SUCCESS) {
        *out = dnn;
        return true;
    }
    end_cudnn(dnn);
    dmi_cuda_failed(q, "cuDNN", -1 - (int)s, cudnnGetErrorString(s));
    return false;
}
#endif

static const struct {
    const char *name;
    bool (*make)(dmi_queue *q, void **out);
    void (*end)(void *handle);
} libraries[DMI_LIBRARIES] = {
    [DMI_LIBRARY_CUBLAS] = {"cuBLAS", make_cublas, end_cublas},
#ifdef DMATH_WITH_CUDNN
    [DMI_LIBRARY_CUDNN] = {"cuDNN", make_cudnn, end_cudnn},
#endif
};

bool dmi_cuda_queue_libraries(dmi_queue *q)
{
    for (int i = 0; i < DMI_LIBRARIES; i++) {
        int64_t begin = dmi_now_ns();
        if (q->library[i] == NULL && libraries[i].make != NULL && !libraries[i].make(q, &q->library[i])) {
            return false;
        }
        if (libraries[i].name != NULL) {
            dmi_log(DMI_LOG_DEBUG, "%s: its handle took %.1f ms", libraries[i].name,
                    (double)(dmi_now_ns() - begin) * 1e-6);
        }
    }
    return true;
}

void dmi_cuda_queue_end_libraries(dmi_queue *q)
{
    for (int i = 0; i < DMI_LIBRARIES; i++) {
        if (q->library[i] != NULL) {
            libraries[i].end(q->library[i]);
        }
    }
}
