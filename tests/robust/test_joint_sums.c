/* Gradients of a program's layers that are parts of larger arrays are summed together (option sum_bucket,
 * adr/0055): random programs of gradients, against loops where every number is whole, and with the same bits
 * whatever the buckets and the number of workers otherwise. What lies between the parts stays as it is. */
#include "robust.h"

#include <dmath/layers.h>
#include <dmath/program.h>

enum { LAYERS = 7, FLATS = 2, ROOM = 3000, BATCH = 12, SIDE = 5, COPY = 40, RUNS = 2 };
static const float between = 7.5F;

typedef enum kind { INNER, CONV, RELU, KINDS } kind;

/* A gradient: of `out` x `in` weights, or of `out` channels, in the array `flat` from element `at` on. */
typedef struct layer {
    kind kind;
    int flat, bias_flat; /* bias_flat -1: no bias */
    int64_t at, bias_at, out, in;
    bool twice;  /* the same gradient again, which is added */
    bool looks;  /* part of it is copied behind it */
    bool before; /* its place is written to before */
} layer;

typedef struct net {
    layer layer[LAYERS];
    int slices, wire;
    bool whole; /* numbers */
} net;

/* What a run leaves behind. */
typedef struct result {
    float flat[FLATS][ROOM], copy[LAYERS][COPY];
} result;

static uint64_t state_of;
static int64_t pick(int64_t from, int64_t to)
{
    state_of = state_of * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return from + (int64_t)(state_of >> 33) % (to - from + 1);
}

static net make_net(uint64_t seed)
{
    net n = {.slices = 0};
    int64_t end[FLATS] = {0};
    state_of = seed * 977 + 5;
    n.slices = (int)pick(0, 5);
    n.whole = pick(0, 1);
    n.wire = pick(0, 3) == 0 && !n.whole ? DM_BF16 : 0;
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &n.layer[i];
        l->kind = (kind)pick(0, KINDS - 1);
        l->out = pick(0, 2) ? 16 * pick(1, 2) : pick(1, 9);
        l->in = l->kind == RELU ? 1 : pick(1, 7);
        l->flat = (int)pick(0, FLATS - 1);
        l->at = (end[l->flat] + pick(0, 9) + l->in - 1) / l->in * l->in; /* a view begins with a row */
        end[l->flat] = l->at + l->out * l->in;
        l->bias_flat = l->kind != RELU && pick(0, 1) ? (int)pick(0, FLATS - 1) : -1;
        if (l->bias_flat >= 0) {
            l->bias_at = end[l->bias_flat] + pick(0, 3);
            end[l->bias_flat] = l->bias_at + l->out;
        }
        l->twice = pick(0, 5) == 0;
        l->looks = pick(0, 4) == 0;
        l->before = pick(0, 4) == 0;
        assert_true(end[0] <= ROOM && end[1] <= ROOM);
    }
    return n;
}

/* Element i of an array of a layer. */
static float number_of(const net *n, int of, int which, int64_t i)
{
    uint64_t x = ((uint64_t)of * 2 + (uint64_t)which) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i * 40503;
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    int small = (int)(x >> 40 & 7) - 3;
    return n->whole ? (float)small : (float)small + (float)(x >> 16 & 0xffff) / 65536.0F;
}

static dm_array make_array(dm_session *s, const net *n, int of, int which, int ndim, const int64_t *shape)
{
    dm_layout rows = dm_layout_rows(s);
    dm_array x = DM_NO_ARRAY;
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = number_of(n, of, which, i);
    }
    OK(dm_array_create(s, DM_F32, ndim, shape, &rows, &x));
    OK(dm_array_write(s, x, NULL, NULL, values, 0));
    free(values);
    return x;
}

static dm_array part_of(dm_session *s, dm_array flat, int64_t at, int ndim, const int64_t *shape, int64_t count)
{
    dm_array part = DM_NO_ARRAY, out = DM_NO_ARRAY;
    OK(dm_array_view(s, flat, &at, &count, &part));
    OK(dm_array_reshape(s, part, ndim, shape, &out));
    OK(dm_array_destroy(s, part));
    return out;
}

typedef struct arrays {
    dm_array flat[FLATS], x[LAYERS], dy[LAYERS], dx[LAYERS], dw[LAYERS], db[LAYERS], copy[LAYERS];
} arrays;

