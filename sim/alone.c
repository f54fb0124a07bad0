/* A program on its devices alone (plan/on_device.h): the plans of all workers, run several times in a row. */
#include "ops/ops.h"
#include "plan/on_device.h"
#include "sim/parts.h"

#include <stdlib.h>
#include <string.h>

/* A payload of a pair. */
typedef struct slot {
    int64_t place[2], bytes[2]; /* by the sender and by the receiver */
    int given[2];               /* in how many exchanges of a run */
    int64_t pushed;             /* in which run last; from 1 on */
} slot;

/* What lies in a piece of a worker's places, since which run: a payload, or something of a workspace that is
 * there, too. */
typedef struct piece {
    const slot *owner;
    uint32_t work; /* its number + 1; 0: none */
    int64_t run;
} piece;

typedef struct alone {
    dmi_sim_report *report;
    int workers, runs;
    dmi_plan *from[DMI_ON_DEVICE_WORKERS], *plan[DMI_ON_DEVICE_WORKERS];
    slot *slot[DMI_ON_DEVICE_WORKERS][DMI_ON_DEVICE_WORKERS]; /* [sender][receiver] */
    int64_t ended[DMI_ON_DEVICE_WORKERS];
    piece *memory[DMI_ON_DEVICE_WORKERS]; /* pieces of DMI_LANDING_ALIGN bytes */
    int64_t *used[DMI_ON_DEVICE_WORKERS]; /* [units] in which run each workspace was used last */
    struct {
        int run, step;
        bool pushed; /* of the exchange that comes next */
    } at[DMI_ON_DEVICE_WORKERS];
    uint64_t random;
} alone;

static slot *slot_of(alone *a, int me, const dmi_exchange_part *part, bool push)
{
    int from = push ? me : part->peer, to = push ? part->peer : me;
    return part->number < a->plan[to]->on_device->from[from] ? &a->slot[from][to][part->number] : NULL;
}

/* --- each plan by itself --- */

/* The transfer of the old plan that a part of an exchange is. */
static const dmi_step *transfer_of(const dmi_plan *from, const dmi_exchange_part *part, bool push)
{
    uint32_t number = 0;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        for (int i = 0; i < from->nstep && (push ? dmi_lane_sends(lane) : dmi_lane_receives(lane)); i++) {
            const dmi_step *step = &from->step[i];
            if (step->lane == lane && step->peer == part->peer && number++ == part->number) {
                return step;
            }
        }
    }
    return NULL;
}

static bool waits_beyond(const dmi_step *step, const uint32_t done[DMI_LANES], bool push)
{
    bool beyond = false;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        beyond = beyond || (dmi_step_needs(step, lane) > done[lane] && !(push && dmi_lane_sends(lane)));
    }
    return beyond;
}

/* What the old plan has stands behind what it waited for there: a transfer in a later exchange than other
 * transfers, as those of one come in any order. But pushes read, so one may be together with those before it.
 */
static void check_order(alone *a, int me)
{
    const dmi_plan *from = a->from[me], *plan = a->plan[me];
    uint32_t done[DMI_LANES] = {0}, now[DMI_LANES];
    int old = 0; /* the next kernel of the old plan */
    for (int i = 0; i <= plan->nstep; i++) {
        while (old < from->nstep && !dmi_lane_computes(from->step[old].lane)) {
            old++;
        }
        if (i == plan->nstep) {
            break;
        }
        const dmi_step *step = &plan->step[i], *kernel = old < from->nstep ? &from->step[old] : NULL;
        const dmi_exchange *x = step->desc;
        if (kernel && step->kind == kernel->kind && step->desc == kernel->desc) {
            if (waits_beyond(kernel, done, false)) {
                dmi_sim_note(a->report, DMI_SIM_ORDER,
                             "alone: worker %d step %d (%s) comes before what it waits for", me, old,
                             dmi_step_name(kernel->kind));
            }
            done[kernel->lane] = kernel->ordinal;
            old++;
        }
        memcpy(now, done, sizeof now);
        for (int k = 0; step->kind == DMI_STEP_EXCHANGE && k < x->pushes + x->arrivals; k++) {
            const bool push = k < x->pushes;
            const dmi_step *transfer = transfer_of(from, &x->part[k], push);
            if (transfer && waits_beyond(transfer, done, push)) {
                dmi_sim_note(a->report, DMI_SIM_ORDER,
                             "alone: worker %d step %d: payload %u %s worker %d comes before what it waits for",
                             me, i, x->part[k].number, push ? "to" : "from", x->part[k].peer);
            }
            if (transfer) {
                now[transfer->lane] = DMI_MAX(now[transfer->lane], transfer->ordinal);
            }
        }
        memcpy(done, now, sizeof done);
    }
    if (old < from->nstep) {
        dmi_sim_note(a->report, DMI_SIM_ORDER, "alone: worker %d: step %d (%s) is missing", me, old,
                     dmi_step_name(from->step[old].kind));
    }
}

