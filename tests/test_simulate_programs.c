/* Recorded programs on paper: calls on temporaries of mixed sizes and lifetimes, which share memory, on random
 * layouts. */
#include "plan/on_device.h"
#include "plan/program.h"
#include "sim_random.h"

enum { BASES = 8, OUTSIDE = 3, ARRAYS = 40, CALLS = 60, LIVE = 7, COLS = 6 };

typedef struct recorded {
    sim_program sim; /* arrays 0 to BASES - 1: what those of the program are like; two more are rectangles of
                        operands */
    dmi_program p;
    dmi_program_array array[ARRAYS];
    dmi_call call[CALLS];
    int live[LIVE], lives;
    int64_t cols; /* 0: COLS */
    int members, member[64]; /* the workers of all arrays; 0: all */
} recorded;

/* A new array, like one of the bases. */
static int add_array(recorded *t, dmt_random *r, bool temporary)
{
    int i = t->p.arrays++;
    t->array[i] = (dmi_program_array){.id = (uint64_t)i + 100,
                                      .desc = t->sim.array[dmt_int(r, 0, BASES - 1)].desc,
                                      .memory = (uint32_t)i + 100,
                                      .mode = DMI_READWRITE,
                                      .temporary = temporary};
    return i;
}

/* Number `at` of sim.array is these rows of array i. */
static void set_operand(recorded *t, int at, int i, int64_t lo, int64_t rows)
{
    const dmi_program_array *a = &t->array[i];
    t->sim.array[at] = (dmi_operand){.desc = a->desc, .id = (uint64_t)i, .memory = a->memory};
    t->sim.array[at].desc.lo[0] = lo;
    t->sim.array[at].desc.extent[0] = rows;
}

static void add_call(recorded *t, int op, int count)
{
    const sim_args args = {.s = {1.5, 1}};
    t->sim.calls = 0;
    t->sim.text[0] = '\0';
    assert_true(sim_call(&t->sim, op, &args, count, (int[]){BASES, BASES + 1}));
    t->call[t->p.calls++] = t->sim.call[0];
}

static int64_t rows_of(const recorded *t, int i)
{
    return t->array[i].desc.layout->shape[0];
}

/* y = x, or y = 1.5 x + y, on some rows. */
static void combine(recorded *t, dmt_random *r, int x, int y)
{
    int64_t rows = dmt_int(r, 1, DMI_MIN(rows_of(t, x), rows_of(t, y)));
    int64_t from = dmt_int(r, 0, rows_of(t, x) - rows), to = dmt_int(r, 0, rows_of(t, y) - rows);
    set_operand(t, BASES, x, from, rows);
    set_operand(t, BASES + 1, y, to, rows);
    add_call(t, dmt_chance(r, 50) ? DMI_OP_copy : DMI_OP_axpby, 2);
}

static void record(recorded *t, dmt_random *r)
{
    for (int i = 0; i < BASES; i++) {
        int64_t shape[] = {dmt_chance(r, 50) ? dmt_int(r, 1, 20) : dmt_int(r, 20, 400),
                           t->cols ? t->cols : COLS};
        assert_int_equal(t->members > 0 ? sim_array_among(&t->sim, r, DM_F64, 2, shape, t->member, t->members)
                                        : sim_array_random(&t->sim, r, DM_F64, 2, shape),
                         i);
    }
    for (int i = 0; i < OUTSIDE; i++) {
        (void)add_array(t, r, false);
    }
    t->p.operands = OUTSIDE;
    while (t->p.calls < CALLS) {
        int some = t->lives > 0 ? (int)dmt_int(r, 0, t->lives - 1) : -1;
        if (some < 0 || (t->lives < LIVE && t->p.arrays < ARRAYS && dmt_chance(r, 50))) {
            int made = t->live[t->lives++] = t->p.arrays < ARRAYS ? add_array(t, r, true) : ARRAYS - 1;
            set_operand(t, BASES, made, 0, rows_of(t, made));
            add_call(t, DMI_OP_fill, 1);
        } else if (dmt_chance(r, 70)) {
            int other =
                dmt_chance(r, 40) ? (int)dmt_int(r, 0, OUTSIDE - 1) : t->live[dmt_int(r, 0, t->lives - 1)];
            if (other != t->live[some]) {
                bool into = dmt_chance(r, 50);
                combine(t, r, into ? other : t->live[some], into ? t->live[some] : other);
            }
        } else {
            t->live[some] = t->live[--t->lives];
        }
    }
    t->p.array = t->array;
    t->p.call = t->call;
}

