/* The plans of many workers: one of 1024, others of 512, which have a quarter of the steps. */
#include "sim_programs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LARGE = 256, HALF = 128 }; /* sanitizers take their time */
#else
enum { LARGE = 1024, HALF = 512 };
#endif

static void product(int workers, int64_t n, bool b_rows, int form, double beta, unsigned rules,
                    const char *what)
{
    sim_program p;
    sim_begin(&p, workers);
    p.profile.gemm_algorithm = form;
    p.profile.pace_bytes = b_rows; /* these are paced */
    int a = sim_matrix(&p, DM_F32, n, n, workers, 1, 0);
    int b = sim_matrix(&p, DM_F32, n, n, b_rows ? workers : 1, b_rows ? 1 : workers, 0);
    int c = sim_matrix(&p, DM_F32, n, n, workers, 1, 0);
    assert_true(sim_gemm(&p, 0, 0, beta, a, b, c));
    check_and_tell(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, rules, 1, what);
}

enum { DIRECT = 1 << DMI_SIM_DIRECT, STRICT = 1 << DMI_SIM_RENDEZVOUS };

static void test_large_columns(void **state)
{
    (void)state;
    product(HALF, HALF, false, DMI_GEMM_TWO_BLOCK, 0, DIRECT | STRICT, "large: b by columns, two_block");
}

static void test_large_columns_auto(void **state)
{
    (void)state;
    product(LARGE, LARGE + 76, false, DMI_GEMM_AUTO, 1, STRICT, "large: b by columns, auto, ragged");
}

static void test_large_rows(void **state)
{
    (void)state;
    product(HALF, HALF, true, DMI_GEMM_AUTO, 0, STRICT, "large: b by rows, auto");
}

static void test_large_rows_two_block(void **state)
{
    (void)state;
    product(HALF, 2 * HALF, true, DMI_GEMM_TWO_BLOCK, 1, STRICT, "large: b by rows, two_block");
}

static void test_large_ring(void **state)
{
    (void)state;
    product(HALF, HALF, false, DMI_GEMM_RING, 0, DIRECT | STRICT, "large: b by columns, ring");
    product(LARGE / 4, LARGE, true, DMI_GEMM_RING, 1, STRICT, "large: b by rows, ring");
}

/* On 2 hosts with 8 workers each, all but one of the 16 blocks go over each boundary, once; else 8 times 8
 * would. */
static void test_hosts(void **state)
{
    (void)state;
    enum { WORKERS = 16, SIDE = 64 };
    int host_of[WORKERS];
    sim_program p;
    sim_begin(&p, WORKERS);
    for (int w = 0; w < WORKERS; w++) {
        host_of[w] = w / 8;
    }
    p.profile.host_of = host_of;
    int a = sim_matrix(&p, DM_F32, SIDE, SIDE, WORKERS, 1, 0),
        b = sim_matrix(&p, DM_F32, SIDE, SIDE, 1, WORKERS, 0),
        c = sim_matrix(&p, DM_F32, SIDE, SIDE, WORKERS, 1, 0);
    assert_true(sim_gemm(&p, 0, 0, 0, a, b, c));
    int64_t far = 0;
    for (int w = 0; w < WORKERS; w++) {
        dmi_plan *plan;
        assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, w, &plan), DM_OK);
        assert_string_equal(plan->algorithm, "ring");
        for (int i = 0; i < plan->nstep; i++) {
            const dmi_step *step = &plan->step[i];
            far += step->kind == DMI_STEP_PUSH && host_of[step->peer] != host_of[w] ? step->bytes : 0;
        }
        dmi_plan_release(plan);
    }
    assert_int_equal(far, 2 * (WORKERS - 1) * SIDE * SIDE / WORKERS * 4);
    check_and_tell(&p, ALL_ORDERS, ALL_RULES, 2, "16 on 2 hosts: ring");
}

/* Gradients: a row a worker, summed into copies. n elements of each worker's row and of the result, in so many
 * copies; twice, so that the second command meets the memory of the first. */
static void gradients(int workers, int copies, int64_t n, int algorithm, int64_t piece, unsigned orders,
                      unsigned rules, const char *what)
{
    sim_program p;
    sim_begin(&p, workers);
    p.profile.reduce_algorithm = algorithm;
    p.profile.reduce_chunk = piece;
    int x = sim_matrix(&p, DM_F32, workers, n, workers, 1, 0);
    dmi_layout_spec line = {.ndim = 1, .shape = {n}, .grid = {workers / copies}, .replicas = copies};
    int out = sim_array(&p, DM_F32, &line);
    sim_args down = {.s = {1, 1}, .i = {1}};
    assert_true(sim_call(&p, DMI_OP_sum, &down, 2, (int[]){x, out}));
    assert_true(sim_call(&p, DMI_OP_sum, &down, 2, (int[]){x, out}));
    check_and_tell(&p, orders, rules, 1, what);
}

