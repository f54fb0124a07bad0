/* Where poison goes, and who hears of a failure. */
#include "op_forms.h"

#include <dmath/index.h>
#include <dmath/order.h>

/* c is rewritten again and again and copied away each time; the failure hits in the middle of the queue. Only
 * the copies of the failed products may be poisoned, not the ones before, although those are still under way
 * when the poison comes, nor the ones after. */
static void chain(const char *options, char of_a, char of_b, char of_c, int at)
{
    enum { TURNS = 12 };
    char text[128];
    double a[N * N], b[N * N], want[N * N];
    dm_array out[TURNS], in[TURNS];
    snprintf(text, sizeof text, "%s,fault='compute:%d',log=error", options, at);
    dm_session *s = open_session(WORKERS, text);
    dm_layout la = layout_of(s, of_a), lb = layout_of(s, of_b), lc = layout_of(s, of_c);
    dm_array right = make_matrix(s, N, &lb, 1), c = make_matrix(s, N, &lc, 2);
    for (int i = 0; i < TURNS; i++) {
        in[i] = make_matrix(s, N, &la, 10 + i);
        out[i] = make_matrix(s, N, &la, 50 + i);
    }
    for (int i = 0; i < TURNS; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, in[i], right, 0, c));
        OK(dm_copy(s, c, out[i]));
    }
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    int poisoned = 0;
    element_matrix(N, 1, b);
    for (int i = 0; i < TURNS; i++) {
        element_matrix(N, 10 + i, a);
        product(N, a, b, want);
        dm_status status = read_matrix(s, out[i], N, want);
        assert_true(status == DM_OK || status == DM_ERR_POISONED);
        poisoned += status != DM_OK;
        matrix_is(s, in[i], N, 10 + i);
        OK(dm_array_destroy(s, in[i]));
        OK(dm_array_destroy(s, out[i]));
    }
    assert_in_range(poisoned, 1, WORKERS);
    OK(dm_array_destroy(s, c));
    OK(dm_array_destroy(s, right));
    close_session(s);
}

static void test_poison_stays_in_its_place(void **state)
{
    (void)state;
    for (int at = 1; at <= 24; at += 3) {
        chain("link_latency_us=200", 'r', 'r', 'r', at);
        chain("link_latency_us=0", 'r', 'c', 'c', at);
        chain("gemm_algorithm=stationary", 'y', 'r', 'c', at);
    }
}

/* A worker is busy when poison for a later command arrives: the commands before it still get what was there,
 * and what they write does not hide the poison. */
static void test_poison_comes_early(void **state)
{
    (void)state;
    const int64_t large[2] = {400, 400};
    double values[N * N], want[N * N];
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    dm_layout here = dm_layout_single(1), there = dm_layout_single(0);
    dm_array poisoned = make_matrix(s, N, &there, 1), x = make_matrix(s, N, &here, 2),
             y = make_matrix(s, N, &here, 3);
    dm_array z = make_matrix(s, N, &here, 4), slow, other;
    OK(dm_array_create(s, DM_F64, 2, large, &here, &slow));
    OK(dm_array_create(s, DM_F64, 2, large, &here, &other));
    OK(dm_fill(s, poisoned, 1));
    OK(dm_fill(s, slow, 1));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    OK(dm_fill(s, slow, 1));
    element_matrix(N, 3, values);
    product(N, values, values, want);
    for (int turn = 0; turn < 10; turn++) {
        OK(dm_array_write(s, y, NULL, NULL, values, 0));
        OK(dm_gemm(s, DM_N, DM_N, 1, slow, slow, 0, other));
        OK(dm_gemm(s, DM_N, DM_N, 1, y, y, 0, z));
        OK(dm_fill(s, y, 5));
        OK(dm_add(s, 1, poisoned, 1, x, y));
        OK(read_matrix(s, z, N, want));
        assert_int_equal(read_matrix(s, y, N, NULL), DM_ERR_POISONED);
        matrix_is(s, x, N, 2);
    }
    dm_array all[] = {poisoned, x, y, z, slow, other};
    for (int i = 0; i < 6; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    close_session(s);
}

static void test_saving_poison(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    char path[64];
    snprintf(path, sizeof path, "/tmp/dmath-poison-%ld.npy", (long)getpid());
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 3));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    assert_int_equal(dm_array_save(s, a, path), DM_ERR_POISONED);
    assert_int_equal(access(path, F_OK), -1);
    OK(dm_fill(s, a, 3));
    OK(dm_array_save(s, a, path));
    assert_int_equal(unlink(path), 0);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* With option sync the call itself says that it failed. */
