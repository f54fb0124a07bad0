/* The rates of links between GPUs without dmath: a ring of copies. Where there is a driver that can be told to
 * fail, each of its requests does, and each allocation: the call says so, and gives its memory back. */
#include "exec/gpu/gpu.h"
#include "gpu/gpu_case.h"

#include "base/fault.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 16, COPIES = 3 };

static void test_ring(void **state)
{
    (void)state;
    int gpus = gpus_or_skip();
    for (int n = 1; n <= (gpus < 4 ? gpus : 4); n++) { /* alone it copies to itself */
        double seconds = -1;
        ok(dmi_gpu_bare_ring(n, BYTES, COPIES, &seconds));
        assert_true(seconds >= 0 && seconds < 10);
    }
}

#ifndef DMATH_WITH_CUDA
static int64_t free_bytes(void)
{
    int64_t sum = 0, total;
    for (int g = 0; g < 2; g++) {
        int64_t bytes = 0;
        ok(dmi_cu_use(g));
        ok(dmi_cu_memory(&bytes, &total));
        sum += bytes;
    }
    return sum;
}

/* In a process of its own, for a GPU that has failed is lost to it: 1: it says so, 2: it is right, 0: wrong. */
static int one(const char *kind, int at)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char text[32];
        double seconds;
        const int64_t before = free_bytes();
        snprintf(text, sizeof text, "%s:%d", kind, at);
        dmi_fault_plant(text);
        dm_status status = dmi_gpu_bare_ring(2, BYTES, COPIES, &seconds);
        bool reached = dmi_fault_calls() >= at;
        dmi_fault_plant("");
        bool kept = free_bytes() == before,
             right = status == DM_OK ? !reached || kept : dmi_error_text()[0] != 0;
        if (status == DM_ERR_NOMEM) { /* a thread that cannot be started has asked for none */
            right = right &&
                    (strstr(dmi_error_text(), " bytes were asked for") || strstr(dmi_error_text(), "thread"));
        }
        if (!right) {
            fprintf(stderr, "%s: %s: %s\n", text, dmi_status_name(status), dmi_error_text());
        }
        exit(!right ? 0 : !reached ? 3 : status == DM_OK ? 2 : 1);
    }
    int end = 0;
    assert_true(waitpid(child, &end, 0) == child && WIFEXITED(end));
    return WEXITSTATUS(end);
}

static void test_every_request(void **state)
{
    static const char *const kinds[] = {"driver", "malloc"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        int said = 0, at = 1, end;
        while ((end = one(kinds[i], at)) != 3) {
            assert_int_not_equal(end, 0);
            said += end == 1;
            at++;
        }
        print_message("%s: %d requests, of which %d are said when they fail\n", kinds[i], at - 1, said);
        assert_true(said >= 5);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef DMATH_WITH_CUDA
        cmocka_unit_test(test_every_request),
#endif
        cmocka_unit_test(test_ring)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
