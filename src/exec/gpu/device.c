/* Only this file knows whether the build has CUDA. */
#include "base/config.h"
#include "exec/gpu/gpu.h"

#ifdef DMATH_WITH_CUDA
static const int built = DMI_DEVICE_CUDA;
#else
static const int built = DMI_DEVICE_EMULATED;
#endif

static const dmi_device gpu = {.settings = dmi_cu_settings,
                               .count = dmi_cu_devices,
                               .current = dmi_cu_current,
                               .backend = dmi_backend_cuda,
                               .slabs = dmi_gpu_slabs,
                               .memory = dmi_cu_memory,
                               .why_none = dmi_cu_why_none,
                               .own_thread = dmi_cu_own_thread,
                               .use = dmi_cu_use,
                               .name = dmi_cu_name,
                               .start = dmi_gpu_start,
                               .connect = dmi_gpu_connect,
                               .disconnect = dmi_gpu_disconnect,
                               .in_mpi = dmi_cu_in_mpi,
                               .messages = dmi_gpu_messages,
                               .map = dmi_gpu_map,
                               .unmap = dmi_gpu_unmap,
                               .quiesce = dmi_cu_quiesce,
                               .carry = dmi_gpu_carry,
                               .rates = dmi_gpu_rates,
                               .put = dmi_cu_move,
                               .get = dmi_cu_move,
                               .bare_ring = dmi_gpu_bare_ring,
                               .agree = dmi_gpu_agree,
                               .enter = dmi_gpu_enter,
                               .leave = dmi_gpu_leave,
                               .give_up = dmi_gpu_give_up,
                               .progress = dmi_gpu_progress,
                               .stop = dmi_gpu_stop,
                               .range_begin = dmi_gpu_range_command,
                               .range_end = dmi_gpu_range_end};

/* auto: GPUs of this build where there are any; but emulated ones only when asked for. */
const dmi_device *dmi_device_gpu(int kind)
{
    return kind == built || (kind == DMI_DEVICE_AUTO && built == DMI_DEVICE_CUDA) ? &gpu : NULL;
}
