/* Faults planted in plans: the simulator must see them. */
#include "sim_random.h"

typedef struct fault {
    int me, step, lane; /* step < 0: all */
    uint32_t less;      /* taken off the wait; 0: the whole wait */
    bool done;
} fault;

static void weaken(void *context, int me, int call, dmi_plan *plan)
{
    fault *f = context;
    if (me == f->me && call == 0 && f->step < plan->nstep) {
        uint32_t *wait = &plan->step[f->step].wait[f->lane];
        f->done = *wait > f->less;
        *wait = f->less && *wait > f->less ? *wait - f->less : f->done ? 0 : *wait;
    }
}

typedef struct tally {
    int64_t waits, redundant, detected, missed;
} tally;

/* Every wait of one endpoint's plan removed (or made one step weaker) in turn. */
static void weaken_each(const sim_program *p, int me, uint32_t less, tally *t, bool say)
{
    dmi_sim_program program = {.profile = &p->profile, .call = p->call, .calls = p->calls, .only = me};
    dmi_sim_report whole, report;
    dmi_plan *plan = NULL;
    assert_int_equal(dmi_simulate(&program, &whole), DM_OK);
    assert_int_equal(whole.findings, 0);
    assert_int_equal(dmi_plan_make(&p->call[0], &p->profile, me, &plan), DM_OK);
    for (int s = 0; s < plan->nstep; s++) {
        for (int l = 0; l < DMI_LANES; l++) {
            fault f = {me, s, l, less, false};
            program.change = weaken;
            program.context = &f;
            if (plan->step[s].wait[l] <= less) {
                continue;
            }
            assert_int_equal(dmi_simulate(&program, &report), DM_OK);
            assert_true(f.done);
            t->waits++;
            if (report.closure == whole.closure) {
                t->redundant++;
                assert_int_equal(report.findings, 0);
            } else if (report.found[DMI_SIM_RACE] + report.found[DMI_SIM_UNSET] > 0) {
                t->detected++;
            } else {
                t->missed++;
                if (say && t->missed <= 3) {
                    printf("  not needed: %s worker %d step %d (%s) waits for lane %d step %u\n", p->text, me,
                           s, dmi_step_name(plan->step[s].kind), l, plan->step[s].wait[l]);
                }
            }
        }
    }
    dmi_plan_release(plan);
}

static void tell_tally(const char *what, const tally *t)
{
    int64_t matter = t->waits - t->redundant;
    printf("%-38s %6" PRId64 " waits, %6" PRId64 " implied by others, %6" PRId64 " of %6" PRId64
           " seen (%.1f %%)\n",
           what, t->waits, t->redundant, t->detected, matter,
           matter ? 100.0 * (double)t->detected / (double)matter : 100.0);
}

static void mutate_product(int form, int a_rows, int b_rows, int c_rows, dm_dtype b_type, const char *what)
{
    tally t[2] = {{0}, {0}};
    sim_program p;
    sim_begin(&p, 6);
    p.profile.gemm_algorithm = form;
    int rows[3] = {a_rows, b_rows, c_rows}, id[3];
    for (int i = 0; i < 3; i++) {
        id[i] = sim_matrix(&p, i == 1 ? b_type : DM_F32, 30, 30, rows[i], 6 / rows[i], 0);
    }
    assert_true(sim_gemm(&p, 0, 0, 2, id[0], id[1], id[2]));
    for (int me = 0; me < 6; me += 2) {
        weaken_each(&p, me, 0, &t[0], true);
        weaken_each(&p, me, 1, &t[1], false);
    }
    tell_tally(what, &t[0]);
    tell_tally("   the same, one step weaker", &t[1]);
    assert_true(t[0].detected > 0 && t[0].missed == 0);
    sim_end(&p);
}

static void mutate_sum(int rows_each, int64_t piece, const char *what)
{
    tally t = {0};
    sim_program p;
    sim_begin(&p, 5);
    p.profile.reduce_algorithm = DMI_REDUCE_SCATTER;
    p.profile.reduce_chunk = piece;
    int x = sim_matrix(&p, DM_F32, 5 * rows_each, 103, 5, 1, 0);
    dmi_layout_spec line = {.ndim = 1, .shape = {103}, .grid = {1}, .replicas = 5};
    int out = sim_array(&p, DM_F32, &line);
    sim_args down = {.s = {1, 1}, .i = {1}};
    assert_true(sim_call(&p, DMI_OP_sum, &down, 2, (int[]){x, out}));
    for (int me = 0; me < 5; me += 2) {
        weaken_each(&p, me, 0, &t, true);
    }
    tell_tally(what, &t);
    assert_true(t.detected > 0 && t.missed == 0);
    sim_end(&p);
}

