/* Random programs, run on paper through all checks. */
#include "ops/product/gemm.h"
#include "sim_random.h"

static void test_random(void **state)
{
    (void)state;
    int64_t cases = dmt_case_count(2000), steps = 0;
    dmi_sim_report report;
    for (int64_t i = 0; i < cases; i++) {
        sim_program p;
        dmt_random r;
        char what[64];
        uint64_t seed = dmt_seed_of("simulate", 0, i);
        dmt_random_start(&r, seed);
        program_random(&p, &r);
        snprintf(what, sizeof what, "case %" PRId64, i);
        check(&p, ALL_ORDERS, ALL_RULES, 3, what);
        if (i % 10 == 0) {
            assert_int_equal(sim_run(&p, 0, 0, 0, &report), DM_OK);
            steps += 10 * report.steps;
        }
        sim_end(&p);
    }
    printf("%" PRId64 " programs, about %" PRId64 " steps\n", cases, steps);
}

/* Every form of the product where it can serve, on random layouts. */
static void test_forms(void **state)
{
    (void)state;
    int64_t served[DMI_GEMM_RING + 1] = {0};
    for (int64_t i = 0; i < dmt_case_count(600); i++) {
        sim_program p;
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("simulate forms", 0, i));
        sim_begin(&p, (int)dmt_int(&r, 1, 9));
        product_random(&p, &r);
        p.profile.gemm_workspace = dmt_chance(&r, 30) ? dmt_int(&r, 1, 4096) : 0;
        p.profile.gpu = dmt_chance(&r, 50);
        p.profile.gemm_fused = p.profile.gpu;
        p.call[0].compute = dmt_chance(&r, 50) ? DMI_COMPUTE_TF32 : DMI_COMPUTE_DEFAULT;
        p.profile.pace_bytes = dmt_chance(&r, 50) ? dmt_int(&r, 1, 64) : 0;
        for (int form = DMI_GEMM_AUTO; form <= DMI_GEMM_RING; form++) {
            dmi_plan *plan = NULL;
            p.profile.gemm_algorithm = form;
            if (dmi_plan_make(&p.call[0], &p.profile, 0, &plan) == DM_OK) {
                dmi_plan_release(plan);
                served[form]++;
                check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, dmi_gemm_name(form));
            }
        }
        sim_end(&p);
    }
    for (int form = DMI_GEMM_CYCLIC; form <= DMI_GEMM_RING; form++) {
        printf("%s served %" PRId64 " times\n", dmi_gemm_name(form), served[form]);
        assert_true(served[form] > 0);
    }
}

/* What follows in later phases waits for what the phases before have written: expressions, and factors from arrays, on CPUs
 * and where workers have GPUs, which write the elements of a reduction to a temporary. */
static void test_phases(void **state)
{
    (void)state;
    int64_t served[DMI_OPS] = {0};
    for (int64_t i = 0; i < dmt_case_count(1000); i++) {
        sim_program p;
        dmt_random r;
        char what[64];
        dmt_random_start(&r, dmt_seed_of("simulate phases", 0, i));
        sim_begin(&p, (int)dmt_int(&r, 1, 9));
        p.profile.gpu = dmt_chance(&r, 30);
        p.profile.chunk = dmt_chance(&r, 50) ? 8 : 2 << 20;
        p.profile.reduce_algorithm = (int)dmt_int(&r, DMI_REDUCE_AUTO, DMI_REDUCE_SCATTER);
        (i % 2 ? factors_random : expression_random)(&p, &r);
        snprintf(what, sizeof what, "case %" PRId64, i);
        for (int c = 0; c < p.calls; c++) {
            served[p.call[c].op]++;
        }
        check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, what);
        sim_end(&p);
    }
    static const int ops[] = {DMI_OP_map, DMI_OP_reduce, DMI_OP_sum_by, DMI_OP_gemm_by};
    for (int i = 0; i < 4; i++) {
        printf("%s: %" PRId64 " calls\n", dmi_ops[ops[i]].name, served[ops[i]]);
        assert_true(served[ops[i]] > 50);
    }
}

/* Calls on rectangles of two arrays: those that share elements wait for one another, and no race is left. */
static void test_views(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (int64_t i = 0; i < dmt_case_count(1500); i++) {
        sim_program p;
        dmt_random r;
        char what[64];
        const int64_t shape[] = {6, 8};
        int64_t extent[] = {1, 1};
        int view[8];
        dmt_random_start(&r, dmt_seed_of("simulate views", 0, i));
        sim_begin(&p, (int)dmt_int(&r, 1, 5));
        int array[] = {sim_array_random(&p, &r, DM_F64, 2, shape), sim_array_random(&p, &r, DM_F64, 2, shape)};
        extent[0] = dmt_int(&r, 1, 6);
        extent[1] = dmt_int(&r, 1, 5);
        for (int v = 0; v < 8; v++) {
            int64_t lo[] = {dmt_int(&r, 0, 6 - extent[0]), dmt_int(&r, 0, 8 - extent[1])};
            view[v] = sim_view(&p, array[v % 4 == 0], lo, extent);
        }
        for (int c = 0; c < SIM_CALLS; c++) {
            int from = view[dmt_int(&r, 0, 7)], to = view[dmt_int(&r, 0, 7)];
            sim_args args = {{factor(&r), factor(&r)}, {0}};
            if (dmt_chance(&r, 40)) {
                (void)sim_call(&p, DMI_OP_copy, &(sim_args){{0}, {0}}, 2, (int[]){from, to});
            } else if (dmt_chance(&r, 70)) {
                (void)sim_call(&p, DMI_OP_axpby, &args, 2, (int[]){from, to});
            } else {
                (void)sim_call(&p, DMI_OP_scale, &args, 2, (int[]){array[c % 2], array[c % 2]});
            }
        }
        calls += p.calls;
        snprintf(what, sizeof what, "case %" PRId64, i);
        check(&p, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, what);
        sim_end(&p);
    }
    printf("%" PRId64 " calls\n", calls);
    assert_true(calls > 2 * dmt_case_count(1500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_views),
    };
    return cmocka_run_group_tests_name("simulate", tests, NULL, NULL);
}
