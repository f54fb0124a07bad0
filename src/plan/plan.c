#include "plan/on_device.h"

#include <stdlib.h>
#include <string.h>

/* Marks the steps that others may wait for by themselves: those that steps on other lanes name; the last on
 * each lane to use an operand or a workspace, for which later commands wait; and the last of all. */
static void find_awaited(dmi_builder *b)
{
    dmi_plan *plan = b->plan;
    size_t uses = 2 * ((size_t)plan->noperand + (size_t)plan->nwork) * DMI_LANES;
    bool *used = dmi_build_alloc(b, uses * sizeof *used), *named[DMI_LANES];
    for (int l = 0; l < DMI_LANES; l++) {
        named[l] = dmi_build_alloc(b, (plan->lane_steps[l] + 1) * sizeof **named);
    }
    if (b->failed) {
        return;
    }
    memset(used, 0, uses * sizeof *used);
    for (int l = 0; l < DMI_LANES; l++) {
        memset(named[l], 0, plan->lane_steps[l] * sizeof **named);
        named[l][plan->lane_steps[l]] = true;
    }
    for (int i = plan->nstep; i-- > 0;) {
        dmi_step *step = &plan->step[i];
        for (int l = 0; l < DMI_LANES; l++) {
            named[l][step->wait[l]] = named[l][step->wait[l]] || l != step->lane;
        }
        for (int r = 0; r < step->nref; r++) {
            const dmi_ref *ref = &step->ref[r];
            if (ref->kind == DMI_REF_OPERAND || ref->kind == DMI_REF_WORK) {
                size_t at = ref->index + (size_t)(ref->kind == DMI_REF_WORK ? plan->noperand : 0);
                bool *last = &used[(2 * at + (ref->mode & DMI_WRITE ? 1 : 0)) * DMI_LANES + step->lane];
                step->awaited = step->awaited || !*last;
                *last = true;
            }
        }
        step->awaited = step->awaited || named[step->lane][step->ordinal]; /* waits name earlier steps */
    }
}

/* Before the waits between phases, which depend on it. */
static void find_whole(dmi_builder *b)
{
    dmi_plan *plan = b->plan;
    bool *whole = NULL;
    for (int i = 0; i < plan->nstep && !b->failed; i++) {
        const dmi_step *step = &plan->step[i];
        for (int r = 0; step->kind == DMI_STEP(task) && r < step->nref; r++) {
            if (!whole && (whole = dmi_build_alloc(b, ((size_t)plan->noperand + 1) * sizeof *whole)) != NULL) {
                memset(whole, 0, ((size_t)plan->noperand + 1) * sizeof *whole);
            }
            if (whole && step->ref[r].kind == DMI_REF_OPERAND) {
                whole[step->ref[r].index] = true;
            }
        }
    }
    plan->whole = whole;
}

/* Has every step its order from hazards alone? */
static bool is_beside(const dmi_plan *plan)
{
    bool beside = plan->nstep > 0;
    for (int i = 0; i < plan->nstep && beside; i++) {
        const dmi_step *step = &plan->step[i];
        beside = step->lane == DMI_LANE_COMPUTE_1;
        for (int r = 0; r < step->nref; r++) {
            beside = beside && step->ref[r].kind != DMI_REF_WORK;
        }
    }
    return beside;
}

dm_status dmi_plan_make_by(dmi_planner *planner, const char *op, const dmi_call *call,
                           const dmi_profile *profile, int me, dmi_plan **out)
{
    dmi_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for its plan", op);
    }
    plan->me = me;
    atomic_init(&plan->refs, 1);
    strcpy(plan->algorithm, "plain");
    plan->moving = -1;
    plan->noperand = call->noperand;
    dmi_builder b = {.profile = profile, .me = me, .plan = plan};
    dm_status status = planner(&b, call);
    if (status == DM_OK && profile->gpu) {
        find_whole(&b);
    }
    if (status == DM_OK) {
        dmi_build_phases_end(&b, call);
    }
    dmi_build_end(&b);
    if (status == DM_OK && profile->gpu && !b.failed) {
        find_awaited(&b);
    }
    if (status == DM_OK && b.failed) {
        status = dmi_fail(DM_ERR_NOMEM, "%s: no memory for its plan", op);
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
    plan->beside = profile->gpu && is_beside(plan);
    *out = plan;
    return DM_OK;
}

void dmi_plan_release(dmi_plan *plan)
{
    if (plan && atomic_fetch_sub(&plan->refs, 1) == 1) {
        if (plan->device) {
            plan->device_free(plan);
        }
        if (plan->graphs) {
            plan->graphs_free(plan->graphs);
        }
        if (plan->on_device && plan->on_device->free) {
            plan->on_device->free(plan->on_device);
        }
        if (plan->on_device) {
            free(plan->on_device->unit);
        }
        dmi_plan_release(plan->origin);
        dmi_arena_free(&plan->arena);
        free(plan->step);
        free(plan->work_bytes);
        free(plan);
    }
}
