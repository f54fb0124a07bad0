/* Operands that are kept at all workers after a product: later products find them there, writes make them
 * stale. */
#include "support/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t replica_bytes(dmt_case *c, int worker)
{
    dm_memory m = {.size = sizeof m};
    DMT_OK(c, dm_memory_report(c->session, worker, &m));
    return m.replicas;
}

static void multiply(dmt_case *c, const dmt_product *p, dmt_operand *a, dmt_operand *b, dmt_operand *out)
{
    dmt_status_is(c, dmt_product_call(c, p, a->array, b->array, out->array), DM_OK, "dm_gemm");
    dmt_product_check(c, p, true, out);
}

static void twice(dmt_host *x)
{
    for (int64_t i = 0; i < x->count; i++) {
        x->v[i] *= 2;
    }
}

/* Whatever the layouts: the same product again, then after either operand has been written to. */
static void random_case(dmt_case *c)
{
    dmt_product p = {.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50), .alpha = 1};
    dm_dtype dtype = dmt_float_random(c);
    p.m = dmt_int(&c->random, 1, 40);
    p.n = dmt_int(&c->random, 1, 40);
    p.k = dmt_int(&c->random, 1, 40);
    dmt_product_fill(c, &p, dtype, dtype, DM_F64, DMT_SMALL);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0), *b = dmt_operand_make(c, "b", p.b, 0),
                *out = dmt_operand_make(c, "c", p.c, DMT_NO_VIEW);
    dmt_product_say(c, &p);
    for (int round = 0; round < 5; round++) {
        multiply(c, &p, a, b, out);
        int what = (int)dmt_int(&c->random, 0, 3);
        if (what == 1) {
            DMT_OK(c, dm_add(c->session, 1, b->array, 1, b->array, b->array));
            twice(p.b);
        } else if (what == 2) {
            DMT_OK(c, dm_scale(c->session, 2, a->array, a->array));
            twice(p.a);
        }
    }
}

/* Which operand travels, and that it does so once. */
static void split_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS, DMT_LAST};
    static const char *const names[] = {"a", "b", "c"};
    dmt_product p = {.m = 48, .n = 32, .k = 40, .alpha = 1};
    dmt_operand *o[3];
    int64_t pick = c->number;
    dmt_product_fill(c, &p, DM_F32, DM_F32, DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    for (int i = 0; i < 3; i++, pick /= 2) {
        dmt_layout layout;
        int kind =
            i == 2 ? kinds[c->number % 2] : kinds[pick % 2]; /* c as a, so that b travels, or all is moved */
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape, kind);
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
    }
    int64_t at[4];
    dmt_product_say(c, &p);
    at[0] = dmt_bytes_sent(c);
    multiply(c, &p, o[0], o[1], o[2]);
    int64_t kept = replica_bytes(c, 0);
    at[1] = dmt_bytes_sent(c);
    DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, o[0]->array, o[1]->array, 0, o[2]->array));
    at[2] = dmt_bytes_sent(c);
    if (kept > 0 && at[2] != at[1]) {
        dmt_fail(c, "the operand is kept, but the second product sends %lld bytes", (long long)(at[2] - at[1]));
    }
    if (kept == 0 && c->workers > 1 && c->number % 4 != 1) {
        dmt_fail(c, "nothing is kept");
    }
    DMT_OK(c, dm_scale(c->session, 2, o[1]->array, o[1]->array));
    DMT_OK(c, dm_scale(c->session, 2, o[0]->array, o[0]->array));
    DMT_OK(c, dm_sync(c->session));
    if (replica_bytes(c, 0) != 0) {
        dmt_fail(c, "%lld bytes are kept of arrays that have been written to", (long long)replica_bytes(c, 0));
    }
    twice(p.a);
    twice(p.b);
    multiply(c, &p, o[0], o[1], o[2]);
}

