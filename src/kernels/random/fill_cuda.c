/* dmi_fill on CUDA: regions as boxes of one value, or as ranges of consecutive indices. */
#include "kernels/cuda/launch.h"
#include "kernels/random/fill_random.h"
#include <assert.h>

typedef struct fill_job {
    dmi_queue *q;
    const dmi_fill *d;
    const dmi_fill_values *v;
    int64_t bytes;
    uint64_t value[2]; /* 16 bytes of the constant */
    int64_t unit;
    dmi_region region; /* with dims joined where that gives longer ranges */
    int64_t shape[DM_MAX_DIMS];
    void *out;
} fill_job;

/* --- one value ------------------------------------------------------------------------- */
static void set_value(fill_job *job, bool zero)
{
    uint64_t value[2] = {0};
    bool floating = dmi_dtype_is_float(dmi_dtype_part(job->d->dtype));
    if (!zero) {
        const void *from = floating ? (const void *)&job->v->p0 : &job->v->i0;
        dmi_convert_row(floating ? DM_F64 : DM_I64, job->d->dtype, from, value, 1);
    }
    for (int64_t b = 0; b < 16; b += job->bytes) {
        memcpy((char *)job->value + b, value, (size_t)job->bytes);
    }
}

static void launch_constant(void *context, const dmi_box *part, const int64_t *at)
{
    const fill_job *job = context;
    dmi_cuda_box box;
    dmi_cuda_box_make(part, &box);
    dmi_cuda_launch_constant(job->q, (int)job->unit, &box, job->value, dmi_at_mut(job->out, at[0] * job->unit));
}

static void constant(const fill_job *job)
{
    const dmi_region *r = &job->region;
    fill_job here = *job;
    dmi_box box = {.ndim = r->ndim, .sides = 1}, part, units;
    int64_t position = r->offset, begin[DMI_BOX_SIDES] = {0};
    for (int d = 0; d < r->ndim; d++) {
        box.extent[d] = r->dim[d].count;
        box.stride[0][d] = r->stride[d];
        position += dmi_dimset_first_position(&r->dim[d]) * r->stride[d];
    }
    here.out = dmi_at_mut(job->out, position * job->bytes);
    here.unit = job->bytes;
    dmi_box_simplify(&box, 0);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], body = 0;
    part = box;
    if (box.stride[0][inner] == 1) {
        const uintptr_t address = (uintptr_t)here.out;
        int64_t group = dmi_cuda_row_unit(&box, &address, job->bytes) / job->bytes;
        body = n / group * group;
        if (body > 0) {
            here.unit = group * job->bytes;
            part.extent[inner] = body;
            dmi_cuda_in_units(&part, group, &units);
            dmi_cuda_split(&units, begin, false, launch_constant, &here);
        }
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES] = {body * box.stride[0][inner]};
        here.unit = job->bytes;
        part.extent[inner] = n - body;
        dmi_cuda_split(&part, rest, false, launch_constant, &here);
    }
}

/* Zeros, then p0 at each index that both dims have. */
static void identity(fill_job *job)
{
    const dmi_region *r = &job->region;
    dmi_cuda_diagonal p = {
        .rows = r->dim[0], .cols = r->dim[1], .row_stride = r->stride[0], .col_stride = r->stride[1]};
    set_value(job, true);
    constant(job);
    set_value(job, false);
    p.row_position = dmi_dimset_first_position(&r->dim[0]);
    for (p.first_row = 0; p.first_row < r->dim[0].count; p.first_row += p.count) {
        p.count = DMI_MIN(r->dim[0].count - p.first_row, DMI_CUDA_ITEMS);
        dmi_cuda_launch_diagonal(job->q, job->bytes, &p, job->value,
                                 dmi_at_mut(job->out, r->offset * job->bytes));
    }
}

/* --- by index ---------------------------------------------------------------------------- */
/* Elements [from, from + count) of a set. */
static dmi_cuda_dim_ranges ranges_of(const dmi_dimset *set, int64_t from, int64_t count)
{
    dmi_cuda_dim_ranges r = {
        .count = count, .start = dmi_dimset_index(set, from), .first_len = count, .block = 1};
    if (set->g > 1) {
        int64_t own = r.start + set->origin, block = own / set->block;
        r.block = set->block;
        r.first_len = DMI_MIN((block + 1) * set->block - own, count);
        r.jump_start = block * set->block - set->origin;
        r.jump = set->g * set->block;
    }
    return r;
}

