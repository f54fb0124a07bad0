/* Options that make no sense, in the call and in the environment: refused with a text. */
#include "bad_input.h"

static void options_refused(const char *options, int workers, const char *word)
{
    dm_config config = {sizeof config, workers, options};
    dm_session *s = (dm_session *)&config;
    dm_status status = dm_init(&config, &s);
    if (status == DM_OK || !strstr(dm_error_message(), word)) {
        fail_msg("options \"%.80s\", %d workers: %s: %s", options ? options : "", workers,
                 dm_status_name(status), dm_error_message());
    }
    assert_true(s == (dm_session *)&config);
    assert_true(status == DM_ERR_CONFIG || status == DM_ERR_ARG);
}

static void test_options(void **state)
{
    (void)state;
    static const struct {
        const char *options, *word;
    } bad[] = {
        {"=", "option"},
        {"=1", "option"},
        {",,=,", "option"},
        {"workers", "workers"},
        {"workers=", "workers"},
        {"workers=1e99", "workers"},
        {"workers=-1", "workers"},
        {"workers=65537", "workers"},
        {"workers=99999999999999999999999", "workers"},
        {"workers=2x", "workers"},
        {"trace=/proc/no/such/folder/t.json", "trace"},
        {"workers='2", "workers"},
        {"workers='2'3", "workers"},
        {"ring=4095", "ring"},
        {"ring=2G", "ring"},
        {"ring=-1M", "ring"},
        {"ring=9999999999999G", "ring"},
        {"slab=0", "slab"},
        {"slab=9223372036854775807", "slab"},
        {"memory_limit=9T9", "memory_limit"},
        {"memory_limit=99999999T", "memory_limit"},
        {"watchdog_s=nan", "watchdog_s"},
        {"watchdog_s=inf", "watchdog_s"},
        {"link_gbps=-1", "link_gbps"},
        {"link_gbps=1e400", "link_gbps"},
        {"sync=maybe", "sync"},
        {"transport=carrier_pigeon", "transport"},
        {"gemm_algorithm=auto|cyclic", "gemm_algorithm"},
        {"plan_cache=0", "plan_cache"},
        {"fault=fire", "fault"},
        {"fault=compute:", "fault"},
        {"workers=2,workers=2", "workers"},
        {"gemm_compute=f16", "gemm_compute"},
        {"bind=1", "bind"},
        {"load=libm.so.6", "dmath_ops"},
        {"blas_threads=0", "blas_threads"},
        {"\x80\xff=1", "option"},
        {"workers=2;ring=1M", "workers"},
        {"%s%n%s%n=%s%n", "option"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options_refused(bad[i].options, 0, bad[i].word);
    }
    options_refused(NULL, -1, "workers");
    options_refused(NULL, INT32_MIN, "workers");
    options_refused(NULL, 65537, "workers");
    options_refused(NULL, INT32_MAX, "workers");
    char *longest = malloc(100001);
    assert_non_null(longest);
    memset(longest, 'x', 100000);
    longest[100000] = 0;
    options_refused(longest, 0, "option");
    longest[7] = '=';
    options_refused(longest, 0, "option");
    memcpy(longest, "trace=", 6);
    options_refused(longest, 0, "trace");
    free(longest);
    dm_config sizes[] = {{0, 0, NULL}, {1, 0, NULL}, {sizeof(dm_config) + 8, 0, NULL}, {SIZE_MAX, 0, NULL}};
    for (int i = 0; i < 4; i++) {
        dm_session *s = NULL;
        REFUSED(ONE(ARG), "size", dm_init(&sizes[i], &s));
    }
}

static void test_random_options(void **state)
{
    (void)state;
    static const char letters[] = "workers=ring,slab'transport\\ 0123456789.KMG-+e=,=,''\t\n%\"|";
    uint64_t random = 4;
    for (int i = 0; i < 20000; i++) {
        char text[40];
        size_t length = random_bits(&random) % sizeof text;
        for (size_t k = 0; k < length; k++) {
            text[k] = letters[random_bits(&random) % (sizeof letters - 1)];
        }
        text[length < sizeof text ? length : sizeof text - 1] = 0;
        if (strspn(text, ", \t\n") == strlen(text)) {
            continue; /* nothing: all defaults */
        }
        dm_config config = {sizeof config, 1, text};
        dm_session *s = NULL;
        dm_status status = dm_init(&config, &s);
        if (status == DM_OK) {
            close_session(s);
        } else {
            assert_true(status == DM_ERR_CONFIG && strlen(dm_error_message()) > 8);
        }
    }
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const bad[] = {"x", "-1", "1e9", "0x", "99999999999999999999", "'1'"};
    for (int i = 0; i < 6; i++) {
        dm_session *s = NULL;
        setenv("DMATH_WORKERS", bad[i], 1);
        REFUSED(ONE(CONFIG), "DMATH_WORKERS", dm_init(NULL, &s));
        assert_null(s);
    }
    setenv("DMATH_WORKERS", " ", 1);
    setenv("DMATH_RING", "", 1);
    dm_session *s = NULL;
    OK(dm_init(NULL, &s));
    unsetenv("DMATH_WORKERS");
    unsetenv("DMATH_RING");
    close_session(s);
}

static void test_devices(void **state)
{
    (void)state;
    unsetenv("DMATH_EMULATED_GPUS");
#ifndef DMATH_WITH_CUDA
    options_refused("device=cuda", 0, "no CUDA");
    options_refused("device=emulated", 0, "DMATH_EMULATED_GPUS");
    setenv("DMATH_EMULATED_GPUS", "many", 1);
    options_refused("device=emulated", 0, "DMATH_EMULATED_GPUS");
    setenv("DMATH_EMULATED_GPUS", "1", 1);
    options_refused("device=emulated", 2, "share_gpu");
    unsetenv("DMATH_EMULATED_GPUS");
#else
    options_refused("device=emulated", 0, "has CUDA");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_options, deadline),
        cmocka_unit_test_setup(test_random_options, deadline),
        cmocka_unit_test_setup(test_environment, deadline),
        cmocka_unit_test_setup(test_devices, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
