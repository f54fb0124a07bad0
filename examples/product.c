/* A product of two matrices and the sum of each of its columns, on however many workers there are. */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>

int main(void)
{
    const int64_t m = 2000, k = 1000, n = 500;
    float sums[500];
    dm_session *s;
    dm_array a, b, c, total;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F32, m, k, &a));
    DM_CHECK(dm_matrix(s, DM_F32, k, n, &b));
    DM_CHECK(dm_matrix(s, DM_F32, m, n, &c));
    DM_CHECK(dm_vector(s, DM_F32, n, &total));

    DM_CHECK(dm_fill_uniform(s, a, 0, 1, 42)); /* seed 42: the same numbers on any number of workers */
    DM_CHECK(dm_fill_identity(s, b, 3));
    DM_CHECK(dm_matmul(s, a, b, c));      /* c = a b */
    DM_CHECK(dm_sum_dim(s, c, 0, total)); /* over the rows */
    DM_CHECK(dm_read(s, total, sums));    /* waits for all of the above */
    printf("%d workers, column sums %.2f %.2f %.2f ...\n", dm_workers(s), sums[0], sums[1], sums[2]);

    DM_CHECK(dm_scope_end(s, NULL, 0)); /* destroys a, b, c and total */
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
