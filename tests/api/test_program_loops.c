/* Loops inside programs: what they make is what the same calls make in loops of the caller. */
#include "support/refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- random trees of loops, recorded and call by call --- */

enum { ARRAYS = 6, COUNTERS = 4, NODES = 40, SIDE = 5 };

typedef enum kind { CALL, LOOP, END } kind;

typedef struct node {
    kind kind;
    int op, x, y, z;      /* CALL: arrays */
    int end;              /* LOOP: its END */
    int64_t times, every; /* every > 0: until counter[counter] < 0.5 */
    int counter, start;
} node;

typedef struct tree {
    node node[NODES];
    int nodes;
    uint64_t seed; /* of random fills */
} tree;

typedef struct arrays {
    dm_array a[ARRAYS], counter[COUNTERS], temporary;
} arrays;

static int grow(dmt_case *c, tree *t, int depth, int *counters)
{
    int calls = (int)dmt_int(&c->random, 0, 4);
    for (int i = 0; i < calls && t->nodes < NODES - 8; i++) {
        bool loop = depth < 4 && dmt_int(&c->random, 0, 2) == 0;
        node *n = &t->node[t->nodes++];
        *n = (node){.op = (int)dmt_int(&c->random, 0, 5),
                    .x = (int)dmt_int(&c->random, 0, ARRAYS), /* ARRAYS: the temporary */
                    .y = (int)dmt_int(&c->random, 0, ARRAYS),
                    .z = (int)dmt_int(&c->random, 0, ARRAYS)};
        while (n->z == n->x || n->z == n->y) {
            n->z = (n->z + 1) % (ARRAYS + 1);
        }
        if (n->op == 5 && (n->z == 1 || n->z == 2)) { /* a binding of an array replaces no views of it */
            n->z = 0;
        }
        if (loop) {
            *n = (node){.kind = LOOP, .times = dmt_int(&c->random, 0, 3)};
            if (*counters < COUNTERS && dmt_int(&c->random, 0, 1)) {
                n->every = dmt_int(&c->random, 1, 2);
                n->counter = (*counters)++;
                n->start = (int)dmt_int(&c->random, 0, 4);
                n->times = dmt_int(&c->random, 0, 6);
            }
            n->end = grow(c, t, depth + 1, counters);
        }
    }
    t->node[t->nodes] = (node){.kind = END};
    return t->nodes++;
}

static dm_array get(const arrays *a, int i)
{
    return i == ARRAYS ? a->temporary : a->a[i];
}

static void call(dmt_case *c, const tree *t, const node *n, const arrays *a)
{
    dm_session *s = c->session;
    dm_array x = get(a, n->x), y = get(a, n->y), z = get(a, n->z), made;
    const dm_map_arg both[] = {DM_ARG("x", x), DM_ARG("y", y)};
    const int64_t lo[] = {1, 0}, extent[] = {SIDE - 2, SIDE};
    switch (n->op) {
    case 0:
        DMT_OK(c, dm_map(s, "sin(x) + 0.5 * y", 2, both, z));
        break;
    case 1:
        DMT_OK(c, dm_copy(s, x, z));
        break;
    case 2:
        DMT_OK(c, dm_matmul(s, x, y, z));
        DMT_OK(c, dm_map(s, "sin(x)", 1, (dm_map_arg[]){DM_ARG("x", z)}, z));
        break;
    case 3: /* an array that lives in one part, in one pass */
        DMT_OK(c, dm_array_like(s, z, 0, &made));
        DMT_OK(c, dm_copy(s, x, made));
        DMT_OK(c, dm_add(s, 0.25, made, 0.5, y, z));
        DMT_OK(c, dm_array_destroy(s, made));
        break;
    case 4:
        DMT_OK(c, dm_fill_uniform(s, z, -1, 1, t->seed + (uint64_t)n->x));
        break;
    default: /* some rows: the others are of calls before, or of the pass before */
        DMT_OK(c, dm_array_view(s, z, lo, extent, &made));
        DMT_OK(c, dm_map(s, "0.5 * v + 0.125", 1, (dm_map_arg[]){DM_ARG("v", made)}, made));
        DMT_OK(c, dm_array_destroy(s, made));
    }
}

static void run_nodes(dmt_case *c, const tree *t, int from, const arrays *a, bool record);

