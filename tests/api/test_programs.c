/* Programs: runs in a row, bindings, arrays made inside, what cannot be recorded, failures. */
#include "support/refusal.h"

#include <dmath/index.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 6, COUNT = SIDE * SIDE };

static dm_array make(dmt_case *c, double value)
{
    dm_array a;
    DMT_OK(c, dm_matrix(c->session, DM_F64, SIDE, SIDE, &a));
    DMT_OK(c, dm_fill(c->session, a, value));
    return a;
}

static double item(dmt_case *c, dm_array a)
{
    double value = 0;
    DMT_OK(c, dm_item(c->session, a, (int64_t[]){SIDE - 1, 0}, &value));
    return value;
}

static void expect(dmt_case *c, dm_array a, double want, const char *what)
{
    double got = item(c, a);
    if (got != want) {
        dmt_fail(c, "%s: got %g, want %g", what, got, want);
    }
}

/* x = 2 x + y, by way of an array that is made inside. */
static void expect_one(dmt_case *c, dm_array a, double want)
{
    double got = 0;
    DMT_OK(c, dm_read(c->session, a, &got));
    if (got != want) {
        dmt_fail(c, "the element is %g, not %g", got, want);
    }
}

static void record_step(dmt_case *c, dm_array x, dm_array y, dm_program *out)
{
    dm_session *s = c->session;
    dm_array doubled;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_array_like(s, x, DM_F64, &doubled));
    DMT_OK(c, dm_scale(s, 2, x, doubled));
    DMT_OK(c, dm_add(s, 1, doubled, 1, y, x));
    DMT_OK(c, dm_array_destroy(s, doubled));
    DMT_OK(c, dm_program_end(s, out));
}

static void times_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = make(c, 1), y = make(c, 3), u = make(c, 5), v = make(c, -1);
    dm_program step;
    record_step(c, x, y, &step);
    expect(c, x, 1, "recording runs nothing");
    DMT_OK(c, dm_program_run(s, step, 0, 0, NULL));
    expect(c, x, 1, "no run");
    DMT_OK(c, dm_program_run(s, step, 10, 0, NULL));
    expect(c, x, 4 * 1024 - 3, "ten runs");
    DMT_OK(c, dm_program_run(s, step, 3, 2, (dm_program_binding[]){{x, u}, {y, v}}));
    expect(c, u, 5 * 8 - 7, "three runs on other arrays");
    expect(c, x, 4 * 1024 - 3, "which leave the recorded ones");
    DMT_OK(c, dm_program_destroy(s, step));
    DMT_OK(c, dm_sync(s));
}

static dm_array make_on(dmt_case *c, double value, const dm_layout *layout)
{
    const int64_t shape[] = {16, 16};
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, layout, &a));
    DMT_OK(c, dm_fill(c->session, a, value));
    return a;
}

static void plans_of(dmt_case *c, int worker, int64_t plans[2])
{
    dm_counters counters = {.size = sizeof counters};
    DMT_OK(c, dm_counters_get(c->session, worker, &counters));
    plans[0] = counters.plans_made;
    plans[1] = counters.plans_reused;
}

/* Programs that alternate, on the recorded arrays and on others, are planned once each: when they are recorded.
 */
static void alternate_case(dmt_case *c)
{
    enum { PROGRAMS = 3, ROUNDS = 40, MOST = 8 };
    dm_session *s = c->session;
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s); /* every worker takes part, and sends */
    dm_array x = make_on(c, 0, &rows), y = make_on(c, 3, &cols), u = make_on(c, 0, &rows),
             v = make_on(c, -1, &cols);
    dm_program program[PROGRAMS];
    int64_t at[MOST][2], now[2];
    double want[2] = {0, 0};
    for (int w = 0; w < c->workers; w++) {
        plans_of(c, w, at[w]);
    }
    record_step(c, x, y, &program[0]); /* x = 2 x + y */
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_scale(s, 0.25, x, x));
    DMT_OK(c, dm_program_end(s, &program[1]));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_map(s, "x - y", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y)}, x));
    DMT_OK(c, dm_program_end(s, &program[2]));
    for (int w = 0; w < c->workers; w++) {
        plans_of(c, w, now);
        if (now[0] != at[w][0] + PROGRAMS || now[1] != at[w][1]) {
            dmt_fail(c, "worker %d made %lld plans of %d programs", w, (long long)(now[0] - at[w][0]),
                     PROGRAMS);
        }
    }
    for (int i = 0; i < ROUNDS; i++) {
        int bound = i / 2 % 2; /* twice as recorded, then twice with bindings */
        const dm_program_binding other[] = {{x, u}, {y, v}};
        double b = bound ? -1 : 3, *a = &want[bound];
        DMT_OK(c, dm_program_run(s, program[0], 2, 2 * bound, other));
        DMT_OK(c, dm_program_run(s, program[1], 1, bound, other));
        DMT_OK(c, dm_program_run(s, program[2], 1, 2 * bound, other));
        *a = (2 * (2 * *a + b) + b) / 4 - b;
    }
    for (int w = 0; w < c->workers; w++) {
        plans_of(c, w, now);
        if (now[0] != at[w][0] + PROGRAMS || now[1] != at[w][1] + INT64_C(4) * ROUNDS) {
            dmt_fail(c, "worker %d made %lld plans of %d programs, and used one %lld times in %d runs", w,
                     (long long)(now[0] - at[w][0]), PROGRAMS, (long long)(now[1] - at[w][1]), 4 * ROUNDS);
        }
    }
    expect(c, x, want[0], "programs that alternate");
    expect(c, u, want[1], "programs that alternate, on other arrays");
    for (int i = 0; i < PROGRAMS; i++) {
        DMT_OK(c, dm_program_destroy(s, program[i]));
    }
}

