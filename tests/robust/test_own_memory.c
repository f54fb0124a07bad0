/* Each allocation of one thread fails once, in calls that go by other ways than those of test_faults: rows that
 * are brought by lists and by exchanges, or lent by many workers; transfers under a time limit; loops that look
 * at a part of an array; fused products; checkpoints of many parts. The call says that there is no memory, or
 * all is right; then it is right. */
#include "robust.h"

#include "base/fault.h"
#include "support/folder.h"
#include "support/try.h"

#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <dmath/index.h>
#include <dmath/program.h>

enum { SIDE = 24, MOST_CALLS = 2000, MASTER = -1 };

static char folder[] = "/tmp/dmath-own-memory-XXXXXX";

typedef struct kit {
    dm_session *s;
    int side; /* of a, b and c */
    dm_array a, b, c, index;
} kit;

static void set_up(kit *k, int workers, int side, const char *options)
{
    char text[160];
    int64_t rows[MOST * 2];
    double *values = malloc((size_t)side * (size_t)side * sizeof *values);
    snprintf(text, sizeof text, "log=error,fault=''%s", options);
    k->s = open_session(workers, text);
    k->side = side;
    dm_layout by_rows = dm_layout_rows(k->s);
    const int64_t shape[] = {side, side};
    assert_true(values && side <= MOST * 2);
    element_matrix(side, 1, values);
    OK(dm_array_create(k->s, DM_F64, 2, shape, &by_rows, &k->a));
    OK(dm_array_create(k->s, DM_F64, 2, shape, &by_rows, &k->b));
    OK(dm_array_create(k->s, DM_F64, 2, shape, &by_rows, &k->c));
    OK(dm_array_create(k->s, DM_I64, 1, shape, &by_rows, &k->index));
    OK(dm_array_write(k->s, k->a, NULL, NULL, values, 0));
    for (int i = 0; i < side; i++) { /* SIDE and the number of workers have no factor 7 */
        rows[i] = i * 7 % side;
    }
    OK(dm_array_write(k->s, k->index, NULL, NULL, rows, 0));
    OK(dm_fill(k->s, k->c, 0));
    OK(dm_sync(k->s));
    free(values);
}

/* c[i] == a[index[i]], or the other way round */
static dm_status rows_are(kit *k, dm_array c, bool put)
{
    double *got = malloc((size_t)k->side * (size_t)k->side * sizeof *got);
    dm_status status = got ? dm_read(k->s, c, got) : DM_ERR_NOMEM;
    for (int i = 0; i < k->side && status == DM_OK; i++) {
        int from = put ? i : i * 7 % k->side, to = put ? i * 7 % k->side : i;
        for (int j = 0; j < k->side; j++) {
            if (got[to * k->side + j] != element(1, from, j)) {
                fail_msg("element (%d, %d) is %g", to, j, got[to * k->side + j]);
            }
        }
    }
    free(got);
    return status;
}

static dm_status take(kit *k)
{
    TRY(dm_take(k->s, k->a, k->index, 0, DM_RAISE, k->c));
    TRY(dm_sync(k->s));
    return rows_are(k, k->c, false);
}

static dm_status put(kit *k)
{
    TRY(dm_put(k->s, k->c, k->index, k->a, 0, DM_RAISE));
    TRY(dm_sync(k->s));
    return rows_are(k, k->c, true);
}

static dm_status limited(kit *k)
{
    double values[SIDE * SIDE], got[SIDE * SIDE];
    element_matrix(SIDE, 5, values);
    TRY(dm_session_limit(k->s, 100));
    dm_status status = dm_array_write(k->s, k->b, NULL, NULL, values, 0);
    status = status == DM_OK ? dm_array_read(k->s, k->b, NULL, NULL, got, 0) : status;
    TRY(dm_session_limit(k->s, -1));
    TRY(status);
    assert_memory_equal(values, got, sizeof got);
    return DM_OK;
}

/* Halves a number that is a part of an array, until it is below 1; the arrays beside it fill the list of the
 * recording, which grows at powers of two. */
