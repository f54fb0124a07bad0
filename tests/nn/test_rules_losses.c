/* Caffe's rules for losses: by what they are divided, and what they do at the edges, values and gradients. */
#include "rules.h"

/* --- SoftmaxWithLoss: 2 samples, 3 classes, 4 places; three labels are ignored */
enum { N = 2, C = 3, P = 4 };
static const float places_labels[N * P] = {0, 2, 1, 1, 1, 0, 2, 0};

static void test_softmax_normalization(void **state)
{
    static const struct {
        const char *fields;
        bool ignores;
        double divisor;
    } cases[] = {
        {"", false, N * P},                          /* VALID: all, */
        {"loss_param { ignore_label: 1 }", true, 5}, /* or those that are not ignored */
        {"loss_param { ignore_label: 1 normalization: VALID }", true, 5},
        {"loss_param { ignore_label: 1 normalization: FULL }", true, N * P},
        {"loss_param { ignore_label: 1 normalization: BATCH_SIZE }", true, N},
        {"loss_param { ignore_label: 1 normalization: NONE }", true, 1},
        {"loss_param { ignore_label: 1 normalize: true }", true, 5}, /* the field of before normalization */
        {"loss_param { ignore_label: 1 normalize: false }", true, N},
        {"loss_param { normalize: false }", false, N},
    };
    float x[N * C * P];
    (void)state;
    for (int i = 0; i < COUNT(x); i++) {
        x[i] = 2 * uniform();
    }
    for (int i = 0; i < COUNT(cases); i++) {
        char text[1024];
        double loss = 0, gradient[N * P * C];
        snprintf(
            text, sizeof text,
            FORCED
            "layer { name: 'in' type: 'Input' top: ['x', 'l'] input_param { shape { dim: [2, 3, 2, 2] } shape "
            "{ dim: [2, "
            "1, 2, 2] } } }\n"
            "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['x', 'l'] top: 'loss' loss_weight: 3 %s }\n",
            cases[i].fields);
        dm_net *net = open_text(text, DM_PHASE_TRAIN);
        for (int s = 0; s < N * P; s++) {
            double sum = 0;
            int label = (int)places_labels[s];
            bool ignored = cases[i].ignores && label == 1;
            for (int c = 0; c < C; c++) {
                sum += exp((double)x[(s / P * C + c) * P + s % P]);
            }
            for (int c = 0; c < C; c++) {
                double p = exp((double)x[(s / P * C + c) * P + s % P]) / sum;
                loss -= c == label && !ignored ? log(p) / cases[i].divisor : 0;
                gradient[s * C + c] =
                    ignored ? 0 : 3 * (p - (c == label)) / cases[i].divisor; /* as arrays lie: channels last */
            }
        }
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "l", places_labels));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        expect_number(net, "loss", loss, 1e-5);
        expect_gradient(net, "x", N * P * C, gradient, 1e-5);
        CHECK(dm_net_close(net));
    }
}

/* A probability of 0 counts as FLT_MIN; where all labels are ignored, the divisor is 1. */
static void test_softmax_edges(void **state)
{
    static const float x[6] = {0, 200, 0, 0, 0, 0}, labels[2] = {0, 1}, ignored[2] = {1, 1};
    (void)state;
    dm_net *net = open_text("layer { name: 'in' type: 'Input' top: ['x', 'l'] input_param { shape { dim: [2, "
                            "3] } shape { dim: 2 } } }\n"
                            "layer { name: 'a' type: 'SoftmaxWithLoss' bottom: ['x', 'l'] top: 'a' }\n"
                            "layer { name: 'b' type: 'SoftmaxWithLoss' bottom: ['x', 'l'] top: 'b' loss_param "
                            "{ ignore_label: 1 } }\n",
                            DM_PHASE_TEST);
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "l", labels));
    CHECK(dm_net_forward(net, NULL));
    expect_number(net, "a", (87.336544750553108986 + log(3)) / 2, 1e-6); /* -log(2^-126) */
    CHECK(dm_net_write(net, "l", ignored));
    CHECK(dm_net_forward(net, NULL));
    expect_number(net, "b", 0, 0);
    CHECK(dm_net_close(net));
}

/* --- losses against targets */
#define TARGETS                                                                                                \
    FORCED "layer { name: 'in' type: 'Input' top: ['x', 't'] input_param { shape { dim: [2, 3] } } }\n"

