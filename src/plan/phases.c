/* Ops made of several planners. Each plans in a phase of its own. Within a phase its marks say who waits for
 * whom. Between phases the waits follow from what steps read and write, as between commands. Workspaces that
 * are never used in the same phases share memory.
 *
 * This cannot block: a step waits for steps of earlier phases of the same worker. What those wait for, at this
 * worker or another, belongs to the same phase or to an earlier one. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

void dmi_build_phase(dmi_builder *b)
{
    if (b->phases == b->phase_room) {
        int room = b->phase_room ? 2 * b->phase_room : 8;
        int *grown = realloc(b->phase_end, (size_t)room * sizeof *grown);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->phase_end = grown;
        b->phase_room = room;
    }
    b->phase_end[b->phases++] = b->plan->nstep;
    memset(b->kernel_work, 0, sizeof b->kernel_work); /* the next ones' lives as long as their phase */
}

enum {
    PLACE_ALIGN = 256, /* as of the pool's blocks */
    NEAR = 32,         /* places that need 1/32 more than the least are good enough */
    TRIES = 100,
    FRESH = 16,
    WORK = 20000000 /* pairs of workspaces that the tries may look at */
};

static int end_of_phase(const dmi_builder *b, int phase)
{
    return phase < b->phases ? b->phase_end[phase] : b->plan->nstep;
}

/* A workspace: the first and the last phase that uses it, and where it gets its memory. */
typedef struct workspace {
    int number, first, last, place;
    int64_t bytes, offset; /* in its place */
    double rank;           /* those of the highest are placed first */
    int64_t chosen;        /* offset and rank of the best try */
    double chosen_rank;
} workspace;

static void find_lifetimes(const dmi_builder *b, workspace *work)
{
    const dmi_plan *plan = b->plan;
    for (int w = 0; w < plan->nwork; w++) {
        work[w] = (workspace){.number = w, .first = b->phases, .bytes = plan->work_bytes[w]};
    }
    for (int phase = 0, i = 0; phase <= b->phases; phase++) {
        for (; i < end_of_phase(b, phase); i++) {
            for (int r = 0; r < plan->step[i].nref; r++) {
                const dmi_ref *ref = &plan->step[i].ref[r];
                if (ref->kind == DMI_REF_WORK) {
                    work[ref->index].first = DMI_MIN(work[ref->index].first, phase);
                    work[ref->index].last = phase;
                }
            }
        }
    }
}

static int by_rank(const void *a, const void *b)
{
    const workspace *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1) : x->number - y->number;
}

static int by_chosen(const void *a, const void *b)
{
    const workspace *x = a, *y = b;
    return x->chosen != y->chosen ? (x->chosen > y->chosen ? 1 : -1) : x->number - y->number;
}

static int by_number(const void *a, const void *b)
{
    const workspace *x = a, *y = b;
    return x->number - y->number;
}

