/* Operations of the user's own: every element of every layout is handed out once at each of its holders, with
 * its right index; failures are reported; names are checked. */
#include <dmath/dmath.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dm_status_name(status), dm_error_message());
    }
}

/* out += args[0] * (1000 * row + column), element by element of a 2-D f64 array */
static int number_them(const dm_task *t)
{
    double factor;
    memcpy(&factor, t->args, sizeof factor);
    for (int64_t b = 0; b < t->blocks[0]; b++) {
        const dm_block *k = &t->block[0][b];
        for (int64_t i = 0; i < k->extent[0]; i++) {
            for (int64_t j = 0; j < k->extent[1]; j++) {
                double *at = (double *)k->data + i * k->stride[0] + j * k->stride[1];
                *at += factor * (double)(1000 * (k->start[0] + i) + k->start[1] + j);
            }
        }
    }
    return t->count == 1 && t->args_bytes == 8 && t->worker < t->workers ? 0 : 7;
}

/* Operand i, an i32 array, becomes 10 + i where it is written. */
static int say_which(const dm_task *t)
{
    for (int i = 0; i < t->count; i++) {
        for (int64_t b = 0; b < t->blocks[i]; b++) {
            const dm_block *k = &t->block[i][b];
            for (int64_t r = 0; r < k->extent[0]; r++) {
                for (int64_t q = 0; q < k->extent[1] && i < t->args_bytes; q++) {
                    ((int32_t *)k->data)[r * k->stride[0] + q * k->stride[1]] = 10 + i;
                }
            }
        }
    }
    return 0;
}

static int fail_on_last(const dm_task *t)
{
    return t->worker == t->workers - 1 ? 42 : 0;
}

static int sum_others(const dm_task *t)
{
    for (int i = 0; i < t->count && i < DM_TASK_OPERANDS; i++) {
        if (t->operand[i] != t->block[i] || t->operand_blocks[i] != t->blocks[i]) {
            return 7;
        }
    }
    for (int64_t b = 0; b < t->operand_blocks[t->count - 1]; b++) {
        const dm_block *out = &t->operand[t->count - 1][b];
        for (int64_t i = 0; i < out->extent[0] * out->extent[1]; i++) {
            int64_t at = i / out->extent[1] * out->stride[0] + i % out->extent[1] * out->stride[1];
            double sum = 0;
            for (int k = 0; k < t->count - 1; k++) {
                sum += ((const double *)t->operand[k][b].data)[at];
            }
            ((double *)out->data)[at] = sum;
        }
    }
    return 0;
}

static dm_session *open_now; /* for the function that must not use it */

static int call_back(const dm_task *t)
{
    (void)t;
    return dm_sync(open_now) == DM_ERR_STATE ? 0 : 1;
}

static int compute_long(const dm_task *t) /* 1.2 s of processor time: more than watchdog_s, and a quarter of what it may take */
{
    (void)t;
    for (struct timespec now = {0}; now.tv_sec * 1000 + now.tv_nsec / 1000000 < 1200;) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    return 0;
}

static void check_values(dm_session *s, dm_array a, int64_t rows, int64_t cols, double factor, int64_t r0,
                         int64_t c0)
{
    double *v = malloc((size_t)(rows * cols + 1) * 8);
    ok(dm_array_read(s, a, NULL, NULL, v, 0));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            assert_true(v[i * cols + j] == 1 + factor * (double)(1000 * (i - r0) + j - c0));
        }
    }
    free(v);
}

