/* Sends frames, waits for workers, and names those that are stuck. */
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sleeps on the master's bell, as workers do on theirs, and drives the master's transfers meanwhile. */
typedef struct waiting {
    dmi_backoff backoff;
    int64_t begun_ns, moved_ns;
    uint64_t last_sum;      /* of completed commands: progress at all? */
    int64_t cpu_ms, cpu_ns; /* processor time of busy workers at the last check, and the time of that check */
    bool warned;
} waiting;

static bool look(dmi_session *s)
{
    bool moved = dmi_engine_progress(&s->engine);
    if (s->launch && s->launch->progress) {
        moved = s->launch->progress(s) || moved;
    }
    return moved;
}

static void name_the_stuck(dmi_session *s, double seconds, char *text, size_t room)
{
    int n = snprintf(text, room, "no progress for %.3g s (option watchdog_s):", seconds);
    for (int w = 0; w < s->workers && n > 0 && (size_t)n < room; w++) {
        dmi_port *port = dmi_hub_port(&s->hub, w);
        uint64_t done = atomic_load(&port->completed);
        if (done < s->command) {
            int op = atomic_load(&port->now_op), step = atomic_load(&port->now_step);
            int awaited = atomic_load(&port->now_peer) - 1;
            char whom[48] = "";
            if (awaited >= 0) {
                snprintf(whom, sizeof whom,
                         awaited < s->workers ? ", waits for worker %d" : ", waits for the master", awaited);
            }
            n += snprintf(text + n, room - (size_t)n,
                          " worker %d (%s) has done %" PRIu64 " of %" PRIu64 " commands, last read %" PRIu64
                          " (last op %s, last kernel %s%s);",
                          w, port->host, done, s->command, atomic_load(&port->now_command),
                          op >= 0 && op < DMI_OPS ? dmi_ops[op].name : "?",
                          dmi_step_name(step), whom);
        }
    }
}

