/* Lives of handles and sessions: destroyed, foreign and zero ones, what outlives what, what finalize reports.
 */
#include "support/cases.h"

static const int64_t shape[] = {6, 5};

static dm_array make(dm_session *session, double value)
{
    dm_array a = DM_NO_ARRAY;
    assert_int_equal(dm_array_create(session, DM_F64, 2, shape, NULL, &a), DM_OK);
    assert_int_equal(dm_fill(session, a, value), DM_OK);
    return a;
}

static double first_element(dm_session *session, dm_array a)
{
    const int64_t lo[] = {0, 0}, extent[] = {1, 1};
    double value = -1;
    assert_int_equal(dm_array_read(session, a, lo, extent, &value, 0), DM_OK);
    return value;
}

static void drop(dm_session *session, dm_array a)
{
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
}

/* A handle that stands for nothing here is refused by every kind of call, and harms nothing. */
static void refused_everywhere(dm_session *session, dm_array bad)
{
    const int64_t lo[] = {0, 0};
    double memory[30];
    int worker = -7;
    dm_array good = make(session, 1), out = {77};
    dm_array_info info = {.size = sizeof info, .ndim = -7};
    assert_int_equal(dm_array_query(session, bad, &info), DM_ERR_HANDLE);
    assert_int_equal(info.ndim, -7);
    assert_int_equal(dm_array_owner(session, bad, lo, &worker), DM_ERR_HANDLE);
    assert_int_equal(worker, -7);
    assert_int_equal(dm_array_view(session, bad, lo, shape, &out), DM_ERR_HANDLE);
    assert_int_equal(dm_array_reshape(session, bad, 2, shape, &out), DM_ERR_HANDLE);
    assert_true(out.id == 77);
    assert_int_equal(dm_array_read(session, bad, NULL, NULL, memory, 0), DM_ERR_HANDLE);
    assert_int_equal(dm_array_write(session, bad, NULL, NULL, memory, 0), DM_ERR_HANDLE);
    assert_int_equal(dm_fill(session, bad, 0), DM_ERR_HANDLE);
    assert_int_equal(dm_copy(session, bad, good), DM_ERR_HANDLE);
    assert_int_equal(dm_copy(session, good, bad), DM_ERR_HANDLE);
    assert_int_equal(dm_axpby(session, 1, bad, 1, good), DM_ERR_HANDLE);
    assert_int_equal(dm_sum(session, good, NULL, 0, 1, 0, bad), DM_ERR_HANDLE);
    assert_int_equal(dm_gemm(session, DM_N, DM_N, 1, bad, good, 0, good), DM_ERR_HANDLE);
    assert_true(first_element(session, good) == 1);
    drop(session, good);
}

static void test_bad_handles(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    refused_everywhere(session, DM_NO_ARRAY);
    refused_everywhere(session, (dm_array){UINT64_MAX});
    refused_everywhere(session, (dm_array){12345});
    dm_array a = make(session, 2);
    for (int bit = 0; bit < 64; bit++) {
        dm_array_info info = {.size = sizeof info};
        dm_array other = {a.id ^ (UINT64_C(1) << bit)};
        assert_int_equal(dm_array_query(session, other, &info), DM_ERR_HANDLE);
    }
    drop(session, a);
    refused_everywhere(session, a);
    assert_int_equal(dm_array_destroy(session, a), DM_ERR_HANDLE);
    drop(session, DM_NO_ARRAY);
    dmt_session_close(session, 0);
}

/* The place of a destroyed array is used again, its handle never. */
static void test_no_handle_comes_back(void **state)
{
    (void)state;
    enum { TURNS = 3000 };
    static dm_array old[TURNS];
    dm_session *session = dmt_session_open(2, NULL);
    for (int i = 0; i < TURNS; i++) {
        assert_int_equal(dm_array_create(session, DM_U8, 2, shape, NULL, &old[i]), DM_OK);
        drop(session, old[i]);
    }
    dm_array a = make(session, 3);
    for (int i = 0; i < TURNS; i++) {
        assert_true(old[i].id != a.id);
        assert_int_equal(dm_fill(session, old[i], 9), DM_ERR_HANDLE);
    }
    assert_true(first_element(session, a) == 3);
    drop(session, a);
    dmt_session_close(session, 0);
}

static void test_foreign(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    dm_session *one = dmt_session_open(2, NULL), *other = dmt_session_open(3, NULL);
    dm_array a = make(one, 4), b = make(other, 5);
    refused_everywhere(other, a);
    refused_everywhere(one, b);
    assert_int_equal(dm_array_destroy(other, a), DM_ERR_HANDLE);
    assert_int_equal(dm_copy(one, a, b), DM_ERR_HANDLE);
    assert_true(first_element(one, a) == 4);
    assert_true(first_element(other, b) == 5);
    drop(one, a);
    dmt_session_close(one, 0);
    assert_true(first_element(other, b) == 5);
    drop(other, b);
    dmt_session_close(other, 0);
}

