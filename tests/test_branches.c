/* Steps of a graph that run beside others: whatever touches the same bytes is in order, and a net's backward
 * pass has its gradients by the weights aside. */
#include "exec/gpu/parts.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 40, PLACES = 12, CASES = 3000, UNIT = 1000 };

static void add(dmi_gpu_work *w, int rw, int place, bool scratch)
{
    w->span[w->spans++] = (dmi_gpu_span){
        .from = (uintptr_t)place * UNIT, .to = (uintptr_t)(place + 1) * UNIT, .rw = rw, .scratch = scratch};
    w->scratch += scratch ? UNIT : 0;
}

/* As this test sees it, byte by byte of a step's places. aside: whose scratch lies elsewhere, all of it in one
 * place. */
static bool meet(const dmi_gpu_work *a, bool a_aside, const dmi_gpu_work *b, bool b_aside)
{
    for (int i = 0; i < a->spans; i++) {
        for (int j = 0; j < b->spans; j++) {
            const dmi_gpu_span *x = &a->span[i], *y = &b->span[j];
            const bool x_away = x->scratch && a_aside, y_away = y->scratch && b_aside;
            bool shared = x_away && y_away;
            for (uintptr_t at = x->from; !x_away && !y_away && at < x->to; at++) {
                shared = shared || (y->from <= at && at < y->to);
            }
            if (shared && (x->rw == DMI_WRITE || y->rw == DMI_WRITE)) {
                return true;
            }
        }
    }
    return a->alone || b->alone;
}

/* Is step i done when step j begins? A step aside follows those aside before it, and those of the main chain
 * before it; a step of that chain follows the chain, and those aside up to `after` of it and of those before.
 */
static bool follows(const dmi_gpu_place *place, int i, int j)
{
    if (place[j].aside || !place[i].aside) {
        return true;
    }
    for (int k = 0; k <= j; k++) {
        if (!place[k].aside && place[k].after > i) {
            return true;
        }
    }
    return false;
}

static void check_order(const dmi_gpu_work *work, const dmi_gpu_place *place, int count, int64_t number)
{
    for (int j = 0; j < count; j++) {
        assert_true(place[j].after <= j && (place[j].after == 0 || place[place[j].after - 1].aside));
        assert_false(place[j].aside && (place[j].after > 0 || work[j].alone));
        for (int i = 0; i < j; i++) {
            if (meet(&work[i], place[i].aside, &work[j], place[j].aside) && !follows(place, i, j)) {
                fail_msg("case %d: step %d does not wait for step %d", (int)number, j, i);
            }
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    int64_t asides = 0, waits = 0;
    for (int64_t number = 0; number < CASES; number++) {
        dmi_gpu_work work[STEPS] = {{0}};
        dmi_gpu_place place[STEPS];
        dmt_random r;
        dmt_random_start(&r, dmt_seed_of("branches", 1, number));
        int count = (int)dmt_int(&r, 1, STEPS);
        for (int i = 0; i < count; i++) {
            work[i].alone = dmt_chance(&r, 2);
            for (int n = (int)dmt_int(&r, 1, 3); n > 0; n--) {
                const bool write = dmt_chance(&r, 40);
                add(&work[i], write ? DMI_WRITE : DMI_READ, (int)dmt_int(&r, 0, PLACES - 1),
                    write && dmt_chance(&r, 30));
            }
        }
        dmi_gpu_branches(work, count, place);
        check_order(work, place, count, number);
        for (int i = 0; i < count; i++) {
            asides += place[i].aside;
            waits += place[i].after > 0;
        }
    }
    assert_true(asides > CASES / 2 && waits > CASES / 4);
}

/* Layers forward, the last of which is a loss, then by the weights and by the input; then the update. Both
 * gradients use the same scratch. */
static void test_net(void **state)
{
    (void)state;
    enum {
        LAYERS = 4,
        COUNT = 3 * LAYERS + 1,
        SCRATCH = 100,
        WEIGHTS = 200,
        GRADIENT = 300,
        TOP = 400,
        DIFF = 500
    };
    dmi_gpu_work work[COUNT] = {{0}};
    dmi_gpu_place place[COUNT];
    for (int i = 0; i < LAYERS; i++) {
        dmi_gpu_work *forward = &work[i], *weights = &work[LAYERS + 2 * (LAYERS - 1 - i)], *data = weights + 1;
        add(forward, DMI_READ, TOP + i, false);
        add(forward, DMI_READ, WEIGHTS + i, false);
        add(forward, DMI_WRITE, i == LAYERS - 1 ? DIFF + LAYERS : TOP + i + 1, false);
        add(weights, DMI_READ, TOP + i, false);
        add(weights, DMI_READ, DIFF + i + 1, false);
        add(weights, DMI_WRITE, GRADIENT + i, false);
        add(weights, DMI_WRITE, SCRATCH, true);
        add(data, DMI_READ, WEIGHTS + i, false);
        add(data, DMI_READ, DIFF + i + 1, false);
        add(data, DMI_WRITE, DIFF + i, false);
        add(data, DMI_WRITE, SCRATCH, true);
        add(&work[COUNT - 1], DMI_READ, GRADIENT + i, false);
        add(&work[COUNT - 1], DMI_READWRITE, WEIGHTS + i, false);
    }
    dmi_gpu_branches(work, COUNT, place);
    for (int i = 0; i < COUNT; i++) {
        /* the last gradients have too little of the chain behind them that does not wait for them */
        const bool weights = i >= LAYERS && i < COUNT - 3 && (i - LAYERS) % 2 == 0;
        assert_int_equal(place[i].aside, weights);
        assert_int_equal(place[i].after, i == COUNT - 1 ? COUNT - 4 : 0);
    }
    work[LAYERS].span[0].to += (uintptr_t)1 << 40; /* a large step fills the GPU by itself */
    dmi_gpu_branches(work, COUNT, place);
    assert_false(place[LAYERS].aside);
    work[LAYERS + 2].scratch = (int64_t)1 << 40; /* there is no room for this */
    dmi_gpu_branches(work, COUNT, place);
    assert_false(place[LAYERS + 2].aside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_net)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
