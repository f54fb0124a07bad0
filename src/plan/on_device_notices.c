/* Notices: payloads without bytes, in programs that run on their devices alone.
 *
 * A payload takes memory of its receiver from where its sender knows that there is room (on_device_lives.c).
 * Who hears of a receiver seldom knows late, and then payloads lie there long before they are taken. Where they
 * raise the most that lives at once, the receiver gives notice: it pushes nothing but a flag, in an exchange
 * that it has anyway, and the sender takes that in one that it has before its push. So a notice costs no step.
 * It is given in no later call of the program than it is taken in, so the sender waits for nothing that is
 * ahead of it.
 *
 * It cannot block. A worker waits for notices as for payloads, and the exchange that gives one must not, over
 * however many workers, wait for the one that takes it: that is what `known` says. */
#include "plan/on_device_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    PART = 32, /* what payloads add may be this part of the workspaces, */
    LEAST_BYTES = 16 << 10
};

typedef struct notice {
    int from, to;     /* workers */
    int given, taken; /* in which exchanges */
} notice;

static bool has_room(const dmi_exchange *x)
{
    return x->pushes + x->arrivals < DMI_EXCHANGE_MOST;
}

static int call_of(const dmi_finder *f, int worker, int exchange)
{
    return f->plan[worker]->step[f->of[worker].step[exchange]].call;
}

/* Where the sender could take a notice that exchange `given` gives, before a push in exchange `push`; 0:
 * nowhere. */
static int find_taken(const dmi_finder *f, int sender, int receiver, int given, int push)
{
    const int known = dmi_finder_known(f, receiver, given - 1)[sender];
    int taken = push - 1;
    while (taken > known && !has_room(f->of[sender].exchange[taken])) {
        taken--;
    }
    return taken > known && call_of(f, receiver, given) <= call_of(f, sender, taken) ? taken : 0;
}

/* A notice that tells the sender of a payload that step `at` of its receiver's order is done; false: there is
 * none. */
static bool find_notice(const dmi_finder *f, int sender, int receiver, const dmi_contents *c,
                        const dmi_payload *p, int at, notice *out)
{
    const dmi_ordered *r = &f->of[receiver];
    for (int given = DMI_MAX(2, p->known + 2); given <= p->taken; given++) {
        const bool may =
            dmi_contents_order(f, receiver, c, r->step[given]) > at && has_room(r->exchange[given]);
        const int taken = may ? find_taken(f, sender, receiver, given, p->pushed) : 0;
        if (taken > 0) {
            *out = (notice){.from = receiver, .to = sender, .given = given, .taken = taken};
            return true;
        }
    }
    return false;
}

/* As the last one of its pushes or of its arrivals. False: no memory. */
static bool add_part(const dmi_finder *f, int worker, int exchange, bool push, dmi_exchange_part added)
{
    dmi_exchange *x = (dmi_exchange *)(uintptr_t)f->of[worker].exchange[exchange];
    dmi_step *step = &f->plan[worker]->step[f->of[worker].step[exchange]];
    dmi_arena *arena = &f->plan[worker]->arena;
    const int count = x->pushes + x->arrivals, at = push ? x->pushes : count;
    dmi_exchange_part *part = dmi_arena_alloc(arena, ((size_t)count + 1) * sizeof *part);
    dmi_ref *ref = dmi_arena_alloc(arena, ((size_t)count + 1) * sizeof *ref);
    if (!part || !ref) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        part[i + (i >= at)] = x->part[i];
        ref[i + (i >= at)] = step->ref[i];
    }
    part[at] = added;
    ref[at] = (dmi_ref){.kind = DMI_REF_NONE};
    x->part = part;
    x->pushes += push;
    x->arrivals += !push;
    step->ref = ref;
    step->nref++;
    return true;
}

static bool add_notice(const dmi_finder *f, const notice *n)
{
    const uint32_t number = f->plan[n->from]->on_device->to[n->to]++;
    f->plan[n->to]->on_device->from[n->from]++;
    return add_part(f, n->from, n->given, true, (dmi_exchange_part){.peer = n->to, .number = number}) &&
           add_part(f, n->to, n->taken, false, (dmi_exchange_part){.peer = n->from, .number = number});
}

