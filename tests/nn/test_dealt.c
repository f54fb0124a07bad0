/* Updates that are dealt out: snapshots and tests have the bytes of updates that each worker does whole, on any
 * number of workers; what is sent is what the plans say. In process, and with ranks. */
#include "net_case.h"

#include "solver/solver.h"

enum { ROOM = 1 << 14, FILE_ROOM = 1 << 16 };

#define DATA(phase, batch)                                                                                     \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' include { phase: " phase " } "               \
    "dummy_data_param { shape { dim: [" batch ", 4, 9, 8] } shape { dim: " batch " } "                         \
    "data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n"
#define SHARED(name, bottom, rest)                                                                             \
    "layer { name: '" name "' type: 'InnerProduct' bottom: '" bottom "' top: '" name                           \
    "' param { name: 'w' } param { name: 'v' } inner_product_param { num_output: 12 " rest " } }\n"
/* Groups, a deconvolution, an odd number of rows, weights that two layers share, one of them turned. */
static const char net_text[] = DATA("TRAIN", "9") DATA("TEST", "6")
    CONV("c", "data", "num_output: 6 kernel_size: 3 group: 2") SIMPLE("n", "BatchNorm", "c", "n",
                                                                      "") SIMPLE("r", "ReLU", "n", "n", "")
        SIMPLE("up", "Deconvolution", "n", "up",
               "convolution_param { num_output: 5 kernel_size: 2 stride: 2 weight_filler { type: 'xavier' } }")
            SIMPLE("p", "Pooling", "up", "p", "pooling_param { kernel_size: 4 stride: 4 }") IP("a", "p", "12")
                SHARED("s", "a", "weight_filler { type: 'xavier' }") SIMPLE("t", "TanH", "s", "t", "")
                    SHARED("u", "t", "transpose: true") IP("b", "u", "7")
                        LOSS("b") "layer { name: 'acc' type: 'Accuracy' bottom: ['b', 'label'] top: ['acc', "
                                  "'each'] include { phase: TEST } }\n";

#define SETTINGS                                                                                               \
    "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'inv' gamma: 0.1 power: 0.7 weight_decay: 0.001 max_iter: "  \
    "6 "                                                                                                       \
    "display: 2 test_interval: 3 test_iter: 2 snapshot: 6 snapshot_prefix: 'dealt' random_seed: 5 "

typedef struct left { /* what a run leaves */
    char lines[ROOM], tests[ROOM], weights[FILE_ROOM], state[FILE_ROOM];
    size_t bytes[2];
    int dealt, both; /* parameters that are dealt out, those of layers by both */
} left;

static size_t read_file(const char *path, char *out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, FILE_ROOM, f);
    assert_true(n > 100 && n < FILE_ROOM);
    assert_int_equal(fclose(f), 0);
    return n;
}

static void on_line(void *context, const char *line)
{
    left *out = context;
    const bool test = strstr(line, "Test net"); /* beside training they come later */
    char *to = test ? out->tests : out->lines;
    if (strstr(line, "loss = ") || strstr(line, "Test net")) {
        const char *from = strstr(line, "iter/s"); /* but no times */
        from = from ? strstr(from, "loss") : line;
        assert_true(strlen(to) + strlen(from) + 2 < ROOM);
        strcat(strcat(to, from), "\n");
    }
}

typedef struct way {
    const char *settings, *split;
    dm_dtype type;
    int lean, slices, test_workers;
    const char *name;
    dm_dtype wire;
} way;

/* Weights by both that are dealt out lie on the workers that use them, as many on each as is said. */
static int check_owners(const nn_net *net)
{
    int checked = 0;
    for (int i = 0; i < net->param_count; i++) {
        const nn_param *p = net->params[i];
        int64_t shape[DM_MAX_DIMS], at[DM_MAX_DIMS] = {0}, held[16] = {0}, most = 0;
        (void)nn_param_shape(p, shape);
        if (!p->range || !p->dealt) {
            continue;
        }
        const int64_t all = shape[p->range_dim], ranges = (all + p->range - 1) / p->range,
                      each = (ranges + p->parts[1] - 1) / p->parts[1];
        for (int64_t k = 0; k < all; k++) {
            int worker = -1;
            at[p->range_dim] = k;
            CHECK(dm_array_owner(session, p->data, at, &worker));
            assert_int_equal(worker % p->parts[1], k / p->range / each);
            most = ++held[worker] > most ? held[worker] : most;
        }
        assert_int_equal(nn_param_held(net, p, true), p->count / all * most);
        checked++;
    }
    return checked;
}

