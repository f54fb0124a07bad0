/* Regions of views with steps: every element once, and where the array itself has it. */
#include "sim_random.h"

enum { MOST_ELEMENTS = 4096 };

/* Memory position of each element of the whole array at a worker; -1: not there. */
static void find_positions(const dmi_desc *x, int worker, int64_t *position)
{
    for (int64_t i = 0; i < x->layout->count; i++) {
        position[i] = -1;
    }
    for (int64_t r = 0; r < dmi_desc_region_count(x, worker); r++) {
        dmi_region region;
        dmi_desc_region(x, worker, r, &region);
        for (int64_t k = 0; k < region.count; k++) {
            int64_t rest = k, at = region.offset, element = 0, weight = 1;
            for (int d = region.ndim - 1; d >= 0; d--) {
                int64_t index = dmi_dimset_index(&region.dim[d], rest % region.dim[d].count);
                rest /= region.dim[d].count;
                at += dmi_dimset_position(&region.dim[d], index) * region.stride[d];
                element += index * weight;
                weight *= x->extent[d];
            }
            assert_int_equal(position[element], -1); /* once */
            position[element] = at;
        }
    }
}

static void check_view(const dmi_desc *whole, const dmi_desc *view, int worker)
{
    static int64_t all[MOST_ELEMENTS], seen[MOST_ELEMENTS];
    int64_t index[DM_MAX_DIMS] = {0}, count = 1;
    find_positions(whole, worker, all);
    find_positions(view, worker, seen);
    for (int d = 0; d < view->ndim; d++) {
        count *= view->extent[d];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t element = 0;
        for (int d = 0; d < view->ndim; d++) {
            element = element * whole->extent[d] + view->lo[d] + index[d] * (view->skip[d] + 1);
        }
        assert_int_equal(seen[i], all[element]);
        for (int d = view->ndim - 1; d >= 0 && ++index[d] == view->extent[d]; d--) {
            index[d] = 0;
        }
    }
}

static void test_regions(void **state)
{
    (void)state;
    int64_t several = 0;
    for (int64_t i = 0; i < dmt_case_count(4000); i++) {
        dmt_random r;
        sim_program p;
        int64_t shape[DM_MAX_DIMS] = {0};
        dmt_random_start(&r, dmt_seed_of("steps", 0, i));
        sim_begin(&p, (int)dmt_int(&r, 1, 6));
        int ndim = (int)dmt_int(&r, 1, 3);
        for (int d = 0; d < ndim; d++) {
            shape[d] = dmt_chance(&r, 5) ? 0 : dmt_int(&r, 1, ndim == 1 ? 100 : ndim == 2 ? 40 : 14);
        }
        int x = sim_array_random(&p, &r, DM_F32, ndim, shape);
        dmi_desc whole = p.array[x].desc, view = whole;
        for (int d = 0; d < ndim; d++) {
            view.skip[d] = dmt_int(&r, 0, 4);
            view.lo[d] = dmt_int(&r, 0, shape[d]);
            view.extent[d] = dmt_int(&r, 0, (shape[d] - view.lo[d] + view.skip[d]) / (view.skip[d] + 1));
        }
        for (int w = 0; w < p.profile.workers; w++) {
            check_view(&whole, &view, w);
            several += whole.layout->kind == DMI_LAYOUT_GRID && dmi_desc_region_count(&view, w) > 1;
        }
        sim_end(&p);
    }
    assert_true(several > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regions)};
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
