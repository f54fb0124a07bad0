/* Places of payloads of programs that run on their devices alone (on_device.h).
 *
 * A place may be used again when its payload has been taken, and the sender of the next one must know that.
 * What a worker knows follows from the exchanges. It takes them one after the other, and one is complete when
 * its arrivals have been taken. A push goes out when the exchanges before it are complete, and says so to whom
 * it comes to, and all that its sender knew of others by then. So in the receiver's order a payload lives from
 * the exchange whose push said so last, to the one that takes it. Where it knows of none in
 * this run, it waits until the receiver has ended the last run, and the payload lives from there on
 * (exec/gpu/exchange.c). Who knows of an exchange of this run knows that the run before has ended there, so
 * what holds in a run holds from run to run.
 *
 * Those that do not live at once may lie in one place, as workspaces do (places.h). So may a payload and a
 * workspace, which lives from the first step that uses it to the last. Where the arrival is that first step,
 * the payload *lands*: its place is that in the workspace, which then lives from where the payload does. */
#include "plan/on_device.h"
#include "plan/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEXT_TO_NOTHING = 32 }; /* a part of the workspace */

/* A worker's exchanges, from 1 on; known: [exchanges + 1][workers] how many exchanges of each worker are
 * complete when this one is. */
typedef struct ordered {
    const dmi_exchange **exchange;
    int *step; /* where they are in the plan */
    int count, complete;
    int *known;
} ordered;

typedef struct payload {
    dmi_exchange_part *push, *arrival;
    const dmi_ref *wanted; /* where the arrival copies it to */
    int pushed, taken;     /* in which exchanges */
    int known; /* exchanges of the receiver that its sender knows to be complete when it pushes; 0: none of this
                  run */
} payload;

typedef struct finder {
    int workers;
    dmi_plan *const *plan;
    ordered of[DMI_ON_DEVICE_WORKERS];
    payload *payload[DMI_ON_DEVICE_WORKERS][DMI_ON_DEVICE_WORKERS]; /* [sender][receiver] by number */
} finder;

static int64_t aligned(int64_t bytes)
{
    return (bytes + DMI_PLACE_ALIGN - 1) / DMI_PLACE_ALIGN * DMI_PLACE_ALIGN;
}

static payload *payload_of(const finder *f, int me, const dmi_exchange_part *part, bool push)
{
    const int from = push ? me : part->peer, to = push ? part->peer : me;
    return part->number < f->plan[to]->on_device->from[from] ? &f->payload[from][to][part->number] : NULL;
}

static bool collect(finder *f, int me)
{
    const dmi_plan *plan = f->plan[me];
    ordered *o = &f->of[me];
    o->exchange = calloc((size_t)plan->nstep + 1, sizeof(const dmi_exchange *));
    o->step = calloc((size_t)plan->nstep + 1, sizeof *o->step);
    bool memory = o->exchange && o->step;
    for (int i = 0; memory && i < plan->nstep; i++) {
        const dmi_exchange *x = plan->step[i].desc;
        if (plan->step[i].kind == DMI_STEP_EXCHANGE && x->part) {
            o->exchange[++o->count] = x;
            o->step[o->count] = i;
        }
    }
    o->known = calloc(((size_t)o->count + 1) * (size_t)f->workers, sizeof *o->known);
    for (int i = 1; memory && i <= o->count; i++) {
        const dmi_exchange *x = o->exchange[i];
        for (int k = 0; k < x->pushes + x->arrivals; k++) {
            const bool push = k < x->pushes;
            payload *p = payload_of(f, me, &x->part[k], push);
            if (p && push) {
                p->push = &x->part[k];
                p->pushed = i;
            } else if (p) {
                p->arrival = &x->part[k];
                p->wanted = &plan->step[o->step[i]].ref[k];
                p->taken = i;
            }
        }
    }
    return memory && o->known;
}

static const int *known_at(const finder *f, int worker, int exchange)
{
    return f->of[worker].known + (size_t)exchange * (size_t)f->workers;
}