static left *train(const way *w, int update, const char *state)
{
    left *out = calloc(1, sizeof *out);
    dm_solver *solver = NULL;
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    assert_non_null(out);
    options.log = on_line;
    options.log_context = out;
    options.split = w->split;
    options.type = w->type;
    options.lean = w->lean;
    options.slices = w->slices;
    options.update = update;
    options.wire = w->wire;
    options.test_workers = w->test_workers < worker_count ? w->test_workers : 0;
    write_file("net.prototxt", net_text);
    write_file("solver.prototxt", w->settings);
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    for (int i = 0; i < solver->net->param_count; i++) {
        out->dealt += solver->net->params[i]->dealt;
    }
    out->both = check_owners(solver->net);
    if (state) {
        CHECK(dm_solver_restore(solver, state));
    }
    CHECK(dm_solver_run(solver, NULL, NULL));
    CHECK(dm_solver_close(solver));
    out->bytes[0] = read_file("dealt_iter_6.caffemodel", out->weights);
    out->bytes[1] = read_file("dealt_iter_6.solverstate", out->state);
    return out;
}

static void expect_same(const char *what, const left *a, const left *b, bool lines)
{
    if (lines && (strcmp(a->lines, b->lines) != 0 || strcmp(a->tests, b->tests) != 0)) {
        fail_msg("%s: other lines:\n%s%s\nnot\n%s%s", what, b->lines, b->tests, a->lines, a->tests);
    }
    if (a->bytes[0] != b->bytes[0] || memcmp(a->weights, b->weights, a->bytes[0]) != 0) {
        fail_msg("%s: other weights", what);
    }
    if (a->bytes[1] != b->bytes[1] || memcmp(a->state, b->state, a->bytes[1]) != 0) {
        fail_msg("%s: another state", what);
    }
}

static void test_bits(void **state)
{
    static const way ways[] = {
        {SETTINGS "momentum: 0.9", NULL, DM_F32, 0, 4, 0, "f32", 0},
        {SETTINGS "momentum: 0.9", NULL, DM_F32, 1, 4, 1, "lean, a test beside", 0},
        {SETTINGS "momentum: 0.9", "a=batch,b=features", DM_F32, 0, 3, 0, "split", 0},
        {SETTINGS "momentum: 0.9", NULL, DM_BF16, 0, 4, 0, "bf16", 0},
        {SETTINGS "momentum: 0.9", "a=batch,b=batch", DM_F16, 0, 4, 0, "f16, in ranges", 0},
        {SETTINGS "momentum: 0.9 iter_size: 2 clip_gradients: 0.5", NULL, DM_F32, 0, 4, 0, "clipped", 0},
        {SETTINGS "type: 'Adam' momentum: 0.9 momentum2: 0.99", NULL, DM_F32, 0, 4, 0, "Adam", 0},
        {SETTINGS "type: 'Nesterov' momentum: 0.9 regularization_type: 'L1'", NULL, DM_F32, 0, 4, 0, "Nesterov",
         0},
        {SETTINGS "type: 'AdaDelta' momentum: 0.9", NULL, DM_F32, 0, 4, 0, "AdaDelta", 0},
        {SETTINGS "momentum: 0.9", NULL, DM_F32, 0, 4, 0, "wire", DM_BF16},
        {SETTINGS "momentum: 0.9 iter_size: 2", "a=batch,b=features", DM_F32, 1, 3, 1, "wire, split", DM_BF16},
        {SETTINGS "type: 'Adam' momentum: 0.9 momentum2: 0.99", NULL, DM_BF16, 0, 4, 0, "wire, bf16", DM_BF16},
    };
    static left *of_one[COUNT(ways)]; /* worker, by the first group of tests */
    (void)state;
    for (int i = 0; i < COUNT(ways); i++) {
        left *whole = train(&ways[i], DM_UPDATE_WHOLE, NULL), *dealt = train(&ways[i], DM_UPDATE_DEALT, NULL);
        assert_int_equal(whole->dealt, 0);
        if (i == 0) {
            left *small = train(&ways[i], DM_UPDATE_DEFAULT, NULL);
            assert_int_equal(small->dealt, 0); /* none is large */
            expect_same(ways[i].name, whole, small, true);
            free(small);
        }
        /* conv, deconv, a, shared, b; not those by features, nor where one worker trains */
        int train_on = worker_count - (ways[i].test_workers < worker_count ? ways[i].test_workers : 0);
        int features = ways[i].split && strstr(ways[i].split, "features") ? 1 : 0;
        assert_int_equal(dealt->dealt, train_on > 1 ? 5 - features : 0);
        expect_same(ways[i].name, whole, dealt, true);
        free(dealt);
        if (of_one[i]) {
            expect_same(ways[i].name, of_one[i], whole, true);
            free(whole);
        } else {
            of_one[i] = whole;
        }
        /* the gradients of "wire" are rounded, those of "f32" are not */
        assert_true(strcmp(ways[i].name, "wire") != 0 ||
                    memcmp(of_one[i]->weights, of_one[0]->weights, of_one[0]->bytes[0]) != 0);
    }
}

