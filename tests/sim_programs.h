/* Programs of calls for the simulator: arrays, views and calls made without a session. */
#ifndef DMT_SIM_PROGRAMS_H
#define DMT_SIM_PROGRAMS_H

#include "ops/chain.h"
#include "ops/ops.h"
#include "sim/simulate.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIM_ARRAYS = 16, SIM_CALLS = 8, SIM_CHAINS = 2, SIM_MAP = 4096 };

typedef struct sim_program {
    dmi_profile profile;
    dmi_layout *layout[SIM_ARRAYS];
    dmi_operand array[SIM_ARRAYS]; /* arrays and views; mode unset */
    int arrays, layouts;
    dmi_call call[SIM_CALLS];
    dmi_map_program tail[SIM_CALLS]; /* of calls with an expression */
    int calls;
    dmi_chain_made made[SIM_CHAINS]; /* whose tails calls have */
    int chains;
    char text[1024]; /* the calls, for messages */
} sim_program;

static inline void sim_begin(sim_program *p, int workers)
{
    memset(p, 0, sizeof *p);
    p->profile = (dmi_profile){.workers = workers, .one_space = true, .chunk = 2 << 20};
}

static inline void sim_end(sim_program *p)
{
    for (int i = 0; i < p->layouts; i++) {
        dmi_layout_destroy(p->layout[i]);
    }
}

/* An array of a layout; its number. */
static inline int sim_array(sim_program *p, dm_dtype dtype, dmi_layout_spec *spec)
{
    spec->session_workers = p->profile.workers;
    if (dmi_layout_create(spec, &p->layout[p->layouts]) != DM_OK) {
        fprintf(stderr, "layout: %s\n", dmi_error_text());
        abort();
    }
    int id = p->arrays++;
    p->array[id] = (dmi_operand){.desc = dmi_desc_whole(dtype, p->layout[p->layouts], (uint32_t)p->layouts + 1),
                                 .id = (uint64_t)id + 1,
                                 .memory = (uint32_t)id + 1};
    p->layouts++;
    return id;
}

/* A matrix over a grid of workers; cyclic: in blocks of that many rows and columns, 0: contiguous. */
static inline int sim_matrix(sim_program *p, dm_dtype dtype, int64_t rows, int64_t cols, int grid_rows,
                             int grid_cols, int64_t cyclic)
{
    dmi_layout_spec spec = {.ndim = 2, .shape = {rows, cols}, .grid = {grid_rows, grid_cols}};
    for (int d = 0; d < 2 && cyclic > 0; d++) {
        spec.block[d] = cyclic;
        spec.order[d] = DMI_ORDER_CYCLIC;
    }
    return sim_array(p, dtype, &spec);
}

/* A rectangle of an array. */
static inline int sim_view(sim_program *p, int of, const int64_t *lo, const int64_t *extent)
{
    int id = p->arrays++;
    p->array[id] = p->array[of];
    p->array[id].id = (uint64_t)id + 1;
    for (int d = 0; d < p->array[of].desc.ndim; d++) {
        p->array[id].desc.lo[d] += lo[d];
        p->array[id].desc.extent[d] = extent[d];
    }
    return id;
}

/* Adds a call if the op's check takes it. */
/* A call's numbers (alpha, beta) and what its plan depends on. */
typedef struct sim_args {
    double s[2];
    int32_t i[DMI_ARG_INTS];
} sim_args;

static inline bool sim_call_with(sim_program *p, int op, const sim_args *args, int count, const int *arrays,
                                 const dmi_map_program *tail)
{
    dmi_call *call = &p->call[p->calls];
    *call = (dmi_call){.op = op, .noperand = count};
    if (tail) {
        p->tail[p->calls] = *tail;
        call->tail = &p->tail[p->calls];
        call->tail_bytes = call->tail_key = (int64_t)dmi_map_program_bytes(tail);
    }
    memcpy(call->args.i, args->i, sizeof args->i);
    dmi_call_factors(call, args->s[0], args->s[1]);
    for (int i = 0; i < count; i++) {
        const dmi_operand_rule *rule = &dmi_ops[op].operand[i];
        call->operand[i] = p->array[arrays[i]];
        call->operand[i].mode = rule->mode;
        if (!(rule->dtypes >> call->operand[i].desc.dtype & 1)) {
            return false;
        }
    }
    if (dmi_ops[op].check(call) != DM_OK) {
        return false;
    }
    size_t used = strlen(p->text);
    snprintf(p->text + used, sizeof p->text - used, "%s(%d %d %d) ", dmi_ops[op].name, arrays[0],
             count > 1 ? arrays[1] : -1, count > 2 ? arrays[2] : -1);
    p->calls++;
    return true;
}

static inline bool sim_call(sim_program *p, int op, const sim_args *args, int count, const int *arrays)
{
    return sim_call_with(p, op, args, count, arrays, NULL);
}

static inline bool sim_gemm(sim_program *p, int trans_a, int trans_b, double beta, int a, int b, int c)
{
    sim_args args = {.s = {1.5, beta}, .i = {trans_a, trans_b, beta == 0, 0}};
    return sim_call(p, DMI_OP_gemm, &args, 3, (int[]){a, b, c});
}

static inline dm_status sim_run(const sim_program *p, unsigned orders, unsigned rules, int seeds,
                                dmi_sim_report *report)
{
    dmi_sim_program program = {.profile = &p->profile,
                               .call = p->call,
                               .calls = p->calls,
                               .orders = orders,
                               .rules = rules,
                               .seeds = seeds,
                               .only = -1};
    return dmi_simulate(&program, report);
}

/* --- checks of the tests --- */

enum {
    ALL_ORDERS = DMI_SIM_GREEDY | DMI_SIM_ROUND | DMI_SIM_RANDOM | DMI_SIM_LAST,
    ALL_RULES = (1 << DMI_SIM_RULES) - 1
};

static inline void check(const sim_program *p, unsigned orders, unsigned rules, int seeds, const char *what)
{
    dmi_sim_report report;
    dm_status status = sim_run(p, orders, rules, seeds, &report);
    if (status != DM_OK) {
        fail_msg("%s: %s: %s", what, p->text, dmi_error_text());
    }
    if (report.findings != 0) {
        fail_msg("%s, %d workers: %s: %" PRId64 " findings\n%s", what, p->profile.workers, p->text,
                 report.findings, report.text);
    }
}

static inline void tell(const char *what, const dmi_sim_report *r)
{
    printf("%-34s %8" PRId64 " steps %8" PRId64 " messages, workspace %" PRId64
           "; plans %.2f s, checks %.2f s, runs %.2f s\n",
           what, r->steps, r->messages, r->workspace, r->plan_s, r->local_s, r->run_s);
}

static inline void check_and_tell(sim_program *p, unsigned orders, unsigned rules, int seeds, const char *what)
{
    dmi_sim_report report;
    assert_int_equal(sim_run(p, orders, rules, seeds, &report), DM_OK);
    tell(what, &report);
    if (report.findings != 0) {
        fail_msg("%s: %" PRId64 " findings\n%s", what, report.findings, report.text);
    }
    sim_end(p);
}

#endif
