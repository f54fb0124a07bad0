/* What a step of a net will do, a row a layer, out of the plans of its calls: nothing of the net runs. */
#include "net/net.h"

#include "data/feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cost {
    int64_t sent, workspace; /* of the worker with the most: in all calls, in one call */
    int calls;
    bool known;
} cost;

enum { MOST_WORKERS = 4096 };

static void add_costs(const char *text, int64_t *sent, cost *out)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        int worker = 0;
        long long steps = 0, bytes = 0, received = 0, messages[2] = {0, 0}, workspace = 0;
        line += *line == '\n';
        out->calls += strncmp(line, "call ", 5) == 0;
        if (sscanf(line,
                   " worker %d: steps %lld sent %lld received %lld messages_sent %lld messages_received %lld "
                   "workspace %lld",
                   &worker, &steps, &bytes, &received, &messages[0], &messages[1], &workspace) == 7 &&
            worker >= 0 && worker < MOST_WORKERS) {
            sent[worker] += bytes;
            out->sent = sent[worker] > out->sent ? sent[worker] : out->sent;
            out->workspace = workspace > out->workspace ? workspace : out->workspace;
        }
    }
}

/* The plans of one function of a layer, or with l NULL of one of the net. Calls that make arrays cannot be
 * planned alone: the cost is not known then. */
static dm_status cost_of(const nn_net *net, dm_status (*of_net)(const nn_net *), nn_layer *l,
                         dm_status (*function)(nn_layer *), cost *out)
{
    char *text = NULL;
    int64_t *sent = calloc(MOST_WORKERS, sizeof *sent);
    *out = (cost){0};
    dm_status status = sent ? dm_explain_begin(net->session)
                            : dm_error_no_memory("a plan's costs", MOST_WORKERS * sizeof *sent);
    if (status == DM_OK) {
        dm_status well = l ? function(l) : of_net(net);
        out->known = well == DM_OK;
        status = dm_explain_end(net->session, &text);
    }
    if (status == DM_OK && out->known) {
        add_costs(text, sent, out);
    }
    free(text);
    free(sent);
    return status;
}

/* Multiplications and additions of a layer's forward pass that products need. */
double nn_layer_flops(const nn_layer *l)
{
    bool convolution = strcmp(l->type->name, "Convolution") == 0,
         back = strcmp(l->type->name, "Deconvolution") == 0;
    bool inner = strcmp(l->type->name, "InnerProduct") == 0;
    if (!(convolution || back || inner) || l->params == 0) {
        return 0;
    }
    const nn_blob *b = back ? l->bottom[0] : l->top[0];
    int64_t outputs = inner ? b->shape[b->ndim - 1]
                            : l->param[0]->shape[0]; /* of the convolution that this is, or whose gradient */
    return 2 * (double)l->param[0]->count * (double)b->count / (double)outputs;
}

static int64_t bytes_of(const nn_net *net, dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    if (!a.id || dm_array_query(net->session, a, &info) != DM_OK) {
        return 0;
    }
    int64_t bytes = dm_dtype_bytes(info.dtype);
    for (int d = 0; d < info.ndim; d++) {
        bytes *= info.shape[d];
    }
    return bytes;
}

/* Blobs and scratch arrays, of all workers together; parameters, their gradients and histories, on the worker
 * with most. */
static void memory_of(const nn_layer *l, int64_t *blobs, int64_t *params)
{
    *blobs = *params = 0;
    for (int i = 0; i < l->tops; i++) {
        const nn_blob *b = l->top[i];
        *blobs += (b->shares || b->laid ? 0 : bytes_of(l->net, b->data)) +
                  (b->joined ? 0 : bytes_of(l->net, b->diff)) + bytes_of(l->net, b->which);
        for (int k = 0; k < NN_SPARES; k++) {
            *blobs += bytes_of(l->net, b->spare[k]);
        }
    }
    for (int i = 0; i < NN_SCRATCH; i++) {
        *blobs += bytes_of(l->net, l->scratch[i]);
    }
    dm_array own[2];
    for (int i = 0, n; (n = nn_ranges_arrays(l, i, own)) > 0; i++) {
        for (int k = 0; k < n; k++) {
            *blobs += bytes_of(l->net, own[k]);
        }
    }
    for (int i = 0; i < l->params; i++) {
        const nn_param *p = l->param[i];
        if (p->owner == l) {
            const int histories = p->of ? 0 : l->net->histories;
            *params += (bytes_of(l->net, p->data) * (1 + histories) + bytes_of(l->net, p->diff)) / p->count *
                       nn_param_held(l->net, p, true);
            *params += bytes_of(l->net, p->elements) + bytes_of(l->net, p->sum);
        }
        if (p->owner == l && p->dealt) {
            *params += bytes_of(l->net, p->rounded) / p->count * nn_param_held(l->net, p, false);
        }
    }
}