/* Layers split by batch, by features and by both, whole and dealt out, with tests beside and lean: the same
 * bytes; and a state goes on in another split. */
static void test_splits(void **state)
{
    static const char *const splits[] = {
        "c=batch,up=batch,a=batch,s=batch,b=batch", "c=features,up=features,a=features,s=features,b=features",
        "c=both,up=both,a=both,s=both,b=both", "c=both,up=features,a=batch,s=both,b=features"};
    static left *of_one[2]; /* f32; bf16 */
    (void)state;
    for (int k = 0; k < 2 * COUNT(splits); k++) {
        const int i = k / 2, n = k % 2, updates[2] = {DM_UPDATE_WHOLE, DM_UPDATE_DEALT};
        const dm_dtype type = n ? DM_BF16 : DM_F32, wire = n ? DM_BF16 : (dm_dtype)0;
        const way
            w = {SETTINGS "momentum: 0.9", splits[i], type, i % 2, 4, i / 2, splits[i], wire},
            then = {SETTINGS "momentum: 0.9", splits[(i + 1) % COUNT(splits)], type, 0, 4, 0, splits[i], wire};
        dm_solver *solver = NULL;
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        left *all = train(&w, updates[(i + n) % 2], NULL);
        if (updates[(i + n) % 2] == DM_UPDATE_DEALT && worker_count > 4) { /* by features nothing is */
            assert_true(i == 1 || all->dealt > 0);
            assert_int_equal(all->both, i == 2 ? 5 : i == 3 ? 2 : 0);
        }
        if (of_one[n]) {
            expect_same(w.name, of_one[n], all, true);
            free(all);
        } else {
            of_one[n] = all;
        }
        options.split = w.split;
        options.type = w.type;
        options.wire = w.wire;
        options.update = updates[(i + n + 1) % 2];
        write_file("solver.prototxt", w.settings);
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        CHECK(dm_solver_step(solver, 4));
        CHECK(dm_solver_snapshot(solver));
        CHECK(dm_solver_close(solver));
        left *rest = train(&then, updates[(i + n) % 2], "dealt_iter_4.solverstate");
        expect_same("another split", of_one[n], rest, false);
        free(rest);
    }
}

/* The length of all gradients, in all forms: those of a deconvolution lie by parts of rows, those of layers by
 * both that are dealt out by rows from several places. */
static void test_clipped_splits(void **state)
{
    static const char *const splits[] = {"c=batch,up=batch,a=batch,s=batch,b=batch",
                                         "c=features,up=features,a=features,s=features,b=features",
                                         "c=both,up=both,a=both,s=both,b=both"};
    static left *of_one;
    (void)state;
    for (int i = 0; i < COUNT(splits); i++) {
        const way w = {SETTINGS "momentum: 0.9 clip_gradients: 0.5", splits[i], DM_F32, 0, 4, 0, splits[i], 0};
        left *all = train(&w, i == 1 ? DM_UPDATE_WHOLE : DM_UPDATE_DEALT, NULL);
        if (of_one) {
            expect_same(w.name, of_one, all, true);
            free(all);
        } else {
            of_one = all;
        }
    }
}

