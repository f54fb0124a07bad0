/* Layers that choose by index: Embed, BatchReindex, ArgMax. */
#include "layers/layers.h"

#include <string.h>

static const int to_caffe[] = {0, 3, 1, 2};

/* Indices come as floats: here they are whole numbers, on all workers. */
static dm_status index_array(nn_layer *l, int i, int64_t count)
{
    dm_layout everywhere = dm_layout_replicated(l->net->session);
    return dm_array_create(l->net->session, DM_I32, 1, &count, &everywhere, &l->scratch[i]);
}

static dm_status read_indices(nn_layer *l, dm_array from, int64_t count, int to)
{
    dm_array flat = DM_NO_ARRAY;
    dm_status status = dm_array_reshape(l->net->session, from, 1, &count, &flat);
    status = status == DM_OK ? dm_copy(l->net->session, flat, l->scratch[to]) : status;
    dm_status end = dm_array_destroy(l->net->session, flat);
    return status == DM_OK ? end : status;
}

/* --- Embed: row i of the weights for each index i. An index that is no row is an error. */
dm_status nn_embed_setup(nn_layer *l)
{
    static const char E[] = "EmbedParameter";
    const nn_blob *x = l->bottom[0];
    int64_t rows = nn_int(l->own, E, "input_dim"), n = nn_int(l->own, E, "num_output"), shape[DM_MAX_DIMS];
    nn_param *p = NULL;
    if (rows < 1 || n < 1 || rows > INT32_MAX) {
        return nn_layer_fail(l, "embed_param", DM_ERR_FORMAT,
                             "has input_dim %lld and num_output %lld; both must be at least 1", (long long)rows,
                             (long long)n);
    }
    if (x->ndim >= DM_MAX_DIMS) {
        return nn_layer_fail(l, "bottom", DM_ERR_UNSUPPORTED,
                             "reads '%s' of %d dims: its top, with one dim more, would have more than %d",
                             x->name, x->ndim, DM_MAX_DIMS);
    }
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim] = n;
    dm_status status = nn_top_shape(l, 0, x->ndim + 1, shape);
    status = status == DM_OK ? nn_new_param(l, 2, (int64_t[]){rows, n}, nn_sub(l->own, "weight_filler"), &p)
                             : status;
    status =
        status == DM_OK && nn_biased(l, E) ? nn_new_param(l, 1, &n, nn_sub(l->own, "bias_filler"), &p) : status;
    return status == DM_OK ? nn_wire_refuse(l) : status;
}

/* Scratch: indices; the rows in f32, as the weights are, in nets of another type; rows of the bottom, of the
 * top and of its gradient in Caffe's order. */
enum { INDEX = 0, WIDE = 1, FROM = 2, ROWS = 4, DIFF = 6 };

dm_status nn_embed_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    int64_t shape[2] = {x->count, l->param[0]->shape[1]};
    dm_status status = index_array(l, INDEX, shape[0]);
    status = status == DM_OK ? nn_matrix(l, FROM, x, x->data, shape[0], false) : status;
    status = status == DM_OK ? nn_matrix(l, ROWS, y, y->data, shape[0], false) : status;
    status = status == DM_OK && y->diff.id ? nn_matrix(l, DIFF, y, y->diff, shape[0], false) : status;
    return status == DM_OK && l->net->type != DM_F32 ? nn_scratch(l, WIDE, false, 2, shape) : status;
}

dm_status nn_embed_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_status status = nn_matrix_read(l, FROM, x, x->data);
    status = status == DM_OK ? read_indices(l, l->scratch[FROM], x->count, INDEX) : status;
    dm_array wide = l->scratch[WIDE], rows = wide.id ? wide : l->scratch[ROWS];
    status = status == DM_OK ? dm_take(s, l->param[0]->data, l->scratch[INDEX], 0, DM_RAISE, rows) : status;
    status = status == DM_OK && wide.id ? dm_copy(s, wide, l->scratch[ROWS]) : status;
    status = status == DM_OK && l->params > 1 ? dm_axpby(s, 1, l->param[1]->data, 1, l->scratch[ROWS]) : status;
    return status == DM_OK ? nn_matrix_write(l, ROWS, y, y->data) : status;
}

