/* Arrays made of others by copies of parts: concatenate, stack, tile, repeat, roll; and split, which makes
 * views. */
#include "api/parts.h"

#include <dmath/index.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Several arrays that become one. */
typedef struct joining {
    int count, dim;
    dmi_operand out;
    int64_t total; /* along dim */
} joining;

/* Looks at all operands; stack: each is one index of a new dim. */
static dm_status check_arrays(dm_session *session, const dm_array *arrays, bool stack, dm_array out, joining *j)
{
    dmi_operand x = {.desc = {.ndim = 0}}, first = x;
    char name[32], s[192], t[192];
    dm_status status = dmi_part_operand(session, out, "out", &j->out);
    if (status == DM_OK && (j->count < 1 || !arrays)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s", dmi_api_called(),
                        arrays ? "count is less than 1" : "arrays is NULL");
    }
    for (int i = 0; i < j->count && status == DM_OK; i++) {
        snprintf(name, sizeof name, "arrays[%d]", i);
        if ((status = dmi_part_operand(session, arrays[i], name, &x)) != DM_OK) {
            break;
        }
        if (i == 0) {
            first = x;
            status = dmi_part_dim(&j->dim, x.desc.ndim + stack);
        }
        bool fits = x.desc.ndim == first.desc.ndim;
        for (int d = 0; d < x.desc.ndim && fits && status == DM_OK; d++) {
            fits = x.desc.extent[d] == first.desc.extent[d] || (!stack && d == j->dim);
        }
        if (status == DM_OK && !fits) {
            status = dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, but arrays[0] is %s", dmi_api_called(), name,
                              dmi_shape_text(&x.desc, s), dmi_shape_text(&first.desc, t));
        }
        j->total += status != DM_OK || stack ? 1 : x.desc.extent[j->dim];
        status = status == DM_OK ? dmi_part_apart(&x, name, &j->out) : status;
    }
    if (status != DM_OK) {
        return status;
    }
    int64_t shape[DM_MAX_DIMS + 1];
    for (int d = 0; d < first.desc.ndim + stack; d++) {
        shape[d] = d == j->dim ? j->total : first.desc.extent[d - (stack && d > j->dim)];
    }
    return first.desc.ndim + stack > DM_MAX_DIMS
               ? dmi_fail(DM_ERR_SHAPE, "%s: out would have %d dims", dmi_api_called(), first.desc.ndim + stack)
               : dmi_part_shape(&j->out, first.desc.ndim + stack, shape);
}

dm_status dm_concatenate(dm_session *session, int count, const dm_array *arrays, int dim, dm_array out)
{
    joining j = {.count = count, .dim = dim};
    int64_t at = 0;
    dm_status status = check_arrays(session, arrays, false, out, &j);
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        dmi_operand x;
        dm_array part;
        status = dmi_part_operand(session, arrays[i], "arrays", &x);
        int64_t n = status == DM_OK ? x.desc.extent[j.dim] : 0;
        status = status == DM_OK ? dmi_part_view(session, out, j.dim, at, n, &part) : status;
        status = status == DM_OK ? dm_copy(session, arrays[i], part) : status;
        at += n;
    }
    return dmi_part_end(session, status);
}

dm_status dm_stack(dm_session *session, int count, const dm_array *arrays, int dim, dm_array out)
{
    joining j = {.count = count, .dim = dim};
    dm_status status = check_arrays(session, arrays, true, out, &j);
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        dm_array part;
        status = dmi_part_view(session, out, j.dim, i, 1, &part);
        status = status == DM_OK ? dmi_copy_into(session, arrays[i], part, j.dim) : status;
    }
    return dmi_part_end(session, status);
}

dm_status dm_split(dm_session *session, dm_array a, int dim, int count, const int64_t *sizes, dm_array *out)
{
    dmi_operand x;
    int64_t sum = 0, at = 0;
    dm_status status = dmi_part_operand(session, a, "a", &x);
    status = status == DM_OK ? dmi_part_dim(&dim, x.desc.ndim) : status;
    if (status == DM_OK && (count < 1 || !out)) {
        status = dmi_fail(DM_ERR_ARG, "split: %s", out ? "count is less than 1" : "out is NULL");
    }
    if (status != DM_OK) {
        return status;
    }
    int64_t n = x.desc.extent[dim];
    for (int i = 0; i < count && sizes; i++) {
        if (sizes[i] < 0 || sizes[i] > n - sum) {
            return dmi_fail(DM_ERR_ARG,
                            "split: sizes[%d] is %" PRId64 ", but %" PRId64 " of %" PRId64 " are left", i,
                            sizes[i], n - sum, n);
        }
        sum += sizes[i];
    }
    if (sizes ? sum != n : n % count != 0) {
        return sizes ? dmi_fail(DM_ERR_ARG, "split: sizes make %" PRId64 " of %" PRId64, sum, n)
                     : dmi_fail(DM_ERR_ARG, "split: the %" PRId64 " indices of dim %d are not %d equal parts",
                                n, dim, count);
    }
    for (int i = 0; i < count; i++) {
        int64_t size = sizes ? sizes[i] : n / count;
        if ((status = dmi_part_view(session, a, dim, at, size, &out[i])) != DM_OK) {
            while (i-- > 0) {
                status = dmi_array_release(session, out[i], status);
            }
            return status;
        }
        at += size;
    }
    return DM_OK;
}

