/* Failures at workers, and poison, name the public call and its operands as its prototype has them, whatever
 * operations it is made of. One session, so that it can run as ranks too. */
#include "robust.h"

#include <dmath/linalg.h>
#include <dmath/program.h>

enum { N = 8 };
static dm_session *s;

/* A call on arrays that lie whole on one worker, whose second kernel it is. */
typedef struct named_call {
    const char *name, *failure, *first, *poison; /* first: how an operand is named */
    dm_status (*run)(dm_array x, dm_array out);
} named_call;

static dm_status relu(dm_array x, dm_array out)
{
    return dm_relu(s, x, out);
}

static dm_status transpose(dm_array x, dm_array out)
{
    return dm_transpose(s, x, out);
}

static dm_status log_softmax(dm_array x, dm_array out)
{
    return dm_log_softmax(s, x, (int[]){1}, 1, out);
}

static dm_status program(dm_array x, dm_array out)
{
    dm_program p;
    OK(dm_program_begin(s));
    OK(dm_transpose(s, x, out));
    OK(dm_relu(s, out, out));
    OK(dm_program_end(s, &p));
    dm_status status = dm_program_run(s, p, 1, 0, NULL);
    OK(dm_program_destroy(s, p));
    return status;
}

static dm_status covariance(dm_array x, dm_array out)
{
    return dm_covariance(s, x, 0, 0, out);
}

static dm_status map(dm_array x, dm_array out)
{
    return dm_map(s, "2 * weights + 1", 1, (dm_map_arg[]){DM_ARG("weights", x)}, out);
}

static const named_call calls[] = {
    {"relu", "(relu) failed on worker", "; a: f64", "(relu), which failed", relu},
    {"transpose", "(transpose) failed on worker", "; src: f64", "(transpose), which failed", transpose},
    {"log_softmax", "(log_softmax) failed on worker", "; x: f64", "(log_softmax), which failed", log_softmax},
    {"program", "(program_run), its call 1 of 2, transpose, failed on worker", "; array: f64",
     "(program_run), which failed", program},
    {"map", "(map) failed on worker", "; weights: f64", "(map), which failed", map},
    {"covariance", "(covariance) failed on worker", "; x: f64", "(covariance), which failed", covariance},
};

static void expect(const named_call *call, const char *part)
{
    if (!strstr(dm_error_message(), part)) {
        fail_msg("%s: the message does not say '%s': %s", call->name, part, dm_error_message());
    }
}

static void test_calls(void **state)
{
    (void)state;
    int count = dm_workers(s);
    assert_in_range(count, 1, sizeof calls / sizeof *calls);
    for (int i = 0; i < count; i++) {
        const named_call *call = &calls[i];
        const dm_layout there = dm_layout_single(i);
        dm_array x, out;
        double values[N * N];
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){N, N}, &there, &x));
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){N, N}, &there, &out));
        OK(dm_fill(s, x, 1));
        OK(call->run(x, out));
        assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
        expect(call, call->failure);
        expect(call, call->first);
        assert_int_equal(dm_array_read(s, out, NULL, NULL, values, 0), DM_ERR_POISONED);
        expect(call, call->poison);
        OK(dm_array_read(s, x, NULL, NULL, values, 0));
        OK(dm_array_destroy(s, x));
        OK(dm_array_destroy(s, out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls)};
    (void)deadline(NULL);
    s = open_session(getenv("DMATH_TEST_LAUNCHED") ? 0 : (int)(sizeof calls / sizeof *calls),
                     "fault='compute:2',log=error");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_session(s);
    return failed;
}
