/* Caffe's rules for solvers that need no long runs: when tests run, what clipping sees, how sums over iter_size
 * are shown. The updates themselves are in solvers.py. */
#include "rules.h"

/* y = w x + b, whose loss is (y - t)^2 / 2; w begins with 2, b with 1. */
#define LINE(w, b)                                                                                             \
    "layer { name: 'in' type: 'Input' top: ['x', 't'] input_param { shape { dim: [1, 1] } shape { dim: [1, "   \
    "1] } } }\n"                                                                                               \
    "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' param { " w " } param { " b                   \
    " } inner_product_param { "                                                                                \
    "num_output: 1 weight_filler { value: 2 } bias_filler { value: 1 } } }\n"                                  \
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: ['y', 't'] top: 'loss' propagate_down: [true, false] " \
    "}\n"

typedef struct told {
    char tests[256], lines[4096];
    double loss, rate;
} told;

static void on_line(void *context, const char *line)
{
    told *t = context;
    size_t n = strlen(t->lines);
    snprintf(t->lines + n, sizeof t->lines - n, "%s\n", line);
}

static void on_event(void *context, const dm_train_event *e)
{
    told *t = context;
    size_t n = strlen(t->tests);
    if (e->kind == DM_TRAIN_TEST) {
        snprintf(t->tests + n, sizeof t->tests - n, " %lld", (long long)e->iteration);
    } else if (e->kind == DM_TRAIN_DISPLAY) {
        t->loss = e->loss;
        t->rate = e->rate;
    }
}

static dm_solver *open_solver(const char *net, const char *fields, told *to)
{
    char text[512];
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    memset(to, 0, sizeof *to);
    write_file("net.prototxt", net);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' snapshot_after_train: false %s\n", fields);
    write_file("solver.prototxt", text);
    options.event = on_event;
    options.log = on_line;
    options.event_context = options.log_context = to;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    return solver;
}

/* Tests come before the update of their iteration, before the first one, and after the last. */
static void test_when_tests_run(void **state)
{
    static const struct {
        const char *fields, *tests;
    } cases[] = {{"max_iter: 4 test_iter: 1 test_interval: 2", " 0 2 4"},
                 {"max_iter: 4 test_iter: 1 test_interval: 2 test_initialization: false", " 2 4"},
                 {"max_iter: 5 test_iter: 1 test_interval: 2", " 0 2 4"},
                 {"max_iter: 0 test_iter: 1 test_interval: 2", " 0"}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        told t;
        dm_solver *s = open_solver(LINE("", ""), cases[i].fields, &t);
        CHECK(dm_solver_run(s, NULL, NULL));
        assert_string_equal(t.tests, cases[i].tests);
        CHECK(dm_solver_close(s));
    }
}

static void expect_line(dm_net *net, double w, double b)
{
    dm_array a;
    float found = 0;
    for (int p = 0; p < 2; p++) {
        CHECK(dm_net_param(net, "i", p, &a, NULL));
        CHECK(dm_read(session, a, &found));
        if (fabs((double)found - (p ? b : w)) > 1e-6) {
            fail_msg("%s is %.8g, not %.8g", p ? "b" : "w", (double)found, p ? b : w);
        }
    }
}

/* A step from x = 3, t = 3: y = 7, gradients 12 and 4. The length that clipping sees is that of the sum over
 * iter_size, without what does not learn; decay comes behind, with its multiplier, and then the rate with its
 * own. */
static void test_clipping(void **state)
{
    static const struct {
        const char *net, *fields;
        double length, w, b;
    } cases[] = {
        {LINE("", ""), "clip_gradients: 5", 12.649110640673518, 2 - 0.1 * 12 * 5 / 12.649110640673518,
         1 - 0.1 * 4 * 5 / 12.649110640673518},
        {LINE("lr_mult: 1", "lr_mult: 0"), "clip_gradients: 6", 12, 2 - 0.1 * 6, 1},
        {LINE("", ""), "clip_gradients: 13 iter_size: 2", 25.298221281347036,
         2 - 0.1 * 12 * 13 / 25.298221281347036, 1 - 0.1 * 4 * 13 / 25.298221281347036},
        {LINE("decay_mult: 3", "lr_mult: 2 decay_mult: 0"), "clip_gradients: 5 weight_decay: 0.5",
         12.649110640673518, 2 - 0.1 * (12 * 5 / 12.649110640673518 + 0.5 * 3 * 2),
         1 - 0.2 * 4 * 5 / 12.649110640673518},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char fields[256], line[128];
        told t;
        snprintf(fields, sizeof fields, "max_iter: 1 %s", cases[i].fields);
        dm_solver *s = open_solver(cases[i].net, fields, &t);
        CHECK(dm_net_write(dm_solver_net(s), "x", (float[]){3}));
        CHECK(dm_net_write(dm_solver_net(s), "t", (float[]){3}));
        CHECK(dm_solver_step(s, 1));
        snprintf(line, sizeof line, "(L2 norm %g > ", cases[i].length);
        if (!strstr(t.lines, line)) {
            fail_msg("case %d does not say '%s' but %s", i, line, t.lines);
        }
        expect_line(dm_solver_net(s), cases[i].w, cases[i].b);
        CHECK(dm_solver_close(s));
    }
}

