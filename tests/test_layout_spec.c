/* What a layout is made from: defaults, refusals, equality, and the cost of making one. */
#include "layout_oracle.h"

static void defaults_are_as_documented(void **state)
{
    (void)state;
    int64_t tried = 0, spreads = 0;
    for (int k = 0; k < 20000; k++) {
        int ndim = (int)pick(0, 5), workers = (int)pick(1, 8);
        int64_t shape[DM_MAX_DIMS] = {0}, element = 1 << pick(0, 3), bytes = element;
        for (int d = 0; d < ndim; d++) {
            shape[d] = pick(0, 20);
            bytes *= shape[d];
        }
        bool spread = ndim > 0 && bytes >= 4096;
        spreads += spread;
        dmi_layout_spec s;
        dmi_layout *y = NULL;
        dmi_layout_default(ndim, shape, element, workers, &s);
        assert_int_equal(dmi_layout_create(&s, &y), DM_OK);
        assert_int_equal(y->nworkers, spread ? workers : 1);
        for (int d = 0; d < ndim; d++) {
            assert_int_equal(y->shape[d], shape[d]);
            assert_int_equal(y->grid[d], d == 0 && spread ? workers : 1);
            assert_int_equal(y->order[d], DMI_ORDER_CONTIGUOUS);
        }
        dmi_layout_destroy(y);
        tried++;
    }
    dmi_layout_spec s;
    dmi_layout *y;
    dmi_layout_default(DM_MAX_DIMS + 3, (int64_t[DM_MAX_DIMS + 3]){0}, 8, 2, &s);
    assert_int_equal(dmi_layout_create(&s, &y), DM_ERR_ARG);
    dmi_layout_default(2, (int64_t[]){INT64_MAX / 4, INT64_MAX / 4}, 8, 2, &s);
    assert_int_equal(s.grid[0], 2);
    assert_true(spreads > 1000 && tried - spreads > 1000);
    print_message("%" PRId64 " shapes\n", tried);
}

static void equal_layouts_only(void **state)
{
    (void)state;
    static const int straight[] = {0, 1, 2, 3}, turned[] = {3, 1, 2, 0};
    static const int map[] = {0, 1, 2, 3, 3, 2}, map2[] = {0, 1, 2, 3, 3, 1};
    const dmi_layout_spec specs[] = {
        {.ndim = 0, .session_workers = 4},
        {.ndim = 1, .shape = {1}, .grid = {1}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .session_workers = 5},
        {.ndim = 2, .shape = {6, 4}, .grid = {4, 1}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {1, 4}, .session_workers = 4},
        {.ndim = 2, .shape = {4, 6}, .grid = {2, 2}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .block = {1, 0}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .order = {1, 0}, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .nworkers = 4, .workers = turned, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 1}, .replicas = 2, .session_workers = 4},
        {.ndim = 2, .shape = {6, 4}, .grid = {2, 1}, .session_workers = 4},
        {.kind = 1,
         .ndim = 2,
         .shape = {6, 4},
         .block = {2, 2},
         .map = map,
         .map_count = 6,
         .session_workers = 4},
        {.kind = 1,
         .ndim = 2,
         .shape = {6, 4},
         .block = {2, 2},
         .map = map2,
         .map_count = 6,
         .session_workers = 4},
        {.kind = 1,
         .ndim = 2,
         .shape = {4, 6},
         .block = {2, 2},
         .map = map,
         .map_count = 6,
         .session_workers = 4},
    };
    enum { N = sizeof specs / sizeof specs[0] };
    dmi_layout *y[N], *again[N];
    for (int i = 0; i < N; i++) {
        dmi_layout_spec spelled = specs[i];
        assert_int_equal(dmi_layout_create(&specs[i], &y[i]), DM_OK);
        spelled.workers = spelled.workers ? spelled.workers : straight;
        spelled.nworkers = y[i]->nworkers;
        spelled.replicas = y[i]->replicas;
        memcpy(spelled.block, y[i]->block, sizeof spelled.block);
        for (int d = 0; d < spelled.ndim; d++) {
            spelled.order[d] = spelled.grid[d] > 1 ? spelled.order[d] : DMI_ORDER_CYCLIC;
        }
        spelled.shape[DM_MAX_DIMS - 1] = 17; /* past ndim: not looked at */
        assert_int_equal(dmi_layout_create(&spelled, &again[i]), DM_OK);
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            assert_int_equal(dmi_layout_equal(y[i], again[j]), i == j);
            assert_int_equal(y[i]->hash == again[j]->hash, i == j);
        }
    }
    for (int i = 0; i < N; i++) {
        dmi_layout_destroy(y[i]);
        dmi_layout_destroy(again[i]);
    }
    dmi_layout_destroy(NULL);
}

