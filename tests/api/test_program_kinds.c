/* Programs of every kind of call, drawn at random: recorded and run so many times, they leave the bits that the
 * calls leave one by one. */
#include "support/cases.h"

#include <dmath/feed.h>
#include <dmath/index.h>
#include <dmath/layers.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/random.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 12, SAMPLES = 6, CALLS = 8, RUNS = 3, SQUARES = 4, TURNS = 64 };

/* What the calls use. */
typedef struct arrays {
    dm_array square[SQUARES]; /* f32 and f64 in turn, SIDE x SIDE */
    dm_array narrow[3];       /* bf16, by rows, of extents that the fused product takes */
    dm_array scalar, indices, column;
    dm_array image, weights, bias, filtered, pooled;
    dm_feed *feed; /* NULL: this launch cannot have one */
    bool recorded;
    int64_t run; /* not recorded: which one this is */
    int drawn;   /* seeds so far in the program */
} arrays;

static dm_array make(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, const dmt_layout *layout,
                     uint64_t seed)
{
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, dtype, ndim, shape, layout ? layout->use : NULL, &a));
    DMT_OK(c, dm_fill_uniform(c->session, a, -1, 1, seed));
    return a;
}

/* The same data again and again: what one way takes in its run number r, the other takes too. */
static void make_feed(dmt_case *c, arrays *a)
{
    dm_status status = dm_feed_create(c->session, DM_F32, 2, (int64_t[]){SIDE, SIDE}, TURNS, &a->feed);
    if (status == DM_ERR_UNSUPPORTED) { /* workers on other hosts */
        a->feed = NULL;
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_feed_create");
    for (int turn = 0; turn < TURNS; turn++) {
        void *buffer;
        DMT_OK(c, dm_feed_take(a->feed, -1, &buffer));
        for (int i = 0; i < SIDE * SIDE; i++) {
            ((float *)buffer)[i] = (float)((turn * 31 + i * 7) % 97) / 97;
        }
        DMT_OK(c, dm_feed_put(a->feed));
    }
}

enum { LAYOUTS = 16 };

static void make_arrays(dmt_case *c, const dmt_layout *layout, arrays *a)
{
    dm_session *s = c->session;
    const int64_t square[] = {SIDE, SIDE}, side = 16 * (int64_t)c->workers, narrow[] = {side, side};
    const int64_t image[] = {SAMPLES, 6, 5, 4}, weights[] = {8, 3, 3, 4}, filtered[] = {SAMPLES, 4, 3, 8},
                  pooled[] = {SAMPLES, 2, 2, 8};
    dm_layout rows = dm_layout_rows(s), samples = dm_layout_split(s, 0), all = dm_layout_replicated(s);
    for (int i = 0; i < SQUARES; i++) {
        a->square[i] = make(c, i % 2 ? DM_F64 : DM_F32, 2, square, &layout[i], (uint64_t)i + 1);
    }
    for (int i = 0; i < 3; i++) {
        a->narrow[i] = make(c, DM_BF16, 2, narrow, &(dmt_layout){.use = &rows}, (uint64_t)i + 11);
    }
    a->scalar = make(c, DM_F64, 0, NULL, &layout[SQUARES], 21);
    a->indices = make(c, DM_I32, 1, (int64_t[]){SIDE}, &layout[SQUARES + 1], 22);
    DMT_OK(c, dm_fill_uniform(s, a->indices, 0, 2 * SIDE, 23));
    a->column = make(c, DM_F64, 1, (int64_t[]){SIDE}, &layout[SQUARES + 2], 24);
    a->image = make(c, DM_F32, 4, image, &(dmt_layout){.use = &samples}, 31);
    a->weights = make(c, DM_F32, 4, weights, &(dmt_layout){.use = &all}, 32);
    a->bias = make(c, DM_F32, 1, (int64_t[]){8}, &(dmt_layout){.use = &all}, 33);
    a->filtered = make(c, DM_F32, 4, filtered, &(dmt_layout){.use = &samples}, 34);
    a->pooled = make(c, DM_F32, 4, pooled, &(dmt_layout){.use = &samples}, 35);
    make_feed(c, a);
}

/* --- the kinds: each takes the number of an array that it may change, and of another --- */

static dm_array other(const arrays *a, int x) /* of the same type */
{
    return a->square[(x + 2) % SQUARES];
}

static void views(dmt_case *c, arrays *a, int x)
{
    dm_array left, some;
    DMT_OK(c,
           dm_array_view(c->session, a->square[x], (int64_t[]){1, 0}, (int64_t[]){SIDE - 2, SIDE / 2}, &left));
    DMT_OK(c, dm_array_slice(c->session, other(a, x), (int64_t[]){0, 1}, (int64_t[]){SIDE - 2, SIDE / 2},
                             (int64_t[]){1, 2}, &some));
    DMT_OK(c, dm_add(c->session, 0.5, left, 0.25, some, left));
    DMT_OK(c, dm_array_destroy(c->session, left));
    DMT_OK(c, dm_array_destroy(c->session, some));
}

static void temporaries(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    dm_array first, second;
    DMT_OK(c, dm_matrix(s, DM_F64, SIDE, SIDE, &first));
    DMT_OK(c, dm_transpose(s, a->square[x], first));
    DMT_OK(c, dm_array_like(s, other(a, x), 0, &second));
    DMT_OK(c, dm_map(s, "sin(x) - 0.5 * y", 2, (dm_map_arg[]){DM_ARG("x", first), DM_ARG("y", a->square[x])},
                     second));
    DMT_OK(c, dm_copy(s, second, a->square[x]));
    DMT_OK(c, dm_array_destroy(s, first));
    DMT_OK(c, dm_array_destroy(s, second));
}

static void scalars(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_map(s, "mean(x * x)", 1, (dm_map_arg[]){DM_ARG("x", a->square[x])}, a->scalar));
    DMT_OK(c, dm_map(s, "where(q > 1, 1 / q, q)", 1, (dm_map_arg[]){DM_ARG("q", a->scalar)}, a->scalar));
    DMT_OK(c, dm_axpby_by(s, dm_element(a->scalar), other(a, x), dm_value(0.5), a->square[x]));
}

