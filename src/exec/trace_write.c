/* A timeline as Chrome's trace format: processes, tracks, events, arrows. */
#include "base/plain.h"
#include "base/process.h"
#include "exec/trace_parts.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Tracks of an endpoint: its lanes, its programs, its groups. Numbers of tracks are those of no other endpoint.
 */
enum { TRACKS = 64, PROGRAMS = DMI_STAMP_LANES, GROUPS, MOST_GROUPS = TRACKS - GROUPS };

/* Lanes by number. */
static const char *const lane_names[DMI_STAMP_LANES] = {"compute",
                                                        "send",
                                                        "receive",
                                                        "compute of reductions",
                                                        "send of reductions",
                                                        "receive of reductions",
                                                        "background",
                                                        "compute 2",
                                                        "compute 3"};

typedef struct writer {
    FILE *to;
    const dmi_engine *e;
    int pid; /* of the endpoint: each is a process to the viewer */
    char who[32];
} writer;

static writer begin_writing(FILE *to, const dmi_engine *e)
{
    writer w = {.to = to, .e = e, .pid = e->config.me + 1};
    if (e->config.me == e->config.endpoints - 1) {
        snprintf(w.who, sizeof w.who, "master");
    } else {
        snprintf(w.who, sizeof w.who, "worker %d", e->config.me);
    }
    return w;
}

static int track_number(const writer *w, int which)
{
    return w->pid * TRACKS + which;
}

static void put_track(const writer *w, int which, const char *name)
{
    int tid = track_number(w, which);
    fprintf(w->to,
            "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s %s\"}},\n",
            w->pid, tid, w->who, name);
    fprintf(
        w->to,
        "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
        w->pid, tid, tid);
}

/* The head of an event that takes time; its arguments follow. */
static void put_span(const writer *w, int which, const char *name, int64_t begin_ns, int64_t end_ns,
                     uint64_t command)
{
    fprintf(w->to,
            "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d,\"args\":{"
            "\"command\":%" PRIu64,
            name, (double)begin_ns / 1e3, (double)(end_ns - begin_ns) / 1e3, w->pid, track_number(w, which),
            command);
}

/* The public call that the event is part of. */
static void put_call(const writer *w, const dmi_trace_event *v)
{
    const char *name = dmi_api_name(v->called);
    if (name) {
        fprintf(w->to, ",\"call\":\"%s\"", name);
    }
}

/* One end of the arrow from a push to the arrival. The k-th push to a peer meets the k-th arrival from here. */
static void put_arrow(const writer *w, int which, const dmi_trace_event *v, bool arrives)
{
    uint64_t me = (uint64_t)w->e->config.me, peer = (uint64_t)v->peer, ends = (uint64_t)w->e->config.endpoints;
    uint64_t pair = (arrives ? peer * ends + me : me * ends + peer) + (uint64_t)v->channel * ends * ends;
    fprintf(w->to,
            "{\"name\":\"payload\",\"cat\":\"transfer\",\"ph\":\"%s\",\"id\":%" PRIu64
            ",\"ts\":%.3f,\"pid\":%d,\"tid\":%d},\n",
            arrives ? "f\",\"bp\":\"e" : "s", pair << 32 | (v->ordinal & UINT32_MAX),
            (double)(arrives ? v->end_ns - 1 : v->begin_ns) / 1e3, w->pid, track_number(w, which));
}

/* The same of a payload of an exchange: it has a number among those of its pair in the run of a program. */
static void put_part(const writer *w, int which, const dmi_trace_event *v)
{
    const bool arrives = v->kind == DMI_STEP_EXPECT;
    fprintf(w->to,
            "{\"name\":\"payload\",\"cat\":\"transfer\",\"ph\":\"%s\",\"id\":\"%" PRIu64 ".%" PRId64
            ".%d.%d.%" PRIu64 "\",\"ts\":%.3f,\"pid\":%d,\"tid\":%d},\n",
            arrives ? "f\",\"bp\":\"e" : "s", v->command, v->run, arrives ? v->peer : w->e->config.me,
            arrives ? w->e->config.me : v->peer, v->ordinal,
            (double)(arrives ? v->end_ns - 1 : v->begin_ns) / 1e3, w->pid, track_number(w, which));
}

static void put_event(const writer *w, int lane, const dmi_trace_event *v)
{
    char name[96];
    if (v->part) {
        put_part(w, lane, v);
        return;
    }
    snprintf(name, sizeof name, "%s %s", dmi_ops[v->op].name, dmi_step_name(v->kind));
    put_span(w, lane, name, v->begin_ns, v->end_ns, v->command);
    put_call(w, v);
    if (v->peer >= 0) {
        fprintf(w->to, ",\"peer\":%d,\"bytes\":%" PRId64 ",\"ahead_us\":%.3f", v->peer, v->bytes,
                (double)v->ahead_ns / 1e3);
    }
    if (v->flops > 0) {
        fprintf(w->to, ",\"flops\":%" PRId64, v->flops);
    }
    fputs("}},\n", w->to);
    if (v->kind == DMI_STEP_PUSH || v->kind == DMI_STEP_EXPECT) {
        put_arrow(w, lane, v, v->kind == DMI_STEP_EXPECT);
    }
}

