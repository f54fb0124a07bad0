/* Random programs: many commands on a few arrays and views of them, given without waiting, under every setting
 * that changes how they are carried out. All numbers are small and whole, so every result is exact. */
#include "support/oracle.h"
#include "support/product.h"

#include <math.h>
#include <stdio.h>

enum { ARRAYS = 5, SIDE = 12, COMMANDS = 40 };
static const long double largest = 0x1p40L; /* beyond it an array is filled anew, so that sums stay exact */

typedef struct program {
    dmt_operand *array[ARRAYS];
    dmt_host *value[ARRAYS];
} program;

static void begin(dmt_case *c, program *p)
{
    const int64_t shape[] = {SIDE, SIDE};
    static const char *const names[ARRAYS] = {"p", "q", "r", "s", "t"};
    for (int i = 0; i < ARRAYS; i++) {
        dmt_host *h = dmt_host_make(&c->scratch, i % 2 ? DM_F64 : DM_I64, 2, shape);
        dmt_host_random(h, &c->random, DMT_SMALL);
        p->array[i] = dmt_operand_make(c, names[i], h, 0);
        p->value[i] = dmt_host_copy(&c->scratch, h);
    }
}

static bool too_large(const dmt_host *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        if (fabsl(h->v[i]) > largest) {
            return true;
        }
    }
    return false;
}

static dmt_host *transposed(dmt_case *c, const dmt_host *h, dm_dtype dtype)
{
    dmt_host *t = dmt_host_make(&c->scratch, dtype, 2, h->shape);
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        t->v[i % SIDE * SIDE + i / SIDE] = h->v[i];
    }
    return t;
}

/* A product of floating arrays; of others the sum. */
static dm_status multiply(dmt_case *c, program *p, int x, int y, int z, dmt_host **want)
{
    dmt_product q = {.m = SIDE, .n = SIDE, .k = SIDE, .alpha = 1, .beta = -1};
    q.trans_a = dmt_chance(&c->random, 50);
    q.trans_b = dmt_chance(&c->random, 50);
    q.a = p->value[x];
    q.b = p->value[y];
    q.c = p->value[z];
    if (x % 2 == 0 || y % 2 == 0 || z % 2 == 0 || x == z || y == z) {
        *want = dmt_expect_add(c, 2, q.a, -1, q.b, q.c).want;
        dmt_say(c, "\n    %s = 2 %s - %s", p->array[z]->name, p->array[x]->name, p->array[y]->name);
        return dm_add(c->session, 2, p->array[x]->array, -1, p->array[y]->array, p->array[z]->array);
    }
    *want = dmt_host_copy(&c->scratch, q.c);
    dmt_product_expect(&q, true, *want, dmt_host_copy(&c->scratch, q.c));
    dmt_say(c, "\n    %s = op(%s) op(%s) - %s, %d %d", p->array[z]->name, p->array[x]->name, p->array[y]->name,
            p->array[z]->name, q.trans_a, q.trans_b);
    return dmt_product_call(c, &q, p->array[x]->array, p->array[y]->array, p->array[z]->array);
}

/* The sum over the rows of x becomes a row of z: an output that is a view made and destroyed on the way. */
static dm_status sum_into_row(dmt_case *c, program *p, int x, int z, dmt_host **want)
{
    const int first[] = {0};
    const int64_t extent[] = {1, SIDE}, lo[] = {dmt_int(&c->random, 0, SIDE - 1), 0};
    dm_array row;
    *want = dmt_host_copy(&c->scratch, p->value[z]);
    for (int64_t j = 0; j < SIDE; j++) {
        (*want)->v[lo[0] * SIDE + j] = 0;
        for (int64_t i = 0; i < SIDE; i++) {
            (*want)->v[lo[0] * SIDE + j] += p->value[x]->v[i * SIDE + j];
        }
    }
    dmt_say(c, "\n    row %d of %s = sum of %s", (int)lo[0], p->array[z]->name, p->array[x]->name);
    DMT_OK(c, dm_array_view(c->session, p->array[z]->array, lo, extent, &row));
    dm_status status = dm_sum(c->session, p->array[x]->array, first, 1, 1, 0, row);
    DMT_OK(c, dm_array_destroy(c->session, row));
    return status;
}

/* Through an array that lives for two commands. */
static dm_status detour(dmt_case *c, program *p, int x, int z, dmt_host **want)
{
    dm_array there;
    dmt_layout layout;
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, 2, p->value[x]->shape);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, p->value[x]->shape, layout.use, &there));
    dmt_say(c, "\n    %s = transposed %s by way of %s", p->array[z]->name, p->array[x]->name, layout.text);
    dm_status status = dm_copy(c->session, p->array[x]->array, there);
    *want = transposed(c, p->value[x], p->value[z]->dtype);
    if (status == DM_OK && p->value[z]->dtype == DM_F64) {
        status = dm_transpose(c->session, there, p->array[z]->array);
    } else if (status == DM_OK) {
        dm_array turned;
        DMT_OK(c, dm_array_create(c->session, DM_F64, 2, p->value[x]->shape, NULL, &turned));
        DMT_OK(c, dm_transpose(c->session, there, turned));
        status = dm_copy(c->session, turned, p->array[z]->array);
        DMT_OK(c, dm_array_destroy(c->session, turned));
    }
    DMT_OK(c, dm_array_destroy(c->session, there));
    return status;
}

