/* Elementwise calls that a program joins: the bits that the same calls give one by one, over chains of calls on arrays of any
 * types, some of which live in the program only, lie elsewhere, are views, or broadcast. */
#include "support/cases.h"

#include <dmath/ewise.h>
#include <dmath/factors.h>
#include <dmath/profile.h>
#include <dmath/program.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 5, TEMPORARIES = 3, ALL = ARRAYS + TEMPORARIES + 2 /* a row, an element */, MOST_CALLS = 90, RUNS = 2 };
enum {
    ADD,
    AXPBY,
    SCALE,
    MULTIPLY,
    MAXIMUM,
    GREATER,
    NEGATIVE,
    SQUARE,
    WHERE,
    MAP,
    COPY,
    FILL,
    VIEW,
    FACTOR,
    KINDS
};

typedef struct one_call {
    int kind, a, b, c, out;
    double alpha, beta;
} one_call;

typedef struct setup {
    dm_dtype dtype[ALL];
    dm_layout layout[3];
    int lies[ALL]; /* which layout */
    int64_t shape[2];
    one_call call[MOST_CALLS];
    int calls, loop, loop_end; /* calls between are repeated; loop < 0: none */
} setup;

/* Temporaries come behind the arrays; then the row and the element. */
static dm_status make_array(dm_session *s, const setup *u, int i, dm_array *out)
{
    const int64_t one[] = {1};
    bool row = i == ALL - 2, element = i == ALL - 1;
    return dm_array_create(s, u->dtype[i], row ? 1 : element ? 0 : 2, row ? &u->shape[1] : element ? one : u->shape,
                           row || element ? NULL : &u->layout[u->lies[i]], out);
}

static dm_status in_views(dm_session *s, const setup *u, const one_call *k, const dm_array *x)
{
    const int64_t lo[] = {u->shape[0] / 3, 0}, n[] = {u->shape[0] - lo[0], u->shape[1]};
    dm_array a, out;
    dm_status status = dm_array_view(s, x[k->a], lo, n, &a);
    if (status == DM_OK && (status = dm_array_view(s, x[k->out], lo, n, &out)) == DM_OK) {
        status = dm_add(s, k->alpha, a, k->beta, out, out);
        dm_status ended = dm_array_destroy(s, out);
        status = status == DM_OK ? ended : status;
    }
    dm_status ended = dm_array_destroy(s, a);
    return status == DM_OK ? ended : status;
}

static dm_status give(dm_session *s, const setup *u, const one_call *k, const dm_array *x)
{
    const dm_array a = x[k->a], b = x[k->b], c = x[k->c], out = x[k->out];
    const dm_map_arg args[] = {DM_ARG("a", a), DM_ARG("b", b), DM_NUMBER("p", k->alpha)};
    switch (k->kind) {
    case ADD:
        return dm_add(s, k->alpha, a, k->beta, b, out);
    case AXPBY:
        return dm_axpby(s, k->alpha, a, k->beta, out);
    case SCALE:
        return dm_scale(s, k->alpha, a, out);
    case MULTIPLY:
        return dm_multiply(s, k->alpha, a, b, out);
    case MAXIMUM:
        return dm_maximum(s, a, b, out);
    case GREATER:
        return dm_greater(s, a, b, out);
    case NEGATIVE:
        return dm_negative(s, a, out);
    case SQUARE:
        return dm_square(s, a, out);
    case WHERE:
        return dm_where(s, a, b, c, out);
    case MAP:
        return dm_map(s, "where(a > b, a - b, p * b)", 3, args, out);
    case COPY:
        return dm_copy(s, a, out);
    case FILL:
        return dm_fill(s, out, k->beta == 2 ? 0.1 : k->alpha);
    case VIEW:
        return in_views(s, u, k, x);
    default:
        return dm_add_by(s, dm_element(x[ALL - 1]), a, dm_value(k->beta), b, out);
    }
}