static const char *const form_names[] = {"batch", "features", "both"};

/* Which form a layer has, and what all would cost. */
static void explain_split(FILE *to, const nn_layer *l)
{
    const nn_split_cost one = nn_split_estimate(l, &l->split);
    const char *why = l->split_asked ? "as asked" : l->ranges || nn_split_is_large(l) ? "as estimated" : "as it is small";
    fprintf(to, "%s: split by %s, %s; ", l->name, form_names[l->split.form], why);
    if (l->split.form == NN_BOTH) {
        fprintf(to, "%d parts of the batch by %d of the outputs; ", l->split.parts[0], l->split.parts[1]);
    }
    if (l->ranges) {
        fprintf(to, "%d ranges of outputs; ", l->ranges);
    }
    fprintf(to, "about %.1f KiB sent by a worker, %.3g ms", one.bytes / 1024, one.seconds * 1e3);
    for (nn_form form = NN_BATCH; form <= NN_BOTH; form++) {
        const nn_split split = nn_split_best(l, form);
        const nn_split_cost other = nn_split_estimate(l, &split);
        if (form != l->split.form) {
            fprintf(to, "; by %s %.1f KiB, %.3g ms", form_names[form], other.bytes / 1024, other.seconds * 1e3);
        }
    }
    fprintf(to, "\n");
}

static void put_cost(FILE *to, const cost *c, bool any)
{
    if (!any) {
        fprintf(to, " %6s %12s", "-", "-");
    } else if (c->known) {
        fprintf(to, " %6d %12.1f", c->calls, (double)c->sent / 1024);
    } else {
        fprintf(to, " %6s %12s", "?", "?");
    }
}

/* Milliseconds that products, or what is read and written, take at these rates. */
static double least_ms(double flops, double bytes, const nn_rates *r)
{
    const double products = flops / r->flops, memory = bytes / r->bytes;
    return 1e3 * (products > memory ? products : memory);
}

/* Forward and backward of a layer; nothing without rates. */
static void put_times(FILE *to, const nn_layer *l, bool back, const nn_rates *r, double *ms)
{
    if (r) {
        const double one = nn_layer_flops(l), there = least_ms(one, nn_layer_bytes(l, false), r),
                     returns = back ? least_ms(one * (1 + l->down[0]), nn_layer_bytes(l, true), r) : 0;
        fprintf(to, " %10.4g", there);
        if (back) {
            fprintf(to, " %11.4g", returns);
        } else {
            fprintf(to, " %11s", "-");
        }
        ms[0] += there;
        ms[1] += returns;
    }
}

static dm_status explain_layer(FILE *to, nn_layer *l, const nn_rates *r, double *flops, int64_t *sent,
                               int64_t *memory, double *ms)
{
    cost forward = {0}, backward = {0};
    int64_t blobs = 0, params = 0;
    bool source = l->type->traits & (NN_SOURCE | NN_WAITS | NN_INPUT);
    dm_status status = source ? DM_OK : cost_of(l->net, NULL, l, l->type->forward, &forward);
    const bool trains = l->net->phase == NN_TRAIN && l->need_backward;
    bool back = trains && l->type->backward && !source;
    if (status == DM_OK && back) {
        status = cost_of(l->net, NULL, l, l->type->backward, &backward);
    }
    int64_t workspace = forward.workspace > backward.workspace ? forward.workspace : backward.workspace;
    double one = nn_layer_flops(l);
    memory_of(l, &blobs, &params);
    const nn_widths w = nn_widths_of(l->net);
    fprintf(to, "%-*s %-*s %-8s %10.4g", w.name, l->name, w.type, l->type->name, form_names[l->split.form],
            one * (trains ? 3 : 1) * 1e-9);
    put_cost(to, &forward, !source);
    put_cost(to, &backward, back);
    fprintf(to, " %10.2f %10.2f %10.2f", (double)blobs / (1 << 20), (double)params / (1 << 20),
            (double)workspace / (1 << 20));
    put_times(to, l, back, r, ms);
    fputc('\n', to);
    *flops += one * (trains ? 3 : 1);
    *sent += forward.sent + backward.sent;
    memory[0] += blobs;
    memory[1] += params;
    return status;
}