/* Do workspaces lie beside others in one place? */
static bool is_packed(const dmi_plan *plan)
{
    for (int i = 0; i < plan->nstep; i++) {
        for (int k = 0; k < plan->step[i].nref; k++) {
            if (plan->step[i].ref[k].kind == DMI_REF_WORK && plan->step[i].ref[k].from > 0) {
                return true;
            }
        }
    }
    return false;
}

static void test_programs(void **state)
{
    int packed = 0, cases = (int)dmt_case_count(400);
    (void)state;
    for (int i = 0; i < cases; i++) {
        static recorded t;
        dmt_random r;
        char what[64];
        dmi_plan *plan = NULL;
        memset(&t, 0, sizeof t);
        dmt_random_start(&r, dmt_seed_of("simulate programs", 0, i));
        sim_begin(&t.sim, (int)dmt_int(&r, 1, 5));
        t.sim.profile.gpu = dmt_chance(&r, 30);
        record(&t, &r);
        t.sim.call[0] = t.sim.call[1] = dmi_program_call(&t.p, DMI_OP_program); /* two runs */
        t.sim.calls = 2;
        snprintf(what, sizeof what, "case %d", i);
        check(&t.sim, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, what);
        assert_int_equal(dmi_plan_make(&t.sim.call[0], &t.sim.profile, 0, &plan), DM_OK);
        packed += is_packed(plan);
        dmi_plan_release(plan);
        sim_end(&t.sim);
    }
    printf("%d programs, %d with temporaries side by side at worker 0\n", cases, packed);
    assert_true(cases < 50 || packed > cases / 10);
}

/* --- on the devices alone --- */

enum { RUNS_ALONE = 5, MORE_COLS = 8 * COLS, MOST_EARLY = 12 };
enum { NO_GATE, ARRIVALS_FIRST, OTHER_NUMBER, LOST_PUSH, ONE_PLACE, FAULTS_ALONE };

/* Payloads without bytes that are pushed: counted, or given in the first exchange already. */
typedef struct notices {
    int count;
    bool early;
} notices;

/* Part `at` of a later exchange becomes the first one of this one. */
static void give_early(dmi_plan *plan, dmi_step *first, dmi_step *later, int at)
{
    dmi_exchange *x = (dmi_exchange *)(uintptr_t)first->desc, *y = (dmi_exchange *)(uintptr_t)later->desc;
    dmi_exchange_part *part = dmi_arena_alloc(&plan->arena, ((size_t)first->nref + 1) * sizeof *part);
    dmi_ref *ref = dmi_arena_alloc(&plan->arena, ((size_t)first->nref + 1) * sizeof *ref);
    assert_true(part && ref);
    part[0] = y->part[at];
    ref[0] = later->ref[at];
    memcpy(part + 1, x->part, first->nref * sizeof *part);
    memcpy(ref + 1, first->ref, first->nref * sizeof *ref);
    x->part = part;
    x->pushes++;
    first->ref = ref;
    first->nref++;
    y->pushes--;
    later->nref--;
    memmove(y->part + at, y->part + at + 1, (size_t)(later->nref - at) * sizeof *part);
    memmove(later->ref + at, later->ref + at + 1, (size_t)(later->nref - at) * sizeof *ref);
}

static void find_notices(void *context, int me, int call, dmi_plan *plan)
{
    notices *n = context;
    dmi_step *first = NULL;
    (void)me, (void)call;
    for (int i = 0; i < plan->nstep; i++) {
        dmi_step *step = &plan->step[i];
        const dmi_exchange *x = step->desc;
        if (step->kind == DMI_STEP_EXCHANGE && x->part) {
            for (int k = x->pushes - 1; k >= 0; k--) {
                if (x->part[k].width == 0) {
                    n->count++;
                    if (n->early && first) {
                        give_early(plan, first, step, k);
                    }
                }
            }
            first = first ? first : step;
        }
    }
}

static dmi_sim_program on_devices(recorded *t)
{
    return (dmi_sim_program){.profile = &t->sim.profile,
                             .call = t->sim.call,
                             .calls = 1,
                             .orders = DMI_SIM_GREEDY | DMI_SIM_ROUND | DMI_SIM_RANDOM | DMI_SIM_LAST,
                             .seeds = 3};
}

