/* Take and put on paper: plans in the simulator, and the kernel that counts indices against loops. */
#include "ops/common_index.h"
#include "sim_random.h"

/* Plans of random indices and owners, through the simulator. */
static void test_plans(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(100); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("index_count", 0, i));
        int workers = (int)dmt_int(&r, 1, 9);
        sim_program p;
        sim_begin(&p, workers);
        dmi_index_owner owner = {
            .n = 50, .origin = dmt_int(&r, 0, 3), .block = dmt_int(&r, 1, 20), .g = workers};
        int indices =
            sim_matrix(&p, DM_I32, dmt_int(&r, 0, 30), dmt_int(&r, 1, 9), workers, 1, dmt_int(&r, 0, 3));
        int counts = sim_matrix(&p, DM_I64, workers, 1 + workers, workers, 1, 0);
        assert_true(sim_call(&p, DMI_OP_copy, &(sim_args){.i = {0}}, 2, (int[]){counts, counts}));
        p.call[0] = (dmi_call){.op = DMI_OP_index_count,
                               .noperand = 2,
                               .tail = &owner,
                               .tail_bytes = sizeof owner,
                               .tail_key = sizeof owner};
        p.call[0].operand[0] = p.array[indices];
        p.call[0].operand[1] = p.array[counts];
        p.call[0].operand[0].mode = DMI_READ;
        p.call[0].operand[1].mode = DMI_WRITE;
        check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, "index_count");
        sim_end(&p);
    }
}

/* Take and put on random layouts, where all comes to what is written. */
static void test_fetch(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(400); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("index fetch", 0, i));
        sim_program p;
        sim_begin(&p, (int)dmt_int(&r, 1, 9));
        int64_t shape[DM_MAX_DIMS], positions[DM_MAX_DIMS];
        int ndim = (int)dmt_int(&r, 1, 3), dim = (int)dmt_int(&r, 0, ndim - 1);
        bool along = dmt_chance(&r, 50), takes = dmt_chance(&r, 50);
        shape_random(&r, ndim, shape);
        memcpy(positions, shape, sizeof positions);
        positions[dim] = shape[dim] == 0 ? 0 : dmt_int(&r, 0, 20);
        sim_args args = {.i = {dim, (int)dmt_int(&r, 0, 2), along, dmt_chance(&r, 50)}};
        int indices = sim_array_random(&p, &r, DM_I32, along ? ndim : 1, along ? positions : &positions[dim]);
        int x = sim_array_random(&p, &r, DM_F32, ndim, shape),
            box = sim_array_random(&p, &r, DM_F32, ndim, positions);
        for (int turn = 0; turn < 2; turn++) {
            assert_true(sim_call(&p, takes ? DMI_OP_take : DMI_OP_put, &args, 3,
                                 (int[]){indices, takes ? x : box, takes ? box : x}));
        }
        check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, "take or put");
        sim_end(&p);
    }
}

/* The same where rows are exchanged, with any table that fits the indices. */
static void test_exchange(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(400); i++) {
        enum { MOST = 9 };
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("index exchange", 0, i));
        sim_program p;
        int workers = (int)dmt_int(&r, 1, MOST), ndim = (int)dmt_int(&r, 1, 3),
            dim = (int)dmt_int(&r, 0, ndim - 1);
        sim_begin(&p, workers);
        p.profile.gpu = dmt_chance(&r, 50);
        int64_t shape[DM_MAX_DIMS] = {0}, positions[DM_MAX_DIMS], table[MOST * MOST] = {0};
        bool takes = dmt_chance(&r, 50);
        shape_random(&r, ndim, shape);
        shape[dim] = DMI_MAX(shape[dim], 1);
        memcpy(positions, shape, sizeof positions);
        positions[dim] = dmt_int(&r, 0, 30);
        dmi_layout_spec lines = {.ndim = ndim}, box = {.ndim = ndim}, one = {.ndim = 1};
        for (int d = 0; d < ndim; d++) {
            lines.shape[d] = shape[d];
            box.shape[d] = positions[d];
            lines.grid[d] = box.grid[d] = d == dim ? workers : 1;
        }
        lines.order[dim] = dmt_chance(&r, 50) ? DMI_ORDER_CYCLIC : DMI_ORDER_CONTIGUOUS;
        lines.block[dim] = dmt_int(&r, 0, 3);
        one.shape[0] = positions[dim];
        one.grid[0] = workers;
        int indices = sim_array(&p, DM_I16, &one), x = sim_array(&p, DM_F32, &lines),
            v = sim_array(&p, DM_F32, &box);
        for (int w = 0; w < workers; w++) {
            for (int64_t k = dmi_desc_local_count(&p.array[indices].desc, w); k > 0; k--) {
                table[w * workers + dmt_int(&r, 0, workers - 1)]++;
            }
        }
        sim_args args = {.i = {dim, (int)dmt_int(&r, 0, 2), 0, dmt_chance(&r, 50)}};
        for (int turn = 0; turn < 2; turn++) {
            assert_true(sim_call(&p, takes ? DMI_OP_take : DMI_OP_put, &args, 3,
                                 (int[]){indices, takes ? x : v, takes ? v : x}));
            p.call[turn].tail = table;
            p.call[turn].tail_bytes = p.call[turn].tail_key = workers * workers * 8;
        }
        check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, "rows");
        sim_end(&p);
    }
}

