/* Sends frames, waits for workers, and names those that are stuck. */
#include "base/fault.h"
#include "base/turns.h"
#include "master/checkpoint.h"
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sleeps on the master's bell, as workers do on theirs, and drives the master's transfers meanwhile. */
typedef struct waiting {
    dmi_backoff backoff;
    dmi_watch watch;
    int64_t until_ns; /* the caller's time limit; 0: none */
} waiting;

static bool look(dmi_session *s)
{
    bool moved = dmi_engine_progress(&s->engine);
    if (s->launch && s->launch->progress) {
        moved = s->launch->progress(s) || moved;
    }
    return moved;
}

dm_status dmi_broken(dmi_session *s)
{
    if (atomic_load(&s->died)) {
        s->death_told = true;
        return dmi_fail(DM_ERR_DIED, "%s. The session has failed%s", s->death,
                        s->config.on_death == DMI_DEATH_SESSION ? "; call dm_finalize"
                                                                : ", and this process is about to end");
    }
    char who[32] = "rank 0";
    const dmi_port *port = dmi_hub_port(&s->hub, s->broken);
    dm_status status = (dm_status)atomic_load(&port->broken);
    if (s->broken < s->workers) {
        snprintf(who, sizeof who, "worker %d", s->broken);
    }
    return dmi_fail(status, "%s (%s) %s. The session has failed; call dm_finalize", who, port->host,
                    status == DM_ERR_NOMEM ? "ran out of memory inside a command"
                    : status == DM_ERR_TRANSPORT
                        ? "could not exchange a payload, because MPI failed or a message was damaged"
                        : "could not do work that others wait for");
}

