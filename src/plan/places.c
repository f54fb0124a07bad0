/* Places of workspaces: each lives for some phases of a plan, and those that never live at once may share
 * memory. Places of their own are allocations of their own, which commands wait for one by one; so workspaces
 * lie side by side in one only where that saves memory. */
#include "plan/places.h"
#include "base/base.h"

#include <stdlib.h>

enum {
    PLACE_ALIGN = 256, /* as of the pool's blocks */
    APART = 32,        /* places that need 1/32 more than the least are good enough, */
    NEAR = 64,         /* and side by side 1/64 */
    TRIES = 400,
    FRESH = 16,
    LOOKS = 10000000, /* pairs of workspaces that the tries may look at */
    FAR = 12, /* where these orders need more than 1/12 above the least, there are so many times as many */
    MORE = 20
};

static int by_rank(const void *a, const void *b)
{
    const dmi_workspace *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1) : x->number - y->number;
}

static int by_chosen(const void *a, const void *b)
{
    const dmi_workspace *x = a, *y = b;
    return x->chosen != y->chosen ? (x->chosen > y->chosen ? 1 : -1) : x->number - y->number;
}

static int by_number(const void *a, const void *b)
{
    const dmi_workspace *x = a, *y = b;
    return x->number - y->number;
}

/* Both live in some phase: they must lie apart. */
static bool meet(const dmi_workspace *a, const dmi_workspace *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* The most that lives in one phase: no choice of places needs less. false: no memory. */
static bool most_at_once(const dmi_workspace *work, int count, int phases, int64_t *most)
{
    int64_t *change = calloc((size_t)phases + 2, sizeof *change), sum = 0;
    for (int i = 0; change && i < count; i++) {
        if (work[i].first <= work[i].last) {
            change[work[i].first] += rounded(work[i].bytes);
            change[work[i].last + 1] -= rounded(work[i].bytes);
        }
    }
    *most = 0;
    for (int phase = 0; change && phase <= phases; phase++) {
        sum += change[phase];
        *most = DMI_MAX(*most, sum);
    }
    free(change);
    return change != NULL;
}

/* Workspaces that never meet share a place of their own: from the largest to the smallest, each takes the first
 * that is free as long as it lives. bytes: of the places. Returns how many there are; -1: no memory. */
static int choose_places(dmi_workspace *work, int count, int64_t *bytes)
{
    int places = 0;
    int *taken = calloc((size_t)count + 1, sizeof *taken); /* [places] the last workspace that met one there */
    if (!taken) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        work[i].rank = (double)work[i].bytes;
    }
    qsort(work, (size_t)count, sizeof *work, by_rank);
    for (int i = 0; i < count; i++) {
        int place = 0;
        for (int k = 0; k < i; k++) {
            if (meet(&work[k], &work[i])) {
                taken[work[k].place] = i;
            }
        }
        while (place < places && taken[place] == i) {
            place++;
        }
        if (place == places) {
            bytes[places++] = work[i].bytes;
        }
        work[i].place = place;
    }
    free(taken);
    return places;
}

/* Gives the workspaces, in this order, the lowest offsets that are free as long as they live. lowest: room for
 * all, the ones that have been placed by their offsets. Returns the end of the highest, whose number is
 * *highest; of the first that ends above `limit`, then there is no need to go on. */
static int64_t pack_in_order(dmi_workspace *work, int count, int64_t limit, dmi_workspace **lowest,
                             int *highest, int64_t *looks)
{
    int64_t top = 0;
    for (int i = 0; i < count && top <= limit; i++) {
        dmi_workspace *w = &work[i];
        int64_t bytes = rounded(w->bytes), at = 0;
        int k = i;
        *looks += i;
        for (int j = 0; j < i; j++) {
            if (meet(lowest[j], w)) {
                if (lowest[j]->offset - at >= bytes) {
                    break;
                }
                at = DMI_MAX(at, lowest[j]->offset + rounded(lowest[j]->bytes));
            }
        }
        for (; k > 0 && lowest[k - 1]->offset > at; k--) {
            lowest[k] = lowest[k - 1];
        }
        lowest[k] = w;
        w->offset = at;
        *highest = at + bytes > top ? w->number : *highest;
        top = DMI_MAX(top, at + bytes);
    }
    return top;
}

