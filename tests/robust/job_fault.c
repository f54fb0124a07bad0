/* A failure in one rank; and ranks that idle. */
#include "job.h"

#include <string.h>

void fault(void)
{
    dm_session *s = start(getenv("DMATH_TEST_OPTIONS"));
    dm_array a = matrix(s, dm_layout_rows(s), 1), b = matrix(s, dm_layout_rows(s), 2),
             c = matrix(s, dm_layout_cols(s), 3);
    dm_array d = matrix(s, dm_layout_cyclic(s, 0, 2), 4), e = matrix(s, dm_layout_replicated(s), 5);
    int failures = 0;
    for (int turn = 0; turn < 6; turn++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        OK(dm_copy(s, c, d));
        OK(dm_transpose(s, d, e));
        OK(dm_add(s, 1, e, 1, a, d));
        dm_status status = dm_sync(s);
        if (status != DM_OK) {
            failures++;
            CHECK(strstr(dm_error_message(), "planted fault") && strstr(dm_error_message(), "worker 1 ("));
            OK(dm_sync(s));
        }
        dm_status c_status = value_is(s, c, 2 * N), d_status = value_is(s, d, 2 * N + 1);
        CHECK(status != DM_OK || (c_status == DM_OK && d_status == DM_OK));
        CHECK(c_status == DM_OK || c_status == DM_ERR_POISONED);
        CHECK(d_status == DM_OK || d_status == DM_ERR_POISONED);
        OK(value_is(s, a, 1));
        OK(value_is(s, b, 2));
    }
    fprintf(stderr, "%d failures\n", failures);
    CHECK(failures == 1);
    dm_array all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    OK(dm_finalize(s, NULL));
}

void damaged(const char *options)
{
    dm_session *s = start(options);
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    dm_status status = DM_OK;
    for (int turn = 0; turn < 1000 && status == DM_OK; turn++) {
        OK(dm_fill(s, a, turn));
        status = value_is(s, a, turn);
    }
    CHECK(status == DM_ERR_TRANSPORT && strstr(dm_error_message(), "The session has failed; call dm_finalize"));
    CHECK(strstr(dm_error_message(),
                 strstr(options, "hosts") ? "worker 2 (" : "bytes has come where 14400 were to come"));
    CHECK(dm_fill(s, a, 1) == DM_ERR_TRANSPORT && dm_sync(s) == DM_ERR_TRANSPORT);
    CHECK(dm_finalize(s, NULL) == DM_ERR_TRANSPORT && strstr(dm_error_message(), "the other ranks do not return"));
}

/* From some time on a worker cannot map new memory of another one: what needs it fails, and says so; the rest
 * goes on. */
void unmapped(void)
{
    enum { SIDE = 128, MOST = 40 };
    const int64_t shape[2] = {SIDE, SIDE};
    static double values[SIDE * SIDE];
    dm_session *s = start("slab=64K,log=error,replicas=0");
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    dm_array a, b[MOST];
    dm_status status = DM_OK;
    OK(dm_array_create(s, DM_F64, 2, shape, &rows, &a));
    OK(dm_fill(s, a, 5));
    int count = 0;
    for (; count < MOST && status == DM_OK; count++) {
        OK(dm_array_create(s, DM_F64, 2, shape, &cols, &b[count]));
        OK(dm_copy(s, a, b[count]));
        status = dm_sync(s);
    }
    fprintf(stderr, "%d copies: %s\n", count, dm_error_message());
    CHECK(status == DM_ERR_TRANSPORT && count > 2 &&
          strstr(dm_error_message(), "cannot map memory of the receiver"));
    CHECK(dm_read(s, b[count - 1], values) == DM_ERR_POISONED);
    for (int i = 0; i < count - 1; i++) {
        OK(dm_read(s, b[i], values));
        CHECK(values[0] == 5 && values[SIDE * SIDE - 1] == 5);
    }
    OK(dm_copy(s, a, b[0]));
    OK(dm_read(s, b[0], values));
    OK(dm_finalize(s, NULL));
}

/* From some time on a worker cannot map new memory of rank 0: a read that needs it fails, and says so; those
 * into memory that is mapped already go on. */
