/* Sessions that have nothing to do leave the cores to others. */
#include "robust.h"

#include <sys/resource.h>

enum { WORKERS = 8 };

static double used_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void test_idle_workers(void **state)
{
    (void)state;
    dm_session *s = open_session(WORKERS, "");
    dm_array a = make_matrix(s, 32, NULL, 1);
    matrix_is(s, a, 32, 1);
    /* A machine that is slow, or shared, may take several times as long to wake a thread. */
    double share = 1, most = getenv("DMATH_TEST_STRICT") ? 0.01 : 0.05;
    for (int attempt = 0; attempt < 5 && share > 0.01 * WORKERS; attempt++) {
        sleep(1);
        double begin = used_seconds();
        sleep(2);
        share = (used_seconds() - begin) / 2;
        print_message("%d idle workers take %.2f %% of a core\n", WORKERS, share * 100);
    }
#if defined(__SANITIZE_THREAD__)
    most = 1;
#endif
    assert_true(share <= most * WORKERS);
    matrix_is(s, a, 32, 1);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_idle_workers, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