static const int twice[] = {0, 1, 2, 1}, far[] = {0, 1, 2, 8}, below[] = {-1, 1, 2, 3}, fine[] = {4, 5, 6, 7};
#define BIG (INT64_C(1) << 40)
#define GOOD .ndim = 2, .shape = {6, 4}, .grid = {2, 2}, .session_workers = 8
#define MAP .kind = 1, .ndim = 2, .shape = {6, 4}, .block = {3, 2}, .session_workers = 8
static const struct {
    dm_status status;
    const char *field, *value;
    dmi_layout_spec spec;
} bad_specs[] = {
    {DM_ERR_LAYOUT, "kind", "2", {GOOD, .kind = 2}},
    {DM_ERR_LAYOUT, "kind", "-1", {GOOD, .kind = -1}},
    {DM_ERR_ARG, "session_workers", "0", {.ndim = 0, .session_workers = 0}},
    {DM_ERR_ARG, "ndim", "9", {.ndim = 9, .session_workers = 1}},
    {DM_ERR_ARG, "ndim", "-1", {.ndim = -1, .session_workers = 1}},
    {DM_ERR_ARG, "shape[1]", "-4", {.ndim = 2, .shape = {6, -4}, .grid = {1, 1}, .session_workers = 1}},
    {DM_ERR_ARG,
     "shape[1]",
     "1099511627776",
     {.ndim = 2, .shape = {BIG, BIG}, .grid = {1, 1}, .session_workers = 1}},
    {DM_ERR_ARG,
     "shape[2]",
     "1099511627776",
     {.ndim = 3, .shape = {0, BIG, BIG}, .grid = {1, 1, 1}, .session_workers = 1}},
    {DM_ERR_ARG,
     "shape[0]",
     "9223372036854775807",
     {.ndim = 1, .shape = {INT64_MAX}, .grid = {1}, .session_workers = 1}},
    {DM_ERR_LAYOUT, "block[0]", "-1", {GOOD, .block = {-1, 2}}},
    {DM_ERR_LAYOUT, "grid[1]", "0", {.ndim = 2, .shape = {6, 4}, .grid = {2, 0}, .session_workers = 8}},
    {DM_ERR_LAYOUT, "grid[0]", "-2", {.ndim = 2, .shape = {6, 4}, .grid = {-2, -2}, .session_workers = 8}},
    {DM_ERR_LAYOUT, "grid[1]", "10", {.ndim = 2, .shape = {6, 4}, .grid = {2, 5}, .session_workers = 8}},
    {DM_ERR_LAYOUT,
     "grid[0]",
     "2147483647",
     {.ndim = 1, .shape = {6}, .grid = {INT32_MAX}, .session_workers = 8}},
    {DM_ERR_LAYOUT, "order[1]", "2", {GOOD, .order = {0, 2}}},
    {DM_ERR_LAYOUT, "replicas", "-1", {GOOD, .replicas = -1}},
    {DM_ERR_LAYOUT, "replicas", "3", {GOOD, .replicas = 3}},
    {DM_ERR_LAYOUT, "nworkers", "3", {GOOD, .nworkers = 3}},
    {DM_ERR_LAYOUT, "nworkers", "4", {GOOD, .nworkers = 4, .replicas = 2}},
    {DM_ERR_LAYOUT, "nworkers", "8", {GOOD, .nworkers = 8}},
    {DM_ERR_LAYOUT, "nworkers", "9", {GOOD, .nworkers = 9}},
    {DM_ERR_LAYOUT, "nworkers", "-4", {GOOD, .nworkers = -4}},
    {DM_ERR_LAYOUT, "nworkers", "0", {GOOD, .nworkers = 0, .workers = fine}},
    {DM_ERR_LAYOUT, "workers[3]", "is 1", {GOOD, .nworkers = 4, .workers = twice}},
    {DM_ERR_LAYOUT, "workers[3]", "is 8", {GOOD, .nworkers = 4, .workers = far}},
    {DM_ERR_LAYOUT, "workers[0]", "-1", {GOOD, .nworkers = 4, .workers = below}},
    {DM_ERR_LAYOUT, "map_count", "is 3", {MAP, .map = fine, .map_count = 3}},
    {DM_ERR_LAYOUT, "map_count", "is 5", {MAP, .map = fine, .map_count = 5}},
    {DM_ERR_LAYOUT, "map ", "4 blocks", {MAP, .map_count = 4}},
    {DM_ERR_LAYOUT, "map[3]", "is 8", {MAP, .map = far, .map_count = 4}},
    {DM_ERR_LAYOUT, "map[0]", "is -1", {MAP, .map = below, .map_count = 4}},
    {DM_ERR_LAYOUT, "map[0]", "is 0", {MAP, .map = twice, .map_count = 4, .workers = fine, .nworkers = 4}},
    {DM_ERR_LAYOUT, "map[3]", "is 7", {MAP, .map = fine, .map_count = 4, .nworkers = 7}},
    {DM_ERR_LAYOUT, "nworkers", "9", {MAP, .map = fine, .map_count = 4, .nworkers = 9}},
    {DM_ERR_LAYOUT, "replicas", "2", {MAP, .map = fine, .map_count = 4, .replicas = 2}},
};

