/* Elementwise expressions: "out = where(x > 0, a * x + b, 0)" becomes a program of the kernel `map`. A
 * reduction may stand around the whole of it: "sum(x * y, 0)". Pure: text, names and types in, program and
 * numbers out. Functions are the rows of ewise.def by their names; docs/expressions.md has the rules. */
#ifndef DMI_EXPR_H
#define DMI_EXPR_H

#include "kernels/ewise/ewise.h"
#include "kernels/reduce/reduction.h"

enum { DMI_EXPR_NAME = 64, DMI_EXPR_VARIABLES = DMI_MAP_INPUTS + DMI_MAP_NUMBERS };

/* What a name stands for. Numbers take the type of the other operand, as literals do. */
enum dmi_expr_kind { DMI_EXPR_ARRAY, DMI_EXPR_NUMBER, DMI_EXPR_INTEGER };
typedef struct dmi_expr_variable {
    const char *name;
    enum dmi_expr_kind kind;
    dm_dtype dtype; /* ARRAY, and of a NUMBER that is not real */
    double number, imaginary;
    int64_t integer;
} dmi_expr_variable;

/* Reductions that need nothing but the dims, by the names that they have in expressions. */
typedef struct dmi_expr_reduction {
    const char *name;
    int row;     /* DMI_REDUCTION_* */
    bool scaled; /* its scale is 1 / n of n elements: mean, var, std */
} dmi_expr_reduction;
extern const dmi_expr_reduction dmi_expr_reductions[];
extern const int dmi_expr_reduction_count;

typedef struct dmi_expr {
    dmi_map_builder map; /* its inputs are the arrays, in the order of the variables, then what is made of their places */
    int made;
    unsigned seeds; /* bits of the map's numbers that are seeds */
    int indices;    /* dims whose indices are used: of each two numbers, which dmi_expr_place sets */
    struct {
        int dim, at, weight, extent; /* as written, and where; numbers of the map */
    } index[DMI_MAP_NUMBERS];
    dmi_map_value value; /* what the expression comes to, element by element: for dmi_map_result */
    dm_dtype dtype;      /* of the result */
    const dmi_expr_reduction *reduction;             /* of the elements; NULL: none */
    int dims, dim[DM_MAX_DIMS], dim_at[DM_MAX_DIMS]; /* as written, and where; dims 0: all */
    char target[DMI_EXPR_NAME];                      /* the name before '='; "out" where there is none */
} dmi_expr;

/* random: the type of random numbers, f64 or f32. Every variable must be used. DM_ERR_ARG: the text is wrong, a
 * name is unknown or too many, a limit of ewise.h is passed; DM_ERR_DTYPE: a function does not take such
 * operands; DM_ERR_UNSUPPORTED: a reduction that is not outermost. Messages begin with "map:" and point into
 * the text. */
DM_CHECKED dm_status dmi_expr_compile(const char *text, int count, const dmi_expr_variable *variables,
                                      dm_dtype random, dmi_expr *out);

/* The dims that the reduction is over, as bits, where the elements have ndim; -1: all. text: as above.
 * DM_ERR_ARG: they have no such dim, or one is named twice. */
DM_CHECKED dm_status dmi_expr_reduced(const dmi_expr *e, const char *text, int ndim, int32_t *reduced);
/* The elements have this shape: sets the numbers that indices need. text: as above. DM_ERR_ARG: they have no such dim. */
DM_CHECKED dm_status dmi_expr_place(dmi_expr *e, const char *text, int ndim, const int64_t *shape);
/* The type that the result of a reduction has, as in NumPy. */
dm_dtype dmi_expr_reduced_type(const dmi_expr_reduction *r, dm_dtype elements);

/* Does the text begin as a reduction does? */
bool dmi_expr_reduces(const char *text);

/* May an array or a number be called so? */
bool dmi_expr_name_ok(const char *name);

#endif
