/* Between the host code of kernels along one dim (C) and their launchers (CUDA C++). */
#ifndef DMI_ORDER_CUDA_H
#define DMI_ORDER_CUDA_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows in parts: a thread block for each part of a row, or (across) a thread. Of several parts, first what all
 * elements of each make, then from that the states before each, then the results. */
typedef struct dmi_cuda_scan {
    dmi_cuda_box rows; /* sides 0: x, 1: out, 2: number of the row, among all of the call */
    int64_t n, in_stride, out_stride, parts, part; /* part: elements of one */
    int acc;
    dm_dtype dtype, out_dtype, number; /* number: dmi_acc_number */
    bool across;
} dmi_cuda_scan;
enum { DMI_CUDA_SCAN_PARTS = 2048 };
static inline int64_t dmi_cuda_scan_bytes(int acc)
{
    return acc < DMI_ACC_SUMS ? dmi_acc_bytes(acc) : dmi_cuda_state_bytes(acc);
}
/* states: room for parts * rows of them; starts: accumulators, or NULL. */
void dmi_cuda_launch_scan(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                          void *states, void *out);

/* Rows together: pairs of a key and a place are sorted, and then, where there are several rows, by their rows.
 */
typedef struct dmi_cuda_sort {
    dmi_cuda_box rows;             /* sides 0: x, 1: elements, 2: indices, 3: carried */
    int64_t n, most, first, count; /* count: elements of all rows */
    int64_t stride[4];             /* along the dim, of each side */
    int bytes, kind;               /* of an element */
    bool descending;
    uint64_t most_bits;
    void *key[2];
    uint32_t *place[2];
    void *temporary;
    int64_t temporary_bytes;
} dmi_cuda_sort;
/* direct: x and the elements are apart. */
void dmi_cuda_launch_sort(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                          int64_t *indices, const int64_t *carried);

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
