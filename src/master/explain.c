/* Plans as text, without running them; the workers' counters. */
#include "base/sized.h"
#include "master/recording.h"
#include "master/session.h"
#include "ops/joined.h"
#include "plan/on_device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dmi_explain_printf(dmi_session *s, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    size_t add = DMI_MIN((size_t)n, sizeof line - 1);
    char *grown = realloc(s->explain_text, s->explain_bytes + add + 1);
    if (grown) {
        memcpy(grown + s->explain_bytes, line, add + 1);
        s->explain_text = grown;
        s->explain_bytes += add;
    }
}

/* Could the workers run a program on their devices alone? */
typedef struct alone {
    char why[DMI_ON_DEVICE_WHY + 24];      /* the first reason against it */
    dmi_plan *plan[DMI_ON_DEVICE_WORKERS]; /* of those that could */
    int64_t most;                          /* bytes of a worker for payloads */
    uint64_t members;
} alone;

static void note_why(alone *a, int worker, const char *text)
{
    if (!a->why[0]) {
        snprintf(a->why, sizeof a->why, "on worker %d %s", worker, text);
    }
}

static dm_status try_alone(const dmi_session *s, const dmi_call *call, int worker, alone *a)
{
    char text[DMI_ON_DEVICE_WHY] = "";
    dmi_plan *plan = NULL, *made = NULL;
    dm_status status = dmi_plan_make(call, &s->profile, worker, &plan);
    status = status == DM_OK ? dmi_plan_on_device(plan, s->workers, a->members, &made, text) : status;
    if (made) {
        a->plan[worker] = made;
    } else if (status == DM_OK) {
        note_why(a, worker, text);
    }
    dmi_plan_release(plan);
    return status;
}

static dm_status find_alone(dmi_session *s, const dmi_call *call, alone *a)
{
    char text[DMI_ON_DEVICE_WHY] = "";
    dm_status status = DM_OK;
    a->members = dmi_program_members(call->tail);
    if (dmi_on_device_members(a->members, s->workers) < 2) {
        snprintf(a->why, sizeof a->why, "it has one worker");
        return DM_OK;
    }
    for (int w = 0; w < s->workers && status == DM_OK; w++) {
        status = try_alone(s, call, w, a);
    }
    bool fits = !a->why[0];
    status = status == DM_OK && fits
                 ? dmi_on_device_places(a->plan, s->workers, s->config.memory_limit == 0, &fits, text)
                 : status;
    if (status == DM_OK && text[0]) {
        snprintf(a->why, sizeof a->why, "%s", text);
    }
    for (int w = 0; w < s->workers && fits && status == DM_OK; w++) {
        const int64_t bytes = a->plan[w]->on_device->places;
        a->most = DMI_MAX(a->most, bytes);
        if (s->config.memory_limit > 0 && bytes > dmi_left_at(s, w, true)) {
            snprintf(text, sizeof text, "%" PRId64 " bytes for payloads are more than is left of memory_limit",
                     bytes);
            note_why(a, w, text);
        }
    }
    return status;
}

static void print_alone(dmi_session *s, const alone *a)
{
    if (a->why[0]) {
        dmi_explain_printf(s, "  on the devices alone: no, %s\n", a->why);
        return;
    }
    dmi_explain_printf(s, "  on the devices alone: yes, with up to %" PRId64 " bytes a worker for payloads\n",
                       a->most);
    for (int w = 0; w < s->workers; w++) {
        if (!dmi_on_device_member(a->members, w)) {
            continue;
        }
        dmi_explain_printf(s, "  alone, worker %d: %" PRId64 " bytes of workspace, %" PRId64 " for payloads\n",
                           w, a->plan[w]->workspace,
                           a->plan[w]->on_device->together ? 0 : a->plan[w]->on_device->places);
    }
}

/* What the calls of a program do, on all workers together. */
typedef struct call_share {
    int64_t bytes, flops;
    int kernels, payloads;
} call_share;

static void add_shares(const dmi_plan *plan, call_share *share)
{
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        call_share *of = &share[step->call <= plan->calls ? step->call : 0];
        const bool pushes = step->kind == DMI_STEP_PUSH;
        of->bytes += pushes ? step->bytes : 0;
        of->payloads += pushes;
        of->kernels += dmi_step_kernel(step) != NULL;
        of->flops += step->flops;
    }
}