static void test_removed_waits(void **state)
{
    (void)state;
    mutate_product(DMI_GEMM_CYCLIC, 6, 1, 6, DM_F32, "waits of cyclic");
    mutate_product(DMI_GEMM_TWO_BLOCK, 6, 6, 6, DM_F32, "waits of two_block, b by rows");
    mutate_product(DMI_GEMM_RING, 6, 1, 6, DM_F32, "waits of ring");
    mutate_product(DMI_GEMM_RING, 6, 6, 6, DM_F32, "waits of ring, b by rows");
    mutate_product(DMI_GEMM_CYCLIC, 6, 1, 6, DM_BF16, "waits of cyclic, b converted");
    mutate_product(DMI_GEMM_STATIONARY, 3, 3, 3, DM_F32, "waits of stationary");
    mutate_product(DMI_GEMM_STATIONARY, 3, 2, 6, DM_F64, "waits of stationary, wider type");
    mutate_product(DMI_GEMM_CONTRACT, 1, 6, 6, DM_F32, "waits of contract");
    mutate_product(DMI_GEMM_CONTRACT, 1, 3, 6, DM_F32, "waits of contract, b brought");
    mutate_sum(1, 0, "waits of elements in slices");
    mutate_sum(1, 40, "waits of elements in pieces");
    mutate_sum(3, 80, "waits of accumulators in pieces");
}

static void test_removed_waits_random(void **state)
{
    (void)state;
    tally t = {0};
    for (int64_t i = 0; i < dmt_case_count(120); i++) {
        sim_program p;
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("simulate waits", 0, i));
        program_random(&p, &r);
        p.profile.pace_bytes = 0; /* paced pushes wait for no hazard */
        if (p.calls > 0) {
            weaken_each(&p, (int)dmt_int(&r, 0, p.profile.workers), 0, &t, true);
        }
        sim_end(&p);
    }
    tell_tally("waits of random plans", &t);
    assert_true(t.detected > 0 && t.detected >= 9 * t.missed);
}

static void small_product(sim_program *p)
{
    sim_begin(p, 4);
    int a = sim_matrix(p, DM_F32, 16, 16, 4, 1, 0), b = sim_matrix(p, DM_F32, 16, 16, 1, 4, 0);
    int c = sim_matrix(p, DM_F32, 16, 16, 4, 1, 0);
    assert_true(sim_gemm(p, 0, 0, 0, a, b, c));
    assert_true(sim_gemm(p, 0, 0, 0, c, b, a));
}

enum {
    DROP_PUSH,
    DROP_EXPECT,
    OTHER_BYTES,
    OTHER_PLACE,
    CIRCLE,
    WRONG_TOTAL,
    TOO_FAR,
    WRONG_MODE,
    LATER,
    NO_KERNEL,
    TOUCHES_NOTHING,
    FAULTS
};

static dmi_step *first_of(dmi_plan *plan, int kind)
{
    for (int i = 0; i < plan->nstep; i++) {
        if (plan->step[i].kind == kind) {
            return &plan->step[i];
        }
    }
    return NULL;
}

static void drop_last(dmi_plan *plan, int kind)
{
    int at = plan->nstep - 1;
    while (plan->step[at].kind != kind) {
        at--;
    }
    int lane = plan->step[at].lane;
    int64_t *bytes = dmi_lane_sends(lane) ? &plan->bytes_sent : &plan->bytes_received;
    int64_t *messages = dmi_lane_sends(lane) ? &plan->messages_sent : &plan->messages_received;
    *bytes -= plan->step[at].bytes;
    --*messages;
    memmove(&plan->step[at], &plan->step[at + 1], (size_t)(plan->nstep - 1 - at) * sizeof *plan->step);
    plan->nstep--;
    uint32_t left = --plan->lane_steps[lane];
    for (int i = 0; i < plan->nstep; i++) { /* so that only the transfer is missing */
        plan->step[i].wait[lane] = plan->step[i].wait[lane] > left ? left : plan->step[i].wait[lane];
    }
}

