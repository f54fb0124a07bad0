/* Error handlers, DM_CHECK, and whether messages name the call that was made. */
#include "support/refusal.h"

#include <dmath/check.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct seen {
    int calls;
    dm_status status;
    char message[400];
    pthread_t thread;
    dm_session *session; /* what the handler itself calls */
} seen;

static void note(void *context, dm_status status, const char *message)
{
    seen *s = context;
    s->calls++;
    s->status = status;
    s->thread = pthread_self();
    snprintf(s->message, sizeof s->message, "%s", message);
    if (s->session) { /* fails, and must not come back here */
        assert_int_equal(dm_rows(s->session, DM_NO_ARRAY, 1, 2, NULL), DM_ERR_HANDLE);
        assert_string_equal(message, s->message);
    }
}

static void saw(seen *s, dm_status got, dm_status want, const char *word)
{
    assert_int_equal(got, want);
    assert_int_equal(s->calls, 1);
    assert_int_equal(s->status, want);
    assert_true(pthread_equal(s->thread, pthread_self()));
    assert_string_equal(s->message, dm_error_message());
    if (!strstr(s->message, word)) {
        fail_msg("no %s in: %s", word, s->message);
    }
    s->calls = 0;
}

static int fails(const dm_task *task)
{
    return task->worker == 1 ? 9 : 0;
}

static void test_handler(void **state)
{
    (void)state;
    seen s = {0};
    dm_session *session = NULL;
    dm_array a, b;
    dm_config config = DM_CONFIG_INIT;
    config.on_error = note;
    config.error_context = &s;
    config.workers = -3;
    saw(&s, dm_init(&config, &session), DM_ERR_ARG, "workers");
    config.workers = 2;
    assert_int_equal(dm_register("fails", fails), DM_OK);
    assert_int_equal(dm_init(&config, &session), DM_OK);
    assert_int_equal(dm_matrix(session, DM_F32, 4, 5, &a), DM_OK);
    assert_int_equal(dm_matrix(session, DM_F64, 4, 5, &b), DM_OK);
    assert_int_equal(dm_copy(session, a, b), DM_OK);
    assert_int_equal(s.calls, 0);
    saw(&s, dm_matmul(session, a, a, b), DM_ERR_SHAPE, "matmul"); /* once, though it calls another */
    saw(&s, dm_copy(session, DM_NO_ARRAY, b), DM_ERR_HANDLE, "src");
    s.session = session;
    saw(&s, dm_array_read(session, a, NULL, NULL, NULL, 0), DM_ERR_ARG, "host");
    s.session = NULL;
    assert_int_equal(dm_apply(session, "fails", 0, NULL, NULL, NULL, 0), DM_OK);
    saw(&s, dm_sync(session), DM_ERR_TASK, "fails");
    assert_int_equal(dm_finalize(session, &(int64_t){0}), DM_OK);
    saw(&s, dm_finalize(session, NULL), DM_ERR_STATE, "finalized");
    assert_int_equal(dm_sync(NULL), DM_ERR_HANDLE); /* of no session */
    assert_int_equal(s.calls, 0);
}

/* Every call with a zero handle says its own name. */
static void names_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_array zero = DM_NO_ARRAY, out;
    double memory[8];
    REFUSED(DMT_ONE(HANDLE), "copy", dm_copy(s, zero, t.f));
    REFUSED(DMT_ONE(HANDLE), "relu", dm_relu(s, zero, t.f));
    REFUSED(DMT_ONE(SHAPE), "relu", dm_relu(s, t.f, t.wide));
    REFUSED(DMT_ONE(SHAPE), "scale", dm_scale(s, 1, t.wide, t.f));
    REFUSED(DMT_ONE(SHAPE), "transpose", dm_transpose(s, t.f, t.g));
    REFUSED(DMT_ONE(SHAPE), "permute", dm_permute(s, t.f, (int[]){1, 0}, t.g));
    REFUSED(DMT_ONE(SHAPE), "matmul", dm_matmul(s, t.f, t.g, t.wide));
    REFUSED(DMT_ONE(DTYPE), "matmul", dm_matmul(s, t.whole, t.whole, t.whole));
    REFUSED(DMT_ONE(HANDLE), "sum_dim", dm_sum_dim(s, zero, 0, t.f));
    REFUSED(DMT_ONE(HANDLE), "array_view", dm_array_view(s, zero, NULL, NULL, &out));
    REFUSED(DMT_ONE(HANDLE), "item", dm_item(s, zero, NULL, memory));
    REFUSED(DMT_ONE(ARG), "set_item", dm_set_item(s, t.whole, (int64_t[]){0, 0}, 0.5));
    REFUSED(DMT_ONE(ARG), "array_read", dm_array_read(s, t.f, NULL, NULL, NULL, 0));
    REFUSED(DMT_ONE(ARG), "fill_uniform", dm_fill_uniform(s, t.whole, 0, 0.5, 1));
    REFUSED(DMT_ONE(HANDLE), "array_save", dm_array_save(s, zero, "x.npy"));
    dmt_things_end(c, &t);
}

static void end_quietly(void *context, dm_status status, const char *message)
{
    (void)message;
    _exit(*(int *)context + (int)status);
}

/* What a program does whose call fails: its exit status, and what it says. */
static int run_program(const dm_config *config, char *text, size_t room)
{
    int ends[2], status = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        dm_session *session;
        dm_array a;
        DM_CHECK(dm_init(config, &session));
        DM_CHECK(dm_matrix(session, DM_F32, -1, 5, &a));
        _exit(77);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n = 1; n > 0 && length<room - 1; length += n> 0 ? (size_t)n : 0) {
        n = read(ends[0], text + length, room - 1 - length);
    }
    text[length] = 0;
    close(ends[0]);
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_check(void **state)
{
    (void)state;
    char text[2000];
    int base = 40;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    config.options = "device=cpu";
    assert_int_equal(run_program(&config, text, sizeof text), EXIT_FAILURE);
    const char *const parts[] = {"test_handler.c:", "dm_matrix(session, DM_F32, -1, 5, &a)", "ERR_ARG",
                                 "shape[0]"};
    for (int i = 0; i < 4; i++) {
        if (!strstr(text, parts[i])) {
            fail_msg("no %s in: %s", parts[i], text);
        }
    }
    config.on_error = end_quietly;
    config.error_context = &base;
    assert_int_equal(run_program(&config, text, sizeof text), base + DM_ERR_ARG);
    assert_null(strstr(text, "shape[0]"));
}

DMT_ONE_CASE(names_case)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check), /* first: forks */
        cmocka_unit_test(test_handler),
        cmocka_unit_test(test_names_case),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
