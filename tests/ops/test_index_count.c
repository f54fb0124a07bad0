/* The look at indices before take and put: which is outside. Its counts are checked by what the exchange moves,
 * and in tests/test_index.c. */
#include "index_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One index is outside: the message says which, and out stays as it is. */
static void outside_case(dmt_case *c)
{
    index_case k;
    char expected[200];
    do {
        index_case_random(c, &k, DM_F32);
    } while (k.mode != DM_RAISE || k.indices->count == 0 || k.indices->dtype == DM_U8 || k.shape[k.dim] > 100);
    bool below = k.indices->dtype != DM_U16 && k.indices->dtype != DM_U32 && k.indices->dtype != DM_U64 &&
                 dmt_chance(&c->random, 50);
    int64_t n = k.shape[k.dim], number = dmt_int(&c->random, 0, k.indices->count - 1), at[DM_MAX_DIMS];
    int64_t bad = below ? -n - 1 : n;
    int used = snprintf(expected, sizeof expected, "take%s: indices[", k.along ? "_along_dim" : "");
    k.indices->v[number] = (long double)bad;
    if (number + 1 < k.indices->count) { /* the first is named */
        k.indices->v[dmt_int(&c->random, number + 1, k.indices->count - 1)] = (long double)n;
    }
    dmt_unlinear(k.indices->ndim, k.indices->shape, number, at);
    for (int d = 0; d < k.indices->ndim; d++) {
        used += snprintf(expected + used, sizeof expected - (size_t)used, "%s%lld", d ? ", " : "",
                         (long long)at[d]);
    }
    snprintf(expected + used, sizeof expected - (size_t)used, "] is %lld, but dim %d of x has %lld elements",
             (long long)bad, k.dim, (long long)n);
    dmt_host *before = dmt_host_make(&c->scratch, DM_F32, k.ndim, k.positions);
    dmt_host_random(before, &c->random, DMT_SMOOTH);
    dmt_operand *x = dmt_operand_make(c, "x", k.x, 0);
    dmt_operand *indices = dmt_operand_make(c, "indices", k.indices, 0);
    dmt_operand *out = dmt_operand_make(c, "out", before, 0);
    if (before->count == 0 && n == 0) {
        return;
    }
    if (k.along) {
        DMT_REFUSED(c, DM_ERR_ARG,
                    dm_take_along_dim(c->session, x->array, indices->array, k.dim, DM_RAISE, out->array));
    } else {
        DMT_REFUSED(c, DM_ERR_ARG, dm_take(c->session, x->array, indices->array, k.dim, DM_RAISE, out->array));
    }
    if (strcmp(dm_error_message(), expected) != 0) {
        dmt_fail(c, "the message is \"%s\", not \"%s\"", dm_error_message(), expected);
    }
    dmt_operand_unchanged(c, out);
}

static void test_outside(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "take outside", .cases = 150, .fn = outside_case});
    dmt_run(&(dmt_suite){.name = "take outside exchange",
                         .cases = 150,
                         .fn = outside_case,
                         .options = "index_algorithm=exchange"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outside)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
