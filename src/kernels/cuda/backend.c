/* The vtable of the CUDA backend: every call is made on the queue's device, and none after an error. */
#include "kernels/cpu/convert.h"
#include "kernels/cuda/fused.h"
#include "kernels/cuda/launch.h"
#include <cuda_runtime_api.h>
#include <stdatomic.h>

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

static void fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own, double beta,
                 void *out)
{
    if (begin(q)) {
        dmi_cuda_fold(q, d, scale, rows, own, beta, out);
    }
}

void dmi_cuda_push(dmi_queue *q, const dmi_push *p)
{
    if (begin(q)) {
        dmi_cuda_push_rows(q, p);
    }
}

/* Multiprocessors that a waiting kernel leaves to others, so that whatever was put on streams before it can
 * end. */
enum { LEFT_FREE = 4 };

static void fused(dmi_queue *q, const dmi_fused_gemm *d, const dmi_arrival *arrival, double alpha,
                  const void *a, const void *b, const void *const own[2], double beta, void *c)
{
    const dmi_gemm *g = &d->gemm;
    dmi_fused_piece piece[DMI_FUSED_MOST];
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
                   .piece = piece,
                   .pieces = d->parts,
                   .own_k0 = d->own_k0,
                   .own_k1 = d->own_k1,
                   .own_n1 = g->n,
                   .ld_own = {d->ld_own[0], d->ld_own[1]},
                   .blocks = q->multiprocessors - LEFT_FREE};
    for (int i = 0; i < d->parts; i++) {
        piece[i] = (dmi_fused_piece){.k0 = d->part[i].k0,
                                     .k1 = d->part[i].k1,
                                     .n0 = d->part[i].n0,
                                     .n1 = d->part[i].n1,
                                     .counter = arrival ? arrival[i].counter : NULL,
                                     .value = arrival ? arrival[i].value : 0};
    }
    a = dmi_at(a, g->a_offset * elem);
    b = dmi_at(b, g->b_offset * elem);
    bool some = d->own_k1 > d->own_k0;
    const void *from[2] = {some && d->ld_own[0] > 0 ? dmi_at(own[0], d->own_offset[0] * elem) : NULL,
                           some ? dmi_at(own[1], d->own_offset[1] * elem) : NULL};
    c = dmi_at_mut(c, g->c_offset * dmi_dtype_bytes(c_dtype));
    if (!begin(q)) {
        return;
    }
    if (!dmi_cuda_fused_serves(q, &f, a, b, from, c)) {
        dmi_cuda_failed(q, "fused product", -1, "a plan has made one that the kernel does not do");
        return;
    }
    dmi_cuda_launch_fused(q, &f, alpha, a, b, from, beta, c);
}

/* Of a device beyond these nobody has them. */
static atomic_bool taken[256];

bool dmi_cuda_fused_take(dmi_queue *q)
{
    dmi_fused f = {
        .dtype = DM_BF16, .c_dtype = DM_BF16, .m = 256, .n = 256, .k = 256, .lda = 256, .ldb = 256, .ldc = 256};
    const void *aligned = (const void *)(uintptr_t)4096, *none[2] = {NULL, NULL}; /* not read */
    q->fused = dmi_cuda_fused_serves(q, &f, aligned, aligned, none, aligned) &&
               q->device < (int)(sizeof taken / sizeof *taken) && !atomic_exchange(&taken[q->device], true);
    return q->fused;
}

void dmi_cuda_fused_give(dmi_queue *q)
{
    if (q->fused) {
        atomic_store(&taken[q->device], false);
    }
    q->fused = false;
}

static const dmi_backend cuda = {"cuda", copy, gemm, ewise, fill, reduce, acc_add, acc_store, fold, fused};

const dmi_backend *dmi_backend_cuda(void)
{
    return &cuda;
}
