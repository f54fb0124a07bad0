/* The table of kernels, from kernels.def. */
#include "kernels/kernel.h"

#include "io/file.h"
#include "kernels/host/task.h"

#ifdef DMATH_WITH_CUDA
#define ON_CUDA(name) dmi_##name##_cuda
#else /* emulated GPUs run the CPU's */
#define ON_CUDA(name) NULL
#endif

const dmi_kernel dmi_kernels[DMI_KERNELS] = {
#define DMI_KERNEL(name, descriptor, traits)                                                                   \
    {#name, sizeof(descriptor), traits, dmi_##name##_touches, dmi_##name##_cpu, ON_CUDA(name)},
#define DMI_HOST_KERNEL(name, descriptor)                                                                      \
    {#name, sizeof(descriptor), DMI_TRAIT_HOST, dmi_##name##_touches, dmi_##name##_cpu, NULL},
#include "kernels/kernels.def"
#undef DMI_KERNEL
#undef DMI_HOST_KERNEL
};
