/* What calls of the op `reduce` say besides the dims: args.i[0] has those, i[...] these. */
#ifndef DMI_OPS_REDUCE_H
#define DMI_OPS_REDUCE_H

enum {
    DMI_REDUCE_ROW = 1, /* DMI_REDUCTION_* */
    DMI_REDUCE_MADE,    /* the type of the elements that the program in the tail makes; 0: there is none */
    DMI_REDUCE_SCALE    /* 0: none. k: 1 / (n - correction) of n elements; number[k - 1] is the correction */
};

#endif
