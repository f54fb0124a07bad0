/* Between the parts of copy. */
#ifndef DMI_OPS_COPY_PARTS_H
#define DMI_OPS_COPY_PARTS_H

#include "ops/common.h"

/* The steps of dst (operand 1) = src (operand 0), whose shapes differ, with src repeated. */
DM_CHECKED dm_status dmi_plan_broadcast(dmi_builder *b, const dmi_desc *src, const dmi_desc *dst);

#endif