static void body(dmt_case *c, const tree *t, int loop, const arrays *a, bool record)
{
    const node *n = &t->node[loop];
    if (n->every > 0) {
        dm_array counter = a->counter[n->counter];
        DMT_OK(c, dm_map(c->session, "k - 1", 1, (dm_map_arg[]){DM_ARG("k", counter)}, counter));
    }
    run_nodes(c, t, loop + 1, a, record);
}

static void loop(dmt_case *c, const tree *t, int at, const arrays *a, bool record)
{
    const node *n = &t->node[at];
    dm_session *s = c->session;
    if (n->every > 0) {
        DMT_OK(c, dm_fill(s, a->counter[n->counter], n->start));
    }
    if (record) {
        DMT_OK(c, dm_program_repeat(s, n->times));
        body(c, t, at, a, record);
        if (n->every > 0) {
            DMT_OK(c, dm_program_repeat_until(s, n->every, a->counter[n->counter], 0.5));
        } else {
            DMT_OK(c, dm_program_repeat_end(s));
        }
        return;
    }
    for (int64_t pass = 1; pass <= n->times; pass++) {
        double left = 1;
        body(c, t, at, a, record);
        if (n->every > 0 && pass % n->every == 0 && pass < n->times) {
            DMT_OK(c, dm_read(s, a->counter[n->counter], &left));
        }
        if (left < 0.5) {
            break;
        }
    }
}

static void run_nodes(dmt_case *c, const tree *t, int from, const arrays *a, bool record)
{
    for (int i = from; t->node[i].kind != END; i++) {
        if (t->node[i].kind == LOOP) {
            loop(c, t, i, a, record);
            i = t->node[i].end;
        } else {
            call(c, t, &t->node[i], a);
        }
    }
}

/* Once through the tree, with a temporary of its own. */
static void whole(dmt_case *c, const tree *t, arrays *a, bool record)
{
    DMT_OK(c, dm_array_like(c->session, a->a[0], 0, &a->temporary));
    DMT_OK(c, dm_copy(c->session, a->a[1], a->temporary));
    run_nodes(c, t, 0, a, record);
    DMT_OK(c, dm_copy(c->session, a->temporary, a->a[2]));
    DMT_OK(c, dm_array_destroy(c->session, a->temporary));
}

static dm_layout layout_of(dmt_case *c, int which)
{
    const dm_layout layouts[] = {dm_layout_rows(c->session), dm_layout_cols(c->session),
                                 dm_layout_cyclic(c->session, 1, 2), dm_layout_single(c->workers - 1)};
    return layouts[which];
}

static void make_arrays(dmt_case *c, arrays *a, const int *layout)
{
    const int64_t shape[] = {SIDE, SIDE};
    for (int i = 0; i < ARRAYS; i++) {
        dm_layout l = layout_of(c, layout[i]);
        DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &l, &a->a[i]));
        DMT_OK(c, dm_fill_uniform(c->session, a->a[i], -1, 1, (uint64_t)i));
    }
    for (int i = 0; i < COUNTERS; i++) {
        dm_layout l = layout_of(c, 3);
        DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, i % 2 ? NULL : &l, &a->counter[i]));
        DMT_OK(c, dm_fill(c->session, a->counter[i], -1));
    }
}

static void compare(dmt_case *c, const arrays *got, const arrays *want)
{
    double g[SIDE * SIDE], w[SIDE * SIDE];
    for (int i = 0; i < ARRAYS + COUNTERS; i++) {
        size_t bytes = i < ARRAYS ? sizeof g : sizeof *g;
        DMT_OK(c, dm_read(c->session, i < ARRAYS ? got->a[i] : got->counter[i - ARRAYS], g));
        DMT_OK(c, dm_read(c->session, i < ARRAYS ? want->a[i] : want->counter[i - ARRAYS], w));
        if (memcmp(g, w, bytes) != 0) {
            dmt_fail(c, "array %d differs: %g and %g at the begin", i, g[0], w[0]);
        }
    }
}

static int64_t bytes_of_arrays(dmt_case *c)
{
    int64_t bytes = 0;
    for (int w = 0; w < c->workers; w++) {
        dm_memory m = {.size = sizeof m};
        DMT_OK(c, dm_memory_report(c->session, w, &m));
        bytes += m.arrays;
    }
    return bytes;
}

