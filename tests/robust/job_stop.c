/* A worker is stopped. */
#include "job.h"

#include <signal.h>
#include <string.h>

static void expect_timeout(dm_status status, double begin, double most, const char *word)
{
    fprintf(stderr, "%.1f s: %s: %s\n", seconds() - begin, dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_TIMEOUT);
    CHECK(seconds() - begin < most);
    CHECK(strstr(dm_error_message(), word));
}

/* Calls that move the program's data wait too. */
void stop_and_move(void)
{
    static double values[N * N];
    dm_session *s = start("watchdog_s=2");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    expect_timeout(dm_array_write(s, a, NULL, NULL, values, 0), begin, 40, "worker 1 (");
    CHECK(dm_array_read(s, a, NULL, NULL, values, 0) == DM_ERR_TIMEOUT);
    CHECK(kill(pid_of(2), SIGCONT) == 0);
    OK(dm_sync(s));
    OK(value_is(s, a, 0));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    begin = seconds();
    expect_timeout(dm_array_read(s, a, NULL, NULL, values, 0), begin, 40, "worker 1 (");
    expect_timeout(dm_finalize(s, NULL), begin, 60, "stuck");
}

void stop_and_finalize(const char *options)
{
    dm_session *s = start(options);
    dm_array a = matrix(s, dm_layout_rows(s), 1), c = matrix(s, dm_layout_cols(s), 1);
    int64_t alive = -1;
    OK(dm_sync(s));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_copy(s, a, c));
    dm_status status = dm_sync(s);
    expect_timeout(status, begin, 40, "worker 1 (");
    begin = seconds();
    CHECK(dm_fill(s, a, 1) == DM_ERR_TIMEOUT);
    status = dm_finalize(s, &alive);
    expect_timeout(status, begin, 30, "stuck");
    CHECK(alive == 2);
    CHECK(dm_sync(s) == DM_ERR_STATE);
    refused("", DM_ERR_STATE, "MPI", "session");
}

void stop_and_finalize_at_once(void)
{
    dm_session *s = start("watchdog_s=2");
    (void)matrix(s, dm_layout_rows(s), 1);
    CHECK(kill(pid_of(1), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_noop(s));
    expect_timeout(dm_finalize(s, NULL), begin, 40, "stuck");
}

void stop_and_continue(const char *options)
{
    dm_session *s = start(options);
    dm_array a = matrix(s, dm_layout_rows(s), 1), c = matrix(s, dm_layout_cols(s), 2);
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_copy(s, a, c));
    expect_timeout(dm_sync(s), begin, 40, "worker 1 (");
    CHECK(kill(pid_of(2), SIGCONT) == 0);
    OK(dm_sync(s));
    OK(value_is(s, c, 1));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, c));
    OK(dm_finalize(s, NULL));
}

void stop_full_ring(void)
{
    dm_session *s = start("watchdog_s=2,ring=4096");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    dm_status status = DM_OK;
    while (status == DM_OK && seconds() - begin < 40) {
        status = dm_fill(s, a, 1);
    }
    expect_timeout(status, begin, 40, "dm_finalize");
    expect_timeout(dm_finalize(s, NULL), begin, 60, "stuck");
}
