/* When payloads and workspaces live, in programs that run on their devices alone (on_device.h).
 *
 * A place may be used again when its payload has been taken, and the sender of the next one must know that. So
 * in the receiver's order a payload lives from the exchange whose push said so last, to the one that takes it.
 * Where its sender knows of none in this run, it waits until the receiver has ended the last run, and the
 * payload lives from there on (exec/gpu/exchange.c). Who knows of an exchange of this run knows that the run
 * before has ended there, so what holds in a run holds from run to run. A workspace lives from the first step
 * that uses it to the last. Where nothing uses it between where a payload for it may come and where that is
 * taken, the payload *lands*: its place is that in the workspace, which then lives from where the payload does.
 */
#include "plan/on_device_parts.h"

#include <stdlib.h>
#include <string.h>

/* The step of a worker's last exchange; -1: it has none. */
static int last_exchange(const dmi_finder *f, int worker)
{
    const dmi_ordered *o = &f->of[worker];
    return o->count > 0 ? o->step[o->count] : -1;
}

/* Steps in an order that begins behind the last exchange of the run before, from where on payloads may come of
 * whose receiver nothing is known; then a workspace that is used on both sides of it lives all the time. Or in
 * that of the plan; then such payloads live all the time. */
int dmi_contents_order(const dmi_finder *f, int worker, const dmi_contents *c, int step)
{
    const int begin = c->turned ? last_exchange(f, worker) + 1 : 0;
    return step < begin ? step + f->plan[worker]->nstep - begin : step - begin;
}

/* From where on a payload may come: the sender knows of an exchange by a push of the next one, for which the
 * receiver has done all before. */
static int begins(const dmi_finder *f, int to, const dmi_contents *c, const dmi_payload *p)
{
    return p->known > 0 ? dmi_contents_order(f, to, c, f->of[to].step[p->known + 1]) : 0;
}

static int ends(const dmi_finder *f, int to, const dmi_contents *c, const dmi_payload *p)
{
    return p->known > 0 || c->turned ? dmi_contents_order(f, to, c, f->of[to].step[p->taken])
                                     : f->plan[to]->nstep;
}

void dmi_contents_payloads(const dmi_finder *f, int to, dmi_contents *c)
{
    c->payloads = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++) {
            const dmi_payload *p = &f->payload[from][to][i];
            c->item[c->payloads] = (dmi_workspace){.number = c->payloads,
                                                   .first = begins(f, to, c, p),
                                                   .last = ends(f, to, c, p),
                                                   .bytes = p->push->width * p->push->height};
            c->payloads++;
        }
    }
}

static void add_units(const dmi_finder *f, int worker, dmi_contents *c)
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
        work[i].first = around ? 0 : dmi_contents_order(f, worker, c, work[i].first);
        work[i].last = around ? plan->nstep : dmi_contents_order(f, worker, c, work[i].last);
    }
}

/* Bytes from the beginning of a workspace to where a payload is wanted. */
int64_t dmi_wanted_at(const dmi_on_device *d, const dmi_payload *p)
{
    return p->wanted->offset - d->unit[p->wanted->number].from + p->arrival->offset;
}

bool dmi_may_land(const dmi_finder *f, int to, const dmi_payload *p)
{
    const dmi_exchange_part *a = p->arrival;
    return p->wanted->kind == DMI_REF_WORK && (a->height == 1 || a->pitch == a->width) &&
           dmi_wanted_at(f->plan[to]->on_device, p) % DMI_LANDING_ALIGN == 0;
}

/* Does it land? Nobody uses the workspace from where the payload may come to where it is taken. What is used
 * behind the last exchange of a run is not free yet for what the next one brings then. */
static bool lands(const dmi_finder *f, int to, const dmi_payload *p, const dmi_contents *c)
{
    return dmi_may_land(f, to, p) && (p->known > 0 ? p->used < f->of[to].step[p->known + 1]
                                                   : p->used < 0 && c->turned && !c->tail[p->wanted->number]);
}

static void let_land(const dmi_finder *f, int to, dmi_contents *c)
{
    int at = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++, at++) {
            const dmi_payload *p = &f->payload[from][to][i];
            p->arrival->lands = lands(f, to, p, c);
            if (p->arrival->lands) {
                dmi_workspace *w = &c->item[c->payloads + (int)p->wanted->number];
                w->first = DMI_MIN(w->first, begins(f, to, c, p));
                c->item[at].bytes = 0;
            }
        }
    }
}

static void find_all(const dmi_finder *f, int worker, bool turned, dmi_contents *c)
{
    c->turned = turned;
    dmi_contents_payloads(f, worker, c);
    add_units(f, worker, c);
    let_land(f, worker, c);
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + DMI_PLACE_ALIGN - 1) / DMI_PLACE_ALIGN * DMI_PLACE_ALIGN;
}

/* The most that lives at once; *at: in which step of the order. */
static int64_t most_at_once(const dmi_contents *c, int steps, int *at)
{
    int64_t sum = 0, most = 0;
    memset(c->change, 0, ((size_t)steps + 2) * sizeof *c->change);
    for (int i = 0; i < c->payloads + c->units; i++) {
        if (c->item[i].first <= c->item[i].last) {
            c->change[c->item[i].first] += rounded(c->item[i].bytes);
            c->change[c->item[i].last + 1] -= rounded(c->item[i].bytes);
        }
    }
    for (int step = 0; step <= steps; step++) {
        sum += c->change[step];
        if (sum > most) {
            most = sum;
            *at = step;
        }
    }
    return most;
}

int64_t dmi_contents_all(const dmi_finder *f, int worker, dmi_contents *c, int *at)
{
    int64_t most[2];
    int in[2] = {0, 0};
    for (int turned = 0; turned < 2; turned++) {
        find_all(f, worker, turned, c);
        most[turned] = most_at_once(c, f->plan[worker]->nstep, &in[turned]);
    }
    const int better = most[1] <= most[0];
    if (!better) {
        find_all(f, worker, false, c);
    }
    *at = in[better];
    return most[better];
}

bool dmi_contents_begin(const dmi_finder *f, int worker, dmi_contents *c)
{
    const dmi_on_device *d = f->plan[worker]->on_device;
    size_t room = d->units + (size_t)1;
    for (int from = 0; from < f->workers; from++) {
        room += d->from[from];
    }
    c->item = calloc(room, sizeof *c->item);
    c->bytes = calloc(room, sizeof *c->bytes);
    c->first = calloc(room, sizeof *c->first);
    c->tail = calloc(room, sizeof *c->tail);
    c->change = malloc(((size_t)f->plan[worker]->nstep + 2) * sizeof *c->change);
    return c->item && c->bytes && c->first && c->tail && c->change;
}

void dmi_contents_end(dmi_contents *c)
{
    free(c->first);
    free(c->tail);
    free(c->change);
    free(c->item);
    free(c->bytes);
}
