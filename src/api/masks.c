/* Elements that are chosen by not being zero: their indices, and the elements at these. Workers on CPUs list
 * them. GPUs make them of calls that they have. */
#include "api/parts.h"
#include "ops/common_index.h"
#include "ops/messages.h"
#include "ops/nonzero.h"

#include <dmath/index.h>
#include <dmath/order.h>
#include <stdlib.h>
#include <string.h>

/* --- by lists --- */

/* An array in which workers have rows in their order, with zeros where x has them. */
static dm_status rows_in_order(dm_session *session, dm_array x, const dmi_desc *desc, dm_array *out)
{
    dm_array mask;
    const dm_map_arg args[] = {DM_ARG("x", x)};
    *out = x;
    if (dmi_rows_in_order(desc, 0) && !dmi_desc_steps(desc)) {
        return DM_OK;
    }
    dm_layout rows = dm_layout_rows(session);
    dm_status status = dm_array_like(session, x, DM_BOOL, &mask);
    status = status == DM_OK ? dm_map(session, "x != 0", 1, args, mask) : status;
    status = status == DM_OK ? dm_array_create(session, DM_BOOL, desc->ndim, desc->extent, &rows, out) : status;
    return status == DM_OK ? dm_copy(session, mask, *out) : status;
}

/* How many each worker has. Waits. */
static dm_status count_chosen(dm_session *session, dm_array x, int64_t workers, int64_t *counts)
{
    const int64_t shape[2] = {workers, 1};
    dm_layout rows = dm_layout_rows(session);
    dm_array numbers;
    dmi_call call = {.op = DMI_OP_nonzero, .noperand = 2, .args.i[DMI_NONZERO_COUNTS] = 1};
    dm_status status = dm_array_create(session, DM_I64, 2, shape, &rows, &numbers);
    status = status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, numbers}) : status;
    return status == DM_OK ? dm_array_read(session, numbers, NULL, NULL, counts, 0) : status;
}

static dm_status list_in_order(dm_session *session, dm_array x, int ndim, int64_t workers, int64_t *counts,
                               dm_array *out, int64_t *count)
{
    const int64_t bytes = workers * (int64_t)sizeof *counts;
    dm_array arrays[1 + DM_MAX_DIMS] = {x};
    dmi_call call = {
        .op = DMI_OP_nonzero, .noperand = 1 + ndim, .tail = counts, .tail_bytes = bytes, .tail_key = bytes};
    dm_status status = count_chosen(session, x, workers, counts);
    *count = 0;
    for (int64_t w = 0; w < workers && status == DM_OK; w++) {
        *count += counts[w];
    }
    for (int d = 0; d < ndim && status == DM_OK; d++) {
        status = dm_vector(session, DM_I64, *count, &out[d]);
        arrays[1 + d] = out[d];
    }
    return status == DM_OK && *count > 0 ? dmi_call_submit(session, &call, arrays) : status;
}

/* The indices along each dim of x, in new arrays. */
static dm_status list_chosen(dm_session *session, dm_array x, const dmi_desc *desc, int64_t workers,
                             dm_array *out, int64_t *count)
{
    dm_array rows;
    int64_t *counts = malloc((size_t)workers * sizeof *counts);
    if (!counts) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for counts", dmi_api_called());
    }
    dm_status status = rows_in_order(session, x, desc, &rows);
    status = status == DM_OK ? list_in_order(session, rows, desc->ndim, workers, counts, out, count) : status;
    free(counts);
    return status;
}

/* Are chosen elements listed so? */
static dm_status by_lists(dm_session *session, int64_t *workers, bool *out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK) {
        const dmi_facts f = dmi_session_facts(s);
        *workers = f.workers;
        *out = !f.profile->gpu && !f.grouped && f.workers * (int64_t)sizeof(int64_t) <= f.tail_room;
    }
    return status;
}

/* --- by sums --- */

/* Which element of the result each one goes to, if it goes, and how many go. Reads the last count: waits. */
static dm_status find_targets(dm_session *session, dm_array mask, int64_t n, dm_array *targets, int64_t *count)
{
    const int64_t last = n - 1, one = 1;
    dm_array some, sums;
    const dm_map_arg of_mask[] = {DM_ARG("x", mask)};
    dm_status status = dm_vector(session, DM_I64, n, &some);
    status = status == DM_OK ? dm_map(session, "x != 0", 1, of_mask, some) : status;
    status = status == DM_OK ? dm_vector(session, DM_I64, n, &sums) : status;
    status = status == DM_OK ? dm_cumulative_sum(session, some, 0, sums) : status;
    status = status == DM_OK ? dm_array_read(session, sums, &last, &one, count, 0) : status;
    if (status != DM_OK) {
        return status;
    }
    const dm_map_arg args[] = {DM_ARG("s", some), DM_ARG("c", sums), DM_INTEGER("n", *count)};
    *targets = sums;
    return dm_map(session, "where(s != 0, c - 1, n)", DMI_COUNT(args), args, sums);
}

/* Their indices, in a new array, and behind them one that means nothing. */
static dm_status sum_chosen(dm_session *session, dm_array mask, int64_t n, dm_array *out, int64_t *count)
{
    dm_array targets, numbers;
    dm_status status = DM_OK;
    *count = 0;
    status = n > 0 ? find_targets(session, mask, n, &targets, count) : DM_OK;
    status = status == DM_OK ? dm_vector(session, DM_I64, *count + 1, out) : status;
    status = status == DM_OK ? dm_fill(session, *out, 0) : status;
    if (status != DM_OK || n == 0) {
        return status;
    }
    status = dm_vector(session, DM_I64, n, &numbers);
    status = status == DM_OK ? dm_fill_arange(session, numbers, 0, 1) : status;
    return status == DM_OK ? dm_put(session, *out, targets, numbers, 0, DM_WRAP) : status;
}

