/* Sessions, matrices and processes of a job. */
#include "job.h"

#include <string.h>
#include <time.h>

static const char *folder;

_Noreturn void wrong(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s, line %d: not %s (%s)\n", file, line, what, dm_error_message());
    _exit(1);
}

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void leave_pid(const char *in)
{
    folder = in;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, rank ? rank : "0");
    FILE *f = fopen(path, "w");
    CHECK(f);
    fprintf(f, "%ld\n", (long)getpid());
    CHECK(fclose(f) == 0);
}

pid_t pid_of(int rank)
{
    char path[300];
    long pid = 0;
    snprintf(path, sizeof path, "%s/%d", folder, rank);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%ld", &pid) == 1 && pid > 1);
    fclose(f);
    return (pid_t)pid;
}

dm_session *start(const char *options)
{
    dm_config config = {sizeof config, 0, options};
    dm_session *s = NULL;
    OK(dm_init(&config, &s));
    return s;
}

void refused(const char *options, dm_status status, const char *word, const char *other)
{
    dm_config config = {sizeof config, 0, options};
    dm_session *s = NULL;
    dm_status got = dm_init(&config, &s);
    fprintf(stderr, "%s: %s\n", dm_status_name(got), dm_error_message());
    CHECK(got == status);
    CHECK(!s);
    CHECK(strstr(dm_error_message(), word) && strstr(dm_error_message(), other));
}

dm_array matrix(dm_session *s, dm_layout layout, double value)
{
    static const int64_t shape[2] = {N, N};
    static double values[N * N];
    dm_array a;
    OK(dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    for (int i = 0; i < N * N; i++) {
        values[i] = value;
    }
    OK(dm_array_write(s, a, NULL, NULL, values, 0));
    return a;
}

dm_status value_is(dm_session *s, dm_array a, double value)
{
    static double values[N * N];
    dm_status status = dm_array_read(s, a, NULL, NULL, values, 0);
    for (int i = 0; status == DM_OK && i < N * N; i++) {
        CHECK(values[i] == value);
    }
    return status;
}

void products(dm_session *s, int count)
{
    dm_array a = matrix(s, dm_layout_rows(s), 1), b = matrix(s, dm_layout_rows(s), 2),
             c = matrix(s, dm_layout_rows(s), 3);
    for (int i = 0; i < count; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    }
}
