/* Sends frames, waits for workers, and names those that are stuck. */
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sleeps on the master's bell, as workers do on theirs, and drives the master's transfers meanwhile. */
typedef struct waiting {
    dmi_backoff backoff;
    dmi_watch watch;
} waiting;

static bool look(dmi_session *s)
{
    bool moved = dmi_engine_progress(&s->engine);
    if (s->launch && s->launch->progress) {
        moved = s->launch->progress(s) || moved;
    }
    return moved;
}

dm_status dmi_broken(const dmi_session *s)
{
    if (atomic_load(&s->died)) {
        return dmi_fail(DM_ERR_DIED, "%s. The session has failed, and this process is about to end", s->death);
    }
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
    int died = atomic_load(&s->died);
    if (died) {
        s->stuck = DMI_STUCK_BROKEN;
        s->broken = died - 1;
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
    if (s->remote && s->stuck == DMI_NOT_STUCK) {
        dmi_cancel_send(s);
    }
    int64_t limit = 20000000;
    if (s->launch && s->launch->progress) { /* messages do not ring */
        int64_t waited = dmi_now_ns() - w->backoff.since_ns;
        limit = waited < 10000000 ? 100000 : waited < 1000000000 ? 500000 : 2000000;
    }
    dmi_bell_sleep(&s->engine.port->bell, token, limit);
    return !dmi_watchdog_bites(s, &w->watch);
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
    *frame = (dmi_frame){.bytes = bytes, .kind = (uint16_t)kind, .op = (uint16_t)op, .command = s->command + 1};
    __atomic_store_n(&s->command, s->command + 1, __ATOMIC_RELAXED); /* dm_cancel of another thread reads it */
    s->ring_frame = frame;
    s->recent[s->command % DMI_RECENT] = (uint64_t)((char *)frame - s->hub.ring->data);
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

/* Failures that have been taken from the workers. */
typedef struct failures {
    dm_status status;
    uint64_t first;   /* command of the earliest, whose text is the error's */
    uint64_t more[4]; /* other commands, and how many */
    int others;
    int poisons;
    dmi_poison_frame poison[DMI_ERROR_RECORDS];
} failures;

static void note_other(failures *f, uint64_t command)
{
    bool known = command == f->first;
    for (int i = 0; i < DMI_MIN(f->others, DMI_COUNT(f->more)); i++) {
        known = known || f->more[i] == command;
    }
    if (!known) {
        if (f->others < DMI_COUNT(f->more)) {
            f->more[f->others] = command;
        }
        f->others++;
    }
}

/* What a failed command was to write. The workers of one command report alike. */
static void note_poison(failures *f, const dmi_error_record *record)
{
    for (int i = 0; i < f->poisons; i++) {
        if (f->poison[i].culprit == record->culprit) {
            return;
        }
    }
    if (record->writes > 0 && f->poisons < DMI_COUNT(f->poison)) {
        dmi_poison_frame *p = &f->poison[f->poisons++];
        p->culprit = record->culprit;
        memcpy(p->memory, record->write, (size_t)record->writes * sizeof *record->write);
    }
}

static void take_record(failures *f, dmi_error_record *record)
{
    if (record->command < f->first) {
        uint64_t before = f->first;
        f->first = record->command;
        f->status = dmi_fail((dm_status)record->status, "%s", record->text);
        if (before != UINT64_MAX) {
            note_other(f, before);
        }
    } else {
        note_other(f, record->command);
    }
    note_poison(f, record);
    atomic_store_explicit(&record->present, DMI_RECORD_EMPTY, memory_order_release);
}

/* Takes all reports and returns the earliest failure; the text counts the others. */
static dm_status take_errors(dmi_session *s, failures *f)
{
    *f = (failures){.first = UINT64_MAX};
    for (int w = 0; w <= s->workers; w++) {
        for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
            dmi_error_record *record = &dmi_hub_port(&s->hub, w)->error[i];
            if (atomic_load_explicit(&record->present, memory_order_acquire) == DMI_RECORD_FULL) {
                take_record(f, record);
            }
        }
    }
    if (f->others > 0) {
        char text[96];
        int n = snprintf(text, sizeof text, ". Other commands failed, too: ");
        for (int i = 0; i < DMI_MIN(f->others, DMI_COUNT(f->more)); i++) {
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRIu64, i ? ", " : "",
                          f->more[i] % 1000000000);
        }
        return dmi_fail(f->status, "%s%s%s", dmi_error_text(), text,
                        f->others > DMI_COUNT(f->more) ? ", ..." : "");
    }
    return f->status;
}

/* Workers that did their part of a failed command have results that look right. */
static void poison_everywhere(dmi_session *s, const failures *f)
{
    for (int i = 0; i < f->poisons; i++) {
        if ((f->poison[i].culprit & 0xffff) == DMI_OP_program) {
            dmi_program_poison(s, f->poison[i].culprit);
        }
        dmi_poison_frame *frame = dmi_frame_begin(s, sizeof *frame, DMI_FRAME_POISON, 0);
        frame->culprit = f->poison[i].culprit;
        memcpy(frame->memory, f->poison[i].memory, sizeof frame->memory);
        dmi_frame_send(s);
    }
}

bool dmi_all_done(dmi_session *s)
{
    (void)look(s);
    return all_done(s, s->command);
}

/* After a wait that was given up. */
static dm_status give_up(dmi_session *s, const waiting *w)
{
    char text[2048];
    failures failed;
    if (s->stuck == DMI_STUCK_BROKEN) {
        dm_status first = take_errors(s, &failed); /* of the worker, unless one was there before */
        return first == DM_OK || atomic_load(&s->died)
                   ? dmi_broken(s)
                   : dmi_fail(first, "%s. The session has failed; call dm_finalize", dmi_error_text());
    }
    double seconds =
        w->watch.moved_ns ? (double)(dmi_now_ns() - w->watch.moved_ns) / 1e9 : s->config.watchdog_s;
    dmi_stuck_describe(s, seconds, text, sizeof text);
    s->stuck = DMI_MAX(s->stuck, DMI_STUCK_WAITING);
    return dmi_fail(DM_ERR_TIMEOUT, "%s", text);
}

dm_status dmi_wait(dmi_session *s, uint64_t command)
{
    waiting w = {0};
    failures failed;
    if (s->remote) {
        (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_SYNC, 0);
        dmi_frame_send(s);
        command = s->command;
    }
    if (s->stuck >= DMI_STUCK_LOST || !all_done(s, command)) {
        atomic_store_explicit(&s->waiting, true, memory_order_relaxed);
        bool given_up = false;
        while (!given_up && (s->stuck >= DMI_STUCK_LOST || !all_done(s, command))) {
            given_up = s->stuck >= DMI_STUCK_LOST || !wait_step(s, &w, all_done, command);
        }
        atomic_store_explicit(&s->waiting, false, memory_order_relaxed);
        if (given_up) {
            return give_up(s, &w);
        }
    }
    s->stuck = DMI_NOT_STUCK;
    dm_status status = take_errors(s, &failed);
    if (status != DM_OK) {
        poison_everywhere(s, &failed);
        dmi_replicas_clear(s); /* some may hold what the failed command has made */
    }
    return status;
}
