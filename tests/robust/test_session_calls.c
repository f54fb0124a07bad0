/* Every public call of a session: without one, with one that has ended, and with nothing in its other
 * arguments. It is refused with a message that names the call, or is right; nobody crashes, and what is there
 * stays as it is. */
#include "robust.h"

#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <dmath/factors.h>
#include <dmath/feed.h>
#include <dmath/group.h>
#include <dmath/index.h>
#include <dmath/layers.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/profile.h>
#include <dmath/program.h>
#include <dmath/random.h>
#include <dmath/reduce.h>
#include <dmath/require.h>

typedef struct call {
    const char *name;
    dm_status (*make)(dm_session *session);
} call;

#define CALL(name, arguments)                                                                                  \
    static dm_status make_##name(dm_session *session)                                                          \
    {                                                                                                          \
        return name arguments;                                                                                 \
    }
#include "session_calls.h"
#undef CALL

#define CALL(name, arguments) {#name, make_##name},
static const call calls[] = {
#include "session_calls.h"
};
enum { CALLS = sizeof calls / sizeof calls[0], N = 4 };

static int wrong;

static void complain(const call *c, dm_status got)
{
    wrong++;
    print_error("%s: %s: %s\n", c->name, dm_status_name(got), got == DM_OK ? "" : dm_error_message());
}

/* "fill: ..." of dm_fill; dm_read is dm_read_checked behind a macro. */
static bool names(const char *text, const char *call_name)
{
    const char *checked = strstr(call_name, "_checked");
    size_t length = (checked ? (size_t)(checked - call_name) : strlen(call_name)) - strlen("dm_");
    return strncmp(text, call_name + strlen("dm_"), length) == 0 && strncmp(text + length, ": ", 2) == 0;
}

/* Some look at an option before they look at the session. */
static bool refused(const call *c, dm_session *session, dm_status want, const char *words)
{
    dm_status got = c->make(session);
    bool said = got == want && strstr(dm_error_message(), words);
    if (!names(dm_error_message(), c->name) || !(said || got == DM_ERR_ARG || got == DM_ERR_HANDLE)) {
        complain(c, got);
    }
    return said;
}

static void test_no_session(void **state)
{
    int said = 0;
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        said += refused(&calls[i], NULL, DM_ERR_HANDLE, "session is NULL");
    }
    assert_true(CALLS > 300 && said > CALLS - 40);
    assert_int_equal(wrong, 0);
}

static void test_ended(void **state)
{
    int said = 0;
    (void)state;
    dm_session *gone = open_session(2, "device=cpu"), *s = open_session(2, "device=cpu");
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_finalize(gone, NULL));
    for (int i = 0; i < CALLS; i++) {
        said += refused(&calls[i], gone, DM_ERR_STATE, "the session has been finalized");
    }
    assert_true(said > CALLS - 40);
    assert_int_equal(wrong, 0);
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* Each in a session of its own, in which something may have begun. How many are right. */
static int nothing_else(dm_status (*begin)(dm_session *session))
{
    int right = 0;
    for (int i = 0; i < CALLS; i++) {
        dm_session *s = open_session(1, "device=cpu,log=error");
        OK(begin ? begin(s) : DM_OK);
        dm_status got = calls[i].make(s);
        right += got == DM_OK;
        if (got != DM_OK && !names(dm_error_message(), calls[i].name)) {
            complain(&calls[i], got);
        }
        dm_status end = dm_finalize(s, NULL);
        if (end != DM_OK && strcmp(calls[i].name, "dm_finalize") != 0) {
            fail_msg("dm_finalize after %s: %s", calls[i].name, dm_error_message());
        }
    }
    assert_int_equal(wrong, 0);
    return right;
}

static void test_nothing_else(void **state)
{
    (void)state;
    dm_status (*const begins[])(dm_session * session) = {NULL, dm_program_begin, dm_explain_begin};
    for (int i = 0; i < 3; i++) {
        int right = nothing_else(begins[i]);
        print_message("%d of %d calls are right without anything\n", right, CALLS);
        assert_in_range(right, 6, CALLS / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_session), cmocka_unit_test(test_ended),
                                       cmocka_unit_test(test_nothing_else)};
    return cmocka_run_group_tests(tests, deadline, NULL);
}
