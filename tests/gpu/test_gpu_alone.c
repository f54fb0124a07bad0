/* Programs that run on the devices alone (option program_device): the same bits as without, what they cannot
 * take and what is said of it, failures on one worker, cancels, a kernel that never ends. */
#include "gpu_case.h"
#include "support/child.h"

#include <dmath/dmath.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef DMATH_WITH_CUDA
#define DEVICE "device=cuda,log=error"
#else
#define DEVICE "device=emulated,log=error"
#endif

enum { ROWS = 61, COLS = 37, LONG = 5000, RUNS = 7, MOST = 3 };

static void right(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dm_status_name(status), dm_error_message());
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void two_gpus_or_skip(void)
{
    if (gpus_or_skip() < 2) {
        puts("one GPU, skipped");
        skip();
    }
}

static dm_status open_session(const char *more, dm_session **out)
{
    char options[200];
    int gpus = dmi_cu_devices();
    snprintf(options, sizeof options, DEVICE "%s", more);
    dm_config config = {.size = sizeof config, .workers = gpus < MOST ? gpus : MOST, .options = options};
    return dm_init(&config, out);
}

static int add_one(const dm_task *task)
{
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        *(float *)task->block[0][k].data += 1;
    }
    return 0;
}

/* Writes when it has begun. */
static int note_time(const dm_task *task)
{
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        *(double *)task->block[0][k].data = seconds();
    }
    return task->gpu ? 0 : dm_task_fail(task, "no GPU");
}

/* --- bits --- */

typedef struct results {
    float turned[ROWS * COLS], sum[COLS], totals[LONG], noise[ROWS * COLS];
    uint8_t bytes[ROWS * COLS];
    double last;
    char explained[4000];
} results;

typedef struct arrays {
    dm_array x, turned, sum, long_rows, totals, noise, bytes, other_bytes, value;
} arrays;

static void make_arrays(dm_session *s, arrays *a)
{
    const int64_t shape[] = {ROWS, COLS}, cols[] = {COLS}, many[] = {dm_workers(s), LONG};
    dm_layout rows = dm_layout_rows(s), by_cols = dm_layout_cols(s), all = dm_layout_replicated(s),
              dealt = dm_layout_cyclic(s, 0, 3), one = dm_layout_single(0);
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &a->x));
    right(dm_array_create(s, DM_F32, 2, shape, &by_cols, &a->turned));
    right(dm_array_create(s, DM_F32, 1, cols, &all, &a->sum));
    right(dm_array_create(s, DM_F32, 2, many, &rows, &a->long_rows));
    right(dm_array_create(s, DM_F32, 1, many + 1, &all, &a->totals));
    right(dm_array_create(s, DM_F32, 2, shape, &dealt, &a->noise));
    right(dm_array_create(s, DM_U8, 2, shape, &rows, &a->bytes));
    right(dm_array_create(s, DM_U8, 2, shape, &dealt, &a->other_bytes));
    right(dm_array_create(s, DM_F64, 0, NULL, &one, &a->value));
    right(dm_fill_uniform(s, a->x, -1, 1, 1));
    right(dm_fill_uniform(s, a->long_rows, -1, 1, 2));
    right(dm_fill_uniform(s, a->bytes, 0, 255, 3));
    right(dm_fill(s, a->sum, 0));
    right(dm_fill(s, a->totals, 0));
    right(dm_fill(s, a->value, 1));
}

static void map(dm_session *s, const char *text, dm_array x, dm_array y, dm_array out)
{
    right(dm_map(s, text, 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y)}, out));
}

/* Transfers of rows and of what is no rows, to all and to one, forth and back; numbers and seeds that change
 * with the runs; host work before and behind them. */