/* Many arrays, of which two live at once, take the room of two. */
static void lifetimes_case(dmt_case *c)
{
    enum { STEPS = 30 };
    dm_session *s = c->session;
    dm_array x = make(c, 1), next, last = x;
    dm_program program;
    dm_counters before = {.size = sizeof before}, counters = {.size = sizeof counters};
    DMT_OK(c, dm_counters_get(s, 0, &before));
    DMT_OK(c, dm_program_begin(s));
    for (int i = 0; i < STEPS; i++) {
        DMT_OK(c, dm_array_like(s, x, DM_F64, &next));
        DMT_OK(c, dm_add(s, 1, last, 1, x, next));
        if (i > 0) {
            DMT_OK(c, dm_array_destroy(s, last));
        }
        last = next;
    }
    DMT_OK(c, dm_copy(s, last, x));
    DMT_OK(c, dm_array_destroy(s, last));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, STEPS + 1, "a chain of temporaries");
    DMT_OK(c, dm_counters_get(s, 0, &counters));
    if (counters.workspace_peak_bytes > 2 * COUNT * 8 &&
        counters.workspace_peak_bytes > before.workspace_peak_bytes) {
        dmt_fail(c, "%lld bytes of workspace for two arrays of %d", (long long)counters.workspace_peak_bytes,
                 COUNT * 8);
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* Arrays made inside that outlive it, also by a view alone; views of arrays outside that end inside. */
static void outlive_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = make(c, 2), kept, based, view, row;
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_array_like(s, x, DM_F64, &kept));
    DMT_OK(c, dm_scale(s, 3, x, kept));
    DMT_OK(c, dm_array_like(s, x, DM_F64, &based));
    DMT_OK(c, dm_copy(s, x, based));
    DMT_OK(c, dm_rows(s, based, SIDE - 1, 1, &view));
    DMT_OK(c, dm_array_destroy(s, based));
    DMT_OK(c, dm_rows(s, x, SIDE - 1, 1, &row));
    DMT_OK(c, dm_axpby(s, 1, row, 1, view));
    DMT_OK(c, dm_fill(s, row, 7));
    DMT_OK(c, dm_array_destroy(s, row));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, kept, 6, "an array made inside");
    expect(c, x, 7, "a row that ended inside");
    double value = 0;
    DMT_OK(c, dm_item(s, view, (int64_t[]){0, 1}, &value));
    assert_true(value == 4);
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, kept, 3, "the second run");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_item(s, view, (int64_t[]){0, 1}, &value));
    assert_true(value == 2);
    /* dropped: nothing runs, and what was made inside is an ordinary array */
    dm_array born;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_fill(s, x, 9));
    DMT_OK(c, dm_matrix(s, DM_F64, SIDE, SIDE, &born));
    DMT_OK(c, dm_program_end(s, NULL));
    DMT_OK(c, dm_fill(s, born, 4));
    expect(c, born, 4, "an array of a dropped recording");
    expect(c, x, 7, "a dropped recording");
}

/* y = y + weight * x */
static int add_weighted(const dm_task *task)
{
    double weight;
    memcpy(&weight, task->args, sizeof weight);
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        const dm_block *x = &task->block[0][k], *y = &task->block[1][k];
        for (int64_t i = 0; i < x->extent[0]; i++) {
            for (int64_t j = 0; j < x->extent[1]; j++) {
                ((double *)y->data)[i * y->stride[0] + j * y->stride[1]] +=
                    weight * ((const double *)x->data)[i * x->stride[0] + j * x->stride[1]];
            }
        }
    }
    return 0;
}

static int refuse_negative(const dm_task *task)
{
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        if (*(const double *)task->block[0][k].data < 0) {
            return dm_task_fail(task, "a negative number at row %d", (int)task->block[0][k].start[0]);
        }
    }
    return 0;
}

static dm_status add_by_task(dm_session *s, dm_array x, dm_array y, double weight)
{
    return dm_apply(s, "add weighted", 2, (dm_array[]){x, y}, (int[]){DM_READ, DM_READWRITE}, &weight, sizeof weight);
}

