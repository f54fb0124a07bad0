/* A user function, run by every worker on the rectangles it holds. */
#include "ops/apply_parts.h"
#include "ops/common_feed.h"
#include "ops/common_task.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)DMI_APPLY_MEMBERS == 1 + DM_APPLY_OPERANDS, "behind the function and the modes");

dm_status dmi_apply_make(const char *name, int count, const dm_array *arrays, const int *modes,
                         const void *args, int64_t args_bytes, dmi_call *out)
{
    const char *called = dmi_api_called();
    *out = (dmi_call){
        .op = DMI_OP_apply, .noperand = count, .tail = args, .tail_bytes = args_bytes, .called = dmi_api_number()};
    if (!name || (count > 0 && (!arrays || !modes)) || (args_bytes > 0 && !args)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is NULL", called,
                        !name                     ? "name"
                        : args_bytes > 0 && !args ? "args"
                        : !arrays                 ? "arrays"
                                                  : "modes");
    }
    if (count < 0 || count > DM_APPLY_OPERANDS) {
        return dmi_fail(DM_ERR_ARG, "%s: count is %d, not 0 to %d", called, count, DM_APPLY_OPERANDS);
    }
    if (args_bytes < 0 || args_bytes > 65536) {
        return dmi_fail(DM_ERR_ARG, "%s: args_bytes is %" PRId64 ", not 0 to 65536", called, args_bytes);
    }
    out->args.i[0] = dmi_task_find(name);
    if (out->args.i[0] < 0) {
        return dmi_fail(DM_ERR_ARG, "%s: name: no operation %s has been registered", called, name);
    }
    for (int i = 0; i < count; i++) {
        if (modes[i] < DM_READ || modes[i] > DM_READWRITE) {
            return dmi_fail(DM_ERR_ARG, "%s: modes[%d] is %d, not DM_READ, DM_WRITE or DM_READWRITE", called, i,
                            modes[i]);
        }
        out->args.i[1 + i] = modes[i];
    }
    return DM_OK;
}

dm_status dm_apply(dm_session *session, const char *name, int count, const dm_array *arrays, const int *modes,
                   const void *args, int64_t args_bytes)
{
    dmi_call call;
    dm_status status = dmi_apply_make(name, count, arrays, modes, args, args_bytes, &call);
    return status == DM_OK ? dmi_call_submit(session, &call, arrays) : status;
}

dm_status dmi_apply_check_overlap(const dmi_call *call)
{
    for (int i = 0; i < call->noperand; i++) {
        for (int j = 0; j < i; j++) {
            if (((call->operand[i].mode | call->operand[j].mode) & DMI_WRITE) &&
                dmi_operands_overlap(&call->operand[i], &call->operand[j]) != DMI_APART) {
                return dmi_fail(DM_ERR_OVERLAP,
                                "%s: arrays[%d] and arrays[%d] share memory, and one is written",
                                dmi_call_name(call), j, i);
            }
        }
    }
    return DM_OK;
}

/* A function may walk the rectangles of several arrays of one shape together, so they must be the same in
 * all. */
static dm_status check_rectangles(const dmi_call *call)
{
    for (int i = 1; i < call->noperand; i++) {
        for (int j = 0; j < i; j++) {
            const dmi_desc *a = &call->operand[j].desc, *b = &call->operand[i].desc;
            int worker = 0;
            if (dmi_same_extents(a, b) && !dmi_blocks_alike(a, b, &worker)) {
                char x[160], y[160];
                dmi_desc_describe(a, x, sizeof x);
                dmi_desc_describe(b, y, sizeof y);
                return dmi_fail(
                    DM_ERR_LAYOUT,
                    "%s: arrays[%d] (%s) and arrays[%d] (%s) have one shape, but worker %d has other "
                    "rectangles "
                    "of one than of the other: make one like the other (dm_array_like, dm_copy), or use "
                    "dm_apply_with and its option align",
                    dmi_call_name(call), j, x, i, y, worker);
            }
        }
    }
    return DM_OK;
}

