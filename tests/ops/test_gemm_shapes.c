/* c = alpha * op(a) * op(b) + beta * c where a or b is a vector, or operands have leading dims. */
#include "support/cases.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct stack {
    int trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    dmt_host *a, *b, *c;
} stack;

static dmt_host *random_host(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, int kind)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, kind);
    return h;
}

/* Leading dims as in batch (of `rest` dims), fewer of them, some 1; then the matrix or vector. */
static dmt_host *operand_host(dmt_case *c, dm_dtype dtype, int ndim, int rest, const int64_t *batch,
                              int64_t rows, int64_t cols, int64_t alone, int kind)
{
    int64_t shape[DM_MAX_DIMS];
    int own = ndim - 2;
    for (int d = 0; d < own; d++) {
        shape[d] = dmt_chance(&c->random, 20) ? 1 : batch[d + rest - own];
    }
    if (ndim == 1) {
        shape[0] = alone;
    } else {
        shape[ndim - 2] = rows;
        shape[ndim - 1] = cols;
    }
    return random_host(c, dtype, ndim, shape, kind);
}

static void fill(dmt_case *c, stack *s, const dm_dtype dtype[3], int na, int nb, int rest, const int64_t *batch,
                 int kind)
{
    int64_t shape[DM_MAX_DIMS];
    int nc = rest;
    s->a = operand_host(c, dtype[0], na, rest, batch, s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, s->k,
                        kind);
    s->b = operand_host(c, dtype[1], nb, rest, batch, s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, s->k,
                        kind);
    for (int d = 0; d < rest; d++) { /* 1 where both are */
        int da = d - (rest - (na - 2)), db = d - (rest - (nb - 2));
        bool a_repeats = da < 0 || s->a->shape[da] == 1, b_repeats = db < 0 || s->b->shape[db] == 1;
        shape[d] = a_repeats && b_repeats ? 1 : batch[d];
    }
    if (na > 1) {
        shape[nc++] = s->m;
    }
    if (nb > 1) {
        shape[nc++] = s->n;
    }
    s->c = random_host(c, dtype[2], nc, shape, kind);
    if (s->beta == 0) {
        dmt_host_set(s->c, NAN); /* must not be read */
    }
}

/* Number of the first element of x's matrix (or vector) for an index of the leading dims. */
static int64_t matrix_at(const dmt_host *x, int rest, const int64_t *index)
{
    int own = x->ndim > 2 ? x->ndim - 2 : 0;
    int64_t at = 0, size = x->ndim > 1 ? x->shape[x->ndim - 1] * x->shape[x->ndim - 2] : x->count;
    for (int d = 0; d < own; d++) {
        at = at * x->shape[d] + (x->shape[d] == 1 ? 0 : index[rest - own + d]);
    }
    return at * size;
}

static void expect(const stack *s, bool exact, dmt_host *want, dmt_host *bound)
{
    int rest = s->c->ndim - (s->a->ndim > 1) - (s->b->ndim > 1);
    int64_t m = s->a->ndim > 1 ? s->m : 1, n = s->b->ndim > 1 ? s->n : 1, index[DM_MAX_DIMS] = {0};
    bool ta = s->trans_a && s->a->ndim > 1, tb = s->trans_b && s->b->ndim > 1;
    bool wide = s->a->dtype == DM_F64 || s->b->dtype == DM_F64 || s->c->dtype == DM_F64;
    long double eps = dmt_eps(wide ? DM_F64 : DM_F32), tiny = dmt_tiny(wide ? DM_F64 : DM_F32);
    int64_t at = 0;
    do {
        const long double *a = s->a->v + matrix_at(s->a, rest, index),
                          *b = s->b->v + matrix_at(s->b, rest, index);
        for (int64_t i = 0; i < m * n && at < s->c->count; i++, at++) {
            int64_t row = i / n, col = i % n;
            long double sum = 0, size = 0;
            for (int64_t p = 0; p < s->k && s->alpha != 0; p++) {
                long double term = a[ta ? p * m + row : row * s->k + p] * b[tb ? col * s->k + p : p * n + col];
                sum += term;
                size += fabsl(term);
            }
            long double old = s->beta == 0 ? 0 : (long double)s->beta * s->c->v[at];
            want->v[at] = (long double)s->alpha * sum + old;
            bound->v[at] = exact ? 0
                                 : eps * ((long double)(s->k + 4) * fabsl(s->alpha) * size + 4 * fabsl(old)) +
                                       (long double)(s->k + 4) * tiny;
        }
    } while (dmt_next(rest, s->c->shape, index));
}

static dm_status call(dmt_case *c, const stack *s, dm_array a, dm_array b, dm_array out)
{
    return dm_gemm(c->session, s->trans_a ? DM_T : DM_N, s->trans_b ? DM_T : DM_N, s->alpha, a, b, s->beta,
                   out);
}

