/* What a program adds to a net: layers of its own, losses of its own, nets out of a text, gradients of the
 * data. */
#include "net_case.h"

/* --- Square: y = a x x with a parameter a for all elements, and a seed that it keeps */
typedef struct square_calls {
    int setups, prepared, drops;
    uint64_t forward, backward; /* seeds */
} square_calls;

static dm_status square_setup(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x};
    dm_status status = dm_layer_bottom(l, 0, &x);
    ((square_calls *)context)->setups++;
    *dm_layer_state(l) = context;
    if (strcmp(dm_layer_text(l), "bad") == 0) {
        return dm_layer_fail(l, DM_ERR_FORMAT, "cannot be 'bad'");
    }
    status = status == DM_OK ? dm_layer_set_top(l, 0, x.ndim, x.shape) : status;
    return status == DM_OK ? dm_layer_add_param(l, 1, (int64_t[]){1}, 1.5) : status;
}

static dm_status square_prepare(dm_layer *l, void *context)
{
    ((square_calls *)context)->prepared += *dm_layer_state(l) == context;
    return DM_OK;
}

static dm_status square_forward(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    dm_array a = DM_NO_ARRAY;
    CHECK(dm_layer_bottom(l, 0, &x));
    CHECK(dm_layer_top(l, 0, &y));
    CHECK(dm_layer_param(l, 0, &a, NULL, NULL));
    ((square_calls *)context)->forward = dm_layer_seed(l);
    dm_map_arg args[] = {DM_ARG("x", x.data), DM_ARG("a", a)};
    return dm_map(dm_layer_session(l), "a * x * x", 2, args, y.data);
}

static dm_status square_backward(dm_layer *l, void *context)
{
    dm_session *s = dm_layer_session(l);
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    dm_array a = DM_NO_ARRAY, da = DM_NO_ARRAY, dx = DM_NO_ARRAY;
    double beta = -1;
    CHECK(dm_layer_bottom(l, 0, &x));
    CHECK(dm_layer_top(l, 0, &y));
    CHECK(dm_layer_param(l, 0, &a, &da, &beta));
    CHECK(dm_layer_gradient(l, 0, &dx));
    ((square_calls *)context)->backward = dm_layer_seed(l);
    dm_map_arg args[] = {DM_ARG("x", x.data), DM_ARG("d", y.diff), DM_ARG("a", a)};
    dm_array sum = DM_NO_ARRAY;
    CHECK(dm_array_create(s, DM_F32, 0, NULL, NULL, &sum));
    dm_status status = dm_map(s, "sum(d * x * x)", 2, args, sum);
    dm_map_arg add[] = {DM_ARG("s", sum), DM_ARG("g", da), DM_NUMBER("b", beta)};
    status = status == DM_OK ? dm_map(s, beta == 0 ? "s" : "b * g + s", beta == 0 ? 1 : 3, add, da) : status;
    CHECK(dm_array_destroy(s, sum));
    return status == DM_OK && dx.id ? dm_map(s, "2 * a * x * d", 3, args, dx) : status;
}

static void square_drop(dm_layer *l, void *context)
{
    assert_ptr_equal(*dm_layer_state(l), context);
    ((square_calls *)context)->drops++;
}

static dm_layer_type square_type(square_calls *calls)
{
    dm_layer_type t = DM_LAYER_TYPE_INIT;
    t.name = "Square";
    t.context = calls;
    t.setup = square_setup;
    t.prepare = square_prepare;
    t.forward = square_forward;
    t.backward = square_backward;
    t.drop = square_drop;
    return t;
}

static dm_net *open_with(const char *text, const dm_layer_type *types, int count, const char *own_loss)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.layer_types = types;
    options.layer_type_count = count;
    options.own_loss = own_loss;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    return net;
}

static const char *const squares[] = {
    INPUTS IP("a", "data", "7") SIMPLE("q", "Square", "a", "q", "") IP("b", "q", "4") LOSS("b"),
    INPUTS IP("a", "data", "7")
        SIMPLE("q", "Python", "a", "q", "python_param { module: 'm' layer: 'Square' param_str: 'x' }")
            IP("b", "q", "4") LOSS("b")};

