/* out = the reduction of x over dims: the rows of reduce.def, each with a call of its name */
#include "ops/common.h"
#include "ops/reduce.h"
#include "plan/reduce.h"

#include <dmath/reduce.h>

#include <assert.h>
#include <math.h>
#include <string.h>

enum { NO_SCALE, SCALED }; /* DMI_REDUCE_SCALE: divided by the only number */

typedef struct manner {
    int scale;         /* NO_SCALE, SCALED */
    double correction; /* with that */
    bool accumulates;
} manner;

static dm_status submit(dm_session *session, int row, manner how, dm_array x, const int *dims, int ndims,
                        dm_array out)
{
    static const char *const names[] = {"x", "out"};
    dmi_call call = {.op = DMI_OP_reduce,
                     .noperand = 2,
                     .called = dmi_api_number(),
                     .names = names,
                     .args = {.i = {[DMI_REDUCE_ROW] = row,
                                    [DMI_REDUCE_SCALE] = how.scale,
                                    [DMI_REDUCE_ACCUMULATES] = how.accumulates}},
                     .numbers = 1,
                     .number = {{.re = how.correction}}};
    dm_status status = dmi_call_dims(&call, dims, ndims);
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, out}) : status;
}

enum { DMI_REDUCTION_mean = DMI_REDUCTION_sum };
#define CALL(name)                                                                                             \
    dm_status dm_##name(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out)             \
    {                                                                                                          \
        int row = DMI_REDUCTION_##name;                                                                        \
        return submit(session, row, (manner){.scale = row == DMI_REDUCTION_mean ? SCALED : NO_SCALE}, x, dims, \
                      ndims, out);                                                                             \
    }
DM_REDUCE_MAP(CALL)

#define ACCUMULATE(name)                                                                                       \
    dm_status dm_accumulate_##name(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out)  \
    {                                                                                                          \
        return submit(session, DMI_REDUCTION_##name, (manner){.accumulates = true}, x, dims, ndims, out);      \
    }
DM_ACCUMULATE_MAP(ACCUMULATE)

dm_status dm_var(dm_session *session, dm_array x, const int *dims, int ndims, double correction, dm_array out)
{
    return submit(session, DMI_REDUCTION_var, (manner){SCALED, correction, false}, x, dims, ndims, out);
}

dm_status dm_std(dm_session *session, dm_array x, const int *dims, int ndims, double correction, dm_array out)
{
    return submit(session, DMI_REDUCTION_std, (manner){SCALED, correction, false}, x, dims, ndims, out);
}

dm_status dm_norm(dm_session *session, dm_array x, double order, const int *dims, int ndims, dm_array out)
{
    int row = order == 1   ? DMI_REDUCTION_norm_1
              : order == 2 ? DMI_REDUCTION_norm_2
              : order == (double)INFINITY ? DMI_REDUCTION_norm_inf
                                          : -1;
    if (row < 0) {
        return dmi_fail(DM_ERR_ARG, "norm: order is %g, not 1, 2 or INFINITY", order);
    }
    return submit(session, row, (manner){.scale = NO_SCALE}, x, dims, ndims, out);
}

/* The shape that the inputs broadcast to. There is one: dm_map has looked, and all others have one input. */
static void join_shapes(const dmi_call *call, dmi_desc *shape)
{
    const dmi_desc *x[DMI_MAX_OPERANDS] = {0};
    for (int i = 0; i < call->noperand - 1; i++) {
        x[i] = &call->operand[i].desc;
    }
    *shape = (dmi_desc){0};
    int misfit = dmi_desc_broadcast(call->noperand - 1, x, &shape->ndim, shape->extent);
    assert(misfit < 0);
    (void)misfit;
}

/* How many elements each result has. */
static double elements_of(const dmi_call *call, const dmi_desc *x)
{
    double n = 1;
    for (int d = 0; d < x->ndim; d++) {
        n *= call->args.i[0] >> d & 1 ? (double)x->extent[d] : 1;
    }
    return n;
}

static dm_status check_types(const dmi_call *call, dm_dtype x, dm_dtype out)
{
    int acc = dmi_acc_for(call->args.i[DMI_REDUCE_ROW], x);
    if (acc < 0) {
        return dmi_fail(DM_ERR_DTYPE, "%s: does not take %s of %s", dmi_call_name(call),
                        call->tail_key > 0 ? "an expression" : dmi_operand_name(call, 0), dmi_dtype_name(x));
    }
    if (call->args.i[DMI_REDUCE_SCALE] && !dmi_dtype_is_float(out) && !dmi_dtype_is_complex(out)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: out has dtype %s; the result is a floating-point number", dmi_call_name(call),
                        dmi_dtype_name(out));
    }
    if (dmi_dtype_is_complex(dmi_acc_result(acc)) && out == DM_BOOL) {
        return dmi_fail(DM_ERR_DTYPE, "%s: out has dtype bool; a complex result is taken by a number",
                        dmi_call_name(call));
    }
    if (call->args.i[DMI_REDUCE_ACCUMULATES]) {
        const dm_dtype result = dmi_acc_result(acc);
        assert(dmi_acc_accumulates(acc));
        if (dmi_dtype_is_complex(out) != dmi_dtype_is_complex(result)) {
            return dmi_fail(DM_ERR_DTYPE, "%s: out has dtype %s; the result, %s, is taken by %s",
                            dmi_call_name(call), dmi_dtype_name(out), dmi_dtype_name(result),
                            dmi_dtype_is_complex(result) ? "a complex array" : "a real one");
        }
        if (dmi_dtype_promote(out, result) != result) {
            return dmi_fail(DM_ERR_DTYPE,
                            "%s: out has dtype %s, which %s, the type of the result, does not hold",
                            dmi_call_name(call), dmi_dtype_name(out), dmi_dtype_name(result));
        }
    }
    return DM_OK;
}