static bool is_broken(dmi_session *s)
{
    for (int w = 0; w <= s->workers && s->stuck != DMI_STUCK_BROKEN; w++) {
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
        (void)dmi_turns_yield(); /* the caller may wait for more than this: for reports that a worker has kept */
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
    if (w->until_ns) {
        limit = DMI_MIN(limit, DMI_MAX(w->until_ns - dmi_now_ns(), 1000));
    }
    dmi_bell_sleep(&s->engine.port->bell, token, limit);
    return !dmi_watchdog_bites(s, &w->watch);
}

/* When the call that waits must return; 0: there is no limit. */
static int64_t limit_of(dmi_session *s)
{
    if (!s->limited) {
        return 0;
    }
    if (s->limited_call != dmi_api_serial()) {
        s->limited_call = dmi_api_serial();
        s->limit_ns = dmi_deadline(s->limit_s);
    }
    return s->limit_ns;
}

static bool ring_has_room(dmi_session *s, uint64_t bytes)
{
    return dmi_ring_reserve(&s->ring, (uint32_t)bytes) != NULL;
}

static dm_status give_up(dmi_session *s, const waiting *w);

/* The slowest worker is behind by the whole command ring. NULL: one is stuck. */
static dmi_frame *wait_for_room(dmi_session *s, uint32_t bytes)
{
    dmi_frame *frame = NULL;
    waiting w = {0};
    int64_t begin = s->profiling ? dmi_now_ns() : 0;
    while (!frame && s->stuck < DMI_STUCK_LOST) {
        if (!wait_step(s, &w, ring_has_room, bytes) && s->stuck != DMI_STUCK_BROKEN) {
            dmi_log(DMI_LOG_ERROR,
                    "a worker is stuck and the command ring is full: commands from number %" PRIu64
                    " on were not sent",
                    s->command + 1);
            s->stuck = DMI_STUCK_LOST; /* the next call reports it; this one returns no status */
        }
        frame = dmi_ring_reserve(&s->ring, bytes);
    }
    if (begin) {
        dmi_profile_waited_since(s, begin);
    }
    return frame;
}

dm_status dmi_wait_room(dmi_session *s)
{
    const uint32_t most = (uint32_t)(s->hub.ring->size / 4);
    if (!s->limited || dmi_ring_reserve(&s->ring, most)) {
        return DM_OK;
    }
    waiting w = {.until_ns = limit_of(s)};
    while (wait_step(s, &w, ring_has_room, most)) {
        if (dmi_ring_reserve(&s->ring, most)) {
            return DM_OK;
        }
        if (w.until_ns && dmi_now_ns() >= w.until_ns) {
            return dmi_fail(DM_ERR_PENDING, "the command ring is full, and the call was not given");
        }
    }
    return give_up(s, &w);
}

void *dmi_frame_begin(dmi_session *s, uint32_t bytes, int kind, int op)
{
    dmi_frame *frame = dmi_ring_reserve(&s->ring, bytes);
    if (!frame) {
        frame = wait_for_room(s, bytes);
    }
    if (s->stuck >= DMI_STUCK_LOST) {
        frame = s->scrap;
    }
    bytes = (bytes + DMI_FRAME_ALIGN - 1) / DMI_FRAME_ALIGN * DMI_FRAME_ALIGN;
    *frame = (dmi_frame){.bytes = bytes,
                         .kind = (uint8_t)kind,
                         .op = (uint8_t)op,
                         .called = dmi_api_number(),
                         .command = s->command + 1};
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
    if (dmi_fault_turns()) {
        (void)dmi_turns_yield();
    }
    if (s->launch && s->launch->published) {
        s->launch->published(s);
    }
}

static bool all_done(dmi_session *s, uint64_t command)
{
    for (int i = 0; i < (s->awaited ? s->awaiting : s->workers); i++) {
        int w = s->awaited ? s->awaited[i] : i;
        if (atomic_load_explicit(&dmi_hub_port(&s->hub, w)->completed, memory_order_acquire) < command) {
            return false;
        }
    }
    return !s->engine.first || s->engine.first->command > command;
}

/* Done, and what failed is known. */
static bool done_and_told(dmi_session *s, uint64_t command)
{
    return all_done(s, command) && dmi_failures_take(s);
}

/* The same before the master sleeps: it takes what has failed so far, for ports have room for few failures. */
static bool done_and_told_asleep(dmi_session *s, uint64_t command)
{
    bool done = all_done(s, command), told = done ? dmi_failures_take(s) : dmi_failures_take_early(s);
    return done && told;
}

/* Did a worker have no memory for a failure, behind others that it has reported? Then not all is known. */
static bool has_lost_failures(dmi_session *s)
{
    return s->failures > 0 && is_broken(s);
}

bool dmi_all_done(dmi_session *s)
{
    (void)look(s);
    return all_done(s, s->command);
}

bool dmi_done(dmi_session *s, uint64_t command)
{
    (void)look(s);
    return done_and_told(s, command) && !has_lost_failures(s);
}

/* After a wait that was given up. */
static dm_status give_up(dmi_session *s, const waiting *w)
{
    char text[2048];
    if (s->stuck == DMI_STUCK_BROKEN) {
        (void)dmi_failures_take(s);
        dm_status first =
            dmi_failures_report(s, 0, UINT64_MAX, UINT64_MAX); /* of the worker, unless one was there before */
        return first == DM_OK || atomic_load(&s->died)
                   ? dmi_broken(s)
                   : dmi_fail(first, "%s. The session has failed; call dm_finalize", dmi_error_text());
    }
    double seconds =
        w->watch.moved_ns ? (double)(dmi_now_ns() - w->watch.moved_ns) / 1e9 : s->config.watchdog_s;
    dmi_stuck_describe(s, seconds, text, sizeof text);
    dmi_report(s, text, sizeof text);
    s->stuck = DMI_MAX(s->stuck, DMI_STUCK_WAITING);
    return dmi_fail(DM_ERR_TIMEOUT, "%s", text);
}

uint64_t dmi_wait_mark(dmi_session *s)
{
    if (s->remote && s->synced != s->command) {
        (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_SYNC, 0);
        dmi_frame_send(s);
        s->synced = s->command;
    }
    return s->command;
}

dm_status dmi_wait_done(dmi_session *s, uint64_t command, int64_t until_ns)
{
    waiting w = {0};
    if (atomic_load_explicit(&s->died, memory_order_relaxed)) { /* even if it had done all commands */
        return dmi_broken(s);
    }
    if (s->stuck >= DMI_STUCK_LOST || !done_and_told(s, command)) {
        atomic_store_explicit(&s->waiting, true, memory_order_relaxed);
        bool given_up = false, late = false;
        w.until_ns = until_ns = until_ns ? until_ns : limit_of(s);
        int64_t begin = s->profiling ? dmi_now_ns() : 0;
        while (!given_up && !late && (s->stuck >= DMI_STUCK_LOST || !done_and_told(s, command))) {
            given_up = s->stuck >= DMI_STUCK_LOST || !wait_step(s, &w, done_and_told_asleep, command);
            late = until_ns && !given_up && dmi_now_ns() >= until_ns && !done_and_told(s, command);
        }
        atomic_store_explicit(&s->waiting, false, memory_order_relaxed);
        if (begin) {
            dmi_profile_waited_since(s, begin);
        }
        if (given_up) {
            return give_up(s, &w);
        }
        if (late) {
            return dmi_fail(DM_ERR_PENDING, "command %" PRIu64 " is not done yet, and goes on", command);
        }
    }
    if (has_lost_failures(s)) {
        return give_up(s, &w);
    }
    s->stuck = DMI_NOT_STUCK;
    if (!s->awaited) {
        dmi_rests_end(s, command, DM_OK);
    }
    dmi_failures_spread(s);
    dmi_checkpoint_settle(s);
    return DM_OK;
}

dm_status dmi_wait_flag(dmi_session *s, atomic_int *flag, int64_t until_ns)
{
    dmi_bell *bell = &s->engine.port->bell;
    until_ns = until_ns ? until_ns : limit_of(s);
    while (!atomic_load(flag)) {
        bool moved = look(s);
        unsigned token = dmi_bell_announce(bell);
        if (is_broken(s)) {
            dmi_bell_cancel(bell);
            return dmi_broken(s);
        }
        if (until_ns && dmi_now_ns() >= until_ns) {
            dmi_bell_cancel(bell);
            return dmi_fail(DM_ERR_PENDING, "the checkpoint is not done yet, and goes on");
        }
        if (moved || atomic_load(flag)) {
            dmi_bell_cancel(bell);
        } else {
            int64_t limit = s->launch->progress ? 2000000 : 20000000; /* messages do not ring */
            dmi_bell_sleep(bell, token,
                           until_ns ? DMI_MIN(limit, DMI_MAX(until_ns - dmi_now_ns(), 1000)) : limit);
        }
    }
    return DM_OK;
}

/* The workers that the wait is for, as members of a command. */
static uint64_t awaited_members(const dmi_session *s)
{
    uint64_t members = s->awaited ? 0 : UINT64_MAX;
    for (int i = 0; s->awaited && i < s->awaiting; i++) {
        members |= UINT64_C(1) << s->awaited[i] % 64;
    }
    return members;
}

dm_status dmi_wait_until(dmi_session *s, uint64_t command, int64_t until_ns)
{
    dm_status status = dmi_wait_done(s, s->remote ? dmi_wait_mark(s) : command, until_ns);
    return status == DM_OK ? dmi_failures_report(s, 0, UINT64_MAX, awaited_members(s)) : status;
}

dm_status dmi_wait(dmi_session *s, uint64_t command)
{
    return dmi_wait_until(s, command, 0);
}

int64_t dmi_deadline(double seconds)
{
    int64_t now = dmi_now_ns();
    return seconds < 0 || seconds > 1e9 ? 0 : now + DMI_MAX((int64_t)(seconds * 1e9), 1);
}
