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

/* --- what layers take. A pass notes times on the workers (dm_clock), and nobody waits for a layer: its time
 * begins where that of the layer before ends. Columns of net->times: when the layers that bring data begin,
 * when the others do, when each layer's forward function ends, and each one's backward function. */
static int columns(const nn_net *net)
{
    return 2 + 2 * net->layer_count;
}

static dm_status note(const nn_net *net, int column)
{
    const int64_t lo[] = {0, column}, extent[] = {dm_workers(net->session), 1};
    dm_array at = DM_NO_ARRAY;
    dm_status status = dm_array_view(net->session, net->times, lo, extent, &at);
    status = status == DM_OK ? dm_clock(net->session, at) : status;
    dm_status end = dm_array_destroy(net->session, at);
    return status == DM_OK ? end : status;
}

dm_status nn_time_begin(const nn_net *net, bool sources)
{
    return net->times.id ? note(net, sources ? 0 : 1) : DM_OK;
}

dm_status nn_time_end(const nn_layer *l, bool back)
{
    return l->net->times.id ? note(l->net, 2 + l->index + (back ? l->net->layer_count : 0)) : DM_OK;
}

/* What a pass noted: adds each layer's ms, less what a note takes, to forward and backward,
 * unless these are NULL. Returns the sum. */
static double add_up(const nn_net *net, const int64_t *row, double note_ms, double *forward, double *backward)
{
    const int count = net->layer_count;
    double sum = 0;
    for (int sources = 1; sources >= 0; sources--) {
        int64_t before = row[1 - sources];
        for (int k = 0; k < 2 * count; k++) { /* forward, then backward from the last on */
            const bool back = k >= count;
            const int i = back ? 2 * count - 1 - k : k;
            const nn_layer *l = &net->layers[i];
            const bool source = (l->type->traits & NN_SOURCE) != 0;
            if (back ? sources || net->phase != NN_TRAIN || !l->need_backward : source != sources) {
                continue;
            }
            double *to = back ? backward : forward;
            const int64_t now = row[2 + i + (back ? count : 0)];
            const double ms = fmax((double)(now - before) * 1e-6 - note_ms, 0);
            before = now;
            sum += ms;
            if (to) {
                to[i] += ms;
            }
        }
    }
    return sum;
}

static dm_status pass_calls(void *of)
{
    nn_net *net = of;
    dm_status status = nn_forward_part(net, false);
    return status == DM_OK && net->phase == NN_TRAIN ? nn_backward(net, false) : status;
}

/* The two kinds of passes: those that note times, and those that do not. */
typedef struct timing {
    nn_net *net;
    dm_array times;        /* of the last pass */
    dm_array all;          /* of all passes, one behind the other */
    dm_program program[2]; /* without, with notes; zero: call by call */
} timing;

/* A pass as in training, but without the update. */
static dm_status run_pass(const timing *t, bool noted)
{
    nn_net *net = t->net;
    net->times = noted ? t->times : DM_NO_ARRAY;
    if (!t->program[noted].id) {
        dm_status status = nn_forward(net);
        return status == DM_OK && net->phase == NN_TRAIN ? nn_backward(net, false) : status;
    }
    dm_status status = nn_forward_part(net, true);
    status = status == DM_OK ? nn_params_renew(net) : status;
    net->pass++;
    return status == DM_OK ? dm_program_run(net->session, t->program[noted], 1, 0, NULL) : status;
}

/* Makes the program, if there can be one, and runs a first pass, which compiles and plans. */
static dm_status begin_passes(timing *t, bool noted)
{
    nn_net *net = t->net;
    net->times = noted ? t->times : DM_NO_ARRAY;
    dm_program *program = &t->program[noted];
    dm_status status = nn_recordable(net) ? nn_program_record(net, pass_calls, net, program) : DM_OK;
    status = status == DM_OK && program->id ? dm_program_set_run(net->session, *program, net->pass) : status;
    status = status == DM_OK ? run_pass(t, noted) : status;
    return status == DM_OK ? dm_sync(net->session) : status;
}

static dm_status note_all(void *of)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < columns(of); i++) {
        status = note(of, i);
    }
    return status;
}

