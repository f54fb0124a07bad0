/* What explain predicts for a call is what the workers' counters show after it. */
#include "support/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct numbers {
    int64_t steps, sent, received, messages_sent, messages_received, workspace, flops;
} numbers;

static bool equal(const numbers *a, const numbers *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static const char *print(const numbers *n, char text[300])
{
    snprintf(text, 300,
             "steps %" PRId64 " sent %" PRId64 " received %" PRId64 " messages_sent %" PRId64
             " messages_received %" PRId64 " workspace %" PRId64 " flops %" PRId64,
             n->steps, n->sent, n->received, n->messages_sent, n->messages_received, n->workspace, n->flops);
    return text;
}

/* One random call of a random op. */
typedef struct call {
    const char *name;
    int op;
    double beta;
    int perm[2], dims[1];
    dmt_operand *o[3];
} call;

static dmt_operand *operand(dmt_case *c, const char *name, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, DMT_SMALL);
    return dmt_operand_make(c, name, h, DMT_NO_STEPS); /* one command for a call */
}

enum { FILL, COPY, PERMUTE, TRANSPOSE, AXPBY, ADD, MULTIPLY, SCALE, TANH, SUM, GEMM, VECTOR, STACK, OPS };
/* Of the ops that explain names: several calls share one. */
static const char *const names[] = {"fill",  "copy",  "copy", "copy", "axpby", "add", "multiply",
                                    "scale", "ewise", "sum",  "gemm", "gemm",  "gemm"};

static call random_call(dmt_case *c)
{
    call k = {.op = (int)(c->number % OPS), .beta = dmt_chance(&c->random, 50) ? 0 : 2, .perm = {1, 0}};
    int64_t shape[2], swapped[2], inner = dmt_extent_random(c, 40);
    dm_dtype one = dmt_float_random(c), two = dmt_chance(&c->random, 70) ? one : dmt_float_random(c);
    bool moves = k.op == PERMUTE || k.op == TRANSPOSE;
    dmt_shape_random(c, 2, 3000, shape);
    swapped[0] = shape[1];
    swapped[1] = shape[0];
    k.name = names[k.op];
    if (k.op == SUM) {
        k.o[0] = operand(c, "x", one, 2, shape);
        k.o[1] = operand(c, "out", two, 1, shape + 1);
    } else if (k.op == GEMM) {
        const int64_t left[] = {shape[0], inner}, right[] = {inner, shape[1]};
        k.o[0] = operand(c, "a", one, 2, left);
        k.o[1] = operand(c, "b", two, 2, right);
        k.o[2] = operand(c, "c", one, 2, shape);
    } else if (k.op == VECTOR) {
        const int64_t left[] = {shape[0], inner};
        k.o[0] = operand(c, "a", one, 2, left);
        k.o[1] = operand(c, "b", two, 1, left + 1);
        k.o[2] = operand(c, "c", one, 1, left);
    } else if (k.op == STACK) {
        const int64_t left[] = {7, shape[0] % 20, inner}, right[] = {7, inner, shape[1] % 20},
                      result[] = {7, left[1], right[2]};
        bool shared = dmt_chance(&c->random, 30);
        k.o[0] = operand(c, "a", one, 3, left);
        k.o[1] = operand(c, "b", two, shared ? 2 : 3, shared ? right + 1 : right);
        k.o[2] = operand(c, "c", one, 3, result);
    } else {
        k.o[0] = operand(c, "first", one, 2, shape);
        k.o[1] = k.op == FILL ? NULL : operand(c, "second", moves ? one : two, 2, moves ? swapped : shape);
        k.o[2] = k.op == ADD || k.op == MULTIPLY ? operand(c, "third", one, 2, shape) : NULL;
    }
    dmt_say(c, "\n    %s, beta %g", k.name, k.beta);
    return k;
}