static void random_case(dmt_case *c)
{
    tree t = {.seed = (uint64_t)dmt_int(&c->random, 1, 1000000)};
    arrays recorded, direct;
    int layout[ARRAYS], counters = 0;
    dm_program program;
    for (int i = 0; i < ARRAYS; i++) {
        layout[i] = (int)dmt_int(&c->random, 0, 3);
    }
    (void)grow(c, &t, 0, &counters);
    for (int i = 0; i < t.nodes; i++) {
        const node *n = &t.node[i];
        dmt_say(c, "\n    %d: %s op %d x %d y %d z %d, times %" PRId64 " every %" PRId64 " from %d to %d", i,
                n->kind == CALL   ? "call"
                : n->kind == LOOP ? "loop"
                                  : "end",
                n->op, n->x, n->y, n->z, n->times, n->every, n->start, n->end);
    }
    make_arrays(c, &recorded, layout);
    make_arrays(c, &direct, layout);
    int64_t before = bytes_of_arrays(c);
    DMT_OK(c, dm_program_begin(c->session));
    whole(c, &t, &recorded, true);
    DMT_OK(c, dm_program_end(c->session, &program));
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_program_run(c->session, program, i, 0, NULL));
        for (int k = 0; k < i; k++) {
            whole(c, &t, &direct, false);
        }
        compare(c, &recorded, &direct);
    }
    /* the same on other arrays, and back */
    dm_program_binding binding[ARRAYS];
    int used = 0;
    for (int i = 1; i < 3; i++) { /* these two the program uses */
        binding[used++] = (dm_program_binding){recorded.a[i], direct.a[i]};
    }
    arrays swapped = recorded;
    swapped.a[1] = direct.a[1];
    swapped.a[2] = direct.a[2];
    arrays fresh;
    make_arrays(c, &fresh, layout);
    for (int i = 0; i < ARRAYS; i++) {
        DMT_OK(c, dm_copy(c->session, swapped.a[i], fresh.a[i]));
    }
    for (int i = 0; i < COUNTERS; i++) {
        DMT_OK(c, dm_copy(c->session, swapped.counter[i], fresh.counter[i]));
    }
    DMT_OK(c, dm_program_run(c->session, program, 1, used, binding));
    whole(c, &t, &fresh, false);
    compare(c, &swapped, &fresh);
    for (int i = 0; i < ARRAYS; i++) {
        DMT_OK(c, dm_array_destroy(c->session, fresh.a[i]));
    }
    for (int i = 0; i < COUNTERS; i++) {
        DMT_OK(c, dm_array_destroy(c->session, fresh.counter[i]));
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    if (bytes_of_arrays(c) != before) {
        dmt_fail(c, "the program has left arrays: %" PRId64 " bytes before, %" PRId64 " now", before,
                 bytes_of_arrays(c));
    }
}

/* --- numbers, seeds, looks --- */

static dm_array element(dmt_case *c, double value)
{
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &a));
    DMT_OK(c, dm_fill(c->session, a, value));
    return a;
}

static double value_of(dmt_case *c, dm_array a)
{
    double value = 0;
    DMT_OK(c, dm_read(c->session, a, &value));
    return value;
}

static void expect(dmt_case *c, dm_array a, double want, const char *what)
{
    double got = value_of(c, a);
    if (got != want) {
        dmt_fail(c, "%s: got %g, not %g", what, got, want);
    }
}

/* A number that the loop takes, another behind it: each run begins with what was given last. */
static void numbers_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = element(c, 0), step, factor;
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "step", DM_F64, 1, &step));
    DMT_OK(c, dm_program_repeat(s, 3));
    DMT_OK(c, dm_map(s, "x + step", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("step", step)}, x));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_number(s, "factor", DM_F64, 2, &factor));
    DMT_OK(c, dm_map(s, "x * factor", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("factor", factor)}, x));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, 6, "as recorded");
    DMT_OK(c, dm_program_set_number(s, program, "step", 10));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, 72, "another step");
    DMT_OK(c, dm_program_set_number(s, program, "factor", -1));
    DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
    expect(c, x, 72, "another factor, twice");
    DMT_OK(c, dm_program_destroy(s, program));
}