/* Functions of the user between other calls, each with arguments of its own, also on an array that lives only inside. */
static void functions_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout last = dm_layout_single(c->workers - 1);
    dm_array x = make(c, 1), y = make(c, 0), inner, copy;
    dm_program step;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &last, &copy));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, add_by_task(s, x, y, 3)); /* y += 3 x */
    DMT_OK(c, dm_array_like(s, x, DM_F64, &inner));
    DMT_OK(c, dm_scale(s, 2, y, inner));
    DMT_OK(c, add_by_task(s, inner, x, 0.5)); /* x += y */
    DMT_OK(c, dm_array_destroy(s, inner));
    DMT_OK(c, dm_apply(s, "refuse negative", 1, &x, (int[]){DM_READ}, NULL, 0));
    DMT_OK(c, dm_copy(s, x, copy));
    DMT_OK(c, dm_program_end(s, &step));
    DMT_OK(c, dm_program_run(s, step, 4, 0, NULL));
    double want_x = 1, want_y = 0;
    for (int i = 0; i < 4; i++) {
        want_y += 3 * want_x;
        want_x += want_y;
    }
    expect(c, x, want_x, "x of user functions in a program");
    expect(c, y, want_y, "y of user functions in a program");
    DMT_OK(c, dm_fill(s, x, -1e6));
    DMT_OK(c, dm_program_run(s, step, 1, 0, NULL));
    REFUSED(DMT_ONE(TASK), "its call 4 of 5, apply", dm_sync(s));
    REFUSED(DMT_ONE(POISONED), "program_run", dm_item(s, x, (int64_t[]){0, 0}, &want_x));
    DMT_OK(c, dm_fill(s, x, 1)); /* by the workers that hold it; the functions run on all */
    DMT_OK(c, dm_fill(s, y, 0));
    DMT_OK(c, dm_program_run(s, step, 1, 0, NULL));
    expect(c, x, 4, "user functions after a failure");
    expect(c, copy, 4, "what the last worker has of them");
    DMT_OK(c, dm_program_destroy(s, step));
}

/* Of x and y this uses parts alone: views that end inside, and those that a call makes for itself. */
static void use_parts(dmt_case *c, dm_array x, dm_array y)
{
    dm_session *s = c->session;
    dm_array upper, lower;
    DMT_OK(c, dm_roll(s, x, 2, 1, y));
    DMT_OK(c, dm_rows(s, x, 0, SIDE / 2, &upper));
    DMT_OK(c, dm_rows(s, y, SIDE / 2, SIDE / 2, &lower));
    DMT_OK(c, dm_add(s, 0.5, upper, 0.5, lower, lower));
    DMT_OK(c, dm_array_destroy(s, upper));
    DMT_OK(c, dm_array_destroy(s, lower));
    DMT_OK(c, dm_set_item(s, x, (int64_t[]){SIDE - 1, 0}, 0.25));
}

static void fill_like(dmt_case *c, dm_array x, uint64_t seed)
{
    DMT_OK(c, dm_fill_uniform(c->session, x, -1, 1, seed));
}

static void expect_alike(dmt_case *c, dm_array one, dm_array recorded, const char *what)
{
    double want[COUNT], got[COUNT];
    DMT_OK(c, dm_read(c->session, one, want));
    DMT_OK(c, dm_read(c->session, recorded, got));
    if (memcmp(want, got, sizeof want) != 0) {
        dmt_fail(c, "%s: not as the calls leave it one by one", what);
    }
}

/* A binding replaces the other parts of the same array, too. */
static void parts_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout rows = dm_layout_rows(s);
    dm_array x, y, u, v, p, q, flat, other, part, element;
    dm_program program;
    dm_array *all[] = {&x, &y, &u, &v, &p, &q};
    for (int i = 0; i < 6; i++) {
        DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &rows, all[i]));
        fill_like(c, *all[i], (uint64_t)i % 2);
    }
    DMT_OK(c, dm_program_begin(s));
    use_parts(c, x, y);
    DMT_OK(c, dm_program_end(s, &program));
    const dm_program_binding both[] = {{x, u}, {y, v}};
    for (int run = 0; run < 3; run++) { /* twice in a row, and beside a run as recorded */
        DMT_OK(c, dm_program_run(s, program, 1 + run % 2, 2, both));
        DMT_OK(c, dm_program_run(s, program, run == 1, 0, NULL));
    }
    for (int i = 0; i < 4; i++) {
        use_parts(c, p, q);
    }
    expect_alike(c, p, u, "what replaces the first array");
    expect_alike(c, q, v, "what replaces the second");
    fill_like(c, p, 0);
    fill_like(c, q, 1);
    use_parts(c, p, q);
    expect_alike(c, p, x, "the first array as recorded");
    DMT_OK(c, dm_program_destroy(s, program));

    /* a failure on the last worker poisons the replacement on all */
    dm_layout last = dm_layout_single(c->workers - 1);
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, &last, &element));
    DMT_OK(c, dm_fill(s, element, 1));
    DMT_OK(c, dm_program_begin(s));
    use_parts(c, x, y);
    DMT_OK(c, dm_require_range(s, element, 2, 3));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 2, both));
    REFUSED(DMT_ONE(VALUE), "require_range", dm_sync(s));
    double got[COUNT];
    for (int row = 0; row < SIDE; row++) {
        DMT_OK(c, dm_rows(s, v, row, 1, &part));
        REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_read(s, part, got));
    }
    DMT_OK(c, dm_array_destroy(s, x));
    REFUSED(DMT_ONE(ARG), "bindings[0]: the program does not use", dm_program_run(s, program, 1, 2, both));
    DMT_OK(c, dm_program_destroy(s, program));

    /* a binding of one part, and of another that is a view of an array that lies otherwise */
    DMT_OK(c, dm_rows(s, y, 0, 1, &part));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_scale(s, 2, part, part));
    DMT_OK(c, dm_set_item(s, y, (int64_t[]){SIDE - 1, 1}, 8));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_rows(s, v, 0, 1, &other));
    DMT_OK(c, dm_fill(s, v, 1));
    DMT_OK(c, dm_program_run(s, program, 1, 1, (dm_program_binding[]){{part, other}}));
    double value[2];
    DMT_OK(c, dm_item(s, v, (int64_t[]){0, 0}, &value[0]));
    DMT_OK(c, dm_item(s, v, (int64_t[]){SIDE - 1, 1}, &value[1]));
    if (value[0] != 2 || value[1] != 8) {
        dmt_fail(c, "a part and what belongs to it: %g and %g", value[0], value[1]);
    }
    REFUSED(DMT_ONE(ARG), "bindings[1]: bindings[0] replaces",
            dm_program_run(s, program, 1, 2, (dm_program_binding[]){{part, other}, {part, other}}));
    REFUSED(DMT_ONE(OVERLAP), "shared memory when the program was recorded, and do not now",
            dm_program_run(s, program, 1, 2, (dm_program_binding[]){{part, other}, {y, u}}));
    REFUSED(DMT_ONE(HANDLE), "program_run_until: bindings[0]: array is a zero handle",
            dm_program_run_until(s, program, 1, 1, element, 0, 1, (dm_program_binding[]){{y, {0}}}));
    REFUSED(DMT_ONE(DTYPE), "program_run_until: bindings[0]",
            dm_program_run_until(
                s, program, 1, 1, element, 0, 1,
                (dm_program_binding[]){{y, (DMT_OK(c, dm_array_like(s, y, DM_F32, &flat)), flat)}}));
    DMT_OK(c, dm_program_destroy(s, program));
}

