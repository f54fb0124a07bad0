/* Reductions of elementwise programs on GPUs. */
#ifndef DMI_REDUCE_COMPILED_H
#define DMI_REDUCE_COMPILED_H

#include "kernels/cuda/cuda.h"
#include "kernels/ewise/map_args.h"
#include "kernels/reduce/reduce_args.h"

/* The kernels of a reduction (reduce_source.h), as dmi_cuda_map_kernels has those of a program; each takes a
 * dmi_reduce_args. */
bool dmi_cuda_reduce_kernels(dmi_queue *q, int row, const dmi_map *d, int64_t bytes, void *out[4]);

/* Puts a reduction of a program (d->map) into the queue: as a kernel of its own, or, where there is none (as
 * yet), by the elements' way through call->workspace, piece by piece. */
void dmi_cuda_reduce_program(const dmi_kernel_call *call, const dmi_reduce *d);

#endif