static dm_status make_call(dmt_case *c, const call *k)
{
    dm_session *s = c->session;
    dm_array a = k->o[0]->array, b = k->o[1] ? k->o[1]->array : DM_NO_ARRAY,
             d = k->o[2] ? k->o[2]->array : DM_NO_ARRAY;
    switch (k->op) {
    case FILL:
        return dm_fill(s, a, 1);
    case COPY:
        return dm_copy(s, a, b);
    case PERMUTE:
        return dm_permute(s, a, k->perm, b);
    case TRANSPOSE:
        return dm_transpose(s, a, b);
    case AXPBY:
        return dm_axpby(s, 1, a, k->beta, b);
    case ADD:
        return dm_add(s, 1, a, k->beta, b, d);
    case MULTIPLY:
        return dm_multiply(s, 1, a, b, d);
    case SCALE:
        return dm_scale(s, 2, a, b);
    case TANH:
        return dm_tanh(s, a, b);
    case SUM:
        return dm_sum(s, a, k->dims, 1, 1, k->beta, b);
    default:
        return dm_gemm(s, DM_N, DM_N, 1, a, b, k->beta, d);
    }
}

/* The line of worker w in the part of the text that begins with "call N:". */
static void predicted(dmt_case *c, const char *text, int number, int worker, const char *name, numbers *out)
{
    char head[40], line[40], op[40] = "", algorithm[40] = "";
    snprintf(head, sizeof head, "call %d:", number);
    const char *at = strstr(text, head);
    if (!at || sscanf(at + strlen(head), " %39s algorithm %39s", op, algorithm) != 2) {
        dmt_fail(c, "explain has no line %s NAME algorithm ALGO:\n%s", head, text);
    }
    if (name && !strstr(op, name)) {
        dmt_fail(c, "call %d is a %s, not a %s:\n%s", number, op, name, text);
    }
    const char *end = strstr(at + 1, "call ");
    snprintf(line, sizeof line, "worker %d:", worker);
    at = strstr(at, line);
    if (!at || (end && at > end) ||
        sscanf(at + strlen(line),
               " steps %" SCNd64 " sent %" SCNd64 " received %" SCNd64 " messages_sent %" SCNd64
               " messages_received %" SCNd64 " workspace %" SCNd64 " flops %" SCNd64,
               &out->steps, &out->sent, &out->received, &out->messages_sent, &out->messages_received,
               &out->workspace, &out->flops) != 7) {
        dmt_fail(c, "explain has no whole line %s for call %d:\n%s", line, number, text);
    }
}

static dm_counters counted(dmt_case *c, int worker)
{
    dm_counters n = {.size = sizeof n};
    DMT_OK(c, dm_counters_get(c->session, worker, &n));
    return n;
}

/* What the worker has sent to each other one, and to the master; the sum is what it counts. */
static void links(dmt_case *c, int worker, int64_t *sent)
{
    int64_t sum = 0;
    DMT_OK(c, dm_links_get(c->session, worker, sent));
    for (int i = 0; i <= c->workers; i++) {
        sum += sent[i];
    }
    if (sum != counted(c, worker).bytes_sent || sent[worker] != 0) {
        dmt_fail(c, "worker %d: %" PRId64 " bytes to all, %" PRId64 " to itself, %" PRId64 " counted", worker,
                 sum, sent[worker], counted(c, worker).bytes_sent);
    }
}

/* The same out of the text for the first call: "sent by worker 0: 64 to worker 1, 8 to the master". */
static void predicted_links(dmt_case *c, const char *text, int worker, int64_t *sent)
{
    char head[40];
    snprintf(head, sizeof head, "  sent by worker %d: ", worker);
    memset(sent, 0, (size_t)(c->workers + 1) * sizeof *sent);
    const char *at = strstr(text, head), *end = at ? strchr(at, '\n') : NULL;
    for (at = at ? at + strlen(head) : NULL; at && at < end;) {
        int64_t bytes = 0;
        int to = c->workers, read = 0;
        if (sscanf(at, "%" SCNd64 " to worker %d%n", &bytes, &to, &read) != 2 &&
            sscanf(at, "%" SCNd64 " to the master%n", &bytes, &read) != 1) {
            dmt_fail(c, "no link in '%s'", at);
        }
        sent[to] += bytes;
        at += read + 2;
    }
}

