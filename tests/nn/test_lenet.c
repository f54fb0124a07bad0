/* LeNet's layers on a batch of 12 images for a few iterations, with a test and a snapshot: two workers have the
 * bits of one, also where the second half goes on from the snapshot; the loss falls. Short enough for
 * sanitizers. */
#include "net_case.h"

#define LENET                                                                                                  \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {\n"                        \
    "  shape { dim: [12, 1, 28, 28] } shape { dim: 12 } data_filler { type: 'uniform' } data_filler { value: " \
    "3 } } }\n"                                                                                                \
    "layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1' convolution_param { num_output: "   \
    "20 kernel_size: 5 weight_filler { type: 'xavier' } } }\n"                                                 \
    "layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1' pooling_param { kernel_size: 2 "       \
    "stride: 2 } }\n"                                                                                          \
    "layer { name: 'conv2' type: 'Convolution' bottom: 'pool1' top: 'conv2' convolution_param { num_output: "  \
    "50 kernel_size: 5 weight_filler { type: 'xavier' } } }\n"                                                 \
    "layer { name: 'pool2' type: 'Pooling' bottom: 'conv2' top: 'pool2' pooling_param { kernel_size: 2 "       \
    "stride: 2 } }\n"                                                                                          \
    "layer { name: 'ip1' type: 'InnerProduct' bottom: 'pool2' top: 'ip1' inner_product_param { num_output: "   \
    "60 weight_filler { type: 'xavier' } } }\n"                                                                \
    "layer { name: 'relu1' type: 'ReLU' bottom: 'ip1' top: 'ip1' }\n"                                          \
    "layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2' inner_product_param { num_output: 10 "  \
    "weight_filler { type: 'xavier' } } }\n"                                                                   \
    "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2' bottom: 'label' top: 'accuracy' include { "       \
    "phase: TEST } }\n"                                                                                        \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }\n"

enum { ITERATIONS = 6, MOST = 60 * 800 }; /* MOST: weights of ip1 */
static const char *const layers[] = {"conv1", "conv2", "ip1", "ip2"};

typedef struct outcome {
    double first, last; /* losses */
    float weights[COUNT(layers)][2][MOST];
} outcome;

static double loss_of(dm_solver *solver)
{
    double loss = 0;
    CHECK(dm_net_forward(dm_solver_net(solver), &loss));
    return loss;
}

/* The whole training, or with a path its second half from there on. */
static void train(int workers, const char *resume, outcome *out)
{
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    worker_count = workers;
    assert_int_equal(begin(NULL), 0);
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    out->first = loss_of(solver);
    CHECK(
        dm_solver_close(solver)); /* each pass takes further random numbers, those of the training begin anew */
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    if (resume) {
        CHECK(dm_solver_restore(solver, resume));
        assert_int_equal(dm_solver_iteration(solver), ITERATIONS / 2);
    }
    CHECK(dm_solver_run(solver, NULL, NULL));
    assert_int_equal(dm_solver_iteration(solver), ITERATIONS);
    out->last = loss_of(solver);
    for (int i = 0; i < COUNT(layers); i++) {
        for (int k = 0; k < 2; k++) {
            int ndim = 0;
            int64_t shape[DM_MAX_DIMS];
            CHECK(dm_net_param_read(dm_solver_net(solver), layers[i], k, &ndim, shape, out->weights[i][k]));
        }
    }
    CHECK(dm_solver_close(solver));
    assert_int_equal(end(NULL), 0);
}

static void test_training(void **state)
{
    outcome *one = calloc(1, sizeof *one), *other = calloc(1, sizeof *other);
    (void)state;
    assert_non_null(one);
    assert_non_null(other);
    write_file("net.prototxt", LENET);
    write_file("solver.prototxt",
               "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'inv' gamma: 0.0001 power: 0.75 momentum: 0.9 "
               "weight_decay: 0.0005 max_iter: 6 display: 2 snapshot: 3 snapshot_prefix: 'lenet' test_iter: 1 "
               "test_interval: 3 random_seed: 4\n");
    train(1, NULL, one);
    assert_true(one->first > 1.5 && one->first < 4 && one->last < 0.8 * one->first);
    for (int i = 0; i < 2; i++) {
        memset(other, 0, sizeof *other);
        train(2, i ? "lenet_iter_3.solverstate" : NULL, other);
        assert_true(memcmp(one->weights, other->weights, sizeof one->weights) == 0);
        assert_true(one->first == other->first);
    }
    free(one);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