static void say(dmt_case *c, const stack *s)
{
    dmt_say(c, "\n    %c%c m %d n %d k %d alpha %.17g beta %.17g", s->trans_a ? 'T' : 'N',
            s->trans_b ? 'T' : 'N', (int)s->m, (int)s->n, (int)s->k, s->alpha, s->beta);
}

static void check(dmt_case *c, const stack *s, bool exact, dmt_operand *out)
{
    dmt_host *want = dmt_host_make(&c->scratch, s->c->dtype, s->c->ndim, s->c->shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    expect(s, exact, want, bound);
    dmt_operand_check(c, out, want, bound);
}

static void run_case(dmt_case *c, int na, int nb, int rest, const int64_t *batch, int64_t most)
{
    bool exact = dmt_chance(&c->random, 50), mixed = dmt_chance(&c->random, 40);
    dm_dtype one = dmt_float_random(c), dtype[3];
    for (int i = 0; i < 3; i++) {
        dtype[i] = mixed ? dmt_float_random(c) : one;
    }
    stack s = {.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50)};
    s.m = dmt_extent_random(c, most);
    s.n = dmt_extent_random(c, most);
    s.k = dmt_extent_random(c, most);
    s.alpha = dmt_factor_random(c, exact);
    s.beta = dmt_factor_random(c, exact);
    fill(c, &s, dtype, na, nb, rest, batch, exact ? DMT_SMALL : DMT_SMOOTH);
    dmt_operand *a = dmt_operand_make(c, "a", s.a, 0), *b = dmt_operand_make(c, "b", s.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", s.c, s.beta == 0 ? DMT_UNSET : 0);
    say(c, &s);
    dm_status status = call(c, &s, a->array, b->array, out->array);
    int64_t *skipped = c->user;
    if (skipped && status == DM_ERR_UNSUPPORTED) {
        ++*skipped;
        dmt_operand_unchanged(c, out);
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_gemm");
    check(c, &s, exact, out);
    if (dmt_chance(&c->random, 25)) {
        dmt_operand_unchanged(c, a);
        dmt_operand_unchanged(c, b);
    }
}

static void vector_case(dmt_case *c)
{
    int pick = (int)(c->number % 3);
    run_case(c, pick == 0 ? 2 : 1, pick == 1 ? 2 : 1, 0, NULL, 300);
}

static void stack_case(dmt_case *c)
{
    int64_t batch[4];
    int rest = (int)dmt_int(&c->random, 1, dmt_chance(&c->random, 80) ? 2 : 4);
    dmt_shape_random(c, rest, 40, batch);
    int na = 2 + rest, nb = (int)dmt_int(&c->random, 1, 2 + rest);
    if (dmt_chance(&c->random, 50)) {
        na = nb;
        nb = 2 + rest;
    }
    run_case(c, na, nb, rest, batch, 40);
}

/* Layouts in the deterministic list's order; sizes with which pieces of the stack travel one after another. */
static void layouts_case(dmt_case *c)
{
    static const int kinds[] = {DMT_DEFAULT,     DMT_ROWS,        DMT_LAST,       DMT_CYCLIC_ONE,
                                DMT_GRID_CYCLIC, DMT_GRID_BLOCKS, DMT_REPLICATED, DMT_TWO_REPLICAS,
                                DMT_SINGLE,      DMT_MAP,         DMT_SUBSET};
    const char *names[] = {"a", "b", "c"};
    int64_t pick = c->number * 7 % 1331, batch[2] = {13, 3};
    stack s = {.trans_a = (int)(c->number % 2), .trans_b = (int)(c->number / 2 % 2), .m = 6, .n = 5, .k = 9};
    s.alpha = 2;
    s.beta = c->number % 3 == 0 ? 0 : -1;
    int rest = 1 + (int)(c->number / 3 % 2), na = c->number % 5 ? 2 + rest : 2;
    int nb = na == 2 || c->number % 4 ? 2 + rest : 2;
    dm_dtype dtype[3] = {DM_F32, c->number % 7 ? DM_F32 : DM_F16, c->number % 6 ? DM_F32 : DM_BF16};
    fill(c, &s, dtype, na, nb, rest, batch, DMT_SMALL);
    dmt_host *values[] = {s.a, s.b, s.c};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, values[i]->ndim, values[i]->shape, kinds[pick % 11]);
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
        pick /= 11;
    }
    say(c, &s);
    dmt_status_is(c, call(c, &s, o[0]->array, o[1]->array, o[2]->array), DM_OK, "dm_gemm");
    check(c, &s, true, o[2]);
}

/* A large matrix and a short operand or result, in layouts of the deterministic list: where the product is
 * computed depends on which of the three would have to move. */
