/* out = the reduction of the elements of x up to each along a dim: rows of reduce.def, taken in order */
#include "ops/common_order.h"

#include <dmath/order.h>

#include <string.h>

enum { DIM, ROW }; /* args.i */

static dm_status submit(dm_session *session, int row, dm_array x, int dim, dm_array out)
{
    dmi_call call = {.op = DMI_OP_scan, .noperand = 2, .args = {.i = {[DIM] = dim, [ROW] = row}}};
    return dmi_call_submit(session, &call, (dm_array[]){x, out});
}

#define CALL(name, row)                                                                                        \
    dm_status dm_##name(dm_session *session, dm_array x, int dim, dm_array out)                                \
    {                                                                                                          \
        return submit(session, DMI_REDUCTION_##row, x, dim, out);                                              \
    }
CALL(cumulative_sum, sum)
CALL(cumulative_prod, prod)
CALL(cumulative_max, max)
CALL(cumulative_min, min)
CALL(cumulative_logsumexp, logsumexp)

dm_status dmi_scan_check(dmi_call *call)
{
    dm_dtype x = call->operand[0].desc.dtype, out = call->operand[1].desc.dtype;
    dm_status status = dmi_check_along(call, 1);
    if (status != DM_OK) {
        return status;
    }
    int acc = dmi_acc_for(call->args.i[ROW], x);
    if (acc < 0) {
        return dmi_fail(DM_ERR_DTYPE, "%s: does not take x of %s", dmi_call_name(call), dmi_dtype_name(x));
    }
    if (dmi_dtype_is_complex(x) && !dmi_dtype_is_complex(out)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x is complex, out has dtype %s", dmi_call_name(call),
                        dmi_dtype_name(out));
    }
    return dmi_check_overlap(call, 0, 1, true);
}

/* A scan in its frame. The workers of a *line* share the same rows and have them one range after the other. */
typedef struct scanning {
    dmi_builder *b;
    const dmi_along *along;
    const dmi_layout *layout;
    int row, acc, dim;
    int64_t bytes; /* of an accumulator */
    int position;  /* of this worker in its line */
    int before;    /* workers in the line of which this one gets accumulators */
    int own, received;
    dmi_region region;
    int64_t rows;
} scanning;

/* The worker at that position of this worker's line. */
static int in_line(const scanning *s, int position)
{
    const dmi_layout *layout = s->layout;
    int step = 1, at = layout->position[s->b->me];
    for (int d = s->dim + 1; d < layout->ndim; d++) {
        step *= layout->grid[d];
    }
    return layout->workers[at + (position - s->position) * step];
}

static int position_in_line(const scanning *s)
{
    const dmi_layout *layout = s->layout;
    int at = layout->position[s->b->me] % layout->group;
    for (int d = layout->ndim - 1; d > s->dim; d--) {
        at /= layout->grid[d];
    }
    return at % layout->grid[s->dim];
}

/* Has the worker at that position elements of the rows? */
static bool takes_part(const scanning *s, int position)
{
    dmi_region region;
    dmi_desc_region(&s->along->frame, in_line(s, position), 0, &region);
    return region.count > 0;
}

/* count accumulators as bytes, dense at both ends. */
static void dense_copy(dmi_builder *b, int64_t count, dm_dtype dtype, dmi_copy *copy)
{
    dmi_run *run = dmi_build_alloc(b, sizeof *run);
    *copy = (dmi_copy){.ndim = 1, .src_dtype = dtype, .dst_dtype = dtype, .count = count};
    if (run) {
        *run = (dmi_run){.len = count};
        copy->nrun[0] = 1;
        copy->run[0] = run;
        copy->src_stride[0] = copy->dst_stride[0] = 1;
    }
}

/* The reduction of this worker's part of each row; elements: false: of no elements. */
static dmi_step *reduce_rows(scanning *s, bool elements, int work)
{
    dmi_reduce k = {.ndim = s->region.ndim,
                    .dtype = s->along->frame.dtype,
                    .reduced = 1u << s->dim,
                    .row = s->row,
                    .offset = elements ? dmi_region_start(&s->region) : 0};
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = d == s->dim && !elements ? 0 : s->region.dim[d].count;
        k.stride[d] = s->region.stride[d];
    }
    dmi_ref refs[2] = {s->along->x.ref, dmi_ref_work(work, DMI_WRITE)};
    refs[0].mode = DMI_READ;
    return dmi_build_kernel(s->b, DMI_KERNEL_reduce, &k, sizeof k, refs, 2, NULL);
}

/* Each worker's accumulators go to those behind it in the line, which combine them in order. Returns the
 * workspace with the states before this worker's elements; -1: there is nothing before them. */
