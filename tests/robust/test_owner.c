/* Two threads and one session: calls of a thread that is not the session's are errors and change nothing; a
 * session can be handed over. And numbers that calls refuse. */
#include "robust.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { N = 16, TURNS = 3000 };

typedef struct other {
    dm_session *session;
    dm_array a;
    atomic_int stop;
    atomic_int refused, taken;
    dm_status take;
} other;

static void *call_it(void *context)
{
    other *o = context;
    double values[N * N];
    dm_array b;
    int64_t alive;
    dm_status got[] = {dm_sync(o->session),
                       dm_fill(o->session, o->a, 7),
                       dm_array_read(o->session, o->a, NULL, NULL, values, 0),
                       dm_array_write(o->session, o->a, NULL, NULL, values, 0),
                       dm_matrix(o->session, DM_F64, 3, 3, &b),
                       dm_array_destroy(o->session, o->a),
                       dm_noop(o->session),
                       dm_scope_begin(o->session),
                       dm_array_save(o->session, o->a, "never.npy"),
                       dm_explain_begin(o->session),
                       dm_memory_trim(o->session),
                       dm_finalize(o->session, &alive)};
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        o->refused += got[i] == DM_ERR_STATE;
        o->taken += got[i] != DM_ERR_STATE;
    }
    return NULL;
}

static void in_thread(void *(*function)(void *), other *o)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, o), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_refused(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    other o = {.session = s, .a = make_matrix(s, N, NULL, 1)};
    in_thread(call_it, &o);
    assert_int_equal(o.taken, 0);
    assert_int_equal(o.refused, 12);
    matrix_is(s, o.a, N, 1);
    OK(dm_array_destroy(s, o.a));
    close_session(s);
}

static void *call_always(void *context)
{
    other *o = context;
    while (!atomic_load(&o->stop)) {
        call_it(o);
    }
    return NULL;
}

