/* Blobs and gradients in Caffe's order, and nets whose top "y" gets its gradient from the test: what tests of
 * one layer need beside loops of their own. */
#ifndef VALUES_H
#define VALUES_H

#include "rules.h"

/* Between the order of an array and Caffe's: arrays of 4 dims have the channels last. */
static inline void turn_blob(dm_array a, bool to_caffe, const float *in, float *out)
{
    dm_array_info info = {.size = sizeof info};
    CHECK(dm_array_query(session, a, &info));
    int64_t image = info.ndim == 4, c = image ? info.shape[3] : 1,
            n = image ? info.shape[1] * info.shape[2] : 1, samples = count_of(a) / (c * n);
    for (int64_t i = 0; i < samples * c * n; i++) {
        int64_t caffe = i, array = (i / (c * n) * n + i % n) * c + i / n % c;
        out[to_caffe ? caffe : array] = in[to_caffe ? array : caffe];
    }
}

static inline float *read_in_order(dm_array a)
{
    int64_t n = count_of(a);
    float *lying = malloc((size_t)n * sizeof *lying), *out = malloc((size_t)n * sizeof *out);
    CHECK(dm_read_as(session, a, lying));
    turn_blob(a, true, lying, out);
    free(lying);
    return out;
}

static inline void write_in_order(dm_array a, const float *x)
{
    float *lying = malloc((size_t)count_of(a) * sizeof *lying);
    turn_blob(a, false, x, lying);
    CHECK(dm_write_as(session, a, lying));
    free(lying);
}

static inline void same(const char *what, const float *found, const double *want, int64_t count,
                        double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)found[i] - want[i]) <= tolerance * (1 + fabs(want[i])))) {
            fail_msg("%s, element %lld: %.9g, not %.9g", what, (long long)i, (double)found[i], want[i]);
        }
    }
}

static inline void expect_array(const char *what, dm_array a, int64_t count, const double *want,
                                double tolerance)
{
    assert_int_equal(count_of(a), count);
    float *found = read_in_order(a);
    same(what, found, want, count, tolerance);
    free(found);
}

static inline void expect_down(dm_net *net, const char *blob, int64_t count, const double *want,
                               double tolerance)
{
    char what[96];
    dm_array diff = DM_NO_ARRAY;
    snprintf(what, sizeof what, "the gradient of '%s'", blob);
    CHECK(dm_net_blob(net, blob, NULL, &diff));
    expect_array(what, diff, count, want, tolerance);
}

static inline void expect_param(dm_net *net, const char *layer, int number, int64_t count, const double *want,
                                double tolerance)
{
    char what[96];
    dm_array diff = DM_NO_ARRAY;
    snprintf(what, sizeof what, "the gradient of parameter %d of '%s'", number, layer);
    CHECK(dm_net_param(net, layer, number, NULL, &diff));
    expect_array(what, diff, count, want, tolerance);
}

static inline void fill_random(float *x, int64_t n, double low, double high)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(low + (high - low) * ((double)uniform() + 1) / 2);
    }
}

static char *said; /* lines of the log of the net that was opened last */
static inline void hear(void *context, const char *line)
{
    (void)context;
    size_t old = said ? strlen(said) : 0;
    said = realloc(said, old + strlen(line) + 2);
    snprintf(said + old, strlen(line) + 2, "%s\n", line);
}

static const char *split_asked; /* of the nets that are opened */

/* own: a blob whose gradient the test gives, or NULL. The net has gradients of its data. */
static inline dm_status open_own(const char *text, int phase, const char *own, dm_net **net)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    options.phase = phase;
    options.own_loss = own;
    options.split = split_asked;
    options.log = hear;
    size_t room = strlen(text) + sizeof FORCED;
    char *whole = malloc(room);
    snprintf(whole, room, "%s%s", own ? FORCED : "", text);
    write_file("net.prototxt", whole);
    free(whole);
    free(said);
    said = NULL;
    return dm_net_open(session, "net.prototxt", &options, net);
}

static inline dm_net *with_gradient(const char *text)
{
    dm_net *net = NULL;
    CHECK(open_own(text, DM_PHASE_TRAIN, "y", &net));
    return net;
}

/* One pass with d as the gradient of y. */
static inline void pass(dm_net *net, const float *d)
{
    dm_array own = DM_NO_ARRAY;
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_own_gradient(net, "y", &own));
    write_in_order(own, d);
    CHECK(dm_net_backward(net));
}

static inline void refused(const char *text, int phase, const char *words)
{
    dm_net *net = NULL;
    if (open_own(text, phase, NULL, &net) == DM_OK) {
        CHECK(dm_net_close(net));
        fail_msg("was taken, not refused with '%s'", words);
    } else if (!strstr(dm_error_message(), words)) {
        fail_msg("'%s' does not say '%s'", dm_error_message(), words);
    }
}

#endif
