/* The profile: calls, bytes and flops of each operation, equal to what the calls say and to the counters; times
 * that fit into the time of the run; a new start; what is refused; the table at the end. */
#include "support/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 40, ROWS = 96 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static dm_session *open_profiled(const char *options)
{
    dm_session *s;
    dm_config config = DM_CONFIG_INIT;
    config.workers = getenv("DMATH_TEST_LAUNCHED") ? 0 : 3;
    config.options = options;
    assert_int_equal(dm_init(&config, &s), DM_OK);
    return s;
}

static const dm_profile_row *find(const dm_profile_row *row, int count, const char *op)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(row[i].op, op) == 0) {
            return &row[i];
        }
    }
    return NULL;
}

static int rows_of(dm_session *s, dm_profile_row *row)
{
    int count = -1;
    row[0].size = sizeof row[0];
    assert_int_equal(dm_profile_rows(s, ROWS, row, &count), DM_OK);
    assert_in_range(count, 0, ROWS);
    return count;
}

static void some_calls(dm_session *s, dm_array a, dm_array b, dm_array c)
{
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_fill(s, b, 2), DM_OK);
    assert_int_equal(dm_matmul(s, a, b, c), DM_OK);
    assert_int_equal(dm_axpby(s, 1, a, 1, c), DM_OK);
}

/* What three workers have done in all. */
static dm_counters counters_of(dm_session *s)
{
    dm_counters sum = {0};
    for (int w = 0; w < dm_workers(s); w++) {
        dm_counters one = {.size = sizeof one};
        assert_int_equal(dm_counters_get(s, w, &one), DM_OK);
        sum.bytes_sent += one.bytes_sent;
        sum.flops += one.flops;
    }
    return sum;
}

static void check_times(const dm_profile_row *row, int count, double seconds, int workers)
{
    double kernels = 0, master = 0;
    for (int i = 0; i < count; i++) {
        const dm_profile_row *r = &row[i];
        assert_true(r->master_s >= 0 && r->waited_s >= 0 && r->kernel_s >= 0 && r->send_s >= 0 &&
                    r->receive_s >= 0 && r->idle_s >= 0);
        kernels += r->kernel_s;
        master += r->master_s + r->waited_s;
    }
    assert_true(kernels > 0 && kernels <= workers * seconds);
    assert_true(master > 0 && master <= seconds);
}

static void test_numbers(void **state)
{
    (void)state;
    static dm_profile_row row[ROWS];
    static float host[SIDE * SIDE];
    double begin = now_s();
    dm_session *s = open_profiled("profile=1,device=cpu,log=error,replicas=0");
    int workers = dm_workers(s);
    const int64_t bytes = (int64_t)sizeof host, shape[2] = {SIDE, SIDE};
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    dm_array a, b, c;
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &rows, &a), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &cols, &b), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &rows, &c), DM_OK);
    some_calls(s, a, b, c);
    assert_int_equal(dm_read(s, c, host), DM_OK);
    dm_counters counted = counters_of(s);
    int count = rows_of(s, row);
    check_times(row, count, now_s() - begin, workers);
    const dm_profile_row *fill = find(row, count, "fill"), *gemm = find(row, count, "gemm"),
                         *add = find(row, count, "axpby"), *read = find(row, count, "read");
    assert_true(fill && gemm && add && read && count == 4);
    assert_true(fill->calls == 2 && gemm->calls == 1 && add->calls == 1 && read->calls == 1);
    assert_true(fill->bytes == 2 * bytes && gemm->bytes == 3 * bytes && add->bytes == 3 * bytes &&
                read->bytes == bytes);
    assert_true(gemm->flops == 2 * SIDE * SIDE * SIDE && gemm->flops == counted.flops && add->flops == 0);
    assert_int_equal(fill->bytes_sent + gemm->bytes_sent + add->bytes_sent + read->bytes_sent,
                     counted.bytes_sent);
    assert_true(gemm->bytes_sent > 0 && read->bytes_sent == bytes && add->bytes_sent == 0);
    assert_true(gemm->kernel_s > 0 && gemm->part > 0 && read->waited_s > 0);

    assert_int_equal(dm_profile_reset(s), DM_OK);
    assert_int_equal(rows_of(s, row), 0);
    some_calls(s, a, b, c);
    count = rows_of(s, row);
    assert_true(count == 3 && find(row, count, "fill")->calls == 2 &&
                find(row, count, "gemm")->bytes == 3 * bytes);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