static void collect(alone *a, int me)
{
    for (int i = 0; i < a->plan[me]->nstep; i++) {
        const dmi_step *step = &a->plan[me]->step[i];
        const dmi_exchange *x = step->desc;
        for (int k = 0; step->kind == DMI_STEP_EXCHANGE && k < x->pushes + x->arrivals; k++) {
            slot *s = slot_of(a, me, &x->part[k], k < x->pushes);
            if (s) {
                s->given[k >= x->pushes]++;
                s->bytes[k >= x->pushes] = x->part[k].width * x->part[k].height;
                s->place[k >= x->pushes] = x->part[k].place;
            } else {
                dmi_sim_note(a->report, DMI_SIM_PAIR,
                             "alone: worker %d step %d: payload %u of worker %d is not known", me, i,
                             x->part[k].number, x->part[k].peer);
            }
        }
    }
}

static void check_slots(alone *a, int from, int to)
{
    uint32_t payloads = a->plan[to]->on_device->from[from];
    bool fit = payloads == a->plan[from]->on_device->to[to];
    for (uint32_t k = 0; k < payloads; k++) {
        const slot *s = &a->slot[from][to][k];
        if (s->given[0] != 1 || s->given[1] != 1 || s->bytes[0] != s->bytes[1] || s->place[0] != s->place[1]) {
            dmi_sim_note(a->report, DMI_SIM_PAIR,
                         "alone: payload %u from %d to %d: pushed %d times, taken %d times", k, from, to,
                         s->given[0], s->given[1]);
        }
        fit = fit && s->place[0] >= 0 && s->place[0] % DMI_LANDING_ALIGN == 0 &&
              s->place[0] + s->bytes[0] <= a->plan[to]->on_device->places;
    }
    if (!fit) {
        dmi_sim_note(a->report, DMI_SIM_BOUNDS, "alone: payloads from %d to %d do not fit their places", from,
                     to);
    }
}

/* --- all together --- */

/* It lies there from now on, over what lay there. */
static void put(alone *a, int to, int64_t place, int64_t bytes, piece what)
{
    for (int64_t at = place / DMI_LANDING_ALIGN; at * DMI_LANDING_ALIGN < place + bytes; at++) {
        a->memory[to][at] = what;
    }
}

static bool lies_there(const alone *a, int to, int64_t place, int64_t bytes, piece what)
{
    bool all = true;
    for (int64_t at = place / DMI_LANDING_ALIGN; at * DMI_LANDING_ALIGN < place + bytes; at++) {
        const piece *p = &a->memory[to][at];
        all = all && p->owner == what.owner && p->work == what.work && p->run == what.run;
    }
    return all;
}

/* A step uses workspaces beside places, as the first `count` of its references: from its first use in a run on
 * nothing else comes there. */
static void use_work(alone *a, int me, const dmi_step *step, int count, int64_t run)
{
    const dmi_on_device *d = a->plan[me]->on_device;
    for (int i = 0; i < count && d->together; i++) {
        const dmi_ref *ref = &step->ref[i];
        if (ref->kind == DMI_REF_WORK) {
            const piece what = {.work = ref->number + 1, .run = run};
            const int64_t bytes = d->unit[ref->number].bytes;
            if (a->used[me][ref->number] < run) {
                put(a, me, ref->from, bytes, what);
            } else if (!lies_there(a, me, ref->from, bytes, what)) {
                dmi_sim_note(a->report, DMI_SIM_RACE,
                             "alone: run %d: workspace %u of worker %d is overwritten before its last use",
                             (int)run, ref->number, me);
            }
            a->used[me][ref->number] = run;
        }
    }
}

