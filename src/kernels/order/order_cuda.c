/* Scans, sorting, searching and counting on CUDA: geometry. */
#include "kernels/order/order_cuda.h"
#include "kernels/box/convert.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <string.h>

/* --- scan --- */
enum { IN, OUT, ROW, SHORT = 64, NEIGHBOURS = 32 };

typedef void launcher(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out);
static launcher *launcher_of(int row)
{
    switch (row) {
    case DMI_REDUCTION_sum:
        return dmi_cuda_launch_scan_sum;
    case DMI_REDUCTION_prod:
        return dmi_cuda_launch_scan_prod;
    case DMI_REDUCTION_min:
        return dmi_cuda_launch_scan_min;
    case DMI_REDUCTION_max:
        return dmi_cuda_launch_scan_max;
    case DMI_REDUCTION_logsumexp:
        return dmi_cuda_launch_scan_logsumexp;
    default:
        return NULL;
    }
}

typedef struct scan_job {
    dmi_queue *q;
    launcher *launch;
    dmi_cuda_scan p;
    int64_t in_bytes, out_bytes;
    const void *in, *starts;
    void *out;
} scan_job;

static void scan_rows(void *context, const dmi_box *part, const int64_t *at)
{
    scan_job *job = context;
    const char *starts = job->starts;
    dmi_cuda_box_make(part, &job->p.rows);
    job->launch(job->q, &job->p, dmi_at(job->in, at[IN] * job->in_bytes),
                starts ? starts + at[ROW] * dmi_acc_bytes(job->p.acc) : NULL,
                dmi_at_mut(job->out, at[OUT] * job->out_bytes));
}

dm_status dmi_scan_cuda(const dmi_kernel_call *call)
{
    const dmi_scan *d = call->desc;
    int acc = dmi_acc_for(d->row, d->dtype), parts = dmi_acc_parts(acc);
    int64_t rows = 1, begin[DMI_BOX_SIDES] = {d->offset * parts, d->out_offset * parts};
    dmi_box box = {.sides = 3};
    scan_job job = {.q = call->queue,
                    .launch = launcher_of(d->row),
                    .in = call->at[0],
                    .out = call->at[1],
                    .starts = d->starts ? call->at[2] : NULL};
    job.p = (dmi_cuda_scan){.acc = dmi_acc_part(acc),
                            .n = d->extent[d->dim],
                            .in_stride = d->stride[d->dim] * parts,
                            .out_stride = d->out_stride[d->dim] * parts,
                            .dtype = parts > 1 ? dmi_dtype_part(d->dtype) : d->dtype,
                            .out_dtype = parts > 1 ? dmi_dtype_part(d->out_dtype) : d->out_dtype,
                            .number = acc < DMI_ACC_SUMS ? 0 : dmi_acc_number(acc)};
    job.in_bytes = dmi_dtype_bytes(job.p.dtype);
    job.out_bytes = dmi_dtype_bytes(job.p.out_dtype);
    for (int dim = d->ndim; dim >= 0; dim--) { /* the last one: the parts of complex sums */
        bool part = dim == d->ndim;
        if (dim == d->dim || (part && parts == 1)) {
            continue;
        }
        box.extent[box.ndim] = part ? parts : d->extent[dim];
        box.stride[IN][box.ndim] = part ? 1 : d->stride[dim] * parts;
        box.stride[OUT][box.ndim] = part ? 1 : d->out_stride[dim] * parts;
        box.stride[ROW][box.ndim] = rows;
        rows *= box.extent[box.ndim++];
    }
    if (rows == 0 || job.p.n == 0) {
        return DM_OK;
    }
    if (job.launch == NULL) {
        dmi_cuda_failed(call->queue, "scan", -1, "a plan has made one that the kernel does not do");
        return DM_OK;
    }
    dmi_box_simplify(&box, IN);
    int inner = box.ndim - 1;
    job.p.across =
        job.p.n <= SHORT || (box.extent[inner] >= NEIGHBOURS && box.stride[IN][inner] < job.p.in_stride);
    dmi_cuda_split(&box, begin, true, scan_rows, &job);
    return DM_OK;
}

