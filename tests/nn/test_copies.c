/* Rounded copies of weights that the update writes: whatever writes weights between two steps, recorded steps
 * compute what steps call by call do, which round them anew each time. */
#include "net_case.h"

#include "solver/solver.h"

enum { STEPS = 3, MOST = 1 << 14 };

/* Weights in flat arrays, and some that are in none: of few long rows; and some that nobody moves. */
static const char net_text[] =
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [6, 4, 7, 5] "
    "} "
    "shape { dim: 6 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { num_output: 8 "
    "kernel_size: 3 "
    "group: 2 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' }\n"
    "layer { name: 'a' type: 'InnerProduct' bottom: 'c' top: 'a' inner_product_param { num_output: 35 "
    "weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'f' type: 'InnerProduct' bottom: 'a' top: 'f' param { lr_mult: 0 } inner_product_param { "
    "num_output: 33 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'b' type: 'InnerProduct' bottom: 'f' top: 'b' inner_product_param { num_output: 2 "
    "weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'l' }\n";

static const char *const names[] = {"c", "a", "f", "b"};

/* What happens between two steps. */
typedef enum deed { NOTHING, LOADS, WRITES, KEPT, FORWARD, RESTORES, DEEDS } deed;

static void write_weights(dm_array a)
{
    CHECK(dm_fill_normal(session, a, 0, 0.1, 7));
}

static void do_it(dm_solver *s, deed d, dm_array held)
{
    dm_net *net = dm_solver_net(s);
    dm_array kept = DM_NO_ARRAY;
    switch (d) {
    case LOADS:
        CHECK(dm_net_load(net, "other.caffemodel"));
        break;
    case WRITES:
        write_weights(held);
        break;
    case KEPT:
        CHECK(dm_kept_array(session, "kept/b/0", &kept));
        write_weights(kept);
        break;
    case FORWARD:
        CHECK(dm_net_forward(net, NULL));
        break;
    case RESTORES:
        CHECK(dm_solver_restore(s, "copies_iter_1.solverstate"));
        break;
    default:
        break;
    }
}

/* Trains, and something happens twice; the weights of all layers. */
static int train(deed d, dm_dtype type, bool by_calls, int lean, float *out)
{
    dm_solver *s = NULL;
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_array held = DM_NO_ARRAY;
    char settings[400];
    int count = 0;
    options.type = type;
    options.lean = lean;
    write_file("net.prototxt", net_text);
    snprintf(
        settings, sizeof settings,
        "net: 'net.prototxt' base_lr: 0.05 momentum: 0.9 weight_decay: 0.001 lr_policy: 'fixed' max_iter: 100 "
        "snapshot: 1 snapshot_prefix: 'copies' random_seed: 3 %s",
        by_calls ? "clip_gradients: 1e30" : "");
    write_file("solver.prototxt", settings);
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
    if (d == WRITES) {
        CHECK(dm_net_param(dm_solver_net(s), "a", 0, &held, NULL));
    }
    if (d == KEPT) {
        CHECK(dm_solver_keep(s, "kept"));
    }
    for (int i = 0; i < STEPS; i++) {
        CHECK(dm_solver_step(s, 2));
        assert_int_equal(s->program.id != 0, !by_calls);
        assert_int_equal(s->net->current, !by_calls && d != WRITES && d != KEPT);
        if (i < STEPS - 1) {
            do_it(s, d, held);
        }
    }
    int flat = 0, apart = 0, frozen = 0;
    for (int i = 0; i < s->net->flat_count; i++) {
        flat += nn_flat_copied(s->net, &s->net->flats[i]);
    }
    for (int i = 0; i < s->net->param_count; i++) {
        const nn_param *p = s->net->params[i];
        apart += nn_param_copied(s->net, p);
        frozen += p->rounded.id && p->lr_mult == 0;
    }
    assert_true(flat > 0 && apart > 0 && frozen > 0);
    for (int i = 0; i < COUNT(names); i++) {
        int64_t shape[DM_MAX_DIMS], n = 1;
        int ndim;
        CHECK(dm_net_param_read(dm_solver_net(s), names[i], 0, &ndim, shape, out + count));
        for (int k = 0; k < ndim; k++) {
            n *= shape[k];
        }
        count += (int)n;
        assert_true(count < MOST);
    }
    CHECK(dm_solver_close(s));
    return count;
}

/* Other weights, in a file. */
static void save_other(void)
{
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *s = NULL;
    dm_array a = DM_NO_ARRAY;
    write_file("net.prototxt", net_text);
    write_file("solver.prototxt",
               "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' max_iter: 1 random_seed: 9");
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
    for (int i = 0; i < COUNT(names); i++) {
        CHECK(dm_net_param(dm_solver_net(s), names[i], 0, &a, NULL));
        CHECK(dm_fill_normal(session, a, 0, 0.2, (uint64_t)i));
    }
    CHECK(dm_net_save(dm_solver_net(s), "other.caffemodel"));
    CHECK(dm_solver_close(s));
}

static void test_copies(void **state)
{
    static float want[MOST], got[MOST], plain[MOST];
    (void)state;
    save_other();
    for (int t = 0; t < 2; t++) {
        const dm_dtype type = t ? DM_F16 : DM_BF16;
        const int plain_count = train(NOTHING, type, true, 0, plain);
        for (deed d = NOTHING; d < DEEDS; d++) {
            const int count = train(d, type, true, 0, want);
            assert_int_equal(count, plain_count);
            assert_int_equal(memcmp(want, plain, (size_t)count * sizeof *want) == 0, d == NOTHING);
            for (int lean = 0; lean < 2; lean++) {
                assert_int_equal(train(d, type, false, lean, got), count);
                if (memcmp(got, want, (size_t)count * sizeof *got) != 0) {
                    fail_msg("deed %d, type %d, lean %d: other weights", (int)d, t, lean);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};
    return run_on_workers(tests);
}
