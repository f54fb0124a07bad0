/* In which order the calls of a program are planned. Lanes take their steps in the order of the plan: a
 * transfer that nobody needs soon holds up those behind it, and a kernel that waits for a payload those of
 * later calls. So calls may overtake one that has a long transfer, with all that they wait for, if a run is
 * then expected to end earlier. Which calls wait for which others is not changed, so neither is what the
 * program computes.
 *
 * The expectation is a run of a worker on paper, with a link and a compute lane for each channel. It is rough,
 * and need not be more: an order is taken only if it gains much. */
#include "plan/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LONG = 16, MOST_TRIES = 64, MOST_MOVES = 8 };
static const double LONG = 20e-6, /* transfers of at least so much may be overtaken */
    GAIN = 0.05,                  /* of a run, and */
    GAIN_LEAST = 20e-6;

typedef struct turns {
    const dmi_program *p;
    const dmi_call_time *time;
    int *first, *before; /* calls that call i waits for: before[first[i]] to before[first[i + 1] - 1] */
    bool *awaited;       /* [calls] a later call waits for it */
    double *end;         /* [calls] on paper */
    int *order, *tried, *best;
    bool *moves; /* [calls] those that overtake */
} turns;

/* --- who waits for whom --- */

typedef struct touched {
    dmi_area area;
    uint32_t memory;
    int mode;
} touched;

static bool meet(const touched *a, const touched *b)
{
    return a->memory == b->memory && (a->mode | b->mode) & DMI_WRITE && !dmi_area_disjoint(&a->area, &b->area);
}

static int find_accesses(const turns *t, int which, touched *out)
{
    const dmi_call *call = &t->p->call[which];
    int count = 0;
    for (int i = 0; i < call->noperand; i++) {
        const dmi_operand *o = &call->operand[i];
        if (o->mode) {
            touched *a = &out[count++];
            *a = (touched){.memory = t->p->array[o->id].memory, .mode = o->mode, .area = {.ndim = -1}};
            if (!t->time[which].everywhere) {
                dmi_desc_area(&o->desc, &a->area);
            }
        }
    }
    return count;
}

static bool waits(const turns *t, int later, const touched *a, int accesses, int earlier, const touched *b,
                  int others)
{
    if (t->time[later].keeps_order && t->time[earlier].keeps_order) {
        return true;
    }
    for (int i = 0; i < accesses; i++) {
        for (int k = 0; k < others; k++) {
            if (meet(&a[i], &b[k])) {
                return true;
            }
        }
    }
    return false;
}

/* False: no memory. */
static bool find_waits(turns *t)
{
    int n = t->p->calls, room = 0, count = 0;
    touched *all = malloc(((size_t)n + 1) * DMI_MAX_OPERANDS * sizeof *all);
    int *accesses = malloc(((size_t)n + 1) * sizeof *accesses);
    bool ok = all && accesses;
    for (int i = 0; ok && i < n; i++) {
        accesses[i] = find_accesses(t, i, all + (size_t)i * DMI_MAX_OPERANDS);
        t->first[i] = count;
        for (int k = 0; k < i && ok; k++) {
            if (!waits(t, i, all + (size_t)i * DMI_MAX_OPERANDS, accesses[i], k,
                       all + (size_t)k * DMI_MAX_OPERANDS, accesses[k])) {
                continue;
            }
            if (count == room) {
                room = DMI_MAX(2 * room, 64);
                int *grown = realloc(t->before, (size_t)room * sizeof *grown);
                ok = grown != NULL;
                t->before = ok ? grown : t->before;
            }
            if (ok) {
                t->before[count++] = k;
                t->awaited[k] = true;
            }
        }
    }
    t->first[n] = count;
    free(all);
    free(accesses);
    return ok;
}

/* --- a run on paper --- */

static double run(const turns *t, const int *order)
{
    double link[DMI_CHANNELS] = {0}, lane[DMI_CHANNELS] = {0}, last = 0;
    for (int i = 0; i < t->p->calls; i++) {
        int which = order[i];
        const dmi_call_time *time = &t->time[which];
        double at = 0;
        for (int k = t->first[which]; k < t->first[which + 1]; k++) {
            at = DMI_MAX(at, t->end[t->before[k]]);
        }
        double *to = &link[time->channel], *own = &lane[0], *behind = &lane[time->channel];
        if (time->compute > 0 && time->computes_first) {
            at = *own = DMI_MAX(at, *own) + time->compute;
        }
        if (time->link > 0) {
            at = *to = DMI_MAX(at, *to) + time->link;
            if (time->computes_first) { /* its last kernel waits for what comes */
                *behind = DMI_MAX(*behind, at);
            }
        }
        if (time->compute > 0 && !time->computes_first) {
            at = *behind = DMI_MAX(at, *behind) + time->compute;
        }
        t->end[which] = at;
        last = DMI_MAX(last, at);
    }
    return last;
}

/* --- overtaking --- */

