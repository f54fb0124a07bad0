/* Between the host code of the kernels that follow indices and their launchers. Structures travel as kernels'
 * parameters. */
#ifndef DMI_INDEX_CUDA_H
#define DMI_INDEX_CUDA_H

#include "kernels/cuda/launch.h"
#include "kernels/index/index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sides of the box: 0 indices, 1 lines at their first index, 2 box; ordered: 3 the number of a class. Positions
 * of 1 and 2 in units of `unit` bytes. */
typedef struct dmi_cuda_index {
    dmi_cuda_box box;
    const void *indices;
    void *lines, *values;
    dm_dtype index_dtype;
    int mode;
    bool takes;
    int64_t index_bytes, n;
    int64_t step; /* of lines, from one index to the next */
    dmi_dimset set;
    /* ordered: an item goes over so many positions, one after the other, and serves the places of its class
     * alone. */
    int64_t along, index_step, value_step, classes;
} dmi_cuda_index;
/* An item a position; takes: values = lines, else lines = values, at places that differ. */
void dmi_cuda_launch_index(dmi_queue *q, int unit, const dmi_cuda_index *p);
/* lines = values, position after position. */
void dmi_cuda_launch_put(dmi_queue *q, int unit, const dmi_cuda_index *p);
/* lines += values, in that type. */
void dmi_cuda_launch_add(dmi_queue *q, dm_dtype dtype, const dmi_cuda_index *p);
void dmi_cuda_launch_index_count(dmi_queue *q, const dmi_index_count *d, const void *indices, int64_t *row);
void dmi_cuda_launch_index_sort(dmi_queue *q, const dmi_index_sort *d, const void *indices, int64_t *sorted,
                                int64_t *place);

#ifdef __cplusplus
}
#endif
#endif