static void test_gradients(void **state)
{
    (void)state;
    enum { MANY = LARGE / 4 };
    gradients(MANY, MANY, 3 * MANY + 5, DMI_REDUCE_SCATTER, 0, DMI_SIM_GREEDY | DMI_SIM_RANDOM, DIRECT | STRICT,
              "gradients in slices, ragged");
    gradients(MANY, MANY, MANY / 2, DMI_REDUCE_SCATTER, 0, DMI_SIM_GREEDY, STRICT,
              "fewer elements than workers");
    gradients(MANY, MANY, 64, DMI_REDUCE_AUTO, 0, DMI_SIM_GREEDY | DMI_SIM_RANDOM, DIRECT | STRICT,
              "small gradients, at once");
    gradients(48, 48, 4800, DMI_REDUCE_SCATTER, 100, ALL_ORDERS, ALL_RULES, "48: four pieces");
    gradients(48, 4, 4800, DMI_REDUCE_SCATTER, 100, ALL_ORDERS, ALL_RULES, "48: four copies");
}

static void form_of_64(int form, int a_rows, int b_rows, int c_rows, int64_t cyclic, const char *what)
{
    sim_program p;
    sim_begin(&p, 64);
    p.profile.gemm_algorithm = form;
    int rows[3] = {a_rows, b_rows, c_rows}, id[3];
    for (int i = 0; i < 3; i++) {
        id[i] = sim_matrix(&p, i == 1 ? DM_F64 : DM_F32, 200, 200, rows[i], 64 / rows[i], cyclic);
    }
    assert_true(sim_gemm(&p, cyclic != 0, 0, 2, id[0], id[1], id[2]));
    check_and_tell(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM | DMI_SIM_LAST, ALL_RULES, 2, what);
}

static void test_forms_of_64(void **state)
{
    (void)state;
    form_of_64(DMI_GEMM_CYCLIC, 64, 1, 64, 0, "64: cyclic");
    form_of_64(DMI_GEMM_STATIONARY, 64, 64, 64, 0, "64: stationary, rows");
    form_of_64(DMI_GEMM_STATIONARY, 8, 8, 8, 0, "64: stationary, grid 8x8");
    form_of_64(DMI_GEMM_AUTO, 8, 8, 8, 5, "64: auto, cyclic grid 8x8");
    form_of_64(DMI_GEMM_CONTRACT, 1, 64, 8, 0, "64: contract into a grid");
    form_of_64(DMI_GEMM_CONTRACT, 1, 8, 8, 0, "64: contract, b brought");
    form_of_64(DMI_GEMM_AUTO, 1, 64, 64, 0, "64: auto, k spread");
}

/* From rows to columns everybody sends in every round: a push waits for what came in the rounds before, and
 * smaller pushes for nothing. Where everybody sends in one round only, into rows of a rotated list, nobody
 * waits. */
static void test_in_step(void **state)
{
    (void)state;
    enum { WORKERS = 5, SIDE = 20, BYTES = SIDE / WORKERS * SIDE / WORKERS * 4 };
    sim_args none = {.i = {0}};
    for (int which = 0; which < 3; which++) {
        sim_program p;
        sim_begin(&p, WORKERS);
        p.profile.pace_bytes = which == 1 ? BYTES + 1 : 1;
        int from = sim_matrix(&p, DM_F32, SIDE, SIDE, WORKERS, 1, 0), to;
        if (which == 2) {
            dmi_layout_spec spec = {.ndim = 2,
                                    .shape = {SIDE, SIDE},
                                    .grid = {WORKERS, 1},
                                    .workers = (int[]){3, 0, 4, 2, 1},
                                    .nworkers = WORKERS};
            to = sim_array(&p, DM_F32, &spec);
        } else {
            to = sim_matrix(&p, DM_F32, SIDE, SIDE, 1, WORKERS, 0);
        }
        assert_true(sim_call(&p, DMI_OP_copy, &none, 2, (int[]){from, to}));
        for (int w = 0; w < WORKERS; w++) {
            dmi_plan *plan;
            uint32_t pushes = 0;
            assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, w, &plan), DM_OK);
            for (int i = 0; i < plan->nstep; i++) {
                const dmi_step *step = &plan->step[i];
                if (step->kind == DMI_STEP_PUSH) {
                    assert_int_equal(step->wait[DMI_LANE_RECV], which == 0 ? pushes : 0);
                    pushes++;
                }
            }
            assert_int_equal(pushes, which == 2 ? 1 : WORKERS - 1);
            dmi_plan_release(plan);
        }
        check(&p, ALL_ORDERS, ALL_RULES, 2, "in step");
        sim_end(&p);
    }
}

