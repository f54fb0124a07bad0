/* Tests on workers of their own, beside training: lines, scores, losses and weights are those of a solver
 * without them; training goes on meanwhile; ends, failures and refusals. In process, and with ranks. */
#include "net_case.h"

#include "data/record.h"
#include "solver/solver.h"

#include <stdatomic.h>
#include <time.h>

enum { RECORDS = 40, ELEMENTS = 3 * 9 * 8, ROOM = 1 << 16 };

static bool launched, have_lmdb;

/* --- nets. The data of the training net and of the test nets differ; BatchNorm has state among its parameters.
 */
#define SOURCE(phase, batch, state)                                                                            \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' include { phase: " phase " " state " } "     \
    "dummy_data_param { shape { dim: [" batch ", 3, 9, 8] } shape { dim: " batch " } "                         \
    "data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n"
#define RECORD_SOURCE(phase, batch)                                                                            \
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: " phase                          \
    " } transform_param { scale: 0.01 mirror: true } data_param { source: 'records' backend: LMDB "            \
    "batch_size: " batch " } }\n"
#define BODY                                                                                                   \
    CONV("c", "data", "num_output: 4 kernel_size: 3")                                                          \
    SIMPLE("n", "BatchNorm", "c", "n", "")                                                                     \
    SIMPLE("r", "ReLU", "n", "n", "")                                                                          \
    SIMPLE("p", "Pooling", "n", "p", "pooling_param { kernel_size: 3 stride: 2 }")                             \
    IP("a", "p", "13")                                                                                         \
    IP("b", "a",                                                                                               \
       "7") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'loss' "            \
            "loss_weight: 3 }\n"                                                                               \
            "layer { name: 'acc' type: 'Accuracy' bottom: 'b' bottom: 'label' top: 'acc' include { phase: "    \
            "TEST } }\n"                                                                                       \
            "layer { name: 'prob' type: 'Softmax' bottom: 'b' top: 'prob' include { phase: TEST } }\n"
static const char net_text[] = SOURCE("TRAIN", "9", "") SOURCE("TEST", "6", "not_stage: 'other'")
    SOURCE("TEST", "11", "stage: 'other'") BODY;
static const char record_text[] = RECORD_SOURCE("TRAIN", "9") RECORD_SOURCE("TEST", "7") BODY;

#define SETTINGS                                                                                               \
    "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'step' stepsize: 4 gamma: 0.5 momentum: 0.9 "                \
    "weight_decay: 0.001 max_iter: 9 display: 2 average_loss: 3 test_interval: 3 snapshot: 4 "                 \
    "snapshot_prefix: 'beside' random_seed: 5 test_compute_loss: true "
static const char two_tests[] =
    SETTINGS "test_iter: 3 test_iter: 2 test_state { } test_state { stage: 'other' } ";
static const char one_test[] = SETTINGS "test_iter: 4 ";

/* --- what a run says and leaves */
typedef struct seen {
    char tests[ROOM], others[ROOM]; /* events */
    double values[4096];
    int count;
    bool late;
} seen;

static void add_text(char *to, const char *text)
{
    assert_true(strlen(to) + strlen(text) + 1 < ROOM);
    strcat(to, text);
}

static void on_event(void *context, const dm_train_event *e)
{
    char text[256];
    seen *s = context;
    bool test = e->kind == DM_TRAIN_TEST || e->kind == DM_TRAIN_TESTED;
    snprintf(text, sizeof text, "%d %lld %d %s %lld %a %a %a\n", e->kind, (long long)e->iteration, e->test,
             e->name ? e->name : "", (long long)e->element, e->kind == DM_TRAIN_DISPLAY ? e->loss : 0,
             e->kind == DM_TRAIN_DISPLAY ? e->rate : 0, e->name ? e->value : 0);
    add_text(test ? s->tests : s->others, text);
}