/* The worker's next exchange is complete as soon as all that it waits for has been pushed. */
static bool complete_next(finder *f, int me)
{
    ordered *o = &f->of[me];
    if (o->complete == o->count) {
        return false;
    }
    const int next = o->complete + 1;
    const dmi_exchange *x = o->exchange[next];
    int *known = o->known + (size_t)next * (size_t)f->workers;
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        const payload *p = payload_of(f, me, &x->part[k], false);
        if (!p || !p->push || p->pushed - 1 > f->of[x->part[k].peer].complete) {
            return false;
        }
    }
    for (int w = 0; w < f->workers; w++) {
        known[w] = known_at(f, me, o->complete)[w];
    }
    for (int k = x->pushes; k < x->pushes + x->arrivals; k++) {
        const payload *p = payload_of(f, me, &x->part[k], false);
        const int *theirs = known_at(f, x->part[k].peer, p->pushed - 1);
        for (int w = 0; w < f->workers; w++) {
            known[w] = DMI_MAX(known[w], theirs[w]);
        }
    }
    known[me] = o->complete = next;
    return true;
}

/* In any order in which the workers may go on. False: they wait for one another, or payloads have one end. */
static bool find_known(finder *f)
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
                payload *p = &f->payload[from][to][i];
                all = p->push && p->arrival;
                p->known = all ? known_at(f, from, p->pushed - 1)[to] : 0;
            }
        }
    }
    return all;
}

/* The first push to each peer of which nothing is known. */
static void set_gates(const finder *f, int me)
{
    bool reached[DMI_ON_DEVICE_WORKERS] = {false};
    for (int i = 1; i <= f->of[me].count; i++) {
        const dmi_exchange *x = f->of[me].exchange[i];
        for (int k = 0; k < x->pushes; k++) {
            dmi_exchange_part *part = &x->part[k];
            part->first = !reached[part->peer] && payload_of(f, me, part, true)->known == 0;
            reached[part->peer] = true;
        }
    }
}

/* What lives in the memory of a worker, and when: the payloads that come, and its workspaces. */
typedef struct contents {
    dmi_workspace *item; /* [payloads + units], the payloads first */
    int64_t *bytes;      /* [payloads + units] room for places */
    int payloads, units;
    bool turned; /* the order of steps */
    int *first;  /* [units] the step that uses it first */
    bool *tail;  /* [units] it is used behind the last exchange */
} contents;

/* The step of a worker's last exchange; -1: it has none. */
static int last_exchange(const finder *f, int worker)
{
    const ordered *o = &f->of[worker];
    return o->count > 0 ? o->step[o->count] : -1;
}

/* Steps in an order that begins behind the last exchange of the run before, from where on payloads may come of
 * whose receiver nothing is known; then a workspace that is used on both sides of it lives all the time. Or in
 * that of the plan; then such payloads live all the time. */
static int place_in_order(const finder *f, int worker, const contents *c, int step)
{
    const int begin = c->turned ? last_exchange(f, worker) + 1 : 0;
    return step < begin ? step + f->plan[worker]->nstep - begin : step - begin;
}

/* From where on a payload may come: the sender knows of an exchange by a push of the next one, for which the
 * receiver has done all before. */
static int begins(const finder *f, int to, const contents *c, const payload *p)
{
    return p->known > 0 ? place_in_order(f, to, c, f->of[to].step[p->known + 1]) : 0;
}

static int ends(const finder *f, int to, const contents *c, const payload *p)
{
    return p->known > 0 || c->turned ? place_in_order(f, to, c, f->of[to].step[p->taken]) : f->plan[to]->nstep;
}

static void add_payloads(const finder *f, int to, contents *c)
{
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            const payload *p = &f->payload[from][to][i];
            c->item[c->payloads] = (dmi_workspace){.number = c->payloads,
                                                   .first = begins(f, to, c, p),
                                                   .last = ends(f, to, c, p),
                                                   .bytes = p->push->width * p->push->height};
            c->payloads++;
        }
    }
}

