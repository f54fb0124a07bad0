/* Lanes, waits and hazards of one endpoint. */
#include "exec/engine.h"
#include "base/turns.h"
#include "ops/ops.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A failure that the port had no room for. */
typedef struct dmi_unreported {
    dmi_error_record record;
    struct dmi_unreported *next;
} dmi_unreported;

dm_status dmi_engine_start(dmi_engine *e, const dmi_engine_config *config)
{
    assert((uintptr_t)e % _Alignof(dmi_engine) == 0);
    memset(e, 0, sizeof *e);
    e->config = *config;
    pthread_mutex_init(&e->unreported_lock, NULL);
    e->port = dmi_hub_port(config->hub, config->me);
    e->peer = calloc((size_t)config->endpoints, sizeof *e->peer);
    e->lanes = DMI_LANES;
    if (config->device || config->compute_thread) {
        e->background = e->lanes++;
    }
    if (config->device) {
        e->lanes = DMI_MIN(e->lanes + config->compute_lanes - 1, DMI_STAMP_LANES);
    }
    bool ok = e->peer != NULL;
    for (int i = 0; i < e->lanes; i++) {
        e->lane[i].queue = calloc(DMI_LANE_ROOM, sizeof(dmi_queued_step));
        ok = ok && e->lane[i].queue;
    }
    if (!ok) {
        dmi_engine_stop(e);
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of %s %d of %d",
                        config->me < config->endpoints - 1 ? "worker" : "endpoint", config->me,
                        config->endpoints - 1);
    }
    for (int i = 0; i < config->endpoints; i++) {
        e->peer[i].transport = &dmi_transport_direct;
    }
    if (config->device) {
        dm_status status = config->device->start(e, config->device_number);
        if (status != DM_OK) {
            dmi_engine_stop(e);
            return status;
        }
    }
    if (config->compute_thread) {
        dmi_turns_add(config->me, DMI_TURNS_COMPUTE);
        if (pthread_create(&e->thread, NULL, dmi_compute_thread, e) != 0) {
            dmi_turns_remove(config->me, DMI_TURNS_COMPUTE);
            dmi_engine_stop(e);
            return dmi_fail(DM_ERR_NOMEM, "cannot start the compute thread of worker %d of %d", config->me,
                            config->endpoints - 1);
        }
        e->thread_runs = true;
    }
    return DM_OK;
}

void dmi_engine_stop(dmi_engine *e)
{
    if (e->thread_runs) {
        atomic_store(&e->stop, 1);
        dmi_bell_ring(&e->compute_bell);
        dmi_turns_await(e->config.me, DMI_TURNS_COMPUTE);
        pthread_join(e->thread, NULL);
        e->thread_runs = false;
    }
    if (e->background_runs) {
        atomic_store(&e->stop, 1);
        dmi_bell_ring(&e->background_bell);
        dmi_turns_await(e->config.me, DMI_TURNS_BACKGROUND);
        pthread_join(e->background_thread, NULL);
        e->background_runs = false;
    }
    dmi_engine_trim(e);
    if (e->gpu) {
        e->config.device->stop(e);
    }
    for (int i = 0; i < DMI_STAMP_LANES; i++) {
        free(e->lane[i].queue);
        e->lane[i].queue = NULL;
    }
    dmi_direct_unmap(e);
    while (atomic_load(&e->unreported)) { /* the master has left */
        dmi_unreported *at = atomic_load(&e->unreported);
        atomic_store(&e->unreported, at->next);
        free(at);
    }
    pthread_mutex_destroy(&e->unreported_lock);
    free(e->peer);
    e->peer = NULL;
}

bool dmi_engine_reached(const dmi_engine *e, const dmi_stamp *stamp)
{
    for (int i = 0; i < e->lanes; i++) {
        if (atomic_load_explicit(&e->lane[i].done, memory_order_acquire) < stamp->seq[i]) {
            return false;
        }
    }
    return true;
}