/* The loss that is shown is the mean over iter_size, and over the last average_loss iterations. */
static void test_shown_loss(void **state)
{
    told t;
    (void)state;
    dm_solver *s = open_solver(LINE("", ""), "max_iter: 1 display: 1 iter_size: 4", &t);
    CHECK(dm_net_write(dm_solver_net(s), "x", (float[]){3}));
    CHECK(dm_net_write(dm_solver_net(s), "t", (float[]){3}));
    CHECK(dm_solver_step(s, 1));
    assert_true(fabs(t.loss - 8) < 1e-5);
    expect_line(dm_solver_net(s), 2 - 0.1 * 12, 1 - 0.1 * 4); /* of the mean gradient */
    CHECK(dm_solver_close(s));

    s = open_solver(LINE("", ""), "max_iter: 3 display: 1 average_loss: 2", &t);
    CHECK(dm_net_write(dm_solver_net(s), "x", (float[]){0})); /* y = b: b - 3 is 0.9 of it before */
    CHECK(dm_net_write(dm_solver_net(s), "t", (float[]){3}));
    CHECK(dm_solver_step(s, 3));
    assert_true(fabs(t.loss - (2 * 0.81 + 2 * 0.6561) / 2) < 1e-5);
    CHECK(dm_solver_close(s));
}

/* What a program asks for is heard between the batches of a test too: a test every second iteration, of three
 * batches, so question 4 comes behind the first step, question 6 before the first batch of the second test. */
typedef struct asking {
    int count, at, answer;
} asking;

static int answer(void *context)
{
    asking *a = context;
    return ++a->count == a->at ? a->answer : DM_SOLVER_GO_ON;
}

static void test_heard_in_tests(void **state)
{
#define TESTED "max_iter: 4 test_iter: 3 test_interval: 2 snapshot_prefix: 'heard'"
    static const struct {
        int at;
        int64_t end;
        bool inside;
        const char *tests;
    } cases[] = {{1, 0, true, " 0 2 4"},  {3, 0, true, " 0 0 2 4"}, {4, 1, false, " 0 2 4"},
                 {5, 2, false, " 0 2 4"}, {6, 2, true, " 0 2 4"},   {7, 2, true, " 0 2 2 4"},
                 {9, 3, false, " 0 2 4"}, {12, 4, true, " 0 2 4"},  {99, 4, false, " 0 2 4"}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        told t;
        asking stop = {0, cases[i].at, DM_SOLVER_STOP}, keep = {0, cases[i].at, DM_SOLVER_SNAPSHOT};
        dm_solver *s = open_solver(LINE("", ""), TESTED, &t);
        CHECK(dm_net_write(dm_solver_net(s), "x", (float[]){3}));
        CHECK(dm_solver_run(s, answer, &stop));
        assert_int_equal(dm_solver_iteration(s), cases[i].end);
        if (cases[i].inside != !!strstr(t.lines, "Test interrupted.\n")) {
            fail_msg("stopped at question %d: %s", cases[i].at, t.lines);
        }
        if (cases[i].end < 4) {
            CHECK(dm_solver_run(s, NULL, NULL)); /* goes on, with the test that is due there */
        }
        assert_string_equal(t.tests, cases[i].tests);
        float b[2][2];
        for (int p = 0; p < 2; p++) {
            CHECK(dm_net_param_read(dm_solver_net(s), "i", p, &(int){0}, (int64_t[DM_MAX_DIMS]){0}, &b[0][p]));
        }
        CHECK(dm_solver_close(s));

        s = open_solver(LINE("", ""), TESTED, &t); /* a snapshot there changes nothing */
        CHECK(dm_net_write(dm_solver_net(s), "x", (float[]){3}));
        CHECK(dm_solver_run(s, answer, &keep));
        assert_string_equal(t.tests, " 0 2 4");
        assert_int_equal(!!strstr(t.lines, "Snapshotting"), cases[i].at < 99);
        for (int p = 0; p < 2; p++) {
            CHECK(dm_net_param_read(dm_solver_net(s), "i", p, &(int){0}, (int64_t[DM_MAX_DIMS]){0}, &b[1][p]));
            assert_true(b[0][p] == b[1][p]);
        }
        CHECK(dm_solver_close(s));
    }
}

