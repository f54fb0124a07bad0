/* dmi_reduce on CUDA: along or across, in how many partial sums, which are in the queue's workspace. */
#include "kernels/reduce/reduce_cuda.h"

#include "kernels/ewise/map_compiled.h"
#include <assert.h>
#include <cuda_runtime_api.h>

/* FULL: thread blocks that fill any device; FULL_OF_ONE: of a row for one result, where combining the states of
 * threads takes long. The number of partial sums, and so the order of a sum, depends on the descriptor alone.
 * LEAST_GROUPS: groups of elements that a thread has at least of a partial sum; LEAST_BYTES: bytes of a column
 * that make a partial sum, for it is written and read again. */
enum {
    FULL = 4096,
    FULL_OF_ONE = 1024,
    LEAST_GROUPS = 8,
    WARP = 32,
    LONG_ROW = 1024,
    ROW = 256,
    FEW_RESULTS = 8192,
    FEW_ROWS = 8,
    LEAST_BYTES = 256
};

static int64_t power_of_two(int64_t least, int64_t most)
{
    int64_t p = 1;
    while (p < least && p < most) {
        p *= 2;
    }
    return p;
}

/* Threads side by side, and partial sums of a result: as many as fill the device, each of some size. Of many results each has
 * a warp, where combining states takes long: the other warps of its thread block need not wait. */
static void choose_shape(dmi_cuda_reduce *p, bool row)
{
    int64_t items = p->summed.items, kept = p->kept.items, blocks = FULL, rows = 1, parts = 1, least = 1;
    if (p->across) {
        /* few rows: a thread adds all of them, and none has nothing to add */
        p->team = (uint32_t)power_of_two(kept, items <= FEW_ROWS ? DMI_CUDA_THREADS : WARP);
        rows = DMI_CUDA_THREADS / p->team;
        blocks = (kept + p->team - 1) / p->team;
        least = LEAST_BYTES / dmi_dtype_bytes(p->dtype);
    } else if ((items >= LONG_ROW && !(row && kept >= FEW_RESULTS)) || (items >= ROW && kept < FEW_RESULTS)) {
        p->team = rows = DMI_CUDA_THREADS;
        blocks = kept;
    } else {
        p->team = (uint32_t)power_of_two((items + 3) / 4, WARP);
    }
    const int64_t full = row && blocks == 1 && !p->across ? FULL_OF_ONE : FULL;
    if (blocks < full) {
        parts = DMI_MIN(full / blocks, DMI_MAX(items / DMI_MAX(rows * LEAST_GROUPS, least), 1));
    }
    p->items_per_part = (uint32_t)((items + parts - 1) / parts);
    p->parts = (uint32_t)((items + p->items_per_part - 1) / p->items_per_part);
}

static int64_t items_of(const dmi_box *box)
{
    int64_t items = 1;
    for (int d = 0; d < box->ndim; d++) {
        items *= box->extent[d];
    }
    return items;
}

/* Of a compiled kernel the boxes have more sides: base has the numbers of their items alone. */
static void make_box(const dmi_reduce_job *job, const dmi_box *part, dmi_cuda_box *box, dmi_reduce_box *args)
{
    if (job->program) {
        box->items = (uint32_t)items_of(part);
        dmi_reduce_box_make(part, args);
    } else {
        dmi_cuda_box_make(part, box);
    }
}

static void sum_range(void *context, const dmi_box *part, const int64_t *at)
{
    dmi_reduce_job *job = context;
    dmi_cuda_reduce *p = &job->p;
    void *sums = dmi_at_mut(job->out, job->result_at * job->acc_bytes);
    make_box(job, part, &p->summed, &job->args.base.summed);
    choose_shape(p, job->row);
    bool joins = job->one_launch && p->parts > 1 && p->results == 1;
    p->ticket = joins ? job->q->ticket : NULL;
    p->acc = sums;
    job->joined = joins;
    if (!job->one_launch || p->parts > 1) {
        sums = dmi_at_mut(job->q->workspace, job->parts * p->results * job->state_bytes);
        job->parts += p->parts;
        assert(job->parts * p->results * job->state_bytes <= job->q->workspace_bytes);
    }
    job->rows.base = *p;
    job->rows.last = job->parts == 0;
    job->rows.place = at[job->inputs];
    if (job->program) {
        dmi_reduce_launch_program(job, at, sums);
    } else {
        const void *in = dmi_at(job->in[0], (job->at[0] + at[0]) * job->bytes[0]);
        if (job->row) {
            dmi_cuda_launch_rows(job->q, &job->rows, in, sums);
        } else {
            dmi_cuda_launch_reduce(job->q, p, in, sums);
        }
    }
    p->tail = 0; /* one of the sums has it */
}