dmi_stamp dmi_engine_done(const dmi_engine *e)
{
    dmi_stamp done = {{0}};
    for (int i = 0; i < e->lanes; i++) {
        done.seq[i] = atomic_load_explicit(&e->lane[i].done, memory_order_acquire);
    }
    return done;
}

bool dmi_engine_ready(const dmi_engine *e)
{
    return e->pending == NULL && !e->held;
}

bool dmi_engine_idle(const dmi_engine *e)
{
    return e->first == NULL;
}

const dmi_instance *dmi_engine_oldest(const dmi_engine *e, bool background)
{
    const dmi_instance *at = background && e->behind == 0 ? NULL : e->first;
    while (at && (background ? !at->plan->background : at->background)) {
        at = at->next;
    }
    return at;
}

/* --- failures --------------------------------------------------------------------------------------------- */

/* Both threads of a worker may have something to report. */
static bool put_report(dmi_port *port, const dmi_error_record *from)
{
    for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
        dmi_error_record *record = &port->error[i];
        int none = DMI_RECORD_EMPTY;
        if (atomic_compare_exchange_strong(&record->present, &none, DMI_RECORD_FILLING)) {
            record->status = from->status;
            record->command = from->command;
            record->culprit = from->culprit;
            record->members = from->members;
            record->writes = from->writes;
            memcpy(record->write, from->write, sizeof record->write);
            memcpy(record->text, from->text, sizeof record->text);
            atomic_store_explicit(&record->present, DMI_RECORD_FULL, memory_order_release);
            return true;
        }
    }
    return false;
}

static bool keep_report(dmi_engine *e, const dmi_error_record *record)
{
    dmi_unreported *kept = malloc(sizeof *kept);
    if (kept) {
        *kept = (dmi_unreported){.record = *record};
        pthread_mutex_lock(&e->unreported_lock);
        dmi_unreported *at = atomic_load(&e->unreported);
        while (at && at->next) {
            at = at->next;
        }
        if (at) {
            at->next = kept;
        } else {
            atomic_store(&e->unreported, kept);
        }
        pthread_mutex_unlock(&e->unreported_lock);
    }
    return kept != NULL;
}

void dmi_engine_break(dmi_engine *e, dm_status status)
{
    int none = 0;
    atomic_compare_exchange_strong(&e->port->broken, &none, (int)status);
    dmi_bell_ring(&dmi_hub_port(e->config.hub, e->config.endpoints - 1)->bell);
}

void dmi_engine_report_writes(dmi_engine *e, uint64_t culprit, uint64_t members, dm_status status,
                              const char *text, const uint32_t *written, int count)
{
    dmi_error_record record = {
        .status = status, .command = culprit >> 16, .culprit = culprit, .members = members};
    record.writes = DMI_MIN(count, DMI_ERROR_WRITES);
    memcpy(record.write, written, (size_t)record.writes * sizeof *written);
    snprintf(record.text, sizeof record.text, "%s", text);
    if ((!atomic_load(&e->unreported) && put_report(e->port, &record)) || keep_report(e, &record)) {
        atomic_fetch_add(&e->port->reports, 1);
    } else {
        dmi_engine_break(e, DM_ERR_NOMEM); /* nobody would hear of this failure */
    }
    dmi_log(status == DM_ERR_CANCELLED ? DMI_LOG_INFO : DMI_LOG_WARN, "%s", text);
}

bool dmi_engine_report_rest(dmi_engine *e)
{
    bool moved = false;
    pthread_mutex_lock(&e->unreported_lock);
    for (dmi_unreported *at = atomic_load(&e->unreported); at && put_report(e->port, &at->record); moved = true) {
        dmi_unreported *next = at->next;
        atomic_store(&e->unreported, next);
        free(at);
        at = next;
    }
    pthread_mutex_unlock(&e->unreported_lock);
    return moved;
}