static void test_layers(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(squares); i++) {
        square_calls calls = {0};
        dm_layer_type type = square_type(&calls);
        dm_net *net = open_with(squares[i], &type, 1, NULL);
        write_random(net, "data", false, 0);
        write_random(net, "label", true, 4);
        static const char *const layers[] = {"a", "q", "b"};
        for (int k = 0; k < COUNT(layers); k++) {
            dm_array data, diff;
            CHECK(dm_net_param(net, layers[k], 0, &data, &diff));
            check_direction(net, layers[k], data, diff, 2e-2);
        }
        uint64_t before = calls.forward;
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        assert_true(calls.forward != before && calls.backward == calls.forward);
        assert_int_equal(calls.setups, 1);
        assert_int_equal(calls.prepared, 1);
        CHECK(dm_net_close(net));
        assert_int_equal(calls.drops, 1);
    }
}

static dm_status nothing(dm_layer *l, void *context)
{
    (void)l;
    (void)context;
    return DM_OK;
}

static dm_status without_text(dm_layer *l, void *context)
{
    (void)l;
    (void)context;
    return DM_ERR_LIMIT;
}

static void expect(dm_status status, dm_status expected, const char *words)
{
    if (status != expected || !strstr(dm_error_message(), words)) {
        fail_msg("status %d, %s; expected %d, %s", (int)status, dm_error_message(), (int)expected, words);
    }
}

static dm_status as_bottom(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x};
    dm_array gradient;
    (void)context;
    CHECK(dm_layer_bottom(l, 0, &x));
    expect(dm_layer_gradient(l, 0, &gradient), DM_ERR_STATE, "dm_layer_gradient: only the function backward");
    return dm_layer_set_top(l, 0, x.ndim, x.shape);
}

static dm_status too_late(dm_layer *l, void *context)
{
    static const int64_t shape[] = {2, 3};
    dm_array gradient;
    (void)context;
    expect(dm_layer_set_top(l, 0, 2, shape), DM_ERR_STATE, "dm_layer_set_top: only the function setup");
    expect(dm_layer_add_param(l, 2, shape, 0), DM_ERR_STATE, "dm_layer_add_param: only the function setup");
    expect(dm_layer_gradient(l, 0, &gradient), DM_ERR_STATE, "dm_layer_gradient: only the function backward");
    return DM_ERR_FORMAT;
}

/* Calls of functions that are not theirs; and a failure without a text, which has not that of an older one. */
static void test_wrong_function(void **state)
{
    (void)state;
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_layer_type type = DM_LAYER_TYPE_INIT;
    dm_net *net = NULL;
    type.name = "Late";
    type.setup = as_bottom;
    type.forward = too_late;
    type.prepare = nothing;
    options.layer_types = &type;
    options.layer_type_count = 1;
    CHECK(dm_net_open_text(session, INPUTS SIMPLE("n", "Late", "data", "n", ""), NULL, &options, &net));
    assert_true(dm_net_forward(net, NULL) == DM_ERR_FORMAT);
    CHECK(dm_net_close(net));
    type.setup = as_bottom;
    type.prepare = too_late;
    assert_true(dm_net_open_text(session, INPUTS SIMPLE("n", "Late", "data", "n", ""), NULL, &options, &net) ==
                DM_ERR_FORMAT);
    type.prepare = NULL;
    type.setup = without_text;
    expect(dm_net_open_text(session, INPUTS SIMPLE("n", "Late", "data", "n", ""), NULL, &options, &net),
           DM_ERR_LIMIT, "net:2: layer 'n' failed in its function setup: it gives no reason");
}

