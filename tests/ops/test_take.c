/* out = elements of x that indices name along a dim, against loops */
#include "index_cases.h"

#include <stdlib.h>
#include <string.h>

static void take_case(dmt_case *c)
{
    index_case k;
    int64_t index[DM_MAX_DIMS] = {0};
    index_case_random(c, &k, dmt_dtype_random(c));
    dmt_host *want = dmt_host_make(&c->scratch, k.x->dtype, k.ndim, k.positions);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t at = index_meant(index_at(k.indices, index, k.dim, k.along), k.mode, k.shape[k.dim]);
        want->v[i] = k.x->v[replaced(k.x, index, k.dim, at)];
        dmt_next(k.ndim, k.positions, index);
    }
    dmt_operand *x = dmt_operand_make(c, "x", k.x, 0);
    dmt_operand *indices = dmt_operand_make(c, "indices", k.indices, 0);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    int dim = dim_given(c, &k);
    if (!out->unset) { /* other contents */
        DMT_OK(c, dm_fill(c->session, out->array, 1));
    }
    if (k.along) {
        DMT_OK(c, dm_take_along_dim(c->session, x->array, indices->array, dim, k.mode, out->array));
    } else {
        DMT_OK(c, dm_take(c->session, x->array, indices->array, dim, k.mode, out->array));
    }
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, x);
    dmt_operand_unchanged(c, indices);
}

static void test_take(void **state)
{
    (void)state;
    static const char *const names[] = {"take", "take fetch", "take exchange", "take list", "take lend"};
    for (int i = 0; i < 5; i++) {
        dmt_run(&(dmt_suite){.name = names[i],
                             .cases = i == 1 || i == 2 ? 700 : 300,
                             .fn = take_case,
                             .options = index_options[i]});
    }
}

/* What is sent: rows that the indices name at other workers, each once, with 8 bytes for each index, or, by a
 * list, without them; all rows by a fetch; where rows are lent, a word to each borrower, and one back. */
enum { BY_FETCH, BY_EXCHANGE, BY_LIST, BY_LENDING };