/* What a note takes, at the worker where it takes longest: the least mean of some tries. rows: room for each
 * worker's times. */
static dm_status time_note(const timing *t, int64_t *rows, double *ms)
{
    enum { TRIES = 10 };
    nn_net *net = t->net;
    const int many = columns(net);
    dm_program program = {0};
    net->times = t->times;
    dm_status status = nn_recordable(net) ? nn_program_record(net, note_all, net, &program) : DM_OK;
    *ms = INFINITY;
    for (int k = 0; status == DM_OK && k < TRIES; k++) {
        double longest = 0;
        status = program.id ? dm_program_run(net->session, program, 1, 0, NULL) : note_all(net);
        status = status == DM_OK ? dm_array_read(net->session, t->times, NULL, NULL, rows, 0) : status;
        for (int w = 0; status == DM_OK && w < dm_workers(net->session); w++) {
            const int64_t *row = rows + (int64_t)w * many;
            longest = fmax(longest, (double)(row[many - 1] - row[0]) * 1e-6 / (many - 1));
        }
        *ms = fmin(*ms, longest);
    }
    dm_status end = dm_program_destroy(net->session, program);
    return status == DM_OK ? end : status;
}

/* Keeps what the last pass has noted, as that of pass k. */
static dm_status keep(const timing *t, int k)
{
    dm_session *s = t->net->session;
    const int64_t lo[] = {0, (int64_t)k * columns(t->net)}, extent[] = {dm_workers(s), columns(t->net)};
    dm_array part = DM_NO_ARRAY;
    dm_status status = dm_array_view(s, t->all, lo, extent, &part);
    status = status == DM_OK ? dm_copy(s, t->times, part) : status;
    dm_status end = dm_array_destroy(s, part);
    return status == DM_OK ? end : status;
}

/* A pass, or several together, and what they took. */
typedef struct took {
    double ms;
    int pass;
} took;

static int by_time(const void *a, const void *b)
{
    const double x = ((const took *)a)->ms, y = ((const took *)b)->ms;
    return (x > y) - (x < y);
}

/* Sorts them: the shorter half comes first, of which means are taken. Returns how many that are. */
static int shorter_half(took *all, int count)
{
    qsort(all, (size_t)count, sizeof *all, by_time);
    return (count + 1) / 2;
}

/* Makes the first row of a pass that of all workers: a layer ends where the last of them ends it, each by its
 * own clock from the begin of the pass on. So nobody's wait for another worker counts, and the sum is the
 * longest pass. */
static void merge_rows(const nn_net *net, int64_t *rows, int64_t apart)
{
    for (int w = 0; w < dm_workers(net->session); w++) {
        int64_t *row = rows + w * apart;
        for (int i = columns(net) - 1; i >= 0; i--) {
            const int64_t since = row[i] - row[0];
            rows[i] = w == 0 || since > rows[i] ? since : rows[i];
        }
    }
}

/* Means of the shorter half of the passes. */
static void take_means(const nn_net *net, int64_t *rows, int passes, double note_ms, took *all, double *forward,
                       double *backward)
{
    const int count = net->layer_count;
    for (int k = 0; k < passes; k++) {
        int64_t *pass = rows + (int64_t)k * columns(net);
        merge_rows(net, pass, (int64_t)passes * columns(net));
        all[k] = (took){add_up(net, pass, note_ms, NULL, NULL), k};
    }
    const int half = shorter_half(all, passes);
    memset(forward, 0, (size_t)count * sizeof *forward);
    memset(backward, 0, (size_t)count * sizeof *backward);
    for (int k = 0; k < half; k++) {
        (void)add_up(net, rows + (int64_t)all[k].pass * columns(net), note_ms, forward, backward);
    }
    for (int i = 0; i < count; i++) {
        forward[i] /= half;
        backward[i] /= half;
    }
}

/* Passes with notes, and where `plain` is not NULL as many without after some of them, which the program's
 * clock times: what one takes goes to plain[0 .. *groups). */
