/* LSTM and RNN with inputs of more dims, an input that is the same in all steps, and states that the net gives
 * and gets (expose_hidden): values against loops in f64, gradients against differences of these, on 1, 2, 3, 5
 * and 8 workers with the same bits. 7 samples in 4 slices. */
#include "shape_case.h"

enum { T = 3, N = 7, H = 2, PARTS = 8 };

/* What a net computes from, one part after another: inputs, the fixed input, parameters. */
static double from[MOST];
static int64_t begins[PARTS + 1];
static float cont[T * N], states[2][N * H];

static double sigmoid(double a)
{
    return 1 / (1 + exp(-a));
}

/* rows x columns times a column, added to out. */
static void add_product(const double *m, int rows, int64_t columns, const double *v, double *out)
{
    for (int r = 0; r < rows; r++) {
        for (int64_t k = 0; k < columns; k++) {
            out[r] += m[r * columns + k] * v[k];
        }
    }
}

/* Parts: 0 inputs, 1 fixed input (may be empty), 2 weights, 3 bias, 4 weights of the fixed input, 5 of the step
 * before; of an RNN 6 weights and 7 bias of the outputs. ends: states behind the last step. */
static void reference(bool lstm, int64_t d, int64_t s, bool given, double *top, double ends[2][N * H])
{
    const int gates = lstm ? 4 * H : H;
    for (int n = 0; n < N; n++) {
        double h[H], c[H];
        for (int k = 0; k < H; k++) {
            h[k] = given ? (double)states[0][n * H + k] : 0;
            c[k] = given ? (double)states[1][n * H + k] : 0;
        }
        for (int t = 0; t < T; t++) {
            double a[4 * H], before[H];
            for (int k = 0; k < H; k++) {
                before[k] = (double)cont[t * N + n] * h[k];
            }
            for (int k = 0; k < gates; k++) {
                a[k] = from[begins[3] + k];
            }
            add_product(from + begins[2], gates, d, from + begins[0] + (t * N + n) * d, a);
            add_product(from + begins[4], gates, s, from + begins[1] + n * s, a);
            add_product(from + begins[5], gates, H, before, a);
            for (int k = 0; k < H; k++) {
                if (lstm) {
                    c[k] =
                        (double)cont[t * N + n] * sigmoid(a[H + k]) * c[k] + sigmoid(a[k]) * tanh(a[3 * H + k]);
                    h[k] = sigmoid(a[2 * H + k]) * tanh(c[k]);
                } else {
                    h[k] = tanh(a[k]);
                }
            }
            double out[H];
            for (int k = 0; k < H; k++) {
                out[k] = lstm ? h[k] : from[begins[7] + k];
            }
            if (!lstm) {
                add_product(from + begins[6], H, H, h, out);
            }
            for (int k = 0; k < H; k++) {
                top[(t * N + n) * H + k] = lstm ? out[k] : tanh(out[k]);
            }
        }
        for (int k = 0; k < H; k++) {
            ends[0][n * H + k] = h[k];
            ends[1][n * H + k] = c[k];
        }
    }
}

static double loss_of(bool lstm, int64_t d, int64_t s, bool given, const float *w)
{
    static double top[T * N * H], ends[2][N * H];
    double loss = 0;
    reference(lstm, d, s, given, top, ends);
    for (int k = 0; k < T * N * H; k++) {
        loss += top[k] * (double)w[k];
    }
    return loss;
}

static const struct {
    shape x, fixed;
    bool given;
} cases[] = {
    {{3, {T, N, 5}}, {0, {0}}, false},
    {{4, {T, N, 2, 3}}, {0, {0}}, false},
    {{5, {T, N, 2, 1, 3}}, {0, {0}}, true},
    {{3, {T, N, 5}}, {2, {N, 3}}, false},
    {{3, {T, N, 5}}, {1, {N}}, true},
    {{4, {T, N, 3, 2}}, {4, {N, 2, 1, 2}}, false},
    {{4, {T, N, 1, 4}}, {4, {N, 2, 2, 1}}, true},
    {{3, {T, N, 1}}, {3, {N, 2, 2}}, false},
};

