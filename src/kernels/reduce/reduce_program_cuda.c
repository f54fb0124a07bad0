/* Reductions of elementwise programs on CUDA: by kernels made for them, else by the elements' way through the
 * workspace. */
#include "kernels/ewise/map_compiled.h"
#include "kernels/ewise/map_source.h"
#include "kernels/reduce/reduce_compiled.h"
#include "kernels/reduce/reduce_cuda.h"
#include "kernels/reduce/reduce_source.h"
#include <assert.h>
#include <string.h>

_Static_assert(sizeof(dmi_reduce_args) <= 4000, "a kernel's parameters have 4 KiB");

void dmi_reduce_box_make(const dmi_box *box, dmi_reduce_box *out)
{
    int64_t items = 1;
    assert(box->ndim >= 1 && box->ndim <= DMI_MAP_ARG_DIMS);
    for (int d = 0; d < box->ndim; d++) {
        int from = box->ndim - 1 - d;
        dmi_cuda_divisor by = dmi_cuda_divide_by(box->extent[from]);
        out->extent[d] = (dmi_map_divisor){by.extent, by.factor, by.shift};
        for (int s = 0; s < box->sides; s++) {
            out->stride[s][d] = box->stride[s][from];
        }
        items *= box->extent[from];
    }
    out->items = (uint32_t)items;
    out->ndim = box->ndim;
}

void dmi_reduce_launch_program(dmi_reduce_job *job, const int64_t *at, void *out)
{
    dmi_reduce_args *a = &job->args;
    const dmi_cuda_reduce *p = &job->p;
    bool groups = p->group > 1;
    int kernel = p->across ? groups ? DMI_REDUCE_KERNEL_across_groups : DMI_REDUCE_KERNEL_across_items
                 : groups  ? DMI_REDUCE_KERNEL_along_groups
                           : DMI_REDUCE_KERNEL_along_items;
    a->base.team = p->team;
    a->base.parts = p->parts;
    a->base.items_per_part = p->items_per_part;
    a->base.tail = p->tail;
    a->base.tail_at = p->tail_at;
    a->base.results = p->results;
    a->base.ticket = p->ticket;
    a->base.acc = p->acc;
    a->last = job->rows.last;
    a->ordered = job->rows.ordered;
    a->place = job->rows.place;
    a->places = job->rows.places;
    a->out = out;
    for (int s = 0; s < job->inputs; s++) {
        if (job->program->program.made[s]) {
            a->linear.first[s] = job->at[s] + at[s];
        } else {
            a->memory[s] = dmi_at(job->in[s], (job->at[s] + at[s]) * job->bytes[s]);
        }
    }
    dmi_cuda_map_launch(job->q, job->kernel[kernel], dmi_cuda_reduce_blocks(p), a);
}

static int64_t elements_of(const dmi_reduce *d, const int64_t *extent)
{
    int64_t n = 1;
    for (int dim = 0; dim < d->ndim; dim++) {
        n *= extent[dim];
    }
    return n;
}

static bool reduce_compiled(const dmi_kernel_call *call, const dmi_reduce *d)
{
    const dmi_map *map = d->map;
    dmi_reduce_job job = {
        .q = call->queue, .program = map, .inputs = map->program.inputs, .out = call->at[map->program.inputs]};
    int64_t bytes = 0, elements = elements_of(d, d->extent);
    for (int s = 0; s < job.inputs; s++) {
        job.in[s] = call->at[s];
        job.bytes[s] = dmi_dtype_bytes(map->dtype[s]);
        job.offset[s] = map->offset[s];
        bytes += map->program.made[s] ? 0 : elements * job.bytes[s];
    }
    if (!dmi_cuda_reduce_kernels(call->queue, d->row, map, bytes, job.kernel)) {
        return false;
    }
    for (int i = 0; i < call->numbers && i < DMI_MAP_ARG_NUMBERS; i++) {
        job.args.number[i] = (dmi_map_scalar){call->number[i].re, call->number[i].im, call->number[i].whole};
    }
    job.group = dmi_map_group_read(map);
    dmi_cuda_linear_of(map->places, &job.args.linear);
    dmi_reduce_run(&job, d, d->extent);
    return true;
}

/* --- piece by piece: a piece's elements are written, reduced, and combined with those of others --- */
typedef struct pieces {
    const dmi_kernel_call *call;
    const dmi_reduce *d;
    void *elements, *acc;
    int64_t count; /* of elements in all */
} pieces;

