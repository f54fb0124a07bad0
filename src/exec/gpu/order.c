/* Waits between the streams of a GPU, and between GPUs. */
#include "exec/gpu/parts.h"
#include "io/unfinished.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PAUSE_NS = 1000000, LAST_PAUSE_NS = 250000000 };

bool dmi_gpu_issued(const dmi_engine *e, const dmi_stamp *stamp)
{
    for (int lane = 0; lane < e->lanes; lane++) {
        if (stamp->seq[lane] > e->gpu->issued[lane]) {
            return false;
        }
    }
    return true;
}

/* The oldest event of a lane at or behind position seq; NULL: none yet. Only the last EVENTS events are kept; a
 * newer event is as good. */
static dmi_lane_event *find_event(dmi_gpu *g, int lane, uint64_t seq)
{
    dmi_lane_events *m = &g->events[lane];
    dmi_lane_event *best = NULL;
    uint64_t first = m->head > EVENTS ? m->head - EVENTS : 0;
    for (uint64_t i = m->head; i-- > first;) {
        dmi_lane_event *at = &m->event[i % EVENTS];
        if (at->seq < seq) {
            break;
        }
        best = at;
    }
    return best;
}

bool dmi_gpu_again(dmi_engine *e, dm_status status, int64_t *pause_ns)
{
    int device;
    if (status == DM_OK || dmi_cu_lost(&device) || atomic_load(&e->port->broken)) {
        return false;
    }
    if (*pause_ns < LAST_PAUSE_NS) {
        *pause_ns = *pause_ns ? 4 * *pause_ns : FIRST_PAUSE_NS;
        dmi_log(DMI_LOG_INFO, "worker %d: %s; tried again", e->config.me, dmi_error_text());
        nanosleep(&(struct timespec){.tv_nsec = *pause_ns}, NULL);
        return true;
    }
    dmi_log(DMI_LOG_ERROR, "worker %d: %s; the session cannot go on", e->config.me, dmi_error_text());
    dmi_gpu_give_up(e);
    dmi_engine_break(e, DM_ERR_INTERNAL);
    return false;
}

dm_status dmi_gpu_mark(dmi_engine *e, dmi_event event, int stream)
{
    dm_status status;
    int64_t pause_ns = 0;
    do {
        status = dmi_cu_event_record(event, e->gpu->stream[stream]);
    } while (dmi_gpu_again(e, status, &pause_ns));
    return status;
}

static dm_status record(dmi_engine *e, int lane)
{
    dmi_gpu *g = e->gpu;
    dmi_lane_events *m = &g->events[lane];
    dmi_lane_event *found = &m->event[m->head++ % EVENTS];
    m->looked = DMI_MAX(m->looked, m->head > EVENTS ? m->head - EVENTS : 0);
    found->seq = g->issued[lane];
    return dmi_gpu_mark(e, found->event, lane);
}

/* Records an event behind a step that others may wait for. An event recorded later would stand behind more work
 * than they need. Commands without transfers mostly follow one another on one lane; an event for every 16th
 * step is enough for them. */
void dmi_gpu_record(dmi_engine *e, int lane, const dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    const dmi_lane_events *m = &g->events[lane];
    bool transfers = w->inst->plan->messages_sent + w->inst->plan->messages_received > 0;
    uint64_t last = m->head ? m->event[(m->head - 1) % EVENTS].seq : 0;
    uint64_t since = g->issued[lane] - last;
    if (transfers ? w->step->awaited || since >= EVENT_TRANSFERS : since >= EVENT_EVERY) {
        dmi_gpu_failed(e, w, record(e, lane));
    }
}

dm_status dmi_gpu_record_issued(dmi_engine *e, int lane)
{
    const dmi_lane_events *m = &e->gpu->events[lane];
    const uint64_t last = m->head ? m->event[(m->head - 1) % EVENTS].seq : 0;
    return e->gpu->issued[lane] > last ? record(e, lane) : DM_OK;
}

static dm_status after_lane(dmi_engine *e, int stream, int lane, uint64_t seq)
{
    dmi_gpu *g = e->gpu;
    if (stream == lane || seq <= g->known[stream].seq[lane]) { /* a stream keeps its own order */
        return DM_OK;
    }
    dmi_lane_event *found = find_event(g, lane, seq);
    dm_status status = DM_OK;
    if (!found) {
        status = record(e, lane);
        found = &g->events[lane].event[(g->events[lane].head - 1) % EVENTS];
    }
    status = status == DM_OK ? dmi_cu_event_after(g->stream[stream], found->event) : status;
    if (status == DM_OK) {
        g->known[stream].seq[lane] = found->seq;
    }
    return status;
}

