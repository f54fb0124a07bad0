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
}

static int end_of_phase(const dmi_builder *b, int phase)
{
    return phase < b->phases ? b->phase_end[phase] : b->plan->nstep;
}

/* A workspace: the first and the last phase that uses it, and the place that it gets. */
typedef struct workspace {
    int number, first, last, place;
    int64_t bytes;
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

static int larger_first(const void *a, const void *b)
{
    const workspace *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->number - y->number;
}

static bool is_free(const workspace *work, int count, int place, const workspace *w)
{
    for (int i = 0; i < count; i++) {
        if (work[i].place == place && work[i].first <= w->last && w->first <= work[i].last) {
            return false;
        }
    }
    return true;
}

/* Which workspaces share memory: from the largest to the smallest, each takes the first place that is free as
 * long as it lives. bytes: of the places. Returns how many there are. */
static int choose_places(workspace *work, int count, int64_t *bytes)
{
    int places = 0;
    qsort(work, (size_t)count, sizeof *work, larger_first);
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

static void share_workspace(dmi_builder *b)
{
    dmi_plan *plan = b->plan;
    workspace *work = malloc(((size_t)plan->nwork + 1) * sizeof *work);
    int *place = malloc(((size_t)plan->nwork + 1) * sizeof *place);
    if (!work || !place) {
        b->failed = true;
    } else if (plan->nwork > 0) {
        int count = plan->nwork;
        find_lifetimes(b, work);
        plan->nwork = choose_places(work, count, plan->work_bytes);
        for (int i = 0; i < count; i++) {
            place[work[i].number] = work[i].place;
        }
        for (int i = 0; i < plan->nstep; i++) {
            for (int r = 0; r < plan->step[i].nref; r++) {
                dmi_ref *ref = &plan->step[i].ref[r];
                ref->index = ref->kind == DMI_REF_WORK ? (uint16_t)place[ref->index] : ref->index;
            }
        }
    }
    free(work);
    free(place);
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

/* The accesses before the present phase, and of it. Memories: of the operands, then the workspaces; uses: by
 * each operand and workspace. */
typedef struct accesses {
    const int *same;
    const dmi_area *area;
    int noperand, count; /* with the workspaces */
    dmi_hazards *last;
    dmi_hazard *earlier, *use;
    bool *known; /* is `earlier` that of this phase? */
} accesses;

static const dmi_area everything = {.ndim = -1};

static const dmi_area *area_of(const accesses *a, int i)
{
    return i < a->noperand ? &a->area[i] : &everything;
}

static int memory_of(const accesses *a, int i)
{
    return i < a->noperand ? a->same[i] : i;
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

void dmi_build_phases_end(dmi_builder *b, const dmi_call *call)
{
    dmi_plan *plan = b->plan;
    int same[DMI_MAX_OPERANDS];
    dmi_area area[DMI_MAX_OPERANDS];
    if (b->phases == 0 || b->failed) {
        return;
    }
    share_workspace(b);
    accesses a = {.same = b->same ? b->same : same,
                  .area = b->area ? b->area : area,
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
    find_waits(b, &a);
}
