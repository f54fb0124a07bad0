/* Between the host code of convolutions on Hopper GPUs (weights_cuda.c, forward_cuda.c) and its kernels
 * (weights.cu, forward.cu). */
#ifndef DMI_DNN_HOPPER_CUDA_H
#define DMI_DNN_HOPPER_CUDA_H

#include "kernels/dnn/dnn_cuda.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is the convolution one of 16 bits, without strides, that boxes can be loaded for, on a Hopper GPU? Not 1 x 1.
 */
bool dmi_cuda_hopper_serves(const dmi_queue *q, const dmi_convolution *d);
/* Whether the kernels were built for Hopper. */
bool dmi_cuda_hopper_built(void);
/* Images of so many channels, pixels `pitch` elements apart, moved in boxes of pixels that windows have at one
 * place, one after the other, and of DMI_WEIGHTS_BOX channels; beyond the ends zeros are read. */
void dmi_cuda_make_image_map(dmi_queue *q, CUtensorMap *map, const dmi_convolution *d, const void *at,
                             int64_t channels, int64_t pitch, int pixels);

/* --- weights.cu: STEP: pixels of y that a stage has, of BOX channels. */
enum { DMI_WEIGHTS_STEP = 64, DMI_WEIGHTS_BOX = 64, DMI_WEIGHTS_GROUPS = 8, DMI_WEIGHTS_RANGES = 66 };

/* A thread block's tile: 64 outputs for each of `high` warpgroups, by `wide` units. A unit is `width` channels
 * of x at one place of the window. */
typedef struct dmi_weights_form {
    int high, wide, width;
} dmi_weights_form;
static const dmi_weights_form dmi_weights_forms[] = {{3, 3, 64}, {2, 4, 64}, {2, 5, 48}};
enum { DMI_WEIGHTS_FORMS = 3 };
/* Sums of a tile. */
static inline int64_t dmi_weights_part(const dmi_weights_form *f)
{
    return (int64_t)f->high * DMI_WEIGHTS_BOX * f->wide * f->width;
}

typedef struct dmi_weights_job {
    CUtensorMap dy[DMI_WEIGHTS_GROUPS], x[DMI_WEIGHTS_GROUPS];
    float *parts;
    void *w;
    int32_t form, steps, ranges;
    int32_t tiles, across, down;                  /* tiles: of all groups; across, down: of a group */
    int32_t units, chunks;                        /* of a group; of its channels, at a place of the window */
    int32_t outputs, channels, places;            /* of a group; of a window */
    int32_t columns, out[2], pad[2], dilation[2]; /* columns: of a window */
} dmi_weights_job;

/* All but maps and pointers, with the number of ranges that takes least time; returns that, 0: the form is not
 * for so many channels. */
int64_t dmi_weights_plan(const dmi_convolution *d, int form, dmi_weights_job *job);
/* Of parts. */
int64_t dmi_weights_bytes(const dmi_weights_job *job);
/* Of a job that has parts and w. */
void dmi_cuda_run_weights_job(dmi_queue *q, const dmi_convolution *d, dmi_weights_job *job, const void *x,
                              int64_t x_pitch, const void *dy);
/* parts, then w. */
void dmi_cuda_launch_weights(dmi_queue *q, const dmi_weights_job *job, dm_dtype dtype);

/* --- forward.cu: of one group. A thread block makes a tile of PIXELS places of y by `wide` outputs, in steps
 * of `width` channels of x at one place of the window. */
enum { DMI_FORWARD_PIXELS = 256, DMI_FORWARD_ROWS = 16 }; /* ROWS: of y that are stored at once */
typedef struct dmi_forward_job {
    CUtensorMap x, w, y;
    const float *bias; /* NULL: none */
    bool relu;
    int wide, width;                        /* 96 or 128; 48 or 64 */
    int32_t blocks, tiles, across, outputs; /* blocks: of threads; across: tiles beside one another */
    int32_t steps, chunks;                  /* chunks: of the channels, at a place of the window */
    int32_t pitch, columns, out[2], pad[2], dilation[2]; /* pitch: of w, from place to place of a window */
} dmi_forward_job;
void dmi_cuda_launch_forward(dmi_queue *q, const dmi_forward_job *job, dm_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