static void bytes_case(dmt_case *c)
{
    enum { ROWS = 64, WIDTH = 32, TAKEN = 40 };
    const int how = *(const int *)c->user;
    bool fetch = how == BY_FETCH, lend = how == BY_LENDING;
    int workers = c->workers;
    int64_t sent = 0, want = 0, shape[2] = {ROWS, WIDTH}, few = TAKEN, taken[2] = {TAKEN, WIDTH};
    dm_layout rows = dm_layout_rows(c->session);
    dmt_host *h = dmt_host_make(&c->scratch, DM_F32, 2, shape),
             *i = dmt_host_make(&c->scratch, DM_I64, 1, &few);
    dmt_host *o = dmt_host_make(&c->scratch, DM_F32, 2, taken);
    dm_counters counters = {.size = sizeof counters};
    int64_t each = (ROWS + workers - 1) / workers, wanted = (TAKEN + workers - 1) / workers;
    for (int64_t k = 0; k < TAKEN; k++) {
        i->v[k] = (long double)dmt_int(&c->random, 0, ROWS - 1);
        want += !fetch && !lend && (int64_t)i->v[k] / each != k / wanted
                    ? WIDTH * 4 + (how == BY_EXCHANGE ? 8 : 0)
                    : 0;
    }
    for (int w = 0; w < workers && fetch; w++) {
        int64_t first = w * wanted < TAKEN ? w * wanted : TAKEN, held = ROWS - w * each;
        held = held < 0 ? 0 : held > each ? each : held;
        want += first < TAKEN ? (ROWS - held) * WIDTH * 4 : 0;
    }
    for (int w = 0; w < workers * workers && lend; w++) {
        int from = w / workers, to = w % workers;
        want += from != to && from * each < ROWS && to * wanted < TAKEN ? 16 : 0;
    }
    dmt_operand *x = dmt_operand_plain(c, "x", h, &rows, "rows"),
                *out = dmt_operand_plain(c, "out", o, &rows, "rows");
    dmt_operand *indices = dmt_operand_plain(c, "indices", i, &rows, "rows");
    int64_t before = 0;
    for (int turn = 0; turn < 2; turn++) {
        sent = 0;
        for (int w = 0; w < workers; w++) {
            DMT_OK(c, dm_counters_get(c->session, w, &counters));
            sent += counters.bytes_sent;
        }
        if (turn == 0) {
            before = sent;
            DMT_OK(c, dm_take(c->session, x->array, indices->array, 0, DM_WRAP, out->array));
        }
    }
    if ((fetch || lend) && workers > 1) { /* what explain says */
        char *text;
        int64_t said = 0;
        DMT_OK(c, dm_explain_begin(c->session));
        DMT_OK(c, dm_take(c->session, x->array, indices->array, 0, DM_WRAP, out->array));
        DMT_OK(c, dm_explain_end(c->session, &text));
        for (const char *at = text; (at = strstr(at, " sent ")) != NULL; at++) {
            said += strtoll(at + 6, NULL, 10);
        }
        if (said != want) {
            dmt_fail(c, "explain says %lld bytes, not %lld: %s", (long long)said, (long long)want, text);
        }
        free(text);
    }
    /* with the counts of each worker, or the indices, that the master reads */
    want += how == BY_EXCHANGE ? (int64_t)workers * (workers + 1) * 8 : how == BY_LIST ? TAKEN * 8 : 0;
    if (workers > 1 && sent - before != want) {
        dmt_fail(c, "%lld bytes were sent, not %lld", (long long)(sent - before), (long long)want);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static int how[] = {BY_FETCH, BY_EXCHANGE, BY_LIST, BY_LENDING};
    static const char *const names[] = {"take bytes fetch", "take bytes exchange", "take bytes list",
                                        "take bytes lend"};
    for (int i = 0; i < (dmt_on_cpu() ? 4 : 2); i++) { /* GPUs take no list, and lend nothing */
        dmt_run(&(dmt_suite){
            .name = names[i], .cases = 25, .fn = bytes_case, .options = index_options[i + 1], .user = &how[i]});
    }
}

/* What comes after a take changes x, or gives its memory to another array: the rows that others still read are
 * those from before. */
static void after_case(dmt_case *c)
{
    enum { ROWS = 2000, WIDTH = 64, TURNS = 6 };
    const int64_t shape[2] = {ROWS, WIDTH}, count = ROWS;
    const bool ends = dmt_chance(&c->random, 50);
    float *values = malloc(sizeof *values * ROWS * WIDTH), *out = malloc(sizeof *out * ROWS * WIDTH);
    int32_t *row = malloc(sizeof *row * ROWS);
    dm_layout rows = dm_layout_rows(c->session);
    dm_array x, y, at;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &y));
    DMT_OK(c, dm_array_create(c->session, DM_I32, 1, &count, &rows, &at));
    for (int turn = 0; turn < TURNS && values && out && row; turn++) {
        int64_t wrong = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            row[i] = (int32_t)dmt_int(&c->random, 0, ROWS - 1);
            for (int64_t k = 0; k < WIDTH; k++) {
                values[i * WIDTH + k] = (float)(i * WIDTH + k + turn);
            }
        }
        DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &x));
        DMT_OK(c, dm_array_write(c->session, x, NULL, NULL, values, 0));
        DMT_OK(c, dm_array_write(c->session, at, NULL, NULL, row, 0));
        DMT_OK(c, dm_take(c->session, x, at, 0, DM_WRAP, y));
        if (ends) {
            dm_array other;
            DMT_OK(c, dm_array_destroy(c->session, x));
            DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &other));
            x = other;
        }
        DMT_OK(c, dm_fill(c->session, x, -1));
        DMT_OK(c, dm_array_read(c->session, y, NULL, NULL, out, 0));
        DMT_OK(c, dm_array_destroy(c->session, x));
        for (int64_t i = 0; i < ROWS * WIDTH; i++) {
            wrong += out[i] != (float)(row[i / WIDTH] * WIDTH + i % WIDTH + turn);
        }
        if (wrong > 0) {
            dmt_fail(c, "%lld elements are not those from before the next call", (long long)wrong);
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, y));
    DMT_OK(c, dm_array_destroy(c->session, at));
    free(values);
    free(out);
    free(row);
}