static numbers between(const dm_counters *from, const dm_counters *to)
{
    return (numbers){to->steps - from->steps,
                     to->bytes_sent - from->bytes_sent,
                     to->bytes_received - from->bytes_received,
                     to->messages_sent - from->messages_sent,
                     to->messages_received - from->messages_received,
                     to->workspace_peak_bytes,
                     to->flops - from->flops};
}

/* The highest workspace so far is all that is counted: predicted is compared with what it should have become.
 */
static void compare(dmt_case *c, int worker, const dm_counters *from, const dm_counters *to, numbers want,
                    const char *text)
{
    char one[300], other[300];
    numbers got = between(from, to);
    if (want.workspace < from->workspace_peak_bytes) {
        want.workspace = from->workspace_peak_bytes;
    }
    if (!equal(&got, &want)) {
        dmt_fail(c, "worker %d\n  counted   %s\n  predicted %s\n%s", worker, print(&got, one),
                 print(&want, other), text);
    }
}

static void predict_case(dmt_case *c)
{
    dm_counters before[DMT_WORKERS_MOST];
    int64_t from[DMT_WORKERS_MOST][DMT_WORKERS_MOST + 1], to[DMT_WORKERS_MOST + 1],
        want_to[DMT_WORKERS_MOST + 1];
    call k = random_call(c);
    char *text = NULL;
    DMT_OK(c, dm_explain_begin(c->session));
    dmt_status_is(c, make_call(c, &k), DM_OK, k.name);
    DMT_OK(c, dm_explain_end(c->session, &text));
    char *kept = dmt_alloc(&c->scratch, (int64_t)strlen(text) + 1);
    memcpy(kept, text, strlen(text));
    free(text);
    for (int i = 0; i < 3 && k.o[i]; i++) {
        dmt_operand_unchanged(c, k.o[i]); /* it was not run */
    }
    for (int w = 0; w < c->workers; w++) {
        before[w] = counted(c, w);
        links(c, w, from[w]);
    }
    dmt_status_is(c, make_call(c, &k), DM_OK, k.name);
    DMT_OK(c, dm_sync(c->session));
    for (int w = 0; w < c->workers; w++) {
        numbers want;
        dm_counters after = counted(c, w);
        predicted(c, kept, 1, w, k.name, &want);
        compare(c, w, &before[w], &after, want, kept);
        links(c, w, to);
        predicted_links(c, kept, w, want_to);
        for (int i = 0; i <= c->workers; i++) {
            if (to[i] - from[w][i] != want_to[i]) {
                dmt_fail(c, "worker %d: %" PRId64 " bytes to %d, not %" PRId64 "\n%s", w, to[i] - from[w][i], i,
                         want_to[i], kept);
            }
        }
    }
}

static int64_t total(dmt_case *c, int64_t which)
{
    int64_t sum = 0;
    for (int w = 0; w < c->workers; w++) {
        dm_counters n = counted(c, w);
        sum += which == 0 ? n.plans_made : which == 1 ? n.plans_reused : n.flops;
    }
    return sum;
}

static bool keeps_operands(dmt_case *c)
{
    dm_memory memory = {.size = sizeof memory};
    DMT_OK(c, dm_memory_report(c->session, 0, &memory));
    return memory.replicas > 0;
}

/* A product's flops are 2mnk over all workers; the second such call needs no new plans. Where operands are
 * kept, a call that finds one is another call than the one that kept it: there are no new plans once both are
 * kept.
 */
