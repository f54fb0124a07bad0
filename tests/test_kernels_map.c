/* Elementwise programs by tiles against the same programs one element at a time; shapes, strides and aliases.
 * What each row computes is compared with NumPy elsewhere. */
#include "map_cases.h"

/* One element: a box without dims has one tile of one element. */
static void one_element(const map_case *c, void *const *at, const int64_t *position)
{
    dmi_map d = c->d;
    d.ndim = 0;
    memcpy(d.offset, position, sizeof d.offset);
    dmi_run_map(dmi_backend_cpu(), NULL, &d, c->m.number, c->m.numbers, at);
}

static void expect_all(const map_case *c, void *const *at)
{
    int sides = dmi_map_sides(&c->d.program);
    int64_t index[DM_MAX_DIMS] = {0}, position[DMI_MAP_SIDES] = {0};
    for (int k = 0; k < c->d.ndim; k++) {
        if (c->d.extent[k] == 0) {
            return;
        }
    }
    for (;;) {
        for (int s = 0; s < sides; s++) {
            position[s] = c->d.offset[s];
            for (int k = 0; k < c->d.ndim; k++) {
                position[s] += index[k] * c->d.stride[s][k];
            }
        }
        one_element(c, at, position);
        int k = c->d.ndim - 1;
        while (k >= 0 && ++index[k] == c->d.extent[k]) {
            index[k--] = 0;
        }
        if (k < 0) {
            return;
        }
    }
}

static void check_case(rng *r, int depth, int ndim, int64_t longest, bool share)
{
    map_case c;
    void *at[DMI_MAP_SIDES], *expected_at[DMI_MAP_SIDES];
    map_case_random(r, &c, depth, true);
    map_keep(r, &c);
    int out = c.d.program.inputs, sides = dmi_map_sides(&c.d.program), shared = out;
    bool keeps_input = out > 0 && sides > out + 1 && c.d.program.kept_type[0] == c.d.dtype[0];
    if (keeps_input) { /* what is kept is an input, too */
        c.d.dtype[out + 1] = c.d.dtype[0];
    }
    map_box(r, &c, ndim, longest, share && !keeps_input);
    if (keeps_input) {
        shared = out + 1;
        memcpy(c.d.stride[0], c.d.stride[shared], sizeof c.d.stride[0]);
        c.d.offset[0] = c.d.offset[shared];
        c.span[0] = -1;
    }
    for (int s = 0; s < sides; s++) {
        at[s] = expected_at[s] = c.span[s] < 0 ? NULL : random_array(r, c.d.dtype[s], c.span[s]);
    }
    for (int s = out; s < sides; s++) {
        size_t bytes = (size_t)(c.span[s] * width_of(c.d.dtype[s]));
        expected_at[s] = malloc(bytes + 1);
        assert_non_null(expected_at[s]);
        memcpy(expected_at[s], at[s], bytes);
    }
    if (c.span[0] < 0 && out > 0) {
        at[0] = at[shared];
        expected_at[0] = expected_at[shared];
    }
    expect_all(&c, expected_at);
    dmi_run_map(dmi_backend_cpu(), NULL, &c.d, c.m.number, c.m.numbers, at);
    for (int s = out; s < sides; s++) {
        check_parts("map", c.d.dtype[s], at[s], expected_at[s], c.span[s]);
        free(expected_at[s]);
    }
    for (int s = c.span[0] < 0; s < sides; s++) {
        free(at[s]);
    }
}

static void test_one_step(void **state)
{
    (void)state;
    rng r = {11};
    for (int round = 0; round < 3000; round++) {
        int ndim = (int)rng_in(&r, 0, 4);
        check_case(&r, 1, ndim, ndim <= 1 ? 3000 : ndim == 2 ? 30 : 5, round % 3 == 0);
    }
}

static void test_programs(void **state)
{
    (void)state;
    rng r = {12};
    for (int round = 0; round < 2000; round++) {
        int ndim = (int)rng_in(&r, 0, 4);
        check_case(&r, (int)rng_in(&r, 2, 3), ndim, ndim <= 1 ? 3000 : ndim == 2 ? 30 : 5, round % 3 == 0);
    }
}

static void test_eight_dims(void **state)
{
    (void)state;
    rng r = {23};
    for (int round = 0; round < 30; round++) {
        check_case(&r, 2, 8, 2, false);
        check_case(&r, 2, 2, 1500, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_step),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_eight_dims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
