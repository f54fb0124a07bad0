/* What a step of training sends and receives, worker by worker, is what its plans say: passes call by call, and
 * the recorded step of a solver. What dm_net_explain prints is no less. */
#include "net_case.h"

#include "solver/solver.h"

enum { MOST = 8 };

#define NET                                                                                                    \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [9, 3, 11, " \
    "10] } shape { dim: "                                                                                      \
    "9 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" CONV(                         \
        "c", "data", "num_output: 6 kernel_size: 3") SIMPLE("n", "BatchNorm", "c", "n", "")                    \
        SIMPLE("r", "ReLU", "n", "n", "") SIMPLE("p", "Pooling", "n", "p",                                     \
                                                 "pooling_param { kernel_size: 3 stride: 2 }")                 \
            CONV("e", "p",                                                                                     \
                 "num_output: 6 kernel_size: 3 pad: 1 group: 2") "layer { name: 'j' type: 'Concat' bottom: "   \
                                                                 "['p', 'e'] top: 'j' }\n" IP("a", "j", "40")  \
                                                                     SIMPLE("o", "Dropout", "a", "a", "")      \
                                                                         IP("b", "a",                          \
                                                                            "7") "layer { name: 'l' type: "    \
                                                                                 "'SoftmaxWithLoss' bottom: "  \
                                                                                 "['b', 'label'] top: 'l' }\n"

static const char *const splits[] = {"a=batch,b=batch", "a=features,b=features", "a=features,b=batch"};

typedef struct traffic {
    int64_t sent[MOST], received[MOST], link[MOST][MOST + 1]; /* link: to the worker, or the master */
} traffic;

/* "worker 0 sends 64 to worker 1, 8 to the master": at its first number. */
static void of_links(const char *at, int64_t link[MOST + 1])
{
    for (bool more = true; more;) {
        char *end = NULL;
        const long long bytes = strtoll(at, &end, 10);
        assert_true(bytes > 0 && strncmp(end, " to ", 4) == 0);
        at = end + 4;
        const bool worker = strncmp(at, "worker ", 7) == 0;
        assert_true(worker || strncmp(at, "the master", 10) == 0);
        const long to = worker ? strtol(at + 7, &end, 10) : worker_count;
        at = worker ? end : at + 10;
        assert_in_range(to, 0, worker_count);
        assert_true(*at == ',' || *at == '\n');
        link[to] += bytes;
        more = *at++ == ',';
    }
}

/* The sums of a text of dm_explain_end, which is freed. */
static traffic of_plans(char *text)
{
    traffic t = {0};
    for (const char *line = text; line; line = strchr(line, '\n')) {
        int worker = 0;
        long long steps = 0, sent = 0, received = 0;
        line += *line == '\n';
        if (sscanf(line, " worker %d: steps %lld sent %lld received %lld", &worker, &steps, &sent, &received) ==
            4) {
            assert_in_range(worker, 0, MOST - 1);
            t.sent[worker] += sent;
            t.received[worker] += received;
        }
        int first = 0;
        if (sscanf(line, " sent by worker %d: %n", &worker, &first) == 1 && first > 0) {
            assert_in_range(worker, 0, MOST - 1);
            of_links(line + first, t.link[worker]);
        }
    }
    free(text);
    return t;
}

static traffic so_far(void)
{
    traffic t = {0};
    for (int w = 0; w < dm_workers(session); w++) {
        dm_counters c = {.size = sizeof c};
        CHECK(dm_counters_get(session, w, &c));
        t.sent[w] = c.bytes_sent;
        t.received[w] = c.bytes_received;
        CHECK(dm_links_get(session, w, t.link[w]));
    }
    return t;
}

