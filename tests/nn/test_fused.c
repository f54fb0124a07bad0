/* 1 x 1 convolutions that read one blob: their gradients, made together, are those of convolutions by
 * themselves, and the same bits on any number of workers. */
#include "net_case.h"

#include "net/net.h"
#include "solver/solver.h"

#define ONE(name, outputs, more)                                                                               \
    "layer { name: '" name "' type: 'Convolution' bottom: 'n' top: '" name "' " more                           \
    " convolution_param { kernel_size: 1 num_output: " outputs                                                 \
    " weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -0.3 max: 0.3 } } }\n"
/* A module as those of GoogLeNet. bottom: of the first convolution's channels. a, b, c: the tops of three
 * ReLUs, in place or not. */
#define MODULE(channels, first, second, third, more, a, b, c)                                                  \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [6, 3, 9, "  \
    "8] } "                                                                                                    \
    "shape { dim: 6 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" CONV(            \
        "n", "data", "kernel_size: 3 num_output: " channels) SIMPLE("rn", "ReLU", "n", "n", "") ONE("x",       \
                                                                                                    first, "") \
        SIMPLE("rx", "ReLU", "x", a, "") ONE("y", second, more) SIMPLE("ry", "ReLU", "y", b, "") CONV(         \
            "y3", b, "kernel_size: 3 pad: 1 num_output: 6") SIMPLE("ry3", "ReLU", "y3", "y3",                  \
                                                                   "") ONE("z", third, "")                     \
            SIMPLE("rz", "ReLU", "z", c, "") CONV("z5", c, "kernel_size: 5 pad: 2 num_output: 5") SIMPLE(      \
                "p", "Pooling", "n", "p",                                                                      \
                "pooling_param { kernel_size: 3 stride: 1 pad: 1 }") "layer { name: 'o' type: 'Concat' "       \
                                                                     "bottom: ['" a                            \
                                                                     "', 'y3', 'z5', 'p'] top: 'o' }\n" IP(    \
                                                                         "i", "o",                             \
                                                                         "5") "layer { name: 'l' type: "       \
                                                                              "'SoftmaxWithLoss' bottom: 'i' " \
                                                                              "bottom: 'label' top: 'l' }\n"
#define IN_PLACE(channels, first, second, third, more)                                                         \
    MODULE(channels, first, second, third, more, "x", "y", "z")
#define APART(channels, first, second, third, more)                                                            \
    MODULE(channels, first, second, third, more, "ax", "ay", "az")
#define LEARNS "param { lr_mult: 2 } param { lr_mult: 2 }"

/* fused: layers whose gradients are made with those of others. Rows of 12 weights begin at every 48: 8 or 16 of
 * them end where others may begin, 5 do not. */
static const struct {
    const char *name, *together, *apart;
    int fused;
} nets[] = {
    {"three", IN_PLACE("16", "8", "7", "3", ""), APART("16", "8", "7", "3", ""), 3},
    {"short rows", IN_PLACE("12", "8", "16", "4", ""), APART("12", "8", "16", "4", ""), 3},
    {"room between", IN_PLACE("12", "5", "16", "4", ""), APART("12", "5", "16", "4", ""), 2},
    {"another rate", IN_PLACE("16", "8", "7", "3", LEARNS), APART("16", "8", "7", "3", LEARNS), 2},
    {"a shared name", IN_PLACE("16", "8", "7", "3", "param { name: 'w' }"),
     APART("16", "8", "7", "3", "param { name: 'w' }"), 2},
};

enum { MOST = 1 << 14 };

static int fused_of(const nn_net *net)
{
    int n = 0;
    for (int k = 0; k < net->layer_count; k++) {
        n += net->layers[k].fused != NULL;
    }
    return n;
}

static int64_t params_of(nn_net *net, bool diff, float *out)
{
    int64_t n = 0;
    for (int k = 0; k < net->param_count; k++) {
        const nn_param *p = net->params[k];
        assert_true(n + p->count <= MOST);
        CHECK(nn_param_read(net, p, diff ? p->diff : p->data, out + n));
        n += p->count;
    }
    return n;
}

/* Against the same convolutions one by one. */
static void test_gradients(void **state)
{
    static float got[MOST], want[MOST];
    (void)state;
    for (int i = 0; i < COUNT(nets); i++) {
        for (int slices = 0; slices <= 4; slices += 2) {
            dm_net_options options = DM_NET_OPTIONS_INIT;
            double loss[2];
            int64_t n = 0;
            for (int k = 0; k < 2; k++) {
                dm_net *net = NULL;
                options.phase = DM_PHASE_TRAIN;
                options.slices = slices;
                CHECK(dm_net_open_text(session, k ? nets[i].apart : nets[i].together, NULL, &options, &net));
                assert_int_equal(fused_of(net), k ? 0 : nets[i].fused);
                for (int pass = 0; pass < 2; pass++) { /* the second adds to the first */
                    CHECK(nn_forward(net));
                    CHECK(nn_backward(net, pass > 0));
                }
                CHECK(nn_loss(net, &loss[k]));
                n = params_of(net, true, k ? want : got);
                CHECK(dm_net_close(net));
            }
            assert_true(loss[0] == loss[1]);
            double size = 0;
            for (int64_t j = 0; j < n; j++) {
                size = fmax(size, fabs((double)want[j]));
                if (!(fabs((double)(got[j] - want[j])) <= 3e-6)) {
                    fail_msg("net '%s', slices %d: gradient %d is %g, not %g", nets[i].name, slices, (int)j,
                             (double)got[j], (double)want[j]);
                }
            }
            assert_true(size > 0.05);
        }
    }
}

/* Trainings: equal on 1, 2, 3, 5 and 8 workers, as programs and call by call, lean and dealt out as asked. */
static void test_same_bits(void **state)
{
    static float first[COUNT(nets)][2][MOST], got[MOST];
    static bool known;
    static const char *const more[] = {"", "iter_size: 2"};
    (void)state;
    for (int i = 0; i < COUNT(nets); i++) {
        for (int k = 0; k < 6; k++) {
            char text[300];
            dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
            dm_solver *s = NULL;
            snprintf(text, sizeof text,
                     "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: 4 "
                     "snapshot_after_train: false %s\n",
                     more[k / 3]);
            write_file("net.prototxt", nets[i].together);
            write_file("solver.prototxt", text);
            options.slices = 4;
            options.lean = k % 3 == 1;
            options.update = k % 3 == 2 ? DM_UPDATE_DEALT : DM_UPDATE_WHOLE;
            CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
            assert_int_equal(fused_of(dm_solver_net(s)), nets[i].fused);
            CHECK(dm_solver_step(s, 4));
            int64_t n = params_of(dm_solver_net(s), false, got);
            if (!known && k % 3 == 0) {
                memcpy(first[i][k / 3], got, (size_t)n * sizeof *got);
            }
            for (int64_t j = 0; j < n; j++) {
                if (memcmp(&got[j], &first[i][k / 3][j], sizeof *got) != 0) {
                    fail_msg("net '%s', form %d, %d workers: parameter %d is %g, not %g", nets[i].name, k,
                             worker_count, (int)j, (double)got[j], (double)first[i][k / 3][j]);
                }
            }
            CHECK(dm_solver_close(s));
        }
    }
    known = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_same_bits)};
    return run_on_workers(tests);
}
