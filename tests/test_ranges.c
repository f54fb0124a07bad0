/* What a profiler is told: ranges of commands and steps, by name, each closed by the thread that opened it. */
#include "master/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call) assert_int_equal((call), DM_OK)

enum { WORKERS = 2, THREADS = 16, N = 48 };
static const char *const path = "ranges.txt";

typedef struct thread_ranges {
    int id, open;
} thread_ranges;

static thread_ranges *thread_of(thread_ranges all[THREADS], int id)
{
    for (int i = 0; i < THREADS; i++) {
        if (all[i].id == id || all[i].id == 0) {
            all[i].id = id;
            return &all[i];
        }
    }
    fail_msg("more than %d threads have ranges", THREADS);
    return NULL;
}

static void multiply(const char *options)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array a, b, c;
    config.workers = WORKERS;
    config.options = options;
    OK(dm_init(&config, &s));
    OK(dm_matrix(s, DM_F32, N, N, &a));
    OK(dm_matrix(s, DM_F32, N, N, &b));
    OK(dm_matrix(s, DM_F32, N, N, &c));
    OK(dm_fill(s, a, 1));
    OK(dm_fill(s, b, 2));
    OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    OK(dm_array_destroy(s, c));
    OK(dm_finalize(s, NULL));
}

/* Reads the file: how many ranges have this name and, where number is not 0, this number. */
static int ranges(const char *name, unsigned long long number)
{
    thread_ranges all[THREADS] = {{0}};
    char line[128];
    int found = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int id = atoi(line);
        char *text = strchr(line, ' ') + 1, *last = strrchr(line, ' ') + 1;
        thread_ranges *t = thread_of(all, id);
        if (strncmp(text, "begin ", 6) == 0) {
            t->open++;
            unsigned long long its = strtoull(last, NULL, 10);
            assert_true(its > 0);
            last[-1] = 0;
            found += strcmp(text + 6, name) == 0 && (number == 0 || number == its);
        } else {
            assert_string_equal(text, "end\n");
            assert_true(t->open-- > 0);
        }
    }
    fclose(f);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(all[i].open, 0);
    }
    return found;
}

static void test_ranges(void **state)
{
    (void)state;
    if (!dmi_device_gpu(DMI_DEVICE_EMULATED)) {
        skip();
    }
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    static const char *const options[] = {"device=emulated",
                                          "device=emulated,pretend_hosts=2,trace=trace.json"};
    for (int i = 0; i < 2; i++) {
        (void)unlink(path);
        setenv("DMATH_EMULATED_RANGES", path, 1);
        multiply(options[i]);
        assert_int_equal(ranges("gemm", 0), WORKERS);
        assert_int_equal(ranges("fill", 0), 2 * WORKERS);
        assert_int_equal(ranges("fill fill", 0), 2 * WORKERS);
        assert_true(ranges("gemm gemm", 0) >= WORKERS);
        assert_true(ranges("gemm push", 0) >= WORKERS);
        assert_true((ranges("gemm expect", 0) > 0) == (i == 1)); /* from host memory: there is work for it */
        unsetenv("DMATH_EMULATED_RANGES");
    }
    (void)unlink(path);
    multiply(options[0]); /* nobody listens */
    assert_int_equal(access(path, F_OK), -1);
    unsetenv("DMATH_EMULATED_GPUS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