/* A program alone, in several orders. True: the plans could be made. */
static bool simulate_alone(int number, bool early, notices *n, dmi_sim_report *report)
{
    static recorded t;
    dmt_random r;
    bool fits;
    memset(&t, 0, sizeof t);
    dmt_random_start(&r, dmt_seed_of("simulate programs alone", 0, number));
    sim_begin(&t.sim, (int)dmt_int(&r, 1, 9));
    t.sim.profile.gpu = true;
    t.cols = dmt_chance(&r, 20) ? MORE_COLS : COLS; /* some have payloads that are worth a notice */
    if (dmt_chance(&r, 40)) {                       /* of a group */
        for (int w = 0; w < t.sim.profile.workers; w++) {
            t.member[w] = w;
        }
        dmt_shuffle(&r, t.sim.profile.workers, t.member);
        t.members = (int)dmt_int(&r, 1, t.sim.profile.workers);
    }
    record(&t, &r);
    t.sim.call[0] = dmi_program_call(&t.p, DMI_OP_program);
    dmi_sim_program program = on_devices(&t);
    program.together = dmt_chance(&r, 70);
    program.change = find_notices;
    program.context = n;
    n->early = early;
    assert_int_equal(dmi_simulate_alone(&program, RUNS_ALONE, &fits, report), DM_OK);
    sim_end(&t.sim);
    return fits;
}

static void test_alone(void **state)
{
    int cases = (int)dmt_case_count(400), fitted = 0, given = 0, seen = 0, groups = 0;
    int64_t steps = 0;
    (void)state;
    for (int i = 0; i < cases; i++) {
        dmi_sim_report report;
        notices n = {0};
        fitted += simulate_alone(i, false, &n, &report);
        if (report.findings > 0) {
            printf("case %d: %s", i, report.text);
        }
        assert_int_equal(report.findings, 0);
        steps += report.steps;
        groups += report.members > 1 && report.members < report.workers;
        if (n.count > 0 && given < MOST_EARLY) { /* their senders overwrite what is still in use */
            given++;
            (void)simulate_alone(i, true, &n, &report);
            seen += report.found[DMI_SIM_RACE] > 0;
        }
    }
    printf("%d of %d programs run alone, %d of them of groups, %d steps; notices that are given too early are "
           "seen in "
           "%d of %d programs\n",
           fitted, cases, groups, (int)steps, seen, given);
    assert_true(fitted > cases * 3 / 4); /* others have too many steps */
    assert_true(cases < 400 || (given == MOST_EARLY && seen > given / 2 && groups > cases / 8));
}

/* The first exchange of a plan that has arrivals, or pushes; NULL: there is none. */
static dmi_exchange *exchange_of(dmi_plan *plan, bool arrivals)
{
    for (int i = 0; i < plan->nstep; i++) {
        dmi_exchange *x = (dmi_exchange *)(uintptr_t)plan->step[i].desc;
        if (plan->step[i].kind == DMI_STEP_EXCHANGE && (arrivals ? x->arrivals : x->pushes) > 0) {
            return x;
        }
    }
    return NULL;
}

static void plant_alone(void *context, int me, int call, dmi_plan *plan)
{
    (void)call;
    dmi_exchange *push = exchange_of(plan, false), *arrival = exchange_of(plan, true);
    for (int i = 0; i < plan->nstep && *(int *)context == NO_GATE; i++) { /* it never waits for a place */
        const dmi_exchange *x = plan->step[i].desc;
        for (int k = 0; plan->step[i].kind == DMI_STEP_EXCHANGE && k < x->pushes; k++) {
            x->part[k].first = false;
        }
    }
    if (*(int *)context == ARRIVALS_FIRST && push && arrival) { /* all take before they give */
        dmi_step *last = &plan->step[plan->nstep - 1];
        for (int i = 0; i < plan->nstep; i++) {
            if (plan->step[i].desc == push) {
                dmi_exchange *late = dmi_arena_alloc(&plan->arena, sizeof *late),
                             *rest = dmi_arena_alloc(&plan->arena, sizeof *rest);
                *late = (dmi_exchange){.pushes = push->pushes, .part = push->part};
                *rest = (dmi_exchange){
                    .arrivals = push->arrivals, .part = push->part + push->pushes, .last = push->last};
                plan->step[i].desc = rest;
                last->desc = late;
                break;
            }
        }
    }
    for (int i = 0; i < plan->nstep && *(int *)context == ONE_PLACE; i++) { /* in which all payloads lie */
        const dmi_exchange *x = plan->step[i].desc;
        for (int k = 0; plan->step[i].kind == DMI_STEP_EXCHANGE && k < x->pushes + x->arrivals; k++) {
            x->part[k].place = 0;
        }
    }
    if (*(int *)context == OTHER_NUMBER && me == 1 && push) {
        push->part[0].number++;
    }
    if (*(int *)context == LOST_PUSH && me == 1 && push) {
        push->part += push->pushes;
        push->pushes = 0;
    }
}

