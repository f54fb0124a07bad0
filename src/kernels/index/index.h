/* Descriptors of the kernels that follow an array of indices: take, put, lend, borrow, index_count, index_sort.
 */
#ifndef DMI_KERNEL_INDEX_H
#define DMI_KERNEL_INDEX_H

#include "layout/layout.h"

#include <assert.h>

/* What an index outside of 0 .. n-1 means. RAISE: from -n to -1 it counts from the end, others are left out: a
 * command before has looked for them. WRAP: modulo n. CLIP: the nearest. */
enum dmi_index_mode { DMI_INDEX_RAISE, DMI_INDEX_WRAP, DMI_INDEX_CLIP, DMI_INDEX_MODES };

/* take: box[p] = lines[p, but along its dim `dim` at indices[p]]
 * put:  lines[p, but along its dim `dim` at indices[p]] = box[p], or += box[p], over the positions p of a box,
 * in row-major order: of several p with one place, the last one stays. A sum is rounded after each addition. */
typedef struct dmi_index {
    dm_dtype dtype, index_dtype; /* dtype: of box and lines */
    int mode;
    bool adds;   /* put */
    bool unique; /* put: no place occurs twice */
    bool some;   /* take: the lines of other positions are elsewhere, and these stay as they are */
    int ndim, dim;
    int64_t extent[DM_MAX_DIMS]; /* of the positions */
    int64_t index_stride[DM_MAX_DIMS], index_offset;
    int64_t box_stride[DM_MAX_DIMS], box_offset;
    int64_t line_stride[DM_MAX_DIMS],
        line_offset; /* along dim: from one index to the next; offset: of position 0 there */
    int64_t n;       /* extent of that dim in the whole array */
    dmi_dimset set;  /* the indices of that dim that lie here; positions with others are left out */
} dmi_index;

/* Who holds an index of a dim: position (i + origin) / block % g. */
typedef struct dmi_index_owner {
    int64_t n, origin, block, g;
    int mode;
} dmi_index_owner;

/* lend: address[place] = where the memory of the lines is, for others of this address space. */
typedef struct dmi_lend {
    int64_t place;
} dmi_lend;

/* Lines that a worker lends: its indices of the dim, in its memory, which begins at address[place]. offset: of
 * the first element that is meant in the other dims, at position 0 of this one. */
typedef struct dmi_lender {
    dmi_dimset set;
    int64_t stride[DM_MAX_DIMS], offset;
    int64_t place; /* -1: it has none */
} dmi_lender;

/* As take, of lines that are lent: the index of the dim says by whom. done[0] = 1 at the end. */
typedef struct dmi_borrow {
    dmi_index index; /* its line_stride, line_offset and set are each lender's own */
    dmi_index_owner owner;
    const dmi_lender *lender; /* [owner.g], in the plan */
    int64_t addresses;        /* of those that have lines */
} dmi_borrow;

/* row[0] = the least row-major number of an index that is outside of -n .. n-1, else INT64_MAX; only in mode
 * RAISE. row[1 + c] = how many indices the holder at position c has, c < owner.g. The first kernel of a row
 * begins it, the others add. */
typedef struct dmi_index_count {
    dm_dtype dtype;
    bool first;
    dmi_index_owner owner;
    dmi_region region;          /* of the indices, with its memory */
    int64_t shape[DM_MAX_DIMS]; /* of the whole array of indices */
} dmi_index_count;

/* Elements of a box that are not 0, in row-major order. lists: the k-th one's index along each dim goes to out
 * of that dim, at out_at + k - own_from, where own_from <= k < own_to; of all others, in their order, to lists,
 * which has a list for each dim, one after the other. Not lists: number[0] = how many they are. */
typedef struct dmi_nonzero {
    dm_dtype dtype;
    bool lists;
    int ndim;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t first[DM_MAX_DIMS]; /* the index along each dim where the box begins */
    int64_t count;              /* lists: how many they are */
    int64_t own_from, own_to, out_at;
} dmi_nonzero;

/* sorted[]: the indices, as numbers 0 .. n-1, by who holds them; place[]: which one each of them is, 0 ..
 * count-1. Indices with one holder keep their order. start[]: g words of scratch. All int64. */
typedef struct dmi_index_sort {
    dm_dtype dtype;
    dmi_index_owner owner;
    int64_t count, stride, offset;
} dmi_index_sort;

#ifdef __CUDACC__
#define DMI_INDEX_FN static __host__ __device__ inline
#else
#define DMI_INDEX_FN static inline
#endif

/* The index at an address as a number from 0 to n-1; -1: it is outside (mode RAISE). n > 0. */
DMI_INDEX_FN int64_t dmi_index_read(dm_dtype dtype, const void *at, int mode, int64_t n)
{
    int64_t i;
    switch (dtype) {
    case DM_I64:
        i = *(const int64_t *)at;
        break;
    case DM_I32:
        i = *(const int32_t *)at;
        break;
    case DM_I16:
        i = *(const int16_t *)at;
        break;
    case DM_I8:
        i = *(const int8_t *)at;
        break;
    case DM_U32:
        i = *(const uint32_t *)at;
        break;
    case DM_U16:
        i = *(const uint16_t *)at;
        break;
    case DM_U8:
        i = *(const uint8_t *)at;
        break;
    default: {
        assert(dtype == DM_U64);
        uint64_t u = *(const uint64_t *)at;
        i = u < (uint64_t)n ? (int64_t)u : mode == DMI_INDEX_WRAP ? (int64_t)(u % (uint64_t)n) : n;
    }
    }
    if (i >= 0 && i < n) {
        return i;
    }
    if (mode == DMI_INDEX_RAISE) {
        return i < 0 && i >= -n ? i + n : -1;
    }
    return mode == DMI_INDEX_CLIP ? (i < 0 ? 0 : n - 1) : (i % n + n) % n;
}

/* Where index i of 0 .. n-1 lies along its dim; -1: not in this set. */
DMI_INDEX_FN int64_t dmi_index_place(const dmi_dimset *set, int64_t i)
{
    i += set->origin;
    if (i < set->lo || i >= set->hi) {
        return -1;
    }
    if (set->g == 1) {
        return i - set->lbase;
    }
    int64_t block = i / set->block;
    return block % set->g == set->c ? block / set->g * set->block + i % set->block - set->lbase : -1;
}

DMI_INDEX_FN int64_t dmi_index_holder(const dmi_index_owner *o, int64_t i)
{
    return (i + o->origin) / o->block % o->g;
}

#endif