static void expect_equal(const char *what, const char *split, const traffic *plans, const traffic *before,
                         const traffic *after)
{
    for (int w = 0; w < worker_count; w++) {
        int64_t sent = after->sent[w] - before->sent[w], received = after->received[w] - before->received[w];
        if (sent != plans->sent[w] || received != plans->received[w]) {
            fail_msg("%s, %s: worker %d of %d sends %lld and receives %lld bytes, its plans say %lld and %lld",
                     what, split, w, worker_count, (long long)sent, (long long)received,
                     (long long)plans->sent[w], (long long)plans->received[w]);
        }
        int64_t row = 0, column = 0;
        for (int k = 0; k <= worker_count; k++) {
            const int64_t link = after->link[w][k] - before->link[w][k];
            row += link;
            column += k < worker_count ? after->link[k][w] - before->link[k][w] : 0;
            if (link != plans->link[w][k]) {
                fail_msg("%s, %s: worker %d of %d sends %lld bytes to %d, its plans say %lld", what, split, w,
                         worker_count, (long long)link, k, (long long)plans->link[w][k]);
            }
        }
        assert_int_equal(row, sent);
        assert_int_equal(column, received); /* the master sends nothing meanwhile */
    }
}

static void test_passes(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * COUNT(splits); i++) { /* gradients in f32, and in bf16 */
        const char *split = splits[i % COUNT(splits)];
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        char *text = NULL;
        double said = -1;
        options.phase = DM_PHASE_TRAIN;
        options.split = split;
        options.wire = i < COUNT(splits) ? (dm_dtype)0 : DM_BF16;
        CHECK(dm_net_open_text(session, NET, NULL, &options, &net));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_explain_begin(session));
        CHECK(nn_forward_part(net, false));
        CHECK(nn_backward(net, false));
        CHECK(dm_explain_end(session, &text));
        traffic plans = of_plans(text), before = so_far();
        CHECK(nn_forward_part(net, false));
        CHECK(nn_backward(net, false));
        traffic after = so_far();
        expect_equal(options.wire ? "call by call, bf16" : "call by call", split, &plans, &before, &after);
        CHECK(dm_net_explain(net, &text));
        assert_non_null(strstr(text, "at most "));
        assert_int_equal(sscanf(strstr(text, "at most "), "at most %lf KiB", &said), 1);
        for (int w = 0; w < worker_count; w++) {
            assert_true((double)plans.sent[w] / 1024 <= said + 0.05);
            assert_true(worker_count == 1 || w > 2 || plans.sent[w] > 0); /* nine samples are three slices */
        }
        free(text);
        CHECK(dm_net_close(net));
    }
}

static void test_step(void **state)
{
    (void)state;
    write_file("net.prototxt", NET);
    write_file(
        "solver.prototxt",
        "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.001 max_iter: 9 "
        "snapshot_after_train: false\n");
    for (int i = 0; i < 2 * COUNT(splits); i++) { /* updated whole, and dealt out */
        const char *split = splits[i % COUNT(splits)];
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        dm_solver *s = NULL;
        char *text = NULL;
        double said = -1;
        options.split = split;
        options.update = i < COUNT(splits) ? DM_UPDATE_WHOLE : DM_UPDATE_DEALT;
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
        CHECK(dm_solver_step(s, 2)); /* records the step, and fills the rates */
        assert_true(s->program.id != 0);
        CHECK(dm_explain_begin(session));
        CHECK(dm_program_run(session, s->program, 1, 0, NULL));
        CHECK(dm_explain_end(session, &text));
        traffic plans = of_plans(text), before = so_far();
        CHECK(dm_solver_step(s, 1));
        traffic after = so_far();
        expect_equal("a recorded step", split, &plans, &before, &after);
        int64_t links[MOST * MOST];
        CHECK(dm_solver_links(s, links));
        for (int w = 0; w < worker_count * worker_count; w++) {
            assert_int_equal(links[w], plans.link[w / worker_count][w % worker_count]);
        }
        CHECK(dm_net_explain(dm_solver_net(s), &text));
        assert_int_equal(sscanf(strstr(text, "at most "), "at most %lf KiB", &said), 1);
        free(text);
        for (int w = 0; w < worker_count; w++) {
            assert_true((double)plans.sent[w] / 1024 <= said + 0.05);
        }
        assert_true(worker_count == 1 || plans.sent[1] > 0);
        CHECK(dm_solver_close(s));
    }
}

