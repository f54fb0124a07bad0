/* The bytes that a step touches, by its descriptor and not by its references; and the walk over them. */
#include "ops/ops.h"
#include "plan/program.h"
#include "sim/parts.h"

#include <string.h>

void dmi_sim_touches(const dmi_step *step, const dmi_call *call, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_copy *copy = step->desc;
    memset(out, 0, DMI_MAX_REFS * sizeof *out);
    if (step->kind == DMI_STEP_PUSH) {
        dmi_touch_copy(&out[0], copy, false, dmi_dtype_bytes(copy->src_dtype), DMI_READ);
    } else if (step->kind == DMI_STEP_EXPECT) {
        dmi_touch_copy(&out[0], copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
    } else {
        dmi_touching t = {.desc = step->desc, .refs = step->nref - (step->workspace > 0)};
        const dmi_number *numbers = call->op == DMI_OP_program
                                        ? ((const dmi_program *)call->tail)->number + step->number
                                        : call->number;
        for (int i = 0; i < DMI_COUNT(t.zero); i++) {
            int from = step->scalar[i];
            t.zero[i] = from == DMI_SCALAR_ZERO || (from != DMI_SCALAR_ONE && numbers[from].re == 0);
        }
        dmi_step_kernel(step)->touches(&t, out);
        if (step->workspace > 0) {
            dmi_touch_dense(&out[step->nref - 1], step->workspace, 1, DMI_WRITE);
        }
    }
}

/* --- walking --- */

typedef struct walker {
    const dmi_touch *t;
    void (*each)(void *context, int64_t from, int64_t to);
    void *context;
    int64_t from, to; /* not yet reported */
} walker;

static void visit_range(walker *w, int64_t from)
{
    if (from != w->to) {
        if (w->from < w->to) {
            w->each(w->context, w->from, w->to);
        }
        w->from = from;
    }
    w->to = from + w->t->inner;
}

static void walk_dim(walker *w, int d, int64_t at)
{
    const dmi_touch *t = w->t;
    if (d == t->ndim) {
        visit_range(w, at);
        return;
    }
    for (int64_t r = 0; r < t->nrun[d]; r++) {
        int64_t first = !t->run[d] ? 0 : t->dst ? t->run[d][r].b : t->run[d][r].a;
        int64_t len = t->run[d] ? t->run[d][r].len : t->len[d];
        for (int64_t i = 0; i < len; i++) {
            walk_dim(w, d + 1, at + (first + i) * t->stride[d]);
        }
    }
}

void dmi_sim_walk(const dmi_touch *touch, void (*each)(void *context, int64_t from, int64_t to), void *context)
{
    walker w = {.t = touch, .each = each, .context = context, .from = INT64_MIN, .to = INT64_MIN};
    if (touch->rw == 0 || touch->inner == 0) {
        return;
    }
    walk_dim(&w, 0, touch->offset);
    each(context, w.from, w.to);
}

static void hash_range(void *context, int64_t from, int64_t to)
{
    uint64_t *h = context;
    *h = (*h ^ (uint64_t)from) * UINT64_C(0x9e3779b97f4a7c15);
    *h = ((*h ^ *h >> 29) ^ (uint64_t)to) * UINT64_C(0xbf58476d1ce4e5b9);
    *h ^= *h >> 32;
}

uint64_t dmi_sim_landing_hash(const dmi_step *step)
{
    const dmi_copy *copy = step->desc;
    dmi_touch t;
    uint64_t hash = (uint64_t)copy->dst_dtype + 1;
    dmi_touch_copy(&t, copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
    dmi_sim_walk(&t, hash_range, &hash);
    return hash;
}