static void thin_case(dmt_case *c)
{
    const char *names[] = {"a", "b", "c"};
    int64_t pick = c->number * 7 % ((int64_t)DMT_KINDS * DMT_KINDS * DMT_KINDS), number = c->number;
    int64_t most = number % 8 == 5 ? 400 : 160; /* layouts of single elements make large ones slow */
    int64_t large[2] = {dmt_int(&c->random, 120, most), dmt_int(&c->random, 120, most)};
    int64_t few = number % 4 ? 1 : dmt_int(&c->random, 2, 4);
    bool left = number % 2, vector = number % 8 > 3 && few == 1; /* the large matrix is a */
    stack s = {.trans_a = (int)(number / 2 % 2), .trans_b = (int)(number / 4 % 2), .alpha = 2, .k = large[1]};
    s.m = left ? large[0] : few;
    s.n = left ? few : large[0];
    s.beta = number % 3 == 0 ? 0 : -1;
    dm_dtype type = number % 5 ? DM_F64 : DM_F32;
    dm_dtype dtype[3] = {type, number % 7 ? type : DM_BF16, number % 6 ? type : DM_F32};
    fill(c, &s, dtype, vector && !left ? 1 : 2, vector && left ? 1 : 2, 0, NULL, DMT_SMALL);
    dmt_host *values[] = {s.a, s.b, s.c};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, values[i]->ndim, values[i]->shape,
                        (int)(pick % DMT_KINDS));
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
        pick /= DMT_KINDS;
    }
    say(c, &s);
    dmt_status_is(c, call(c, &s, o[0]->array, o[1]->array, o[2]->array), DM_OK, "dm_gemm");
    check(c, &s, true, o[2]);
}

/* A matrix by rows times a vector, in the layouts of the default: the matrix stays where it lies. */
static void stays_case(dmt_case *c)
{
    static const int64_t shape[][2] = {{400, 400}, {5000, 100}, {100, 5000}, {1, 40000}, {40000, 1}};
    const int64_t *side = shape[c->number / 2];
    bool transposed = c->number % 2;
    int64_t m = side[transposed], k = side[!transposed], p = c->workers;
    dm_array a, x, y;
    DMT_OK(c, dm_matrix(c->session, DM_F64, side[0], side[1], &a));
    DMT_OK(c, dm_vector(c->session, DM_F64, k, &x));
    DMT_OK(c, dm_vector(c->session, DM_F64, m, &y));
    DMT_OK(c, dm_fill(c->session, a, 2));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_fill(c->session, y, 1));
    int64_t before = dmt_bytes_sent(c);
    DMT_OK(c, dm_gemm(c->session, transposed ? DM_T : DM_N, DM_N, 1, a, x, 1, y));
    int64_t bytes = dmt_bytes_sent(c) - before, most = (p - 1) * (m + k) * 8;
    if (bytes > most) {
        dmt_fail(c, "%" PRId64 "x%" PRId64 "%s times a vector: %" PRId64 " bytes were sent, more than %" PRId64,
                 side[0], side[1], transposed ? ", transposed," : "", bytes, most);
    }
    double first;
    DMT_OK(c, dm_item(c->session, y, (int64_t[]){0}, &first));
    if (first != 2 * (double)k + 1) {
        dmt_fail(c, "%g, not %g", first, 2 * (double)k + 1);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}

/* A result that would be made elsewhere is not, where there is no room for it twice. */
static void room_case(dmt_case *c)
{
    const int64_t shape[3][2] = {{2000, 1000}, {1000, 100}, {2000, 100}};
    const dm_layout layout[3] = {dm_layout_rows(c->session), dm_layout_replicated(c->session), dm_layout_single(0)};
    dm_array x[3];
    dm_counters n = {.size = sizeof n};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape[i], &layout[i], &x[i]));
        DMT_OK(c, dm_fill(c->session, x[i], 1));
    }
    DMT_OK(c, dm_matmul(c->session, x[0], x[1], x[2]));
    DMT_OK(c, dm_counters_get(c->session, 0, &n));
    if (n.workspace_peak_bytes > 100000) {
        dmt_fail(c, "workspace %" PRId64 ", more than 100000", n.workspace_peak_bytes);
    }
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_destroy(c->session, x[i]));
    }
}