static void record(dm_session *s, const arrays *a, dm_program *out)
{
    right(dm_program_begin(s));
    right(dm_program_advance_seeds(s));
    right(dm_apply(s, "add one", 1, &a->x, (int[]){DM_READWRITE}, NULL, 0));
    right(dm_copy(s, a->x, a->turned));
    map(s, "0.9 * x + 0.001 * y", a->turned, a->sum, a->turned);
    right(dm_fill_uniform(s, a->noise, -0.1, 0.1, 7));
    map(s, "x + y", a->turned, a->noise, a->x);
    right(dm_sum(s, a->x, (int[]){0}, 1, 1, 0, a->sum));
    map(s, "0.5 * x + 0.01 * y", a->long_rows, a->totals, a->long_rows);
    right(dm_sum(s, a->long_rows, (int[]){0}, 1, 1, 0, a->totals));
    right(dm_copy(s, a->bytes, a->other_bytes));
    right(dm_map(s, "y + 1", 1, (dm_map_arg[]){DM_ARG("y", a->other_bytes)}, a->bytes));
    right(dm_sum(s, a->x, (int[]){0, 1}, 2, 1, 0.25, a->value));
    right(dm_apply(s, "add one", 1, &a->x, (int[]){DM_READWRITE}, NULL, 0));
    right(dm_program_end(s, out));
}

static void read_all(dm_session *s, const arrays *a, results *r)
{
    right(dm_read(s, a->turned, r->turned));
    right(dm_read(s, a->sum, r->sum));
    right(dm_read(s, a->totals, r->totals));
    right(dm_read(s, a->noise, r->noise));
    right(dm_read(s, a->bytes, r->bytes));
    right(dm_read(s, a->value, &r->last));
}

static void run_way(const char *options, results *r)
{
    dm_session *s;
    arrays a;
    dm_program program;
    char *text;
    int64_t alive;
    memset(r, 0, sizeof *r);
    right(open_session(options, &s));
    make_arrays(s, &a);
    record(s, &a, &program);
    right(dm_explain_begin(s));
    right(dm_program_run(s, program, 1, 0, NULL));
    right(dm_explain_end(s, &text));
    snprintf(r->explained, sizeof r->explained, "%s", text);
    free(text);
    right(dm_program_run(s, program, RUNS, 0, NULL));
    right(dm_fill(s, a.sum, 0.5)); /* other commands between runs */
    right(dm_copy(s, a.bytes, a.other_bytes));
    for (int i = 0; i < RUNS; i++) {
        right(dm_program_run(s, program, 1, 0, NULL));
    }
    read_all(s, &a, r);
    right(dm_program_destroy(s, program));
    right(dm_finalize(s, &alive));
}

/* A function that may run early does so beside a program on its devices alone, others behind it. */
static void test_early(void **state)
{
    enum { SIDE = 512, PRODUCTS = 8 };
    const int write = DM_WRITE;
    dm_apply_options early = DM_APPLY_OPTIONS_INIT;
    dm_session *s;
    dm_array x, total, time[2];
    dm_program program;
    double got[2][MOST];
    int64_t alive, workers;
    (void)state;
    two_gpus_or_skip();
    early.early = 1;
    right(open_session(",program_device=on", &s));
    workers = dm_workers(s);
    dm_layout rows = dm_layout_rows(s), all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F32, 2, (int64_t[]){SIDE, SIDE}, &all, &x));
    right(dm_array_create(s, DM_F32, 1, (int64_t[]){SIDE}, &all, &total));
    right(dm_fill(s, x, 1.0 / SIDE));
    for (int i = 0; i < 2; i++) {
        right(dm_array_create(s, DM_F64, 1, &workers, &rows, &time[i]));
        right(
            dm_apply(s, "note time", 1, &time[i], &write, NULL, 0)); /* pins memory, which waits for devices */
    }
    right(dm_program_begin(s));
    for (int i = 0; i < PRODUCTS; i++) {
        dm_array y;
        right(dm_array_like(s, x, DM_F32, &y));
        right(dm_gemm(s, 0, 0, 1, x, x, 0, y));
        right(dm_copy(s, y, x));
        right(dm_array_destroy(s, y));
    }
    right(dm_sum(s, x, (int[]){0}, 1, 1, 0, total));
    right(dm_program_end(s, &program));
    right(dm_program_run(s, program, 2, 0, NULL));
    right(dm_sync(s));
    double begin = seconds();
    right(dm_program_run(s, program, 4, 0, NULL));
    right(dm_apply(s, "note time", 2, (dm_array[]){time[0], total}, (int[]){DM_WRITE, DM_READ}, NULL, 0));
    right(dm_apply_with(s, "note time", 1, &time[1], &write, NULL, 0, &early));
    right(dm_read(s, time[0], got[0]));
    right(dm_read(s, time[1], got[1]));
    for (int w = 0; w < workers; w++) {
        assert_true(got[1][w] - begin < 0.75 * (got[0][w] - begin));
    }
    right(dm_program_destroy(s, program));
    right(dm_finalize(s, &alive));
}