void dmi_engine_report(dmi_engine *e, uint64_t command, dm_status status, const char *text)
{
    uint32_t none = 0;
    bool worker = e->config.me < e->config.endpoints - 1;
    uint64_t members = worker ? UINT64_C(1) << e->config.me % 64 : UINT64_MAX;
    dmi_engine_report_writes(e, dmi_culprit(command, 0), members, status, text, &none, 0);
}

uint64_t dmi_engine_culprit(const dmi_instance *inst)
{
    return atomic_load(&inst->failed) ? atomic_load(&inst->culprit) : 0;
}

void dmi_culprit_text(const char *operand, uint64_t culprit, char *text, size_t room)
{
    if (culprit == 0) {
        snprintf(text, room, "%s has no memory: its creation failed", operand);
    } else {
        const char *name = dmi_api_name((int)(culprit & 0xffff));
        snprintf(text, room, "%s holds the result of command %llu (%s), which failed", operand,
                 (unsigned long long)(culprit >> 16), name ? name : "unknown");
    }
}

void dmi_engine_inherit(dmi_engine *e, dmi_instance *inst, uint64_t culprit)
{
    uint_fast64_t none = 0;
    atomic_compare_exchange_strong(&inst->culprit, &none, culprit);
    dmi_engine_fail(e, inst, DM_OK, "");
}

/* As the public call has it, if that is known. */
static const char *operand_name(const dmi_instance *inst, int operand)
{
    return inst->name[operand][0] ? inst->name[operand] : dmi_op_operand_name(inst->op, inst->noperand, operand);
}

void dmi_engine_fail_by_input(dmi_engine *e, dmi_instance *inst, int operand)
{
    char text[160];
    bool writes = false;
    uint64_t culprit = atomic_load(&inst->memory[operand]->culprit);
    for (int i = 0; i < inst->noperand; i++) {
        writes = writes || (inst->mode[i] & DMI_WRITE);
    }
    dmi_culprit_text(operand_name(inst, operand), culprit, text, sizeof text);
    dmi_engine_inherit(e, inst, culprit);
    if (!writes) {
        dmi_engine_fail(e, inst, DM_ERR_POISONED, text);
    }
}

/* Is the operand to be named in a message? Of a program those of the step, if that is known. */
static bool concerns(const dmi_instance *inst, const dmi_step *step, int operand)
{
    bool named = !step;
    for (int i = 0; step && i < step->nref; i++) {
        named = named || (step->ref[i].kind == DMI_REF_OPERAND && step->ref[i].index == operand);
    }
    return named && inst->desc[operand].layout;
}

/* The failure in words. step: of a program; NULL: not known. */
static void describe_failure(const dmi_engine *e, const dmi_instance *inst, const dmi_step *step, const char *text,
                             char *line, size_t room)
{
    char who[32] = "the master", call[128] = "", pass[48] = "", device[24] = "";
    int gpu = atomic_load(&e->port->gpu);
    if (e->config.me < e->config.endpoints - 1) {
        snprintf(who, sizeof who, "worker %d", e->config.me);
    }
    if (gpu > 0) {
        snprintf(device, sizeof device, ", GPU %d", gpu - 1);
    }
    if (step) {
        if (inst->pass > 0) {
            snprintf(pass, sizeof pass, ", pass %lld of its loop", (long long)inst->pass);
        }
        const uint16_t *recorded = inst->plan->recorded[step->call - 1];
        char which[40];
        snprintf(which, sizeof which, recorded[0] < recorded[1] ? "one of its calls %d to %d" : "its call %d",
                 recorded[0], recorded[1]);
        snprintf(call, sizeof call, ", %s of %d, %s%s,", which, inst->calls,
                 dmi_command_name(inst->plan->called[step->call - 1], inst->plan->op[step->call - 1]), pass);
    }
    int length =
        snprintf(line, room, "command %llu (%s)%s failed on %s (%s%s): %s", (unsigned long long)inst->command,
                 dmi_command_name(inst->called, inst->op), call, who, e->port->host, device, text);
    for (int i = 0; i < inst->noperand && length > 0 && length < (int)room; i++) {
        char operand[96];
        if (concerns(inst, step, i)) {
            dmi_desc_describe(&inst->desc[i], operand, sizeof operand);
            length += snprintf(line + length, room - (size_t)length, "; %s: %s", operand_name(inst, i), operand);
        }
    }
    if (length >= (int)room) {
        memcpy(line + room - 4, "...", 4);
    }
}

