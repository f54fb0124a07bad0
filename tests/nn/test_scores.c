/* Losses, Softmax and Accuracy along any axis, with labels and targets of other dims than the scores. Values
 * and gradients against loops in f64 over Caffe's order, on 1, 2, 3, 5 and 8 workers with the same bits; 7
 * samples in 4 slices. */
#include "weighed_case.h"

static float labels[MOST];

/* --- Softmax, SoftmaxWithLoss, Accuracy along an axis */
static const struct {
    shape x;
    int axis;
    shape labels;
} score_cases[] = {
    {{2, {7, 4}}, 1, {1, {7}}},
    {{3, {7, 5, 3}}, 1, {2, {7, 3}}},
    {{3, {7, 5, 3}}, -1, {2, {7, 5}}},
    {{3, {7, 3, 5}}, 2, {3, {7, 3, 1}}},
    {{4, {7, 4, 3, 2}}, 1, {3, {7, 3, 2}}},
    {{4, {7, 4, 3, 2}}, -3, {4, {7, 1, 3, 2}}},
    {{4, {7, 4, 3, 2}}, 2, {3, {7, 4, 2}}},
    {{4, {7, 4, 3, 2}}, 2, {4, {7, 4, 1, 2}}}, /* labels that do not lie in Caffe's order */
    {{4, {7, 4, 2, 3}}, 3, {4, {7, 4, 2, 1}}},
    {{4, {7, 4, 2, 3}}, -1, {3, {7, 4, 2}}},
    {{4, {7, 4, 2, 3}}, 1, {4, {7, 2, 3, 1}}},
    {{5, {7, 2, 4, 3, 2}}, 2, {4, {7, 2, 3, 2}}},
    {{5, {7, 2, 4, 3, 2}}, 1, {5, {7, 1, 4, 3, 2}}},
    /* labels whose dim 0 is another one */
    {{3, {7, 5, 3}}, 2, {1, {35}}},
    {{3, {7, 5, 3}}, -1, {3, {35, 1, 1}}},
    {{3, {7, 5, 3}}, 1, {2, {3, 7}}},
    {{4, {7, 4, 3, 2}}, 1, {4, {2, 3, 7, 1}}},
    {{5, {7, 2, 4, 3, 2}}, 2, {1, {84}}},
    {{2, {7, 4}}, 1, {2, {1, 7}}},
    /* along the batch */
    {{2, {7, 4}}, 0, {1, {4}}},
    {{3, {7, 5, 3}}, 0, {2, {5, 3}}},
    {{3, {7, 5, 3}}, -3, {1, {15}}},
    {{4, {7, 4, 3, 2}}, 0, {3, {4, 3, 2}}},
    {{4, {7, 4, 3, 2}}, 0, {4, {1, 4, 3, 2}}},
    {{5, {7, 2, 4, 3, 2}}, 0, {2, {8, 6}}},
    {{1, {7}}, 0, {1, {1}}},
};

static const struct {
    const char *fields;
    bool ignores;
    enum { ALL, COUNTED, VECTORS_BEFORE, ONE } divisor;
} normal_cases[] = {
    {"", false, ALL},
    {"loss_param { ignore_label: 1 }", true, COUNTED},
    {"loss_param { ignore_label: 1 normalization: FULL }", true, ALL},
    {"loss_param { normalization: BATCH_SIZE }", false, VECTORS_BEFORE},
    {"loss_param { ignore_label: 1 normalization: BATCH_SIZE }", true, VECTORS_BEFORE},
    {"loss_param { normalization: NONE }", false, ONE},
};

/* A loss over scores x: vectors of c classes, `outer` times `inner` of them. */
enum { SCORES = COUNT(score_cases) * COUNT(normal_cases) };
typedef struct scores {
    const shape *x, *labels;
    const char *fields;
    int axis; /* as the net has it */
    int64_t outer, c, inner;
    bool ignores;
    double counted, divisor; /* labels that are not ignored; by what the loss is divided */
} scores;

static scores scores_of(int i)
{
    const int at = i / COUNT(normal_cases), kind = i % COUNT(normal_cases);
    const shape *s = &score_cases[at].x;
    const int given = score_cases[at].axis, axis = given < 0 ? given + s->ndim : given;
    return (scores){.x = s,
                    .labels = &score_cases[at].labels,
                    .fields = normal_cases[kind].fields,
                    .axis = given,
                    .outer = product(s, 0, axis),
                    .c = s->at[axis],
                    .inner = product(s, axis + 1, s->ndim),
                    .ignores = normal_cases[kind].ignores};
}

