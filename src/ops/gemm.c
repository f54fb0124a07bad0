/* c = alpha * op(a) * op(b) + beta * c: checks, and the choice among the algorithms of src/ops/product. */
#include "ops/product/gemm.h"
#include "base/sized.h"
#include "ops/common.h"

#include <assert.h>
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
                     .args = {.i = {trans_a, trans_b, beta == 0, alpha == 0}},
                     .compute = known.compute};
    dmi_call_factors(&call, alpha, beta);
    return dmi_call_submit(session, &call, (dm_array[]){a, b, c});
}

/* Shapes as in NumPy's matmul: the last two dims are the matrix. A vector is a row (left) or a column (right), whose dim c
 * lacks. Leading dims of a and b are broadcast to those of c. */
static dm_status check_shapes(dmi_call *call)
{
    const dmi_desc *x[3] = {&call->operand[0].desc, &call->operand[1].desc, &call->operand[2].desc};
    char text[3][192];
    for (int i = 0; i < 3; i++) {
        dmi_shape_text(x[i], text[i]);
    }
    int matrices = 0, rest[3]; /* leading dims */
    for (int i = 0; i < 2; i++) {
        if (x[i]->ndim == 0) {
            return dmi_fail(DM_ERR_SHAPE, "%s: %c has 0 dims, not 1 or more", dmi_call_name(call), "ab"[i]);
        }
        matrices += x[i]->ndim > 1;
        rest[i] = DMI_MAX(x[i]->ndim - 2, 0);
        call->args.i[i] = x[i]->ndim > 1 ? call->args.i[i] : DM_N; /* a vector is its own transpose */
    }
    int ta = call->args.i[0] != DM_N, tb = call->args.i[1] != DM_N;
    rest[2] = x[2]->ndim - matrices;
    if (rest[2] != DMI_MAX(rest[0], rest[1])) {
        return dmi_fail(DM_ERR_SHAPE, "%s: c is %s, but the product of a, %s, and b, %s, has %d dims",
                        dmi_call_name(call), text[2], text[0], text[1], DMI_MAX(rest[0], rest[1]) + matrices);
    }
    assert(rest[2] + 2 <= DM_MAX_DIMS); /* as those of a or b, which are matrices then */
    const int64_t *a = x[0]->extent + rest[0], *b = x[1]->extent + rest[1], *c = x[2]->extent + rest[2];
    bool row = x[0]->ndim == 1, column = x[1]->ndim == 1;
    bool fits = (row ? a[0] : a[!ta]) == b[tb] && (row || a[ta] == c[0]) && (column || b[!tb] == c[!row]);
    for (int d = 0; d < rest[2] && fits; d++) {
        int64_t have[2];
        for (int i = 0; i < 2; i++) {
            int own = d - (rest[2] - rest[i]);
            have[i] = own < 0 ? 1 : x[i]->extent[own];
        }
        fits = (have[0] == 1 || have[1] == 1 || have[0] == have[1]) &&
               x[2]->extent[d] == (have[0] == 1 ? have[1] : have[0]);
    }
    if (fits) {
        return DM_OK;
    }
    if (x[0]->ndim == 2 && x[1]->ndim == 2 && x[2]->ndim == 2) {
        return dmi_fail(DM_ERR_SHAPE,
                        "%s: op(a) is %" PRId64 "x%" PRId64 ", op(b) %" PRId64 "x%" PRId64 ", c %" PRId64
                        "x%" PRId64,
                        dmi_call_name(call), a[ta], a[!ta], b[tb], b[!tb], c[0], c[1]);
    }
    return dmi_fail(DM_ERR_SHAPE, "%s: a is %s%s, b %s%s, c %s", dmi_call_name(call), text[0], ta ? " (transposed)" : "", text[1],
                    tb ? " (transposed)" : "", text[2]);
}

