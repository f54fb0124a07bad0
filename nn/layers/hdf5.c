/* HDF5Data: rows of arrays in files that a list names; HDF5Output: bottoms to a file. */
#include "layers/layers.h"

#include "data/feed.h"
#include "data/hdf5.h"
#include "data/list.h"
#include "data/order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rows {
    int tops;
    const char *name[NN_FEED_TOPS]; /* of the array of each top */
    int64_t channels[NN_FEED_TOPS]; /* of images, which lie with the channels last; else 0 */
    char *text, **paths;            /* text: what names and paths may point to */
    int64_t files, *count; /* rows of each file */
    int64_t total, size;
    int64_t each[NN_FEED_TOPS]; /* elements of a row */
    bool shuffle;
    uint64_t seed;
    pthread_mutex_t lock; /* of the file that is in memory */
    int64_t loaded;       /* -1: none */
    float *data[NN_FEED_TOPS];
} rows;

static void close_rows(void *state)
{
    rows *r = state;
    for (int i = 0; i < NN_FEED_TOPS; i++) {
        free(r->data[i]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r->text);
    free(r->paths);
    free(r->count);
    free(r);
}

/* The arrays of file k into memory. */
static dm_status load(rows *r, int64_t k)
{
    nn_hdf5 *f = NULL;
    if (r->loaded == k) {
        return DM_OK;
    }
    dm_status status = nn_hdf5_open(r->paths[k], &f);
    r->loaded = -1;
    for (int i = 0; status == DM_OK && i < r->tops; i++) {
        int64_t n = r->count[k] * r->each[i];
        float *room = realloc(r->data[i], (size_t)(n + 1) * sizeof *room);
        r->data[i] = room ? room : r->data[i];
        status = room ? nn_hdf5_read(f, r->name[i], n, room)
                      : dm_error_no_memory("the rows of a file", (size_t)(n + 1) * sizeof *room);
    }
    r->loaded = status == DM_OK ? k : -1;
    return nn_hdf5_close(f, status);
}

/* File and row of a place in an endless sequence. Shuffled: files, and the rows of each. */
static void find(const rows *r, int64_t place, int64_t *file, int64_t *row)
{
    uint64_t seed = nn_hash(r->seed, (uint64_t)(place / r->total));
    int64_t left = place % r->total;
    for (int64_t i = 0; i < r->files; i++) {
        int64_t k = r->shuffle ? nn_shuffled(seed, r->files, i) : i;
        if (left < r->count[k]) {
            *file = k;
            *row = r->shuffle ? nn_shuffled(nn_hash(seed, (uint64_t)k), r->count[k], left) : left;
            return;
        }
        left -= r->count[k];
    }
}

/* A row in the order of the array: channels last where that has them last. */
static void put_row(int64_t channels, int64_t each, const float *in, float *out)
{
    if (channels == 0) {
        memcpy(out, in, (size_t)each * sizeof *out);
        return;
    }
    int64_t c = channels, n = each / channels;
    for (int64_t j = 0; j < c; j++) {
        for (int64_t q = 0; q < n; q++) {
            out[q * c + j] = in[j * n + q];
        }
    }
}

static dm_status make(void *state, int64_t number, const nn_rows *wanted, nn_page *page)
{
    rows *r = state;
    dm_status status = DM_OK;
    pthread_mutex_lock(&r->lock);
    for (int64_t i = 0; status == DM_OK && i < wanted->count; i++) {
        int64_t file = 0, row = 0;
        find(r, number * r->size + wanted->first + i, &file, &row);
        status = load(r, file);
        for (int t = 0; status == DM_OK && t < r->tops; t++) {
            put_row(r->channels[t], r->each[t], r->data[t] + row * r->each[t], page->top[t] + i * r->each[t]);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* --- in other processes */
static dm_status pack(const void *state, nn_pack *out)
{
    const rows *r = state;
    nn_pack_int(out, r->tops);
    nn_pack_int(out, r->files);
    nn_pack_int(out, r->total);
    nn_pack_int(out, r->size);
    nn_pack_int(out, r->shuffle);
    nn_pack_int(out, (int64_t)r->seed);
    for (int i = 0; i < r->tops; i++) {
        nn_pack_text(out, r->name[i]);
        nn_pack_int(out, r->channels[i]);
        nn_pack_int(out, r->each[i]);
    }
    for (int64_t k = 0; k < r->files; k++) {
        nn_pack_text(out, r->paths[k]);
        nn_pack_int(out, r->count[k]);
    }
    return out->missed ? dm_error_no_memory("the settings of a data layer", out->missed) : DM_OK;
}

/* All files must be there. What is in them shows when they are read. */
static dm_status check_files(const rows *r)
{
    dm_status status = DM_OK;
    for (int64_t k = 0; status == DM_OK && k < r->files; k++) {
        nn_hdf5 *f = NULL;
        status = nn_hdf5_open(r->paths[k], &f);
        status = nn_hdf5_close(f, status);
    }
    return status;
}

static dm_status unpack(nn_unpack *in, rows *r)
{
    const size_t bytes = (size_t)(in->end - in->at);
    r->text = malloc(bytes + 1);
    if (!r->text) {
        return dm_error_no_memory("the settings of a data layer", bytes + 1);
    }
    memcpy(r->text, in->at, bytes);
    nn_unpack own = {(unsigned char *)r->text, (unsigned char *)r->text + bytes, false};
    r->tops = (int)nn_unpack_int(&own);
    r->files = nn_unpack_int(&own);
    r->total = nn_unpack_int(&own);
    r->size = nn_unpack_int(&own);
    r->shuffle = nn_unpack_int(&own) != 0;
    r->seed = (uint64_t)nn_unpack_int(&own);
    for (int i = 0; i < r->tops && i < NN_FEED_TOPS; i++) {
        r->name[i] = nn_unpack_text(&own);
        r->channels[i] = nn_unpack_int(&own);
        r->each[i] = nn_unpack_int(&own);
    }
    r->paths = calloc((size_t)r->files + 1, sizeof *r->paths);
    r->count = calloc((size_t)r->files + 1, sizeof *r->count);
    if (!r->paths || !r->count) {
        return dm_error_no_memory("a list of files",
                                  ((size_t)r->files + 1) * (sizeof *r->paths + sizeof *r->count));
    }
    for (int64_t k = 0; k < r->files; k++) {
        r->paths[k] = (char *)(uintptr_t)nn_unpack_text(&own);
        r->count[k] = nn_unpack_int(&own);
    }
    return own.failed || r->tops > NN_FEED_TOPS
               ? dm_error_set(DM_ERR_FORMAT, "the settings of a data layer are not whole")
               : check_files(r);
}

static dm_status open_packed(nn_unpack *in, void **out)
{
    rows *r = calloc(1, sizeof *r);
    if (!r) {
        return dm_error_no_memory("a data layer", sizeof *r);
    }
    pthread_mutex_init(&r->lock, NULL);
    r->loaded = -1;
    dm_status status = unpack(in, r);
    if (status != DM_OK) {
        close_rows(r);
        return status;
    }
    *out = r;
    return DM_OK;
}

const nn_feed_type nn_hdf5_feed = {"rows", make, close_rows, pack, NULL, open_packed, .in_order = true};

/* --- with the layer */

/* The top gets the shape of an array of a file, with so many rows as a batch has. */
static dm_status give_shape(nn_layer *l, rows *r, int top, int ndim, const int64_t *shape, const char *path)
{
    int64_t batch[DM_MAX_DIMS];
    char text[1024];
    memcpy(batch, shape, sizeof batch);
    batch[0] = r->size;
    dm_status status = nn_top_shape(l, top, ndim, batch);
    if (status != DM_OK) {
        snprintf(text, sizeof text, "%s", dm_error_message());
        return dm_error_set(status, "%s: %s", path, text);
    }
    const nn_blob *b = l->top[top];
    r->name[top] = b->name;
    r->channels[top] = b->image ? b->shape[1] : 0;
    r->each[top] = b->count / r->size;
    return DM_OK;
}

/* The shapes of a file's arrays: all but the rows are those of the first. */
static dm_status look_at(nn_layer *l, rows *r, int64_t k)
{
    nn_hdf5 *f = NULL;
    dm_status status = nn_hdf5_open(r->paths[k], &f);
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        const nn_blob *b = l->top[i];
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        status = nn_hdf5_shape(f, b->name, &ndim, shape);
        if (status == DM_OK && (ndim < 1 || shape[0] < 1)) {
            status = dm_error_set(DM_ERR_SHAPE, "%s: '%s' has no rows", r->paths[k], b->name);
        }
        if (status == DM_OK && k == 0) {
            status = give_shape(l, r, i, ndim, shape, r->paths[k]);
        }
        if (status == DM_OK && i == 0) {
            r->count[k] = shape[0];
        }
        bool same =
            status != DM_OK || (ndim == b->ndim && shape[0] == r->count[k] &&
                                memcmp(shape + 1, b->shape + 1, (size_t)(ndim - 1) * sizeof *shape) == 0);
        if (!same) {
            status = dm_error_set(DM_ERR_SHAPE,
                                  "%s: '%s' has another shape than in the first file, or other rows than '%s'",
                                  r->paths[k], b->name, l->top[0]->name);
        }
    }
    r->total += status == DM_OK ? r->count[k] : 0;
    return nn_hdf5_close(f, status);
}

static dm_status open_rows(nn_layer *l, rows *r)
{
    const char *source = nn_string(l->own, "HDF5DataParameter", "source");
    int64_t lines = 0;
    dm_status status = nn_lines_read(source, &r->text, &r->paths, &lines);
    for (int64_t i = 0; status == DM_OK && i < lines; i++) {
        size_t n = strlen(r->paths[i]);
        while (n > 0 && (r->paths[i][n - 1] == ' ' || r->paths[i][n - 1] == '\t')) { /* Caffe reads words */
            r->paths[i][--n] = 0;
        }
        if (n > 0) {
            r->paths[r->files++] = r->paths[i];
        }
    }
    if (status == DM_OK && r->files == 0) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: lists no files", source);
    }
    if (status == DM_OK && !(r->count = calloc((size_t)r->files, sizeof *r->count))) {
        status = dm_error_no_memory("a list of files", (size_t)r->files * sizeof *r->count);
    }
    for (int64_t k = 0; status == DM_OK && k < r->files; k++) {
        status = look_at(l, r, k);
    }
    return status == DM_OK ? status
                           : nn_layer_fail(l, "source", status, "cannot read its data: %s", dm_error_message());
}

dm_status nn_hdf5_data_setup(nn_layer *l)
{
    static const char H[] = "HDF5DataParameter";
    int64_t size = nn_int(l->own, H, "batch_size");
    if (!nn_has(l->own, "source") || size < 1) {
        return nn_layer_fail(l, "hdf5_data_param", DM_ERR_FORMAT, "needs a source and a batch_size");
    }
    if (nn_has(l->message, "transform_param")) {
        return nn_layer_fail(l, "transform_param", DM_ERR_UNSUPPORTED,
                             "has transform_param, which has no effect on HDF5Data");
    }
    if (l->tops > NN_FEED_TOPS) {
        return nn_layer_fail(l, "top", DM_ERR_LIMIT, "has %d tops, more than %d", l->tops, NN_FEED_TOPS);
    }
    rows *r = calloc(1, sizeof *r);
    if (!r) {
        return dm_error_no_memory("a data layer", sizeof *r);
    }
    pthread_mutex_init(&r->lock, NULL);
    r->tops = l->tops;
    r->size = size;
    r->shuffle = nn_int(l->own, H, "shuffle") != 0 || (l->net->shuffle && l->net->phase == NN_TRAIN);
    r->seed = nn_hash(l->net->seed, (uint64_t)l->index + 2000003);
    r->loaded = -1;
    dm_status status = open_rows(l, r);
    if (status != DM_OK) {
        close_rows(r);
        return status;
    }
    nn_feed *feed = NULL;
    status = nn_feed_open(l, &nn_hdf5_feed, r, NULL, &feed);
    l->u.state = status == DM_OK ? feed : NULL;
    return status;
}

dm_status nn_hdf5_data_forward(nn_layer *l)
{
    return nn_feed_next(l->u.state);
}

void nn_hdf5_data_drop(nn_layer *l)
{
    nn_feed_close(l->u.state);
}

/* --- HDF5Output: `data` and `label`, the rows of all passes one after another. The file has its name when the
 * net ends. */
dm_status nn_hdf5_output_setup(nn_layer *l)
{
    nn_hdf5 *f = NULL;
    if (!nn_has(l->own, "file_name")) {
        return nn_layer_fail(l, "hdf5_output_param", DM_ERR_FORMAT, "needs a file_name");
    }
    dm_status status = nn_hdf5_create(nn_string(l->own, "HDF5OutputParameter", "file_name"), &f);
    if (status != DM_OK) {
        return nn_layer_fail(l, "file_name", status, "cannot write its file: %s", dm_error_message());
    }
    l->u.state = f;
    return DM_OK;
}

dm_status nn_hdf5_output_forward(nn_layer *l)
{
    static const char *const names[] = {"data", "label"};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        const nn_blob *b = l->bottom[i];
        float *elements = malloc((size_t)b->count * sizeof *elements);
        status = elements ? nn_blob_read(l->net, b, elements)
                          : dm_error_no_memory("the elements of a blob", (size_t)b->count * sizeof *elements);
        status = status == DM_OK ? nn_hdf5_append(l->u.state, names[i], b->ndim, b->shape, elements) : status;
        free(elements);
    }
    return status;
}

void nn_hdf5_output_drop(nn_layer *l)
{
    dm_status status = l->net->pass > 0 ? DM_OK : DM_ERR_STATE; /* no pass: an old file stays */
    if (nn_hdf5_close(l->u.state, status) != DM_OK && status == DM_OK) {
        nn_log(l->net, "layer '%s': its file is lost: %s", l->name, dm_error_message());
    }
}