static dm_status run_passes(timing *t, int passes, took *plain, int *groups)
{
    enum { MOST = 10 };
    const int each = (passes + MOST - 1) / MOST;
    dm_status status = begin_passes(t, true);
    status = status == DM_OK && plain ? begin_passes(t, false) : status;
    for (int k = 0; status == DM_OK && k < passes;) {
        const int end = k + each < passes ? k + each : passes, count = end - k;
        for (; status == DM_OK && k < end; k++) {
            status = run_pass(t, true);
            status = status == DM_OK ? keep(t, k) : status;
        }
        if (!plain) {
            continue;
        }
        status = status == DM_OK ? dm_sync(t->net->session) : status;
        const double start = now_ms();
        for (int i = 0; status == DM_OK && i < count; i++) {
            status = run_pass(t, false);
        }
        status = status == DM_OK ? dm_sync(t->net->session) : status;
        plain[(*groups)++] = (took){.ms = (now_ms() - start) / count};
    }
    return status;
}

static dm_status begin_timing(timing *t, int passes)
{
    dm_session *s = t->net->session;
    const int64_t workers = dm_workers(s), shape[] = {workers, columns(t->net)},
                  long_shape[] = {workers, (int64_t)passes * columns(t->net)};
    const dm_layout mine = dm_layout_rows(s);
    dm_status status = dm_array_create(s, DM_I64, 2, shape, &mine, &t->times);
    status = status == DM_OK ? dm_array_create(s, DM_I64, 2, long_shape, &mine, &t->all) : status;
    return status == DM_OK ? dm_fill(s, t->times, 0) : status;
}

static dm_status end_timing(timing *t, dm_status before)
{
    nn_net *net = t->net;
    net->times = DM_NO_ARRAY;
    const dm_status end[] = {before,
                             dm_program_destroy(net->session, t->program[0]),
                             dm_program_destroy(net->session, t->program[1]),
                             nn_spares_end(net),
                             net->lean ? nn_blobs_end(net, true) : DM_OK,
                             dm_array_destroy(net->session, t->times),
                             dm_array_destroy(net->session, t->all)};
    for (int i = 0; before == DM_OK && i < NN_COUNT(end); i++) {
        before = end[i];
    }
    return before;
}

/* plain_ms: NULL, or what a pass without notes takes. */
static dm_status measure(nn_net *net, int passes, double *forward, double *backward, double *plain_ms)
{
    const size_t bytes =
        (size_t)dm_workers(net->session) * (size_t)passes * (size_t)columns(net) * sizeof(int64_t);
    timing t = {.net = net};
    int64_t *rows = malloc(bytes);
    took *all = calloc(2 * (size_t)passes, sizeof *all), *plain = plain_ms ? all + passes : NULL;
    double note_ms = 0;
    int groups = 0;
    dm_status status =
        rows && all ? begin_timing(&t, passes) : dm_error_no_memory("the times of passes", bytes);
    status = status == DM_OK ? time_note(&t, rows, &note_ms) : status;
    status = status == DM_OK ? run_passes(&t, passes, plain, &groups) : status;
    status = status == DM_OK ? dm_array_read(net->session, t.all, NULL, NULL, rows, 0) : status;
    if (status == DM_OK) {
        take_means(net, rows, passes, note_ms, all, forward, backward);
    }
    if (status == DM_OK && plain) {
        const int half = shorter_half(plain, groups);
        *plain_ms = 0;
        for (int k = 0; k < half; k++) {
            *plain_ms += plain[k].ms / half;
        }
    }
    free(rows);
    free(all);
    return end_timing(&t, status);
}