static bool same(const results *x, const results *y)
{
    return memcmp(x, y, offsetof(results, explained)) == 0;
}

static void test_bits(void **state)
{
    static const char *const ways[] = {",program_device=on", ",program_device=auto,pool_debug=0",
                                       ",program_device=on,pool_debug=0,lanes=1",
                                       ",program_device=on,profile=/dev/null"};
    static results want, got;
    (void)state;
    two_gpus_or_skip();
    run_way("", &want);
    assert_null(strstr(want.explained, "alone"));
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
        run_way(ways[i], &got);
        assert_non_null(strstr(got.explained, "on the devices alone: yes, with up to "));
        if (!same(&want, &got)) {
            fail_msg("other bits with %s", ways[i]);
        }
    }
}

/* Worker 0 gives and takes nothing, so it may run ahead of the last worker, which is slow. */
static double run_ahead(const char *options)
{
    enum { SLOW = 20, AHEAD = 40 };
    dm_session *s;
    dm_array x, y, z;
    dm_program program;
    double value;
    int64_t alive;
    const int64_t n = 3000;
    right(open_session(options, &s));
    dm_layout first = dm_layout_single(0), last = dm_layout_single(dm_workers(s) - 1),
              all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F64, 1, &n, &first, &x));
    right(dm_array_create(s, DM_F64, 1, &n, &last, &y));
    right(dm_array_create(s, DM_F64, 1, &n, &all, &z)); /* all take part */
    right(dm_fill(s, x, 0));
    right(dm_fill(s, y, 0));
    right(dm_program_begin(s));
    right(dm_fill(s, z, 1));
    right(dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    map(s, "0.75 * x + y", y, x, y);
    for (int i = 0; i < SLOW; i++) {
        right(dm_map(s, "x + 0.001 * sin(x)", 1, (dm_map_arg[]){DM_ARG("x", y)}, y));
    }
    right(dm_program_end(s, &program));
    right(dm_program_run(s, program, AHEAD, 0, NULL));
    right(dm_item(s, y, (int64_t[]){n - 1}, &value));
    right(dm_finalize(s, &alive));
    return value;
}

static void test_ahead(void **state)
{
    (void)state;
    two_gpus_or_skip();
    double want = run_ahead(""), got = run_ahead(",program_device=on");
    assert_true(want == got);
}

/* --- what cannot run so --- */

static void explain_run(dm_session *s, dm_program program, const char *want)
{
    char *text;
    right(dm_explain_begin(s));
    right(dm_program_run(s, program, 1, 0, NULL));
    right(dm_explain_end(s, &text));
    if (!strstr(text, want)) {
        fail_msg("no \"%s\" in %s", want, text);
    }
    free(text);
}

