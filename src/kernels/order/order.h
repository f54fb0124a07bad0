/* The descriptors of kernels that go along one dim in order: scans, sorting. */
#ifndef DMI_KERNEL_ORDER_H
#define DMI_KERNEL_ORDER_H

#include "kernels/reduce/reduction.h"

/* out[..., i, ...] = what the row of reduce.def makes of the elements 0 .. i of x along dim `dim`. Rows that
 * keep indices are not scanned. starts: a third reference has the states of the elements before, accumulators
 * as dmi_reduce writes them, dense row-major over the other dims. x and out may be the same elements. */
typedef struct dmi_scan {
    int ndim, dim;
    int row; /* DMI_REDUCTION_* */
    dm_dtype dtype, out_dtype;
    bool starts;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t out_stride[DM_MAX_DIMS], out_offset;
} dmi_scan;

/* Each row of x along dim in order, NaN as the largest, -0 as 0, equal elements as they stand (descending ones
 * too). Of each row the first `most` are wanted: their elements, as their bits are, or their indices, or both.
 * The index of an element is `first` and its place in the row, or what `carried` has for it. References: x,
 * scratch, elements (where values), indices (where indices: i64), carried (where carried: i64). x and the
 * elements may be the same. */
typedef struct dmi_sort {
    int ndim, dim;
    dm_dtype dtype;
    bool descending, values, indices, carried;
    bool wide; /* places and counts have 64 bits: rows of more than 2^32 - 1 elements must have it */
    int64_t most, first;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t value_stride[DM_MAX_DIMS], value_offset;
    int64_t index_stride[DM_MAX_DIMS], index_offset;
    int64_t carried_stride[DM_MAX_DIMS], carried_offset;
    int runs; /* 0, or each row consists of so many that are in order already, which begin at run[0 .. runs-1]
               */
    const int64_t *run; /* [runs + 1] */
    int64_t scratch;    /* bytes: dmi_sort_scratch */
} dmi_sort;
enum { DMI_SORT_SELECT = 1 << 16 }; /* rows with fewer elements are sorted even where few of them are wanted */
static inline bool dmi_sort_selects(const dmi_sort *s)
{
    return s->runs == 0 && s->extent[s->dim] >= DMI_SORT_SELECT && s->most < s->extent[s->dim] / 4 &&
           dmi_dtype_bytes(s->dtype) > 1;
}
/* Of a kernel on CPUs: are places kept beside keys, of how many bytes, and how many buffers has it for keys? */
static inline bool dmi_sort_places(const dmi_sort *s)
{
    return s->indices || s->most < s->extent[s->dim];
}
static inline int64_t dmi_sort_place_bytes(const dmi_sort *s)
{
    return s->wide ? (int64_t)sizeof(uint64_t) : (int64_t)sizeof(uint32_t);
}
static inline int dmi_sort_buffers(const dmi_sort *s)
{
    return dmi_dtype_bytes(s->dtype) == 1 && !dmi_sort_places(s) ? 1 : 2; /* keys of one byte are counted */
}
int64_t dmi_sort_scratch(const dmi_sort *s, bool gpu);
/* On GPUs: two of each of keys and places, then what CUB takes. */
typedef struct dmi_sort_room {
    int64_t key, place, temporary, bytes;
} dmi_sort_room;
enum { DMI_SORT_TOGETHER = 1 << 26 }; /* elements of several rows that a GPU sorts together */
enum { DMI_SORT_LONG = 1 << 16, DMI_SORT_COUNTS = 16 << 10 };
/* On GPUs: one long row, all of it, dense on both sides, whose elements are sorted by themselves. Then there
 * are DMI_SORT_COUNTS bytes for places. */
bool dmi_sort_alone(const dmi_sort *s);
void dmi_sort_scratch_cuda(const dmi_sort *s, dmi_sort_room *room);
enum { DMI_SORT_UNSIGNED, DMI_SORT_SIGNED, DMI_SORT_FLOAT };
int dmi_sort_kind(dm_dtype dtype);
/* Of floats: the bits of the largest that is a number. */
uint64_t dmi_sort_most(dm_dtype dtype);
/* The element whose place among all elements of the type is `key`, by its bits; there are 2^bits of them.
 * Beyond the numbers of a float it is NaN on one side, and -Inf on the other. */
uint64_t dmi_sort_element(dm_dtype dtype, bool descending, uint64_t key);

/* out = how many of `count` sorted elements come before each of v (right: not behind it). NaN comes last.
 * References: sorted (dense), v, out (i64). */
typedef struct dmi_search {
    int ndim;
    dm_dtype type;          /* a carrier: elements are compared in it */
    dm_dtype stored;        /* of the sorted elements: `type`, or one that is converted at each comparison */
    dm_dtype dtype;         /* of v */
    bool right, descending; /* descending: they are sorted so, and NaN comes first */
    bool adds;              /* to what out has */
    int64_t count, sorted_offset;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t out_stride[DM_MAX_DIMS], out_offset;
} dmi_search;

/* counts[k] = how many elements of x are in bin k, or the sum of their weights. Elements in no bin do not
 * count, nor does NaN. RANGE  bins of equal width from lo to hi, whose edges are lo + k ((hi - lo) / bins) in
 * f64 and hi; the last one has hi too EDGES  bin k is from edge k to edge k + 1; the last one has its edge too
 *   WHOLE  the bin of x is x, an integer
 * References: x, counts (dense: i64, or f64 where weights are floats) [, weights] [, edges (dense, of `type`)].
 */
enum { DMI_BINS_RANGE, DMI_BINS_EDGES, DMI_BINS_WHOLE };
typedef struct dmi_histogram {
    int ndim, kind;
    dm_dtype dtype, type; /* of x; the carrier in which elements are compared */
    dm_dtype weights;     /* 0: none */
    bool adds;            /* to what counts has */
    int64_t bins;
    double lo, hi;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t weight_stride[DM_MAX_DIMS], weight_offset;
} dmi_histogram;

#endif
