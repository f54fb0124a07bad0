/* Types of nodes: NumPy's promotion, with constants that take the type of the other operands (NEP 50). */
#include "expr/parts.h"

#include <stdio.h>
#include <string.h>

static int new_node(expr_parser *p, expr_node node)
{
    if (p->status != DM_OK) {
        return -1;
    }
    if (p->nodes == EXPR_NODES) {
        return dmi_expr_fail(p, DM_ERR_ARG, node.at, "too long: more than %d operands and functions",
                             EXPR_NODES);
    }
    p->node[p->nodes] = node;
    return p->nodes++;
}

/* The type that a weak constant has alone. */
static dm_dtype own_type(enum expr_weak weak)
{
    return weak == WEAK_BOOL ? DM_BOOL : weak == WEAK_INT ? DM_I64 : DM_F64;
}

int dmi_expr_constant(expr_parser *p, int at, enum expr_weak weak, expr_constant constant)
{
    return new_node(
        p, (expr_node){
               .kind = NODE_CONSTANT, .at = at, .weak = weak, .dtype = own_type(weak), .constant = constant});
}

int dmi_expr_input(expr_parser *p, int at, int variable)
{
    const dmi_expr_variable *v = &p->variable[variable];
    p->used[variable] = true;
    if (v->kind == DMI_EXPR_INTEGER) {
        return dmi_expr_constant(p, at, WEAK_INT, dmi_expr_whole(v->integer, variable));
    }
    if (v->kind == DMI_EXPR_NUMBER && v->imaginary != 0) {
        expr_constant constant = dmi_expr_real(v->number, variable);
        constant.number.im = v->imaginary;
        return new_node(p, (expr_node){.kind = NODE_CONSTANT, .at = at, .dtype = v->dtype, .constant = constant});
    }
    if (v->kind == DMI_EXPR_NUMBER) {
        return dmi_expr_constant(p, at, WEAK_FLOAT, dmi_expr_real(v->number, variable));
    }
    return new_node(p,
                    (expr_node){.kind = NODE_INPUT, .at = at, .dtype = v->dtype, .input = p->input[variable]});
}

static int new_made(expr_parser *p, int at, int kind, dm_dtype dtype, expr_constant seed)
{
    if (p->arrays + p->mades >= DMI_MAP_INPUTS) {
        return dmi_expr_fail(p, DM_ERR_ARG, at,
                             "the expression is too long: more than %d arrays and random numbers",
                             DMI_MAP_INPUTS);
    }
    p->made[p->mades].kind = kind;
    p->made[p->mades].seed = seed;
    return new_node(p, (expr_node){.kind = NODE_INPUT, .at = at, .dtype = dtype, .input = p->arrays + p->mades++});
}

int dmi_expr_random(expr_parser *p, int at, int kind, int seed)
{
    const expr_node *n = &p->node[seed];
    if (n->weak != WEAK_INT || !dmi_expr_fits(&n->constant, DM_U64)) {
        return dmi_expr_fail(p, DM_ERR_ARG, n->at, "a seed is a whole number from 0 to 2^64 - 1");
    }
    return new_made(p, at, kind, p->random_type, n->constant);
}

/* The row-major index of the element, of which all dims' indices are computed. */
static int whole_index(expr_parser *p, int at)
{
    for (int i = 0; i < p->mades; i++) {
        if (p->made[i].kind == DMI_MADE_INDEX) {
            return new_node(p, (expr_node){.kind = NODE_INPUT, .at = at, .dtype = DM_I64, .input = p->arrays + i});
        }
    }
    return new_made(p, at, DMI_MADE_INDEX, DM_I64, (expr_constant){0});
}

/* index / weight % extent: numbers that depend on the elements' shape, which is not known yet. */
int dmi_expr_index(expr_parser *p, int at, int dim)
{
    int slot = 0;
    while (slot < p->indices && p->index[slot].dim != dim) {
        slot++;
    }
    if (slot == DMI_COUNT(p->index)) {
        return dmi_expr_fail(p, DM_ERR_ARG, at, "the expression is too long: indices of more than %d dims", slot);
    }
    if (slot == p->indices) {
        p->index[p->indices].dim = dim;
        p->index[p->indices++].at = at;
    }
    int node = whole_index(p, at);
    for (int which = 0; which < 2 && p->status == DM_OK; which++) {
        int number = dmi_expr_constant(p, at, WEAK_INT, dmi_expr_whole(1, ORIGIN_PLACE - 2 * slot - which));
        node = dmi_expr_apply(p, at, which ? DMI_EW_remainder : DMI_EW_floor_divide, (int[]){node, number, -1});
    }
    return p->status == DM_OK ? node : -1;
}

