/* The functions of the rows of layers.def: nn_NAME_setup, nn_NAME_forward and those that the row says it has.
 */
#ifndef NN_LAYERS_H
#define NN_LAYERS_H

#include "net/net.h"

#define DECLARE_NONE(call)
#define DECLARE_HAS(call) call
#define NN_LAYER(f, name, field, b0, b1, t0, t1, traits, grads, prepare, backward, drop)                       \
    dm_status nn_##f##_setup(nn_layer *layer);                                                                 \
    dm_status nn_##f##_forward(nn_layer *layer);                                                               \
    DECLARE_##prepare(dm_status nn_##f##_prepare(nn_layer *layer);)                                            \
        DECLARE_##backward(dm_status nn_##f##_backward(nn_layer *layer);)                                      \
            DECLARE_##drop(void nn_##f##_drop(nn_layer *layer);)
#include "layers/layers.def"
#undef NN_LAYER
#undef DECLARE_NONE
#undef DECLARE_HAS

/* --- conv.c: what layers with weights share. A field's value, which must be at least `least`. */
dm_status nn_to_int(const nn_layer *layer, const char *field, int64_t value, int least, int *out);
/* Parameter 1, a number an output, where the layer's message asks for it; its array, and that of its gradient.
 */
dm_status nn_bias_param(nn_layer *layer, int64_t outputs, nn_param **out);
/* nn_param_beta of parameter `weight`, and of `bias` (-1: none) whose gradient is made with that of the weight:
 * one factor for both. Where a layer shares one of the two, the gradient of the other becomes 0 and is added
 * to. */
dm_status nn_one_beta(nn_layer *layer, int weight, int bias, double *beta);
dm_array nn_bias_of(const nn_layer *layer);
dm_array nn_bias_diff(const nn_layer *layer);
/* --- sides.c: spatial dims of Convolution, Deconvolution and Im2col: those behind the axis, which has the
 * channels; the dims before it are the batch. */
typedef struct nn_side {
    int64_t kernel, stride, pad, dilation, from, windows; /* windows in so many elements */
} nn_side;
typedef struct nn_sides {
    int axis, spatial;
    nn_side side[DM_MAX_DIMS];
} nn_sides;
/* back: a Deconvolution, whose bottom has an element for each window, and whose top has those that they lie in.
 */
dm_status nn_sides_read(const nn_layer *layer, bool back, nn_sides *out);
/* Of element `tap` of the kernel: how many windows take it from what is no padding, the first of these, and the
 * element that this one takes. The next windows take elements `stride` further on. */
int64_t nn_side_reach(const nn_side *side, int64_t tap, int64_t *first, int64_t *element);
/* --- conv.c: reads all fields; those of the last two spatial dims go to u.conv. outputs: NULL of Im2col. */
dm_status nn_conv_fields(nn_layer *layer, bool back, nn_sides *out, int *outputs);
/* The weights, of this shape in files, and the bias. */
dm_status nn_conv_params(nn_layer *layer, int ndim, const int64_t *shape, int outputs);
/* --- conv_nd.c: a Convolution or Deconvolution for which nn_conv_is_nd is true. */
dm_status nn_conv_nd_setup(nn_layer *layer);
dm_status nn_conv_nd_prepare(nn_layer *layer);
dm_status nn_conv_nd_forward(nn_layer *layer);
dm_status nn_conv_nd_backward(nn_layer *layer);
/* --- inner_rows.c: an InnerProduct for which nn_inner_by_rows is true from its setup on. */
dm_status nn_inner_rows_setup(nn_layer *layer, int axis, bool transpose, int outputs);
dm_status nn_inner_rows_prepare(nn_layer *layer);
dm_status nn_inner_rows_forward(nn_layer *layer);
dm_status nn_inner_rows_backward(nn_layer *layer);
/* --- ranges.c: layers whose outputs are computed in ranges. By batch all workers compute each range for their
 * samples; else some do. */
typedef struct nn_range {
    int64_t first, count;               /* outputs */
    int groups;                         /* of them; 1: also a part of a group */
    nn_part read;                       /* of the bottom */
    dm_array w, bias, dw, dbias, y, dy; /* views: its weights and outputs */
    dm_array x;                         /* what it reads, where it is computed: a view */
    dm_array mine; /* its outputs where they are computed, in the backward pass the gradient by them */
    dm_array part; /* its part of the gradient by the bottom */
} nn_range;
typedef dm_status (*nn_range_call)(const nn_layer *layer, const nn_range *range);
typedef dm_status (*nn_range_sums)(const nn_layer *layer, const nn_range *range, const double *beta);
dm_status nn_ranges_prepare(nn_layer *layer); /* without ranges: nothing */
int nn_ranges_slices(const nn_layer *layer); /* for the calls of a range */
/* forward: mine = the outputs of x. */
dm_status nn_ranges_forward(nn_layer *layer, nn_range_call forward);
/* data: part = the gradient by x; weights: dw, dbias = beta[0] dw, beta[1] dbias + those by the parameters.
 * dbias may be none. */
dm_status nn_ranges_backward(nn_layer *layer, const double *beta, nn_range_call data, nn_range_sums weights);
/* --- common.c: dm_inner_backward_weights with what the net's gradients are between workers. */
dm_status nn_inner_weights(const nn_layer *layer, int slices, dm_array x, dm_array dy, double beta, dm_array dw,
                           dm_array db);
