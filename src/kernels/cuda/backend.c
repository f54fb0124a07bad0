/* The kernels of GPUs as the table has them: every call is made on the queue's device, and none after an error. */
#include "kernels/box/convert.h"
#include "kernels/cuda/exchange.h"
#include "kernels/cuda/launch.h"
#include "kernels/gemm/fused_cuda.h"
#include "kernels/reduce/reduce_compiled.h"
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

dm_status dmi_copy_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_copy(call->queue, call->desc, call->at[0], call->at[1]);
    return DM_OK;
}

dm_status dmi_gemm_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_gemm(call->queue, call->desc, call->scalar[0], call->at[0], call->at[1], call->scalar[1],
                  call->at[2], call->workspace);
    return DM_OK;
}

dm_status dmi_fill_cuda(const dmi_kernel_call *call)
{
    dmi_fill_values values = dmi_fill_values_of(call);
    dmi_cuda_fill_region(call->queue, call->desc, &values, call->at[0]);
    return DM_OK;
}

dm_status dmi_reduce_cuda(const dmi_kernel_call *call)
{
    const dmi_reduce *d = call->desc;
    if (d->map) {
        dmi_cuda_reduce_program(call, d);
    } else {
        dmi_cuda_reduce_box(call->queue, d, call->at[0], call->at[1]);
    }
    return DM_OK;
}

dm_status dmi_acc_add_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_acc_add(call->queue, call->desc, call->at[0], call->at[1]);
    return DM_OK;
}

dm_status dmi_acc_store_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_acc_store_box(call->queue, call->desc, call->scalar[0], call->at[0], call->scalar[1], call->at[1]);
    return DM_OK;
}

dm_status dmi_fold_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_fold(call->queue, call->desc, call->scalar[0], call->at[0], call->at[2], call->scalar[1], call->at[1]);
    return DM_OK;
}

void dmi_cuda_push(dmi_queue *q, const dmi_push *p)
{
    if (begin(q)) {
        dmi_cuda_push_rows(q, p);
    }
}

void dmi_cuda_exchange(dmi_queue *q, const dmi_exchange_call *call)
{
    if (begin(q)) {
        dmi_cuda_launch_exchange(q, call);
    }
}

/* Multiprocessors that a fused product leaves free, so that work issued before it can finish. */
enum { LEFT_FREE = 4 };

dm_status dmi_fused_cuda(const dmi_kernel_call *call)
{
    dmi_queue *q = call->queue;
    const dmi_fused_gemm *d = call->desc;
    const dmi_arrival *arrival = call->arrival;
    const dmi_gemm *g = &d->gemm;
    dmi_fused_arrival chunk[DMI_FUSED_MOST];
    int64_t elem = dmi_dtype_bytes(g->dtype);
    dm_dtype c_dtype = g->c_dtype == 0 ? g->dtype : g->c_dtype;
    dmi_fused f = {.dtype = g->dtype,
                   .c_dtype = c_dtype,
                   .trans_a = g->trans_a,
                   .trans_b = g->trans_b,
                   .m = g->m,
                   .n = g->n,
                   .k = g->k,
                   .lda = g->lda,
                   .ldb = g->ldb,
                   .ldc = g->ldc,
                   .chunk = chunk,
                   .chunks = d->chunks,
                   .own_k0 = d->own_k0,
                   .own_k1 = d->own_k1,
                   .own_n1 = g->n,
                   .ld_own = {d->ld_own[0], d->ld_own[1]},
                   .blocks = q->multiprocessors - LEFT_FREE};
    for (int i = 0; i < d->chunks; i++) {
        chunk[i] = (dmi_fused_arrival){.k0 = d->chunk[i].k0,
                                       .k1 = d->chunk[i].k1,
                                       .n0 = d->chunk[i].n0,
                                       .n1 = d->chunk[i].n1,
                                       .counter = arrival ? arrival[i].counter : NULL,
                                       .value = arrival ? arrival[i].value : 0};
    }
    const void *a = dmi_at(call->at[0], g->a_offset * elem), *b = dmi_at(call->at[1], g->b_offset * elem);
    bool some = d->own_k1 > d->own_k0;
    const void *from[2] = {some && d->ld_own[0] > 0 ? dmi_at(call->at[4], d->own_offset[0] * elem) : NULL,
                           some ? dmi_at(call->at[3], d->own_offset[1] * elem) : NULL};
    void *c = dmi_at_mut(call->at[2], g->c_offset * dmi_dtype_bytes(c_dtype));
    if (!dmi_cuda_fused_serves(q, &f, a, b, from, c)) {
        dmi_cuda_failed(q, "fused product", -1, "a plan has made one that the kernel does not do");
        return DM_OK;
    }
    dmi_cuda_launch_fused(q, &f, call->scalar[0], a, b, from, call->scalar[1], c);
    return DM_OK;
}

bool dmi_cuda_fused_take(dmi_queue *q)
{
    dmi_fused f = {
        .dtype = DM_BF16, .c_dtype = DM_BF16, .m = 256, .n = 256, .k = 256, .lda = 256, .ldb = 256, .ldc = 256};
    const void *aligned = (const void *)(uintptr_t)4096, *none[2] = {NULL, NULL}; /* not read */
    return dmi_cuda_fused_serves(q, &f, aligned, aligned, none, aligned) && dmi_cuda_queue_claim(q);
}

static dm_status run(int kernel, const dmi_kernel_call *call)
{
    return begin(call->queue) ? dmi_kernels[kernel].cuda(call) : DM_OK;
}

static const dmi_backend cuda = {"cuda", run};

const dmi_backend *dmi_backend_cuda(void)
{
    return &cuda;
}