void unread(void)
{
    enum { STEP = 150000, MOST = 40 };
    dm_session *s = start("log=error");
    double *values = malloc(sizeof *values * STEP * MOST);
    dm_array first = {0};
    dm_status status = DM_OK;
    int count = 0;
    CHECK(values);
    for (; count < MOST && status == DM_OK; count++) { /* larger ones, each in memory of its own */
        dm_array x;
        OK(dm_vector(s, DM_F64, (int64_t)STEP * (count + 1), &x));
        OK(dm_fill(s, x, count));
        status = dm_read(s, x, values);
        CHECK(status != DM_OK || (values[0] == count && values[STEP * (count + 1) - 1] == count));
        first = count == 0 ? x : first;
    }
    fprintf(stderr, "%d reads: %s\n", count, dm_error_message());
    CHECK(status == DM_ERR_TRANSPORT && count > 2 &&
          strstr(dm_error_message(), "cannot map memory of the receiver"));
    OK(dm_fill(s, first, 7));
    OK(dm_read(s, first, values));
    CHECK(values[0] == 7 && values[STEP - 1] == 7);
    free(values);
    OK(dm_finalize(s, NULL));
}

/* Memory that others map comes in slabs, of which there can be so many; none is larger than the host's memory.
 */
void slabs(void)
{
    enum { SIDE = 64, MOST = 4000 };
    const int64_t shape[2] = {SIDE, SIDE}, huge[2] = {INT64_C(1) << 24, INT64_C(1) << 24};
    dm_session *s = start("slab=16K");
    dm_array kept = matrix(s, dm_layout_rows(s), 7), x[MOST], large;
    dm_status status = dm_array_create(s, DM_F64, 2, huge, NULL, &large);
    status = status == DM_OK ? dm_sync(s) : status;
    fprintf(stderr, "%s\n", dm_error_message());
    CHECK((status == DM_ERR_NOMEM || status == DM_ERR_LIMIT) && strstr(dm_error_message(), "bytes"));
    int count = 0;
    for (status = DM_OK; count < MOST && status == DM_OK; count++) {
        status = dm_array_create(s, DM_F64, 2, shape, NULL, &x[count]);
        status = status == DM_OK ? dm_fill(s, x[count], count) : status;
        status = status == DM_OK ? dm_sync(s) : status;
    }
    fprintf(stderr, "%d arrays: %s\n", count, dm_error_message());
    CHECK(status == DM_ERR_NOMEM && count > 500);
    for (int i = 0; i < count; i++) {
        (void)!dm_array_destroy(s, x[i]);
    }
    (void)!dm_sync(s);
    dm_array again = matrix(s, dm_layout_cols(s), 8);
    OK(value_is(s, again, 8));
    OK(value_is(s, kept, 7));
    OK(dm_finalize(s, NULL));
}

static double cpu_seconds(int rank)
{
    char path[64], line[1024];
    unsigned long user = 0, system_time = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid_of(rank));
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(line, sizeof line, f));
    fclose(f);
    const char *at = strrchr(line, ')');
    CHECK(at &&
          sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system_time) == 2);
    return (double)(user + system_time) / (double)sysconf(_SC_CLK_TCK);
}

void idle(void)
{
    dm_session *s = start("");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    int ranks = dm_workers(s) + 1;
    /* One tick of the clock is 0.25 %. A machine that is shared may take ten times as long to wake a thread. */
    double worst = 1, sum = 0, most = getenv("DMATH_TEST_STRICT") ? 0.015 : 0.05;
    for (int attempt = 0; attempt < 3 && worst > 0.01; attempt++) {
        double before[64], all = 0;
        sleep(1);
        for (int r = 0; r < ranks; r++) {
            before[r] = cpu_seconds(r);
            all -= before[r];
        }
        sleep(4);
        worst = 0;
        for (int r = 0; r < ranks; r++) {
            double now = cpu_seconds(r), share = (now - before[r]) / 4;
            all += now;
            worst = share > worst ? share : worst;
        }
        sum = all / 4;
        fprintf(stderr, "%d idle ranks: the busiest takes %.2f %% of a core, all together %.2f %%\n", ranks,
                worst * 100, sum * 100);
    }
    CHECK(worst <= most);
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
}
