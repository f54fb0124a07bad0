/* Take and put on CPUs: positions one after the other; behind the last dim along which indices differ, whole
 * boxes. */
#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"
#include "kernels/kernel.h"

#include <assert.h>

/* The work at each position: n elements of two rows. */
typedef void row_fn(int64_t bytes, const void *src, int64_t src_stride, void *dst, int64_t dst_stride,
                    int64_t n);

#define ADD_ROW(name, type, sum)                                                                               \
    static void name(int64_t bytes, const void *src, int64_t src_stride, void *dst, int64_t dst_stride,        \
                     int64_t n)                                                                                \
    {                                                                                                          \
        const type *from = src;                                                                                \
        type *to = dst;                                                                                        \
        (void)bytes;                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            type a = to[i * dst_stride], b = from[i * src_stride];                                             \
            to[i * dst_stride] = sum;                                                                          \
        }                                                                                                      \
    }
ADD_ROW(add_f64, double, a + b)
ADD_ROW(add_f32, float, a + b)
ADD_ROW(add_f16, uint16_t, dmi_f32_to_f16(dmi_f16_to_f32(a) + dmi_f16_to_f32(b)))
ADD_ROW(add_bf16, uint16_t, dmi_f32_to_bf16(dmi_bf16_to_f32(a) + dmi_bf16_to_f32(b)))
ADD_ROW(add_f8e4m3, uint8_t, dmi_f64_to_f8e4m3((double)(dmi_f8e4m3_to_f32(a) + dmi_f8e4m3_to_f32(b))))
ADD_ROW(add_f8e5m2, uint8_t, dmi_f64_to_f8e5m2((double)(dmi_f8e5m2_to_f32(a) + dmi_f8e5m2_to_f32(b))))
ADD_ROW(add_64, uint64_t, a + b)
ADD_ROW(add_32, uint32_t, a + b)
ADD_ROW(add_16, uint16_t, (uint16_t)(a + b))
ADD_ROW(add_8, uint8_t, (uint8_t)(a + b))
ADD_ROW(add_bool, uint8_t, a | b)
ADD_ROW(add_c64, dm_c64, ((dm_c64){a.re + b.re, a.im + b.im}))
ADD_ROW(add_c128, dm_c128, ((dm_c128){a.re + b.re, a.im + b.im}))
#undef ADD_ROW

static row_fn *adder(dm_dtype dtype)
{
    switch (dtype) {
    case DM_F64:
        return add_f64;
    case DM_F32:
        return add_f32;
    case DM_F16:
        return add_f16;
    case DM_BF16:
        return add_bf16;
    case DM_F8E4M3:
        return add_f8e4m3;
    case DM_F8E5M2:
        return add_f8e5m2;
    case DM_C64:
        return add_c64;
    case DM_C128:
        return add_c128;
    case DM_BOOL:
        return add_bool;
    default: { /* integers, which wrap: with a sign or without */
        assert(dmi_dtype_is_integer(dtype));
        static row_fn *const of[] = {[1] = add_8, [2] = add_16, [4] = add_32, [8] = add_64};
        return of[dmi_dtype_bytes(dtype)];
    }
    }
}

enum { INDICES, BOX, LINES };

typedef struct following {
    const dmi_index *d;
    const void *indices;
    void *box, *lines;
    bool takes;
    row_fn *row;
    dmi_box outer, inner; /* sides as above; positions with indices of their own, and those that share one */
    int64_t elem, index_bytes;
} following;

static dmi_box box_of(const dmi_index *d, int from, int to)
{
    dmi_box box = {.ndim = to - from, .sides = 3};
    for (int k = from; k < to; k++) {
        box.extent[k - from] = d->extent[k];
        box.stride[INDICES][k - from] = d->index_stride[k];
        box.stride[BOX][k - from] = d->box_stride[k];
        box.stride[LINES][k - from] = k == d->dim ? 0 : d->line_stride[k];
    }
    return box;
}

/* All positions that share one index. */
static void one_index(const following *f, const int64_t *at)
{
    const dmi_index *d = f->d;
    int64_t i = dmi_index_read(d->index_dtype, dmi_at(f->indices, at[INDICES] * f->index_bytes), d->mode, d->n);
    int64_t place = i < 0 ? -1 : dmi_index_place(&d->set, i);
    if (place < 0) {
        return;
    }
    int inner = f->inner.ndim - 1;
    int64_t index[DMI_BOX_DIMS] = {0}, here[DMI_BOX_SIDES] = {0}, n = f->inner.extent[inner];
    here[BOX] = at[BOX];
    here[LINES] = at[LINES] + place * d->line_stride[d->dim];
    do {
        void *box = dmi_at_mut(f->box, here[BOX] * f->elem),
             *lines = dmi_at_mut(f->lines, here[LINES] * f->elem);
        int64_t by_box = f->inner.stride[BOX][inner], by_line = f->inner.stride[LINES][inner];
        f->row(f->elem, f->takes ? lines : box, f->takes ? by_line : by_box, f->takes ? box : lines,
               f->takes ? by_box : by_line, n);
    } while (dmi_box_next(&f->inner, inner, index, here));
}

/* Elements between the box and lines where each has an index of its own: first the places of some, then their
 * elements, so that many are on their way from memory at once. Those to be read are asked for before, all
 * together. here: all of them are in these lines. */
