/* A copy from one strided memory to another, over runs of both. Strides and offsets count elements. Strides may be 0
 * (broadcast) on the side that is read, never on the other; negative strides do not occur. A count of 0 is valid and does
 * nothing. */
#ifndef DMI_LAYOUT_COPY_H
#define DMI_LAYOUT_COPY_H

#include "layout/layout.h"

/* dst[...] = convert(src[...]) over a product of runs: along dim d the runs run[d][0..nrun[d]) are walked one
 * after another, each `len` long, at memory position a (src) and b (dst).
 * Conversion: float->float rounds to nearest even (overflow to Inf, NaN stays NaN); int->float rounds to nearest
 * even; float->int truncates towards zero and saturates at the range, NaN -> 0; int->int wraps (two's complement);
 * to bool: 1 where the value is not 0 (NaN: 1); from bool: 0 or 1; complex->real: the real part; real->complex: with
 * an imaginary part of 0. f8e4m3 has no Inf: overflow gives NaN. */
typedef struct dmi_copy {
    int ndim;
    dm_dtype src_dtype, dst_dtype;
    int64_t nrun[DM_MAX_DIMS];
    const dmi_run *run[DM_MAX_DIMS]; /* .index unused here */
    int64_t src_stride[DM_MAX_DIMS], dst_stride[DM_MAX_DIMS];
    int64_t src_offset, dst_offset;
    int64_t count; /* elements in all */
} dmi_copy;

/* The same elements of equal types, to the same positions? */
bool dmi_copy_same(const dmi_copy *a, const dmi_copy *b);
/* dst walks the elements in row-major order of the copy's dims, packed; the same geometry for packing a message
 * (dst side replaced) and unpacking one (src side replaced). The element types stay as they are in d: the caller
 * makes the two equal on the side that is not to convert. False when the arena is out of memory. */
DM_CHECKED bool dmi_copy_pack(const dmi_copy *d, dmi_copy *packed, dmi_arena *arena);     /* src as given -> dense */
DM_CHECKED bool dmi_copy_unpack(const dmi_copy *d, dmi_copy *unpacked, dmi_arena *arena); /* dense -> dst as given */

#endif
