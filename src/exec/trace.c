/* Timeline of steps in Chrome's trace format. */
#include "exec/trace.h"
#include "base/process.h"

#include "ops/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct event {
    int64_t begin_ns, end_ns;
    /* transfers: time between the real start and the shown start, because it overlapped with the transfer
     * before */
    int64_t ahead_ns;
    uint64_t command, ordinal; /* ordinal: of transfers, with this peer */
    int64_t bytes, flops, run; /* run: of a program */
    uint32_t program, group;   /* numbers from 1; 0: none */
    int32_t peer;
    uint16_t op;
    uint8_t kind;
} event;

typedef struct track {
    event *event;
    int64_t count, room, dropped;
    int64_t last_ns; /* end of the last event */
} track;

struct dmi_trace {
    int64_t most;
    track track[DMI_STAMP_LANES];
};

dmi_trace *dmi_trace_create(int64_t most)
{
    dmi_trace *trace = calloc(1, sizeof *trace);
    if (trace) {
        trace->most = most;
    } else {
        dmi_log(DMI_LOG_WARN, "no memory for a timeline");
    }
    return trace;
}

void dmi_trace_destroy(dmi_trace *trace)
{
    for (int l = 0; trace && l < DMI_STAMP_LANES; l++) {
        free(trace->track[l].event);
    }
    free(trace);
}

static bool make_room(const dmi_trace *trace, track *t)
{
    if (t->count < t->room) {
        return true;
    }
    int64_t room = DMI_MIN(t->room ? 2 * t->room : 1024, trace->most);
    event *grown = room > t->room ? realloc(t->event, (size_t)room * sizeof *grown) : NULL;
    if (grown) {
        t->event = grown;
        t->room = room;
    }
    return grown != NULL;
}

void dmi_trace_step(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns)
{
    const dmi_step *step = w->step;
    track *t = &e->trace->track[w->inst->lane_of[step->lane]];
    if (!make_room(e->trace, t)) {
        t->dropped++;
        return;
    }
    /* Events in one row must not overlap, but real times may: grants run ahead, messages overlap, and device
     * and host clocks differ. So later events are moved back. */
    end_ns = DMI_MAX(end_ns, t->last_ns + 1); /* arrows end inside an event, so none is empty */
    int64_t shown = DMI_MIN(DMI_MAX(begin_ns, t->last_ns), end_ns - 1);
    t->last_ns = end_ns;
    t->event[t->count++] = (event){.begin_ns = shown,
                                   .end_ns = end_ns,
                                   .ahead_ns = shown - begin_ns,
                                   .command = w->inst->command,
                                   .ordinal = w->ordinal,
                                   .run = w->inst->run,
                                   .program = w->inst->program,
                                   .group = w->inst->group,
                                   .bytes = step->bytes,
                                   .flops = step->flops,
                                   .peer = step->peer,
                                   .op = (uint16_t)dmi_step_op(w),
                                   .kind = step->kind};
}

/* --- writing --- */

/* Tracks of an endpoint: its lanes, its programs, its groups. Numbers of tracks are those of no other endpoint. */
enum { TRACKS = 64, PROGRAMS = DMI_STAMP_LANES, GROUPS, MOST_GROUPS = TRACKS - GROUPS };

/* Lanes by number; the last of a worker is that for the background. */
static const char *const lane_names[] = {"compute", "send", "receive", "compute 2", "compute 3", "compute 4"};

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
    fprintf(w->to, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s %s\"}},\n",
            w->pid, tid, w->who, name);
    fprintf(w->to,
            "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
            w->pid, tid, tid);
}

/* The head of an event that takes time; its arguments follow. */
static void put_span(const writer *w, int which, const char *name, int64_t begin_ns, int64_t end_ns, uint64_t command)
{
    fprintf(w->to,
            "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d,\"args\":{\"command\":%" PRIu64,
            name, (double)begin_ns / 1e3, (double)(end_ns - begin_ns) / 1e3, w->pid, track_number(w, which), command);
}

/* One end of the arrow from a push to the arrival. The k-th push to a peer meets the k-th arrival from here. */
static void put_arrow(const writer *w, int which, const event *v, bool arrives)
{
    uint64_t me = (uint64_t)w->e->config.me, peer = (uint64_t)v->peer, ends = (uint64_t)w->e->config.endpoints;
    uint64_t pair = arrives ? peer * ends + me : me * ends + peer;
    fprintf(w->to,
            "{\"name\":\"payload\",\"cat\":\"transfer\",\"ph\":\"%s\",\"id\":%" PRIu64
            ",\"ts\":%.3f,\"pid\":%d,\"tid\":%d},\n",
            arrives ? "f\",\"bp\":\"e" : "s", pair << 32 | (v->ordinal & UINT32_MAX),
            (double)(arrives ? v->end_ns - 1 : v->begin_ns) / 1e3, w->pid, track_number(w, which));
}

static void put_event(const writer *w, int lane, const event *v)
{
    char name[96];
    snprintf(name, sizeof name, "%s %s", dmi_ops[v->op].name, dmi_step_name(v->kind));
    put_span(w, lane, name, v->begin_ns, v->end_ns, v->command);
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
    const track *t = &w->e->trace->track[lane];
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
                "timeline: %" PRId64 " steps of lane %s of %s were dropped, because the buffer was full", t->dropped,
                name, w->who);
    }
}