/* With debug_info test nets tell each pass, the training net those that are displayed. */
static void test_told_by_tests(void **state)
{
    told t;
    int passes = 0;
    (void)state;
    dm_solver *s = open_solver(LINE("", ""), "max_iter: 1 test_iter: 2 test_interval: 3 debug_info: true", &t);
    CHECK(dm_solver_run(s, NULL, NULL));
    for (const char *at = t.lines; (at = strstr(at, "    [Forward] Layer i, param blob 0 data: 2\n")); at++) {
        passes++;
    }
    assert_int_equal(passes, 2);
    assert_null(strstr(t.lines, "[Backward]"));
    CHECK(dm_solver_close(s));
}

/* Weights of files go to layers too that the test net alone has: those of the field `weights`, and those that
 * the program loads into it. */
static void test_weights_of_tests(void **state)
{
#define MORE "layer { name: 'more' type: 'InnerProduct' bottom: 'y' top: 'z' "
    static const char of_file[] = LINE("", "") MORE
        "inner_product_param { num_output: 1 weight_filler { value: 5 } bias_filler { value: 7 } } }\n";
    static const char of_test[] =
        LINE("", "") MORE "include { phase: TEST } inner_product_param { num_output: 1 } }\n";
    (void)state;
    dm_net *net = open_text(of_file, DM_PHASE_TEST);
    CHECK(dm_net_save(net, "more.caffemodel"));
    CHECK(dm_net_close(net));
    for (int way = 0; way < 2; way++) {
        told t;
        char fields[128];
        snprintf(fields, sizeof fields, "max_iter: 1 test_iter: 1 test_interval: 1%s",
                 way == 0 ? " weights: 'more.caffemodel'" : "");
        dm_solver *s = open_solver(of_test, fields, &t);
        net = dm_solver_test_net(s, 0);
        if (way == 1) {
            CHECK(dm_net_load(net, "more.caffemodel"));
        }
        CHECK(dm_net_write(net, "x", (float[]){3}));
        CHECK(dm_net_forward(net, NULL));
        expect_number(net, "z", 5 * (2 * 3 + 1) + 7, 1e-6);
        CHECK(dm_solver_close(s));
    }
}

/* Elements of outputs are shown in Caffe's order, though images lie with the channels last. */
static void test_order_of_outputs(void **state)
{
    static const float image[4] = {5, 6, 7, 8}; /* two channels of 1 x 2 */
    (void)state;
    told t;
    dm_solver *s = open_solver(
        LINE("", "") "layer { name: 'p' type: 'Input' top: 'p' input_param { shape { dim: [1, 2, 1, 2] } } }\n"
                     "layer { name: 'q' type: 'Power' bottom: 'p' top: 'q' }\n",
        "max_iter: 1 display: 1 test_iter: 1 test_interval: 1", &t);
    CHECK(dm_net_write(dm_solver_net(s), "p", image));
    CHECK(dm_net_write(dm_solver_test_net(s, 0), "p", image));
    CHECK(dm_solver_step(s, 1));
    for (int k = 0; k < 4; k++) {
        char train[64], test[64];
        snprintf(train, sizeof train, "    Train net output #%d: q = %d\n", k + 1, 5 + k);
        snprintf(test, sizeof test, "    Test net output #%d: q = %d\n", k + 1, 5 + k);
        assert_non_null(strstr(t.lines, train));
        assert_non_null(strstr(t.lines, test));
    }
    CHECK(dm_solver_close(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_tests_run),  cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_shown_loss),      cmocka_unit_test(test_weights_of_tests),
        cmocka_unit_test(test_heard_in_tests),  cmocka_unit_test(test_told_by_tests),
        cmocka_unit_test(test_order_of_outputs)};
    return cmocka_run_group_tests(tests, begin, end);
}
