/* What a step needs to call a function of the user's. */
#ifndef DMI_TASK_H
#define DMI_TASK_H

#include "base/base.h"

#include <dmath/dmath.h>

/* The descriptor of a `task` step: blocks with element offsets in place of addresses. */
typedef struct dmi_task_desc {
    int number; /* of the function, in the order of registration */
    int workers;
    bool gpu;                    /* the worker's device is a GPU */
    int mode[DM_APPLY_OPERANDS]; /* DM_READ, DM_WRITE, DM_READWRITE */
    int64_t blocks[DM_APPLY_OPERANDS];
    const dm_block *block[DM_APPLY_OPERANDS];
    const int64_t *offset[DM_APPLY_OPERANDS]; /* elements, a block each */
} dmi_task_desc;

#endif
