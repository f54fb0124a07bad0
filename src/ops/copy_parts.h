/* Between the parts of copy. */
#ifndef DMI_OPS_COPY_PARTS_H
#define DMI_OPS_COPY_PARTS_H

#include "ops/common.h"

/* args.i: 1 + the dim that dst has and src lacks; 0: none. args.i[0]: how many dims are permuted; 0: none */
enum { DMI_COPY_ADDED = 1 + DM_MAX_DIMS };

/* The steps of dst (operand 1) = src (operand 0), whose shapes differ, with src repeated. */
DM_CHECKED dm_status dmi_plan_broadcast(dmi_builder *b, const dmi_desc *src, const dmi_desc *dst);

#endif
