/* The descriptors of reductions. */
#ifndef DMI_KERNEL_REDUCE_H
#define DMI_KERNEL_REDUCE_H

#include "kernels/reduce/reduction.h"
#include "layout/copy.h"

/* acc[kept indices] = the reduction of the elements over the reduced dims. acc is dense row-major over the kept dims (in
 * order); it is overwritten. No element gives what the row starts with.
 * The elements are x's, or those that a program makes of its inputs (map: its own extents, strides and offsets of the
 * inputs, and the type of its elements as that of its out). References: x or the inputs, then acc.
 * index: for rows that keep indices, those of x along each reduced dim; an element's index is its place, row-major, in
 * the box of the extents `whole` over the reduced dims. */
struct dmi_map;
typedef struct dmi_reduce {
    int ndim;
    dm_dtype dtype;
    unsigned reduced; /* bit d: dim d is reduced over */
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int row; /* DMI_REDUCTION_*; 0: the sum */
    const struct dmi_map *map;
    const dmi_dimset *index; /* [ndim] */
    int64_t whole[DM_MAX_DIMS];
} dmi_reduce;
/* On GPUs: where a kernel has not been compiled for the program, its elements go through the workspace in pieces of so many,
 * and behind them lie accumulators of a piece. */
enum { DMI_REDUCE_PIECE = 1 << 22 };
int64_t dmi_reduce_room(const dmi_reduce *d); /* bytes of the elements of a piece, of a program's */
/* acc[dst box] = acc and part[src box] combined, runs as in dmi_copy; dtypes unused. */
typedef struct dmi_acc_add {
    dmi_copy geometry; /* src: part, dst: acc */
    int acc;
} dmi_acc_add;
/* Of sums: out = convert(scale * acc + beta * out): beta == 0 does not read out; acc dense row-major over
 * extent. Integer out: scale and beta whole, int64 wrap, then converted. For DD the sum hi+lo is rounded once
 * where scale is 1 and beta 0. divides: by `scale`, in place of a product; out is not whole.
 * Of other rows: out = convert(finished acc); S is scale. beta is 0, or, of rows whose accumulator is the
 * result (dmi_acc_accumulates), 1: out = convert(out and acc combined); the result's type holds out's then. */
typedef struct dmi_acc_store {
    int acc;
    bool divides;
    int ndim;
    dm_dtype out_dtype;
    int64_t extent[DM_MAX_DIMS], out_stride[DM_MAX_DIMS], out_offset;
} dmi_acc_store;
/* out = convert(scale * (sum of the addends) + beta * out), in one pass, without accumulators in memory: addends in the
 * order of their numbers, with the sums of dmi_reduce and the rounding of dmi_acc_store. They are rows: dense over the
 * extents of `store`, one every `pitch` elements. Addend `own` (-1: none) is no row but in a matrix of its own, and the
 * rows are numbered without it. */
typedef struct dmi_fold {
    int addends, own;
    dm_dtype dtype; /* of the addends */
    int64_t pitch;
    int64_t own_stride[DM_MAX_DIMS], own_offset;
    dmi_acc_store store;
} dmi_fold;

#endif
