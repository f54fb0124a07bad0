/* out = an expression of arrays and numbers, or the reduction of one */
#include "expr/expr.h"
#include "ops/by.h"
#include "ops/common.h"
#include "ops/reduce.h"

#include <assert.h>
#include <string.h>

/* An expression and what its names stand for in a session. */
typedef struct request {
    dmi_session *s;
    const char *text;
    dm_dtype random; /* the type of random numbers */
    dmi_expr expr;
    int arrays;
    dm_array array[DMI_MAP_INPUTS + 1];
    dmi_handle *handle[DMI_MAP_INPUTS];
    const char *name[DMI_MAP_INPUTS + 1];
} request;

static dm_status find_array(request *q, const dm_map_arg *arg, dmi_expr_variable *v)
{
    const char *what = arg->name ? arg->name : "an array without a name";
    dmi_handle *h = NULL;
    dm_status status = q->arrays < DMI_MAP_INPUTS
                           ? dmi_handle_find(q->s, arg->array, what, &h)
                           : dmi_fail(DM_ERR_ARG, "map: more than %d arrays are given", DMI_MAP_INPUTS);
    if (status != DM_OK) {
        return status;
    }
    v->dtype = h->desc.dtype;
    q->name[q->arrays] = arg->name;
    q->array[q->arrays] = arg->array;
    q->handle[q->arrays++] = h;
    return DM_OK;
}

/* Random numbers have the type of out, where it is known, but for f64 or f32. */
static dm_dtype random_type(const request *q, const dm_array *out)
{
    dmi_handle *h = NULL;
    bool narrow = out && dmi_handle_find(q->s, *out, "out", &h) == DM_OK && dmi_dtype_is_float(h->desc.dtype) &&
                  h->desc.dtype != DM_F64;
    return narrow ? DM_F32 : DM_F64;
}

/* out: where the result is to go; NULL: into a new array. */
static dm_status compile(request *q, dm_session *session, const char *expression, int count,
                         const dm_map_arg *args, const dm_array *out)
{
    dmi_expr_variable variable[DMI_EXPR_VARIABLES] = {0};
    dm_status status = dmi_enter(session, &q->s);
    if (status != DM_OK) {
        return status;
    }
    if (!expression || (count > 0 && !args)) {
        return dmi_fail(DM_ERR_ARG, "map: %s is NULL", !expression ? "expression" : "args");
    }
    if (count < 0 || count > DMI_EXPR_VARIABLES) {
        return dmi_fail(DM_ERR_ARG, "map: count is %d, not 0 to %d", count, DMI_EXPR_VARIABLES);
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        if (args[i].kind < DM_MAP_ARRAY || args[i].kind > DM_MAP_INTEGER) {
            return dmi_fail(DM_ERR_ARG, "map: args[%d].kind is %d: use DM_ARG, DM_NUMBER or DM_INTEGER", i,
                            args[i].kind);
        }
        variable[i] = (dmi_expr_variable){.name = args[i].name,
                                          .kind = (enum dmi_expr_kind)args[i].kind,
                                          .number = args[i].number,
                                          .integer = args[i].integer};
        status = args[i].kind == DM_MAP_ARRAY ? find_array(q, &args[i], &variable[i]) : DM_OK;
    }
    q->text = expression;
    q->random = random_type(q, out);
    return status == DM_OK ? dmi_expr_compile(expression, count, variable, q->random, &q->expr) : status;
}

/* An array that is named before the '=' must be out. */
static dm_status check_target(const request *q, const dmi_handle *out)
{
    for (int i = 0; i < q->arrays; i++) {
        dmi_handle *x = NULL;
        dm_status status = strcmp(q->name[i], q->expr.target) == 0
                               ? dmi_handle_find(q->s, q->array[i], q->name[i], &x)
                               : DM_OK;
        if (status != DM_OK) {
            return status;
        }
        if (x && (x->storage != out->storage || memcmp(x->desc.lo, out->desc.lo, sizeof out->desc.lo) != 0 ||
                  memcmp(x->desc.extent, out->desc.extent, sizeof out->desc.extent) != 0 ||
                  memcmp(x->desc.skip, out->desc.skip, sizeof out->desc.skip) != 0)) {
            return dmi_fail(DM_ERR_ARG, "map: the expression assigns to %s, but out is another array",
                            q->name[i]);
        }
    }
    return DM_OK;
}

