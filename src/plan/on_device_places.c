/* Places of payloads of programs that run on their devices alone (on_device.h).
 *
 * A place may be used again when its payload has been taken, and the sender of the next one must know that.
 * What a worker knows follows from the exchanges. It takes them one after the other, and one is complete when
 * its arrivals have been taken. A push goes out when the exchanges before it are complete, and says so to whom
 * it comes to, and all that its sender knew of others by then. So in the receiver's order a payload lives from
 * the last exchange that its sender knows to be complete, to the one that takes it: those that do not live at
 * once may lie in one place, as workspaces do (places.h).
 *
 * This holds from run to run, too: who knows of an exchange of this run knows that the run before has ended
 * there. Of payloads whose sender knows of none the two places are for even and odd runs: it waits for the end
 * of the run before the last (exec/gpu/exchange.c). They share with no others. */
#include "plan/on_device.h"
#include "plan/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A worker's exchanges, from 1 on; known: [exchanges + 1][workers] how many exchanges of each worker are
 * complete when this one is. */
typedef struct ordered {
    const dmi_exchange **exchange;
    int count, complete;
    int *known;
} ordered;

typedef struct payload {
    dmi_exchange_part *push, *arrival;
    int pushed, taken; /* in which exchanges */
    int known; /* exchanges of the receiver that are complete when it is pushed; 0: none is known to be */
    bool shares;
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
    for (int i = 0; o->exchange && i < plan->nstep; i++) {
        const dmi_exchange *x = plan->step[i].desc;
        if (plan->step[i].kind == DMI_STEP_EXCHANGE && x->part) {
            o->exchange[++o->count] = x;
        }
    }
    o->known = calloc(((size_t)o->count + 1) * (size_t)f->workers, sizeof *o->known);
    for (int i = 1; o->exchange && i <= o->count; i++) {
        const dmi_exchange *x = o->exchange[i];
        for (int k = 0; k < x->pushes + x->arrivals; k++) {
            const bool push = k < x->pushes;
            payload *p = payload_of(f, me, &x->part[k], push);
            if (p && push) {
                p->push = &x->part[k];
                p->pushed = i;
            } else if (p) {
                p->arrival = &x->part[k];
                p->taken = i;
            }
        }
    }
    return o->exchange && o->known;
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
                p->shares = p->known > 0;
            }
        }
    }
    return all;
}

static void set_place(const payload *p, int64_t place, int64_t half)
{
    p->push->place = p->arrival->place = place;
    p->push->half = p->arrival->half = half;
}

/* The places at one receiver: those that are there twice, then the shared ones. */
static bool give_places(finder *f, int to)
{
    dmi_on_device *d = f->plan[to]->on_device;
    int64_t half = 0, begin = 0;
    int all = 0, count = 0, places = 0, at = 0;
    bool packed;
    for (int from = 0; from < f->workers; from++) {
        all += (int)d->from[from];
    }
    dmi_workspace *work = calloc((size_t)all + 1, sizeof *work);
    int64_t *bytes = calloc((size_t)all + 1, sizeof *bytes);
    for (int from = 0; from < f->workers && work; from++) {
        for (uint32_t i = 0; i < d->from[from]; i++) {
            const payload *p = &f->payload[from][to][i];
            const int64_t size = p->push->width * p->push->height;
            if (p->shares) {
                work[count] =
                    (dmi_workspace){.number = count, .first = p->known + 1, .last = p->taken, .bytes = size};
                count++;
            } else {
                half += aligned(size);
            }
        }
    }
    if (!work || !bytes || !dmi_places_choose(work, count, f->of[to].count + 1, bytes, &places, &packed)) {
        free(work);
        free(bytes);
        return false;
    }
    begin = 2 * half;
    for (int i = 0; i < places; i++) { /* from sizes to where they begin */
        const int64_t size = aligned(bytes[i]);
        bytes[i] = begin;
        begin += size;
    }
    d->places = begin;
    begin = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < d->from[from]; i++) {
            const payload *p = &f->payload[from][to][i];
            if (p->shares) {
                set_place(p, bytes[work[at].place] + work[at].offset, 0);
                at++;
            } else {
                set_place(p, begin, half);
                begin += aligned(p->push->width * p->push->height);
            }
        }
    }
    free(work);
    free(bytes);
    return true;
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
        free(f->of[w].known);
        for (int to = 0; to < f->workers; to++) {
            free(f->payload[w][to]);
        }
    }
}

dm_status dmi_on_device_places(dmi_plan *const *plan, int workers, bool *fits, char why[DMI_ON_DEVICE_WHY])
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
        if (!give_places(&f, w)) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
        } else if (plan[w]->on_device->places > DMI_ON_DEVICE_PLACES && *fits) {
            snprintf(why, DMI_ON_DEVICE_WHY, "payloads take %" PRId64 " bytes of worker %d, more than %d",
                     plan[w]->on_device->places, w, DMI_ON_DEVICE_PLACES);
            *fits = false;
        }
    }
    end(&f);
    return status;
}
