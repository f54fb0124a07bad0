/* Calls whose factors may be elements of arrays: their operands, variables and programs. */
#include "ops/by.h"

#include <stdio.h>
#include <string.h>

dm_status dmi_by_begin(dmi_by *by, dm_session *session, int op)
{
    memset(by, 0, sizeof *by);
    by->call.op = op;
    return dmi_enter(session, &by->s);
}

dm_status dmi_by_find(dmi_by *by, const char *name, dm_array a, const dmi_desc **out)
{
    dmi_handle *h = NULL;
    dm_status status = dmi_handle_find(by->s, a, name, &h);
    if (status == DM_OK) {
        *out = &h->desc;
    }
    return status;
}

void dmi_by_variable(dmi_by *by, const char *variable, dm_dtype dtype)
{
    by->variable[by->variables++] =
        (dmi_expr_variable){.name = variable, .kind = DMI_EXPR_ARRAY, .dtype = dtype};
}

void dmi_by_operand(dmi_by *by, const char *name, dm_array a, const char *variable, dm_dtype dtype)
{
    by->array[by->call.noperand] = a;
    by->name[by->call.noperand++] = name;
    if (variable) {
        dmi_by_variable(by, variable, dtype);
    }
}

static bool is_whole(dm_dtype dtype)
{
    return dmi_dtype_is_integer(dtype) || dtype == DM_BOOL;
}

static dm_status take_element(dmi_by *by, const char *variable, const char *name, dm_array a)
{
    const char *call = dmi_api_called();
    const dmi_desc *x;
    dm_status status = dmi_by_find(by, name, a, &x);
    if (status != DM_OK) {
        return status;
    }
    for (int d = 0; d < x->ndim; d++) {
        if (x->extent[d] != 1) {
            char text[192];
            return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, not one element", call, name, dmi_shape_text(x, text));
        }
    }
    if (is_whole(by->type) && !is_whole(x->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, but with integer operands it must be an integer",
                        call, name, dmi_dtype_name(x->dtype));
    }
    if (dmi_dtype_is_complex(x->dtype) && !dmi_dtype_is_complex(by->type)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, but with real operands it must be real", call, name,
                        dmi_dtype_name(x->dtype));
    }
    if (by->call.op == DMI_OP_map) {
        by->call.args.i[DMI_MAP_ELEMENTS] |= 1 << by->call.noperand;
    }
    dmi_by_operand(by, name, a, variable, x->dtype);
    return DM_OK;
}

dm_status dmi_by_factor(dmi_by *by, const char *variable, const char *name, const dm_factor *f)
{
    const char *call = dmi_api_called();
    if (f->element == 1) {
        return take_element(by, variable, name, f->array);
    }
    if (f->element != 0) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is no factor: make it with dm_value, dm_complex or dm_element", call, name);
    }
    if (f->imaginary != 0 && !dmi_dtype_is_complex(by->type)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s is %g%+gi, but with real operands it must be real", call, name, f->value,
                        f->imaginary);
    }
    if (is_whole(by->type) && !dmi_is_whole(f->value)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %g, but with integer operands it must be a whole number", call,
                        name, f->value);
    }
    by->variable[by->variables++] =
        (dmi_expr_variable){.name = variable,
                            .kind = is_whole(by->type) ? DMI_EXPR_INTEGER : DMI_EXPR_NUMBER,
                            .dtype = by->type,
                            .number = f->value,
                            .imaginary = f->imaginary,
                            .integer = is_whole(by->type) ? (int64_t)f->value : 0};
    return DM_OK;
}

void dmi_by_term(const dmi_by *by, char text[256], const char *factors)
{
    /* there are no casts to complex types; promotion does without */
    const char *type = dmi_dtype_is_complex(by->type) ? "" : dmi_dtype_name(by->type);
    size_t used = strlen(text);
    for (const char *f = factors; *f; f++) {
        used += (size_t)snprintf(text + used, 256 - used, "%s%s(%c)",
                                 f > factors ? " * "
                                 : used > 0  ? " + "
                                             : "",
                                 type, *f);
    }
}

dm_status dmi_by_program(dmi_by *by, const char *text, dm_dtype out)
{
    dmi_map_builder *map = &by->expr.map;
    dm_status status = dmi_expr_compile(text, by->variables, by->variable, DM_F64, &by->expr);
    if (status == DM_OK) {
        dmi_map_result(map, by->expr.value, out);
        by->call.tail = &map->program;
        by->call.tail_bytes = by->call.tail_key = (int64_t)dmi_map_program_bytes(&map->program);
        by->call.numbers = map->numbers;
        memcpy(by->call.number, map->number, (size_t)map->numbers * sizeof *map->number);
    }
    return status;
}

dm_status dmi_by_submit(dmi_by *by, dm_session *session)
{
    by->call.names = by->name;
    return dmi_call_submit(session, &by->call, by->array);
}

dm_status dmi_check_element(dmi_call *call, int i, int out)
{
    call->operand[i].mode = DMI_READ;
    return dmi_check_overlap(call, i, out, false);
}
