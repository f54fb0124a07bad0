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

static dm_status check_element(dmi_session *s, const char *name, dm_array a, dm_dtype type,
                               const dmi_desc **out)
{
    const char *call = dmi_api_called();
    dmi_handle *h = NULL;
    dm_status status = dmi_handle_find(s, a, name, &h);
    if (status != DM_OK) {
        return status;
    }
    const dmi_desc *x = *out = &h->desc;
    for (int d = 0; d < x->ndim; d++) {
        if (x->extent[d] != 1) {
            char text[192];
            return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, not one element", call, name, dmi_shape_text(x, text));
        }
    }
    if (is_whole(type) && !is_whole(x->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, but with integer operands it must be an integer",
                        call, name, dmi_dtype_name(x->dtype));
    }
    if (dmi_dtype_is_complex(x->dtype) && !dmi_dtype_is_complex(type)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, but it must be real here", call, name,
                        dmi_dtype_name(x->dtype));
    }
    return DM_OK;
}

static dm_status check_number(const char *name, const dm_factor *f, dm_dtype type)
{
    const char *call = dmi_api_called();
    if (f->imaginary != 0 && !dmi_dtype_is_complex(type)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s is %g%+gi, but it must be real here", call, name, f->value,
                        f->imaginary);
    }
    if (is_whole(type) && !dmi_is_whole(f->value)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %g, but with integer operands it must be a whole number", call,
                        name, f->value);
    }
    return DM_OK;
}

dm_status dmi_factor_check(dmi_session *s, const char *name, const dm_factor *f, dm_dtype type,
                           const dmi_desc **out)
{
    *out = NULL;
    if (f->element == 1) {
        return check_element(s, name, f->array, type, out);
    }
    return f->element == 0
               ? check_number(name, f, type)
               : dmi_fail(DM_ERR_ARG, "%s: %s is no factor: make it with dm_value, dm_complex or dm_element",
                          dmi_api_called(), name);
}

dm_status dmi_factor_apart(dmi_session *s, const char *name, const dm_factor *f, dm_dtype type,
                           const char *out_name, const dmi_operand *out)
{
    const dmi_desc *unused;
    dmi_operand element;
    dm_status status = dmi_factor_check(s, name, f, type, &unused);
    if (status != DM_OK || !f->element || (status = dmi_operand_find(s, f->array, name, &element)) != DM_OK) {
        return status;
    }
    return dmi_operands_overlap(&element, out) == DMI_APART
               ? DM_OK
               : dmi_fail(DM_ERR_OVERLAP, "%s: %s and %s share memory", dmi_api_called(), name, out_name);
}

dm_status dmi_factor_settle(dm_session *session, dm_dtype type, dm_factor *f)
{
    dm_array element;
    dm_layout everywhere = dm_layout_replicated(session);
    if (dmi_factor_real(f)) {
        return DM_OK;
    }
    dm_status status = dm_array_create(session, type, 0, NULL, &everywhere, &element);
    status = status == DM_OK ? dm_fill_by(session, element, *f) : status;
    *f = dm_element(element);
    return status;
}

dm_status dmi_by_factor(dmi_by *by, const char *variable, const char *name, const dm_factor *f)
{
    const dmi_desc *x;
    dm_status status = dmi_factor_check(by->s, name, f, by->type, &x);
    if (status != DM_OK) {
        return status;
    }
    if (x) {
        if (by->call.op == DMI_OP_map) {
            by->call.args.i[DMI_MAP_ELEMENTS] |= 1 << by->call.noperand;
        }
        dmi_by_operand(by, name, f->array, variable, x->dtype);
        return DM_OK;
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

/* The cast of a variable to the type: of a real one of a complex call to the type of its parts. There are no
 * casts of complex ones, which promotion does. */
static const char *cast_of(const dmi_by *by, char variable)
{
    for (int i = 0; i < by->variables; i++) {
        if (by->variable[i].name[0] == variable && dmi_dtype_is_complex(by->variable[i].dtype)) {
            return "";
        }
    }
    return dmi_dtype_name(dmi_dtype_part(by->type));
}

void dmi_by_term(const dmi_by *by, char text[256], const char *factors)
{
    size_t used = strlen(text);
    for (const char *f = factors; *f; f++) {
        used += (size_t)snprintf(text + used, 256 - used, "%s%s(%c)",
                                 f > factors ? " * "
                                 : used > 0  ? " + "
                                             : "",
                                 cast_of(by, *f), *f);
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
