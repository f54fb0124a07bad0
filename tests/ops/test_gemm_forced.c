/* Each algorithm of the product, forced: products that it has to serve, and random ones, which it may refuse.
 * With DMATH_GEMM_ALGORITHM only that one, in a launched session too. */
#include "support/product.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *text, const char *other)
{
    return text && strcmp(text, other) == 0;
}

/* What the algorithm needs of machine and session is there: 1; it is not: 0; only the library knows: -1. */
static int available(const char *algorithm, int workers)
{
    const char *transport = getenv("DMATH_TRANSPORT");
    if (workers < 2) {
        return -1; /* nothing moves, and some forms then have nothing to refuse */
    }
    bool fused = is(algorithm, "fused");
    if (!fused && !is(algorithm, "panels")) {
        return 1;
    }
    if (dmt_on_cpu() || (fused && (getenv("DMATH_PRETEND_HOSTS") || is(transport, "mpi")))) {
        return 0;
    }
    if (fused && is(getenv("DMATH_TEST_FUSED"), "1")) {
        return 1;
    }
    return !fused || (is(getenv("DMATH_DEVICE"), "emulated") && !is(transport, "cuda_mpi")) ? 1 : -1;
}

/* All by rows and of whole groups of 16 bytes, or split along k for the contraction: all forms serve that. */
static void known_case(dmt_case *c)
{
    dmt_forced *forced = c->user;
    const char *const names[] = {"a", "b", "c"};
    bool contract = is(forced->algorithm, "contract"), small = c->number % 2 == 1;
    bool half = is(forced->algorithm, "fused") || is(forced->algorithm, "panels") || small;
    dm_dtype dtype = half ? DM_BF16 : DM_F32;
    int64_t side = (small ? 16 : 32) * c->workers;
    dmt_product p = {.m = side, .n = side, .k = side, .alpha = 1, .beta = small ? -1 : 0};
    dmt_product_fill(c, &p, dtype, dtype, dtype, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dm_layout layout = contract && i == 0 ? dm_layout_cols(c->session) : dm_layout_rows(c->session);
        o[i] = dmt_operand_plain(c, names[i], values[i], &layout, contract && i == 0 ? "columns" : "rows");
    }
    dmt_product_say(c, &p);
    int64_t before = forced->served;
    if (dmt_product_run(c, &p, o[0]->array, o[1]->array, o[2]->array)) {
        dmt_product_check(c, &p, true, o[2]);
    }
    int expected = available(forced->algorithm, c->workers), served = forced->served > before;
    if (expected >= 0 && served != expected) {
        dmt_fail(c, "%s %s a product that it %s", forced->algorithm, served ? "served" : "did not serve",
                 expected ? "has to serve" : "cannot serve here");
    }
}

/* options: of the sessions; NULL: the environment forces the algorithm. */
static void run_forced(const char *algorithm, const char *options)
{
    dmt_forced forced = {.algorithm = algorithm ? algorithm : "auto"};
    char name[80];
    algorithm = forced.algorithm;
    bool aligned = is(algorithm, "fused") || is(algorithm, "panels");
    dmt_suite suite = {.name = name, .options = options, .user = &forced};
    snprintf(name, sizeof name, "gemm_%s_known", algorithm);
    suite.fn = known_case;
    suite.cases = 4;
    suite.workers = 3;
    suite.each = true;
    dmt_run(&suite);
    snprintf(name, sizeof name, "gemm_%s_layouts", algorithm);
    suite.fn = dmt_product_layouts_case;
    suite.cases = is(algorithm, "panels")  ? 1000
                  : is(algorithm, "fused") ? 10
                                           : 300; /* fused: f32 is refused */
    dmt_run(&suite);
    snprintf(name, sizeof name, "gemm_%s", algorithm);
    suite.fn = aligned ? dmt_product_aligned_case : dmt_product_case;
    suite.cases = aligned ? 400 : 250;
    suite.workers = 0;
    suite.each = false;
    dmt_run(&suite);
    if (forced.served + forced.otherwise + forced.refused == 0) {
        return; /* skipped */
    }
    print_message("%s: served %" PRId64 ", in another form as nothing moves %" PRId64 ", refused %" PRId64 "\n",
                  algorithm, forced.served, forced.otherwise, forced.refused);
}

#define FORCED(name, more)                                                                                     \
    static void test_##name(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        run_forced(#name, "gemm_algorithm=" #name more);                                                       \
    }
FORCED(cyclic, "")
FORCED(two_block, "")
FORCED(ring, "")
FORCED(stationary, "")
FORCED(contract, "")
FORCED(fused, "")
FORCED(panels, ",gemm_compute=tf32") /* small whole numbers stand it */

static void test_environment(void **state)
{
    (void)state;
    run_forced(getenv("DMATH_GEMM_ALGORITHM"), NULL);
}

int main(void)
{
    const struct CMUnitTest environment[] = {cmocka_unit_test(test_environment)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cyclic),     cmocka_unit_test(test_two_block), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_stationary), cmocka_unit_test(test_contract),  cmocka_unit_test(test_fused),
        cmocka_unit_test(test_panels),
    };
    const char *algorithm = getenv("DMATH_GEMM_ALGORITHM");
    if (algorithm && *algorithm && !is(algorithm, "auto")) {
        return cmocka_run_group_tests(environment, dmt_start, dmt_finish);
    }
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