static void run_case(bool lstm, int which)
{
    const shape *sx = &cases[which].x, *sf = &cases[which].fixed, top = {3, {T, N, H}}, one = {3, {1, N, H}};
    const bool given = cases[which].given;
    const int64_t d = product(sx, 2, sx->ndim), s = sf->ndim ? product(sf, 1, sf->ndim) : 0;
    const int gates = lstm ? 4 * H : H, held = lstm ? 2 : 1;
    const int64_t counts[PARTS] = {elements(sx), s * N,     gates * d,        gates,
                                   gates * s,    gates * H, lstm ? 0 : H * H, lstm ? 0 : H};
    char text[2048] = FORCED, what[256], all[96], more[96];
    static float x[MOST], w[T * N * H], found[MOST];
    static double want[T * N * H], ends[2][N * H], gradient[MOST];
    snprintf(what, sizeof what, "%s of [%s] and [%s]%s", lstm ? "LSTM" : "RNN", dims(sx, all), dims(sf, more),
             given ? ", states given" : "");
    input(text, sizeof text, "x", sx);
    input(text, sizeof text, "cont", &(shape){2, {T, N}});
    input(text, sizeof text, "w", &top);
    if (s) {
        input(text, sizeof text, "f", sf);
    }
    for (int i = 0; given && i < held; i++) {
        input(text, sizeof text, i ? "c0" : "h0", &one);
    }
    size_t at = strlen(text);
    snprintf(
        text + at, sizeof text - at,
        "layer { name: 'l' type: '%s' bottom: ['x', 'cont'%s%s] top: ['y'%s] recurrent_param { num_output: 2 "
        "expose_hidden: %s weight_filler { type: 'gaussian' std: 0.7 } bias_filler { type: 'gaussian' std: 0.3 "
        "} } "
        "}\nlayer { name: 'weighed' type: 'Eltwise' bottom: ['y', 'w'] top: 'weighed' eltwise_param { "
        "operation: "
        "PROD } propagate_down: [true, false] }\n" SUM_OF("weighed"),
        lstm ? "LSTM" : "RNN", s ? ", 'f'" : "",
        !given ? ""
        : lstm ? ", 'h0', 'c0'"
               : ", 'h0'",
        !given ? ""
        : lstm ? ", 'hT', 'cT'"
               : ", 'hT'",
        given ? "true" : "false");
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    begins[0] = 0;
    for (int i = 0; i < PARTS; i++) {
        begins[i + 1] = begins[i] + counts[i];
    }
    assert_true(begins[PARTS] <= MOST);
    fill(w, T * N * H);
    CHECK(dm_net_write(net, "w", w));
    for (int k = 0; k < T * N; k++) {
        cont[k] = (float)(k % 3 != 1);
    }
    CHECK(dm_net_write(net, "cont", cont));
    for (int i = 0; i < 2; i++) {
        fill(states[i], N * H);
        if (given && i < held) {
            CHECK(dm_net_write(net, i ? "c0" : "h0", states[i]));
        }
    }
    for (int i = 0, p = 0; i < PARTS; i++) {
        int ndim = 0;
        int64_t found_shape[DM_MAX_DIMS];
        if (i < 2) {
            fill(x, counts[i]);
        }
        if (i == 0 || (i == 1 && s)) {
            CHECK(dm_net_write(net, i ? "f" : "x", x));
        } else if (counts[i]) {
            CHECK(dm_net_param_read(net, "l", p++, &ndim, found_shape, x));
        }
        for (int64_t k = 0; k < counts[i]; k++) {
            from[begins[i] + k] = (double)x[k];
        }
    }
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    reference(lstm, d, s, given, want, ends);
    expect_values(net, what, "y", want, T * N * H);
    for (int i = 0; given && i < held; i++) {
        expect_values(net, what, i ? "cT" : "hT", ends[i], N * H);
    }
    for (int64_t k = 0; k < begins[PARTS]; k++) {
        const double here = from[k], step = 1e-5;
        from[k] = here + step;
        const double up = loss_of(lstm, d, s, given, w);
        from[k] = here - step;
        gradient[k] = (up - loss_of(lstm, d, s, given, w)) / (2 * step);
        from[k] = here;
    }
    expect_diff(net, what, "x", sx, gradient);
    if (s) {
        expect_diff(net, what, "f", sf, gradient + begins[1]);
    }
    for (int i = 2, p = 0; i < PARTS; i++) {
        dm_array diff = DM_NO_ARRAY;
        if (counts[i]) {
            CHECK(dm_net_param(net, "l", p++, NULL, &diff));
            assert_int_equal(count_of(diff), counts[i]);
            CHECK(dm_read(session, diff, found));
            expect(what, found, gradient + begins[i], counts[i], 2e-5);
        }
    }
    CHECK(dm_net_close(net));
}

