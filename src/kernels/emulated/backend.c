/* The kernels of the emulated backend: the CPU's, called when the stream gets there. Descriptors are taken at
 * the call; what the pointers point to is read when the kernel runs, tables of runs in device memory included.
 */
#include "kernels/cpu/convert.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulated/emulated.h"
#include "kernels/emulated/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel_op {
    dmi_emu_op op;
    union {
        dmi_copy copy;
        dmi_ewise ewise;
        dmi_fill fill;
        dmi_reduce reduce;
        dmi_acc_add acc_add;
        dmi_acc_store acc_store;
        dmi_fold fold;
    } d;
    dmi_fill_values values;
    double alpha, beta;
    const void *a, *b;
    void *out;
    dmi_run run[]; /* of copies: tables that are not in device memory */
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

static kernel_op *make(dmi_queue *q, const char *kernel, const kernel_op *content, int64_t runs)
{
    if (!begin(q, kernel) || !check_memory(q, kernel, content->a) || !check_memory(q, kernel, content->b) ||
        !check_memory(q, kernel, content->out)) {
        return NULL;
    }
    kernel_op *k = malloc(sizeof *k + (size_t)runs * sizeof *k->run);
    if (!k) {
        failed(q, kernel, "no memory");
        return NULL;
    }
    *k = *content;
    return k;
}

static void put(dmi_queue *q, const char *kernel, const kernel_op *content)
{
    kernel_op *k = make(q, kernel, content, 0);
    if (k) {
        dmi_emu_put(q->stream, &k->op);
    }
}

/* --- copies ---------------------------------------------------------------------------------------- */
static bool from_device(const dmi_queue *q, const dmi_copy *d, int dim)
{
    return d->nrun[dim] > 1 && q->device_run && q->device_run[dim];
}

/* d: the copy's place in `content`, whose offset in the operation is the same. */
static void put_copy(dmi_queue *q, const char *kernel, kernel_op *content, dmi_copy *d)
{
    int64_t runs = 0;
    for (int dim = 0; dim < d->ndim; dim++) {
        bool on_device = from_device(q, d, dim);
        runs += on_device ? 0 : d->nrun[dim];
        if (on_device && !check_memory(q, kernel, q->device_run[dim])) {
            return;
        }
    }
    dmi_copy given = *d;
    kernel_op *k = make(q, kernel, content, runs);
    if (!k) {
        return;
    }
    dmi_copy *kept = (dmi_copy *)(void *)((char *)k + ((char *)d - (char *)content));
    dmi_run *to = k->run;
    for (int dim = 0; dim < given.ndim; dim++) {
        if (from_device(q, &given, dim)) {
            kept->run[dim] = q->device_run[dim];
            continue;
        }
        for (int64_t r = 0; r < given.nrun[dim]; r++) {
            to[r] = given.run[dim][r];
        }
        kept->run[dim] = to;
        to += given.nrun[dim];
    }
    dmi_emu_put(q->stream, &k->op);
}

static void run_copy(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->copy(NULL, &k->d.copy, k->a, k->out);
}

static void copy(dmi_queue *q, const dmi_copy *d, const void *src, void *dst)
{
    kernel_op k = {.op.run = run_copy, .d.copy = *d, .a = src, .out = dst};
    put_copy(q, "copy", &k, &k.d.copy);
}

static void run_acc_add(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->acc_add(NULL, &k->d.acc_add, k->a, k->out);
}

static void acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc)
{
    kernel_op k = {.op.run = run_acc_add, .d.acc_add = *d, .a = part, .out = acc};
    put_copy(q, "acc_add", &k, &k.d.acc_add.geometry);
}

/* --- all others ------------------------------------------------------------------------------------ */
static void gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                 void *c)
{
    if (begin(q, "gemm") && check_memory(q, "gemm", a) && check_memory(q, "gemm", b) &&
        check_memory(q, "gemm", c) && !dmi_emu_gemm(q->stream, d, alpha, a, b, beta, c)) {
        failed(q, "gemm", "no memory");
    }
}

static void run_ewise(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->ewise(NULL, &k->d.ewise, k->alpha, k->a, k->beta, k->b, k->out);
}

static void ewise(dmi_queue *q, const dmi_ewise *d, double alpha, const void *a, double beta, const void *b,
                  void *out)
{
    kernel_op k = {
        .op.run = run_ewise, .d.ewise = *d, .alpha = alpha, .beta = beta, .a = a, .b = b, .out = out};
    put(q, "ewise", &k);
}

static void run_fill(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->fill(NULL, &k->d.fill, &k->values, k->out);
}

static void fill(dmi_queue *q, const dmi_fill *d, const dmi_fill_values *v, void *out)
{
    kernel_op k = {.op.run = run_fill, .d.fill = *d, .values = *v, .out = out};
    put(q, "fill", &k);
}

static void run_reduce(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->reduce(NULL, &k->d.reduce, k->a, k->out);
}

static void reduce(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc)
{
    kernel_op k = {.op.run = run_reduce, .d.reduce = *d, .a = in, .out = acc};
    put(q, "reduce", &k);
}

static void run_acc_store(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->acc_store(NULL, &k->d.acc_store, k->alpha, k->a, k->beta, k->out);
}

static void acc_store(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                      void *out)
{
    kernel_op k = {
        .op.run = run_acc_store, .d.acc_store = *d, .alpha = scale, .beta = beta, .a = acc, .out = out};
    put(q, "acc_store", &k);
}

static void run_fold(dmi_emu_stream *s, dmi_emu_op *op)
{
    const kernel_op *k = (const kernel_op *)op;
    (void)s;
    dmi_backend_cpu()->fold(NULL, &k->d.fold, k->alpha, k->a, k->b, k->beta, k->out);
}

static void fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own, double beta,
                 void *out)
{
    kernel_op k = {
        .op.run = run_fold, .d.fold = *d, .alpha = scale, .beta = beta, .a = rows, .b = own, .out = out};
    put(q, "fold", &k);
}

/* The own part of an operand into its image. */
static void complete(dmi_queue *q, const dmi_fused_gemm *d, int which, const void *own, const void *image)
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
    copy(q, &part, own, (void *)(uintptr_t)image);
}

/* Waits for all parts, completes the images, multiplies. */
static void fused(dmi_queue *q, const dmi_fused_gemm *d, const dmi_arrival *arrival, double alpha,
                  const void *a, const void *b, const void *const own[2], double beta, void *c)
{
    if (d->gemm.m > DMI_FUSED_MOST_M || d->gemm.k > DMI_FUSED_MOST_K || d->gemm.n > DMI_FUSED_MOST_N) {
        failed(q, "fused", "a plan has made one that the kernel does not do");
        return;
    }
    for (int i = 0; i < d->parts && arrival; i++) {
        if (arrival[i].counter && begin(q, "fused") &&
            dmi_cu_wait_value(q->stream, (uint32_t *)(uintptr_t)arrival[i].counter, arrival[i].value) !=
                DM_OK) {
            failed(q, "fused", dmi_error_text());
        }
    }
    const void *image[2] = {a, b};
    for (int o = 0; o < 2; o++) {
        if (d->own_k1 > d->own_k0 && d->ld_own[o] > 0) {
            complete(q, d, o, own[o], image[o]);
        }
    }
    gemm(q, &d->gemm, alpha, a, b, beta, c);
}

static const dmi_backend emulated = {"emulated", copy,    gemm,      ewise, fill,
                                     reduce,     acc_add, acc_store, fold,  fused};

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