static dm_status loop_of(kit *k, int arrays)
{
    dm_array x, part, beside[20];
    dm_program program;
    double got[2];
    TRY(dm_vector(k->s, DM_F64, 2, &x));
    TRY(dm_array_view(k->s, x, (int64_t[]){1}, (int64_t[]){1}, &part));
    TRY(dm_fill(k->s, x, 32));
    for (int i = 0; i < arrays; i++) {
        TRY(dm_vector(k->s, DM_F64, 2, &beside[i]));
    }
    TRY(dm_program_begin(k->s));
    dm_status status = dm_program_repeat(k->s, 20);
    for (int i = 0; i < arrays && status == DM_OK; i++) {
        status = dm_fill(k->s, beside[i], i);
    }
    status = status == DM_OK ? dm_scale(k->s, 0.5, x, x) : status;
    status = status == DM_OK ? dm_program_repeat_until(k->s, 1, part, 1) : status;
    if (status != DM_OK) {
        (void)!dm_program_end(k->s, NULL);
        return status;
    }
    TRY(dm_program_end(k->s, &program));
    TRY(dm_program_run(k->s, program, 1, 0, NULL));
    TRY(dm_read(k->s, x, got));
    assert_true(got[0] == 0.5 && got[1] == 0.5);
    TRY(dm_program_destroy(k->s, program));
    return DM_OK;
}

static dm_status loop_3(kit *k)
{
    return loop_of(k, 3);
}
static dm_status loop_7(kit *k)
{
    return loop_of(k, 7);
}
static dm_status loop_15(kit *k)
{
    return loop_of(k, 15);
}

static dm_status checkpoint(kit *k)
{
    char path[96];
    const dm_checkpoint_item saved = {.name = "a", .array = k->a}, loaded = {.name = "a", .array = k->b};
    snprintf(path, sizeof path, "%s/series", folder);
    TRY(dm_checkpoint_save(k->s, path, 1, &saved, NULL, NULL));
    TRY(dm_checkpoint_load(k->s, path, 1, &loaded));
    double got[MOST * MOST], want[MOST * MOST];
    element_matrix(k->side, 1, want);
    TRY(dm_read(k->s, k->b, got));
    assert_memory_equal(got, want, (size_t)k->side * (size_t)k->side * sizeof *got);
    return DM_OK;
}

/* By one kernel that multiplies while operands arrive: of 16-bit floats, in whole groups of 16 bytes. */
static dm_status fused(kit *k)
{
    double got[MOST * MOST];
    dm_array x, y, z;
    dm_layout rows = dm_layout_rows(k->s);
    const int64_t shape[] = {k->side, k->side};
    TRY(dm_array_create(k->s, DM_BF16, 2, shape, &rows, &x));
    TRY(dm_array_create(k->s, DM_BF16, 2, shape, &rows, &y));
    TRY(dm_array_create(k->s, DM_BF16, 2, shape, &rows, &z));
    TRY(dm_fill(k->s, x, 2));
    TRY(dm_fill_identity(k->s, y, 3));
    TRY(dm_gemm(k->s, DM_N, DM_N, 1, x, y, 0, z));
    TRY(dm_copy(k->s, z, k->c));
    TRY(dm_read(k->s, k->c, got));
    for (int i = 0; i < k->side * k->side; i++) {
        assert_true(got[i] == 6);
    }
    return DM_OK;
}

/* Single elements in turn, so that what moves has as many runs as elements. */
static dm_status in_pieces(kit *k)
{
    enum { N = 3000 };
    static double values[N], got[N];
    dm_array x, y;
    const int64_t n = N;
    for (int i = 0; i < N; i++) {
        values[i] = i;
    }
    dm_layout pieces = dm_layout_cyclic(k->s, 0, 1), rows = dm_layout_rows(k->s);
    TRY(dm_array_create(k->s, DM_F64, 1, &n, &pieces, &x));
    TRY(dm_array_create(k->s, DM_F64, 1, &n, &rows, &y));
    TRY(dm_array_write(k->s, x, NULL, NULL, values, 0));
    TRY(dm_copy(k->s, x, y));
    TRY(dm_read(k->s, y, got));
    assert_memory_equal(values, got, sizeof got);
    memset(got, 0, sizeof got);
    TRY(dm_read(k->s, x, got));
    assert_memory_equal(values, got, sizeof got);
    return DM_OK;
}

