/* How long the layers of a net take, beside what the machine's rates allow. */
#include "net/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* One function of a layer, alone: all that was queued before is done. ms NULL: among the others, as in a step.
 */
static dm_status time_one(nn_layer *l, dm_status (*function)(nn_layer *), double *ms)
{
    if (!ms) {
        return function(l);
    }
    dm_status status = dm_sync(l->net->session);
    double start = now_ms();
    status = status == DM_OK ? function(l) : status;
    status = status == DM_OK ? dm_sync(l->net->session) : status;
    *ms = now_ms() - start;
    return status;
}

/* The least time of a command that does next to nothing, with the wait for it: no layer's own, and left out of
 * what each takes. */
static dm_status time_nothing(dm_session *s, double *ms)
{
    enum { TRIES = 50 };
    const dm_layout everywhere = dm_layout_replicated(s);
    dm_array a;
    dm_status status = dm_array_create(s, DM_F32, 1, (int64_t[]){1}, &everywhere, &a);
    if (status != DM_OK) {
        return status;
    }
    *ms = INFINITY;
    for (int i = 0; status == DM_OK && i < TRIES; i++) {
        double start = now_ms();
        status = dm_fill(s, a, 0);
        status = status == DM_OK ? dm_sync(s) : status;
        *ms = fmin(*ms, now_ms() - start);
    }
    dm_status end = dm_array_destroy(s, a);
    return status == DM_OK ? end : status;
}

/* A pass; forward and backward: NULL, or what each layer takes. */
static dm_status time_pass(nn_net *net, double *forward, double *backward)
{
    dm_status status = net->lean ? nn_blobs_make(net, true) : DM_OK;
    status = status == DM_OK ? nn_params_round(net) : status;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        status = time_one(&net->layers[i], net->layers[i].type->forward, forward ? &forward[i] : NULL);
    }
    net->pass++;
    status = status == DM_OK && net->phase == NN_TRAIN ? nn_spares_make(net) : status;
    for (int i = 0; i < net->blob_count; i++) {
        net->blobs[i]->gradients = 0;
    }
    for (int i = 0; i < net->param_count; i++) {
        net->params[i]->gradients = 0;
    }
    for (int i = net->layer_count - 1; status == DM_OK && net->phase == NN_TRAIN && i >= 0; i--) {
        if (net->layers[i].need_backward) {
            status = time_one(&net->layers[i], net->layers[i].type->backward, backward ? &backward[i] : NULL);
        }
    }
    return status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* out[i] = the median of all[i], all[count + i], ..., less what nothing takes. */
static void medians(const double *all, int count, int passes, double nothing, double *pass, double *out)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < passes; k++) {
            pass[k] = all[(int64_t)k * count + i];
        }
        out[i] = fmax(median(pass, passes) - nothing, 0);
    }
}

/* What passes call by call have made in a lean net, and the spare gradients. */
static dm_status end_lent(nn_net *net, dm_status status)
{
    dm_status spares = nn_spares_end(net), blobs = net->lean ? nn_blobs_end(net, true) : DM_OK;
    return status != DM_OK ? status : spares != DM_OK ? spares : blobs;
}

/* Medians, because some pass or other compiles kernels. */
static dm_status measure(dm_net *net, int passes, double *forward, double *backward)
{
    const int count = net->layer_count;
    const size_t all = (size_t)count * (size_t)passes;
    double nothing = 0, *times = calloc(2 * all + (size_t)passes, sizeof *times);
    dm_status status =
        times ? time_nothing(net->session, &nothing)
              : dm_error_no_memory("the times of passes", (2 * all + (size_t)passes) * sizeof *times);
    for (int i = -1; status == DM_OK && i < passes; i++) { /* the first is a warm-up */
        const int64_t at = (int64_t)(i < 0 ? 0 : i) * count;
        status = time_pass(net, times + at, times + all + at);
    }
    if (status == DM_OK) {
        medians(times, count, passes, nothing, times + 2 * all, forward);
        medians(times + all, count, passes, nothing, times + 2 * all, backward);
    }
    free(times);
    return end_lent(net, status);
}

dm_status dm_net_measure(dm_net *net, int passes, double *forward, double *backward)
{
    if (!net || !forward || !backward || passes < 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_measure: net and arrays must be there, passes at least 1");
    }
    dm_status status = nn_net_enter(net);
    return status == DM_OK ? nn_net_leave(net, measure(net, passes, forward, backward)) : status;
}

/* Of a whole pass, whose layers nobody waits for: the median. */
static dm_status measure_pass(nn_net *net, int passes, double *ms)
{
    double *times = calloc((size_t)passes, sizeof *times);
    dm_status status = times ? dm_sync(net->session)
                             : dm_error_no_memory("the times of passes", (size_t)passes * sizeof *times);
    for (int i = 0; status == DM_OK && i < passes; i++) {
        double start = now_ms();
        status = time_pass(net, NULL, NULL);
        status = status == DM_OK ? dm_sync(net->session) : status;
        times[i] = now_ms() - start;
    }
    *ms = status == DM_OK ? median(times, passes) : 0;
    free(times);
    return end_lent(net, status);
}

