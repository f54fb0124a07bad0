/* Filter: values and gradients against the net of the samples that pass. */
#include "net_case.h"

#define FILTERED(samples, more, from, labels)                                                                  \
    "layer { name: 'in' type: 'Input' top: 'data' top: 'label' top: 'pick' input_param { shape { dim: "        \
    "[" samples ", 2, 5, 4] } shape { dim: " samples " } shape { dim: " samples                                \
    " } } }\n" CONV("c", "data", "num_output: 3 kernel_size: 2") more IP("ip", from, "4")                      \
        SIMPLE("r", "ReLU", "ip", "ip", "")                                                                    \
            IP("j", "ip", "5") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'j' bottom: '" labels     \
                               "' top: 'loss' }\n"                                                             \
                               "layer { name: 'acc' type: 'Accuracy' bottom: 'j' bottom: '" labels             \
                               "' top: 'acc' }\n"
#define FILTER "layer { name: 'f' type: 'Filter' bottom: ['c', 'label', 'pick'] top: ['u', 'v'] }\n"

static void test_filter(void **state)
{
    enum { ALL = 6, SOME = 3, SAMPLE = 40, MOST = 512 };
    static const int chosen[SOME] = {0, 2, 3};
    static const char *const layers[] = {"c", "ip", "j"};
    static float x[ALL * SAMPLE], few[SOME * SAMPLE], w[MOST], g[2][MOST];
    float labels[ALL] = {1, 4, 0, 3, 2, 2}, some[SOME], pick[ALL] = {1, 0, -2, 0.5F, 0, 0};
    double losses[2], scores[2], norm = 0;
    (void)state;
    dm_net *nets[2] = {open_text(FILTERED("6", FILTER, "u", "v"), DM_PHASE_TRAIN), NULL};
    nets[1] = open_text(FILTERED("3", "layer { name: 'z' type: 'Silence' bottom: 'pick' }\n", "c", "label"),
                        DM_PHASE_TRAIN);
    for (int i = 0; i < ALL * SAMPLE; i++) {
        x[i] = uniform();
    }
    for (int i = 0; i < SOME; i++) {
        memcpy(few + i * SAMPLE, x + chosen[i] * SAMPLE, SAMPLE * sizeof *x);
        some[i] = labels[chosen[i]];
    }
    CHECK(dm_net_write(nets[0], "label", labels));
    CHECK(dm_net_write(nets[0], "pick", pick));
    CHECK(dm_net_write(nets[1], "data", few));
    CHECK(dm_net_write(nets[1], "label", some));
    x[SAMPLE] = 1e6F; /* of a sample that does not pass */
    CHECK(dm_net_write(nets[0], "data", x));
    for (int n = 0; n < 2; n++) {
        CHECK(dm_net_forward(nets[n], &losses[n]));
        CHECK(dm_net_backward(nets[n]));
        for (int i = 0; i < dm_net_outputs(nets[n]); i++) {
            const char *name = NULL;
            double value = 0;
            CHECK(dm_net_output(nets[n], i, &name, NULL, &value));
            scores[n] = strcmp(name, "acc") == 0 ? value : scores[n];
        }
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-6 && losses[1] > 0.1 && scores[0] == scores[1]);
    for (int i = 0; i < 2 * COUNT(layers); i++) {
        dm_array diff[2];
        for (int n = 0; n < 2; n++) {
            CHECK(dm_net_param(nets[n], layers[i / 2], i % 2, NULL, &diff[n]));
            assert_true(count_of(diff[n]) <= MOST);
            CHECK(dm_read(session, diff[n], g[n]));
        }
        for (int64_t k = 0; k < count_of(diff[0]); k++) {
            assert_true(fabsf(g[0][k] - g[1][k]) < 1e-6F);
            norm += (double)fabsf(g[1][k]);
        }
    }
    assert_true(norm > 1);
    memset(pick, 0, sizeof pick); /* nobody passes */
    CHECK(dm_net_write(nets[0], "pick", pick));
    CHECK(dm_net_forward(nets[0], &losses[0]));
    CHECK(dm_net_backward(nets[0]));
    dm_array diff;
    CHECK(dm_net_param(nets[0], "c", 0, NULL, &diff));
    CHECK(dm_read(session, diff, w));
    assert_true(losses[0] == 0 && w[0] == 0 && w[count_of(diff) - 1] == 0);
    for (int n = 0; n < 2; n++) {
        CHECK(dm_net_close(nets[n]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_filter)};
    return cmocka_run_group_tests(tests, begin, end);
}
