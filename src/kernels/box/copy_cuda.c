/* dmi_copy on CUDA: products of runs become strided boxes where they can, else kernels look the runs up. */
#include "kernels/box/product_cuda.h"
#include <assert.h>
#include <cuda_runtime_api.h>

enum { SRC = 0, DST = 1 };
/* Bytes from which a dense copy is left to the driver; the least extents for which a transposition goes through
 * tiles. */
enum { DRIVER_BYTES = 1 << 20, LEAST_TRANSPOSED = 8 };

typedef struct copy_job {
    dmi_queue *q;
    const dmi_copy *d;
    int64_t src_bytes, dst_bytes;
    int64_t unit; /* bytes moved at once; 0: a conversion */
    bool groups;  /* a conversion of dense groups */
    const void *src;
    void *dst;
} copy_job;

/* --- boxes ------------------------------------------------------------------------------------ */
static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    const copy_job *job = context;
    dm_dtype from = job->d->src_dtype, to = job->d->dst_dtype;
    dmi_cuda_box box;
    dmi_cuda_box_make(part, &box);
    if (job->unit > 0) {
        dmi_cuda_launch_move(job->q, (int)job->unit, &box, dmi_at(job->src, at[SRC] * job->unit),
                             dmi_at_mut(job->dst, at[DST] * job->unit));
        return;
    }
    const void *src = dmi_at(job->src, at[SRC] * job->src_bytes);
    void *dst = dmi_at_mut(job->dst, at[DST] * job->dst_bytes);
    if (job->groups) {
        dmi_cuda_launch_convert_groups(job->q, from, to, &box, src, dst);
    } else {
        dmi_cuda_launch_convert(job->q, from, to, &box, src, dst);
    }
}

/* The same types, dense along the innermost dim: as many bytes at once as rows and addresses allow. What of a
 * row is beyond the last unit of its alignment goes by itself. */
static void move_rows(const copy_job *job, const dmi_box *box, const int64_t *at)
{
    int inner = box->ndim - 1;
    int64_t bytes = job->src_bytes, n = box->extent[inner];
    copy_job here = *job; /* from the first element on: its position need not be a multiple of the unit */
    here.src = dmi_at(job->src, at[SRC] * bytes);
    here.dst = dmi_at_mut(job->dst, at[DST] * bytes);
    if (box->ndim == 1 && n * bytes >= DRIVER_BYTES) {
        cudaError_t e =
            cudaMemcpyAsync(here.dst, here.src, (size_t)(n * bytes), cudaMemcpyDefault, job->q->stream);
        if (e != cudaSuccess) {
            dmi_cuda_failed(job->q, "cudaMemcpyAsync", (int)e, cudaGetErrorString(e));
        }
        return;
    }
    const uintptr_t address[2] = {(uintptr_t)here.src, (uintptr_t)here.dst};
    int64_t group = dmi_cuda_row_unit(box, address, bytes) / bytes, body = n / group * group;
    dmi_box part = *box, units;
    if (body > 0) {
        int64_t begin[DMI_BOX_SIDES] = {0};
        part.extent[inner] = body;
        here.unit = group * bytes;
        dmi_cuda_in_units(&part, group, &units);
        dmi_cuda_split(&units, begin, false, launch_part, &here);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES] = {body, body};
        part.extent[inner] = n - body;
        here.unit = bytes;
        dmi_cuda_split(&part, rest, false, launch_part, &here);
    }
}

static void convert_rows(copy_job *job, const dmi_box *box, const int64_t *at)
{
    dm_dtype from = job->d->src_dtype, to = job->d->dst_dtype;
    int inner = box->ndim - 1;
    int64_t group = dmi_cuda_convert_group(from, to), n = box->extent[inner];
    int64_t body = n / group * group;
    dmi_box part = *box;
    job->unit = 0;
    if (!dmi_cuda_hot(from) || !dmi_cuda_hot(to) ||
        !dmi_cuda_grouped(box, SRC, job->src, at[SRC], job->src_bytes, group) ||
        !dmi_cuda_grouped(box, DST, job->dst, at[DST], job->dst_bytes, group)) {
        body = 0;
    }
    if (body > 0) {
        part.extent[inner] = body / group;
        part.stride[SRC][inner] = part.stride[DST][inner] = group;
        job->groups = true;
        dmi_cuda_split(&part, at, false, launch_part, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES] = {at[SRC] + body * box->stride[SRC][inner],
                                       at[DST] + body * box->stride[DST][inner]};
        part = *box;
        part.extent[inner] = n - body;
        job->groups = false;
        dmi_cuda_split(&part, rest, false, launch_part, job);
    }
}

/* --- transpositions ------------------------------------------------------------------------------ */
static bool multiple_of(int64_t unit, const dmi_box *box, int inner, int other, int64_t bytes)
{
    bool all = box->extent[inner] * bytes % unit == 0 && box->extent[other] * bytes % unit == 0;
    for (int d = 0; d < box->ndim; d++) {
        all = all && (d == other || box->stride[SRC][d] * bytes % unit == 0);
        all = all && (d == inner || box->stride[DST][d] * bytes % unit == 0);
    }
    return all;
}

