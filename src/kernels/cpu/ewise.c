/* Elementwise operations: rows are brought into one of three types to compute in, f64, f32 or i64, through a
 * buffer where they have another type or stride. */
#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"
#include <assert.h>
#include <math.h>

enum { A = 0, B = 1, OUT = 2 };

typedef struct scalars {
    double alpha, beta;
    int64_t ialpha, ibeta;
} scalars;

/* --- arithmetic on dense rows -----------------------------------------------------
 * One of these per type; a coefficient of 0 leaves its term out, as in BLAS. */
#define LINEAR(type)                                                                                           \
    DMI_BODY void add_##type##_body(type alpha, const type *a, type beta, const type *b, type *out, int64_t n) \
    {                                                                                                          \
        if (alpha == 0 && beta == 0) {                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                out[i] = 0;                                                                                    \
            }                                                                                                  \
        } else if (beta == 0) {                                                                                \
            DMI_IVDEP                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                out[i] = alpha * a[i] + 0;                                                                     \
            }                                                                                                  \
        } else if (alpha == 0) {                                                                               \
            DMI_IVDEP                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                out[i] = 0 + beta * b[i];                                                                      \
            }                                                                                                  \
        } else {                                                                                               \
            DMI_IVDEP                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                out[i] = alpha * a[i] + beta * b[i];                                                           \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, add_##type, (type alpha, const type *a, type beta, const type *b, type *out, int64_t n), \
              (alpha, a, beta, b, out, n))                                                                     \
    DMI_BODY void mul_##type##_body(type alpha, const type *a, const type *b, type *out, int64_t n)            \
    {                                                                                                          \
        DMI_IVDEP                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            out[i] = alpha * a[i] * b[i];                                                                      \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, mul_##type, (type alpha, const type *a, const type *b, type *out, int64_t n),            \
              (alpha, a, b, out, n))                                                                           \
    DMI_BODY void scale_##type##_body(type alpha, const type *a, type *out, int64_t n)                         \
    {                                                                                                          \
        DMI_IVDEP                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            out[i] = alpha * a[i];                                                                             \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, scale_##type, (type alpha, const type *a, type *out, int64_t n), (alpha, a, out, n))
#define RELU(type)                                                                                             \
    DMI_BODY void relu_##type##_body(type alpha, const type *a, type *out, int64_t n)                          \
    {                                                                                                          \
        DMI_IVDEP                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            type v = a[i];                                                                                     \
            type w = v > 0 ? v : 0;                                                                            \
            out[i] = alpha * (v == v ? w : v);                                                                 \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, relu_##type, (type alpha, const type *a, type *out, int64_t n), (alpha, a, out, n))
/* uint64_t in place of int64_t, for wrap-around is defined there. */
typedef uint64_t wrapping;
LINEAR(double)
LINEAR(float)
LINEAR(wrapping)
RELU(double)
RELU(float)

static void row_f64(int op, double alpha, const double *a, double beta, const double *b, double *out, int64_t n)
{
    switch (op) {
    case DMI_EW_ADD:
        add_double(alpha, a, beta, b, out, n);
        break;
    case DMI_EW_MUL:
        mul_double(alpha, a, b, out, n);
        break;
    case DMI_EW_SCALE:
        scale_double(alpha, a, out, n);
        break;
    case DMI_EW_RELU:
        relu_double(alpha, a, out, n);
        break;
    case DMI_EW_EXP:
        for (int64_t i = 0; i < n; i++) {
            out[i] = alpha * exp(a[i]);
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            out[i] = alpha * tanh(a[i]);
        }
        break;
    }
}

static void row_f32(int op, float alpha, const float *a, float beta, const float *b, float *out, int64_t n)
{
    switch (op) {
    case DMI_EW_ADD:
        add_float(alpha, a, beta, b, out, n);
        break;
    case DMI_EW_MUL:
        mul_float(alpha, a, b, out, n);
        break;
    case DMI_EW_SCALE:
        scale_float(alpha, a, out, n);
        break;
    case DMI_EW_RELU:
        relu_float(alpha, a, out, n);
        break;
    case DMI_EW_EXP:
        for (int64_t i = 0; i < n; i++) {
            out[i] = alpha * expf(a[i]);
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            out[i] = alpha * tanhf(a[i]);
        }
        break;
    }
}

static void row_i64(int op, uint64_t alpha, const uint64_t *a, uint64_t beta, const uint64_t *b, uint64_t *out,
                    int64_t n)
{
    switch (op) {
    case DMI_EW_ADD:
        add_wrapping(alpha, a, beta, b, out, n);
        break;
    case DMI_EW_MUL:
        mul_wrapping(alpha, a, b, out, n);
        break;
    case DMI_EW_SCALE:
        scale_wrapping(alpha, a, out, n);
        break;
    default:
        assert(op == DMI_EW_RELU);
        for (int64_t i = 0; i < n; i++) {
            out[i] = alpha * (a[i] >> 63 ? 0 : a[i]);
        }
        break;
    }
}

/* --- rows of any type --------------------------------------------------------------- */
typedef struct ewise_job {
    const dmi_ewise *d;
    scalars s;
    dm_dtype compute;
    bool use_a, use_b; /* an operand that is not read may not even be there */
    dm_dtype dtype[3];
    int64_t bytes[3];
    const void *a, *b;
    void *out;
} ewise_job;

static void compute_row(const ewise_job *job, const void *a, const void *b, void *out, int64_t n)
{
    if (job->compute == DM_F64) {
        row_f64(job->d->op, job->s.alpha, a, job->s.beta, b, out, n);
    } else if (job->compute == DM_F32) {
        row_f32(job->d->op, (float)job->s.alpha, a, (float)job->s.beta, b, out, n);
    } else {
        row_i64(job->d->op, (uint64_t)job->s.ialpha, a, (uint64_t)job->s.ibeta, b, out, n);
    }
}

/* One row at element positions at[], with the strides of one dim. */
static void any_row(const ewise_job *job, const int64_t *at, const int64_t *stride, int64_t n)
{
    dmi_chunk a_buffer, b_buffer, out_buffer;
    bool direct_out = dmi_row_direct(job->compute, stride[OUT], job->dtype[OUT], n);
    bool direct = direct_out && (!job->use_a || dmi_row_direct(job->dtype[A], stride[A], job->compute, n)) &&
                  (!job->use_b || dmi_row_direct(job->dtype[B], stride[B], job->compute, n));
    int64_t step = direct ? n : DMI_CHUNK;
    for (int64_t i = 0; i < n; i += step) {
        int64_t m = DMI_MIN(step, n - i);
        const void *a = NULL, *b = NULL;
        if (job->use_a) {
            a = dmi_at(job->a, (at[A] + i * stride[A]) * job->bytes[A]);
            a = direct ? a : dmi_row_load(job->dtype[A], a, stride[A], job->compute, &a_buffer, m);
        }
        if (job->use_b) {
            b = dmi_at(job->b, (at[B] + i * stride[B]) * job->bytes[B]);
            b = direct ? b : dmi_row_load(job->dtype[B], b, stride[B], job->compute, &b_buffer, m);
        }
        void *out = dmi_at_mut(job->out, (at[OUT] + i * stride[OUT]) * job->bytes[OUT]);
        if (direct_out) {
            compute_row(job, a, b, out, m);
        } else {
            compute_row(job, a, b, &out_buffer, m);
            dmi_row_store(job->compute, &out_buffer, job->dtype[OUT], out, stride[OUT], m);
        }
    }
}

static bool is_far(int64_t stride)
{
    return stride > 1;
}

/* The innermost dim is where out is densest; if it is short, the longest dim makes better rows. */
static void choose_inner(dmi_box *box)
{
    int inner = box->ndim - 1, best = inner;
    if (box->extent[inner] >= 16) {
        return;
    }
    for (int d = 0; d < inner; d++) {
        best = box->extent[d] > box->extent[best] ? d : best;
    }
    for (int s = 0; s < box->sides; s++) {
        int64_t t = box->stride[s][inner];
        box->stride[s][inner] = box->stride[s][best];
        box->stride[s][best] = t;
    }
    int64_t t = box->extent[inner];
    box->extent[inner] = box->extent[best];
    box->extent[best] = t;
}

static void walk(const ewise_job *job, dmi_box *box, const int64_t *offset)
{
    dmi_box_simplify(box, OUT);
    choose_inner(box);
    int inner = box->ndim - 1;
    int64_t n = box->extent[inner], step = n;
    int64_t stride[3] = {box->stride[A][inner], box->stride[B][inner], box->stride[OUT][inner]};
    /* Across a strided operand the rows come in pieces, so that what one piece draws into the cache, the next
     * row's piece still finds there. */
    if (is_far(stride[A]) || is_far(stride[B])) {
        step = DMI_CHUNK;
    }
    for (int64_t i = 0; i < n; i += step) {
        int64_t index[DMI_BOX_DIMS] = {0};
        int64_t at[3] = {offset[A] + i * stride[A], offset[B] + i * stride[B], offset[OUT] + i * stride[OUT]};
        do {
            any_row(job, at, stride, DMI_MIN(step, n - i));
        } while (dmi_box_next(box, inner, index, at));
    }
}

/* The type to compute in: dmi_dtype_promote of the inputs, a 16-bit float in f32, integers in i64 unless the
 * result is to be floating. */
static dm_dtype compute_type(const dmi_ewise *d, bool binary)
{
    dm_dtype t = binary ? dmi_dtype_promote(d->a_dtype, d->b_dtype) : d->a_dtype;
    if (dmi_dtype_is_float(t)) {
        return t == DM_F64 ? DM_F64 : DM_F32;
    }
    return dmi_dtype_is_float(d->out_dtype) || d->op == DMI_EW_EXP || d->op == DMI_EW_TANH ? DM_F64 : DM_I64;
}

void dmi_cpu_ewise(const dmi_ewise *d, double alpha, const void *a, double beta, const void *b, void *out)
{
    bool binary = d->op == DMI_EW_ADD || d->op == DMI_EW_MUL;
    dmi_box box = {.ndim = d->ndim, .sides = 3};
    ewise_job job = {.d = d, .a = a, .b = b, .out = out};
    assert(d->op >= 0 && d->op < DMI_EW_OPS && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    job.compute = compute_type(d, binary);
    job.s = (scalars){alpha, beta, dmi_f64_to_i64(alpha), dmi_f64_to_i64(beta)};
    bool zero_alpha = job.compute == DM_F32 ? (float)alpha == 0 : alpha == 0;
    bool zero_beta = job.compute == DM_F32 ? (float)beta == 0 : beta == 0;
    job.use_a = d->op != DMI_EW_ADD || !zero_alpha;
    job.use_b = d->op == DMI_EW_MUL || (d->op == DMI_EW_ADD && !zero_beta);
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return;
        }
        box.extent[dim] = d->extent[dim];
        box.stride[A][dim] = job.use_a ? d->a_stride[dim] : d->out_stride[dim];
        box.stride[B][dim] = job.use_b ? d->b_stride[dim] : d->out_stride[dim];
        box.stride[OUT][dim] = d->out_stride[dim];
    }
    job.dtype[A] = d->a_dtype;
    job.dtype[B] = d->b_dtype;
    job.dtype[OUT] = d->out_dtype;
    job.bytes[A] = dmi_dtype_bytes(d->a_dtype);
    job.bytes[B] = job.use_b ? dmi_dtype_bytes(d->b_dtype) : 0;
    job.bytes[OUT] = dmi_dtype_bytes(d->out_dtype);
    int64_t offset[3] = {d->a_offset, d->b_offset, d->out_offset};
    walk(&job, &box, offset);
}
