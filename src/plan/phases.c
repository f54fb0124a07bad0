/* Ops made of several planners. Each plans in a phase of its own. Within a phase its marks say who waits for
 * whom. Between phases the waits follow from what steps read and write, as between commands. Workspaces that
 * are never used in the same phases share memory.
 *
 * This cannot block: a step waits for steps of earlier phases of the same worker. What those wait for, at this
 * worker or another, belongs to the same phase or to an earlier one. */
#include "plan/places.h"
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

/* BESIDE: phases of a program on GPUs in which memory that channel 1 has used is given to nothing else. What
 * got it at once would wait for transfers that are to run beside it. MOST_AREAS: of workspaces side by side in
 * one place that are known one by one. */
enum { BESIDE = 16, MOST_AREAS = 256 };

static int end_of_phase(const dmi_builder *b, int phase)
{
    return phase < b->phases ? b->phase_end[phase] : b->plan->nstep;
}

/* In a program, payloads of a call arrive while the call before it that receives still works on its own: what
 * only one phase uses, and payloads come to, is taken from that phase on (adr/0018). */
static void lend_early(const dmi_builder *b, dmi_workspace *work)
{
    const dmi_plan *plan = b->plan;
    int before = -1, latest = -1; /* phases that receive so */
    for (int phase = 0, i = 0; phase <= b->phases && plan->calls > 0; phase++, before = latest) {
        for (; i < end_of_phase(b, phase); i++) {
            const dmi_step *step = &plan->step[i];
            for (int r = 0; r < step->nref && dmi_lane_receives(step->lane); r++) {
                dmi_workspace *w = step->ref[r].kind == DMI_REF_WORK ? &work[step->ref[r].index] : NULL;
                if (w && w->first == phase && w->last == phase && w->bytes <= DMI_TWO_SETS_MOST) {
                    w->first = before < 0 ? phase : before;
                    latest = phase;
                }
            }
        }
    }
}

static void find_lifetimes(const dmi_builder *b, dmi_workspace *work)
{
    const dmi_plan *plan = b->plan;
    for (int w = 0; w < plan->nwork; w++) {
        work[w] = (dmi_workspace){.number = w, .first = b->phases, .bytes = plan->work_bytes[w]};
    }
    for (int phase = 0, i = 0; phase <= b->phases; phase++) {
        for (; i < end_of_phase(b, phase); i++) {
            const dmi_step *step = &plan->step[i];
            bool beside = plan->repeats && b->profile->gpu && dmi_lane_channel(step->lane) == 1;
            for (int r = 0; r < step->nref; r++) {
                if (step->ref[r].kind == DMI_REF_WORK) {
                    dmi_workspace *w = &work[step->ref[r].index];
                    w->first = DMI_MIN(w->first, phase);
                    w->last = DMI_MAX(w->last, DMI_MIN(phase + (beside ? BESIDE : 0), b->phases));
                }
            }
        }
    }
    lend_early(b, work);
}

/* From workspaces to places. */
static void rename_work(dmi_plan *plan, const dmi_workspace *work, const int64_t *bytes, int places)
{
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK) {
                const dmi_workspace *w = &work[ref->index];
                ref->number = ref->index;
                ref->index = (uint16_t)w->place;
                ref->offset += w->offset;
                ref->from = w->offset;
                ref->to = w->offset + w->bytes;
            }
        }
    }
    if (places > 0) { /* else there may be no memory at either */
        memcpy(plan->work_bytes, bytes, (size_t)places * sizeof *bytes);
    }
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
 * uses: by each operand, workspace, and view of a temporary. */
typedef struct accesses {
    const int *same;
    const dmi_area *area;
    const bool *whole; /* of operands: see dmi_plan */
    const dmi_workspace *work;
    dmi_area *work_area; /* where in its place a workspace is; NULL: all of it */
    dmi_area *view_area; /* where in its place a view is; it has no dims if it is all of its workspace */
    const int *view_work;       /* whose view it is */
    int noperand, nwork, count; /* of all */
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
    i -= a->noperand;
    if (i >= a->nwork) {
        return &a->view_area[i - a->nwork];
    }
    return a->work_area ? &a->work_area[i] : &everything;
}

static int memory_of(const accesses *a, int i)
{
    if (i < a->noperand) {
        return a->same[i];
    }
    const int w = i - a->noperand;
    return a->noperand + a->work[w < a->nwork ? w : a->view_work[w - a->nwork]].place;
}