static void test_refused(void **state)
{
    (void)state;
    square_calls calls = {0};
    dm_layer_type types[2] = {square_type(&calls), DM_LAYER_TYPE_INIT};
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.layer_types = types;
    options.layer_type_count = 1;
    expect(dm_net_open_text(session, INPUTS SIMPLE("q", "Cube", "data", "q", ""), "mine", &options, &net),
           DM_ERR_UNSUPPORTED,
           "mine:2: layer 'q' has the type 'Cube', which neither dmath nor the program has");
    expect(dm_net_open_text(session,
                            INPUTS SIMPLE("q", "Square", "data", "q", "python_param { param_str: 'bad' }"),
                            NULL, &options, &net),
           DM_ERR_FORMAT, "net:2: layer 'q' cannot be 'bad'");
    assert_int_equal(calls.drops, calls.setups);
    options.layer_type_count = 2; /* the second has no functions */
    expect(dm_net_open_text(session, squares[0], NULL, &options, &net), DM_ERR_ARG, "layer_types: number 1");
    types[1].name = "Nothing";
    types[1].setup = types[1].forward = nothing;
    expect(dm_net_open_text(session, INPUTS SIMPLE("n", "Nothing", "data", "n", ""), NULL, &options, &net),
           DM_ERR_STATE, "net:2: layer 'n' has not set the shape of its top 'n'");
    options.own_loss = "b,c";
    options.phase = DM_PHASE_TRAIN;
    expect(dm_net_open_text(session, squares[0], NULL, &options, &net), DM_ERR_ARG,
           "own_loss: the net has no blob 'c'");
    options.own_loss = "data";
    expect(dm_net_open_text(session, squares[0], NULL, &options, &net), DM_ERR_ARG,
           "own_loss: 'data' does not depend");
    expect(dm_net_open_text(session, NULL, NULL, NULL, &net), DM_ERR_ARG, "dm_net_open_text");
    assert_null(net);
}

/* --- structures of older and newer headers */
typedef struct newer_type {
    dm_layer_type known;
    int64_t unknown;
} newer_type;

static dm_status sized_setup(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, old;
    struct {
        dm_layer_blob known;
        int64_t unknown;
    } young = {.unknown = 1};
    (void)context;
    CHECK(dm_layer_bottom(l, 0, &x));
    assert_true(x.ndim > 0 && x.shape[0] > 0);
    memset(&old, 0x55, sizeof old);
    old.size = offsetof(dm_layer_blob, loss_weight);
    CHECK(dm_layer_bottom(l, 0, &old));
    assert_true(old.size == offsetof(dm_layer_blob, loss_weight) && old.ndim == x.ndim);
    assert_memory_equal(old.shape, x.shape, sizeof x.shape);
    assert_int_equal(((unsigned char *)&old.loss_weight)[0], 0x55); /* the caller has no such field */
    young.known.size = sizeof young;
    CHECK(dm_layer_bottom(l, 0, &young.known));
    assert_true(young.known.size == sizeof young && young.known.ndim == x.ndim && young.unknown == 0);
    young.unknown = 1;
    CHECK(dm_layer_top(l, 0, &young.known));
    assert_true(young.known.size == sizeof young && young.unknown == 0);
    static const size_t wrong[] = {0, offsetof(dm_layer_blob, shape), 5000};
    for (int i = 0; i < COUNT(wrong); i++) {
        memset(&old, 0x55, sizeof old);
        old.size = wrong[i];
        expect(dm_layer_bottom(l, 0, &old), DM_ERR_ARG, "out->size");
        assert_int_equal(old.ndim, 0x55555555);
        expect(dm_layer_top(l, 0, &old), DM_ERR_ARG, "out->size");
    }
    return dm_layer_set_top(l, 0, x.ndim, x.shape);
}

static dm_status sized_forward(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    CHECK(dm_layer_bottom(l, 0, &x));
    CHECK(dm_layer_top(l, 0, &y));
    ++*(int *)context;
    return dm_copy(dm_layer_session(l), x.data, y.data);
}

static dm_layer_type sized_type(const char *name, size_t size, int *calls)
{
    dm_layer_type t = DM_LAYER_TYPE_INIT;
    t.size = size;
    t.name = name;
    t.context = calls;
    t.setup = sized_setup;
    t.forward = sized_forward;
    return t;
}

