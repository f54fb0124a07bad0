/* A copy between any two layouts sends as few bytes as they allow: each element once to every worker that shall
 * hold it and does not, in the narrower of the two types; never by way of the master. Counted element by
 * element. */
#include "layout/layout.h"
#include "plan/plan.h"

#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state_of_random = 20240607;

static int pick(int n) /* 0 .. n-1 */
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state_of_random >> 33) % (uint64_t)n);
}

static dmi_layout *random_layout(int workers, int64_t rows, int64_t cols, int *map)
{
    dmi_layout_spec spec = {.ndim = 2, .shape = {rows, cols}, .grid = {1, 1}, .session_workers = workers};
    spec.block[0] = 1 + pick(5);
    spec.block[1] = 1 + pick(5);
    spec.order[0] = pick(2);
    spec.order[1] = pick(2);
    switch (pick(4)) {
    case 0: /* a map */
        spec.kind = DMI_LAYOUT_EXPLICIT;
        spec.map = map;
        spec.map_count =
            ((rows + spec.block[0] - 1) / spec.block[0]) * ((cols + spec.block[1] - 1) / spec.block[1]);
        for (int64_t i = 0; i < spec.map_count; i++) {
            map[i] = pick(workers);
        }
        break;
    case 1: /* copies */
        spec.grid[0] = 1 + pick(workers);
        spec.replicas = workers / spec.grid[0];
        break;
    case 2:
        spec.grid[1] = 1 + pick(workers);
        break;
    default:
        spec.grid[0] = 1 + pick(workers);
        spec.grid[1] = 1 + pick(workers / spec.grid[0]);
    }
    dmi_layout *layout = NULL;
    assert_int_equal(dmi_layout_create(&spec, &layout), DM_OK);
    return layout;
}

static bool holds(const dmi_layout *layout, const int64_t *index, int worker)
{
    for (int r = 0; r < DMI_MAX(layout->replicas, 1); r++) {
        if (dmi_layout_owner(layout, index, r) == worker) {
            return true;
        }
    }
    return false;
}

static void one_copy(void)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_U8};
    int workers = 1 + pick(8), map[2][2048];
    int64_t rows = pick(14), cols = pick(14), expected = 0, sent = 0, received = 0;
    dm_dtype from = types[pick(4)], to = types[pick(4)];
    dmi_layout *src = random_layout(workers, rows, cols, map[0]),
               *dst = random_layout(workers, rows, cols, map[1]);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            for (int w = 0; w < workers; w++) {
                int64_t index[2] = {i, j};
                expected += holds(dst, index, w) && !holds(src, index, w);
            }
        }
    }
    expected *= DMI_MIN(dmi_dtype_bytes(from), dmi_dtype_bytes(to));
    dmi_profile profile = {.workers = workers, .chunk = 1 << 17};
    dmi_call call = {.op = DMI_OP_copy, .noperand = 2};
    call.operand[0] = (dmi_operand){.desc = dmi_desc_whole(from, src, 1), .memory = 1, .mode = DMI_READ};
    call.operand[1] = (dmi_operand){.desc = dmi_desc_whole(to, dst, 2), .memory = 2, .mode = DMI_WRITE};
    for (int w = 0; w <= workers; w++) {
        dmi_plan *plan = NULL;
        assert_int_equal(dmi_plan_make(&call, &profile, w, &plan), DM_OK);
        sent += plan->bytes_sent;
        received += plan->bytes_received;
        if (w == workers) {
            assert_int_equal(plan->nstep, 0);
        }
        for (int i = 0; i < plan->nstep; i++) {
            assert_true(plan->step[i].peer < workers);
        }
        dmi_plan_release(plan);
    }
    assert_int_equal(sent, expected);
    assert_int_equal(received, expected);
    dmi_layout_destroy(src);
    dmi_layout_destroy(dst);
}

static void test_fewest_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) {
        one_copy();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fewest_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
