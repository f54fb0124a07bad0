/* Layouts and shapes of random fields: refused with a text, or they work. */
#include "bad_input.h"

/* Layouts of random fields: refused with a text, or they work. */
static void test_wild_layouts(void **state)
{
    (void)state;
    uint64_t random = 2;
    int made = 0;
    const int some[4] = {0, 1, 2, 0};
    dm_session *s = open_session(3, "log=error");
    dm_array whole = make_matrix(s, N, NULL, 3);
    for (int i = 0; i < 20000; i++) {
        const int64_t shape[2] = {N, N};
        dm_array a = {77};
        dm_layout layout = dm_layout_default();
        layout.kind = small_number(&random) % 4;
        layout.single = small_number(&random);
        layout.replicas = small_number(&random);
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            bool tame = random_bits(&random) % 4 != 0;
            layout.block[d] = tame ? (int64_t)(random_bits(&random) % 4) : any_number(&random);
            layout.grid[d] = tame ? d < 2 : small_number(&random);
            layout.order[d] = tame ? 0 : small_number(&random);
        }
        if (random_bits(&random) % 3 == 0) {
            layout.workers = some;
            layout.nworkers = (int)(random_bits(&random) % 5) - 1; /* no more than there are */
        }
        if (random_bits(&random) % 3 == 0) {
            layout.map = some;
            layout.map_count = (int64_t)(random_bits(&random) % 5);
        }
        dm_status status = dm_array_create(s, DM_F64, 2, shape, &layout, &a);
        if (status == DM_OK) {
            made++;
            OK(dm_copy(s, whole, a));
            matrix_is(s, a, N, 3);
            OK(dm_array_destroy(s, a));
        } else {
            assert_true(status == DM_ERR_LAYOUT || status == DM_ERR_ARG);
            assert_true(strlen(dm_error_message()) > 8);
            assert_true(a.id == 77);
        }
    }
    print_message("%d of 20000 layouts were possible\n", made);
    assert_true(made > 100);
    matrix_is(s, whole, N, 3);
    OK(dm_array_destroy(s, whole));
    close_session(s);
}

static void test_counts_beside_short_lists(void **state)
{
    (void)state;
    dm_session *s = open_session(3, "log=error");
    const int64_t shape[2] = {N, N}, block[2] = {3, 3};
    int *list = malloc(4 * sizeof *list); /* its end is where a sanitizer sees it */
    dm_array a = {77};
    assert_non_null(list);
    for (int i = 0; i < 4; i++) {
        list[i] = i % 3;
    }
    const int counts[] = {-1, 5, 1000, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 5; i++) {
        dm_layout layout = dm_layout_rows(s);
        layout.workers = list;
        layout.nworkers = counts[i];
        REFUSED(ONE(LAYOUT) | ONE(ARG), "nworkers", dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        dm_layout layout = dm_layout_explicit(2, block, list, numbers[i]);
        REFUSED(ONE(LAYOUT) | ONE(ARG), "map", dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    }
    free(list);
    close_session(s);
}

static void test_wild_sizes(void **state)
{
    (void)state;
    uint64_t random = 3;
    dm_session *s = open_session(3, "log=error");
    int made = 0;
    for (int i = 0; i < 4000; i++) {
        int64_t shape[DM_MAX_DIMS];
        int ndim = i % 10 == 0 ? small_number(&random) : (int)(random_bits(&random) % 4);
        dm_array a = {77}, v = {77};
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            shape[d] = any_number(&random);
        }
        dm_layout layout = i % 2 ? dm_layout_cyclic(s, 0, any_number(&random)) : dm_layout_default();
        dm_status status = dm_array_create(s, DM_U8, ndim, shape, i % 3 ? &layout : NULL, &a);
        if (status != DM_OK) {
            assert_true(a.id == 77 && strlen(dm_error_message()) > 8);
            continue;
        }
        made++;
        int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
        uint8_t byte = 0;
        for (int d = 0; d < DM_MAX_DIMS; d++) {
            lo[d] = any_number(&random);
            extent[d] = any_number(&random);
        }
        if (dm_array_view(s, a, lo, extent, &v) == DM_OK) {
            OK(dm_array_destroy(s, v));
        }
        if (dm_array_reshape(s, a, 2, extent, &v) == DM_OK) {
            OK(dm_array_destroy(s, v));
        }
        int worker;
        (void)!dm_array_owner(s, a, lo, &worker);
        memset(extent, 0, sizeof extent); /* nothing of it */
        memset(lo, 0, sizeof lo);
        (void)!dm_array_read(s, a, lo, extent, ndim ? NULL : &byte, 0);
        OK(dm_array_destroy(s, a));
        (void)!dm_sync(s);
    }
    print_message("%d of 4000 arrays were possible\n", made);
    close_session(s);
}

/* Half of the machine's patience: as many workers as make no sense, but can be. */
static void test_crowd(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    enum { CROWD = 40 };
#else
    enum { CROWD = 200 };
#endif
    dm_session *s = open_session(CROWD, "");
    dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
    dm_array a = make_matrix(s, MOST, &rows, 1), b = make_matrix(s, MOST, &columns, 2);
    OK(dm_copy(s, a, b));
    matrix_is(s, b, MOST, 1);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_wild_layouts, deadline),
        cmocka_unit_test_setup(test_counts_beside_short_lists, deadline),
        cmocka_unit_test_setup(test_wild_sizes, deadline),
        cmocka_unit_test_setup(test_crowd, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