static void test_recurrent(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        run_case(true, i);
        run_case(false, i);
    }
}

/* States that the net is given are those of each pass; without expose_hidden the last pass has left them. */
static void test_states_again(void **state)
{
    static const char text[] =
        "layer { name: 'in' type: 'Input' top: ['x', 'cont', 'h0', 'c0'] input_param { shape { dim: [1, 7, 3] "
        "} shape { "
        "dim: [1, 7] } shape { dim: [1, 7, 2] } shape { dim: [1, 7, 2] } } }\n"
        "layer { name: 'a' type: 'LSTM' bottom: ['x', 'cont'] top: 'a' param { name: 'w' } param { name: 'b' } "
        "param { "
        "name: 'r' } recurrent_param { num_output: 2 weight_filler { type: 'gaussian' std: 1 } } }\n"
        "layer { name: 'b' type: 'LSTM' bottom: ['x', 'cont', 'h0', 'c0'] top: ['b', 'h', 'c'] param { name: "
        "'w' } param "
        "{ name: 'b' } param { name: 'r' } recurrent_param { num_output: 2 expose_hidden: true } }\n";
    float x[N * 3], go_on[N], h[N * H] = {0}, c[N * H] = {0}, a[N * H], b[N * H];
    (void)state;
    dm_net *net = open_text(text, DM_PHASE_TEST);
    fill(x, N * 3);
    for (int n = 0; n < N; n++) {
        go_on[n] = 1;
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "cont", go_on));
    for (int pass = 0; pass < 3; pass++) {
        CHECK(dm_net_write(net, "h0", h));
        CHECK(dm_net_write(net, "c0", c));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_read(net, "a", a));
        CHECK(dm_net_read(net, "b", b));
        CHECK(dm_net_read(net, "h", h));
        CHECK(dm_net_read(net, "c", c));
        assert_memory_equal(a, b, sizeof a);
        assert_memory_equal(a, h, sizeof a);
    }
    CHECK(dm_net_close(net));
}

static void test_refusals(void **state)
{
    static const struct {
        const char *dims, *third, *layer;
        dm_status status;
        const char *message;
    } refused[] = {
        {"3, 7", "7, 2", "bottom: ['x', 'cont'] top: 'y' recurrent_param { num_output: 2 }", DM_ERR_SHAPE,
         "needs inputs of 3 dims or more"},
        {"3, 7, 2", "3, 7", "bottom: ['x', 'cont', 'f'] top: 'y' recurrent_param { num_output: 2 }",
         DM_ERR_SHAPE, "reads 'f', which does not have the 7 samples of 'x'"},
        {"3, 7, 2", "7, 2", "bottom: ['x', 'cont', 'f', 'f'] top: 'y' recurrent_param { num_output: 2 }",
         DM_ERR_FORMAT, "has 4 bottoms and 1 tops; it takes 2 or 3 bottoms"},
        {"3, 7, 2", "1, 7, 2",
         "bottom: ['x', 'cont', 'f', 'f'] top: 'y' recurrent_param { num_output: 2 expose_hidden: "
         "true }",
         DM_ERR_FORMAT, "it takes 4 or 5 bottoms, with an input that is the same in all steps, and 3 tops"},
        {"3, 7, 2", "1, 7, 3",
         "bottom: ['x', 'cont', 'f', 'f'] top: ['y', 'h', 'c'] recurrent_param { num_output: 2 "
         "expose_hidden: true }",
         DM_ERR_SHAPE, "reads 'f', which must be 1 x 7 x 2"},
        {"3, 7, 2", "7, 2", "bottom: ['x', 'cont'] top: 'y' recurrent_param { }", DM_ERR_FORMAT,
         "has num_output 0; it must be 1 to"},
    };
    (void)state;
    for (int i = 0; i < COUNT(refused); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: ['x', 'cont', 'f'] input_param { shape { dim: [%s] } "
                 "shape { dim: "
                 "[3, 7] } shape { dim: [%s] } } }\nlayer { name: 'it' type: 'LSTM' %s }\n",
                 refused[i].dims, refused[i].third, refused[i].layer);
        expect_refusal(text, refused[i].layer, refused[i].status, refused[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_recurrent, begin_again),
                                       cmocka_unit_test_setup(test_states_again, begin_again),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_all_compared)};
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
