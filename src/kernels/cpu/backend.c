#include "kernels/cpu/cpu.h"

static const dmi_backend cpu = {
    .name = "cpu",
    .copy = dmi_cpu_copy,
    .gemm = dmi_cpu_gemm,
    .ewise = dmi_cpu_ewise,
    .fill = dmi_cpu_fill,
    .reduce = dmi_cpu_reduce,
    .acc_add = dmi_cpu_acc_add,
    .acc_store = dmi_cpu_acc_store,
};

const dmi_backend *dmi_backend_cpu(void)
{
    return &cpu;
}
