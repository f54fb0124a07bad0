/* InfogainLoss: what it costs to say one class where another is right, as a matrix. */
#include "layers/layers.h"
#include "proto/wire.h"

#include <stdlib.h>

static const char L[] = "LossParameter";

enum { PROB, CHOSEN, GAIN, ROW_SUM, MATRIX, COUNTED, CLASSES, LABELS, TERMS, VALID };

/* A matrix that is a bottom, in Caffe's order, and with its rows. */
enum { GIVEN = NN_LABELS + 2, SQUARE };

static int64_t classes(const nn_layer *l)
{
    return l->bottom[0]->shape[(int)l->extra[NN_AXIS]];
}

dm_status nn_infogain_loss_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    const nn_message *m = nn_sub(l->message, "loss_param");
    dm_status status = nn_scores_setup(l);
    if (status != DM_OK) {
        return status;
    }
    const int64_t n = classes(l);
    if (l->bottoms > 2 ? l->bottom[2]->count != n * n : !nn_has(l->own, "source")) {
        return nn_layer_fail(l, "infogain_loss_param", DM_ERR_SHAPE,
                             "needs a matrix of %lld x %lld: a source, or a third bottom", (long long)n,
                             (long long)n);
    }
    l->u.dim = nn_normalization(l, DM_NORMALIZE_VALID);
    l->extra[0] = nn_has(m, "ignore_label");
    l->extra[1] = (double)nn_int(m, L, "ignore_label");
    status = nn_top_number(l, 0);
    return status == DM_OK && l->tops > 1 ? nn_top_shape(l, 1, x->ndim, x->shape) : status;
}

/* The matrix of a file, turned: rows are what is said. */
static dm_status read_matrix(nn_layer *l)
{
    const int64_t n = classes(l);
    const char *path = nn_string(l->own, "InfogainLossParameter", "source");
    nn_document *d = NULL;
    float *turned = NULL;
    dm_status status = nn_wire_read(path, "BlobProto", &d);
    if (status != DM_OK) {
        return nn_layer_fail(l, "source", status, "cannot read its matrix: %s", dm_error_message());
    }
    const nn_entry *data = NULL;
    status = nn_blob_singles(d->root, &data);
    if (status != DM_OK) {
        /* no memory */
    } else if (!data || data->count != n * n) {
        status =
            nn_layer_fail(l, "source", DM_ERR_SHAPE, "needs a matrix of %lld x %lld, which %s does not have",
                          (long long)n, (long long)n, path);
    } else if (!(turned = malloc((size_t)(n * n) * sizeof *turned))) {
        status = dm_error_no_memory("a matrix", (size_t)(n * n) * sizeof *turned);
    }
    for (int64_t i = 0; status == DM_OK && i < n * n; i++) {
        turned[i % n * n + i / n] = data->at.real32[i];
    }
    status = status == DM_OK ? dm_write(l->net->session, l->scratch[MATRIX], turned) : status;
    free(turned);
    nn_document_free(d);
    return status;
}

