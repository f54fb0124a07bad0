/* Failures of commands, as the workers report them: kept by command, reported once by a call that waits, and to
 * be asked for by events. */
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_KEPT = 16, MOST_KEPT = 4096 };

static bool more_room(dmi_session *s, int room)
{
    dmi_failure *grown = realloc(s->failure, (size_t)room * sizeof *grown);
    if (grown) {
        s->failure = grown;
        s->failure_room = room;
    }
    return grown != NULL;
}

dm_status dmi_failures_start(dmi_session *s)
{
    return more_room(s, FEW_KEPT) ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for failures");
}

/* The place of a new one. The oldest gives way when there are too many, or no memory. */
static dmi_failure *new_failure(dmi_session *s)
{
    if (s->failures == s->failure_room && s->failures < MOST_KEPT) {
        (void)more_room(s, 2 * s->failure_room);
    }
    if (s->failures == s->failure_room) {
        memmove(s->failure, s->failure + 1, (size_t)--s->failures * sizeof *s->failure);
    }
    return &s->failure[s->failures++];
}

void dmi_failure_add(dmi_session *s, uint64_t command, uint64_t members, dm_status status, const char *text)
{
    for (int i = 0; i < s->failures; i++) { /* the workers of one command report alike, one perhaps later */
        dmi_failure *known = &s->failure[i];
        if (known->command == command && (command > 0 || !known->reported)) {
            known->members |= members;
            s->failure[s->failures - 1].cleared = false;
            return;
        }
    }
    dmi_failure *f = new_failure(s);
    *f = (dmi_failure){.command = command, .members = members, .status = status};
    snprintf(f->text, sizeof f->text, "%s", text);
}

/* What a failed command was to write, for all workers to know. */
static void note_poison(dmi_session *s, const dmi_error_record *record)
{
    for (int i = 0; i < s->poisons; i++) {
        if (s->poison[i].culprit == record->culprit) {
            return;
        }
    }
    if (record->writes > 0 && s->poisons < DMI_COUNT(s->poison)) {
        dmi_poison_frame *p = &s->poison[s->poisons++];
        *p = (dmi_poison_frame){.culprit = record->culprit};
        memcpy(p->memory, record->write, (size_t)record->writes * sizeof *record->write);
    }
}

static bool take(dmi_session *s)
{
    bool all = true;
    for (int w = 0; w <= s->workers; w++) {
        dmi_port *port = dmi_hub_port(&s->hub, w);
        uint64_t reports = atomic_load(&port->reports);
        for (int i = 0; i < DMI_ERROR_RECORDS && s->taken[w] < reports; i++) {
            dmi_error_record *record = &port->error[i];
            if (s->poisons < DMI_COUNT(s->poison) &&
                atomic_load_explicit(&record->present, memory_order_acquire) == DMI_RECORD_FULL) {
                dmi_failure_add(s, record->command, record->members, (dm_status)record->status, record->text);
                note_poison(s, record);
                s->taken[w]++;
                atomic_store_explicit(&record->present, DMI_RECORD_EMPTY, memory_order_release);
                dmi_bell_ring(&port->bell);
            }
        }
        if (s->taken[w] < reports && w == s->workers) { /* the master's own: nobody else brings them */
            (void)dmi_engine_report_more(&s->engine);
        }
        all = all && s->taken[w] >= reports;
    }
    return all;
}

/* Have all workers done the command? Where it is still at work it would make its outputs clean. */
static bool done_everywhere(const dmi_session *s, uint64_t command)
{
    bool done = true;
    for (int w = 0; w < s->workers; w++) {
        done = done && atomic_load_explicit(&dmi_hub_port(&s->hub, w)->completed, memory_order_acquire) >= command;
    }
    return done;
}

static void spread(dmi_session *s, bool all)
{
    int poisons = s->poisons;
    s->poisons = 0;
    for (int i = 0; i < poisons; i++) {
        if (!all && !done_everywhere(s, s->poison[i].culprit >> 16)) { /* at a later wait */
            s->poison[s->poisons++] = s->poison[i];
            continue;
        }
        dmi_program_poison(s, s->poison[i].culprit);
        dmi_poison_frame *frame = dmi_frame_begin(s, sizeof *frame, DMI_FRAME_POISON, 0);
        frame->culprit = s->poison[i].culprit;
        memcpy(frame->memory, s->poison[i].memory, sizeof frame->memory);
        dmi_frame_send(s);
    }
    if (s->failures > 0 && !s->failure[s->failures - 1].cleared) {
        s->failure[s->failures - 1].cleared = true;
        dmi_replicas_clear(s); /* some may hold what the failed command has made */
    }
}

void dmi_failures_spread(dmi_session *s)
{
    spread(s, s->poisons == DMI_COUNT(s->poison));
}

/* Where there is no room for more, it is made. */
bool dmi_failures_take(dmi_session *s)
{
    bool all = take(s);
    if (s->poisons == DMI_COUNT(s->poison)) {
        spread(s, true);
    }
    return all;
}

bool dmi_failures_take_early(dmi_session *s)
{
    bool all = take(s);
    if (s->poisons == DMI_COUNT(s->poison)) {
        spread(s, false);
    }
    return all;
}

/* Adds the numbers of the other commands to the text. */
static dm_status with_others(dm_status status, const uint64_t *more, int others)
{
    char text[96];
    int n = snprintf(text, sizeof text, ". Other commands failed, too: "), shown = DMI_MIN(others, 4);
    for (int i = 0; i < shown; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRIu64, i ? ", " : "", more[i] % 1000000000);
    }
    return dmi_fail(status, "%s%s%s", dmi_error_text(), text, others > shown ? ", ..." : "");
}

static bool is_asked(const dmi_failure *f, uint64_t first, uint64_t last, uint64_t members)
{
    return !f->reported && f->command >= first && f->command <= last &&
           (members == UINT64_MAX || (f->members & members));
}

dm_status dmi_failures_report(dmi_session *s, uint64_t first, uint64_t last, uint64_t members)
{
    dmi_failure *earliest = NULL;
    uint64_t more[4];
    int others = 0;
    for (int i = 0; i < s->failures; i++) {
        dmi_failure *f = &s->failure[i];
        bool earlier = !earliest || f->command < earliest->command;
        earliest = earlier && is_asked(f, first, last, members) ? f : earliest;
    }
    for (int i = 0; i < s->failures && earliest; i++) {
        dmi_failure *f = &s->failure[i];
        if (is_asked(f, first, last, members)) {
            f->reported = true;
            if (f != earliest) {
                more[DMI_MIN(others, 3)] = f->command;
                others++;
            }
        }
    }
    if (!earliest) {
        return DM_OK;
    }
    dm_status status = dmi_fail(earliest->status, "%s", earliest->text);
    return others > 0 ? with_others(status, more, others) : status;
}

const dmi_failure *dmi_failure_of(const dmi_session *s, uint64_t first, uint64_t last, int index)
{
    const dmi_failure *found = NULL;
    for (int n = 0; n <= index; n++) { /* in the order of the commands */
        uint64_t after = found ? found->command : 0;
        const dmi_failure *next = NULL;
        for (int i = 0; i < s->failures; i++) {
            const dmi_failure *f = &s->failure[i];
            bool in = f->command >= first && f->command <= last && f->command > after;
            next = in && (!next || f->command < next->command) ? f : next;
        }
        if (!next) {
            return NULL;
        }
        found = next;
    }
    return found;
}
