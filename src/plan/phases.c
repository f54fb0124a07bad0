/* Ops made of several planners. Each plans in a phase of its own. Within a phase its marks say who waits for whom. Between
 * phases the waits follow from what steps read and write, as between commands. And what only one phase works with takes
 * the memory of what only another did.
 *
 * This cannot block: a step waits for steps of earlier phases of the same worker. What those wait for, at this worker or
 * another, belongs to the same phase or to an earlier one. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = -1 };

void dmi_build_phase(dmi_builder *b)
{
    if (b->phases == DMI_PHASES) {
        b->failed = true; /* no op has so many */
        return;
    }
    b->phase_end[b->phases++] = b->plan->nstep;
}

int dmi_build_kept(dmi_builder *b, int64_t bytes)
{
    int work = dmi_build_work(b, bytes);
    if (!b->failed) {
        b->work_phase[work] = KEPT;
    }
    return work;
}

/* The largest workspace of a phase that has no place yet; -1: all have. */
static int largest(const dmi_builder *b, int phase, const int *place)
{
    int best = -1;
    for (int w = 0; w < b->plan->nwork; w++) {
        if (b->work_phase[w] == phase && place[w] < 0 &&
            (best < 0 || b->plan->work_bytes[w] > b->plan->work_bytes[best])) {
            best = w;
        }
    }
    return best;
}

/* Which workspaces share memory: the largest of each phase, the second of each, and so on. bytes: of the places. Returns
 * how many there are. */
static int choose_places(const dmi_builder *b, int *place, int64_t *bytes)
{
    int count = 0, kept;
    for (int w = 0; w < b->plan->nwork; w++) {
        place[w] = -1;
        if (b->work_phase[w] == KEPT) {
            bytes[count] = b->plan->work_bytes[w];
            place[w] = count++;
        }
    }
    kept = count;
    for (int phase = 0; phase <= b->phases; phase++) {
        int next = kept;
        for (int w; (w = largest(b, phase, place)) >= 0; next++) {
            bytes[next] = DMI_MAX(next < count ? bytes[next] : 0, b->plan->work_bytes[w]);
            place[w] = next;
            count = DMI_MAX(count, next + 1);
        }
    }
    return count;
}

static void share_workspace(dmi_builder *b)
{
    dmi_plan *plan = b->plan;
    int *place = dmi_build_alloc(b, ((size_t)plan->nwork + 1) * sizeof *place);
    int64_t *bytes = dmi_build_alloc(b, ((size_t)plan->nwork + 1) * sizeof *bytes);
    if (!place || !bytes || plan->nwork == 0) {
        return;
    }
    int count = choose_places(b, place, bytes);
    memcpy(plan->work_bytes, bytes, (size_t)count * sizeof *bytes);
    plan->nwork = count;
    for (int i = 0; i < plan->nstep; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            ref->index = ref->kind == DMI_REF_WORK ? (uint16_t)place[ref->index] : ref->index;
        }
    }
}

/* Operands that may be the same array: where one op may be given it twice, their elements lie alike. */
static void find_same(const dmi_call *call, int *same)
{
    for (int i = 0; i < call->noperand; i++) {
        const dmi_desc *x = &call->operand[i].desc;
        same[i] = i;
        for (int k = i - 1; k >= 0; k--) {
            const dmi_desc *y = &call->operand[k].desc;
            bool alike = x->layout == y->layout || (x->layout && y->layout && dmi_layout_equal(x->layout, y->layout));
            same[i] = alike && x->dtype == y->dtype ? k : same[i];
        }
        same[i] = same[i] == i ? i : same[same[i]];
    }
}

/* The accesses before the present phase, and of it, of each memory: operands, then workspaces. */
typedef struct accesses {
    int same[DMI_MAX_OPERANDS];
    dmi_hazard *last, *use;
} accesses;

static int memory_of(const accesses *a, const dmi_ref *ref)
{
    return ref->kind == DMI_REF_OPERAND ? a->same[ref->index]
           : ref->kind == DMI_REF_WORK  ? DMI_MAX_OPERANDS + ref->index
                                        : -1;
}

static void add_waits(accesses *a, dmi_step *step)
{
    dmi_stamp wait = {{0}};
    for (int r = 0; r < step->nref; r++) {
        int memory = memory_of(a, &step->ref[r]);
        if (memory >= 0) {
            dmi_hazard_wait(&a->last[memory], step->ref[r].mode, &wait);
            dmi_hazard_use(&a->use[memory], step->ref[r].mode, step->lane, step->ordinal);
        }
    }
    for (int l = 0; l < DMI_LANES; l++) {
        step->wait[l] = DMI_MAX(step->wait[l], (uint32_t)wait.seq[l]);
    }
}

void dmi_build_phases_end(dmi_builder *b, const dmi_call *call)
{
    dmi_plan *plan = b->plan;
    if (b->phases == 0 || b->failed) {
        return;
    }
    share_workspace(b);
    size_t memories = DMI_MAX_OPERANDS + (size_t)plan->nwork;
    accesses a = {.last = calloc(2 * memories, sizeof *a.last)};
    if (!a.last) {
        b->failed = true;
        return;
    }
    a.use = a.last + memories;
    find_same(call, a.same);
    for (int phase = 0, i = 0; phase <= b->phases; phase++) {
        for (int end = phase < b->phases ? b->phase_end[phase] : plan->nstep; i < end; i++) {
            add_waits(&a, &plan->step[i]);
        }
        for (size_t m = 0; m < memories; m++) {
            dmi_hazard_merge(&a.last[m], &a.use[m]);
        }
    }
    free(a.last);
}
