/* Programs: recorded calls that are planned as one command. */
#ifndef DMI_PROGRAM_H
#define DMI_PROGRAM_H

#include "plan/plan.h"

/* An array or view that the calls use. */
typedef struct dmi_program_array {
    uint64_t id; /* when it was recorded */
    dmi_desc desc;
    uint32_t memory; /* which storage */
    int32_t mode;    /* DMI_*: what the program needs of its old contents, and does to it */
    bool temporary;  /* lives in the program only: workspace */
} dmi_program_array;

typedef struct dmi_program {
    int arrays, operands, calls, numbers; /* arrays: the operands first, then the temporaries */
    dmi_program_array *array;
    dmi_call *call;     /* [calls] the id of an operand is the number of its array; mode 0: it has none */
    dmi_number *number; /* [numbers] of all calls, one after the other */
} dmi_program;

/* The call of the op `program`, for its planner. */
static inline dmi_call dmi_program_call(const dmi_program *p, int op)
{
    return (dmi_call){.op = op, .noperand = p->operands, .tail = p};
}

#endif