/* The indices of a mask of one dim that are not zero; *out has *count elements or more. */
static dm_status find_chosen(dm_session *session, dm_array mask, const dmi_desc *desc, dm_array *out,
                             int64_t *count)
{
    int64_t workers;
    bool listed;
    dm_status status = by_lists(session, &workers, &listed);
    if (status != DM_OK) {
        return status;
    }
    return listed ? list_chosen(session, mask, desc, workers, out, count)
                  : sum_chosen(session, mask, desc->extent[0], out, count);
}

dm_status dm_compress(dm_session *session, dm_array x, dm_array mask, int dim, const dm_layout *layout,
                      dm_array *out)
{
    dmi_operand a, m;
    dm_array indices, some, made = DM_NO_ARRAY;
    int64_t count;
    dm_status status = dmi_part_operand(session, x, "x", &a);
    status = status == DM_OK ? dmi_part_operand(session, mask, "mask", &m) : status;
    status = status == DM_OK ? dmi_part_dim(&dim, a.desc.ndim) : status;
    if (status == DM_OK && !out) {
        status = dmi_fail(DM_ERR_ARG, "compress: out is NULL");
    }
    if (status == DM_OK && (m.desc.ndim != 1 || m.desc.extent[0] != a.desc.extent[dim])) {
        char s[192], t[192];
        status = dmi_fail(DM_ERR_SHAPE, "compress: mask is %s, but x is %s, and dim is %d",
                          dmi_shape_text(&m.desc, s), dmi_shape_text(&a.desc, t), dim);
    }
    status = status == DM_OK ? dmi_part_outside(session) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dmi_poisoned_is("mask", find_chosen(session, mask, &m.desc, &indices, &count));
    if (status == DM_OK) {
        a.desc.extent[dim] = count;
        status = dm_array_create(session, a.desc.dtype, a.desc.ndim, a.desc.extent, layout, &made);
    }
    if (status == DM_OK && count > 0) {
        status = dmi_part_view(session, indices, 0, 0, count, &some);
        status = status == DM_OK ? dm_take(session, x, some, dim, DM_WRAP, made) : status;
    }
    if (status != DM_OK) {
        return dmi_part_end(session, status);
    }
    status = dm_scope_end(session, &made, 1);
    if (status == DM_OK) {
        *out = made;
    }
    return status;
}

/* Of each flat index of an array of this shape its index along dim d, in a new array. */
static dm_status unravel(dm_session *session, const dmi_desc *x, int d, dm_array flat, int64_t count,
                         dm_array *out)
{
    dm_array some;
    int64_t step = 1;
    for (int k = d + 1; k < x->ndim; k++) {
        step *= x->extent[k];
    }
    dm_status status = dm_vector(session, DM_I64, count, out);
    if (status != DM_OK || count == 0) {
        return status;
    }
    status = dmi_part_view(session, flat, 0, 0, count, &some);
    const dm_map_arg args[] = {DM_ARG("i", some), DM_INTEGER("step", step), DM_INTEGER("n", x->extent[d])};
    return status == DM_OK ? dm_map(session, "i // step % n", DMI_COUNT(args), args, *out) : status;
}

/* The indices along each dim of x, in new arrays. */
static dm_status unravel_chosen(dm_session *session, dm_array x, const dmi_desc *desc, dm_array *out)
{
    dm_array mask, flat, chosen;
    int64_t n = 1, found;
    const dm_map_arg args[] = {DM_ARG("x", x)};
    for (int d = 0; d < desc->ndim; d++) {
        n *= desc->extent[d];
    }
    dm_status status = dm_array_like(session, x, DM_BOOL, &mask);
    status = status == DM_OK ? dm_map(session, "x != 0", 1, args, mask) : status;
    status = status == DM_OK ? dmi_part_flat(session, mask, &flat) : status;
    status = status == DM_OK ? sum_chosen(session, flat, n, &chosen, &found) : status;
    for (int d = 0; d < desc->ndim && status == DM_OK; d++) {
        status = unravel(session, desc, d, chosen, found, &out[d]);
    }
    return status;
}

dm_status dm_nonzero(dm_session *session, dm_array x, int count, dm_array *out)
{
    dmi_operand a;
    dm_array made[DM_MAX_DIMS] = {DM_NO_ARRAY};
    int64_t workers, found;
    bool listed;
    dm_status status = dmi_part_operand(session, x, "x", &a);
    if (status == DM_OK && a.desc.ndim == 0) {
        status = dmi_fail(DM_ERR_SHAPE, "nonzero: x is a scalar and has no dims");
    }
    if (status == DM_OK && (!out || count != a.desc.ndim)) {
        status = dmi_fail(DM_ERR_ARG, !out ? "nonzero: out is NULL" : "nonzero: count is %d, but x has %d dims",
                          count, a.desc.ndim);
    }
    status = status == DM_OK ? dmi_part_outside(session) : status;
    status = status == DM_OK ? by_lists(session, &workers, &listed) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dmi_poisoned_is("x", listed ? list_chosen(session, x, &a.desc, workers, made, &found)
                                         : unravel_chosen(session, x, &a.desc, made));
    if (status != DM_OK) {
        return dmi_part_end(session, status);
    }
    status = dm_scope_end(session, made, count);
    if (status == DM_OK) {
        memcpy(out, made, (size_t)count * sizeof *out);
    }
    return status;
}