static void on_line(void *context, const char *line)
{
    seen *s = context;
    bool test = strstr(line, "est net") || strstr(line, "Testing") || strstr(line, "Test loss");
    s->late = s->late || strstr(line, "was not over");
    if (test || (strstr(line, "loss = ") && !strstr(line, "iter/s"))) {
        add_text(test ? s->tests : s->others, line);
        add_text(test ? s->tests : s->others, "\n");
    }
}

static void read_weights(dm_solver *solver, seen *out)
{
    dm_net *net = dm_solver_net(solver);
    for (int i = 0; i < dm_net_layers(net); i++) {
        dm_layer_info info = {.size = sizeof info};
        CHECK(dm_net_layer(net, i, &info));
        for (int k = 0; k < info.params; k++) {
            int64_t shape[DM_MAX_DIMS], n = 1;
            int ndim = 0;
            float values[2048];
            CHECK(dm_net_param_read(net, info.name, k, &ndim, shape, NULL));
            for (int d = 0; d < ndim; d++) {
                n *= shape[d];
            }
            assert_true(n <= COUNT(values) && out->count + n <= COUNT(out->values));
            CHECK(dm_net_param_read(net, info.name, k, &ndim, shape, values));
            for (int64_t j = 0; j < n; j++) {
                out->values[out->count++] = values[j];
            }
        }
    }
}

static void expect_same(const char *what, const seen *a, const seen *b)
{
    if (strcmp(a->tests, b->tests) != 0) {
        fail_msg("%s: the tests are\n%s\nnot\n%s", what, b->tests, a->tests);
    }
    if (strcmp(a->others, b->others) != 0) {
        fail_msg("%s: training says\n%s\nnot\n%s", what, b->others, a->others);
    }
    assert_int_equal(a->count, b->count);
    if (memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values) != 0) {
        fail_msg("%s: other weights", what);
    }
}

typedef struct way {
    const char *net, *settings, *split;
    int lean, read, steps; /* steps: dm_solver_step so often, instead of dm_solver_run */
    const char *name;
} way;

/* Another loss of each test net by the weights of now: *after. */
static seen *train(const way *w, int test_workers, double *after)
{
    seen *out = calloc(1, sizeof *out);
    dm_solver *solver = NULL;
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    assert_non_null(out);
    options.log = on_line;
    options.event = on_event;
    options.log_context = options.event_context = out;
    options.split = w->split;
    options.lean = w->lean;
    options.read = w->read;
    options.test_workers = test_workers;
    write_file("net.prototxt", w->net);
    write_file("solver.prototxt", w->settings);
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    for (int i = 0; i < w->steps; i++) {
        CHECK(dm_solver_step(solver, 1));
    }
    if (w->steps == 0) {
        CHECK(dm_solver_run(solver, NULL, NULL));
    }
    read_weights(solver, out);
    CHECK(dm_net_forward(dm_solver_test_net(solver, 0), after));
    assert_int_equal(dm_workers(session), worker_count);
    CHECK(dm_solver_close(solver));
    return out;
}

static void test_bits(void **state)
{
    const way ways[] = {
        {.net = net_text, .settings = two_tests, .name = "two test nets"},
        {.net = net_text, .settings = two_tests, .lean = 1, .split = "a=features", .name = "lean, by features"},
        {.net = net_text,
         .settings = SETTINGS "test_iter: 3 iter_size: 2 test_initialization: false",
         .split = "a=batch,b=features",
         .name = "call by call"},
        {.net = net_text, .settings = one_test, .steps = 8, .name = "step by step"},
        {.net = record_text,
         .settings = one_test,
         .read = DM_READ_BY_PROGRAM,
         .name = "records by the program"},
        {.net = record_text, .settings = one_test, .read = DM_READ_BY_WORKERS, .name = "records by workers"},
    };
    (void)state;
    for (int i = 0; i < COUNT(ways); i++) {
        double loss = -1;
        if (ways[i].net == record_text && !have_lmdb) {
            continue;
        }
        seen *plain = train(&ways[i], 0, &loss);
        assert_true(strlen(plain->tests) > 400 && strlen(plain->others) > 200);
        for (int k = 1; k < worker_count; k = k < 3                  ? k + 1
                                              : worker_count - 1 > k ? worker_count - 1
                                                                     : worker_count) {
            double mine = -2;
            seen *beside = train(&ways[i], k, &mine);
            expect_same(ways[i].name, plain, beside);
            assert_true(loss == mine);
            free(beside);
        }
        free(plain);
    }
}

