/* Reductions: the rows of reduce.def, and the accumulators that they keep. */
#ifndef DMI_REDUCTION_H
#define DMI_REDUCTION_H

#include "base/base.h"

/* 0 is the sum. */
enum dmi_reduction_number {
    DMI_REDUCTION_sum,
#define DMI_REDUCTION(name, domain, state, start, take, combine, result, finish) DMI_REDUCTION_##name,
#include "kernels/reduce/reduce.def"
#undef DMI_REDUCTION
    DMI_REDUCTIONS
};

enum { DMI_STATE_SUM, DMI_STATE_VALUE, DMI_STATE_WIDE, DMI_STATE_REAL, DMI_STATE_COUNT, DMI_STATE_PLACE, DMI_STATE_MOMENTS,
       DMI_STATE_LOGSUM };
enum { DMI_RESULT_SAME, DMI_RESULT_WIDE, DMI_RESULT_WHOLE, DMI_RESULT_REAL };

typedef struct dmi_reduction {
    const char *name;
    unsigned domain;
    int state, result;
} dmi_reduction;
extern const dmi_reduction dmi_reductions[DMI_REDUCTIONS];
int dmi_reduction_find(const char *name, size_t length); /* -1: there is none */

/* The kind of an accumulator is a number.
 * Of sums: double for f32 and shorter floats, a pair of doubles (hi, lo: an unevaluated sum, lo carries what hi rounds
 * away) for f64, 64 bits that wrap for integers and bool. U64 has the bits of I64; only as a number it is another. Of
 * complex types two, for the real part and for the imaginary one: C64 of doubles, C128 of pairs.
 * Of the other rows: the row and the type in which it takes elements. */
enum dmi_acc { DMI_ACC_F64, DMI_ACC_DD, DMI_ACC_I64, DMI_ACC_U64, DMI_ACC_C64, DMI_ACC_C128, DMI_ACC_SUMS };
int dmi_acc_of(dm_dtype dtype); /* of a sum */
/* Of a row; -1: it does not take elements of this type. */
int dmi_acc_for(int reduction, dm_dtype dtype);
int dmi_acc_row(int acc);         /* its row: DMI_REDUCTION_* */
dm_dtype dmi_acc_takes(int acc);  /* the type that elements are brought to. Of sums of f64: F64, of integers: I64, ... */
dm_dtype dmi_acc_result(int acc); /* the type of finished results; of sums: in which they are computed */
int64_t dmi_acc_bytes(int acc);
/* The type of an accumulator that is one number; 0: it is none. */
dm_dtype dmi_acc_number(int acc);
/* Is the accumulator the result itself? Then what an array has may be one more of them. */
static inline bool dmi_acc_accumulates(int acc)
{
    int state = dmi_reductions[dmi_acc_row(acc)].state;
    return state == DMI_STATE_VALUE || state == DMI_STATE_WIDE || state == DMI_STATE_COUNT;
}
/* The accumulators of the parts of a complex sum, and how many these are; of others: itself, 1. */
static inline int dmi_acc_part(int acc)
{
    return acc == DMI_ACC_C64 ? DMI_ACC_F64 : acc == DMI_ACC_C128 ? DMI_ACC_DD : acc;
}
static inline int dmi_acc_parts(int acc) { return acc == DMI_ACC_C64 || acc == DMI_ACC_C128 ? 2 : 1; }
static inline bool dmi_acc_whole(int acc) { return acc == DMI_ACC_I64 || acc == DMI_ACC_U64; }

#endif