/* Of a piece: its elements as a dense array. */
static void write_piece(const pieces *p, const int64_t *from, const int64_t *extent, dmi_reduce *dense)
{
    dmi_map map = *p->d->map;
    dmi_kernel_call call = *p->call;
    int out = map.program.inputs;
    int64_t stride = 1;
    map.ndim = p->d->ndim;
    *dense = *p->d;
    dense->map = NULL;
    dense->offset = map.offset[out] = 0;
    for (int dim = p->d->ndim - 1; dim >= 0; dim--) {
        map.extent[dim] = extent[dim];
        map.stride[out][dim] = dense->stride[dim] = stride;
        stride *= extent[dim];
        for (int s = 0; s < out; s++) {
            map.offset[s] += from[dim] * map.stride[s][dim];
        }
    }
    call.desc = &map;
    call.at[out] = p->elements;
    (void)dmi_map_cuda(&call); /* errors stay in the queue */
}

/* acc of all = that combined with acc of the piece */
static void add_piece(const pieces *p, const int64_t *from, const int64_t *extent)
{
    const dmi_reduce *d = p->d;
    dmi_run run[DM_MAX_DIMS];
    dmi_acc_add add = {.acc = dmi_acc_for(d->row, d->dtype), .geometry = {.count = 1}};
    dmi_copy *g = &add.geometry;
    int64_t src = 1, dst = 1;
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        if (!(d->reduced >> dim & 1)) {
            g->src_stride[dim] = src;
            g->dst_stride[dim] = dst;
            g->dst_offset += from[dim] * dst;
            src *= extent[dim];
            dst *= d->extent[dim];
        }
    }
    for (int dim = 0; dim < d->ndim; dim++) {
        if (!(d->reduced >> dim & 1)) {
            run[g->ndim] = (dmi_run){.len = extent[dim]};
            g->run[g->ndim] = &run[g->ndim];
            g->nrun[g->ndim] = 1;
            g->src_stride[g->ndim] = g->src_stride[dim];
            g->dst_stride[g->ndim] = g->dst_stride[dim];
            g->count *= extent[dim];
            g->ndim++;
        }
    }
    if (g->ndim == 0) {
        run[0] = (dmi_run){.len = 1};
        g->run[0] = &run[0];
        g->nrun[0] = g->ndim = 1;
        g->src_stride[0] = g->dst_stride[0] = 1;
    }
    dmi_cuda_acc_add(p->call->queue, &add, p->acc, p->call->at[d->map->program.inputs]);
}

static void reduce_piece(const pieces *p, const int64_t *from, const int64_t *extent)
{
    const dmi_reduce *d = p->d;
    dmi_reduce dense;
    bool whole = elements_of(d, extent) == p->count;
    void *acc = whole ? p->call->at[d->map->program.inputs] : p->acc;
    dmi_reduce_job job = {.q = p->call->queue, .inputs = 1, .in = {p->elements}, .out = acc};
    int64_t weight = 1;
    write_piece(p, from, extent, &dense);
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        if (d->reduced >> dim & 1) {
            job.first_place += from[dim] * weight;
            weight *= d->extent[dim];
        }
    }
    dmi_reduce_run(&job, &dense, extent);
    if (!whole) {
        add_piece(p, from, extent);
    }
}

/* In halves along the longest dim, until a piece has room. */
static void reduce_pieces(const pieces *p, const int64_t *from, const int64_t *extent)
{
    int longest = 0;
    int64_t first[DM_MAX_DIMS] = {0}, part[DM_MAX_DIMS] = {0};
    if (elements_of(p->d, extent) <= DMI_REDUCE_PIECE) {
        reduce_piece(p, from, extent);
        return;
    }
    for (int dim = 0; dim < p->d->ndim; dim++) {
        longest = extent[dim] > extent[longest] ? dim : longest;
        first[dim] = from[dim];
        part[dim] = extent[dim];
    }
    part[longest] = extent[longest] / 2;
    reduce_pieces(p, first, part);
    first[longest] += part[longest];
    part[longest] = extent[longest] - part[longest];
    reduce_pieces(p, first, part);
}

void dmi_cuda_reduce_program(const dmi_kernel_call *call, const dmi_reduce *d)
{
    const int64_t from[DM_MAX_DIMS] = {0};
    pieces p = {.call = call, .d = d, .elements = call->workspace, .count = elements_of(d, d->extent)};
    if (reduce_compiled(call, d)) {
        return;
    }
    p.acc = dmi_at_mut(call->workspace, dmi_reduce_room(d));
    if (p.count > DMI_REDUCE_PIECE || p.count == 0) {
        dmi_reduce_start(call->queue, d, call->at[d->map->program.inputs]);
    }
    if (p.count > 0) {
        reduce_pieces(&p, from, d->extent);
    }
}