/* The form is forced, and the second product, for which nothing moves, needs none. */
static void forced_case(dmt_case *c)
{
    dmt_product p = {.m = 48, .n = 32, .k = 40, .alpha = 1};
    dmt_operand *o[3];
    dmt_product_fill(c, &p, DM_F32, DM_F32, DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape, DMT_ROWS);
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
    }
    dmt_product_say(c, &p);
    for (int round = 0; round < 3; round++) {
        multiply(c, &p, o[0], o[1], o[2]);
    }
}

/* An output of which some workers hold nothing, then one of which all hold a part. */
static void holes_case(dmt_case *c)
{
    const bool by_rows = dmt_chance(&c->random, 50); /* c's; the other operand travels */
    const int64_t n = 24, narrow = 1 + c->number % 3, small[2] = {by_rows ? narrow : n, by_rows ? n : narrow},
                  whole[2] = {n, n};
    dm_layout rows = dm_layout_rows(c->session), cols = dm_layout_cols(c->session),
              *mine = by_rows ? &rows : &cols;
    dm_array moves, thin, thin_out, wide, out;
    static double got[24 * 24];
    DMT_OK(c,
           dm_array_create(c->session, DM_F64, 2, whole, dmt_chance(&c->random, 50) ? &rows : &cols, &moves));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, small, mine, &thin));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, small, mine, &thin_out));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, whole, mine, &wide));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, whole, mine, &out));
    DMT_OK(c, dm_fill_arange(c->session, moves, 0, 1));
    DMT_OK(c, dm_fill(c->session, thin, 1));
    DMT_OK(c, dm_fill_identity(c->session, wide, 1));
    DMT_OK(c, by_rows ? dm_gemm(c->session, DM_N, DM_N, 1, thin, moves, 0, thin_out)
                      : dm_gemm(c->session, DM_N, DM_N, 1, moves, thin, 0, thin_out));
    DMT_OK(c, by_rows ? dm_gemm(c->session, DM_N, DM_N, 1, wide, moves, 0, out)
                      : dm_gemm(c->session, DM_N, DM_N, 1, moves, wide, 0, out));
    DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, got, 0));
    for (int i = 0; i < n * n; i++) {
        if (got[i] != i) {
            dmt_fail(c, "element %d is %g", i, got[i]);
        }
    }
    dm_array all[] = {moves, thin, thin_out, wide, out};
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(c->session, all[i]));
    }
}

/* More operands than there is room for: the oldest go, and what is kept never exceeds the limit. */
static void limit_case(dmt_case *c)
{
    dm_array a, b[8], out;
    const int64_t n = 64, shape[2] = {n, n};
    dm_layout rows = dm_layout_rows(c->session);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &rows, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &rows, &out));
    DMT_OK(c, dm_fill_identity(c->session, a, 1));
    for (int i = 0; i < 8; i++) {
        DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &rows, &b[i]));
        DMT_OK(c, dm_fill(c->session, b[i], i));
    }
    for (int round = 0; round < 40; round++) {
        static double got[64 * 64];
        int i = (int)dmt_int(&c->random, 0, 7);
        DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, a, b[i], 0, out));
        DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, got, 0));
        if (got[0] != i || got[n * n - 1] != i) {
            dmt_fail(c, "round %d: %g and %g, not %d", round, got[0], got[n * n - 1], i);
        }
        if (replica_bytes(c, 0) > 4 * (n * n * 8 + 1024)) { /* red zones count */
            dmt_fail(c, "%lld bytes are kept", (long long)replica_bytes(c, 0));
        }
    }
    for (int i = 0; i < 8; i++) {
        DMT_OK(c, dm_array_destroy(c->session, b[i]));
    }
    DMT_OK(c, dm_sync(c->session));
    if (replica_bytes(c, 0) != 0) {
        dmt_fail(c, "%lld bytes are kept of destroyed arrays", (long long)replica_bytes(c, 0));
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

/* Of what c = a b was with ones in a and b: k everywhere. */
static void all_are(dmt_case *c, dm_array x, int64_t count, float wanted)
{
    float *got = calloc((size_t)count, sizeof *got);
    DMT_OK(c, dm_array_read(c->session, x, NULL, NULL, got, 0));
    for (int64_t i = 0; i < count; i++) {
        if (got[i] != wanted) {
            dmt_fail(c, "element %lld is %g, not %g", (long long)i, (double)got[i], (double)wanted);
            break;
        }
    }
    free(got);
}

/* c in an explicit layout, on all workers or on some, of fewer rows than there are workers: it is made in a
 * temporary by rows, and who has none of these gets nothing of b. Then b serves again, for a c that needs all
 * of it. */
static void explicit_case(dmt_case *c)
{
    enum { N = 64 };
    int64_t m = dmt_int(&c->random, 1, 9), thin[2] = {m, N}, square[2] = {N, N}, block[2] = {m, 16};
    int map[4], some[2] = {0, c->workers - 1};
    dm_layout rows = dm_layout_rows(c->session), any = dm_layout_explicit(2, block, map, 4);
    for (int i = 0; i < 4; i++) {
        map[i] = (int)dmt_int(&c->random, 0, c->workers - 1);
    }
    if (c->workers > 2 && dmt_chance(&c->random, 50)) {
        any.workers = some;
        any.nworkers = 2;
        for (int i = 0; i < 4; i++) {
            map[i] = some[map[i] % 2];
        }
    }
    dm_array x[5];
    const int64_t *shape[] = {thin, square, thin, square, square};
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape[i], i == 2 ? &any : &rows, &x[i]));
        DMT_OK(c, dm_fill(c->session, x[i], 1));
    }
    for (int round = 0; round < 2; round++) {
        DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, x[0], x[1], 0, x[2]));
        DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, x[3], x[1], 0, x[4]));
        all_are(c, x[2], m * N, N);
        all_are(c, x[4], N * N, N);
    }
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(c->session, x[i]));
    }
}

