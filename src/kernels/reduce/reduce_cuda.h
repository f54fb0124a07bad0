/* A reduction on its way into a queue of a GPU. */
#ifndef DMI_REDUCE_CUDA_H
#define DMI_REDUCE_CUDA_H

#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/ewise/ewise.h"

/* Sides of the boxes: the inputs, then accumulators (kept) or numbers of elements (summed). */
typedef struct dmi_reduce_job {
    dmi_queue *q;
    const dmi_map *program; /* makes the elements, by these kernels; NULL: they are in memory */
    void *kernel[4];
    int inputs, acc;
    const void *in[DMI_MAP_INPUTS];
    int64_t bytes[DMI_MAP_INPUTS], offset[DMI_BOX_SIDES], group, acc_bytes, state_bytes;
    int64_t first_place; /* number of the first element */
    dmi_box kept, summed;
    void *out;
    dmi_cuda_reduce p;
    bool row; /* of reduce.def, not the sum: with `rows` */
    dmi_cuda_rows rows;
    dmi_reduce_args args;
    /* of the part of the kept box that is on: */
    int64_t at[DMI_BOX_SIDES], result_at;
    bool one_launch;
    int64_t parts; /* sums in the workspace, a result */
    bool joined;   /* the kernel that makes them adds them up */
} dmi_reduce_job;

/* Reduces a part of d with these extents; elements are counted as in all of d. */
void dmi_reduce_run(dmi_reduce_job *job, const dmi_reduce *d, const int64_t *extent);
/* Accumulators of no elements. */
void dmi_reduce_start(dmi_queue *q, const dmi_reduce *d, void *acc);

/* --- reduce_program_cuda.c */
void dmi_reduce_box_make(const dmi_box *box, dmi_reduce_box *out);
/* The kernel made for the program: job->p and job->rows say how, at: where the part of the summed box begins.
 */
void dmi_reduce_launch_program(dmi_reduce_job *job, const int64_t *at, void *out);

#endif
