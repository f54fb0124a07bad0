/* What the robustness tests share: sessions with a deadline, square matrices of small whole numbers, and what
 * they must be afterwards. */
#ifndef ROBUST_H
#define ROBUST_H

/* cmocka wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dmath/dmath.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK(call) assert_ok((call), #call, __LINE__)

static inline void assert_ok(dm_status status, const char *call, int line)
{
    if (status != DM_OK) {
        fail_msg("line %d: %s gave %s: %s", line, call, dm_status_name(status), dm_error_message());
    }
}

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A hang is a failure: the process dies of SIGALRM. CTest ends it long before, by its own clock
 * (support/own_clock.py). */
static inline int deadline(void **state)
{
    (void)state;
    alarm(1000);
    return 0;
}

static inline dm_session *open_session(int workers, const char *options)
{
    dm_session *session = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = workers;
    config.options = options;
    OK(dm_init(&config, &session));
    return session;
}

static inline void close_session(dm_session *session)
{
    int64_t alive = -1;
    OK(dm_finalize(session, &alive));
    assert_int_equal(alive, 0);
}

enum { MOST = 64 };

/* A number for element (i, j) of matrix `seed`; products of two such matrices are exact. */
static inline double element(int seed, int i, int j)
{
    return (i * 7 + j * 3 + seed * 5) % 9 - 4;
}

static inline void element_matrix(int n, int seed, double *out)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            out[i * n + j] = element(seed, i, j);
        }
    }
}

/* n x n of f64; layout NULL: rows, which the default is for large matrices. */
static inline dm_array make_matrix(dm_session *session, int n, const dm_layout *layout, int seed)
{
    double values[MOST * MOST];
    dm_array a = DM_NO_ARRAY;
    const int64_t shape[2] = {n, n};
    dm_layout rows = dm_layout_rows(session);
    element_matrix(n, seed, values);
    OK(dm_array_create(session, DM_F64, 2, shape, layout ? layout : &rows, &a));
    OK(dm_array_write(session, a, NULL, NULL, values, 0));
    return a;
}

/* The status of reading a; when it is DM_OK, the elements must be those of want. */
static inline dm_status read_matrix(dm_session *session, dm_array a, int n, const double *want)
{
    double values[MOST * MOST];
    dm_status status = dm_array_read(session, a, NULL, NULL, values, 0);
    for (int i = 0; status == DM_OK && want && i < n * n; i++) {
        if (values[i] != want[i]) {
            fail_msg("element (%d, %d) is %g, not %g", i / n, i % n, values[i], want[i]);
        }
    }
    return status;
}

static inline void matrix_is(dm_session *session, dm_array a, int n, int seed)
{
    double want[MOST * MOST];
    element_matrix(n, seed, want);
    OK(read_matrix(session, a, n, want));
}

static inline void product(int n, const double *a, const double *b, double *out)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) {
                sum += a[i * n + k] * b[k * n + j];
            }
            out[i * n + j] = sum;
        }
    }
}

#endif
