/* The reductions of reduce.def on dense rows of a carrier. */
#ifndef DMI_CPU_REDUCER_H
#define DMI_CPU_REDUCER_H

#include "kernels/reduce/reduction.h"

enum { DMI_REDUCE_LANES = 16 };

/* States lie one after the other, `bytes` each. */
typedef struct dmi_reducer {
    int64_t bytes;
    void (*clear)(void *states, int64_t n);
    /* Element i is taken by state i % DMI_REDUCE_LANES; its index is index + i * step. */
    void (*along)(void *lanes, const void *x, int64_t n, int64_t index, int64_t step);
    /* Element i is taken by state i; all have this index. */
    void (*across)(void *states, const void *x, int64_t n, int64_t index);
    /* One state takes the elements one after the other; out: the result behind each, in the type of results. */
    void (*scan)(void *state, const void *x, int64_t n, double scale, void *out);
    /* Strides count states. */
    void (*combine)(void *into, int64_t into_stride, const void *from, int64_t from_stride, int64_t n);
    void (*finish)(const void *states, int64_t n, double scale, void *out); /* in the type of results */
} dmi_reducer;
extern const dmi_reducer dmi_reducers_bool[DMI_REDUCTIONS], dmi_reducers_i32[DMI_REDUCTIONS],
    dmi_reducers_i64[DMI_REDUCTIONS], dmi_reducers_u64[DMI_REDUCTIONS], dmi_reducers_f32[DMI_REDUCTIONS],
    dmi_reducers_f64[DMI_REDUCTIONS], dmi_reducers_c64[DMI_REDUCTIONS], dmi_reducers_c128[DMI_REDUCTIONS];

/* Of an accumulator that is not of a sum. */
const dmi_reducer *dmi_reducer_of(int acc);

#endif