void dmi_gpu_add_word(dmi_gpu_batch *b, uint32_t *counter, uint64_t ordinal)
{
    b->word[b->count++] = (dmi_cu_word){counter, dmi_gpu_value(ordinal)};
}

dm_status dmi_gpu_wait_batch(dmi_engine *e, int stream, dmi_gpu_batch *b)
{
    dm_status status = DM_OK;
    int64_t pause_ns = 0;
    do {
        status = b->count > 0 ? dmi_cu_wait_words(e->gpu->stream[stream], b->word, b->count) : DM_OK;
    } while (dmi_gpu_again(e, status, &pause_ns));
    b->count = 0;
    return status;
}

/* One alone by a copy: with a write all-gathers of 16 MiB took 42 us on two GPUs, with a copy 35. */
dm_status dmi_gpu_raise_batch(dmi_engine *e, int stream, dmi_gpu_batch *b)
{
    const dmi_stream s = e->gpu->stream[stream];
    dm_status status;
    int64_t pause_ns = 0;
    do {
        status = b->count > 1 ? dmi_cu_set_words(s, b->word, b->count)
                 : b->count > 0
                     ? dmi_cu_copy(s, b->word[0].word, &e->gpu->numbers[b->word[0].value >> (32 - NUMBER_BITS)],
                                   sizeof *b->word[0].word)
                     : DM_OK;
    } while (dmi_gpu_again(e, status, &pause_ns));
    b->count = 0;
    return status;
}

/* The latest payload of each peer among them: a peer's payloads come in order. */
static dm_status after_arrivals(dmi_engine *e, int stream, int number, uint64_t seq)
{
    dmi_gpu_batch batch = {0};
    dmi_gpu *g = e->gpu;
    dmi_lane *lane = &e->lane[number];
    uint64_t from = DMI_MAX(atomic_load(&lane->done), g->known[stream].seq[number]);
    dm_status status = DM_OK;
    for (uint64_t i = seq; i > from && status == DM_OK; i--) {
        const dmi_queued_step *w = dmi_lane_slot(lane, i - 1);
        int pair = dmi_engine_pair(e, w->step->peer, w);
        uint64_t *known = &g->arrivals[stream][pair];
        if (*known < w->ordinal + 1) {
            *known = w->ordinal + 1;
            dmi_gpu_add_word(&batch, &g->arrived[pair], w->ordinal + 1);
            status = batch.count == DMI_CU_WORDS ? dmi_gpu_wait_batch(e, stream, &batch) : status;
        }
    }
    status = status == DM_OK ? dmi_gpu_wait_batch(e, stream, &batch) : status;
    g->known[stream].seq[number] = DMI_MAX(from, seq);
    return status;
}

static dm_status after_lanes(dmi_engine *e, int stream, const dmi_stamp *stamp)
{
    dm_status status = DM_OK;
    for (int lane = 0; lane < e->lanes && status == DM_OK; lane++) {
        if (stamp->seq[lane] > atomic_load_explicit(&e->lane[lane].done, memory_order_relaxed)) {
            status = dmi_lane_receives(lane) ? after_arrivals(e, stream, lane, stamp->seq[lane])
                                             : after_lane(e, stream, lane, stamp->seq[lane]);
        }
    }
    return status;
}

/* Else a destination could be granted too early, and an exchange would be missing. */
dm_status dmi_gpu_after(dmi_engine *e, int stream, const dmi_stamp *stamp)
{
    dm_status status;
    int64_t pause_ns = 0;
    do {
        status = after_lanes(e, stream, stamp);
    } while (dmi_gpu_again(e, status, &pause_ns));
    return status;
}

bool dmi_gpu_waits_already(const dmi_engine *e, int stream, const dmi_stamp *stamp, const dmi_stamp *also)
{
    bool all = true;
    for (int lane = 0; lane < e->lanes; lane++) {
        uint64_t known = DMI_MAX(e->gpu->known[stream].seq[lane], also ? also->seq[lane] : 0);
        all = all && (stamp->seq[lane] <= known || (lane == stream && !dmi_lane_receives(lane)) ||
                      stamp->seq[lane] <= atomic_load_explicit(&e->lane[lane].done, memory_order_relaxed));
    }
    return all;
}

