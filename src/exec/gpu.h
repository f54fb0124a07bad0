/* The executor's lanes on a GPU. The communication thread takes the steps in the order of the plans and puts
 * them on streams; it never waits for the device. Order between streams is kept by events, order between GPUs
 * by counters in device memory: a grant and an arrival each raise one, and streams wait for values.
 *
 * A lane's `done` counts what the device has finished, as on the CPU; `issued` what has been put on streams. A
 * step's stamp that is not reached yet becomes waits of its stream: for COMPUTE and SEND an event recorded at
 * or after that position, for RECV the arrival counters of the blocks up to that position. */
#ifndef DMI_GPU_H
#define DMI_GPU_H

#include "exec/engine.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime.h"

typedef struct dmi_gpu dmi_gpu;

dm_status dmi_gpu_start(dmi_engine *e, int device);
void dmi_gpu_stop(dmi_engine *e);
dm_status dmi_gpu_connect(dmi_engine *e, dmi_engine *peer);
void dmi_gpu_submitted(dmi_engine *e, dmi_instance *inst);
bool dmi_gpu_progress(dmi_engine *e);
dmi_slab_ops dmi_gpu_slabs(void);

#endif