static void test_sizes(void **state)
{
    (void)state;
    static const char text[] =
        INPUTS SIMPLE("one", "First", "data", "one", "") SIMPLE("two", "Second", "one", "two", "");
    int calls = 0;
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.layer_type_count = 2;
    for (int newer = 0; newer < 2; newer++) { /* two types, one behind the other */
        size_t size = newer ? sizeof(newer_type) : offsetof(dm_layer_type, backward);
        char *list = calloc(2, size); /* its end is where a sanitizer sees it */
        assert_non_null(list);
        for (int i = 0; i < 2; i++) {
            dm_layer_type t = sized_type(i ? "Second" : "First", size, &calls);
            memcpy(list + (size_t)i * size, &t, newer ? sizeof t : size);
        }
        options.layer_types = (const dm_layer_type *)(const void *)list;
        calls = 0;
        CHECK(dm_net_open_text(session, text, NULL, &options, &net));
        CHECK(dm_net_forward(net, NULL));
        assert_int_equal(calls, 2);
        CHECK(dm_net_close(net));
        net = NULL;
        if (newer) {
            list[2 * size - 1] = 1; /* what is not known here */
            expect(dm_net_open_text(session, text, NULL, &options, &net), DM_ERR_ARG, "layer_types: number 1");
        }
        free(list);
    }
    static const size_t wrong[] = {0, offsetof(dm_layer_type, forward), 5000};
    for (int i = 0; i < COUNT(wrong); i++) {
        dm_layer_type t = sized_type("First", wrong[i], &calls);
        options.layer_types = &t;
        options.layer_type_count = 1;
        expect(dm_net_open_text(session, text, NULL, &options, &net), DM_ERR_ARG, "layer_types: number 0");
    }
    dm_layer_type two[] = {sized_type("First", sizeof two[0], &calls), sized_type("Second", 0, &calls)};
    two[1].size = offsetof(dm_layer_type, backward);
    options.layer_types = two;
    options.layer_type_count = 2; /* of two sizes */
    expect(dm_net_open_text(session, text, NULL, &options, &net), DM_ERR_ARG, "layer_types: number 1");
    assert_null(net);
}

/* --- a loss of the program's own: sum(g y) of a blob that other layers read too. The gradients must be those
 * of the same loss as a layer: InnerProduct has no such, so central differences of loss + sum(g y). */
static double with_own(dm_net *net, const float *g, int64_t n)
{
    double loss = 0;
    float *y = malloc((size_t)n * sizeof *y);
    assert_non_null(y);
    CHECK(dm_net_forward(net, &loss));
    CHECK(dm_net_read(net, "q", y));
    for (int64_t i = 0; i < n; i++) {
        loss += (double)g[i] * (double)y[i];
    }
    free(y);
    return loss;
}

static void check_own_loss(bool used)
{
    const float step = 4e-3F;
    float g[6 * 5], w[5 * 126], d[5 * 126], moved[5 * 126];
    double expected = 0, square = 0;
    dm_array own, data, diff;
    dm_net *net =
        open_with(used ? INPUTS IP("q", "data", "5") IP("b", "q", "4") LOSS("b")
                       : INPUTS IP("q", "data", "5") "layer { name: 's' type: 'Silence' bottom: 'label' }\n",
                  NULL, 0, "q");
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 4);
    for (int i = 0; i < COUNT(g); i++) {
        g[i] = uniform();
    }
    CHECK(dm_net_own_gradient(net, "q", &own));
    CHECK(dm_net_param(net, "q", 0, &data, &diff));
    CHECK(dm_read(session, data, w));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_write(session, own, g));
    CHECK(dm_net_backward(net));
    CHECK(dm_read(session, diff, d));
    float along[5 * 126];
    for (int i = 0; i < COUNT(w); i++) {
        along[i] = uniform();
        expected += (double)d[i] * (double)along[i];
        square += (double)d[i] * (double)d[i];
    }
    double losses[2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < COUNT(w); i++) {
            moved[i] = w[i] + (k ? -step : step) * along[i];
        }
        CHECK(dm_write(session, data, moved));
        losses[k] = with_own(net, g, COUNT(g));
    }
    double found = (losses[0] - losses[1]) / (2 * (double)step);
    if (!(fabs(found - expected) <= 2e-2 * sqrt(square)) || square == 0) {
        fail_msg("own loss: it moves by %g, the gradient says %g", found, expected);
    }
    expect(dm_net_own_gradient(net, "label", &own), DM_ERR_ARG, "does not name 'label'");
    CHECK(dm_net_close(net));
}

static void test_own_loss(void **state)
{
    (void)state;
    check_own_loss(true);
    check_own_loss(false);
}

/* --- gradients of the data */
static void test_force_backward(void **state)
{
    (void)state;
    dm_array data, diff;
    dm_net *net = open_with("force_backward: true\n" INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3")
                                SIMPLE("r", "Sigmoid", "c", "c", "") IP("b", "c", "4") LOSS("b"),
                            NULL, 0, NULL);
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 4);
    CHECK(dm_net_blob(net, "data", &data, &diff));
    assert_true(diff.id != 0);
    check_direction(net, "data", data, diff, 2e-2);
    CHECK(dm_net_blob(net, "label", NULL, &diff));
    assert_true(diff.id == 0);
    CHECK(dm_net_close(net));
}