static void fail(dmi_engine *e, dmi_instance *inst, const dmi_step *step, dm_status status, const char *text)
{
    uint_fast64_t none = 0;
    int well = DM_OK;
    atomic_compare_exchange_strong(&inst->culprit, &none, dmi_culprit(inst->command, inst->called));
    atomic_compare_exchange_strong(&inst->status, &well, (int)status);
    atomic_fetch_or(&inst->failed, status == DM_OK ? DMI_FAILED_BY_OTHERS : DMI_FAILED_HERE);
    if (status == DM_OK) {
        return;
    }
    char line[DMI_ERROR_TEXT];
    uint32_t written[DMI_ERROR_WRITES];
    int count = 0;
    for (int i = 0; i < inst->noperand && count < DMI_ERROR_WRITES; i++) {
        if (inst->memory[i] && inst->mode[i] & DMI_WRITE) { /* the master has no memory behind operands */
            written[count++] = inst->memory[i]->number;
        }
    }
    describe_failure(e, inst, step, text, line, sizeof line);
    dmi_engine_report_writes(e, dmi_culprit(inst->command, inst->called), inst->members, status, line, written,
                             count);
}

void dmi_engine_fail(dmi_engine *e, dmi_instance *inst, dm_status status, const char *text)
{
    fail(e, inst, NULL, status, text);
}

void dmi_engine_fail_step(dmi_engine *e, const dmi_queued_step *w, dm_status status)
{
    const dmi_plan *plan = w->inst->plan;
    bool known = w->step->call > 0 && w->step->call <= plan->calls;
    fail(e, w->inst, known ? w->step : NULL, status, dmi_error_text());
}

dm_status dmi_step_failed(const dmi_queued_step *w, uint32_t failure)
{
    if (dmi_ops[w->inst->op].attributes & DMI_DECIDES) {
        w->inst->stop = true;
        return DM_OK;
    }
    return dmi_kernel_failed(w->step->kind - DMI_STEP_KERNEL, w->step->desc, failure);
}

void dmi_engine_cancel(const dmi_hub *hub, uint64_t until)
{
    uint_fast64_t before = atomic_load(&hub->ring->cancelled);
    while (before < until && !atomic_compare_exchange_weak(&hub->ring->cancelled, &before, until)) {
    }
}

void dmi_engine_check_cancelled(dmi_engine *e, dmi_instance *inst)
{
    if (inst->command <= atomic_load_explicit(&e->config.hub->ring->cancelled, memory_order_relaxed) &&
        !(dmi_ops[inst->op].attributes & DMI_DECIDES) && !atomic_load(&inst->failed)) {
        dmi_engine_fail(e, inst, DM_ERR_CANCELLED, "it was cancelled");
    }
}

void dmi_memory_poison(dmi_memory *memory, uint64_t culprit)
{
    int clean = DMI_CLEAN; /* an array without memory stays without */
    if (memory->allocation.bytes == 0) { /* no element is here, and no write would make it clean again */
        return;
    }
    if (atomic_load(&memory->poisoned) == DMI_CLEAN) {
        atomic_store(&memory->culprit, culprit);
    }
    atomic_compare_exchange_strong(&memory->poisoned, &clean, DMI_POISONED);
}