/* The part of the machine's rate: a large copy and a large product are near what the workers measured
 * themselves, a product of tiny matrices is far below. The bounds are wide, since others may use the machine.
 */
static void test_parts(void **state)
{
    (void)state;
    static dm_profile_row row[ROWS];
    char *text = NULL;
    dm_session *s = open_profiled("profile=1,device=cpu,log=error");
    dm_array x, y, a, c, tiny, out;
    assert_int_equal(dm_vector(s, DM_F64, 3 << 20, &x), DM_OK);
    assert_int_equal(dm_array_like(s, x, 0, &y), DM_OK);
    assert_int_equal(dm_matrix(s, DM_F32, 500, 500, &a), DM_OK);
    assert_int_equal(dm_array_like(s, a, 0, &c), DM_OK);
    assert_int_equal(dm_matrix(s, DM_F64, 2, 2, &tiny), DM_OK);
    assert_int_equal(dm_fill(s, x, 1), DM_OK);
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_fill(s, tiny, 1), DM_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(dm_copy(s, x, y), DM_OK);
        assert_int_equal(dm_matmul(s, a, a, c), DM_OK);
    }
    int count = rows_of(s, row);
    double copy = find(row, count, "copy")->part, gemm = find(row, count, "gemm")->part;
    assert_true(copy > 0.001 && copy < 20 && gemm > 0.001 && gemm < 20);
    assert_int_equal(dm_profile(s, &text), DM_OK);
    char shown[8], *line = strstr(text, "\ngemm "), *end = line ? strchr(line + 1, '\n') : NULL;
    assert_non_null(end);
    snprintf(shown, sizeof shown, "%.2f", gemm);
    assert_int_equal(strncmp(end - strlen(shown), shown, strlen(shown)), 0);
    free(text);
    assert_int_equal(dm_profile_reset(s), DM_OK);
    assert_int_equal(dm_array_like(s, tiny, 0, &out), DM_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(dm_matmul(s, tiny, tiny, out), DM_OK);
    }
    double of_tiny = find(row, rows_of(s, row), "gemm")->part;
    assert_true(of_tiny > 0 && of_tiny < 0.3);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

/* A complex multiplication with its addition is 8 operations. */
static void test_complex(void **state)
{
    (void)state;
    static dm_profile_row row[ROWS];
    dm_session *s = open_profiled("profile=1,device=cpu,log=error");
    const int64_t shape[2] = {SIDE, SIDE};
    dm_array a, c;
    assert_int_equal(dm_array_create(s, DM_C64, 2, shape, NULL, &a), DM_OK);
    assert_int_equal(dm_array_create(s, DM_C64, 2, shape, NULL, &c), DM_OK);
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_gemm(s, DM_N, DM_N, 1, a, a, 0, c), DM_OK);
    const dm_profile_row *gemm = find(row, rows_of(s, row), "gemm");
    assert_true(gemm && gemm->flops == 8 * SIDE * SIDE * SIDE && gemm->flops == counters_of(s).flops);
    assert_int_equal(dm_array_destroy(s, a), DM_OK);
    assert_int_equal(dm_array_destroy(s, c), DM_OK);
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
}