/* --- the rates of all workers together, measured */
typedef struct probe {
    dm_session *session;
    dm_array a, b, c;
} probe;

static dm_status product(const probe *p)
{
    return dm_inner_forward(p->session, 0, p->a, p->b, DM_NO_ARRAY, p->c);
}

static dm_status sum(const probe *p)
{
    return dm_add(p->session, 1, p->a, 1, p->b, p->c);
}

/* Seconds of one call, the least of some tries, out of as many calls as take 20 ms. */
static dm_status seconds_of(const probe *p, dm_status (*call)(const probe *), double *seconds)
{
    enum { TRIES = 5 };
    dm_status status = call(p);
    int64_t count = 1;
    *seconds = INFINITY;
    for (int tries = 0; status == DM_OK && tries < TRIES;) {
        status = dm_sync(p->session);
        double start = now_ms();
        for (int64_t i = 0; status == DM_OK && i < count; i++) {
            status = call(p);
        }
        status = status == DM_OK ? dm_sync(p->session) : status;
        double ms = now_ms() - start;
        if (ms < 20) {
            count *= 2;
            continue;
        }
        *seconds = fmin(*seconds, ms * 1e-3 / (double)count);
        tries++;
    }
    return status;
}

static dm_status end_probe(const probe *p, dm_status before)
{
    const dm_array all[] = {p->a, p->b, p->c};
    for (int i = 0; i < NN_COUNT(all); i++) {
        dm_status status = dm_array_destroy(p->session, all[i]);
        before = before == DM_OK ? status : before;
    }
    return before;
}

dm_status nn_rates_measure(const nn_net *net, nn_rates *out)
{
    enum { SIDE = 1024, LONG = 1 << 23 };
    dm_session *s = net->session;
    const int64_t rows = (int64_t)SIDE * dm_workers(s), many = (int64_t)LONG * dm_workers(s);
    const dm_layout everywhere = dm_layout_replicated(s), mine = dm_layout_batch(s, rows, 0),
                    parts = dm_layout_rows(s);
    double seconds = 0;
    probe p = {.session = s}, m = {.session = s};
    dm_status status = dm_array_create(s, net->type, 2, (int64_t[]){rows, SIDE}, &mine, &p.a);
    status =
        status == DM_OK ? dm_array_create(s, net->type, 2, (int64_t[]){SIDE, SIDE}, &everywhere, &p.b) : status;
    status = status == DM_OK ? dm_array_create(s, net->type, 2, (int64_t[]){rows, SIDE}, &mine, &p.c) : status;
    status = status == DM_OK ? dm_fill(s, p.a, 0.5) : status;
    status = status == DM_OK ? dm_fill(s, p.b, 0.5) : status;
    status = status == DM_OK ? seconds_of(&p, product, &seconds) : status;
    out->flops = 2.0 * (double)rows * SIDE * SIDE / seconds;
    status = end_probe(&p, status);
    dm_array *of[] = {&m.a, &m.b, &m.c};
    for (int i = 0; status == DM_OK && i < 3; i++) {
        status = dm_array_create(s, DM_F32, 1, &many, &parts, of[i]);
        status = status == DM_OK ? dm_fill(s, *of[i], 0) : status;
    }
    status = status == DM_OK ? seconds_of(&m, sum, &seconds) : status;
    out->bytes = 3.0 * (double)many * sizeof(float) / seconds;
    return end_probe(&m, status);
}

static dm_status move(const probe *p)
{
    return dm_copy(p->session, p->a, p->b);
}

/* Each worker's block of rows goes to the worker behind it. */
static dm_status measure_link(dm_session *s, double *rate)
{
    enum { ROW = 1 << 21 };
    const int workers = dm_workers(s);
    const int64_t shape[] = {workers, ROW}, block[] = {1, ROW};
    const dm_layout rows = dm_layout_rows(s);
    probe p = {.session = s};
    double seconds = 0;
    int *next = malloc((size_t)workers * sizeof *next);
    if (!next) {
        return dm_error_no_memory("the numbers of workers", (size_t)workers * sizeof *next);
    }
    for (int i = 0; i < workers; i++) {
        next[i] = (i + 1) % workers;
    }
    const dm_layout behind = dm_layout_explicit(2, block, next, workers);
    dm_status status = dm_array_create(s, DM_F32, 2, shape, &rows, &p.a);
    status = status == DM_OK ? dm_array_create(s, DM_F32, 2, shape, &behind, &p.b) : status;
    status = status == DM_OK ? dm_fill(s, p.a, 0.5) : status;
    status = status == DM_OK ? seconds_of(&p, move, &seconds) : status;
    *rate = ROW * (double)sizeof(float) / seconds;
    free(next);
    return end_probe(&p, status);
}