/* --- solvers: with the program's layers, lean or not, as recorded programs and with debug_info call by call:
 * the same losses */
typedef struct told {
    char lines[1 << 15];
    double loss[16];
    int losses;
} told;

static void take_line(void *context, const char *line)
{
    told *t = context;
    size_t used = strlen(t->lines);
    snprintf(t->lines + used, sizeof t->lines - used, "%s\n", line);
}

static void take_event(void *context, const dm_train_event *event)
{
    told *t = context;
    if (event->kind == DM_TRAIN_DISPLAY) {
        assert_true(t->losses < COUNT(t->loss));
        t->loss[t->losses++] = event->loss;
    }
}

/* kind: of the layer before the last; Square is one of the program's own. */
static void train_with(const char *kind, const char *more, bool lean, told *t)
{
    static const char *const net =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [6, 3, "
        "12, 12] } "
        "shape { dim: 6 } data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 2 } } "
        "}\n" CONV("c1", "data", "num_output: 5 kernel_size: 3 pad: 1") SIMPLE("r1", "ReLU", "c1", "c1", "")
            SIMPLE("n1", "LRN", "c1", "n1", "lrn_param { local_size: 3 }") SIMPLE(
                "p1", "Pooling", "n1", "p1", "pooling_param { kernel_size: 3 stride: 2 }")
                CONV("c2", "p1", "num_output: 6 kernel_size: 3 pad: 1") CONV(
                    "c3", "p1",
                    "num_output: 6 kernel_size: 1") "layer { name: 'cat' type: 'Concat' bottom: ['c2', 'c3'] "
                                                    "top: 'cat' }\n" SIMPLE("r2", "ReLU", "cat", "cat", "")
                                                        SIMPLE("o", "Dropout", "cat", "o", "") IP("a", "o", "7")
                                                            SIMPLE("q", "%s", "a", "q", "") IP("b", "q", "4")
                                                                LOSS("b");
    square_calls calls = {0};
    dm_layer_type type = square_type(&calls);
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    char text[4096];
    snprintf(text, sizeof text, net, kind);
    write_file("net.prototxt", text);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.001 momentum: 0.9 lr_policy: 'fixed' display: 1 max_iter: 5 "
             "snapshot_after_train: false %s\n",
             more);
    write_file("solver.prototxt", text);
    options.layer_types = &type;
    options.layer_type_count = 1;
    options.lean = lean;
    options.log = take_line;
    options.event = take_event;
    options.log_context = options.event_context = t;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    CHECK(dm_solver_run(solver, NULL, NULL));
    dm_array a;
    assert_int_equal(dm_net_blob(dm_solver_net(solver), "c2", &a, NULL), lean ? DM_ERR_STATE : DM_OK);
    CHECK(dm_net_blob(dm_solver_net(solver), "loss", &a, NULL));
    CHECK(dm_solver_close(solver));
    assert_int_equal(calls.drops, strcmp(kind, "Square") == 0);
    assert_int_equal(t->losses, 6);
}

static void train(const char *more, bool lean, told *t)
{
    train_with("Square", more, lean, t);
}

/* A step that is recorded, and the pass after the last one: the same numbers where blobs have no memory of
 * their own. */
static void test_lean(void **state)
{
    (void)state;
    static told plain, lean, debug;
    train_with("TanH", "", false, &plain);
    train_with("TanH", "", true, &lean);
    train_with("TanH", "debug_info: true", false, &debug);
    assert_memory_equal(plain.loss, lean.loss, sizeof plain.loss);
    assert_memory_equal(plain.loss, debug.loss, sizeof plain.loss);
}

