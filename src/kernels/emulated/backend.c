/* The kernels of the emulated backend: the CPU's, called when the stream gets there. Descriptors are taken at
 * the call; what the pointers point to is read when the kernel runs, tables of runs in device memory included.
 */
#include "device/emulated/emulated.h"
#include "kernels/cuda/cuda.h"
#include "kernels/direct.h"
#include "kernels/gemm/gemm_emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel on a stream: the call, with copies of the data that may be freed before it runs. */
typedef struct kernel_op {
    dmi_emu_op op;
    int kernel;
    dmi_kernel_call call;
    char kept[]; /* the descriptor, the numbers, and the runs of a copy that are not in device memory */
} kernel_op;

/* --- what every call does ------------------------------------------------------------------------ */
static void failed(dmi_queue *q, const char *kernel, const char *why)
{
    if (q->error == 0) {
        q->error = 1;
        snprintf(q->error_text, sizeof q->error_text, "%s: %s", kernel, why);
    }
}

/* A GPU cannot read pageable memory of the host. */
static bool check_memory(dmi_queue *q, const char *kernel, const void *p)
{
    if (q->error == 0 && p && dmi_emu_find(p).kind == DMI_EMU_PAGEABLE) {
        failed(q, kernel, "an address that is not of a device");
    }
    return q->error == 0;
}

static bool begin(dmi_queue *q, const char *kernel)
{
    if (q->error == 0 && dmi_cu_use(q->device) != DM_OK) {
        failed(q, kernel, dmi_error_text());
    }
    return q->error == 0;
}

static bool check_call(dmi_queue *q, const char *kernel, const dmi_kernel_call *call)
{
    bool ok = begin(q, kernel);
    for (int i = 0; i < DMI_MAX_REFS; i++) {
        ok = ok && check_memory(q, kernel, call->at[i]);
    }
    return ok;
}

/* Does a copy write where there is no memory of a device? CUDA's error 700. */
static bool is_illegal(const kernel_op *k)
{
    const dmi_copy *d = k->call.desc;
    if (k->kernel != DMI_KERNEL_copy || d->count == 0 || d->dst_offset == 0) {
        return false;
    }
    const char *first = (const char *)k->call.at[1] + d->dst_offset * dmi_dtype_bytes(d->dst_dtype);
    return dmi_emu_find(first).kind == DMI_EMU_PAGEABLE;
}

static void run_kernel(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    if (is_illegal(k)) {
        dmi_emu_lose(dmi_emu_device_of(s), "an illegal memory access was encountered");
    } else {
        (void)!dmi_kernels[k->kernel].cpu(&k->call);
    }
    dmi_emu_kernel_time(s);
}

static int64_t room(size_t bytes)
{
    return (int64_t)(bytes + 15) / 16 * 16;
}

static bool from_device(const dmi_queue *q, const dmi_copy *d, int dim)
{
    return d->nrun[dim] > 1 && q->device_run && q->device_run[dim];
}

/* Runs in device memory are read when the kernel runs, others are taken now. */
static int64_t count_runs(dmi_queue *q, const char *kernel, const dmi_copy *d)
{
    int64_t runs = 0;
    for (int dim = 0; dim < d->ndim; dim++) {
        bool on_device = from_device(q, d, dim);
        runs += on_device ? 0 : d->nrun[dim];
        if (on_device && !check_memory(q, kernel, q->device_run[dim])) {
            return -1;
        }
    }
    return runs;
}

static void keep_runs(const dmi_queue *q, dmi_copy *d, dmi_run *to)
{
    for (int dim = 0; dim < d->ndim; dim++) {
        if (from_device(q, d, dim)) {
            d->run[dim] = q->device_run[dim];
            continue;
        }
        for (int64_t r = 0; r < d->nrun[dim]; r++) {
            to[r] = d->run[dim][r];
        }
        d->run[dim] = to;
        to += d->nrun[dim];
    }
}

