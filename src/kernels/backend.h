/* The descriptors of the kernels. Kernels are pure arithmetic on memory of one device: they know no layouts and no
 * other workers. kernel.h has the table of kernels and how one is called. Extents, strides and offsets count elements. Strides may be 0 (broadcast)
 * on inputs, never on outputs; negative strides do not occur. A count of 0 is valid and does nothing. */
#ifndef DMI_BACKEND_H
#define DMI_BACKEND_H

#include "kernels/reduction.h"
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

/* c = alpha * op(a) * op(b) + beta * c, row-major: op(a) m x k, op(b) k x n, c m x n. One dtype for all three,
 * F64 or F32, on the CPU C64 or C128; on CUDA F16 and BF16 too, summed in f32, c in that type or in F32.
 * beta == 0: c is not read. k == 0: c = beta * c. */
typedef struct dmi_gemm {
    dm_dtype dtype;   /* of a and b */
    dm_dtype c_dtype; /* 0: dtype */
    bool tf32;        /* F32: a and b may be rounded to TF32; a backend without it takes them as they are */
    int trans_a, trans_b;
    bool conj_a, conj_b; /* complex, and transposed: the conjugate */
    int64_t m, n, k, lda, ldb, ldc;
    int64_t a_offset, b_offset, c_offset;
} dmi_gemm;

/* A product whose b lies in an image that is still being filled by peers: rows k0..k1 and columns n0..n1 of op(b) are
 * there when the nth EXPECT of this plan from that peer is done; parts of a that come are listed in the same way, for
 * all columns. Rows own_k0..own_k1 of op(b), all columns, are read from a matrix of their own, and so are those columns
 * of op(a), all rows, where ld_own[0] is not 0. On GPUs the kernel itself waits, for what it needs next; sums in f32,
 * 16-bit a and b. */
typedef struct dmi_fused_part {
    int64_t k0, k1, n0, n1;
    int peer;
    uint32_t nth; /* from 1 */
} dmi_fused_part;
typedef struct dmi_fused_gemm {
    dmi_gemm gemm; /* b: the image */
    int parts;     /* in the order in which they are expected */
    const dmi_fused_part *part;
    int64_t own_k0, own_k1; /* empty: there is none */
    int64_t own_offset[2], ld_own[2]; /* of a's, of b's */
} dmi_fused_gemm;
enum { DMI_FUSED_MOST = 64 };
/* What the kernel counts in 16 bits: stretches of 64 indices of k, of 256 columns. */
enum { DMI_FUSED_MOST_K = 65535 * 64, DMI_FUSED_MOST_N = 65535 * 256, DMI_FUSED_MOST_M = INT32_MAX / 2 - 1 };
/* Where a part's arrival is told: *counter has reached value (cyclic compare); counter NULL: it is here. */
typedef struct dmi_arrival {
    const uint32_t *counter;
    uint32_t value;
} dmi_arrival;

/* Fills a region of an array of the given shape (caller-visible coordinates); what is written depends only on
 * the kind, the parameters and the element's index, never on the region's place in memory.
 *   CONST: p0    IDENTITY: p0 where all indices are equal, else 0 (ndim 2)
 *   ARANGE: p0 + p1 * linear index (row-major in shape; computed in f64 for floats, int64 for ints)
 *   UNIFORM: [p0, p1): floats p0 + (p1 - p0) * u, u in [0, 1) of 53 bits (f64) or 24 bits (other floats: made in
 *            f32, then rounded, so a 16-bit value may reach p1); ints: p0 + floor(u64-based unbiased-enough scaling)
 *   NORMAL: mean p0, standard deviation p1 (floats only)
 * UNIFORM and NORMAL: Philox4x32-10, key = seed, counter from the linear index (see fill.c). Only IEEE +, -, *, /,
 * sqrt and explicit fma are used, no libm, so that every backend gives the same bits. */
enum dmi_fill_kind { DMI_FILL_CONST, DMI_FILL_IDENTITY, DMI_FILL_ARANGE, DMI_FILL_UNIFORM, DMI_FILL_NORMAL, DMI_FILL_KINDS };
typedef struct dmi_fill {
    int kind;
    dm_dtype dtype;
    int64_t shape[DM_MAX_DIMS];
    dmi_region region;
} dmi_fill;
typedef struct dmi_fill_values {
    double p0, p1;     /* floats */
    int64_t i0, i1;    /* the same for integer dtypes (exact) */
    uint64_t seed;
} dmi_fill_values;

/* acc[kept indices] = the reduction of the elements over the reduced dims. acc is dense row-major over the kept dims (in
 * order); it is overwritten. No element gives what the row starts with.
 * The elements are x's, or those that a program makes of its inputs (map: its own extents, strides and offsets of the
 * inputs, and the type of its elements as that of its out; GPUs refuse it). References: x or the inputs, then acc.
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
/* acc[dst box] = acc and part[src box] combined, runs as in dmi_copy; dtypes unused. */
typedef struct dmi_acc_add {
    dmi_copy geometry; /* src: part, dst: acc */
    int acc;
} dmi_acc_add;
/* Of sums: out = convert(scale * acc + beta * out): beta == 0 does not read out; acc dense row-major over extent. Integer
 * out: scale and beta whole, int64 wrap, then converted. For DD the sum hi+lo is rounded once where scale is 1
 * and beta 0.
 * Of other rows: out = convert(finished acc); S is scale, beta is 0. */
typedef struct dmi_acc_store {
    int acc;
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

/* Threads of the BLAS in this process (it has one setting for all callers); returns what it was. */
int dmi_cpu_blas_threads(int threads);

/* dst walks the elements in row-major order of the copy's dims, packed; the same geometry for packing a message
 * (dst side replaced) and unpacking one (src side replaced). The element types stay as they are in d: the caller
 * makes the two equal on the side that is not to convert. False when the arena is out of memory. */
DM_CHECKED bool dmi_copy_pack(const dmi_copy *d, dmi_copy *packed, dmi_arena *arena);     /* src as given -> dense */
DM_CHECKED bool dmi_copy_unpack(const dmi_copy *d, dmi_copy *unpacked, dmi_arena *arena); /* dense -> dst as given */

#endif