/* Both at once: no hang, no crash, right results. */
static void test_storm(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error,ring=4096");
    other o = {.session = s, .a = make_matrix(s, N, NULL, 1)};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, call_always, &o), 0);
    }
    dm_array b = make_matrix(s, N, NULL, 2);
    for (int i = 0; i < TURNS; i++) {
        OK(dm_copy(s, o.a, b));
        if (i % 10 == 0) {
            matrix_is(s, b, N, 1);
        }
    }
    atomic_store(&o.stop, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(o.taken, 0);
    OK(dm_array_destroy(s, o.a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

static void *take_it(void *context)
{
    other *o = context;
    o->take = dm_session_take(o->session);
    if (o->take == DM_OK) {
        o->take = dm_fill(o->session, o->a, 9);
    }
    return NULL;
}

static void *finish_it(void *context)
{
    other *o = context;
    int64_t alive;
    o->take = dm_session_take(o->session);
    o->take = o->take == DM_OK ? dm_finalize(o->session, &alive) : o->take;
    return NULL;
}

static void test_take(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    other o = {.session = s, .a = make_matrix(s, N, NULL, 1)};
    double values[N * N];
    in_thread(take_it, &o);
    OK(o.take);
    assert_int_equal(dm_fill(s, o.a, 1), DM_ERR_STATE);
    assert_non_null(strstr(dm_error_message(), "fill: "));
    assert_non_null(strstr(dm_error_message(), "dm_session_take"));
    OK(dm_session_take(s));
    OK(dm_session_take(s));
    OK(dm_array_read(s, o.a, NULL, NULL, values, 0));
    assert_true(values[0] == 9 && values[N * N - 1] == 9);
    in_thread(finish_it, &o);
    OK(o.take);
    assert_int_equal(dm_session_take(s), DM_ERR_STATE);
    assert_int_equal(dm_session_take(NULL), DM_ERR_HANDLE);
}

/* Its thread waits: for a function that ends when another thread has asked for the session. */
static atomic_int asked;
static int until_asked(const dm_task *task)
{
    (void)task;
    while (!atomic_load(&asked)) {
        usleep(1000);
    }
    return 0;
}

static void *take_later(void *context)
{
    other *o = context;
    usleep(100000);
    o->take = dm_session_take(o->session);
    atomic_store(&asked, 1);
    return NULL;
}

/* false: the other thread was faster than dm_sync, and has the session. */
static bool taken_in_a_wait(dm_session *s, dm_array a)
{
    other o = {.session = s};
    pthread_t thread;
    atomic_store(&asked, 0);
    OK(dm_apply(s, "until asked", 1, &a, (int[]){DM_READ}, NULL, 0));
    assert_int_equal(pthread_create(&thread, NULL, take_later, &o), 0);
    dm_status status = dm_sync(s);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(o.take == DM_OK || (o.take == DM_ERR_STATE && status == DM_OK));
    OK(dm_session_take(s));
    OK(dm_sync(s));
    return o.take != DM_OK;
}

static void test_take_from_a_wait(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    bool shown = false;
    for (int i = 0; i < 20 && !shown; i++) {
        shown = taken_in_a_wait(s, a);
    }
    assert_true(shown);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* Threads call beside dm_finalize: the session is held for them, or has ended. */
enum { CALLERS = 2 };
typedef struct beside {
    _Atomic(dm_session *) session;
    atomic_int stop, done, refused, wrong;
} beside;

static void *call_beside(void *context)
{
    beside *b = context;
    int number, count[3] = {0};
    while (!atomic_load(&b->stop)) {
        dm_session *s = atomic_load(&b->session);
        dm_status got[] = {dm_cancel(s), dm_session_signalled(s, &number)};
        for (int i = 0; i < 2; i++) {
            count[got[i] == DM_OK ? 0 : got[i] == DM_ERR_STATE ? 1 : 2]++;
        }
    }
    atomic_fetch_add(&b->done, count[0]);
    atomic_fetch_add(&b->refused, count[1]);
    atomic_fetch_add(&b->wrong, count[2]);
    return NULL;
}

static void test_beside_finalize(void **state)
{
    (void)state;
    pthread_t thread[CALLERS];
    mallopt(M_PERTURB, 0xa5); /* what is freed is nonsense */
    beside b = {.session = open_session(1, "log=error")};
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, call_beside, &b), 0);
    }
    const double end = seconds() + 4;
    for (int i = 0; i < 50 || seconds() < end; i++) {
        dm_session *s = atomic_load(&b.session);
        dm_array a;
        dm_status status = dm_vector(s, DM_F64, 10, &a);
        status = status == DM_OK ? dm_fill(s, a, 1) : status;
        status = status == DM_OK ? dm_finalize(s, &(int64_t){0}) : status;
        if (status != DM_OK && status != DM_ERR_CANCELLED) {
            fail_msg("%s", dm_error_message());
        }
        atomic_store(&b.session, open_session(1, "log=error"));
    }
    atomic_store(&b.stop, 1);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(b.wrong, 0);
    assert_true(b.done > 0 && b.refused > 0);
    mallopt(M_PERTURB, 0);
    close_session(b.session);
}

/* A function that starts a session of its own. */
static dm_status started;
static char said[256];
static int start_one(const dm_task *task)
{
    dm_session *own = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 1;
    if (task->worker == 1) {
        started = dm_init(&config, &own);
        snprintf(said, sizeof said, "%s", dm_error_message());
    }
    return own != NULL;
}

static void test_init_inside(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_apply(s, "start one", 1, &a, (int[]){DM_READ}, NULL, 0));
    OK(dm_sync(s));
    assert_int_equal(started, DM_ERR_STATE);
    assert_string_equal(said, "init: a function given to dm_register may not call dmath");
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static void test_numbers(void **state)
{
    (void)state;
    const double inf = 1.0 / 0.0;
    dm_session *s = open_session(1, "log=error");
    dm_array x, i;
    OK(dm_vector(s, DM_F64, 5, &x));
    OK(dm_vector(s, DM_I64, 5, &i));
    OK(dm_fill(s, i, 1));
    assert_int_equal(dm_fill_uniform(s, x, -inf, inf, 1), DM_ERR_ARG);
    assert_int_equal(dm_fill_uniform(s, x, 0, inf, 1), DM_ERR_ARG);
    assert_int_equal(dm_fill_uniform(s, x, -1.7e308, 1.7e308, 1), DM_ERR_ARG);
    OK(dm_fill_uniform(s, x, -8e307, 8e307, 1));
    assert_int_equal(dm_axpby(s, 1e300, i, 1, i), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "2^63"));
    assert_int_equal(dm_axpby(s, 9223372036854775808.0, i, 1, i), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "2^63"));
    assert_int_equal(dm_axpby(s, 0.5, i, 1, i), DM_ERR_ARG);
    assert_null(strstr(dm_error_message(), "2^63"));
    assert_int_equal(dm_sum(s, x, NULL, -3, 1, 0, i), DM_ERR_ARG);
    assert_int_equal(dm_sum(s, x, (const int *)(uintptr_t)8, 1000, 1, 0, i),
                     DM_ERR_ARG); /* dims are not read */
    OK(dm_array_destroy(s, x));
    OK(dm_array_destroy(s, i));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_refused, deadline),
        cmocka_unit_test_setup(test_storm, deadline),
        cmocka_unit_test_setup(test_take, deadline),
        cmocka_unit_test_setup(test_take_from_a_wait, deadline),
        cmocka_unit_test_setup(test_beside_finalize, deadline),
        cmocka_unit_test_setup(test_init_inside, deadline),
        cmocka_unit_test_setup(test_numbers, deadline),
    };
    OK(dm_register("until asked", until_asked));
    OK(dm_register("start one", start_one));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
