/* How long the layers of a net take: what dm_net_measure and dm_net_time do. */
#include "net/net.h"

#include "data/feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pass notes times on the workers (dm_clock), and nobody waits for a layer: its time
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
 * own clock from the begin of the pass on, which all begin together. So nobody's wait for another worker
 * counts, and the sum is the longest pass. */
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
            /* Data come ahead, as in a run of steps. A worker far ahead would wait in some layer for the
             * others. */
            status = nn_feeds_ahead(t->net);
            status = status == DM_OK ? dm_sync(t->net->session) : status;
            status = status == DM_OK ? run_pass(t, true) : status;
            status = status == DM_OK ? keep(t, k) : status;
        }
        if (!plain) {
            continue;
        }
        status = status == DM_OK ? dm_sync(t->net->session) : status;
        const double start = nn_now_s();
        for (int i = 0; status == DM_OK && i < count; i++) {
            status = run_pass(t, false);
        }
        status = status == DM_OK ? dm_sync(t->net->session) : status;
        plain[(*groups)++] = (took){.ms = 1e3 * (nn_now_s() - start) / count};
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

static dm_status time_net(dm_net *net, int passes, char **text)
{
    size_t bytes = (size_t)(net->layer_count + 1) * sizeof(double);
    double *forward = malloc(bytes), *backward = malloc(bytes), pass = 0;
    dm_status status = forward && backward ? measure(net, passes, forward, backward, &pass)
                                           : dm_error_no_memory("the times of layers", 2 * bytes);
    nn_rates r = {1, 1};
    status = status == DM_OK ? nn_rates_measure(net, &r) : status;
    status = status == DM_OK ? nn_times_print(net, passes, &r, forward, backward, pass, text) : status;
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