static void one_layout(dm_session *s, const dm_layout *layout, int64_t rows, int64_t cols)
{
    int64_t shape[2] = {rows, cols};
    double factor = 0.5;
    int mode = DM_READWRITE;
    dm_array a;
    ok(dm_array_create(s, DM_F64, 2, shape, layout, &a));
    ok(dm_fill(s, a, 1));
    ok(dm_apply(s, "number them", 1, &a, &mode, &factor, sizeof factor));
    check_values(s, a, rows, cols, factor, 0, 0);
    if (rows > 3 && cols > 2) { /* a view: its own indices, and nothing outside it is touched */
        int64_t lo[2] = {2, 1}, extent[2] = {rows - 3, cols - 2};
        dm_array v;
        ok(dm_fill(s, a, 1));
        ok(dm_array_view(s, a, lo, extent, &v));
        ok(dm_apply(s, "number them", 1, &v, &mode, &factor, sizeof factor));
        double *all = malloc((size_t)(rows * cols) * 8);
        ok(dm_array_read(s, a, NULL, NULL, all, 0));
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < cols; j++) {
                bool in = i >= 2 && i < rows - 1 && j >= 1 && j < cols - 1;
                assert_true(all[i * cols + j] == 1 + (in ? factor * (double)(1000 * (i - 2) + j - 1) : 0));
            }
        }
        free(all);
        ok(dm_array_destroy(s, v));
    }
    ok(dm_array_destroy(s, a));
}

static void all_layouts(dm_session *s)
{
    int workers = dm_workers(s), map[6] = {0, workers - 1, workers / 2, 0, 0, workers - 1};
    int64_t block[2] = {5, 4};
    dm_layout layouts[] = {dm_layout_default(),
                           dm_layout_cols(s),
                           dm_layout_cyclic(s, 0, 2),
                           dm_layout_replicated(s),
                           dm_layout_single(workers - 1),
                           dm_layout_explicit(2, block, map, 6),
                           dm_layout_grid(1, workers, 3, 2)};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        one_layout(s, &layouts[i], 11, 7);
        if (i != 5) {
            one_layout(s, &layouts[i], 131, 67); /* on GPUs by way of several pieces of host memory */
            one_layout(s, &layouts[i], 1, 1);
            one_layout(s, &layouts[i], 0, 3);
        }
    }
}

static void test_layouts(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 5; workers++) {
        dm_config config = DM_CONFIG_INIT;
        dm_session *s = NULL;
        config.workers = workers;
        ok(dm_init(&config, &s));
        all_layouts(s);
        ok(dm_finalize(s, NULL));
    }
}

/* Under a launcher, which gives one session. */
static void test_launched(void **state)
{
    (void)state;
    dm_session *s = NULL;
    ok(dm_init(NULL, &s));
    all_layouts(s);
    ok(dm_finalize(s, NULL));
}

static void columns_are(dm_session *s, dm_array a, int32_t left, int32_t right)
{
    int32_t got[64];
    ok(dm_array_read(s, a, NULL, NULL, got, 0));
    for (int i = 0; i < 64; i++) {
        assert_int_equal(got[i], i % 8 < 4 ? left : right);
    }
}

/* Two parts of one array, both written; and an operand that some workers have nothing of. args_bytes: how many
 * of the operands are written. */
static void test_operands(void **state)
{
    (void)state;
    const int64_t shape[2] = {8, 8}, half[2] = {8, 4};
    const int both[2] = {DM_READWRITE, DM_READWRITE}, first[2] = {DM_WRITE, DM_READ};
    for (int workers = 1; workers <= 4; workers++) {
        dm_config config = DM_CONFIG_INIT;
        dm_session *s = NULL;
        dm_array x, one, part[2];
        config.workers = workers;
        ok(dm_init(&config, &s));
        dm_layout rows = dm_layout_rows(s), single = dm_layout_single(workers - 1);
        ok(dm_array_create(s, DM_I32, 2, shape, &rows, &x));
        ok(dm_array_create(s, DM_I32, 2, shape, &single, &one));
        ok(dm_fill(s, x, 1));
        ok(dm_fill(s, one, 1));
        ok(dm_array_view(s, x, (const int64_t[]){0, 0}, half, &part[0]));
        ok(dm_array_view(s, x, (const int64_t[]){0, 4}, half, &part[1]));
        ok(dm_apply(s, "say which", 2, part, both, "..", 2));
        columns_are(s, x, 10, 11);
        ok(dm_apply(s, "say which", 2, (dm_array[]){part[1], part[0]}, both, "..", 2));
        columns_are(s, x, 11, 10);
        ok(dm_apply(s, "say which", 2, (dm_array[]){part[1], part[0]}, first, ".", 1));
        columns_are(s, x, 11, 10);
        ok(dm_fill(s, x, 1));
        dm_apply_options align = DM_APPLY_OPTIONS_INIT;
        align.align = 1;
        assert_int_equal(dm_apply(s, "say which", 2, (dm_array[]){x, one}, first, ".", 1),
                         workers > 1 ? DM_ERR_LAYOUT : DM_OK);
        ok(dm_apply_with(s, "say which", 2, (dm_array[]){x, one}, first, ".", 1, &align));
        columns_are(s, x, 10, 10);
        columns_are(s, one, 1, 1);
        dm_array flat; /* of another shape: its blocks are its own */
        ok(dm_array_reshape(s, one, 2, (const int64_t[]){16, 4}, &flat));
        ok(dm_apply(s, "say which", 2, (dm_array[]){x, flat}, both, "..", 2));
        columns_are(s, x, 10, 10);
        columns_are(s, one, 11, 11);
        ok(dm_finalize(s, NULL));
    }
}

