/* Double buffering: a batch is made while the step before it runs. */
#include "data/feed.h"

#include "data/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON = 20, HEAR_SOON = 8, HEAR_LATE = 32 /* batches */ };
static const double NOTABLE_S = 0.001;

struct nn_feed {
    nn_layer *layer;
    const nn_feed_type *type;
    void *state;
    nn_images *images;
    nn_rows rows;
    nn_ring *ring;                  /* one of the two: all rows, */
    nn_readers *readers;            /* or each worker's */
    /* Of tops that are no windows: what a batch comes in, f32. Two take turns, so that a batch is written while
     * the step before it still reads the top. */
    dm_array come[2][NN_FEED_TOPS];
    int turn; /* which of the two has the last batch */
    bool said;
    bool ahead; /* the batch of this number is on its way to the arrays */
    int64_t ahead_batch;
    bool passed;  /* a batch on its way was not taken: the next report is not about one that was */
    int64_t next; /* the batch that the step takes next */
    double began; /* when the first batch had come */
    int64_t count, damaged;
    int64_t hear; /* the next report is read when so many have been taken */
};

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
        int64_t record[3];
        const char *not_whole = "";
        const bool whole = nn_readers_whole(f->readers, record, &not_whole);
        if (whole) {
            nn_images_whole(f->images, record);
        }
        nn_log(net, "layer '%s': each worker reads its own records%s%s", l->name,
               whole        ? ", and its GPU fetches them from the memory of their database"
               : *not_whole ? ", and copies them: "
                            : "",
               not_whole);
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
    f->hear = HEAR_SOON;
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

/* A line for each record that was left out. why: a line for each that there was room for. */
static void tell_damage(void *context, int64_t damaged, const char *why)
{
    nn_feed *f = context;
    const nn_layer *l = f->layer;
    int64_t left = damaged;
    for (; left > 0 && *why; left--) {
        const size_t n = strcspn(why, "\n");
        nn_log(l->net, "layer '%s': skipped %lld damaged records so far: %.*s", l->name,
               (long long)++f->damaged, (int)n, why);
        why += n + (why[n] == '\n');
    }
    if (left > 0) {
        f->damaged += left;
        nn_log(l->net, "layer '%s': skipped %lld damaged records so far: no room to name the last %lld",
               l->name, (long long)f->damaged, (long long)left);
    }
}

/* What the workers say about the last batch, or the one before. */
static dm_status hear_readers(nn_feed *f, bool last)
{
    const double before = nn_feed_waited(f);
    dm_status status = nn_readers_report(f->readers, last, tell_damage, f);
    if (status == DM_OK) {
        f->hear = f->count + (nn_feed_waited(f) > before + NOTABLE_S ? HEAR_SOON : HEAR_LATE);
    }
    return status;
}

void nn_feed_close(nn_feed *f)
{
    if (!f) {
        return;
    }
    /* The last report may have damaged records. */
    if (f->readers && f->layer->net->skip_damaged && f->count > 0 && hear_readers(f, !f->ahead) != DM_OK) {
        nn_log(f->layer->net, "layer '%s': its last report is lost: %s", f->layer->name, dm_error_message());
    }
    nn_readers_close(f->readers);
    nn_ring_close(f->ring);
    for (int i = 0; i < 2 * NN_FEED_TOPS; i++) {
        const dm_array a = f->come[i % 2][i / 2];
        if (a.id && dm_array_destroy(f->layer->net->session, a) != DM_OK) {
            break; /* the session has ended, and they with it */
        }
    }
    nn_images_close(f->images);
    f->type->close(f->state);
    free(f);
}

static void forget(nn_feed *f)
{
    f->passed = f->passed || f->ahead;
    f->ahead = false;
}

static void seek(nn_feed *f, int64_t batch)
{
    const bool other = f->ahead && f->ahead_batch != batch;
    /* The last batch that was used may have damaged records. */
    if (other && f->layer->net->skip_damaged && f->count > 0 && hear_readers(f, false) != DM_OK) {
        nn_log(f->layer->net, "layer '%s': a report is lost: %s", f->layer->name, dm_error_message());
    }
    if (other) {
        forget(f);
    }
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
    double now = nn_now_s();
    f->began = f->count == 0 ? now : f->began;
    f->count++;
    double seconds = now - f->began, waited = nn_feed_waited(f);
    if (!f->said && f->count > SOON && seconds > 1 && waited > seconds / 2) {
        f->said = true;
        nn_log(f->layer->net, "layer '%s': loading data is the slowest part: steps waited %.0f %% of %.1f s",
               f->layer->name, 100 * waited / seconds, seconds);
    }
}

