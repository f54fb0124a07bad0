/* An expression of seven operations beside an addition of the same arrays, which moves the same bytes, and a
 * copy. bench_map [MiB an array]     workers: DMATH_WORKERS */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(dm_session *s, int what, dm_array x, dm_array y, dm_array out)
{
    dm_map_arg args[] = {DM_ARG("x", x), DM_ARG("y", y), DM_NUMBER("a", 2), DM_NUMBER("b", 3)};
    if (what == 0) {
        DM_CHECK(dm_map(s, "where(x > 0, a * x + y * y, y - b * x)", 4, args, out));
    } else if (what == 1) {
        DM_CHECK(dm_add(s, 1, x, 3, y, out));
    } else {
        DM_CHECK(dm_copy(s, x, out));
    }
    DM_CHECK(dm_sync(s));
}

int main(int argc, char **argv)
{
    static const char *const what[] = {"map of 7 operations", "addition", "copy"};
    int64_t mib = argc > 1 ? strtoll(argv[1], NULL, 10) : 512, n = mib * 262144;
    double ms[3][RUNS];
    dm_session *s;
    dm_array x, y, out;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_vector(s, DM_F32, n, &x));
    DM_CHECK(dm_vector(s, DM_F32, n, &y));
    DM_CHECK(dm_vector(s, DM_F32, n, &out));
    DM_CHECK(dm_fill_uniform(s, x, -1, 1, 1));
    DM_CHECK(dm_fill_uniform(s, y, -1, 1, 2));
    DM_CHECK(dm_fill(s, out, 0));
    DM_CHECK(dm_sync(s));
    for (int i = 0; i < RUNS; i++) {
        for (int k = 0; k < 3; k++) {
            double begin = now_ms();
            run(s, k, x, y, out);
            ms[k][i] = now_ms() - begin;
        }
    }
    for (int k = 0; k < 3; k++) {
        qsort(ms[k], RUNS, sizeof ms[k][0], by_size);
        double bytes = (k < 2 ? 12.0 : 8.0) * (double)n;
        printf("%-22s %8.2f ms  %6.2f GB/s\n", what[k], ms[k][RUNS / 2], bytes / ms[k][RUNS / 2] * 1e-6);
    }
    int64_t alive;
    DM_CHECK(dm_finalize(s, &alive));
    return 0;
}
