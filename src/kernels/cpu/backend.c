/* The kernels of the CPU as the table has them. There is no queue: a kernel is done when it returns. */
#include "kernels/cpu/cpu.h"
#include "kernels/kernel.h"

#include "io/file.h"

static dm_status run(int kernel, const dmi_kernel_call *call)
{
    return dmi_kernels[kernel].cpu(call);
}

static const dmi_backend cpu = {"cpu", run};

const dmi_backend *dmi_backend_cpu(void)
{
    return &cpu;
}

dm_status dmi_copy_cpu(const dmi_kernel_call *call)
{
    dmi_cpu_copy(call->desc, call->at[0], call->at[1]);
    return DM_OK;
}

dm_status dmi_gemm_cpu(const dmi_kernel_call *call)
{
    const dmi_gemm *d = call->desc;
    dm_status status = dmi_cpu_blas_ready();
    for (int64_t i = 0; i < dmi_gemm_count(d) && status == DM_OK; i++) {
        dmi_gemm one = dmi_gemm_one(d, i);
        dmi_cpu_gemm(&one, call->scalar[0], call->at[0], call->at[1], call->scalar[1], call->at[2]);
    }
    return status;
}

dm_status dmi_fill_cpu(const dmi_kernel_call *call)
{
    dmi_fill_values values = dmi_fill_values_of(call);
    dmi_cpu_fill(call->desc, &values, call->at[0]);
    return DM_OK;
}

dm_status dmi_acc_add_cpu(const dmi_kernel_call *call)
{
    dmi_cpu_acc_add(call->desc, call->at[0], call->at[1]);
    return DM_OK;
}

dm_status dmi_acc_store_cpu(const dmi_kernel_call *call)
{
    dmi_cpu_acc_store(call->desc, call->scalar[0], call->at[0], call->scalar[1], call->at[1]);
    return DM_OK;
}

dm_status dmi_fold_cpu(const dmi_kernel_call *call)
{
    dmi_cpu_fold(call->desc, call->scalar[0], call->at[0], call->at[2], call->scalar[1], call->at[1]);
    return DM_OK;
}

dm_status dmi_file_read_cpu(const dmi_kernel_call *call)
{
    return dmi_file_read(call->desc, call->tail, call->at[0]);
}

dm_status dmi_file_write_cpu(const dmi_kernel_call *call)
{
    return dmi_file_write(call->desc, call->tail, call->at[0]);
}

dm_status dmi_user_read_cpu(const dmi_kernel_call *call)
{
    const dmi_file_range *range = call->desc;
    const dmi_file memory = dmi_file_of(call->at[1]);
    return dmi_file_move(&memory, range, &range->geometry, call->at[0]);
}

/* All data has arrived: multiply the ranges of k before, inside and behind the worker's own rows. */
dm_status dmi_fused_cpu(const dmi_kernel_call *call)
{
    const dmi_fused_gemm *d = call->desc;
    bool some = d->own_k1 > d->own_k0;
    int64_t cut[4] = {0, some ? d->own_k0 : d->gemm.k, some ? d->own_k1 : d->gemm.k, d->gemm.k};
    dm_status status = dmi_cpu_blas_ready();
    for (int i = 0, first = 1; i < 3 && status == DM_OK; i++) {
        dmi_gemm g = d->gemm;
        g.k = cut[i + 1] - cut[i];
        if (g.k == 0 && (d->gemm.k > 0 || !first)) {
            continue;
        }
        bool own_a = i == 1 && d->ld_own[0] > 0, own_b = i == 1;
        g.a_offset = own_a ? d->own_offset[0] : g.a_offset + cut[i] * (g.trans_a ? g.lda : 1);
        g.b_offset = own_b ? d->own_offset[1] : g.b_offset + cut[i] * (g.trans_b ? 1 : g.ldb);
        g.lda = own_a ? d->ld_own[0] : g.lda;
        g.ldb = own_b ? d->ld_own[1] : g.ldb;
        dmi_cpu_gemm(&g, call->scalar[0], call->at[own_a ? 4 : 0], call->at[own_b ? 3 : 1],
                     first ? call->scalar[1] : 1, call->at[2]);
        first = 0;
    }
    return status;
}
