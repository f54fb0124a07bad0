/* The command-line tool, run as a program: what it explains is what a session explains, what it multiplies is
 * the product, and what it does not understand it refuses with status 2 and a reason. */
#include <dmath/dmath.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 4, OUTPUT = 1 << 16 };

#define OK(call) assert_int_equal((call), DM_OK)

/* Runs a line of shell; `out` receives its standard output. Returns its exit status. */
static int run(const char *command, char out[OUTPUT])
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(out, 1, OUTPUT - 1, pipe);
    out[n] = 0;
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Runs the tool; `out` receives what it says on both streams. */
static int run_tool(const char *arguments, char out[OUTPUT])
{
    char command[1024];
    snprintf(command, sizeof command, "%s %s 2>&1", DMATH_TOOL, arguments);
    return run(command, out);
}

static dm_session *open_session(void)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    config.workers = WORKERS;
    OK(dm_init(&config, &s));
    return s;
}

/* --- explain
 * --------------------------------------------------------------------------------------------------- */

typedef struct explained {
    const char *arguments; /* layouts aside */
    enum { GEMM, GEMM_TRANSPOSED, COPY, TRANSPOSE, ADD, SUM } call;
    int64_t m, n, k;
} explained;

static const explained calls[] = {
    {"gemm --m 60 --n 44 --k 52", GEMM, 60, 44, 52},
    {"gemm --m 61 --n 7 --k 130 --trans-a --beta 2 --dtype f64", GEMM_TRANSPOSED, 61, 7, 130},
    {"copy --m 37 --n 90", COPY, 37, 90, 0},
    {"remap --m 37 --n 90 --transpose", TRANSPOSE, 37, 90, 0},
    {"add --m 33 --n 21", ADD, 33, 21, 0},
    {"sum --m 40 --n 35 --dim 0", SUM, 40, 35, 0},
};

enum { LAYOUTS = 7 };
static const char *const layout_names[LAYOUTS] = {"default",    "rows",     "cols",      "cyclic:0:3",
                                                  "replicated", "single:2", "grid:2x2:5"};

static dm_layout layout_of(dm_session *s, int which)
{
    switch (which) {
    case 1:
        return dm_layout_rows(s);
    case 2:
        return dm_layout_cols(s);
    case 3:
        return dm_layout_cyclic(s, 0, 3);
    case 4:
        return dm_layout_replicated(s);
    case 5:
        return dm_layout_single(2);
    case 6:
        return dm_layout_grid(2, 2, 5, 5);
    default:
        return dm_layout_default();
    }
}

static dm_array matrix(dm_session *s, dm_dtype dtype, int64_t rows, int64_t cols, int layout)
{
    const int64_t shape[2] = {rows, cols};
    dm_layout l = layout_of(s, layout);
    dm_array a;
    OK(dm_array_create(s, dtype, 2, shape, &l, &a));
    return a;
}