static void seeds_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x, sum, want;
    dm_program program;
    DMT_OK(c, dm_vector(s, DM_F64, 20, &x));
    DMT_OK(c, dm_array_like(s, x, 0, &sum));
    DMT_OK(c, dm_array_like(s, x, 0, &want));
    DMT_OK(c, dm_fill(s, sum, 0));
    DMT_OK(c, dm_fill(s, want, 0));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_advance_seeds(s));
    DMT_OK(c, dm_program_repeat(s, 3));
    DMT_OK(c, dm_fill_uniform(s, x, 0, 1, 99));
    DMT_OK(c, dm_add(s, 1, sum, 1, x, sum));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_end(s, &program));
    int64_t pass = 0;
    double got[20], wanted[20];
    for (int round = 0; round < 3; round++) {
        if (round == 2) {
            DMT_OK(c, dm_program_set_run(s, program, 100));
            pass = 300;
        }
        DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
        for (int i = 0; i < 6; i++) {
            DMT_OK(c, dm_fill_uniform(s, x, 0, 1, dm_program_seed(99, pass++)));
            DMT_OK(c, dm_add(s, 1, want, 1, x, want));
        }
        DMT_OK(c, dm_read(s, sum, got));
        DMT_OK(c, dm_read(s, want, wanted));
        if (memcmp(got, wanted, sizeof got) != 0) {
            dmt_fail(c, "round %d: other random numbers", round);
        }
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* Loops end by values, also the loop around them (dm_program_run_until), and start again in the next pass. */
static void until_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = element(c, 0), inner = element(c, 0), outer = element(c, 5);
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_fill(s, x, 64));
    DMT_OK(c, dm_program_repeat(s, 1000));
    DMT_OK(c, dm_scale(s, 0.5, x, x));
    DMT_OK(c, dm_map(s, "n + 1", 1, (dm_map_arg[]){DM_ARG("n", inner)}, inner));
    DMT_OK(c, dm_program_repeat_until(s, 1, x, 1.5)); /* 64 to 1: six passes */
    DMT_OK(c, dm_map(s, "n - 1", 1, (dm_map_arg[]){DM_ARG("n", outer)}, outer));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run_until(s, program, 100, 1, outer, 0.5, 0, NULL));
    expect(c, inner, 30, "five runs of six passes");
    expect(c, outer, 0, "five runs");
    char *text = NULL;
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(s, &text));
    if (!text || !strstr(text, "loop: at most 1000 times") || !strstr(text, "end of the loop") ||
        !strstr(text, "call 3:")) {
        dmt_fail(c, "explained: %s", text ? text : "nothing");
    }
    free(text);
    expect(c, outer, 0, "explaining runs nothing");
    DMT_OK(c, dm_program_destroy(s, program));
}

/* Arrays that are made and destroyed inside: what the workers look at, and one that goes from pass to pass. */
static void inside_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = element(c, 0), n = element(c, 0), kept, value;
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_array_like(s, x, 0, &kept));
    DMT_OK(c, dm_program_repeat(s, 10));
    DMT_OK(c, dm_map(s, "where(n > 0, t + 1, 0)", 2, (dm_map_arg[]){DM_ARG("n", n), DM_ARG("t", kept)}, kept));
    DMT_OK(c, dm_copy(s, kept, x));
    DMT_OK(c, dm_map(s, "n + 1", 1, (dm_map_arg[]){DM_ARG("n", n)}, n));
    DMT_OK(c, dm_array_like(s, x, 0, &value));
    DMT_OK(c, dm_map(s, "6.5 - n", 1, (dm_map_arg[]){DM_ARG("n", n)}, value));
    DMT_OK(c, dm_program_repeat_until(s, 1, value, 0));
    DMT_OK(c, dm_array_destroy(s, value));
    DMT_OK(c, dm_array_destroy(s, kept));
    DMT_OK(c, dm_program_end(s, &program));
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_fill(s, n, 0));
        DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        expect(c, n, 7, "seven passes");
        expect(c, x, 6, "kept from pass to pass");
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* Some workers have nothing to do in a part, or in a loop, and one of them nothing but to look. */
static void alone_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout first = dm_layout_single(0), last = dm_layout_single(c->workers - 1);
    const int64_t one[] = {1};
    dm_array x, y;
    dm_program program;
    DMT_OK(c, dm_array_create(s, DM_F64, 1, one, &first, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, one, &last, &y));
    DMT_OK(c, dm_fill(s, x, 0));
    DMT_OK(c, dm_fill(s, y, 40));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_repeat(s, 10));
    DMT_OK(c, dm_program_repeat(s, 20));
    DMT_OK(c, dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_repeat(s, 7));
    DMT_OK(c, dm_map(s, "y - 1", 1, (dm_map_arg[]){DM_ARG("y", y)}, y));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_repeat_until(s, 2, y, 0));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, 120, "six passes of 20"); /* looks after passes 2, 4, 6: 26, 12, -2 */
    expect(c, y, -2, "six passes of 7");
    DMT_OK(c, dm_program_destroy(s, program));
}

