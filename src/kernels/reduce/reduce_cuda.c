/* dmi_reduce on CUDA: along or across, in how many partial sums, which are in the queue's workspace. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>
#include <cuda_runtime_api.h>

enum { IN = 0, ACC = 1, PLACE = 1 };
/* FULL: thread blocks that fill any device. The number of partial sums, and so the order of a sum, depends on the descriptor
 * alone. LEAST_GROUPS: groups of elements that a thread has at least of a partial sum. */
enum { FULL = 2048, LEAST_GROUPS = 8, WARP = 32, LONG_ROW = 1024, ROW = 256, FEW_RESULTS = 8192, FEW_ROWS = 8 };

typedef struct reduce_job {
    dmi_queue *q;
    int acc;
    int64_t offset, bytes, acc_bytes, state_bytes;
    dmi_box kept, summed;
    const void *in;
    void *out;
    dmi_cuda_reduce p;
    bool row; /* of reduce.def, not the sum: with `rows` */
    dmi_cuda_rows rows;
    /* of the part of the kept box that is on: */
    int64_t at, result_at;
    bool one_launch;
    int64_t parts; /* sums in the workspace, a result */
} reduce_job;

static int64_t power_of_two(int64_t least, int64_t most)
{
    int64_t p = 1;
    while (p < least && p < most) {
        p *= 2;
    }
    return p;
}

/* Threads side by side, and partial sums of a result: as many as fill the device, each of some size. */
static void choose_shape(dmi_cuda_reduce *p)
{
    int64_t items = p->summed.items, kept = p->kept.items, blocks = FULL, rows = 1, parts = 1;
    if (p->across) {
        /* few rows: a thread adds all of them, and none has nothing to add */
        p->team = (uint32_t)power_of_two(kept, items <= FEW_ROWS ? DMI_CUDA_THREADS : WARP);
        rows = DMI_CUDA_THREADS / p->team;
        blocks = (kept + p->team - 1) / p->team;
    } else if (items >= LONG_ROW || (items >= ROW && kept < FEW_RESULTS)) {
        p->team = rows = DMI_CUDA_THREADS;
        blocks = kept;
    } else {
        p->team = (uint32_t)power_of_two((items + 3) / 4, WARP);
    }
    if (blocks < FULL) {
        parts = DMI_MIN((FULL + blocks - 1) / blocks, DMI_MAX(items / (rows * LEAST_GROUPS), 1));
    }
    p->items_per_part = (uint32_t)((items + parts - 1) / parts);
    p->parts = (uint32_t)((items + p->items_per_part - 1) / p->items_per_part);
}

static void sum_range(void *context, const dmi_box *part, const int64_t *at)
{
    reduce_job *job = context;
    dmi_cuda_reduce *p = &job->p;
    const void *in = dmi_at(job->in, (job->at + at[IN]) * job->bytes);
    void *sums = dmi_at_mut(job->out, job->result_at * job->acc_bytes);
    dmi_cuda_box_make(part, &p->summed);
    choose_shape(p);
    if (!job->one_launch || p->parts > 1) {
        sums = dmi_at_mut(job->q->workspace, job->parts * p->results * job->state_bytes);
        job->parts += p->parts;
        assert(job->parts * p->results * job->state_bytes <= job->q->workspace_bytes);
    }
    if (job->row) {
        job->rows.base = *p;
        job->rows.last = job->parts == 0;
        job->rows.place = at[PLACE];
        dmi_cuda_launch_rows(job->q, &job->rows, in, sums);
    } else {
        dmi_cuda_launch_reduce(job->q, p, in, sums);
    }
    p->tail = 0; /* one of the sums has it */
}

static int64_t items_of(const dmi_box *box)
{
    int64_t items = 1;
    for (int d = 0; d < box->ndim; d++) {
        items *= box->extent[d];
    }
    return items;
}

