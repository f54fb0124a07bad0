/* Workspace of commands: taken when a command is enqueued, given back right after, with the stamps of its last
 * use. */
#include "exec/engine.h"
#include "plan/on_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_back(dmi_engine *e, dmi_workspace_set *set)
{
    for (int i = 0; set->plan && i < set->plan->nwork; i++) {
        if (set->work[i].base && dmi_pool_free(e->config.pool, &set->work[i], &set->work[i].ready) != DM_OK) {
            char text[DMI_ERROR_TEXT];
            snprintf(text, sizeof text, "workspace of an earlier command on worker %d (%s): %s", e->config.me,
                     e->port->host, dmi_error_text());
            dmi_engine_report(e, 0, DM_ERR_INTERNAL, text);
        }
    }
    dmi_plan_release(set->plan);
    free(set->work);
    memset(set, 0, sizeof *set);
}

void dmi_engine_trim(dmi_engine *e)
{
    for (int i = 0; i < DMI_WORKSPACE_SETS; i++) {
        give_back(e, &e->workspace_sets[i]);
    }
}

/* A plan that receives has two workspace sets, so that its payloads can arrive while the command before it
 * still runs. It has one set if a set is larger than 1 GiB (DMI_TWO_SETS_MOST): products are then long, and the
 * wait is short by comparison. Fused products always have two, but not programs with one, whose temporaries may
 * be large. */
static int sets_of(const dmi_plan *plan)
{
    bool fused = plan->waits && plan->calls == 0;
    return fused || (plan->messages_received > 0 && plan->workspace <= DMI_TWO_SETS_MOST) ? 2 : 1;
}

/* All of a further set, where memory is there without giving up anything. */
static bool take_more(dmi_engine *e, dmi_instance *inst)
{
    const dmi_plan *plan = inst->plan;
    for (int i = 0; i < plan->nwork; i++) {
        if (dmi_pool_alloc(e->config.pool, plan->work_bytes[i], DMI_OWNER_WORKSPACE, &inst->work[i]) != DM_OK) {
            while (i-- > 0) {
                (void)!dmi_pool_free(e->config.pool, &inst->work[i], NULL);
            }
            memset(inst->work, 0, (size_t)plan->nwork * sizeof *inst->work);
            return false;
        }
    }
    return true;
}

/* Takes the older set, if the plan has all its sets or there is no memory for another. */
static bool take_set(dmi_engine *e, dmi_instance *inst)
{
    const dmi_plan *plan = inst->plan;
    dmi_workspace_set *oldest = NULL;
    int sets = 0;
    for (int i = 0; i < DMI_WORKSPACE_SETS; i++) {
        dmi_workspace_set *set = &e->workspace_sets[i];
        if (set->plan == plan) {
            oldest = oldest && oldest->used < set->used ? oldest : set;
            sets++;
        }
    }
    if (sets == 0) {
        return false;
    }
    if (sets < sets_of(plan) && take_more(e, inst)) {
        return true;
    }
    memcpy(inst->work, oldest->work, (size_t)plan->nwork * sizeof *inst->work);
    free(oldest->work);
    dmi_plan_release(oldest->plan);
    memset(oldest, 0, sizeof *oldest);
    return true;
}

static void note_peak(dmi_counts *counts, int64_t bytes)
{
    if (bytes > atomic_load_explicit(&counts->workspace_peak, memory_order_relaxed)) {
        atomic_store_explicit(&counts->workspace_peak, bytes, memory_order_relaxed);
    }
}

void dmi_workspace_take(dmi_engine *e, dmi_instance *inst)
{
    const dmi_plan *plan = inst->plan;
    bool together = plan->on_device && plan->on_device->together;
    bool taken = together || take_set(e, inst);
    if (together) {
        inst->work[0] = plan->on_device->memory;
    }
    for (int i = 0; i < plan->nwork && !taken; i++) {
        dm_status status = dmi_engine_alloc(e, plan->work_bytes[i], DMI_OWNER_WORKSPACE, &inst->work[i]);
        if (status != DM_OK) {
            memset(&inst->work[i], 0, sizeof inst->work[i]);
            if (!atomic_load(&inst->failed)) {
                char text[DMI_ERROR_TEXT];
                snprintf(text, sizeof text, "workspace of %lld bytes (of %lld in all): %s",
                         (long long)plan->work_bytes[i], (long long)plan->workspace, dmi_error_text());
                dmi_engine_fail(e, inst, status, text);
            }
        }
    }
    note_peak(&e->port->tally.all, plan->workspace);
    if (inst->of_group) {
        note_peak(&inst->of_group->counts, plan->workspace);
    }
}

/* For the next command with this plan; the least recently used gives way. */
static bool keep(dmi_engine *e, const dmi_instance *inst)
{
    size_t n = (size_t)inst->plan->nwork;
    dmi_allocation *work = e->gpu && n > 0 && !atomic_load(&inst->failed) ? malloc(n * sizeof *work) : NULL;
    if (!work) {
        return false;
    }
    dmi_workspace_set *set = &e->workspace_sets[0];
    for (int i = 1; i < DMI_WORKSPACE_SETS; i++) {
        set = e->workspace_sets[i].used < set->used ? &e->workspace_sets[i] : set;
    }
    give_back(e, set);
    memcpy(work, inst->work, n * sizeof *work);
    for (size_t i = 0; i < n; i++) {
        dmi_stamp_merge(&work[i].ready, &inst->work_use[i]);
    }
    atomic_fetch_add(&inst->plan->refs, 1);
    *set = (dmi_workspace_set){.plan = inst->plan, .work = work, .used = ++e->workspace_tick};
    return true;
}

/* As soon as the command is enqueued: whoever gets this memory next waits for the stamp. */
void dmi_workspace_return(dmi_engine *e, dmi_instance *inst)
{
    dmi_on_device *d = inst->plan->on_device;
    if (d && d->together) { /* runs follow one another */
        dmi_stamp_merge(&d->memory.ready, &inst->work_use[0]);
        return;
    }
    bool kept = keep(e, inst);
    for (int i = 0; i < inst->plan->nwork && !kept; i++) {
        if (inst->work[i].base) {
            dm_status status = dmi_pool_free(e->config.pool, &inst->work[i], &inst->work_use[i]);
            if (status != DM_OK) {
                dmi_engine_fail(e, inst, status, dmi_error_text());
            }
        }
    }
}