/* --- a test net whose batches wait */
static atomic_int iterations, must, gone_on, told; /* told: results of a test have come */

/* Until training has gone on for so many iterations, or 20 s. */
static int wait_for_training(const dm_task *task)
{
    (void)task;
    int i = 0;
    while (i < 20000 && atomic_load(&iterations) < atomic_load(&must)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        i++;
    }
    atomic_fetch_add(&gone_on, i < 20000);
    return 0;
}

static int fail_there(const dm_task *task)
{
    return dm_task_fail(task, "no such test");
}

static dm_status slow_setup(dm_layer *l, void *context)
{
    (void)context;
    dm_layer_blob b = {.size = sizeof b};
    dm_status status = dm_layer_bottom(l, 0, &b);
    return status == DM_OK ? dm_layer_set_top(l, 0, b.ndim, b.shape) : status;
}

static dm_status slow_forward(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    dm_status status = dm_layer_bottom(l, 0, &x);
    status = status == DM_OK ? dm_layer_top(l, 0, &y) : status;
    status = status == DM_OK ? dm_copy(dm_layer_session(l), x.data, y.data) : status;
    return status == DM_OK ? dm_apply(dm_layer_session(l), context, 1, &y.data, (int[]){DM_READWRITE}, NULL, 0)
                           : status;
}

static void count_steps(void *context, const dm_train_event *e)
{
    (void)context;
    if (e->kind == DM_TRAIN_STEP) {
        atomic_store(&iterations, (int)e->iteration);
    }
    atomic_fetch_add(&told, e->kind == DM_TRAIN_TESTED);
}

/* So many iterations, with a layer in the test net that runs `function`. */
static dm_status train_slowly(const char *function, const char *settings, seen *log, int (*ask)(void *),
                              dm_solver **out)
{
    static const char text[] = SOURCE("TRAIN", "4", "") SOURCE("TEST", "5", "") IP(
        "a", "data", "3") "layer { name: 's' type: 'Slow' bottom: 'a' top: 's' include { phase: TEST } }\n"
                          "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'a' bottom: 'label' top: 'l' }\n";
    dm_layer_type slow = DM_LAYER_TYPE_INIT;
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    slow.name = "Slow";
    slow.setup = slow_setup;
    slow.forward = slow_forward;
    slow.gradients = 0;
    slow.context = (void *)(uintptr_t)function;
    options.layer_types = &slow;
    options.layer_type_count = 1;
    options.test_workers = 1;
    options.event = count_steps;
    options.log = on_line;
    options.log_context = log;
    atomic_store(&iterations, 0);
    write_file("net.prototxt", text);
    write_file("solver.prototxt", settings);
    CHECK(dm_solver_open(session, "solver.prototxt", &options, out));
    return dm_solver_run(*out, ask, NULL);
}

#define PLAIN "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' snapshot_after_train: false "

static int stop_when_told(void *context)
{
    (void)context;
    if (atomic_load(&iterations) > 4) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return atomic_load(&told) ? DM_SOLVER_STOP : DM_SOLVER_GO_ON;
}

/* Each of the two batches of the test of iteration 0 sees training go on, and its results come in the middle.
 */
