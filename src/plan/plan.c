#include "ops/ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

dm_status dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    assert(call->op >= 0 && call->op < DMI_OPS);
    dmi_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for its plan", dmi_ops[call->op].name);
    }
    plan->me = me;
    atomic_init(&plan->refs, 1);
    strcpy(plan->algorithm, "plain");
    plan->travels = -1;
    dmi_builder b = {.profile = profile, .me = me, .plan = plan};
    dm_status status = dmi_ops[call->op].plan(&b, call);
    if (status == DM_OK && b.failed) {
        status = dmi_fail(DM_ERR_NOMEM, "%s: no memory for its plan", dmi_ops[call->op].name);
    }
    if (status != DM_OK) {
        dmi_plan_release(plan);
        return status;
    }
    for (int i = 0; i < plan->nwork; i++) {
        plan->workspace += plan->work_bytes[i];
    }
    for (int i = 0; i < plan->nstep; i++) {
        plan->flops += plan->step[i].flops;
    }
    *out = plan;
    return DM_OK;
}

void dmi_plan_release(dmi_plan *plan)
{
    if (plan && atomic_fetch_sub(&plan->refs, 1) == 1) {
        if (plan->device) {
            plan->device_free(plan);
        }
        dmi_layout_destroy(plan->temporary);
        dmi_arena_free(&plan->arena);
        free(plan->step);
        free(plan->work_bytes);
        free(plan);
    }
}
