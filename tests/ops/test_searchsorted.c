/* Places in sorted elements, against counting */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const long double x = *(const long double *)a, y = *(const long double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

static void search_case(dmt_case *c)
{
    static const dm_dtype mixed[] = {DM_F64, DM_I32, DM_F32, DM_I8, DM_U16};
    int64_t shape[DM_MAX_DIMS], n = dmt_chance(&c->random, 10) ? 0 : dmt_int(&c->random, 1, 900);
    int ndim = (int)dmt_int(&c->random, 0, 3), right = dmt_chance(&c->random, 50);
    dm_dtype from = dmt_dtype_random(c), to = from;
    if (dmt_chance(&c->random, 30)) { /* all values are exact in what these two promote to */
        from = mixed[dmt_int(&c->random, 0, 4)];
        to = mixed[dmt_int(&c->random, 0, 4)];
    }
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 50) ? 60 : 1500, shape);
    dmt_host *sorted = dmt_host_make(&c->scratch, from, 1, &n),
             *v = dmt_host_make(&c->scratch, to, ndim, shape);
    dmt_host *want = dmt_host_make(&c->scratch, dmt_chance(&c->random, 70) ? DM_I64 : DM_I32, ndim, shape);
    int kind = dmt_chance(&c->random, 30) ? DMT_SMALL : dmt_chance(&c->random, 40) ? DMT_ODD : DMT_SMOOTH;
    dmt_host_random(sorted, &c->random, kind);
    dmt_host_random(v, &c->random, kind);
    for (int64_t i = 0; i < v->count && from == to && n > 0; i++) { /* ties */
        v->v[i] = dmt_chance(&c->random, 30) ? sorted->v[dmt_int(&c->random, 0, n - 1)] : v->v[i];
    }
    qsort(sorted->v, (size_t)n, sizeof *sorted->v, compare);
    for (int64_t i = 0; i < v->count; i++) {
        for (int64_t k = 0; k < n; k++) {
            int order = compare(&sorted->v[k], &v->v[i]);
            want->v[i] += right ? order <= 0 : order < 0;
        }
    }
    dmt_operand *a = dmt_operand_make(c, "sorted", sorted, 0), *b = dmt_operand_make(c, "v", v, 0);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, "%s", right ? ", right" : ", left");
    DMT_OK(c, dm_searchsorted(c->session, a->array, b->array, right, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, a);
    dmt_operand_unchanged(c, b);
}

static void test_search(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "searchsorted", .cases = 2000, .fn = search_case});
    dmt_run(
        &(dmt_suite){.name = "searchsorted, wide", .cases = 700, .fn = search_case, .options = "sort_wide=1"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_search)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