/* All rows of x fit y's layout; below them it has more, of which the program uses some. */
static void longer_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_layout single = dm_layout_single(c->workers - 1);
    dm_array x, y, first, whole, tail, mine;
    dm_program program;
    DMT_OK(c, dm_array_create(s, DM_F64, 1, (int64_t[]){43}, &single, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, (int64_t[]){40}, &single, &y));
    DMT_OK(c, dm_array_view(s, x, (int64_t[]){0}, (int64_t[]){40}, &first));
    DMT_OK(c, dm_array_reshape(s, first, 2, (int64_t[]){8, 5}, &whole));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_fill(s, whole, 1));
    DMT_OK(c, dm_array_view(s, x, (int64_t[]){40}, (int64_t[]){3}, &tail));
    DMT_OK(c, dm_fill(s, tail, 2));
    DMT_OK(c, dm_array_destroy(s, tail));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_array_reshape(s, y, 2, (int64_t[]){8, 5}, &mine));
    REFUSED(DMT_ONE(LAYOUT), "bindings: the program uses another part",
            dm_program_run(s, program, 1, 1, (dm_program_binding[]){{whole, mine}}));
    DMT_OK(c, dm_program_destroy(s, program));
}

static void refusal_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = make(c, 1), y = make(c, 1), z, small;
    dm_program program, other;
    double host[COUNT];
    char *text = NULL;
    REFUSED(DMT_ONE(STATE), "no program is being recorded", dm_program_end(s, &program));
    DMT_OK(c, dm_scope_begin(s));
    DMT_OK(c, dm_program_begin(s));
    REFUSED(DMT_ONE(STATE), "already being recorded", dm_program_begin(s));
    REFUSED(DMT_ONE(STATE), "cannot be part of a program", dm_read(s, x, host));
    REFUSED(DMT_ONE(STATE), "cannot be part of a program", dm_write(s, x, host));
    REFUSED(DMT_ONE(STATE), "cannot be destroyed in it", dm_array_destroy(s, x));
    REFUSED(DMT_ONE(STATE), "scope_end: the scope was open", dm_scope_end(s, NULL, 0));
    REFUSED(DMT_ONE(STATE), "being recorded", dm_explain_begin(s));
    REFUSED(DMT_ONE(SHAPE), "add",
            dm_add(s, 1, x, 1, y, (DMT_OK(c, dm_matrix(s, DM_F64, 2, 2, &small)), small)));
    DMT_OK(c, dm_add(s, 1, x, 1, y, y));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_scope_end(s, NULL, 0));
    REFUSED(DMT_ONE(HANDLE), "not a program", dm_program_run(s, (dm_program){77}, 1, 0, NULL));
    REFUSED(DMT_ONE(ARG), "times is -1", dm_program_run(s, program, -1, 0, NULL));
    REFUSED(DMT_ONE(ARG), "count is -2", dm_program_run(s, program, 1, -2, NULL));
    REFUSED(DMT_ONE(ARG), "bindings is NULL", dm_program_run(s, program, 1, 1, NULL));
    DMT_OK(c, dm_matrix(s, DM_F64, 2, 2, &small));
    DMT_OK(c, dm_matrix(s, DM_F32, SIDE, SIDE, &z));
    REFUSED(DMT_ONE(SHAPE), "bindings[0]",
            dm_program_run(s, program, 1, 1, (dm_program_binding[]){{x, small}}));
    REFUSED(DMT_ONE(DTYPE), "bindings[0]", dm_program_run(s, program, 1, 1, (dm_program_binding[]){{x, z}}));
    REFUSED(DMT_ONE(ARG), "does not use", dm_program_run(s, program, 1, 1, (dm_program_binding[]){{z, x}}));
    REFUSED(DMT_ONE(OVERLAP), "did not share memory when the program was recorded, and do now: f64 6x6",
            dm_program_run(s, program, 1, 1, (dm_program_binding[]){{x, y}}));
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(s, &text));
    assert_non_null(strstr(text, "program"));
    free(text);
    expect(c, y, 1, "refused and explained runs");
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, y, 2, "the run");
    DMT_OK(c, dm_array_destroy(s, x));
    REFUSED(DMT_ONE(HANDLE), "has been destroyed", dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_program_begin(s));
    REFUSED(DMT_ONE(STATE), "cannot be part", dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_program_end(s, &other));
    DMT_OK(c, dm_program_run(s, other, 5, 0, NULL)); /* an empty one */
    DMT_OK(c, dm_program_destroy(s, program));
    REFUSED(DMT_ONE(HANDLE), "has been destroyed", dm_program_run(s, program, 1, 0, NULL));
    REFUSED(DMT_ONE(HANDLE), "has been destroyed", dm_program_destroy(s, program));
    DMT_OK(c, dm_program_destroy(s, (dm_program){0}));
    DMT_OK(c, dm_sync(s));
}