void dmi_engine_settle(const dmi_queued_step *w)
{
    const dmi_instance *inst = w->inst;
    for (int i = 0; i < w->step->nref; i++) {
        const dmi_ref *ref = &w->step->ref[i];
        if (ref->kind != DMI_REF_OPERAND || !(ref->mode & DMI_WRITE)) {
            continue;
        }
        dmi_memory *memory = inst->memory[ref->index];
        if (!atomic_load(&inst->failed) && inst->whole[ref->index]) {
            int poisoned = DMI_POISONED;
            atomic_compare_exchange_strong(&memory->poisoned, &poisoned, DMI_CLEAN);
        }
        if (atomic_load(&inst->failed)) { /* checked again: the other thread may have failed it meanwhile */
            if (inst->whole[ref->index]) { /* what poisoned it before no longer matters */
                atomic_store(&memory->culprit, atomic_load(&inst->culprit));
            }
            dmi_memory_poison(memory, atomic_load(&inst->culprit));
        }
    }
}

void dmi_engine_trim_all(dmi_engine *e)
{
    dmi_stamp done = dmi_engine_done(e);
    dmi_engine_trim(e);
    dmi_pool_trim(e->config.pool, &done);
}

dm_status dmi_engine_alloc(dmi_engine *e, int64_t bytes, int owner, dmi_allocation *out)
{
    const char *fault = e->config.fault;
    if (fault && strncmp(fault, "alloc:", 6) == 0 && ++e->allocations == strtoll(fault + 6, NULL, 10)) {
        return dmi_fail(DM_ERR_NOMEM, "planted fault in an allocation of %lld bytes", (long long)bytes);
    }
    dm_status status = dmi_pool_alloc(e->config.pool, bytes, owner, out);
    if (status == DM_OK || !e->gpu) {
        return status;
    }
    /* Empty slabs may take the memory for a larger one. */
    dmi_engine_trim_all(e);
    status = dmi_pool_alloc(e->config.pool, bytes, owner, out);
    if (status == DM_ERR_NOMEM && e->first != e->pending) {
        dmi_engine_drain(e);
        dmi_engine_trim_all(e);
        status = dmi_pool_alloc(e->config.pool, bytes, owner, out);
    }
    int64_t unused = 0, total = 0;
    if (status == DM_ERR_NOMEM) {
        char text[DMI_ERROR_TEXT];
        snprintf(text, sizeof text, "%s", dmi_error_text());
        bool known = e->config.device->memory(&unused, &total) == DM_OK;
        status = known ? dmi_fail(DM_ERR_NOMEM, "%s; GPU %d has %lld bytes free of %lld%s", text,
                                  e->config.device_number, (long long)unused, (long long)total,
                                  e->config.one_space
                                      ? ""
                                      : "; call dm_memory_trim to return slabs that peers have mapped")
                       : dmi_fail(DM_ERR_NOMEM, "%s", text);
    }
    return status;
}

/* --- enqueueing ------------------------------------------------------------------------------------------- */

/* Does the kernel itself wait for EXPECTs? */
static bool waits_itself(const dmi_engine *e, const dmi_step *step)
{
    const dmi_kernel *kernel = dmi_step_kernel(step);
    return e->gpu && kernel && kernel->traits & DMI_TRAIT_WAITS;
}

/* A program on its device alone follows all that was enqueued before it, and what comes later follows it
 * (adr/0050). A plan `between` others does so among what computes. A plan `beside` them has nothing to do with
 * that. */
static void bind_fences(const dmi_engine *e, const dmi_instance *inst, const dmi_step *step, dmi_stamp *wait)
{
    if (!inst->plan->beside) {
        wait->seq[DMI_LANE_COMPUTE] = DMI_MAX(wait->seq[DMI_LANE_COMPUTE], e->fence);
    }
    const bool alone = inst->plan->on_device != NULL,
               between = inst->plan->between && dmi_lane_computes(step->lane);
    for (int l = 0; (alone || between) && step->ordinal == 1 && l < e->lanes; l++) {
        if (l != e->background && (alone || (l != DMI_LANE_COMPUTE_1 && dmi_lane_computes(l)))) {
            wait->seq[l] = DMI_MAX(wait->seq[l], inst->base.seq[l]);
        }
    }
}