/* The shape that the arrays broadcast to. */
static dm_status joined_shape(const request *q, int *ndim, int64_t *shape)
{
    const dmi_desc *x[DMI_MAP_INPUTS];
    for (int i = 0; i < q->arrays; i++) {
        x[i] = &q->handle[i]->desc;
    }
    int misfit = dmi_desc_broadcast(q->arrays, x, ndim, shape);
    if (misfit >= 0) {
        char text[192];
        return dmi_fail(DM_ERR_SHAPE, "map: %s is %s, which does not broadcast with the other arrays", q->name[misfit],
                        dmi_shape_text(x[misfit], text));
    }
    return DM_OK;
}

/* The call becomes one of the op `reduce`. */
static dm_status add_reduction(const request *q, dmi_call *call)
{
    const dmi_expr *e = &q->expr;
    int ndim;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = joined_shape(q, &ndim, shape);
    call->op = DMI_OP_reduce;
    call->args.i[DMI_REDUCE_ROW] = e->reduction->row;
    if ((e->value.at & DMI_AT_KIND) == DMI_AT_INPUT &&
        e->made == 0) { /* elements as they are need no program */
        call->tail = NULL;
        call->tail_bytes = call->tail_key = 0;
    } else {
        call->args.i[DMI_REDUCE_MADE] = (int)dmi_dtype_carrier(e->value.dtype);
    }
    if (e->reduction->scaled) {
        call->number[call->numbers++] = (dmi_number){0};
        call->args.i[DMI_REDUCE_SCALE] = call->numbers;
    }
    return status == DM_OK ? dmi_expr_reduced(e, q->text, ndim, &call->args.i[0]) : status;
}

static dm_status submit(request *q, dm_session *session, dm_array out)
{
    dmi_handle *h = NULL;
    dm_status status = dmi_handle_find(q->s, out, "out", &h);
    if (status != DM_OK || (status = check_target(q, h)) != DM_OK) {
        return status;
    }
    dmi_map_builder *map = &q->expr.map;
    dmi_map_value *value = &q->expr.value;
    int ndim = h->desc.ndim;
    int64_t shape[DM_MAX_DIMS];
    memcpy(shape, h->desc.extent, sizeof shape);
    status = q->expr.reduction ? joined_shape(q, &ndim, shape) : DM_OK;
    status = status == DM_OK ? dmi_expr_place(&q->expr, q->text, ndim, shape) : status;
    if (status != DM_OK) {
        return status;
    }
    if (q->expr.reduction && dmi_reduce_in_floats(q->expr.reduction->row, q->expr.reduction->scaled, value->dtype) &&
        (value->at & DMI_AT_KIND) != DMI_AT_INPUT) { /* of an array alone: dmi_reduce_plan */
        *value = dmi_map_cast(map, *value, DM_F64);
    }
    if (q->expr.reduction && q->expr.reduction->row == DMI_REDUCTION_prod && (value->at & DMI_AT_KIND) != DMI_AT_INPUT &&
        (value->dtype == DM_U8 || value->dtype == DM_U16 || value->dtype == DM_U32)) {
        *value = dmi_map_cast(map, *value, DM_U64); /* their carrier has a sign, which their product has not */
    }
    /* Elements that are reduced are not rounded before. */
    dmi_map_result(map, *value, q->expr.reduction ? dmi_dtype_carrier(value->dtype) : h->desc.dtype);
    if (map->full) {
        return dmi_fail(DM_ERR_ARG, "map: the expression is too long: it takes too many %s", map->full);
    }
    q->name[q->arrays] = "out";
    q->array[q->arrays] = out;
    int64_t bytes = (int64_t)dmi_map_program_bytes(&map->program);
    dmi_call call = {.op = DMI_OP_map,
                     .noperand = q->arrays + 1,
                     .names = q->name,
                     .numbers = map->numbers,
                     .tail = &map->program,
                     .tail_bytes = bytes,
                     .tail_key = bytes};
    memcpy(call.number, map->number, (size_t)map->numbers * sizeof *map->number);
    call.seeds |= q->expr.seeds;
    status = q->expr.reduction ? add_reduction(q, &call) : DM_OK;
    return status == DM_OK ? dmi_call_submit(session, &call, q->array) : status;
}