static void sum_results(void *context, const dmi_box *part, const int64_t *at)
{
    reduce_job *job = context;
    dmi_cuda_reduce *p = &job->p;
    const int64_t begin[DMI_BOX_SIDES] = {0};
    uint32_t tail = p->tail;
    job->at = at[IN];
    job->result_at = at[ACC];
    job->one_launch = items_of(&job->summed) <= DMI_CUDA_ITEMS;
    job->parts = 0;
    dmi_cuda_box_make(part, &p->kept);
    p->results = (int64_t)p->kept.items * (p->across ? p->group : 1);
    dmi_cuda_split(&job->summed, begin, true, sum_range, job);
    if (job->parts > 0 && job->row) {
        job->rows.base = *p;
        job->rows.last = true;
        dmi_cuda_launch_rows_join(job->q, &job->rows, job->parts, job->q->workspace,
                                  dmi_at_mut(job->out, job->result_at * job->acc_bytes));
    } else if (job->parts > 0) {
        dmi_cuda_launch_join(job->q, job->acc, job->parts, p->results, job->q->workspace,
                             dmi_at_mut(job->out, job->result_at * job->acc_bytes));
    }
    p->tail = tail; /* for the next results */
}

/* Are there kernels for groups of elements? */
static bool takes_groups(const reduce_job *job)
{
    dm_dtype dtype = job->p.dtype;
    if (!job->row) {
        return dmi_cuda_hot(dtype);
    }
    return (dtype == DM_F32 || dtype == DM_BF16) && dmi_acc_takes(job->acc) == dtype;
}

/* Rows in groups; what is beyond the last group of a row only where the row is one range. */
static void sum_along(reduce_job *job)
{
    dmi_cuda_reduce *p = &job->p;
    dmi_box *rows = &job->summed;
    int64_t group = 16 / job->bytes, begin[DMI_BOX_SIDES] = {job->offset, 0};
    int inner = rows->ndim - 1;
    bool grouped = takes_groups(job) &&
                   dmi_cuda_grouped(rows, IN, job->in, job->offset, job->bytes, group) &&
                   rows->extent[inner] >= group && (inner == 0 || rows->extent[inner] % group == 0);
    for (int d = 0; d < job->kept.ndim; d++) {
        grouped = grouped && (job->kept.extent[d] == 1 || job->kept.stride[IN][d] % group == 0);
    }
    p->group = grouped ? (int)group : 1;
    if (grouped) {
        p->tail = (uint32_t)(rows->extent[inner] % group);
        p->tail_at = rows->extent[inner] - p->tail;
        rows->extent[inner] /= group;
        rows->stride[IN][inner] = group;
        rows->stride[PLACE][inner] *= group;
    }
    dmi_cuda_split(&job->kept, begin, true, sum_results, job);
}

/* Results in groups; what is beyond the last group only where the results are one range. */
static void sum_across(reduce_job *job)
{
    dmi_cuda_reduce *p = &job->p;
    dmi_box part = job->kept;
    int64_t group = 16 / job->bytes, begin[DMI_BOX_SIDES] = {job->offset, 0};
    int inner = part.ndim - 1;
    int64_t n = part.extent[inner], body = n / group * group;
    bool grouped = takes_groups(job) &&
                   dmi_cuda_grouped(&part, IN, job->in, job->offset, job->bytes, group) && body > 0 &&
                   (inner == 0 || body == n);
    for (int d = 0; d < job->summed.ndim; d++) {
        grouped = grouped && (job->summed.extent[d] == 1 || job->summed.stride[IN][d] % group == 0);
    }
    body = grouped ? body : 0;
    if (body > 0) {
        p->group = (int)group;
        part.extent[inner] = body / group;
        part.stride[IN][inner] *= group;
        part.stride[ACC][inner] *= group;
        dmi_cuda_split(&part, begin, true, sum_results, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES] = {begin[IN] + body * job->kept.stride[IN][inner],
                                       body * job->kept.stride[ACC][inner]};
        p->group = 1;
        part = job->kept;
        part.extent[inner] = n - body;
        dmi_cuda_split(&part, rest, true, sum_results, job);
    }
}