/* --- programs and groups: from the first step of a command here to its last --- */

static int by_command(const void *a, const void *b)
{
    const event *x = *(const event *const *)a, *y = *(const event *const *)b;
    int order = (x->command > y->command) - (x->command < y->command);
    return order ? order : (x->run > y->run) - (x->run < y->run);
}

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The commands that belong to a program or a group, in order of time; NULL: none, or no memory. */
static event *find_commands(const dmi_engine *e, int64_t *count)
{
    int64_t n = 0, made = 0;
    for (int l = 0; l < e->lanes; l++) {
        n += e->trace->track[l].count;
    }
    const event **step = n > 0 ? malloc((size_t)n * sizeof(const event *)) : NULL;
    n = 0;
    for (int l = 0; step && l < e->lanes; l++) {
        for (int64_t i = 0; i < e->trace->track[l].count; i++) {
            const event *v = &e->trace->track[l].event[i];
            step[n] = v;
            n += v->program > 0 || v->group > 0;
        }
    }
    event *command = step && n > 0 ? malloc((size_t)n * sizeof *command) : NULL;
    if (command) {
        qsort(step, (size_t)n, sizeof(const event *), by_command);
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
static void put_commands(const writer *w, const event *command, int64_t count, int which)
{
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        const event *v = &command[i];
        char name[96] = "";
        if (which == PROGRAMS ? v->program == 0 : v->group == 0 || (int)((v->group - 1) % MOST_GROUPS) != which - GROUPS) {
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

static void put_tracks(const writer *w, const char *end)
{
    const dmi_engine *e = w->e;
    int64_t count = 0;
    event *command = find_commands(e, &count);
    for (int which = PROGRAMS; which < TRACKS && count > 0; which++) {
        put_commands(w, command, count, which);
    }
    free(command);
    for (int l = 0; l < DMI_STAMP_LANES; l++) {
        bool background = e->background > 0 && l == e->background;
        if (l < e->lanes && (!background || e->trace->track[l].count > 0)) {
            put_lane(w, l, background ? "background" : lane_names[l]);
        }
    }
    put_process(w, end);
}

static void worker_path(char *out, size_t room, const char *path, int worker)
{
    snprintf(out, room, "%s.%d.worker_file", path, worker);
}

enum { PATH_ROOM = 320 };

static void close_file(FILE *file, const char *path)
{
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad) {
        dmi_log(DMI_LOG_WARN, "timeline: cannot write %s: %s", path, strerror(errno));
    }
}

void dmi_trace_write_worker(const dmi_engine *e, const char *path)
{
    char worker_file[PATH_ROOM];
    if (!e->trace) {
        return;
    }
    worker_path(worker_file, sizeof worker_file, path, e->config.me);
    FILE *to = fopen(worker_file, "w");
    if (!to) {
        dmi_log(DMI_LOG_WARN, "timeline: cannot write %s: %s", worker_file, strerror(errno));
        return;
    }
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    writer w = begin_writing(to, e);
    put_tracks(&w, ",\n");
    close_file(to, worker_file);
    dmi_file_limit_leave(&held);
}

static bool append(FILE *to, const char *worker_file)
{
    char buffer[1 << 14];
    FILE *from = fopen(worker_file, "r");
    if (!from) {
        return false;
    }
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, from)) > 0;) {
        fwrite(buffer, 1, n, to);
    }
    bool ok = !ferror(from);
    fclose(from);
    return ok && unlink(worker_file) == 0;
}

dm_status dmi_trace_try(const char *path)
{
    bool there = access(path, F_OK) == 0;
    int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666); /* a pipe nobody reads is refused */
    if (to < 0 || close(to) != 0) {
        return dmi_fail(DM_ERR_CONFIG, "trace=%s: the file cannot be written: %s", path, strerror(errno));
    }
    if (!there) {
        (void)unlink(path);
    }
    return DM_OK;
}

void dmi_trace_join(const dmi_engine *e, const char *path)
{
    char worker_file[PATH_ROOM], missing[256] = "";
    int lost = 0;
    if (!e->trace) {
        return;
    }
    FILE *to = fopen(path, "w");
    if (!to) {
        dmi_log(DMI_LOG_WARN, "timeline: cannot write %s: %s", path, strerror(errno));
        return;
    }
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    fputs("[\n", to);
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        worker_path(worker_file, sizeof worker_file, path, w);
        if (!append(to, worker_file)) {
            size_t used = strlen(missing);
            snprintf(missing + used, sizeof missing - used, " %d", w);
            lost++;
        }
    }
    writer w = begin_writing(to, e);
    put_tracks(&w, "\n]\n");
    close_file(to, path);
    dmi_file_limit_leave(&held);
    if (lost > 0) {
        dmi_log(DMI_LOG_WARN,
                "timeline: %s lacks the events of %d workers (%s). Do they write to another file system?", path,
                lost, missing + 1);
    }
}
