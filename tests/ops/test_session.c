/* Sessions and the calls that need none: options, limits, names. */
#include "support/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_names(void **state)
{
    (void)state;
    char version[40];
    assert_string_equal(dm_status_name(DM_OK), "OK");
    assert_string_equal(dm_status_name(DM_ERR_SHAPE), "ERR_SHAPE");
    assert_string_equal(dm_status_name(DM_ERR_INTERNAL), "ERR_INTERNAL");
    assert_string_equal(dm_status_name((dm_status)-1), "?");
    assert_string_equal(dm_status_name((dm_status)1000), "?");
    for (int code = DM_OK; code <= DM_ERR_INTERNAL; code++) {
        assert_true(strlen(dm_status_text((dm_status)code)) > 3);
    }
    assert_non_null(dm_status_text((dm_status)1000));
    for (int i = 0; i < DMT_DTYPES; i++) {
        assert_int_equal(dm_dtype_bytes(dmt_dtypes[i]), dmt_bytes(dmt_dtypes[i]));
        assert_string_equal(dm_dtype_name(dmt_dtypes[i]), dmt_name(dmt_dtypes[i]));
    }
    assert_int_equal(dm_dtype_bytes((dm_dtype)0), 0);
    assert_int_equal(dm_dtype_bytes((dm_dtype)99), 0);
    assert_non_null(dm_dtype_name((dm_dtype)99));
    snprintf(version, sizeof version, "%d.%d.%d", DM_VERSION_MAJOR, DM_VERSION_MINOR, DM_VERSION_PATCH);
    assert_string_equal(dm_version(), version);
    assert_non_null(dm_error_message());
}

static void refused(const dm_config *config, unsigned wanted, const char *what)
{
    dm_session *session = (dm_session *)&wanted;
    dm_status status = dm_init(config, &session);
    if (status == DM_OK || !(wanted >> status & 1)) {
        fail_msg("%s: %s", what, dm_status_name(status));
    }
    assert_true(session == (dm_session *)&wanted);
    assert_true(strlen(dm_error_message()) > 0);
}

static void test_config(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    const unsigned arg = 1u << DM_ERR_ARG, option = 1u << DM_ERR_CONFIG;
    dm_config config = DM_CONFIG_INIT;
    assert_int_equal(dm_init(&config, NULL), DM_ERR_ARG);
    config.workers = -1;
    refused(&config, arg | option, "-1 workers");
    config = (dm_config)DM_CONFIG_INIT;
    config.options = "no_such_option=1";
    refused(&config, option, "an unknown option");
    assert_non_null(strstr(dm_error_message(), "no_such_option"));
    config.options = "gemm_algorithm=magic";
    refused(&config, option, "an unknown value");
    assert_non_null(strstr(dm_error_message(), "magic"));
    config.options = "gemm_algorithm";
    refused(&config, option, "an option without a value");
    config.options = "memory_limit=lots";
    refused(&config, option, "a number that is none");
    config.options = NULL;
    config.size = 0;
    refused(&config, arg | option, "a config of no size");
    dm_session *session = dmt_session_open(2, "");
    dmt_session_close(session, 0);
}

/* More than the limit is refused with nothing changed; what is freed may be had again. */
static void test_limit(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    const int64_t half[] = {4, 1 << 18};
    dm_session *session = dmt_session_open(2, "memory_limit=6291456");
    dm_layout everywhere = dm_layout_replicated(session);
    dm_array a, b, refused_array = {31};
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(dm_array_create(session, DM_F64, 2, half, NULL, &a), DM_OK);
        assert_int_equal(dm_array_create(session, DM_F64, 2, half, &everywhere, &refused_array), DM_ERR_LIMIT);
        assert_true(refused_array.id == 31);
        assert_int_equal(dm_fill(session, a, 1), DM_OK);
        assert_int_equal(dm_sync(session), DM_OK);
        assert_int_equal(dm_array_destroy(session, a), DM_OK);
    }
    assert_int_equal(dm_matrix(session, DM_F32, 100, 100, &b), DM_OK);
    dm_memory memory = {.size = sizeof memory};
    assert_int_equal(dm_memory_report(session, 0, &memory), DM_OK);
    assert_int_equal(memory.limit, 6291456);
    assert_true(memory.peak <= memory.limit && memory.arrays >= 20000);
    assert_int_equal(dm_array_destroy(session, b), DM_OK);
    assert_int_equal(dm_memory_trim(session), DM_OK);
    assert_int_equal(dm_memory_report(session, 0, &memory), DM_OK);
    assert_int_equal(memory.arrays, 0);
    dmt_session_close(session, 0);
}

static void test_noop(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dm_noop(session), DM_OK);
    }
    assert_int_equal(dm_sync(session), DM_OK);
    dmt_session_close(session, 0);
}

/* The steady state of a loop asks the system for no memory. */
static void test_steady(void **state)
{
    (void)state;
    const char *own = getenv("DMATH_POOL_OWN"); /* with it every block is asked for */
    if (own && own[0] == '1') {
        skip();
    }
    dm_session *session = dmt_session_open(3, NULL);
    dm_layout columns = dm_layout_cols(session);
    const int64_t shape[] = {90, 80};
    dm_array a, b;
    int64_t calls = 0;
    assert_int_equal(dm_array_create(session, DM_F32, 2, shape, NULL, &a), DM_OK);
    assert_int_equal(dm_fill(session, a, 1), DM_OK);
    for (int turn = 0; turn < 40; turn++) {
        dm_memory memory = {.size = sizeof memory};
        assert_int_equal(dm_array_create(session, DM_F32, 2, shape, &columns, &b), DM_OK);
        assert_int_equal(dm_copy(session, a, b), DM_OK);
        assert_int_equal(dm_axpby(session, 0.5, b, 0.5, a), DM_OK);
        assert_int_equal(dm_array_destroy(session, b), DM_OK);
        assert_int_equal(dm_memory_report(session, dm_workers(session) - 1, &memory), DM_OK);
        assert_true(turn < 20 || memory.system_calls == calls);
        calls = memory.system_calls;
    }
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
    dmt_session_close(session, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_config), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_noop),  cmocka_unit_test(test_steady),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
