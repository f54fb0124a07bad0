/* The tree to steps. Products and sums with numbers become the rows that take numbers of the call: these round
 * after each operation, as the rows that they stand for do, so that results are the same to the bit. */
#include "expr/parts.h"

#include <string.h>

typedef struct emitter {
    const expr_parser *p;
    dmi_map_builder *b;
    dmi_map_value input[DMI_MAP_INPUTS];
    int origin[DMI_MAP_NUMBERS];       /* of the numbers made so far */
    dm_dtype rounded[DMI_MAP_NUMBERS]; /* to which type; 0: to none */
} emitter;

void dmi_expr_order(const expr_parser *p, int children, const int *child, int *order)
{
    for (int i = 0; i < children; i++) {
        int at = i;
        for (; at > 0 && p->node[child[order[at - 1]]].need < p->node[child[i]].need; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static dmi_map_value emit(emitter *e, int id, dm_dtype want);

static int number_new(emitter *e, dmi_number number, int origin, dm_dtype rounded)
{
    for (int i = 0; i < e->b->numbers && origin != ORIGIN_MIXED; i++) {
        /* Numbers of the text are one where they are equal. Two of the call are not: the program is the same
         * whatever their values are. */
        bool same = memcmp(&e->b->number[i], &number, sizeof number) == 0;
        if (e->origin[i] == origin && (origin == ORIGIN_TEXT ? same : e->rounded[i] == rounded)) {
            return i;
        }
    }
    int i = dmi_map_number(e->b, number);
    e->origin[i] = origin;
    e->rounded[i] = rounded;
    return i;
}

/* The number of a constant that is computed with in `type`. */
static int number_of(emitter *e, const expr_node *n, dm_dtype type)
{
    bool narrow = dmi_dtype_is_float(type) && dmi_dtype_carrier(type) != type;
    dmi_number number = narrow ? dmi_expr_converted(n, type).number : n->constant.number;
    return number_new(e, number, n->constant.origin, narrow ? type : 0);
}

/* A constant without a type of its own fills one tile for all of its uses. */
static dmi_map_value constant_of(emitter *e, const expr_node *n, dm_dtype type)
{
    const dmi_map_program *p = &e->b->program;
    int number = number_of(e, n, type);
    for (int i = 0; i < p->constants && n->weak; i++) {
        if (p->constant_number[i] == number && p->constant_type[i] == (uint8_t)dmi_dtype_carrier(type)) {
            return (dmi_map_value){type, (uint8_t)(DMI_AT_CONSTANT | i)};
        }
    }
    return dmi_map_constant(e->b, number, type);
}

static bool is_weak(const emitter *e, int id)
{
    return e->p->node[id].weak != WEAK_NOT;
}

static bool is_row(const emitter *e, int id, int row, dm_dtype taken)
{
    const expr_node *n = &e->p->node[id];
    return n->kind == NODE_ROW && n->row == row && n->taken == taken;
}

/* Is it number * x? Then *number and *x are those nodes. */
static bool is_scaled(const emitter *e, int id, dm_dtype taken, int *number, int *x)
{
    if (!is_row(e, id, DMI_EW_multiply, taken)) {
        return false;
    }
    const int *child = e->p->node[id].child;
    int which = is_weak(e, child[0]) ? 0 : 1;
    *number = child[which];
    *x = child[!which];
    return is_weak(e, child[which]);
}

/* A row with one type for all operands. */
static dmi_map_value emit_fused(emitter *e, int row, dm_dtype taken, const int *child, const int *number)
{
    dmi_map_value value[3], out = {0};
    int order[3], n = dmi_ew_rows[row].operands;
    dmi_expr_order(e->p, n, child, order);
    for (int i = 0; i < n; i++) {
        value[order[i]] = dmi_map_cast(e->b, emit(e, child[order[i]], taken), taken);
    }
    if (dmi_map_apply(e->b, row, value, number, &out) != DM_OK) { /* these rows take all types */
        e->b->full = "types";
    }
    return out;
}

/* left + right */
static bool emit_sum(emitter *e, int left, int right, dm_dtype t, dmi_map_value *out)
{
    int s, x, u, y, number[2] = {0, 0};
    if (is_scaled(e, right, t, &s, &x) && !is_scaled(e, left, t, &u, &y)) {
        int swap = left;
        left = right;
        right = swap;
    }
    if (is_scaled(e, left, t, &s, &x)) {
        number[0] = number_of(e, &e->p->node[s], t);
        if (is_weak(e, right)) {
            number[1] = number_of(e, &e->p->node[right], t);
            *out = emit_fused(e, DMI_EW_affine, t, (int[]){x, 0, 0}, number);
            return true;
        }
        bool both = is_scaled(e, right, t, &u, &y);
        if (both || !dmi_dtype_is_complex(t)) { /* 1 (inf + 0i) has a NaN */
            number[1] = both ? number_of(e, &e->p->node[u], t) : number_new(e, dmi_number_of(1), ORIGIN_TEXT, 0);
            *out = emit_fused(e, DMI_EW_linear, t, (int[]){x, both ? y : right, 0}, number);
            return true;
        }
    }
    if (!is_row(e, left, DMI_EW_multiply, t)) {
        int swap = left;
        left = right;
        right = swap;
    }
    if (!is_row(e, left, DMI_EW_multiply, t)) {
        return false;
    }
    const int *factor = e->p->node[left].child;
    *out = emit_fused(e, DMI_EW_multiply_add, t, (int[]){factor[0], factor[1], right}, NULL);
    return true;
}

/* left * right */
static bool emit_product(emitter *e, int left, int right, dm_dtype t, dmi_map_value *out)
{
    int s, x, number[2] = {0, 0};
    if (is_weak(e, left) || is_weak(e, right)) {
        s = is_weak(e, left) ? left : right;
        number[0] = number_of(e, &e->p->node[s], t);
        *out = emit_fused(e, DMI_EW_scale, t, (int[]){s == left ? right : left, 0, 0}, number);
        return true;
    }
    if (!is_scaled(e, left, t, &s, &x)) {
        int swap = left;
        left = right;
        right = swap;
    }
    if (!is_scaled(e, left, t, &s, &x)) {
        return false;
    }
    number[0] = number_of(e, &e->p->node[s], t);
    *out = emit_fused(e, DMI_EW_product, t, (int[]){x, right, 0}, number);
    return true;
}

/* x ** 2 and x ** 0.5, as NumPy has them */
static bool emit_power(emitter *e, const expr_node *n, dmi_map_value *out)
{
    const expr_node *exponent = &e->p->node[n->child[1]];
    double value = exponent->constant.number.re;
    bool text = exponent->weak && exponent->constant.origin == ORIGIN_TEXT;
    if (!n->raised || !text || (value != 2 && (value != 0.5 || !dmi_dtype_is_float(n->taken)))) {
        return false;
    }
    *out = emit_fused(e, value == 2 ? DMI_EW_square : DMI_EW_sqrt, n->taken, n->child, NULL);
    return true;
}

static dmi_map_value emit_row(emitter *e, const expr_node *n)
{
    dmi_map_value value[3], out = {0};
    int order[3];
    bool made = n->taken == DM_BOOL         ? false
                : n->row == DMI_EW_add      ? emit_sum(e, n->child[0], n->child[1], n->taken, &out)
                : n->row == DMI_EW_multiply ? emit_product(e, n->child[0], n->child[1], n->taken, &out)
                : n->row == DMI_EW_pow      ? emit_power(e, n, &out)
                                            : false;
    if (made) {
        return out;
    }
    dmi_expr_order(e->p, n->children, n->child, order);
    for (int i = 0; i < n->children; i++) {
        bool choice = dmi_ew_rows[n->row].form == DMI_FORM_CHOOSE && order[i] == 0;
        value[order[i]] = emit(e, n->child[order[i]], choice ? DM_BOOL : n->taken);
    }
    if (dmi_map_apply(e->b, n->row, value, NULL, &out) != DM_OK) { /* type.c has asked */
        e->b->full = "types";
    }
    return out;
}

static dmi_map_value emit_cast(emitter *e, const expr_node *n)
{
    dmi_map_value value = emit(e, n->child[0], n->dtype);
    dm_dtype carrier = dmi_dtype_carrier(n->dtype);
    /* A value that was computed in its carrier is rounded now. */
    if (value.dtype == n->dtype && e->p->node[n->child[0]].kind != NODE_INPUT && dmi_dtype_is_float(carrier)) {
        value = dmi_map_cast(e->b, value, carrier);
    }
    return dmi_map_cast(e->b, value, n->dtype);
}

/* want: the type of a constant that has none. */
static dmi_map_value emit(emitter *e, int id, dm_dtype want)
{
    const expr_node *n = &e->p->node[id];
    if (e->b->full) {
        return (dmi_map_value){n->dtype, DMI_AT_TEMPORARY};
    }
    switch (n->kind) {
    case NODE_INPUT:
        return e->input[n->input];
    case NODE_CONSTANT:
        return constant_of(e, n, n->weak ? want : n->dtype);
    case NODE_ROW:
        return emit_row(e, n);
    default:
        return emit_cast(e, n);
    }
}

void dmi_expr_emit(expr_parser *p, int root, dmi_expr *out)
{
    emitter e = {.p = p, .b = &out->map};
    const expr_node *n = &p->node[root];
    for (int i = 0; i < p->count; i++) {
        if (p->variable[i].kind == DMI_EXPR_ARRAY && !out->map.full) {
            dmi_map_value value = dmi_map_input(&out->map, p->variable[i].dtype);
            if (!out->map.full) {
                e.input[p->input[i]] = value;
            }
        }
    }
    for (int i = 0; i < p->mades && !out->map.full; i++) {
        bool random = p->made[i].kind != DMI_MADE_INDEX;
        int seed = random ? number_new(&e, p->made[i].seed.number, ORIGIN_MIXED, 0) : 0;
        out->seeds |= random ? 1u << seed : 0;
        e.input[p->arrays + i] =
            dmi_map_made(&out->map, random ? p->random_type : DM_I64, p->made[i].kind, seed);
    }
    out->made = p->mades;
    out->value = emit(&e, root, n->weak && n->constant.wide ? DM_U64 : n->dtype);
    out->indices = p->indices;
    for (int i = 0; i < p->indices; i++) {
        out->index[i].dim = p->index[i].dim;
        out->index[i].at = p->index[i].at;
        for (int k = 0; k < out->map.numbers; k++) {
            out->index[i].weight = e.origin[k] == ORIGIN_PLACE - 2 * i ? k : out->index[i].weight;
            out->index[i].extent = e.origin[k] == ORIGIN_PLACE - 2 * i - 1 ? k : out->index[i].extent;
        }
    }
}