static void test_solvers(void **state)
{
    (void)state;
    static told plain, lean, debug, lean_by_calls;
    train("", false, &plain);
    train("", true, &lean);
    train("debug_info: true", false, &debug);
    train("clip_gradients: 1e9", true, &lean_by_calls);
    assert_memory_equal(plain.loss, lean.loss, sizeof plain.loss);
    assert_memory_equal(debug.loss, plain.loss, sizeof plain.loss); /* call by call: the same random numbers */
    assert_memory_equal(lean_by_calls.loss, plain.loss, sizeof plain.loss);
    assert_true(plain.loss[5] < plain.loss[0] && debug.loss[5] < debug.loss[0]);
    assert_null(strstr(plain.lines, "[Forward]"));
    static const char *const lines[] = {"    [Forward] Layer c1, top blob c1 data: ",
                                        "    [Forward] Layer q, param blob 0 data: 1.5\n",
                                        "    [Backward] Layer b, bottom blob q diff: ",
                                        "    [Backward] Layer c1, param blob 1 diff: ",
                                        "    [Backward] All net params (data, diff): L1 norm = (",
                                        "    [Update] Layer q, param 0 data: 1.5; diff: "};
    for (int i = 0; i < COUNT(lines); i++) {
        if (!strstr(debug.lines, lines[i])) {
            fail_msg("no line '%s' in:\n%s", lines[i], debug.lines);
        }
    }
}

/* --- a solver with a loss of the program's own: that of EuclideanLoss, by calls. The same weights and losses
 * as with the layer, to rounding; in programs, call by call, lean and beside another loss, to the bit. */
static dm_status euclid(void *context, dm_net *net, dm_array loss)
{
    dm_array q, t, own;
    ++*(int *)context;
    dm_status status = dm_net_blob(net, "q", &q, NULL);
    status = status == DM_OK ? dm_net_blob(net, "data", &t, NULL) : status;
    status = status == DM_OK ? dm_net_own_gradient(net, "q", &own) : status;
    dm_map_arg args[] = {DM_ARG("q", q), DM_ARG("t", t)};
    status = status == DM_OK ? dm_map(session, "(q - t) / 6", 2, args, own) : status;
    return status == DM_OK ? dm_map(session, "sum((q - t) * (q - t) / 12)", 2, args, loss) : status;
}

enum { OWN_PARAMS = 5 * 5 + 5 };
typedef struct own_case {
    const char *more; /* of the solver */
    bool layer, beside, lean, waits;
} own_case;

static void train_own(const own_case *o, told *t, float params[OWN_PARAMS])
{
    static const char data[] =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [6, 5] } "
        "shape { dim: 6 } "
        "data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 2 } } }\n" IP(
            "q", "data", "5");
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    int calls = 0;
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s", data,
             o->layer    ? "layer { name: 'l' type: 'EuclideanLoss' bottom: ['q', 'data'] top: 'l' }\n"
             : o->beside ? ""
                         : "layer { name: 's' type: 'Silence' bottom: 'label' }\n",
             o->beside ? "layer { name: 'm' type: 'SoftmaxWithLoss' bottom: ['q', 'label'] top: 'm' }\n" : "");
    write_file("net.prototxt", text);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' display: 1 max_iter: 6 "
             "snapshot_after_train: false %s\n",
             o->more);
    write_file("solver.prototxt", text);
    if (!o->layer) {
        options.own_loss = "q";
        options.own = euclid;
        options.own_context = &calls;
        options.own_waits = o->waits;
    }
    options.lean = o->lean;
    options.event = take_event;
    options.event_context = t;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    CHECK(dm_solver_run(solver, NULL, NULL));
    dm_array w, b;
    CHECK(dm_net_param(dm_solver_net(solver), "q", 0, &w, NULL));
    CHECK(dm_net_param(dm_solver_net(solver), "q", 1, &b, NULL));
    CHECK(dm_read(session, w, params));
    CHECK(dm_read(session, b, params + 25));
    const bool step_by_step = o->waits || *o->more;
    if (o->layer       ? calls != 0
        : step_by_step ? calls < 6
                       : calls == 0 || calls > 3) { /* the last pass shows the loss */
        fail_msg("the function was called %d times", calls);
    }
    CHECK(dm_solver_close(solver));
}

/* Calls that would call the function again. */
static dm_status calls_back(void *context, dm_net *net, dm_array loss)
{
    dm_solver *solver = *(dm_solver **)context;
    (void)loss;
    expect(dm_solver_step(solver, 1), DM_ERR_STATE, "dm_solver_step: the solver is at work");
    expect(dm_solver_run(solver, NULL, NULL), DM_ERR_STATE, "dm_solver_run: the solver is at work");
    expect(dm_solver_restore(solver, "none"), DM_ERR_STATE, "dm_solver_restore: the solver is at work");
    expect(dm_net_forward(net, NULL), DM_ERR_STATE, "dm_net_forward: the function own of a solver called it");
    expect(dm_net_backward(net), DM_ERR_STATE, "dm_net_backward: the function own of a solver called it");
    return DM_OK;
}