dm_status dm_map(dm_session *session, const char *expression, int count, const dm_map_arg *args, dm_array out)
{
    request q = {0};
    dm_status status = compile(&q, session, expression, count, args, &out);
    return status == DM_OK ? submit(&q, session, out) : status;
}

/* An array whose layout a result of this shape can have as it is; NULL: none is. */
static const dmi_handle *layout_source(const request *q, int ndim, const int64_t *shape)
{
    for (int i = 0; i < q->arrays; i++) {
        const dmi_handle *h = q->handle[i];
        if (!h->view && h->desc.ndim == ndim &&
            memcmp(h->desc.extent, shape, (size_t)ndim * sizeof *shape) == 0) {
            return h;
        }
    }
    return NULL;
}

/* Of a new array: the elements' shape, or the dims of it that are kept. */
static dm_status result_shape(const request *q, int *ndim, int64_t *shape)
{
    int32_t reduced = 0;
    int kept = 0;
    dm_status status = joined_shape(q, ndim, shape);
    if (status == DM_OK && q->expr.reduction) {
        status = dmi_expr_reduced(&q->expr, q->text, *ndim, &reduced);
    }
    for (int d = 0; d < *ndim && status == DM_OK; d++) {
        if (!(reduced >> d & 1)) {
            shape[kept++] = shape[d];
        }
    }
    *ndim = kept;
    return status;
}

dm_status dm_map_new(dm_session *session, const char *expression, int count, const dm_map_arg *args,
                     const dm_layout *layout, dm_array *out)
{
    request q = {0};
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS] = {0};
    dm_array made;
    dm_status status = compile(&q, session, expression, count, args, NULL);
    if (status == DM_OK && !out) {
        status = dmi_fail(DM_ERR_ARG, "map: out is NULL");
    }
    if (status != DM_OK || (status = result_shape(&q, &ndim, shape)) != DM_OK) {
        return status;
    }
    dm_dtype dtype = q.expr.dtype;
    assert(dmi_ops[DMI_OP_map].operand[0].dtypes >> dtype & 1); /* all types: an expression has one of them */
    const dmi_handle *like = layout || q.expr.reduction ? NULL : layout_source(&q, ndim, shape);
    status = like ? dmi_array_make(q.s, dtype, like->desc.layout, like->desc.layout_id, false, &made)
                  : dm_array_create(session, dtype, ndim, shape, layout, &made);
    if (status != DM_OK) {
        return status;
    }
    status = submit(&q, session, made);
    if (status != DM_OK) {
        dmi_array_drop(q.s, made);
        return status;
    }
    *out = made;
    return DM_OK;
}

dm_status dmi_map_check(dmi_call *call)
{
    int out = call->noperand - 1;
    dm_status status = DM_OK;
    call->operand[out].mode = DMI_WRITE;
    for (int i = 0; i < out && status == DM_OK; i++) {
        if (call->args.i[DMI_MAP_ELEMENTS] >> i & 1) {
            status = dmi_check_element(call, i, out);
            continue;
        }
        call->operand[i].mode = DMI_READ;
        status = dmi_check_broadcast(call, i, out);
        status = status == DM_OK ? dmi_check_overlap(call, i, out, true) : status;
    }
    return status;
}

dm_status dmi_map_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_map_program program = {0};
    dmi_value in[DMI_MAP_INPUTS], out = dmi_value_operand(call, call->noperand - 1);
    memcpy(&program, call->tail, (size_t)call->tail_key);
    for (int i = 0; i < call->noperand - 1; i++) {
        in[i] = dmi_value_operand(call, i);
    }
    dmi_plan_randoms(b, call, out.desc, in + call->noperand - 1);
    if (!b->failed) { /* else they are no values */
        dmi_plan_map(b, &program, in, &out);
    }
    return DM_OK;
}