/* Rows become columns. */
static void test_alone_faults(void **state)
{
    static const int shows[FAULTS_ALONE] = {[NO_GATE] = DMI_SIM_RACE,
                                            [ARRIVALS_FIRST] = DMI_SIM_STUCK,
                                            [OTHER_NUMBER] = DMI_SIM_PAIR,
                                            [LOST_PUSH] = DMI_SIM_PAIR,
                                            [ONE_PLACE] = DMI_SIM_RACE};
    (void)state;
    for (int fault = 0; fault <= FAULTS_ALONE; fault++) {
        static recorded t;
        dmi_sim_report report;
        dmt_random r;
        bool fits;
        memset(&t, 0, sizeof t);
        dmt_random_start(&r, 1);
        sim_begin(&t.sim, 3);
        t.sim.profile.gpu = true;
        for (int i = 0; i < BASES; i++) {              /* rows, and columns */
            bool one = fault == NO_GATE && i % 2 == 0; /* a worker that only gives runs ahead */
            (void)sim_matrix(&t.sim, DM_F64, 12, COLS, i % 2 || one ? 1 : 3, i % 2 ? 3 : 1, 0);
        }
        for (int i = 0; i < 2; i++) {
            t.array[add_array(&t, &r, false)].desc = t.sim.array[i].desc;
        }
        t.p.operands = t.p.arrays;
        t.p.array = t.array;
        t.p.call = t.call;
        set_operand(&t, BASES, 0, 0, 12);
        set_operand(&t, BASES + 1, 1, 0, 12);
        add_call(&t, DMI_OP_copy, 2);
        t.sim.call[0] = dmi_program_call(&t.p, DMI_OP_program);
        dmi_sim_program program = on_devices(&t);
        program.change = fault < FAULTS_ALONE ? plant_alone : NULL;
        program.context = &fault;
        assert_int_equal(dmi_simulate_alone(&program, RUNS_ALONE, &fits, &report), DM_OK);
        assert_true(fits);
        if (fault < FAULTS_ALONE ? report.found[shows[fault]] == 0 : report.findings > 0) {
            printf("fault %d: %s", fault, report.text);
            fail();
        }
        sim_end(&t.sim);
    }
}

/* --- the order in which calls are planned --- */

/* Do two operands share an element? By their rectangles: in these programs all arrays of a memory have one
 * layout. */
static bool share(const dmi_operand *x, const dmi_operand *y)
{
    bool all = x->id == y->id;
    for (int d = 0; d < 2; d++) {
        int64_t end = DMI_MIN(x->desc.lo[d] + x->desc.extent[d], y->desc.lo[d] + y->desc.extent[d]);
        all = all && DMI_MAX(x->desc.lo[d], y->desc.lo[d]) < end;
    }
    return all;
}

static bool must_follow(const dmi_call *earlier, const dmi_call *later)
{
    for (int i = 0; i < earlier->noperand; i++) {
        for (int k = 0; k < later->noperand; k++) {
            const dmi_operand *x = &earlier->operand[i], *y = &later->operand[k];
            if ((x->mode == DMI_READWRITE || y->mode == DMI_READWRITE || x->mode == DMI_WRITE ||
                 y->mode == DMI_WRITE) &&
                share(x, y)) {
                return true;
            }
        }
    }
    return false;
}

static void draw_times(dmt_random *r, int calls, dmi_call_time *time)
{
    for (int i = 0; i < calls; i++) {
        time[i] = (dmi_call_time){.compute = (double)dmt_int(r, 0, 100) * 1e-6,
                                  .link = dmt_chance(r, 40) ? (double)dmt_int(r, 1, 2000) * 1e-6 : 0,
                                  .channel = dmt_chance(r, 20),
                                  .computes_first = dmt_chance(r, 40),
                                  .keeps_order = dmt_chance(r, 10),
                                  .everywhere = dmt_chance(r, 10)};
    }
}

