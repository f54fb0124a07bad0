/* What workers know of one another in a program that runs on their devices alone.
 *
 * It follows from the exchanges. A worker takes them one after the other, and one is complete when its arrivals
 * have been taken. A push goes out when the exchanges before it are complete, and says so to whom it comes to,
 * and all that its sender knew of others by then. */
#include "plan/on_device_parts.h"

#include <stdlib.h>

dmi_payload *dmi_finder_payload(const dmi_finder *f, int me, const dmi_exchange_part *part, bool push)
{
    const int from = push ? me : part->peer, to = push ? part->peer : me;
    return part->number < f->plan[to]->on_device->from[from] ? &f->payload[from][to][part->number] : NULL;
}

/* A reference to a workspace: step `at` uses it. */
static void note_use(int *used, const dmi_ref *ref, int at)
{
    if (ref->kind == DMI_REF_WORK) {
        used[ref->number] = at;
    }
}

/* used: [units] the last step so far that uses each workspace. */
static void collect_parts(dmi_finder *f, int me, int exchange, int *used)
{
    const dmi_exchange *x = f->of[me].exchange[exchange];
    const int at = f->of[me].step[exchange];
    const dmi_ref *ref = f->plan[me]->step[at].ref;
    for (int k = 0; k < x->pushes + x->arrivals; k++) {
        const bool push = k < x->pushes;
        dmi_payload *p = dmi_finder_payload(f, me, &x->part[k], push);
        if (push) {
            note_use(used, &ref[k], at);
        }
        if (p && push) {
            p->push = &x->part[k];
            p->pushed = exchange;
        } else if (p) {
            p->arrival = &x->part[k];
            p->wanted = &ref[k];
            p->taken = exchange;
            p->used = ref[k].kind == DMI_REF_WORK ? used[ref[k].number] : -1;
        }
    }
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        note_use(used, &ref[k], at);
    }
}

static bool collect(dmi_finder *f, int me)
{
    const dmi_plan *plan = f->plan[me];
    dmi_ordered *o = &f->of[me];
    int *used = malloc(((size_t)plan->on_device->units + 1) * sizeof *used);
    o->exchange = calloc((size_t)plan->nstep + 1, sizeof(const dmi_exchange *));
    o->step = calloc((size_t)plan->nstep + 1, sizeof *o->step);
    bool memory = o->exchange && o->step && used;
    for (uint32_t i = 0; memory && i < plan->on_device->units; i++) {
        used[i] = -1;
    }
    for (int i = 0; memory && i < plan->nstep; i++) {
        const dmi_exchange *x = plan->step[i].desc;
        if (plan->step[i].kind == DMI_STEP_EXCHANGE && x->part) {
            o->exchange[++o->count] = x;
            o->step[o->count] = i;
            collect_parts(f, me, o->count, used);
        } else {
            for (int r = 0; r < plan->step[i].nref; r++) {
                note_use(used, &plan->step[i].ref[r], i);
            }
        }
    }
    free(used);
    o->known = memory ? calloc(((size_t)o->count + 1) * (size_t)f->workers, sizeof *o->known) : NULL;
    return memory && o->known;
}

const int *dmi_finder_known(const dmi_finder *f, int worker, int exchange)
{
    return f->of[worker].known + (size_t)exchange * (size_t)f->workers;
}

/* The worker's next exchange is complete as soon as all that it waits for has been pushed. */
static bool complete_next(dmi_finder *f, int me)
{
    dmi_ordered *o = &f->of[me];
    if (o->complete == o->count) {
        return false;
    }
    const int next = o->complete + 1;
    const dmi_exchange *x = o->exchange[next];
    int *known = o->known + (size_t)next * (size_t)f->workers;
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        const dmi_payload *p = dmi_finder_payload(f, me, &x->part[k], false);
        if (!p || !p->push || p->pushed - 1 > f->of[x->part[k].peer].complete) {
            return false;
        }
    }
    for (int w = 0; w < f->workers; w++) {
        known[w] = dmi_finder_known(f, me, o->complete)[w];
    }
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        const dmi_payload *p = dmi_finder_payload(f, me, &x->part[k], false);
        const int *theirs = dmi_finder_known(f, x->part[k].peer, p->pushed - 1);
        for (int w = 0; w < f->workers; w++) {
            known[w] = DMI_MAX(known[w], theirs[w]);
        }
    }
    known[me] = o->complete = next;
    return true;
}

/* In any order in which the workers may go on. False: they wait for one another, or payloads have one end. */
static bool find_known(dmi_finder *f)
{
    bool all = true;
    for (bool moved = true; moved;) {
        moved = false;
        for (int w = 0; w < f->workers; w++) {
            while (complete_next(f, w)) {
                moved = true;
            }
        }
    }
    for (int from = 0; from < f->workers; from++) {
        all = all && f->of[from].complete == f->of[from].count;
        for (int to = 0; to < f->workers && all; to++) {
            for (uint32_t i = 0; i < f->plan[to]->on_device->from[from] && all; i++) {
                dmi_payload *p = &f->payload[from][to][i];
                all = p->push && p->arrival;
                p->known = all ? dmi_finder_known(f, from, p->pushed - 1)[to] : 0;
            }
        }
    }
    return all;
}

static bool make_room(dmi_finder *f)
{
    bool memory = true;
    for (int from = 0; from < f->workers; from++) {
        for (int to = 0; to < f->workers; to++) {
            f->payload[from][to] =
                calloc((size_t)f->plan[to]->on_device->from[from] + 1, sizeof *f->payload[from][to]);
            memory = memory && f->payload[from][to];
        }
    }
    for (int w = 0; w < f->workers && memory; w++) {
        memory = collect(f, w);
    }
    return memory;
}

dm_status dmi_finder_begin(dmi_finder *f)
{
    if (!make_room(f)) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
    }
    return find_known(f) ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "payloads of a program do not pair off");
}

void dmi_finder_end(dmi_finder *f)
{
    for (int w = 0; w < f->workers; w++) {
        free((void *)f->of[w].exchange);
        free(f->of[w].step);
        free(f->of[w].known);
        for (int to = 0; to < f->workers; to++) {
            free(f->payload[w][to]);
        }
    }
    *f = (dmi_finder){.workers = f->workers, .plan = f->plan};
}
