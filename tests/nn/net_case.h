/* What tests of nets share: a session, nets out of a text, gradients against central differences. */
#ifndef NET_CASE_H
#define NET_CASE_H

#include <dmath/dmath.h>
#include <dmath/nn.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define CHECK(call)                                                                                            \
    do {                                                                                                       \
        if ((call) != DM_OK) {                                                                                 \
            fail_msg("%s: %s", #call, dm_error_message());                                                     \
        }                                                                                                      \
    } while (0)

static dm_session *session;
static int worker_count = 3;

static inline int begin(void **state)
{
    (void)state;
    dm_config config = DM_CONFIG_INIT;
    config.workers = worker_count;
    return dm_init(&config, &session) == DM_OK ? 0 : -1;
}

static inline int end(void **state)
{
    int64_t alive = -1;
    (void)state;
    return dm_finalize(session, &alive) == DM_OK && alive == 0 ? 0 : -1;
}

/* The tests on 1, 2, 3, 5 and 8 workers: more than slices, and than samples. */
/* On so many workers, or on those counts of DMATH_TEST_WORKERS ("2,5"). */
#define run_on_workers(tests) run_tests_on_workers(tests, COUNT(tests))
static inline int run_tests_on_workers(const struct CMUnitTest *tests, int count)
{
    const char *wanted = getenv("DMATH_TEST_WORKERS");
    int failed = 0;
    for (const char *at = wanted && *wanted ? wanted : "1,2,3,5,8"; *at; at += *at == ',') {
        char name[32], *end_of_number;
        worker_count = (int)strtol(at, &end_of_number, 10);
        assert_true(worker_count > 0 && (*end_of_number == ',' || !*end_of_number));
        at = end_of_number;
        snprintf(name, sizeof name, "%d workers", worker_count);
        failed += _cmocka_run_group_tests(name, tests, (size_t)count, begin, end);
    }
    return failed;
}

static inline int begin_launched(void **state)
{
    if (begin(state) != 0) {
        return -1;
    }
    worker_count = dm_workers(session);
    return 0;
}

/* The same, or under mpirun on the workers that it has started. */
#define run_on_workers_or_ranks(tests)                                                                         \
    (getenv("OMPI_COMM_WORLD_SIZE") ? cmocka_run_group_tests(tests, begin_launched, end)                       \
                                    : run_on_workers(tests))

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static inline dm_net *open_text(const char *text, int phase)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = phase;
    write_file("net.prototxt", text);
    CHECK(dm_net_open(session, "net.prototxt", &options, &net));
    return net;
}

static uint64_t random_state = 1;
static inline float uniform(void) /* -1 to 1 */
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(random_state >> 40) / (double)(1 << 23) - 1);
}

/* --- gradients */
static inline int64_t count_of(dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    int64_t n = 1;
    CHECK(dm_array_query(session, a, &info));
    for (int d = 0; d < info.ndim; d++) {
        n *= info.shape[d];
    }
    return n;
}

/* The loss moves along a random direction of a parameter, or of an input, as its gradient says. */
static inline void check_direction(dm_net *net, const char *what, dm_array data, dm_array diff,
                                   double tolerance)
{
    int64_t n = count_of(data);
    float *x = malloc((size_t)n * sizeof *x), *g = malloc((size_t)n * sizeof *g),
          *d = malloc((size_t)n * sizeof *d);
    float *moved = malloc((size_t)n * sizeof *moved);
    double losses[2], expected = 0, square = 0, loss = 0;
    const float step = 4e-3F;
    CHECK(dm_net_forward(net, &loss));
    CHECK(dm_net_backward(net));
    CHECK(dm_read(session, data, x));
    CHECK(dm_read(session, diff, g));
    for (int64_t i = 0; i < n; i++) {
        d[i] = uniform();
        expected += (double)g[i] * (double)d[i];
        square += (double)g[i] * (double)g[i];
    }
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < n; i++) {
            moved[i] = x[i] + (k ? -step : step) * d[i];
        }
        CHECK(dm_write(session, data, moved));
        CHECK(dm_net_forward(net, &losses[k]));
    }
    CHECK(dm_write(session, data, x));
    double found = (losses[0] - losses[1]) / (2 * (double)step), scale = sqrt(square) + 1e-3;
    if (!(fabs(found - expected) <= tolerance * scale)) {
        fail_msg("%s: the loss moves by %g, its gradient says %g (length %g)", what, found, expected,
                 sqrt(square));
    }
    assert_true(square > 0);
    free(x);
    free(g);
    free(d);
    free(moved);
}

static inline void write_random(dm_net *net, const char *blob, bool labels, int classes)
{
    dm_array a;
    CHECK(dm_net_blob(net, blob, &a, NULL));
    int64_t n = count_of(a);
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = labels ? (float)((int)(fabsf(uniform()) * 1000) % classes) : uniform();
    }
    CHECK(dm_write(session, a, x));
    free(x);
}

#define IP(name, bottom, outputs)                                                                              \
    "layer { name: '" name "' type: 'InnerProduct' bottom: '" bottom "' top: '" name                           \
    "' inner_product_param { num_output: " outputs                                                             \
    " weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } }\n"
#define CONV(name, bottom, rest)                                                                               \
    "layer { name: '" name "' type: 'Convolution' bottom: '" bottom "' top: '" name                            \
    "' convolution_param { " rest                                                                              \
    " weight_filler { type: 'msra' } bias_filler { type: 'gaussian' std: 0.1 } } }\n"
#define SIMPLE(name, type, bottom, top, rest)                                                                  \
    "layer { name: '" name "' type: '" type "' bottom: '" bottom "' top: '" top "' " rest " }\n"
#define LOSS(bottom)                                                                                           \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" bottom                                            \
    "' bottom: 'label' top: 'loss' loss_weight: 3 }\n"
#define INPUTS                                                                                                 \
    "layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { shape { dim: [6, 3, 7, 6] } "     \
    "shape { dim: 6 } } }\n"

#endif