static void test_sync_mode(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:3',log=error,sync=1");
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 1));
    OK(dm_fill(s, a, 2));
    assert_int_equal(dm_fill(s, a, 3), DM_ERR_INTERNAL);
    OK(dm_fill(s, a, 4));
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* A failure that nobody asked for is told by dm_finalize. */
static void test_finalize_tells(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    int64_t alive = -1;
    dm_array a = make_matrix(s, 8, NULL, 1);
    OK(dm_fill(s, a, 1));
    assert_int_equal(dm_finalize(s, &alive), DM_ERR_INTERNAL);
    assert_int_equal(alive, 1);
    assert_int_equal(dm_sync(s), DM_ERR_STATE);
}

/* The command that poisoned x, as the message of a read says. */
static long culprit_of(dm_session *s, dm_array x)
{
    double values[N * N];
    assert_int_equal(dm_array_read(s, x, NULL, NULL, values, 0), DM_ERR_POISONED);
    const char *at = strstr(dm_error_message(), "result of command ");
    assert_non_null(at);
    return strtol(at + strlen("result of command "), NULL, 10);
}

/* A poisoned array that a failed command would have rewritten whole is that command's result from then on. */
static void test_last_culprit(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers += 2) {
        dm_session *s = open_session(workers, "log=error");
        dm_layout rows = dm_layout_rows(s);
        dm_array a = make_matrix(s, N, &rows, 1), b = make_matrix(s, N, &rows, 2), c = make_matrix(s, N, &rows, 3);
        OK(dm_require_range(s, c, 1e6, 2e6));
        assert_int_not_equal(dm_sync(s), DM_OK);
        long first = culprit_of(s, c);
        OK(dm_require_range(s, a, 1e6, 2e6));
        assert_int_not_equal(dm_sync(s), DM_OK);
        long second = culprit_of(s, a);
        assert_true(second > first);
        OK(dm_gelu(s, a, c));
        OK(dm_sync(s)); /* who reads c hears of it */
        assert_int_equal(culprit_of(s, c), second);
        OK(dm_gelu(s, b, c));
        matrix_is(s, b, N, 2);
        double values[N * N];
        OK(dm_array_read(s, c, NULL, NULL, values, 0));
        OK(dm_array_destroy(s, a));
        OK(dm_array_destroy(s, b));
        OK(dm_array_destroy(s, c));
        close_session(s);
    }
}

/* A reshaped view of all but the last element, which is a whole array of its own layout, does not make the rest
 * valid. */
