/* Overlap: over links of a set bandwidth a cyclic product takes no longer than the larger of its products and
 * its transfers, plus one step. The bandwidth is chosen from the machine's own speed, so that both sides
 * matter. */
#include <dmath/dmath.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { WORKERS = 2, N = 1536, ROUNDS = 7, ATTEMPTS = 6 };

static void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dm_status_name(status), dm_error_message());
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

typedef struct setup {
    dm_session *s;
    dm_array a, b, c;
} setup;

/* b_rows: the blocks of b that roll are slices of k; else b is on every worker and nothing moves. */
static setup begin(const char *options, bool moves)
{
    setup u;
    dm_config config = DM_CONFIG_INIT;
    config.workers = WORKERS;
    config.options = options;
    ok(dm_init(&config, &u.s));
    dm_layout rows = dm_layout_cyclic(u.s, 0, N / WORKERS / 4), all = dm_layout_replicated(u.s);
    int64_t shape[2] = {N, N};
    ok(dm_matrix(u.s, DM_F64, N, N, &u.a));
    ok(dm_array_create(u.s, DM_F64, 2, shape, moves ? &rows : &all, &u.b));
    ok(dm_matrix(u.s, DM_F64, N, N, &u.c));
    ok(dm_fill_uniform(u.s, u.a, -1, 1, 1));
    ok(dm_fill_uniform(u.s, u.b, -1, 1, 2));
    ok(dm_fill(u.s, u.c, 0));
    ok(dm_sync(u.s));
    return u;
}

static void finish(setup *u)
{
    ok(dm_array_destroy(u->s, u->a));
    ok(dm_array_destroy(u->s, u->b));
    ok(dm_array_destroy(u->s, u->c));
    ok(dm_finalize(u->s, NULL));
}

static double product(setup *u)
{
    double t = now();
    ok(dm_gemm(u->s, DM_N, DM_N, 1, u->a, u->b, 0, u->c));
    ok(dm_sync(u->s));
    return now() - t;
}

typedef struct times {
    double products, transfers, together, limit;
} times;

static times measure(double transfer_over_compute)
{
    char options[128];
    double compute[ROUNDS], both[ROUNDS];
    setup still = begin(NULL, false);
    for (int i = 0; i < ROUNDS; i++) {
        compute[i] = product(&still);
    }
    double bytes = (double)N * (N / WORKERS) * 8 * (WORKERS - 1);
    times t = {.transfers = median(compute, ROUNDS) * transfer_over_compute};
    snprintf(options, sizeof options, "gemm_algorithm=cyclic,link_gbps=%.6f", bytes / t.transfers / 1e9);
    setup rolling = begin(options, true);
    for (int i = 0; i < ROUNDS; i++) { /* in turn, as the machine's speed drifts */
        compute[i] = product(&still);
        both[i] = product(&rolling);
    }
    t.together = median(both, ROUNDS);
    t.products = median(compute, ROUNDS);
    /* a step: one of the 4 * WORKERS blocks of k, its product and its transfer */
    double step = (t.products + t.transfers) / (4 * WORKERS);
    t.limit = 1.1 * (t.products > t.transfers ? t.products : t.transfers) + step;
    finish(&still);
    finish(&rolling);
    return t;
}

/* A machine with other work on it is measured again: without overlap, no time would be much below the sum of both. */
static void one_balance(double transfer_over_compute)
{
    bool strict = getenv("DMATH_TEST_STRICT") != NULL, shown = false;
    for (int attempt = 0; attempt < ATTEMPTS && !shown; attempt++) {
        times t = measure(transfer_over_compute);
        double sum = t.products + t.transfers;
        printf("products %.1f ms, transfers %.1f ms, together %.1f ms, limit %.1f ms, without overlap %.1f ms\n",
               t.products * 1e3, t.transfers * 1e3, t.together * 1e3, t.limit * 1e3, sum * 1e3);
        shown = t.together <= t.limit || (!strict && t.together < 0.9 * sum);
    }
    assert_true(shown);
}

static void test_balanced(void **state)
{
    (void)state;
    one_balance(1.0);
}

static void test_products_longer(void **state)
{
    (void)state;
    one_balance(0.5);
}

static void test_transfers_longer(void **state)
{
    (void)state;
    one_balance(2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_products_longer),
        cmocka_unit_test(test_transfers_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