/* A program counts by its calls, and as many of them as the workers have made. */
/* joined: the first two of its calls run as one, which counts as itself. */
static void check_program(bool joined)
{
    static dm_profile_row row[ROWS];
    dm_session *s = open_profiled(joined ? "profile=1,device=cpu,log=error"
                                         : "profile=1,device=cpu,log=error,program_join=0");
    dm_program step;
    dm_array x, y, half;
    assert_int_equal(dm_vector(s, DM_F64, 3000, &x), DM_OK);
    assert_int_equal(dm_vector(s, DM_F64, 1, &y), DM_OK);
    assert_int_equal(dm_fill(s, x, 1.0), DM_OK);
    assert_int_equal(dm_program_begin(s), DM_OK);
    assert_int_equal(dm_array_like(s, x, 0, &half), DM_OK);
    assert_int_equal(dm_scale(s, 0.5, x, half), DM_OK);
    assert_int_equal(dm_copy(s, half, x), DM_OK);
    assert_int_equal(dm_sum_dim(s, x, 0, y), DM_OK);
    assert_int_equal(dm_array_destroy(s, half), DM_OK);
    assert_int_equal(dm_program_end(s, &step), DM_OK);
    assert_int_equal(dm_program_run(s, step, 7, 0, NULL), DM_OK);
    /* 3000 / 2^7 and on: below 1 in run 12 */
    assert_int_equal(dm_program_run_until(s, step, 100, 1, y, 1.0, 0, NULL), DM_OK);
    int count = rows_of(s, row);
    const dm_profile_row *scale = find(row, count, "scale"), *copy = find(row, count, "copy"),
                         *sum = find(row, count, "sum"), *program = find(row, count, "program"),
                         *until = find(row, count, "until"), *one = find(row, count, "joined");
    const dm_profile_row *first = joined ? one : scale;
    assert_true(first && sum && program && until && !joined == !one);
    assert_int_equal(program->calls, 12);
    assert_true(first->calls == 12 && sum->calls == 12);
    assert_true(joined ? (!scale || scale->calls == 0) && (!copy || copy->calls == 0)
                       : copy && copy->calls == 12);
    assert_int_equal(until->calls, 5);
    assert_int_equal(first->bytes, 12 * 2 * 8 * 3000);
    assert_true(first->kernel_s > 0 && program->kernel_s == 0 && program->master_s > 0);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

static void test_programs(void **state)
{
    (void)state;
    check_program(false);
    check_program(true);
}

static void test_groups(void **state)
{
    (void)state;
    static dm_profile_row row[ROWS];
    dm_session *s = open_profiled("profile=1,device=cpu,log=error");
    for (int w = 0; w < 3; w++) { /* one after the other, each on one worker */
        dm_group group;
        dm_array x;
        assert_int_equal(dm_group_create(s, &w, 1, &group), DM_OK);
        assert_int_equal(dm_group_begin(s, group), DM_OK);
        assert_int_equal(dm_vector(s, DM_F64, 3000, &x), DM_OK);
        assert_int_equal(dm_fill(s, x, 1.0), DM_OK);
        assert_int_equal(dm_group_end(s), DM_OK);
    }
    int count = rows_of(s, row);
    assert_int_equal(find(row, count, "fill")->calls, 3);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

static void test_refusals(void **state)
{
    (void)state;
    dm_profile_row row[2] = {{.size = sizeof row[0]}};
    char *text = NULL;
    int count;
    dm_session *s = open_profiled("device=cpu,profile=0");
    assert_int_equal(dm_profile(s, &text), DM_ERR_STATE);
    assert_non_null(strstr(dm_error_message(), "option profile"));
    assert_int_equal(dm_profile_rows(s, 1, row, &count), DM_ERR_STATE);
    assert_int_equal(dm_profile_reset(s), DM_ERR_STATE);
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
    s = open_profiled("device=cpu,profile=1,log=error");
    assert_int_equal(dm_profile(s, NULL), DM_ERR_ARG);
    assert_int_equal(dm_profile_rows(s, -1, row, &count), DM_ERR_ARG);
    assert_int_equal(dm_profile_rows(s, 1, NULL, &count), DM_ERR_ARG);
    assert_int_equal(dm_profile_rows(s, 1, row, NULL), DM_ERR_ARG);
    row[0].size = 3;
    assert_int_equal(dm_profile_rows(s, 1, row, &count), DM_ERR_ARG);
    assert_int_equal(dm_profile_rows(s, 0, NULL, &count), DM_OK);
    assert_int_equal(count, 0);
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
}

/* Rows of a program that knows fewer fields, or more. */
static void test_sizes(void **state)
{
    (void)state;
    struct longer {
        dm_profile_row row;
        int64_t unknown;
    } longer[ROWS];
    dm_session *s = open_profiled("device=cpu,profile=1,log=error");
    dm_array x;
    int count;
    assert_int_equal(dm_vector(s, DM_F64, 3000, &x), DM_OK);
    assert_int_equal(dm_fill(s, x, 1.0), DM_OK);
    assert_int_equal(dm_scale(s, 2.0, x, x), DM_OK);
    memset(longer, 0x55, sizeof longer);
    longer[0].row.size = sizeof longer[0];
    assert_int_equal(dm_profile_rows(s, ROWS, &longer[0].row, &count), DM_OK);
    assert_int_equal(count, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(longer[i].row.size == sizeof longer[0] && longer[i].row.calls == 1 &&
                    longer[i].unknown == 0);
    }
    assert_true(longer[2].unknown == 0x5555555555555555);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

static int lines_of(const char *text, const char *op)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, op)); at++) {
        found += at > text && at[-1] == '\n';
    }
    return found;
}

