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
#define DMI_CPU_KERNEL(name, descriptor)                                                                       \
    {#name, sizeof(descriptor), 0, dmi_##name##_touches, dmi_##name##_cpu, NULL},
#include "kernels/kernels.def"
#undef DMI_KERNEL
#undef DMI_HOST_KERNEL
#undef DMI_CPU_KERNEL
};

typedef dm_status failed_fn(const void *desc, uint32_t status);
typedef int64_t workspace_fn(const void *desc, const dmi_device_facts *facts);
static failed_fn *const failed_of[DMI_KERNELS] = {
#define X(name) [DMI_KERNEL_##name] = dmi_##name##_failed,
    DMI_KERNELS_THAT_FAIL(X)
#undef X
};
static workspace_fn *const workspace_of[DMI_KERNELS] = {
#define X(name) [DMI_KERNEL_##name] = dmi_##name##_workspace,
    DMI_KERNELS_WITH_WORKSPACE(X)
#undef X
};

bool dmi_kernel_may_fail(int kernel)
{
    return failed_of[kernel] != NULL;
}

dm_status dmi_kernel_failed(int kernel, const void *desc, uint32_t status)
{
    return failed_of[kernel] ? failed_of[kernel](desc, status) : DM_OK;
}

int64_t dmi_kernel_workspace(int kernel, const void *desc, const dmi_device_facts *facts)
{
    return workspace_of[kernel] ? workspace_of[kernel](desc, facts) : 0;
}