static void reuse_case(dmt_case *c)
{
    enum { CALLS = 4 };
    const int64_t left[] = {30, 20}, right[] = {20, 25}, result[] = {30, 25};
    dmt_operand *a = operand(c, "a", DM_F32, 2, left);
    dmt_operand *b = operand(c, "b", DM_F32, 2, right);
    const dm_layout rows = dm_layout_rows(c->session);
    dmt_host *h = dmt_host_make(&c->scratch, DM_F32, 2, result);
    dmt_operand *out = dmt_operand_plain(c, "c", h, &rows, "rows");
    int64_t made[CALLS + 1], reused[CALLS + 1], flops[CALLS + 1];
    for (int i = 0; i <= CALLS; i++) {
        made[i] = total(c, 0);
        reused[i] = total(c, 1);
        flops[i] = total(c, 2);
        if (i < CALLS) {
            DMT_OK(c, dm_gemm(c->session, DM_N, DM_N, 1, a->array, b->array, 0, out->array));
        }
    }
    int known = keeps_operands(c) ? CALLS - 1 : 1; /* from this call on */
    for (int i = 0; i < CALLS; i++) {
        if (flops[i + 1] - flops[i] != 2 * 30 * 20 * 25) {
            dmt_fail(c, "call %d: %" PRId64 " flops", i, flops[i + 1] - flops[i]);
        }
        if (i >= known && (made[i + 1] != made[i] || reused[i + 1] - reused[i] < c->workers)) {
            dmt_fail(c, "call %d made %" PRId64 " plans and used %" PRId64 " again", i, made[i + 1] - made[i],
                     reused[i + 1] - reused[i]);
        }
    }
}

static dm_array ones(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, bool split)
{
    int dim = (int)dmt_int(&c->random, split ? 0 : -1, ndim - 1);
    dm_layout layout = dim < 0 ? dm_layout_replicated(c->session) : dm_layout_split(c->session, dim);
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, dtype, ndim, shape, &layout, &a));
    DMT_OK(c, dm_fill(c->session, a, 1));
    return a;
}

/* What is read goes from its workers to the master. */
static void master_case(dmt_case *c)
{
    const int64_t shape[] = {dmt_int(&c->random, 1, 40), dmt_int(&c->random, 1, 9)};
    dm_array a = ones(c, DM_F32, 2, shape, true);
    int64_t before[DMT_WORKERS_MOST][DMT_WORKERS_MOST + 1], after[DMT_WORKERS_MOST + 1], sent = 0;
    float *host = dmt_alloc(&c->scratch, shape[0] * shape[1] * (int64_t)sizeof *host);
    for (int w = 0; w < c->workers; w++) {
        links(c, w, before[w]);
    }
    DMT_OK(c, dm_read(c->session, a, host));
    for (int w = 0; w < c->workers; w++) {
        links(c, w, after);
        for (int i = 0; i < c->workers; i++) {
            if (after[i] != before[w][i]) {
                dmt_fail(c, "worker %d sends worker %d what is read", w, i);
            }
        }
        sent += after[c->workers] - before[w][c->workers];
    }
    if (sent != shape[0] * shape[1] * (int64_t)sizeof *host) {
        dmt_fail(c, "%" PRId64 " bytes to the master, of %" PRId64 " x %" PRId64, sent, shape[0], shape[1]);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* Products and solves count operations on real numbers, in predictions and in counters: 2mnk and m m n, and
 * four times as many where an operand is complex. The result is split, so nothing is computed twice. */
static void flops_case(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_C64, DM_C128};
    const int64_t m = dmt_int(&c->random, 1, 60), n = dmt_int(&c->random, 1, 60),
                  k = dmt_int(&c->random, 1, 60), count = dmt_int(&c->random, 2, 5);
    const bool solves = dmt_chance(&c->random, 30), stack = !solves && dmt_chance(&c->random, 40);
    const int ndim = stack ? 3 : 2, first = stack ? 0 : 1;
    const int64_t left[] = {count, m, k}, right[] = {count, k, n}, result[] = {count, m, n}, square[] = {m, m};
    dm_session *s = c->session;
    dm_dtype type[3];
    for (int i = 0; i < 3; i++) {
        type[i] = solves && i > 0 ? type[0] : types[dmt_int(&c->random, 0, 3)];
    }
    type[2] = (type[0] >= DM_C64 || type[1] >= DM_C64) && type[2] < DM_C64 ? DM_C128 : type[2];
    dm_array a = ones(c, type[0], ndim, solves ? square : left + first, false),
             b = ones(c, type[1], ndim, right + first, false),
             out = ones(c, type[2], ndim, result + first, true);
    int64_t want = solves ? m * m * n : 2 * m * n * k * (stack ? count : 1), before = total(c, 2), said = 0;
    want *= type[2] >= DM_C64 ? 4 : 1;
    dmt_say(c, "\n    %s, %" PRId64 "x%" PRId64 "x%" PRId64 ", %s %s %s", solves ? "solve" : "product", m, n, k,
            dmt_name(type[0]), dmt_name(type[1]), dmt_name(type[2]));
    char *text = NULL;
    for (int explains = 1; explains >= 0; explains--) {
        DMT_OK(c, explains ? dm_explain_begin(s) : DM_OK);
        DMT_OK(c, solves ? dm_trsm(s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, a, out)
                         : dm_gemm(s, DM_N, DM_N, 1, a, b, 0, out));
        DMT_OK(c, explains ? dm_explain_end(s, &text) : DM_OK);
    }
    for (const char *at = text; (at = strstr(at, " flops ")); at++) {
        said += strtoll(at + strlen(" flops "), NULL, 10);
    }
    free(text);
    if (said != want || total(c, 2) - before != want) {
        dmt_fail(c, "%" PRId64 " flops are explained, %" PRId64 " counted, not %" PRId64, said,
                 total(c, 2) - before, want);
    }
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_destroy(s, b));
    DMT_OK(c, dm_array_destroy(s, out));
}

