/* What ops declare in their rows beside their operands: a cached replica, a workspace limit, an algorithm that
 * an option may force; and that plans follow. */
#include "ops/product/gemm.h"
#include "sim_programs.h"

/* The operand of a row that is called so; -1: none. */
static int operand_called(const dmi_opdef *op, const char *name)
{
    for (int i = 0; i < DMI_MAX_OPERANDS && op->operand[i].name; i++) {
        if (strcmp(op->operand[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void test_replica(void **state)
{
    (void)state;
    for (int op = 0; op < DMI_OPS; op++) {
        const dmi_operand_rule *rule = dmi_ops[op].operand;
        int at = dmi_op_replica(op);
        assert_int_equal(at, operand_called(&dmi_ops[op], "replica"));
        if (at >= 0) {
            assert_true(at > 0 && rule[at - 1].mode & DMI_WRITE); /* behind the output */
            assert_int_equal(rule[at].mode, DMI_WRITE);
            assert_true(at + 1 == DMI_MAX_OPERANDS || !rule[at + 1].name); /* last */
        }
    }
    assert_int_equal(dmi_op_replica(DMI_OP_gemm), DMI_GEMM_REPLICA);
    assert_int_equal(operand_called(&dmi_ops[DMI_OP_gemm], "c"), DMI_GEMM_C);
    assert_int_equal(dmi_op_replica(DMI_OP_apply), -1); /* it has four operands too */
    assert_int_equal(dmi_op_replica(DMI_OP_map), -1);
}

/* An op that can be forced refuses with a reason; the others do not look at what is forced. */
static void test_forcible(void **state)
{
    (void)state;
    for (int forced = DMI_GEMM_AUTO; forced <= DMI_GEMM_RING; forced++) {
        sim_program p;
        sim_begin(&p, 3);
        p.profile.forced = forced != DMI_GEMM_AUTO;
        p.profile.gemm_algorithm = forced;
        int a = sim_matrix(&p, DM_F64, 12, 12, 3, 1, 0), b = sim_matrix(&p, DM_F64, 12, 12, 1, 3, 2);
        int c = sim_matrix(&p, DM_F64, 12, 12, 1, 3, 0);
        assert_true(sim_gemm(&p, 0, 0, 0, a, b, c));
        assert_true(sim_call(&p, DMI_OP_add, &(sim_args){.s = {1, 1}}, 3, (int[]){a, b, c}));
        for (int i = 0; i < p.calls; i++) {
            dmi_plan *plan = NULL;
            dm_status status = dmi_plan_make(&p.call[i], &p.profile, 0, &plan);
            bool may_refuse = p.profile.forced && dmi_ops[p.call[i].op].attributes & DMI_FORCIBLE;
            assert_true(status == DM_OK || (status == DM_ERR_UNSUPPORTED && may_refuse));
            dmi_plan_release(plan);
        }
        sim_end(&p);
    }
}

static int64_t workspace_of(sim_program *p, int64_t limit)
{
    int64_t bytes = 0;
    p->call[0].workspace_limit = limit;
    for (int w = 0; w < p->profile.workers; w++) {
        dmi_plan *plan = NULL;
        assert_int_equal(dmi_plan_make(&p->call[0], &p->profile, w, &plan), DM_OK);
        bytes = DMI_MAX(bytes, plan->workspace);
        dmi_plan_release(plan);
    }
    return bytes;
}

/* A lower limit makes a plan of less workspace where the row says so, and the same plan where it does not. */
static void test_limited(void **state)
{
    (void)state;
    enum { N = 256 };
    for (int product = 0; product < 2; product++) {
        sim_program p;
        sim_begin(&p, 4);
        int a = sim_matrix(&p, DM_F64, N, N, 2, 2, 0), b = sim_matrix(&p, DM_F64, N, N, 4, 1, 0);
        int c = sim_matrix(&p, DM_F64, N, N, 2, 2, 0);
        assert_true(product ? sim_gemm(&p, 0, 0, 0, a, b, c)
                            : sim_call(&p, DMI_OP_add, &(sim_args){.s = {1, 1}}, 3, (int[]){a, b, c}));
        int64_t all = workspace_of(&p, 0), limit = all / 4, less = workspace_of(&p, limit);
        assert_true(all > 0);
        if (dmi_ops[p.call[0].op].attributes & DMI_LIMITED) {
            assert_true(less <= limit);
        } else {
            assert_int_equal(less, all);
        }
        sim_end(&p);
    }
}

/* What a call asks for is part of the plan key: another limit or another type finds no plan made without. */
static void test_plan_key(void **state)
{
    (void)state;
    sim_program p;
    dmi_plan_cache *cache = NULL;
    sim_begin(&p, 2);
    int a = sim_matrix(&p, DM_F32, 8, 8, 2, 1, 0), b = sim_matrix(&p, DM_F32, 8, 8, 2, 1, 0);
    int c = sim_matrix(&p, DM_F32, 8, 8, 2, 1, 0);
    assert_true(sim_gemm(&p, 0, 0, 0, a, b, c));
    assert_int_equal(dmi_plan_cache_create(8, dmi_plan_make, &cache), DM_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            dmi_plan *plan = NULL;
            bool reused = false;
            dmi_call call = p.call[0];
            call.workspace_limit = i == 1 ? 4096 : i == 2 ? INT64_C(4096) << 32 : 0;
            call.compute = i == 3 ? DMI_COMPUTE_TF32 : DMI_COMPUTE_DEFAULT;
            assert_int_equal(dmi_plan_cache_get(cache, &call, &p.profile, 0, &plan, &reused), DM_OK);
            assert_int_equal(reused, round == 1);
            assert_int_equal(plan->compute != NULL, i == 3);
            dmi_plan_release(plan);
        }
    }
    dmi_plan_cache_destroy(cache);
    sim_end(&p);
}

/* A product into an explicit layout has a temporary with a layout of its own: no plan keeps it (the sanitizers
 * look), and nothing moves of which a replica could serve. */
static void test_temporary(void **state)
{
    (void)state;
    static const int owner[4] = {2, 0, 1, 2};
    sim_program p;
    sim_begin(&p, 3);
    dmi_layout_spec spec = {
        .kind = DMI_LAYOUT_EXPLICIT, .ndim = 2, .shape = {8, 8}, .block = {4, 4}, .map = owner, .map_count = 4};
    int a = sim_matrix(&p, DM_F32, 8, 8, 3, 1, 0), b = sim_matrix(&p, DM_F32, 8, 8, 3, 1, 0),
        c = sim_array(&p, DM_F32, &spec);
    assert_true(sim_gemm(&p, 0, 0, 0, a, b, c));
    for (int w = 0; w < 3; w++) {
        dmi_plan *plan = NULL;
        assert_int_equal(dmi_plan_make(&p.call[0], &p.profile, w, &plan), DM_OK);
        assert_true(plan->moving == -1 && plan->workspace > 0);
        dmi_plan_release(plan);
    }
    sim_end(&p);
}

/* Ops that only the library makes refuse to be called. */
static void test_own_ops(void **state)
{
    (void)state;
    for (int op = 0; op < DMI_OPS; op++) {
        if (op == DMI_OP_program || op == DMI_OP_until) {
            dmi_call call = {.op = op};
            assert_int_equal(dmi_ops[op].check(&call), DM_ERR_INTERNAL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica),  cmocka_unit_test(test_forcible),  cmocka_unit_test(test_limited),
        cmocka_unit_test(test_plan_key), cmocka_unit_test(test_temporary), cmocka_unit_test(test_own_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