static void test_others(void **state)
{
    enum { SIDE = 6144 };
    const int64_t shape[] = {SIDE, SIDE};
    dm_session *s, *second = NULL;
    dm_array large, turned, small, there, small_rows, sum;
    const int64_t n[] = {9, 5};
    dm_program program[3];
    double value = 0;
    int64_t alive;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on", &s));
    assert_int_equal(open_session("", &second), DM_ERR_CONFIG);
    assert_non_null(strstr(dm_error_message(), "program_device=on"));
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s), one = dm_layout_single(1),
              all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &large));
    right(dm_array_create(s, DM_F32, 2, shape, &cols, &turned));
    right(dm_array_create(s, DM_F64, 0, NULL, &one, &small));
    right(dm_array_create(s, DM_F64, 0, NULL, &one, &there));
    right(dm_array_create(s, DM_F32, 2, n, &rows, &small_rows));
    right(dm_array_create(s, DM_F32, 1, n + 1, &all, &sum));
    right(dm_fill(s, small_rows, 1));
    right(dm_fill(s, large, 3));
    right(dm_fill(s, small, 2));
    right(dm_program_begin(s));
    right(dm_copy(s, large, turned));
    right(dm_program_end(s, &program[0]));
    right(dm_program_begin(s));
    right(dm_scale(s, 2, small, there));
    right(dm_program_end(s, &program[1]));
    right(dm_program_begin(s));
    for (int i = 0; i < 2; i++) {
        right(dm_sum(s, small_rows, (int[]){0}, 1, 1, 0, sum));
        right(dm_apply(s, "add one", 1, &small_rows, (int[]){DM_READWRITE}, NULL, 0));
    }
    right(dm_program_end(s, &program[2]));
    explain_run(s, program[2], "call 2 is work of the host between transfers\n");
    explain_run(s, program[0], "on the devices alone: no, on worker 0 call 1 has a payload of ");
    explain_run(s, program[1], "on the devices alone: no, it has one worker\n");
    for (int i = 0; i < 2; i++) {
        right(dm_program_run(s, program[i], 3, 0, NULL));
    }
    right(dm_item(s, turned, (int64_t[]){SIDE - 1, 0}, &value));
    assert_true(value == 3);
    right(dm_read(s, there, &value));
    assert_true(value == 4);
    right(dm_finalize(s, &alive));
    right(open_session("", &s));
    assert_int_equal(open_session(",program_device=on", &second), DM_ERR_CONFIG);
    assert_non_null(strstr(dm_error_message(), "another session uses the GPUs"));
    right(dm_finalize(s, &alive));
}

/* Between workers. */
static int64_t all_sent(dm_session *s)
{
    int64_t sent[64] = {0}, all = 0;
    assert_true(dm_workers(s) < 64);
    for (int w = 0; w < dm_workers(s); w++) {
        right(dm_links_get(s, w, sent));
        for (int to = 0; to < dm_workers(s); to++) {
            all += sent[to];
        }
    }
    return all;
}

/* A sum of 2 MiB goes in segments in a program on the devices alone, where a hop more costs little; beside what
 * keeps a program from that, all addends go to all workers. */
static void test_segments(void **state)
{
    enum { N = 1 << 19, SIDE = 6144 };
    const int64_t shape[] = {SIDE, SIDE}, bytes = N * (int64_t)sizeof(float);
    dm_session *s;
    dm_array x, sum, large, turned;
    dm_program program[2];
    int64_t alive;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on", &s));
    const int64_t workers = dm_workers(s),
                  most[] = {2 * (workers - 1) * bytes, workers * (workers - 1) * bytes},
                  part = SIDE / workers, /* no more than 8 MiB of it to one worker would go alone */
        turning = (SIDE - part) * part * workers * (int64_t)sizeof(float);
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s), all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F32, 2, (int64_t[]){workers, N}, &rows, &x));
    right(dm_array_create(s, DM_F32, 1, (int64_t[]){N}, &all, &sum));
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &large));
    right(dm_array_create(s, DM_F32, 2, shape, &cols, &turned));
    right(dm_fill(s, x, 3));
    for (int i = 0; i < 2; i++) {
        char want[80];
        double value = 0;
        right(dm_program_begin(s));
        right(dm_sum(s, x, (int[]){0}, 1, 1, 0, sum));
        if (i == 1) {
            right(dm_copy(s, large, turned));
        }
        right(dm_program_end(s, &program[i]));
        explain_run(s, program[i], i == 0 ? "on the devices alone: yes" : "on the devices alone: no");
        snprintf(want, sizeof want, " payloads of %lld bytes, ", (long long)most[i]);
        explain_run(s, program[i], want);
        right(dm_fill(s, sum, 0));
        const int64_t before = all_sent(s);
        right(dm_program_run(s, program[i], 2, 0, NULL));
        /* more by the words by which workers agree whether to go on */
        assert_int_equal((all_sent(s) - before) >> 10, (2 * (most[i] + (i == 1 ? turning : 0))) >> 10);
        right(dm_item(s, sum, (int64_t[]){N - 1}, &value));
        assert_true(value == 3 * (double)workers);
    }
    right(dm_finalize(s, &alive));
}