static void add_units(const finder *f, int worker, contents *c)
{
    const dmi_plan *plan = f->plan[worker];
    const dmi_on_device *d = plan->on_device;
    dmi_workspace *work = c->item + c->payloads;
    c->units = (int)d->units;
    for (int i = 0; i < c->units; i++) {
        work[i] = (dmi_workspace){.number = c->payloads + i, .first = plan->nstep, .last = -1};
    }
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            const dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK) {
                dmi_workspace *w = &work[ref->number];
                w->first = DMI_MIN(w->first, i);
                w->last = i;
                w->bytes = d->unit[ref->number].bytes;
            }
        }
    }
    for (int i = 0; i < c->units; i++) {
        const int last = last_exchange(f, worker);
        const bool around = c->turned && work[i].first <= last && work[i].last > last;
        c->first[i] = work[i].first;
        c->tail[i] = work[i].last > last;
        work[i].first = around ? 0 : place_in_order(f, worker, c, work[i].first);
        work[i].last = around ? plan->nstep : place_in_order(f, worker, c, work[i].last);
    }
}

/* Bytes from the beginning of a workspace to where a payload is wanted. */
static int64_t wanted_at(const dmi_on_device *d, const payload *p)
{
    return p->wanted->offset - d->unit[p->wanted->number].from + p->arrival->offset;
}

/* Does it? What is used behind the last exchange of a run is not free yet for what the next one brings then. */
static bool lands(const finder *f, int to, const payload *p, const contents *c)
{
    const dmi_exchange_part *a = p->arrival;
    const uint32_t unit = p->wanted->number;
    return p->wanted->kind == DMI_REF_WORK && c->first[unit] == f->of[to].step[p->taken] &&
           (p->known > 0 || (c->turned && !c->tail[unit])) && (a->height == 1 || a->pitch == a->width) &&
           wanted_at(f->plan[to]->on_device, p) % DMI_LANDING_ALIGN == 0;
}

static void let_land(const finder *f, int to, contents *c)
{
    int at = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++, at++) {
            const payload *p = &f->payload[from][to][i];
            p->arrival->lands = lands(f, to, p, c);
            if (p->arrival->lands) {
                dmi_workspace *w = &c->item[c->payloads + (int)p->wanted->number];
                w->first = DMI_MIN(w->first, begins(f, to, c, p));
                c->item[at].bytes = 0;
            }
        }
    }
}

/* Chooses places for the first `count` of them. Returns the bytes of all; c->bytes: where each place begins. -1: no
 * memory. */
static int64_t choose(const finder *f, int worker, contents *c, int count)
{
    int places = 0;
    bool packed;
    int64_t end = 0;
    for (int i = 0; i < count; i++) { /* of an earlier choice */
        c->item[i].place = 0;
        c->item[i].offset = 0;
    }
    if (!dmi_places_choose(c->item, count, f->plan[worker]->nstep + 1, c->bytes, &places, &packed)) {
        return -1;
    }
    for (int i = 0; i < places; i++) {
        const int64_t size = aligned(c->bytes[i]);
        c->bytes[i] = end;
        end += size;
    }
    return end;
}

static int64_t choose_together(const finder *f, int worker, contents *c, bool turned)
{
    c->turned = turned;
    c->payloads = 0;
    add_payloads(f, worker, c);
    add_units(f, worker, c);
    let_land(f, worker, c);
    return choose(f, worker, c, c->payloads + c->units);
}

static int64_t place_of(const contents *c, int item)
{
    return c->bytes[c->item[item].place] + c->item[item].offset;
}

static void set_places(const finder *f, int to, const contents *c)
{
    int at = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            const payload *p = &f->payload[from][to][i];
            p->arrival->place = p->arrival->lands ? place_of(c, c->payloads + (int)p->wanted->number) +
                                                        wanted_at(f->plan[to]->on_device, p)
                                                  : place_of(c, at);
            p->push->place = p->arrival->place;
            at++;
        }
    }
}

