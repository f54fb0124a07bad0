/* The one place that knows whether this build has CUDA. */
#include "exec/engine.h"

#ifdef DMATH_WITH_CUDA
#include "exec/gpu.h"

static const dmi_device gpu = {dmi_cu_devices,  dmi_backend_cuda,  dmi_gpu_slabs,    dmi_cu_use,  dmi_gpu_start,
                               dmi_gpu_connect, dmi_gpu_submitted, dmi_gpu_progress, dmi_gpu_stop};

const dmi_device *dmi_device_gpu(void)
{
    return &gpu;
}
#else
const dmi_device *dmi_device_gpu(void)
{
    return NULL;
}
#endif