dm_status nn_infogain_loss_prepare(nn_layer *l)
{
    static const int wide[] = {PROB, CHOSEN, GAIN}, narrow[] = {ROW_SUM, VALID};
    const int64_t n = classes(l);
    dm_session *s = l->net->session;
    dm_layout everywhere = dm_layout_replicated(s);
    dm_status status = nn_scores_prepare(l);
    for (int i = 0; status == DM_OK && i < NN_COUNT(wide); i++) {
        status = nn_scores_scratch(l, wide[i], n);
    }
    for (int i = 0; status == DM_OK && i < NN_COUNT(narrow); i++) {
        status = nn_scores_scratch(l, narrow[i], 1);
    }
    int64_t shape[DM_MAX_DIMS], each[DM_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int ndim = nn_scores_shape(l, shape);
    each[0] = shape[0];
    status = status == DM_OK ? nn_scratch(l, TERMS, false, ndim, each) : status;
    status = status == DM_OK
                 ? dm_array_create(s, DM_F32, 2, (int64_t[]){n, n}, &everywhere, &l->scratch[MATRIX])
                 : status;
    status = status == DM_OK ? nn_scratch_everywhere(l, COUNTED, 1) : status;
    status = status == DM_OK ? nn_scratch_everywhere(l, CLASSES, n) : status;
    status = status == DM_OK ? dm_fill_arange(s, l->scratch[CLASSES], 0, 1) : status;
    status = status == DM_OK ? nn_scores_label_column(l, LABELS) : status;
    return status != DM_OK   ? status
           : l->bottoms == 2 ? read_matrix(l)
                             : nn_reshaped(l, GIVEN, l->bottom[2], 2, (int64_t[]){n, n});
}

static dm_status map(nn_layer *l, const char *call, const char *text, dm_array out)
{
    const dm_map_arg all[] = {DM_ARG("p", l->scratch[PROB]),
                              DM_ARG("r", l->scratch[GAIN]),
                              DM_ARG("q", l->scratch[ROW_SUM]),
                              DM_ARG("n", l->scratch[COUNTED]),
                              DM_ARG("c", l->scratch[CLASSES]),
                              DM_ARG("t", l->scratch[LABELS]),
                              DM_ARG("y", l->top[0]->data),
                              DM_NUMBER("i", l->extra[1]),
                              DM_NUMBER("m", 1e-20),
                              DM_NUMBER("a", l->top[0]->loss_weight)};
    nn_blob scores = {0}; /* as they are read */
    scores.ndim = nn_scores_shape(l, scores.shape);
    return call ? nn_map_rows(l, call, text, &scores, 1, NN_COUNT(all), all, out)
                : nn_map(l->net->session, text, NN_COUNT(all), all, out);
}

/* By what the loss is divided. */
static dm_status count(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    dm_session *s = l->net->session;
    dm_array column = DM_NO_ARRAY, counted = l->scratch[COUNTED];
    const int64_t places = x->count / classes(l);
    if (l->u.dim != DM_NORMALIZE_VALID || l->extra[0] == 0) {
        return dm_fill(s, counted,
                       l->u.dim == DM_NORMALIZE_NONE
                           ? 1
                           : (double)(l->u.dim == DM_NORMALIZE_SAMPLES ? nn_scores_outer(l) : places));
    }
    dm_status status = map(l, NULL, "trunc(t) != i", l->scratch[VALID]);
    status =
        status == DM_OK ? dm_array_reshape(s, l->scratch[VALID], 2, (int64_t[]){places, 1}, &column) : status;
    status = status == DM_OK ? dm_channel_sums(s, l->net->slices, 1, column, DM_NO_ARRAY, 0, counted) : status;
    dm_status end = dm_array_destroy(s, column);
    status = status == DM_OK ? map(l, NULL, "maximum(n, 1)", counted) : status;
    return status == DM_OK ? end : status;
}

/* Row by row what the matrix says of the right class: chosen times the matrix. */
static dm_status gains(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_array of[2] = {DM_NO_ARRAY, DM_NO_ARRAY};
    const int64_t shape[2] = {l->bottom[0]->count / classes(l), classes(l)};
    dm_status status =
        map(l, NULL, l->extra[0] != 0 ? "where(trunc(t) != i, trunc(t) == c, 0)" : "trunc(t) == c",
            l->scratch[CHOSEN]);
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = dm_array_reshape(s, l->scratch[i ? GAIN : CHOSEN], 2, shape, &of[i]);
    }
    status = status == DM_OK
                 ? dm_inner_forward(s, l->net->slices, of[0], l->scratch[MATRIX], DM_NO_ARRAY, of[1])
                 : status;
    dm_status end = dm_array_destroy(s, of[0]), end2 = dm_array_destroy(s, of[1]);
    return status != DM_OK ? status : end != DM_OK ? end : end2;
}

dm_status nn_infogain_loss_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    int64_t shape[DM_MAX_DIMS];
    dm_array scores = DM_NO_ARRAY, labels = DM_NO_ARRAY;
    const int last = nn_scores_shape(l, shape) - 1;
    dm_status status = nn_scores_read(l, &scores, &labels);
    status = status == DM_OK ? dm_softmax(s, scores, &last, 1, l->scratch[PROB]) : status;
    if (status == DM_OK && l->bottoms > 2) {
        status = nn_in_order(l, l->bottom[2], l->bottom[2]->data, l->scratch[GIVEN]);
        status = status == DM_OK ? dm_transpose(s, l->scratch[SQUARE], l->scratch[MATRIX]) : status;
    }
    status = status == DM_OK ? gains(l) : status;
    status = status == DM_OK ? count(l) : status;
    status = status == DM_OK ? map(l, "sum", "-r * log(maximum(p, m))", l->scratch[TERMS]) : status;
    status = status == DM_OK ? nn_sum_samples(l, 1, l->scratch[TERMS], shape[0], l->top[0]->data) : status;
    status = status == DM_OK ? map(l, NULL, "y / n", l->top[0]->data) : status;
    return status != DM_OK || l->tops == 1 ? status
           : l->scratch[NN_SCORES].id      ? nn_scores_write(l, l->scratch[PROB], l->top[1]->data)
                                           : dm_copy(s, l->scratch[PROB], l->top[1]->data);
}

dm_status nn_infogain_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_map_arg arg = DM_ARG("r", l->scratch[GAIN]);
    dm_array down = nn_down(l, 0), scores = l->scratch[NN_SCORES]; /* which nobody reads any more */
    dm_status status = dm_map(l->net->session, "sum(r, -1)", 1, &arg, l->scratch[ROW_SUM]);
    status = status == DM_OK ? map(l, NULL, "a * (p * q - r) / n", scores.id ? scores : down) : status;
    return nn_down_done(l, 0, status == DM_OK && scores.id ? nn_scores_write(l, scores, down) : status);
}