/* c and the operand that travels are parts of one array, as in a factorization by blocks: neither harms the
 * other. */
static void views_case(dmt_case *c)
{
    enum { N = 32 };
    int64_t shape[2] = {2 * N, 2 * N}, part[2] = {N, N}, lo[4][2] = {{0, 0}, {0, N}, {N, 0}, {N, N}};
    dm_layout layouts[] = {dm_layout_rows(c->session), dm_layout_cols(c->session),
                           dm_layout_cyclic(c->session, 0, 3), dm_layout_cyclic(c->session, 1, 5)};
    dm_array x, view[4], other;
    const dm_layout *use = &layouts[c->number % 4];
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, use, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, part, use, &other));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_fill(c->session, other, 1));
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_view(c->session, x, lo[i], part, &view[i]));
    }
    for (int round = 0; round < 6; round++) {
        bool left = dmt_chance(&c->random, 50);
        dm_array out = view[round % 4], in = view[(round + 1) % 4];
        DMT_OK(c, dm_fill(c->session, in, 1));
        DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, left ? in : other, left ? other : in, 0, out));
        if (dmt_chance(&c->random, 50)) {
            all_are(c, out, N * N, N);
        }
        all_are(c, in, N * N, 1);
    }
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(c->session, view[i]));
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, other));
}

/* Launched, the session is there already: the environment gives it the same limit. */
static const char *some_room(void)
{
    return dmt_launched() ? NULL : "replica_limit=1048576";
}

