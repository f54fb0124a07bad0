/* What workers are doing, in words: for time-outs and deaths. */
#include "base/process.h"
#include "master/session.h"
#include "ops/common_task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    char *text;
    size_t room, at;
} writer;

static DMI_PRINTF(2, 3) void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->at, w->room - w->at, format, args);
    va_end(args);
    w->at = DMI_MIN(w->at + (size_t)DMI_MAX(n, 0), w->room - 1);
}

typedef struct recalled {
    dmi_op_frame frame;
    dmi_operand_ref operand[DMI_MAX_OPERANDS];
} recalled;

/* A command as it was sent, if it is still in the command ring. */
static bool recall(const dmi_session *s, uint64_t command, recalled *out)
{
    const dmi_ring *ring = s->hub.ring;
    uint64_t at = s->recent[command % DMI_RECENT];
    if (at >= ring->size) {
        return false;
    }
    memset(out, 0, sizeof *out);
    memcpy(out, ring->data + at, DMI_MIN(sizeof *out, ring->size - at));
    for (int i = 0; i < DMI_MAX_OPERANDS; i++) { /* what follows the operands may be there */
        out->operand[i].name[DMI_OPERAND_NAME - 1] = '\0';
    }
    return out->frame.head.command == command &&
           (out->frame.head.kind != DMI_FRAME_OP ||
            (out->frame.noperand >= 0 && out->frame.noperand <= DMI_MAX_OPERANDS &&
             out->frame.head.op < DMI_OPS));
}

/* Of a command that is no operation. */
static const char *kind_name(int kind)
{
    static const char *const names[] = {
        [DMI_FRAME_NOOP] = "noop",   [DMI_FRAME_LAYOUT] = "layout",   [DMI_FRAME_CREATE] = "create",
        [DMI_FRAME_VIEW] = "view",   [DMI_FRAME_DESTROY] = "destroy", [DMI_FRAME_UNMAP] = "unmap",
        [DMI_FRAME_TRIM] = "trim",   [DMI_FRAME_CANCEL] = "cancel",   [DMI_FRAME_POISON] = "poison",
        [DMI_FRAME_GROUP] = "group", [DMI_FRAME_SYNC] = "sync",       [DMI_FRAME_STOP] = "finalize"};
    const char *name = kind >= 0 && kind < DMI_COUNT(names) ? names[kind] : NULL;
    return name ? name : "";
}

/* As the public call has it. */
static const char *operand_name(const recalled *r, int i)
{
    const char *name = r->operand[i].name;
    return name[0] ? name : dmi_op_operand_name(r->frame.head.op, r->frame.noperand, i);
}

static void put_operands(writer *w, const dmi_session *s, const recalled *r)
{
    const dmi_handle *table = s->handle;
    uint32_t handles = s->handles;
    for (int i = 0; i < r->frame.noperand; i++) {
        uint32_t slot = dmi_id_slot(r->operand[i].id);
        char text[160] = "destroyed";
        if (slot < handles && table[slot].desc.layout && table[slot].desc.ndim <= DM_MAX_DIMS &&
            dmi_id_make(s->number, table[slot].generation, slot) == r->operand[i].id) {
            dmi_desc desc = table[slot].desc;
            dmi_desc_describe(&desc, text, sizeof text);
        }
        put(w, "%s%s %s", i ? ", " : "", operand_name(r, i), text);
    }
}

void dmi_command_describe(const dmi_session *s, uint64_t command, uint64_t step, char *text, size_t room)
{
    writer w = {text, room, 0};
    recalled r;
    bool known = recall(s, command, &r), is_op = known && r.frame.head.kind == DMI_FRAME_OP;
    const char *call = dmi_api_name(known ? r.frame.head.called : (int)(step >> 48)),
               *kind = is_op   ? dmi_ops[r.frame.head.op].name
                       : known ? kind_name(r.frame.head.kind)
                               : "";
    put(&w, "command %" PRIu64, command);
    if (call) {
        put(&w, " %s", call);
    }
    if (kind[0] && (!call || (!is_op && strcmp(kind, call) != 0))) {
        put(&w, "%s%s", call ? ": " : " ", kind);
    }
    if (is_op) {
        if (r.frame.head.op == DMI_OP_apply) {
            put(&w, " of %s", dmi_task_name(r.frame.args[0]));
        }
        put(&w, " (");
        put_operands(&w, s, &r);
        put(&w, ")");
    }
    if (step & 0xffffffffffff) {
        put(&w, ", step %d of %d", (int)(step >> 24 & 0xffffff), (int)(step & 0xffffff));
    }
}