static void test_overlap(void **state)
{
    seen *log = calloc(1, sizeof *log);
    dm_solver *solver = NULL;
    (void)state;
    if (worker_count > 1 && !launched) {
        atomic_store(&must, 4);
        atomic_store(&gone_on, 0);
        atomic_store(&told, 0);
        CHECK(train_slowly("wait for training", PLAIN "max_iter: 9000 test_interval: 10000 test_iter: 2", log,
                           stop_when_told, &solver));
        assert_int_equal(atomic_load(&gone_on), 2);
        assert_non_null(strstr(log->tests, "Iteration 0, Testing net (#0)\n    Test net output #0: l"));
        assert_in_range(dm_solver_iteration(solver), 4, 8999);
        assert_false(log->late);
        CHECK(dm_solver_close(solver));
    }
    free(log);
}

/* Where a test is not over when the next one is due, training waits, and says so. */
static void test_late(void **state)
{
    seen *log = calloc(1, sizeof *log);
    dm_solver *solver = NULL;
    (void)state;
    if (worker_count > 1 && !launched) {
        atomic_store(&must, 2); /* the test of iteration 0 needs one more than come before the next is due */
        CHECK(train_slowly("wait for training", PLAIN "max_iter: 4 test_interval: 2 test_iter: 9", log, NULL,
                           &solver));
        assert_true(log->late);
        assert_non_null(strstr(log->tests, "Iteration 0, Testing"));
        assert_non_null(strstr(log->tests, "Iteration 2, Testing"));
        assert_non_null(strstr(log->tests, "Iteration 4, Testing"));
        CHECK(dm_solver_close(solver));
    }
    free(log);
}

static int stop_soon(void *context)
{
    (void)context;
    return atomic_load(&iterations) >= 1 ? DM_SOLVER_STOP : DM_SOLVER_GO_ON;
}

/* An early stop: the snapshot, and the test that had begun. */
static void test_stop(void **state)
{
    seen *log = calloc(1, sizeof *log);
    dm_solver *solver = NULL;
    (void)state;
    if (worker_count > 1) {
        atomic_store(&must, 0);
        CHECK(train_slowly("wait for training",
                           "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' snapshot_prefix: 'stopped' "
                           "max_iter: 20 test_interval: 5 test_iter: 40",
                           log, stop_soon, &solver));
        assert_int_equal(dm_solver_iteration(solver), 1);
        assert_non_null(strstr(log->tests, "Iteration 0, Testing net (#0)\n    Test net output #0: l"));
        CHECK(dm_solver_restore(solver, "stopped_iter_1.solverstate"));
        CHECK(dm_solver_step(solver, 5)); /* a test more, of iteration 5 */
        assert_non_null(strstr(log->tests, "Iteration 5, Testing net (#0)\n    Test net output #0: l"));
        CHECK(dm_solver_close(solver));
    }
    free(log);
}

/* What fails in a test ends the training with its error. */
static void test_failure(void **state)
{
    seen *log = calloc(1, sizeof *log);
    dm_solver *solver = NULL;
    (void)state;
    if (worker_count > 1) {
        dm_status status =
            train_slowly("fail there", PLAIN "max_iter: 50 test_interval: 10 test_iter: 2", log, NULL, &solver);
        assert_int_not_equal(status, DM_OK);
        assert_non_null(strstr(dm_error_message(), "no such test"));
        assert_int_equal(dm_workers(session), worker_count); /* no group has stayed begun */
        CHECK(dm_solver_close(solver));
        (void)!dm_sync(session); /* may report the commands behind it */
        CHECK(dm_sync(session));
    }
    free(log);
}

static void test_refused(void **state)
{
    const int wrong[] = {-1, worker_count, worker_count + 1};
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    (void)state;
    write_file("net.prototxt", net_text);
    write_file("solver.prototxt", one_test);
    for (int i = 0; i < COUNT(wrong); i++) {
        options.test_workers = wrong[i];
        assert_int_equal(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG);
        assert_non_null(strstr(dm_error_message(), "dm_solver_open: test_workers is "));
    }
    if (worker_count > 1) {
        write_file("solver.prototxt", PLAIN "max_iter: 1");
        options.test_workers = 1;
        assert_int_equal(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG);
        assert_non_null(strstr(dm_error_message(), "test_workers is 1, but the solver has no test nets"));
    }
}