/* A view keeps the elements alive, and what was queued before a destroy is done as if nothing had happened. */
static void test_views_outlive_bases(void **state)
{
    (void)state;
    const int64_t lo[] = {2, 1}, extent[] = {3, 3};
    double memory[9] = {0};
    dm_session *session = dmt_session_open(3, NULL);
    dm_array a = make(session, 6), view, inner;
    assert_int_equal(dm_array_view(session, a, lo, extent, &view), DM_OK);
    drop(session, a);
    assert_int_equal(dm_fill(session, a, 1), DM_ERR_HANDLE);
    assert_true(first_element(session, view) == 6);
    assert_int_equal(dm_fill_arange(session, view, 10, 1), DM_OK);
    assert_int_equal(dm_array_view(session, view, (int64_t[]){1, 1}, (int64_t[]){2, 2}, &inner), DM_OK);
    drop(session, view);
    assert_true(first_element(session, inner) == 14);
    assert_int_equal(dm_array_read(session, inner, NULL, NULL, memory, 0), DM_OK);
    assert_true(memory[3] == 18);
    drop(session, inner);
    dmt_session_close(session, 0);
}

static void test_destroy_does_not_disturb(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    dm_array sum = make(session, 0);
    for (int i = 1; i <= 50; i++) {
        dm_array term = make(session, i), copy = make(session, 0);
        assert_int_equal(dm_copy(session, term, copy), DM_OK);
        drop(session, term);
        assert_int_equal(dm_axpby(session, 1, copy, 1, sum), DM_OK);
        drop(session, copy);
    }
    assert_true(first_element(session, sum) == 1275);
    drop(session, sum);
    dmt_session_close(session, 0);
}

static void test_finalize_counts(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    dm_session *session = dmt_session_open(2, NULL);
    dm_array a = make(session, 1), view, gone = make(session, 2);
    (void)make(session, 3);
    assert_int_equal(dm_array_view(session, a, (int64_t[]){0, 0}, (int64_t[]){1, 2}, &view), DM_OK);
    drop(session, gone);
    dmt_session_close(session, 3); /* two arrays and a view */
    session = dmt_session_open(2, NULL);
    assert_int_equal(dm_finalize(session, NULL), DM_OK);
}

/* A dead session is refused by every call, also when others have come after it. */
static void refused_when_dead(dm_session *session)
{
    dm_array a = DM_NO_ARRAY;
    dm_counters counters = {.size = sizeof counters};
    dm_memory memory = {.size = sizeof memory};
    char *text = NULL;
    int64_t alive = -5;
    double value = 0;
    assert_int_equal(dm_sync(session), DM_ERR_STATE);
    assert_int_equal(dm_noop(session), DM_ERR_STATE);
    assert_int_equal(dm_array_create(session, DM_F64, 2, shape, NULL, &a), DM_ERR_STATE);
    assert_int_equal(dm_matrix(session, DM_F64, 2, 2, &a), DM_ERR_STATE);
    assert_int_equal(dm_fill(session, a, 1), DM_ERR_STATE);
    assert_int_equal(dm_array_read(session, a, NULL, NULL, &value, 0), DM_ERR_STATE);
    assert_int_equal(dm_array_load(session, "x.npy", NULL, &a), DM_ERR_STATE);
    assert_int_equal(dm_explain_begin(session), DM_ERR_STATE);
    assert_int_equal(dm_explain_end(session, &text), DM_ERR_STATE);
    assert_int_equal(dm_counters_get(session, 0, &counters), DM_ERR_STATE);
    assert_int_equal(dm_memory_report(session, 0, &memory), DM_ERR_STATE);
    assert_int_equal(dm_memory_trim(session), DM_ERR_STATE);
    assert_int_equal(dm_finalize(session, &alive), DM_ERR_STATE);
    assert_int_equal(alive, -5);
    assert_true(a.id == 0 && text == NULL);
}

static void test_use_after_finalize(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    dm_session *dead = dmt_session_open(2, NULL);
    dmt_session_close(dead, 0);
    refused_when_dead(dead);
    dm_session *live = dmt_session_open(2, NULL);
    if (live != dead) {
        refused_when_dead(dead);
    }
    dm_array a = make(live, 8);
    assert_true(first_element(live, a) == 8);
    drop(live, a);
    dmt_session_close(live, 0);
}

static void test_many_sessions(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    for (int i = 0; i < 40; i++) {
        dm_session *session = dmt_session_open(1 + i % 8, NULL);
        if (i % 3 == 0) {
            dm_array a = make(session, i);
            assert_true(first_element(session, a) == i);
            drop(session, a);
        }
        dmt_session_close(session, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_handles),
        cmocka_unit_test(test_no_handle_comes_back),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_views_outlive_bases),
        cmocka_unit_test(test_destroy_does_not_disturb),
        cmocka_unit_test(test_finalize_counts),
        cmocka_unit_test(test_use_after_finalize),
        cmocka_unit_test(test_many_sessions),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