/* Eight operands, the last of which is the sum of the others; the first four are where they always were. */
static void test_many_operands(void **state)
{
    (void)state;
    enum { MANY = 8, ROWS = 23, COLS = 5 };
    dm_array x[MANY + 1];
    int modes[MANY + 1] = {DM_READ, DM_READ, DM_READ, DM_READ, DM_READ, DM_READ, DM_READ, DM_WRITE, DM_READ};
    double got[ROWS * COLS];
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.workers = 5;
    ok(dm_init(&config, &s));
    for (int i = 0; i <= MANY; i++) {
        ok(dm_matrix(s, DM_F64, ROWS, COLS, &x[i]));
        ok(dm_fill(s, x[i], 1 << i));
    }
    ok(dm_apply(s, "sum of others", MANY, x, modes, NULL, 0));
    ok(dm_array_read(s, x[MANY - 1], NULL, NULL, got, 0));
    for (int i = 0; i < ROWS * COLS; i++) {
        assert_true(got[i] == 127);
    }
    assert_int_equal(dm_apply(s, "sum of others", MANY + 1, x, modes, NULL, 0), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "count is 9, not 0 to 8"));
    for (int i = 0; i <= MANY; i++) {
        ok(dm_array_destroy(s, x[i]));
    }
    ok(dm_finalize(s, NULL));
}

static void test_failure(void **state)
{
    (void)state;
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array a, b;
    int modes[2] = {DM_WRITE, DM_READ};
    config.workers = 3;
    ok(dm_init(&config, &s));
    dm_layout rows = dm_layout_rows(s);
    ok(dm_array_create(s, DM_F32, 2, (const int64_t[]){9, 4}, &rows, &a));
    ok(dm_array_like(s, a, 0, &b));
    ok(dm_fill(s, a, 1));
    ok(dm_fill(s, b, 1));
    ok(dm_apply(s, "fail on last", 2, (dm_array[]){a, b}, modes, NULL, 0));
    assert_int_equal(dm_sync(s), DM_ERR_TASK);
    assert_non_null(strstr(dm_error_message(), "fail on last returned 42"));
    assert_non_null(strstr(dm_error_message(), "worker 2"));
    float host[36];
    assert_int_equal(dm_array_read(s, a, NULL, NULL, host, 0), DM_ERR_POISONED);
    ok(dm_array_read(s, b, NULL, NULL, host, 0));
    /* what other workers have made of it cannot be read either */
    assert_int_equal(dm_array_read(s, a, (const int64_t[]){0, 0}, (const int64_t[]){1, 4}, host, 0),
                     DM_ERR_POISONED);
    assert_non_null(strstr(dm_error_message(), "(apply)"));
    ok(dm_fill(s, a, 2));
    ok(dm_array_read(s, a, NULL, NULL, host, 0));
    /* two commands fail, and what is overwritten before the failure is known may be read */
    ok(dm_apply(s, "fail on last", 2, (dm_array[]){a, b}, modes, NULL, 0));
    ok(dm_apply(s, "fail on last", 2, (dm_array[]){b, a}, modes, NULL, 0));
    ok(dm_apply(s, "fail on last", 1, (dm_array[]){b}, modes, NULL, 0));
    ok(dm_fill(s, a, 3));
    assert_int_equal(dm_sync(s), DM_ERR_TASK);
    assert_non_null(strstr(dm_error_message(), "Other commands failed, too: "));
    ok(dm_array_read(s, a, NULL, NULL, host, 0));
    assert_true(host[0] == 3 && host[35] == 3);
    assert_int_equal(dm_array_read(s, b, (const int64_t[]){0, 0}, (const int64_t[]){1, 4}, host, 0),
                     DM_ERR_POISONED);
    ok(dm_finalize(s, NULL));
}

