/* Accesses to parts of one memory, against a list of all accesses to each element. */
#include "memory/hazard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

enum { ROWS = 6, COLS = 7, ACCESSES = 200, CASES = 60 };

static dmi_part random_part(dmt_random *r, const void *layout)
{
    dmi_part part = {.ndim = 2, .layout = layout};
    int64_t extent[] = {ROWS, COLS};
    if (dmt_chance(r, 10)) {
        return (dmi_part){.ndim = -1};
    }
    for (int d = 0; d < 2; d++) {
        part.lo[d] = dmt_int(r, 0, extent[d] - 1);
        part.hi[d] = dmt_int(r, part.lo[d], extent[d]);
    }
    return part;
}

static bool covers(const dmi_part *part, int row, int col)
{
    return part->ndim < 0 ||
           (part->lo[0] <= row && row < part->hi[0] && part->lo[1] <= col && col < part->hi[1]);
}

/* What an access must wait for at least is in what it is told to wait for. */
static void one_case(dmt_random *r)
{
    static dmi_hazard element[ROWS][COLS];
    dmi_hazards h = {0};
    memset(element, 0, sizeof element);
    for (uint64_t i = 1; i <= ACCESSES; i++) {
        dmi_part part = random_part(r, &h);
        dmi_hazard told, use = {{{0}}};
        int mode = (int)dmt_int(r, DMI_READ, DMI_READWRITE), lane = (int)dmt_int(r, 0, 2);
        dmi_hazards_before(&h, &part, &told);
        dmi_hazard_use(&use, mode, lane, i);
        for (int row = 0; row < ROWS; row++) {
            for (int col = 0; col < COLS; col++) {
                dmi_hazard *e = &element[row][col];
                for (int l = 0; l < 3 && covers(&part, row, col); l++) {
                    assert_true(told.write.seq[l] >= e->write.seq[l]);
                    assert_true(told.read.seq[l] >= e->read.seq[l]);
                }
                if (covers(&part, row, col)) {
                    dmi_hazard_merge(e, &use);
                }
            }
        }
        dmi_hazards_add(&h, &part, &use);
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

/* Parts that are apart do not wait for one another; parts of different layouts do. */
static void test_apart(void **state)
{
    (void)state;
    int one, other;
    dmi_hazards h = {0};
    dmi_hazard told;
    for (int i = 0; i < 8; i++) {
        dmi_part column = {.ndim = 2, .layout = &one, .lo = {0, i}, .hi = {100, i + 1}};
        dmi_hazard use = {.write = {{0, (uint64_t)i + 1}}};
        dmi_hazards_before(&h, &column, &told);
        assert_int_equal(told.write.seq[1], 0);
        dmi_hazards_add(&h, &column, &use);
    }
    dmi_part fourth = {.ndim = 2, .layout = &one, .lo = {7, 3}, .hi = {9, 4}};
    dmi_hazards_before(&h, &fourth, &told);
    assert_int_equal(told.write.seq[1], 4);
    fourth.layout = &other;
    dmi_hazards_before(&h, &fourth, &told);
    assert_int_equal(told.write.seq[1], 8);
    dmi_hazards_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