static void put_lane(const writer *w, int lane, const char *name)
{
    const dmi_trace_track *t = &w->e->trace->track[lane];
    put_track(w, lane, name);
    for (int64_t i = 0; i < t->count; i++) {
        put_event(w, lane, &t->event[i]);
    }
    if (t->dropped > 0) {
        fprintf(w->to,
                "{\"name\":\"%" PRId64
                " more steps not recorded\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%.3f,\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"dropped\":%" PRId64 "}},\n",
                t->dropped, (double)t->last_ns / 1e3, w->pid, track_number(w, lane), t->dropped);
        dmi_log(DMI_LOG_WARN,
                "timeline: %" PRId64 " steps of lane %s of %s were dropped, because the buffer was full",
                t->dropped, name, w->who);
    }
}

/* --- programs and groups: from the first step of a command here to its last --- */

static int by_command(const void *a, const void *b)
{
    const dmi_trace_event *x = *(const dmi_trace_event *const *)a, *y = *(const dmi_trace_event *const *)b;
    int order = (x->command > y->command) - (x->command < y->command);
    return order ? order : (x->run > y->run) - (x->run < y->run);
}

static int by_time(const void *a, const void *b)
{
    const dmi_trace_event *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The commands that belong to a program or a group, in order of time; NULL: none, or no memory. */
static dmi_trace_event *find_commands(const dmi_engine *e, int64_t *count)
{
    int64_t n = 0, made = 0;
    for (int l = 0; l < e->lanes; l++) {
        n += e->trace->track[l].count;
    }
    const dmi_trace_event **step = n > 0 ? malloc((size_t)n * sizeof(const dmi_trace_event *)) : NULL;
    n = 0;
    for (int l = 0; step && l < e->lanes; l++) {
        for (int64_t i = 0; i < e->trace->track[l].count; i++) {
            const dmi_trace_event *v = &e->trace->track[l].event[i];
            step[n] = v;
            n += v->program > 0 || v->group > 0;
        }
    }
    dmi_trace_event *command = step && n > 0 ? malloc((size_t)n * sizeof *command) : NULL;
    if (command) {
        qsort(step, (size_t)n, sizeof(const dmi_trace_event *), by_command);
        for (int64_t i = 0; i < n; i++) {
            if (i > 0 && by_command(&step[i - 1], &step[i]) == 0) {
                command[made - 1].begin_ns = DMI_MIN(command[made - 1].begin_ns, step[i]->begin_ns);
                command[made - 1].end_ns = DMI_MAX(command[made - 1].end_ns, step[i]->end_ns);
            } else {
                command[made++] = *step[i];
            }
        }
        qsort(command, (size_t)made, sizeof *command, by_time);
    }
    free(step);
    *count = made;
    return command;
}

/* Those of one track. Commands may overlap; what is shown may not, as in lanes. */
static void put_commands(const writer *w, const dmi_trace_event *command, int64_t count, int which)
{
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        const dmi_trace_event *v = &command[i];
        char name[96] = "";
        if (which == PROGRAMS ? v->program == 0
                              : v->group == 0 || (int)((v->group - 1) % MOST_GROUPS) != which - GROUPS) {
            continue;
        }
        if (last == 0) {
            snprintf(name, sizeof name, which == PROGRAMS ? "programs" : "group %u", v->group);
            put_track(w, which, name);
        }
        if (v->program > 0) {
            snprintf(name, sizeof name, "program %u run %" PRId64, v->program, v->run);
        } else {
            snprintf(name, sizeof name, "%s", dmi_ops[v->op].name);
        }
        int64_t end = DMI_MAX(v->end_ns, last + 1), begin = DMI_MIN(DMI_MAX(v->begin_ns, last), end - 1);
        put_span(w, which, name, begin, end, v->command);
        if (v->program == 0) {
            put_call(w, v);
        }
        fprintf(w->to, ",\"group\":%u,\"ahead_us\":%.3f}},\n", v->group, (double)(begin - v->begin_ns) / 1e3);
        last = end;
    }
}

/* The endpoint's name; the last event of the file has no comma behind it. */
static void put_process(const writer *w, const char *end)
{
    char host[64];
    dmi_host_name(host, sizeof host);
    for (char *c = host; *c; c++) { /* nothing that would need escaping */
        *c = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '?' : *c;
    }
    fprintf(w->to,
            "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}},\n"
            "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s (%s, process %d)\"}}%s",
            w->pid, w->pid, w->pid, w->who, host, (int)getpid(), end);
}

void dmi_trace_put(FILE *to, const dmi_engine *e, const char *end)
{
    dmi_plain held;
    dmi_plain_enter(&held);
    const writer w = begin_writing(to, e);
    int64_t count = 0;
    dmi_trace_event *command = find_commands(e, &count);
    for (int which = PROGRAMS; which < TRACKS && count > 0; which++) {
        put_commands(&w, command, count, which);
    }
    free(command);
    for (int l = 0; l < DMI_STAMP_LANES; l++) {
        bool always = l < DMI_CHANNEL_LANES || l > DMI_LANES; /* the others where something ran */
        if (l < e->lanes && (always || e->trace->track[l].count > 0)) {
            put_lane(&w, l, lane_names[l]);
        }
    }
    put_process(&w, end);
    dmi_plain_leave(&held);
}
