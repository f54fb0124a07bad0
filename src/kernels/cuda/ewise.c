/* dmi_ewise on CUDA: which kernel, and boxes for it. */
#include "kernels/cpu/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>

enum { A = 0, B = 1, OUT = 2 };

typedef struct ewise_job {
    dmi_queue *q;
    dmi_cuda_ewise p;
    bool same, groups;
    int64_t bytes[3];
    const void *a, *b;
    void *out;
} ewise_job;

static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    ewise_job *job = context;
    const void *a = job->p.use_a ? dmi_at(job->a, at[A] * job->bytes[A]) : NULL;
    const void *b = job->p.use_b ? dmi_at(job->b, at[B] * job->bytes[B]) : NULL;
    void *out = dmi_at_mut(job->out, at[OUT] * job->bytes[OUT]);
    dmi_cuda_box_make(part, &job->p.box);
    if (job->same) {
        dmi_cuda_launch_ewise_same(job->q, &job->p, job->groups, a, b, out);
    } else {
        dmi_cuda_launch_ewise_any(job->q, &job->p, job->groups, a, b, out);
    }
}

/* Can operand `side` be read in groups; *splat: one element serves a whole group. */
static bool groups_of(const dmi_box *box, int side, const void *base, int64_t at, int64_t bytes, int64_t group,
                      bool *splat)
{
    *splat = box->stride[side][box->ndim - 1] == 0;
    return *splat || dmi_cuda_grouped(box, side, base, at, bytes, group);
}

static void launch_box(ewise_job *job, const dmi_box *box, const int64_t *at)
{
    dmi_cuda_ewise *p = &job->p;
    bool integer = !dmi_dtype_is_float(p->out_dtype);
    int inner = box->ndim - 1;
    job->same = (!p->use_a || p->a_dtype == p->out_dtype) && (!p->use_b || p->b_dtype == p->out_dtype) &&
                (integer ? p->compute == DM_I64 : p->compute == (p->out_dtype == DM_F64 ? DM_F64 : DM_F32));
    int64_t group = job->same ? 16 / job->bytes[OUT] : 4, n = box->extent[inner], body = n / group * group;
    bool fits = dmi_cuda_grouped(box, OUT, job->out, at[OUT], job->bytes[OUT], group);
    fits = fits && (!p->use_a || groups_of(box, A, job->a, at[A], job->bytes[A], group, &p->splat_a));
    fits = fits && (!p->use_b || groups_of(box, B, job->b, at[B], job->bytes[B], group, &p->splat_b));
    body = fits ? body : 0;
    dmi_box part = *box;
    if (body > 0) {
        part.extent[inner] = body / group;
        for (int s = 0; s < 3; s++) {
            part.stride[s][inner] *= group;
        }
        job->groups = true;
        dmi_cuda_split(&part, at, false, launch_part, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES];
        part = *box;
        part.extent[inner] = n - body;
        for (int s = 0; s < 3; s++) {
            rest[s] = at[s] + body * box->stride[s][inner];
        }
        job->groups = p->splat_a = p->splat_b = false;
        job->same = job->same && (p->out_dtype == DM_F64 || p->out_dtype == DM_F32);
        dmi_cuda_split(&part, rest, false, launch_part, job);
    }
}

/* The type to compute in: that of dmi_dtype_promote, a 16-bit float in f32, integers in i64 unless the result
 * is to be floating. */
static dm_dtype compute_type(const dmi_ewise *d, bool binary)
{
    dm_dtype t = binary ? dmi_dtype_promote(d->a_dtype, d->b_dtype) : d->a_dtype;
    if (dmi_dtype_is_float(t)) {
        return t == DM_F64 ? DM_F64 : DM_F32;
    }
    return dmi_dtype_is_float(d->out_dtype) || d->op == DMI_EW_EXP || d->op == DMI_EW_TANH ? DM_F64 : DM_I64;
}

void dmi_cuda_ewise_box(dmi_queue *q, const dmi_ewise *d, double alpha, const void *a, double beta,
                        const void *b, void *out)
{
    bool binary = d->op == DMI_EW_ADD || d->op == DMI_EW_MUL;
    ewise_job job = {.q = q, .a = a, .b = b, .out = out};
    dmi_cuda_ewise *p = &job.p;
    dmi_box box = {.ndim = d->ndim, .sides = 3};
    assert(d->op >= 0 && d->op < DMI_EW_OPS && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    p->op = d->op;
    p->alpha = alpha;
    p->beta = beta;
    p->ialpha = dmi_f64_to_i64(alpha);
    p->ibeta = dmi_f64_to_i64(beta);
    p->compute = compute_type(d, binary);
    p->use_a = d->op != DMI_EW_ADD || !(p->compute == DM_F32 ? (float)alpha == 0 : alpha == 0);
    p->use_b =
        d->op == DMI_EW_MUL || (d->op == DMI_EW_ADD && !(p->compute == DM_F32 ? (float)beta == 0 : beta == 0));
    p->a_dtype = d->a_dtype;
    p->b_dtype = d->b_dtype;
    p->out_dtype = d->out_dtype;
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return;
        }
        box.extent[dim] = d->extent[dim];
        box.stride[A][dim] = p->use_a ? d->a_stride[dim] : d->out_stride[dim];
        box.stride[B][dim] = p->use_b ? d->b_stride[dim] : d->out_stride[dim];
        box.stride[OUT][dim] = d->out_stride[dim];
    }
    job.bytes[A] = dmi_dtype_bytes(d->a_dtype);
    job.bytes[B] = p->use_b ? dmi_dtype_bytes(d->b_dtype) : 0;
    job.bytes[OUT] = dmi_dtype_bytes(d->out_dtype);
    int64_t at[DMI_BOX_SIDES] = {d->a_offset, d->b_offset, d->out_offset};
    dmi_box_simplify(&box, OUT);
    launch_box(&job, &box, at);
}
