/* What local response normalisation with pooling and its gradient share. */
#ifndef DMI_OPS_LRN_POOL_PARTS_H
#define DMI_OPS_LRN_POOL_PARTS_H

#include "ops/pooling_parts.h"

/* A call of this op without operands; args.i as of pooling, and behind it what is lrn's. */
DM_CHECKED dm_status dmi_lrn_pool_call(const dm_lrn *lrn, const dm_pool *pool, int op, dmi_call *call);
/* x, y: operands that are pooled, and the result; operands: whose types decide which the kernel takes, a bit
 * each. */
void dmi_lrn_pool_describe(const dmi_builder *b, const dmi_call *call, int x, int y, unsigned operands,
                           dmi_lrn_pool *d);
dmi_layer_ref dmi_lrn_pool_scratch(const dmi_lrn_pool *d);

#endif
