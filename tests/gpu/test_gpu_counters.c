/* Counters of blocks go round: after more blocks than half of their range, all to places that were free at once, a
 * push still waits for a place that is in use. */
#include "dmath/dmath.h"
#include "exec/gpu/parts.h"
#include "gpu/gpu_case.h"

#ifdef DMATH_WITH_CUDA
#define DEVICE "device=cuda"
#else
#define DEVICE "device=emulated"
#endif

enum { HALF = 1 << (NUMBER_BITS - 1), BLOCKS = 1000, ROUNDS = HALF / BLOCKS + 6, N = 1500 };

static dm_array square(dm_session *s, int worker, float value)
{
    dm_array a;
    dm_layout there = dm_layout_single(worker);
    ok(dm_array_create(s, DM_F32, 2, (const int64_t[]){N, N}, &there, &a));
    ok(dm_fill(s, a, value));
    return a;
}

static void test_half_a_round(void **state)
{
    (void)state;
    static int here[BLOCKS], there[BLOCKS];
    const int64_t count = BLOCKS, one = 1;
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array x, y;
    (void)gpus_or_skip();
    config.options = DEVICE ",workers=2,share_gpu=1,pool_debug=0";
    ok(dm_init(&config, &s));
    for (int i = 0; i < BLOCKS; i++) {
        there[i] = 1;
    }
    dm_layout from = dm_layout_explicit(1, &one, here, count), to = dm_layout_explicit(1, &one, there, count);
    ok(dm_array_create(s, DM_F32, 1, &count, &from, &x));
    ok(dm_array_create(s, DM_F32, 1, &count, &to, &y));
    dm_array source = square(s, 0, 2), place = square(s, 1, 1), ones = square(s, 1, 1), out = square(s, 1, 0);
    ok(dm_fill(s, x, 1));
    ok(dm_sync(s));
    for (int i = 0; i < ROUNDS; i++) {
        ok(dm_copy(s, x, y));
        ok(dm_sync(s));
    }
    dm_counters n = {.size = sizeof n};
    ok(dm_counters_get(s, 0, &n));
    assert_true(n.messages_sent > HALF);
    ok(dm_gemm(s, DM_N, DM_N, 1, place, ones, 0, out));
    ok(dm_copy(s, source, place)); /* must wait until the product has read it */
    float *got = malloc(sizeof *got * N * N);
    assert_non_null(got);
    ok(dm_array_read(s, out, NULL, NULL, got, 0));
    for (int i = 0; i < N * N; i++) {
        assert_true(got[i] == N);
    }
    free(got);
    const dm_array all[] = {x, y, source, place, ones, out};
    for (int i = 0; i < 6; i++) {
        ok(dm_array_destroy(s, all[i]));
    }
    ok(dm_finalize(s, NULL));
}

int main(void)
{
    setenv("DMATH_EMULATED_DELAY_US", "0", 1); /* many blocks */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_half_a_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