/* Under a memory limit that has no room for the payloads, explain says so, and the program runs as others do.
 */
static void test_room(void **state)
{
    enum { LIMIT = 400000 };
    dm_session *s;
    dm_array x, y;
    dm_program program;
    double value = 0;
    int64_t alive;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on,memory_limit=400000", &s));
    const int64_t n = LIMIT / 2 / (int64_t)sizeof value;
    dm_layout rows = dm_layout_split(s, 0), all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    right(dm_array_create(s, DM_F64, 1, &n, &all, &y));
    right(dm_fill(s, x, 3));
    right(dm_program_begin(s));
    right(dm_copy(s, x, y));
    right(dm_program_end(s, &program));
    explain_run(s, program, " bytes for payloads are more than is left of memory_limit\n");
    right(dm_program_run(s, program, 2, 0, NULL));
    right(dm_item(s, y, (int64_t[]){n - 1}, &value));
    assert_true(value == 3);
    right(dm_finalize(s, &alive));
}

/* --- failures --- */

/* Only the last worker finds a value that is out of range, but the others' parts cannot be read either; the
 * program then runs again. */
static void test_failure(void **state)
{
    dm_session *s;
    dm_array x, y, sum, later;
    dm_program program;
    double value;
    int64_t alive;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on", &s));
    const int64_t n = 10 * dm_workers(s);
    dm_layout rows = dm_layout_split(s, 0), one = dm_layout_single(0);
    right(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    right(dm_array_create(s, DM_F64, 1, &n, &rows, &y));
    right(dm_array_create(s, DM_F64, 0, NULL, &one, &sum));
    right(dm_array_create(s, DM_F64, 0, NULL, &one, &later));
    right(dm_program_begin(s));
    right(dm_require_range(s, x, 0, 10));
    right(dm_map(s, "2 * x", 1, (dm_map_arg[]){DM_ARG("x", x)}, y));
    right(dm_sum(s, y, (int[]){0}, 1, 1, 0, sum));
    right(dm_program_end(s, &program));
    explain_run(s, program, "on the devices alone: yes");
    for (int round = 0; round < 3; round++) {
        right(dm_fill(s, x, 1));
        right(dm_set_item(s, x, (int64_t[]){n - 1}, 11));
        right(dm_program_run(s, program, 3, 0, NULL));
        right(dm_copy(s, sum, later)); /* before the program can know */
        assert_int_equal(dm_sync(s), DM_ERR_VALUE);
        assert_non_null(strstr(dm_error_message(), "require_range"));
        assert_int_equal(dm_read(s, later, &value), DM_ERR_POISONED);
        assert_int_equal(dm_read(s, sum, &value), DM_ERR_POISONED);
        assert_int_equal(dm_item(s, y, (int64_t[]){0}, &value), DM_ERR_POISONED);
        right(dm_fill(s, x, 1));
        right(dm_program_run(s, program, 2, 0, NULL));
        right(dm_read(s, sum, &value));
        assert_true(value == 2 * (double)n);
    }
    right(dm_finalize(s, &alive));
}

/* Of two checks between transfers the second fails, and is named. */
static void test_second_failure(void **state)
{
    dm_session *s;
    dm_array x, sum, there;
    dm_program program;
    double value;
    int64_t alive;
    const int64_t n = 30;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on", &s));
    dm_layout rows = dm_layout_split(s, 0), first = dm_layout_single(0), second = dm_layout_single(1);
    right(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    right(dm_array_create(s, DM_F64, 0, NULL, &first, &sum));
    right(dm_array_create(s, DM_F64, 0, NULL, &second, &there));
    right(dm_program_begin(s));
    right(dm_sum(s, x, (int[]){0}, 1, 1, 0, sum));
    right(dm_require_range(s, sum, 0, 1000));
    right(dm_require_range(s, sum, 0, 40));
    right(dm_copy(s, sum, there));
    right(dm_program_end(s, &program));
    explain_run(s, program, "on the devices alone: yes");
    for (int round = 0; round < 3; round++) {
        right(dm_fill(s, x, 1));
        right(dm_program_run(s, program, 2, 0, NULL));
        right(dm_read(s, there, &value));
        assert_true(value == (double)n);
        right(dm_fill(s, x, 2));
        right(dm_program_run(s, program, 2, 0, NULL));
        assert_int_equal(dm_sync(s), DM_ERR_VALUE);
        if (!strstr(dm_error_message(), "its call 3 of 4, require_range")) {
            fail_msg("%s", dm_error_message());
        }
        assert_int_equal(dm_read(s, there, &value), DM_ERR_POISONED);
    }
    right(dm_finalize(s, &alive));
}

static void test_cancel(void **state)
{
    dm_session *s;
    dm_array x, y;
    dm_program program;
    double value, begun;
    int64_t alive;
    const int64_t n = 1000;
    (void)state;
    two_gpus_or_skip();
    right(open_session(",program_device=on", &s));
    dm_layout rows = dm_layout_split(s, 0), all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    right(dm_array_create(s, DM_F64, 1, &n, &all, &y));
    right(dm_fill(s, x, 1));
    right(dm_program_begin(s));
    right(dm_program_repeat(s, 1000000000));
    right(dm_copy(s, x, y));
    right(dm_map(s, "x + y / 2", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y)}, x));
    right(dm_program_repeat_end(s));
    right(dm_program_end(s, &program));
    right(dm_program_run(s, program, 1, 0, NULL));
    (void)usleep(100000);
    begun = seconds();
    right(dm_cancel(s));
    assert_int_equal(dm_sync(s), DM_ERR_CANCELLED);
    assert_true(seconds() - begun < 20);
    right(dm_fill(s, x, 1));
    right(dm_copy(s, x, y));
    right(dm_item(s, y, (int64_t[]){n - 1}, &value));
    assert_true(value == 1);
    right(dm_finalize(s, &alive));
}