typedef struct way {
    const char *name;
    dm_status (*call)(kit *k);
    int thread, workers, side; /* thread: whose allocations fail, a worker's or the master's */
    const char *options;
} way;

static const way ways[] = {
    {"take by a list", take, MASTER, 3, SIDE, ",device=cpu,index_algorithm=list"},
    {"take by an exchange", take, MASTER, 3, SIDE, ",device=cpu,index_algorithm=exchange"},
    {"put by an exchange", put, MASTER, 3, SIDE, ",device=cpu,index_algorithm=exchange"},
    {"take of what 66 workers lend", take, 5, 66, 66, ",device=cpu,index_algorithm=lend"},
    {"transfers under a limit", limited, MASTER, 3, SIDE, ",device=cpu"},
    {"a loop beside 3 arrays", loop_3, MASTER, 2, SIDE, ",device=cpu"},
    {"a loop beside 7 arrays", loop_7, MASTER, 2, SIDE, ",device=cpu"},
    {"a loop beside 15 arrays", loop_15, MASTER, 2, SIDE, ",device=cpu"},
#ifndef DMATH_WITH_CUDA
    {"a fused product", fused, 0, 2, MOST, ",device=emulated,share_gpu=1,gemm_algorithm=fused"},
    {"pieces through memory of the host", in_pieces, 0, 2, SIDE,
     ",device=emulated,share_gpu=1,transport=staged"},
    {"a checkpoint of many parts", checkpoint, MASTER, 2, MOST, ",device=emulated,share_gpu=1,file_chunk=4K"},
#endif
};

/* Returns whether the fault was met. The session serves the next point too, unless it has failed. */
static bool one(const way *w, kit *k, int at, int *said)
{
    char fault[64], text[2048];
    snprintf(fault, sizeof fault, "malloc:%d:worker=%d", at, w->thread);
    OK(dm_scope_begin(k->s));
    dmi_fault_plant(fault);
    dm_status status = w->call(k);
    snprintf(text, sizeof text, "%s", dm_error_message());
    bool met = dmi_fault_calls() >= at;
    dmi_fault_plant("");
    if (status != DM_OK) {
        if (!met || (status != DM_ERR_NOMEM && status != DM_ERR_POISONED && status != DM_ERR_IO) ||
            (status == DM_ERR_NOMEM && !strstr(text, " bytes were asked for") &&
             !strstr(text, "cannot start"))) {
            fail_msg("%s, %s: %s: %s", w->name, fault, dm_status_name(status), text);
        }
        (*said)++;
    }
    if (dm_sync(k->s) != DM_OK && strstr(dm_error_message(), "The session has failed")) {
        (void)!dm_finalize(k->s, NULL);
        set_up(k, w->workers, w->side, w->options);
        OK(dm_scope_begin(k->s));
    }
    OK(dm_fill(k->s, k->c, 0));
    OK(w->call(k));
    OK(dm_scope_end(k->s, NULL, 0));
    return met;
}

static void test_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int at = 1, said = 0;
        kit k;
        set_up(&k, ways[i].workers, ways[i].side, ways[i].options);
        while (at < MOST_CALLS && one(&ways[i], &k, at, &said)) {
            at++;
        }
        OK(dm_finalize(k.s, &(int64_t){0}));
        print_message("%s: %d allocations, %d said so\n", ways[i].name, at - 1, said);
        assert_in_range(at, 2, MOST_CALLS - 1);
        assert_true(said > 0);
    }
}

static int begin(void **state)
{
    (void)state;
    alarm(1000);
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return dmt_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways)};
    return cmocka_run_group_tests(tests, begin, end);
}
