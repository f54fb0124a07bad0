/* Double buffering: a batch is made while the step before it runs. */
#include "data/feed.h"

#include "data/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SOON = 20, HEAR_EVERY = 8 /* batches */ };

struct nn_feed {
    nn_layer *layer;
    const nn_feed_type *type;
    void *state;
    nn_images *images;
    nn_rows rows;
    nn_ring *ring;                  /* one of the two: all rows, */
    nn_readers *readers;            /* or each worker's */
    dm_array rounded[NN_FEED_TOPS]; /* f32: what readers write of tops that have another type */
    bool said;
    int64_t next; /* the batch that the step takes next */
    double began; /* when the first batch had come */
    int64_t count, damaged;
    bool told; /* the readers' last report has been read */
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Is top i made of windows of bytes? */
static bool is_images(const nn_feed *f, int i)
{
    return i == 0 && f->images;
}

/* --- opening and closing */
static dm_status choose_reader(nn_feed *f)
{
    const nn_layer *l = f->layer;
    const nn_net *net = l->net;
    char why[512] = "";
    if (net->read != DM_READ_BY_PROGRAM) {
        dm_status status = nn_readers_open(net->session, f->type, f->state, &f->rows,
                                           net->read == DM_READ_BY_WORKERS, &f->readers, why, sizeof why);
        if (status != DM_OK) {
            return nn_layer_fail(l, "name", status, "cannot be read by the workers: %s", dm_error_message());
        }
    }
    if (f->readers) {
        nn_log(net, "layer '%s': each worker reads its own records", l->name);
        return DM_OK;
    }
    if (why[0]) {
        nn_log(net, "layer '%s': the program's process reads the records for all workers: %s", l->name, why);
    }
    return nn_ring_open(f->type, f->state, &f->rows, net->cores_taken, 1, &f->ring);
}

dm_status nn_feed_open(nn_layer *layer, const nn_feed_type *type, void *state, nn_images *images, nn_feed **out)
{
    nn_feed *f = calloc(1, sizeof *f);
    if (!f) {
        nn_images_close(images);
        type->close(state);
        return dm_error_no_memory("the batches of a data layer", sizeof *f);
    }
    f->layer = layer;
    f->type = type;
    f->state = state;
    f->images = images;
    f->rows = (nn_rows){.tops = layer->tops, .images = images != NULL, .count = layer->top[0]->shape[0]};
    for (int i = 0; i < layer->tops; i++) {
        f->rows.each[i] = layer->top[i]->count / layer->top[i]->shape[0];
    }
    dm_status status = choose_reader(f);
    if (status != DM_OK) {
        char text[2048];
        snprintf(text, sizeof text, "%s", dm_error_message());
        nn_feed_close(f);
        return dm_error_set(status, "%s", text);
    }
    *out = f;
    return DM_OK;
}

static void tell_damage(nn_feed *f, int64_t damaged, const char *first)
{
    if (damaged > 0) {
        f->damaged += damaged;
        nn_log(f->layer->net, "layer '%s': skipped %lld damaged records so far: %s", f->layer->name,
               (long long)f->damaged, first);
    }
}

/* What the workers say about the batch before. They have it when this is asked, or nearly so: the step that it
 * was for has been called since. How long they wait need not be known each time. */
static dm_status hear_readers(nn_feed *f)
{
    const bool each = f->layer->net->skip_damaged;
    int64_t damaged = 0;
    char first[512] = "";
    if (f->told || f->count == 0 || (!each && f->count % HEAR_EVERY != 0)) {
        return DM_OK;
    }
    dm_status status = nn_readers_report(f->readers, &damaged, first, sizeof first);
    if (status == DM_OK) {
        f->told = true;
        tell_damage(f, damaged, first);
    }
    return status;
}

void nn_feed_close(nn_feed *f)
{
    if (!f) {
        return;
    }
    /* The last report may have damaged records. */
    if (f->readers && f->layer->net->skip_damaged && hear_readers(f) != DM_OK) {
        nn_log(f->layer->net, "layer '%s': its last report is lost: %s", f->layer->name, dm_error_message());
    }
    nn_readers_close(f->readers);
    nn_ring_close(f->ring);
    for (int i = 0; i < NN_FEED_TOPS; i++) {
        if (f->rounded[i].id && dm_array_destroy(f->layer->net->session, f->rounded[i]) != DM_OK) {
            break; /* the session has ended, and they with it */
        }
    }
    nn_images_close(f->images);
    f->type->close(f->state);
    free(f);
}

void nn_feed_seek(nn_feed *f, int64_t batch)
{
    f->next = batch;
}

double nn_feed_waited(const nn_feed *f)
{
    return f->readers ? nn_readers_waited(f->readers) : nn_ring_waited(f->ring);
}

bool nn_feed_by_workers(const nn_feed *f)
{
    return f->readers != NULL;
}

/* Says once that steps wait for data more than half of their time. */
static void watch(nn_feed *f)
{
    double now = now_s();
    f->began = f->count == 0 ? now : f->began;
    f->count++;
    double seconds = now - f->began, waited = nn_feed_waited(f);
    if (!f->said && f->count > SOON && seconds > 1 && waited > seconds / 2) {
        f->said = true;
        nn_log(f->layer->net, "layer '%s': loading data is the slowest part: steps waited %.0f %% of %.1f s",
               f->layer->name, 100 * waited / seconds, seconds);
    }
}

/* --- a batch of this process */
static dm_status write_page(nn_feed *f, const nn_page *p)
{
    dm_session *s = f->layer->net->session;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < f->layer->tops; i++) {
        const dm_array top = f->layer->top[i]->data;
        if (is_images(f, i)) {
            dm_array windows = DM_NO_ARRAY, places = DM_NO_ARRAY;
            status = nn_images_next(f->images, &windows, &places);
            status = status == DM_OK ? dm_write(s, windows, p->windows) : status;
            status = status == DM_OK ? dm_write(s, places, p->places) : status;
            status = status == DM_OK ? nn_images_forward(f->images, top) : status;
        } else {
            status = dm_write_as(s, top, p->top[i]);
        }
    }
    return status;
}