/* Shapes that do not fit, and what the error says of them. */
static void refused_case(dmt_case *c)
{
    static const struct {
        int ndim[3];
        int64_t shape[3][8];
        const char *text;
    } bad[] = {
        {{1, 1, 1}, {{3}, {3}, {3}}, "c is 3, but the product of a, 3, and b, 3, has 0 dims"},
        {{2, 2, 3}, {{2, 3}, {3, 4}, {5, 2, 4}}, "has 2 dims"},
        {{3, 2, 3}, {{1, 2, 3}, {3, 4}, {5, 2, 4}}, "a is 1x2x3, b 3x4, c 5x2x4"},
        {{1, 1, 0}, {{3}, {4}}, "a is 3, b 4, c scalar"},
        {{2, 1, 1}, {{2, 3}, {2}, {2}}, "a is 2x3, b 2, c 2"},
        {{2, 1, 1}, {{2, 3}, {3}, {3}}, "a is 2x3, b 3, c 3"},
        {{2, 1, 2}, {{2, 3}, {3}, {2, 2}}, "c is 2x2, but the product of a, 2x3, and b, 3, has 1 dims"},
        {{1, 2, 1}, {{3}, {3, 4}, {3}}, "a is 3, b 3x4, c 3"},
        {{0, 2, 1}, {{0}, {3, 4}, {3}}, "a has 0 dims"},
        {{2, 2, 1}, {{2, 3}, {3, 4}, {4}}, "c is 4, but the product of a, 2x3, and b, 3x4, has 2 dims"},
        {{3, 3, 3}, {{2, 2, 3}, {5, 3, 4}, {2, 2, 4}}, "a is 2x2x3, b 5x3x4, c 2x2x4"},
        {{3, 3, 2}, {{2, 2, 3}, {2, 3, 4}, {2, 4}}, "has 3 dims"},
        {{3, 2, 3}, {{2, 2, 3}, {4, 4}, {2, 2, 4}}, "a is 2x2x3, b 4x4, c 2x2x4"},
        {{1, 2, 8}, {{3}, {3, 4}, {1, 1, 1, 1, 1, 1, 1, 4}}, "has 1 dims"},
    };
    int at = (int)(c->number % (int64_t)(sizeof bad / sizeof *bad));
    const char *names[] = {"a", "b", "c"};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dmt_host *h = random_host(c, DM_F64, bad[at].ndim[i], bad[at].shape[i], DMT_SMALL);
        o[i] = dmt_operand_make(c, names[i], h, 0);
    }
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_gemm(c->session, DM_N, DM_N, 1, o[0]->array, o[1]->array, 0, o[2]->array));
    if (!strstr(dm_error_message(), bad[at].text)) {
        dmt_fail(c, "the error says \"%s\", not \"%s\"", dm_error_message(), bad[at].text);
    }
    dmt_operand_unchanged(c, o[2]);
}

static void test_vectors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_vectors", .cases = 600, .fn = vector_case});
}

static void test_stacks(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_stacks", .cases = 600, .fn = stack_case});
}

/* Room for hardly a matrix: many pieces. */
static void test_small_pieces(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){
        .name = "gemm_small_pieces", .cases = 300, .fn = stack_case, .options = "gemm_workspace=512"});
}

static void test_layouts(void **state)
{
    (void)state;
    for (int workers = 3; workers <= 4; workers++) {
        dmt_run(&(dmt_suite){.name = "gemm_stack_layouts",
                             .cases = 666,
                             .fn = layouts_case,
                             .workers = workers,
                             .each = true,
                             .options = workers == 3 ? "gemm_workspace=2K" : NULL});
    }
}

/* Forced algorithms serve vectors; stacks they refuse, unless nothing moves. */
static void test_forced(void **state)
{
    (void)state;
    int64_t skipped = 0;
    dmt_run(&(dmt_suite){.name = "gemm_forced_vectors",
                         .cases = 150,
                         .fn = vector_case,
                         .options = "gemm_algorithm=contract",
                         .user = &skipped});
    dmt_run(&(dmt_suite){.name = "gemm_forced_stacks",
                         .cases = 100,
                         .fn = stack_case,
                         .options = "gemm_algorithm=cyclic",
                         .user = &skipped});
}

static void test_thin(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 8; workers += 1 + (workers > 2) * 2) { /* 2, 3, 6 */
        dmt_run(
            &(dmt_suite){.name = "gemm_thin", .cases = 400, .fn = thin_case, .workers = workers, .each = true});
    }
    dmt_run(&(dmt_suite){.name = "gemm_thin_pieces",
                         .cases = 200,
                         .fn = thin_case,
                         .workers = 4,
                         .options = "gemm_workspace=2K"});
    dmt_run(&(dmt_suite){
        .name = "gemm_room", .cases = 1, .fn = room_case, .workers = 2, .options = "gemm_workspace=100000"});
    dmt_run(&(dmt_suite){.name = "gemm_matrix_stays", .cases = 10, .fn = stays_case, .each = true});
}

static void test_refused(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_shapes_refused", .cases = 60, .fn = refused_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors), cmocka_unit_test(test_stacks), cmocka_unit_test(test_small_pieces),
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_forced), cmocka_unit_test(test_thin),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