typedef struct quartet {
    dm_array x, y, z, row;
} quartet;

static quartet make_quartet(dmt_case *c, const dmt_layout *layout)
{
    dm_session *s = c->session;
    const int64_t shape[] = {SIDE, SIDE};
    quartet q;
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, layout[0].use, &q.x));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, layout[1].use, &q.y));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, layout[2].use, &q.z));
    DMT_OK(c, dm_array_create(s, DM_F32, 1, shape, layout[3].use, &q.row));
    DMT_OK(c, dm_fill_uniform(s, q.x, -1, 1, 1));
    DMT_OK(c, dm_fill_uniform(s, q.y, -1, 1, 2));
    DMT_OK(c, dm_fill_normal(s, q.z, 0, 1, 3));
    DMT_OK(c, dm_fill(s, q.row, 1));
    return q;
}

static void mixed_step(dmt_case *c, const quartet *q)
{
    dm_session *s = c->session;
    dm_array product, turned;
    DMT_OK(c, dm_array_like(s, q->x, DM_F32, &product));
    DMT_OK(c, dm_array_like(s, q->z, DM_F32, &turned));
    DMT_OK(c, dm_matmul(s, q->x, q->y, product));
    DMT_OK(c, dm_transpose(s, product, turned));
    DMT_OK(c, dm_map(s, "tanh(z + 0.25 * t - row)", 3,
                     (dm_map_arg[]){DM_ARG("z", q->z), DM_ARG("t", turned), DM_ARG("row", q->row)}, q->z));
    DMT_OK(c, dm_softmax(s, q->z, (int[]){1}, 1, turned));
    DMT_OK(c, dm_sum_dim(s, turned, 0, q->row));
    DMT_OK(c, dm_axpby(s, 0.5, turned, 0.75, q->y));
    DMT_OK(c, dm_scale(s, 1.5, q->x, q->x));
    DMT_OK(c, dm_map(s, "clip(x, -1, 1)", 1, (dm_map_arg[]){DM_ARG("x", q->x)}, q->x));
    DMT_OK(c, dm_array_destroy(s, product));
    DMT_OK(c, dm_array_destroy(s, turned));
}

/* Many runs give the bits of as many loops over the calls. */
static void mixed_case(dmt_case *c)
{
    enum { RUNS = 7 };
    dm_session *s = c->session;
    const int64_t shape[] = {SIDE, SIDE};
    dmt_layout layout[4];
    for (int i = 0; i < 4; i++) {
        dmt_layout_random(&layout[i], &c->scratch, &c->random, s, i < 3 ? 2 : 1, shape);
    }
    quartet loop = make_quartet(c, layout), ran = make_quartet(c, layout);
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    mixed_step(c, &ran);
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, RUNS - 1, 0, NULL));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    for (int i = 0; i < RUNS; i++) {
        mixed_step(c, &loop);
    }
    dm_array pair[4][2] = {{loop.x, ran.x}, {loop.y, ran.y}, {loop.z, ran.z}, {loop.row, ran.row}};
    for (int i = 0; i < 4; i++) {
        float want[COUNT] = {0}, got[COUNT] = {0};
        DMT_OK(c, dm_read(s, pair[i][0], want));
        DMT_OK(c, dm_read(s, pair[i][1], got));
        if (memcmp(want, got, sizeof want) != 0) {
            dmt_fail(c, "array %d differs from that of the loop: %g, not %g", i, (double)got[0],
                     (double)want[0]);
        }
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* A kernel of a run fails: the error names the command, what it writes is poisoned, and can be written anew. */
static void failure_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = make(c, 1), y = make(c, 1);
    dm_program step;
    double value = 0;
    record_step(c, x, y, &step);
    DMT_OK(c, dm_program_run(s, step, 1, 0, NULL));
    REFUSED(DMT_ONE(INTERNAL), "one of its calls 1 to 2 of", dm_sync(s)); /* they are joined */
    REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_item(s, x, (int64_t[]){0, 0}, &value));
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_run(s, step, 1, 0, NULL));
    expect(c, x, 3, "after the failure");
}