static void choose(dmt_case *c, setup *u)
{
    static const double factor[] = {0, 1, -1, 2, 1, -2, 3};
    dm_dtype common = dmt_ewise_random(c);
    const bool mixed = dmt_chance(&c->random, 40), apart = dmt_chance(&c->random, 30);
    const int layouts[] = {(int)dmt_int(&c->random, 0, 2), (int)dmt_int(&c->random, 0, 2)};
    u->layout[0] = dm_layout_rows(c->session);
    u->layout[1] = dm_layout_cols(c->session);
    u->layout[2] = dm_layout_cyclic(c->session, 1, 3);
    for (int i = 0; i < ALL; i++) {
        u->dtype[i] = mixed && dmt_chance(&c->random, 50) ? dmt_ewise_random(c) : common;
        u->lies[i] = layouts[apart && dmt_chance(&c->random, 20)];
    }
    dmt_shape_random(c, 2, 6000, u->shape);
    u->calls = (int)dmt_int(&c->random, 2, dmt_chance(&c->random, 30) ? MOST_CALLS : 12);
    for (int i = 0; i < u->calls; i++) {
        one_call *k = &u->call[i];
        *k = (one_call){.kind = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 70) ? MULTIPLY : KINDS - 1),
                        .a = (int)dmt_int(&c->random, 0, ALL - 2),
                        .b = (int)dmt_int(&c->random, 0, ALL - 1),
                        .c = (int)dmt_int(&c->random, 0, ARRAYS - 1),
                        .out = (int)dmt_int(&c->random, 0, ARRAYS + TEMPORARIES - 1),
                        .alpha = factor[dmt_int(&c->random, 0, 6)],
                        .beta = factor[dmt_int(&c->random, 0, 6)]};
        k->a = i > 0 && dmt_chance(&c->random, 50) ? u->call[i - 1].out : k->a;
    }
    u->loop = dmt_chance(&c->random, 25) ? (int)dmt_int(&c->random, 0, u->calls - 1) : -1;
    u->loop_end = u->loop < 0 ? -1 : (int)dmt_int(&c->random, u->loop, u->calls - 1);
}

static void fill_all(dmt_case *c, const setup *u, dm_array *x)
{
    for (int i = 0; i < ALL; i++) {
        bool temporary = i >= ARRAYS && i < ARRAYS + TEMPORARIES;
        if (!temporary) {
            DMT_OK(c, make_array(c->session, u, i, &x[i]));
            if (i == ALL - 1) {
                DMT_OK(c, dm_fill(c->session, x[i], 2));
            } else {
                DMT_OK(c, dm_map(c->session, "(3 * index(0) + p) % 7", 1, (dm_map_arg[]){DM_INTEGER("p", i)}, x[i]));
            }
        }
    }
}

/* Temporaries hold zeros when a pass begins. */
static void begin_temporaries(dmt_case *c, const setup *u, dm_array *x)
{
    for (int i = ARRAYS; i < ARRAYS + TEMPORARIES; i++) {
        DMT_OK(c, make_array(c->session, u, i, &x[i]));
        DMT_OK(c, dm_fill(c->session, x[i], 0));
    }
}

static void end_temporaries(dmt_case *c, dm_array *x)
{
    for (int i = ARRAYS; i < ARRAYS + TEMPORARIES; i++) {
        DMT_OK(c, dm_array_destroy(c->session, x[i]));
    }
}

/* Leaves out calls that their arrays do not allow. */
static void try_calls(dmt_case *c, setup *u, dm_array *x)
{
    int kept = 0;
    begin_temporaries(c, u, x);
    for (int i = 0; i < u->calls; i++) {
        dm_status status = give(c->session, u, &u->call[i], x);
        if (status == DM_OK) {
            u->loop = i == u->loop ? kept : u->loop;
            u->call[kept++] = u->call[i];
        } else if (i == u->loop || i == u->loop_end) {
            u->loop = u->loop_end = -1;
        }
        u->loop_end = i == u->loop_end ? kept - 1 : u->loop_end;
    }
    u->calls = kept;
    end_temporaries(c, x);
    DMT_OK(c, dm_sync(c->session));
}

