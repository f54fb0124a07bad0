/* Exchange by a table of counts: what arrives, by moving bytes as the steps say; and the steps, in the
 * simulator. */
#include "plan/exchange.h"
#include "sim_programs.h"

enum { MOST_WORKERS = 12, MOST_BYTES = 4096 };

/* The tail of the calls of this test. */
typedef struct counts {
    int64_t row_bytes;
    int64_t rows[MOST_WORKERS * MOST_WORKERS];
} counts;

/* There: operand 0 -> operand 1. */
static dm_status plan_there(dmi_builder *b, const dmi_call *call)
{
    const counts *c = call->tail;
    dmi_mark done = {0};
    dmi_plan_exchange(b,
                      &(dmi_exchange){.rows = c->rows,
                                      .row_bytes = c->row_bytes,
                                      .from = dmi_ref_operand(0, DMI_READ),
                                      .to = dmi_ref_operand(1, DMI_WRITE)},
                      NULL, NULL, done);
    return DM_OK;
}

/* There and back, through workspace: operand 0 -> work -> operand 1, which lies as operand 0. */
static dm_status plan_round_trip(dmi_builder *b, const dmi_call *call)
{
    const counts *c = call->tail;
    dmi_exchange x = {.rows = c->rows, .row_bytes = c->row_bytes, .from = dmi_ref_operand(0, DMI_READ)};
    int64_t taken = b->me < b->profile->workers
                        ? dmi_exchange_taken(&x, b->profile->workers, b->me, b->profile->workers)
                        : 0;
    int work = dmi_build_work(b, taken * c->row_bytes);
    dmi_mark done = {0}, again = {0};
    x.to = dmi_ref_work(work, DMI_WRITE);
    dmi_plan_exchange(b, &x, NULL, NULL, done);
    dmi_build_phase(b);
    x.back = true;
    x.from = dmi_ref_work(work, DMI_READ);
    x.to = dmi_ref_operand(1, DMI_WRITE);
    dmi_plan_exchange(b, &x, NULL, NULL, again);
    return DM_OK;
}

/* Planned as an op: operand 1 of the call is write-only. */
static dm_status make_there(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    return dmi_plan_make_by(plan_there, "exchange", call, profile, me, out);
}

static dm_status make_round_trip(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    return dmi_plan_make_by(plan_round_trip, "exchange", call, profile, me, out);
}

static void counts_random(dmt_random *r, int workers, counts *c)
{
    int most = (int)dmt_int(r, 0, 3);
    memset(c, 0, sizeof *c);
    c->row_bytes = dmt_chance(r, 5) ? 0 : dmt_int(r, 1, 24);
    for (int i = 0; i < workers * workers; i++) {
        c->rows[i] = dmt_chance(r, 30) ? 0 : dmt_int(r, 0, most);
    }
}

/* Two arrays with MOST_BYTES at every worker, and the call. */
static void program_of(sim_program *p, int workers, counts *c)
{
    sim_begin(p, workers);
    int src = sim_matrix(p, DM_U8, workers, MOST_BYTES, workers, 1, 0);
    int dst = sim_matrix(p, DM_U8, workers, MOST_BYTES, workers, 1, 0);
    assert_true(sim_call(p, DMI_OP_copy, &(sim_args){.i = {0}}, 2, (int[]){src, dst}));
    p->call[0].tail = c;
    p->call[0].tail_bytes = p->call[0].tail_key = sizeof *c;
}

static void move(const dmi_step *from, const dmi_step *to, const unsigned char *src, unsigned char *dst)
{
    const dmi_copy *s = from->desc, *d = to->desc;
    assert_int_equal(s->count, d->count);
    assert_int_equal(s->nrun[0], 1);
    memcpy(dst + d->dst_offset + d->run[0][0].b, src + s->src_offset + s->run[0][0].a, (size_t)s->count);
}

/* The k-th step of this kind with this peer. */
static const dmi_step *kth(const dmi_plan *plan, int kind, int peer, int k)
{
    for (int i = 0; i < plan->nstep; i++) {
        if (plan->step[i].kind == kind && plan->step[i].peer == peer && k-- == 0) {
            return &plan->step[i];
        }
    }
    return NULL;
}

