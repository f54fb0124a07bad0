/* What tests of layers over many shapes share: blobs in Caffe's order, and that they have the same bits on any
 * number of workers. */
#ifndef SHAPE_CASE_H
#define SHAPE_CASE_H

#include "rules.h"

enum { MOST = 1 << 13 };

/* --- what nets make, the same bits on any number of workers */
static float *kept;
static int64_t kept_count, kept_room, next;

static inline int begin_again(void **state)
{
    (void)state;
    random_state = 7;
    return 0;
}

static inline void keep(const char *what, const float *x, int64_t count)
{
    if (worker_count == 1) {
        if (kept_count + count > kept_room) {
            kept_room = 2 * (kept_count + count);
            kept = realloc(kept, (size_t)kept_room * sizeof *kept);
            assert_non_null(kept);
        }
        memcpy(kept + kept_count, x, (size_t)count * sizeof *x);
        kept_count += count;
        return;
    }
    assert_true(next + count <= kept_count);
    if (memcmp(kept + next, x, (size_t)count * sizeof *x) != 0) {
        fail_msg("%s has other bits on %d workers than on one", what, worker_count);
    }
    next += count;
}

/* --- blobs in Caffe's order */
typedef struct shape {
    int ndim;
    int64_t at[DM_MAX_DIMS];
} shape;

static inline int64_t product(const shape *s, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++) {
        n *= s->at[d];
    }
    return n;
}

static inline int64_t elements(const shape *s)
{
    return product(s, 0, s->ndim);
}

static inline const char *dims(const shape *s, char text[96])
{
    size_t n = 0;
    *text = 0;
    for (int d = 0; d < s->ndim; d++) {
        n += (size_t)snprintf(text + n, 96 - n, "%s%lld", d ? ", " : "", (long long)s->at[d]);
    }
    return text;
}

/* Input layers make one blob each. */
static inline void input(char *text, size_t room, const char *name, const shape *s)
{
    char all[96];
    size_t n = strlen(text);
    snprintf(text + n, room - n,
             "layer { name: '%s' type: 'Input' top: '%s' input_param { shape { dim: [%s] } } }\n", name, name,
             dims(s, all));
}

/* Elements as they lie in the array, of images channels last, to Caffe's order. */
static inline void to_caffe(const shape *s, const float *lying, float *out)
{
    if (s->ndim != 4) {
        memcpy(out, lying, (size_t)elements(s) * sizeof *out);
        return;
    }
    int64_t c = s->at[1], places = s->at[2] * s->at[3];
    for (int64_t i = 0; i < elements(s); i++) {
        int64_t n = i / (c * places), channel = i / places % c, place = i % places;
        out[i] = lying[(n * places + place) * c + channel];
    }
}

static inline void expect(const char *what, const float *found, const double *want, int64_t count,
                          double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)found[i] - want[i]) <= tolerance * (1 + fabs(want[i])))) {
            fail_msg("%s, element %lld: %.9g, not %.9g", what, (long long)i, (double)found[i], want[i]);
        }
    }
    keep(what, found, count);
}

static inline void expect_values(dm_net *net, const char *what, const char *blob, const double *want,
                                 int64_t count)
{
    static float found[MOST];
    int64_t s[DM_MAX_DIMS];
    char text[512];
    assert_int_equal(shape_of(net, blob, s), count);
    CHECK(dm_net_read(net, blob, found));
    snprintf(text, sizeof text, "%s: '%s'", what, blob);
    expect(text, found, want, count, 1e-5);
}

static inline void expect_diff(dm_net *net, const char *what, const char *blob, const shape *s,
                               const double *want)
{
    static float lying[MOST], found[MOST];
    dm_array diff = DM_NO_ARRAY;
    char text[512];
    CHECK(dm_net_blob(net, blob, NULL, &diff));
    assert_int_equal(count_of(diff), elements(s));
    CHECK(dm_read(session, diff, lying));
    to_caffe(s, lying, found);
    snprintf(text, sizeof text, "%s: gradient of '%s'", what, blob);
    expect(text, found, want, elements(s), 2e-5);
}

/* A net of this text is refused, with a message that has these words. */
static inline void expect_refusal(const char *text, const char *layer, dm_status wanted, const char *words)
{
    dm_net *net = NULL;
    dm_status status = dm_net_open_text(session, text, NULL, NULL, &net);
    if (status != wanted || !strstr(dm_error_message(), words)) {
        fail_msg("%s: %d, %s", layer, (int)status, dm_error_message());
    }
    assert_null(net);
}

static inline void fill(float *x, int64_t count)
{
    assert_true(count <= MOST);
    for (int64_t i = 0; i < count; i++) {
        x[i] = 2 * uniform();
    }
}

/* All tests have run: what they made is as much as before. */
static inline void test_all_compared(void **state)
{
    (void)state;
    assert_true(worker_count == 1 || next == kept_count);
    next = 0;
}

#endif
