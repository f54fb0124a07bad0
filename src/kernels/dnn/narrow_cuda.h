/* Between the host code of small products of f32 (narrow_cuda.c) and their kernel (narrow.cu). */
#ifndef DMI_DNN_NARROW_CUDA_H
#define DMI_DNN_NARROW_CUDA_H

#include "kernels/dnn/dnn_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A warp makes ROWS rows and 4 `wide` columns of the result, from a part of the depth: `spread` warps of a
 * thread block have parts of it, so have the thread blocks of a cluster, and `parts` clusters. All are powers
 * of 2. TICKETS: words of the queue's, from FIRST_TICKET on. */
enum {
    DMI_NARROW_WARPS = 8,
    DMI_NARROW_ROWS = 64,
    DMI_NARROW_CLUSTER = 8,
    DMI_NARROW_FIRST_TICKET = 64,
    DMI_NARROW_TICKETS = 64
};

/* A product one side of which is windows of an image; inner products have images of one pixel. A place is a row
 * and a column of a window and a channel, the last innermost. */
typedef struct dmi_narrow_job {
    const float *image, *matrix, *bias; /* bias: may be NULL */
    float *out, *sums;                  /* sums: WEIGHTS, may be NULL */
    float *partial;                     /* where parts > 1 */
    uint32_t *ticket;                   /* likewise: a word for each tile and rank, 0 between kernels */
    int32_t kind, wide, spread, cluster, parts;
    int32_t rows, columns, depth;   /* of the product; of rows those of sums are not counted */
    int32_t across, down;           /* tiles */
    int32_t pitch;                  /* of out, from row to row; not WEIGHTS */
    bool relu, one;                 /* one: windows of one pixel */
    bool flat;                      /* of WEIGHTS, the rows of the matrix are copied as one */
    int32_t images, lines, batch;   /* a thread block's: whole images, or lines of windows of one */
    dmi_cuda_divisor height, width; /* windows of an image */
    int32_t in[2], channels, stride[2], pad[2], dilation[2];
    int32_t patch[2], deep;            /* of an image in shared memory: rows and columns; channels */
    int32_t patch_pitch, matrix_pitch; /* there, from pixel to pixel; from row, or column, to the next */
    dmi_cuda_divisor channel, column;  /* of a place: channels; columns of a window */
    int32_t chunk[2];           /* elements that are copied at once: of the image, of the matrix; 4 or 1 */
    dmi_cuda_divisor chunks[2]; /* of a pixel; of a row, or column, of the matrix */
    dmi_cuda_divisor columns_of, lines_of;     /* of the patch */
    dmi_cuda_divisor bands, tile;              /* thread blocks for an image; rows of the tile */
    int32_t deep_of;                           /* elements of the depth that a thread block has */
    int32_t matrix_from, offsets_from, floats; /* in shared memory, where the patch is first; all of it */
} dmi_narrow_job;

/* The product of a convolution of one group; DATA: of one pixel. All but pointers and how it is dealt. */
void dmi_narrow_describe(const dmi_convolution *d, int kind, dmi_narrow_job *job);
/* By `wide`, `spread`, `cluster` and `parts` of the job; false: not so. */
bool dmi_narrow_deal(const dmi_convolution *d, dmi_narrow_job *job);
int64_t dmi_narrow_bytes(const dmi_narrow_job *job); /* of shared memory */
void dmi_cuda_launch_narrow(dmi_queue *q, const dmi_narrow_job *job);
/* Whether the kernel was built for GPUs that have clusters. */
bool dmi_cuda_narrow_built(void);

#ifdef __cplusplus
}
#endif
#endif
