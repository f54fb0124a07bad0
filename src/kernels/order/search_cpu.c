/* Searches in sorted elements. */
#include "kernels/order/search_cpu.h"

#include "kernels/box/convert.h"
#include "kernels/kernel.h"

#include <assert.h>

/* place[i] of descending elements: as of ascending ones with the comparisons turned round.
 * Halves the range without branches: the steps of one search do not depend on the elements. NaN comes last:
 * BEFORE(a, b). */
#define LESS(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#define BEFORE(a, b) (descending ? LESS(b, a) : LESS(a, b))
#define SEARCH(name, type)                                                                                     \
    static void name(const type *sorted, int64_t count, bool right, bool descending, const type *x, int64_t n, \
                     int64_t *place)                                                                           \
    {                                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            const type v = x[i];                                                                               \
            const type *from = sorted;                                                                         \
            int64_t left = count;                                                                              \
            while (left > 1) {                                                                                 \
                int64_t half = left / 2;                                                                       \
                const type a = from[half - 1];                                                                 \
                bool beyond = right ? !BEFORE(v, a) : BEFORE(a, v);                                            \
                from += beyond ? half : 0;                                                                     \
                left -= half;                                                                                  \
            }                                                                                                  \
            place[i] = from - sorted;                                                                          \
            if (left == 1 && (right ? !BEFORE(v, *from) : BEFORE(*from, v))) {                                 \
                place[i]++;                                                                                    \
            }                                                                                                  \
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

dm_status dmi_search_cpu(const dmi_kernel_call *call)
{
    enum { V, OUT };
    const dmi_search *d = call->desc;
    dmi_box box = {.sides = 2};
    const void *sorted = dmi_at(call->at[0], d->sorted_offset * dmi_dtype_bytes(d->type));
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
            dmi_search_row(d->type, sorted, d->count, d->right, d->descending,
                           dmi_row_load(d->dtype, v, s, d->type, &buffer, m), m, place);
            for (int64_t k = 0; k < m; k++) {
                int64_t *to = &out[at[OUT] + (i + k) * t];
                *to = place[k] + (d->adds ? *to : 0);
            }
        }
    } while (dmi_box_next(&box, inner, index, at));
    return DM_OK;
}