dm_status nn_speed_measure(const nn_net *net, nn_speed *out)
{
    const int workers = dm_workers(net->session);
    nn_rates all = {0};
    dm_status status = nn_rates_measure(net, &all);
    status = status == DM_OK ? measure_link(net->session, &out->link) : status;
    out->flops = all.flops / workers;
    out->memory = all.bytes / workers;
    return status;
}

double nn_layer_bytes(const nn_layer *l, bool back)
{
    const bool lrn = l->pooled && l->top[0]->between; /* the pooling behind it does its work */
    if (lrn || (back ? !l->need_backward || l->merged_back : l->merged)) {
        return 0;
    }
    const double each = l->net->type == DM_F32 ? 4 : 2;
    double bytes = 0;
    for (int i = 0; i < l->bottoms && !(back && nn_fused_follows(l)); i++) {
        bytes += (double)l->bottom[i]->count * each * (1 + (back && l->down[i]));
    }
    for (int i = 0; i < l->tops; i++) {
        bytes += (double)l->top[i]->count * each;
    }
    for (int i = 0; i < l->params; i++) { /* each worker has its own */
        bytes += (double)l->param[i]->count * (back ? each + 4 : each) *
                 (l->ranges ? l->split.parts[0] : dm_workers(l->net->session));
    }
    return bytes;
}

static dm_status print_times(const nn_net *net, int passes, const nn_rates *r, const double *forward,
                             const double *backward, double pass, char **text)
{
    size_t length = 0;
    double sum_of[3] = {0, 0, 0};
    FILE *to = open_memstream(text, &length);
    if (!to) {
        return dm_error_no_memory("a text", BUFSIZ);
    }
    fprintf(to, "%-20s %-16s %10s %10s %10s %10s %10s %7s   ms, median of %d passes\n", "layer", "type",
            "forward", "backward", "GFLOP", "MiB", "limit ms", "part", passes);
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        double flops =
            nn_layer_flops(l) * (net->phase == NN_TRAIN && l->need_backward ? 1 + 1 + l->down[0] : 1);
        double bytes = nn_layer_bytes(l, false) + nn_layer_bytes(l, true), took = forward[i] + backward[i];
        double limit = 1e3 * (flops / r->flops > bytes / r->bytes ? flops / r->flops : bytes / r->bytes);
        fprintf(to, "%-20s %-16s %10.3f %10.3f %10.4g %10.2f %10.3f ", l->name, l->type->name, forward[i],
                backward[i], flops * 1e-9, bytes / (1 << 20), limit);
        if (limit > 0 && took > 0) {
            fprintf(to, "%6.0f%%\n", 100 * limit / took);
        } else {
            fprintf(to, "%7s\n", "-");
        }
        sum_of[0] += forward[i];
        sum_of[1] += backward[i];
        sum_of[2] += limit;
    }
    double all = sum_of[0] + sum_of[1];
    fprintf(to, "%-20s %-16s %10.3f %10.3f %10s %10s %10.3f %6.0f%%   together %.3f\n", "all", "", sum_of[0],
            sum_of[1], "", "", sum_of[2], all > 0 ? 100 * sum_of[2] / all : 0, all);
    fprintf(to, "a pass whose layers are not waited for: %.3f ms, %.0f%% of the sum\n", pass,
            all > 0 ? 100 * pass / all : 0);
    fprintf(to,
            "limit: the larger of GFLOP / %.4g a second and MiB / %.4g a second, the rates of a product and a "
            "sum on these "
            "workers just now; part: of the time\n",
            r->flops * 1e-9, r->bytes / (1 << 20));
    return fclose(to) == 0 ? DM_OK : dm_error_no_memory("a text", length);
}

static dm_status time_net(dm_net *net, int passes, char **text)
{
    size_t bytes = (size_t)(net->layer_count + 1) * sizeof(double);
    double *forward = malloc(bytes), *backward = malloc(bytes);
    dm_status status = forward && backward ? measure(net, passes, forward, backward)
                                           : dm_error_no_memory("the times of layers", 2 * bytes);
    nn_rates r = {1, 1};
    double pass = 0;
    status = status == DM_OK ? measure_pass(net, passes, &pass) : status;
    status = status == DM_OK ? nn_rates_measure(net, &r) : status;
    status = status == DM_OK ? print_times(net, passes, &r, forward, backward, pass, text) : status;
    free(forward);
    free(backward);
    return status;
}

dm_status dm_net_time(dm_net *net, int passes, char **text)
{
    if (!net || !text || passes < 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_time: net and text must be there, passes at least 1");
    }
    dm_status status = nn_net_enter(net);
    return status == DM_OK ? nn_net_leave(net, time_net(net, passes, text)) : status;
}