/* Weights that are dealt out go to all workers that use them before a pass: a row of its own. */
static dm_status explain_gathering(FILE *to, const nn_net *net, int64_t *sent)
{
    cost c = {0};
    bool any = false;
    for (int i = 0; i < net->param_count; i++) {
        any = any || net->params[i]->dealt;
    }
    dm_status status = any ? cost_of(net, nn_params_round, NULL, NULL, &c) : DM_OK;
    if (status == DM_OK && any) {
        const nn_widths w = nn_widths_of(net);
        fprintf(to, "%-*s %-*s %-8s %10s", w.name, "weights", w.type, "gathered", "dealt", "-");
        put_cost(to, &c, true);
        fprintf(to, " %6s %12s %10s %10s %10.2f\n", "-", "-", "-", "-", (double)c.workspace / (1 << 20));
        *sent += c.sent;
    }
    return status;
}

/* Who updates the weights of a layer, and what the two ways cost. */
static void explain_update(FILE *to, const nn_layer *l)
{
    const nn_param *p = l->params > 0 ? l->param[0] : NULL;
    if (!p || p->owner != l || !p->dealt) {
        return;
    }
    const nn_split_cost dealt = nn_update_estimate(l, true), whole = nn_update_estimate(l, false);
    fprintf(
        to,
        "%s: update dealt out, %s; gradient and weights about %.1f KiB sent by a worker, with the update %.3g "
        "ms; whole %.1f KiB, %.3g ms\n",
        l->name, l->net->update == DM_UPDATE_DEALT ? "as asked" : "as estimated", dealt.bytes / 1024,
        dealt.seconds * 1e3, whole.bytes / 1024, whole.seconds * 1e3);
}

/* What a test net takes from the training net, before each test. */
static dm_status explain_weights(FILE *to, const nn_net *net)
{
    cost c = {0};
    int64_t bytes = 0;
    for (int i = 0; i < net->param_count; i++) {
        bytes += net->params[i]->follows ? bytes_of(net, net->params[i]->data) : 0;
    }
    dm_status status = bytes > 0 ? cost_of(net, nn_params_follow, NULL, NULL, &c) : DM_OK;
    if (status == DM_OK && bytes > 0) {
        fprintf(to,
                "Before a test %.2f MiB of weights come from the training net: %d calls, at most %.1f KiB sent "
                "by a worker.\n",
                (double)bytes / (1 << 20), c.calls, (double)c.sent / 1024);
    }
    return status;
}

dm_status nn_explain_program(const nn_net *net, dm_program program, char **text)
{
    dm_status status = dm_explain_begin(net->session);
    if (status == DM_OK) {
        const dm_status well = dm_program_run(net->session, program, 1, 0, NULL);
        status = dm_explain_end(net->session, text);
        status = well == DM_OK ? status : well;
    }
    return status;
}

/* What the recorded step of a solver holds at once: arrays that stay, and the workspace that all others share.
 */
static dm_status explain_step(FILE *to, const nn_net *net)
{
    dm_program program = {0};
    char *text = NULL;
    int64_t most = -1, arrays = 0, workspace = 0;
    dm_status status = net->step(net->solver, &program);
    if (status != DM_OK || !program.id) {
        return status;
    }
    status = nn_explain_program(net, program, &text);
    for (const char *line = text; status == DM_OK && line; line = strchr(line, '\n')) {
        int worker = 0;
        long long bytes = 0;
        line += *line == '\n';
        if (sscanf(line,
                   " worker %d: steps %*d sent %*d received %*d messages_sent %*d messages_received %*d "
                   "workspace %lld",
                   &worker, &bytes) == 2) {
            dm_memory m = {.size = sizeof m};
            status = dm_memory_report(net->session, worker, &m);
            if (m.arrays + bytes > most) {
                most = m.arrays + bytes;
                arrays = m.arrays;
                workspace = bytes;
            }
        }
    }
    if (status == DM_OK) {
        fprintf(to,
                "A recorded step holds %.2f MiB on the worker with most: %.2f of arrays, %.2f of workspace.\n",
                (double)most / (1 << 20), (double)arrays / (1 << 20), (double)workspace / (1 << 20));
    }
    free(text);
    dm_status end = dm_program_destroy(net->session, program);
    return status == DM_OK ? end : status;
}

static void put_head(FILE *to, const nn_net *net, const nn_rates *r)
{
    if (r) {
        fprintf(to,
                "Times are estimates of what the layers compute: the larger of GFLOP / %.4g a second and MiB "
                "read and "
                "written / %.4g a second, the rates of all workers together; what is sent is not in them.\n",
                r->flops * 1e-9, r->bytes / (1 << 20));
    }
    const nn_widths w = nn_widths_of(net);
    fprintf(to, "%-*s %-*s %-8s %10s %6s %12s %6s %12s %10s %10s %10s", w.name, "layer", w.type, "type",
            "split", "GFLOP", "calls", "sent KiB", "calls", "sent KiB", "blobs MiB", "param MiB", "work MiB");
    fprintf(to, r ? " %10s %11s\n" : "\n", "forward ms", "backward ms");
}