/* Dealt out or whole, a state goes on in the other way. (What gradients are on the wire is told again.) */
static void test_resumed(void **state)
{
    static const way ways[] = {{SETTINGS "momentum: 0.9", NULL, DM_F32, 0, 4, 0, "resumed", 0},
                               {SETTINGS "momentum: 0.9", NULL, DM_F32, 0, 4, 0, "wire, resumed", DM_BF16}};
    (void)state;
    left *whole[COUNT(ways)];
    for (int k = 0; k < 2 * COUNT(ways); k++) {
        const way *w = &ways[k / 2];
        dm_solver *solver = NULL;
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        whole[k / 2] = k % 2 ? whole[k / 2] : train(w, DM_UPDATE_WHOLE, NULL);
        options.update = k % 2 ? DM_UPDATE_DEALT : DM_UPDATE_WHOLE;
        options.wire = w->wire;
        write_file("solver.prototxt", w->settings);
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        CHECK(dm_solver_step(solver, 4));
        CHECK(dm_solver_snapshot(solver));
        CHECK(dm_solver_close(solver));
        left *rest = train(w, k % 2 ? DM_UPDATE_WHOLE : DM_UPDATE_DEALT, "dealt_iter_4.solverstate");
        expect_same(w->name, whole[k / 2], rest, false);
        free(rest);
    }
    for (int i = 0; i < COUNT(ways); i++) {
        free(whole[i]);
    }
}

/* By itself, weights of more than 1 048 576 elements are; those that a layer of another kind uses too never
 * are. */
static void test_chosen(void **state)
{
    static const char large[] =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [4, "
        "1025] } "
        "shape { dim: 4 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" IP(
            "a", "data", "1024") IP("b", "a", "1024") LOSS("b");
    static const char both[] =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [4, 6] } "
        "shape { dim: 4 } data_filler { type: 'constant' value: 2 } data_filler { value: 2 } } }\n"
        "layer { name: 'e' type: 'Embed' bottom: 'label' top: 'e' param { name: 'w' } embed_param { "
        "num_output: 6 "
        "input_dim: 5 bias_term: false weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'a' type: 'InnerProduct' bottom: 'e' top: 'a' param { name: 'w' } inner_product_param { "
        "num_output: 5 bias_term: false } }\n" LOSS("a");
    const struct {
        const char *net;
        int update, dealt;
    } cases[] = {{large, DM_UPDATE_DEFAULT, 1},
                 {large, DM_UPDATE_WHOLE, 0},
                 {large, DM_UPDATE_DEALT, 2},
                 {both, DM_UPDATE_DEALT, 0}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        dm_solver *solver = NULL;
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        char *text = NULL;
        int dealt = 0;
        options.update = cases[i].update;
        write_file("net.prototxt", cases[i].net);
        write_file("solver.prototxt", "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' max_iter: 6 "
                                      "snapshot_after_train: false");
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        for (int k = 0; k < solver->net->param_count; k++) {
            dealt += solver->net->params[k]->dealt;
        }
        assert_int_equal(dealt, worker_count > 1 ? cases[i].dealt : 0);
        CHECK(dm_net_explain(dm_solver_net(solver), &text));
        assert_int_equal(strstr(text, "a: update dealt out, ") != NULL, dealt > 0);
        assert_int_equal(strstr(text, "\nweights ") != NULL, dealt > 0);
        free(text);
        CHECK(dm_solver_step(solver, 2));
        CHECK(dm_solver_close(solver));
    }
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    options.update = 3;
    assert_int_equal(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_splits),
                                       cmocka_unit_test(test_clipped_splits), cmocka_unit_test(test_resumed),
                                       cmocka_unit_test(test_chosen)};
    return run_on_workers_or_ranks(tests);
}