dm_status dmi_apply_check(dmi_call *call)
{
    for (int i = 0; i < call->noperand; i++) {
        call->operand[i].mode = call->args.i[1 + i];
    }
    dm_status status = dmi_apply_check_overlap(call);
    return status == DM_OK && call->args.i[0] != DMI_TASK_FEED ? check_rectangles(call) : status;
}

/* Rectangles of one operand here: the products of its regions' runs. */
typedef struct listing {
    dmi_builder *b;
    dm_block *block;
    int64_t *offset;
    int64_t count, room;
} listing;

static void add_region(listing *l, const dmi_desc *desc, const dmi_region *region)
{
    dmi_run *run[DM_MAX_DIMS];
    int64_t n[DM_MAX_DIMS], total = region->count > 0, at[DM_MAX_DIMS] = {0};
    for (int d = 0; d < region->ndim && total > 0; d++) {
        dmi_dimset all = dmi_dimset_interval(0, desc->extent[d]);
        n[d] = dmi_dimset_intersect(&region->dim[d], &all, &l->b->plan->arena, &run[d]);
        l->b->failed = l->b->failed || n[d] < 0;
        total *= DMI_MAX(n[d], 0);
    }
    if (l->b->failed || total == 0) {
        return;
    }
    for (int64_t k = 0; k < total; k++) {
        if (!l->block) { /* counting */
            l->count += total;
            return;
        }
        dm_block *block = &l->block[l->count];
        int64_t offset = dmi_region_start(region);
        *block = (dm_block){.dtype = desc->dtype, .ndim = region->ndim};
        for (int d = 0; d < region->ndim; d++) {
            block->start[d] = run[d][at[d]].index;
            block->extent[d] = run[d][at[d]].len;
            block->stride[d] = region->stride[d];
            offset += run[d][at[d]].a * region->stride[d];
        }
        l->offset[l->count++] = offset;
        for (int d = region->ndim - 1; d >= 0 && ++at[d] == n[d]; d--) {
            at[d] = 0;
        }
    }
}

static void list_rectangles(dmi_builder *b, const dmi_desc *desc, dmi_task_desc *task, int operand)
{
    listing l = {.b = b};
    for (int pass = 0; pass < 2 && !b->failed; pass++) {
        for (int64_t i = 0; i < dmi_desc_region_count(desc, b->me); i++) {
            dmi_region region;
            dmi_desc_region(desc, b->me, i, &region);
            add_region(&l, desc, &region);
        }
        if (pass == 0) {
            l.block = dmi_build_alloc(b, (size_t)l.count * sizeof *l.block + 1);
            l.offset = dmi_build_alloc(b, (size_t)l.count * sizeof *l.offset + 1);
            l.count = 0;
        }
    }
    task->block[operand] = l.block;
    task->offset[operand] = l.offset;
    task->blocks[operand] = l.count;
}

/* Workers of the group that the master has named (DMI_APPLY_MEMBERS), and those that hold a part of an array. */
static bool takes_part(const dmi_call *call, int worker)
{
    uint64_t members = dmi_apply_members(call);
    for (int i = 0; i < call->noperand; i++) {
        members |= call->operand[i].desc.layout->members;
    }
    return members >> worker % 64 & 1;
}

dm_status dmi_apply_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_task_desc task = {.number = call->args.i[0], .workers = b->profile->workers, .gpu = b->profile->gpu};
    dmi_ref refs[DM_APPLY_OPERANDS];
    if (b->me >= b->profile->workers || !takes_part(call, b->me)) {
        return DM_OK;
    }
    for (int i = 0; i < call->noperand; i++) {
        list_rectangles(b, &call->operand[i].desc, &task, i);
        task.mode[i] = call->operand[i].mode;
        refs[i] = dmi_ref_operand(i, call->operand[i].mode);
    }
    /* Not behind kernels that were called before; on CPUs the same thread runs both. */
    dmi_build_channel(b, b->profile->gpu && call->args.i[DMI_APPLY_EARLY] != 0);
    dmi_build_kernel(b, DMI_KERNEL_task, &task, sizeof task, refs, call->noperand, NULL);
    dmi_build_channel(b, 0);
    return DM_OK;
}
