/* What pooling and its gradient share. */
#ifndef DMI_OPS_POOLING_PARTS_H
#define DMI_OPS_POOLING_PARTS_H

#include "ops/common_layer.h"

/* A call of this op without operands. */
DM_CHECKED dm_status dmi_pooling_call(const dm_pool *pool, int op, dmi_call *call);
/* Shapes, types, memory; y has the shape of pooled x. */
DM_CHECKED dm_status dmi_pooling_fits(const dmi_call *call, int x, int y);
/* operands: whose types decide which the kernel takes, a bit each. */
void dmi_pooling_describe(const dmi_builder *b, const dmi_call *call, int x, int y, unsigned operands,
                          dmi_pooling *d);
/* Errors of a u8 array of places: windows may not have too many elements. */
DM_CHECKED dm_status dmi_pooling_fits_taps(const dmi_call *call, int x, int taps);
enum { DMI_POOLING_METHOD = 6, DMI_POOLING_SLICES = 9, DMI_POOLING_TAPS = 11 }; /* places in args.i; TAPS: back, of those */

#endif