/* What a session says of the call; the caller frees it. */
static char *session_text(dm_session *s, const explained *x, const int layout[3])
{
    bool turned = x->call == GEMM_TRANSPOSED;
    dm_dtype dtype = turned ? DM_F64 : DM_F32;
    dm_array a[3] = {DM_NO_ARRAY, DM_NO_ARRAY, DM_NO_ARRAY};
    char *text = NULL;
    OK(dm_explain_begin(s));
    switch (x->call) {
    case GEMM:
    case GEMM_TRANSPOSED:
        a[0] = turned ? matrix(s, dtype, x->k, x->m, layout[0]) : matrix(s, dtype, x->m, x->k, layout[0]);
        a[1] = matrix(s, dtype, x->k, x->n, layout[1]);
        a[2] = matrix(s, dtype, x->m, x->n, layout[2]);
        OK(dm_gemm(s, turned ? DM_T : DM_N, DM_N, 1, a[0], a[1], turned ? 2 : 0, a[2]));
        break;
    case COPY:
    case TRANSPOSE:
        a[0] = matrix(s, dtype, x->m, x->n, layout[0]);
        a[1] =
            x->call == COPY ? matrix(s, dtype, x->m, x->n, layout[1]) : matrix(s, dtype, x->n, x->m, layout[1]);
        OK(x->call == COPY ? dm_copy(s, a[0], a[1]) : dm_transpose(s, a[0], a[1]));
        break;
    case ADD:
        for (int i = 0; i < 3; i++) {
            a[i] = matrix(s, dtype, x->m, x->n, layout[i]);
        }
        OK(dm_add(s, 1, a[0], 1, a[1], a[2]));
        break;
    case SUM:
        a[0] = matrix(s, dtype, x->m, x->n, layout[0]);
        OK(dm_array_create(s, dtype, 1, &x->n, NULL, &a[1]));
        OK(dm_sum(s, a[0], (int[]){0}, 1, 1, 0, a[1]));
        break;
    }
    OK(dm_explain_end(s, &text));
    for (int i = 0; i < 3; i++) {
        OK(dm_array_destroy(s, a[i]));
    }
    return text;
}

/* The tool says to whom a worker sends in its list of steps. */
static void without_links(char *text)
{
    for (char *at = text; (at = strstr(at, "  sent by worker "));) {
        char *end = strchr(at, '\n') + 1;
        memmove(at, end, strlen(end) + 1);
    }
}

static void explains_as_a_session(dm_session *s, const explained *x, const int layout[3])
{
    char arguments[512], out[OUTPUT];
    snprintf(arguments, sizeof arguments, "explain %s --workers %d --a-layout %s --b-layout %s --c-layout %s",
             x->arguments, WORKERS, layout_names[layout[0]], layout_names[x->call == SUM ? 0 : layout[1]],
             layout_names[layout[2]]);
    assert_int_equal(run_tool(arguments, out), 0);
    char *text = session_text(s, x, layout), *end = strstr(out, "all workers:");
    without_links(text);
    assert_non_null(end);
    *end = 0;
    if (strcmp(out, text) != 0) {
        fail_msg("dmath %s\n%s\na session says\n%s", arguments, out, text);
    }
    free(text);
}

static void test_explain(void **state)
{
    (void)state;
    dm_session *s = open_session();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int l = 0; l < LAYOUTS; l++) {
            explains_as_a_session(s, &calls[i],
                                  (const int[3]){l, (l + (int)i) % LAYOUTS, (2 * l + 1) % LAYOUTS});
        }
    }
    OK(dm_finalize(s, NULL));
}