static void bind_waits(const dmi_engine *e, const dmi_instance *inst, const dmi_step *step, dmi_stamp *wait)
{
    bool by_kernel = waits_itself(e, step);
    for (int i = 0; i < DMI_LANES; i++) {
        int lane = inst->lane_of[i];
        uint32_t own = by_kernel && i == DMI_LANE_RECV ? step->before : step->wait[i];
        wait->seq[lane] = own ? inst->base.seq[lane] + own : 0;
    }
    for (int i = 0; i < step->nref; i++) {
        const dmi_ref *ref = &step->ref[i];
        if (ref->kind == DMI_REF_OPERAND) {
            dmi_hazard_wait(&inst->earlier[ref->index], ref->mode, wait);
        } else if (ref->kind == DMI_REF_WORK) {
            dmi_stamp_merge(wait, &inst->work[ref->index].ready);
        }
    }
    bind_fences(e, inst, step, wait);
}

static void note_use(dmi_instance *inst, const dmi_step *step, int lane, uint64_t seq)
{
    for (int i = 0; i < step->nref; i++) {
        const dmi_ref *ref = &step->ref[i];
        if (ref->kind == DMI_REF_OPERAND) {
            dmi_hazard_use(&inst->use[ref->index], ref->mode, lane, seq);
        } else if (ref->kind == DMI_REF_WORK) {
            inst->work_use[ref->index].seq[lane] = seq;
        }
    }
    inst->end.seq[lane] = seq;
}

/* What the command may touch of an operand's memory. */
static dmi_area area_of(const dmi_instance *inst, int i)
{
    dmi_area area = {.ndim = -1};
    if (!inst->plan->whole || !inst->plan->whole[i]) {
        dmi_desc_area(&inst->desc[i], &area);
    }
    return area;
}

static void finish_enqueue(dmi_engine *e, dmi_instance *inst)
{
    for (int i = 0; i < inst->noperand; i++) {
        if (inst->memory[i]) {
            dmi_area area = area_of(inst, i);
            dmi_hazards_add(&inst->memory[i]->last, &area, &inst->use[i]);
        }
    }
    if (!e->config.pool_debug) {
        dmi_workspace_return(e, inst);
    }
    if (inst->plan->on_device || inst->plan->between) {
        e->fence = inst->end.seq[DMI_LANE_COMPUTE];
    }
    e->pending = NULL;
}

static void enqueue_step(dmi_engine *e, dmi_instance *inst, const dmi_step *step, uint64_t at)
{
    int number = inst->lane_of[step->lane];
    dmi_lane *lane = &e->lane[number];
    dmi_queued_step *w = dmi_lane_slot(lane, at);
    *w = (dmi_queued_step){.step = step, .inst = inst};
    bind_waits(e, inst, step, &w->wait);
    if (waits_itself(e, step)) { /* the kernel waits for these, and starts before */
        w->arrivals = step->wait[DMI_LANE_RECV] ? inst->base.seq[DMI_LANE_RECV] + step->wait[DMI_LANE_RECV] : 0;
    }
    /* A fused product begins behind the large reductions before it (exec/gpu/kernel.c). So what it sends
     * follows their payloads, which the links would otherwise carry at the same time. Not what a program sends
     * for other calls. */
    if (e->gpu && inst->plan->waits && inst->plan->calls == 0 && dmi_lane_sends(step->lane)) {
        w->wait.seq[DMI_LANE_SEND_1] = DMI_MAX(w->wait.seq[DMI_LANE_SEND_1], inst->base.seq[DMI_LANE_SEND_1]);
    }
    if (dmi_lane_sends(step->lane)) {
        w->ordinal = e->peer[step->peer].channel[dmi_step_channel(w)].sent++;
    } else if (dmi_lane_receives(step->lane)) {
        w->ordinal = e->peer[step->peer].channel[dmi_step_channel(w)].granted++;
    }
    note_use(inst, step, number, at + 1);
    assert(at + 1 == inst->base.seq[number] + step->ordinal);
    atomic_store_explicit(&lane->enqueued, at + 1, memory_order_release);
}