/* Creating, viewing and destroying take effect while explaining; the calls are numbered as they come. */
static void effects_case(dmt_case *c)
{
    const int64_t shape[] = {9, 8}, lo[] = {1, 1}, extent[] = {4, 4};
    numbers n;
    dm_array a, b, view;
    char *text = NULL;
    dm_layout columns = dm_layout_cols(c->session);
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &columns, &b));
    DMT_OK(c, dm_array_view(c->session, a, lo, extent, &view));
    DMT_OK(c, dm_fill(c->session, view, 3));
    DMT_OK(c, dm_copy(c->session, a, b));
    DMT_OK(c, dm_array_destroy(c->session, b));
    DMT_OK(c, dm_explain_end(c->session, &text));
    char *kept = dmt_alloc(&c->scratch, (int64_t)strlen(text) + 1);
    memcpy(kept, text, strlen(text));
    free(text);
    for (int w = 0; w < c->workers; w++) {
        predicted(c, kept, 1, w, "fill", &n);
        predicted(c, kept, 2, w, "copy", &n);
    }
    DMT_OK(c, dm_fill(c->session, a, 1));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_fill(c->session, b, 1));
    dmt_host *got = dmt_read(c, view, DM_F64, 2, extent);
    if (got->v[0] != 1) {
        dmt_fail(c, "an element of the view is %Lg", got->v[0]);
    }
    DMT_OK(c, dm_array_destroy(c->session, view));
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* To all workers, narrower: a worker copies its rows, converts them once, and sends that to each of the others.
 */
static void narrower_case(dmt_case *c)
{
    const int64_t shape[] = {4 * c->workers, 6};
    const int others = c->workers - 1;
    numbers n;
    dm_array a, b;
    char *text = NULL;
    dm_layout rows = dm_layout_rows(c->session), all = dm_layout_replicated(c->session);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &rows, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &all, &b));
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_copy(c->session, a, b));
    DMT_OK(c, dm_explain_end(c->session, &text));
    for (int w = 0; w < c->workers; w++) {
        predicted(c, text, 1, w, "copy", &n);
        if (n.steps != 1 + 2 * others + (others > 0) || n.workspace != 128 * (others > 0)) {
            dmt_fail(c, "worker %d takes %" PRId64 " steps, %" PRId64 " bytes", w, n.steps, n.workspace);
        }
    }
    free(text);
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
}

static void test_predictions(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain", .cases = 2400, .fn = predict_case});
}

static void test_reuse(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain_reuse", .cases = 120, .fn = reuse_case});
}

static void test_flops(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain_flops", .cases = 300, .fn = flops_case});
}

static void test_master(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain_master", .cases = 60, .fn = master_case});
}

static void test_effects(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain_effects", .cases = 30, .fn = effects_case});
}

static void test_narrower(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "explain_narrower", .cases = 1, .fn = narrower_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions), cmocka_unit_test(test_reuse),   cmocka_unit_test(test_flops),
        cmocka_unit_test(test_master),      cmocka_unit_test(test_effects), cmocka_unit_test(test_narrower),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