/* Kernels of worker 1 come to the one that never ends, in a program in which worker 0 waits on its device for
 * worker 1. The message names worker 1. */
static void endless(void)
{
    dm_session *s;
    dm_array there, x, y;
    dm_program program;
    const int64_t n = 1000;
    CHECK(open_session(",program_device=on,fault=endless:9,watchdog_s=3", &s) == DM_OK);
    dm_layout one = dm_layout_single(1), rows = dm_layout_split(s, 0), all = dm_layout_replicated(s);
    CHECK(dm_array_create(s, DM_F64, 1, &n, &one, &there) == DM_OK &&
          dm_array_create(s, DM_F64, 1, &n, &rows, &x) == DM_OK &&
          dm_array_create(s, DM_F64, 1, &n, &all, &y) == DM_OK);
    for (int i = 0; i < 7; i++) { /* these are not the others' */
        CHECK(dm_fill(s, there, i) == DM_OK);
    }
    CHECK(dm_program_begin(s) == DM_OK && dm_fill(s, x, 1) == DM_OK && dm_scale(s, 2, x, x) == DM_OK &&
          dm_copy(s, x, y) == DM_OK && dm_program_end(s, &program) == DM_OK);
    CHECK(dm_program_run(s, program, 1, 0, NULL) == DM_OK);
    dm_status status = dm_sync(s);
    fprintf(stderr, "%s: %s\n", dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_TIMEOUT && strstr(dm_error_message(), "worker 1 (") &&
          !strstr(dm_error_message(), "worker 0 ("));
    _exit(0);
}