/* Labels of all vectors, and what follows from them. */
static void write_labels(dm_net *net, int i, scores *v)
{
    const int64_t vectors = v->outer * v->inner;
    v->counted = 0;
    for (int64_t k = 0; k < vectors; k++) {
        labels[k] = (float)((int)(fabsf(uniform()) * 1000) % (int)v->c);
        v->counted += !v->ignores || labels[k] != 1;
    }
    CHECK(dm_net_write(net, "l", labels));
    const double divisors[] = {(double)vectors, fmax(1, v->counted), (double)v->outer, 1};
    v->divisor = divisors[normal_cases[i % COUNT(normal_cases)].divisor];
}

static void test_scores(void **state)
{
    (void)state;
    for (int i = 0; i < SCORES; i++) {
        scores v = scores_of(i);
        const shape *s = v.x;
        const int64_t c = v.c, inner = v.inner, vectors = v.outer * v.inner;
        const bool second = i % 2 == 0;
        char layers[2048], more[256] = "", what[160], text[96];
        double loss = 0, hits = 0, hits_of[7] = {0}, labels_of[7] = {0};
        snprintf(what, sizeof what, "scores of [%s] along %d, '%s'", dims(s, text), v.axis, v.fields);
        input(more, sizeof more, "l", v.labels);
        snprintf(
            layers, sizeof layers,
            "layer { name: 'p' type: 'Softmax' bottom: 'x' top: 'p' softmax_param { axis: %d } }\n" WEIGHED(
                "p") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['x', 'l'] top: 'loss' %s "
                     "loss_weight: 3 %s\n"
                     " propagate_down: [true, false] softmax_param { axis: %d } %s }\n"
                     "layer { name: 'a' type: 'Accuracy' bottom: ['x', 'l'] top: ['a', 'each'] accuracy_param "
                     "{ axis: %d top_k: 2 %s } }\n",
            v.axis, second ? "top: 'prob'" : "", second ? "loss_weight: 0" : "", v.axis, v.fields, v.axis,
            v.ignores ? "ignore_label: 1" : "");
        dm_net *net = open_net(more, layers, s, s, DM_PHASE_TRAIN);
        write_labels(net, i, &v);
        for (int64_t k = 0; k < vectors; k++) {
            const int64_t at = k / inner * c * inner + k % inner;
            const int label = (int)labels[k];
            const bool ignored = v.ignores && label == 1;
            double sum = 0, dot = 0;
            int above = 0;
            for (int64_t j = 0; j < c; j++) {
                sum += exp((double)x[at + j * inner]);
                above += j != label && x[at + j * inner] >= x[at + label * inner];
            }
            for (int64_t j = 0; j < c; j++) {
                y[at + j * inner] = exp((double)x[at + j * inner]) / sum;
                dot += y[at + j * inner] * (double)w[at + j * inner];
            }
            for (int64_t j = 0; j < c; j++) {
                const double p = y[at + j * inner];
                dx[at + j * inner] =
                    p * ((double)w[at + j * inner] - dot) + (ignored ? 0 : 3 * (p - (j == label)) / v.divisor);
            }
            loss -= ignored ? 0 : log(y[at + label * inner]) / v.divisor;
            hits += !ignored && above < 2;
            hits_of[label] += !ignored && above < 2;
            labels_of[label] += !ignored;
        }
        for (int64_t j = 0; j < c; j++) {
            hits_of[j] /= fmax(1, labels_of[j]);
        }
        run(net);
        hits /= fmax(1, v.counted);
        expect_values(net, what, "p", y, elements(s));
        if (second) {
            expect_values(net, what, "prob", y, elements(s));
        }
        expect_values(net, what, "loss", &loss, 1);
        expect_values(net, what, "a", &hits, 1);
        expect_values(net, what, "each", hits_of, c);
        expect_diff(net, what, "x", s, dx);
        CHECK(dm_net_close(net));
    }
}

