/* Places of payloads of programs that run on their devices alone (on_device.h). What does not live at once may
 * lie in one place, as workspaces do (places.h), and so may a payload and a workspace. */
#include "plan/on_device_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEXT_TO_NOTHING = 32 }; /* a part of the workspace */

static int64_t aligned(int64_t bytes)
{
    return (bytes + DMI_PLACE_ALIGN - 1) / DMI_PLACE_ALIGN * DMI_PLACE_ALIGN;
}

/* The first push to each peer of which nothing is known. A notice needs no place. */
static void set_gates(const dmi_finder *f, int me)
{
    bool reached[DMI_ON_DEVICE_WORKERS] = {false};
    for (int i = 1; i <= f->of[me].count; i++) {
        const dmi_exchange *x = f->of[me].exchange[i];
        for (int k = 0; k < x->pushes; k++) {
            dmi_exchange_part *part = &x->part[k];
            if (part->width > 0) {
                part->first = !reached[part->peer] && dmi_finder_payload(f, me, part, true)->known == 0;
                reached[part->peer] = true;
            }
        }
    }
}

/* Chooses places for the first `count` of them. Returns the bytes of all; c->bytes: where each place begins. -1: no
 * memory. */
static int64_t choose(const dmi_finder *f, int worker, dmi_contents *c, int count)
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

static int64_t place_of(const dmi_contents *c, int item)
{
    return c->bytes[c->item[item].place] + c->item[item].offset;
}

static void set_places(const dmi_finder *f, int to, const dmi_contents *c)
{
    int at = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            const dmi_payload *p = &f->payload[from][to][i];
            p->arrival->place = p->arrival->lands ? place_of(c, c->payloads + (int)p->wanted->number) +
                                                        dmi_wanted_at(f->plan[to]->on_device, p)
                                                  : place_of(c, at);
            p->push->place = p->arrival->place;
            at++;
        }
    }
}

/* All workspaces are in one memory, with the places. */
static void set_together(dmi_plan *plan, const dmi_contents *c, int64_t bytes)
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

static void keep_apart(const dmi_finder *f, int to)
{
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            f->payload[from][to][i].arrival->lands = false;
        }
    }
}

/* The places at one receiver: by themselves where they take next to nothing beside the workspace, which is then
 * given back between the runs. */
static bool give_places(dmi_finder *f, int to, bool together)
{
    dmi_plan *plan = f->plan[to];
    dmi_on_device *d = plan->on_device;
    dmi_contents c = {.turned = true};
    bool memory = dmi_contents_begin(f, to, &c);
    keep_apart(f, to);
    if (memory) {
        dmi_contents_payloads(f, to, &c);
        d->places = choose(f, to, &c, c.payloads);
        memory = d->places >= 0;
    }
    if (memory) {
        set_places(f, to, &c);
    }
    if (memory && together && plan->nwork > 0 && d->places > plan->workspace / NEXT_TO_NOTHING) {
        int at;
        (void)dmi_contents_all(f, to, &c, &at);
        const int64_t all = choose(f, to, &c, c.payloads + c.units);
        memory = all >= 0;
        if (memory && all <= DMI_ON_DEVICE_TOGETHER && all < d->places + plan->workspace) {
            set_places(f, to, &c);
            set_together(plan, &c, all);
            d->places = all;
        } else {
            keep_apart(f, to);
        }
    }
    dmi_contents_end(&c);
    return memory;
}

static dm_status give_notices(dmi_finder *f, int to)
{
    bool added = true;
    dm_status status = DM_OK;
    while (added && status == DM_OK) {
        status = dmi_on_device_notice(f, to, &added);
        if (added && status == DM_OK) {
            dmi_finder_end(f);
            status = dmi_finder_begin(f);
        }
    }
    return status;
}

dm_status dmi_on_device_places(dmi_plan *const *plan, int workers, bool together, bool *fits,
                               char why[DMI_ON_DEVICE_WHY])
{
    dmi_finder f = {.workers = workers, .plan = plan};
    dm_status status = dmi_finder_begin(&f);
    *fits = true;
    for (int w = 0; w < workers && together && status == DM_OK; w++) {
        status = give_notices(&f, w);
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
    dmi_finder_end(&f);
    return status;
}
