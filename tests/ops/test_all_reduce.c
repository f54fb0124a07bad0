/* Sums of what all workers have, left at all of them: of rows, one a worker, and of products over a spread k.
 * Values, copies that agree to the last bit, and the bytes that explain predicts, which are to be the least
 * there can be. */
#include "support/product.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gradients {
    dmt_host *x, *out;
    double scale, beta;
    bool exact;
} gradients;

/* out = scale * (sum of x over dim 0) + beta * out, several times over. Of small whole numbers all types have
 * exact sums. */
static void expect(const gradients *g, int times, dmt_host *want, dmt_host *bound)
{
    int64_t n = g->out->count, rows = g->x->shape[0];
    for (int64_t i = 0; i < n; i++) {
        long double sum = 0, size = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += g->x->v[r * n + i];
            size += fabsl(g->x->v[r * n + i]);
        }
        want->v[i] = g->beta == 0 ? 0 : g->out->v[i];
        for (int t = 0; t < times; t++) {
            want->v[i] = g->scale * sum + (g->beta == 0 ? 0 : g->beta * want->v[i]);
        }
        bound->v[i] = g->exact ? 0 : 8 * dmt_eps(DM_F64) * (fabsl(g->scale) * size + fabsl(want->v[i]));
    }
}

static void replicated_layout(dmt_case *c, const dmt_host *out, dmt_layout *layout)
{
    dmt_layout_kind(layout, &c->scratch, c->session, out->ndim, out->shape,
                    dmt_chance(&c->random, 60) ? DMT_REPLICATED : DMT_TWO_REPLICAS);
}

static void gradients_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS, DMT_ROWS, DMT_CYCLIC_ONE, DMT_REVERSED, DMT_GRID_BLOCKS, DMT_MAP};
    dmt_layout from, to;
    gradients g = {.exact = dmt_chance(&c->random, 50), .scale = 1, .beta = dmt_chance(&c->random, 50) ? 0 : 1};
    dm_dtype type = dmt_dtype_random(c), out_type = type;
    if (dmt_chance(&c->random, 30)) {
        out_type = dmt_is_float(type) ? dmt_float_random(c) : DM_I64;
    }
    bool three = dmt_chance(&c->random, 30), keeps = dmt_chance(&c->random, 20);
    g.exact = g.exact || !dmt_is_float(type);
    /* mostly a row a worker; short rows give some workers no slice */
    int64_t rows = dmt_chance(&c->random, 75) ? c->workers : dmt_int(&c->random, 0, 2 * c->workers);
    int64_t n = dmt_chance(&c->random, 30) ? dmt_int(&c->random, 0, c->workers) : dmt_int(&c->random, 1, 3000);
    int64_t shape[3] = {rows, three ? dmt_int(&c->random, 1, 5) : n, n}, kept[3] = {1, shape[1], n};
    g.x = dmt_host_make(&c->scratch, type, three ? 3 : 2, shape);
    g.out = dmt_host_make(&c->scratch, out_type, (three ? 2 : 1) + keeps, keeps ? kept : kept + 1);
    dmt_host_random(g.x, &c->random, g.exact ? DMT_SMALL : DMT_SMOOTH);
    dmt_host_random(g.out, &c->random, DMT_SMALL);
    dmt_layout_kind(&from, &c->scratch, c->session, g.x->ndim, shape, kinds[dmt_int(&c->random, 0, 5)]);
    replicated_layout(c, g.out, &to);
    dmt_operand *x = dmt_operand_plain(c, "x", g.x, from.use, from.text);
    dmt_operand *out = dmt_operand_plain(c, "out", g.out, to.use, to.text);
    /* one after another, nothing waited for; three sums would leave a type of a byte */
    int times = g.exact && out_type == type && dmt_bytes(type) > 1 ? 3 : 1;
    dmt_say(c, "\n    over dim 0, beta %g, %d times", g.beta, times);
    dmt_host *want = dmt_host_copy(&c->scratch, g.out), *bound = dmt_host_copy(&c->scratch, g.out);
    expect(&g, times, want, bound);
    for (int t = 0; t < times; t++) {
        DMT_OK(c, dm_sum(c->session, x->array, (int[]){0}, 1, g.scale, g.beta, out->array));
    }
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, x);
}

