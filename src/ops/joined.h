/* Elementwise calls of a program that follow one another become one call of the op `joined`: one pass over memory,
 * in which values go from call to call in registers. Pure. */
#ifndef DMI_OPS_JOINED_H
#define DMI_OPS_JOINED_H

#include "ops/ops.h"
#include "plan/program.h"

enum { DMI_JOINED_CALLS = 0 }; /* args.i[this]: how many calls it stands for */
static inline int dmi_joined_calls(const dmi_call *call)
{
    return call->op == DMI_OP_joined ? call->args.i[DMI_JOINED_CALLS] : 1;
}

/* --- common_elementwise.c: ops that are one elementwise program */
typedef struct dmi_elementwise {
    dmi_map_program program;
    int input[DMI_MAP_INPUTS], out; /* operands of the call: [program.inputs] */
    dmi_number number;              /* number 0 of the call; of a fill, as its array will have it */
    bool exact;                     /* the result is a value of out's type already */
} dmi_elementwise;
/* Do the elements with the same indices lie at the same workers, at the same places of their shards? */
bool dmi_same_place(const dmi_desc *a, const dmi_desc *b);
/* False: it is no such call. Copies and fills have planners of their own, but for what they do here a program
 * would do. */
bool dmi_elementwise_of(const dmi_call *call, dmi_elementwise *e);
/* Plans it. */
DM_CHECKED dm_status dmi_elementwise_plan(dmi_builder *b, const dmi_call *call);

/* --- common_join.c */
/* Joins what can be. The program's arrays are sorted, and known to be temporaries or not; temporaries that no call
 * needs any more go. first[c] (NULL: none is): call c is the first of a part, and is not joined to one before it.
 * moved: [calls + 1] the number that each call has now, or the one that it is part of; then how many there are.
 * False: no memory; the program is as it was. */
DM_CHECKED bool dmi_program_join(dmi_program *p, const bool *first, int *moved);

#endif
