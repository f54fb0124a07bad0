/* Elements that are not zero: how many, or where they are. */
#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"
#include "kernels/kernel.h"

#include <assert.h>
#include <string.h>

enum { PIECE = 1024, WORD = 64, FEW = 16 };

/* Bits in which an element that is not zero has some: all but the sign of a float. */
#define SIGNLESS(bits) ((UINT64_C(1) << ((bits)-1)) - 1)
static uint64_t counted_bits(dm_dtype dtype)
{
    switch (dtype) {
    case DM_F64:
    case DM_C128:
        return SIGNLESS(64);
    case DM_F32:
        return SIGNLESS(32);
    case DM_C64:
        return SIGNLESS(32) << 32 | SIGNLESS(32);
    case DM_F16:
    case DM_BF16:
        return SIGNLESS(16);
    case DM_F8E4M3:
    case DM_F8E5M2:
        return SIGNLESS(8);
    default:
        return UINT64_MAX;
    }
}

/* mark[i] = 1 where x[i] is not zero, else 0, for i < n. */
#define MARK(type)                                                                                             \
    do {                                                                                                       \
        const type *v = x, keep = (type)bits;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            mark[i] = (v[i] & keep) != 0;                                                                      \
        }                                                                                                      \
    } while (0)
DMI_BODY void mark_row_body(int64_t bytes, uint64_t bits, const void *x, int64_t n, uint8_t *restrict mark)
{
    switch (bytes) {
    case 1:
        MARK(uint8_t);
        break;
    case 2:
        MARK(uint16_t);
        break;
    case 4:
        MARK(uint32_t);
        break;
    case 8:
        MARK(uint64_t);
        break;
    default: {
        assert(bytes == 16);
        const uint64_t *v = x;
        for (int64_t i = 0; i < n; i++) {
            mark[i] = ((v[2 * i] | v[2 * i + 1]) & bits) != 0;
        }
    }
    }
}
DMI_TWICE(static, mark_row, (int64_t bytes, uint64_t bits, const void *x, int64_t n, uint8_t *restrict mark),
          (bytes, bits, x, n, mark))

/* How many of n marks are 1, n <= PIECE a multiple of 8. Eight at a time are the bytes of a number. Each byte
 * of the sum is at most 128; then pairs of bytes are added, and their sums are so in the highest part of the
 * product. */
static int64_t count_marks(const uint8_t *mark, int64_t n)
{
    const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t eight;
        memcpy(&eight, mark + i, 8);
        sum += eight;
    }
    return (int64_t)(((sum & low) + (sum >> 8 & low)) * UINT64_C(0x0001000100010001) >> 48);
}

/* index[]: the numbers of the marks that are 1, from `first` on. It has room for WORD and one more. */
static void list_marks(const uint8_t *mark, int64_t marked, int64_t first, int64_t *index)
{
    if (marked > FEW) {
        int64_t k = 0;
        for (int i = 0; i < WORD; i++) { /* without a branch: what is not marked is overwritten */
            index[k] = first + i;
            k += mark[i];
        }
        return;
    }
    for (int i = 0; i < WORD; i += 8) { /* the lowest byte of a number is its first */
        uint64_t eight;
        memcpy(&eight, mark + i, 8);
        for (; eight; eight &= eight - 1) {
            *index++ = first + i + (__builtin_ctzll(eight) >> 3);
        }
    }
}

/* Where the next indices go: lists, then out, then lists again. */
typedef struct sink {
    const dmi_nonzero *d;
    int64_t done, left; /* left: up to the end of this part */
    int64_t *lists, *out[DM_MAX_DIMS], *at[DM_MAX_DIMS];
} sink;

static void next_part(sink *s)
{
    const dmi_nonzero *d = s->d;
    const int64_t own = d->own_to - d->own_from, kept = d->count - own;
    const bool out = s->done >= d->own_from && s->done < d->own_to;
    for (int k = 0; k < d->ndim; k++) {
        s->at[k] =
            out ? s->out[k] + d->out_at : s->lists + k * kept + s->done - (s->done < d->own_to ? 0 : own);
    }
    s->left = (s->done < d->own_from && own > 0 ? d->own_from : out ? d->own_to : d->count) - s->done;
}

/* So many elements are there along the last dim, up to the end of this part or before: their other indices. */
static void pass(sink *s, int64_t n, const int64_t *row)
{
    const int last = s->d->ndim - 1;
    for (int k = 0; k <= last; k++) {
        for (int64_t i = 0; i < n && k < last; i++) {
            s->at[k][i] = row[k] + s->d->first[k];
        }
        s->at[k] += n;
    }
    s->done += n;
    s->left -= n;
}

/* The elements of WORD marks. */
static void put(sink *s, const uint8_t *mark, int64_t n, int64_t first, const int64_t *row)
{
    const int last = s->d->ndim - 1;
    int64_t index[WORD + 1];
    if (s->left > WORD) {
        list_marks(mark, n, first, s->at[last]);
        pass(s, n, row);
        return;
    }
    list_marks(mark, n, first, index);
    for (int64_t k = 0, m; k < n; k += m) {
        if (s->left == 0) {
            next_part(s);
        }
        m = DMI_MIN(n - k, s->left);
        memcpy(s->at[last], index + k, (size_t)m * sizeof *index);
        pass(s, m, row);
    }
}

/* One row of the box; returns how many are not zero. */
static int64_t one_row(const dmi_nonzero *d, const void *x, uint64_t bits, const int64_t *row, sink *s)
{
    const int last = d->ndim - 1;
    const int64_t elem = dmi_dtype_bytes(d->dtype), n = d->extent[last], stride = d->stride[last];
    uint8_t mark[PIECE];
    int64_t packed[2 * PIECE], count = 0;
    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t some = DMI_MIN(n - first, PIECE), whole = (some + WORD - 1) / WORD * WORD;
        const void *from = dmi_at(x, first * stride * elem);
        if (stride != 1) {
            dmi_move_row(elem, from, stride, packed, 1, some);
            from = packed;
        }
        const bool marks = d->dtype == DM_BOOL && some == whole; /* they are what mark_row would make of them */
        const uint8_t *at = marks ? from : mark;
        if (!marks) {
            mark_row(elem, bits, from, some, mark);
            memset(mark + some, 0, (size_t)(whole - some));
        }
        const int64_t here = count_marks(at, whole);
        count += here;
        for (int64_t i = 0, left = s ? here : 0; left > 0; i += WORD) {
            const int64_t marked = count_marks(at + i, WORD);
            left -= marked;
            if (marked > 0) {
                put(s, at + i, marked, d->first[last] + first + i, row);
            }
        }
    }
    return count;
}

dm_status dmi_nonzero_cpu(const dmi_kernel_call *call)
{
    const dmi_nonzero *d = call->desc;
    const bool some = call->refs > 1;
    const uint64_t bits = counted_bits(d->dtype);
    sink s = {.d = d, .lists = call->at[1]};
    dmi_box box = {.ndim = d->ndim, .sides = 1};
    int64_t row[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {d->offset}, count = 0;
    for (int k = 0; k < d->ndim; k++) {
        box.extent[k] = d->extent[k];
        box.stride[0][k] = d->stride[k];
        s.out[k] = call->at[2 + k];
    }
    if (some) {
        do {
            count += one_row(d, dmi_at(call->at[0], at[0] * dmi_dtype_bytes(d->dtype)), bits, row,
                             d->lists ? &s : NULL);
        } while (dmi_box_next(&box, box.ndim - 1, row, at));
    }
    if (!d->lists) {
        *(int64_t *)call->at[some] = count;
    }
    return DM_OK;
}