/* A plan's steps are as many as it says, on paper for more workers than there could be here. */
static void test_explain_steps(void **state)
{
    (void)state;
    char out[OUTPUT];
    int steps = -1, lines = 0;
    assert_int_equal(run_tool("explain gemm --m 4096 --n 4096 --k 4096 -w 100 --b-layout cols --worker 7", out),
                     0);
    const char *at = strstr(out, "worker 7: steps ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "worker 7: steps %d", &steps), 1);
    at = strstr(at, "step lane");
    assert_non_null(at);
    for (at = strchr(at, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
        lines++;
    }
    assert_int_equal(lines, steps);
    assert_true(steps > 100);
}

/* --- gemm
 * ------------------------------------------------------------------------------------------------------ */

static void test_gemm(void **state)
{
    (void)state;
    enum { M = 23, N = 11 };
    char out[OUTPUT];
    double got[M * N];
    dm_session *s = open_session();
    dm_array a, b, c;
    OK(dm_matrix(s, DM_F64, M, N, &a));
    OK(dm_matrix(s, DM_F64, N, N, &b));
    OK(dm_fill_arange(s, a, 1, 0.5));
    OK(dm_fill_identity(s, b, 3));
    OK(dm_array_save(s, a, "a.npy"));
    OK(dm_array_save(s, b, "b.npy"));
    for (int l = 0; l < LAYOUTS; l++) {
        char arguments[256];
        /* The second time c = a b / 2 + c. */
        for (int again = 0; again < 2; again++) {
            snprintf(arguments, sizeof arguments, "gemm a.npy b.npy -o c.npy -w 4 --layout %s %s",
                     layout_names[l], again ? "--alpha 0.5 --beta 1" : "");
            if (run_tool(arguments, out) != 0 || !strstr(out, "gflops")) {
                fail_msg("dmath %s:\n%s", arguments, out);
            }
        }
        OK(dm_array_load(s, "c.npy", NULL, &c));
        OK(dm_array_read(s, c, NULL, NULL, got, 0));
        OK(dm_array_destroy(s, c));
        for (int i = 0; i < M * N; i++) {
            assert_true(got[i] == 4.5 * (1 + 0.5 * i));
        }
    }
    assert_int_equal(run_tool("gemm a.npy absent.npy -o c.npy", out), 1);
    assert_non_null(strstr(out, "absent.npy"));
    assert_int_equal(run_tool("gemm b.npy a.npy -o c.npy", out), 1);
    assert_non_null(strstr(out, "ERR_SHAPE"));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    OK(dm_finalize(s, NULL));
}

/* --- map
 * ------------------------------------------------------------------------------------------------------ */

static void test_map(void **state)
{
    (void)state;
    enum { ROWS = 19, COLS = 7 };
    char out[OUTPUT];
    double got[ROWS * COLS];
    dm_session *s = open_session();
    const int64_t shape[] = {COLS};
    dm_array x, y, z, one;
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &x));
    OK(dm_array_create(s, DM_F32, 1, shape, NULL, &y));
    OK(dm_array_create(s, DM_F32, 0, NULL, NULL, &one));
    OK(dm_fill(s, one, 1));
    OK(dm_array_save(s, one, "one.npy"));
    OK(dm_array_destroy(s, one));
    OK(dm_fill_arange(s, x, -20, 0.5));
    OK(dm_fill_arange(s, y, 0, 1));
    OK(dm_array_save(s, x, "x.npy"));
    OK(dm_array_save(s, y, "y.npy"));
    OK(dm_array_destroy(s, x));
    OK(dm_array_destroy(s, y));
    for (int l = 0; l < LAYOUTS; l++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments,
                 "map 'where(x > 0, a * x + y, n * one)' a=2.5 x=x.npy n=3 y=y.npy one=one.npy -o z.npy -w 4 --layout %s %s",
                 layout_names[l], l == 1 ? "--dtype f32" : "");
        if (run_tool(arguments, out) != 0 || !strstr(out, l == 1 ? "f32" : "f64")) {
            fail_msg("dmath %s:\n%s", arguments, out);
        }
        OK(dm_array_load(s, "z.npy", NULL, &x));
        OK(dm_matrix(s, DM_F64, ROWS, COLS, &z));
        OK(dm_copy(s, x, z));
        OK(dm_array_read(s, z, NULL, NULL, got, 0));
        for (int i = 0; i < ROWS * COLS; i++) {
            double v = -20 + 0.5 * i;
            assert_true(got[i] == (v > 0 ? 2.5 * v + i % COLS : 3));
        }
        OK(dm_array_destroy(s, x));
        OK(dm_array_destroy(s, z));
    }
    for (int l = 0; l < LAYOUTS; l++) { /* the mean of x: -20 to 46 by halves */
        char arguments[256];
        snprintf(arguments, sizeof arguments, "map 'z = mean(2 * x)' x=x.npy -o m.npy -w 4 --layout %s %s", layout_names[l],
                 l == 1 ? "--dtype f32" : "");
        if (run_tool(arguments, out) != 0 || !strstr(out, l == 1 ? "f32" : "f64")) {
            fail_msg("dmath %s:\n%s", arguments, out);
        }
        OK(dm_array_load(s, "m.npy", NULL, &x));
        OK(dm_array_create(s, DM_F64, 0, NULL, NULL, &z));
        OK(dm_copy(s, x, z));
        OK(dm_array_read(s, z, NULL, NULL, got, 0));
        assert_true(got[0] == 26);
        OK(dm_array_destroy(s, x));
        OK(dm_array_destroy(s, z));
    }
    /* Failures leave no arrays behind, of which the library would warn. */
    assert_int_equal(run_tool("map '2 * x' x=absent.npy -o z.npy", out), 1);
    assert_non_null(strstr(out, "absent.npy"));
    assert_int_equal(run_tool("map 'x + (2' x=x.npy -o z.npy", out), 1);
    assert_non_null(strstr(out, "(column 7)\n  x + (2\n        ^"));
    assert_null(strstr(out, "alive"));
    assert_int_equal(run_tool("map --rows", out), 0);
    assert_non_null(strstr(out, "logaddexp            function         2 f64"));
    assert_non_null(strstr(out, "argmin               reduction        1 f64"));
    assert_null(strstr(out, "affine"));
    OK(dm_finalize(s, NULL));
}