/* Take where rows are lent, between calls that write them. */
static void test_lend(void **state)
{
    (void)state;
    int64_t lent = 0;
    for (int64_t i = 0; i < dmt_case_count(400); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("index lend", 0, i));
        sim_program p;
        int workers = (int)dmt_int(&r, 1, 9), ndim = (int)dmt_int(&r, 1, 3),
            dim = (int)dmt_int(&r, 0, ndim - 1);
        sim_begin(&p, workers);
        int64_t shape[DM_MAX_DIMS] = {0}, positions[DM_MAX_DIMS];
        bool along = dmt_chance(&r, 50);
        shape_random(&r, ndim, shape);
        shape[dim] = DMI_MAX(shape[dim], 1);
        memcpy(positions, shape, sizeof positions);
        positions[dim] = dmt_int(&r, 0, 30);
        dmi_layout_spec lines = {.ndim = ndim};
        for (int d = 0; d < ndim; d++) {
            lines.shape[d] = shape[d];
            lines.grid[d] = d == dim ? (int)dmt_int(&r, 1, workers) : 1;
        }
        lines.order[dim] = dmt_chance(&r, 50) ? DMI_ORDER_CYCLIC : DMI_ORDER_CONTIGUOUS;
        lines.block[dim] = dmt_int(&r, 0, 3);
        int x = sim_array(&p, DM_F32, &lines);
        int indices = sim_array_random(&p, &r, DM_I16, along ? ndim : 1, along ? positions : &positions[dim]);
        int box = sim_array_random(&p, &r, DM_F32, ndim, positions),
            other = sim_array_random(&p, &r, DM_F32, ndim, shape);
        sim_args args = {.i = {dim, (int)dmt_int(&r, 0, 2), along, 0, DMI_WAY_LENT}};
        assert_true(sim_call(&p, DMI_OP_copy, &(sim_args){.i = {0}}, 2, (int[]){other, x}));
        assert_true(sim_call(&p, DMI_OP_take, &args, 3, (int[]){indices, x, box}));
        assert_true(sim_call(&p, DMI_OP_copy, &(sim_args){.i = {0}}, 2, (int[]){other, x}));
        dmi_indexing t;
        dmi_indexing_of(&p.call[1], &t);
        if (dmi_rows_lent(&t, &p.profile)) {
            check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, "lent rows");
            lent++;
        }
        sim_end(&p);
    }
    assert_true(lent > dmt_case_count(400) / 8);
}

/* Counts and the first index outside, kernel by kernel. */
static void test_kernel(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(500); i++) {
        enum { MOST = 40 };
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("index_count kernel", 0, i));
        int32_t x[MOST];
        int64_t n = dmt_int(&r, 0, MOST), row[1 + 8], want[1 + 8] = {INT64_MAX};
        dmi_index_count d = {.dtype = DM_I32, .first = true, .shape = {n}};
        d.owner = (dmi_index_owner){
            .n = dmt_int(&r, 1, 30), .origin = dmt_int(&r, 0, 5), .block = dmt_int(&r, 1, 9), .g = 8};
        d.region = (dmi_region){.ndim = 1, .dim = {dmi_dimset_interval(0, n)}, .stride = {1}, .count = n};
        for (int64_t k = 0; k < n; k++) {
            x[k] = (int32_t)dmt_int(&r, -d.owner.n - 1, d.owner.n + (dmt_chance(&r, 3) ? 0 : -1));
            x[k] += x[k] == -d.owner.n - 1 && !dmt_chance(&r, 10);
            bool inside = x[k] >= -d.owner.n && x[k] < d.owner.n;
            int64_t element = x[k] < 0 ? x[k] + d.owner.n : x[k];
            if (inside) {
                want[1 + (element + d.owner.origin) / d.owner.block % d.owner.g]++;
            } else if (want[0] == INT64_MAX) {
                want[0] = k;
            }
        }
        dmi_kernel_call call = {.desc = &d, .at = {row, x}};
        assert_int_equal(dmi_index_count_cpu(&call), DM_OK);
        assert_memory_equal(row, want, sizeof row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans), cmocka_unit_test(test_fetch),
                                       cmocka_unit_test(test_exchange), cmocka_unit_test(test_lend),
                                       cmocka_unit_test(test_kernel)};
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