/* Between 0 and 1. The same sequence in every plan. */
static double any(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 40) / (1 << 24);
}

/* The order of a try: by size, by size and lifetime, by sizes that differ from their own by up to 70 %; then
 * orders near the best one so far, in which the workspace that reached highest comes earlier. */
static void rank_all(dmi_workspace *work, int count, int try, int highest, uint64_t *state)
{
    for (int i = 0; i < count; i++) {
        dmi_workspace *w = &work[i];
        double bytes = (double)w->bytes;
        w->rank = try == 0      ? bytes
                  : try == 1    ? bytes * (w->last - w->first + 1)
                  : try < FRESH ? bytes * (0.3 + 0.7 * any(state))
                                : w->chosen_rank * (0.7 + 0.6 * any(state)) * (w->number == highest ? 1.3 : 1);
    }
    qsort(work, (size_t)count, sizeof *work, by_rank);
}

/* Is it worth another try? */
static bool goes_on(int try, int64_t looks, int64_t most, int64_t best)
{
    const int more = best > most + most / FAR ? MORE : 1;
    return best > most + most / NEAR && try < more * TRIES && looks < more * (int64_t)LOOKS;
}

/* Several workspaces may lie in one place side by side. The general problem (dynamic storage allocation) is
 * NP-hard; a number of orders, of which the best is taken, mostly comes within two per cent of `most`, below
 * which nothing can be. Returns the number of places; -1: no memory; 0: no order needs less than `separate`. */
static int pack_places(dmi_workspace *work, int count, int64_t most, int64_t separate, int64_t *bytes)
{
    dmi_workspace **lowest = malloc((size_t)count * sizeof(dmi_workspace *));
    int64_t best = separate, end = 0, looks = 0;
    uint64_t state = 0;
    int places = 0, highest = -1;
    for (int try = 0; lowest && goes_on(try, looks, most, best); try++) {
        rank_all(work, count, highest < 0 ? try % FRESH : try, highest, &state);
        int top_number = 0;
        int64_t top = pack_in_order(work, count, best, lowest, &top_number, &looks);
        for (int i = 0; top <= best && i < count; i++) {
            work[i].chosen = work[i].offset;
            work[i].chosen_rank = work[i].rank;
        }
        highest = top <= best ? top_number : highest;
        best = DMI_MIN(best, top);
    }
    free(lowest);
    if (!lowest || best == separate) {
        for (int i = 0; i < count; i++) {
            work[i].offset = 0;
        }
        return lowest ? 0 : -1;
    }
    /* Where none reaches across an offset, a place ends. */
    qsort(work, (size_t)count, sizeof *work, by_chosen);
    for (int i = 0; i < count; i++) {
        dmi_workspace *w = &work[i];
        if (places == 0 || (w->chosen >= end && w->bytes > 0)) {
            bytes[places++] = 0;
            best = w->chosen; /* where the place begins */
        }
        w->place = places - 1;
        w->offset = w->bytes > 0 ? w->chosen - best : 0;
        end = DMI_MAX(end, w->chosen + rounded(w->bytes));
        bytes[w->place] = DMI_MAX(bytes[w->place], w->offset + w->bytes);
    }
    return places;
}

bool dmi_places_choose(dmi_workspace *work, int count, int phases, int64_t *bytes, int *places, bool *packed)
{
    int64_t most = 0, separate = 0;
    int n = 0;
    *packed = false;
    if (!most_at_once(work, count, phases, &most)) {
        return false;
    }
    *places = choose_places(work, count, bytes);
    if (*places < 0) {
        return false;
    }
    for (int i = 0; i < *places; i++) {
        separate += rounded(bytes[i]);
    }
    if (separate > most + most / APART) {
        n = pack_places(work, count, most, separate, bytes);
        *packed = n > 0;
        *places = n > 0 ? n : *places;
    }
    qsort(work, (size_t)count, sizeof *work, by_number);
    return n >= 0;
}
