/* Fills: an element depends on its row-major index in the array only. fill_random_cpu.c makes the random
 * kinds. */
#include "kernels/cpu/cpu.h"
#include "kernels/random/fill_random.h"
#include <assert.h>

/* --- ranges of consecutive elements --------------------------------------------------- */
typedef struct fill_job {
    const dmi_fill *d;
    const dmi_fill_values *v;
    dm_dtype make; /* the type values are made in: f64 or i64 */
    dmi_random random;
    int64_t bytes;
    int64_t weight[DM_MAX_DIMS]; /* of a dim's index in the row-major index */
    dmi_region region;           /* with dims joined where that gives longer ranges */
    int64_t shape[DM_MAX_DIMS];
    void *out;
} fill_job;

static void random_range(const fill_job *job, int64_t index, int64_t n, int64_t at, int64_t stride)
{
    const dmi_random *g = &job->random;
    int64_t made = dmi_dtype_bytes(g->make);
    dmi_chunk buffer;
    while (n > 0) {
        int64_t first = index / g->per, skip = index % g->per;
        int64_t counters = DMI_MIN(DMI_BATCH_COUNTERS, (skip + n + g->per - 1) / g->per);
        int64_t m = DMI_MIN(n, counters * g->per - skip);
        dmi_random_batch(g, (uint64_t)first, (int)counters, &buffer);
        dmi_row_store(g->make, buffer.bytes + skip * made, job->d->dtype, dmi_at_mut(job->out, at * job->bytes),
                      stride, m);
        index += m;
        at += m * stride;
        n -= m;
    }
}

static void arange_range(const fill_job *job, int64_t index, int64_t n, int64_t at, int64_t stride)
{
    const dmi_fill_values *v = job->v;
    dmi_chunk buffer;
    for (int64_t i = 0; i < n; i += DMI_CHUNK) {
        int64_t m = DMI_MIN(DMI_CHUNK, n - i);
        for (int64_t j = 0; j < m; j++) {
            int64_t k = index + i + j;
            if (job->make == DM_I64) {
                buffer.i64[j] = (int64_t)((uint64_t)v->i0 + (uint64_t)v->i1 * (uint64_t)k);
            } else {
                buffer.f64[j] = dmi_arange_at(v->p0, v->p1, k);
            }
        }
        dmi_row_store(job->make, &buffer, job->d->dtype, dmi_at_mut(job->out, (at + i * stride) * job->bytes),
                      stride, m);
    }
}

/* n times one value: p0 where `set`, else 0. */
static void constant_range(const fill_job *job, bool set, int64_t n, int64_t at, int64_t stride)
{
    dmi_raw64 value[2] = {0};
    if (set && job->make == DM_I64) {
        dmi_convert_row(DM_I64, job->d->dtype, &job->v->i0, value, 1);
    } else if (set) {
        dmi_convert_row(DM_F64, job->d->dtype, &job->v->p0, value, 1);
    }
    if (value[0] == 0 && value[1] == 0 && stride == 1) {
        memset(dmi_at_mut(job->out, at * job->bytes), 0, (size_t)(n * job->bytes));
        return;
    }
    dmi_move_row(job->bytes, value, 0, dmi_at_mut(job->out, at * job->bytes), stride, n);
}

/* --- the region ---------------------------------------------------------------------------- */
/* Indices [*index, *index + returned) of a set, from ordinal k on, without a gap; *position: where in memory.
 */
static int64_t set_range(const dmi_dimset *set, int64_t k, int64_t *index, int64_t *position)
{
    *index = dmi_dimset_index(set, k);
    *position = dmi_dimset_first_position(set) + k;
    if (set->g <= 1) {
        return set->count - k;
    }
    int64_t own = *index + set->origin;
    int64_t end = DMI_MIN((own / set->block + 1) * set->block, set->hi);
    return DMI_MIN(end - own, set->count - k);
}

static void fill_range(const fill_job *job, int64_t index, int64_t n, int64_t at, int64_t stride)
{
    if (job->d->kind == DMI_FILL_ARANGE) {
        arange_range(job, index, n, at, stride);
    } else if (job->d->kind == DMI_FILL_CONST || job->d->kind == DMI_FILL_CLOCK) {
        constant_range(job, true, n, at, stride);
    } else {
        random_range(job, index, n, at, stride);
    }
}

