/* An expression of seven operations beside an addition of the same arrays, which moves the same bytes, and a
 * copy; the sum of a product beside the sum of one array of the same bytes. bench_map [MiB an array] workers:
 * DMATH_WORKERS */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9 };
enum { MAP, ADDITION, COPY, SUM_OF_PRODUCT, SUM, CASES };
static const struct {
    const char *name;
    int arrays; /* that are read or written */
} cases[CASES] = {[MAP] = {"map of 7 operations", 3},
                  [ADDITION] = {"addition", 3},
                  [COPY] = {"copy", 2},
                  [SUM_OF_PRODUCT] = {"sum(x * y)", 2},
                  [SUM] = {"sum of twice as many", 2}};

typedef struct arrays {
    dm_array x, y, out, twice, one; /* twice: as long as x and y together; one: a result */
} arrays;

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

static void run(dm_session *s, int what, const arrays *a)
{
    dm_map_arg args[] = {DM_ARG("x", a->x), DM_ARG("y", a->y), DM_NUMBER("a", 2), DM_NUMBER("b", 3)};
    if (what == MAP) {
        DM_CHECK(dm_map(s, "where(x > 0, a * x + y * y, y - b * x)", 4, args, a->out));
    } else if (what == ADDITION) {
        DM_CHECK(dm_add(s, 1, a->x, 3, a->y, a->out));
    } else if (what == COPY) {
        DM_CHECK(dm_copy(s, a->x, a->out));
    } else if (what == SUM_OF_PRODUCT) {
        DM_CHECK(dm_map(s, "sum(x * y)", 2, args, a->one));
    } else {
        DM_CHECK(dm_sum(s, a->twice, NULL, 0, 1, 0, a->one));
    }
    DM_CHECK(dm_sync(s));
}

static arrays make(dm_session *s, int64_t n)
{
    arrays a;
    DM_CHECK(dm_vector(s, DM_F32, n, &a.x));
    DM_CHECK(dm_vector(s, DM_F32, n, &a.y));
    DM_CHECK(dm_vector(s, DM_F32, n, &a.out));
    DM_CHECK(dm_vector(s, DM_F32, 2 * n, &a.twice));
    DM_CHECK(dm_array_create(s, DM_F32, 0, NULL, NULL, &a.one));
    DM_CHECK(dm_fill_uniform(s, a.x, -1, 1, 1));
    DM_CHECK(dm_fill_uniform(s, a.y, -1, 1, 2));
    DM_CHECK(dm_fill(s, a.out, 0));
    DM_CHECK(dm_fill_uniform(s, a.twice, -1, 1, 3));
    DM_CHECK(dm_sync(s));
    return a;
}

int main(int argc, char **argv)
{
    int64_t mib = argc > 1 ? strtoll(argv[1], NULL, 10) : 512, n = mib * 262144;
    double ms[CASES][RUNS];
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
    arrays a = make(s, n);
    for (int i = 0; i < RUNS; i++) {
        for (int k = MAP; k < CASES; k++) {
            double begin = now_ms();
            run(s, k, &a);
            ms[k][i] = now_ms() - begin;
        }
    }
    for (int k = MAP; k < CASES; k++) {
        qsort(ms[k], RUNS, sizeof ms[k][0], by_size);
        double bytes = 4.0 * cases[k].arrays * (double)n;
        printf("%-22s %8.2f ms  %6.2f GB/s\n", cases[k].name, ms[k][RUNS / 2], bytes / ms[k][RUNS / 2] * 1e-6);
    }
    int64_t alive;
    DM_CHECK(dm_finalize(s, &alive));
    return 0;
}
