/* What calls of the op `reduce` say besides the dims: args.i[0] has those, i[...] these. */
#ifndef DMI_OPS_REDUCE_H
#define DMI_OPS_REDUCE_H

#include "plan/plan.h"

enum {
    DMI_REDUCE_ROW = 1, /* DMI_REDUCTION_* */
    DMI_REDUCE_MADE,    /* the type of the elements that the program in the tail makes; 0: there is none */
    DMI_REDUCE_SCALE, /* 0: none. k: the divisor n - correction, of n elements; number[k - 1] is the correction
                       */
    /* What out has counts too. The numbers before are those of fills: common_random.c. */
    DMI_REDUCE_ACCUMULATES = DMI_ARG_INTS - 1
};

/* The mean of integers whose sum 64 bits may not hold is that of their values in f64. */
static inline bool dmi_reduce_in_floats(int row, bool scaled, dm_dtype dtype)
{
    return row == DMI_REDUCTION_sum && scaled && (dtype == DM_I64 || dtype == DM_U64);
}

#endif
