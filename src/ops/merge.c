/* The last step of a sort by all workers: elements go to the worker in whose shard of out they belong, and are
 * merged there */
#include "ops/common_order.h"
#include "ops/session.h"
#include "plan/exchange.h"

#include <assert.h>

enum { DIM, DESCENDING }; /* args.i; the tail: the table of rows */

/* The table of rows is the library's own: this is for its mistakes, before any worker waits for another one. */
static dm_status check_rows(dm_session *session, const int64_t *rows, int workers, dm_array out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    const dmi_desc *to = status == DM_OK ? dmi_array_desc(s, out) : NULL;
    for (int me = 0; me < workers && status == DM_OK; me++) {
        int64_t gets = 0, holds = dmi_desc_local_count(to, me);
        for (int w = 0; w < workers; w++) {
            gets += rows[(int64_t)w * workers + me];
        }
        if (gets != holds) {
            status = dmi_fail(DM_ERR_INTERNAL, "merge: worker %d gets %lld elements, and holds %lld", me,
                              (long long)gets, (long long)holds);
        }
    }
    return status;
}

dm_status dmi_merge(dm_session *session, bool descending, int dim, const int64_t *rows, int workers, dm_array x,
                    dm_array indices, dm_array out)
{
    int64_t bytes = (int64_t)workers * workers * (int64_t)sizeof *rows;
    dmi_call call = {.op = DMI_OP_merge,
                     .args = {.i = {[DIM] = dim, [DESCENDING] = descending}},
                     .tail = rows,
                     .tail_bytes = bytes,
                     .tail_key = bytes};
    dm_array arrays[3] = {x, indices, out};
    call.noperand = indices.id ? 3 : 2;
    if (!indices.id) {
        arrays[1] = out;
    }
    dm_status status = check_rows(session, rows, workers, out);
    return status == DM_OK ? dmi_call_submit(session, &call, arrays) : status;
}

dm_status dmi_merge_check(dmi_call *call) /* the library's own: what it is given fits */
{
    call->operand[call->noperand - 1].mode = DMI_WRITE;
    return DM_OK;
}

/* The rows of operand number `which` that belong to this worker. Returns the workspace where they come. */
static int exchange(dmi_builder *b, const dmi_call *call, int which, dmi_mark done)
{
    dmi_value x = dmi_value_operand(call, which);
    dmi_exchange e = {.rows = call->tail, .row_bytes = dmi_dtype_bytes(x.desc->dtype), .from = x.ref};
    int workers = b->profile->workers, work = 0;
    if (b->me < workers) {
        dmi_region region;
        dmi_desc_region(x.desc, b->me, 0, &region);
        e.from.offset = region.count > 0 ? dmi_region_start(&region) * e.row_bytes : 0;
        work = dmi_build_work(b, dmi_exchange_taken(&e, workers, b->me, workers) * e.row_bytes);
    }
    e.to = dmi_ref_work(work, DMI_WRITE);
    dmi_plan_exchange(b, &e, NULL, NULL, done);
    return work;
}

/* Where the rows of each worker begin among those that came. */
static const int64_t *runs_of(dmi_builder *b, const int64_t *rows, int *count)
{
    int workers = b->profile->workers;
    int64_t at = 0, *run = dmi_build_alloc(b, ((size_t)workers + 1) * sizeof *run);
    *count = 0;
    for (int w = 0; w < workers && run; w++) {
        int64_t n = rows[(int64_t)w * workers + b->me];
        if (n > 0) {
            run[(*count)++] = at;
            at += n;
        }
    }
    if (run) {
        run[*count] = at;
    }
    return run;
}

dm_status dmi_merge_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_mark ready = {0};
    bool indices = call->noperand == 3;
    dmi_value x = dmi_value_operand(call, 0), out = dmi_value_operand(call, call->noperand - 1);
    int work = exchange(b, call, 0, ready), carried = indices ? exchange(b, call, 1, ready) : 0;
    if (b->me >= b->profile->workers || b->failed) {
        return DM_OK;
    }
    dmi_sort k = {.ndim = 1,
                  .dtype = x.desc->dtype,
                  .descending = call->args.i[DESCENDING],
                  .values = !indices,
                  .indices = indices,
                  .carried = indices,
                  .stride = {1},
                  .carried_stride = {1}};
    dmi_region region;
    dmi_desc_region(out.desc, b->me, 0, &region);
    k.run = runs_of(b, call->tail, &k.runs);
    if (b->failed || k.runs == 0) {
        return DM_OK;
    }
    k.most = k.extent[0] = k.run[k.runs];
    assert(region.count == k.most); /* check_rows */
    k.value_stride[0] = k.index_stride[0] = region.stride[call->args.i[DIM]];
    k.value_offset = k.index_offset = dmi_region_start(&region);
    k.wide = dmi_sort_is_wide(b, k.most);
    k.scratch = dmi_sort_scratch(&k, b->profile->gpu);
    dmi_ref refs[4] = {dmi_ref_work(work, DMI_READ), dmi_ref_work(dmi_build_work(b, k.scratch), DMI_WRITE),
                       out.ref, dmi_ref_work(carried, DMI_READ)};
    refs[2].mode = DMI_WRITE;
    dmi_build_kernel(b, DMI_KERNEL_sort, &k, sizeof k, refs, indices ? 4 : 3, ready);
    return DM_OK;
}
