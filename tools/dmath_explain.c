/* dmath explain: plans on paper. */
#include "dmath_explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct totals {
    int64_t steps, sent, messages, flops;
    int64_t most_sent, most_received, most_workspace, most_flops;
} totals;

static void print_head(const dmi_call *call, const dmi_plan *plan, int workers)
{
    printf("%d workers\ncall 1: %s algorithm %s%s%s\n", workers, dmi_ops[call->op].name, plan->algorithm,
           plan->compute ? " in " : "", plan->compute ? plan->compute : "");
    for (int i = 0; i < call->noperand; i++) {
        char text[400];
        dmi_operand_describe(dmi_ops[call->op].operand[i].name, &call->operand[i], text, sizeof text);
        printf("  operand %s\n", text);
    }
}

static void row_of(tool_table *t, const dmi_call *call, const dmi_plan *p, int workers)
{
    if (!t->json) {
        char text[400];
        dmi_plan_describe(p, text, sizeof text);
        printf("  %s\n", text);
        return;
    }
    t->command = "explain";
    tool_row_begin(t);
    tool_row_text(t, "op", 0, dmi_ops[call->op].name);
    tool_row_text(t, "algorithm", 0, p->algorithm);
    if (p->compute) {
        tool_row_text(t, "compute", 0, p->compute);
    }
    tool_row_int(t, "workers", 0, workers);
    tool_row_int(t, "worker", 0, p->me);
    tool_row_int(t, "steps", 0, p->nstep);
    tool_row_int(t, "sent_bytes", 0, p->bytes_sent);
    tool_row_int(t, "received_bytes", 0, p->bytes_received);
    tool_row_int(t, "messages_sent", 0, p->messages_sent);
    tool_row_int(t, "messages_received", 0, p->messages_received);
    tool_row_int(t, "workspace_bytes", 0, p->workspace);
    tool_row_int(t, "flops", 0, p->flops);
    tool_row_end(t);
}

/* Ordinals to wait for, lane by lane: "c3 r1". */
static void waits_of(const dmi_step *step, char out[64])
{
    int n = 0;
    out[0] = 0;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        if (step->wait[lane]) {
            n += snprintf(out + n, 64 - (size_t)n, "%s%c%" PRIu32, n ? " " : "", "csrCSR"[lane],
                          step -> wait[lane]);
        }
    }
}

static void rows_of_steps(tool_table *t, const dmi_plan *plan)
{
    static const char *const lanes[] = {"compute", "send", "recv", "compute 1", "send 1", "recv 1"};
    t->command = "explain step";
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *s = &plan->step[i];
        char waits[64], place[32];
        waits_of(s, waits);
        snprintf(place, sizeof place, "%c%" PRIu32, "csrCSR"[s->lane], s -> ordinal);
        tool_row_begin(t);
        if (t->json) {
            tool_row_int(t, "worker", 0, plan->me);
        }
        tool_row_int(t, "step", 6, i);
        tool_row_text(t, "lane", 8, lanes[s->lane]);
        tool_row_text(t, "place", 7, place);
        tool_row_text(t, "kind", 10, dmi_step_name(s->kind));
        tool_row_int(t, "peer", 6, s->kind == DMI_STEP_PUSH || s->kind == DMI_STEP_EXPECT ? s->peer : -1);
        tool_row_int(t, "bytes", 14, s->bytes);
        tool_row_int(t, "flops", 18, s->flops);
        tool_row_text(t, "waits_for", 16, waits);
        tool_row_end(t);
    }
}

static void count(totals *sum, const dmi_plan *p)
{
    sum->steps += p->nstep;
    sum->sent += p->bytes_sent;
    sum->messages += p->messages_sent;
    sum->flops += p->flops;
    sum->most_sent = DMI_MAX(sum->most_sent, p->bytes_sent);
    sum->most_received = DMI_MAX(sum->most_received, p->bytes_received);
    sum->most_workspace = DMI_MAX(sum->most_workspace, p->workspace);
    sum->most_flops = DMI_MAX(sum->most_flops, p->flops);
}

static void print_totals(tool_table *t, const totals *sum)
{
    if (!t->json) {
        printf("all workers: steps %" PRId64 " sent %" PRId64 " messages %" PRId64 " flops %" PRId64
               "; most of one: sent %" PRId64 " received %" PRId64 " workspace %" PRId64 " flops %" PRId64 "\n",
               sum->steps, sum->sent, sum->messages, sum->flops, sum->most_sent, sum->most_received,
               sum->most_workspace, sum->most_flops);
        return;
    }
    t->command = "explain total";
    tool_row_begin(t);
    tool_row_int(t, "steps", 0, sum->steps);
    tool_row_int(t, "sent_bytes", 0, sum->sent);
    tool_row_int(t, "messages", 0, sum->messages);
    tool_row_int(t, "flops", 0, sum->flops);
    tool_row_int(t, "sent_bytes_max", 0, sum->most_sent);
    tool_row_int(t, "received_bytes_max", 0, sum->most_received);
    tool_row_int(t, "workspace_bytes_max", 0, sum->most_workspace);
    tool_row_int(t, "flops_max", 0, sum->most_flops);
    tool_row_end(t);
}

static dm_status explain(const explain_options *o, const dmi_profile *profile)
{
    dmi_call call;
    dmi_layout *layouts[3] = {NULL};
    tool_table table = {.json = o->common.json};
    totals sum = {0};
    int first = o->worker < 0 ? 0 : o->worker, end = o->worker < 0 ? profile->workers : first + 1;
    dm_status status = tool_explain_call(o, profile->workers, &call, layouts);
    for (int w = first; w < end && status == DM_OK; w++) {
        dmi_plan *plan = NULL;
        status = dmi_plan_make(&call, profile, w, &plan);
        if (status != DM_OK) {
            break;
        }
        if (w == first && !table.json) {
            print_head(&call, plan, profile->workers);
        }
        row_of(&table, &call, plan, profile->workers);
        if (w == o->worker || (w == 0 && o->common.verbose)) {
            rows_of_steps(&table, plan);
        }
        count(&sum, plan);
        dmi_plan_release(plan);
    }
    if (status == DM_OK && o->worker < 0) {
        print_totals(&table, &sum);
    }
    for (int i = 0; i < 3; i++) {
        dmi_layout_destroy(layouts[i]);
    }
    return status;
}

int tool_explain(int argc, char **argv)
{
    explain_options o;
    dmi_config config;
    if (!tool_explain_parse(argc, argv, &o)) {
        return TOOL_USAGE;
    }
    dm_status status = dmi_config_load(&config, o.common.options);
    if (status == DM_OK) {
        int ranks = tool_ranks(), workers = ranks > 1 ? ranks - 1 : dmi_thread_workers(&config);
        if (o.common.nworkers > 0) {
            workers = (int)DMI_MIN(o.common.workers[0], 1 << 20);
        }
        dmi_profile profile = dmi_profile_from(&config, workers, false);
        status = o.worker < workers
                     ? explain(&o, &profile)
                     : dmi_fail(DM_ERR_ARG, "worker %d is not one of 0 to %d", o.worker, workers - 1);
    }
    tool_complain(status);
    /* Except for memory, only the request itself can fail here. */
    return status == DM_OK ? 0 : status == DM_ERR_NOMEM ? TOOL_FAILED : TOOL_USAGE;
}