static void products(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_gemm(s, DM_N, DM_T, 0.1, a->square[(x + 1) % SQUARES], other(a, x), 0.5, a->square[x]));
    DMT_OK(c, dm_gemm_by(s, DM_T, DM_N, dm_element(a->scalar), other(a, x), other(a, x), dm_value(0.5),
                         a->square[x], NULL));
    DMT_OK(c, dm_map(s, "tanh(x)", 1, (dm_map_arg[]){DM_ARG("x", a->square[x])}, a->square[x]));
}

/* Of an operand whose elements have just come from others; and one behind the other, so that what is gathered
 * for the second may lie where that of the first lay. */
static void narrow_products(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    const int64_t side = 16 * (int64_t)c->workers;
    dm_layout columns = dm_layout_cols(s);
    dm_array *n = a->narrow, turned;
    int i = x % 3, j = (x + 1) % 3, k = (x + 2) % 3;
    DMT_OK(c, dm_array_create(s, DM_BF16, 2, (int64_t[]){side, side}, &columns, &turned));
    DMT_OK(c, dm_scale(s, -0.5, n[i], turned));
    DMT_OK(c, dm_copy(s, turned, n[i]));
    DMT_OK(c, dm_array_destroy(s, turned));
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 0.125, n[i], n[j], 0, n[k]));
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 0.125, n[j], n[k], 0.5, n[i]));
}

static void sums(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_sum_dim(s, a->square[x], 0, a->column));
    DMT_OK(c, dm_norm(s, a->square[x], 2, NULL, 0, a->scalar));
    DMT_OK(c, dm_map(s, "tanh(column)", 1, (dm_map_arg[]){DM_ARG("column", a->column)}, a->column));
    DMT_OK(c, dm_map(s, "x / (1 + n)", 2, (dm_map_arg[]){DM_ARG("x", other(a, x)), DM_ARG("n", a->scalar)},
                     a->square[x]));
}

static void remaps(dmt_case *c, arrays *a, int x)
{
    DMT_OK(c, dm_copy(c->session, a->square[(x + 1) % SQUARES], a->square[x]));
    DMT_OK(c, dm_transpose(c->session, a->square[x], a->square[(x + 3) % SQUARES]));
}

/* x = x / 2 + weight, where a worker holds it. */
static int halve_and_add(const dm_task *task)
{
    double weight;
    memcpy(&weight, task->args, sizeof weight);
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        const dm_block *x = &task->block[0][k];
        for (int64_t i = 0; i < x->extent[0]; i++) {
            for (int64_t j = 0; j < x->extent[1]; j++) {
                double *at = (double *)x->data + i * x->stride[0] + j * x->stride[1];
                *at = *at / 2 + weight;
            }
        }
    }
    return 0;
}

static void functions(dmt_case *c, arrays *a, int x)
{
    const double weight = 0.01 * (x + 1);
    DMT_OK(c, dm_apply(c->session, "halve and add", 1, &a->square[x | 1], (int[]){DM_READWRITE}, &weight,
                       sizeof weight));
}

static void orders(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_sort(s, other(a, x), 1, x % 2, a->square[x]));
    DMT_OK(c, dm_cumulative_sum(s, a->square[x], 0, a->square[x]));
    DMT_OK(c, dm_softmax(s, a->square[x], (int[]){0}, 1, a->square[x]));
}