/* Refused inside a function, which would wait for itself; and a long one is no stuck worker. */
static void test_inside(void **state)
{
    (void)state;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 2;
    config.options = "watchdog_s=0.5,log=error";
    ok(dm_init(&config, &open_now));
    ok(dm_apply(open_now, "call back", 0, NULL, NULL, NULL, 0));
    ok(dm_sync(open_now));
    ok(dm_apply(open_now, "compute long", 0, NULL, NULL, NULL, 0));
    ok(dm_sync(open_now));
    ok(dm_finalize(open_now, NULL));
}

static void test_arguments(void **state)
{
    (void)state;
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array a;
    int read = DM_READ, write = DM_WRITE, bad = 9;
    config.workers = 2;
    assert_int_equal(dm_register(NULL, number_them), DM_ERR_ARG);
    assert_int_equal(dm_register("x", NULL), DM_ERR_ARG);
    assert_int_equal(dm_register("", number_them), DM_ERR_ARG);
    assert_int_equal(dm_register("number them", number_them), DM_ERR_ARG);
    ok(dm_init(&config, &s));
    assert_int_equal(dm_register("late", number_them), DM_ERR_STATE);
    ok(dm_matrix(s, DM_F32, 9, 4, &a));
    assert_int_equal(dm_apply(s, "nobody", 1, &a, &read, NULL, 0), DM_ERR_ARG);
    assert_int_equal(dm_apply(s, "number them", 9, &a, &read, NULL, 0), DM_ERR_ARG);
    assert_int_equal(dm_apply(s, "number them", 1, &a, &bad, NULL, 0), DM_ERR_ARG);
    assert_int_equal(dm_apply(s, "number them", 1, NULL, &read, NULL, 0), DM_ERR_ARG);
    assert_int_equal(dm_apply(s, "number them", 1, &a, &read, NULL, 8), DM_ERR_ARG);
    assert_int_equal(dm_apply(s, "number them", 1, &a, &read, &read, 1 << 20), DM_ERR_ARG);
    int two[2] = {write, read};
    assert_int_equal(dm_apply(s, "fail on last", 2, (dm_array[]){a, a}, two, NULL, 0), DM_ERR_OVERLAP);
    ok(dm_finalize(s, NULL));
}

int main(void)
{
    if (dm_register("number them", number_them) != DM_OK ||
        dm_register("fail on last", fail_on_last) != DM_OK || dm_register("call back", call_back) != DM_OK ||
        dm_register("sum of others", sum_others) != DM_OK || dm_register("say which", say_which) != DM_OK ||
        dm_register("compute long", compute_long) != DM_OK) {
        fprintf(stderr, "%s\n", dm_error_message());
        return 1;
    }
    if (getenv("DMATH_TEST_LAUNCHED")) {
        const struct CMUnitTest launched[] = {cmocka_unit_test(test_launched)};
        return cmocka_run_group_tests(launched, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),     cmocka_unit_test(test_layouts), cmocka_unit_test(test_operands),
        cmocka_unit_test(test_many_operands), cmocka_unit_test(test_failure), cmocka_unit_test(test_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