/* --- the rest
 * -------------------------------------------------------------------------------------------------- */

static void test_info(void **state)
{
    (void)state;
    static const char *const wanted[] = {"Open MPI", "OpenBLAS", "CUDA",      "hwloc",
                                         "bf16",     "gemm",     "transport", "DMATH_"};
    char out[OUTPUT];
    assert_int_equal(run_tool("info", out), 0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_non_null(strstr(out, wanted[i]));
    }
    assert_non_null(strstr(out, dm_version()));
    assert_int_equal(run_tool("info --json", out), 0);
    assert_non_null(strstr(out, "\"cuda\": "));
    assert_non_null(strstr(out, "\"hwloc\": "));
    assert_int_equal(run_tool("info --placement --workers 2 --json", out), 0);
    assert_non_null(strstr(out, "\"worker\": 1"));
    assert_non_null(strstr(out, "\"network\""));
    assert_null(strstr(out, "worker 0: ")); /* and nothing on stderr */
    assert_int_equal(run_tool("--version", out), 0);
    assert_non_null(strstr(out, dm_version()));
    assert_int_equal(run_tool("bench --help", out), 0);
    assert_int_equal(run_tool("bench remap --help", out), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *reason;
    } cases[] = {
        {"", "Usage"},
        {"dance", "dance"},
        {"bench", "Usage"},
        {"bench dance", "dance"},
        {"info 7", "one argument too many"},
        {"info --option colour=blue", "colour"},
        {"info --transport pigeon", "pigeon"},
        {"info --workers 1,2", "not a list"},
        {"gemm a.npy", "two matrices"},
        {"gemm a.npy b.npy", "-o FILE"},
        {"gemm a.npy b.npy c.npy -o d.npy", "one argument too many"},
        {"gemm a.npy b.npy -o c.npy --alpha one", "one"},
        {"gemm a.npy b.npy -o c.npy --dtype i32", "i32"},
        {"gemm a.npy b.npy -o c.npy --layout diagonal", "diagonal"},
        {"gemm a.npy b.npy -o c.npy --workers 1,2", "not a list"},
        {"map", "an expression is needed"},
        {"map x x=a.npy", "-o FILE"},
        {"map x 3 -o b.npy", "NAME=FILE"},
        {"map x =3 -o b.npy", "NAME=FILE"},
        {"map x x= -o b.npy", "NAME=FILE"},
        {"map x x=1e999 -o b.npy", "NAME=FILE"},
        {"map x x=a.npy -o b.npy --dtype f31", "f31"},
        {"map x x=a.npy -o b.npy --layout diagonal", "diagonal"},
        {"map x x=a.npy -o b.npy --workers 1,2", "not a list"},
        {"explain", "which operation"},
        {"explain sort --m 3 --n 3", "sort"},
        {"explain gemm --m 3 --n 3", "--k is needed"},
        {"explain copy --m 3", "--n is needed"},
        {"explain copy --m 3 --n x", "x"},
        {"explain copy --m 3 --n 3 --dtype f31", "f31"},
        {"explain gemm --m 3 --n 3 --k 3 --dtype i32", "i32"},
        {"explain copy --m 3 --n 3 -w 4 --a-layout grid:3x3", "grid"},
        {"explain copy --m 3 --n 3 -w 4 --a-layout grid:3", "grid:3"},
        {"explain copy --m 3 --n 3 -w 4 --worker 4", "worker 4"},
        {"explain sum --m 3 --n 3 --dim 2", "2"},
        {"explain copy --m 3 --n 3 --workers 0", "0"},
        {"bench gemm --sizes 3x4", "3x4"},
        {"bench gemm --sizes 64,", "64,"},
        {"bench gemm --dtypes f32,i32", "i32"},
        {"bench gemm --layouts rows/cols", "rows/cols"},
        {"bench gemm --repeats 0", "0"},
        {"bench dispatch --count -1", "-1"},
        {"bench dispatch --idle never", "never"},
        {"bench transport --max big", "big"},
        {"bench transport --transports pigeon", "pigeon"},
        {"bench transport --ring=0", "--ring"},
        {"bench dispatch --size 0", "--size"},
        {"bench dispatch --dtype i32", "i32"},
        {"bench remap --sizes 0", "0"},
        {"bench file --size none", "none"},
        {"bench file --layout diagonal", "diagonal"},
        {"bench remap --colour", "colour"},
    };
    char out[OUTPUT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = run_tool(cases[i].arguments, out);
        if (status != 2 || !strstr(out, cases[i].reason)) {
            fail_msg("dmath %s: status %d, without `%s':\n%s", cases[i].arguments, status, cases[i].reason,
                     out);
        }
    }
}

