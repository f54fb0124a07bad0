/* Stacks: threads of the library have enough of it, whatever the program's threads get by default (`ulimit
 * -s`), and a thread that has too little cannot start a session. */
#include "robust.h"

#include <pthread.h>

enum { SIDE = 48, SMALL = 64 << 10 };

/* Fills, reductions and conversions have tables on the stack of the thread that computes. */
static void compute(void)
{
    dm_session *s = open_session(3, "device=cpu,log=error");
    dm_array a, b, total;
    double values[SIDE], sum = 0;
    OK(dm_matrix(s, DM_F32, SIDE, SIDE, &a));
    OK(dm_matrix(s, DM_F32, SIDE, SIDE, &b));
    OK(dm_vector(s, DM_F64, SIDE, &total));
    OK(dm_fill_uniform(s, a, 0, 1, 7));
    OK(dm_fill(s, b, 2));
    OK(dm_transpose(s, a, b));
    OK(dm_multiply(s, 1, b, b, b));
    OK(dm_sum_dim(s, b, 0, total));
    OK(dm_sort(s, a, 1, 0, a));
    OK(dm_sync(s));
    OK(dm_array_read(s, total, NULL, NULL, values, 0));
    for (int i = 0; i < SIDE; i++) {
        sum += values[i];
    }
    assert_true(sum > SIDE * SIDE * 0.28 && sum < SIDE * SIDE * 0.39); /* a third, by chance */
    OK(dm_finalize(s, &(int64_t){0}));
}

static void test_threads(void **state)
{
    (void)state;
    pthread_attr_t before, small;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, SMALL), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    compute();
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&small);
    pthread_attr_destroy(&before);
}

typedef struct start {
    dm_status status;
    char text[256];
} start;

static void *start_session(void *context)
{
    start *given = context;
    dm_session *s = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    config.options = "log=error";
    given->status = dm_init(&config, &s);
    snprintf(given->text, sizeof given->text, "%s", dm_error_message());
    return given->status == DM_OK && dm_finalize(s, NULL) != DM_OK ? given : NULL;
}

static start start_with(size_t stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    void *failed = NULL;
    start out = {0};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack), 0);
    assert_int_equal(pthread_create(&thread, &attributes, start_session, &out), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    pthread_attr_destroy(&attributes);
    return out;
}

static void test_caller(void **state)
{
    (void)state;
    start small = start_with(128 << 10), enough = start_with(1 << 20);
#if !defined(__SANITIZE_THREAD__) /* which makes such stacks larger */
    assert_int_equal(small.status, DM_ERR_NOMEM);
    assert_non_null(strstr(small.text, "init: the calling thread has "));
    assert_non_null(strstr(small.text, " KiB of stack left, and dmath needs 192 KiB: see `ulimit -s'"));
#else
    (void)small;
#endif
    if (enough.status != DM_OK) {
        fail_msg("%s", enough.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_threads, deadline),
        cmocka_unit_test_setup(test_caller, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