static void print_shares(dmi_session *s, const dmi_program *p, const call_share *share)
{
    enum { SHOWN = 200 };
    for (int c = 1; c <= DMI_MIN(p->calls, SHOWN); c++) {
        const dmi_call *call = &p->call[c - 1];
        const int joined = dmi_joined_calls(call);
        char which[48];
        snprintf(which, sizeof which, joined > 1 ? "calls %d to %d" : "call %d", call->recorded,
                 call->recorded + joined - 1);
        dmi_explain_printf(s,
                           "  %s of %d, %s%s: %d kernels, %d payloads of %" PRId64 " bytes, %" PRId64
                           " flops on all workers\n",
                           which, p->recorded, dmi_call_name(call), joined > 1 ? " and others as one" : "",
                           share[c].kernels, share[c].payloads, share[c].bytes, share[c].flops);
    }
    if (p->calls > SHOWN) {
        dmi_explain_printf(s, "  and %d more calls\n", p->recorded - p->call[SHOWN].recorded + 1);
    }
}

/* "sent by worker 0: 64 to worker 1, 8 to the master"; nothing where it sends nothing. sent: [endpoints]. All
 * receivers: nn/solver/links.c adds these lines up. */
static void explain_links(dmi_session *s, const dmi_plan *plan, int64_t *sent)
{
    const char *before = "";
    memset(sent, 0, (size_t)(s->workers + 1) * sizeof *sent);
    for (int i = 0; i < plan->nstep; i++) {
        if (plan->step[i].kind == DMI_STEP_PUSH) {
            sent[plan->step[i].peer] += plan->step[i].bytes;
        }
    }
    if (plan->bytes_sent == 0) {
        return;
    }
    dmi_explain_printf(s, "  sent by worker %d:", plan->me);
    for (int to = 0; to < s->workers; to++) {
        if (sent[to] > 0) {
            dmi_explain_printf(s, "%s %" PRId64 " to worker %d", before, sent[to], to);
            before = ",";
        }
    }
    if (sent[s->workers] > 0) {
        dmi_explain_printf(s, "%s %" PRId64 " to the master", before, sent[s->workers]);
    }
    dmi_explain_printf(s, "\n");
}

dm_status dmi_explain_call(dmi_session *s, const dmi_call *call)
{
    const dmi_opdef *op = &dmi_ops[call->op];
    int64_t *sent = calloc((size_t)s->workers + 1, sizeof *sent);
    const dmi_program *p = call->op == DMI_OP_program ? call->tail : NULL;
    call_share *share = calloc((p ? (size_t)p->calls : 0) + 1, sizeof *share);
    dm_status status = sent && share ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory to explain a call");
    const bool asked = p && s->profile.on_device;
    alone a = {.why = ""};
    dmi_profile profile = s->profile;
    status = status == DM_OK && asked ? find_alone(s, call, &a) : status;
    profile.on_device = asked && !a.why[0];
    for (int w = 0; w < s->workers && status == DM_OK; w++) {
        dmi_plan *plan = NULL;
        status = dmi_plan_make(call, &profile, w, &plan);
        if (status != DM_OK) {
            break;
        }
        char text[400];
        if (w == 0) {
            dmi_explain_printf(s, "call %d: %s algorithm %s%s%s\n", ++s->explain_calls, op->name,
                               plan->algorithm, plan->compute ? " in " : "",
                               plan->compute ? plan->compute : "");
            for (int i = 0; i < call->noperand && !p; i++) {
                dmi_operand_describe(dmi_operand_name(call, i), &call->operand[i], text, sizeof text);
                dmi_explain_printf(s, "  operand %s\n", text);
            }
        }
        dmi_plan_describe(plan, text, sizeof text);
        dmi_explain_printf(s, "  %s\n", text);
        explain_links(s, plan, sent);
        add_shares(plan, share);
        dmi_plan_release(plan);
    }
    if (status == DM_OK && asked) {
        print_alone(s, &a);
    }
    for (int w = 0; w < DMI_ON_DEVICE_WORKERS; w++) {
        dmi_plan_release(a.plan[w]);
    }
    if (status == DM_OK && p) {
        print_shares(s, p, share);
    }
    free(share);
    free(sent);
    return status;
}

void dmi_explain_log(dmi_session *s, dm_status explained)
{
    if (explained == DM_OK && s->explain_text) {
        fputs(s->explain_text, stderr);
    }
    free(s->explain_text);
    s->explain_text = NULL;
    s->explain_bytes = 0;
}

dm_status dm_explain_begin(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && s->explaining) {
        status = dmi_fail(DM_ERR_STATE, "explain_begin: it has begun already");
    } else if (status == DM_OK && s->recording) {
        status = dmi_fail(DM_ERR_STATE, "explain_begin: a program is being recorded; explain its run");
    }
    if (status == DM_OK) {
        s->explaining = true;
        s->explain_calls = 0;
        dmi_explain_printf(s, "%d workers\n", s->workers);
    }
    return status;
}

