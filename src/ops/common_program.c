/* Elementwise programs from text, for ops that are made of several planners. */
#include "expr/expr.h"
#include "ops/common.h"

#include <assert.h>

dm_status dmi_program_of(const char *text, int inputs, const dm_dtype *in, dm_dtype out, dmi_map_program *program)
{
    static const char *const names[] = {"x", "y", "z"};
    dmi_expr_variable variable[3] = {{0}};
    dmi_expr expr;
    for (int i = 0; i < inputs; i++) {
        variable[i] = (dmi_expr_variable){.name = names[i], .kind = DMI_EXPR_ARRAY, .dtype = in[i]};
    }
    dm_status status = dmi_expr_compile(text, inputs, variable, DM_F64, &expr);
    assert(status != DM_OK || expr.made == 0);
    if (status == DM_OK) {
        dmi_map_result(&expr.map, expr.value, out);
        *program = expr.map.program;
    }
    return status;
}