/* c = alpha * op(a) op(b) + beta * c where k is spread over the workers and c is everywhere. */
static void weights_case(dmt_case *c)
{
    dmt_product p = {.trans_a = 1, .trans_b = dmt_chance(&c->random, 30), .alpha = 1};
    bool exact = dmt_chance(&c->random, 50);
    dm_dtype type = dmt_float_random(c);
    p.m = dmt_int(&c->random, 1, dmt_chance(&c->random, 30) ? 2 : 60);
    p.n = dmt_int(&c->random, 1, dmt_chance(&c->random, 30) ? 2 : 60);
    p.k = dmt_int(&c->random, 1, dmt_chance(&c->random, 20) ? c->workers : 100);
    p.beta = dmt_chance(&c->random, 50) ? 0 : 1;
    dmt_product_fill(c, &p, type, type, dmt_chance(&c->random, 70) ? type : dmt_float_random(c),
                     exact ? DMT_SMALL : DMT_SMOOTH);
    dmt_layout from[2], to;
    dmt_layout_kind(&from[0], &c->scratch, c->session, 2, p.a->shape, DMT_ROWS);
    dmt_layout_kind(&from[1], &c->scratch, c->session, 2, p.b->shape, p.trans_b ? DMT_LAST : DMT_ROWS);
    replicated_layout(c, p.c, &to);
    dmt_operand *a = dmt_operand_plain(c, "a", p.a, from[0].use, from[0].text);
    dmt_operand *b = dmt_operand_plain(c, "b", p.b, from[1].use, from[1].text);
    dmt_operand *out = dmt_operand_plain(c, "c", p.c, to.use, to.text);
    dmt_product_say(c, &p);
    dmt_status_is(c, dmt_product_call(c, &p, a->array, b->array, out->array), DM_OK, "dm_gemm");
    dmt_product_check(c, &p, exact, out);
}

/* --- bytes --- */

enum { UNIT = 840 }; /* 1 to 8 workers divide it */

static dm_array array(dmt_case *c, dm_dtype type, int ndim, const int64_t *shape, dm_layout layout)
{
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, type, ndim, shape, &layout, &a));
    return a;
}

/* What explain said of the call: every worker sends and receives so many bytes, by that algorithm (NULL: any).
 */
static void moves(dmt_case *c, const char *what, const char *algorithm, int64_t bytes)
{
    char *text = NULL, word[40] = "";
    DMT_OK(c, dm_explain_end(c->session, &text));
    const char *at = strstr(text, "algorithm ");
    bool right = at && sscanf(at, "algorithm %39s", word) == 1 &&
                 (!algorithm || c->workers == 1 || strcmp(word, algorithm) == 0);
    for (int w = 0; w < c->workers && right; w++) {
        int64_t sent = -1, received = -1;
        char head[40];
        snprintf(head, sizeof head, "worker %d:", w);
        at = strstr(text, head);
        right =
            at &&
            sscanf(at + strlen(head), " steps %*d sent %" SCNd64 " received %" SCNd64, &sent, &received) == 2 &&
            sent == bytes && received == bytes;
    }
    if (!right) {
        dmt_fail(c, "%s: not %" PRId64 " bytes by %s:\n%s", what, bytes, algorithm ? algorithm : "any way",
                 text);
    }
    free(text);
}

/* Of large results the better form is chosen. */
static int64_t least(const char *forced, int64_t direct, int64_t scatter)
{
    return forced[0] == 'd' || (forced[0] == 'a' && direct < scatter) ? direct : scatter;
}

/* Elements are pushed as they are, sums of several rows as wide accumulators. */
static void sum_bytes(dmt_case *c, dm_dtype type, dm_dtype out_type, int64_t rows_each, int64_t n)
{
    const char *forced = c->user;
    int64_t p = c->workers, wire = rows_each == 1 ? dmt_bytes(type) : type == DM_F64 ? 16 : 8;
    dm_array x = array(c, type, 2, (int64_t[]){p * rows_each, n}, dm_layout_rows(c->session));
    dm_array out = array(c, out_type, 1, &n, dm_layout_replicated(c->session));
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_sum(c->session, x, (int[]){0}, 1, 1, 1, out));
    moves(c, "sum", forced[0] == 'a' ? NULL : forced,
          least(forced, (p - 1) * n * wire, (p - 1) * (n / p) * (wire + dmt_bytes(out_type))));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

static void gemm_bytes(dmt_case *c, dm_dtype type, int64_t m, int64_t n)
{
    int64_t p = c->workers, k = 4 * (m + n) * p; /* so that moving operands costs more */
    dm_array a = array(c, type, 2, (int64_t[]){k, m}, dm_layout_rows(c->session));
    dm_array b = array(c, type, 2, (int64_t[]){k, n}, dm_layout_rows(c->session));
    dm_array out = array(c, type, 2, (int64_t[]){m, n}, dm_layout_replicated(c->session));
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_gemm(c->session, DM_T, DM_N, 1, a, b, 1, out));
    moves(c, "gemm", "contract",
          least(c->user, (p - 1) * m * n * 4, (p - 1) * (m * n / p) * (4 + dmt_bytes(type))));
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