static void data_case(dmt_random *r)
{
    static unsigned char src[MOST_WORKERS][MOST_BYTES], dst[MOST_WORKERS][MOST_BYTES];
    int workers = (int)dmt_int(r, 1, MOST_WORKERS);
    int64_t sent = 0, received = 0, others = 0, at[MOST_WORKERS] = {0};
    dmi_plan *plan[MOST_WORKERS];
    counts c;
    sim_program p;
    counts_random(r, workers, &c);
    program_of(&p, workers, &c);
    for (int w = 0; w < workers; w++) { /* byte k of what w has for v is made of all three */
        int64_t n = 0;
        for (int v = 0; v < workers; v++) {
            others += v == w ? 0 : c.rows[w * workers + v] * c.row_bytes;
            for (int64_t k = 0; k < c.rows[w * workers + v] * c.row_bytes; k++) {
                src[w][n++] = (unsigned char)(w * 50 + v * 7 + k);
            }
        }
        memset(dst[w], 255, MOST_BYTES);
        assert_int_equal(make_there(&p.call[0], &p.profile, w, &plan[w]), DM_OK);
        sent += plan[w]->bytes_sent;
        received += plan[w]->bytes_received;
    }
    assert_int_equal(sent, others); /* each row once, and none to its own worker */
    assert_int_equal(received, others);
    for (int w = 0; w < workers; w++) {
        for (int i = 0; i < plan[w]->nstep; i++) {
            const dmi_step *step = &plan[w]->step[i];
            if (step->kind == DMI_STEP(copy)) {
                move(step, step, src[w], dst[w]);
            }
        }
        for (int v = 0; v < workers; v++) {
            const dmi_step *push;
            for (int k = 0; (push = kth(plan[w], DMI_STEP_PUSH, v, k)) != NULL; k++) {
                const dmi_step *expect = kth(plan[v], DMI_STEP_EXPECT, w, k);
                assert_non_null(expect);
                move(push, expect, src[w], dst[v]);
            }
        }
    }
    for (int v = 0; v < workers; v++) {
        for (int w = 0; w < workers; w++) {
            for (int64_t k = 0; k < c.rows[w * workers + v] * c.row_bytes; k++) {
                assert_int_equal(dst[v][at[v]++], (unsigned char)(w * 50 + v * 7 + k));
            }
        }
        assert_int_equal(dst[v][at[v]], 255);
        dmi_plan_release(plan[v]);
    }
    sim_end(&p);
}

static void test_data(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(2000); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("exchange", 0, i));
        data_case(&r);
    }
}

static void simulate(int workers, dmt_random *r, dmi_plan_maker *make, unsigned orders, unsigned rules)
{
    counts c;
    sim_program p;
    dmi_sim_report report;
    counts_random(r, workers, &c);
    program_of(&p, workers, &c);
    p.profile.one_space = dmt_chance(r, 50);
    p.profile.gpu = dmt_chance(r, 50);
    p.profile.pace_bytes = dmt_chance(r, 50) ? 1 : 0;
    p.call[1] = p.call[0]; /* twice: the second meets the memory of the first */
    dmi_sim_program program = {.profile = &p.profile,
                               .call = p.call,
                               .calls = 2,
                               .orders = orders,
                               .rules = rules,
                               .seeds = 2,
                               .only = -1,
                               .make = make};
    assert_int_equal(dmi_simulate(&program, &report), DM_OK);
    if (report.findings != 0) {
        fail_msg("%d workers, %" PRId64 " bytes a row: %s", workers, c.row_bytes, report.text);
    }
    sim_end(&p);
}

static void test_simulated(void **state)
{
    (void)state;
    for (int64_t i = 0; i < dmt_case_count(200); i++) {
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("exchange simulated", 0, i));
        simulate((int)dmt_int(&r, 1, MOST_WORKERS), &r, i % 2 ? make_there : make_round_trip, ALL_ORDERS,
                 ALL_RULES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_data), cmocka_unit_test(test_simulated)};
    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