static void sum_results(void *context, const dmi_box *part, const int64_t *at)
{
    dmi_reduce_job *job = context;
    dmi_cuda_reduce *p = &job->p;
    int64_t begin[DMI_BOX_SIDES] = {0};
    uint32_t tail = p->tail;
    memcpy(job->at, at, sizeof job->at);
    job->result_at = at[job->inputs];
    job->one_launch = items_of(&job->summed) <= DMI_CUDA_ITEMS;
    job->parts = 0;
    job->joined = false;
    make_box(job, part, &p->kept, &job->args.base.kept);
    p->results = (int64_t)p->kept.items * (p->across ? p->group : 1);
    job->rows.narrow = job->program ? p->dtype == DM_F32 : p->group > 1 && p->dtype != DM_F64;
    begin[job->inputs] = job->first_place;
    dmi_cuda_split(&job->summed, begin, true, sum_range, job);
    if (job->parts > 0 && !job->joined) {
        void *acc = dmi_at_mut(job->out, job->result_at * job->acc_bytes);
        if (job->row) {
            job->rows.base = *p;
            job->rows.last = true;
            dmi_cuda_launch_rows_join(job->q, &job->rows, job->parts, job->q->workspace, acc);
        } else { /* of complex sums of a program, part by part */
            int64_t numbers = p->results * (job->program ? dmi_acc_parts(job->rows.acc) : 1);
            dmi_cuda_launch_join(job->q, job->acc, job->parts, numbers, job->q->workspace, acc);
        }
    }
    p->tail = tail; /* for the next results */
}

/* Are there kernels for groups of elements? */
static bool takes_groups(const dmi_reduce_job *job)
{
    dm_dtype dtype = job->p.dtype;
    if (job->program) {
        return job->group > 1;
    }
    if (!job->row) {
        return dmi_cuda_hot(dtype);
    }
    if (dmi_acc_takes(job->acc) == DM_BOOL && dmi_reductions[dmi_acc_row(job->acc)].domain == DMI_EW_BOOL) {
        return dmi_cuda_hot(dtype) || dtype == DM_BOOL;
    }
    return dmi_cuda_hot(dtype) && dmi_acc_takes(job->acc) == dtype;
}

/* Can the box be read in groups along its innermost dim, all inputs of it? Of some inputs one element may serve a whole
 * group. */
static bool grouped(dmi_reduce_job *job, const dmi_box *box, const dmi_box *beside)
{
    bool fits = takes_groups(job);
    for (int s = 0; s < job->inputs && fits; s++) {
        if (job->program && job->program->program.made[s]) {
            continue;
        }
        bool splat = job->program && box->stride[s][box->ndim - 1] == 0;
        job->args.splat[s] = splat;
        fits = splat || dmi_cuda_grouped(box, s, job->in[s], job->offset[s], job->bytes[s], job->group);
        for (int d = 0; d < beside->ndim && !splat; d++) {
            fits = fits && (beside->extent[d] == 1 || beside->stride[s][d] % job->group == 0);
        }
    }
    return fits;
}

/* The innermost dim in groups. */
static void in_groups(const dmi_reduce_job *job, dmi_box *box, int64_t groups)
{
    int inner = box->ndim - 1;
    box->extent[inner] = groups;
    for (int s = 0; s <= job->inputs; s++) {
        box->stride[s][inner] *= job->group;
    }
}

/* Rows in groups; what is beyond the last group of a row only where the row is one range. */
static void sum_along(dmi_reduce_job *job)
{
    dmi_cuda_reduce *p = &job->p;
    dmi_box *rows = &job->summed;
    int inner = rows->ndim - 1;
    int64_t n = rows->extent[inner];
    bool fits = grouped(job, rows, &job->kept) && n >= job->group && (inner == 0 || n % job->group == 0);
    p->group = fits ? (int)job->group : 1;
    if (fits) {
        p->tail = (uint32_t)(n % job->group);
        p->tail_at = n - p->tail;
        in_groups(job, rows, n / job->group);
    }
    dmi_cuda_split(&job->kept, job->offset, true, sum_results, job);
}

/* Results in groups; what is beyond the last group only where the results are one range. */
static void sum_across(dmi_reduce_job *job)
{
    dmi_cuda_reduce *p = &job->p;
    dmi_box part = job->kept;
    int inner = part.ndim - 1;
    int64_t n = part.extent[inner], body = n / job->group * job->group;
    bool fits = grouped(job, &part, &job->summed) && body > 0 && (inner == 0 || body == n);
    body = fits ? body : 0;
    if (body > 0) {
        p->group = (int)job->group;
        in_groups(job, &part, body / job->group);
        dmi_cuda_split(&part, job->offset, true, sum_results, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES];
        for (int s = 0; s <= job->inputs; s++) {
            rest[s] = job->offset[s] + body * job->kept.stride[s][inner];
        }
        p->group = 1;
        part = job->kept;
        part.extent[inner] = n - body;
        dmi_cuda_split(&part, rest, true, sum_results, job);
    }
}

/* strides of the inputs, and of what counts elements or results */
static void add_dim(const dmi_reduce_job *job, dmi_box *box, int64_t extent, const int64_t *stride, int64_t number)
{
    box->extent[box->ndim] = extent;
    for (int s = 0; s < job->inputs; s++) {
        box->stride[s][box->ndim] = stride[s];
    }
    box->stride[job->inputs][box->ndim++] = number;
}