dm_status dmi_gemm_check(dmi_call *call)
{
    for (int i = 0; i < 2; i++) {
        if (call->args.i[i] != DM_N && call->args.i[i] != DM_T && call->args.i[i] != DM_C) {
            return dmi_fail(DM_ERR_ARG, "%s: trans_%c is %d, not DM_N, DM_T or DM_C", dmi_call_name(call), "ab"[i],
                            call -> args.i[i]);
        }
    }
    _Static_assert((int)DM_N == 0 && (int)DM_C == DMI_CONJUGATED, "plans read what callers give");
    _Static_assert((int)DM_COMPUTE_DEFAULT == DMI_COMPUTE_DEFAULT && (int)DM_COMPUTE_F32 == DMI_COMPUTE_F32 &&
                       (int)DM_COMPUTE_TF32 == DMI_COMPUTE_TF32,
                   "plans read what callers give");
    int compute = call->compute;
    if (compute != DM_COMPUTE_DEFAULT && compute != DM_COMPUTE_F32 && compute != DM_COMPUTE_TF32) {
        return dmi_fail(
            DM_ERR_ARG,
            "%s: options: compute is %d, not DM_COMPUTE_DEFAULT, DM_COMPUTE_F32 or DM_COMPUTE_TF32",
            dmi_call_name(call), compute);
    }
    dm_status fits = check_shapes(call);
    if (fits != DM_OK) {
        return fits;
    }
    for (int i = 0; i < 2; i++) {
        dm_dtype type = call->operand[i].desc.dtype;
        if (dmi_dtype_is_complex(type) && !dmi_dtype_is_complex(call->operand[2].desc.dtype)) {
            return dmi_fail(DM_ERR_DTYPE, "%s: %c has dtype %s, but c has %s", dmi_call_name(call), "ab"[i],
                            dmi_dtype_name(type), dmi_dtype_name(call->operand[2].desc.dtype));
        }
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
    dmi_plan_linear(b, (dmi_value[]){{.desc = &product}, c}, (bool[]){false, !call->args.i[2]}, &c);
}

/* A product of matrices, by the best algorithm. */
static dm_status plan_matrices(dmi_builder *b, const dmi_call *call, const dmi_ref *out, const uint8_t scalar[2])
{
    dmi_product p;
    dmi_choice how;
    dm_status status = dmi_product_begin(b, call, &p);
    p.out = *out;
    memcpy(p.scalar, scalar, sizeof p.scalar);
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
    b->plan->moving = how.algorithm == DMI_GEMM_CYCLIC || panels || ring ? how.moving
                      : how.algorithm == DMI_GEMM_FUSED                  ? dmi_fused_moving(&p)
                                                                         : -1;
    bool both = panels && dmi_product_traffic(&p, 1 - how.moving) > 0;
    if (both || p.c != p.user_c) { /* (an explicit c: its holders are not the workers that multiply) */
        b->plan->moving = -1;
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
        assert(how.algorithm == DMI_GEMM_STATIONARY);
        dmi_stationary_plan(&p);
    }
    dmi_product_end(&p);
    return status;
}

static dm_status plan_batched(dmi_builder *b, const dmi_call *call, const dmi_ref *out, const uint8_t scalar[2])
{
    dmi_product p;
    dmi_product_operands(b, call, &p);
    p.out = *out;
    memcpy(p.scalar, scalar, sizeof p.scalar);
    int forced = b->profile->gemm_algorithm;
    bool local = dmi_batched_local(&p);
    if (forced != DMI_GEMM_AUTO && forced != DMI_GEMM_STATIONARY && !local) {
        return dmi_fail(
            DM_ERR_UNSUPPORTED,
            "%s: the forced algorithm (option gemm_algorithm=%s) is for matrices; operands of more "
            "dims have a form of their own",
            dmi_call_name(call), dmi_gemm_name(forced));
    }
    b->plan->compute = p.compute;
    strcpy(b->plan->algorithm, local ? "local" : "batched");
    dmi_batched_plan(&p);
    return DM_OK;
}

bool dmi_gemm_adds_nothing(const dmi_call *call)
{
    const dmi_desc *a = &call->operand[0].desc;
    int64_t k = a->ndim == 1 ? a->extent[0] : a->extent[a->ndim - 1 - (call->args.i[0] != DM_N)];
    return call->args.i[3] || k == 0;
}

dm_status dmi_product_plan(dmi_builder *b, const dmi_call *call, const dmi_ref *out, const uint8_t scalar[2])
{
    dmi_lifted lifted;
    dmi_lift(call, &lifted);
    bool stack = lifted.call.operand[2].desc.ndim > 2;
    return stack ? plan_batched(b, &lifted.call, out, scalar) : plan_matrices(b, &lifted.call, out, scalar);
}

dm_status dmi_gemm_plan(dmi_builder *b, const dmi_call *call)
{
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    if (dmi_gemm_adds_nothing(call)) {
        scale_only(b, call);
        return DM_OK;
    }
    dmi_ref c = dmi_ref_operand(DMI_GEMM_C, DMI_READ);
    dm_status status = dmi_product_plan(b, call, &c, (uint8_t[]){DMI_SCALAR_S0, DMI_SCALAR_S1});
    if (b->plan->moving >= 0 && call->operand[b->plan->moving].desc.ndim != 2) {
        b->plan->moving = -1; /* a replica of a vector is not lifted to a matrix */
    }
    return status;
}
