/* What layers take: a layer that naps on the workers, and all others. */
#include "net_case.h"

#include "net/net.h"

#include <time.h>

/* --- Nap: y = x, after a nap of so many ms on one worker, or on all (-1) that have
 * samples, forward and backward */
typedef struct nap {
    int worker, ms[2];
} nap;
typedef struct one_nap {
    int worker, ms;
} one_nap;

static int take_nap(const dm_task *t)
{
    const one_nap *n = t->args;
    const struct timespec time = {.tv_nsec = n->ms * 1000000L};
    return t->blocks[0] > 0 && (n->worker < 0 || n->worker == t->worker) ? nanosleep(&time, NULL) : 0;
}

static dm_status nap_setup(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x};
    (void)context;
    dm_status status = dm_layer_bottom(l, 0, &x);
    return status == DM_OK ? dm_layer_set_top(l, 0, x.ndim, x.shape) : status;
}

static dm_status move(dm_layer *l, dm_array x, dm_array y, const nap *n, int way)
{
    const int mode = DM_READWRITE;
    const one_nap args = {n->worker, n->ms[way]};
    CHECK(dm_copy(dm_layer_session(l), x, y));
    return dm_apply(dm_layer_session(l), "nap", 1, &y, &mode, &args, sizeof args);
}

static dm_status nap_forward(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    CHECK(dm_layer_bottom(l, 0, &x));
    CHECK(dm_layer_top(l, 0, &y));
    return move(l, x.data, y.data, context, 0);
}

static dm_status nap_backward(dm_layer *l, void *context)
{
    dm_layer_blob y = {.size = sizeof y};
    dm_array dx = DM_NO_ARRAY;
    CHECK(dm_layer_top(l, 0, &y));
    CHECK(dm_layer_gradient(l, 0, &dx));
    return move(l, y.diff, dx, context, 1);
}

static dm_net *open_napping(nap *n, int phase, bool waits)
{
    static const char text[] = INPUTS IP("a", "data", "6") SIMPLE("n", "Nap", "a", "n", "") IP("b", "n", "5")
        SIMPLE("r", "ReLU", "b", "b", "") LOSS("b");
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_layer_type type = DM_LAYER_TYPE_INIT;
    dm_net *net = NULL;
    type.name = "Nap";
    type.context = n;
    type.waits = waits;
    type.setup = nap_setup;
    type.forward = nap_forward;
    type.backward = nap_backward;
    options.phase = phase;
    options.layer_types = &type;
    options.layer_type_count = 1;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    return net;
}

enum { LAYERS = 6, NAP = 2, FORWARD = 60, BACKWARD = 90 };

/* A worker may begin its nap while another is still in the layer before. Others take far less, but may be held
 * up where the machine has other work. */
static void check(const double *ms, int nap_ms)
{
    for (int i = 0; i < LAYERS; i++) {
        assert_true(ms[i] >= 0);
        if (i == NAP ? ms[i] < 0.8 * nap_ms : ms[i] >= FORWARD) {
            fail_msg("layer %d took %g ms, layer %d napped %d; all: %g %g %g %g %g %g", i, ms[i], NAP, nap_ms,
                     ms[0], ms[1], ms[2], ms[3], ms[4], ms[5]);
        }
    }
}

/* By a program and call by call; the longest worker counts, whichever it is: not 0 alone. */
static void test_nap(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        nap n = {way == 1 ? worker_count > 1 : -1, {FORWARD, BACKWARD}};
        double forward[LAYERS], backward[LAYERS];
        dm_net *net = open_napping(&n, DM_PHASE_TRAIN, way > 1);
        assert_int_equal(dm_net_layers(net), LAYERS);
        assert_true(nn_recordable(net) == (way <= 1));
        CHECK(dm_net_measure(net, 2, forward, backward));
        check(forward, FORWARD);
        check(backward, BACKWARD);
        assert_true(backward[0] == 0 && net->times.id == 0);
        CHECK(dm_net_close(net));
    }
}

/* Without a backward pass. And the table: the sum is that of the layers, and not longer than the passes. */
static void test_table(void **state)
{
    nap n = {-1, {FORWARD, BACKWARD}};
    double forward[LAYERS], backward[LAYERS], sums[2], limit, together, plain, percent;
    int part;
    char *text = NULL;
    (void)state;
    dm_net *net = open_napping(&n, DM_PHASE_TEST, false);
    CHECK(dm_net_measure(net, 1, forward, backward));
    check(forward, FORWARD);
    for (int i = 0; i < LAYERS; i++) {
        assert_true(backward[i] == 0);
    }
    CHECK(dm_net_close(net));
    net = open_napping(&n, DM_PHASE_TRAIN, false);
    CHECK(dm_net_time(net, 2, &text));
    const char *all = strstr(text, "\nall "), *last = strstr(text, "a pass without notes of time: ");
    assert_non_null(all);
    assert_non_null(last);
    assert_int_equal(
        sscanf(all, "\nall %lf %lf %lf %d%% together %lf", &sums[0], &sums[1], &limit, &part, &together), 5);
    assert_int_equal(
        sscanf(last, "a pass without notes of time: %lf ms; the sum is %lf%% of it", &plain, &percent), 2);
    assert_true(fabs(sums[0] + sums[1] - together) < 0.01 && plain >= FORWARD + BACKWARD);
    assert_true(sums[0] >= 0.8 * FORWARD && sums[1] >= 0.8 * BACKWARD &&
                fabs(percent - 100 * together / plain) < 1);
    free(text);
    CHECK(dm_net_close(net));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nap), cmocka_unit_test(test_table)};
    if (dm_register("nap", take_nap) != DM_OK) {
        return 1;
    }
    return run_on_workers(tests);
}