static bool push_all(alone *a, int me, const dmi_exchange *x, int64_t run)
{
    for (int k = 0; k < x->pushes; k++) {
        if (x->part[k].first && a->ended[x->part[k].peer] < run - 1) {
            return false;
        }
    }
    for (int k = 0; k < x->pushes; k++) {
        slot *s = slot_of(a, me, &x->part[k], true);
        put(a, x->part[k].peer, s->place[0], s->bytes[0], (piece){.owner = s, .run = run});
        s->pushed = run;
    }
    return true;
}

static bool take_all(alone *a, int me, const dmi_step *step, int64_t run)
{
    const dmi_exchange *x = step->desc;
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        if (slot_of(a, me, &x->part[k], false)->pushed < run) {
            return false;
        }
    }
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        const slot *s = slot_of(a, me, &x->part[k], false);
        if (!lies_there(a, me, s->place[0], s->bytes[0], (piece){.owner = s, .run = run})) {
            dmi_sim_note(a->report, DMI_SIM_RACE,
                         "alone: run %d: payload %u of worker %d is overwritten before worker %d takes it",
                         (int)run, x->part[k].number, x->part[k].peer, me);
        }
        if (x->part[k].lands) { /* it is a part of the workspace now */
            put(a, me, s->place[0], s->bytes[0], (piece){.work = step->ref[k].number + 1, .run = run});
        }
    }
    a->ended[me] = x->last ? run : a->ended[me];
    return true;
}

/* One step of a worker; false: it waits, or is done. */
static bool take_step(alone *a, int me)
{
    const dmi_plan *plan = a->plan[me];
    if (a->at[me].run > a->runs) {
        return false;
    }
    const dmi_step *step = &plan->step[a->at[me].step];
    if (step->kind == DMI_STEP_EXCHANGE && ((const dmi_exchange *)step->desc)->part) {
        const dmi_exchange *x = step->desc;
        bool before = a->at[me].pushed;
        if (!before) { /* what it pushes is still there, */
            use_work(a, me, step, x->pushes, a->at[me].run);
        }
        a->at[me].pushed = before || push_all(a, me, x, a->at[me].run);
        if (!a->at[me].pushed || !take_all(a, me, step, a->at[me].run)) {
            return a->at[me].pushed != before;
        }
        a->at[me].pushed = false;
    }
    use_work(a, me, step, step->nref, a->at[me].run); /* and what has come goes where nothing else comes */
    if (++a->at[me].step == plan->nstep) {
        a->at[me].step = 0;
        a->at[me].run++;
    }
    return true;
}

static int draw(alone *a, int below)
{
    a->random = a->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((a->random >> 33) % (uint64_t)below);
}

/* slow: this worker goes on only when no other can; -1: any may. */
static void run_order(alone *a, bool greedy, bool random, int slow)
{
    for (int w = 0; w < a->workers; w++) {
        a->ended[w] = 0;
        memset(&a->at[w], 0, sizeof a->at[w]);
        a->at[w].run = 1;
        memset(a->used[w], 0, a->plan[w]->on_device->units * sizeof *a->used[w]);
        for (int to = 0; to < a->workers; to++) {
            for (uint32_t k = 0; k < a->plan[to]->on_device->from[w]; k++) {
                a->slot[w][to][k].pushed = 0;
            }
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < a->workers; i++) {
            int w = random ? draw(a, a->workers) : i;
            int64_t steps = greedy ? INT64_MAX : random ? draw(a, 8) : 1;
            for (int64_t k = 0; w != slow && k < steps && take_step(a, w); k++) {
                moved = true;
            }
        }
        for (int w = 0; w < a->workers && !moved; w++) { /* the slow one, or who was not drawn */
            moved = take_step(a, w);
        }
    }
    for (int w = 0; w < a->workers; w++) {
        if (a->at[w].run <= a->runs) {
            dmi_sim_note(a->report, DMI_SIM_STUCK, "alone: worker %d waits in run %d at step %d for ever", w,
                         a->at[w].run, a->at[w].step);
        }
    }
}

