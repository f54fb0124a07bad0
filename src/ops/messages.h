/* What is wrong with an operand, in words. */
#ifndef DMI_MESSAGES_H
#define DMI_MESSAGES_H

#include "ops/ops.h"

enum { DMI_DT_ANY_FLOAT = DMI_DT_FLOAT | 1 << DM_F8E4M3 | 1 << DM_F8E5M2 };

/* DM_ERR_DTYPE: "a has dtype i32, which is not taken; f64, f32 are". taken: bits 1 << dtype. */
DM_CHECKED dm_status dmi_refuse_dtype(const char *operand, dm_dtype dtype, unsigned taken);
/* The status of reading what was made of this operand of the caller. The text of DM_ERR_POISONED names the
 * operand then, not the array that was read. */
DM_CHECKED dm_status dmi_poisoned_is(const char *operand, dm_status status);

#endif
