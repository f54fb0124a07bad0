/* Short forms: calls that say in fewer words what longer ones do. */
#include "master/session.h"

#include <inttypes.h>
#include <string.h>

dm_status dm_vector(dm_session *session, dm_dtype dtype, int64_t n, dm_array *out)
{
    return dm_array_create(session, dtype, 1, &n, NULL, out);
}

dm_status dm_matrix(dm_session *session, dm_dtype dtype, int64_t rows, int64_t cols, dm_array *out)
{
    int64_t shape[2] = {rows, cols};
    return dm_array_create(session, dtype, 2, shape, NULL, out);
}

dm_status dm_array_like(dm_session *session, dm_array a, dm_dtype dtype, dm_array *out)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (!out) {
        return dmi_fail(DM_ERR_ARG, "array_like: out is NULL");
    }
    dtype = dtype ? dtype : h->desc.dtype;
    if (!dmi_dtype_bytes(dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "array_like: dtype %d is unknown", (int)dtype);
    }
    const dmi_layout *layout = NULL;
    uint32_t id = 0;
    status = dmi_layout_like(s, &h->desc, &layout, &id);
    return status == DM_OK ? dmi_array_make(s, dtype, layout, id, false, out) : status;
}

dm_status dm_rows(dm_session *session, dm_array a, int64_t first, int64_t count, dm_array *out)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, a, &info);
    if (status != DM_OK) {
        return status;
    }
    if (info.ndim == 0) {
        return dmi_fail(DM_ERR_SHAPE, "rows: a is a scalar and has no rows");
    }
    if (first < 0 || count < 0 || first > info.shape[0] || count > info.shape[0] - first) {
        return dmi_fail(DM_ERR_ARG,
                        "rows: first = %" PRId64 ", count = %" PRId64 " leave the %" PRId64 " rows of a", first,
                        count, info.shape[0]);
    }
    int64_t lo[DM_MAX_DIMS] = {first};
    info.shape[0] = count;
    return dm_array_view(session, a, lo, info.shape, out);
}

dm_status dm_matmul(dm_session *session, dm_array a, dm_array b, dm_array c)
{
    return dm_gemm(session, DM_N, DM_N, 1, a, b, 0, c);
}

dm_status dm_sum_dim(dm_session *session, dm_array x, int dim, dm_array out)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, x, &info);
    if (status == DM_OK && (dim < 0 || dim >= info.ndim)) {
        status = dmi_fail(DM_ERR_ARG, "sum_dim: dim is %d, but x has %d dims", dim, info.ndim);
    }
    return status == DM_OK ? dm_sum(session, x, &dim, 1, 1, 0, out) : status;
}

/* The shape of one element; *one receives a 1 for each dim. */
static dm_status find_element(dm_session *session, dm_array a, const char *call, const int64_t *index,
                              int64_t *one)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, a, &info);
    if (status == DM_OK && info.ndim > 0 && !index) {
        status = dmi_fail(DM_ERR_ARG, "%s: index is NULL", call);
    }
    for (int d = 0; d < info.ndim && status == DM_OK; d++) {
        one[d] = 1;
        if (index[d] < 0 || index[d] >= info.shape[d]) {
            status = dmi_fail(DM_ERR_ARG, "%s: index[%d] is %" PRId64 ", but dim %d has %" PRId64 " elements",
                              call, d, index[d], d, info.shape[d]);
        }
    }
    return status;
}

dm_status dm_item(dm_session *session, dm_array a, const int64_t *index, double *value)
{
    static const int64_t scalar[1] = {0}; /* of an array without dims */
    int64_t one[DM_MAX_DIMS];
    double got;
    dm_status status = find_element(session, a, "item", index, one);
    if (status == DM_OK && !value) {
        status = dmi_fail(DM_ERR_ARG, "item: value is NULL");
    }
    if (status == DM_OK) {
        status = dm_array_read_as(session, a, index ? index : scalar, one, DM_F64, &got, 0);
    }
    if (status == DM_OK) {
        *value = got;
    }
    return status;
}

dm_status dm_set_item(dm_session *session, dm_array a, const int64_t *index, double value)
{
    static const int64_t scalar[1] = {0};
    int64_t one[DM_MAX_DIMS];
    dm_array element;
    dm_status status = find_element(session, a, "set_item", index, one);
    if (status == DM_OK) {
        status = dm_array_view(session, a, index ? index : scalar, one, &element);
    }
    if (status != DM_OK) {
        return status;
    }
    status = dm_fill(session, element, value);
    return dmi_array_release(session, element, status);
}
