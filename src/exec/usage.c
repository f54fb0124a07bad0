/* What the steps of an endpoint took, by op, for the profile; and the one way by which a timed step reaches the
 * timeline and the profile. Each number has one writer, or (kernels, files) two threads. */
#include "exec/trace.h"
#include "ops/ops.h"

_Static_assert((int)DMI_OPS <= (int)DMI_USAGE_OPS, "a port has a place for each op");

void dmi_engine_count(dmi_engine *e, struct dmi_trace *trace, bool usage)
{
    e->trace = trace;
    e->usage = usage ? e->port->usage : NULL;
    e->timed = e->trace || e->usage;
}

static void add(atomic_int_fast64_t *to, int64_t value)
{
    atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

int dmi_step_op(const dmi_queued_step *w)
{
    int call = w->step->call;
    return call > 0 && call <= w->inst->plan->calls ? w->inst->plan->op[call - 1] : w->inst->op;
}

uint16_t dmi_step_called(const dmi_queued_step *w)
{
    int call = w->step->call;
    return call > 0 && call <= w->inst->plan->calls ? w->inst->plan->called[call - 1] : w->inst->called;
}

static int flops_of(const dmi_step *step)
{
    const dmi_gemm *g = step->desc;
    if (step->kind != DMI_STEP(gemm)) {
        return step->kind == DMI_STEP(fused) ? DMI_FLOPS_HALF : DMI_FLOPS_F64;
    }
    switch (g->dtype) {
    case DM_F64:
    case DM_C128:
        return DMI_FLOPS_F64;
    case DM_F32:
    case DM_C64:
        return g->tf32 ? DMI_FLOPS_TF32 : DMI_FLOPS_F32;
    default: /* 16 and 8 bits */
        return DMI_FLOPS_HALF;
    }
}

static void count_step(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns)
{
    const dmi_step *step = w->step;
    dmi_usage *u = &e->usage[dmi_step_op(w)];
    int lane = w->inst->lane_of[step->lane];
    int64_t from = DMI_MAX(begin_ns, e->usage_until_ns[lane]); /* messages of a lane may overlap */
    int64_t took = DMI_MAX(end_ns - from, 0);
    e->usage_until_ns[lane] = DMI_MAX(end_ns, from);
    if (step->kind == DMI_STEP_PUSH) {
        add(&u->send_ns, took);
        add(&u->sent, step->bytes);
    } else if (step->kind == DMI_STEP_EXPECT) {
        add(&u->receive_ns, took);
    } else {
        add(&u->kernel_ns, took);
        if (step->flops > 0) {
            add(&u->flops[flops_of(step)], step->flops);
        }
    }
}

void dmi_step_took(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns)
{
    if (e->usage) {
        count_step(e, w, begin_ns, end_ns);
    }
    if (e->trace) {
        dmi_trace_step(e, w, begin_ns, end_ns);
    }
}

void dmi_usage_idle(dmi_engine *e, dmi_lane *lane, const dmi_queued_step *w)
{
    if (lane->idle_since_ns) {
        add(&e->usage[dmi_step_op(w)].idle_ns, dmi_now_ns() - lane->idle_since_ns);
        lane->idle_since_ns = 0;
    }
}

void dmi_usage_call(dmi_engine *e, const dmi_call *call)
{
    dmi_usage *u = &e->usage[call->op];
    int64_t bytes = 0;
    for (int i = 0; i < call->noperand; i++) {
        const dmi_operand *x = &call->operand[i];
        int64_t count = x->mode ? dmi_dtype_bytes(x->desc.dtype) : 0;
        for (int d = 0; d < x->desc.ndim && count > 0; d++) {
            count *= x->desc.extent[d];
        }
        bytes += x->mode == DMI_READWRITE ? 2 * count : count;
    }
    add(&u->calls, 1);
    add(&u->bytes, bytes);
}