/* Which use a reference is; -1: none. A function of the user gets all of a temporary. */
static int use_of(const accesses *a, const dmi_step *step, const dmi_ref *ref)
{
    if (ref->kind == DMI_REF_OPERAND) {
        return ref->index;
    }
    if (ref->kind != DMI_REF_WORK) {
        return -1;
    }
    const int view = ref->number & DMI_REF_VIEW ? (int)(ref->number - DMI_REF_VIEW) : -1;
    return view >= 0 && a->view_area[view].ndim >= 0 && step->kind != DMI_STEP(task)
               ? a->noperand + a->nwork + view
               : a->noperand + ref->index;
}

static void add_waits(accesses *a, dmi_step *step)
{
    dmi_stamp wait = {{0}};
    for (int r = 0; r < step->nref; r++) {
        const dmi_ref *ref = &step->ref[r];
        int i = use_of(a, step, ref);
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
    step->before = (uint32_t)wait.seq[DMI_LANE_RECV];
    if (step->kind == DMI_STEP_PUSH) {
        step->unpaced = DMI_MAX(step->unpaced, (uint32_t)wait.seq[step->lane - DMI_LANE_SEND + DMI_LANE_RECV]);
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
    for (int i = 0; i < a->count && !b->failed; i++) {
        a->last[i].most = MOST_AREAS;
    }
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
        const dmi_workspace *w = &a->work[i];
        a->work_area[i] = (dmi_area){.ndim = 1,
                                     .lo = {w->offset},
                                     .hi = {w->offset + w->bytes},
                                     .from = w->offset,
                                     .to = w->offset + w->bytes};
    }
}

/* Indices of a view are those of its workspace, which no other has: so views of one are told apart by them,
 * others by their bytes. Those of another layout than the first view, as of a reshaped array, count as the
 * whole. */
static int *find_views(dmi_builder *b, accesses *a)
{
    const dmi_plan *plan = b->plan;
    int *work = calloc((size_t)b->views + 1, sizeof *work);
    const void **layout = calloc((size_t)plan->nwork + 1, sizeof *layout);
    a->view_area = malloc(((size_t)b->views + 1) * sizeof *a->view_area);
    b->failed = b->failed || !work || !layout || !a->view_area;
    for (int v = 0; v < b->views && !b->failed; v++) {
        a->view_area[v] = everything;
    }
    for (int i = 0; i < plan->nstep && !b->failed; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            const dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind != DMI_REF_WORK || !(ref->number & DMI_REF_VIEW)) {
                continue;
            }
            const uint32_t view = ref->number - DMI_REF_VIEW;
            const dmi_workspace *w = &a->work[ref->index];
            const dmi_area *given = &b->area[plan->noperand + (int)view];
            const void **first = &layout[ref->index];
            *first = *first ? *first : given->ndim < 0 ? NULL : given->layout;
            work[view] = ref->index;
            if (given->ndim >= 0 && given->layout == *first) {
                dmi_area *area = &a->view_area[view];
                *area = *given;
                area->layout = w;
                area->from = w->offset + (given->to > 0 ? given->from : 0);
                area->to = w->offset + (given->to > 0 ? given->to : w->bytes);
            }
        }
    }
    free((void *)layout);
    a->view_work = work;
    return work;
}

static void forget_views(dmi_plan *plan)
{
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            ref->number = ref->kind == DMI_REF_WORK ? ref->index : ref->number;
        }
    }
}

void dmi_build_phases_end(dmi_builder *b, const dmi_call *call)
{
    dmi_plan *plan = b->plan;
    int same[DMI_MAX_OPERANDS], places = 0;
    dmi_area area[DMI_MAX_OPERANDS];
    bool packed = false;
    if (b->failed) {
        return;
    }
    if (b->phases == 0) {
        forget_views(plan);
        return;
    }
    size_t n = (size_t)plan->nwork + 1;
    dmi_workspace *work = malloc(n * sizeof *work);
    int64_t *bytes = malloc(n * sizeof *bytes);
    dmi_area *work_area = malloc(n * sizeof *work_area);
    b->failed = !work || !bytes || !work_area;
    if (!b->failed && plan->nwork > 0) {
        find_lifetimes(b, work);
        b->failed = !dmi_places_choose(work, plan->nwork, b->phases, bytes, &places, &packed);
    }
    accesses a = {.same = b->same ? b->same : same,
                  .area = b->area ? b->area : area,
                  .whole = plan->whole,
                  .work = work,
                  .work_area = packed ? work_area : NULL,
                  .noperand = plan->noperand,
                  .nwork = plan->nwork,
                  .count = plan->noperand + plan->nwork + b->views};
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
    int *view_work = b->failed ? NULL : find_views(b, &a);
    if (!b->failed) {
        find_waits(b, &a);
        rename_work(plan, work, bytes, places);
    }
    free(view_work);
    free(a.view_area);
    free(work);
    free(bytes);
    free(work_area);
}
