/* InnerProduct with transposed weights, or another axis than 1: the bottom's elements in Caffe's order are rows
 * of inputs, those of the top rows of outputs. Weights are as in files, so that a layer can use those of
 * another transposed. Scratch: the rows of the bottom, of the top and of both gradients. */
#include "layers/layers.h"

#include <string.h>

enum { X = 0, Y = 2, DY = 4, DX = 6 };

/* extra[0]: it is such a layer; extra[1]: its weights are transposed. */
static bool transposed(const nn_layer *l)
{
    return l->extra[1] != 0;
}

bool nn_inner_by_rows(const nn_layer *l)
{
    return strcmp(l->type->name, "InnerProduct") == 0 && l->extra[0] != 0;
}

dm_status nn_inner_rows_setup(nn_layer *l, int axis, bool transpose, int outputs)
{
    const nn_blob *b = l->bottom[0];
    nn_param *weight = NULL, *bias = NULL;
    int64_t top[DM_MAX_DIMS], inputs = 1;
    l->extra[0] = 1;
    l->extra[1] = transpose;
    for (int d = axis; d < b->ndim; d++) {
        inputs *= b->shape[d];
    }
    memcpy(top, b->shape, sizeof top);
    top[axis] = outputs;
    const int64_t shape[2] = {transposed(l) ? inputs : outputs, transposed(l) ? outputs : inputs};
    dm_status status = nn_top_shape(l, 0, axis + 1, top);
    status = status == DM_OK ? nn_new_param(l, 2, shape, nn_sub(l->own, "weight_filler"), &weight) : status;
    if (status == DM_OK) {
        weight->rounds = true;
        status = nn_bias_param(l, outputs, &bias);
    }
    return status;
}

dm_status nn_inner_rows_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    const int64_t rows = y->count / y->shape[y->ndim - 1];
    dm_status status = nn_matrix(l, X, x, x->data, rows, false);
    status = status == DM_OK ? nn_matrix(l, Y, y, y->data, rows, false) : status;
    status = status == DM_OK && y->diff.id ? nn_matrix(l, DY, y, y->diff, rows, false) : status;
    return status == DM_OK && l->down[0] ? nn_matrix(l, DX, x, x->diff, rows, true) : status;
}

/* Transposed, the products are those of the gradient by the samples, and the other way round. */
dm_status nn_inner_rows_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const dm_array x = l->scratch[X], y = l->scratch[Y], w = nn_param_used(l, 0);
    dm_status status = nn_matrix_read(l, X, l->bottom[0], l->bottom[0]->data);
    if (status == DM_OK && transposed(l)) {
        status = dm_inner_backward_data(s, l->net->slices, x, w, y);
        status = status == DM_OK && l->params > 1 ? dm_axpby(s, 1, nn_bias_of(l), 1, y) : status;
    } else if (status == DM_OK) {
        status = dm_inner_forward(s, l->net->slices, x, w, nn_bias_of(l), y);
    }
    return status == DM_OK ? nn_matrix_write(l, Y, l->top[0], l->top[0]->data) : status;
}

dm_status nn_inner_rows_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const int slices = l->net->slices;
    const dm_array x = l->scratch[X], dy = l->scratch[DY], dx = l->scratch[DX], w = nn_param_used(l, 0);
    const bool turn = transposed(l);
    dm_status status = nn_matrix_read(l, DY, l->top[0], l->top[0]->diff);
    if (status == DM_OK) {
        status = nn_inner_weights(l, slices, turn ? dy : x, turn ? x : dy, nn_param_beta(l, 0),
                                  l->param[0]->diff, DM_NO_ARRAY);
    }
    if (status == DM_OK && l->params > 1) {
        status = dm_channel_sums(s, slices, 1, dy, DM_NO_ARRAY, nn_param_beta(l, 1), nn_bias_diff(l));
    }
    if (status != DM_OK || !l->down[0]) {
        return status;
    }
    status = turn ? dm_inner_forward(s, slices, dy, w, DM_NO_ARRAY, dx)
                  : dm_inner_backward_data(s, slices, dy, w, dx);
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0, status == DM_OK ? nn_matrix_write(l, DX, l->bottom[0], down) : status);
}