/* Processor time of a process of this host, milliseconds; 0 where it cannot be read. */
static int64_t process_cpu_ms(int pid)
{
    char path[32], line[512] = "";
    long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f) {
        size_t n = fread(line, 1, sizeof line - 1, f);
        line[n] = 0;
        fclose(f);
    }
    const char *at = strrchr(line, ')'); /* the name before it may hold anything */
    if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user, &system) != 2) {
        return 0;
    }
    return (user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

/* A kernel may take longer than the watchdog's time: no worker is stuck while one is inside a kernel and uses
 * its processor. Files and user functions get ten times as long. */
static bool still_computing(dmi_session *s, waiting *w, int64_t now, double quiet)
{
    int64_t cpu = 0;
    bool busy = false, slow = false;
    for (int i = 0; i < s->workers; i++) {
        dmi_port *port = dmi_hub_port(&s->hub, i);
        if (port->pid > 0 && atomic_load(&port->now_busy)) {
            int kind = atomic_load(&port->now_step);
            slow = slow || (kind >= DMI_STEP_KERNEL && kind < DMI_STEP_KINDS &&
                            dmi_kernels[kind - DMI_STEP_KERNEL].traits & DMI_TRAIT_HOST);
            busy = true;
            cpu += process_cpu_ms(port->pid);
        }
    }
    if (!busy || (slow && quiet < 10 * s->config.watchdog_s)) {
        return busy;
    }
    if (w->cpu_ns == 0 || now - w->cpu_ns < 1000000000) { /* judged over a second at least */
        w->cpu_ms = w->cpu_ns == 0 ? cpu : w->cpu_ms;
        w->cpu_ns = w->cpu_ns == 0 ? now : w->cpu_ns;
        return true;
    }
    bool works = (cpu - w->cpu_ms) * 5000000 > now - w->cpu_ns; /* more than a fifth of a processor */
    w->cpu_ms = cpu;
    w->cpu_ns = now;
    return works;
}

/* True when the watchdog's time is over. */
static bool watch(dmi_session *s, waiting *w)
{
    if (s->config.watchdog_s <= 0) {
        return false;
    }
    int64_t now = dmi_now_ns();
    uint64_t sum =
        atomic_load(&s->engine.lane[DMI_LANE_RECV].done) + atomic_load(&s->engine.lane[DMI_LANE_SEND].done);
    for (int i = 0; i < s->workers; i++) {
        dmi_port *port = dmi_hub_port(&s->hub, i);
        sum += atomic_load(&port->completed) + (uint64_t)atomic_load(&port->tally.steps) +
               atomic_load(&port->consumed);
    }
    if (w->moved_ns == 0 || sum != w->last_sum) {
        w->moved_ns = now;
        w->last_sum = sum;
        w->warned = false;
        w->cpu_ns = 0;
        return false;
    }
    double quiet = (double)(now - w->moved_ns) / 1e9;
    if (quiet > s->config.watchdog_s / 4 && !w->warned) {
        char text[2048];
        name_the_stuck(s, quiet, text, sizeof text);
        dmi_log(DMI_LOG_WARN, "%s", text);
        w->warned = true;
    }
    return quiet > s->config.watchdog_s && !still_computing(s, w, now, quiet);
}

dm_status dmi_broken(const dmi_session *s)
{
    return dmi_fail(
        DM_ERR_NOMEM,
        "worker %d (%s) ran out of host memory inside a command. The session has failed; call dm_finalize",
        s->broken, dmi_hub_port(&s->hub, s->broken)->host);
}

static bool is_broken(dmi_session *s)
{
    for (int w = 0; w < s->workers && s->stuck != DMI_STUCK_BROKEN; w++) {
        if (atomic_load_explicit(&dmi_hub_port(&s->hub, w)->broken, memory_order_relaxed)) {
            s->stuck = DMI_STUCK_BROKEN;
            s->broken = w;
        }
    }
    return s->stuck == DMI_STUCK_BROKEN;
}

/* One step of waiting; false: give up (watchdog, or a worker is broken). */
static bool wait_step(dmi_session *s, waiting *w, bool (*met)(dmi_session *s, uint64_t value), uint64_t value)
{
    if (look(s)) {
        dmi_backoff_reset(&w->backoff);
        return true;
    }
    if (dmi_backoff_step(&w->backoff, &s->hub) != DMI_WAIT_SLEEP) {
        return true;
    }
    unsigned token = dmi_bell_announce(&s->engine.port->bell);
    if (is_broken(s)) {
        dmi_bell_cancel(&s->engine.port->bell);
        return false;
    }
    if (met(s, value) || look(s)) {
        dmi_bell_cancel(&s->engine.port->bell);
        return true;
    }
    int64_t limit = 20000000;
    if (s->launch && s->launch->progress) { /* messages do not ring */
        int64_t waited = dmi_now_ns() - w->backoff.since_ns;
        limit = waited < 10000000 ? 100000 : waited < 1000000000 ? 500000 : 2000000;
    }
    dmi_bell_sleep(&s->engine.port->bell, token, limit);
    return !watch(s, w);
}

static bool ring_has_room(dmi_session *s, uint64_t bytes)
{
    return dmi_ring_reserve(&s->ring, (uint32_t)bytes) != NULL;
}

void *dmi_frame_begin(dmi_session *s, uint32_t bytes, int kind, int op)
{
    dmi_frame *frame = dmi_ring_reserve(&s->ring, bytes);
    waiting w = {0};
    while (!frame && s->stuck < DMI_STUCK_LOST) { /* the slowest worker is behind by the whole command ring */
        if (!wait_step(s, &w, ring_has_room, bytes) && s->stuck != DMI_STUCK_BROKEN) {
            dmi_log(DMI_LOG_ERROR,
                    "a worker is stuck and the command ring is full: commands from number %" PRIu64
                    " on were not sent",
                    s->command + 1);
            s->stuck = DMI_STUCK_LOST; /* the next call reports it; this one returns no status */
        }
        frame = dmi_ring_reserve(&s->ring, bytes);
    }
    if (s->stuck >= DMI_STUCK_LOST) {
        frame = s->scrap;
    }
    bytes = (bytes + DMI_FRAME_ALIGN - 1) / DMI_FRAME_ALIGN * DMI_FRAME_ALIGN;
    *frame = (dmi_frame){.bytes = bytes, .kind = (uint16_t)kind, .op = (uint16_t)op, .command = ++s->command};
    s->ring_frame = frame;
    return frame;
}

void dmi_frame_send(dmi_session *s)
{
    if (s->stuck >= DMI_STUCK_LOST) {
        return;
    }
    dmi_ring_publish(&s->ring, s->ring_frame->bytes);
    dmi_ring_wake(&s->ring);
    if (s->launch && s->launch->published) {
        s->launch->published(s);
    }
}

static bool all_done(dmi_session *s, uint64_t command)
{
    for (int w = 0; w < s->workers; w++) {
        if (atomic_load_explicit(&dmi_hub_port(&s->hub, w)->completed, memory_order_acquire) < command) {
            return false;
        }
    }
    return dmi_engine_idle(&s->engine);
}

/* Takes all reports and returns the earliest failure. */
static dm_status take_errors(dmi_session *s)
{
    uint64_t first = UINT64_MAX;
    dm_status status = DM_OK;
    for (int w = 0; w <= s->workers; w++) {
        dmi_error_record *record = &dmi_hub_port(&s->hub, w)->error;
        if (atomic_load_explicit(&record->present, memory_order_acquire) == DMI_RECORD_FULL) {
            if (record->command < first) {
                first = record->command;
                status = dmi_fail((dm_status)record->status, "%s", record->text);
            }
            atomic_store_explicit(&record->present, 0, memory_order_release);
        }
    }
    return status;
}

bool dmi_all_done(dmi_session *s)
{
    (void)look(s);
    return all_done(s, s->command);
}

dm_status dmi_wait(dmi_session *s, uint64_t command)
{
    waiting w = {0};
    if (s->remote) {
        (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_SYNC, 0);
        dmi_frame_send(s);
        command = s->command;
    }
    while (s->stuck >= DMI_STUCK_LOST || !all_done(s, command)) {
        if (s->stuck >= DMI_STUCK_LOST || !wait_step(s, &w, all_done, command)) {
            if (s->stuck == DMI_STUCK_BROKEN) {
                dm_status first = take_errors(s); /* of the worker, unless one was there before */
                return first == DM_OK
                           ? dmi_broken(s)
                           : dmi_fail(first, "%s. The session has failed; call dm_finalize", dmi_error_text());
            }
            char text[2048];
            name_the_stuck(s, s->config.watchdog_s, text, sizeof text);
            s->stuck = DMI_MAX(s->stuck, DMI_STUCK_WAITING);
            return dmi_fail(DM_ERR_TIMEOUT, "%s", text);
        }
    }
    s->stuck = DMI_NOT_STUCK;
    dm_status status = take_errors(s);
    if (status != DM_OK) {
        dmi_replicas_clear(s); /* some may hold what the failed command has made */
    }
    return status;
}
