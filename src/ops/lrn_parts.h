/* What local response normalisation and its gradient share. */
#ifndef DMI_OPS_LRN_PARTS_H
#define DMI_OPS_LRN_PARTS_H

#include "ops/common_layer.h"

/* A call of this op without operands. */
DM_CHECKED dm_status dmi_lrn_call(const dm_lrn *lrn, int op, dmi_call *call);
/* Operands 0 to `last` have one shape, which fits. */
DM_CHECKED dm_status dmi_lrn_fits(const dmi_call *call, int last);
void dmi_lrn_describe(const dmi_builder *b, const dmi_call *call, dmi_lrn *d);
enum { DMI_LRN_SIZE, DMI_LRN_WITHIN, DMI_LRN_SLICES, DMI_LRN_RELU }; /* places in args.i */

#endif
