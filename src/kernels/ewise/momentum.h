/* The descriptor of the kernel `momentum`: of every element of a strided box
 *     h = momentum h + rate (scale g + decay w), or sign(w) in place of w;   w = w - h
 * References: g (the gradient), h (the history), w (the weights), rate where it is an element in memory, and a
 * copy of w that is rounded. Numbers of the call: scale, decay, momentum, rate. f32 or f64. */
#ifndef DMI_KERNEL_MOMENTUM_H
#define DMI_KERNEL_MOMENTUM_H

#include "layout/layout.h"

enum { DMI_MOMENTUM_SCALE, DMI_MOMENTUM_DECAY, DMI_MOMENTUM_MOMENTUM, DMI_MOMENTUM_RATE, DMI_MOMENTUM_NUMBERS };

typedef struct dmi_momentum {
    dm_dtype dtype, rate; /* rate: of reference 3, f32 or f64; 0: it is a number of the call */
    dm_dtype rounded;     /* of the last reference, f16 or bf16, where dtype is f32; 0: there is none */
    bool decays, l1;      /* decays: w counts; l1: its sign */
    int ndim;
    int64_t extent[DM_MAX_DIMS];
    int64_t stride[2][DM_MAX_DIMS], offset[2]; /* of g; of h, w and the copy, which lie alike */
    int64_t rate_offset;
} dmi_momentum;

/* The number of the copy's reference. */
static inline int dmi_momentum_copy(const dmi_momentum *d)
{
    return 3 + (d->rate != 0);
}

struct dmi_box;
/* Its elements as a box of two sides, and where these begin; false: it has none. */
bool dmi_momentum_box(const dmi_momentum *d, struct dmi_box *box, int64_t *at);

#endif