/* One worker fails in one call of many: the error names the call, and all that the program writes is poisoned, on other
 * workers too. */
static void fail_many(dmt_case *c, bool destroyed)
{
    enum { OUTPUTS = 20 };
    dm_session *s = c->session;
    dm_array out[OUTPUTS], range;
    dm_layout last = dm_layout_single(c->workers - 1);
    dm_program program;
    double value = 0;
    dm_array u = make(c, 1), v = make(c, 1);
    for (int i = 0; i < 2 * OUTPUTS; i++) { /* arrays that no worker ever makes: it names memories as the master does */
        record_step(c, u, v, &program);
        DMT_OK(c, dm_program_destroy(s, program));
    }
    int64_t one[] = {1};
    DMT_OK(c, dm_array_create(s, DM_F64, 1, one, &last, &range));
    DMT_OK(c, dm_fill(s, range, 1));
    for (int i = 0; i < OUTPUTS; i++) {
        dm_layout there = dm_layout_single(i % c->workers);
        DMT_OK(c, dm_array_create(s, DM_F64, 1, one, &there, &out[i]));
        DMT_OK(c, dm_fill(s, out[i], 1));
    }
    DMT_OK(c, dm_program_begin(s));
    for (int i = 0; i < OUTPUTS; i++) {
        DMT_OK(c, dm_scale(s, 2, out[i], out[i]));
    }
    DMT_OK(c, dm_require_range(s, range, 2, 3));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    if (destroyed) { /* and its number is taken by one that writes nothing of it */
        DMT_OK(c, dm_program_destroy(s, program));
        record_step(c, u, v, &program);
    }
    REFUSED(DMT_ONE(VALUE), "(program_run), its call 21 of 21, require_range, failed on worker", dm_sync(s));
    for (int i = 0; i < OUTPUTS; i++) {
        REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_read(s, out[i], &value));
    }
    DMT_OK(c, dm_fill(s, out[7], 1));
    expect_one(c, out[7], 1);
    DMT_OK(c, dm_program_destroy(s, program));
}

static void many_outputs_case(dmt_case *c)
{
    fail_many(c, false);
    fail_many(c, true);
}

/* A program's number is used again when it has been destroyed, its handle is not. The frames of its last runs
 * are still on their way then, and reports of failures. */
static void numbers_case(dmt_case *c)
{
    enum { SLOT = 0xffffff, ROUNDS = 60 };
    dm_session *s = c->session;
    dm_array x = make(c, 1), y = make(c, 1), z = make(c, 5), little = make(c, 1), other = make(c, 2);
    dm_program program, before = {0};
    double want = 1;
    for (int i = 0; i < ROUNDS; i++) {
        bool loops = i % 3 == 1;
        if (loops) {
            DMT_OK(c, dm_program_begin(s));
            DMT_OK(c, dm_scale(s, 2, x, x));
            DMT_OK(c, dm_program_repeat(s, 3));
            DMT_OK(c, dm_add(s, 1, x, 1, y, x));
            DMT_OK(c, dm_program_repeat_end(s));
            DMT_OK(c, dm_scale(s, 0.5, x, x));
            DMT_OK(c, dm_program_end(s, &program));
        } else {
            record_step(c, x, y, &program);
        }
        want = loops ? (2 * want + 3) / 2 : 2 * want + 1;
        DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        if (before.id) { /* some have the number of the present one */
            REFUSED(DMT_ONE(HANDLE), "has been destroyed", dm_program_destroy(s, before));
        }
        DMT_OK(c, dm_program_destroy(s, program));
        if (program.id == before.id || (program.id & SLOT) > 8) {
            dmt_fail(c, "a handle came twice, or a number is not used again: %#" PRIx64, program.id);
        }
        REFUSED(DMT_ONE(HANDLE), "has been destroyed", dm_program_run(s, program, 1, 0, NULL));
        before = program;
        if (want > 1e15) {
            expect(c, x, want, "programs with the same number");
            DMT_OK(c, dm_fill(s, x, want = 1));
        }
    }
    expect(c, x, want, "programs with the same number");
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_add(s, 1, y, 1, z, z));
    DMT_OK(c, dm_require_range(s, little, 2, 3));
    DMT_OK(c, dm_program_end(s, &before));
    DMT_OK(c, dm_program_run(s, before, 1, 0, NULL)); /* fails */
    DMT_OK(c, dm_program_destroy(s, before));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_scale(s, 2, other, other)); /* the first array is read there, and written here */
    DMT_OK(c, dm_add(s, 1, other, 1, z, z));
    DMT_OK(c, dm_program_end(s, &program));
    if ((before.id & SLOT) != (program.id & SLOT)) {
        dmt_fail(c, "another number");
    }
    REFUSED(DMT_ONE(VALUE), "(program_run), its call 2 of 2, require_range, failed on worker", dm_sync(s));
    expect(c, y, 1, "what the failed program reads");
    double value;
    REFUSED(DMT_ONE(POISONED), "(program_run), which failed", dm_item(s, z, (int64_t[]){0, 0}, &value));
    DMT_OK(c, dm_program_destroy(s, program));
}

