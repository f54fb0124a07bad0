/* Workspace of products. */
#include "kernels/kernel.h"

/* In f32, what an emulated GPU converts before it multiplies: 0 where the operands are taken as they are. */
static int64_t emulated(const dmi_gemm *d)
{
    bool narrow = dmi_dtype_bytes(d->dtype) <= 2, rounded = d->dtype == DM_F32 && d->tf32;
    int64_t operands = narrow || rounded ? (d->m + d->n) * d->k : 0;
    return (operands + (narrow && d->c_dtype != DM_F32 ? d->m * d->n : 0)) * (int64_t)sizeof(float);
}

int64_t dmi_gemm_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_gemm *d = desc;
    bool any = d->m > 0 && d->n > 0 && d->k > 0;
    return facts->emulated            ? emulated(d)
           : any && dmi_gemm_is_f8(d) ? dmi_gemm_f8_part(d->m, d->k) + dmi_gemm_f8_part(d->n, d->k)
                                      : 0;
}

int64_t dmi_fused_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_fused_gemm *d = desc;
    return facts->emulated ? emulated(&d->gemm) : 0;
}