/* What lives in a step because of payloads that come early: those that land in a workspace, or one. */
typedef struct early {
    int item, after; /* where they should come: behind that step of the order */
    int64_t bytes;
} early;

static int by_bytes(const void *a, const void *b)
{
    const early *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->item - y->item;
}

static bool lives_at(const dmi_workspace *w, int at)
{
    return w->first <= at && at <= w->last;
}

/* An item lives for these payloads in step `at`: the notice of the first, if there would be notices of all. */
static bool find_notices(const dmi_finder *f, int to, const dmi_contents *c, const early *e, notice *out)
{
    int count = 0, number = 0;
    notice other;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++, number++) {
            const dmi_payload *p = &f->payload[from][to][i];
            const bool its = e->item < c->payloads
                                 ? number == e->item
                                 : p->arrival->lands && (int)p->wanted->number == e->item - c->payloads;
            if (its && c->item[number].first <= e->after) {
                if (!find_notice(f, from, to, c, p, e->after, count++ ? &other : out)) {
                    return false;
                }
            }
        }
    }
    return count > 0;
}

/* Would less live in step `at` if the payload came later? Either it does not live there then, nor what it lands
 * in, or it lands then, and does not lie beside that. */
static bool is_early(const dmi_finder *f, int to, const dmi_contents *c, const dmi_payload *p, int number,
                     int at, early *out)
{
    const int end = dmi_contents_order(f, to, c, f->of[to].step[p->taken]), unit = (int)p->wanted->number;
    const int item = p->arrival->lands ? c->payloads + unit : number;
    *out = (early){.item = item, .after = at, .bytes = c->item[item].bytes};
    if (!lives_at(&c->item[number], at) || out->bytes == 0) {
        return false;
    }
    if (end == at && !p->arrival->lands) {
        out->after = p->used < 0 ? at : dmi_contents_order(f, to, c, p->used);
        return dmi_may_land(f, to, p) && out->after < at;
    }
    return end > at && (!p->arrival->lands || dmi_contents_order(f, to, c, c->first[unit]) > at);
}

static int find_early(const dmi_finder *f, int to, const dmi_contents *c, int at, early *out)
{
    int count = 0, number = 0;
    for (int from = 0; from < f->workers; from++) {
        for (uint32_t i = 0; i < f->plan[to]->on_device->from[from]; i++, number++) {
            count += is_early(f, to, c, &f->payload[from][to][i], number, at, &out[count]);
        }
    }
    qsort(out, (size_t)count, sizeof *out, by_bytes);
    return count;
}

/* A notice for what adds most to what lives at once in a worker's memory. *added: there is one. */
static dm_status improve(const dmi_finder *f, int to, dmi_contents *c, bool *added)
{
    const dmi_plan *plan = f->plan[to];
    size_t payloads = 1;
    int at = 0;
    for (int from = 0; from < f->workers; from++) {
        payloads += plan->on_device->from[from];
    }
    early *item = malloc(payloads * sizeof *item);
    bool memory = item != NULL;
    notice found;
    int64_t beside = memory ? dmi_contents_all(f, to, c, &at) - plan->workspace : 0;
    if (beside > DMI_MAX(plan->workspace / PART, LEAST_BYTES)) {
        const int items = find_early(f, to, c, at, item);
        for (int i = 0; i < items && !*added; i++) {
            *added = find_notices(f, to, c, &item[i], &found);
        }
        memory = !*added || add_notice(f, &found);
    }
    free(item);
    return memory ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
}

dm_status dmi_on_device_notice(const dmi_finder *f, int to, bool *added)
{
    dmi_contents c = {0};
    *added = false;
    dm_status status = dmi_contents_begin(f, to, &c)
                           ? improve(f, to, &c, added)
                           : dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
    dmi_contents_end(&c);
    return status;
}