static int exchange_starts(scanning *s, dmi_mark ready)
{
    dmi_builder *b = s->b;
    int line = s->layout->grid[s->dim], sent = 0;
    dmi_mark reduced = {0}, arrived = {0};
    dmi_copy copy;
    dense_copy(b, s->rows * s->bytes, DM_U8, &copy);
    for (int t = 1; t < line && !b->failed; t++) {
        int to = s->position + t, from = s->position - t;
        dmi_build_round(b);
        if (from >= 0 && takes_part(s, from)) {
            s->received = s->before == 0 ? dmi_build_work(b, 0) : s->received;
            dmi_ref ref = dmi_ref_work(s->received, DMI_WRITE);
            ref.offset = s->before++ * s->rows * s->bytes;
            dmi_mark_step(arrived, dmi_build_expect(b, in_line(s, from), ref, &copy, NULL));
        }
        if (to < line && takes_part(s, to)) {
            if (sent++ == 0) {
                s->own = dmi_build_work(b, s->rows * s->bytes);
                dmi_mark_step(reduced, reduce_rows(s, true, s->own));
            }
            dmi_build_push(b, in_line(s, to), dmi_ref_work(s->own, DMI_READ), &copy, reduced);
        }
    }
    dmi_mark_merge(ready, reduced);
    if (s->before == 0 || b->failed) {
        return -1;
    }
    b->plan->work_bytes[s->received] = s->before * s->rows * s->bytes;
    int start = dmi_build_work(b, s->rows * s->bytes);
    dmi_mark_step(arrived, reduce_rows(s, false, start));
    for (int i = s->before - 1; i >= 0; i--) { /* the nearest came first */
        dmi_acc_add add = {.acc = s->acc};
        dmi_ref refs[2] = {dmi_ref_work(s->received, DMI_READ), dmi_ref_work(start, DMI_READWRITE)};
        refs[0].offset = i * s->rows * s->bytes;
        dense_copy(b, s->rows, DM_F64, &add.geometry);
        dmi_mark_step(arrived, dmi_build_kernel(b, DMI_KERNEL_acc_add, &add, sizeof add, refs, 2, arrived));
    }
    dmi_mark_merge(ready, arrived);
    return start;
}

static void scan_here(scanning *s, const dmi_value *out)
{
    dmi_region to;
    dmi_mark ready = {0};
    dmi_desc_region(out->desc, s->b->me, 0, &to);
    int start = exchange_starts(s, ready);
    dmi_scan k = {.ndim = s->region.ndim,
                  .dim = s->dim,
                  .row = s->row,
                  .dtype = s->along->frame.dtype,
                  .out_dtype = out->desc->dtype,
                  .starts = start >= 0,
                  .offset = dmi_region_start(&s->region),
                  .out_offset = dmi_region_start(&to)};
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = s->region.dim[d].count;
        k.stride[d] = s->region.stride[d];
        k.out_stride[d] = to.stride[d];
    }
    dmi_ref refs[3] = {s->along->x.ref, out->ref};
    refs[0].mode = DMI_READ;
    refs[1].mode = DMI_WRITE;
    if (start >= 0) {
        refs[2] = dmi_ref_work(start, DMI_READ);
    }
    dmi_build_kernel(s->b, DMI_KERNEL_scan, &k, sizeof k, refs, start >= 0 ? 3 : 2, ready);
}

dm_status dmi_scan_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_along along;
    dmi_along_out o, *outs[1] = {&o};
    dmi_value x = dmi_value_operand(call, 0), out = dmi_value_operand(call, 1);
    dmi_team team;
    scanning s = {.b = b, .along = &along, .row = call->args.i[ROW], .dim = call->args.i[DIM]};
    if (!dmi_build_team(b, call, &team)) {
        return DM_OK;
    }
    dm_status status = dmi_along_begin(b, &team, &x, s.dim, false, &out, &along);
    status = status == DM_OK ? dmi_along_output(b, &along, &out, out.desc->dtype, &o) : status;
    if (status != DM_OK || b->failed) {
        return status;
    }
    s.layout = along.frame.layout;
    s.acc = dmi_acc_for(s.row, along.frame.dtype);
    s.bytes = dmi_acc_bytes(s.acc);
    if (b->me < b->profile->workers && dmi_desc_region_count(&along.frame, b->me) > 0) {
        dmi_desc_region(&along.frame, b->me, 0, &s.region);
        s.position = position_in_line(&s);
        s.rows = s.region.count > 0 ? s.region.count / s.region.dim[s.dim].count : 0;
        if (s.rows > 0) {
            scan_here(&s, &o.made);
        }
    }
    return dmi_along_end(b, outs, 1);
}
