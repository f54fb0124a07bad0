/* dmi_acc_add, dmi_acc_store and dmi_fold on CUDA. */
#include "kernels/cuda/product.h"
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
    dmi_cuda_launch_acc_add(job->q, job->acc, &box, dmi_at(job->part, at[PART] * job->bytes),
                            dmi_at_mut(job->sum, at[ACC] * job->bytes));
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
    dmi_cuda_launch_acc_add_runs(job->q, job->acc, &runs, dmi_at(job->part, product->src_at * job->bytes),
                                 dmi_at_mut(job->sum, product->dst_at * job->bytes));
}

void dmi_cuda_acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc)
{
    add_job job = {.q = q, .acc = d->acc, .bytes = dmi_acc_bytes(d->acc), .part = part, .sum = acc};
    dmi_cuda_parts parts = {.context = &job, .box = add_box, .runs = add_runs};
    dmi_cuda_cut(q, &d->geometry, &parts);
}

/* --- acc_store ------------------------------------------------------------------------- */
static void store_begin(const dmi_acc_store *d, double scale, double beta, dmi_cuda_store *p)
{
    bool plain = scale == 1 && beta == 0;
    *p = (dmi_cuda_store){.acc = d->acc,
                          .scale = scale,
                          .beta = beta,
                          .iscale = dmi_f64_to_i64(scale),
                          .ibeta = dmi_f64_to_i64(beta),
                          .plain = plain,
                          .integers = d->acc == DMI_ACC_I64 && (plain || !dmi_dtype_is_float(d->out_dtype)),
                          .out_dtype = d->out_dtype};
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

void dmi_cuda_acc_store_box(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                            void *out)
{
    store_job job = {.q = q, .acc = acc, .out = out};
    dmi_box box;
    int64_t at[DMI_BOX_SIDES] = {0, d->out_offset};
    store_begin(d, scale, beta, &job.p);
    if (dmi_box_of_store(d, &box)) {
        dmi_cuda_split(&box, at, false, store_part, &job);
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

void dmi_cuda_fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own,
                   double beta, void *out)
{
    fold_job job = {.q = q,
                    .p = {.addends = d->addends, .own = d->own, .pitch = d->pitch, .dtype = d->dtype},
                    .rows = rows,
                    .own = own,
                    .out = out};
    dmi_box box;
    int64_t at[DMI_BOX_SIDES] = {0, d->store.out_offset, d->own_offset};
    int64_t bytes = dmi_dtype_bytes(d->dtype), group = DMI_CUDA_FOLD_GROUP(bytes);
    assert(d->store.acc == dmi_acc_of(d->dtype));
    store_begin(&d->store, scale, beta, &job.p.store);
    if (!dmi_box_of_fold(d, &box)) {
        return;
    }
    int64_t n = box.extent[box.ndim - 1];
    bool fits = d->pitch % group == 0 && dmi_cuda_grouped(&box, ROWS, rows, 0, bytes, group) &&
                dmi_cuda_grouped(&box, OUT, out, at[OUT], dmi_dtype_bytes(d->store.out_dtype), group) &&
                (d->own < 0 || dmi_cuda_grouped(&box, OWN, own, at[OWN], bytes, group));
    int64_t body = fits ? n / group * group : 0;
    fold_columns(&job, &box, at, 0, body, group);
    fold_columns(&job, &box, at, body, n - body, 1);
}
