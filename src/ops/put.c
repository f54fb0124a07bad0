/* Elements of x that indices name along a dim = values, or += values */
#include "ops/common_index.h"

#include <dmath/index.h>

dm_status dm_put(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim, int mode)
{
    return dmi_index_submit(session, DMI_OP_put, (dm_array[]){indices, values, x}, dim, mode, false, false);
}

dm_status dm_scatter_add(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim, int mode)
{
    return dmi_index_submit(session, DMI_OP_put, (dm_array[]){indices, values, x}, dim, mode, false, true);
}

dm_status dm_put_along_dim(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim,
                           int mode)
{
    return dmi_index_submit(session, DMI_OP_put, (dm_array[]){indices, values, x}, dim, mode, true, false);
}

dm_status dm_scatter_add_along_dim(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim,
                                   int mode)
{
    return dmi_index_submit(session, DMI_OP_put, (dm_array[]){indices, values, x}, dim, mode, true, true);
}

dm_status dmi_put_check(dmi_call *call)
{
    return dmi_indexing_check(call, false);
}

dm_status dmi_put_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_indexing t;
    dmi_indexing_of(call, &t);
    return call->tail_bytes > 0 ? dmi_plan_put_rows(b, call, &t) : dmi_plan_indexed(b, call, &t);
}
