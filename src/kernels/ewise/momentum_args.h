/* Between the host code of the kernel momentum on GPUs and its CUDA code. */
#ifndef DMI_MOMENTUM_ARGS_H
#define DMI_MOMENTUM_ARGS_H

#include "kernels/cuda/launch.h"

typedef struct dmi_cuda_momentum {
    dm_dtype dtype, rounded; /* rounded: of the copy; 0: there is none */
    double scale, decay, momentum, rate;
    const void *element;   /* the rate in memory; NULL: it is `rate` */
    bool wide, decays, l1; /* wide: the element is f64 */
    int64_t count;         /* elements that lie one behind the other; 0: a box */
} dmi_cuda_momentum;
/* Sides of the box: the gradient; history, weights and their copy. */
void dmi_cuda_launch_momentum(dmi_queue *q, const dmi_cuda_momentum *m, const dmi_cuda_box *box,
                              const void *gradient, void *history, void *weights, void *copy);

#endif