static void test_ops_of_64(void **state)
{
    (void)state;
    sim_program p;
    sim_begin(&p, 64);
    p.profile.one_space = false;
    p.profile.chunk = 512;
    int rows = sim_matrix(&p, DM_F32, 500, 130, 64, 1, 0), cols = sim_matrix(&p, DM_F64, 500, 130, 1, 64, 0);
    int grid = sim_matrix(&p, DM_BF16, 500, 130, 8, 8, 3), turned = sim_matrix(&p, DM_F32, 130, 500, 16, 4, 0);
    dmi_layout_spec line = {.ndim = 1, .shape = {130}, .grid = {16}, .replicas = 4}, one = {.ndim = 0};
    int row = sim_array(&p, DM_F32, &line), scalar = sim_array(&p, DM_F64, &one);
    sim_args none = {.i = {0}}, turn = {.i = {2, 1, 0}}, both = {.s = {1, 2}};
    sim_args down = {.s = {1, 2}, .i = {1}}, all = {.s = {1, 0}, .i = {-1, 1}};
    assert_true(sim_call(&p, DMI_OP_write, &none, 1, &rows));
    assert_true(sim_call(&p, DMI_OP_copy, &none, 2, (int[]){rows, cols}));
    assert_true(sim_call(&p, DMI_OP_copy, &none, 2, (int[]){cols, grid}));
    assert_true(sim_call(&p, DMI_OP_copy, &turn, 2, (int[]){grid, turned}));
    assert_true(sim_call(&p, DMI_OP_sum, &down, 2, (int[]){grid, row}));
    assert_true(sim_call(&p, DMI_OP_add, &both, 3, (int[]){row, cols, grid}));
    assert_true(sim_call(&p, DMI_OP_sum, &all, 2, (int[]){turned, scalar}));
    assert_true(sim_call(&p, DMI_OP_read, &none, 1, &turned));
    check_and_tell(&p, ALL_ORDERS, ALL_RULES, 2, "64: a program of eight calls");
}

/* Blocks of one element, thousands between each pair: more steps than a lane holds, were it filled in plan
 * order. */
static void test_many_small_blocks(void **state)
{
    (void)state;
    enum { SIDE = 110, COUNT = SIDE * SIDE };
    sim_program p;
    dmt_random r;
    dmi_sim_report report;
    sim_begin(&p, 2);
    int *map = malloc(COUNT * sizeof *map);
    int id[2];
    dmt_random_start(&r, dmt_seed_of("simulate blocks", 0, 0));
    for (int i = 0; i < 2; i++) {
        dmi_layout_spec spec = {.kind = DMI_LAYOUT_EXPLICIT,
                                .ndim = 2,
                                .shape = {SIDE, SIDE},
                                .block = {i ? SIDE : 1, 1},
                                .map = map,
                                .map_count = i ? SIDE : COUNT};
        for (int k = 0; k < spec.map_count; k++) {
            map[k] = (int)dmt_int(&r, 0, 1);
        }
        id[i] = sim_array(&p, DM_F32, &spec);
    }
    free(map);
    sim_args none = {.i = {0}};
    assert_true(sim_call(&p, DMI_OP_copy, &none, 2, (int[]){id[0], id[1]}));
    check(&p, DMI_SIM_GREEDY, ALL_RULES, 1, "thousands of blocks a pair");
    dmi_sim_program program = {.profile = &p.profile,
                               .call = p.call,
                               .calls = 1,
                               .orders = DMI_SIM_GREEDY,
                               .rules = 1 << DMI_SIM_DIRECT,
                               .room = 1024,
                               .only = -1};
    assert_int_equal(dmi_simulate(&program, &report), DM_OK);
    assert_true(report.found[DMI_SIM_STUCK] > 0 && report.found[DMI_SIM_STUCK] == report.findings);
    sim_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_columns),
        cmocka_unit_test(test_large_columns_auto),
        cmocka_unit_test(test_large_rows),
        cmocka_unit_test(test_large_rows_two_block),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_forms_of_64),
        cmocka_unit_test(test_in_step),
        cmocka_unit_test(test_ops_of_64),
        cmocka_unit_test(test_many_small_blocks),
        cmocka_unit_test(test_large_ring),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests_name("simulate_large", tests, NULL, NULL);
}