/* Enqueues steps of the pending command while lanes have space, each lane by itself. In the plan's order, a
 * full lane that waits for a peer could hold back the steps that the peer waits for. */
static bool enqueue_steps(dmi_engine *e)
{
    dmi_instance *inst = e->pending;
    const dmi_plan *plan = inst->plan;
    bool moved = false, all = true;
    for (int l = 0; l < DMI_LANES; l++) {
        if (plan->lane_steps[l] == 0) {
            continue;
        }
        const dmi_lane *lane = &e->lane[inst->lane_of[l]];
        uint64_t at = atomic_load_explicit(&lane->enqueued, memory_order_relaxed), before = at;
        while (inst->next_step[l] < plan->nstep) {
            const dmi_step *step = &plan->step[inst->next_step[l]];
            if (step->lane == l) {
                if (at - atomic_load_explicit(&lane->done, memory_order_acquire) >= DMI_LANE_ROOM) {
                    break;
                }
                enqueue_step(e, inst, step, at++);
            }
            inst->next_step[l]++;
        }
        if (at != before && dmi_lane_computes(l) && e->thread_runs) {
            dmi_bell_ring(inst->background ? &e->background_bell : &e->compute_bell);
        }
        moved = moved || at != before;
        all = all && inst->next_step[l] == plan->nstep;
    }
    if (all) {
        finish_enqueue(e, inst);
        moved = true;
    }
    return moved;
}

/* Chooses the compute lane: one that still works on an operand of the command, so that a chain of commands
 * needs no waits; else the next lane. */
static int choose_compute_lane(dmi_engine *e, const dmi_instance *inst)
{
    int last = -1, more = DMI_LANES + 1; /* where more compute lanes begin */
    if (inst->background) {
        return e->background;
    }
    if (e->lanes <= more || inst->plan->on_device || inst->plan->between) {
        return DMI_LANE_COMPUTE;
    }
    for (int i = 0; i < inst->noperand; i++) {
        for (int l = 0; inst->memory[i] && l < e->lanes; l = l == 0 ? more : l + 1) {
            if (inst->earlier[i].write.seq[l] > atomic_load(&e->lane[l].done)) {
                last = l;
            }
        }
    }
    if (last < 0) {
        int next = e->next_compute++ % (e->lanes - more + 1);
        last = next == 0 ? DMI_LANE_COMPUTE : more + next - 1;
    }
    return last;
}

/* Has the engine a lane for the background, and somebody who serves it? */
static bool has_background(dmi_engine *e)
{
    if (e->thread_runs && !e->background_runs) {
        dmi_turns_add(e->config.me, DMI_TURNS_BACKGROUND);
        e->background_runs = pthread_create(&e->background_thread, NULL, dmi_background_thread, e) == 0;
        if (!e->background_runs) {
            dmi_turns_remove(e->config.me, DMI_TURNS_BACKGROUND);
        }
    }
    return e->background > 0 && (e->gpu || e->background_runs);
}

