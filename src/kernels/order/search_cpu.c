/* Searches in sorted elements. */
#include "kernels/order/search_cpu.h"

#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"
#include "kernels/kernel.h"

#include <assert.h>

/* Several searches side by side, each of which halves its range without a branch: the steps are the same for
 * all elements. NaN comes last; where the elements descend, comparisons are turned round. */
enum { SIDE_BY_SIDE = 8 };
#define LESS(a, b) (((a) < (b)) | (((b) != (b)) & ((a) == (a))))
#define BEFORE(a, b) (descending ? LESS(b, a) : LESS(a, b))
#define BEYOND(a, v) (right ? !BEFORE(v, a) : BEFORE(a, v))
#define SEARCH(name, type)                                                                                     \
    DMI_BODY void name##_some(const type *sorted, int64_t count, bool right, bool descending, const type *x,   \
                              int64_t n, int64_t *place)                                                       \
    {                                                                                                          \
        int64_t at[SIDE_BY_SIDE] = {0};                                                                        \
        for (int64_t left = count; left > 1;) {                                                                \
            int64_t half = left / 2;                                                                           \
            for (int k = 0; k < n; k++) {                                                                      \
                at[k] += half & -(int64_t)BEYOND(sorted[at[k] + half - 1], x[k]);                              \
            }                                                                                                  \
            left -= half;                                                                                      \
        }                                                                                                      \
        for (int k = 0; k < n; k++) {                                                                          \
            place[k] = at[k] + (count > 0 && BEYOND(sorted[at[k]], x[k]));                                     \
        }                                                                                                      \
    }                                                                                                          \
    DMI_BODY void name##_all(const type *sorted, int64_t count, bool right, bool descending, const type *x,    \
                             int64_t n, int64_t *place)                                                        \
    {                                                                                                          \
        int64_t i = 0;                                                                                         \
        for (; i + SIDE_BY_SIDE <= n; i += SIDE_BY_SIDE) {                                                     \
            name##_some(sorted, count, right, descending, x + i, SIDE_BY_SIDE, place + i);                     \
        }                                                                                                      \
        name##_some(sorted, count, right, descending, x + i, n - i, place + i);                                \
    }                                                                                                          \
    static void name(const type *sorted, int64_t count, bool right, bool descending, const type *x, int64_t n, \
                     int64_t *place)                                                                           \
    {                                                                                                          \
        if (descending) {                                                                                      \
            name##_all(sorted, count, right, true, x, n, place);                                               \
        } else if (right) {                                                                                    \
            name##_all(sorted, count, true, false, x, n, place);                                               \
        } else {                                                                                               \
            name##_all(sorted, count, false, false, x, n, place);                                              \
        }                                                                                                      \
    }
SEARCH(search_bool, uint8_t)
SEARCH(search_i32, int32_t)
SEARCH(search_i64, int64_t)
SEARCH(search_u64, uint64_t)
SEARCH(search_f32, float)
SEARCH(search_f64, double)

void dmi_search_row(dm_dtype type, const void *sorted, int64_t count, bool right, bool descending,
                    const void *x, int64_t n, int64_t *place)
{
    switch ((int)type) {
    case DM_BOOL:
        search_bool(sorted, count, right, descending, x, n, place);
        break;
    case DM_I32:
        search_i32(sorted, count, right, descending, x, n, place);
        break;
    case DM_I64:
        search_i64(sorted, count, right, descending, x, n, place);
        break;
    case DM_U64:
        search_u64(sorted, count, right, descending, x, n, place);
        break;
    case DM_F32:
        search_f32(sorted, count, right, descending, x, n, place);
        break;
    case DM_F64:
        search_f64(sorted, count, right, descending, x, n, place);
        break;
    default:
        assert(!"not a carrier of real numbers");
    }
}

/* The same where the sorted elements are of another type: each is converted when it is compared. */
static void search_stored(const dmi_search *d, const void *sorted, const void *x, int64_t n, int64_t *place)
{
    const int64_t bytes = dmi_dtype_bytes(d->stored), type_bytes = dmi_dtype_bytes(d->type);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = 0;
        for (int64_t count = d->count; count > 0;) {
            dmi_chunk buffer;
            int64_t half = count / 2, beyond;
            dmi_search_row(
                d->type, dmi_row_load(d->stored, dmi_at(sorted, (from + half) * bytes), 1, d->type, &buffer, 1),
                1, d->right, d->descending, dmi_at(x, k * type_bytes), 1, &beyond);
            from += beyond ? half + 1 : 0;
            count = beyond ? count - half - 1 : half;
        }
        place[k] = from;
    }
}

dm_status dmi_search_cpu(const dmi_kernel_call *call)
{
    enum { V, OUT };
    const dmi_search *d = call->desc;
    dmi_box box = {.sides = 2};
    const void *sorted = dmi_at(call->at[0], d->sorted_offset * dmi_dtype_bytes(d->stored));
    int64_t *out = call->at[2], index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {d->offset, d->out_offset};
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return DM_OK;
        }
        box.extent[box.ndim] = d->extent[dim];
        box.stride[V][box.ndim] = d->stride[dim];
        box.stride[OUT][box.ndim++] = d->out_stride[dim];
    }
    dmi_box_simplify(&box, OUT);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], s = box.stride[V][inner], t = box.stride[OUT][inner];
    do {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            dmi_chunk buffer;
            int64_t m = DMI_MIN(DMI_CHUNK, n - i), place[DMI_CHUNK];
            const void *v = dmi_at(call->at[1], (at[V] + i * s) * dmi_dtype_bytes(d->dtype));
            const void *x = dmi_row_load(d->dtype, v, s, d->type, &buffer, m);
            if (d->stored == d->type) {
                dmi_search_row(d->type, sorted, d->count, d->right, d->descending, x, m, place);
            } else {
                search_stored(d, sorted, x, m, place);
            }
            for (int64_t k = 0; k < m; k++) {
                int64_t *to = &out[at[OUT] + (i + k) * t];
                *to = place[k] + (d->adds ? *to : 0);
            }
        }
    } while (dmi_box_next(&box, inner, index, at));
    return DM_OK;
}
