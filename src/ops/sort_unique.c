/* The distinct elements of an array, how often each occurs, and which of them each element is. */
#include "ops/common_order.h"
#include "ops/messages.h"

#include <dmath/index.h>
#include <dmath/order.h>

typedef struct unique {
    dm_session *session;
    dm_dtype dtype;
    int64_t n, m;                  /* elements; distinct ones */
    dm_array copy, flat;           /* x with one dim, and what that is a view of, where it had to move */
    dm_array sorted, order, group; /* group: number of the distinct element that a sorted one is */
    dm_array starts;               /* where each group begins, and the end */
    dm_array values, counts, inverse;
} unique;

static dm_status vector(const unique *u, dm_dtype dtype, int64_t n, dm_array *out)
{
    return dm_array_create(u->session, dtype, 1, &n, NULL, out);
}

static dm_status range(const unique *u, dm_array a, int64_t first, int64_t count, dm_array *out)
{
    return dm_rows(u->session, a, first, count, out);
}

static dm_status flatten(unique *u, dm_array x, const dm_array_info *info)
{
    dm_status status = dm_array_reshape(u->session, x, 1, &u->n, &u->flat);
    if (status != DM_ERR_UNSUPPORTED) {
        return status;
    }
    status = dm_array_create(u->session, u->dtype, info->ndim, info->shape, NULL, &u->copy);
    status = status == DM_OK ? dm_copy(u->session, x, u->copy) : status;
    return status == DM_OK ? dm_array_reshape(u->session, u->copy, 1, &u->n, &u->flat) : status;
}

/* A text of one or two arrays over the ranges that begin at first[] of a. */
static dm_status compare(const unique *u, const char *text, dm_array a, int64_t n, dm_array out,
                         int64_t out_first)
{
    dm_array view[3] = {{0}};
    dm_status status = range(u, a, 1, n, &view[0]);
    status = status == DM_OK ? range(u, a, 0, n, &view[1]) : status;
    status = status == DM_OK ? range(u, out, out_first, n, &view[2]) : status;
    dm_map_arg args[] = {DM_ARG("a", view[0]), DM_ARG("b", view[1])};
    status = status == DM_OK ? dm_map(u->session, text, 2, args, view[2]) : status;
    for (int i = 0; i < 3; i++) {
        status = view[i].id ? dmi_array_release(u->session, view[i], status) : status;
    }
    return status;
}

static dm_status group(unique *u)
{
    dm_array first = DM_NO_ARRAY, last = DM_NO_ARRAY;
    dm_status status = vector(u, u->dtype, u->n, &u->sorted);
    status = status == DM_OK ? dm_sort(u->session, u->flat, 0, 0, u->sorted) : status;
    status = status == DM_OK ? vector(u, DM_I64, u->n, &u->group) : status;
    status = status == DM_OK ? range(u, u->group, 0, 1, &first) : status;
    status = status == DM_OK ? range(u, u->group, u->n - 1, 1, &last) : status;
    status = status == DM_OK ? dm_fill(u->session, first, 0) : status;
    if (status == DM_OK && u->n > 1) { /* all NaN are one element */
        status = compare(u, "i64((a != b) & ((a == a) | (b == b)))", u->sorted, u->n - 1, u->group, 1);
    }
    status = status == DM_OK ? dm_cumulative_sum(u->session, u->group, 0, u->group) : status;
    status = status == DM_OK ? dm_array_read(u->session, last, NULL, NULL, &u->m, 0) : status;
    u->m++;
    status = first.id ? dmi_array_release(u->session, first, status) : status;
    return last.id ? dmi_array_release(u->session, last, status) : status;
}

static dm_status find_starts(unique *u)
{
    dm_array ids = DM_NO_ARRAY;
    dm_status status = vector(u, DM_I64, u->m + 1, &ids);
    status = status == DM_OK ? vector(u, DM_I64, u->m + 1, &u->starts) : status;
    status = status == DM_OK ? dm_fill_arange(u->session, ids, 0, 1) : status;
    status = status == DM_OK ? dm_searchsorted(u->session, u->group, ids, 0, u->starts) : status;
    return ids.id ? dmi_array_release(u->session, ids, status) : status;
}

static dm_status take_values(unique *u)
{
    dm_array places = DM_NO_ARRAY;
    dm_status status = vector(u, u->dtype, u->m, &u->values);
    status = status == DM_OK ? range(u, u->starts, 0, u->m, &places) : status;
    status = status == DM_OK ? dm_take(u->session, u->sorted, places, 0, DM_CLIP, u->values) : status;
    return places.id ? dmi_array_release(u->session, places, status) : status;
}

static dm_status make(unique *u, bool counts, bool inverse)
{
    dm_status status = DM_OK;
    if (u->n > 0) {
        status = group(u);
        status = status == DM_OK ? find_starts(u) : status;
    }
    status = status == DM_OK && u->n > 0 ? take_values(u)
             : status == DM_OK           ? vector(u, u->dtype, 0, &u->values)
                                         : status;
    if (counts && status == DM_OK) {
        status = vector(u, DM_I64, u->m, &u->counts);
        status = status == DM_OK && u->m > 0 ? compare(u, "a - b", u->starts, u->m, u->counts, 0) : status;
    }
    if (inverse && status == DM_OK) {
        status = vector(u, DM_I64, u->n, &u->inverse);
        status = status == DM_OK ? vector(u, DM_I64, u->n, &u->order) : status;
        status = status == DM_OK && u->n > 0 ? dm_argsort(u->session, u->flat, 0, 0, u->order) : status;
        status = status == DM_OK && u->n > 0 ? dm_put(u->session, u->inverse, u->order, u->group, 0, DM_CLIP)
                                             : status;
    }
    return status;
}

dm_status dm_unique(dm_session *session, dm_array x, dm_array *values, dm_array *counts, dm_array *inverse)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, x, &info);
    if (status == DM_OK && !values) {
        status = dmi_fail(DM_ERR_ARG, "unique: values is NULL");
    }
    if (status == DM_OK && dmi_dtype_is_complex(info.dtype)) {
        status = dmi_refuse_dtype("x", info.dtype, DMI_DT_REAL);
    }
    if (status != DM_OK) {
        return status;
    }
    unique u = {.session = session, .dtype = info.dtype, .n = 1};
    for (int d = 0; d < info.ndim; d++) {
        u.n *= info.shape[d];
    }
    status = flatten(&u, x, &info);
    status = status == DM_OK ? dmi_poisoned_is("x", make(&u, counts != NULL, inverse != NULL)) : status;
    dm_array made[] = {u.flat, u.copy, u.sorted, u.order, u.group, u.starts, u.values, u.counts, u.inverse};
    int kept = status == DM_OK ? 3 : 0;
    for (int i = 0; i < DMI_COUNT(made) - kept; i++) {
        status = made[i].id ? dmi_array_release(session, made[i], status) : status;
    }
    if (kept) {
        *values = u.values;
        if (counts) {
            *counts = u.counts;
        }
        if (inverse) {
            *inverse = u.inverse;
        }
    }
    return status;
}