dm_status dm_explain_end(dm_session *session, char **text)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!s->explaining || !text)) {
        status = s->explaining ? dmi_fail(DM_ERR_ARG, "text is NULL")
                               : dmi_fail(DM_ERR_STATE, "dm_explain_end without dm_explain_begin");
    }
    if (status != DM_OK) {
        return status;
    }
    s->explaining = false;
    *text = s->explain_text;
    s->explain_text = NULL;
    s->explain_bytes = 0;
    return DM_OK;
}

static dm_status enter_worker(dm_session *session, int worker, dmi_session **s)
{
    dm_status status = dmi_enter(session, s);
    if (status == DM_OK && (worker < 0 || worker >= (*s)->workers)) {
        status = dmi_fail(DM_ERR_ARG, "worker is %d, not 0 to %d", worker, (*s)->workers - 1);
    }
    return status == DM_OK ? dmi_wait(*s, (*s)->command) : status;
}

static dm_status check_out(const void *out, size_t least, const char *what)
{
    return out ? dmi_sized_check(out, least, what) : dmi_fail(DM_ERR_ARG, "out is NULL");
}

dm_counters dmi_counters_from(const dmi_counts *t, int64_t commands)
{
    return (dm_counters){.commands = commands,
                         .steps = atomic_load(&t->steps),
                         .bytes_sent = atomic_load(&t->bytes_sent),
                         .bytes_received = atomic_load(&t->bytes_received),
                         .messages_sent = atomic_load(&t->messages_sent),
                         .messages_received = atomic_load(&t->messages_received),
                         .flops = atomic_load(&t->flops),
                         .workspace_peak_bytes = atomic_load(&t->workspace_peak),
                         .plans_made = atomic_load(&t->plans_made),
                         .plans_reused = atomic_load(&t->plans_reused)};
}

dm_status dm_links_get(dm_session *session, int worker, int64_t *sent)
{
    dmi_session *s;
    dm_status status =
        sent ? enter_worker(session, worker, &s) : dmi_fail(DM_ERR_ARG, "links_get: sent is NULL");
    for (int i = 0; status == DM_OK && i <= s->workers; i++) {
        sent[i] = atomic_load(&dmi_hub_sent(&s->hub, worker)[i]);
    }
    return status;
}

dm_status dm_counters_get(dm_session *session, int worker, dm_counters *out)
{
    dmi_session *s;
    dm_status status = check_out(out, DMI_SIZED_LEAST(dm_counters, plans_reused),
                                 "counters_get: out: set size to sizeof(dm_counters)");
    status = status == DM_OK ? enter_worker(session, worker, &s) : status;
    if (status != DM_OK) {
        return status;
    }
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    dm_counters r = dmi_counters_from(&port->tally.all, (int64_t)atomic_load(&port->completed));
    dmi_sized_give(&r, sizeof r, out);
    return DM_OK;
}

dm_status dm_memory_report(dm_session *session, int worker, dm_memory *out)
{
    dmi_session *s;
    dm_status status =
        check_out(out, DMI_SIZED_LEAST(dm_memory, limit), "memory_report: out: set size to sizeof(dm_memory)");
    status = status == DM_OK ? enter_worker(session, worker, &s) : status;
    if (status != DM_OK) {
        return status;
    }
    atomic_int_fast64_t *m = dmi_hub_port(&s->hub, worker)->tally.memory;
    dm_memory r = {.arrays = atomic_load(&m[DMI_MEM_ARRAYS]),
                       .workspace = atomic_load(&m[DMI_MEM_WORKSPACE]),
                       .replicas = atomic_load(&m[DMI_MEM_REPLICAS]),
                       .staging = atomic_load(&m[DMI_MEM_STAGING]),
                       .peak = atomic_load(&m[DMI_MEM_PEAK]),
                       .held = atomic_load(&m[DMI_MEM_HELD]),
                       .system_calls = atomic_load(&m[DMI_MEM_CALLS]),
                       .limit = s->config.memory_limit};
    dmi_sized_give(&r, sizeof r, out);
    return DM_OK;
}

dm_status dm_memory_trim(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    /* A slab may be returned only if nobody has it mapped, so all workers unmap before any worker returns
     * one. */
    static const int kinds[] = {DMI_FRAME_UNMAP, DMI_FRAME_TRIM};
    for (int i = 0; i < DMI_COUNT(kinds) && status == DM_OK; i++) {
        status = dmi_wait(s, s->command);
        if (status == DM_OK) {
            (void)dmi_frame_begin(s, sizeof(dmi_frame), kinds[i], 0);
            dmi_frame_send(s);
        }
    }
    return status;
}
