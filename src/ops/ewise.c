/* out = f(a), f(a, b) or f(a, b, c): the rows of ewise.def, each with a call of its name */
#include "ops/common.h"
#include "ops/joined.h"

#include <dmath/ewise.h>
#include <string.h>

static dm_status submit(dm_session *session, int row, const dm_array *arrays)
{
    static const char *const names[3][4] = {{"a", "out"}, {"a", "b", "out"}, {"a", "b", "c", "out"}};
    int operands = dmi_ew_rows[row].operands;
    dmi_call call = {
        .op = DMI_OP_ewise, .noperand = operands + 1, .names = names[operands - 1], .args = {.i = {row}}};
    return dmi_call_submit(session, &call, arrays);
}

#define CALL_1(name)                                                                                           \
    _Static_assert(DMI_OPERANDS_##name == 1, "ewise.h and ewise.def disagree on the operands of " #name);      \
    dm_status dm_##name(dm_session *session, dm_array a, dm_array out)                                         \
    {                                                                                                          \
        return submit(session, DMI_EW_##name, (dm_array[]){a, out});                                           \
    }
#define CALL_2(name)                                                                                           \
    _Static_assert(DMI_OPERANDS_##name == 2, "ewise.h and ewise.def disagree on the operands of " #name);      \
    dm_status dm_##name(dm_session *session, dm_array a, dm_array b, dm_array out)                             \
    {                                                                                                          \
        return submit(session, DMI_EW_##name, (dm_array[]){a, b, out});                                        \
    }
#define CALL_3(name)                                                                                           \
    _Static_assert(DMI_OPERANDS_##name == 3, "ewise.h and ewise.def disagree on the operands of " #name);      \
    dm_status dm_##name(dm_session *session, dm_array a, dm_array b, dm_array c, dm_array out)                 \
    {                                                                                                          \
        return submit(session, DMI_EW_##name, (dm_array[]){a, b, c, out});                                     \
    }
DM_EWISE_MAP(CALL_1, CALL_2, CALL_3)

dm_status dmi_ewise_check(dmi_call *call)
{
    int out = call->noperand - 1;
    dmi_elementwise e;
    dm_status status = DM_OK;
    call->operand[out].mode = DMI_WRITE;
    for (int i = 0; i < out && status == DM_OK; i++) {
        call->operand[i].mode = DMI_READ;
        status = dmi_check_broadcast(call, i, out);
        status = status == DM_OK ? dmi_check_overlap(call, i, out, true) : status;
    }
    if (status == DM_OK && !dmi_elementwise_of(call, &e)) {
        char text[64] = "";
        for (int i = 0; i < out; i++) {
            strcat(strcat(strcat(text, i ? ", " : ""), dmi_operand_name(call, i)), " of ");
            strcat(text, dmi_dtype_name(call->operand[i].desc.dtype));
        }
        return dmi_fail(DM_ERR_DTYPE, "%s: does not take %s", dmi_call_name(call), text);
    }
    return status;
}

dm_status dmi_ewise_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_elementwise_plan(b, call);
}