/* Elements of a part of an array whose blocks are dealt out in turns: what each worker has of the part may be
 * one range. */
static void part_case(dmt_case *c)
{
    enum { MOST = 60 };
    const int64_t block = dmt_int(&c->random, 1, 8), n = dmt_int(&c->random, 1, MOST),
                  lo = dmt_int(&c->random, 0, n - 1);
    const int64_t most =
        dmt_chance(&c->random, 50) ? n - lo : 2 * block; /* two blocks: mostly a range for two workers */
    const int64_t part = dmt_int(&c->random, 1, most < n - lo ? most : n - lo),
                  count = dmt_int(&c->random, 1, MOST);
    double values[MOST], out[MOST];
    int64_t which[MOST];
    int32_t narrow[MOST];
    const bool wide = dmt_chance(&c->random, 70);
    dm_array x, view, at, y;
    dm_layout turns = dm_layout_cyclic(c->session, 0, block), rows = dm_layout_rows(c->session);
    for (int64_t i = 0; i < n; i++) {
        values[i] = (double)i;
    }
    for (int64_t k = 0; k < count; k++) {
        which[k] = dmt_int(&c->random, 0, part - 1);
        narrow[k] = (int32_t)which[k];
    }
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &n, &turns, &x));
    DMT_OK(c, dm_array_write(c->session, x, NULL, NULL, values, 0));
    DMT_OK(c, dm_array_view(c->session, x, &lo, &part, &view));
    DMT_OK(c, dm_array_create(c->session, wide ? DM_I64 : DM_I32, 1, &count, &rows, &at));
    DMT_OK(c, dm_array_write(c->session, at, NULL, NULL, wide ? (const void *)which : narrow, 0));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &count, &rows, &y));
    DMT_OK(c, dm_take(c->session, view, at, 0, DM_WRAP, y));
    DMT_OK(c, dm_array_read(c->session, y, NULL, NULL, out, 0));
    for (int64_t k = 0; k < count; k++) {
        if (out[k] != (double)(lo + which[k])) {
            dmt_fail(c, "%lld of %lld from %lld on, n %lld: element %lld is %g", (long long)which[k],
                     (long long)part, (long long)lo, (long long)n, (long long)k, out[k]);
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, view));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, at));
    DMT_OK(c, dm_array_destroy(c->session, y));
}

static void test_parts(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "take of parts", .cases = 300, .fn = part_case, .options = index_options[4]});
}

static void test_after(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "take, then other writes", .cases = 24, .fn = after_case});
}

/* x has no elements along the dim, and out has none at all: there is nothing to look for. */
static void nothing_case(dmt_case *c)
{
    const int64_t x_shape[] = {0, 0}, shape[] = {3, 0}, count = 3;
    dm_layout rows = dm_layout_rows(c->session);
    dm_array x, out, at;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, x_shape, &rows, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &out));
    DMT_OK(c, dm_array_create(c->session, DM_I32, 1, &count, &rows, &at));
    DMT_OK(c, dm_fill(c->session, at, 7));
    for (int mode = DM_RAISE; mode <= DM_CLIP; mode++) {
        DMT_OK(c, dm_take(c->session, x, at, 0, mode, out));
        DMT_OK(c, dm_put(c->session, x, at, out, 0, mode));
        DMT_OK(c, dm_scatter_add(c->session, x, at, out, 0, mode));
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, out));
    DMT_OK(c, dm_array_destroy(c->session, at));
}

static void test_nothing(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){
        .name = "take nothing", .cases = 5, .fn = nothing_case, .options = "index_algorithm=exchange"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_take), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_after), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