/* In `tried`: call number `which` of the order, and what it waits for, before call number `slow`. False: it
 * waits for that one. */
static bool overtake(turns *t, int slow, int which)
{
    int n = 0;
    memset(t->moves, 0, (size_t)t->p->calls * sizeof *t->moves);
    t->moves[t->order[which]] = true;
    for (int i = which; i > slow; i--) {
        int call = t->order[i];
        for (int k = t->first[call]; t->moves[call] && k < t->first[call + 1]; k++) {
            t->moves[t->before[k]] = true; /* those in front of `slow` stay where they are */
        }
    }
    if (t->moves[t->order[slow]]) {
        return false;
    }
    for (int i = 0; i < slow; i++) {
        t->tried[n++] = t->order[i];
    }
    for (int moved = 1; moved >= 0; moved--) {
        for (int i = slow; i < t->p->calls; i++) {
            if (t->moves[t->order[i]] == moved) {
                t->tried[n++] = t->order[i];
            }
        }
    }
    return true;
}

/* The best way to overtake the call that is number `slow` now; true: it is taken. */
static bool improve(turns *t, int slow, double *now)
{
    int n = t->p->calls, tries = 0;
    double least = *now;
    /* the last calls first: what they wait for comes with them */
    for (int i = n - 1; i > slow && tries < MOST_TRIES; i--) {
        const dmi_call_time *time = &t->time[t->order[i]];
        if ((time->link > 0 || !t->awaited[t->order[i]]) && overtake(t, slow, i)) {
            double end = run(t, t->tried);
            tries++;
            if (end < least * (1 - 1e-9)) {
                least = end;
                memcpy(t->best, t->tried, (size_t)n * sizeof *t->best);
            }
        }
    }
    if (least < *now) {
        *now = least;
        memcpy(t->order, t->best, (size_t)n * sizeof *t->order);
        return true;
    }
    return false;
}

static int place_of(const turns *t, int call)
{
    int at = 0;
    while (t->order[at] != call) {
        at++;
    }
    return at;
}

/* The longest transfers first. Large reductions have lanes of their own and hold up nobody but one another. */
static int find_long(const turns *t, int *out)
{
    int count = 0;
    for (int i = 0; i < t->p->calls; i++) {
        int at = count;
        while (at > 0 && t->time[out[at - 1]].link < t->time[i].link) {
            at--;
        }
        if (t->time[i].link >= LONG && t->time[i].channel == 0 && at < MOST_LONG) {
            count = DMI_MIN(count + 1, MOST_LONG);
            memmove(out + at + 1, out + at, (size_t)(count - 1 - at) * sizeof *out);
            out[at] = i;
        }
    }
    return count;
}

static void choose(turns *t, dmi_program *p, double *recorded, double *best)
{
    int slow[MOST_LONG + 1], count = find_long(t, slow);
    double now = *recorded = *best = run(t, t->order);
    for (int i = 0; i < count; i++) {
        for (int moves = 0; moves < MOST_MOVES && improve(t, place_of(t, slow[i]), &now); moves++) {
        }
    }
    if (*recorded - now >= DMI_MAX(GAIN * *recorded, GAIN_LEAST)) {
        *best = now;
        for (int i = 0; i < p->calls; i++) {
            p->call[t->order[i]].turn = (uint16_t)i;
        }
    }
}

bool dmi_program_turns(dmi_program *p, const dmi_call_time *time, double *recorded, double *best)
{
    size_t n = (size_t)p->calls + 1;
    *recorded = *best = 0;
    assert(p->calls <= DMI_TURNS_MOST);
    turns t = {.p = p,
               .time = time,
               .first = malloc((n + 1) * sizeof *t.first),
               .awaited = calloc(n, sizeof *t.awaited),
               .end = malloc(n * sizeof *t.end),
               .order = malloc(3 * n * sizeof *t.order),
               .moves = malloc(n * sizeof *t.moves)};
    bool ok = t.first && t.awaited && t.end && t.order && t.moves;
    if (ok) {
        t.tried = t.order + n;
        t.best = t.tried + n;
        for (int i = 0; i < p->calls; i++) {
            t.order[i] = i;
        }
        ok = find_waits(&t);
    }
    if (ok) {
        choose(&t, p, recorded, best);
    }
    free(t.first);
    free(t.before);
    free(t.awaited);
    free(t.end);
    free(t.order);
    free(t.moves);
    return ok;
}

void dmi_program_order(const dmi_program *p, int *order)
{
    bool right = true;
    for (int i = 0; i < p->calls; i++) {
        order[i] = -1;
    }
    for (int i = 0; i < p->calls && right; i++) {
        int turn = p->call[i].turn;
        right = turn < p->calls && order[turn] < 0;
        if (right) {
            order[turn] = i;
        }
    }
    for (int i = 0; i < p->calls && !right; i++) { /* all turns are 0 */
        order[i] = i;
    }
}