static void test_endless(void **state)
{
    int result = -1;
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        if (dmi_cu_devices() < 2) {
            _exit(0);
        }
        endless();
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

/* --- the timeline --- */

enum { ARROWS = 400, ARROW_RUNS = 3 };
typedef struct arrow {
    char id[64];
    int pid;
    bool arrives;
} arrow;

/* Each payload of an exchange has an arrow from the worker that sends it to the one that waits for it. */
static void test_arrows(void **state)
{
    static const char path[] = "alone.json";
    static arrow all[ARROWS];
    char line[1000];
    dm_session *s;
    dm_array x, y, z;
    dm_program program;
    int64_t alive;
    int count = 0;
    (void)state;
    if (dmi_cu_devices() < 2) {
        skip();
    }
    right(open_session(",program_device=on,trace=alone.json", &s));
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s), everywhere = dm_layout_replicated(s);
    const int64_t shape[] = {ROWS, ROWS};
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &x));
    right(dm_array_create(s, DM_F32, 2, shape, &cols, &y));
    right(dm_array_create(s, DM_F32, 0, NULL, &everywhere, &z));
    right(dm_fill(s, x, 1));
    right(dm_program_begin(s));
    right(dm_copy(s, x, y));
    right(dm_scale(s, 2, y, y));
    right(dm_copy(s, y, x));
    right(dm_sum(s, x, NULL, 0, 1, 0, z));
    right(dm_program_end(s, &program));
    right(dm_program_run(s, program, ARROW_RUNS, 0, NULL));
    right(dm_finalize(s, &alive));
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from)) {
        const char *id = strstr(line, "\"id\":\"");
        if (strstr(line, "\"cat\":\"transfer\"") && id) {
            assert_true(count < ARROWS);
            arrow *a = &all[count++];
            assert_int_equal(sscanf(id, "\"id\":\"%63[^\"]", a->id), 1);
            assert_int_equal(sscanf(strstr(line, "\"pid\":"), "\"pid\":%d", &a->pid), 1);
            a->arrives = strstr(line, "\"ph\":\"f\"") != NULL;
        }
    }
    fclose(from);
    (void)remove(path);
    assert_true(count >= 2 * 3 * ARROW_RUNS && count % (2 * ARROW_RUNS) == 0);
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; j < count; j++) {
            const bool meets = strcmp(all[i].id, all[j].id) == 0;
            assert_true(!meets || i == j || (all[i].arrives != all[j].arrives && all[i].pid != all[j].pid));
            same += meets;
        }
        assert_int_equal(same, 2);
    }
}

/* --- groups --- */

/* Of two workers next to each other, which are overlapping groups, or the same one. */
typedef struct pair {
    dm_group group;
    dm_array x, turned, sum;
    dm_program program;
} pair;

static void make_pair(dm_session *s, int number, pair *p)
{
    const int members[] = {number, (number + 1) % dm_workers(s)};
    const int64_t shape[] = {ROWS, COLS}, cols[] = {COLS};
    right(dm_group_create(s, members, 2, &p->group));
    right(dm_group_begin(s, p->group));
    dm_layout rows = dm_layout_rows(s), by_cols = dm_layout_cols(s), all = dm_layout_replicated(s);
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &p->x));
    right(dm_array_create(s, DM_F32, 2, shape, &by_cols, &p->turned));
    right(dm_array_create(s, DM_F32, 1, cols, &all, &p->sum));
    right(dm_fill_uniform(s, p->x, -1, 1, (uint64_t)number));
    right(dm_fill(s, p->sum, 0));
    right(dm_program_begin(s));
    right(dm_program_repeat(s, 2));
    right(dm_copy(s, p->x, p->turned));
    map(s, "0.9 * x + 0.001 * y", p->turned, p->sum, p->turned);
    right(dm_copy(s, p->turned, p->x));
    right(dm_sum(s, p->x, (int[]){0}, 1, 1, 0, p->sum));
    right(dm_program_repeat_end(s));
    right(dm_program_end(s, &p->program));
    right(dm_group_end(s));
}

/* Commands of one worker, which takes no part in some of the programs that run: they allocate, give memory
 * back, make graphs. */