/* Weak constants beside a type: their own where they are of a higher kind, else that type. */
static dm_dtype beside(dm_dtype strong, enum expr_weak weak)
{
    enum dmi_kind kind = dmi_dtype_kind(strong);
    bool whole = kind == DMI_KIND_BOOL || kind == DMI_KIND_INT || kind == DMI_KIND_UINT;
    bool higher = weak == WEAK_FLOAT ? whole : weak == WEAK_INT && kind == DMI_KIND_BOOL;
    return higher ? own_type(weak) : strong;
}

/* The type of the operands of a row together; *constants: all of its operands are weak. */
static dm_dtype common_type(const expr_parser *p, int row, const int *child, bool *constants)
{
    enum expr_weak weak = WEAK_NOT;
    dm_dtype strong = 0;
    int first = dmi_ew_rows[row].form == DMI_FORM_CHOOSE;
    for (int i = first; i < dmi_ew_rows[row].operands; i++) {
        const expr_node *n = &p->node[child[i]];
        if (n->weak) {
            weak = DMI_MAX(weak, n->weak);
        } else {
            strong = strong ? dmi_dtype_promote(strong, n->dtype) : n->dtype;
        }
    }
    *constants = !strong && (first == 0 || p->node[child[0]].weak);
    return strong ? beside(strong, weak) : own_type(weak);
}

static int not_taken(expr_parser *p, int at, int row, const int *child)
{
    char text[64] = "";
    for (int i = 0; i < dmi_ew_rows[row].operands; i++) {
        strcat(strcat(text, i ? ", " : ""), dmi_dtype_name(p->node[child[i]].dtype));
    }
    return dmi_expr_fail(p, DM_ERR_DTYPE, at, "%s does not take %s", dmi_ew_rows[row].name, text);
}

/* Do the integers among the constants fit the type that they are to take? */
static bool all_fit(expr_parser *p, int row, const int *child, dm_dtype taken)
{
    for (int i = dmi_ew_rows[row].form == DMI_FORM_CHOOSE; i < dmi_ew_rows[row].operands; i++) {
        const expr_node *n = &p->node[child[i]];
        if (n->weak == WEAK_INT && dmi_dtype_is_integer(taken) && !dmi_expr_fits(&n->constant, taken)) {
            __int128 value = dmi_expr_integer(&n->constant);
            dmi_expr_fail(p, DM_ERR_ARG, n->at, "%s%llu does not fit %s, the type of the other operand",
                          value < 0 ? "-" : "", (unsigned long long)(value < 0 ? -value : value),
                          dmi_dtype_name(taken));
            return false;
        }
    }
    return true;
}

/* Temporaries that a row takes with its children in the order of their own needs: see emit.c. */
static int need_of(const expr_parser *p, int children, const int *child)
{
    int need = 0, held = 0, order[3];
    dmi_expr_order(p, children, child, order);
    for (int i = 0; i < children; i++) {
        const expr_node *n = &p->node[child[order[i]]];
        need = DMI_MAX(need, held + n->need);
        held += n->need > 0;
    }
    return DMI_MAX(need, held + 1);
}

int dmi_expr_apply(expr_parser *p, int at, int row, const int *child)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    bool constants;
    dm_dtype operand[3] = {0}, common;
    expr_node node = {.kind = NODE_ROW, .at = at, .row = row, .children = r->operands};
    if (p->status != DM_OK) {
        return -1;
    }
    common = common_type(p, row, child, &constants);
    if (constants) {
        return dmi_expr_fold(p, at, row, child);
    }
    for (int i = 0; i < r->operands; i++) {
        bool choice = r->form == DMI_FORM_CHOOSE && i == 0;
        operand[i] = p->node[child[i]].weak ? (choice ? DM_BOOL : common) : p->node[child[i]].dtype;
        node.child[i] = child[i];
    }
    if (!dmi_ew_types(row, operand, &node.taken, &node.dtype)) {
        return not_taken(p, at, row, child);
    }
    if (!all_fit(p, row, child, node.taken)) {
        return -1;
    }
    node.need = need_of(p, r->operands, child);
    return new_node(p, node);
}

int dmi_expr_cast(expr_parser *p, int at, dm_dtype dtype, int child)
{
    const expr_node *n = &p->node[child];
    if (dmi_dtype_is_complex(dtype) || dmi_dtype_is_complex(n->dtype)) {
        return dmi_expr_fail(p, DM_ERR_DTYPE, at,
                             "%s does not take %s: there are no casts of or to complex types",
                             dmi_dtype_name(dtype), dmi_dtype_name(n->dtype));
    }
    if (n->kind == NODE_CONSTANT) {
        return new_node(
            p, (expr_node){
                   .kind = NODE_CONSTANT, .at = at, .dtype = dtype, .constant = dmi_expr_converted(n, dtype)});
    }
    return new_node(p, (expr_node){.kind = NODE_CAST,
                                   .at = at,
                                   .dtype = dtype,
                                   .children = 1,
                                   .child = {child},
                                   .need = DMI_MAX(n->need, 1) + 1});
}