static void test_calls_back(void **state)
{
    (void)state;
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    write_file(
        "net.prototxt",
        "layer { name: 'd' type: 'DummyData' top: 'data' dummy_data_param { shape { dim: [6, 5] } } }\n" IP(
            "q", "data", "5"));
    write_file("solver.prototxt", "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' max_iter: 6\n");
    options.own_loss = "q";
    options.own = calls_back;
    options.own_context = &solver;
    for (options.own_waits = 0; options.own_waits < 2; options.own_waits++) {
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        CHECK(dm_solver_step(solver, 2));
        CHECK(dm_solver_close(solver));
    }
}

static void test_solver_own_loss(void **state)
{
    static const own_case cases[] = {{"", .layer = true},
                                     {""},
                                     {"", .waits = true},
                                     {"", .lean = true},
                                     {"iter_size: 2", .layer = true},
                                     {"iter_size: 2"},
                                     {"", .layer = true, .beside = true},
                                     {"", .beside = true},
                                     {"debug_info: true", .beside = true}};
    static const int same_as[] = {-1, 0, 1, 1, -1, 4, -1, 6, 7}; /* of two with the function to the bit */
    static told t[COUNT(cases)];
    static float params[COUNT(cases)][OWN_PARAMS];
    (void)state;
    memset(t, 0, sizeof t);
    for (int i = 0; i < COUNT(cases); i++) {
        train_own(&cases[i], &t[i], params[i]);
        const int j = same_as[i];
        if (j < 0) {
            continue;
        }
        const bool exact = !cases[j].layer;
        assert_true(t[i].losses == t[j].losses && t[i].losses == 7);
        for (int k = 0; k < OWN_PARAMS; k++) {
            const double apart = fabs((double)params[i][k] - (double)params[j][k]);
            if (apart > (exact ? 0 : 1e-5)) {
                fail_msg("case %d: parameter %d is %g, and %g in case %d", i, k, (double)params[i][k],
                         (double)params[j][k], j);
            }
        }
        for (int k = 0; k < t[i].losses; k++) {
            if (fabs(t[i].loss[k] - t[j].loss[k]) > (exact ? 0 : 1e-5 * fabs(t[j].loss[k]))) {
                fail_msg("case %d: loss %d is %g, and %g in case %d", i, k, t[i].loss[k], t[j].loss[k], j);
            }
        }
    }
    assert_true(t[1].loss[6] < t[1].loss[0] && t[7].loss[0] > t[1].loss[0]);
}

static dm_status no_number(void *context, dm_net *net, dm_array loss)
{
    (void)context;
    (void)net;
    return dm_fill(session, loss, NAN);
}

static void test_solver_own_refused(void **state)
{
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    told t = {.losses = 0};
    (void)state;
    write_file(
        "net.prototxt",
        "layer { name: 'd' type: 'DummyData' top: 'data' dummy_data_param { shape { dim: [6, 5] } } }\n" IP(
            "q", "data", "5"));
    write_file("solver.prototxt", "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' display: 1 max_iter: 2 "
                                  "snapshot_after_train: false\n");
    expect(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_FORMAT,
           "has no loss to train by");
    options.own_loss = "q";
    expect(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG, "one of the two is NULL");
    options.own = no_number;
    options.own_loss = NULL;
    expect(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG, "one of the two is NULL");
    options.own_loss = "r";
    expect(dm_solver_open(session, "solver.prototxt", &options, &solver), DM_ERR_ARG,
           "the net has no blob 'r'");
    options.own_loss = "q";
    options.log = take_line;
    options.log_context = &t;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    CHECK(dm_solver_run(solver, NULL, NULL));
    assert_non_null(strstr(t.lines, "the loss of the program's own is nan at iteration 0\n"));
    CHECK(dm_solver_close(solver));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_own_loss),
                                       cmocka_unit_test(test_force_backward),
                                       cmocka_unit_test(test_solvers),
                                       cmocka_unit_test(test_lean),
                                       cmocka_unit_test(test_solver_own_loss),
                                       cmocka_unit_test(test_solver_own_refused),
                                       cmocka_unit_test(test_wrong_function),
                                       cmocka_unit_test(test_calls_back)};
    return cmocka_run_group_tests(tests, begin, end);
}
