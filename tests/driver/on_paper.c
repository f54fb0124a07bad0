/* With DMATH_TEST_PAPER set, every call that the tests of the operations make is simulated too when
 * worker 0 plans it: the plans of all endpoints, with the call's own layouts, arguments and tail. And workers that hold no part of
 * an operand have steps where the op's row lacks DMI_MEMBERS, and none where it has it. */
#include "driver/touches.h"

#include "ops/ops.h"
#include "sim/simulate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TOLD = 10, FIRST = 100, THEN = 50 }; /* of each op the first plans, and then one of so many */
/* Ops whose tests take long to begin: tests/ops.cmake has those tests run on paper as they are. And what is
 * only planned as a call of a program. */
static const int elsewhere[] = {DMI_OP_apply, DMI_OP_program, DMI_OP_load, DMI_OP_save, DMI_OP_joined};
static atomic_int found, plans[DMI_OPS], calls[DMI_OPS];
static atomic_int idle[DMI_OPS], busy[DMI_OPS]; /* plans of workers that hold no part: without steps, with steps */
static _Thread_local bool inside;

dm_status __real_dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out);
dm_status __wrap_dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out);

static void simulate(const dmi_call *call, const dmi_profile *profile)
{
    dmi_sim_report report;
    dmi_sim_program program = {.profile = profile,
                               .call = call,
                               .calls = 1,
                               .orders = DMI_SIM_GREEDY | DMI_SIM_RANDOM,
                               .rules = (1 << DMI_SIM_RULES) - 1,
                               .seeds = 1,
                               .only = -1};
    bool ok = dmi_simulate(&program, &report) == DM_OK;
    atomic_fetch_add(&calls[call->op], 1);
    if ((!ok || report.findings > 0) && atomic_fetch_add(&found, 1) < MOST_TOLD) {
        fprintf(stderr, "on paper: %s of %d workers: %s\n", dmi_ops[call->op].name, profile->workers,
                ok ? report.text : dmi_error_text());
    }
}

static void plan_others(const dmi_call *call, const dmi_profile *profile)
{
    uint64_t members = 0;
    for (int i = 0; i < call->noperand; i++) {
        members |= call->operand[i].mode ? call->operand[i].desc.layout->members : 0;
    }
    for (int w = 0; w < DMI_MIN(profile->workers, 64); w++) {
        dmi_plan *plan = NULL;
        if (!(members >> w & 1) && __real_dmi_plan_make(call, profile, w, &plan) == DM_OK) {
            atomic_fetch_add(plan->nstep > 0 ? &busy[call->op] : &idle[call->op], 1);
            dmi_plan_release(plan);
        }
    }
}

/* Of a program that a group runs, only the group asks whether it runs again. */
static bool of_some(const dmi_call *call, const dmi_profile *profile)
{
    uint64_t members = (uint32_t)call->args.i[0] | (uint64_t)(uint32_t)call->args.i[1] << 32;
    uint64_t all = ~UINT64_C(0) >> (64 - DMI_MIN(profile->workers, 64));
    return call->op == DMI_OP_until && (members & all) != all;
}

/* The linker gives it to every caller of dmi_plan_make. */
dm_status __wrap_dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    dm_status status = __real_dmi_plan_make(call, profile, me, out);
    if (status == DM_OK && me == 0 && !inside && getenv("DMATH_TEST_PAPER") && !of_some(call, profile)) {
        int before = atomic_fetch_add(&plans[call->op], 1);
        inside = true;
        if (before < FIRST || before % THEN == 0) {
            simulate(call, profile);
            plan_others(call, profile);
        }
        inside = false;
    }
    return status;
}

static bool is_elsewhere(int op)
{
    bool is = false;
    for (int i = 0; i < DMI_COUNT(elsewhere); i++) {
        is = is || elsewhere[i] == op;
    }
    return is;
}

int dmt_paper_end(int all)
{
    int wrong = atomic_load(&found), ops = 0;
    long total = 0;
    for (int op = 0; op < DMI_OPS; op++) {
        ops += atomic_load(&calls[op]) > 0;
        total += atomic_load(&calls[op]);
        if (all && !atomic_load(&calls[op]) && !is_elsewhere(op)) {
            wrong++;
            fprintf(stderr, "on paper: no test has planned %s\n", dmi_ops[op].name);
        }
        bool members = dmi_ops[op].attributes & DMI_MEMBERS, has = atomic_load(&busy[op]) > 0;
        if (all && !is_elsewhere(op) && (members ? has : !has && atomic_load(&idle[op]) > 0)) {
            wrong++;
            fprintf(stderr, "on paper: %s has %s steps at workers that hold no part, but its row says %sDMI_MEMBERS\n",
                    dmi_ops[op].name, has ? "some" : "no", members ? "" : "no ");
        }
    }
    printf("%ld calls of %d ops on paper, %d complaints\n", total, ops, wrong);
    return wrong;
}