static void indices(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    DMT_OK(c, dm_take(s, other(a, x), a->indices, 0, DM_WRAP, a->square[x]));
    DMT_OK(c, dm_scatter_add(s, a->square[x], a->indices, other(a, x), 1, DM_CLIP));
    DMT_OK(c, dm_map(s, "tanh(x)", 1, (dm_map_arg[]){DM_ARG("x", a->square[x])}, a->square[x]));
}

static void triangles(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    dm_array lower;
    DMT_OK(c, dm_array_like(s, a->square[x], 0, &lower));
    DMT_OK(c, dm_map(s, "where(index(0) == index(1), 4, 0.25 * x)", 1, (dm_map_arg[]){DM_ARG("x", other(a, x))},
                     lower));
    DMT_OK(c, dm_trsm(s, DM_LEFT, DM_LOWER, DM_N, DM_NONUNIT, 1, lower, a->square[x]));
    DMT_OK(c, dm_array_destroy(s, lower));
}

/* Kernels of libraries, with workspace of their own where they have some. */
static void layers(dmt_case *c, arrays *a, int x)
{
    dm_session *s = c->session;
    dm_conv conv = DM_CONV_INIT;
    dm_pool pool = DM_POOL_INIT;
    dm_array back, gradient;
    pool.method = x % 2 ? DM_POOL_MAX : DM_POOL_AVERAGE;
    DMT_OK(c, dm_array_like(s, a->filtered, 0, &back));
    DMT_OK(c, dm_array_like(s, a->weights, 0, &gradient));
    DMT_OK(c, dm_conv_forward(s, &conv, a->image, a->weights, a->bias, a->filtered));
    DMT_OK(c, dm_pool_forward(s, &pool, a->filtered, a->pooled, DM_NO_ARRAY));
    DMT_OK(c, dm_pool_backward(s, &pool, a->filtered, a->pooled, back));
    DMT_OK(c, dm_conv_backward_weights(s, &conv, a->image, back, 0, gradient, a->bias));
    DMT_OK(c, dm_conv_backward_data(s, &conv, back, a->weights, a->image));
    DMT_OK(c, dm_map(s, "tanh(w - 0.01 * g)", 2, (dm_map_arg[]){DM_ARG("w", a->weights), DM_ARG("g", gradient)},
                     a->weights));
    DMT_OK(c, dm_map(s, "tanh(x)", 1, (dm_map_arg[]){DM_ARG("x", a->image)}, a->image));
    DMT_OK(c, dm_map(s, "tanh(x)", 1, (dm_map_arg[]){DM_ARG("x", a->bias)}, a->bias));
    DMT_OK(c, dm_array_destroy(s, back));
    DMT_OK(c, dm_array_destroy(s, gradient));
}

/* Recorded seeds advance by themselves. */
static uint64_t draw_seed(arrays *a)
{
    uint64_t seed = 1000 + (uint64_t)a->drawn++;
    return a->recorded ? seed : dm_program_seed(seed, a->run);
}

static void fills(dmt_case *c, arrays *a, int x)
{
    char text[64];
    DMT_OK(c, dm_fill_uniform(c->session, a->square[x], -1, 1, draw_seed(a)));
    snprintf(text, sizeof text, "0.5 * x + 0.1 * normal(%llu)", (unsigned long long)draw_seed(a));
    DMT_OK(c, dm_map(c->session, text, 1, (dm_map_arg[]){DM_ARG("x", a->square[x])}, other(a, x)));
    DMT_OK(c, dm_shuffle(c->session, other(a, x), x % 2, draw_seed(a), a->square[x]));
}

static void loads(dmt_case *c, arrays *a, int x)
{
    if (a->feed) {
        DMT_OK(c, dm_array_feed(c->session, a->square[x & ~1], a->feed, -1));
    }
}