static void test_part_under_another_shape(void **state)
{
    (void)state;
    const int64_t count = 7, first = 0, most = 6, shape[] = {2, 3};
    double values[7];
    dm_session *s = open_session(2, "fault='compute:1',log=error");
    dm_layout everywhere = dm_layout_replicated(s);
    dm_array a, part, rows;
    OK(dm_array_create(s, DM_F64, 1, &count, &everywhere, &a));
    OK(dm_fill(s, a, 1));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    OK(dm_array_view(s, a, &first, &most, &part));
    OK(dm_array_reshape(s, part, 2, shape, &rows));
    OK(dm_fill(s, rows, 2));
    assert_int_equal(dm_array_read(s, a, NULL, NULL, values, 0), DM_ERR_POISONED);
    OK(dm_fill(s, a, 3));
    OK(dm_array_read(s, rows, NULL, NULL, values, 0));
    dm_array all[] = {a, part, rows};
    for (int i = 0; i < 3; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    close_session(s);
}

/* --- calls that wait for what they make of an operand name the operand --- */

enum { COUNT = 600 };
typedef struct waiting {
    dm_session *s;
    dm_array bad, x, y, index, flags; /* bad: poisoned */
} waiting;

static dm_status call_take(const waiting *w)
{
    return dm_take(w->s, w->x, w->index, 0, DM_RAISE, w->y);
}

static dm_status call_put(const waiting *w)
{
    return dm_put(w->s, w->y, w->index, w->x, 0, DM_RAISE);
}

static dm_status call_sort(const waiting *w)
{
    return dm_sort(w->s, w->bad, 0, 0, w->y);
}

static dm_status call_unique(const waiting *w)
{
    dm_array values, counts, inverse;
    return dm_unique(w->s, w->bad, &values, &counts, &inverse);
}

static dm_status call_nonzero(const waiting *w)
{
    dm_array out;
    return dm_nonzero(w->s, w->bad, 1, &out);
}

static dm_status call_compress(const waiting *w)
{
    dm_array out;
    return dm_compress(w->s, w->x, w->bad, 0, NULL, &out);
}

static dm_status call_isin(const waiting *w)
{
    return dm_isin(w->s, w->x, w->bad, 0, w->flags);
}

static void test_operands_are_named(void **state)
{
    (void)state;
    static const struct {
        dm_status (*run)(const waiting *w);
        const char *operand;
    } calls[] = {{call_take, "indices"}, {call_put, "indices"},   {call_sort, "x"},   {call_unique, "x"},
                 {call_nonzero, "x"},    {call_compress, "mask"}, {call_isin, "test"}};
    static const char *const algorithms[] = {"auto", "fetch", "exchange", "list", "lend"};
    const int64_t count = COUNT;
    int named = 0;
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        for (int split = 0; split < 2; split++) {
            char options[96], starts[48], holds[96];
            snprintf(options, sizeof options, "log=error,sort_exchange=1,index_algorithm=%s", algorithms[i]);
            waiting w = {.s = open_session(3, options)};
            dm_layout rows = dm_layout_rows(w.s), cyclic = dm_layout_cyclic(w.s, 0, 7),
                      *layout = split ? &rows : &cyclic;
            OK(dm_array_create(w.s, DM_F64, 1, &count, layout, &w.bad));
            OK(dm_array_create(w.s, DM_F64, 1, &count, layout, &w.x));
            OK(dm_array_create(w.s, DM_F64, 1, &count, layout, &w.y));
            OK(dm_array_create(w.s, DM_I64, 1, &count, layout, &w.index));
            OK(dm_array_create(w.s, DM_BOOL, 1, &count, layout, &w.flags));
            OK(dm_fill_arange(w.s, w.x, 0, 1));
            OK(dm_fill(w.s, w.bad, 1));
            OK(dm_require_range(w.s, w.bad, 2, 3));
            OK(dm_copy(w.s, w.bad, w.index));
            assert_int_not_equal(dm_sync(w.s), DM_OK);
            for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
                OK(dm_fill(w.s, w.y, 0));
                dm_status status = calls[k].run(&w);
                snprintf(starts, sizeof starts, ": %s holds the result of command ", calls[k].operand);
                snprintf(holds, sizeof holds, "(require_range), which failed");
                if (status != DM_OK && (status != DM_ERR_POISONED || !strstr(dm_error_message(), starts) ||
                                        !strstr(dm_error_message(), holds))) {
                    fail_msg("%s, call %zu: %s", options, k, dm_error_message());
                }
                named += status != DM_OK;
            }
            (void)!dm_finalize(w.s, NULL);
        }
    }
    assert_in_range(named, 50, 70); /* some wait for nothing: what they write is poisoned */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_poison_stays_in_its_place, deadline),
        cmocka_unit_test_setup(test_poison_comes_early, deadline),
        cmocka_unit_test_setup(test_saving_poison, deadline),
        cmocka_unit_test_setup(test_sync_mode, deadline),
        cmocka_unit_test_setup(test_finalize_tells, deadline),
        cmocka_unit_test_setup(test_last_culprit, deadline),
        cmocka_unit_test_setup(test_part_under_another_shape, deadline),
        cmocka_unit_test_setup(test_operands_are_named, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
