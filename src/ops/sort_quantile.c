/* Quantiles: sorted rows, and between two neighbours of each a straight line. */
#include "ops/common_order.h"

#include <dmath/order.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* The index `at` along dim of an array, as a view with an extent of 1 there. */
static dm_status slice(dm_session *session, const dm_array_info *info, dm_array a, int dim, int64_t at,
                       dm_array *out)
{
    int64_t lo[DM_MAX_DIMS] = {0}, extent[DM_MAX_DIMS];
    for (int d = 0; d < info->ndim; d++) {
        lo[d] = d == dim ? at : 0;
        extent[d] = d == dim ? 1 : info->shape[d];
    }
    return dm_array_view(session, a, lo, extent, out);
}

/* out = the quantile of sorted rows, NaN where the last element is. The line is taken from its nearer end, as
 * NumPy does. */
static dm_status interpolate(dm_session *session, const dm_array_info *info, dm_array sorted, int dim, double q,
                             dm_array out)
{
    bool real = dmi_dtype_is_float(info->dtype);
    double place = q * (double)(info->shape[dim] - 1), t = place - floor(place);
    int64_t i = (int64_t)place, last = info->shape[dim] - 1;
    const char *type = real && info->dtype != DM_F64 ? "f32" : "f64"; /* in which the line is computed */
    const char *line = t == 0     ? "%1$s(a)"
                       : t >= 0.5 ? "where(a == b, %1$s(a), %1$s(b) - (%1$s(b) - %1$s(a)) * t)"
                                  : "where(a == b, %1$s(a), %1$s(a) + (%1$s(b) - %1$s(a)) * t)";
    char form[160], text[200];
    snprintf(form, sizeof form, "where(c != c, %%1$s(c), %s)", line);
    snprintf(text, sizeof text, form, type);
    int64_t at[3] = {i, i < last ? i + 1 : last, last};
    dm_array view[3] = {{0}};
    dm_status status = DM_OK;
    for (int k = 0; k < 3 && status == DM_OK; k++) {
        status = slice(session, info, sorted, dim, at[k], &view[k]);
    }
    dm_map_arg args[] = {DM_ARG("a", view[0]), DM_ARG("b", view[1]), DM_ARG("c", view[2]),
                         DM_NUMBER("t", t >= 0.5 ? 1 - t : t)};
    if (status == DM_OK) {
        status = t == 0 ? dm_map(session, text, 2, (dm_map_arg[]){args[0], args[2]}, out)
                        : dm_map(session, text, 4, args, out);
    }
    for (int k = 0; k < 3; k++) {
        status = view[k].id ? dmi_array_release(session, view[k], status) : status;
    }
    return status;
}

static dm_status check(const dm_array_info *x, const dm_array_info *out, const double *q, int count, int dim)
{
    const char *name = dmi_api_called();
    if (dim < 0 || dim >= x->ndim) {
        return dmi_fail(DM_ERR_ARG, "%s: dim is %d; x has %d dims", name, dim, x->ndim);
    }
    if (x->shape[dim] == 0) {
        return dmi_fail(DM_ERR_SHAPE, "%s: x has no elements along dim %d", name, dim);
    }
    if (out->ndim != x->ndim) {
        return dmi_fail(DM_ERR_SHAPE, "%s: out has %d dims, but x has %d", name, out->ndim, x->ndim);
    }
    for (int d = 0; d < x->ndim; d++) {
        int64_t wanted = d == dim ? count : x->shape[d];
        if (out->shape[d] != wanted) {
            return dmi_fail(DM_ERR_SHAPE, "%s: out has %" PRId64 " elements along dim %d, not %" PRId64 "%s",
                            name, out->shape[d], d, wanted,
                            d == dim ? ", the number of quantiles" : ", as x has");
        }
    }
    if (!dmi_dtype_is_float(out->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: out has dtype %s, and must be a float", name,
                        dmi_dtype_name(out->dtype));
    }
    if (!q || count < 1) {
        return dmi_fail(DM_ERR_ARG, "%s: %s", name, q ? "count is less than 1" : "q is NULL");
    }
    for (int k = 0; k < count; k++) {
        if (!(q[k] >= 0 && q[k] <= 1)) {
            return dmi_fail(DM_ERR_ARG, "%s: q[%d] is %g, not 0 to 1", name, k, q[k]);
        }
    }
    return DM_OK;
}

dm_status dm_quantile(dm_session *session, dm_array x, const double *q, int count, int dim, dm_array out)
{
    dm_array_info from = {.size = sizeof from}, to = {.size = sizeof to};
    dm_array sorted = DM_NO_ARRAY;
    dm_status status = dm_array_query(session, x, &from);
    status = status == DM_OK ? dm_array_query(session, out, &to) : status;
    status = status == DM_OK ? check(&from, &to, q, count, dim) : status;
    status = status == DM_OK ? dm_array_like(session, x, 0, &sorted) : status;
    if (status != DM_OK) {
        return status;
    }
    status = dm_sort(session, x, dim, 0, sorted);
    for (int k = 0; k < count && status == DM_OK; k++) {
        dm_array part;
        status = slice(session, &to, out, dim, k, &part);
        if (status == DM_OK) {
            status = interpolate(session, &from, sorted, dim, q[k], part);
            status = dmi_array_release(session, part, status);
        }
    }
    return dmi_array_release(session, sorted, status);
}

dm_status dm_median(dm_session *session, dm_array x, int dim, dm_array out)
{
    return dm_quantile(session, x, (double[]){0.5}, 1, dim, out);
}
