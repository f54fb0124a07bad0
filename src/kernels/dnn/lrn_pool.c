/* Local response normalisation and pooling, one after the other: the CPU's form, and that of what the GPU's
 * kernel for both does not take. */
#include "kernels/box/convert.h"
#include "kernels/dnn/dnn_parts.h"

/* Reference r of a part: what reference `from` of the call has from sample n on, of `elements` a sample. */
static void refer(const dmi_kernel_call *call, dmi_kernel_call *part, dmi_dnn *to, int r, int from, int64_t n,
                  int64_t elements)
{
    const dmi_dnn *d = call->desc;
    to->type[r] = d->type[from];
    to->mode[r] = d->mode[from];
    to->offset[r] = d->offset[from] + n * elements;
    to->count[r] = d->count[from] > 0 ? to->samples * elements : 0;
    part->at[r] = call->at[from];
}

typedef struct parts {
    dmi_lrn lrn;
    dmi_pooling pooling;
    dmi_kernel_call of_lrn, of_pooling;
    int64_t n, in, out; /* the first sample; elements of a sample of x, of y */
} parts;

/* The parts for the samples from n on, without their references. */
static void begin(const dmi_kernel_call *call, parts *p, int64_t n)
{
    const dmi_lrn_pool *d = call->desc;
    *p = (parts){.lrn = d->lrn, .pooling = d->pooling, .of_lrn = *call, .of_pooling = *call, .n = n};
    p->in = d->pooling.in[0] * d->pooling.in[1] * d->pooling.in[2];
    p->out = d->pooling.out[0] * d->pooling.out[1] * d->pooling.in[2];
    p->lrn.dnn = (dmi_dnn){
        .dtype = d->dnn.dtype, .first = d->dnn.first + n, .samples = DMI_MIN(d->step, d->dnn.samples - n)};
    p->pooling.dnn = p->lrn.dnn;
}

/* The scratch of lrn, behind what lies between. */
static void refer_scratch(const dmi_kernel_call *call, parts *p, int r, int from)
{
    const dmi_lrn_pool *d = call->desc;
    refer(call, &p->of_lrn, &p->lrn.dnn, r, from, 0, 0);
    p->lrn.dnn.offset[r] += d->step * p->in;
    p->lrn.dnn.count[r] = 2 * d->lrn.unit;
}

/* On CPUs, of f32: as if it had lain in an array of 16 bits. */
static void round_between(const dmi_kernel_call *call, const parts *p, int scratch)
{
    const dmi_lrn_pool *d = call->desc;
    float *v = dmi_dnn_at(call, scratch);
    if (d->between == d->dnn.dtype) {
        return;
    }
    for (int64_t i = 0; i < p->lrn.dnn.samples * p->in; i++) {
        v[i] = d->between == DM_F16 ? dmi_f16_to_f32(dmi_f32_to_f16(v[i]))
                                    : dmi_bf16_to_f32(dmi_f32_to_bf16(v[i]));
    }
}

static dm_status run(dmi_dnn_run *kernel, const void *desc, dmi_kernel_call *call)
{
    call->desc = desc;
    return kernel(call);
}

dm_status dmi_lrn_pool_apart(const dmi_kernel_call *call, dmi_dnn_run *lrn, dmi_dnn_run *pooling)
{
    enum { X, Y, WHICH, SCRATCH };
    const dmi_lrn_pool *d = call->desc;
    dm_status status = DM_OK;
    for (int64_t n = 0; n < d->dnn.samples && d->dnn.count[Y] > 0 && status == DM_OK; n += d->step) {
        parts p;
        begin(call, &p, n);
        refer(call, &p.of_lrn, &p.lrn.dnn, 0, X, n, p.in);
        refer(call, &p.of_lrn, &p.lrn.dnn, 1, SCRATCH, 0, p.in);
        refer_scratch(call, &p, 2, SCRATCH);
        refer(call, &p.of_pooling, &p.pooling.dnn, 0, SCRATCH, 0, p.in);
        refer(call, &p.of_pooling, &p.pooling.dnn, 1, Y, n, p.out);
        refer(call, &p.of_pooling, &p.pooling.dnn, 2, WHICH, n, p.out);
        status = run(lrn, &p.lrn, &p.of_lrn);
        round_between(call, &p, SCRATCH);
        status = status == DM_OK ? run(pooling, &p.pooling, &p.of_pooling) : status;
    }
    return status;
}

dm_status dmi_lrn_pool_back_apart(const dmi_kernel_call *call, dmi_dnn_run *lrn, dmi_dnn_run *pooling)
{
    enum { X, WHICH, DY, DX, SCRATCH };
    const dmi_lrn_pool *d = call->desc;
    dm_status status = DM_OK;
    for (int64_t n = 0; n < d->dnn.samples && d->dnn.count[DX] > 0 && status == DM_OK; n += d->step) {
        parts p;
        begin(call, &p, n);
        refer(call, &p.of_pooling, &p.pooling.dnn, 0, WHICH, n, p.out);
        refer(call, &p.of_pooling, &p.pooling.dnn, 1, DY, n, p.out);
        refer(call, &p.of_pooling, &p.pooling.dnn, 2, SCRATCH, 0, p.in);
        refer(call, &p.of_lrn, &p.lrn.dnn, 0, X, n, p.in);
        refer(call, &p.of_lrn, &p.lrn.dnn, 1, SCRATCH, 0, p.in);
        refer(call, &p.of_lrn, &p.lrn.dnn, 2, DX, n, p.in);
        refer_scratch(call, &p, 3, SCRATCH);
        status = run(pooling, &p.pooling, &p.of_pooling);
        round_between(call, &p, SCRATCH);
        status = status == DM_OK ? run(lrn, &p.lrn, &p.of_lrn) : status;
    }
    return status;
}

dm_status dmi_lrn_pool_cpu(const dmi_kernel_call *call)
{
    return dmi_lrn_pool_apart(call, dmi_lrn_cpu, dmi_pooling_cpu);
}

dm_status dmi_lrn_pool_back_cpu(const dmi_kernel_call *call)
{
    return dmi_lrn_pool_back_apart(call, dmi_lrn_back_cpu, dmi_pooling_back_cpu);
}