/* The oldest command that the worker has not done, and where it is in it. */
static void put_command(writer *w, const dmi_session *s, const dmi_port *port)
{
    uint64_t done = atomic_load(&port->completed), command = done + 1, step = 0;
    const dmi_doing *at = NULL;
    if (atomic_load(&port->now_busy) && atomic_load(&port->runs.command) > done) {
        at = &port->runs;
    } else if (atomic_load(&port->waits.command) > done) {
        at = &port->waits;
    }
    if (at) {
        command = atomic_load(&at->command);
        step = atomic_load(&at->step);
    }
    char text[768];
    dmi_command_describe(s, command, step, text, sizeof text);
    put(w, "%s", text);
    if (at == &port->runs) {
        put(w, ", kernel %s", dmi_step_name(atomic_load(&port->now_step)));
    }
}

void dmi_death_describe(const dmi_session *s, int worker, const char *how, char *text, size_t room)
{
    writer w = {text, room, 0};
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    int gpu = atomic_load(&port->gpu);
    char device[24] = "CPU";
    if (gpu > 0) {
        snprintf(device, sizeof device, "GPU %d", gpu - 1);
    }
    put(&w, "worker %d (%s, process %d, %s) %s", worker, port->host, port->pid, device, how);
    if (atomic_load(&port->completed) < s->command) {
        put(&w, " in ");
        put_command(&w, s, port);
    } else {
        put(&w, " after command %" PRIu64 ", with nothing to do", s->command);
    }
    if (port->last_words[0]) {
        put(&w, ": %s", port->last_words);
    }
}

static bool unfinished(const dmi_session *s, int worker)
{
    return atomic_load(&dmi_hub_port(&s->hub, worker)->completed) < s->command;
}

static bool is_stopped(const dmi_port *port)
{
    dmi_thread_times times;
    return port->pid > 0 && dmi_thread_times_get(port->pid, atomic_load(&port->communication_thread), &times) &&
           (times.state == 'T' || times.state == 't');
}

/* Whom a worker waits for; -1: nobody. */
static int awaited(const dmi_session *s, int worker)
{
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    int peer = atomic_load(&port->now_peer) - 1;
    return atomic_load(&port->now_busy) || peer < 0 ||
                   atomic_load(&port->waits.command) <= atomic_load(&port->completed) || is_stopped(port)
               ? -1
               : peer;
}

/* From a worker to the one it waits for, and so on: the last, who waits for nobody; of a circle the lowest
 * number. */
static int end_of_chain(const dmi_session *s, int worker)
{
    int at = worker;
    for (int i = 0; i < s->workers; i++) {
        int next = awaited(s, at);
        if (next < 0 || next >= s->workers || !unfinished(s, next)) {
            return at;
        }
        at = next;
    }
    int lowest = at;
    for (int i = 0, next = at; i < s->workers; i++) {
        next = awaited(s, next);
        if (next < 0 || next >= s->workers) {
            break;
        }
        lowest = DMI_MIN(lowest, next);
    }
    return lowest;
}

static void put_worker(writer *w, const dmi_session *s, int worker)
{
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    int peer = awaited(s, worker);
    put(w, "worker %d (%s, process %d)%s in ", worker, port->host, port->pid,
        is_stopped(port) ? " is stopped (SIGSTOP)," : " is");
    put_command(w, s, port);
    if (peer >= 0) {
        int what = atomic_load(&port->waits_for);
        recalled r;
        uint64_t number = atomic_load(&port->waits_number);
        char whom[32] = "the master", of[64] = "";
        if (peer < s->workers) {
            snprintf(whom, sizeof whom, "worker %d", peer);
        }
        if (what > 0 && recall(s, atomic_load(&port->waits.command), &r) && r.frame.head.kind == DMI_FRAME_OP &&
            what <= r.frame.noperand) {
            snprintf(of, sizeof of, ", one of %s", operand_name(&r, what - 1));
        }
        put(w, ", waits for %s: %sblock %d of %d%s%s", whom, what < 0 ? "to take " : "", (int)(number >> 32),
            (int)(number & 0xffffffff), what < 0 ? "" : " that it receives", of);
    }
}

void dmi_stuck_describe(const dmi_session *s, double seconds, char *text, size_t room)
{
    enum { SHOWN = 2 };
    int shown[SHOWN], ends = 0, others = 0;
    writer w = {text, room, 0};
    for (int i = 0; i < s->workers; i++) {
        int end = unfinished(s, i) ? end_of_chain(s, i) : -1;
        bool known = end < 0;
        for (int k = 0; k < DMI_MIN(ends, SHOWN) && !known; k++) {
            known = shown[k] == end;
        }
        if (!known) {
            if (ends < SHOWN) {
                shown[ends] = end;
            }
            ends++;
        }
        others += end >= 0;
    }
    put(&w, "no progress for %.3g s (option watchdog_s=%g): ", seconds, s->config.watchdog_s);
    for (int k = 0; k < DMI_MIN(ends, SHOWN); k++) {
        put(&w, "%s", k ? "; " : "");
        put_worker(&w, s, shown[k]);
    }
    others -= DMI_MIN(ends, SHOWN);
    if (ends == 0) {
        put(&w, "the master has not finished a transfer of its own");
    } else if (others > 0) {
        put(&w, "; %d other worker%s", others, others == 1 ? " waits" : "s wait");
    }
}