typedef void kind_fn(dmt_case *c, arrays *a, int x);
static const struct kind {
    const char *name;
    kind_fn *call;
} kinds[] = {{"narrow products", narrow_products},
             {"views", views},
             {"temporaries", temporaries},
             {"scalars", scalars},
             {"sums", sums},
             {"remaps", remaps},
             {"functions", functions},
             {"orders", orders},
             {"indices", indices},
             {"layers", layers},
             {"fills", fills},
             {"loads", loads},
             {"products", products}, /* the last two need more than one algorithm of products */
             {"triangles", triangles}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void same(dmt_case *c, dm_array one, dm_array recorded, int64_t bytes, const char *what, int number)
{
    char *want = dmt_alloc(&c->scratch, bytes), *got = dmt_alloc(&c->scratch, bytes);
    DMT_OK(c, dm_array_read(c->session, one, NULL, NULL, want, 0));
    DMT_OK(c, dm_array_read(c->session, recorded, NULL, NULL, got, 0));
    if (memcmp(want, got, (size_t)bytes) != 0) {
        dmt_fail(c, "%s %d is not as the calls leave it one by one", what, number);
    }
}

static void compare(dmt_case *c, const arrays *one, const arrays *recorded)
{
    const int64_t side = 16 * (int64_t)c->workers;
    for (int i = 0; i < SQUARES; i++) {
        same(c, one->square[i], recorded->square[i], (int64_t)SIDE * SIDE * (i % 2 ? 8 : 4), "square", i);
    }
    for (int i = 0; i < 3; i++) {
        same(c, one->narrow[i], recorded->narrow[i], 2 * side * side, "narrow", i);
    }
    same(c, one->scalar, recorded->scalar, 8, "scalar", 0);
    same(c, one->column, recorded->column, 8 * SIDE, "column", 0);
    same(c, one->image, recorded->image, (int64_t)SAMPLES * 6 * 5 * 4 * 4, "image", 0);
    same(c, one->weights, recorded->weights, 8 * 3 * 3 * 4 * 4, "weights", 0);
    same(c, one->bias, recorded->bias, 8 * 4, "bias", 0);
    same(c, one->pooled, recorded->pooled, (int64_t)SAMPLES * 2 * 2 * 8 * 4, "pooled", 0);
}

static void kinds_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t square[] = {SIDE, SIDE};
    static const int ndims[] = {2, 2, 2, 2, 0, 1, 1};
    dmt_layout layout[LAYOUTS];
    arrays one = {0}, recorded = {.recorded = true};
    int kind[CALLS], x[CALLS];
    dm_program program;
    for (int i = 0; i < (int)(sizeof ndims / sizeof *ndims); i++) {
        dmt_layout_random(&layout[i], &c->scratch, &c->random, s, ndims[i], square);
    }
    make_arrays(c, layout, &one);
    make_arrays(c, layout, &recorded);
    const int *most = c->user;
    for (int i = 0; i < CALLS; i++) { /* each kind in turn, and others */
        kind[i] = i == 0 ? (int)(c->number % *most) : (int)dmt_int(&c->random, 0, *most - 1);
        x[i] = (int)dmt_int(&c->random, 0, SQUARES - 1);
        dmt_say(c, "\n    %s (%d)", kinds[kind[i]].name, x[i]);
    }
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_advance_seeds(s));
    for (int i = 0; i < CALLS; i++) {
        kinds[kind[i]].call(c, &recorded, x[i]);
    }
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, RUNS - 1, 0, NULL));
    DMT_OK(c, dm_memory_trim(s)); /* what a program uses of other workers' memory stays */
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    for (one.run = 0; one.run < RUNS; one.run++) {
        one.drawn = 0;
        for (int i = 0; i < CALLS; i++) {
            kinds[kind[i]].call(c, &one, x[i]);
        }
    }
    compare(c, &one, &recorded);
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_feed_destroy(one.feed));
    DMT_OK(c, dm_feed_destroy(recorded.feed));
}

static void run(const char *name, int64_t cases, int workers, int most, const char *options)
{
    dmt_run(&(dmt_suite){.name = name,
                         .cases = cases,
                         .fn = kinds_case,
                         .scope = true,
                         .workers = workers,
                         .user = &most,
                         .options = options});
}

static void test_kinds(void **state)
{
    (void)state;
    /* cached replicas serve no program; a launch has its own options */
    run("program_kinds", 140, 0, KINDS, dmt_launched() ? NULL : "replicas=0,program_order=critical");
}

/* The kernel of the fused product counts what arrives, also behind the transfers of other calls. Emulated GPUs
 * have it; with DMATH_TEST_FUSED=1 two real ones do. */
static void test_fused(void **state)
{
    const char *device = getenv("DMATH_DEVICE"), *real = getenv("DMATH_TEST_FUSED");
    bool emulated = device && strcmp(device, "emulated") == 0;
    (void)state;
    if (emulated || real) {
        run("program_kinds_fused", 2 * (KINDS - 2), emulated ? 3 : 2, KINDS - 2,
            "replicas=0,gemm_algorithm=fused,program_order=critical");
    }
}

static void test_slow_links(void **state)
{
    (void)state;
    if (dmt_on_cpu()) {
        run("program_kinds_slow_links", 28, 0, KINDS, "link_latency_us=20,link_gbps=0.5");
    }
}

int main(void)
{
    if (dm_register("halve and add", halve_and_add) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_fused),
                                       cmocka_unit_test(test_slow_links)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