/* InfogainLoss along an axis; its matrix is a bottom of some shape. */
static void test_infogain(void **state)
{
    (void)state;
    for (int i = 0; i < SCORES; i++) {
        scores v = scores_of(i);
        const shape *s = v.x;
        const int64_t c = v.c, inner = v.inner, vectors = v.outer * v.inner;
        const shape matrices[] = {{2, {c, c}}, {1, {c * c}}, {4, {1, c, c, 1}}};
        char layers[1024], more[512] = "", what[160], text[96];
        float gains[49];
        double loss = 0;
        snprintf(what, sizeof what, "gains of [%s] along %d, '%s'", dims(s, text), v.axis, v.fields);
        input(more, sizeof more, "l", v.labels);
        input(more, sizeof more, "h", &matrices[i % 3]);
        snprintf(layers, sizeof layers,
                 "layer { name: 'quiet' type: 'Silence' bottom: 'w' }\n"
                 "layer { name: 'loss' type: 'InfogainLoss' bottom: ['x', 'l', 'h'] top: ['loss', 'prob'] "
                 "loss_weight: [3, 0]\n"
                 "propagate_down: [true, false, false] infogain_loss_param { axis: %d } %s }\n",
                 v.axis, v.fields);
        dm_net *net = open_net(more, layers, s, s, DM_PHASE_TRAIN);
        fill(gains, c * c);
        CHECK(dm_net_write(net, "h", gains));
        write_labels(net, i, &v);
        for (int64_t k = 0; k < vectors; k++) {
            const int64_t at = k / inner * c * inner + k % inner;
            const float *row = gains + (int)labels[k] * c;
            const bool ignored = v.ignores && labels[k] == 1;
            double sum = 0, all = 0;
            for (int64_t j = 0; j < c; j++) {
                sum += exp((double)x[at + j * inner]);
                all += (double)row[j];
            }
            for (int64_t j = 0; j < c; j++) {
                const double p = exp((double)x[at + j * inner]) / sum;
                y[at + j * inner] = p;
                loss -= ignored ? 0 : (double)row[j] * log(p) / v.divisor;
                dx[at + j * inner] = ignored ? 0 : 3 * (p * all - (double)row[j]) / v.divisor;
            }
        }
        run(net);
        expect_values(net, what, "prob", y, elements(s));
        expect_values(net, what, "loss", &loss, 1);
        expect_diff(net, what, "x", s, dx);
        CHECK(dm_net_close(net));
    }
}

/* --- losses of scores of any dims, and targets of others */
static const struct {
    shape x, targets;
} target_cases[] = {
    {{1, {7}}, {1, {7}}},
    {{3, {7, 3, 5}}, {3, {7, 3, 5}}},
    {{5, {7, 2, 3, 2, 2}}, {5, {7, 2, 3, 2, 2}}},
    {{4, {7, 3, 2, 2}}, {4, {7, 3, 2, 2}}},
    {{2, {7, 6}}, {4, {7, 6, 1, 1}}},
    {{2, {7, 12}}, {4, {7, 3, 2, 2}}},
    {{4, {7, 3, 2, 2}}, {2, {7, 12}}},
    {{4, {7, 3, 2, 2}}, {4, {7, 2, 3, 2}}},
    {{3, {7, 3, 4}}, {3, {7, 4, 3}}},
    {{1, {7}}, {2, {7, 1}}},
};

/* EuclideanLoss: both get gradients. */
static void test_euclidean_loss(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(target_cases); i++) {
        const shape *s = &target_cases[i].x, *st = &target_cases[i].targets;
        char what[256], a[96], b[96];
        double loss = 0;
        snprintf(what, sizeof what, "Euclidean loss of [%s] and [%s]", dims(s, a), dims(st, b));
        dm_net *net = open_net("",
                               "layer { name: 'loss' type: 'EuclideanLoss' bottom: ['x', 'w'] top: 'loss' "
                               "loss_weight: 3 }\n",
                               s, st, DM_PHASE_TRAIN);
        for (int64_t k = 0; k < elements(s); k++) {
            const double d = (double)x[k] - (double)w[k];
            loss += d * d / 14;
            dx[k] = 3 * d / 7;
            y[k] = -dx[k];
        }
        run(net);
        expect_values(net, what, "loss", &loss, 1);
        expect_diff(net, what, "x", s, dx);
        expect_diff(net, what, "w", st, y);
        CHECK(dm_net_close(net));
    }
}

/* SigmoidCrossEntropyLoss: divided by the samples. */
static void test_sigmoid_loss(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(target_cases); i++) {
        const shape *s = &target_cases[i].x;
        char what[256], a[96], b[96];
        double loss = 0;
        snprintf(what, sizeof what, "sigmoid loss of [%s] and [%s]", dims(s, a),
                 dims(&target_cases[i].targets, b));
        dm_net *net =
            open_net("",
                     "layer { name: 'loss' type: 'SigmoidCrossEntropyLoss' bottom: ['x', 'w'] top: 'loss' "
                     "propagate_down: [true, false] }\n",
                     s, &target_cases[i].targets, DM_PHASE_TRAIN);
        for (int64_t k = 0; k < elements(s); k++) {
            const double p = 1 / (1 + exp(-(double)x[k])), t = (double)w[k];
            loss -= (t * log(p) + (1 - t) * log(1 - p)) / 7;
            dx[k] = (p - t) / 7;
        }
        run(net);
        expect_values(net, what, "loss", &loss, 1);
        expect_diff(net, what, "x", s, dx);
        CHECK(dm_net_close(net));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_scores, begin_again),
        cmocka_unit_test_setup(test_infogain, begin_again),
        cmocka_unit_test_setup(test_sigmoid_loss, begin_again),
        cmocka_unit_test_setup(test_euclidean_loss, begin_again),
        cmocka_unit_test(test_all_compared),
    };
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