/* A step that is not recorded has no plan of its own; before the first step it is recorded for the question. */
static void test_links(void **state)
{
    int64_t links[2][MOST * MOST];
    (void)state;
    write_file("net.prototxt", NET);
    for (int size = 1; size <= 2; size++) {
        dm_solver *s = NULL;
        char text[200];
        snprintf(text, sizeof text,
                 "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 9 iter_size: %d "
                 "snapshot_after_train: false\n",
                 size);
        write_file("solver.prototxt", text);
        CHECK(dm_solver_open(session, "solver.prototxt", NULL, &s));
        for (int i = 0; i < 2; i++) {
            const dm_status status = dm_solver_links(s, links[i]);
            assert_int_equal(status, size == 1 ? DM_OK : DM_ERR_STATE);
            CHECK(dm_solver_step(s, 1));
        }
        CHECK(dm_solver_close(s));
        assert_memory_equal(links[0], links[1], (size_t)(worker_count * worker_count) * sizeof **links);
    }
}

/* Of weights of 120 rows of `in` elements in four slices, of which worker w has `slices`: what it sends of
 * their gradient in f32, less what it sends in bf16. It keeps the rows, or the part, that it adds up. */
static int64_t saved(int w, int in)
{
    const int each = (4 + worker_count - 1) / worker_count, left = 4 - w * each,
              slices = left < each ? left : each;
    return (slices > 0 ? slices : 0) * (int64_t)(120 - 120 / worker_count) * in * 2;
}

/* In bf16 a gradient of weights has half the bytes; nothing else changes. Some are summed where they lie, some,
 * of 16 KiB and more, in segments. */
static void test_wire(void **state)
{
    enum { OUT = 120, IN = 40, BATCH = 8 };
    static const char net[] =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [8, 40] "
        "} "
        "shape { dim: 8 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" IP(
            "a", "data", "120") IP("b", "a", "120") LOSS("b");
    (void)state;
    for (int update = DM_UPDATE_WHOLE; update <= DM_UPDATE_DEALT; update++) {
        traffic did[2], planned[2];
        double said[2];
        for (int i = 0; i < 2; i++) {
            dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
            dm_solver *s = NULL;
            char *text = NULL;
            options.update = update;
            options.wire = i ? DM_BF16 : (dm_dtype)0;
            write_file("net.prototxt", net);
            write_file("solver.prototxt", "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 9 "
                                          "snapshot_after_train: false\n");
            CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
            CHECK(dm_solver_step(s, 2));
            CHECK(dm_explain_begin(session));
            CHECK(dm_program_run(session, s->program, 1, 0, NULL));
            CHECK(dm_explain_end(session, &text));
            planned[i] = of_plans(text);
            traffic before = so_far();
            CHECK(dm_solver_step(s, 1));
            did[i] = so_far();
            for (int w = 0; w < worker_count; w++) {
                did[i].sent[w] -= before.sent[w];
                did[i].received[w] -= before.received[w];
            }
            CHECK(dm_net_explain(dm_solver_net(s), &text));
            assert_int_equal(sscanf(strstr(text, "at most "), "at most %lf KiB", &said[i]), 1);
            assert_int_equal(strstr(text, "Gradients of weights are sent in bf16") != NULL, i);
            free(text);
            CHECK(dm_solver_close(s));
        }
        int64_t most = 0;
        for (int w = 0; w < worker_count; w++) {
            const int64_t half = saved(w, IN) + saved(w, OUT);
            most = half > most ? half : most;
            for (int i = 0; i < 2; i++) {
                assert_int_equal(did[i].sent[w], planned[i].sent[w]);
                assert_int_equal(did[i].received[w], planned[i].received[w]);
            }
            if (did[0].sent[w] - did[1].sent[w] != half) {
                fail_msg("worker %d of %d sends %lld bytes, and %lld in bf16: not %lld less", w, worker_count,
                         (long long)did[0].sent[w], (long long)did[1].sent[w], (long long)half);
            }
        }
        assert_true(fabs((said[0] - said[1]) * 1024 - (double)most) < 200); /* printed to 0.1 KiB */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes), cmocka_unit_test(test_step),
                                       cmocka_unit_test(test_links), cmocka_unit_test(test_wire)};
    return run_on_workers(tests);
}
