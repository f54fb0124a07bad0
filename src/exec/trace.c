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
    uint64_t command;
    int64_t bytes, flops;
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
    end_ns = DMI_MAX(end_ns, t->last_ns);
    int64_t shown = DMI_MIN(DMI_MAX(begin_ns, t->last_ns), end_ns);
    t->last_ns = end_ns;
    t->event[t->count++] = (event){.begin_ns = shown,
                                   .end_ns = end_ns,
                                   .ahead_ns = shown - begin_ns,
                                   .command = w->inst->command,
                                   .bytes = step->bytes,
                                   .flops = step->flops,
                                   .peer = step->peer,
                                   .op = (uint16_t)w->inst->op,
                                   .kind = step->kind};
}

/* --- writing --- */

/* Lanes by number; the last of a worker is that for the background. */
static const char *const lane_names[] = {"compute", "send", "receive", "compute 2", "compute 3", "compute 4"};

static void write_event(FILE *to, const event *v, int tid)
{
    fprintf(to,
            "{\"name\":\"%s "
            "%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d,\"args\":{\"command\":%" PRIu64,
            dmi_ops[v->op].name, dmi_step_name(v->kind), (double)v->begin_ns / 1e3,
            (double)(v->end_ns - v->begin_ns) / 1e3, (int)getpid(), tid, v->command);
    if (v->peer >= 0) {
        fprintf(to, ",\"peer\":%d,\"bytes\":%" PRId64 ",\"ahead_us\":%.3f", v->peer, v->bytes,
                (double)v->ahead_ns / 1e3);
    }
    if (v->flops > 0) {
        fprintf(to, ",\"flops\":%" PRId64, v->flops);
    }
    fputs("}},\n", to);
}

static void write_lane(FILE *to, const track *t, int lane, const char *name, int me, bool master)
{
    int tid = me * DMI_STAMP_LANES + lane;
    char who[32] = "master";
    if (!master) {
        snprintf(who, sizeof who, "worker %d", me);
    }
    fprintf(to,
            "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s %s\"}},\n",
            (int)getpid(), tid, who, name);
    fprintf(
        to,
        "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
        (int)getpid(), tid, tid);
    for (int64_t i = 0; i < t->count; i++) {
        write_event(to, &t->event[i], tid);
    }
    if (t->dropped > 0) {
        fprintf(to,
                "{\"name\":\"%" PRId64
                " more steps not recorded\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%.3f,\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"dropped\":%" PRId64 "}},\n",
                t->dropped, (double)t->last_ns / 1e3, (int)getpid(), tid, t->dropped);
        dmi_log(DMI_LOG_WARN,
                "timeline: %" PRId64 " steps of lane %s of %s were dropped, because the buffer was full",
                t->dropped, name, who);
    }
}

static void write_lanes(FILE *to, const dmi_engine *e)
{
    bool master = e->config.me == e->config.endpoints - 1;
    for (int l = 0; l < DMI_STAMP_LANES; l++) {
        const track *t = &e->trace->track[l];
        bool background = e->background > 0 && l == e->background;
        if (l < e->lanes && (!background || t->count > 0)) {
            write_lane(to, t, l, background ? "background" : lane_names[l], e->config.me, master);
        }
    }
}

/* The process's row of names; the last event of the file has no comma behind it. */
static void write_process(FILE *to, const char *end)
{
    char host[64];
    dmi_host_name(host, sizeof host);
    for (char *c = host; *c; c++) { /* nothing that would need escaping */
        *c = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '?' : *c;
    }
    fprintf(to, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s, process %d\"}}%s",
            (int)getpid(), host, (int)getpid(), end);
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
    write_lanes(to, e);
    write_process(to, ",\n");
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
    write_lanes(to, e);
    write_process(to, "\n]\n");
    close_file(to, path);
    dmi_file_limit_leave(&held);
    if (lost > 0) {
        dmi_log(DMI_LOG_WARN,
                "timeline: %s lacks the events of %d workers (%s). Do they write to another file system?", path,
                lost, missing + 1);
    }
}
