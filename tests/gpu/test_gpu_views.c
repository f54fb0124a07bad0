/* Writers of disjoint views of one array: their steps lie side by side in the timeline, those of views that
 * share elements do not, and nothing that one writes is lost, whether it is a kernel or a function of the user.
 */
#include "gpu/gpu_case.h"

#include <dmath/dmath.h>

#include <time.h>

#ifdef DMATH_WITH_CUDA
#define DEVICE "device=cuda"
#else
#define DEVICE "device=emulated"
#endif

enum { SIDE = 64, VIEWS = 4, SLICES = 200, KERNEL_US = 200000 };

typedef struct slice {
    double begin, end; /* µs */
    int tid;
    int64_t command;
} slice;

static int64_t number(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* The slices of the kernels of the op `scale`. */
static int read_scales(const char *path, slice *out)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[1000], op[64], step[64];
    int count = 0;
    while (fgets(line, sizeof line, file)) {
        double begin, took;
        int pid, tid;
        if (sscanf(
                line,
                "{\"name\":\"%63[^ \"] %63[^\"]\",\"ph\":\"X\",\"ts\":%lf,\"dur\":%lf,\"pid\":%d,\"tid\":%d,",
                op, step, &begin, &took, &pid, &tid) == 6 &&
            strcmp(op, "scale") == 0) {
            assert_true(count < SLICES);
            out[count++] = (slice){begin, begin + took, tid, number(line, "\"command\":")};
        }
    }
    fclose(file);
    return count;
}

static dm_session *begin(const char *options)
{
    char text[200];
    dm_session *s;
    dm_config config = DM_CONFIG_INIT;
    snprintf(text, sizeof text, DEVICE ",lanes=%d,%s", VIEWS, options);
    config.workers = 1;
    config.options = text;
    ok(dm_init(&config, &s));
    return s;
}

static dm_array columns(dm_session *s, dm_array a, int64_t first, int64_t count)
{
    dm_array view;
    ok(dm_array_view(s, a, (int64_t[]){0, first}, (int64_t[]){SIDE, count}, &view));
    return view;
}

/* Multiplies VIEWS views of `cols` columns each, every `step`th one, which begin `apart` columns from one
 * another, by 2, 3, ... */
static void scale_views(const char *path, int apart, int cols, int step, slice *out)
{
    static double got[SIDE][SIDE];
    char options[100];
    const int64_t shape[] = {SIDE, SIDE};
    dm_array a, view[VIEWS];
    snprintf(options, sizeof options, "trace=%s", path);
    dm_session *s = begin(options);
    ok(dm_array_create(s, DM_F64, 2, shape, NULL, &a));
    ok(dm_fill(s, a, 1));
    ok(dm_sync(s));
    for (int i = 0; i < VIEWS; i++) {
        ok(dm_array_slice(s, a, (int64_t[]){0, (int64_t)i * apart}, (int64_t[]){SIDE, cols},
                          (int64_t[]){1, step}, &view[i]));
        ok(dm_scale(s, i + 2, view[i], view[i]));
    }
    ok(dm_array_read(s, a, NULL, NULL, got, 0));
    for (int j = 0; j < SIDE; j++) {
        double want = 1;
        for (int i = 0; i < VIEWS; i++) {
            const int from = j - i * apart;
            want *= from >= 0 && from % step == 0 && from / step < cols ? i + 2 : 1;
        }
        for (int i = 0; i < SIDE; i++) {
            assert_true(got[i][j] == want);
        }
    }
    int64_t alive;
    ok(dm_finalize(s, &alive));
    assert_int_equal(read_scales(path, out), VIEWS);
    (void)remove(path);
}

static bool side_by_side(const slice *a, const slice *b)
{
    return a->tid != b->tid && a->begin < b->end && b->begin < a->end;
}

static void all_side_by_side(const slice *found)
{
#ifndef DMATH_WITH_CUDA /* a kernel of a real GPU is done before the next one is there */
    for (int i = 0; i < VIEWS; i++) {
        for (int j = 0; j < i; j++) {
            if (!side_by_side(&found[i], &found[j])) {
                fail_msg("rows %d and %d: %.0f to %.0f and %.0f to %.0f us", found[i].tid, found[j].tid,
                         found[i].begin, found[i].end, found[j].begin, found[j].end);
            }
        }
    }
#else
    (void)found;
#endif
}

static void test_disjoint(void **state)
{
    (void)state;
    slice found[SLICES];
    gpus_or_skip();
    scale_views("views.json", SIDE / VIEWS, SIDE / VIEWS, 1, found);
    all_side_by_side(found);
    scale_views("interleaved.json", 1, SIDE / VIEWS, VIEWS, found);
    all_side_by_side(found);
}

static int by_command(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    return x->command > y->command ? 1 : -1;
}

/* Each shares a column with the next one. */
static void test_overlapping(void **state)
{
    (void)state;
    slice found[SLICES];
    gpus_or_skip();
    scale_views("overlapping.json", 15, 16, 1, found);
    qsort(found, VIEWS, sizeof *found, by_command);
    for (int i = 1; i < VIEWS; i++) {
        if (found[i].begin < found[i - 1].end) {
            fail_msg("command %d begins before the one that it waits for has ended", (int)found[i].command);
        }
    }
}

/* x = x + 1, slowly. */
static int add_slowly(const dm_task *task)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    for (int64_t k = 0; k < task->blocks[0]; k++) {
        const dm_block *x = &task->block[0][k];
        for (int64_t i = 0; i < x->extent[0]; i++) {
            for (int64_t j = 0; j < x->extent[1]; j++) {
                ((double *)x->data)[i * x->stride[0] + j * x->stride[1]] += 1;
            }
        }
    }
    return 0;
}

static void function_beside(dm_session *s, bool recorded)
{
    static double got[SIDE][SIDE];
    const int64_t shape[] = {SIDE, SIDE};
    dm_program program = {0};
    dm_array a;
    ok(dm_array_create(s, DM_F64, 2, shape, NULL, &a));
    ok(dm_fill(s, a, 1));
    ok(dm_sync(s));
    dm_array left = columns(s, a, 0, 20), right = columns(s, a, 20, SIDE - 20);
    if (recorded) {
        ok(dm_program_begin(s));
    }
    ok(dm_apply(s, "add slowly", 1, &left, (int[]){DM_READWRITE}, NULL, 0));
    ok(dm_scale(s, 5, right, right));
    if (recorded) {
        ok(dm_program_end(s, &program));
        ok(dm_program_run(s, program, 1, 0, NULL));
    }
    ok(dm_array_read(s, a, NULL, NULL, got, 0));
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            if (got[i][j] != (j < 20 ? 2 : 5)) {
                fail_msg("element %d, %d is %g", i, j, got[i][j]);
            }
        }
    }
    ok(dm_program_destroy(s, program));
}

/* A function gets a copy of its operands: what others write beside it meanwhile stays. */
static void test_function(void **state)
{
    (void)state;
    int64_t alive;
    gpus_or_skip();
    dm_session *s = begin("log=warn");
    function_beside(s, false);
    function_beside(s, true);
    ok(dm_finalize(s, &alive));
}

int main(void)
{
#ifndef DMATH_WITH_CUDA
    char text[20];
    snprintf(text, sizeof text, "%d", KERNEL_US);
    setenv("DMATH_EMULATED_KERNEL_US", text, 1);
#endif
    if (dm_register("add slowly", add_slowly) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_disjoint), cmocka_unit_test(test_overlapping),
                                       cmocka_unit_test(test_function)};
    return cmocka_run_group_tests_name("views on GPUs", tests, NULL, NULL);
}