/* --- refusals and failures --- */

static void refusals_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = element(c, 1), y = element(c, 1), wide, complex_one;
    dm_program program;
    const int64_t two[] = {2}, one[] = {1};
    DMT_OK(c, dm_array_create(s, DM_F64, 1, two, NULL, &wide));
    DMT_OK(c, dm_array_create(s, DM_C64, 1, one, NULL, &complex_one));
    REFUSED(DMT_ONE(STATE), "program_repeat: no program", dm_program_repeat(s, 1));
    REFUSED(DMT_ONE(STATE), "program_repeat_end: no program", dm_program_repeat_end(s));
    REFUSED(DMT_ONE(STATE), "program_repeat_until: no program", dm_program_repeat_until(s, 1, x, 0));
    DMT_OK(c, dm_program_begin(s));
    REFUSED(DMT_ONE(STATE), "no loop has begun", dm_program_repeat_end(s));
    REFUSED(DMT_ONE(ARG), "times is -1", dm_program_repeat(s, -1));
    DMT_OK(c, dm_scale(s, 0.5, y, y));
    DMT_OK(c, dm_program_repeat(s, 5));
    REFUSED(DMT_ONE(ARG), "does not write",
            dm_program_repeat_until(s, 1, y, 0)); /* it was written before the loop */
    DMT_OK(c, dm_scale(s, 0.5, x, x));
    DMT_OK(c, dm_fill(s, wide, 0));
    DMT_OK(c, dm_fill(s, complex_one, 0));
    REFUSED(DMT_ONE(ARG), "every is 0", dm_program_repeat_until(s, 0, x, 0));
    REFUSED(DMT_ONE(ARG), "below is NaN", dm_program_repeat_until(s, 1, x, 0.0 / 0.0));
    REFUSED(DMT_ONE(SHAPE), "more than one element", dm_program_repeat_until(s, 1, wide, 0));
    REFUSED(DMT_ONE(DTYPE), "c64", dm_program_repeat_until(s, 1, complex_one, 0));
    REFUSED(DMT_ONE(HANDLE), "value", dm_program_repeat_until(s, 1, (dm_array){0}, 0));
    REFUSED(DMT_ONE(STATE), "1 loops are open", dm_program_end(s, &program)); /* the recording is dropped */
    expect(c, x, 1, "nothing ran");
    DMT_OK(c, dm_program_begin(s));
    for (int i = 0; i < 16; i++) {
        DMT_OK(c, dm_program_repeat(s, 1));
    }
    REFUSED(DMT_ONE(LIMIT), "16 loops are open", dm_program_repeat(s, 1));
    DMT_OK(c, dm_scale(s, 0.5, x, x));
    for (int i = 0; i < 16; i++) {
        DMT_OK(c, dm_program_repeat_end(s));
    }
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, 0.5, "16 loops of one pass");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s)); /* dropped with a loop open */
    DMT_OK(c, dm_program_repeat(s, 1));
    DMT_OK(c, dm_scale(s, 0.5, x, x));
    DMT_OK(c, dm_program_end(s, NULL));
    DMT_OK(c, dm_program_begin(s)); /* loops of nothing */
    DMT_OK(c, dm_program_repeat(s, 1000000000000));
    DMT_OK(c, dm_program_repeat(s, 3));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s)); /* or of calls that never run */
    DMT_OK(c, dm_program_repeat(s, 1000000000000));
    DMT_OK(c, dm_program_repeat(s, 0));
    DMT_OK(c, dm_scale(s, 0.5, x, x));
    DMT_OK(c, dm_program_repeat_until(s, 1, x, 0));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1000000000000, 0, NULL));
    expect(c, x, 0.5, "loops of calls that never run");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_advance_seeds(s));
    DMT_OK(c, dm_program_repeat(s, 4));
    DMT_OK(c, dm_fill_uniform(s, x, 0, 1, 3));
    DMT_OK(c, dm_program_repeat_until(s, 1, x, 0.5));
    DMT_OK(c, dm_program_end(s, &program));
    REFUSED(DMT_ONE(UNSUPPORTED), "may end early", dm_program_set_run(s, program, 2));
    DMT_OK(c, dm_program_destroy(s, program));
}

