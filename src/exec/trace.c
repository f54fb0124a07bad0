/* Recording a timeline, and its files. */
#include "base/process.h"
#include "exec/trace_parts.h"
#include "plan/on_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool make_room(const dmi_trace *trace, dmi_trace_track *t)
{
    if (t->count < t->room) {
        return true;
    }
    int64_t room = DMI_MIN(t->room ? 2 * t->room : 1024, trace->most);
    dmi_trace_event *grown = room > t->room ? realloc(t->event, (size_t)room * sizeof *grown) : NULL;
    if (grown) {
        t->event = grown;
        t->room = room;
    }
    return grown != NULL;
}

/* The payloads of an exchange, behind it. */
static void add_parts(const dmi_trace *trace, dmi_trace_track *t, const dmi_step *step)
{
    const dmi_exchange *x = step->desc;
    const int64_t at = t->count - 1;
    for (int i = 0; i < x->pushes + x->arrivals; i++) {
        if (!make_room(trace, t)) {
            t->dropped++;
            return;
        }
        dmi_trace_event *v = &t->event[t->count++];
        *v = t->event[at];
        v->part = true;
        v->kind = i < x->pushes ? DMI_STEP_PUSH : DMI_STEP_EXPECT;
        v->peer = x->part[i].peer;
        v->ordinal = x->part[i].number;
    }
}

void dmi_trace_step(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns)
{
    const dmi_step *step = w->step;
    dmi_trace_track *t = &e->trace->track[w->inst->lane_of[step->lane]];
    if (!make_room(e->trace, t)) {
        t->dropped++;
        return;
    }
    /* Events in one row must not overlap, but real times may: grants run ahead, messages overlap, and device
     * and host clocks differ. So later events are moved back. */
    end_ns = DMI_MAX(end_ns, t->last_ns + 1); /* arrows end inside an event, so none is empty */
    int64_t shown = DMI_MIN(DMI_MAX(begin_ns, t->last_ns), end_ns - 1);
    t->last_ns = end_ns;
    t->event[t->count++] = (dmi_trace_event){.begin_ns = shown,
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
                                             .channel = (uint8_t)dmi_lane_channel(step->lane),
                                             .op = (uint16_t)dmi_step_op(w),
                                             .called = dmi_step_called(w),
                                             .kind = step->kind};
    if (step->kind == DMI_STEP_EXCHANGE) {
        add_parts(e->trace, t, step);
    }
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
    dmi_trace_put(to, e, ",\n");
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
    int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC,
                  0666); /* a pipe nobody reads is refused */
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
    dmi_trace_put(to, e, "\n]\n");
    close_file(to, path);
    dmi_file_limit_leave(&held);
    if (lost > 0) {
        dmi_log(DMI_LOG_WARN,
                "timeline: %s lacks the events of %d workers (%s). Do they write to another file system?", path,
                lost, missing + 1);
    }
}