static void walk(const fill_job *job, int dim, int64_t linear, int64_t at)
{
    const dmi_region *region = &job->region;
    if (region->ndim == 0) {
        fill_range(job, 0, 1, at, 1);
        return;
    }
    const dmi_dimset *set = &region->dim[dim];
    int64_t stride = region->stride[dim], weight = job->weight[dim];
    for (int64_t k = 0, index, position, n; k < set->count; k += n) {
        n = set_range(set, k, &index, &position);
        if (dim == region->ndim - 1) {
            fill_range(job, linear + index, n, at + position * stride, stride);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            walk(job, dim + 1, linear + (index + i) * weight, at + (position + i) * stride);
        }
    }
}

/* Zeros, then p0 at each index that both dims have. */
static void identity(const fill_job *job)
{
    const dmi_dimset *rows = &job->region.dim[0], *cols = &job->region.dim[1];
    const int64_t *stride = job->region.stride;
    int64_t row_first = dmi_dimset_first_position(rows), col_first = dmi_dimset_first_position(cols);
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t at = job->region.offset + (row_first + r) * stride[0];
        int64_t index = dmi_dimset_index(rows, r);
        constant_range(job, false, cols->count, at + col_first * stride[1], stride[1]);
        if (dmi_dimset_contains(cols, index)) {
            constant_range(job, true, 1, at + dmi_dimset_position(cols, index) * stride[1], 1);
        }
    }
}

/* Joins the last dim to the one before while it is whole and dense: one dim of longer ranges. */
static void join_dims(fill_job *job)
{
    dmi_region *r = &job->region;
    while (r->ndim > 1) {
        int last = r->ndim - 1;
        const dmi_dimset *in = &r->dim[last];
        dmi_dimset *out = &r->dim[last - 1];
        int64_t n = job->shape[last];
        if (in->count != n || r->stride[last - 1] != n * r->stride[last]) {
            return;
        }
        r->offset += dmi_dimset_first_position(in) * r->stride[last];
        out->lo *= n;
        out->hi *= n;
        out->block *= n;
        out->origin *= n;
        out->lbase *= n;
        out->count *= n;
        r->stride[last - 1] = r->stride[last];
        job->shape[last - 1] *= n;
        r->ndim = last;
    }
}

void dmi_cpu_fill(const dmi_fill *d, const dmi_fill_values *v, void *out)
{
    const dmi_fill_values now = {.i0 = dmi_now_ns()};
    fill_job job = {.d = d, .v = d->kind == DMI_FILL_CLOCK ? &now : v, .region = d->region, .out = out};
    bool floating = dmi_dtype_is_float(dmi_dtype_part(d->dtype));
    assert(d->kind >= 0 && d->kind <= DMI_FILL_CLOCK && dmi_dtype_bytes(d->dtype) > 0);
    assert(d->kind != DMI_FILL_CLOCK || d->dtype == DM_I64);
    assert(dmi_dtype_is_float(d->dtype) || d->kind != DMI_FILL_NORMAL);
    assert(!dmi_dtype_is_complex(d->dtype) || d->kind != DMI_FILL_UNIFORM);
    assert(d->kind != DMI_FILL_IDENTITY || d->region.ndim == 2);
    if (d->region.count == 0) {
        return;
    }
    job.bytes = dmi_dtype_bytes(d->dtype);
    job.make = floating ? DM_F64 : DM_I64;
    dmi_random_init(d->kind, d->dtype, job.v, &job.random);
    memcpy(job.shape, d->shape, sizeof job.shape);
    if (d->kind == DMI_FILL_IDENTITY) {
        identity(&job);
        return;
    }
    join_dims(&job);
    int64_t weight = 1;
    for (int dim = job.region.ndim - 1; dim >= 0; dim--) {
        job.weight[dim] = weight;
        weight *= job.shape[dim];
    }
    walk(&job, 0, 0, job.region.offset);
}
