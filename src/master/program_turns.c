/* What the calls of a program take, about, for the order in which they are planned. */
#include "master/recording.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3 };  /* whose plans are looked at */
enum { ROOM_OF = 32 }; /* a new order may take so much more workspace, as a part */

/* Per second, where nothing was measured; of a worker. */
typedef struct pace {
    double link, memory, flops; /* bytes, bytes, operations */
    double step, hop;           /* seconds: of a kernel, of a transfer */
} pace;

static pace pace_of(const dmi_session *s)
{
    const dmi_rates *r = &s->profile.rates;
    double flops = DMI_MAX(r->f32, r->f64);
    pace out = s->profile.gpu ? (pace){.link = 20e9, .memory = 1e12, .flops = 1e13, .step = 3e-6, .hop = 10e-6}
                              : (pace){.link = 5e9, .memory = 5e9, .flops = 2e10, .step = 1.5e-6, .hop = 2e-6};
    out.link = r->link > 0 ? r->link : out.link;
    out.memory = r->memory > 0 ? r->memory : out.memory;
    out.flops = flops > 0 ? flops : out.flops;
    if (s->config.link_gbps > 0) {
        out.link = DMI_MIN(out.link, s->config.link_gbps * 1e9);
    }
    out.hop += s->config.link_latency_us * 1e-6;
    return out;
}

static double operand_bytes(const dmi_call *call, int worker)
{
    double bytes = 0;
    for (int i = 0; i < call->noperand; i++) {
        const dmi_desc *x = &call->operand[i].desc;
        if (call->operand[i].mode) {
            bytes += (double)dmi_desc_local_count(x, worker) * (double)dmi_dtype_bytes(x->dtype);
        }
    }
    return bytes;
}

/* Adds what the steps of each call of a worker take; `out`: of the worker that takes most. */
static void add_worker(const dmi_session *s, const dmi_program *p, const dmi_plan *plan, int worker,
                       dmi_call_time *mine, dmi_call_time *out)
{
    const pace at = pace_of(s);
    double back = 0;                     /* payloads that come, */
    uint32_t kernel[DMI_CHANNELS] = {0}; /* and the first kernels, of the call that the step is of */
    memset(mine, 0, (size_t)p->calls * sizeof *mine);
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        dmi_call_time *time = &mine[step->call - 1];
        double takes = (double)step->bytes / at.link + at.hop;
        if (i > 0 && plan->step[i - 1].call != step->call) {
            back = 0;
            memset(kernel, 0, sizeof kernel);
        }
        if (step->kind == DMI_STEP_PUSH) {
            for (int k = 0; k < DMI_CHANNELS; k++) { /* of this call, not of one before it */
                uint32_t wait = step->wait[DMI_LANE_COMPUTE + k * DMI_CHANNEL_LANES];
                time->computes_first = time->computes_first || (kernel[k] && wait >= kernel[k]);
            }
            time->link += takes;
            time->channel = dmi_lane_channel(step->lane);
        } else if (step->kind == DMI_STEP_EXPECT) {
            back += takes;
            time->link = DMI_MAX(time->link, back);
            time->channel = dmi_lane_channel(step->lane);
        } else {
            uint32_t *first = &kernel[dmi_lane_channel(step->lane)];
            *first = *first ? *first : step->ordinal;
            time->compute += at.step + (double)step->flops / at.flops;
        }
    }
    for (int i = 0; i < p->calls; i++) {
        if (mine[i].compute > 0) {
            mine[i].compute += operand_bytes(&p->call[i], worker) / at.memory;
        }
        out[i].link = DMI_MAX(out[i].link, mine[i].link);
        out[i].compute = DMI_MAX(out[i].compute, mine[i].compute);
        out[i].channel = DMI_MAX(out[i].channel, mine[i].channel);
        out[i].computes_first = out[i].computes_first || mine[i].computes_first;
    }
}

static dm_status find_times(const dmi_session *s, const dmi_program *p, dmi_call_time *mine,
                            dmi_call_time *time, int64_t *workspace)
{
    dmi_call call = dmi_program_call(p, DMI_OP_program);
    uint64_t members = dmi_program_members(p);
    dm_status status = DM_OK;
    for (int i = 0; i < WORKERS && status == DM_OK; i++) {
        int worker = i * (s->workers - 1) / (WORKERS - 1);
        dmi_plan *plan = NULL;
        workspace[i] = 0;
        if ((i > 0 && worker == (i - 1) * (s->workers - 1) / (WORKERS - 1)) || !(members >> worker % 64 & 1)) {
            continue;
        }
        status = dmi_plan_make(&call, &s->profile, worker, &plan);
        if (status == DM_OK) {
            add_worker(s, p, plan, worker, mine, time);
            workspace[i] = plan->workspace;
        }
        dmi_plan_release(plan);
    }
    return status;
}

/* Temporaries may live longer in the new order. */
static dm_status more_room(const dmi_session *s, const dmi_program *p, const int64_t *before, bool *more)
{
    dmi_call call = dmi_program_call(p, DMI_OP_program);
    dm_status status = DM_OK;
    for (int i = 0; i < WORKERS && status == DM_OK && !*more; i++) {
        dmi_plan *plan = NULL;
        int worker = i * (s->workers - 1) / (WORKERS - 1);
        if (before[i] > 0) {
            status = dmi_plan_make(&call, &s->profile, worker, &plan);
            *more = status == DM_OK && plan->workspace > before[i] + before[i] / ROOM_OF;
            dmi_plan_release(plan);
        }
    }
    return status;
}

dm_status dmi_turns_choose(const dmi_session *s, dmi_program *p)
{
    size_t n = (size_t)p->calls + 1;
    int64_t workspace[WORKERS];
    double recorded, best;
    bool more = false;
    const int wanted = s->config.program_order;
    bool critical = wanted == DMI_PROGRAM_CRITICAL || (wanted == DMI_PROGRAM_AUTO && !s->profile.gpu);
    if (!critical || s->workers < 2 || p->calls < 2 || p->calls > DMI_TURNS_MOST) {
        return DM_OK;
    }
    dmi_call_time *time = calloc(2 * n, sizeof *time);
    if (!time) {
        return dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    dm_status status = find_times(s, p, time + n, time, workspace);
    for (int i = 0; i < p->calls; i++) {
        time[i].keeps_order = time[i].everywhere = p->call[i].op == DMI_OP_apply;
    }
    if (status == DM_OK && !dmi_program_turns(p, time, &recorded, &best)) {
        status = dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    free(time);
    if (status == DM_OK && best < recorded) {
        status = more_room(s, p, workspace, &more);
        for (int i = 0; i < p->calls && more; i++) {
            p->call[i].turn = 0;
        }
        dmi_log(DMI_LOG_DEBUG,
                "a program of %d calls: about %.1f us as recorded, %.1f in the best order that was tried%s",
                p->recorded, recorded * 1e6, best * 1e6,
                more ? ", which needs more memory and is not taken" : "");
    }
    return status;
}
