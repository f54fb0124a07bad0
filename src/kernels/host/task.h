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

/* Elements from the first of a rectangle to behind its last. */
static inline int64_t dmi_block_reach(const dm_block *b)
{
    int64_t last = 0;
    for (int d = 0; d < b->ndim; d++) {
        if (b->extent[d] == 0) {
            return 0;
        }
        last += (b->extent[d] - 1) * b->stride[d];
    }
    return last + 1;
}

#endif