static void make_arrays(dm_session *s, const net *n, arrays *a)
{
    dm_layout all = dm_layout_replicated(s);
    for (int f = 0; f < FLATS; f++) {
        OK(dm_array_create(s, DM_F32, 1, (int64_t[]){ROOM}, &all, &a->flat[f]));
        OK(dm_fill(s, a->flat[f], between));
    }
    for (int i = 0; i < LAYERS; i++) {
        const layer *l = &n->layer[i];
        int dims = l->kind == INNER ? 2 : 4;
        int64_t x[4] = {BATCH, l->in, SIDE, l->in}, y[4] = {BATCH, l->out, SIDE, l->out};
        int64_t w[4] = {l->out, l->in, 1, l->in}, copy = l->out * l->in < COPY ? l->out * l->in : COPY;
        if (dims == 4) {
            x[1] = y[1] = SIDE;
            w[1] = 1;
        }
        a->x[i] = make_array(s, n, i, 0, dims, l->kind == RELU ? y : x);
        a->dy[i] = make_array(s, n, i, 1, dims, y);
        a->dx[i] = l->kind == RELU ? make_array(s, n, i, 0, dims, y) : DM_NO_ARRAY;
        a->dw[i] = part_of(s, a->flat[l->flat], l->at, l->kind == RELU ? 1 : dims, w, l->out * l->in);
        a->db[i] =
            l->bias_flat < 0 ? DM_NO_ARRAY : part_of(s, a->flat[l->bias_flat], l->bias_at, 1, &l->out, l->out);
        OK(dm_array_create(s, DM_F32, 1, &copy, &all, &a->copy[i]));
        OK(dm_fill(s, a->copy[i], 0));
    }
}

static void gradient(dm_session *s, const net *n, const arrays *a, int i, double beta)
{
    const layer *l = &n->layer[i];
    dm_conv conv = DM_CONV_INIT;
    dm_inner inner = DM_INNER_INIT;
    conv.slices = inner.slices = n->slices;
    conv.wire = inner.wire = (dm_dtype)n->wire;
    if (l->kind == INNER) {
        OK(dm_inner_backward_weights_with(s, &inner, a->x[i], a->dy[i], dm_value(beta), a->dw[i], a->db[i]));
    } else if (l->kind == CONV) {
        OK(dm_conv_backward_weights(s, &conv, a->x[i], a->dy[i], beta, a->dw[i], a->db[i]));
    } else {
        OK(dm_relu_backward_sums(s, n->slices, a->x[i], a->dy[i], a->dx[i], beta, a->dw[i]));
    }
}

static void calls(dm_session *s, const net *n, const arrays *a)
{
    for (int i = 0; i < LAYERS; i++) {
        const layer *l = &n->layer[i];
        int64_t count = l->out * l->in < COPY ? l->out * l->in : COPY;
        dm_array part = DM_NO_ARRAY;
        if (l->before) {
            OK(dm_fill(s, a->dw[i], 3));
        }
        gradient(s, n, a, i, 0);
        if (l->twice) {
            gradient(s, n, a, i, 1);
        }
        if (l->looks) {
            OK(dm_array_view(s, a->flat[l->flat], &l->at, &count, &part));
            OK(dm_copy(s, part, a->copy[i]));
            OK(dm_array_destroy(s, part));
        }
    }
    for (int f = 0; f < FLATS; f++) { /* as an update does, the program reads them whole */
        OK(dm_axpby(s, 0, a->flat[f], 1, a->flat[f]));
    }
}

/* RUNS runs of the program on so many workers; counts: of messages that a run sends. */
static void run(int workers, const char *options, const net *n, result *out, int64_t *messages)
{
    dm_session *s = open_session(workers, options);
    dm_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    dm_program program = {0};
    arrays a;
    make_arrays(s, n, &a);
    OK(dm_program_begin(s));
    calls(s, n, &a);
    OK(dm_program_end(s, &program));
    OK(dm_sync(s));
    *messages = 0;
    for (int w = 0; w < workers; w++) {
        OK(dm_counters_get(s, w, &before));
        *messages -= before.messages_sent;
    }
    OK(dm_program_run(s, program, RUNS, 0, NULL));
    OK(dm_sync(s));
    for (int w = 0; w < workers; w++) {
        OK(dm_counters_get(s, w, &after));
        *messages += after.messages_sent;
    }
    OK(dm_program_destroy(s, program));
    memset(out, 0, sizeof *out);
    for (int f = 0; f < FLATS; f++) {
        OK(dm_array_read(s, a.flat[f], NULL, NULL, out->flat[f], 0));
        OK(dm_array_destroy(s, a.flat[f]));
    }
    for (int i = 0; i < LAYERS; i++) {
        OK(dm_array_read(s, a.copy[i], NULL, NULL, out->copy[i], 0));
        dm_array mine[] = {a.x[i], a.dy[i], a.dx[i], a.dw[i], a.db[i], a.copy[i]};
        for (int k = 0; k < 6; k++) {
            OK(mine[k].id ? dm_array_destroy(s, mine[k]) : DM_OK);
        }
    }
    close_session(s);
}

