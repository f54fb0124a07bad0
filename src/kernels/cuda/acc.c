/* dmi_acc_add and dmi_acc_store on CUDA. */
#include "kernels/cuda/product.h"
#include <assert.h>

enum { PART = 0, ACC = 1, OUT = 1 };

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
    dmi_box box = {.ndim = d->ndim, .sides = 2};
    int64_t dense = 1, at[DMI_BOX_SIDES] = {0, d->out_offset};
    assert(d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    job.p.acc = d->acc;
    job.p.scale = scale;
    job.p.beta = beta;
    job.p.iscale = dmi_f64_to_i64(scale);
    job.p.ibeta = dmi_f64_to_i64(beta);
    job.p.plain = scale == 1 && beta == 0;
    job.p.integers = d->acc == DMI_ACC_I64 && (job.p.plain || !dmi_dtype_is_float(d->out_dtype));
    job.p.out_dtype = d->out_dtype;
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        if (d->extent[dim] == 0) {
            return;
        }
        box.extent[dim] = d->extent[dim];
        box.stride[PART][dim] = dense;
        box.stride[OUT][dim] = d->out_stride[dim];
        dense *= d->extent[dim];
    }
    dmi_box_simplify(&box, PART);
    dmi_cuda_split(&box, at, false, store_part, &job);
}
