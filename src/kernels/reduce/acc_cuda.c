/* dmi_acc_add, dmi_acc_store and dmi_fold on CUDA. */
#include "kernels/box/product_cuda.h"
#include <assert.h>

enum { PART = 0, ROWS = 0, ACC = 1, OUT = 1, OWN = 2 };

/* --- acc_add --------------------------------------------------------------------------- */
typedef struct add_job {
    dmi_queue *q;
    int acc;
    int64_t bytes;
    const void *part;
    void *sum;
} add_job;

static void add_part(void *context, const dmi_box *part, const int64_t *at)
{
    const add_job *job = context;
    dmi_cuda_box box;
    dmi_cuda_box_make(part, &box);
    (job->acc < DMI_ACC_SUMS ? dmi_cuda_launch_acc_add : dmi_cuda_launch_rows_combine)(
        job->q, job->acc, &box, dmi_at(job->part, at[PART] * job->bytes), dmi_at_mut(job->sum, at[ACC] * job->bytes));
}

static void add_box(void *context, dmi_box *box, const int64_t *at)
{
    dmi_box_simplify(box, ACC);
    dmi_cuda_split(box, at, false, add_part, context);
}

static void add_runs(void *context, const dmi_cuda_product *product)
{
    const add_job *job = context;
    dmi_cuda_runs runs;
    dmi_cuda_product_make(product, 1, &runs);
    (job->acc < DMI_ACC_SUMS ? dmi_cuda_launch_acc_add_runs : dmi_cuda_launch_rows_combine_runs)(
        job->q, job->acc, &runs, dmi_at(job->part, product->src_at * job->bytes),
        dmi_at_mut(job->sum, product->dst_at * job->bytes));
}

void dmi_cuda_acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc)
{
    add_job job = {.q = q, .acc = d->acc, .bytes = dmi_acc_bytes(d->acc), .part = part, .sum = acc};
    dmi_cuda_parts parts = {.context = &job, .box = add_box, .runs = add_runs};
    dmi_cuda_cut(q, &d->geometry, &parts);
}

/* --- acc_store ------------------------------------------------------------------------- */
/* Of real numbers: complex accumulators and results are taken part by part. */
static void store_begin(const dmi_acc_store *d, double scale, double beta, dmi_cuda_store *p)
{
    bool plain = scale == 1 && beta == 0;
    dm_dtype out = dmi_dtype_part(d->out_dtype);
    *p = (dmi_cuda_store){.acc = dmi_acc_part(d->acc),
                          .scale = scale,
                          .beta = beta,
                          .iscale = dmi_f64_to_i64(scale),
                          .ibeta = dmi_f64_to_i64(beta),
                          .plain = plain,
                          .divides = d->divides,
                          .integers = dmi_acc_whole(d->acc) && (plain || !dmi_dtype_is_float(out)),
                          .out_dtype = out};
}

static int parts_of(dm_dtype dtype)
{
    return dmi_dtype_is_complex(dtype) ? 2 : 1;
}

/* The side as one of its parts. */
static void widen(dmi_box *box, int side, int parts)
{
    for (int d = 0; d < box->ndim; d++) {
        box->stride[side][d] *= parts;
    }
}

typedef struct store_job {
    dmi_queue *q;
    dmi_cuda_store p;
    const void *acc;
    void *out;
} store_job;

static void store_part(void *context, const dmi_box *part, const int64_t *at)
{
    store_job *job = context;
    dmi_cuda_box_make(part, &job->p.box);
    dmi_cuda_launch_acc_store(job->q, &job->p, dmi_at(job->acc, at[PART] * dmi_acc_bytes(job->p.acc)),
                              dmi_at_mut(job->out, at[OUT] * dmi_dtype_bytes(job->p.out_dtype)));
}

/* A part of out that the sums have not. */
static void store_zero(dmi_queue *q, dmi_cuda_store p, const dmi_box *box, int64_t at, void *out)
{
    store_job job = {.q = q, .p = p, .out = out};
    dmi_box only = {.ndim = box->ndim, .sides = 2};
    int64_t begin[DMI_BOX_SIDES] = {0, at};
    memcpy(only.extent, box->extent, sizeof only.extent);
    memcpy(only.stride[OUT], box->stride[OUT], sizeof only.stride[OUT]);
    job.p.zero = true;
    job.p.integers = false;
    dmi_cuda_split(&only, begin, false, store_part, &job);
}

/* Results of a row other than the sum. */
static void finish_part(void *context, const dmi_box *part, const int64_t *at)
{
    const store_job *job = context;
    dmi_cuda_box box;
    dmi_cuda_box_make(part, &box);
    dmi_cuda_launch_rows_finish(
        job->q, job->p.acc, job->p.scale, &box, dmi_at(job->acc, at[PART] * dmi_acc_bytes(job->p.acc)),
        job->p.beta != 0, job->p.out_dtype, dmi_at_mut(job->out, at[OUT] * dmi_dtype_bytes(job->p.out_dtype)));
}

