/* The rates of the workers, measured: of a product, a sum, and what goes from one to the next. */
#include "net/net.h"

#include <math.h>
#include <stdlib.h>

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
        double start = nn_now_s();
        for (int64_t i = 0; status == DM_OK && i < count; i++) {
            status = call(p);
        }
        status = status == DM_OK ? dm_sync(p->session) : status;
        double passed = nn_now_s() - start;
        if (passed < 0.02) {
            count *= 2;
            continue;
        }
        *seconds = fmin(*seconds, passed / (double)count);
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