static void add_dim(dmi_box *box, int64_t extent, int64_t in_stride, int64_t acc_stride)
{
    box->extent[box->ndim] = extent;
    box->stride[IN][box->ndim] = in_stride;
    box->stride[ACC][box->ndim++] = acc_stride;
}

/* How numbers of elements become indices. */
static void set_places(reduce_job *job, const dmi_reduce *d)
{
    dmi_cuda_places *places = &job->rows.places;
    for (int dim = d->ndim - 1; dim >= 0 && d->index; dim--) {
        const dmi_dimset *set = &d->index[dim];
        if (!(d->reduced >> dim & 1)) {
            continue;
        }
        int64_t first = dmi_dimset_index(set, 0), raw = first + set->origin;
        places->dim[places->ndim++] = (dmi_cuda_place){.extent = d->extent[dim],
                                                       .whole = d->whole[dim],
                                                       .first = first,
                                                       .place = raw / set->block / set->g * set->block + raw % set->block,
                                                       .block = set->block,
                                                       .g = set->g,
                                                       .c = set->c,
                                                       .origin = set->origin};
    }
}

static void begin(reduce_job *job, const dmi_reduce *d)
{
    int acc = dmi_acc_for(d->row, d->dtype);
    assert(acc >= 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS && !d->map);
    job->row = acc >= DMI_ACC_SUMS;
    job->acc = dmi_acc_part(acc);
    job->acc_bytes = dmi_acc_bytes(job->acc);
    job->state_bytes = job->row ? dmi_cuda_state_bytes(acc) : job->acc_bytes;
    job->p.dtype = job->row ? d->dtype : dmi_dtype_part(d->dtype);
    job->bytes = dmi_dtype_bytes(job->p.dtype);
    job->offset = d->offset * dmi_acc_parts(acc);
    job->kept.sides = job->summed.sides = 2;
    job->rows.acc = acc;
    job->rows.number = job->row ? dmi_acc_number(acc) : 0;
}

/* No elements. */
static void reduce_nothing(reduce_job *job, int64_t results)
{
    dmi_queue *q = job->q;
    if (job->row) {
        dmi_cuda_launch_rows_start(q, job->acc, results, job->out);
        return;
    }
    cudaError_t e = cudaMemsetAsync(job->out, 0, (size_t)(results * job->acc_bytes), q->stream);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
    }
}

void dmi_cuda_reduce_box(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc)
{
    reduce_job job = {.q = q, .in = in, .out = acc};
    int64_t results, summed = 1;
    begin(&job, d);
    results = dmi_acc_parts(dmi_acc_for(d->row, d->dtype));
    bool places = job.row && dmi_reductions[d->row].state == DMI_STATE_PLACE;
    int64_t parts = results;
    if (parts > 1) { /* complex: one more kept dim, of the two parts */
        add_dim(&job.kept, parts, 1, 1);
    }
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        bool reduced = d->reduced >> dim & 1;
        int64_t *count = reduced ? &summed : &results;
        add_dim(reduced ? &job.summed : &job.kept, d->extent[dim], d->stride[dim] * parts, reduced && !places ? 0 : *count);
        *count *= d->extent[dim];
    }
    if (results == 0 || summed == 0) {
        if (results > 0) {
            reduce_nothing(&job, results);
        }
        return;
    }
    if (places) {
        set_places(&job, d);
    }
    dmi_box_simplify(&job.kept, ACC);
    dmi_box_simplify(&job.summed, IN);
    int k = job.kept.ndim - 1, r = job.summed.ndim - 1;
    job.p.across = results > 1 && job.summed.stride[IN][r] >= job.kept.stride[IN][k];
    if (job.p.across) {
        sum_across(&job);
    } else {
        sum_along(&job);
    }
}
