/* A product of two matrices and the sum of each of its columns, on however many workers there are. */
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

static void check(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "%s: %s\n", dm_status_name(status), dm_error_message());
        exit(1);
    }
}

int main(void)
{
    const int64_t m = 2000, k = 1000, n = 500;
    float sums[500];
    dm_session *s;
    dm_array a, b, c, total;
    check(dm_init(NULL, &s));
    check(dm_matrix(s, DM_F32, m, k, &a));
    check(dm_matrix(s, DM_F32, k, n, &b));
    check(dm_matrix(s, DM_F32, m, n, &c));
    check(dm_array_create(s, DM_F32, 1, &n, NULL, &total));

    check(dm_fill_uniform(s, a, 0, 1, 42)); /* seed 42: the same numbers on any number of workers */
    check(dm_fill_identity(s, b, 3));
    check(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));        /* c = a b */
    check(dm_sum(s, c, (int[]){0}, 1, 1, 0, total));     /* over the rows */
    check(dm_array_read(s, total, NULL, NULL, sums, 0)); /* waits for all of the above */
    printf("%d workers, column sums %.2f %.2f %.2f ...\n", dm_workers(s), sums[0], sums[1], sums[2]);

    dm_array all[] = {a, b, c, total};
    for (int i = 0; i < 4; i++) {
        check(dm_array_destroy(s, all[i]));
    }
    check(dm_finalize(s, NULL));
    return 0;
}