/* What a run makes with these seeds, call by call: kept apart from the program's own arrays. */
static void random_calls(dmt_case *c, uint64_t first, uint64_t second, uint64_t third, dm_array x, dm_array y,
                         dm_array two)
{
    char text[64];
    snprintf(text, sizeof text, "x + normal(%" PRIu64 ")", second);
    DMT_OK(c, dm_fill_uniform(c->session, x, -1, 1, first));
    DMT_OK(c, dm_map(c->session, text, 1, (dm_map_arg[]){DM_ARG("x", x)}, y));
    DMT_OK(c, dm_fill_normal_by(c->session, x, dm_value(1), dm_element(two), third));
}

static void seeds_case(dmt_case *c)
{
    enum { N = 50 };
    dm_session *s = c->session;
    dm_array x, y, u, v, two;
    dm_program program;
    double got[2][N], want[2][N];
    DMT_OK(c, dm_vector(s, DM_F64, N, &x));
    DMT_OK(c, dm_array_like(s, x, 0, &y));
    DMT_OK(c, dm_array_like(s, x, 0, &u));
    DMT_OK(c, dm_array_like(s, x, 0, &v));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &two));
    DMT_OK(c, dm_fill(s, two, 2));
    DMT_REFUSED(c, DM_ERR_STATE, dm_program_advance_seeds(s));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_fill_uniform(s, v, 0, 1, 77)); /* this one stays */
    DMT_OK(c, dm_program_advance_seeds(s));
    random_calls(c, 5, 6, 7, x, y, two);
    DMT_OK(c, dm_add(s, 1, v, 1, y, y));
    DMT_OK(c, dm_program_end(s, &program));
    static const int64_t runs[] = {1, 2, 0, 3}, last[] = {0, 2, 2, 12};
    for (int i = 0; i < 4; i++) {
        if (i == 3) {
            DMT_OK(c, dm_program_set_run(s, program, 10));
        }
        DMT_OK(c, dm_program_run(s, program, runs[i], 0, NULL));
        DMT_OK(c, dm_read(s, x, got[0]));
        DMT_OK(c, dm_read(s, y, got[1]));
        int64_t r = last[i];
        random_calls(c, dm_program_seed(5, r), dm_program_seed(6, r), dm_program_seed(7, r), u, v, two);
        DMT_OK(c, dm_read(s, u, want[0]));
        DMT_OK(c, dm_fill_uniform(s, u, 0, 1, 77));
        DMT_OK(c, dm_add(s, 1, u, 1, v, v));
        DMT_OK(c, dm_read(s, v, want[1]));
        if (memcmp(got, want, sizeof got) != 0) {
            dmt_fail(c, "the numbers of run %d differ", (int)r);
        }
    }
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_set_run(s, program, -1));
    if (dm_program_seed(5, 0) != 5 || dm_program_seed(5, 1) == dm_program_seed(6, 1)) {
        dmt_fail(c, "dm_program_seed");
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

/* How many arrays of N numbers on every worker fit under the limit. */
enum { LIMIT_N = 1024, LIMIT_MOST = 64 };
static dm_array large(dmt_case *c, dm_status *status)
{
    const int64_t shape[] = {LIMIT_N};
    const dm_layout everywhere = dm_layout_replicated(c->session);
    dm_array a = DM_NO_ARRAY;
    *status = dm_array_create(c->session, DM_F64, 1, shape, &everywhere, &a);
    return a;
}

static int that_fit(dmt_case *c)
{
    dm_array a[LIMIT_MOST];
    dm_status status = DM_OK;
    int n = 0;
    while (n < LIMIT_MOST && status == DM_OK) {
        a[n] = large(c, &status);
        n += status == DM_OK;
    }
    if (status != DM_ERR_LIMIT) {
        dmt_fail(c, "status %d of array %d", (int)status, n);
    }
    for (int i = 0; i < n; i++) {
        DMT_OK(c, dm_array_destroy(c->session, a[i]));
    }
    return n;
}

static void copy_halves(dmt_case *c, dm_array from, dm_array to)
{
    dm_array a[2], b[2];
    DMT_OK(c, dm_split(c->session, from, 0, 2, NULL, a));
    DMT_OK(c, dm_split(c->session, to, 0, 2, NULL, b));
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_copy(c->session, a[i], b[i]));
        DMT_OK(c, dm_array_destroy(c->session, a[i]));
        DMT_OK(c, dm_array_destroy(c->session, b[i]));
    }
}

/* With a memory limit: a temporary that is destroyed while recording leaves its bytes to the next, as the run
 * does; what loops keep from part to part does not. */
