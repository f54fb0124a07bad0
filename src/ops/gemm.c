/* c = alpha * op(a) * op(b) + beta * c: checks, and the choice among the forms of src/gemm. */
#include "base/sized.h"
#include "gemm/gemm.h"
#include "ops/common.h"

#include <inttypes.h>
#include <string.h>

dm_status dm_gemm(dm_session *session, int trans_a, int trans_b, double alpha, dm_array a, dm_array b,
                  double beta, dm_array c)
{
    return dm_gemm_with(session, trans_a, trans_b, alpha, a, b, beta, c, NULL);
}

dm_status dm_gemm_with(dm_session *session, int trans_a, int trans_b, double alpha, dm_array a, dm_array b,
                       double beta, dm_array c, const dm_gemm_options *options)
{
    dm_gemm_options known = DM_GEMM_OPTIONS_INIT;
    dm_status status = options ? dmi_sized_take(options, DMI_SIZED_LEAST(dm_gemm_options, compute), &known, sizeof known,
                                                "gemm_with: options: start from DM_GEMM_OPTIONS_INIT")
                               : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    dmi_call call = {.op = DMI_OP_gemm,
                     .noperand = 3,
                     .args = {.i = {trans_a, trans_b, beta == 0, alpha == 0, known.compute}}};
    dmi_call_factors(&call, alpha, beta);
    return dmi_call_submit(session, &call, (dm_array[]){a, b, c});
}

dm_status dmi_gemm_check(dmi_call *call)
{
    for (int i = 0; i < 2; i++) {
        if (call->args.i[i] != DM_N && call->args.i[i] != DM_T) {
            return dmi_fail(DM_ERR_ARG, "%s: trans_%c is %d, not DM_N or DM_T", dmi_call_name(call), "ab"[i], call -> args.i[i]);
        }
    }
    _Static_assert((int)DM_COMPUTE_DEFAULT == DMI_COMPUTE_DEFAULT && (int)DM_COMPUTE_F32 == DMI_COMPUTE_F32 &&
                       (int)DM_COMPUTE_TF32 == DMI_COMPUTE_TF32,
                   "plans read what callers give");
    int compute = call->args.i[4];
    if (compute != DM_COMPUTE_DEFAULT && compute != DM_COMPUTE_F32 && compute != DM_COMPUTE_TF32) {
        return dmi_fail(
            DM_ERR_ARG,
            "%s: options: compute is %d, not DM_COMPUTE_DEFAULT, DM_COMPUTE_F32 or DM_COMPUTE_TF32",
            dmi_call_name(call), compute);
    }
    for (int i = 0; i < 3; i++) {
        if (call->operand[i].desc.ndim != 2) {
            return dmi_fail(DM_ERR_SHAPE, "%s: %c has %d dims, not 2", dmi_call_name(call), "abc"[i],
                            call -> operand[i].desc.ndim);
        }
    }
    const int64_t *a = call->operand[0].desc.extent, *b = call->operand[1].desc.extent,
                  *c = call->operand[2].desc.extent;
    int ta = call->args.i[0], tb = call->args.i[1];
    if (a[ta] != c[0] || b[!tb] != c[1] || a[!ta] != b[tb]) {
        return dmi_fail(DM_ERR_SHAPE,
                        "%s: op(a) is %" PRId64 "x%" PRId64 ", op(b) %" PRId64 "x%" PRId64 ", c %" PRId64
                        "x%" PRId64,
                        dmi_call_name(call), a[ta], a[!ta], b[tb], b[!tb], c[0], c[1]);
    }
    call->operand[2].mode = call->args.i[2] ? DMI_WRITE : DMI_READWRITE;
    for (int i = 0; i < 2; i++) {
        dm_status status = dmi_check_overlap(call, i, 2, false);
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

/* alpha == 0 or nothing to add up: c = beta * c, a and b are not touched. */
static void scale_only(dmi_builder *b, const dmi_call *call)
{
    dmi_value c = dmi_value_operand(call, 2);
    dmi_desc product = *c.desc; /* not made, but c is scaled in its type */
    product.dtype = dmi_dtype_promote(call->operand[0].desc.dtype, call->operand[1].desc.dtype);
    dmi_plan_linear(b, (dmi_value[]){{.desc = &product}, c}, (bool[]){false, !call->args.i[2]}, &c, NULL);
}

dm_status dmi_gemm_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_product p;
    dmi_choice how;
    const dmi_desc *a = &call->operand[0].desc;
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    if (call->args.i[3] || a->extent[!call->args.i[0]] == 0) {
        scale_only(b, call);
        return DM_OK;
    }
    dm_status status = dmi_product_begin(b, call, &p);
    if (status != DM_OK || (status = dmi_gemm_choose(&p, &how)) != DM_OK) {
        return status;
    }
    b->plan->compute = p.compute;
    bool local = dmi_product_traffic(&p, 0) == 0 && dmi_product_traffic(&p, 1) == 0;
    strcpy(b->plan->algorithm,
           how.algorithm == DMI_GEMM_STATIONARY && local ? "local" : dmi_gemm_name(how.algorithm));
    if (how.algorithm == DMI_GEMM_CONTRACT && how.direct) {
        dmi_contract_direct_plan(&p);
        return DM_OK;
    }
    bool panels = how.algorithm == DMI_GEMM_PANELS;
    bool ring = how.algorithm == DMI_GEMM_RING;
    b->plan->travels = how.algorithm == DMI_GEMM_CYCLIC || panels || ring ? how.moving
                       : how.algorithm == DMI_GEMM_FUSED                  ? dmi_fused_travels(&p)
                                                                          : -1;
    bool both = panels && dmi_product_traffic(&p, 1 - how.moving) > 0;
    if (both || p.c != p.user_c) { /* (an explicit c: who multiplies is not who holds c) */
        b->plan->travels = -1;
    }
    bool rolls = how.algorithm == DMI_GEMM_CYCLIC || how.algorithm == DMI_GEMM_TWO_BLOCK || ring;
    dmi_product_accumulate(&p, panels || how.algorithm == DMI_GEMM_FUSED ||
                                   (rolls && dmi_cyclic_single(&p, how.moving)) ||
                                   (how.algorithm == DMI_GEMM_STATIONARY && dmi_stationary_single(&p)));
    switch (how.algorithm) {
    case DMI_GEMM_FUSED:
        dmi_fused_plan(&p);
        break;
    case DMI_GEMM_CYCLIC:
    case DMI_GEMM_TWO_BLOCK:
        dmi_cyclic_plan(&p, how.moving, how.algorithm == DMI_GEMM_TWO_BLOCK);
        break;
    case DMI_GEMM_RING:
        dmi_ring_plan(&p, how.moving);
        break;
    case DMI_GEMM_PANELS:
        dmi_panels_plan(&p, how.moving);
        break;
    case DMI_GEMM_CONTRACT:
        dmi_contract_plan(&p);
        break;
    default:
        dmi_stationary_plan(&p);
    }
    dmi_product_end(&p);
    return DM_OK;
}
