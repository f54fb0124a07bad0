/* Calls whose factors may be elements of arrays. A factor becomes an operand, or a number, of an elementwise
 * program. */
#ifndef DMI_OPS_BY_H
#define DMI_OPS_BY_H

#include "expr/expr.h"
#include "ops/common.h"

#include <dmath/factors.h>

enum { DMI_MAP_ELEMENTS = 0 }; /* of the op map: args.i[this] has bit i where operand i is a factor */

/* Such a call in the making. */
typedef struct dmi_by {
    dmi_session *s;
    dmi_call call;
    dm_array array[DMI_MAX_OPERANDS];
    const char *name[DMI_MAX_OPERANDS];
    dm_dtype type; /* in which it computes: a carrier */
    dmi_expr_variable variable[DMI_MAX_OPERANDS];
    int variables;
    dmi_expr expr;
} dmi_by;

DM_CHECKED dm_status dmi_by_begin(dmi_by *by, dm_session *session, int op);
/* The description of an array that is not an operand yet. */
DM_CHECKED dm_status dmi_by_find(dmi_by *by, const char *name, dm_array a, const dmi_desc **out);
/* The next operand, and (variable not NULL) the next variable of the program, of this type. */
void dmi_by_operand(dmi_by *by, const char *name, dm_array a, const char *variable, dm_dtype dtype);
/* A variable that is no operand: a temporary. */
void dmi_by_variable(dmi_by *by, const char *variable, dm_dtype dtype);
/* A factor as the next variable, and the next operand where it is an element. by->type is set before. */
DM_CHECKED dm_status dmi_by_factor(dmi_by *by, const char *variable, const char *name, const dm_factor *f);
/* Appends " + type(variable) * type(x)", with `factors` as the variables, which the call has already. */
void dmi_by_term(const dmi_by *by, char text[256], const char *factors);
/* The program of the text, with its numbers, becomes the call's. */
DM_CHECKED dm_status dmi_by_program(dmi_by *by, const char *text, dm_dtype out);
DM_CHECKED dm_status dmi_by_submit(dmi_by *by, dm_session *session);

/* --- factors --- */

/* Errors of a factor of a call that computes in this type. *element: the description of its array; NULL of a
 * number. */
DM_CHECKED dm_status dmi_factor_check(dmi_session *s, const char *name, const dm_factor *f, dm_dtype type,
                                      const dmi_desc **element);
/* The same, where it also may be no part of out. */
DM_CHECKED dm_status dmi_factor_apart(dmi_session *s, const char *name, const dm_factor *f, dm_dtype type,
                                      const char *out_name, const dmi_operand *out);
/* Of a call made of others, inside its scope: f, which was checked, becomes a real number or a replicated
 * element of this type, so that each of these calls can take it as it is. */
DM_CHECKED dm_status dmi_factor_settle(dm_session *session, dm_dtype type, dm_factor *f);
static inline bool dmi_factor_is(const dm_factor *f, double number)
{
    return f->element == 0 && f->value == number && f->imaginary == 0;
}
/* The number 0: what it multiplies is not read. */
static inline bool dmi_factor_zero(const dm_factor *f)
{
    return dmi_factor_is(f, 0);
}
/* A real number: the calls without _by take it. */
static inline bool dmi_factor_real(const dm_factor *f)
{
    return f->element == 0 && f->imaginary == 0;
}

/* Errors of parameter i of a fill (DMI_FILL_*) of this type, a number beside an element. */
DM_CHECKED dm_status dmi_fill_check_number(int kind, int i, dm_dtype dtype, double value);

/* Is operand i, a factor, apart from operand `out`? It becomes one that is read. */
DM_CHECKED dm_status dmi_check_element(dmi_call *call, int i, int out);

#endif