void dmi_engine_submit(dmi_engine *e, dmi_instance *inst)
{
    assert(!e->pending);
    for (int i = 0; i < inst->noperand; i++) {
        if (inst->memory[i]) {
            dmi_area area = area_of(inst, i);
            dmi_hazards_before(&inst->memory[i]->last, &area, &inst->earlier[i]);
        }
    }
    inst->background = inst->plan->background && has_background(e);
    e->behind += inst->plan->background;
    for (int i = 0; i < DMI_LANES; i++) {
        inst->lane_of[i] = i;
    }
    inst->lane_of[DMI_LANE_COMPUTE] = choose_compute_lane(e, inst);
    for (int i = 0; i < e->lanes; i++) {
        inst->base.seq[i] = atomic_load_explicit(&e->lane[i].enqueued, memory_order_relaxed);
    }
    inst->end = inst->base;
    if (e->background > 0 && !inst->background) { /* it overtakes those */
        inst->end.seq[e->background] = 0;
    }
    if (inst->plan->waits && e->gpu) {
        inst->before = calloc((size_t)e->config.endpoints, sizeof *inst->before);
        for (int i = 0; inst->before && i < e->config.endpoints; i++) {
            inst->before[i] = e->peer[i].channel[0].granted;
        }
        if (!inst->before) {
            dm_status status = dmi_fail(DM_ERR_NOMEM, "no memory for a command");
            dmi_engine_fail(e, inst, status, dmi_error_text());
        }
    }
    *(e->last ? &e->last->next : &e->first) = inst;
    e->last = inst;
    e->pending = inst;
    dmi_workspace_take(e, inst);
    enqueue_steps(e);
}

static void end_instance(dmi_engine *e, dmi_instance *inst)
{
    atomic_store_explicit(&e->port->now_peer, 0, memory_order_relaxed);
    if (e->config.pool_debug) {
        dmi_workspace_return(e, inst);
    }
    if (e->config.retired) {
        e->config.retired(e->config.context, inst);
    }
    dmi_instance_free(e, inst);
}

/* Commands retire in order, but for those in the background, which others overtake. */
static bool retire(dmi_engine *e)
{
    bool moved = false;
    dmi_instance **at = &e->first, *kept = NULL;
    while (*at && *at != e->pending) {
        dmi_instance *inst = *at;
        if (dmi_engine_reached(e, &inst->end)) {
            *at = inst->next;
            e->last = e->last == inst ? kept : e->last;
            e->behind -= inst->plan->background;
            end_instance(e, inst);
            moved = true;
        } else if (inst->background) {
            kept = inst;
            at = &inst->next;
        } else {
            break;
        }
    }
    if (moved && !e->first) {
        dmi_engine_trim(e);
    }
    return moved;
}

static bool progress(dmi_engine *e)
{
    bool moved = false;
    if (e->gpu) {
        const bool entered = e->config.device->enter(e);
        moved = e->config.device->progress(e);
        moved = (!e->held && retire(e)) || moved;
        if (entered) {
            e->config.device->leave(e);
        }
        return moved;
    }
    if (!e->thread_runs) {
        moved = dmi_compute_any(e);
    }
    if (!e->first) {
        return moved;
    }
    moved = dmi_transfers_progress(e) || moved;
    return retire(e) || moved;
}

bool dmi_engine_progress(dmi_engine *e)
{
    bool moved = e->pending && !e->held ? enqueue_steps(e) : false;
    return progress(e) || moved;
}

/* Until nothing is in flight but a command that is being enqueued, or until that is true. Others may launch
 * meanwhile (exec/gpu/exchange.c). */
static bool serve_until(dmi_engine *e, bool (*is_true)(dmi_engine *e))
{
    const dmi_device *device = e->gpu ? e->config.device : NULL;
    const int depth = e->inside;
    if (depth > 0) {
        e->inside = 1;
        device->leave(e);
    }
    while ((is_true ? !is_true(e) : e->first != e->pending) || (depth > 0 && !device->enter(e))) {
        bool moved = progress(e);
        int others = e->config.meanwhile ? e->config.meanwhile(e->config.context) : 0;
        if (others < 0) {
            e->inside = depth;
            return false;
        }
        if (e->gpu) { /* the program may be ending: then the worker stays here */
            dmi_compute_leave(e);
            dmi_compute_enter(e);
        }
        if (!moved && others == 0) {
            sched_yield(); /* the compute thread, or another worker, may need this core */
        }
    }
    e->inside = depth;
    return true;
}

void dmi_engine_drain(dmi_engine *e)
{
    (void)serve_until(e, NULL);
}

bool dmi_engine_await(dmi_engine *e, bool (*is_true)(dmi_engine *e))
{
    return serve_until(e, is_true);
}
