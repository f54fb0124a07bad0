/* Which steps of a graph run beside others (adr/0062). A graph has two chains: the main one, and one of steps
 * *aside*. A step aside follows what the main chain has before it, and those aside before it. The main chain
 * goes on without it, up to a step that touches what it touches.
 *
 * A step goes aside if the main chain has AHEAD steps among the next NEAR that do not wait for it: a step that
 * waits for two others begins later than one that follows a single one. Large steps fill the GPU by themselves.
 */
#include "exec/gpu/parts.h"

#include <stdlib.h>
#include <string.h>

/* BYTES: that a step aside touches, at most */
enum { AHEAD = 2, NEAR = 6, BYTES = 16 << 20 };

/* The bytes between the first and the last of a touch. */
static dmi_gpu_span span_of(const dmi_touch *t, const char *at)
{
    dmi_gpu_span span = {.rw = t->rw, .scratch = dmi_scratch_bytes(t) > 0};
    int64_t from = t->offset, to = t->offset;
    for (int d = 0; d < t->ndim; d++) {
        int64_t first = t->run[d] ? INT64_MAX : 0, last = t->run[d] ? 0 : t->len[d] - 1;
        for (int64_t r = 0; t->run[d] && r < t->nrun[d]; r++) {
            const dmi_run *run = &t->run[d][r];
            const int64_t begin = t->dst ? run->b : run->a;
            first = DMI_MIN(first, begin);
            last = DMI_MAX(last, begin + run->len - 1);
        }
        from += first * t->stride[d];
        to += last * t->stride[d];
    }
    span.from = (uintptr_t)at + (uintptr_t)from;
    span.to = (uintptr_t)at + (uintptr_t)(to + t->inner);
    return span;
}

void dmi_gpu_work_of(const dmi_queued_step *w, dmi_gpu_work *work)
{
    const dmi_step *step = w->step;
    dmi_touch touch[DMI_MAX_REFS];
    *work = (dmi_gpu_work){.alone = step->kind == DMI_STEP_EXCHANGE};
    if (work->alone) {
        return;
    }
    dmi_step_touches(step, touch);
    for (int i = 0; i < step->nref; i++) {
        if (touch[i].rw) {
            work->scratch += dmi_scratch_bytes(&touch[i]);
            work->span[work->spans++] = span_of(&touch[i], dmi_ref_pointer(w->inst, &step->ref[i]));
        }
    }
}

/* Do they touch the same? a: it goes aside. */
static bool conflict(const dmi_gpu_work *a, const dmi_gpu_work *b)
{
    for (int i = 0; i < a->spans; i++) {
        for (int j = 0; j < b->spans; j++) {
            const dmi_gpu_span *x = &a->span[i], *y = &b->span[j];
            if (!x->scratch && (x->rw | y->rw) & DMI_WRITE && x->from < y->to && y->from < x->to) {
                return true;
            }
        }
    }
    return a->alone || b->alone;
}

static bool is_large(const dmi_gpu_work *w)
{
    uint64_t bytes = 0;
    for (int i = 0; i < w->spans; i++) {
        bytes += w->span[i].scratch ? 0 : w->span[i].to - w->span[i].from;
    }
    return bytes > BYTES || w->scratch > ASIDE_SCRATCH;
}

/* next: the steps of the main chain behind it, in the same list */
static bool goes_aside(const dmi_gpu_work *w, const dmi_gpu_work *const next[AHEAD])
{
    for (int i = 0; i < AHEAD; i++) {
        if (!next[i] || next[i] - w > NEAR || conflict(w, next[i])) {
            return false;
        }
    }
    return !is_large(w);
}

void dmi_gpu_branches(const dmi_gpu_work *work, int count, dmi_gpu_place *place)
{
    const dmi_gpu_work *next[AHEAD] = {NULL};
    for (int i = count - 1; i >= 0; i--) {
        place[i] = (dmi_gpu_place){.aside = goes_aside(&work[i], next)};
        if (!place[i].aside) {
            memmove(next + 1, next, (AHEAD - 1) * sizeof *next);
            next[0] = &work[i];
        }
    }
    int waited = 0; /* the main chain has waited for those aside before this one */
    for (int i = 0; i < count; i++) {
        for (int j = i - 1; !place[i].aside && j >= waited; j--) {
            if (place[j].aside && conflict(&work[j], &work[i])) {
                place[i].after = waited = j + 1;
            }
        }
    }
}
