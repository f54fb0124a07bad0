/* All endpoints together: a run to the end. */
#include "sim/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const dmi_sim_rule dmi_sim_rules[DMI_SIM_RULES] = {{"messages", 8, 1 << 30, 0, false},
                                                   {"direct", 1, 32, 0, false},
                                                   {"one slot", 1, 1, 0, false},
                                                   {"rendezvous", 1, 1, 1, false},
                                                   {"one queue", 1, 1 << 30, 0, true}};

typedef struct seat { /* one endpoint's lanes */
    uint32_t enqueued[DMI_LANES], done[DMI_LANES];
    uint32_t granted[DMI_CHANNELS];  /* started steps of RECV */
    uint32_t finished[DMI_CHANNELS]; /* bit i: push done + i is finished */
    int64_t next;                    /* in plan order: not yet enqueued; one queue: not yet taken */
} seat;

typedef struct run {
    const dmi_run_end *end;
    int ends;
    const dmi_sim_rule *rule;
    int64_t room;
    seat *seat;
    uint32_t *granted, *arrived, *retired; /* [channel][from][to] */
    uint64_t random;
} run;

static size_t pair_of(const run *r, int lane, int from, int to)
{
    size_t ends = (size_t)r->ends;
    return ((size_t)dmi_lane_channel(lane) * ends + (size_t)from) * ends + (size_t)to;
}

static bool reached(const seat *s, const uint32_t wait[DMI_LANES])
{
    for (int l = 0; l < DMI_LANES; l++) {
        if (s->done[l] < wait[l]) {
            return false;
        }
    }
    return true;
}

static bool enqueue(run *r, int e)
{
    const dmi_run_end *end = &r->end[e];
    seat *s = &r->seat[e];
    int64_t before = s->next;
    while (s->next < end->total) {
        int lane = end->lanes[s->next];
        if (s->enqueued[lane] - s->done[lane] >= r->room) {
            break;
        }
        s->enqueued[lane]++;
        s->next++;
    }
    return s->next != before;
}

static bool compute(run *r, int e, int lane)
{
    seat *s = &r->seat[e];
    uint32_t at = s->done[lane];
    if (at == s->enqueued[lane] || !reached(s, r->end[e].step[lane][at].wait)) {
        return false;
    }
    s->done[lane]++;
    return true;
}

static bool send(run *r, int e, int lane)
{
    seat *s = &r->seat[e];
    uint32_t first = s->done[lane], *finished = &s->finished[dmi_lane_channel(lane)];
    bool moved = false;
    for (uint32_t i = 0; i < (uint32_t)r->rule->pushes && first + i < s->enqueued[lane]; i++) {
        const dmi_run_step *step = &r->end[e].step[lane][first + i];
        if (!reached(s, step->wait)) {
            break;
        }
        size_t p = pair_of(r, lane, e, step->peer);
        if (!(*finished >> i & 1) && r->granted[p] > step->ordinal && r->arrived[p] == step->ordinal) {
            r->arrived[p]++;
            *finished |= 1u << i;
            moved = true;
        }
    }
    while (*finished & 1) {
        *finished >>= 1;
        s->done[lane]++;
    }
    return moved;
}

static bool grant(run *r, int e, int lane)
{
    seat *s = &r->seat[e];
    uint32_t *granted = &s->granted[dmi_lane_channel(lane)];
    if (*granted == s->enqueued[lane]) {
        return false;
    }
    const dmi_run_step *step = &r->end[e].step[lane][*granted];
    size_t p = pair_of(r, lane, step->peer, e);
    if (!reached(s, step->wait) || step->ordinal - r->retired[p] >= (uint32_t)r->rule->slots ||
        (r->rule->grants > 0 && *granted - s->done[lane] >= (uint32_t)r->rule->grants)) {
        return false;
    }
    r->granted[p] = step->ordinal + 1;
    ++*granted;
    return true;
}

static bool arrive(run *r, int e, int lane)
{
    seat *s = &r->seat[e];
    if (s->done[lane] == s->granted[dmi_lane_channel(lane)]) {
        return false;
    }
    const dmi_run_step *step = &r->end[e].step[lane][s->done[lane]];
    size_t p = pair_of(r, lane, step->peer, e);
    if (r->arrived[p] <= step->ordinal) {
        return false;
    }
    r->retired[p]++;
    s->done[lane]++;
    return true;
}

/* A step of that lane, if one may be taken. */
static bool take(run *r, int e, int lane)
{
    return dmi_lane_computes(lane) ? compute(r, e, lane)
           : dmi_lane_sends(lane)  ? send(r, e, lane)
                                   : grant(r, e, lane);
}

/* The next step of the only queue. */
static bool take_next(run *r, int e)
{
    const dmi_run_end *end = &r->end[e];
    seat *s = &r->seat[e];
    if (s->next == end->total) {
        return false;
    }
    int lane = end->lanes[s->next];
    s->enqueued[lane]++;
    bool taken = take(r, e, lane);
    if (taken) {
        s->next++;
    } else {
        s->enqueued[lane]--;
    }
    return taken;
}

/* At most `budget` polls; true if something moved. */
static bool look(run *r, int e, int64_t budget)
{
    bool any = false, moved = true;
    for (int64_t i = 0; moved && i < budget; i++) {
        moved = arrive(r, e, DMI_LANE_RECV);
        moved = arrive(r, e, DMI_LANE_RECV_1) || moved;
        if (r->rule->one_queue) {
            moved = take_next(r, e) || moved;
        } else {
            moved = enqueue(r, e) || moved;
            for (int l = 0; l < DMI_LANES; l++) {
                moved = take(r, e, l) || moved;
            }
        }
        any = any || moved;
    }
    return any;
}