/* Calls that overtake others wait for none of them, and plans in the new order have no race and end. */
static void test_turns(void **state)
{
    int changed = 0, cases = (int)dmt_case_count(400);
    (void)state;
    for (int i = 0; i < cases; i++) {
        static recorded t;
        static dmi_call_time time[CALLS];
        int order[CALLS], turn[CALLS];
        double as_recorded, best;
        dmt_random r;
        char what[64];
        memset(&t, 0, sizeof t);
        dmt_random_start(&r, dmt_seed_of("simulate turns", 0, i));
        sim_begin(&t.sim, (int)dmt_int(&r, 1, 5));
        record(&t, &r);
        draw_times(&r, t.p.calls, time);
        assert_true(dmi_program_turns(&t.p, time, &as_recorded, &best));
        dmi_program_order(&t.p, order);
        bool moved = false;
        for (int k = 0; k < t.p.calls; k++) {
            moved = moved || order[k] != k;
            turn[order[k]] = k;
        }
        assert_true(best <= as_recorded);
        assert_int_equal(moved, best < as_recorded);
        for (int k = 0; k < t.p.calls; k++) {
            for (int l = 0; l < k; l++) {
                bool both = time[k].keeps_order && time[l].keeps_order;
                if (turn[k] < turn[l] && (both || must_follow(&t.call[l], &t.call[k]))) {
                    fail_msg("case %d: call %d overtakes call %d, for which it waits", i, k, l);
                }
            }
        }
        changed += moved;
        t.sim.call[0] = t.sim.call[1] = dmi_program_call(&t.p, DMI_OP_program);
        t.sim.calls = 2;
        snprintf(what, sizeof what, "case %d, in the order of its turns", i);
        check(&t.sim, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, what);
        sim_end(&t.sim);
    }
    printf("%d programs, %d in another order\n", cases, changed);
    assert_true(cases < 50 || changed > cases / 10);
}

/* A long transfer that nobody waits for, a kernel behind it; a short one, and a chain that waits for it. */
static void test_critical(void **state)
{
    static recorded t;
    dmt_random r;
    const int64_t shape[] = {40, COLS};
    enum { LONG, BEHIND, SHORT, FIRST, LAST = 12 };
    dmi_call_time time[LAST + 1] = {
        [LONG] = {.link = 10e-3}, [BEHIND] = {.compute = 1e-3}, [SHORT] = {.link = 1e-3}};
    int order[LAST + 1];
    double as_recorded, best;
    (void)state;
    memset(&t, 0, sizeof t);
    dmt_random_start(&r, 1);
    sim_begin(&t.sim, 2);
    for (int i = 0; i < BASES; i++) {
        assert_int_equal(sim_array_random(&t.sim, &r, DM_F64, 2, shape), i);
    }
    for (int i = 0; i < 4; i++) {
        t.array[add_array(&t, &r, false)].desc = t.sim.array[i].desc;
    }
    t.p.operands = t.p.arrays;
    t.p.array = t.array;
    t.p.call = t.call;
    for (int i = 0; i <= LAST; i++) {
        int from = i == LONG ? 0 : i == BEHIND ? 1 : i == SHORT ? 2 : 3, to = i <= BEHIND ? 1 : 3;
        set_operand(&t, BASES, from, 0, shape[0]);
        set_operand(&t, BASES + 1, to, 0, shape[0]);
        add_call(&t, i == LONG || i == SHORT ? DMI_OP_copy : DMI_OP_scale, 2);
        time[i].compute = i >= FIRST ? 1e-3 : time[i].compute;
    }
    assert_true(dmi_program_turns(&t.p, time, &as_recorded, &best));
    dmi_program_order(&t.p, order);
    assert_true(as_recorded > 20.9e-3 && as_recorded < 21.1e-3); /* 10 + 1 beside 1, then the chain of 10 */
    assert_true(best > 11.9e-3 && best < 12.1e-3);               /* 1, then 10 beside the chain; 1 */
    for (int i = 0; i <= LAST; i++) {
        assert_int_equal(order[i], i <= LAST - 2 ? i + 2 : i - (LAST - 1));
    }
    sim_end(&t.sim);
}

