/* c = alpha * op(a) * op(b) + beta * c, with factors that may be elements: a product, then an expression of it
 */
#include "base/sized.h"
#include "ops/by.h"
#include "ops/product/gemm.h"

#include <string.h>

enum { FIRST_ELEMENT = DMI_GEMM_C + 1, BETA_ZERO = 2, ALPHA_ZERO /* args.i, as gemm's */ };

/* Errors of alpha where there is nothing that it multiplies. */
static dm_status check_unread(const dmi_by *by, const dm_factor *alpha, dm_array c)
{
    dmi_operand out;
    dm_status status = dmi_operand_find(by->s, c, "c", &out);
    return status == DM_OK ? dmi_factor_apart(by->s, "alpha", alpha, by->type, "c", &out) : status;
}

/* The operands, the factors that count, and their expression. */
static dm_status make(dmi_by *by, dm_factor alpha, const dm_array *array, dm_factor beta)
{
    static const char *const name[] = {"a", "b", "c"};
    const dmi_desc *x[3];
    char text[256] = "";
    dm_status status = DM_OK;
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        status = dmi_by_find(by, name[i], array[i], &x[i]);
        dmi_by_operand(by, name[i], array[i], NULL, 0);
        by->call.operand[i].desc = status == DM_OK ? *x[i] : (dmi_desc){0};
    }
    status = status == DM_OK ? dmi_gemm_check(&by->call) : status;
    if (status != DM_OK) {
        return status;
    }
    dm_dtype type = dmi_product_type(x[0]->dtype, x[1]->dtype, x[2]->dtype);
    by->type = type;
    if (!dmi_gemm_adds_nothing(&by->call)) {
        dmi_by_variable(by, "t", type);
    }
    if (!by->call.args.i[BETA_ZERO]) {
        dmi_by_variable(by, "c", x[2]->dtype);
        status = dmi_by_factor(by, "q", "beta", &beta);
    }
    if (status == DM_OK) {
        status = dmi_gemm_adds_nothing(&by->call) ? check_unread(by, &alpha, array[2])
                                                  : dmi_by_factor(by, "p", "alpha", &alpha);
    }
    if (!dmi_gemm_adds_nothing(&by->call)) {
        dmi_by_term(by, text, "pt");
    }
    if (!by->call.args.i[BETA_ZERO]) {
        dmi_by_term(by, text, "qc");
    }
    return status == DM_OK ? dmi_by_program(by, text[0] ? text : "0", x[2]->dtype) : status;
}

dm_status dm_gemm_by(dm_session *session, int trans_a, int trans_b, dm_factor alpha, dm_array a, dm_array b,
                     dm_factor beta, dm_array c, const dm_gemm_options *options)
{
    dm_gemm_options known = DM_GEMM_OPTIONS_INIT;
    dmi_by by;
    if (dmi_factor_real(&alpha) && dmi_factor_real(&beta)) {
        return dm_gemm_with(session, trans_a, trans_b, alpha.value, a, b, beta.value, c, options);
    }
    dm_status status = options
                           ? dmi_sized_take(options, DMI_SIZED_LEAST(dm_gemm_options, compute), &known,
                                            sizeof known, "gemm_by: options: start from DM_GEMM_OPTIONS_INIT")
                           : DM_OK;
    if (status != DM_OK || (status = dmi_by_begin(&by, session, DMI_OP_gemm_by)) != DM_OK) {
        return status;
    }
    by.call.called = dmi_api_number();
    by.call.compute = known.compute;
    memcpy(by.call.args.i, (int[]){trans_a, trans_b, dmi_factor_zero(&beta), dmi_factor_zero(&alpha)},
           4 * sizeof(int));
    status = make(&by, alpha, (dm_array[]){a, b, c}, beta);
    return status == DM_OK ? dmi_by_submit(&by, session) : status;
}

dm_status dmi_gemm_by_check(dmi_call *call)
{
    dm_status status = dmi_gemm_check(call);
    for (int i = FIRST_ELEMENT; i < call->noperand && status == DM_OK; i++) {
        status = dmi_check_element(call, i, DMI_GEMM_C);
    }
    return status;
}

/* The product, in its own type: in c's place, or a temporary. */
static dm_status plan_product(dmi_builder *b, const dmi_call *call, dmi_desc *temporary, dmi_value *t)
{
    dmi_call product = *call;
    dmi_value c = dmi_value_operand(call, DMI_GEMM_C);
    dm_dtype type = dmi_product_type(call->operand[0].desc.dtype, call->operand[1].desc.dtype, c.desc->dtype);
    dm_status status = DM_OK;
    *t = c;
    if (!call->args.i[BETA_ZERO] || c.desc->dtype != type) {
        status = dmi_build_like(b, c.desc, type, temporary, t);
    }
    product.noperand = FIRST_ELEMENT;
    product.operand[DMI_GEMM_C].desc = *t->desc;
    product.args.i[BETA_ZERO] = 1;
    if (status == DM_OK && b->me < b->profile->workers && !b->failed) {
        status = dmi_product_plan(b, &product, &t->ref, (uint8_t[])DMI_UNSCALED);
    }
    b->plan->moving = -1;
    dmi_build_phase(b);
    return status;
}

dm_status dmi_gemm_by_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_value in[DMI_MAP_INPUTS], c = dmi_value_operand(call, DMI_GEMM_C);
    dmi_map_program program = {0};
    dmi_desc temporary;
    int inputs = 0;
    memcpy(&program, call->tail, (size_t)call->tail_key);
    if (!dmi_gemm_adds_nothing(call)) {
        dm_status status = plan_product(b, call, &temporary, &in[inputs++]);
        if (status != DM_OK || b->failed) {
            return status;
        }
    }
    if (!call->args.i[BETA_ZERO]) {
        in[inputs++] = c;
    }
    for (int i = FIRST_ELEMENT; i < call->noperand; i++) {
        in[inputs++] = dmi_value_operand(call, i);
    }
    dmi_plan_map(b, &program, in, &c);
    return DM_OK;
}