/* The output is another part of the array whose first part was kept: explain knows that the replica goes. */
static void inside_case(dmt_case *c)
{
    enum { N = 32 };
    const int64_t both[] = {2 * N, N}, one[] = {N, N}, top[] = {0, 0}, bottom[] = {N, 0};
    static double got[N * N];
    dm_session *s = c->session;
    dm_layout cols = dm_layout_cols(s);
    dm_array array, a, b, part, out;
    char *text = NULL;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, both, &cols, &array));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, one, &cols, &b));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, one, &cols, &out));
    DMT_OK(c, dm_array_view(s, array, top, one, &a));
    DMT_OK(c, dm_array_view(s, array, bottom, one, &part));
    DMT_OK(c, dm_fill_arange(s, array, 0, 1));
    DMT_OK(c, dm_fill_identity(s, b, 2));
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 1, a, b, 0, out));
    DMT_OK(c, dm_sync(s));
    if (c->workers > 1 && replica_bytes(c, 0) == 0) {
        dmt_fail(c, "nothing is kept");
    }
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 1, a, b, 0, part));
    DMT_OK(c, dm_explain_end(s, &text));
    int64_t predicted = 0, before = dmt_bytes_sent(c);
    for (const char *at = text; (at = strstr(at, " sent ")); at++) {
        predicted += strtoll(at + strlen(" sent "), NULL, 10);
    }
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 1, a, b, 0, part));
    DMT_OK(c, dm_array_read(s, part, NULL, NULL, got, 0));
    int64_t sent = dmt_bytes_sent(c) - before;
    if (sent < predicted || (c->workers > 1 && predicted == 0)) { /* the read sends some, too */
        dmt_fail(c, "%lld bytes were sent, predicted were %lld\n%s", (long long)sent, (long long)predicted,
                 text);
    }
    for (int i = 0; i < N * N; i++) {
        if (got[i] != 2 * i) {
            dmt_fail(c, "element %d is %g", i, got[i]);
        }
    }
    free(text);
    const dm_array made[] = {a, part, array, b, out};
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

static void test_random(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "replicas", .cases = 300, .fn = random_case, .options = some_room()});
}

static void test_split(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "replicas_split", .cases = 40, .fn = split_case, .options = some_room()});
}

static void test_forced(void **state)
{
    (void)state;
    if (!dmt_launched()) {
        dmt_run(&(dmt_suite){.name = "replicas_ring",
                             .cases = 10,
                             .fn = forced_case,
                             .options = "replica_limit=1048576,gemm_algorithm=ring"});
    }
}

static void test_holes(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "replicas_holes", .cases = 60, .fn = holes_case, .options = some_room()});
}

static void test_explicit(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "replicas_explicit", .cases = 60, .fn = explicit_case, .options = some_room()});
}

static void test_views(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "replicas_views", .cases = 60, .fn = views_case, .options = some_room()});
}

static void test_inside(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "replicas_inside", .cases = 10, .fn = inside_case, .options = some_room()});
}

static void test_limit(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){
        .name = "replicas_limit", .cases = 10, .fn = limit_case, .options = "replica_limit=131072"});
}

/* A product that fails leaves nothing behind that a later one would take for good. */
static void test_failed(void **state)
{
    (void)state;
    if (dmt_launched() || getenv("DMATH_TEST_SUITE")) {
        return;
    }
    for (int step = 1; step < 12; step++) {
        char options[80];
        static double got[32 * 32];
        const int64_t shape[2] = {32, 32};
        dm_array a, b, out;
        snprintf(options, sizeof options, "replica_limit=1048576,fault=compute:%d", step);
        dm_session *s = dmt_session_open(3, options);
        dm_layout rows = dm_layout_rows(s);
        assert_int_equal(dm_array_create(s, DM_F64, 2, shape, &rows, &a), DM_OK);
        assert_int_equal(dm_array_create(s, DM_F64, 2, shape, &rows, &b), DM_OK);
        assert_int_equal(dm_array_create(s, DM_F64, 2, shape, &rows, &out), DM_OK);
        bool failed = false;
        for (int round = 0; round < 4; round++) {
            (void)!dm_fill_identity(s, a, 1);
            (void)!dm_fill(s, b, 7);
            (void)!dm_gemm(s, DM_N, DM_N, 1, a, b, 0, out);
            dm_status status = dm_sync(s);
            failed = failed || status != DM_OK;
            if (status == DM_OK) {
                assert_int_equal(dm_array_read(s, out, NULL, NULL, got, 0), DM_OK);
                assert_true(got[0] == 7 && got[1023] == 7);
            }
        }
        assert_true(failed);
        assert_true(got[0] == 7);
        dmt_session_close(s, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_split),    cmocka_unit_test(test_inside),
        cmocka_unit_test(test_limit),  cmocka_unit_test(test_holes),    cmocka_unit_test(test_failed),
        cmocka_unit_test(test_forced), cmocka_unit_test(test_explicit), cmocka_unit_test(test_views)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