static void finish_row(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                       void *out)
{
    store_job job = {.q = q,
                     .p = {.acc = d->acc, .scale = scale, .beta = beta, .out_dtype = d->out_dtype},
                     .acc = acc,
                     .out = out};
    int64_t at[DMI_BOX_SIDES] = {0, d->out_offset};
    dmi_box box;
    if (dmi_box_of_store(d, &box)) {
        dmi_cuda_split(&box, at, false, finish_part, &job);
    }
}

void dmi_cuda_acc_store_box(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                            void *out)
{
    store_job job = {.q = q, .acc = acc, .out = out};
    int sums = dmi_acc_parts(d->acc), parts = parts_of(d->out_dtype);
    dmi_box box;
    if (d->acc >= DMI_ACC_SUMS) {
        finish_row(q, d, scale, acc, beta, out);
        return;
    }
    store_begin(d, scale, beta, &job.p);
    if (!dmi_box_of_store(d, &box)) {
        return;
    }
    widen(&box, PART, sums);
    widen(&box, OUT, parts);
    for (int k = 0; k < parts; k++) {
        int64_t at[DMI_BOX_SIDES] = {k, d->out_offset * parts + k};
        if (k < sums) {
            dmi_cuda_split(&box, at, false, store_part, &job);
        } else {
            store_zero(q, job.p, &box, at[OUT], out);
        }
    }
}

/* --- fold ------------------------------------------------------------------------------ */
typedef struct fold_job {
    dmi_queue *q;
    dmi_cuda_fold_rows p;
    bool groups;
    const void *rows, *own;
    void *out;
} fold_job;

static void fold_part(void *context, const dmi_box *part, const int64_t *at)
{
    fold_job *job = context;
    int64_t bytes = dmi_dtype_bytes(job->p.dtype);
    const void *own = job->p.own >= 0 ? dmi_at(job->own, at[OWN] * bytes) : NULL;
    dmi_cuda_box_make(part, &job->p.store.box);
    dmi_cuda_launch_fold(job->q, &job->p, job->groups, dmi_at(job->rows, at[ROWS] * bytes), own,
                         dmi_at_mut(job->out, at[OUT] * dmi_dtype_bytes(job->p.store.out_dtype)));
}

/* The first `from` elements of all of the box's rows left out, and `count` taken, in items of `group`. */
static void fold_columns(fold_job *job, const dmi_box *box, const int64_t *at, int64_t from, int64_t count,
                         int64_t group)
{
    dmi_box part = *box;
    int64_t begin[DMI_BOX_SIDES];
    int inner = box->ndim - 1;
    part.extent[inner] = count / group;
    for (int s = 0; s < box->sides; s++) {
        begin[s] = at[s] + from * box->stride[s][inner];
        part.stride[s][inner] *= group;
    }
    job->groups = group > 1;
    if (count > 0) {
        dmi_cuda_split(&part, begin, false, fold_part, job);
    }
}

/* Part k of the addends to part k of the results. */
static void fold_part_of(fold_job *job, const dmi_fold *d, const dmi_box *box, int k)
{
    int sums = parts_of(d->dtype), parts = parts_of(d->store.out_dtype);
    int64_t at[DMI_BOX_SIDES] = {k, d->store.out_offset * parts + k, d->own_offset * sums + k};
    dm_dtype type = job->p.dtype, out_type = job->p.store.out_dtype;
    int64_t bytes = dmi_dtype_bytes(type), group = DMI_CUDA_FOLD_GROUP(bytes), n = box->extent[box->ndim - 1];
    if (k >= sums) {
        store_zero(job->q, job->p.store, box, at[OUT], job->out);
        return;
    }
    bool fits = dmi_cuda_hot(type) && dmi_cuda_hot(out_type) && d->pitch % group == 0 &&
                dmi_cuda_grouped(box, ROWS, job->rows, at[ROWS], bytes, group) &&
                dmi_cuda_grouped(box, OUT, job->out, at[OUT], dmi_dtype_bytes(out_type), group) &&
                (d->own < 0 || dmi_cuda_grouped(box, OWN, job->own, at[OWN], bytes, group));
    int64_t body = fits ? n / group * group : 0;
    fold_columns(job, box, at, 0, body, group);
    fold_columns(job, box, at, body, n - body, 1);
}

void dmi_cuda_fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own,
                   double beta, void *out)
{
    int sums = parts_of(d->dtype), parts = parts_of(d->store.out_dtype);
    fold_job job = {.q = q,
                    .p = {.addends = d->addends, .own = d->own, .dtype = dmi_dtype_part(d->dtype)},
                    .rows = rows,
                    .own = own,
                    .out = out};
    dmi_box box;
    assert(d->store.acc == dmi_acc_of(d->dtype));
    job.p.pitch = d->pitch * sums;
    store_begin(&d->store, scale, beta, &job.p.store);
    if (!dmi_box_of_fold(d, &box)) {
        return;
    }
    widen(&box, ROWS, sums);
    widen(&box, OUT, parts);
    widen(&box, OWN, sums);
    for (int k = 0; k < parts; k++) {
        fold_part_of(&job, d, &box, k);
    }
}
