/* UNIFORM and NORMAL elements in batches of whole counters. */
#ifndef DMI_CPU_FILL_RANDOM_H
#define DMI_CPU_FILL_RANDOM_H

#include "kernels/cpu/convert.h"
#include "kernels/random.h"

enum { DMI_BATCH_COUNTERS = DMI_CHUNK / 4 };

typedef struct dmi_random {
    int kind; /* DMI_FILL_UNIFORM or DMI_FILL_NORMAL */
    int per;  /* elements a counter */
    dm_dtype
        make; /* the type they are made in: f64, f32 (for the 16-bit floats too) or i64 (for all integers) */
    dmi_fill_values values;
    uint64_t width; /* of a range of integers */
    dmi_uniform64 range64;
    dmi_uniform32 range32;
} dmi_random;

/* Elements of 16 bits are rounded from f32: the last number is then the one of their type before p1, or the
 * rounding could reach p1. Where p0 and p1 are the same in that type, all are. */
static inline dmi_uniform32 dmi_uniform32_of(dm_dtype dtype, double p0, double p1)
{
    dmi_uniform32 r = dmi_uniform32_make(p0, p1);
    if (dtype == DM_F16 || dtype == DM_BF16) {
        bool half = dtype == DM_F16;
        uint16_t from = half ? dmi_f32_to_f16((float)p0) : dmi_f32_to_bf16((float)p0);
        uint16_t end = half ? dmi_f32_to_f16((float)p1) : dmi_f32_to_bf16((float)p1);
        uint16_t bits = (end & 0x7fff) == 0 ? 0x8001 : (uint16_t)(end & 0x8000 ? end + 1 : end - 1);
        float last = half ? dmi_f16_to_f32(bits) : dmi_bf16_to_f32(bits);
        bool same = from == end || ((from | end) & 0x7fff) == 0;
        r.last = !same && last < r.last ? last : r.last;
    }
    return r;
}

void dmi_random_init(int kind, dm_dtype dtype, const dmi_fill_values *v, dmi_random *out);
/* The elements that n (at most DMI_BATCH_COUNTERS) counters from number `first` on serve. */
void dmi_random_batch(const dmi_random *g, uint64_t first, int n, dmi_chunk *out);

#endif
