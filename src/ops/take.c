/* out = elements of x that indices name along a dim */
#include "ops/common_index.h"

#include <dmath/index.h>

dm_status dm_take(dm_session *session, dm_array x, dm_array indices, int dim, int mode, dm_array out)
{
    return dmi_index_submit(session, DMI_OP_take, (dm_array[]){indices, x, out}, dim, mode, false, false);
}

dm_status dm_take_along_dim(dm_session *session, dm_array x, dm_array indices, int dim, int mode, dm_array out)
{
    return dmi_index_submit(session, DMI_OP_take, (dm_array[]){indices, x, out}, dim, mode, true, false);
}

dm_status dmi_take_check(dmi_call *call)
{
    return dmi_indexing_check(call, true);
}

dm_status dmi_take_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_indexing t;
    dmi_indexing_of(call, &t);
    switch (call->args.i[DMI_INDEX_WAY]) {
    case DMI_WAY_LISTED:
        return dmi_plan_take_listed(b, call, &t);
    case DMI_WAY_LENT:
        return dmi_plan_take_lent(b, call, &t);
    default:
        break;
    }
    return call->tail_bytes > 0 ? dmi_plan_take_rows(b, call, &t) : dmi_plan_indexed(b, call, &t);
}