static uint32_t number_of(uint64_t ordinal)
{
    return (uint32_t)(ordinal & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

uint32_t dmi_gpu_value(uint64_t ordinal)
{
    return number_of(ordinal) << (32 - NUMBER_BITS);
}

const uint32_t *dmi_gpu_number(const dmi_engine *e, uint64_t ordinal)
{
    return &e->gpu->numbers[number_of(ordinal)];
}

dm_status dmi_gpu_raise(dmi_engine *e, int stream, uint32_t *counter, uint64_t ordinal)
{
    dmi_gpu_batch one = {0};
    dmi_gpu_add_word(&one, counter, ordinal);
    return dmi_gpu_raise_batch(e, stream, &one);
}

dm_status dmi_gpu_wait(dmi_engine *e, int stream, uint32_t *counter, uint64_t ordinal)
{
    return dmi_cu_wait_value(e->gpu->stream[stream], counter, dmi_gpu_value(ordinal));
}

/* A worker that is a process ends with its GPU, for others may wait for what it was to send. Rank 0 names it,
 * as any that has died. */
_Noreturn static void leave(dmi_engine *e, const char *why)
{
    snprintf(e->port->last_words, sizeof e->port->last_words, "its GPU has failed: %s", why);
    dmi_log(DMI_LOG_ERROR, "worker %d leaves: %s", e->config.me, e->port->last_words);
    dmi_unfinished_remove_all();
    _exit(EXIT_FAILURE);
}

/* The worker of this process that has a GPU; -1: there is none. */
static int worker_of(const dmi_engine *e, int device)
{
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        if (atomic_load(&dmi_hub_port(e->config.hub, w)->gpu) == device + 1) {
            return w;
        }
    }
    return -1;
}

/* CUDA fails every call of a process after a fault of one of its GPUs, whichever GPU the call is for. */
static bool has_other_gpus(const dmi_engine *e)
{
    bool others = false;
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        const int gpu = atomic_load(&dmi_hub_port(e->config.hub, w)->gpu);
        others = others || (gpu != 0 && gpu != e->gpu->device + 1);
    }
    return others;
}

/* After a device fault nobody knows which commands were done. The worker that has found it, on the thread of
 * `device`, names the first that may not have been: while it has one, the others leave the report to it. */
static void fail_all(dmi_engine *e, const char *why, int device)
{
    char text[192];
    int whose = device == e->gpu->device ? e->config.me : worker_of(e, device);
    dm_status status = DM_ERR_INTERNAL;
    if (whose == e->config.me) {
        snprintf(text, sizeof text, "its GPU %shas failed, here or in a later command: %s",
                 has_other_gpus(e) ? "or another one of this process (CUDA does not tell which) " : "", why);
    } else if (whose < 0) {
        snprintf(text, sizeof text, "a GPU of this process has failed: %s", why);
    } else {
        const dmi_port *port = dmi_hub_port(e->config.hub, whose);
        status = atomic_load(&port->completed) < atomic_load(&port->now_command) ? DM_OK : status;
        snprintf(text, sizeof text, "a GPU of this process has failed, as worker %d has found: %s", whose, why);
    }
    for (dmi_instance *inst = e->first; inst; inst = inst->next) {
        if (!atomic_load(&inst->failed)) {
            dmi_engine_fail(e, inst, status, status == DM_OK ? "" : text);
        }
    }
}

bool dmi_gpu_look(dmi_engine *e, bool idle)
{
    dmi_gpu *g = e->gpu;
    bool moved = false;
    dmi_gpu_heed(e);
    for (int lane = 0; lane < e->lanes; lane++) {
        dmi_lane_events *m = &g->events[lane];
        if (dmi_lane_receives(lane)) {
            continue; /* the senders announce its payloads */
        }
        while (m->looked < m->head && dmi_cu_event_reached(m->event[m->looked % EVENTS].event)) {
            g->reached[lane] = m->event[m->looked++ % EVENTS].seq;
            moved = true;
        }
        bool unmarked = m->looked == m->head && g->issued[lane] > g->reached[lane];
        if (idle && unmarked && record(e, lane) != DM_OK) {
            dmi_log(DMI_LOG_ERROR, "worker %d: %s", e->config.me, dmi_error_text());
        }
    }
    int device;
    const char *lost = dmi_cu_lost(&device); /* before anything counts as done */
    if (lost && !e->config.one_space) {
        leave(e, lost);
    }
    if (lost) {
        dmi_gpu_give_up(e);
        fail_all(e, lost, device);
    }
    return moved;
}