static void put(int kernel, const dmi_kernel_call *call)
{
    const dmi_kernel *row = &dmi_kernels[kernel];
    dmi_queue *q = call->queue;
    bool copies = row->traits & DMI_TRAIT_RUNS;
    if (!check_call(q, row->name, call)) {
        return;
    }
    int64_t runs = copies ? count_runs(q, row->name, call->desc) : 0;
    int64_t desc = room(row->desc_bytes), numbers = room((size_t)call->numbers * sizeof *call->number);
    kernel_op *k =
        runs < 0 ? NULL : malloc(sizeof *k + (size_t)(desc + numbers) + (size_t)runs * sizeof(dmi_run));
    if (!k) {
        failed(q, row->name, "no memory");
        return;
    }
    k->op = (dmi_emu_op){.run = run_kernel};
    k->kernel = kernel;
    k->call = *call;
    k->call.queue = NULL;
    k->call.desc = memcpy(k->kept, call->desc, row->desc_bytes);
    if (call->numbers > 0) {
        k->call.number = memcpy(k->kept + desc, call->number, (size_t)call->numbers * sizeof *call->number);
    }
    if (copies) {
        keep_runs(q, (dmi_copy *)(void *)k->kept, (dmi_run *)(void *)(k->kept + desc + numbers));
    }
    dmi_emu_put(q->stream, &k->op);
}

static void gemm(const dmi_kernel_call *call, const dmi_gemm *d)
{
    if (check_call(call->queue, "gemm", call) &&
        !dmi_emu_gemm(call->queue->stream, d, call->scalar[0], call->at[0], call->at[1], call->scalar[1],
                      call->at[2], call->workspace)) {
        failed(call->queue, "gemm", "no memory");
    }
}

/* Copies the worker's shard into the gathered operand. */
static void complete(dmi_queue *q, const dmi_fused_gemm *d, int which, const void *own, const void *gathered)
{
    const dmi_gemm *g = &d->gemm;
    int64_t own_k = d->own_k1 - d->own_k0, other = which == 0 ? g->m : g->n;
    int64_t ld = which == 0 ? g->lda : g->ldb, offset = which == 0 ? g->a_offset : g->b_offset;
    bool by_rows = which == 0 ? !g->trans_a : g->trans_b; /* k runs along its rows */
    dmi_run run[2] = {{.len = by_rows ? other : own_k}, {.len = by_rows ? own_k : other}};
    dmi_copy part = {.ndim = 2,
                     .src_dtype = g->dtype,
                     .dst_dtype = g->dtype,
                     .nrun = {1, 1},
                     .run = {&run[0], &run[1]},
                     .src_stride = {d->ld_own[which], 1},
                     .dst_stride = {ld, 1},
                     .src_offset = d->own_offset[which],
                     .dst_offset = offset + d->own_k0 * (by_rows ? 1 : ld),
                     .count = own_k * other};
    q->device_run = NULL;
    dmi_run_copy(dmi_backend_cuda(), q, &part, own, dmi_unconst(gathered));
}

/* Waits for all chunks, completes the gathered operands, multiplies. */
static void fused(const dmi_kernel_call *call)
{
    dmi_queue *q = call->queue;
    const dmi_fused_gemm *d = call->desc;
    const dmi_arrival *arrival = call->arrival;
    if (d->gemm.m > DMI_FUSED_MOST_M || d->gemm.k > DMI_FUSED_MOST_K || d->gemm.n > DMI_FUSED_MOST_N) {
        failed(q, "fused", "a plan has made one that the kernel does not do");
        return;
    }
    for (int i = 0; i < d->chunks && arrival; i++) {
        if (arrival[i].counter && begin(q, "fused") &&
            dmi_cu_wait_value(q->stream, (uint32_t *)(uintptr_t)arrival[i].counter, arrival[i].value) !=
                DM_OK) {
            failed(q, "fused", dmi_error_text());
        }
    }
    for (int o = 0; o < 2; o++) {
        if (d->own_k1 > d->own_k0 && d->ld_own[o] > 0) {
            complete(q, d, o, call->at[o == 0 ? 4 : 3], call->at[o]);
        }
    }
    dmi_kernel_call product = *call;
    product.at[3] = product.at[4] = NULL;
    gemm(&product, &d->gemm);
}

static dm_status run(int kernel, const dmi_kernel_call *call)
{
    if (kernel == DMI_KERNEL_gemm) {
        gemm(call, call->desc);
    } else if (dmi_kernels[kernel].traits & DMI_TRAIT_WAITS) {
        fused(call);
    } else {
        put(kernel, call);
    }
    return DM_OK;
}

static const dmi_backend emulated = {"emulated", run};

bool dmi_cuda_fused_take(dmi_queue *q) /* kernels are threads: any number of them may wait */
{
    (void)q;
    return true;
}

/* The name that the executor calls, whichever of the two backends is built. */
const dmi_backend *dmi_backend_cuda(void)
{
    return &emulated;
}
