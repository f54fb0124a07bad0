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
    dmi_uniform64 range64;
    dmi_uniform32 range32;
} dmi_random;

void dmi_random_init(int kind, dm_dtype dtype, const dmi_fill_values *v, dmi_random *out);
/* The elements that n (at most DMI_BATCH_COUNTERS) counters from number `first` on serve. */
void dmi_random_batch(const dmi_random *g, uint64_t first, int n, dmi_chunk *out);

#endif