/* How numbers of elements become indices. */
static void set_places(dmi_reduce_job *job, const dmi_reduce *d)
{
    dmi_cuda_places *places = &job->rows.places;
    for (int dim = d->ndim - 1; dim >= 0 && d->index; dim--) {
        const dmi_dimset *set = &d->index[dim];
        if (!(d->reduced >> dim & 1)) {
            continue;
        }
        places->dim[places->ndim++] = dmi_cuda_place_of(set, d->extent[dim], d->whole[dim]);
    }
}

static void begin(dmi_reduce_job *job, const dmi_reduce *d)
{
    int acc = dmi_acc_for(d->row, d->dtype);
    assert(acc >= 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    job->row = acc >= DMI_ACC_SUMS;
    job->acc = dmi_acc_part(acc);
    job->acc_bytes = dmi_acc_bytes(job->program ? acc : job->acc);
    job->state_bytes = job->row ? dmi_cuda_state_bytes(acc) : job->acc_bytes;
    job->p.dtype = job->row ? d->dtype : dmi_dtype_part(d->dtype);
    job->kept.sides = job->summed.sides = job->inputs + 1;
    job->rows.acc = acc;
    job->rows.number = job->row ? dmi_acc_number(acc) : 0;
    if (!job->program) {
        job->bytes[0] = dmi_dtype_bytes(job->p.dtype);
        job->offset[0] = d->offset * dmi_acc_parts(acc);
        job->group = 16 / job->bytes[0];
    }
}

/* No elements. */
static void reduce_nothing(dmi_reduce_job *job, int64_t results)
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

/* The input whose strides decide on the order of dims: the one with fewest dims that it repeats. */
static int leader(const dmi_reduce_job *job, const dmi_reduce *d)
{
    int best = 0, most = -1;
    for (int s = 0; s < job->inputs && job->program; s++) {
        int dims = 0;
        for (int dim = 0; dim < d->ndim; dim++) {
            dims += d->map->stride[s][dim] != 0;
        }
        dims = d->map->program.made[s] ? 0 : dims;
        best = dims > most ? s : best;
        most = DMI_MAX(most, dims);
    }
    return best;
}

/* Are the elements of a thread counted in rising order? */
static bool in_order(const dmi_box *summed, int side)
{
    bool rising = true;
    for (int d = summed->ndim - 1; d > 0; d--) {
        rising = rising && summed->stride[side][d - 1] >= summed->stride[side][d] * summed->extent[d];
    }
    return rising;
}

void dmi_reduce_run(dmi_reduce_job *job, const dmi_reduce *d, const int64_t *extent)
{
    int64_t results, summed = 1, parts, number[2];
    begin(job, d);
    parts = job->program ? 1 : dmi_acc_parts(job->rows.acc);
    results = number[0] = parts;
    number[1] = 1;
    bool places = job->row && dmi_reductions[d->row].state == DMI_STATE_PLACE;
    if (parts > 1) { /* complex: one more kept dim, of the two parts */
        add_dim(job, &job->kept, parts, (int64_t[]){1}, 1);
    }
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        bool reduced = d->reduced >> dim & 1;
        int64_t stride[DMI_MAP_INPUTS] = {d->stride[dim] * parts};
        for (int s = 0; s < job->inputs && job->program; s++) {
            stride[s] = d->map->stride[s][dim];
        }
        add_dim(job, reduced ? &job->summed : &job->kept, extent[dim], stride, reduced && !places ? 0 : number[reduced]);
        *(reduced ? &summed : &results) *= extent[dim];
        number[reduced] *= reduced ? d->extent[dim] : extent[dim]; /* elements are counted in all of d */
    }
    if (results == 0 || summed == 0) {
        if (results > 0) {
            reduce_nothing(job, results * (job->program ? dmi_acc_parts(job->rows.acc) : 1));
        }
        return;
    }
    if (places) {
        set_places(job, d);
    }
    int lead = leader(job, d);
    dmi_box_simplify(&job->kept, job->inputs);
    dmi_box_simplify(&job->summed, lead);
    int k = job->kept.ndim - 1, r = job->summed.ndim - 1;
    job->p.across = results > 1 && job->summed.stride[lead][r] >= job->kept.stride[lead][k];
    job->rows.ordered = in_order(&job->summed, job->inputs);
    if (job->p.across) {
        sum_across(job);
    } else {
        sum_along(job);
    }
}

void dmi_reduce_start(dmi_queue *q, const dmi_reduce *d, void *acc)
{
    dmi_reduce_job job = {.q = q, .inputs = 1, .out = acc};
    begin(&job, d);
    int64_t results = dmi_acc_parts(job.rows.acc);
    for (int dim = 0; dim < d->ndim; dim++) {
        results *= d->reduced >> dim & 1 ? 1 : d->extent[dim];
    }
    if (results > 0) {
        reduce_nothing(&job, results);
    }
}

void dmi_cuda_reduce_box(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc)
{
    dmi_reduce_job job = {.q = q, .inputs = 1, .in = {in}, .out = acc};
    assert(!d->map);
    dmi_reduce_run(&job, d, d->extent);
}
