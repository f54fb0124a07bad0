/* What the tests of Caffe's rules share: nets with blobs that the test writes and reads, in Caffe's order. */
#ifndef RULES_H
#define RULES_H

#include "net_case.h"

#define FORCED "force_backward: true\n"
/* A blob x of this shape; a SUM of `bottom` as the loss, whose gradient is 1 everywhere. */
#define X_OF(shape) "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [" shape "] } } }\n"
#define SUM_OF(bottom)                                                                                         \
    "layer { name: 'sum' type: 'Reduction' bottom: '" bottom "' top: 'sum' loss_weight: 1 }\n"

static inline int64_t shape_of(dm_net *net, const char *blob, int64_t shape[DM_MAX_DIMS])
{
    int ndim = 0;
    int64_t count = 1;
    CHECK(dm_net_shape(net, blob, &ndim, shape));
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    return count;
}

static inline void expect_blob(dm_net *net, const char *blob, int64_t count, const double *want,
                               double tolerance)
{
    int64_t shape[DM_MAX_DIMS];
    assert_int_equal(shape_of(net, blob, shape), count);
    float *found = malloc((size_t)count * sizeof *found);
    CHECK(dm_net_read(net, blob, found));
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)found[i] - want[i]) <= tolerance * (1 + fabs(want[i])))) {
            fail_msg("'%s', element %lld: %.9g, not %.9g", blob, (long long)i, (double)found[i], want[i]);
        }
    }
    free(found);
}

/* The gradient by a blob whose array has Caffe's order: one channel, or at most two dims. */
static inline void expect_gradient(dm_net *net, const char *blob, int64_t count, const double *want,
                                   double tolerance)
{
    dm_array diff = DM_NO_ARRAY;
    CHECK(dm_net_blob(net, blob, NULL, &diff));
    assert_int_equal(count_of(diff), count);
    float *found = malloc((size_t)count * sizeof *found);
    CHECK(dm_read(session, diff, found));
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)found[i] - want[i]) <= tolerance * (1 + fabs(want[i])))) {
            fail_msg("gradient of '%s', element %lld: %.9g, not %.9g", blob, (long long)i, (double)found[i],
                     want[i]);
        }
    }
    free(found);
}

static inline void expect_number(dm_net *net, const char *blob, double want, double tolerance)
{
    expect_blob(net, blob, 1, &want, tolerance);
}

#endif