/* A copy to all workers is every part pushed once to every other. */
static void copy_bytes(dmt_case *c, dm_layout from)
{
    int64_t p = c->workers;
    const int64_t shape[] = {UNIT, UNIT};
    dm_array x = array(c, DM_F32, 2, shape, from),
             all = array(c, DM_F32, 2, shape, dm_layout_replicated(c->session));
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_copy(c->session, x, all));
    moves(c, "copy", NULL, (p - 1) * (UNIT * UNIT / p) * 4);
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, all));
}

static void bytes_case(dmt_case *c)
{
    sum_bytes(c, DM_F32, DM_F32, 1, UNIT * 512);
    sum_bytes(c, DM_BF16, DM_BF16, 1, UNIT * 512);
    sum_bytes(c, DM_BF16, DM_F32, 1, UNIT * 512);
    sum_bytes(c, DM_F64, DM_F64, 1, UNIT * 512);
    sum_bytes(c, DM_I32, DM_I32, 1, UNIT * 512);
    sum_bytes(c, DM_F32, DM_F32, 2, UNIT * 512);
    sum_bytes(c, DM_F64, DM_F64, 3, UNIT * 512);
    gemm_bytes(c, DM_F32, UNIT, 640);
    gemm_bytes(c, DM_BF16, UNIT, 640);
    copy_bytes(c, dm_layout_rows(c->session));
    copy_bytes(c, dm_layout_cols(c->session));
    copy_bytes(c, dm_layout_cyclic(c->session, 0, 1));
}

/* Of a small result a second hop costs more than it saves. */
static void small_bytes_case(dmt_case *c)
{
    sum_bytes(c, DM_F32, DM_F32, 1, UNIT);
    gemm_bytes(c, DM_F32, UNIT / 40, 10);
}

/* --- */

static void run_forced(const char *name, int64_t cases, void (*fn)(dmt_case *))
{
    static const struct {
        const char *way, *options;
    } ways[] = {{"auto", NULL},
                {"direct", "reduce_algorithm=direct"},
                {"scatter", "reduce_algorithm=scatter"},
                {"pieces", "reduce_algorithm=scatter,reduce_chunk=128"},
                {"messages", "reduce_algorithm=scatter,reduce_chunk=128,transport=mpi"},
                {"hosts", "reduce_algorithm=scatter,reduce_chunk=128,pretend_hosts=2"}};
    for (int i = 0; i < (int)(sizeof ways / sizeof ways[0]); i++) {
        char suite[64];
        snprintf(suite, sizeof suite, "%s_%s", name, ways[i].way);
        dmt_run(&(dmt_suite){.name = suite, .cases = cases, .fn = fn, .options = ways[i].options});
    }
}

static void test_gradients(void **state)
{
    (void)state;
    run_forced("gradients", 300, gradients_case);
}

static void test_weights(void **state)
{
    (void)state;
    run_forced("weights", 200, weights_case);
}

/* The worker counts that the other tests leave out. */
static void test_other_counts(void **state)
{
    (void)state;
    for (int w = 4; w <= 7; w++) {
        static const char options[] = "reduce_algorithm=scatter,reduce_chunk=128";
        dmt_run(&(dmt_suite){
            .name = "gradients_counts", .cases = 100, .fn = gradients_case, .options = options, .workers = w});
        dmt_run(&(dmt_suite){
            .name = "weights_counts", .cases = 50, .fn = weights_case, .options = options, .workers = w});
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const char *const forced[] = {"auto", "direct", "scatter"};
    for (int i = 0; i < 3; i++) {
        for (int w = 1; w <= 8; w++) {
            char options[64], user[16];
            snprintf(options, sizeof options, "reduce_algorithm=%s", forced[i]);
            snprintf(user, sizeof user, "%s", forced[i]);
            dmt_suite suite = {.name = "all_reduce_bytes",
                               .cases = 1,
                               .fn = bytes_case,
                               .options = options,
                               .workers = w,
                               .each = true};
            suite.user = user;
            if (i > 0 || !getenv("DMATH_DEVICE")) { /* on GPUs these would be small */
                dmt_run(&suite);
            }
            if (i == 0) {
                char direct[] = "direct";
                suite.name = "all_reduce_bytes_small";
                suite.fn = small_bytes_case;
                suite.options = "reduce_algorithm=auto";
                suite.user = direct;
                dmt_run(&suite);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_other_counts),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
