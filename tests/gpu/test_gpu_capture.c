/* Work of steps that is captured and run as a graph; what cannot be captured is an error, and the stream works
 * on. */
#include "gpu/gpu_case.h"
#include "kernels/direct.h"

enum { N = 64, BYTES = N * N * 4 };

static dm_status capture_run(dmi_stream s)
{
    dmi_graph *graph = NULL;
    dm_status status = dmi_cu_capture_end(s, &graph);
    status = status == DM_OK ? dmi_cu_graph_launch(graph, s) : status;
    dmi_cu_graph_destroy(graph);
    return status;
}

static dmi_queue *queue(void)
{
    dmi_queue *q = NULL;
    gpus_or_skip();
    ok(dmi_cuda_queue_create(0, &q));
    if (!dmi_cuda_queue_libraries(q)) { /* it allocates */
        fail_msg("%s", q->error_text);
    }
    return q;
}

static float *matrix(float scale)
{
    float host[N * N], *p = dmi_cu_malloc(BYTES);
    assert_non_null(p);
    for (int i = 0; i < N * N; i++) {
        host[i] = scale * (float)(i / N == i % N);
    }
    ok(dmi_cu_move(p, host, BYTES));
    return p;
}

static void expect_scale(const float *p, float scale)
{
    float host[N * N];
    ok(dmi_cu_move(host, p, BYTES));
    for (int i = 0; i < N * N; i++) {
        assert_true(host[i] == scale * (float)(i / N == i % N));
    }
}

static void multiply(dmi_queue *q, const float *a, const float *b, float *c)
{
    dmi_gemm d = {.dtype = DM_F32, .m = N, .n = N, .k = N, .lda = N, .ldb = N, .ldc = N};
    dmi_run_gemm(dmi_backend_cuda(), q, &d, 1, a, b, 0, c, NULL);
    if (q->error) {
        fail_msg("%s", q->error_text);
    }
}

/* A product, a copy in rows, a push with its counter: in one graph, several times. */
static void test_work(void **state)
{
    (void)state;
    dmi_queue *q = queue();
    float *a = matrix(2), *b = matrix(3), *c = matrix(1), *d = matrix(1), *e = matrix(1);
    uint32_t *words = dmi_cu_malloc(8), value[2] = {0, 5}, seen = 9;
    assert_non_null(words);
    for (int round = 0; round < 3; round++) {
        ok(dmi_cu_move(words, value, 8));
        ok(dmi_cu_set(c, 0, BYTES));
        ok(dmi_cu_set(d, 0, BYTES));
        ok(dmi_cu_set(e, 0, BYTES));
        ok(dmi_cu_capture_begin(q->stream));
        multiply(q, a, b, c);
        ok(dmi_cu_copy_2d(q->stream, d, N * 4, c, N * 4, N * 4, N));
        dmi_push p = {.src = d, .dst = e, .src_pitch = N * 4, .dst_pitch = N * 4, .width = N * 4, .height = N};
        p.counter = words;
        p.value = words + 1;
        dmi_cuda_push(q, &p);
        ok(capture_run(q->stream));
        ok(dmi_cu_stream_wait(q->stream));
        expect_scale(c, 6);
        expect_scale(d, 6);
        expect_scale(e, 6);
        ok(dmi_cu_move(&seen, words, 4));
        assert_int_equal(seen, 5);
    }
    void *all[] = {a, b, c, d, e, words};
    for (int i = 0; i < DMI_COUNT(all); i++) {
        dmi_cu_release(all[i]);
    }
    dmi_cuda_queue_destroy(q);
}

typedef dm_status call_fn(dmi_queue *q, void *memory, dmi_event event);
static dm_status call_malloc(dmi_queue *q, void *memory, dmi_event event)
{
    (void)q, (void)memory, (void)event;
    void *p = dmi_cu_malloc(4096);
    dmi_cu_release(p);
    return p ? DM_OK : DM_ERR_NOMEM;
}
static dm_status call_wait(dmi_queue *q, void *memory, dmi_event event)
{
    (void)memory, (void)event;
    return dmi_cu_stream_wait(q->stream);
}
static dm_status call_move(dmi_queue *q, void *memory, dmi_event event)
{
    uint32_t word;
    (void)q, (void)event;
    return dmi_cu_move(&word, memory, sizeof word);
}
static dm_status call_after(dmi_queue *q, void *memory, dmi_event event)
{
    (void)memory;
    return dmi_cu_event_after(q->stream, event); /* recorded outside */
}

static void test_broken(void **state)
{
    static call_fn *const calls[] = {call_malloc, call_wait, call_move, call_after};
    (void)state;
    dmi_queue *q = queue();
    dmi_event event = NULL;
    float *a = matrix(2), *b = matrix(3), *c = matrix(1);
    ok(dmi_cu_event_create(false, &event));
    ok(dmi_cu_event_record(event, q->stream));
    for (int i = 0; i < DMI_COUNT(calls); i++) {
        ok(dmi_cu_capture_begin(q->stream));
        ok(dmi_cu_copy(q->stream, c, a, BYTES));
        dm_status during = calls[i](q, a, event), run = capture_run(q->stream);
        if (during == DM_OK && run == DM_OK) {
            fail_msg("call %d did not break the capture", i);
        }
        printf("call %d: %s, then %s: %s\n", i, dmi_status_name(during), dmi_status_name(run),
               dmi_error_text());
        multiply(q, a, b, c); /* as ever */
        ok(dmi_cu_stream_wait(q->stream));
        expect_scale(c, 6);
    }
    dmi_cu_event_destroy(event);
    dmi_cu_release(a);
    dmi_cu_release(b);
    dmi_cu_release(c);
    dmi_cuda_queue_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_work), cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