/* --- sort --- */
enum { X, VALUES, INDICES, CARRIED, SIDES };

typedef struct sort_job {
    const dmi_sort *d;
    dmi_queue *q;
    const void *x;
    void *values;
    int64_t *indices;
    const int64_t *carried;
    dmi_cuda_sort p;
} sort_job;

static void sort_together(sort_job *job, const dmi_box *rows, const int64_t *at)
{
    dmi_cuda_sort *p = &job->p;
    dmi_cuda_box_make(rows, &p->rows);
    p->count = p->n * p->rows.items;
    const void *x = dmi_at(job->x, at[X] * p->bytes);
    void *values = job->values ? dmi_at_mut(job->values, at[VALUES] * p->bytes) : NULL;
    const bool direct = job->values != job->x;
    if (p->alone) {
        (p->kind == DMI_SORT_FLOAT    ? dmi_cuda_launch_sort_floats
         : p->kind == DMI_SORT_SIGNED ? dmi_cuda_launch_sort_signed
                                      : dmi_cuda_launch_sort_unsigned)(job->q, p, x, values, direct);
        return;
    }
    (p->wide ? dmi_cuda_launch_sort_wide : dmi_cuda_launch_sort)(
        job->q, p, x, values, direct, job->indices ? job->indices + at[INDICES] : NULL,
        job->carried ? job->carried + at[CARRIED] : NULL);
}

/* Ranges of the outermost dim, each with as many rows as may be sorted together; inside of long ones, of the
 * next. */
static void sort_rows(sort_job *job, const dmi_box *rows, const int64_t *at)
{
    int64_t inner = job->p.n;
    int64_t here[DMI_BOX_SIDES];
    int dim = 0;
    memcpy(here, at, sizeof here);
    while (dim < rows->ndim - 1 && rows->extent[dim] == 1) {
        dim++;
    }
    for (int d = dim + 1; d < rows->ndim; d++) {
        inner *= rows->extent[d];
    }
    int64_t together = DMI_MAX(DMI_SORT_TOGETHER / inner, 1);
    for (int64_t i = 0; i < rows->extent[dim]; i += together) {
        dmi_box part = *rows;
        part.extent[dim] = DMI_MIN(together, rows->extent[dim] - i);
        if (part.extent[dim] == 1 && inner > DMI_SORT_TOGETHER && dim < rows->ndim - 1) {
            sort_rows(job, &part, here);
        } else {
            sort_together(job, &part, here);
        }
        for (int side = 0; side < SIDES; side++) {
            here[side] += together * rows->stride[side][dim];
        }
    }
}

dm_status dmi_sort_cuda(const dmi_kernel_call *call)
{
    const dmi_sort *d = call->desc;
    dmi_box box = {.sides = SIDES};
    int64_t begin[DMI_BOX_SIDES] = {d->offset, d->value_offset, d->index_offset, d->carried_offset}, total = 1;
    int ref = 2;
    sort_job job = {.d = d, .q = call->queue, .x = call->at[0]};
    job.values = d->values ? call->at[ref++] : NULL;
    job.indices = d->indices ? call->at[ref++] : NULL;
    job.carried = d->carried ? call->at[ref] : NULL;
    for (int dim = 0; dim < d->ndim; dim++) {
        total *= d->extent[dim];
        if (dim != d->dim) {
            box.extent[box.ndim] = d->extent[dim];
            box.stride[X][box.ndim] = d->stride[dim];
            box.stride[VALUES][box.ndim] = d->value_stride[dim];
            box.stride[INDICES][box.ndim] = d->index_stride[dim];
            box.stride[CARRIED][box.ndim++] = d->carried_stride[dim];
        }
    }
    if (total == 0 || d->most == 0) {
        return DM_OK;
    }
    dmi_box_simplify(&box, X);
    int64_t n = d->extent[d->dim], bytes = dmi_dtype_bytes(d->dtype);
    dmi_sort_room room;
    dmi_sort_scratch_cuda(d, &room);
    char *scratch = call->at[1];
    assert(room.bytes <= d->scratch);
    job.p = (dmi_cuda_sort){.n = n,
                            .most = d->most,
                            .first = d->first,
                            .stride = {d->stride[d->dim], d->value_stride[d->dim], d->index_stride[d->dim],
                                       d->carried_stride[d->dim]},
                            .bytes = (int)bytes,
                            .kind = dmi_sort_kind(d->dtype),
                            .descending = d->descending,
                            .wide = d->wide,
                            .alone = dmi_sort_alone(d),
                            .most_bits = dmi_dtype_is_float(d->dtype) ? dmi_sort_most(d->dtype) : 0,
                            .key = {scratch, scratch + room.key},
                            .place = {scratch + 2 * room.key, scratch + 2 * room.key + room.place},
                            .temporary = scratch + 2 * room.key + 2 * room.place,
                            .temporary_bytes = room.temporary};
    sort_rows(&job, &box, begin);
    return DM_OK;
}

