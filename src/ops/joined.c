/* Elementwise calls of a program in one pass: common_join.c makes such calls. Operands: the inputs, then the results, as the
 * kernel has them. The tail is the elementwise program. */
#include "ops/joined.h"
#include "ops/common.h"

#include <string.h>

dm_status dmi_joined_check(dmi_call *call)
{
    return dmi_fail(DM_ERR_INTERNAL, "%s: its calls were checked before", dmi_call_name(call));
}

dm_status dmi_joined_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_map_program program = {0};
    dmi_value value[DMI_MAP_SIDES];
    memcpy(&program, call->tail, (size_t)call->tail_key);
    for (int i = 0; i < call->noperand; i++) {
        value[i] = dmi_value_operand(call, i);
    }
    dmi_plan_map(b, &program, value, value + program.inputs);
    return DM_OK;
}
