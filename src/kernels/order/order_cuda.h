/* Between the host code of kernels along one dim (C) and their launchers (CUDA C++). */
#ifndef DMI_ORDER_CUDA_H
#define DMI_ORDER_CUDA_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* across: neighbouring threads have neighbouring rows, else neighbouring elements of a row. */
typedef struct dmi_cuda_scan {
    dmi_cuda_box rows; /* sides 0: x, 1: out, 2: number of the row, among all of the call */
    int64_t n, in_stride, out_stride;
    int acc;
    dm_dtype dtype, out_dtype, number; /* number: dmi_acc_number */
    bool across;
    bool wide; /* along: elements and results are of one type and lie in groups of 16 bytes */
} dmi_cuda_scan;
static inline int64_t dmi_cuda_scan_bytes(int acc)
{
    return acc < DMI_ACC_SUMS ? dmi_acc_bytes(acc) : dmi_cuda_state_bytes(acc);
}
/* starts: accumulators, or NULL. Uses the workspace of the queue. */
void dmi_cuda_launch_scan_sum(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                              void *out);
void dmi_cuda_launch_scan_prod(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                               void *out);
void dmi_cuda_launch_scan_min(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                              void *out);
void dmi_cuda_launch_scan_max(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                              void *out);
void dmi_cuda_launch_scan_logsumexp(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                                    void *out);

/* Rows together: pairs of a key and a place are sorted, and then, where there are several rows, by their rows.
 */
typedef struct dmi_cuda_sort {
    dmi_cuda_box rows;             /* sides 0: x, 1: elements, 2: indices, 3: carried */
    int64_t n, most, first, count; /* count: elements of all rows */
    int64_t stride[4];             /* along the dim, of each side */
    int bytes, kind;               /* of an element */
    bool descending;
    bool wide;  /* places have 64 bits */
    bool alone; /* dmi_sort_alone */
    uint64_t most_bits;
    void *key[2], *place[2];
    void *temporary;
    int64_t temporary_bytes;
} dmi_cuda_sort;
/* direct: x and the elements are apart. */
void dmi_cuda_launch_sort(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                          int64_t *indices, const int64_t *carried);

/* The same with places of 64 bits. */
void dmi_cuda_launch_sort_wide(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                               int64_t *indices, const int64_t *carried);

/* One long row whose elements alone are wanted, all of them, of 4 or 8 bytes; floats of 2 too. */
void dmi_cuda_launch_sort_floats(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values,
                                 bool direct);
void dmi_cuda_launch_sort_signed(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values,
                                 bool direct);
void dmi_cuda_launch_sort_unsigned(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values,
                                   bool direct);

/* Sides 0: v, 1: out. */
void dmi_cuda_launch_search(dmi_queue *q, const dmi_cuda_box *box, const dmi_search *d, const void *sorted,
                            const void *v, int64_t *out);
/* Sides 0: x, 1: weights. */
void dmi_cuda_launch_histogram(dmi_queue *q, const dmi_cuda_box *box, const dmi_histogram *d, const void *x,
                               const void *weights, const void *edges, void *counts);

#ifdef __cplusplus
}
#endif
#endif