static void run_calls(dmt_case *c, const setup *u, dm_array *x)
{
    begin_temporaries(c, u, x);
    for (int i = 0; i < u->calls; i++) {
        DMT_OK(c, give(c->session, u, &u->call[i], x));
        if (i == u->loop_end) { /* a second pass */
            for (int k = u->loop; k <= i; k++) {
                DMT_OK(c, give(c->session, u, &u->call[k], x));
            }
        }
    }
    end_temporaries(c, x);
}

static void record(dmt_case *c, const setup *u, dm_array *x, dm_program *program)
{
    DMT_OK(c, dm_program_begin(c->session));
    begin_temporaries(c, u, x);
    for (int i = 0; i < u->calls; i++) {
        if (i == u->loop) {
            DMT_OK(c, dm_program_repeat(c->session, 2));
        }
        DMT_OK(c, give(c->session, u, &u->call[i], x));
        if (i == u->loop_end) {
            DMT_OK(c, dm_program_repeat_end(c->session));
        }
    }
    end_temporaries(c, x);
    DMT_OK(c, dm_program_end(c->session, program));
}

static void joined_case(dmt_case *c)
{
    setup u;
    dm_array one[ALL], other[ALL];
    dm_program program;
    char *text = NULL;
    choose(c, &u);
    fill_all(c, &u, one);
    try_calls(c, &u, one);
    for (int i = 0; i < ALL; i++) {
        if (i < ARRAYS || i >= ARRAYS + TEMPORARIES) {
            DMT_OK(c, dm_array_destroy(c->session, one[i]));
        }
    }
    fill_all(c, &u, one);
    fill_all(c, &u, other);
    dmt_say(c, "\n    %d calls on %" PRId64 " x %" PRId64 ", loop %d to %d\n", u.calls, u.shape[0], u.shape[1], u.loop,
            u.loop_end);
    for (int i = 0; i < u.calls; i++) {
        const one_call *k = &u.call[i];
        dmt_say(c, "    %d(%d %s, %d %s, %d) to %d %s by %g, %g\n", k->kind, k->a, dm_dtype_name(u.dtype[k->a]), k->b,
                dm_dtype_name(u.dtype[k->b]), k->c, k->out, dm_dtype_name(u.dtype[k->out]), k->alpha, k->beta);
    }
    record(c, &u, other, &program);
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_program_run(c->session, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(c->session, &text));
    if (text && strstr(text, "others as one")) {
        ++*(int64_t *)c->user;
    }
    free(text);
    for (int run = 0; run < RUNS; run++) {
        run_calls(c, &u, one);
    }
    DMT_OK(c, dm_program_run(c->session, program, RUNS, 0, NULL));
    for (int i = 0; i < ARRAYS; i++) {
        char difference[200];
        dmt_host *want = dmt_read(c, one[i], u.dtype[i], 2, u.shape), *got = dmt_read(c, other[i], u.dtype[i], 2, u.shape);
        if (!dmt_host_same(got, want, difference, sizeof difference)) {
            dmt_fail(c, "array %d: %s", i, difference);
        }
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    for (int i = 0; i < ALL; i++) {
        if (i < ARRAYS || i >= ARRAYS + TEMPORARIES) {
            DMT_OK(c, dm_array_destroy(c->session, one[i]));
            DMT_OK(c, dm_array_destroy(c->session, other[i]));
        }
    }
}

static void test_bits(void **state)
{
    (void)state;
    int64_t joined = 0, cases = dmt_run(&(dmt_suite){.name = "joined", .cases = 400, .fn = joined_case, .user = &joined});
    printf("%" PRId64 " of %" PRId64 " programs joined calls\n", joined, cases);
    assert_true(cases < 20 || joined * 2 > cases);
}

/* Which calls of a program become one, by what explain prints of it. */
typedef struct apart {
    dm_array near, other, third, far, row, rate; /* far: in another layout; row, rate: copies everywhere */
} apart;

static void record_apart(dmt_case *c, const apart *a)
{
    dm_session *s = c->session;
    switch ((int)c->number) {
    case 0: /* a chain */
        DMT_OK(c, dm_scale(s, 2, a->near, a->other));
        DMT_OK(c, dm_add(s, 1, a->other, 1, a->row, a->third));
        break;
    case 1: /* both read one array */
        DMT_OK(c, dm_scale(s, 2, a->near, a->other));
        DMT_OK(c, dm_scale(s, 3, a->near, a->third));
        break;
    case 2: /* only a number is common */
        DMT_OK(c, dm_scale_by(s, dm_element(a->rate), a->near, a->near));
        DMT_OK(c, dm_scale_by(s, dm_element(a->rate), a->other, a->other));
        break;
    case 3: /* the first waits for a transfer, the second does not */
        DMT_OK(c, dm_add(s, 1, a->far, 1, a->near, a->other));
        DMT_OK(c, dm_scale(s, 2, a->near, a->third));
        break;
    case 4: /* what came is read on */
        DMT_OK(c, dm_add(s, 1, a->far, 1, a->near, a->other));
        DMT_OK(c, dm_scale(s, 2, a->other, a->third));
        break;
    case 5: /* the second waits for a transfer */
        DMT_OK(c, dm_scale(s, 2, a->near, a->other));
        DMT_OK(c, dm_add(s, 1, a->far, 1, a->other, a->third));
        break;
    case 6: /* a fill for the next call, */
        DMT_OK(c, dm_scale(s, 2, a->near, a->other));
        DMT_OK(c, dm_fill(s, a->third, 1));
        DMT_OK(c, dm_add(s, 1, a->third, 1, a->other, a->third));
        break;
    case 7: /* and for none */
        DMT_OK(c, dm_scale(s, 2, a->near, a->other));
        DMT_OK(c, dm_fill(s, a->third, 1));
        break;
    default: /* numbers are those of the recording */
        DMT_OK(c, dm_add(s, 1, a->near, 1, a->other, a->other));
        DMT_OK(c, dm_scale(s, 2, a->other, a->other));
        DMT_OK(c, dm_sum(s, a->other, NULL, 0, 1, 0, a->rate));
        DMT_OK(c, dm_scale(s, 2, a->other, a->other));
        DMT_OK(c, dm_add(s, 1, a->near, 1, a->other, a->third));
    }
}

static void apart_case(dmt_case *c)
{
    static const char *const joined[] = {"calls 1 to 2 of 2, scale",
                                         "calls 1 to 2 of 2, scale",
                                         NULL,
                                         NULL,
                                         "calls 1 to 2 of 2, add",
                                         NULL,
                                         "calls 1 to 3 of 3, scale",
                                         NULL,
                                         "calls 4 to 5 of 5, scale"};
    const int64_t shape[] = {128, 256};
    const dm_layout rows = dm_layout_rows(c->session), cols = dm_layout_cols(c->session),
                    all = dm_layout_replicated(c->session);
    apart a;
    dm_array *const array[] = {&a.near, &a.other, &a.third, &a.far, &a.row, &a.rate};
    for (int i = 0; i < 6; i++) {
        int ndim = i < 4 ? 2 : i == 4 ? 1 : 0;
        const dm_layout *layout = i < 3 ? &rows : i == 3 ? &cols : &all;
        DMT_OK(c, dm_array_create(c->session, DM_F32, ndim, shape + (ndim == 1), layout, array[i]));
        DMT_OK(c, dm_fill(c->session, *array[i], 1));
    }
    const char *want = joined[c->number];
    dm_program program;
    char *text = NULL;
    DMT_OK(c, dm_program_begin(c->session));
    record_apart(c, &a);
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_program_run(c->session, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(c->session, &text));
    if (!text || (want ? !strstr(text, want) : strstr(text, "as one") != NULL)) {
        dmt_fail(c, "%s is wanted: %s", want ? want : "nothing as one", text ? text : "nothing");
    }
    free(text);
    DMT_OK(c, dm_program_destroy(c->session, program));
    for (int i = 0; i < 6; i++) {
        DMT_OK(c, dm_array_destroy(c->session, *array[i]));
    }
}

static void test_apart(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "joined_apart",
                         .cases = 9,
                         .fn = apart_case,
                         .options = "program_join=1",
                         .workers = 2,
                         .each = true});
}