/* Tells the log that a field which is there has no effect, and why. */
void nn_say_unused(const nn_layer *layer, const nn_message *message, const char *field, const char *why);
/* Does the layer's own message want a bias? Where it does not, says so of a bias_filler: published nets have
 * such. */
bool nn_biased(const nn_layer *layer, const char *message);
/* What loss_param divides by, DM_NORMALIZE_*: normalization; else normalize, its name of before; else
 * `otherwise`. */
int nn_normalization(const nn_layer *layer, int otherwise);
/* Scratch i: rows x columns of a blob in Caffe's order. It is a view of the blob's array `a` where that has
 * this order, and `own` is false; else one of scratch i + 1, which has the blob's shape. nn_matrix_read fills
 * that from an array of the blob's, and nn_matrix_write copies it to one; where it is a view, both do nothing.
 */
dm_status nn_matrix(nn_layer *layer, int i, const nn_blob *blob, dm_array a, int64_t rows, bool own);
dm_status nn_matrix_read(const nn_layer *layer, int i, const nn_blob *blob, dm_array from);
dm_status nn_matrix_write(const nn_layer *layer, int i, const nn_blob *blob, dm_array to);
/* to = from, an array of the blob's, in Caffe's order. */
dm_status nn_in_order(const nn_layer *layer, const nn_blob *blob, dm_array from, dm_array to);
/* --- shape.c: scratch i: an array for a blob in Caffe's order, and scratch i + 1 a view of it under another
 * shape. Where dim 0 is another one there, samples lie elsewhere. */
dm_status nn_reshaped(nn_layer *layer, int i, const nn_blob *blob, int ndim, const int64_t *shape);
/* An error where a parameter learns that has no sum over slices for its gradient, which cannot travel so. */
dm_status nn_wire_refuse(const nn_layer *layer);
/* --- scores.c: scores along an axis (field axis), and a label for each vector of them, in Caffe's order. Keeps
 * the axis in extra[NN_AXIS], and arrays in another order in scratch NN_SCORES and NN_LABELS, where those of
 * the bottoms do not lie so. Behind NN_LABELS comes a view of it. */
enum { NN_AXIS = 3, NN_SCORES = 10, NN_LABELS = 11 };
/* Reads the axis, and counts the labels of a second bottom. */
dm_status nn_scores_setup(nn_layer *layer);
/* The vectors before the axis: Caffe takes each for a sample. */
int64_t nn_scores_outer(const nn_layer *layer);
/* The shape of the scores as they are read: at least two dims, the classes last. Returns the dims. */
int nn_scores_shape(const nn_layer *layer, int64_t shape[DM_MAX_DIMS]);
/* After nn_scores_setup. */
dm_status nn_scores_prepare(nn_layer *layer);
/* Scratch i: an array for all scores, or for `last` numbers a vector. */
dm_status nn_scores_scratch(nn_layer *layer, int i, int64_t last);
/* Scratch i: a view of the labels, with a last dim of 1. */
dm_status nn_scores_label_column(nn_layer *layer, int i);
/* The bottoms, or copies of them: scores in the last dim, labels in the order of their vectors. labels: NULL
 * where there are none. */
dm_status nn_scores_read(nn_layer *layer, dm_array *scores, dm_array *labels);
/* The labels of the last nn_scores_read. */
dm_array nn_scores_labels(const nn_layer *layer);
/* Between an array in the order of the first bottom and one in that order of the scores. */
dm_status nn_scores_turn(nn_layer *layer, dm_array from, dm_array out);
dm_status nn_scores_write(nn_layer *layer, dm_array from, dm_array out);
/* --- recurrent.c: what LSTM and RNN share. states: of one sample, what a step hands to the next. Keeps the
 * outputs in u.dim. Other numbers are indices of scratch arrays and parameters. */
dm_status nn_recurrent_setup(nn_layer *layer, int states);     /* checks bottoms, sets tops */
int64_t nn_recurrent_width(const nn_layer *layer, int bottom); /* numbers of a sample, in one step */
bool nn_recurrent_fixed(const nn_layer *layer); /* is there a bottom that is the same in all steps? */
dm_status nn_recurrent_prepare(nn_layer *layer, int x, int fixed);
dm_status nn_recurrent_read(nn_layer *layer, int x, int goes_on); /* inputs and signs, samples first */
dm_status nn_recurrent_down(nn_layer *layer, int x); /* the gradient of the inputs, from such an array */
/* State number `state` before the first step: a bottom, or `last`, where the pass before has ended. Where it
 * ends. */
dm_status nn_recurrent_begin(nn_layer *layer, int state, dm_array last, dm_array to);
dm_status nn_recurrent_end(nn_layer *layer, int state, dm_array last);
/* to[n, t, ...] += the fixed input times its weights; and the gradients, diff: that of `to`. sum: N x 1 x ....
 */
dm_status nn_recurrent_add_fixed(nn_layer *layer, int fixed, int weight, int sum, dm_array to);
dm_status nn_recurrent_fixed_down(nn_layer *layer, int fixed, int weight, int sum, dm_array diff);

#endif
