/* A reduction around the whole expression: sum(x * y, 0). */
#include "expr/parts.h"

#include <dmath/reduce.h>
#include <string.h>

/* The calls of <dmath/reduce.h> that take dims alone; besides, the sum, and var and std with correction 0. Mean
 * is a sum with a scale. */
enum { DMI_REDUCTION_mean = DMI_REDUCTION_sum };
#define ENTRY(name) {#name, DMI_REDUCTION_##name, (int)DMI_REDUCTION_##name == (int)DMI_REDUCTION_sum},
const dmi_expr_reduction dmi_expr_reductions[] = {
    {"sum", DMI_REDUCTION_sum, false},
    DM_REDUCE_MAP(ENTRY){"var", DMI_REDUCTION_var, true},
    {"std", DMI_REDUCTION_std, true},
};
const int dmi_expr_reduction_count = DMI_COUNT(dmi_expr_reductions);

const dmi_expr_reduction *dmi_expr_reduction_named(const char *name, int length)
{
    for (int i = 0; i < dmi_expr_reduction_count; i++) {
        const char *other = dmi_expr_reductions[i].name;
        if ((int)strlen(other) == length && memcmp(name, other, (size_t)length) == 0) {
            return &dmi_expr_reductions[i];
        }
    }
    return NULL;
}

dm_dtype dmi_expr_reduced_type(const dmi_expr_reduction *r, dm_dtype elements)
{
    const dmi_reduction *row = &dmi_reductions[r->row];
    enum dmi_kind kind = dmi_dtype_kind(elements);
    bool whole = kind == DMI_KIND_BOOL || kind == DMI_KIND_INT || kind == DMI_KIND_UINT;
    if (row->result == DMI_RESULT_WHOLE) {
        return DM_I64;
    }
    if (row->domain == DMI_DOMAIN_LOGIC) {
        return DM_BOOL;
    }
    if (!whole || row->result == DMI_RESULT_SAME) {
        return elements;
    }
    return r->scaled || row->result == DMI_RESULT_REAL ? DM_F64 : kind == DMI_KIND_UINT ? DM_U64 : DM_I64;
}

/* ", of two operands: minimum" where that may be meant. */
static const char *hint_of(const dmi_expr_reduction *r)
{
    return r->row == DMI_REDUCTION_min   ? " (of two operands: minimum)"
           : r->row == DMI_REDUCTION_max ? " (of two operands: maximum)"
                                         : "";
}

int dmi_expr_inside(expr_parser *p, int at, const dmi_expr_reduction *r)
{
    return dmi_expr_fail(p, DM_ERR_UNSUPPORTED, at,
                         "%s reduces its operand, which only the outermost function does: an expression is "
                         "computed element by element%s",
                         r->name, hint_of(r));
}

/* ['-'] NUMBER */
static void parse_dim(expr_parser *p, dmi_expr *out)
{
    int at = p->token.at;
    bool minus = dmi_expr_take(p, "-");
    if (p->status != DM_OK) {
        return;
    }
    if (p->token.kind != TOKEN_NUMBER || !p->token.whole) {
        dmi_expr_fail(p, DM_ERR_ARG, at, "expected a whole number: behind its operand, %s takes dims%s",
                      out->reduction->name, hint_of(out->reduction));
        return;
    }
    if (out->dims == DM_MAX_DIMS) {
        dmi_expr_fail(p, DM_ERR_ARG, at, "more than %d dims", DM_MAX_DIMS);
        return;
    }
    int value = p->token.integer > DM_MAX_DIMS ? DM_MAX_DIMS + 1 : (int)p->token.integer; /* none has so many */
    out->dim[out->dims] = minus ? -value : value;
    out->dim_at[out->dims++] = at;
    dmi_expr_next(p);
}

int dmi_expr_parse_reduction(expr_parser *p, dmi_expr *out)
{
    expr_token name = p->token;
    const dmi_expr_reduction *r = dmi_expr_reduction_named(p->text + name.at, name.length);
    out->reduction = r;
    dmi_expr_next(p);
    (void)dmi_expr_take(p, "(");
    if (dmi_expr_is(p, ")")) {
        return dmi_expr_fail(p, DM_ERR_ARG, name.at, "%s takes one operand, not 0", r->name);
    }
    int node = dmi_expr_elements(p);
    while (p->status == DM_OK && dmi_expr_take(p, ",")) {
        parse_dim(p, out);
    }
    if (p->status == DM_OK && !dmi_expr_take(p, ")")) {
        return dmi_expr_unexpected(p, out->dims > 0 ? ", or )" : "an operator, or , or )");
    }
    if (p->status == DM_OK && p->token.kind == TOKEN_SIGN && !strchr("(),~", p->token.sign[0]) &&
        !dmi_expr_is(p, "=")) {
        return dmi_expr_inside(p, name.at, r); /* an operator follows */
    }
    if (p->status == DM_OK && dmi_acc_for(r->row, p->node[node].dtype) < 0) {
        return dmi_expr_fail(p, DM_ERR_DTYPE, name.at, "%s does not take %s", r->name,
                             dmi_dtype_name(p->node[node].dtype));
    }
    return p->status == DM_OK ? node : -1;
}

dm_status dmi_expr_reduced(const dmi_expr *e, const char *text, int ndim, int32_t *reduced)
{
    expr_parser p = {.text = text}; /* for messages */
    uint32_t bits = 0;
    for (int i = 0; i < e->dims && p.status == DM_OK; i++) {
        int d = e->dim[i] < 0 ? e->dim[i] + ndim : e->dim[i];
        if (d < 0 || d >= ndim) {
            dmi_expr_fail(&p, DM_ERR_ARG, e->dim_at[i], "no such dim: the elements have %d dims%s", ndim,
                          hint_of(e->reduction));
        } else if (bits >> d & 1) {
            dmi_expr_fail(&p, DM_ERR_ARG, e->dim_at[i], "dim %d is named twice", d);
        }
        bits |= d >= 0 && d < ndim ? 1u << d : 0;
    }
    if (p.status == DM_OK) {
        *reduced = e->dims > 0 ? (int32_t)bits : -1;
    }
    return p.status;
}