/* A pass fails: the run ends, and what it writes is poisoned. */
static void failure_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = element(c, 5), y = element(c, 0);
    dm_program program;
    double value = 0;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_repeat(s, 1000000000));
    DMT_OK(c, dm_map(s, "x - 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    DMT_OK(c, dm_require_range(s, x, 1, 5)); /* the fifth pass fails */
    DMT_OK(c, dm_program_repeat_until(s, 1, x, -1e9));
    DMT_OK(c, dm_fill(s, y, 1));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1000000000, 0, NULL));
    REFUSED(DMT_ONE(VALUE), "(program_run), its call 2 of 3, require_range, pass 5 of its loop, failed",
            dm_sync(s));
    REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_read(s, x, &value));
    REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_read(s, y, &value));
    DMT_OK(c, dm_fill(s, x, 2));
    expect(c, x, 2, "the session goes on");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s)); /* runs in a row end as well */
    DMT_OK(c, dm_map(s, "x - 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    DMT_OK(c, dm_require_range(s, x, 1, 5));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1000000000, 0, NULL));
    REFUSED(DMT_ONE(VALUE), "(program_run), its call 2 of 2, require_range, failed", dm_sync(s));
    DMT_OK(c, dm_program_destroy(s, program));
}

static void poison(dmt_case *c, dm_array x)
{
    dm_session *s = c->session;
    dm_program program;
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_scale(s, 1, x, x));
    DMT_OK(c, dm_require_range(s, x, 2, 3));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    REFUSED(DMT_ONE(VALUE), "require_range", dm_sync(s));
    DMT_OK(c, dm_program_destroy(s, program));
}

/* A failure from before a run makes it end early. Then all that it writes is poisoned, also what does not
 * depend on that: it would have had more passes. */
static void dropped_case(dmt_case *c)
{
    dm_session *s = c->session;
    enum { PASSES = 8000 };
    dm_layout first = dm_layout_single(0), last = dm_layout_single(c->workers - 1);
    dm_array x, y;
    dm_program program;
    double value = 0;
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, &first, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, &last, &y));
    for (int loops = 0; loops < 3; loops++) {
        DMT_OK(c, dm_program_begin(s));
        if (loops) {
            DMT_OK(c, dm_program_repeat(s, PASSES));
        }
        DMT_OK(c, dm_map(s, "y + 1", 1, (dm_map_arg[]){DM_ARG("y", y)}, y));
        DMT_OK(c, dm_scale(s, 1, x, x));
        if (loops) {
            DMT_OK(c, loops == 1 ? dm_program_repeat_until(s, 500, x, 0.5) : dm_program_repeat_end(s));
        }
        DMT_OK(c, dm_program_end(s, &program));
        poison(c, x);
        DMT_OK(c, dm_fill(s, y, 0));
        DMT_OK(c, dm_program_run(s, program, loops ? 1 : PASSES, 0, NULL));
        DMT_OK(c, dm_sync(s)); /* reported before */
        dm_status status = dm_read(s, y, &value);
        bool whole =
            status == DM_OK && value == PASSES && loops != 1; /* the workers may have learned of it too late */
        if (!whole) {
            REFUSED(DMT_ONE(POISONED), "(program_run), which failed", status);
        }
        DMT_OK(c, dm_fill(s, x, 1));
        DMT_OK(c, dm_fill(s, y, 0));
        DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        expect(c, y, loops ? PASSES : 1, "a run after that");
        DMT_OK(c, dm_program_destroy(s, program));
    }
}