dm_status dm_net_measure(dm_net *net, int passes, double *forward, double *backward)
{
    if (!net || !forward || !backward || passes < 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_measure: net and arrays must be there, passes at least 1");
    }
    dm_status status = nn_net_enter(net);
    return status == DM_OK ? nn_net_leave(net, measure(net, passes, forward, backward, NULL)) : status;
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

/* Of a product of `side` rows on each worker with `side` x `side` weights. */
static dm_status measure_product(const nn_net *net, int64_t side, double *seconds)
{
    dm_session *s = net->session;
    const int64_t rows[] = {side * dm_workers(s), side}, square[] = {side, side};
    const dm_layout everywhere = dm_layout_replicated(s), mine = dm_layout_batch(s, rows[0], 0);
    probe p = {.session = s};
    dm_status status = dm_array_create(s, net->type, 2, rows, &mine, &p.a);
    status = status == DM_OK ? dm_array_create(s, net->type, 2, square, &everywhere, &p.b) : status;
    status = status == DM_OK ? dm_array_create(s, net->type, 2, rows, &mine, &p.c) : status;
    status = status == DM_OK ? dm_fill(s, p.a, 0.5) : status;
    status = status == DM_OK ? dm_fill(s, p.b, 0.5) : status;
    status = status == DM_OK ? seconds_of(&p, product, seconds) : status;
    return end_probe(&p, status);
}

/* A product of few rows does not fill a GPU: larger ones, up to MOST, while one takes less than half a ms. */
static dm_status measure_products(const nn_net *net, double *flops)
{
    enum { FIRST = 1024, MOST = 4096 };
    const double short_s = 5e-4;
    double seconds = 0;
    dm_status status = DM_OK;
    *flops = 0;
    for (int64_t side = FIRST; status == DM_OK && side <= MOST && seconds < short_s; side *= 2) {
        status = measure_product(net, side, &seconds);
        *flops =
            fmax(*flops, 2.0 * (double)side * (double)side * (double)side * dm_workers(net->session) / seconds);
    }
    return status;
}

dm_status nn_rates_measure(const nn_net *net, nn_rates *out)
{
    enum { LONG = 1 << 23 };
    dm_session *s = net->session;
    const int64_t many = (int64_t)LONG * dm_workers(s);
    const dm_layout parts = dm_layout_rows(s);
    double seconds = 0;
    probe m = {.session = s};
    dm_status status = measure_products(net, &out->flops);
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

/* Each worker's block, a row of so many numbers, goes to the worker behind it. */
static dm_status measure_copy(dm_session *s, int64_t row, double *seconds)
{
    const int workers = dm_workers(s);
    const int64_t shape[] = {workers, row}, block[] = {1, row};
    const dm_layout rows = dm_layout_rows(s);
    probe p = {.session = s};
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
    status = status == DM_OK ? seconds_of(&p, move, seconds) : status;
    free(next);
    return end_probe(&p, status);
}

static dm_status measure_link(dm_session *s, nn_speed *out)
{
    enum { LONG = 1 << 21, SHORT = 1 };
    double seconds = 0;
    dm_status status = measure_copy(s, SHORT, &out->wait);
    status = status == DM_OK ? measure_copy(s, LONG, &seconds) : status;
    out->link = LONG * (double)sizeof(float) / fmax(seconds - out->wait, 0.01 * seconds);
    return status;
}

dm_status nn_speed_measure(const nn_net *net, nn_speed *out)
{
    const int workers = dm_workers(net->session);
    nn_rates all = {0};
    dm_status status = nn_rates_measure(net, &all);
    status = status == DM_OK ? measure_link(net->session, out) : status;
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
    fprintf(to, "%-20s %-16s %10s %10s %10s %10s %10s %7s   ms, the shorter half of %d passes\n", "layer",
            "type", "forward", "backward", "GFLOP", "MiB", "limit ms", "part", passes);
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        double flops =
            nn_layer_flops(l) * (net->phase == NN_TRAIN && l->need_backward ? 1 + 1 + l->down[0] : 1);
        double bytes = nn_layer_bytes(l, false) + nn_layer_bytes(l, true), ms = forward[i] + backward[i];
        double limit = 1e3 * (flops / r->flops > bytes / r->bytes ? flops / r->flops : bytes / r->bytes);
        fprintf(to, "%-20s %-16s %10.3f %10.3f %10.4g %10.2f %10.3f ", l->name, l->type->name, forward[i],
                backward[i], flops * 1e-9, bytes / (1 << 20), limit);
        if (limit > 0 && ms > 0) {
            fprintf(to, "%6.0f%%\n", 100 * limit / ms);
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
    fprintf(to, "a pass without notes of time: %.3f ms; the sum is %.0f%% of it\n", pass,
            pass > 0 ? 100 * all / pass : 0);
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
    double *forward = malloc(bytes), *backward = malloc(bytes), pass = 0;
    dm_status status = forward && backward ? measure(net, passes, forward, backward, &pass)
                                           : dm_error_no_memory("the times of layers", 2 * bytes);
    nn_rates r = {1, 1};
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
