/* What a user might write: c = a * b for small whole numbers, and the sum of c. */
#include <dmath/dmath.h>
#include <stdio.h>

static int failed(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "%s: %s\n", dm_status_name(status), dm_error_message());
    }
    return status != DM_OK;
}

int main(void)
{
    dm_session *session;
    dm_array a, b, c, total;
    double sum = 0;
    if (failed(dm_init(NULL, &session)) || failed(dm_matrix(session, DM_F64, 3, 2, &a)) ||
        failed(dm_matrix(session, DM_F32, 2, 7, &b)) || failed(dm_matrix(session, DM_F64, 3, 7, &c)) ||
        failed(dm_array_create(session, DM_F64, 0, NULL, NULL, &total)) || failed(dm_fill(session, a, 2)) ||
        failed(dm_fill(session, b, 0.5)) || failed(dm_gemm(session, DM_N, DM_N, 1, a, b, 0, c)) ||
        failed(dm_sum(session, c, NULL, 0, 1, 0, total)) ||
        failed(dm_array_read(session, total, NULL, NULL, &sum, 0))) {
        return 1;
    }
    printf("%d workers: %g\n", dm_workers(session), sum);
    int64_t alive;
    return failed(dm_finalize(session, &alive)) || alive != 4;
}