/* A view that is shifted by one is not what was computed before. */
static void shifted_case(dmt_case *c)
{
    enum { N = 9 };
    const int64_t one[] = {1}, zero[] = {0}, n[] = {N};
    const dm_layout single = dm_layout_single(0);
    dm_array whole[3], x, y, z, high; /* whole: of x, y, z, one element more */
    dm_program program;
    double got[N];
    dm_array *const part[] = {&x, &y, &z};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_create(c->session, DM_F64, 1, (int64_t[]){N + 1}, &single, &whole[i]));
        DMT_OK(c, dm_array_view(c->session, whole[i], zero, n, part[i]));
    }
    DMT_OK(c, dm_array_view(c->session, whole[1], one, n, &high));
    DMT_OK(c, dm_fill_arange(c->session, x, 0, 1));
    DMT_OK(c, dm_fill_arange(c->session, whole[1], 100, 1));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_scale(c->session, 2, x, y)); /* all of y is 0, 2, ... 16, 109 */
    DMT_OK(c, dm_add(c->session, 1, high, 1, y, z));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_program_run(c->session, program, 1, 0, NULL));
    DMT_OK(c, dm_read(c->session, z, got));
    for (int i = 0; i < N; i++) {
        double want = 2 * i + (i + 1 < N ? 2 * (i + 1) : 100 + N);
        if (got[i] != want) {
            dmt_fail(c, "element %d is %g, not %g", i, got[i], want);
        }
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    const dm_array all[] = {high, x, y, z, whole[0], whole[1], whole[2]};
    for (int i = 0; i < 7; i++) {
        DMT_OK(c, dm_array_destroy(c->session, all[i]));
    }
}

