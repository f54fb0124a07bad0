/* Between the parts of apply. */
#ifndef DMI_OPS_APPLY_PARTS_H
#define DMI_OPS_APPLY_PARTS_H

#include "ops/common.h"

/* --- apply.c */
/* Name, counts and modes of a call as the user gave them. */
DM_CHECKED dm_status dmi_apply_make(const char *name, int count, const dm_array *arrays, const int *modes,
                                    const void *args, int64_t args_bytes, dmi_call *out);
/* Checks that no written array shares memory with another. */
DM_CHECKED dm_status dmi_apply_check_overlap(const dmi_call *call);

/* --- apply_blocks.c */
bool dmi_same_extents(const dmi_desc *a, const dmi_desc *b);
/* Two descriptors of one shape: does every worker have the same rectangles of both, in the same order? *worker:
 * one that has not. */
bool dmi_blocks_alike(const dmi_desc *a, const dmi_desc *b, int *worker);
/* Is every dim but the first whole in every rectangle? */
bool dmi_blocks_whole_rows(const dmi_desc *a);

#endif