/* The table: the one of the call has the same lines as the one that dm_finalize writes. */
static void test_table(void **state)
{
    (void)state;
    static char written[1 << 16];
    char *text = NULL;
    dm_session *s = open_profiled("device=cpu,profile=table.txt");
    dm_array x;
    assert_int_equal(dm_vector(s, DM_F64, 3000, &x), DM_OK);
    assert_int_equal(dm_fill(s, x, 1.0), DM_OK);
    assert_int_equal(dm_scale(s, 2.0, x, x), DM_OK);
    assert_int_equal(dm_profile(s, &text), DM_OK);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
    FILE *file = fopen("table.txt", "r");
    assert_non_null(file);
    written[fread(written, 1, sizeof written - 1, file)] = 0;
    fclose(file);
    const char *const both[] = {text, written};
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(both[i], "3 workers"));
        assert_true(lines_of(both[i], "fill ") == 1 && lines_of(both[i], "scale ") == 1 &&
                    lines_of(both[i], "gemm ") == 0);
    }
    free(text);
}

/* On GPUs, real or emulated: the same numbers, and times of events. */
static void test_gpus(void **state)
{
    (void)state;
    static dm_profile_row row[ROWS];
    dm_session *s;
    dm_config config = DM_CONFIG_INIT;
    dm_array a;
    (void)setenv("DMATH_EMULATED_GPUS", "2", 0);
    config.options = "profile=1,device=emulated,log=error";
    dm_status status = dm_init(&config, &s);
    if (status == DM_ERR_CONFIG) { /* this build has CUDA */
        config.options = "profile=1,device=cuda,log=error";
        status = dm_init(&config, &s);
    }
    if (status == DM_ERR_CONFIG) {
        skip();
    }
    assert_int_equal(status, DM_OK);
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    assert_int_equal(dm_array_create(s, DM_F32, 2, (int64_t[]){SIDE, SIDE}, &rows, &a), DM_OK);
    dm_array b, c;
    assert_int_equal(dm_array_create(s, DM_F32, 2, (int64_t[]){SIDE, SIDE}, &cols, &b), DM_OK);
    assert_int_equal(dm_array_like(s, a, 0, &c), DM_OK);
    for (int i = 0; i < 5; i++) {
        some_calls(s, a, b, c);
    }
    dm_counters counted = counters_of(s);
    int count = rows_of(s, row);
    const dm_profile_row *gemm = find(row, count, "gemm"), *fill = find(row, count, "fill");
    assert_true(gemm && fill && gemm->calls == 5 && fill->calls == 10);
    assert_true(gemm->flops == counted.flops && gemm->flops == 5 * 2 * SIDE * SIDE * SIDE);
    assert_int_equal(gemm->bytes_sent, counted.bytes_sent);
    assert_true(gemm->kernel_s > 0 && fill->kernel_s > 0);
    assert_true(strstr(config.options, "emulated") ? gemm->part == 0 : gemm->part > 0);
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
}

int main(void)
{
    /* the ranks leave with the session */
    const struct CMUnitTest launched[] = {cmocka_unit_test(test_numbers)};
    if (getenv("DMATH_TEST_LAUNCHED")) {
        return cmocka_run_group_tests_name("profile", launched, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_programs), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_sizes),    cmocka_unit_test(test_table),
        cmocka_unit_test(test_gpus),     cmocka_unit_test(test_complex),  cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
