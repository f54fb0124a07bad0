/* An expression's text becomes a program. */
#include "expr/parts.h"

#include <assert.h>
#include <string.h>

static dm_status check_names(int count, const dmi_expr_variable *variables)
{
    assert(count <= DMI_EXPR_VARIABLES); /* the caller has an array of so many */
    for (int i = 0; i < count; i++) {
        const char *name = variables[i].name;
        if (!name || !dmi_expr_name_ok(name)) {
            return dmi_fail(DM_ERR_ARG, "map: `%s` cannot be the name of an array or a number",
                            name ? name : "(NULL)");
        }
        for (int j = 0; j < i; j++) {
            if (strcmp(name, variables[j].name) == 0) {
                return dmi_fail(DM_ERR_ARG, "map: %s is given twice", name);
            }
        }
    }
    return DM_OK;
}

static dm_status check_limits(const dmi_map_builder *b)
{
    static const struct {
        const char *what;
        int most;
    } limits[] = {{"operands", DMI_MAP_INPUTS},
                  {"numbers", DMI_MAP_NUMBERS},
                  {"constants", DMI_MAP_NUMBERS},
                  {"intermediate results", DMI_MAP_TEMPORARIES},
                  {"steps", DMI_MAP_STEPS}};
    for (int i = 0; i < DMI_COUNT(limits) && b->full; i++) {
        if (strcmp(b->full, limits[i].what) == 0) {
            return dmi_fail(DM_ERR_ARG, "map: the expression is too long: it takes more than %d %s",
                            limits[i].most, b->full);
        }
    }
    return b->full ? dmi_fail(DM_ERR_INTERNAL, "map: %s", b->full) : DM_OK;
}

dm_status dmi_expr_place(dmi_expr *e, const char *text, int ndim, const int64_t *shape)
{
    expr_parser p = {.text = text}; /* for messages */
    for (int i = 0; i < e->indices && p.status == DM_OK; i++) {
        int d = e->index[i].dim < 0 ? e->index[i].dim + ndim : e->index[i].dim;
        int64_t weight = 1;
        if (d < 0 || d >= ndim) {
            dmi_expr_fail(&p, DM_ERR_ARG, e->index[i].at, "no such dim: the elements have %d dims", ndim);
            break;
        }
        for (int k = d + 1; k < ndim; k++) {
            weight *= DMI_MAX(shape[k], 1);
        }
        e->map.number[e->index[i].weight] = (dmi_number){.re = (double)weight, .whole = weight};
        e->map.number[e->index[i].extent] = (dmi_number){.re = (double)shape[d], .whole = DMI_MAX(shape[d], 1)};
    }
    return p.status;
}

dm_status dmi_expr_compile(const char *text, int count, const dmi_expr_variable *variables, dm_dtype random,
                           dmi_expr *out)
{
    expr_node nodes[EXPR_NODES]; /* a node is written when it is made */
    expr_parser p = {.text = text, .count = count, .variable = variables, .random_type = random, .node = nodes};
    dm_status status = check_names(count, variables);
    if (status == DM_OK && strlen(text) > EXPR_BYTES) {
        status =
            dmi_fail(DM_ERR_ARG, "map: the expression is too long: it has more than %d characters", EXPR_BYTES);
    }
    if (status != DM_OK) {
        return status;
    }
    for (int i = 0; i < count; i++) {
        p.input[i] = variables[i].kind == DMI_EXPR_ARRAY ? p.arrays++ : 0;
    }
    *out = (dmi_expr){0};
    int root = dmi_expr_parse(&p, out);
    if (p.status != DM_OK) {
        return p.status;
    }
    for (int i = 0; i < count; i++) {
        if (!p.used[i]) {
            return dmi_fail(DM_ERR_ARG, "map: %s is given, but \"%.200s\" does not use it", variables[i].name,
                            text);
        }
    }
    dmi_expr_emit(&p, root, out);
    out->dtype = out->reduction ? dmi_expr_reduced_type(out->reduction, out->value.dtype) : out->value.dtype;
    return check_limits(&out->map);
}