/* All workspaces are in one memory, with the places. */
static void set_together(dmi_plan *plan, const contents *c, int64_t bytes)
{
    dmi_on_device *d = plan->on_device;
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK) {
                const dmi_work_unit *unit = &d->unit[ref->number];
                const int64_t place = place_of(c, c->payloads + (int)ref->number);
                ref->index = 0;
                ref->offset += place - unit->from;
                ref->from = place;
                ref->to = place + unit->bytes;
            }
        }
    }
    for (uint32_t i = 0; i < d->units; i++) {
        d->unit[i].from = place_of(c, c->payloads + (int)i);
    }
    d->together = true;
    plan->nwork = 1;
    plan->work_bytes[0] = plan->workspace = bytes;
}

static void keep_apart(const finder *f, int to)
{
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            f->payload[from][to][i].arrival->lands = false;
        }
    }
}

/* The places at one receiver: by themselves where they take next to nothing beside the workspace, which is then
 * given back between the runs. */
static bool give_places(finder *f, int to, bool together)
{
    dmi_plan *plan = f->plan[to];
    dmi_on_device *d = plan->on_device;
    contents c = {0};
    size_t room = d->units + (size_t)1;
    for (int from = 0; from < f->workers; from++) {
        room += d->from[from];
    }
    c.item = calloc(room, sizeof *c.item);
    c.bytes = calloc(room, sizeof *c.bytes);
    c.first = calloc(room, sizeof *c.first);
    c.tail = calloc(room, sizeof *c.tail);
    bool memory = c.item && c.bytes && c.first && c.tail;
    if (memory) {
        c.turned = true;
        add_payloads(f, to, &c);
        d->places = choose(f, to, &c, c.payloads);
        memory = d->places >= 0;
    }
    if (memory) {
        set_places(f, to, &c);
    }
    if (memory && together && plan->nwork > 0 && d->places > plan->workspace / NEXT_TO_NOTHING) {
        int64_t all = choose_together(f, to, &c, true), other = choose_together(f, to, &c, false);
        all = other < all ? other : choose_together(f, to, &c, true);
        memory = all >= 0;
        if (memory && all <= DMI_ON_DEVICE_TOGETHER && all < d->places + plan->workspace) {
            set_places(f, to, &c);
            set_together(plan, &c, all);
            d->places = all;
        } else {
            keep_apart(f, to);
        }
    }
    free(c.first);
    free(c.tail);
    free(c.item);
    free(c.bytes);
    return memory;
}

static bool begin(finder *f)
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

static void end(finder *f)
{
    for (int w = 0; w < f->workers; w++) {
        free((void *)f->of[w].exchange);
        free(f->of[w].step);
        free(f->of[w].known);
        for (int to = 0; to < f->workers; to++) {
            free(f->payload[w][to]);
        }
    }
}

dm_status dmi_on_device_places(dmi_plan *const *plan, int workers, bool together, bool *fits,
                               char why[DMI_ON_DEVICE_WHY])
{
    finder f = {.workers = workers, .plan = plan};
    dm_status status = DM_OK;
    *fits = true;
    if (!begin(&f)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
    } else if (!find_known(&f)) {
        status = dmi_fail(DM_ERR_INTERNAL, "payloads of a program do not pair off");
    }
    for (int w = 0; w < workers && status == DM_OK; w++) {
        set_gates(&f, w);
        if (!give_places(&f, w, together)) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
        } else if (!plan[w]->on_device->together && plan[w]->on_device->places > DMI_ON_DEVICE_PLACES &&
                   *fits) {
            snprintf(why, DMI_ON_DEVICE_WHY, "payloads take %" PRId64 " bytes of worker %d, more than %d",
                     plan[w]->on_device->places, w, DMI_ON_DEVICE_PLACES);
            *fits = false;
        }
    }
    end(&f);
    return status;
}
