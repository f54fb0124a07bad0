/* Accesses to areas of one memory, against a list of all accesses to each element. */
#include "memory/hazard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 6, COLS = 7, ACCESSES = 200, CASES = 60 };

static dmi_area random_area(dmt_random *r, const void *layout)
{
    dmi_area area = {.ndim = 2, .layout = layout};
    int64_t extent[] = {ROWS, COLS};
    if (dmt_chance(r, 10)) {
        return (dmi_area){.ndim = -1};
    }
    for (int d = 0; d < 2; d++) {
        area.lo[d] = dmt_int(r, 0, extent[d] - 1);
        area.hi[d] = dmt_int(r, area.lo[d], extent[d]);
        area.step[d] = dmt_int(r, 0, 4);
    }
    return area;
}

static bool covers(const dmi_area *area, int row, int col)
{
    const int64_t at[] = {row, col};
    bool there = true;
    for (int d = 0; d < area->ndim; d++) {
        const int64_t step = area->step[d] ? area->step[d] : 1;
        there = there && area->lo[d] <= at[d] && at[d] < area->hi[d] && (at[d] - area->lo[d]) % step == 0;
    }
    return there;
}

/* What an access must wait for at least is in what it is told to wait for. */
static void one_case(dmt_random *r)
{
    static dmi_hazard element[ROWS][COLS];
    dmi_hazards h = {0};
    memset(element, 0, sizeof element);
    for (uint64_t i = 1; i <= ACCESSES; i++) {
        dmi_area area = random_area(r, &h);
        dmi_hazard told, use = {{{0}}};
        int mode = (int)dmt_int(r, DMI_READ, DMI_READWRITE), lane = (int)dmt_int(r, 0, 2);
        dmi_hazards_before(&h, &area, &told);
        dmi_hazard_use(&use, mode, lane, i);
        for (int row = 0; row < ROWS; row++) {
            for (int col = 0; col < COLS; col++) {
                dmi_hazard *e = &element[row][col];
                for (int l = 0; l < 3 && covers(&area, row, col); l++) {
                    assert_true(told.write.seq[l] >= e->write.seq[l]);
                    assert_true(told.read.seq[l] >= e->read.seq[l]);
                }
                if (covers(&area, row, col)) {
                    dmi_hazard_merge(e, &use);
                }
            }
        }
        dmi_hazards_add(&h, &area, &use);
    }
    dmi_stamp last = dmi_hazards_last(&h);
    assert_true(last.seq[0] == ACCESSES || last.seq[1] == ACCESSES || last.seq[2] == ACCESSES);
    dmi_hazards_free(&h);
}

static void test_random(void **state)
{
    (void)state;
    dmt_random r;
    dmt_random_start(&r, dmt_seed_of("hazard", 0, 0));
    for (int i = 0; i < CASES; i++) {
        one_case(&r);
    }
}

/* Parts that are apart do not wait for one another; areas of different layouts do, but runs of bytes. */
static void test_apart(void **state)
{
    (void)state;
    int one, other;
    dmi_hazards h = {0};
    dmi_hazard told;
    for (int i = 0; i < 8; i++) {
        dmi_area column = {.ndim = 2, .layout = &one, .lo = {0, i}, .hi = {100, i + 1}};
        dmi_hazard use = {.write = {{0, (uint64_t)i + 1}}};
        dmi_hazards_before(&h, &column, &told);
        assert_int_equal(told.write.seq[1], 0);
        dmi_hazards_add(&h, &column, &use);
    }
    for (int i = 0; i < 6; i++) { /* every sixth row; then every fourth from row 1 on, which are odd */
        dmi_area row = {.ndim = 2, .layout = &one, .lo = {i, 9}, .hi = {100, 10}, .step = {6, 1}};
        dmi_hazards_before(&h, &row, &told);
        assert_int_equal(told.write.seq[1], 0);
        dmi_hazards_add(&h, &row, &(dmi_hazard){.write = {{0, (uint64_t)i + 11}}});
    }
    dmi_area odd = {.ndim = 2, .layout = &one, .lo = {1, 9}, .hi = {98, 10}, .step = {4, 1}};
    dmi_hazards_before(&h, &odd, &told);
    assert_int_equal(told.write.seq[1], 16);
    odd.lo[0] = 2;
    dmi_hazards_before(&h, &odd, &told);
    assert_int_equal(told.write.seq[1], 15);
    dmi_area fourth = {.ndim = 2, .layout = &one, .lo = {7, 3}, .hi = {9, 4}};
    dmi_hazards_before(&h, &fourth, &told);
    assert_int_equal(told.write.seq[1], 4);
    fourth.layout = &other;
    dmi_hazards_before(&h, &fourth, &told);
    assert_int_equal(told.write.seq[1], 16);
    dmi_hazards_free(&h);
    h = (dmi_hazards){0};
    dmi_area low = {.ndim = 1, .layout = &one, .lo = {0}, .hi = {4}, .from = 0, .to = 32};
    dmi_area high = {.ndim = 2, .layout = &other, .lo = {2, 0}, .hi = {3, 2}, .from = 32, .to = 48};
    dmi_hazards_add(&h, &low, &(dmi_hazard){.write = {{0, 5}}});
    dmi_hazards_before(&h, &high, &told);
    assert_int_equal(told.write.seq[1], 0);
    high.from = 31;
    dmi_hazards_before(&h, &high, &told);
    assert_int_equal(told.write.seq[1], 5);
    dmi_hazards_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