static void run_all(alone *a, const dmi_sim_program *program)
{
    if (program->orders & DMI_SIM_GREEDY) {
        run_order(a, true, false, -1);
    }
    if (program->orders & DMI_SIM_ROUND) {
        run_order(a, false, false, -1);
    }
    for (int i = 0; i < program->seeds && program->orders & DMI_SIM_RANDOM; i++) {
        a->random = (uint64_t)i * 77 + 1;
        run_order(a, false, true, -1);
    }
    for (int w = 0; w < DMI_MIN(a->workers, program->seeds) && program->orders & DMI_SIM_LAST; w++) {
        run_order(a, true, false, w);
    }
}

static dm_status no_memory(const alone *a)
{
    return dmi_fail(DM_ERR_NOMEM, "no memory to simulate %d workers", a->workers);
}

static dm_status make_plans(alone *a, const dmi_sim_program *program, bool *fits)
{
    char why[DMI_ON_DEVICE_WHY];
    dm_status status = DM_OK;
    dmi_plan_maker *make = program->make ? program->make : dmi_plan_make;
    uint64_t members = 0;
    *fits = true;
    for (int w = 0; w < a->workers && status == DM_OK; w++) {
        status = make(&program->call[0], program->profile, w, &a->from[w]);
        members |= (uint64_t)(status == DM_OK && a->from[w]->nstep > 0) << w;
    }
    for (int w = 0; w < a->workers && status == DM_OK && *fits; w++) {
        status = dmi_plan_on_device(a->from[w], a->workers, members, &a->plan[w], why);
        *fits = status == DM_OK && a->plan[w];
    }
    a->report->workers = a->workers;
    a->report->members = dmi_on_device_members(members, a->workers);
    status = status == DM_OK && *fits ? dmi_on_device_places(a->plan, a->workers, program->together, fits, why) : status;
    for (int w = 0; w < a->workers && status == DM_OK && *fits; w++) {
        if (program->change) {
            program->change(program->context, w, 0, a->plan[w]);
        }
        a->memory[w] = calloc((size_t)(a->plan[w]->on_device->places / DMI_LANDING_ALIGN) + 1, sizeof(piece));
        a->used[w] = calloc((size_t)a->plan[w]->on_device->units + 1, sizeof *a->used[w]);
        status = a->memory[w] && a->used[w] ? DM_OK : no_memory(a);
    }
    for (int from = 0; from < a->workers && status == DM_OK && *fits; from++) {
        for (int to = 0; to < a->workers && status == DM_OK; to++) {
            a->slot[from][to] = calloc((size_t)a->plan[to]->on_device->from[from] + 1, sizeof(slot));
            status = a->slot[from][to] ? DM_OK : no_memory(a);
        }
    }
    return status;
}

dm_status dmi_simulate_alone(const dmi_sim_program *program, int runs, bool *fits, dmi_sim_report *report)
{
    alone *a = calloc(1, sizeof *a);
    *fits = false;
    memset(report, 0, sizeof *report);
    if (!a) {
        return dmi_fail(DM_ERR_NOMEM, "no memory to simulate");
    }
    *a = (alone){
        .report = report, .workers = DMI_MIN(program->profile->workers, DMI_ON_DEVICE_WORKERS), .runs = runs};
    dm_status status = make_plans(a, program, fits);
    if (status == DM_OK && *fits) {
        for (int w = 0; w < a->workers; w++) {
            report->steps += a->plan[w]->nstep;
            check_order(a, w);
            collect(a, w);
        }
        for (int i = 0; i < a->workers * a->workers; i++) {
            check_slots(a, i / a->workers, i % a->workers);
        }
        if (report->findings == 0) { /* else there may be payloads that it does not know */
            run_all(a, program);
        }
    }
    for (int w = 0; w < a->workers; w++) {
        for (int to = 0; to < a->workers; to++) {
            free(a->slot[w][to]);
        }
        free(a->memory[w]);
        free(a->used[w]);
        dmi_plan_release(a->plan[w]);
        dmi_plan_release(a->from[w]);
    }
    free(a);
    return status;
}
