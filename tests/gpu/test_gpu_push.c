/* Pushes by a kernel: the bytes are where they belong, no others have changed, and whoever has waited for the
 * counter finds them. From GPU 0 to GPU 1 where there are two that reach each other, else within one. */
#include "gpu/gpu_case.h"

enum { ROUNDS = 300, BYTES = 1 << 20, MOST_ROWS = 40 };

typedef struct ends {
    dmi_queue *q;     /* of the sender */
    dmi_stream there; /* of the receiver, where the counters are */
    char *src, *dst;  /* of BYTES */
    uint32_t *counter, *numbers;
    int to;
} ends;

static void ends_make(ends *e)
{
    int n = gpus_or_skip();
    uint32_t number[ROUNDS + 1];
    e->to = n > 1 && dmi_cu_can_peer(0, 1) ? 1 : 0;
    ok(dmi_cuda_queue_create(0, &e->q));
    ok(dmi_cuda_queue_first(e->q));
    if (e->to != 0) {
        ok(dmi_cu_peer(e->to));
    }
    e->src = dmi_cu_malloc(BYTES);
    e->numbers = dmi_cu_malloc(sizeof number);
    ok(dmi_cu_use(e->to));
    ok(dmi_cu_stream_create(&e->there));
    e->dst = dmi_cu_malloc(BYTES);
    e->counter = dmi_cu_malloc(sizeof *e->counter);
    assert_true(e->src && e->dst && e->numbers && e->counter);
    ok(dmi_cu_zero(e->counter, sizeof *e->counter));
    for (uint32_t i = 0; i <= ROUNDS; i++) {
        number[i] = i << 12;
    }
    ok(dmi_cu_move(e->numbers, number, sizeof number));
    ok(dmi_cu_use(0));
}

static void ends_free(ends *e)
{
    assert_int_equal(e->q->error, 0);
    dmi_cuda_queue_destroy(e->q);
    dmi_cu_stream_destroy(e->there);
    dmi_cu_release(e->src);
    dmi_cu_release(e->dst);
    dmi_cu_release(e->numbers);
    dmi_cu_release(e->counter);
}

static dmi_push random_push(uint64_t *r)
{
    int64_t longest = random_in(r, 0, 3) == 0 ? 20000 : 300, unit = (int64_t)1 << random_in(r, 0, 4);
    dmi_push p = {.width = random_in(r, 0, longest) / unit * unit, .height = random_in(r, 0, MOST_ROWS)};
    if (random_in(r, 0, 4) == 0) { /* one long row */
        p.width *= p.height;
        p.height = 1;
    }
    p.width = DMI_MIN(p.width, (BYTES - 4096) / DMI_MAX(p.height, 1) - 64);
    p.src_pitch = p.width + random_in(r, 0, 3) * unit;
    p.dst_pitch = p.width + random_in(r, 0, 3) * unit;
    return p;
}

static void test_rows(void **state)
{
    ends e;
    (void)state;
    ends_make(&e);
    uint64_t r = 77;
    char *source = malloc(BYTES), *expected = malloc(BYTES), *got = malloc(BYTES);
    assert_true(source && expected && got);
    for (int64_t i = 0; i < BYTES; i++) {
        source[i] = (char)next_random(&r);
    }
    ok(dmi_cu_move(e.src, source, BYTES));
    for (int round = 1; round <= ROUNDS; round++) {
        dmi_push p = random_push(&r);
        int64_t from = random_in(&r, 0, 64), to = random_in(&r, 0, 64);
        memset(expected, round, BYTES);
        ok(dmi_cu_move(e.dst, expected, BYTES));
        for (int64_t i = 0; i < p.height; i++) {
            memcpy(expected + to + i * p.dst_pitch, source + from + i * p.src_pitch, (size_t)p.width);
        }
        p.src = e.src + from;
        p.dst = e.dst + to;
        p.counter = e.counter;
        p.value = &e.numbers[round];
        dmi_cuda_push(e.q, &p);
        if (e.q->error) {
            fail_msg("%s", e.q->error_text);
        }
        ok(dmi_cu_use(e.to));
        ok(dmi_cu_wait_value(e.there, e.counter, (uint32_t)round << 12));
        ok(dmi_cu_copy(e.there, got, e.dst, BYTES)); /* behind the wait */
        ok(dmi_cu_stream_wait(e.there));
        if (memcmp(got, expected, BYTES) != 0) {
            fail_msg("round %d: %lld bytes in %lld rows, %lld and %lld apart, from %lld to %lld", round,
                     (long long)p.width, (long long)p.height, (long long)p.src_pitch, (long long)p.dst_pitch,
                     (long long)from, (long long)to);
        }
    }
    ends_free(&e);
    free(source);
    free(expected);
    free(got);
}

/* Many one after another with nothing between them: the k-th has come when the counter says k. */
static void test_stream(void **state)
{
    enum { WORDS = BYTES / ROUNDS / 64 * 16 };
    ends e;
    (void)state;
    ends_make(&e);
    uint32_t *words = malloc(BYTES), *got = malloc(BYTES);
    assert_true(words && got);
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        words[i] = i * 2654435761u;
    }
    ok(dmi_cu_move(e.src, words, BYTES));
    ok(dmi_cu_zero(e.dst, BYTES));
    ok(dmi_cu_use(e.to));
    uint32_t *seen = dmi_cu_malloc(BYTES); /* what was there when the counter had come so far */
    assert_non_null(seen);
    for (int k = 0; k < ROUNDS; k++) {
        int64_t row = WORDS * 4, at = k * row;
        dmi_push p = {.src = e.src + at, .dst = e.dst + at, .src_pitch = row / 4, .dst_pitch = row / 4};
        p.width = row / 4;
        p.height = 4;
        p.counter = e.counter;
        p.value = &e.numbers[k + 1];
        dmi_cuda_push(e.q, &p);
    }
    ok(dmi_cu_use(e.to));
    for (int k = 0; k < ROUNDS; k++) {
        int64_t row = WORDS * 4, at = k * row;
        ok(dmi_cu_wait_value(e.there, e.counter, (uint32_t)(k + 1) << 12));
        ok(dmi_cu_copy(e.there, (char *)seen + at, e.dst + at, row));
    }
    ok(dmi_cu_stream_wait(e.there));
    ok(dmi_cu_move(got, seen, ROUNDS * WORDS * 4));
    assert_memory_equal(got, words, ROUNDS * WORDS * 4);
    dmi_cu_release(seen);
    ends_free(&e);
    free(words);
    free(got);
}

#ifndef DMATH_WITH_CUDA
/* What a GPU would fault at is told here. */
static void test_refused(void **state)
{
    ends e;
    char host[64];
    (void)state;
    ends_make(&e);
    dmi_push good = {
        .src = e.src, .dst = e.dst, .width = 8, .height = 1, .counter = e.counter, .value = e.numbers};
    for (int k = 0; k < 5; k++) {
        dmi_push p = good;
        p.src = k == 0 ? host : p.src;
        p.dst = k == 1 ? e.dst + BYTES - 7 : p.dst;
        p.counter = k == 2 ? (uint32_t *)(void *)(host + 4) : p.counter;
        p.value = k == 3 ? (uint32_t *)(void *)host : p.value;
        p.height = k == 4 ? 2 : 1; /* rows on top of one another */
        dmi_cuda_push(e.q, &p);
        assert_int_equal(e.q->error, 1);
        assert_non_null(strstr(e.q->error_text, "push: "));
        e.q->error = 0;
    }
    ends_free(&e);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_stream),
#ifndef DMATH_WITH_CUDA
        cmocka_unit_test(test_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