/* --- the arrays that a batch comes in: of images the windows and their places, then one of each other top */
static dm_status next_arrays(nn_feed *f, int *count, dm_array arrays[1 + NN_FEED_TOPS])
{
    const nn_layer *l = f->layer;
    dm_status status = DM_OK;
    *count = 0;
    f->turn = 1 - f->turn;
    if (f->images) {
        status = nn_images_next(f->images, &arrays[0], &arrays[1]);
        *count = 2;
    }
    for (int i = f->images ? 1 : 0; status == DM_OK && i < l->tops; i++) {
        dm_array *a = &f->come[f->turn][i];
        status = a->id ? DM_OK : nn_blob_array(l->net, l->top[i], DM_F32, a);
        arrays[(*count)++] = *a;
    }
    return status;
}

/* From there to the tops. */
static dm_status fill_tops(nn_feed *f)
{
    const nn_layer *l = f->layer;
    dm_status status = f->images ? nn_images_forward(f->images, l->top[0]->data) : DM_OK;
    for (int i = f->images ? 1 : 0; status == DM_OK && i < l->tops; i++) {
        status = dm_copy(l->net->session, f->come[f->turn][i], l->top[i]->data);
    }
    return status;
}

/* --- a batch of this process */
static dm_status write_page(nn_feed *f, const nn_page *p)
{
    dm_session *s = f->layer->net->session;
    dm_array arrays[1 + NN_FEED_TOPS];
    int count = 0;
    dm_status status = next_arrays(f, &count, arrays);
    if (status == DM_OK && f->images) {
        status = dm_write(s, arrays[0], p->windows);
        status = status == DM_OK ? dm_write(s, arrays[1], p->places) : status;
    }
    for (int i = f->images ? 1 : 0; status == DM_OK && i < f->layer->tops; i++) {
        status = dm_write(s, f->come[f->turn][i], p->top[i]);
    }
    return status == DM_OK ? fill_tops(f) : status;
}

static dm_status next_of_ring(nn_feed *f)
{
    nn_page *p = NULL;
    dm_status status = nn_ring_take(f->ring, f->next, &p);
    if (status != DM_OK) {
        return status;
    }
    watch(f);
    tell_damage(f, p->damaged, p->why);
    if (p->status != DM_OK) { /* the page stays: asked again, it says the same */
        return dm_error_set(p->status, "%s", p->error);
    }
    status = write_page(f, p);
    nn_ring_give(f->ring, p);
    f->next++;
    return status;
}

/* --- a batch of the workers */

static dm_status take_ahead(nn_feed *f)
{
    dm_array arrays[1 + NN_FEED_TOPS];
    int count = 0;
    if (!f->readers || (f->ahead && f->ahead_batch == f->next)) {
        return DM_OK;
    }
    dm_status status = next_arrays(f, &count, arrays);
    status = status == DM_OK ? nn_readers_take(f->readers, f->next, count, arrays) : status;
    f->ahead = status == DM_OK;
    f->ahead_batch = f->next;
    return status;
}

/* The report about the batch before is read when the workers have been told to take this one, so that nothing
 * stands still for it. How long they wait need not be known each time, and seldom where they hardly do. */
static dm_status next_of_readers(nn_feed *f)
{
    dm_status status = take_ahead(f);
    f->ahead = false;
    status = status == DM_OK ? fill_tops(f) : status;
    if (status != DM_OK) {
        return status;
    }
    f->next++;
    if (f->count > 0 && !f->passed && (f->layer->net->skip_damaged || f->count >= f->hear)) {
        status = hear_readers(f, false);
    }
    f->passed = false;
    watch(f);
    return status;
}

dm_status nn_feed_next(nn_feed *f)
{
    return f->readers ? next_of_readers(f) : next_of_ring(f);
}

/* --- all of a net */

/* That of layer i; NULL: it has none. */
static nn_feed *feed_of(const nn_net *net, int i)
{
    const nn_layer *l = &net->layers[i];
    return l->type->traits & NN_FEED ? l->u.state : NULL;
}

dm_status nn_feeds_ahead(const nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        nn_feed *f = feed_of(net, i);
        status = f ? take_ahead(f) : DM_OK;
    }
    return status;
}

void nn_feeds_forget(const nn_net *net)
{
    for (int i = 0; i < net->layer_count; i++) {
        nn_feed *f = feed_of(net, i);
        if (f) {
            forget(f);
        }
    }
}

void nn_feeds_seek(const nn_net *net, int64_t batch)
{
    for (int i = 0; i < net->layer_count; i++) {
        nn_feed *f = feed_of(net, i);
        if (f) {
            seek(f, batch);
        }
    }
}