static dm_status next_of_ring(nn_feed *f)
{
    nn_page *p = NULL;
    dm_status status = nn_ring_take(f->ring, f->next, &p);
    if (status != DM_OK) {
        return status;
    }
    watch(f);
    tell_damage(f, p->damaged, p->first);
    if (p->status != DM_OK) { /* the page stays: asked again, it says the same */
        return dm_error_set(p->status, "%s", p->error);
    }
    status = write_page(f, p);
    nn_ring_give(f->ring, p);
    f->next++;
    return status;
}

/* --- a batch of the workers */

/* The array that readers write of top i: its own where that is f32. */
static dm_status array_for(nn_feed *f, int i, dm_array *out)
{
    const nn_net *net = f->layer->net;
    const nn_blob *b = f->layer->top[i];
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(net->session, b->data, &info);
    if (status == DM_OK && info.dtype != DM_F32 && !f->rounded[i].id) {
        status = nn_blob_array(net, b, DM_F32, &f->rounded[i]);
    }
    *out = f->rounded[i].id ? f->rounded[i] : b->data;
    return status;
}

static dm_status next_of_readers(nn_feed *f)
{
    const nn_layer *l = f->layer;
    dm_array arrays[NN_READERS_ARRAYS];
    int count = 0;
    dm_status status = hear_readers(f);
    if (status != DM_OK) {
        return status;
    }
    watch(f);
    if (f->images) {
        status = nn_images_next(f->images, &arrays[0], &arrays[1]);
        count = 2;
    }
    for (int i = f->images ? 1 : 0; status == DM_OK && i < l->tops; i++) {
        status = array_for(f, i, &arrays[count++]);
    }
    status = status == DM_OK ? nn_readers_take(f->readers, f->next, count, arrays) : status;
    f->told = false;
    if (status == DM_OK && f->images) {
        status = nn_images_forward(f->images, l->top[0]->data);
    }
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = f->rounded[i].id ? dm_copy(l->net->session, f->rounded[i], l->top[i]->data) : status;
    }
    f->next++;
    return status;
}

dm_status nn_feed_next(nn_feed *f)
{
    return f->readers ? next_of_readers(f) : next_of_ring(f);
}