static void test_shifted(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "joined_shifted",
                         .cases = 1,
                         .fn = shifted_case,
                         .options = "program_join=1",
                         .workers = 2,
                         .each = true});
}

/* A view of a part of a temporary, in another shape, that the program uses before the whole: workspace for all
 * of it. */
static void reshaped_case(dmt_case *c)
{
    const int64_t all[] = {1003}, some[] = {1000}, lo[] = {0}, shape[] = {2, 500};
    dm_layout one = dm_layout_single(0);
    dm_array sum, whole, part, turned;
    dm_program program;
    double value = 0;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &sum));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, all, &one, &whole));
    DMT_OK(c, dm_array_view(c->session, whole, lo, some, &part));
    DMT_OK(c, dm_array_reshape(c->session, part, 2, shape, &turned));
    DMT_OK(c, dm_fill(c->session, turned, 1));
    DMT_OK(c, dm_fill_arange(c->session, whole, 0, 1));
    DMT_OK(c, dm_sum(c->session, whole, NULL, 0, 1, 0, sum));
    DMT_OK(c, dm_array_destroy(c->session, turned));
    DMT_OK(c, dm_array_destroy(c->session, part));
    DMT_OK(c, dm_array_destroy(c->session, whole));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_program_run(c->session, program, 2, 0, NULL));
    DMT_OK(c, dm_read(c->session, sum, &value));
    if (value != 1002 * 1003 / 2) {
        dmt_fail(c, "the sum is %g", value);
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, sum));
}

static void test_reshaped(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "joined_reshaped",
                         .cases = 1,
                         .fn = reshaped_case,
                         .options = "pool_debug=1",
                         .workers = 2,
                         .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_shifted), cmocka_unit_test(test_reshaped)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