#define MOVE_ELEMENTS(type)                                                                                    \
    do {                                                                                                       \
        type *box = f->box, *lines = f->lines;                                                                 \
        for (int64_t k = 0; k < some && f->takes; k++) {                                                       \
            DMI_PREFETCH(lines + at_lines + (here || place[k] >= 0 ? place[k] : 0) * by_line, 0, 1)            \
        }                                                                                                      \
        for (int64_t k = 0; k < some && f->takes && here; k++) {                                               \
            box[at_box + k * by_box] = lines[at_lines + place[k] * by_line];                                   \
        }                                                                                                      \
        for (int64_t k = 0; k < some && f->takes && !here; k++) {                                              \
            if (place[k] >= 0) {                                                                               \
                box[at_box + k * by_box] = lines[at_lines + place[k] * by_line];                               \
            }                                                                                                  \
        }                                                                                                      \
        for (int64_t k = 0; k < some && !f->takes; k++) {                                                      \
            if (place[k] >= 0) {                                                                               \
                lines[at_lines + place[k] * by_line] = box[at_box + k * by_box];                               \
            }                                                                                                  \
        }                                                                                                      \
    } while (0)

enum { ONE_BY_ONE, SOME_HERE, ALL_HERE };

/* The places of indices as they mostly are: of two types, in order, from 0 on, and what is here of the dim has
 * no gaps. ONE_BY_ONE: they are to be found so. */
#define PLACES(type)                                                                                           \
    for (int64_t k = 0; k < some; k++) {                                                                       \
        const int64_t i = ((const type *)indices)[k], at = i - first;                                          \
        outside |= (uint64_t)i >= (uint64_t)d->n;                                                              \
        elsewhere |= (uint64_t)at >= (uint64_t)set->count;                                                     \
        place[k] = (uint64_t)at < (uint64_t)set->count ? at + shift : -1;                                      \
    }
static int many_places(const dmi_index *d, const void *indices, int64_t by_index, int64_t some, int64_t *place)
{
    const dmi_dimset *set = &d->set;
    const int64_t first = set->lo - set->origin, shift = set->lo - set->lbase;
    bool outside = set->g != 1 || by_index != dmi_dtype_bytes(d->index_dtype), elsewhere = false;
    if (!outside && d->index_dtype == DM_I64) {
        PLACES(int64_t)
    } else if (!outside && d->index_dtype == DM_I32) {
        PLACES(int32_t)
    } else {
        return ONE_BY_ONE;
    }
    return outside ? ONE_BY_ONE : elsewhere ? SOME_HERE : ALL_HERE;
}

/* All positions along the last dim of the outer box. */
static void one_line(const following *f, const int64_t *at)
{
    enum { SOME = 256 };
    const dmi_index *d = f->d;
    const int last = f->outer.ndim - 1;
    const int64_t n = f->outer.extent[last], by_box = f->outer.stride[BOX][last], by_line = d->line_stride[d->dim];
    const int64_t by_index = f->outer.stride[INDICES][last] * f->index_bytes, at_lines = at[LINES];
    const char *indices = (const char *)f->indices + at[INDICES] * f->index_bytes;
    int64_t place[SOME], at_box = at[BOX];
    for (int64_t first = 0; first < n; first += SOME, at_box += SOME * by_box, indices += SOME * by_index) {
        const int64_t some = DMI_MIN(n - first, SOME);
        const int found = many_places(d, indices, by_index, some, place);
        const bool here = found == ALL_HERE;
        for (int64_t k = 0; k < some && found == ONE_BY_ONE; k++) {
            int64_t i = dmi_index_read(d->index_dtype, indices + k * by_index, d->mode, d->n);
            place[k] = i < 0 ? -1 : dmi_index_place(&d->set, i);
        }
        switch (f->elem) {
        case 1:
            MOVE_ELEMENTS(dmi_raw8);
            break;
        case 2:
            MOVE_ELEMENTS(dmi_raw16);
            break;
        case 4:
            MOVE_ELEMENTS(dmi_raw32);
            break;
        case 8:
            MOVE_ELEMENTS(dmi_raw64);
            break;
        default:
            assert(f->elem == 16);
            MOVE_ELEMENTS(dmi_raw128);
            break;
        }
    }
}

/* Is it so, along the last dim of the outer box? */
static bool by_elements(const following *f)
{
    int64_t inner = 1;
    for (int k = 0; k < f->inner.ndim; k++) {
        inner *= f->inner.extent[k];
    }
    return f->row == dmi_move_row && inner == 1 && f->outer.ndim == f->d->dim + 1;
}

static void follow(following *f)
{
    const dmi_index *d = f->d;
    int shared = d->ndim; /* dims from here on share their index */
    while (shared > d->dim + 1 && d->index_stride[shared - 1] == 0) {
        shared--;
    }
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0) {
            return;
        }
    }
    f->elem = dmi_dtype_bytes(d->dtype);
    f->index_bytes = dmi_dtype_bytes(d->index_dtype);
    f->outer = box_of(d, 0, shared);
    f->inner = box_of(d, shared, d->ndim);
    dmi_box_simplify(&f->inner, BOX);
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {0};
    at[INDICES] = d->index_offset;
    at[BOX] = d->box_offset;
    at[LINES] = d->line_offset;
    bool lines = by_elements(f);
    do { /* in row-major order: of several with one place, the last stays */
        lines ? one_line(f, at) : one_index(f, at);
    } while (dmi_box_next(&f->outer, f->outer.ndim - lines, index, at));
}

dm_status dmi_take_cpu(const dmi_kernel_call *call)
{
    follow(&(following){.d = call->desc,
                        .indices = call->at[0],
                        .lines = call->at[1],
                        .box = call->at[2],
                        .takes = true,
                        .row = dmi_move_row});
    return DM_OK;
}

dm_status dmi_put_cpu(const dmi_kernel_call *call)
{
    const dmi_index *d = call->desc;
    follow(&(following){.d = d,
                        .indices = call->at[0],
                        .box = call->at[1],
                        .lines = call->at[2],
                        .row = d->adds ? adder(d->dtype) : dmi_move_row});
    return DM_OK;
}
