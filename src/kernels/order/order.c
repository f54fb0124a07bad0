/* Keys, and the memory that sorting works in. */
#include "kernels/order/order.h"

#include <assert.h>

int dmi_sort_kind(dm_dtype dtype)
{
    bool with_sign = dtype == DM_I8 || dtype == DM_I16 || dtype == DM_I32 || dtype == DM_I64;
    return dmi_dtype_is_float(dtype) ? DMI_SORT_FLOAT : with_sign ? DMI_SORT_SIGNED : DMI_SORT_UNSIGNED;
}

uint64_t dmi_sort_most(dm_dtype dtype)
{
    switch ((int)dtype) {
    case DM_F64:
        return UINT64_C(0x7ff0000000000000);
    case DM_F32:
        return 0x7f800000;
    case DM_F16:
        return 0x7c00;
    case DM_BF16:
        return 0x7f80;
    case DM_F8E4M3:
        return 0x7e;
    case DM_F8E5M2:
        return 0x7c;
    default:
        assert(!"not a float");
        return 0;
    }
}

uint64_t dmi_sort_element(dm_dtype dtype, bool descending, uint64_t key)
{
    int bits = 8 * (int)dmi_dtype_bytes(dtype), kind = dmi_sort_kind(dtype);
    uint64_t top = UINT64_C(1) << (bits - 1), all = top | (top - 1);
    uint64_t k = descending ? ~key & all : key;
    if (kind != DMI_SORT_FLOAT) {
        return kind == DMI_SORT_SIGNED ? k ^ top : k;
    }
    uint64_t least = top - dmi_sort_most(dtype);
    k = k < least ? least : k;
    return k & top ? k ^ top : top | (top - k);
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* CPUs sort one row after the other: keys and places, with their buffers. */
static int64_t scratch_cpu(const dmi_sort *s)
{
    int64_t n = s->extent[s->dim], bytes = dmi_sort_buffers(s) * rounded(n * dmi_dtype_bytes(s->dtype));
    if (dmi_sort_places(s)) {
        bytes += 2 * rounded(n * dmi_sort_place_bytes(s));
    }
    bytes += rounded((s->runs + 1) * (int64_t)sizeof(int64_t));
    return bytes + (dmi_sort_selects(s) ? DMI_SORT_SELECT * dmi_sort_place_bytes(s) : 0);
}

bool dmi_sort_alone(const dmi_sort *s)
{
    int64_t bytes = dmi_dtype_bytes(s->dtype), n = s->extent[s->dim], rows = 1;
    for (int d = 0; d < s->ndim; d++) {
        rows *= d == s->dim ? 1 : s->extent[d];
    }
    return s->values && !s->indices && (bytes >= 4 || (bytes == 2 && dmi_dtype_is_float(s->dtype))) &&
           rows == 1 && s->most == n && n >= DMI_SORT_LONG && s->stride[s->dim] == 1 &&
           s->value_stride[s->dim] == 1;
}

/* CUB's radix sort of pairs keeps counts of digits, a kilobyte for a few thousand elements. */
void dmi_sort_scratch_cuda(const dmi_sort *s, dmi_sort_room *room)
{
    int64_t n = s->extent[s->dim], count = 1, bytes = dmi_dtype_bytes(s->dtype);
    for (int d = 0; d < s->ndim; d++) {
        count *= s->extent[d];
    }
    count = DMI_MIN(count, DMI_MAX(n, DMI_SORT_TOGETHER));
    room->key = rounded(count * DMI_MAX(bytes, (int64_t)sizeof(uint32_t)));
    room->place = rounded(dmi_sort_alone(s) ? DMI_SORT_COUNTS : count * dmi_sort_place_bytes(s));
    room->temporary = rounded(count) + (INT64_C(4) << 20);
    room->bytes = 2 * room->key + 2 * room->place + room->temporary;
}

/* Emulated GPUs sort as CPUs do. */
int64_t dmi_sort_scratch(const dmi_sort *s, bool gpu)
{
    dmi_sort_room room = {0};
    if (gpu) {
        dmi_sort_scratch_cuda(s, &room);
    }
    return DMI_MAX(scratch_cpu(s), room.bytes);
}