/* By loops. */
static void expect(const net *n, result *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < FLATS * ROOM; i++) {
        out->flat[i / ROOM][i % ROOM] = between;
    }
    for (int i = 0; i < LAYERS; i++) {
        const layer *l = &n->layer[i];
        int64_t points = l->kind == INNER ? BATCH : BATCH * SIDE * SIDE;
        for (int64_t k = 0; k < l->out * l->in; k++) {
            double sum = 0;
            for (int64_t p = 0; p < points; p++) {
                double dy = number_of(n, i, 1, p * l->out + k / l->in);
                sum += l->kind == RELU ? number_of(n, i, 0, p * l->out + k) > 0 ? dy : 0
                                       : dy * (double)number_of(n, i, 0, p * l->in + k % l->in);
            }
            out->flat[l->flat][l->at + k] = (float)(l->twice ? 2 * sum : sum);
            if (l->looks && k < COPY) {
                out->copy[i][k] = out->flat[l->flat][l->at + k];
            }
        }
        for (int64_t k = 0; k < l->out && l->bias_flat >= 0; k++) {
            double sum = 0;
            for (int64_t p = 0; p < points; p++) {
                sum += number_of(n, i, 1, p * l->out + k);
            }
            out->flat[l->bias_flat][l->bias_at + k] = (float)(l->twice ? 2 * sum : sum);
        }
    }
}

static void equal(const result *got, const result *want, uint64_t seed, int workers, const char *options)
{
    const float *g = (const float *)(const void *)got, *w = (const float *)(const void *)want;
    for (int i = 0; i < (int)(sizeof *got / sizeof *g); i++) {
        if (memcmp(&g[i], &w[i], sizeof *g) != 0) {
            fail_msg("net %d, %d workers, %s: number %d is %.9g, not %.9g", (int)seed, workers, options, i,
                     (double)g[i], (double)w[i]);
        }
    }
}

static void test_random(void **state)
{
    static const int workers[] = {1, 2, 3, 5, 8};
    static const char *const buckets[] = {"sum_bucket=1", "sum_bucket=100", "sum_bucket=1500", "sum_bucket=1M"};
    const char *seeds = getenv("DMATH_TEST_SEEDS"); /* how many; default 6 */
    result *got = malloc(sizeof *got), *want = malloc(sizeof *want), *loops = malloc(sizeof *loops);
    int64_t apart = 0, together = 0, messages;
    (void)state;
    assert_true(got && want && loops);
    for (uint64_t seed = 0; seed < (seeds ? strtoull(seeds, NULL, 10) : 6); seed++) {
        net n = make_net(seed);
        bool have = false;
        for (int i = 0; i < (int)(sizeof workers / sizeof *workers); i++) {
            for (int k = 0; k < 4; k++) {
                char options[96];
                snprintf(options, sizeof options, "%s%s", buckets[k],
                         seed % 4 == 3   ? ",pretend_hosts=2"
                         : seed % 4 == 2 ? ",reduce_chunk=64"
                                         : "");
                run(workers[i], options, &n, got, &messages);
                apart += k == 0 ? messages : 0;
                together += k == 3 ? messages : 0;
                /* with no slices said a worker's samples are one, so bits depend on the workers */
                if (!have || (n.slices == 0 && k == 0)) {
                    *want = *got;
                    have = true;
                }
                equal(got, want, seed, workers[i], options);
            }
        }
        if (n.whole) {
            expect(&n, loops);
            equal(want, loops, seed, 0, "loops");
        }
    }
    if (together * 5 > apart * 4) {
        fail_msg("together %lld messages, apart %lld", (long long)together, (long long)apart);
    }
    free(got);
    free(want);
    free(loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_random, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