static void bad_specs_name_the_field(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(bad_specs); i++) {
        dmi_layout *y = (dmi_layout *)&bad_specs;
        dm_status status = dmi_layout_create(&bad_specs[i].spec, &y);
        const char *text = dmi_error_text();
        if (status != bad_specs[i].status || !strstr(text, bad_specs[i].field) ||
            !strstr(text, bad_specs[i].value)) {
            fail_msg("%d: status %d with text: %s", i, status, text);
        }
        assert_ptr_equal(y, &bad_specs);
    }
    print_message("%d bad specs\n", DMI_COUNT(bad_specs));
}

/* Neither time nor memory an element: only a block of a map, and a worker. */
static void large_layouts_are_quick(void **state)
{
    (void)state;
    enum { BLOCKS = 1000000, WORKERS = 1000 };
    int *map = test_malloc(BLOCKS * sizeof *map);
    for (int i = 0; i < BLOCKS; i++) {
        map[i] = i % 7;
    }
    const int64_t n = INT64_C(1) << 29;
    dmi_layout_spec grid = {.ndim = 2,
                            .shape = {n, n},
                            .block = {1, 3},
                            .grid = {40, 25},
                            .order = {DMI_ORDER_CYCLIC, DMI_ORDER_CYCLIC},
                            .session_workers = WORKERS};
    dmi_layout_spec by_map = {.kind = DMI_LAYOUT_EXPLICIT,
                              .ndim = 2,
                              .shape = {10000, 10000},
                              .block = {10, 10},
                              .map = map,
                              .map_count = BLOCKS,
                              .session_workers = WORKERS};
    int64_t start_ns = dmi_now_ns(), sum = 0;
    dmi_layout *y;
    assert_int_equal(dmi_layout_create(&grid, &y), DM_OK);
    for (int w = 0; w < WORKERS; w++) {
        sum += dmi_layout_shard_count(y, w);
    }
    dmi_layout_destroy(y);
    assert_true(sum == n * n);
    assert_int_equal(dmi_layout_create(&by_map, &y), DM_OK);
    assert_int_equal(dmi_layout_shard_count(y, 0), 142858 * 100);
    assert_int_equal(dmi_layout_owner(y, (int64_t[]){9999, 9999}, 0), 999999 % 7);
    dmi_layout_destroy(y);
    int64_t ms = (dmi_now_ns() - start_ns) / 1000000;
    test_free(map);
    print_message("%" PRId64 " ms\n", ms);
    assert_true(ms < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(equal_layouts_only),
        cmocka_unit_test(bad_specs_name_the_field),
        cmocka_unit_test(large_layouts_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