dm_status nn_embed_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const nn_blob *y = l->top[0];
    dm_status status = nn_matrix_read(l, DIFF, y, y->diff);
    status = status == DM_OK && nn_param_beta(l, 0) == 0 ? dm_fill(s, l->param[0]->diff, 0) : status;
    dm_array wide = l->scratch[WIDE], rows = wide.id ? wide : l->scratch[DIFF], diff = DM_NO_ARRAY;
    status = status == DM_OK && wide.id ? dm_copy(s, l->scratch[DIFF], wide) : status;
    status =
        status == DM_OK ? dm_scatter_add(s, l->param[0]->diff, l->scratch[INDEX], rows, 0, DM_CLIP) : status;
    if (status == DM_OK && l->params > 1) {
        /* the outputs last, also of images of one channel, which have no copy */
        const dm_array from = l->scratch[DIFF + 1].id ? l->scratch[DIFF + 1] : y->diff;
        status = dm_array_reshape(s, from, y->ndim, y->shape, &diff);
        status = status == DM_OK ? dm_channel_sums(s, l->net->slices, 1, diff, DM_NO_ARRAY, nn_param_beta(l, 1),
                                                   l->param[1]->diff)
                                 : status;
        dm_status end = dm_array_destroy(s, diff);
        return status == DM_OK ? end : status;
    }
    return status;
}

/* --- BatchReindex: the samples that the second bottom names. */
dm_status nn_batch_reindex_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t shape[DM_MAX_DIMS];
    if (l->bottom[1]->ndim != 1) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads indices '%s' of %d dims; they must have 1",
                             l->bottom[1]->name, l->bottom[1]->ndim);
    }
    memcpy(shape, x->shape, sizeof shape);
    shape[0] = l->bottom[1]->count;
    return nn_top_shape(l, 0, x->ndim, shape);
}

/* Scratch: indices; in nets of 16 bits, where the top has another type than the bottom, what is taken, and
 * then its gradient. */
enum { TAKEN = 1 };

dm_status nn_batch_reindex_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_array_info of[2] = {{.size = sizeof *of}, {.size = sizeof *of}};
    dm_status status = index_array(l, 0, l->bottom[1]->count);
    status = status == DM_OK ? dm_array_query(l->net->session, x->data, &of[0]) : status;
    status = status == DM_OK ? dm_array_query(l->net->session, y->data, &of[1]) : status;
    return status == DM_OK && of[0].dtype != of[1].dtype
               ? nn_blob_array(l->net, y, of[0].dtype, &l->scratch[TAKEN])
               : status;
}

dm_status nn_batch_reindex_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_array y = l->top[0]->data, taken = l->scratch[TAKEN].id ? l->scratch[TAKEN] : y;
    dm_status status = read_indices(l, l->bottom[1]->data, l->bottom[1]->count, 0);
    status = status == DM_OK ? dm_take(s, l->bottom[0]->data, l->scratch[0], 0, DM_RAISE, taken) : status;
    return status == DM_OK && taken.id != y.id ? dm_copy(s, taken, y) : status;
}

dm_status nn_batch_reindex_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_session *s = l->net->session;
    dm_array down = nn_down(l, 0), diff = l->top[0]->diff,
             given = l->scratch[TAKEN].id ? l->scratch[TAKEN] : diff;
    dm_status status = dm_fill(s, down, 0);
    status = status == DM_OK && given.id != diff.id ? dm_copy(s, diff, given) : status;
    return nn_down_done(l, 0,
                        status == DM_OK ? dm_scatter_add(s, down, l->scratch[0], given, 0, DM_CLIP) : status);
}

/* --- ArgMax: of equal elements the first; Caffe takes the last. Scratch: values, indices, the bottom in
 * Caffe's order, views of it as rows and of both results as images or rows. */