/* --- search, histogram --- */
typedef struct item_job {
    const dmi_kernel_call *call;
    bool search;
} item_job;

static void each_item(void *context, const dmi_box *part, const int64_t *at)
{
    const item_job *job = context;
    const dmi_kernel_call *call = job->call;
    dmi_cuda_box box;
    dmi_cuda_box_make(part, &box);
    if (job->search) {
        const dmi_search *d = call->desc;
        dmi_cuda_launch_search(
            call->queue, &box, d, dmi_at(call->at[0], d->sorted_offset * dmi_dtype_bytes(d->stored)),
            dmi_at(call->at[1], at[0] * dmi_dtype_bytes(d->dtype)), (int64_t *)call->at[2] + at[1]);
        return;
    }
    const dmi_histogram *d = call->desc;
    const void *weights = d->weights ? dmi_at(call->at[2], at[1] * dmi_dtype_bytes(d->weights)) : NULL;
    dmi_cuda_launch_histogram(call->queue, &box, d, dmi_at(call->at[0], at[0] * dmi_dtype_bytes(d->dtype)),
                              weights, d->kind == DMI_BINS_EDGES ? call->at[d->weights ? 3 : 2] : NULL,
                              call->at[1]);
}

/* Two sides over a box; nothing where that is empty. */
static void over_box(item_job *job, int ndim, const int64_t *extent, const int64_t *a, const int64_t *b,
                     const int64_t begin[DMI_BOX_SIDES])
{
    dmi_box box = {.ndim = ndim, .sides = 2};
    for (int d = 0; d < ndim; d++) {
        if (extent[d] == 0) {
            return;
        }
        box.extent[d] = extent[d];
        box.stride[0][d] = a[d];
        box.stride[1][d] = b[d];
    }
    dmi_box_simplify(&box, 0);
    dmi_cuda_split(&box, begin, false, each_item, job);
}

dm_status dmi_search_cuda(const dmi_kernel_call *call)
{
    const dmi_search *d = call->desc;
    over_box(&(item_job){call, true}, d->ndim, d->extent, d->stride, d->out_stride,
             (int64_t[DMI_BOX_SIDES]){d->offset, d->out_offset});
    return DM_OK;
}

dm_status dmi_histogram_cuda(const dmi_kernel_call *call)
{
    const dmi_histogram *d = call->desc;
    if (!d->adds && d->bins > 0) {
        cudaError_t e = cudaMemsetAsync(call->at[1], 0, (size_t)d->bins * 8, call->queue->stream);
        if (e != cudaSuccess) {
            dmi_cuda_failed(call->queue, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
            return DM_OK;
        }
    }
    if (d->bins > 0) {
        over_box(&(item_job){call, false}, d->ndim, d->extent, d->stride, d->weight_stride,
                 (int64_t[DMI_BOX_SIDES]){d->offset, d->weight_offset});
    }
    return DM_OK;
}