/* What a program makes for itself begins anew with each run: a failed one leaves nothing behind. */
static void anew_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout rows = dm_layout_rows(s);
    dm_array x = element(c, 5), pair, half[2], out;
    dm_program program;
    DMT_OK(c, dm_array_create(s, DM_F64, 1, (int64_t[]){1}, NULL, &out));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){2, 1}, &rows, &pair));
    DMT_OK(c, dm_split(s, pair, 0, 2, NULL, half));
    DMT_OK(c, dm_program_repeat(s, 3));
    DMT_OK(c, dm_require_range(s, x, 0, 5));
    DMT_OK(c, dm_copy(s, x, half[0]));
    DMT_OK(c, dm_copy(s, x, half[1]));
    DMT_OK(c, dm_sum_dim(s, pair, 0, out));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_array_destroy(s, half[0]));
    DMT_OK(c, dm_array_destroy(s, half[1]));
    DMT_OK(c, dm_array_destroy(s, pair));
    DMT_OK(c, dm_program_end(s, &program));
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_fill(s, x, 7));
        DMT_OK(c, dm_program_run(s, program, 1 + i, 0, NULL));
        REFUSED(DMT_ONE(VALUE), "require_range", dm_sync(s));
        DMT_OK(c, dm_fill(s, x, 3 + i));
        if (i == 1) { /* before the failure of the run is spread */
            DMT_OK(c, dm_fill(s, x, 7));
            DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
            DMT_OK(c, dm_fill(s, x, 3 + i));
            DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
            REFUSED(DMT_ONE(VALUE), "require_range", dm_sync(s));
            expect(c, out, 2 * (3 + i), "a run right behind a failed one");
        }
        DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
        expect(c, out, 2 * (3 + i), "a run after a failed one");
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* The error names the call as the recording numbers it, and the pass of the innermost loop. which: the call
 * that fails. */
static void place_of_failure(dmt_case *c, int which, const char *wanted)
{
    dm_session *s = c->session;
    dm_array x = element(c, 0), pass = element(c, 0);
    dm_program program;
    const double largest = which == 4 ? 5 : 100, inside = which == 6 ? 9 : 100;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_require_range(s, x, which == 1 ? 1 : 0, 100)); /* call 1 */
    DMT_OK(c, dm_program_repeat(s, 2));
    DMT_OK(c, dm_fill(s, pass, 0)); /* 2 */
    DMT_OK(c, dm_program_repeat(s, 3));
    DMT_OK(c, dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, x)); /* 3 */
    DMT_OK(c, dm_require_range(s, x, 0, largest)); /* 4: the fourth time, pass 1 of the second pass */
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_map(s, "x + 2", 1, (dm_map_arg[]){DM_ARG("x", x)}, x)); /* 5 */
    DMT_OK(c, dm_require_range(s, x, 0, inside));                        /* 6: the second time */
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_require_range(s, x, 0, which == 7 ? 9 : 100)); /* 7 */
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    REFUSED(DMT_ONE(VALUE), wanted, dm_sync(s));
    DMT_OK(c, dm_program_destroy(s, program));
}

static void places_case(dmt_case *c)
{
    place_of_failure(c, 1, "its call 1 of 7, require_range, failed");
    place_of_failure(c, 4, "its call 4 of 7, require_range, pass 1 of its loop, failed");
    place_of_failure(c, 6, "its call 6 of 7, require_range, pass 2 of its loop, failed");
    place_of_failure(c, 7, "its call 7 of 7, require_range, failed");
}

static void run(const char *name, void (*fn)(dmt_case *c), int cases, const char *options)
{
    dmt_run(&(dmt_suite){
        .name = name, .cases = cases, .each = cases == 1, .fn = fn, .scope = true, .options = options});
}

static void test_all(void **state)
{
    (void)state;
    /* programs make no replicas; a launched session has its options from the environment */
    run("loops_random", random_case, 60, dmt_launched() ? NULL : "replicas=0");
    run("loops_numbers", numbers_case, 1, NULL);
    run("loops_seeds", seeds_case, 1, NULL);
    run("loops_until", until_case, 1, NULL);
    run("loops_inside", inside_case, 1, NULL);
    run("loops_alone", alone_case, 1, NULL);
    run("loops_refusals", refusals_case, 1, NULL);
    run("loops_failure", failure_case, 1, NULL);
    run("loops_anew", anew_case, 1, NULL);
    run("loops_dropped", dropped_case, 1, NULL);
    run("loops_places", places_case, 1, NULL);
    run("loops_limit", until_case, 1, "memory_limit=65536");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