/* In two phases at least one of which uses both, they must lie apart. */
static bool meet(const workspace *a, const workspace *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* The most that lives in one phase: no choice of places needs less. false: no memory. */
static bool most_at_once(const dmi_builder *b, const workspace *work, int count, int64_t *most)
{
    int64_t *change = calloc((size_t)b->phases + 2, sizeof *change), sum = 0;
    for (int i = 0; change && i < count; i++) {
        if (work[i].first <= work[i].last) {
            change[work[i].first] += rounded(work[i].bytes);
            change[work[i].last + 1] -= rounded(work[i].bytes);
        }
    }
    *most = 0;
    for (int phase = 0; change && phase <= b->phases; phase++) {
        sum += change[phase];
        *most = DMI_MAX(*most, sum);
    }
    free(change);
    return change != NULL;
}

static bool is_free(const workspace *work, int count, int place, const workspace *w)
{
    for (int i = 0; i < count; i++) {
        if (work[i].place == place && meet(&work[i], w)) {
            return false;
        }
    }
    return true;
}

/* Workspaces that never meet share a place of their own: from the largest to the smallest, each takes the first
 * that is free as long as it lives. bytes: of the places. Returns how many there are. */
static int choose_places(workspace *work, int count, int64_t *bytes)
{
    int places = 0;
    for (int i = 0; i < count; i++) {
        work[i].rank = (double)work[i].bytes;
    }
    qsort(work, (size_t)count, sizeof *work, by_rank);
    for (int i = 0; i < count; i++) {
        int place = 0;
        while (place < places && !is_free(work, i, place, &work[i])) {
            place++;
        }
        if (place == places) {
            bytes[places++] = work[i].bytes;
        }
        work[i].place = place;
    }
    return places;
}

/* Gives the workspaces, in this order, the lowest offsets that are free as long as they live. lowest: room for
 * all, the ones that have been placed by their offsets. Returns the end of the highest, whose number is
 * *highest. */
static int64_t pack_in_order(workspace *work, int count, workspace **lowest, int *highest)
{
    int64_t top = 0;
    for (int i = 0; i < count; i++) {
        workspace *w = &work[i];
        int64_t bytes = rounded(w->bytes), at = 0;
        int k = i;
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
static void rank_all(workspace *work, int count, int try, int highest, uint64_t *state)
{
    for (int i = 0; i < count; i++) {
        workspace *w = &work[i];
        double bytes = (double)w->bytes;
        w->rank = try == 0      ? bytes
                  : try == 1    ? bytes * (w->last - w->first + 1)
                  : try < FRESH ? bytes * (0.3 + 0.7 * any(state))
                                : w->chosen_rank * (0.7 + 0.6 * any(state)) * (w->number == highest ? 1.3 : 1);
    }
    qsort(work, (size_t)count, sizeof *work, by_rank);
}

/* Several workspaces may lie in one place side by side. The general problem (dynamic storage allocation) is
 * NP-hard; a number of orders, of which the best is taken, mostly comes within some per cent of `most`, below
 * which nothing can be. Returns the number of places; -1: no memory; 0: no order needs less than `separate`. */
static int pack_places(workspace *work, int count, int64_t most, int64_t separate, int64_t *bytes)
{
    workspace **lowest = malloc((size_t)count * sizeof(workspace *));
    int64_t best = separate, end = 0;
    uint64_t state = 0;
    int places = 0, highest = -1, tries = DMI_MAX(1, DMI_MIN(TRIES, WORK / count / count));
    for (int try = 0; lowest && try < tries && best > most + most / NEAR; try++) {
        rank_all(work, count, highest < 0 ? try % FRESH : try, highest, &state);
        int top_number = 0;
        int64_t top = pack_in_order(work, count, lowest, &top_number);
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
        workspace *w = &work[i];
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

/* Which workspaces share memory. Places of their own are allocations of their own, which commands wait for one
 * by one; so workspaces share one only where that saves memory. work: [plan->nwork], by number. *packed: they
 * share places. */
static void share_workspace(dmi_builder *b, workspace *work, int64_t *bytes, int *places, bool *packed)
{
    int count = b->plan->nwork;
    int64_t most = 0, separate = 0;
    find_lifetimes(b, work);
    if (!most_at_once(b, work, count, &most)) {
        b->failed = true;
        return;
    }
    *places = choose_places(work, count, bytes);
    for (int i = 0; i < *places; i++) {
        separate += rounded(bytes[i]);
    }
    if (separate > most + most / NEAR) {
        int n = pack_places(work, count, most, separate, bytes);
        b->failed = b->failed || n < 0;
        *packed = n > 0;
        *places = n > 0 ? n : *places;
    }
    qsort(work, (size_t)count, sizeof *work, by_number);
}

/* From workspaces to places. */
static void rename_work(dmi_plan *plan, const workspace *work, const int64_t *bytes, int places)
{
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK) {
                const workspace *w = &work[ref->index];
                ref->index = (uint16_t)w->place;
                ref->offset += w->offset;
                ref->from = w->offset;
                ref->to = w->offset + w->bytes;
            }
        }
    }
    memcpy(plan->work_bytes, bytes, (size_t)places * sizeof *bytes);
    plan->nwork = places;
}

/* Operands that may be the same array: where one op may be given it twice, their elements lie alike. */
static void find_same(const dmi_call *call, int *same)
{
    for (int i = 0; i < call->noperand; i++) {
        const dmi_desc *x = &call->operand[i].desc;
        same[i] = i;
        for (int k = i - 1; k >= 0; k--) {
            const dmi_desc *y = &call->operand[k].desc;
            bool alike =
                x->layout == y->layout || (x->layout && y->layout && dmi_layout_equal(x->layout, y->layout));
            same[i] = alike && x->dtype == y->dtype ? k : same[i];
        }
        same[i] = same[i] == i ? i : same[same[i]];
    }
}

/* The accesses before the present phase, and of it. Memories: of the operands, then the places of workspaces;
 * uses: by each operand and workspace. */
typedef struct accesses {
    const int *same;
    const dmi_area *area;
    const bool *whole; /* of operands: see dmi_plan */
    const workspace *work;
    dmi_area *work_area; /* where in its place a workspace is; NULL: all of it */
    int noperand, count; /* with the workspaces */
    dmi_hazards *last;
    dmi_hazard *earlier, *use;
    bool *known; /* is `earlier` that of this phase? */
} accesses;

static const dmi_area everything = {.ndim = -1};

static const dmi_area *area_of(const accesses *a, int i)
{
    if (i < a->noperand) {
        return a->whole && a->whole[i] ? &everything : &a->area[i];
    }
    return a->work_area ? &a->work_area[i - a->noperand] : &everything;
}

static int memory_of(const accesses *a, int i)
{
    return i < a->noperand ? a->same[i] : a->noperand + a->work[i - a->noperand].place;
}

static void add_waits(accesses *a, dmi_step *step)
{
    dmi_stamp wait = {{0}};
    for (int r = 0; r < step->nref; r++) {
        const dmi_ref *ref = &step->ref[r];
        int i = ref->kind == DMI_REF_OPERAND ? ref->index
                : ref->kind == DMI_REF_WORK  ? a->noperand + ref->index
                                             : -1;
        if (i >= 0) {
            if (!a->known[i]) {
                dmi_hazards_before(&a->last[memory_of(a, i)], area_of(a, i), &a->earlier[i]);
                a->known[i] = true;
            }
            dmi_hazard_wait(&a->earlier[i], ref->mode, &wait);
            dmi_hazard_use(&a->use[i], ref->mode, step->lane, step->ordinal);
        }
    }
    for (int l = 0; l < DMI_LANES; l++) {
        step->wait[l] = DMI_MAX(step->wait[l], (uint32_t)wait.seq[l]);
    }
}

static void end_phase(accesses *a)
{
    for (int i = 0; i < a->count; i++) {
        if (a->known[i]) {
            dmi_hazards_add(&a->last[memory_of(a, i)], area_of(a, i), &a->use[i]);
            a->use[i] = (dmi_hazard){0};
            a->known[i] = false;
        }
    }
}

static void find_waits(dmi_builder *b, accesses *a)
{
    size_t n = (size_t)a->count + 1;
    a->last = calloc(n, sizeof *a->last);
    a->use = calloc(2 * n, sizeof *a->use);
    a->known = calloc(n, sizeof *a->known);
    b->failed = b->failed || !a->last || !a->use || !a->known;
    a->earlier = a->use + n;
    for (int phase = 0, i = 0; phase <= b->phases && !b->failed; phase++) {
        for (; i < end_of_phase(b, phase); i++) {
            add_waits(a, &b->plan->step[i]);
        }
        end_phase(a);
    }
    for (int i = 0; a->last && i < a->count; i++) {
        dmi_hazards_free(&a->last[i]);
    }
    free(a->last);
    free(a->use);
    free(a->known);
}

static void find_work_areas(accesses *a, int count)
{
    for (int i = 0; i < count; i++) {
        const workspace *w = &a->work[i];
        a->work_area[i] = (dmi_area){.ndim = 1,
                                     .lo = {w->offset},
                                     .hi = {w->offset + w->bytes},
                                     .from = w->offset,
                                     .to = w->offset + w->bytes};
    }
}

void dmi_build_phases_end(dmi_builder *b, const dmi_call *call)
{
    dmi_plan *plan = b->plan;
    int same[DMI_MAX_OPERANDS], places = 0;
    dmi_area area[DMI_MAX_OPERANDS];
    bool packed = false;
    if (b->phases == 0 || b->failed) {
        return;
    }
    size_t n = (size_t)plan->nwork + 1;
    workspace *work = malloc(n * sizeof *work);
    int64_t *bytes = malloc(n * sizeof *bytes);
    dmi_area *work_area = malloc(n * sizeof *work_area);
    b->failed = !work || !bytes || !work_area;
    if (!b->failed && plan->nwork > 0) {
        share_workspace(b, work, bytes, &places, &packed);
    }
    accesses a = {.same = b->same ? b->same : same,
                  .area = b->area ? b->area : area,
                  .whole = plan->whole,
                  .work = work,
                  .work_area = packed ? work_area : NULL,
                  .noperand = plan->noperand,
                  .count = plan->noperand + plan->nwork};
    if (!b->same) {
        find_same(call, same);
    }
    for (int i = 0; i < call->noperand && !b->area; i++) {
        area[i] = everything;
        if (call->operand[i].mode) {
            dmi_desc_area(&call->operand[i].desc, &area[i]);
        }
    }
    if (packed) {
        find_work_areas(&a, plan->nwork);
    }
    if (!b->failed) {
        find_waits(b, &a);
        rename_work(plan, work, bytes, places);
    }
    free(work);
    free(bytes);
    free(work_area);
}