/* Results that cannot be written are a failure, whatever prints them; files that have been asked for are not.
 */
static void test_output(void **state)
{
    static const struct {
        const char *arguments;
        bool prints;
    } cases[] = {
        {"--version", true},
        {"--help", true},
        {"help", true},
        {"info", true},
        {"info --json", true},
        {"info --help", true},
        {"bench --help", true},
        {"bench --list", true},
        {"bench gemm --sizes 10 --repeats 1 --warmup 0 --json", true},
        {"explain copy --m 3 --n 3", true},
        {"completion bash", true},
        {"completion zsh -o /dev/null", false},
    };
    char command[600], out[OUTPUT];
    int ends[2];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const to[] = {"/dev/full", "&-"};
        for (int k = 0; k < 2; k++) {
            snprintf(command, sizeof command, "%s %s 2>&1 >%s", DMATH_TOOL, cases[i].arguments, to[k]);
            if (run(command, out) != cases[i].prints ||
                !strstr(out, cases[i].prints ? "dmath: the output could not be written" : "")) {
                fail_msg("%s:\n%s", command, out);
            }
        }
    }
    /* a pipe that nobody reads: SIGPIPE ends the program; where it is ignored, the program ends without a word
     */
    signal(SIGPIPE, SIG_DFL); /* who starts this test may ignore it */
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    snprintf(command, sizeof command, "%s bench --list 2>&1 >&%d", DMATH_TOOL, ends[1]);
    assert_int_equal(run(command, out), 128 + SIGPIPE);
    snprintf(command, sizeof command, "trap '' PIPE; %s bench --list 2>&1 >&%d", DMATH_TOOL, ends[1]);
    assert_int_equal(run(command, out), 1);
    assert_string_equal(out, "");
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain), cmocka_unit_test(test_explain_steps), cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_map),     cmocka_unit_test(test_info),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
