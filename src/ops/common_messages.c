/* What is wrong with an operand, in words. */
#include "ops/messages.h"

#include <string.h>

/* Of all but a few types it names the few. */
dm_status dmi_refuse_dtype(const char *operand, dm_dtype dtype, unsigned taken)
{
    char names[128] = "";
    const bool most = __builtin_popcount(taken) > DMI_DTYPE_END / 2;
    const char *between = "";
    for (int t = 1; t < DMI_DTYPE_END; t++) {
        if ((taken >> t & 1) != most) {
            strcat(strcat(names, between), dmi_dtype_name((dm_dtype)t));
            between = ", ";
        }
    }
    return dmi_fail(DM_ERR_DTYPE, "%s has dtype %s, which is not taken; %s%s are", operand,
                    dmi_dtype_name(dtype), most ? "all but " : "", names);
}

dm_status dmi_poisoned_is(const char *operand, dm_status status)
{
    const char *text = dmi_error_text();
    const char *holds = status == DM_ERR_POISONED ? strstr(text, " holds the result of command ") : NULL;
    if (!holds) {
        return status;
    }
    const char *name = holds;
    while (name > text && name[-1] != ' ') {
        name--;
    }
    return dmi_fail(status, "%.*s%s%.*s", (int)(name - text), text, operand, (int)strcspn(holds, ";"), holds);
}