/* --- bytes: what the copies of the weights send is what the explanation says. */
static int64_t sent_by(int worker)
{
    dm_counters c = {.size = sizeof c};
    CHECK(dm_counters_get(session, worker, &c));
    return c.bytes_sent;
}

static void test_sent(void **state)
{
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    (void)state;
    write_file("net.prototxt", net_text);
    write_file("solver.prototxt", one_test);
    for (int k = 1; k < worker_count; k++) {
        int64_t before[64], most = 0, all = 0;
        double said = -1, mib = -1;
        int calls = -1;
        char *text = NULL;
        options.test_workers = k;
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        const nn_net *net = solver->tests[0].net;
        CHECK(dm_net_explain(dm_solver_test_net(solver, 0), &text));
        const char *line = strstr(text, "Before a test ");
        assert_non_null(line);
        assert_int_equal(
            sscanf(line, "Before a test %lf MiB of weights come from the training net: %d calls, at most %lf",
                   &mib, &calls, &said),
            3);
        free(text);
        CHECK(dm_net_explain(dm_solver_net(solver), &text));
        assert_null(strstr(text, "Before a test "));
        free(text);
        for (int w = 0; w < worker_count; w++) {
            before[w] = sent_by(w);
        }
        CHECK(nn_params_follow(net));
        CHECK(dm_sync(session));
        for (int w = 0; w < worker_count; w++) {
            int64_t sent = sent_by(w) - before[w];
            most = sent > most ? sent : most;
            all += sent;
        }
        int64_t elements = 0;
        for (int i = 0; i < net->param_count; i++) {
            elements += net->params[i]->count;
        }
        assert_int_equal(calls, net->param_count);
        assert_int_equal(all, 4 * elements * k); /* each worker gets all, once */
        assert_true(fabs((double)most / 1024 - said) <= 0.05);
        CHECK(dm_solver_close(solver));
    }
}

static bool make_records(void)
{
    nn_sink *sink = NULL;
    dm_status status = nn_sink_open("records", NN_LMDB, &sink);
    for (int i = 0; status == DM_OK && i < RECORDS; i++) {
        char key[16];
        unsigned char bytes[ELEMENTS];
        nn_document *d = NULL;
        snprintf(key, sizeof key, "%05d", i);
        for (int k = 0; k < ELEMENTS; k++) {
            bytes[k] = (unsigned char)(127 * (1 + uniform()));
        }
        CHECK(nn_document_new("Datum", "record", &d));
        CHECK(nn_set_int(d->root, "channels", 3));
        CHECK(nn_set_int(d->root, "height", 9));
        CHECK(nn_set_int(d->root, "width", 8));
        CHECK(nn_set_int(d->root, "label", i % 7));
        CHECK(nn_set_text(d->root, "data", (char *)bytes, sizeof bytes));
        status = nn_sink_put(sink, key, d->root);
        nn_document_free(d);
    }
    status = sink ? nn_sink_close(sink, status) : status;
    assert_true(status == DM_OK || status == DM_ERR_UNSUPPORTED);
    return status == DM_OK;
}

static int begin_with_records(void **state)
{
    if (begin_launched(state) != 0) {
        return -1;
    }
    return system("rm -rf records") == 0 ? (have_lmdb = make_records(), 0) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits), cmocka_unit_test(test_overlap), cmocka_unit_test(test_late),
        cmocka_unit_test(test_stop), cmocka_unit_test(test_failure), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sent),
    };
    if (dm_register("wait for training", wait_for_training) != DM_OK ||
        dm_register("fail there", fail_there) != DM_OK) {
        return 1;
    }
    launched = getenv("OMPI_COMM_WORLD_SIZE") != NULL;
    if (launched) {
        return cmocka_run_group_tests(tests, begin_with_records, end);
    }
    have_lmdb = system("rm -rf records") == 0 && make_records();
    return run_on_workers(tests);
}
