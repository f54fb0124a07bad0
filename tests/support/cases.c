#include "support/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one session of a launched test: a launch has no second one. */
static dm_session *launched_session;
static bool held; /* by dmt_hold */

bool dmt_launched(void)
{
    const char *text = getenv("DMATH_TEST_LAUNCHED");
    return text && strcmp(text, "1") == 0;
}

static int open_launched(void)
{
    if (dmt_launched()) {
        if (dm_init(NULL, &launched_session) != DM_OK) {
            print_error("dm_init: %s\n", dm_error_message());
            return -1;
        }
        print_message("launched with %d workers\n", dm_workers(launched_session));
    }
    return 0;
}

static int close_launched(void)
{
    if (launched_session) {
        int64_t alive = -1;
        dm_status status = dm_finalize(launched_session, &alive);
        launched_session = NULL;
        if (status != DM_OK || alive != 0) {
            print_error("dm_finalize: status %d (%s), %" PRId64 " arrays alive\n", (int)status,
                        dm_error_message(), alive);
            return -1;
        }
    }
    return 0;
}

int dmt_hold(void)
{
    held = true;
    return open_launched();
}

int dmt_release(void)
{
    held = false;
    return close_launched();
}

int dmt_start(void **state)
{
    (void)state;
    print_message("DMATH_TEST_SEED=%" PRIu64 "\n", dmt_seed());
    return held ? 0 : open_launched();
}

int dmt_finish(void **state)
{
    (void)state;
    return held ? 0 : close_launched();
}

dm_session *dmt_session_open(int workers, const char *options)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *session = NULL;
    if (launched_session) {
        return launched_session;
    }
    config.workers = workers;
    config.options = options;
    if (dm_init(&config, &session) != DM_OK) {
        fail_msg("dm_init with %d workers, options %s: %s", workers, options ? options : "none",
                 dm_error_message());
    }
    assert_int_equal(dm_workers(session), workers);
    return session;
}

void dmt_session_close(dm_session *session, int64_t alive)
{
    int64_t found = -1;
    if (session == launched_session) {
        return;
    }
    if (dm_finalize(session, &found) != DM_OK) {
        fail_msg("dm_finalize: %s", dm_error_message());
    }
    assert_int_equal(found, alive);
}

void dmt_say(dmt_case *c, const char *format, ...)
{
    size_t used = strlen(c->text);
    va_list list;
    va_start(list, format);
    vsnprintf(c->text + used, sizeof c->text - used, format, list);
    va_end(list);
}

_Noreturn void dmt_fail(dmt_case *c, const char *format, ...)
{
    char reason[2000];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    print_error("%s: %s\n  in %s\n  again: DMATH_TEST_SEED=%" PRIu64
                " DMATH_TEST_SUITE=%s DMATH_TEST_WORKERS=%d DMATH_TEST_CASE=%" PRId64 "\n",
                c->suite, reason, c->text, dmt_seed(), c->suite, c->workers, c->number);
    fail();
    abort(); /* fail() does not return, which its prototype does not say */
}

void dmt_status_is(dmt_case *c, dm_status got, dm_status want, const char *call)
{
    if (got != want) {
        dmt_fail(c, "%s gave %s, not %s: %s", call, dm_status_name(got), dm_status_name(want),
                 got == DM_OK ? "-" : dm_error_message());
    }
}

/* Whatever the case made is gone: no worker may hold memory of arrays any more. */
static void check_memory(dmt_case *c)
{
    for (int w = 0; w < c->workers; w++) {
        dm_memory memory = {.size = sizeof memory};
        DMT_OK(c, dm_memory_report(c->session, w, &memory));
        if (memory.arrays != 0 || memory.workspace != 0) {
            dmt_fail(c, "worker %d still holds %" PRId64 " bytes of arrays and %" PRId64 " of workspace", w,
                     memory.arrays, memory.workspace);
        }
    }
}

static void destroy(dmt_case *c, dm_array a)
{
    DMT_OK(c, dm_array_destroy(c->session, a));
}

static void end_case(dmt_case *c)
{
    for (dmt_operand *o = c->operands; o; o = o->next) {
        if (o->view || o->reshaped) {
            destroy(c, o->array);
            destroy(c, o->between);
        }
        destroy(c, o->base);
    }
    dmt_scratch_free(&c->scratch);
}

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 0) : otherwise;
}

/* The j-th case of this window: random ones follow those of earlier windows, a list is gone round. */
static int64_t case_number(const dmt_suite *suite, int64_t cases, int64_t j)
{
    int64_t number = number_of("DMATH_TEST_WINDOW", 0) * cases + j;
    return suite->each ? number % suite->cases : number;
}

static int64_t run_on(const dmt_suite *suite, int workers, int64_t cases)
{
    dmt_case c = {.suite = suite->name, .user = suite->user};
    int64_t only = number_of("DMATH_TEST_CASE", -1);
    int64_t count = only < 0 ? cases : suite->each && only >= suite->cases ? 0 : 1;
    c.session = dmt_session_open(workers, suite->options);
    c.workers = dm_workers(c.session);
    for (int64_t j = 0; j < count; j++) {
        c.number = only >= 0 ? only : case_number(suite, cases, j);
        c.operands = NULL;
        c.wrong = 0;
        snprintf(c.text, sizeof c.text, "%d workers: ", c.workers);
        dmt_random_start(&c.random, dmt_seed_of(suite->name, c.workers, c.number));
        if (suite->scope) {
            DMT_OK(&c, dm_scope_begin(c.session));
        }
        suite->fn(&c);
        if (suite->scope) {
            DMT_OK(&c, dm_scope_end(c.session, NULL, 0));
        }
        if (c.wrong) {
            dmt_fail(&c, "%d complaints, see above", c.wrong);
        }
        end_case(&c);
    }
    snprintf(c.text, sizeof c.text, "%d workers, after all cases", c.workers);
    check_memory(&c);
    dmt_session_close(c.session, 0);
    return count;
}

int64_t dmt_run(const dmt_suite *suite)
{
    static const int counts[] = {1, 2, 3, 5, 8};
    const char *wanted = getenv("DMATH_TEST_SUITE");
    int64_t only = number_of("DMATH_TEST_WORKERS", suite->workers);
    int64_t cases = suite->each ? dmt_sweep_count(suite->cases) : dmt_case_count((suite->cases + 4) / 5);
    int64_t ran = 0;
    if ((wanted && *wanted && strcmp(wanted, suite->name) != 0) || (dmt_launched() && suite->options)) {
        print_message("%s: skipped\n", suite->name);
        return 0;
    }
    if (launched_session || only > 0) {
        return run_on(suite, (int)only, cases);
    }
    for (int i = 0; i < 5; i++) {
        ran += run_on(suite, counts[i], cases);
    }
    return ran;
}

int64_t dmt_bytes_sent(dmt_case *c)
{
    int64_t bytes = 0;
    for (int w = 0; w < c->workers; w++) {
        dm_counters n = {.size = sizeof n};
        DMT_OK(c, dm_counters_get(c->session, w, &n));
        bytes += n.bytes_sent;
    }
    return bytes;
}
