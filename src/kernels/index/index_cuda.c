/* Take, put and what goes before them on CUDA: geometry. */
#include "kernels/index/index_cuda.h"
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

enum { INDICES, LINES, BOX, CLASS };
/* Threads that a put in order is spread over, where its positions allow. */
enum { ORDERED_THREADS = 1 << 17, MOST_CLASSES = 4096 };

typedef struct index_job {
    dmi_queue *q;
    const dmi_index *d;
    dmi_cuda_index p;
    int64_t elem, unit;
    bool ordered;
} index_job;

static void launch(void *context, const dmi_box *part, const int64_t *at)
{
    const index_job *job = context;
    dmi_cuda_index p = job->p;
    dmi_cuda_box_make(part, &p.box);
    p.indices = dmi_at(p.indices, at[INDICES] * p.index_bytes);
    p.lines = dmi_at_mut(p.lines, at[LINES] * job->unit);
    p.values = dmi_at_mut(p.values, at[BOX] * job->unit);
    if (job->ordered && job->d->adds) {
        dmi_cuda_launch_add(job->q, job->d->dtype, &p);
    } else if (job->ordered) {
        dmi_cuda_launch_put(job->q, (int)job->unit, &p);
    } else {
        dmi_cuda_launch_index(job->q, (int)job->unit, &p);
    }
}

/* Elements that go at once: those of the innermost dim, if they are dense and share their index. */
static int64_t widest_unit(const index_job *job, const dmi_box *box)
{
    int inner = box->ndim - 1;
    if (box->stride[LINES][inner] != 1 || box->stride[BOX][inner] != 1 || box->stride[INDICES][inner] != 0) {
        return job->elem;
    }
    uint64_t bits = 16 | (uintptr_t)job->p.lines | (uintptr_t)job->p.values |
                    (uint64_t)(job->p.step * job->elem) | (uint64_t)(job->p.value_step * job->elem) |
                    (uint64_t)(box->extent[inner] * job->elem);
    for (int d = 0; d < inner; d++) {
        bits |= (uint64_t)(box->stride[LINES][d] * job->elem) | (uint64_t)(box->stride[BOX][d] * job->elem);
    }
    return (int64_t)(bits & (0 - bits));
}

static void in_units(index_job *job, dmi_box *box)
{
    int64_t group = job->unit / job->elem;
    job->p.step /= group;
    job->p.value_step /= group;
    box->extent[box->ndim - 1] /= group;
    for (int d = 0; d < box->ndim - 1; d++) {
        box->stride[LINES][d] /= group;
        box->stride[BOX][d] /= group;
    }
}

/* Neighbours in memory stay neighbours: the classes are the outermost dim. */
static void add_classes(index_job *job, dmi_box *box)
{
    int64_t items = 1;
    for (int d = 0; d < box->ndim; d++) {
        items *= box->extent[d];
    }
    int64_t classes = DMI_MIN(DMI_MAX(ORDERED_THREADS / items, 1), MOST_CLASSES);
    job->p.classes = DMI_MIN(classes, job->d->set.count);
    for (int d = box->ndim++; d > 0; d--) {
        box->extent[d] = box->extent[d - 1];
        for (int s = 0; s < box->sides; s++) {
            box->stride[s][d] = box->stride[s][d - 1];
        }
    }
    box->extent[0] = job->p.classes;
    for (int s = 0; s < box->sides; s++) {
        box->stride[s][0] = s == CLASS;
    }
}

static void follow(dmi_queue *q, const dmi_index *d, bool takes, const void *indices, void *lines, void *values)
{
    index_job job = {.q = q, .d = d, .elem = dmi_dtype_bytes(d->dtype), .ordered = !takes && !d->unique};
    dmi_box box = {.sides = job.ordered ? 4 : 3};
    int64_t begin[DMI_BOX_SIDES] = {0};
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0 || d->set.count == 0) {
            return;
        }
        if (job.ordered && k == d->dim) {
            continue;
        }
        box.extent[box.ndim] = d->extent[k];
        box.stride[INDICES][box.ndim] = d->index_stride[k];
        box.stride[LINES][box.ndim] = k == d->dim ? 0 : d->line_stride[k];
        box.stride[BOX][box.ndim++] = d->box_stride[k];
    }
    int64_t index_bytes = dmi_dtype_bytes(d->index_dtype);
    job.p = (dmi_cuda_index){.indices = dmi_at(indices, d->index_offset * index_bytes),
                             .lines = dmi_at_mut(lines, d->line_offset * job.elem),
                             .values = dmi_at_mut(values, d->box_offset * job.elem),
                             .index_dtype = d->index_dtype,
                             .mode = d->mode,
                             .takes = takes,
                             .index_bytes = index_bytes,
                             .n = d->n,
                             .step = d->line_stride[d->dim],
                             .set = d->set,
                             .along = d->extent[d->dim],
                             .index_step = d->index_stride[d->dim],
                             .value_step = job.ordered ? d->box_stride[d->dim] : 0};
    dmi_box_simplify(&box, BOX);
    job.unit = d->adds ? job.elem : widest_unit(&job, &box);
    in_units(&job, &box);
    if (job.ordered) {
        add_classes(&job, &box);
    }
    dmi_cuda_split(&box, begin, false, launch, &job);
}

dm_status dmi_take_cuda(const dmi_kernel_call *call)
{
    follow(call->queue, call->desc, true, call->at[0], call->at[1], call->at[2]);
    return DM_OK;
}

dm_status dmi_put_cuda(const dmi_kernel_call *call)
{
    follow(call->queue, call->desc, false, call->at[0], call->at[2], call->at[1]);
    return DM_OK;
}

dm_status dmi_index_count_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_launch_index_count(call->queue, call->desc, call->at[1], call->at[0]);
    return DM_OK;
}

dm_status dmi_index_sort_cuda(const dmi_kernel_call *call)
{
    dmi_cuda_launch_index_sort(call->queue, call->desc, call->at[0], call->at[1], call->at[2]);
    return DM_OK;
}