static void put_sums(FILE *to, const nn_net *net, const nn_rates *r, double flops, int64_t sent,
                     const int64_t *memory, const double *ms)
{
    fprintf(to,
            "On %d worker%s, forward%s: %.4g GFLOP in products; at most %.1f KiB sent by a worker; "
            "%.2f MiB of blobs "
            "on all workers together, %.2f MiB of parameters%s on each",
            dm_workers(net->session), dm_workers(net->session) > 1 ? "s" : "",
            net->phase == NN_TRAIN ? " and backward" : "", flops * 1e-9, (double)sent / 1024,
            (double)memory[0] / (1 << 20), (double)memory[1] / (1 << 20),
            net->phase == NN_TEST ? "" : ", their gradients and histories");
    if (r) {
        fprintf(to, "; about %.4g ms forward, %.4g ms backward", ms[0], ms[1]);
    }
    fputs(".\n", to);
}

static dm_status explain(nn_net *net, const nn_rates *r, char **text)
{
    size_t length = 0;
    double flops = 0, ms[2] = {0, 0};
    int64_t sent = 0, memory[2] = {0, 0};
    FILE *to = open_memstream(text, &length);
    if (!to) {
        return dm_error_no_memory("a text", BUFSIZ);
    }
    put_head(to, net, r);
    dm_status status = net->lean ? nn_blobs_make(net, true) : DM_OK;
    status = status == DM_OK && net->phase == NN_TRAIN ? nn_spares_make(net) : status;
    for (int i = 0; i < net->blob_count; i++) {
        net->blobs[i]->gradients = 0;
    }
    for (int i = 0; i < net->param_count; i++) {
        net->params[i]->gradients = 0;
    }
    for (int i = 0; i < net->turned_count; i++) {
        net->turned[i]->gradients = 0;
    }
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        status = explain_layer(to, &net->layers[i], r, &flops, &sent, memory, ms);
    }
    status = status == DM_OK ? explain_gathering(to, net, &sent) : status;
    put_sums(to, net, r, flops, sent, memory, ms);
    if (net->wire && net->phase == NN_TRAIN) {
        fprintf(to, "Gradients of weights are sent in bf16, their sums in f32.\n");
    }
    status = status == DM_OK ? explain_weights(to, net) : status;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        if ((net->layers[i].type->traits & NN_CUTS) && !nn_inner_by_rows(&net->layers[i]) &&
            !nn_conv_is_nd(&net->layers[i])) {
            explain_split(to, &net->layers[i]);
        }
        explain_update(to, &net->layers[i]);
    }
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        if (net->layers[i].type->traits & NN_FEED) {
            fprintf(to, "%s: %s\n", net->layers[i].name,
                    nn_feed_by_workers(net->layers[i].u.state)
                        ? "each worker reads its own records"
                        : "the program's process reads the records for all workers");
        }
    }
    status = status == DM_OK ? nn_spares_end(net) : status;
    status = status == DM_OK && net->lean ? nn_blobs_end(net, true) : status;
    status = status == DM_OK && net->step ? explain_step(to, net) : status;
    if (fclose(to) != 0 && status == DM_OK) {
        status = dm_error_no_memory("a text", length);
    }
    return status;
}

dm_status dm_net_explain(dm_net *net, char **text)
{
    if (!net || !text) {
        return dm_error_set(DM_ERR_ARG, "dm_net_explain: an argument is NULL");
    }
    dm_status status = nn_net_enter(net);
    return status == DM_OK ? nn_net_leave(net, explain(net, NULL, text)) : status;
}

static dm_status explain_at(nn_net *net, double flops, double bytes, char **text)
{
    nn_rates r = {flops, bytes};
    dm_status status = flops > 0 ? DM_OK : nn_rates_measure(net, &r);
    return status == DM_OK ? explain(net, &r, text) : status;
}

dm_status dm_net_explain_at(dm_net *net, double flops, double bytes, char **text)
{
    const bool measured = flops == 0 && bytes == 0,
               said = isfinite(flops) && isfinite(bytes) && flops > 0 && bytes > 0;
    if (!net || !text || !(measured || said)) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_net_explain_at: net and text must be there, flops and bytes both be "
                            "positive numbers, or both 0");
    }
    dm_status status = nn_net_enter(net);
    return status == DM_OK ? nn_net_leave(net, explain_at(net, flops, bytes, text)) : status;
}