static void command(dmt_case *c, program *p)
{
    int x = (int)dmt_int(&c->random, 0, ARRAYS - 1), y = (int)dmt_int(&c->random, 0, ARRAYS - 1);
    int z = (int)dmt_int(&c->random, 0, ARRAYS - 1);
    dmt_host *want = NULL;
    dm_status status;
    int64_t pick = dmt_int(&c->random, 0, 9);
    if (too_large(p->value[x]) || too_large(p->value[y]) || too_large(p->value[z])) {
        int worst = too_large(p->value[x]) ? x : too_large(p->value[y]) ? y : z;
        z = worst;
        pick = 9;
    }
    if (pick < 3) {
        status = multiply(c, p, x, y, z, &want);
    } else if (pick < 5 && x != z) {
        status = sum_into_row(c, p, x, z, &want);
    } else if (pick < 6) {
        status = detour(c, p, x, z, &want);
    } else if (pick < 9) {
        want = dmt_expect_add(c, 1, p->value[x], -2, p->value[z], p->value[z]).want;
        dmt_say(c, "\n    %s = %s - 2 %s", p->array[z]->name, p->array[x]->name, p->array[z]->name);
        status = dm_axpby(c->session, 1, p->array[x]->array, -2, p->array[z]->array);
    } else {
        want = dmt_host_copy(&c->scratch, p->value[z]);
        dmt_host_set(want, x - 2);
        dmt_say(c, "\n    %s = %d", p->array[z]->name, x - 2);
        status = dm_fill(c->session, p->array[z]->array, x - 2);
    }
    dmt_status_is(c, status, DM_OK, "the last command");
    p->value[z] = want;
}

static void program_case(dmt_case *c)
{
    program p;
    begin(c, &p);
    for (int i = 0; i < COMMANDS; i++) {
        command(c, &p);
    }
    for (int i = 0; i < ARRAYS; i++) {
        dmt_operand_check(c, p.array[i], p.value[i], NULL);
    }
}

/* The same, but the commands are recorded some at a time, and each recording runs as one command. */
static void recorded_case(dmt_case *c)
{
    enum { PROGRAMS = 3 };
    program p;
    dm_program made[PROGRAMS] = {{0}};
    begin(c, &p);
    for (int k = 0; k < PROGRAMS; k++) {
        int64_t commands = dmt_int(&c->random, 0, COMMANDS / 2);
        dmt_say(c, "\n    program of %d:", (int)commands);
        DMT_OK(c, dm_program_begin(c->session));
        for (int64_t i = 0; i < commands; i++) {
            command(c, &p);
        }
        DMT_OK(c, dm_program_end(c->session, &made[k]));
        DMT_OK(c, dm_program_run(c->session, made[k], 1, 0, NULL));
        if (dmt_chance(&c->random, 50)) {
            DMT_OK(c, dm_program_destroy(c->session, made[k]));
            made[k].id = 0;
        }
    }
    for (int i = 0; i < ARRAYS; i++) {
        dmt_operand_check(c, p.array[i], p.value[i], NULL);
    }
    for (int k = 0; k < PROGRAMS; k++) {
        DMT_OK(c, dm_program_destroy(c->session, made[k]));
    }
}

static void run(const char *name, int64_t cases, const char *options)
{
    dmt_run(&(dmt_suite){.name = name, .cases = cases, .fn = program_case, .options = options});
    char recorded[80];
    snprintf(recorded, sizeof recorded, "%s_recorded", name);
    dmt_run(&(dmt_suite){.name = recorded, .cases = cases, .fn = recorded_case, .options = options});
}

#define PROGRAM(name, cases, options)                                                                          \
    static void test_##name(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        run("program_" #name, cases, options);                                                                 \
    }
PROGRAM(plain, 300, NULL)
PROGRAM(small_ring, 100, "ring=4096")
PROGRAM(small_slabs, 100, "slab=4096")
PROGRAM(red_zones, 5, "slab=16384,pool_debug=1") /* few: a destroy waits for all commands before it */
PROGRAM(sync, 100, "sync=1")
PROGRAM(no_cache, 100, "plan_cache=1")
PROGRAM(slow_links, 100, "link_latency_us=20,link_gbps=0.5")
PROGRAM(little_workspace, 100, "gemm_workspace=1024")
PROGRAM(sleepy, 100, "spin_us=0")
PROGRAM(stationary, 100, "gemm_algorithm=stationary")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),       cmocka_unit_test(test_small_ring),
        cmocka_unit_test(test_small_slabs), cmocka_unit_test(test_sync),
        cmocka_unit_test(test_no_cache),    cmocka_unit_test(test_sleepy),
        cmocka_unit_test(test_slow_links),  cmocka_unit_test(test_little_workspace),
        cmocka_unit_test(test_stationary),  cmocka_unit_test(test_red_zones),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