dm_status nn_argmax_setup(nn_layer *l)
{
    static const char A[] = "ArgMaxParameter";
    const nn_blob *x = l->bottom[0];
    bool along = nn_has(l->own, "axis");
    int64_t k = nn_int(l->own, A, "top_k"), shape[DM_MAX_DIMS], most = x->count / x->shape[0];
    l->extra[0] = nn_int(l->own, A, "out_max_val") != 0;
    l->extra[1] = (double)k;
    l->u.dim = -1;
    dm_status status = along ? nn_axis(l, "axis", x->ndim, &l->u.dim) : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    most = along ? x->shape[l->u.dim] : most;
    if (k < 1 || k > most) {
        return nn_layer_fail(l, "top_k", DM_ERR_FORMAT, "has top_k %lld of %lld elements", (long long)k,
                             (long long)most);
    }
    if (along) {
        memcpy(shape, x->shape, sizeof shape);
        shape[l->u.dim] = k;
        return nn_top_shape(l, 0, x->ndim, shape);
    }
    int ndim = x->ndim < 3 ? 3 : x->ndim;
    for (int d = 3; d < ndim; d++) {
        shape[d] = 1;
    }
    shape[0] = x->shape[0];
    shape[1] = l->extra[0] != 0 ? 2 : 1;
    shape[2] = k;
    return nn_top_shape(l, 0, ndim, shape);
}

dm_status nn_argmax_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_session *s = l->net->session;
    int64_t shape[DM_MAX_DIMS];
    nn_blob rows = {.ndim = 2, .shape = {x->shape[0], (int64_t)l->extra[1]}}, found = l->u.dim >= 0 ? *y : rows;
    dm_status status = nn_blob_array(l->net, &found, DM_F32, &l->scratch[0]);
    status = status == DM_OK ? nn_blob_array(l->net, &found, DM_I64, &l->scratch[1]) : status;
    if (status != DM_OK || l->u.dim >= 0) {
        return status;
    }
    status = nn_scratch(l, 2, false, x->ndim, x->shape);
    rows.shape[1] = x->count / x->shape[0];
    status = status == DM_OK ? dm_array_reshape(s, l->scratch[2], 2, rows.shape, &l->scratch[3]) : status;
    for (int d = 0; d < y->ndim; d++) {
        shape[nn_array_dim(y, d)] = d == 1 ? 1 : y->shape[d];
    }
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = dm_array_reshape(s, l->scratch[i], y->ndim, shape, &l->scratch[4 + i]);
    }
    return status;
}

/* The indices, or the values behind them, to their place in the top. */
static dm_status give(nn_layer *l, dm_array from, int64_t place)
{
    const nn_blob *y = l->top[0];
    int64_t lo[DM_MAX_DIMS] = {0}, extent[DM_MAX_DIMS];
    dm_array view = DM_NO_ARRAY;
    for (int d = 0; d < y->ndim; d++) {
        extent[nn_array_dim(y, d)] = d == 1 ? 1 : y->shape[d];
    }
    lo[nn_array_dim(y, 1)] = place;
    dm_status status = dm_array_view(l->net->session, y->data, lo, extent, &view);
    status = status == DM_OK ? dm_copy(l->net->session, from, view) : status;
    dm_status end = dm_array_destroy(l->net->session, view);
    return status == DM_OK ? end : status;
}

dm_status nn_argmax_forward(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    dm_session *s = l->net->session;
    if (l->u.dim >= 0) {
        dm_status status = dm_topk(s, x->data, nn_array_dim(x, l->u.dim), 1, l->scratch[0], l->scratch[1]);
        return status == DM_OK ? dm_copy(s, l->scratch[l->extra[0] != 0 ? 0 : 1], l->top[0]->data) : status;
    }
    dm_status status =
        x->image ? dm_permute(s, x->data, to_caffe, l->scratch[2]) : dm_copy(s, x->data, l->scratch[2]);
    status = status == DM_OK ? dm_topk(s, l->scratch[3], 1, 1, l->scratch[0], l->scratch[1]) : status;
    status = status == DM_OK ? give(l, l->scratch[5], 0) : status;
    return status == DM_OK && l->extra[0] != 0 ? give(l, l->scratch[4], 1) : status;
}
