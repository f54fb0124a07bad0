/* LeNet, made by calls instead of a file, learns to read handwritten digits. The images have 8 x 8 pixels; each
 * becomes 3 x 3 here, with a border, as LeNet takes 28 x 28. Ends with 1 below 85 %.
 *
 *   lenet_by_calls DIGITS.npy LABELS.npy */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <dmath/nn.h>
#include <stdio.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, BATCH = 64, TRAIN = 1500, TESTS = 297, STEPS = 150 };
static float digits[(TRAIN + TESTS) * 64], labels[TRAIN + TESTS];

/* A convolution, or with kernel 0 an inner product. */
static void products(dm_prototxt *p, const char *name, const char *bottom, int outputs, int kernel)
{
    DM_CHECK(dm_prototxt_layer(p, kernel ? "Convolution" : "InnerProduct", name, bottom, name));
    DM_CHECK(dm_prototxt_number(p, name, "param[0].lr_mult", 1));
    DM_CHECK(dm_prototxt_number(p, name, "param[1].lr_mult", 2)); /* the biases' */
    if (kernel) {
        DM_CHECK(dm_prototxt_number(p, name, "convolution_param.num_output", outputs));
        DM_CHECK(dm_prototxt_number(p, name, "convolution_param.kernel_size", kernel));
        DM_CHECK(dm_prototxt_text(p, name, "convolution_param.weight_filler.type", "xavier"));
    } else {
        DM_CHECK(dm_prototxt_number(p, name, "inner_product_param.num_output", outputs));
        DM_CHECK(dm_prototxt_text(p, name, "inner_product_param.weight_filler.type", "xavier"));
    }
}

static void pooling(dm_prototxt *p, const char *pool, const char *bottom)
{
    DM_CHECK(dm_prototxt_layer(p, "Pooling", pool, bottom, pool));
    DM_CHECK(dm_prototxt_number(p, pool, "pooling_param.kernel_size", 2));
    DM_CHECK(dm_prototxt_number(p, pool, "pooling_param.stride", 2));
}

static void input(dm_prototxt *p, const char *name, const char *phase, int batch)
{
    DM_CHECK(dm_prototxt_layer(p, "Input", name, NULL, "data,label"));
    DM_CHECK(dm_prototxt_list(p, name, "input_param.shape[0].dim", 4, (double[]){batch, 1, SIDE, SIDE}));
    DM_CHECK(dm_prototxt_list(p, name, "input_param.shape[1].dim", 1, (double[]){batch}));
    DM_CHECK(dm_prototxt_text(p, name, "include.phase", phase));
}

static dm_prototxt *lenet(void)
{
    dm_prototxt *p;
    DM_CHECK(dm_prototxt_create("NetParameter", &p));
    DM_CHECK(dm_prototxt_text(p, NULL, "name", "LeNet"));
    input(p, "digits", "TRAIN", BATCH);
    input(p, "digits of the test", "TEST", TESTS);
    products(p, "conv1", "data", 20, 5);
    pooling(p, "pool1", "conv1");
    products(p, "conv2", "pool1", 50, 5);
    pooling(p, "pool2", "conv2");
    products(p, "ip1", "pool2", 500, 0);
    DM_CHECK(dm_prototxt_layer(p, "ReLU", "relu1", "ip1", "ip1"));
    products(p, "ip2", "ip1", 10, 0);
    DM_CHECK(dm_prototxt_layer(p, "Accuracy", "accuracy", "ip2,label", "accuracy"));
    DM_CHECK(dm_prototxt_text(p, "accuracy", "include.phase", "TEST"));
    DM_CHECK(dm_prototxt_layer(p, "SoftmaxWithLoss", "loss", "ip2,label", "loss"));
    return p;
}

/* Images and labels from number `first` on, back to the first one behind number `end`. */
static void give(dm_net *net, int count, int first, int end)
{
    static float x[TESTS * PIXELS], y[TESTS];
    for (int i = 0; i < count; i++) {
        int from = (first + i) % end;
        for (int at = 0; at < 24 * 24; at++) {
            x[i * PIXELS + (2 + at / 24) * SIDE + 2 + at % 24] =
                digits[from * 64 + at / 72 * 8 + at % 24 / 3] / 16;
        }
        y[i] = labels[from];
    }
    DM_CHECK(dm_net_write(net, "data", x));
    DM_CHECK(dm_net_write(net, "label", y));
}

int main(int argc, char **argv)
{
    dm_session *s;
    dm_array images, numbers;
    dm_solver *solver;
    dm_prototxt *net = lenet(), *rules;
    double accuracy = 0;
    if (argc < 3) {
        return fprintf(stderr, "usage: lenet_by_calls DIGITS.npy LABELS.npy\n"), 1;
    }
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_array_load(s, argv[1], NULL, &images));
    DM_CHECK(dm_array_load(s, argv[2], NULL, &numbers));
    DM_CHECK(dm_array_read_as(s, images, NULL, NULL, DM_F32, digits, 0));
    DM_CHECK(dm_array_read_as(s, numbers, NULL, NULL, DM_F32, labels, 0));
    DM_CHECK(dm_prototxt_create("SolverParameter", &rules));
    DM_CHECK(dm_prototxt_number(rules, NULL, "base_lr", 0.01));
    DM_CHECK(dm_prototxt_text(rules, NULL, "lr_policy", "fixed"));
    DM_CHECK(dm_prototxt_number(rules, NULL, "momentum", 0.9));
    DM_CHECK(dm_prototxt_number(rules, NULL, "test_iter", 1)); /* a test net, asked at the end */
    DM_CHECK(dm_prototxt_number(rules, NULL, "test_interval", STEPS + 1));
    DM_CHECK(dm_prototxt_text(rules, NULL, "test_initialization", "false"));
    DM_CHECK(dm_solver_create(s, rules, net, NULL, &solver));
    DM_CHECK(dm_prototxt_destroy(rules));
    DM_CHECK(dm_prototxt_destroy(net));
    for (int i = 0; i < STEPS; i++) {
        give(dm_solver_net(solver), BATCH, i * BATCH, TRAIN);
        DM_CHECK(dm_solver_step(solver, 1));
    }
    dm_net *test = dm_solver_test_net(solver, 0);
    give(test, TESTS, TRAIN, TRAIN + TESTS);
    DM_CHECK(dm_net_forward(test, NULL));
    DM_CHECK(dm_net_output(test, 0, NULL, NULL, &accuracy)); /* by name: accuracy, loss */
    printf("%d workers, %.1f %% of %d images right\n", dm_workers(s), 100 * accuracy, TESTS);
    DM_CHECK(dm_solver_close(solver));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return accuracy >= 0.85 ? 0 : 1;
}
