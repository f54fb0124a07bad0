/* Convolutions as cuDNN's graph interface has them. */
#ifndef DMI_DNN_CUDNN_PLAN_H
#define DMI_DNN_CUDNN_PLAN_H

#include "kernels/dnn/dnn_cuda.h"

#include <cudnn.h>

enum {
    DMI_CUDNN_DESCRIPTORS = 16, /* tensors, how windows move, operations, graph, plan, engine */
    DMI_CUDNN_OPERANDS = 4,     /* x, y, w, bias */
    /* Forward, and then a copy of each element, which changes nothing: engines that take a graph of both read
     * and write pixels that lie apart. */
    DMI_CUDNN_FUSED = DMI_CUDNN_KINDS
};

/* A convolution of one shape, ready to run. */
typedef struct dmi_cudnn_plan {
    int made; /* descriptors that were made, in their order */
    cudnnBackendDescriptor_t descriptor[DMI_CUDNN_DESCRIPTORS];
    cudnnBackendDescriptor_t plan; /* NULL: the library has no engine for it */
    int64_t bytes;                 /* of workspace */
    int candidate;                 /* number in the library's order */
    int operands;
} dmi_cudnn_plan;

/* Chooses an engine: the first, in the order of the library's estimates, that gives the same bits each time,
 * computes as precisely as asked, and needs at most `room` bytes. d: one group, or all as one call; its pitches
 * are of pixels of x and y, whatever is computed. */
void dmi_cudnn_plan_make(dmi_cudnn_plan *p, cudnnHandle_t handle, int which, const dmi_convolution *d,
                         int64_t room);
void dmi_cudnn_plan_free(dmi_cudnn_plan *p);
/* operand: x, y, w, and of DMI_CUDNN_BIASED the bias. */
cudnnStatus_t dmi_cudnn_plan_run(const dmi_cudnn_plan *p, cudnnHandle_t handle,
                                 void *const operand[DMI_CUDNN_OPERANDS], void *workspace);

#endif
