/* Elementwise programs as kernels made for them: src/kernels/ewise/map_source.h writes the source, NVRTC compiles it,
 * and the code stays in the process and on disk. */
#ifndef DMI_MAP_COMPILED_H
#define DMI_MAP_COMPILED_H

#include "kernels/cuda/cuda.h"

/* Puts a program into the queue as a kernel of its own. False: there is none (as yet), and nothing is in the
 * queue. The first call of a program may compile (about a second) and load (which waits for the device, as ADR
 * 6 allows). */
bool dmi_cuda_map_compiled(const dmi_kernel_call *call, const dmi_map *d);
/* Is an input dense along another dim than out, over an extent that is worth tiles? Other kernels would read an
 * element of each line. */
bool dmi_cuda_map_turned(const dmi_map *d);

/* --- map_codes.c: the kernels of a program */
typedef struct dmi_map_kernels {
    void *groups, *items; /* CUfunction, of a device */
} dmi_map_kernels;
/* `bytes`: that the call moves; tiles: the kernels of DMI_MAP_KERNEL_TILES_... False: none, as yet. */
bool dmi_cuda_map_kernels(dmi_queue *q, const dmi_map *d, bool tiles, int64_t bytes, dmi_map_kernels *out);
/* Puts one of them into the queue; args: a dmi_map_args. */
void dmi_cuda_map_launch(dmi_queue *q, void *kernel, unsigned blocks, void *args);

#endif
