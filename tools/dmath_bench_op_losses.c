/* Losses of networks for `dmath bench`, beside plain loops: 10 classes, or targets for each score. Gradients
 * are made with a scale that takes their divisor away. Slots: 0: scores or probabilities, 1: labels or targets,
 * 2: the result. */
#include "dmath_bench_op.h"

#include <dmath/layers.h>

#include <math.h>

enum { CLASSES = 10 };

static int64_t rows_of(const tool_op *o)
{
    return DMI_MAX(o->n / CLASSES, 1);
}

/* Labels, or (targets) numbers; the result is a number, or (gradient) has the shape of the scores. */
static dm_status prepare(tool_op *o, bool targets, bool gradient)
{
    const int64_t scores[2] = {rows_of(o), CLASSES}, rows = rows_of(o);
    dm_status status = tool_op_fill(o, 0, o->dtype, 2, scores, gradient && !targets ? 0 : -2, 1);
    status = TOOL_TRY(status, targets ? tool_op_fill(o, 1, o->dtype, 2, scores, 0, 1)
                                      : tool_op_fill(o, 1, DM_I32, 1, &rows, 0, CLASSES));
    return TOOL_TRY(status, tool_op_result(o, 2, o->dtype, gradient ? 2 : 0, scores));
}

static dm_status prepare_loss(tool_op *o)
{
    return prepare(o, false, false);
}

static dm_status prepare_gradient(tool_op *o)
{
    return prepare(o, false, true);
}

static dm_status prepare_targets(tool_op *o)
{
    return prepare(o, true, false);
}

static dm_status prepare_targets_gradient(tool_op *o)
{
    return prepare(o, true, true);
}

/* Is element i that of its row's label? */
static bool is_label(const tool_op *o, int64_t i)
{
    return i % CLASSES == (int64_t)o->h[1][i / CLASSES];
}

static const dm_loss options = DM_LOSS_INIT;

static dm_status call_softmax(tool_op *o)
{
    return dm_softmax_loss(o->s, &options, o->a[0], o->a[1], DM_NO_ARRAY, o->a[2]);
}

static void plain_softmax(tool_op *o)
{
    const int64_t rows = rows_of(o);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = o->h[0] + r * CLASSES;
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += exp(x[c]);
        }
        o->want[0] += (log(sum) - x[(int64_t)o->h[1][r]]) / (double)rows;
    }
}

static dm_status call_softmax_backward(tool_op *o)
{
    return dm_softmax_loss_backward(o->s, &options, o->a[0], o->a[1], (double)rows_of(o), o->a[2]);
}

static void plain_softmax_backward(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        o->want[i] = o->h[0][i] - is_label(o, i);
    }
}

static dm_status call_sigmoid(tool_op *o)
{
    return dm_sigmoid_loss(o->s, &options, o->a[0], o->a[1], o->a[2]);
}

static void plain_sigmoid(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        const double x = o->h[0][i], t = o->h[1][i];
        o->want[0] += (t * log1p(exp(-x)) + (1 - t) * log1p(exp(x))) / (double)o->count[0];
    }
}

static dm_status call_sigmoid_backward(tool_op *o)
{
    return dm_sigmoid_loss_backward(o->s, &options, o->a[0], o->a[1], (double)o->count[0], o->a[2]);
}

static void plain_sigmoid_backward(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        o->want[i] = 1 / (1 + exp(-o->h[0][i])) - o->h[1][i];
    }
}

static dm_status call_euclidean(tool_op *o)
{
    return dm_euclidean_loss(o->s, DM_SLICES, o->a[0], o->a[1], o->a[2]);
}

static void plain_euclidean(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        const double d = o->h[0][i] - o->h[1][i];
        o->want[0] += d * d / (2 * (double)rows_of(o));
    }
}

static dm_status call_hinge(tool_op *o)
{
    return dm_hinge_loss(o->s, 1, DM_SLICES, o->a[0], o->a[1], o->a[2]);
}

static dm_status call_hinge_backward(tool_op *o)
{
    return dm_hinge_loss_backward(o->s, 1, DM_SLICES, o->a[0], o->a[1], (double)rows_of(o), o->a[2]);
}

static void plain_hinge(tool_op *o)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        const double sign = is_label(o, i) ? -1 : 1, m = fmax(0, 1 + sign * o->h[0][i]);
        if (o->count[2] > 1) {
            o->want[i] = m > 0 ? sign : 0;
        } else {
            o->want[0] += m / (double)rows_of(o);
        }
    }
}

static dm_status call_accuracy(tool_op *o)
{
    return dm_accuracy(o->s, &options, 1, o->a[0], o->a[1], o->a[2]);
}

static void plain_accuracy(tool_op *o)
{
    for (int64_t r = 0; r < rows_of(o); r++) {
        const double *x = o->h[0] + r * CLASSES;
        int larger = 0;
        for (int c = 0; c < CLASSES; c++) {
            larger += !is_label(o, r * CLASSES + c) && x[c] >= x[(int64_t)o->h[1][r]];
        }
        o->want[0] += (larger == 0) / (double)rows_of(o);
    }
}

static dm_status call_softmax_backward_by(tool_op *o)
{
    return dm_softmax_loss_backward_by(o->s, &options, o->a[0], o->a[1],
                                       tool_op_element(o, 4, (double)rows_of(o)), o->a[2]);
}

static dm_status call_sigmoid_backward_by(tool_op *o)
{
    return dm_sigmoid_loss_backward_by(o->s, &options, o->a[0], o->a[1],
                                       tool_op_element(o, 4, (double)o->count[0]), o->a[2]);
}

static dm_status call_hinge_backward_by(tool_op *o)
{
    return dm_hinge_loss_backward_by(o->s, 1, DM_SLICES, o->a[0], o->a[1],
                                     tool_op_element(o, 4, (double)rows_of(o)), o->a[2]);
}

const tool_op_row tool_ops_losses[] = {
    {"softmax_loss", "layers", prepare_loss, call_softmax, plain_softmax, NULL, NULL},
    {"softmax_loss_backward", "layers", prepare_gradient, call_softmax_backward, plain_softmax_backward, NULL,
     NULL},
    {"sigmoid_loss", "layers", prepare_targets, call_sigmoid, plain_sigmoid, NULL, NULL},
    {"sigmoid_loss_backward", "layers", prepare_targets_gradient, call_sigmoid_backward, plain_sigmoid_backward,
     NULL, NULL},
    {"euclidean_loss", "layers", prepare_targets, call_euclidean, plain_euclidean, NULL, NULL},
    {"hinge_loss", "layers", prepare_loss, call_hinge, plain_hinge, NULL, NULL},
    {"hinge_loss_backward", "layers", prepare_gradient, call_hinge_backward, plain_hinge, NULL, NULL},
    {"softmax_loss_backward_by", "layers", prepare_gradient, call_softmax_backward_by, plain_softmax_backward,
     NULL, NULL},
    {"sigmoid_loss_backward_by", "layers", prepare_targets_gradient, call_sigmoid_backward_by,
     plain_sigmoid_backward, NULL, NULL},
    {"hinge_loss_backward_by", "layers", prepare_gradient, call_hinge_backward_by, plain_hinge, NULL, NULL},
    {"accuracy", "layers", prepare_loss, call_accuracy, plain_accuracy, NULL, NULL},
    {0},
};