dm_status dmi_reduce_check(dmi_call *call)
{
    int out = call->noperand - 1, row = call->args.i[DMI_REDUCE_ROW];
    const bool accumulates = call->args.i[DMI_REDUCE_ACCUMULATES];
    dmi_desc x;
    join_shapes(call, &x);
    call->operand[out].mode = accumulates ? DMI_READWRITE : DMI_WRITE;
    dm_status status = dmi_check_reduced(call, &x, out);
    for (int i = 0; i < out && status == DM_OK; i++) {
        call->operand[i].mode = DMI_READ;
        status = dmi_check_overlap(call, i, out, false);
    }
    dm_dtype made = call->args.i[DMI_REDUCE_MADE] ? (dm_dtype)call->args.i[DMI_REDUCE_MADE] : call->operand[0].desc.dtype;
    status = status == DM_OK ? check_types(call, made, call->operand[out].desc.dtype) : status;
    if (status != DM_OK) {
        return status;
    }
    int64_t elements = 1;
    for (int d = 0; d < x.ndim; d++) { /* as of an array: so many have no places */
        if (!dmi_mul_fits(elements, DMI_MAX(x.extent[d], 1), &elements) || elements > DMI_LAYOUT_MOST) {
            char text[192];
            return dmi_fail(DM_ERR_SHAPE, "%s: the operands broadcast to %s, which is too large", dmi_call_name(call),
                            dmi_shape_text(&x, text));
        }
    }
    double n = elements_of(call, &x);
    bool start = row == DMI_REDUCTION_min || row == DMI_REDUCTION_max || row == DMI_REDUCTION_argmin ||
                 row == DMI_REDUCTION_argmax;
    bool results = true;
    for (int d = 0; d < call->operand[out].desc.ndim; d++) {
        results = results && call->operand[out].desc.extent[d] > 0;
    }
    if (n == 0 && start && results && !accumulates) {
        return dmi_fail(DM_ERR_SHAPE, "%s: %s has no elements along the reduced dims", dmi_call_name(call),
                        call->tail_key > 0 ? "the expression" : dmi_operand_name(call, 0));
    }
    if (call->args.i[DMI_REDUCE_SCALE]) {
        dmi_number *scale = &call->number[call->args.i[DMI_REDUCE_SCALE] - 1];
        double less = n - scale->re;
        if (scale->re != scale->re) {
            return dmi_fail(DM_ERR_ARG, "%s: correction is NaN", dmi_call_name(call));
        }
        *scale = dmi_number_of(less > 0 ? less : 0);
    }
    return DM_OK;
}

dm_status dmi_reduce_plan(dmi_builder *b, const dmi_call *call)
{
    int inputs = call->noperand - 1, random = dmi_randoms_of(call), scale = call->args.i[DMI_REDUCE_SCALE];
    dm_status status;
    dmi_desc like = {0};
    bool own;
    dmi_value in[DMI_MAP_INPUTS], out = dmi_value_operand(call, inputs);
    dmi_map_program program = {0};
    dmi_reducing r = {.row = call->args.i[DMI_REDUCE_ROW],
                      .reduced = (unsigned)call->args.i[0],
                      .inputs = inputs + random,
                      .in = in,
                      .out = &out,
                      .scalar = {scale ? (uint8_t)(DMI_SCALAR_S0 + scale - 1) : DMI_SCALAR_ONE,
                                 call->args.i[DMI_REDUCE_ACCUMULATES] ? DMI_SCALAR_ONE : DMI_SCALAR_ZERO},
                      .divides = scale != 0};
    for (int i = 0; i < inputs; i++) {
        in[i] = dmi_value_operand(call, i);
    }
    status = random ? dmi_build_frame(b, inputs, in, &out, DM_F64, &like, &own) : DM_OK;
    if (status != DM_OK || b->failed) {
        return status;
    }
    dmi_plan_randoms(b, call, &like, in + inputs);
    if (call->tail_key > 0) {
        memcpy(&program, call->tail, (size_t)call->tail_key);
        r.program = &program;
        r.made = (dm_dtype)call->args.i[DMI_REDUCE_MADE];
    } else if (dmi_reduce_in_floats(r.row, scale, in[0].desc->dtype)) {
        status = dmi_program_of("f64(x)", 1, &in[0].desc->dtype, DM_F64, &program);
        r.program = &program;
        r.made = DM_F64;
    }
    return status == DM_OK && !b->failed ? dmi_plan_reduce(b, &r) : status; /* failed: what is random is no value */
}