/* Elements [from[d], from[d] + count[d]) of each dim. */
static void fill_part(const fill_job *job, const int64_t *from, const int64_t *count)
{
    const dmi_region *r = &job->region;
    dmi_cuda_fill p = {.ndim = r->ndim, .kind = job->d->kind, .dtype = job->d->dtype, .values = *job->v};
    int64_t weight = 1, items = 1, group = dmi_cuda_fill_group(p.kind, p.dtype), position = r->offset;
    int largest = r->ndim - 1;
    for (int d = r->ndim - 1; d >= 0; d--) {
        dmi_cuda_dim_ranges *dim = &p.dim[r->ndim - 1 - d];
        *dim = ranges_of(&r->dim[d], from[d], count[d]);
        dim->stride = r->stride[d];
        dim->weight = weight;
        weight *= job->shape[d];
        position += (dmi_dimset_first_position(&r->dim[d]) + from[d]) * r->stride[d];
        items *= count[d];
        largest = count[d] > count[largest] ? d : largest;
    }
    const dmi_cuda_dim_ranges *inner = &p.dim[0];
    int64_t ranges = 1 + (count[r->ndim - 1] - inner->first_len + inner->block - 1) / inner->block;
    int64_t longest = ranges == 1 ? inner->first_len : inner->block;
    int64_t groups = (longest + 2 * group - 2) / group; /* the first may have one element alone */
    items = items / count[r->ndim - 1] * ranges * groups;
    if (items > DMI_CUDA_ITEMS) {
        int64_t part_from[DM_MAX_DIMS], part_count[DM_MAX_DIMS];
        memcpy(part_from, from, sizeof part_from);
        memcpy(part_count, count, sizeof part_count);
        part_count[largest] = count[largest] / 2;
        fill_part(job, part_from, part_count);
        part_from[largest] += part_count[largest];
        part_count[largest] = count[largest] - part_count[largest];
        fill_part(job, part_from, part_count);
        return;
    }
    p.items = (uint32_t)items;
    p.range64 = dmi_uniform64_make(job->v->p0, job->v->p1);
    p.range32 = dmi_uniform32_of(job->d->dtype, job->v->p0, job->v->p1);
    p.width = dmi_uniform_width(job->d->dtype != DM_U64, job->v->i0, job->v->i1);
    p.groups = dmi_cuda_divide_by(groups);
    p.ranges = dmi_cuda_divide_by(ranges);
    for (int d = 1; d < p.ndim; d++) {
        p.extent[d] = dmi_cuda_divide_by(p.dim[d].count);
    }
    dmi_cuda_launch_fill(job->q, &p, dmi_at_mut(job->out, position * job->bytes));
}

/* Joins the last dim to the one before while all of it is there and dense in memory: indices, too, then follow
 * one another without a gap. */
static void join_dims(fill_job *job)
{
    dmi_region *r = &job->region;
    for (int last = r->ndim - 1; last > 0; last--) {
        const dmi_dimset *in = &r->dim[last];
        dmi_dimset *out = &r->dim[last - 1];
        int64_t n = job->shape[last];
        if (in->count != n || r->stride[last - 1] != n * r->stride[last]) {
            return;
        }
        r->offset += dmi_dimset_first_position(in) * r->stride[last];
        int64_t *scaled[] = {&out->lo,    &out->hi,    &out->block,          &out->origin,
                             &out->lbase, &out->count, &job->shape[last - 1]};
        for (int k = 0; k < DMI_COUNT(scaled); k++) {
            *scaled[k] *= n;
        }
        r->stride[last - 1] = r->stride[last];
        r->ndim = last;
    }
}

void dmi_cuda_fill_region(dmi_queue *q, const dmi_fill *d, const dmi_fill_values *v, void *out)
{
    fill_job job = {.q = q, .d = d, .v = v, .region = d->region, .out = out};
    int64_t from[DM_MAX_DIMS] = {0}, count[DM_MAX_DIMS] = {0};
    assert(d->kind >= 0 && d->kind <= DMI_FILL_CLOCK && dmi_dtype_bytes(d->dtype) > 0);
    assert(d->kind != DMI_FILL_CLOCK || d->dtype == DM_I64);
    assert(dmi_dtype_is_float(d->dtype) || d->kind != DMI_FILL_NORMAL);
    assert(!dmi_dtype_is_complex(d->dtype) || d->kind != DMI_FILL_UNIFORM);
    assert(d->kind != DMI_FILL_IDENTITY || d->region.ndim == 2);
    if (d->region.count == 0) {
        return;
    }
    job.bytes = dmi_dtype_bytes(d->dtype);
    memcpy(job.shape, d->shape, sizeof job.shape);
    if (d->kind == DMI_FILL_IDENTITY) {
        identity(&job);
        return;
    }
    if (d->kind == DMI_FILL_CONST) {
        set_value(&job, false);
        constant(&job);
        return;
    }
    if (job.region.ndim == 0) { /* a scalar: one element of index 0 */
        job.region.ndim = 1;
        job.region.dim[0] = dmi_dimset_interval(0, 1);
        job.region.stride[0] = job.shape[0] = 1;
    }
    join_dims(&job);
    for (int dim = 0; dim < job.region.ndim; dim++) {
        count[dim] = job.region.dim[dim].count;
    }
    fill_part(&job, from, count);
}