/* Planes of the innermost dim, dense in dst, and `other`, dense in src. False: the plane is not for tiles. */
static bool transpose_planes(copy_job *job, const dmi_box *box, const int64_t *at)
{
    int inner = box->ndim - 1, other = -1;
    for (int d = 0; d < inner; d++) {
        other = box->stride[SRC][d] == 1 ? d : other;
    }
    bool tiles = job->d->src_dtype == job->d->dst_dtype
                     ? job->src_bytes <= 8
                     : dmi_cuda_hot(job->d->src_dtype) && dmi_cuda_hot(job->d->dst_dtype);
    if (!tiles || other < 0 || box->stride[DST][inner] != 1 || box->extent[inner] < LEAST_TRANSPOSED ||
        box->extent[other] < LEAST_TRANSPOSED) {
        return false;
    }
    const void *src = dmi_at(job->src, at[SRC] * job->src_bytes);
    void *dst = dmi_at_mut(job->dst, at[DST] * job->dst_bytes);
    dm_dtype from = job->d->src_dtype, to = job->d->dst_dtype;
    bool aligned = from == to && ((uintptr_t)src | (uintptr_t)dst) % 16 == 0 &&
                   multiple_of(16, box, inner, other, job->src_bytes);
    int64_t side = aligned ? dmi_cuda_transpose_side(job->src_bytes) : DMI_CUDA_TRANSPOSE_SIDE;
    dmi_cuda_planes p = {.ni = box->extent[other], .nj = box->extent[inner]};
    p.src_stride_j = box->stride[SRC][inner];
    p.dst_stride_i = box->stride[DST][other];
    int64_t tiles_i = (p.ni + side - 1) / side, tiles_j = (p.nj + side - 1) / side;
    dmi_box outer = {.sides = 2};
    p.tiles = tiles_i * tiles_j;
    for (int d = 0; d < inner; d++) {
        if (d != other) {
            outer.extent[outer.ndim] = box->extent[d];
            outer.stride[SRC][outer.ndim] = box->stride[SRC][d];
            outer.stride[DST][outer.ndim++] = box->stride[DST][d];
            p.tiles *= box->extent[d];
        }
    }
    if (p.tiles > DMI_CUDA_ITEMS) {
        return false;
    }
    if (outer.ndim == 0) {
        outer.extent[outer.ndim++] = 1;
    }
    p.tiles_i = dmi_cuda_divide_by(tiles_i);
    p.tiles_j = dmi_cuda_divide_by(tiles_j);
    dmi_cuda_box_make(&outer, &p.outer);
    dmi_cuda_launch_transpose(job->q, from, to, aligned, &p, src, dst);
    return true;
}

static void copy_box(void *context, dmi_box *box, const int64_t *at)
{
    copy_job *job = context;
    dmi_box_simplify(box, DST);
    int inner = box->ndim - 1;
    if (box->ndim > 1 && box->stride[SRC][inner] != 1 && transpose_planes(job, box, at)) {
        return;
    }
    if (job->d->src_dtype != job->d->dst_dtype) {
        convert_rows(job, box, at);
    } else if (box->stride[SRC][inner] == 1 && box->stride[DST][inner] == 1) {
        move_rows(job, box, at);
    } else {
        job->unit = job->src_bytes;
        dmi_cuda_split(box, at, false, launch_part, job);
    }
}

static void copy_runs(void *context, const dmi_cuda_product *product)
{
    const copy_job *job = context;
    dm_dtype from = job->d->src_dtype, to = job->d->dst_dtype;
    const void *src = dmi_at(job->src, product->src_at * job->src_bytes);
    void *dst = dmi_at_mut(job->dst, product->dst_at * job->dst_bytes);
    dmi_cuda_runs runs;
    if (from != to) {
        dmi_cuda_product_make(product, 1, &runs);
        dmi_cuda_launch_convert_runs(job->q, from, to, &runs, src, dst);
        return;
    }
    int64_t unit = dmi_cuda_product_unit(product, job->src_bytes, src, dst, 16);
    dmi_cuda_product_make(product, unit, &runs);
    dmi_cuda_launch_move_runs(job->q, (int)(unit * job->src_bytes), &runs, src, dst);
}

void dmi_cuda_copy(dmi_queue *q, const dmi_copy *d, const void *src, void *dst)
{
    copy_job job = {.q = q, .d = d, .src = src, .dst = dst};
    dmi_cuda_parts parts = {.context = &job, .box = copy_box, .runs = copy_runs};
    job.src_bytes = dmi_dtype_bytes(d->src_dtype);
    job.dst_bytes = dmi_dtype_bytes(d->dst_dtype);
    assert(job.src_bytes > 0 && job.dst_bytes > 0);
    dmi_cuda_cut(q, d, &parts);
}