static void plant(void *context, int me, int call, dmi_plan *plan)
{
    if ((me != 1 && *(int *)context != CIRCLE) || me == 4 || call != 0) {
        return;
    }
    dmi_step *push = first_of(plan, DMI_STEP_PUSH), *expect = first_of(plan, DMI_STEP_EXPECT);
    switch (*(int *)context) {
    case DROP_PUSH:
        drop_last(plan, DMI_STEP_PUSH);
        break;
    case DROP_EXPECT:
        drop_last(plan, DMI_STEP_EXPECT);
        break;
    case OTHER_BYTES:
        push->bytes -= 4;
        plan->bytes_sent -= 4;
        break;
    case OTHER_PLACE:
        ((dmi_copy *)(uintptr_t)push->desc)->dst_offset += 1;
        break;
    case CIRCLE: /* everyone receives before it sends */
        push->wait[DMI_LANE_RECV] = 1;
        break;
    case WRONG_TOTAL:
        plan->flops++;
        break;
    case TOO_FAR:
        expect->ref[0].offset += plan->work_bytes[expect->ref[0].index];
        break;
    case WRONG_MODE:
        first_of(plan, DMI_STEP(gemm))->ref[2].mode = DMI_READ;
        break;
    case NO_KERNEL:
        first_of(plan, DMI_STEP(gemm))->kind = DMI_STEP_KINDS;
        break;
    case TOUCHES_NOTHING:
        ((dmi_gemm *)(uintptr_t)first_of(plan, DMI_STEP(gemm))->desc)->m = 0;
        break;
    case LATER:
        plan->step[0].wait[DMI_LANE_RECV] = plan->lane_steps[DMI_LANE_RECV];
        break;
    default:
        break;
    }
}

static void test_planted(void **state)
{
    (void)state;
    static const int shows[FAULTS] = {
        [DROP_PUSH] = DMI_SIM_PAIR,   [DROP_EXPECT] = DMI_SIM_PAIR,    [OTHER_BYTES] = DMI_SIM_PAIR,
        [OTHER_PLACE] = DMI_SIM_PAIR, [CIRCLE] = DMI_SIM_STUCK,        [WRONG_TOTAL] = DMI_SIM_TOTALS,
        [TOO_FAR] = DMI_SIM_BOUNDS,   [WRONG_MODE] = DMI_SIM_MODE,     [LATER] = DMI_SIM_ORDER,
        [NO_KERNEL] = DMI_SIM_MODE,   [TOUCHES_NOTHING] = DMI_SIM_MODE};
    sim_program p;
    small_product(&p);
    check(&p, ALL_ORDERS, ALL_RULES, 5, "no fault");
    for (int f = 0; f < FAULTS; f++) {
        dmi_sim_report report;
        dmi_sim_program program = {.profile = &p.profile,
                                   .call = p.call,
                                   .calls = p.calls,
                                   .orders = DMI_SIM_GREEDY,
                                   .rules = 1 << DMI_SIM_RENDEZVOUS,
                                   .only = -1,
                                   .change = plant,
                                   .context = &f};
        assert_int_equal(dmi_simulate(&program, &report), DM_OK);
        if (report.found[shows[f]] == 0) {
            fail_msg("fault %d is not seen as %s:\n%s", f, dmi_sim_names[shows[f]], report.text);
        }
        const char *words = f == NO_KERNEL         ? "no kernel of the table"
                            : f == TOUCHES_NOTHING ? "touches nothing"
                                                   : "";
        if (!strstr(report.text, words)) {
            fail_msg("fault %d: the report does not say '%s':\n%s", f, words, report.text);
        }
        if (f == DROP_PUSH || f == DROP_EXPECT) {
            assert_true(report.found[DMI_SIM_STUCK] > 0);
        }
    }
    sim_end(&p);
}

/* Without the waits between calls, the second product races with the first. */
static void test_no_hazards(void **state)
{
    (void)state;
    sim_program p;
    dmi_sim_report report;
    small_product(&p);
    dmi_sim_program program = {
        .profile = &p.profile, .call = p.call, .calls = p.calls, .only = -1, .no_hazards = true};
    assert_int_equal(dmi_simulate(&program, &report), DM_OK);
    assert_true(report.found[DMI_SIM_RACE] > 0);
    sim_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_waits),
        cmocka_unit_test(test_removed_waits_random),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_no_hazards),
    };
    return cmocka_run_group_tests_name("simulate_faults", tests, NULL, NULL);
}
