/* Two pipelines on two groups of workers. One thread gives all commands, one pipeline's after the other's, and
 * they run side by side: a command on a group's arrays occupies that group alone. At the end the results meet.
 *
 *   pipelines [FOLDER]        saves inputs and results to FOLDER */
#include "common/save.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>

enum { N = 240, STEPS = 20 };

/* The first or second half of the workers; with one worker both are that one. */
static dm_group half_of(dm_session *s, int second)
{
    dm_group group;
    int numbers[64], workers = dm_workers(s) < 64 ? dm_workers(s) : 64, count = 0;
    int from = second && workers > 1 ? (workers + 1) / 2 : 0, to = second ? workers : (workers + 1) / 2;
    for (int w = from; w < to; w++) {
        numbers[count++] = w;
    }
    DM_CHECK(dm_group_create(s, numbers, count, &group));
    return group;
}

/* An N x N array on the group. */
static dm_array matrix_on(dm_session *s, dm_group group)
{
    dm_array a;
    DM_CHECK(dm_group_begin(s, group));
    DM_CHECK(dm_matrix(s, DM_F64, N, N, &a));
    DM_CHECK(dm_group_end(s));
    return a;
}

/* x = m x, each column divided by its largest absolute value */
static void turn(dm_session *s, dm_array m, dm_array x, dm_array next, dm_array largest)
{
    DM_CHECK(dm_matmul(s, m, x, next));
    DM_CHECK(dm_map(s, "max(abs(x), 0)", 1, (dm_map_arg[]){DM_ARG("x", next)}, largest));
    DM_CHECK(dm_divide(s, next, largest, x));
}

/* x = the mean of each row and the rows around it, then a curve */
static void smooth(dm_session *s, dm_array x, dm_array next)
{
    DM_CHECK(dm_roll(s, x, 1, 0, next));
    DM_CHECK(dm_map(s, "(x + next) / 2", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("next", next)}, next));
    DM_CHECK(dm_map(s, "tanh(next) + 0.1 * next", 1, (dm_map_arg[]){DM_ARG("next", next)}, x));
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    dm_session *s;
    double sum;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    dm_group left = half_of(s, 0), right = half_of(s, 1);
    dm_array m = matrix_on(s, left), x = matrix_on(s, left), next = matrix_on(s, left), largest;
    dm_array y = matrix_on(s, right), other = matrix_on(s, right), both, total;
    DM_CHECK(dm_group_begin(s, left));
    DM_CHECK(dm_vector(s, DM_F64, N, &largest));
    DM_CHECK(dm_group_end(s));
    DM_CHECK(dm_matrix(s, DM_F64, N, N, &both)); /* on all workers */
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &total));
    DM_CHECK(dm_fill_normal(s, m, 0, 1, 1));
    DM_CHECK(dm_fill_normal(s, x, 0, 1, 2));
    DM_CHECK(dm_fill_normal(s, y, 0, 1, 3));
    save(s, folder, "m", m);
    save(s, folder, "x0", x);
    save(s, folder, "y0", y);

    for (int i = 0; i < STEPS; i++) {
        DM_CHECK(dm_group_begin(s, left));
        turn(s, m, x, next, largest); /* on the left, and counted there */
        DM_CHECK(dm_group_end(s));
        smooth(s, y, other);          /* on the right, at the same time */
    }
    DM_CHECK(dm_group_sync(s, right)); /* waits for the right alone */
    dm_counters work = {.size = sizeof work};
    DM_CHECK(dm_group_counters(s, left, &work));

    DM_CHECK(dm_map(s, "x * y", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y)}, both)); /* they meet */
    DM_CHECK(dm_sum(s, both, NULL, 0, 1, 0, total));
    DM_CHECK(dm_read(s, total, &sum));
    printf("%d workers, %lld flops of products on the left: sum %.9f\n", dm_workers(s), (long long)work.flops,
           sum);
    save(s, folder, "x", x);
    save(s, folder, "y", y);
    save(s, folder, "both", both);
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_group_destroy(s, left));
    DM_CHECK(dm_group_destroy(s, right));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
