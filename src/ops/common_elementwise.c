/* Which calls are one elementwise program, and of which of their operands. */
#include "kernels/box/convert.h"
#include "kernels/random/fill.h"
#include "ops/copy_parts.h"
#include "ops/joined.h"

#include <string.h>

static void take_inputs(dmi_elementwise *e, int first, int count)
{
    for (int i = 0; i < count; i++) {
        e->input[i] = first + i;
    }
}

static void types_of(const dmi_call *call, int count, dm_dtype *dtype)
{
    for (int i = 0; i < count; i++) {
        dtype[i] = call->operand[i].desc.dtype;
    }
}

/* alpha * a + beta * b; args.i: is alpha 0, and beta? */
static bool of_linear(const dmi_call *call, dmi_elementwise *e)
{
    dm_dtype dtype[2];
    types_of(call, 2, dtype);
    int first = dmi_linear_program(dtype, (bool[]){!call->args.i[0], !call->args.i[1]}, call->operand[e->out].desc.dtype,
                                   &e->program);
    take_inputs(e, first, e->program.inputs);
    return true;
}

/* alpha * a, or alpha * a * b; args.i[0]: is alpha 0? */
static bool of_scaled(const dmi_call *call, dmi_elementwise *e)
{
    dm_dtype dtype[2];
    int row = call->op == DMI_OP_scale ? DMI_EW_scale : DMI_EW_product;
    types_of(call, e->out, dtype);
    dmi_scaled_program(row, e->out, dtype, !call->args.i[0], call->operand[e->out].desc.dtype, &e->program);
    take_inputs(e, 0, e->program.inputs);
    return true;
}

static bool of_row(const dmi_call *call, dmi_elementwise *e)
{
    dm_dtype dtype[3] = {0};
    types_of(call, e->out, dtype);
    take_inputs(e, 0, e->out);
    return dmi_map_row(call->args.i[0], dtype, NULL, call->operand[e->out].desc.dtype, &e->program) == DM_OK;
}

static bool of_program(const dmi_call *call, dmi_elementwise *e)
{
    memcpy(&e->program, call->tail, (size_t)call->tail_key);
    take_inputs(e, 0, e->out);
    return dmi_map_inputs_read(&e->program) == e->out && e->program.inputs == e->out;
}

/* A copy to where the elements are already, but not onto themselves: that is no work. What is only moved keeps
 * its bits, which those of 16 and 8 bits may not do by way of a carrier: NaNs. */
static bool of_copy(const dmi_call *call, dmi_elementwise *e)
{
    const dmi_desc *src = &call->operand[0].desc, *dst = &call->operand[1].desc;
    bool moves = src->dtype == dst->dtype && dmi_dtype_is_float(src->dtype) && dmi_dtype_bytes(src->dtype) < 4;
    if (call->args.i[0] != 0 || call->args.i[DMI_COPY_ADDED] != 0 || moves || !dmi_same_place(src, dst) ||
        call->operand[0].memory == call->operand[1].memory) {
        return false;
    }
    dmi_convert_program(src->dtype, dst->dtype, &e->program);
    e->exact = src->dtype == dst->dtype;
    return true;
}

/* A constant: the number as the array will have it. */
static bool of_fill(const dmi_call *call, dmi_elementwise *e)
{
    const dm_dtype dtype = call->operand[0].desc.dtype, part = dmi_dtype_part(dtype);
    dmi_map_builder m = {.numbers = 1};
    dmi_raw64 stored[2] = {0};
    if (call->args.i[0] != DMI_FILL_CONST || call->noperand != 1) {
        return false;
    }
    dmi_convert_row(DM_F64, part, &call->number[0].re, stored, 1);
    dmi_convert_row(part, DM_F64, stored, &e->number.re, 1);
    dmi_convert_row(part, dtype == DM_U64 ? DM_U64 : DM_I64, stored, &e->number.whole, 1);
    dmi_map_result(&m, dmi_map_constant(&m, 0, dmi_dtype_carrier(dtype)), dtype);
    e->program = m.program;
    e->exact = true;
    return true;
}

bool dmi_same_place(const dmi_desc *a, const dmi_desc *b)
{
    bool same = a->ndim == b->ndim && (a->layout_id == b->layout_id || dmi_layout_equal(a->layout, b->layout));
    for (int d = 0; d < a->ndim && same; d++) {
        same = a->lo[d] == b->lo[d] && a->extent[d] == b->extent[d] && a->skip[d] == b->skip[d];
    }
    return same;
}

bool dmi_elementwise_of(const dmi_call *call, dmi_elementwise *e)
{
    *e = (dmi_elementwise){.out = call->noperand - 1,
                           .number = call->numbers > 0 ? call->number[0] : (dmi_number){0}};
    switch (call->op) {
    case DMI_OP_add:
    case DMI_OP_axpby:
        return of_linear(call, e);
    case DMI_OP_scale:
    case DMI_OP_multiply:
        return of_scaled(call, e);
    case DMI_OP_ewise:
        return of_row(call, e);
    case DMI_OP_map:
        return of_program(call, e);
    case DMI_OP_copy:
        return of_copy(call, e);
    case DMI_OP_fill:
        return of_fill(call, e);
    default:
        return false;
    }
}

dm_status dmi_elementwise_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_elementwise e;
    dmi_value in[DMI_MAP_INPUTS], out;
    if (!dmi_elementwise_of(call, &e)) {
        return dmi_fail(DM_ERR_INTERNAL, "%s: it is no elementwise program", dmi_call_name(call));
    }
    for (int i = 0; i < e.program.inputs; i++) {
        in[i] = dmi_value_operand(call, e.input[i]);
    }
    out = dmi_value_operand(call, e.out);
    dmi_plan_map(b, &e.program, in, &out);
    return DM_OK;
}