static uint32_t next_random(run *r, uint32_t below)
{
    r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((r->random >> 33) % below);
}

/* Until nothing moves. last: this endpoint only when no other can; -1: none. */
static void run_order(run *r, unsigned order, int last)
{
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < r->ends; i++) {
            int e = order == DMI_SIM_RANDOM ? (int)next_random(r, (uint32_t)r->ends) : i;
            int64_t budget = order == DMI_SIM_ROUND    ? 1
                             : order == DMI_SIM_RANDOM ? 1 + next_random(r, 8)
                                                       : INT64_MAX;
            any = (e != last && look(r, e, budget)) || any;
        }
        if (!any && last >= 0) {
            any = look(r, last, 1);
        }
        for (int e = 0; e < r->ends && order == DMI_SIM_RANDOM && !any;
             e++) { /* some may not have been drawn */
            any = look(r, e, 1);
        }
    }
}

/* --- what is stuck --- */

static void tell_lane(const run *r, int e, int lane, const char *how, dmi_sim_report *report)
{
    static const char *const lanes[] = {"compute", "send", "receive", "compute 1", "send 1", "receive 1"};
    const seat *s = &r->seat[e];
    uint32_t at = s->done[lane];
    const dmi_run_end *end = &r->end[e];
    if (at == end->count[lane]) {
        return;
    }
    const dmi_run_step *step = &end->step[lane][at];
    char why[128];
    int missing = -1;
    for (int l = 0; l < DMI_LANES; l++) {
        missing = s->done[l] < step->wait[l] ? l : missing;
    }
    if (at >= s->enqueued[lane]) {
        snprintf(why, sizeof why, "is not enqueued: %s",
                 r->rule->one_queue ? "steps before it wait" : "a lane is full");
    } else if (missing >= 0) {
        snprintf(why, sizeof why, "waits for step %u of lane %s (%u done)", step->wait[missing], lanes[missing],
                 s->done[missing]);
    } else if (dmi_lane_sends(lane)) {
        snprintf(why, sizeof why, "waits for grant %u of endpoint %d", step->ordinal, step->peer);
    } else {
        snprintf(why, sizeof why, "waits for payload %u from endpoint %d%s", step->ordinal, step->peer,
                 at < s->granted[dmi_lane_channel(lane)] ? "" : " (not granted)");
    }
    dmi_sim_note(report, DMI_SIM_STUCK, "%s: endpoint %d lane %s step %u (call %d, %s) %s", how, e, lanes[lane],
                 at + 1, step->call, dmi_step_name(step->kind), why);
}

static bool tell_stuck(const run *r, const char *how, dmi_sim_report *report)
{
    bool stuck = false;
    for (int e = 0; e < r->ends; e++) {
        for (int l = 0; l < DMI_LANES; l++) {
            if (r->seat[e].done[l] < r->end[e].count[l]) {
                tell_lane(r, e, l, how, report);
                stuck = true;
            }
        }
    }
    return stuck;
}

static bool one_run(run *r, unsigned order, int which, int last, dmi_sim_report *report)
{
    size_t pairs = DMI_CHANNELS * (size_t)r->ends * (size_t)r->ends;
    char how[64];
    memset(r->seat, 0, (size_t)r->ends * sizeof *r->seat);
    memset(r->granted, 0, 3 * pairs * sizeof *r->granted);
    r->random = (uint64_t)which * 77 + 1;
    run_order(r, order, last);
    snprintf(how, sizeof how, "%s, %s %d", r->rule->name,
             order == DMI_SIM_GREEDY  ? "greedy"
             : order == DMI_SIM_ROUND ? "in turn"
             : order == DMI_SIM_LAST  ? "last"
                                      : "random",
             which);
    return tell_stuck(r, how, report);
}

bool dmi_run_all(const dmi_run_end *end, int ends, const dmi_sim_program *program, dmi_sim_report *report)
{
    size_t pairs = DMI_CHANNELS * (size_t)ends * (size_t)ends;
    run r = {.end = end, .ends = ends, .room = program->room > 0 ? program->room : INT64_MAX};
    r.seat = malloc((size_t)ends * sizeof *r.seat);
    r.granted = malloc(3 * pairs * sizeof *r.granted);
    r.arrived = r.granted ? r.granted + pairs : NULL;
    r.retired = r.granted ? r.granted + 2 * pairs : NULL;
    bool ok = r.seat && r.granted, stuck = false;
    for (int rule = 0; ok && !stuck && rule < DMI_SIM_RULES; rule++) {
        r.rule = &dmi_sim_rules[rule];
        for (unsigned order = 1; !stuck && order <= DMI_SIM_LAST && (program->rules >> rule & 1); order *= 2) {
            int times = order == DMI_SIM_RANDOM ? program->seeds
                        : order == DMI_SIM_LAST ? DMI_MIN(ends, program->seeds)
                                                : 1;
            for (int i = 0; !stuck && i < times && (program->orders & order); i++) {
                int last = order == DMI_SIM_LAST ? (int)((int64_t)i * ends / times) : -1;
                stuck = one_run(&r, order, order == DMI_SIM_LAST ? last : i, last, report);
            }
        }
    }
    free(r.seat);
    free(r.granted);
    return ok;
}
