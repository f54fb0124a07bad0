/* The vtable of the CUDA backend: every call is made on the queue's device, and none after an error. */
#include "kernels/cuda/launch.h"
#include <cuda_runtime_api.h>

static bool begin(dmi_queue *q)
{
    if (q->error != 0) {
        return false;
    }
    cudaError_t e = cudaSetDevice(q->device);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaSetDevice", (int)e, cudaGetErrorString(e));
    }
    return e == cudaSuccess;
}

static void copy(dmi_queue *q, const dmi_copy *d, const void *src, void *dst)
{
    if (begin(q)) {
        dmi_cuda_copy(q, d, src, dst);
    }
}

static void gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                 void *c)
{
    if (begin(q)) {
        dmi_cuda_gemm(q, d, alpha, a, b, beta, c);
    }
}

static void ewise(dmi_queue *q, const dmi_ewise *d, double alpha, const void *a, double beta, const void *b,
                  void *out)
{
    if (begin(q)) {
        dmi_cuda_ewise_box(q, d, alpha, a, beta, b, out);
    }
}

static void fill(dmi_queue *q, const dmi_fill *d, const dmi_fill_values *v, void *out)
{
    if (begin(q)) {
        dmi_cuda_fill_region(q, d, v, out);
    }
}

static void reduce(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc)
{
    if (begin(q)) {
        dmi_cuda_sum(q, d, in, acc);
    }
}

static void acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc)
{
    if (begin(q)) {
        dmi_cuda_acc_add(q, d, part, acc);
    }
}

static void acc_store(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                      void *out)
{
    if (begin(q)) {
        dmi_cuda_acc_store_box(q, d, scale, acc, beta, out);
    }
}

static const dmi_backend cuda = {"cuda", copy, gemm, ewise, fill, reduce, acc_add, acc_store};

const dmi_backend *dmi_backend_cuda(void)
{
    return &cuda;
}