static void room_case(dmt_case *c)
{
    enum { CHAIN = 40 };
    dm_session *s = c->session;
    dm_status status;
    dm_program program;
    dm_array x = large(c, &status);
    DMT_OK(c, dm_program_begin(s)); /* the session keeps what loops look at: made once */
    DMT_OK(c, dm_program_repeat(s, 2));
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_array_destroy(s, x));
    const int fit = that_fit(c);
    x = large(c, &status);
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_begin(s));
    dm_array last = x;
    for (int i = 0; i < CHAIN; i++) {
        dm_array next = large(c, &status);
        DMT_OK(c, status);
        DMT_OK(c, dm_add(s, 1, last, 1, x, next));
        DMT_OK(c, i ? dm_array_destroy(s, last) : DM_OK);
        last = next;
    }
    DMT_OK(c, dm_copy(s, last, x));
    DMT_OK(c, dm_array_destroy(s, last));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, CHAIN + 1, "a chain of temporaries under a limit");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s)); /* a pass makes them anew, though it writes them part by part */
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_program_repeat(s, 3));
    for (int i = 0; i < CHAIN; i++) {
        dm_array inner = large(c, &status);
        DMT_OK(c, status);
        copy_halves(c, x, inner);
        DMT_OK(c, dm_axpby(s, 0.5, inner, 1, x));
        DMT_OK(c, dm_scale(s, 2.0 / 3, x, x));
        DMT_OK(c, dm_array_destroy(s, inner));
    }
    DMT_OK(c, dm_scale(s, 2, x, x));
    DMT_OK(c, dm_program_repeat_end(s));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    expect(c, x, 8, "temporaries of passes");
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_begin(s)); /* one after another they fit, but the loop keeps all from part to part */
    DMT_OK(c, dm_program_repeat(s, 2));
    for (int i = 0; i < fit + 2; i++) {
        dm_array kept = large(c, &status);
        DMT_OK(c, status);
        DMT_OK(c, dm_copy(s, x, kept));
        DMT_OK(c, dm_program_repeat(s, 1));
        DMT_OK(c, dm_add(s, 1, kept, 1, x, x));
        DMT_OK(c, dm_program_repeat_end(s));
        DMT_OK(c, dm_array_destroy(s, kept));
    }
    DMT_OK(c, dm_program_repeat_end(s));
    REFUSED(DMT_ONE(LIMIT), "program_end: loops keep an array from part to part: worker",
            dm_program_end(s, &program));
    DMT_OK(c, dm_array_destroy(s, x));
    const int now = that_fit(c);
    if (now != fit) {
        dmt_fail(c, "%d arrays fit, %d before", now, fit);
    }
}

/* With a small command ring: programs whose runs, or loops, it has no room for are refused. */
static void ring_case(dmt_case *c)
{
    enum { FEW = 200, MANY = 400, LOOPS = 60 };
    dm_session *s = c->session;
    dm_array a[MANY];
    dm_program program;
    for (int i = 0; i < MANY; i++) {
        DMT_OK(c, dm_vector(s, DM_F64, 1, &a[i]));
        DMT_OK(c, dm_fill(s, a[i], i));
    }
    for (int n = FEW; n <= MANY; n += MANY - FEW) {
        DMT_OK(c, dm_program_begin(s));
        for (int i = 0; i < n; i++) {
            DMT_OK(c, dm_scale(s, 2, a[i], a[i]));
        }
        if (n == FEW) {
            DMT_OK(c, dm_program_end(s, &program));
            DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
            expect_one(c, a[FEW - 1], 4 * (FEW - 1));
            DMT_OK(c, dm_program_destroy(s, program));
        } else {
            REFUSED(DMT_ONE(LIMIT), "program_end: a run with 400 arrays", dm_program_end(s, &program));
        }
    }
    DMT_OK(c, dm_program_begin(s));
    for (int i = 0; i < LOOPS; i++) {
        DMT_OK(c, dm_program_repeat(s, 2));
        DMT_OK(c, dm_scale(s, 2, a[i], a[i]));
        DMT_OK(c, dm_program_repeat_end(s));
    }
    REFUSED(DMT_ONE(LIMIT), "program_end: loops that cut the program into 60 parts",
            dm_program_end(s, &program));
    expect_one(c, a[7], 28);
}

static void run(const char *name, void (*fn)(dmt_case *c), int workers, const char *options)
{
    dmt_run(&(dmt_suite){.name = name,
                         .cases = fn == mixed_case ? 20 : 1,
                         .each = true,
                         .fn = fn,
                         .scope = true,
                         .workers = workers,
                         .options = options});
}

static void test_all(void **state)
{
    (void)state;
    run("programs_times", times_case, 0, NULL);
    run("programs_alternate", alternate_case, 0, NULL);
    run("programs_lifetimes", lifetimes_case, 0, NULL);
    run("programs_outlive", outlive_case, 0, NULL);
    run("programs_functions", functions_case, 0, NULL);
    run("programs_refusals", refusal_case, 0, NULL);
    run("programs_parts", parts_case, 0, NULL);
    run("programs_longer", longer_case, 0, NULL);
    run("programs_mixed", mixed_case, 0, NULL);
    run("programs_many_outputs", many_outputs_case, 0, NULL);
    run("programs_numbers", numbers_case, 0, NULL);
    run("programs_seeds", seeds_case, 0, NULL);
    run("programs_limit", times_case, 0, "memory_limit=65536");
    run("programs_room", room_case, 0, "memory_limit=65536");
    run("programs_ring", ring_case, 2, "ring=16K");
    if (dmt_on_cpu()) { /* fills 1 and 2, then the scale */
        run("programs_failure", failure_case, 1, "fault=compute:3");
    }
}

int main(void)
{
    if (dm_register("add weighted", add_weighted) != DM_OK || dm_register("refuse negative", refuse_negative) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