/* Writers of VIEWS column views, in turn: a part of another array is copied there, which may come from other
 * workers, then scaled, then copied anew. apart: columns from one view to the next; temporary: of an array that
 * lives in the program only. */
enum { VIEWS = 4, WIDE = 4, ROUNDS = 3 };

static void record_columns(recorded *t, dmt_random *r, int apart, bool temporary)
{
    const int x = temporary ? VIEWS : 0, y = VIEWS - x; /* the first views of both: temporaries come last */
    const int64_t shape[] = {dmt_int(r, 4, 20), WIDE * VIEWS};
    for (int i = 0; i < BASES; i++) {
        assert_int_equal(sim_array_random(&t->sim, r, DM_F64, 2, shape), i);
    }
    t->p.array = t->array;
    t->p.call = t->call;
    for (int k = 0; k < 2 * VIEWS; k++) { /* views of one array are other arrays of the program */
        const bool of_x = k / VIEWS == x / VIEWS;
        int made = add_array(t, r, of_x && temporary);
        t->array[made].desc = t->sim.array[!of_x].desc;
        t->array[made].desc.lo[1] = (int64_t)(k % VIEWS) * (of_x ? apart : WIDE);
        t->array[made].desc.extent[1] = WIDE;
        t->array[made].memory = 100 + (uint32_t)!of_x;
    }
    t->p.operands = temporary ? VIEWS : t->p.arrays;
    for (int k = 0; k < ROUNDS * VIEWS; k++) {
        const int v = x + k % VIEWS, from = k / VIEWS % 2 ? v : y + k % VIEWS;
        const int array[] = {from, v};
        for (int i = 0; i < 2; i++) {
            const dmi_program_array *a = &t->array[array[i]];
            t->sim.array[BASES + i] =
                (dmi_operand){.desc = a->desc, .id = (uint64_t)array[i], .memory = a->memory};
        }
        add_call(t, from == v ? DMI_OP_scale : DMI_OP_copy, 2);
    }
}

/* Steps that wait for a step of a call on another view. The one that a wait names stands for those before it in
 * its lane, which would be waited for in any case. */
static int waits_for_others(const dmi_plan *plan)
{
    int found = 0;
    for (int i = 0; i < plan->nstep; i++) {
        for (int l = 0; l < DMI_LANES; l++) {
            for (int k = 0; k < i && plan->step[i].wait[l] > 0; k++) {
                const dmi_step *on = &plan->step[k];
                found += on->lane == l && on->ordinal == plan->step[i].wait[l] &&
                         (on->call - 1) % VIEWS != (plan->step[i].call - 1) % VIEWS;
            }
        }
    }
    return found;
}

/* Writers of views without a common column wait for none of the others; those of views with one do. Either way
 * there is no race. */
static void test_columns(void **state)
{
    (void)state;
    int waits[2] = {0, 0};
    for (int i = 0; i < dmt_case_count(200); i++) {
        static recorded t;
        dmt_random r;
        char what[64];
        memset(&t, 0, sizeof t);
        dmt_random_start(&r, dmt_seed_of("simulate columns", 0, i));
        sim_begin(&t.sim, (int)dmt_int(&r, 1, 5));
        record_columns(&t, &r, i % 2 ? WIDE - 1 : WIDE, i / 2 % 2 == 1);
        t.sim.call[0] = t.sim.call[1] = dmi_program_call(&t.p, DMI_OP_program);
        t.sim.calls = 2;
        snprintf(what, sizeof what, "case %d", i);
        check(&t.sim, DMI_SIM_GREEDY | DMI_SIM_RANDOM, ALL_RULES, 2, what);
        for (int w = 0; w < t.sim.profile.workers; w++) {
            dmi_plan *plan = NULL;
            assert_int_equal(dmi_plan_make(&t.sim.call[0], &t.sim.profile, w, &plan), DM_OK);
            waits[i % 2] += waits_for_others(plan);
            dmi_plan_release(plan);
        }
        sim_end(&t.sim);
    }
    printf("waits between writers of views: %d of disjoint ones, %d of others\n", waits[0], waits[1]);
    assert_int_equal(waits[0], 0);
    assert_true(waits[1] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_critical), cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_alone),    cmocka_unit_test(test_alone_faults)};
    return cmocka_run_group_tests_name("simulate programs", tests, NULL, NULL);
}
