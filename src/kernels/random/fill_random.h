/* UNIFORM and NORMAL elements in batches of whole counters. */
#ifndef DMI_CPU_FILL_RANDOM_H
#define DMI_CPU_FILL_RANDOM_H

#include "kernels/box/convert.h"
#include "kernels/random/fill.h"
#include "kernels/random/random.h"

enum { DMI_BATCH_COUNTERS = DMI_CHUNK / 4 };

typedef struct dmi_random {
    int kind; /* DMI_FILL_UNIFORM and those behind it */
    int per;  /* elements a counter */
    dm_dtype
        make; /* the type they are made in: f64, f32 (for the shorter floats too) or i64 (for all integers) */
    dmi_fill_values values;
    uint64_t width; /* of a range of integers */
    dmi_uniform64 range64;
    dmi_uniform32 range32;
} dmi_random;

/* Of a float of 8 or 16 bits. */
static inline uint16_t dmi_short_bits(dm_dtype dtype, double x)
{
    return dtype == DM_F16      ? dmi_f32_to_f16((float)x)
           : dtype == DM_BF16   ? dmi_f32_to_bf16((float)x)
           : dtype == DM_F8E4M3 ? dmi_f64_to_f8e4m3((float)x)
                                : dmi_f64_to_f8e5m2((float)x);
}
static inline float dmi_short_value(dm_dtype dtype, uint16_t bits)
{
    return dtype == DM_F16      ? dmi_f16_to_f32(bits)
           : dtype == DM_BF16   ? dmi_bf16_to_f32(bits)
           : dtype == DM_F8E4M3 ? dmi_f8e4m3_to_f32((uint8_t)bits)
                                : dmi_f8e5m2_to_f32((uint8_t)bits);
}

/* Elements of 8 and 16 bits are rounded from f32: the last number is then the one of their type before p1, or the
 * rounding could reach p1. Where p0 and p1 are the same in that type, all are. */
static inline dmi_uniform32 dmi_uniform32_of(dm_dtype dtype, double p0, double p1)
{
    dmi_uniform32 r = dmi_uniform32_make(p0, p1);
    if (dmi_dtype_is_float(dtype) && dmi_dtype_bytes(dtype) <= 2) {
        unsigned sign = dmi_dtype_bytes(dtype) == 2 ? 0x8000 : 0x80, rest = sign - 1;
        uint16_t from = dmi_short_bits(dtype, p0), end = dmi_short_bits(dtype, p1);
        uint16_t bits = (uint16_t)((end & rest) == 0 ? sign | 1 : end & sign ? end + 1u : end - 1u);
        float last = dmi_short_value(dtype, bits);
        bool same = from == end || ((from | end) & rest) == 0;
        r.last = !same && last < r.last ? last : r.last;
    }
    return r;
}

void dmi_random_init(int kind, dm_dtype dtype, const dmi_fill_values *v, dmi_random *out);
/* The elements that n (at most DMI_BATCH_COUNTERS) counters from number `first` on serve. */
void dmi_random_batch(const dmi_random *g, uint64_t first, int n, dmi_chunk *out);

#endif