dm_status dm_tile(dm_session *session, dm_array x, const int64_t *times, dm_array out)
{
    dmi_operand from, to;
    int64_t shape[DM_MAX_DIMS] = {0}, zero[DM_MAX_DIMS] = {0};
    dm_array done;
    dm_status status = dmi_part_operand(session, x, "x", &from);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &to) : status;
    if (status == DM_OK && !times && from.desc.ndim > 0) {
        status = dmi_fail(DM_ERR_ARG, "tile: times is NULL");
    }
    for (int d = 0; status == DM_OK && d < from.desc.ndim; d++) {
        if (times[d] < 0 || !dmi_mul_fits(times[d], from.desc.extent[d], &shape[d])) {
            status = dmi_fail(DM_ERR_ARG, "tile: times[%d] is %" PRId64, d, times[d]);
        }
    }
    status = status == DM_OK ? dmi_part_shape(&to, from.desc.ndim, shape) : status;
    status = status == DM_OK ? dmi_part_apart(&from, "x", &to) : status;
    bool any = true;
    for (int d = 0; status == DM_OK && d < from.desc.ndim; d++) {
        any = any && shape[d] > 0;
    }
    if (status != DM_OK || !any || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dm_array_view(session, out, zero, from.desc.extent, &done);
    status = status == DM_OK ? dm_copy(session, x, done) : status;
    int64_t extent[DM_MAX_DIMS];
    memcpy(extent, from.desc.extent, sizeof extent);
    for (int d = 0; d < from.desc.ndim; d++) { /* what is there twice as long each time */
        while (extent[d] < shape[d] && status == DM_OK) {
            int64_t have = extent[d];
            dm_array wide;
            extent[d] = DMI_MIN(2 * have, shape[d]);
            status = dm_array_view(session, out, zero, extent, &wide);
            status =
                status == DM_OK ? dmi_part_copy(session, wide, 0, wide, have, d, extent[d] - have) : status;
        }
    }
    return dmi_part_end(session, status);
}

dm_status dm_repeat(dm_session *session, dm_array x, int64_t times, int dim, dm_array out)
{
    dmi_operand from, to;
    int64_t shape[DM_MAX_DIMS], lo[DM_MAX_DIMS] = {0}, step[DM_MAX_DIMS];
    dm_status status = dmi_part_operand(session, x, "x", &from);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &to) : status;
    status = status == DM_OK ? dmi_part_dim(&dim, from.desc.ndim) : status;
    for (int d = 0; status == DM_OK && d < from.desc.ndim; d++) {
        shape[d] = from.desc.extent[d];
        step[d] = 1;
        if (d == dim && (times < 0 || !dmi_mul_fits(times, shape[d], &shape[d]))) {
            status = dmi_fail(DM_ERR_ARG, "repeat: times is %" PRId64, times);
        }
    }
    status = status == DM_OK ? dmi_part_shape(&to, from.desc.ndim, shape) : status;
    status = status == DM_OK ? dmi_part_apart(&from, "x", &to) : status;
    if (status != DM_OK || times == 0 || from.desc.extent[dim] == 0 ||
        (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    step[dim] = times;
    for (int64_t k = 0; k < times && status == DM_OK; k++) { /* the k-th of each */
        dm_array each;
        lo[dim] = k;
        status = dm_array_slice(session, out, lo, from.desc.extent, step, &each);
        status = status == DM_OK ? dm_copy(session, x, each) : status;
    }
    return dmi_part_end(session, status);
}

dm_status dm_roll(dm_session *session, dm_array x, int64_t shift, int dim, dm_array out)
{
    dmi_operand from, to;
    dm_status status = dmi_part_operand(session, x, "x", &from);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &to) : status;
    status = status == DM_OK ? dmi_part_dim(&dim, from.desc.ndim) : status;
    status = status == DM_OK ? dmi_part_shape(&to, from.desc.ndim, from.desc.extent) : status;
    status = status == DM_OK ? dmi_part_apart(&from, "x", &to) : status;
    if (status != DM_OK || from.desc.extent[dim] == 0 || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    int64_t n = from.desc.extent[dim], by = (shift % n + n) % n;
    status = dmi_part_copy(session, x, 0, out, by, dim, n - by);
    if (status == DM_OK && by > 0) {
        status = dmi_part_copy(session, x, n - by, out, 0, dim, by);
    }
    return dmi_part_end(session, status);
}