static void test_targets(void **state)
{
    static const struct {
        const char *layer;
        double divisor;
        bool euclid, ignores;
    } cases[] = {
        {"type: 'EuclideanLoss'", 4, true, false},            /* 2 N */
        {"type: 'SigmoidCrossEntropyLoss'", 2, false, false}, /* N, not the elements */
        {"type: 'SigmoidCrossEntropyLoss' loss_param { ignore_label: 1 }", 2, false, true},
        {"type: 'SigmoidCrossEntropyLoss' loss_param { normalization: FULL }", 6, false, false},
        {"type: 'SigmoidCrossEntropyLoss' loss_param { normalization: VALID ignore_label: 1 }", 4, false, true},
        {"type: 'SigmoidCrossEntropyLoss' loss_param { normalize: true ignore_label: 1 }", 4, false, true},
    };
    static const float x[6] = {0.5F, -1, 2, 3, -0.25F, 1.5F}, t[6] = {1, 0, 0, 0, 1, 0};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[1024];
        double loss = 0, gradient[6];
        snprintf(text, sizeof text,
                 TARGETS
                 "layer { name: 'loss' bottom: ['x', 't'] top: 'loss' propagate_down: [true, false] %s }\n",
                 cases[i].layer);
        for (int k = 0; k < 6; k++) {
            double a = (double)x[k], b = (double)t[k], s = 1 / (1 + exp(-a));
            bool ignored = cases[i].ignores && b == 1;
            loss += cases[i].euclid ? (a - b) * (a - b) : ignored ? 0 : -(b * log(s) + (1 - b) * log(1 - s));
            gradient[k] = cases[i].euclid ? 2 * (a - b) / cases[i].divisor
                          : ignored       ? 0
                                          : (s - b) / cases[i].divisor;
        }
        dm_net *net = open_text(text, DM_PHASE_TRAIN);
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "t", t));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        expect_number(net, "loss", loss / cases[i].divisor, 1e-5);
        expect_gradient(net, "x", 6, gradient, 1e-5);
        CHECK(dm_net_close(net));
    }
}

/* Hinge losses are divided by the samples; the squared one has twice the margin as its gradient. */
static void test_hinge(void **state)
{
    static const float x[6] = {0.5F, -1, 2, 3, -0.25F, 0.5F}, labels[2] = {0, 2};
    (void)state;
    for (int norm = 1; norm <= 2; norm++) {
        char text[512];
        double loss = 0, gradient[6];
        snprintf(text, sizeof text,
                 FORCED "layer { name: 'in' type: 'Input' top: ['x', 'l'] input_param { shape { dim: [2, 3] } "
                        "shape { dim: 2 } } }\n"
                        "layer { name: 'loss' type: 'HingeLoss' bottom: ['x', 'l'] top: 'loss' "
                        "hinge_loss_param { norm: L%d } }\n",
                 norm);
        for (int k = 0; k < 6; k++) {
            double sign = k % 3 == (int)labels[k / 3] ? -1 : 1, m = fmax(0, 1 + sign * (double)x[k]);
            loss += norm == 1 ? m / 2 : m * m / 2;
            gradient[k] = norm == 1 ? (m > 0 ? sign / 2 : 0) : sign * m;
        }
        dm_net *net = open_text(text, DM_PHASE_TRAIN);
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "l", labels));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        expect_number(net, "loss", loss, 1e-6);
        expect_gradient(net, "x", 6, gradient, 1e-6);
        CHECK(dm_net_close(net));
    }
}

/* Two samples that are not alike and nearly equal: Caffe divides by the distance + 1e-4. */
static void test_contrastive(void **state)
{
    static const float x[4] = {1e-4F, 0, 3, 1}, y[4] = {0, 0, 1, 2}, alike[2] = {0, 1};
    (void)state;
    dm_net *net = open_text(
        FORCED
        "layer { name: 'in' type: 'Input' top: ['x', 'y', 'l'] input_param { shape { dim: [2, 2] } shape { "
        "dim: [2, 2] } shape { dim: 2 } } }\n"
        "layer { name: 'loss' type: 'ContrastiveLoss' bottom: ['x', 'y', 'l'] top: 'loss' "
        "propagate_down: [true, true, false] }\n",
        DM_PHASE_TRAIN);
    const double d = 1e-4, pulled = -(1 - d) / (d + 1e-4) * d / 2; /* the margin is 1 */
    const double by_x[4] = {pulled, 0, 1, -0.5}, by_y[4] = {-pulled, 0, -1, 0.5};
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "y", y));
    CHECK(dm_net_write(net, "l", alike));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    expect_number(net, "loss", ((1 - d) * (1 - d) + 5) / 4, 1e-6);
    expect_gradient(net, "x", 4, by_x, 1e-5);
    expect_gradient(net, "y", 4, by_y, 1e-5);
    CHECK(dm_net_close(net));
}

/* A probability of 0 counts as 1e-20 in MultinomialLogisticLoss. */
static void test_multinomial(void **state)
{
    static const float p[4] = {0, 1, 0.5F, 0.5F}, labels[2] = {0, 1};
    (void)state;
    dm_net *net =
        open_text("layer { name: 'in' type: 'Input' top: ['p', 'l'] input_param { shape { dim: [2, 2] } shape "
                  "{ dim: 2 } } }\n"
                  "layer { name: 'loss' type: 'MultinomialLogisticLoss' bottom: ['p', 'l'] top: 'loss' }\n",
                  DM_PHASE_TEST);
    CHECK(dm_net_write(net, "p", p));
    CHECK(dm_net_write(net, "l", labels));
    CHECK(dm_net_forward(net, NULL));
    expect_number(net, "loss", (20 * log(10) + log(2)) / 2, 1e-6);
    CHECK(dm_net_close(net));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_normalization),
        cmocka_unit_test(test_softmax_edges),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_hinge),
        cmocka_unit_test(test_contrastive),
        cmocka_unit_test(test_multinomial),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