static void keep_busy(dm_session *s, int worker, int round, dm_array *kept)
{
    dm_layout one = dm_layout_single(worker);
    const int64_t n = 40000 + 30000 * (round % 3);
    dm_array x;
    dm_program program;
    right(dm_array_create(s, DM_F32, 1, &n, &one, &x));
    right(dm_fill(s, x, 1));
    right(dm_program_begin(s));
    right(dm_map(s, "2 * x", 1, (dm_map_arg[]){DM_ARG("x", x)}, x));
    right(dm_apply(s, "add one", 1, &x, (int[]){DM_READWRITE}, NULL, 0));
    right(dm_sum(s, x, (int[]){0}, 1, 1, 1, *kept));
    right(dm_program_end(s, &program));
    right(dm_program_run(s, program, 2, 0, NULL));
    right(dm_program_destroy(s, program));
    right(dm_array_destroy(s, x));
}

typedef struct groups_results {
    float x[MOST][ROWS * COLS], sum[MOST][COLS], busy[MOST], all[ROWS * COLS];
} groups_results;

static void run_groups(const char *options, groups_results *r)
{
    enum { ROUNDS = 24 };
    const int64_t shape[] = {ROWS, COLS};
    dm_session *s;
    dm_array all, turned, busy[MOST];
    dm_program everywhere;
    pair of[MOST];
    int64_t alive;
    memset(r, 0, sizeof *r);
    right(open_session(options, &s));
    const int workers = dm_workers(s);
    dm_layout rows = dm_layout_rows(s), by_cols = dm_layout_cols(s);
    right(dm_array_create(s, DM_F32, 2, shape, &rows, &all));
    right(dm_array_create(s, DM_F32, 2, shape, &by_cols, &turned));
    right(dm_fill(s, all, 1));
    right(dm_program_begin(s));
    right(dm_copy(s, all, turned));
    right(dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", turned)}, turned));
    right(dm_copy(s, turned, all));
    right(dm_program_end(s, &everywhere));
    for (int w = 0; w < workers; w++) {
        dm_layout one = dm_layout_single(w);
        make_pair(s, w, &of[w]);
        right(dm_array_create(s, DM_F32, 0, NULL, &one, &busy[w]));
        right(dm_fill(s, busy[w], 0));
        if (strstr(options, "program_device=on")) {
            explain_run(s, of[w].program, "on the devices alone: yes");
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < workers; k++) {
            right(dm_program_run(s, of[(k + round) % workers].program, 1 + round % 4, 0, NULL));
            keep_busy(s, (k + 2 * round) % workers, round, &busy[(k + 2 * round) % workers]);
        }
        if (round % 3 == 0) {
            right(dm_program_run(s, everywhere, 2, 0, NULL));
        }
    }
    for (int w = 0; w < workers; w++) {
        right(dm_group_sync(s, of[w].group));
        right(dm_read(s, of[w].x, r->x[w]));
        right(dm_read(s, of[w].sum, r->sum[w]));
        right(dm_read(s, busy[w], &r->busy[w]));
    }
    right(dm_read(s, all, r->all));
    right(dm_finalize(s, &alive));
}

/* Programs of groups that overlap, beside commands of workers that take no part. */
static void test_groups(void **state)
{
    static groups_results want, got;
    (void)state;
    two_gpus_or_skip();
    run_groups("", &want);
    run_groups(",program_device=on", &got);
    assert_memory_equal(&want, &got, sizeof want);
}

int main(void)
{
    if (dm_register("add one", add_one) != DM_OK || dm_register("note time", note_time) != DM_OK) {
        return 1;
    }
    /* first what forks: a process that has asked CUDA for its devices has none in its children */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_endless),  cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_early),    cmocka_unit_test(test_ahead),
                                       cmocka_unit_test(test_others),   cmocka_unit_test(test_segments),
                                       cmocka_unit_test(test_room),     cmocka_unit_test(test_failure),
                                       cmocka_unit_test(test_second_failure),
                                       cmocka_unit_test(test_cancel),   cmocka_unit_test(test_arrows),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
