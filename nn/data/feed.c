/* Double buffering: threads fill pages, the step takes them in order. */
#include "data/feed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 16, MAX_PAGES = MAX_THREADS + 1, SOON = 20 };
static const int64_t MOST_BYTES = (int64_t)2 << 30; /* of the pages behind the second */

struct nn_feed {
    nn_layer *layer;
    const nn_feed_type *type;
    void *state;
    nn_images *images;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread[MAX_THREADS];
    int threads, pages;
    bool stop, said;
    int64_t next, taken; /* batch that a thread begins next, that the step takes next */
    nn_page page[MAX_PAGES];
    double waited, began; /* seconds; when the first batch had come */
    int64_t count, damaged;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void nn_page_damaged(nn_page *page, const char *why)
{
    if (page->damaged++ == 0) {
        snprintf(page->first, sizeof page->first, "%s", why);
    }
}

/* --- threads */
static nn_page *free_page(nn_feed *f)
{
    for (int i = 0; i < f->pages; i++) {
        if (!f->page[i].busy) {
            return &f->page[i];
        }
    }
    return NULL;
}

static void *fill_pages(void *context)
{
    nn_feed *f = context;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        nn_page *p = free_page(f);
        if (!p) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        p->busy = true;
        p->ready = false;
        p->batch = f->next++;
        p->damaged = 0;
        pthread_mutex_unlock(&f->lock);
        p->status = f->type->make(f->state, p->batch, p);
        snprintf(p->error, sizeof p->error, "%s", p->status == DM_OK ? "" : dm_error_message());
        pthread_mutex_lock(&f->lock);
        p->ready = true;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void stop_threads(nn_feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->threads; i++) {
        pthread_join(f->thread[i], NULL);
    }
    f->threads = 0;
    f->stop = false;
    for (int i = 0; i < f->pages; i++) {
        f->page[i].busy = f->page[i].ready = false;
    }
}

/* Is top i made of windows of bytes? */
static bool is_images(const nn_feed *f, int i)
{
    return i == 0 && f->images;
}

static dm_status make_page(const nn_feed *f, nn_page *p)
{
    for (int i = 0; i < f->layer->tops; i++) {
        const size_t count = (size_t)f->layer->top[i]->count;
        if (is_images(f, i)) {
            p->windows = p->windows ? p->windows : malloc(count);
            p->places =
                p->places ? p->places : malloc((size_t)f->layer->top[0]->shape[0] * 3 * sizeof *p->places);
        } else {
            p->top[i] = p->top[i] ? p->top[i] : malloc(count * sizeof(float));
        }
        if (is_images(f, i) ? !p->windows || !p->places : !p->top[i]) {
            return nn_no_memory();
        }
    }
    return DM_OK;
}

static dm_status make_pages(nn_feed *f, int pages)
{
    dm_status status = DM_OK;
    while (status == DM_OK && f->pages < pages) {
        status = make_page(f, &f->page[f->pages]);
        f->pages += status == DM_OK;
    }
    return status;
}

/* As many threads as cores without a worker, at least one, and a page more than threads, as far as their memory
 * goes. */
static dm_status start_threads(nn_feed *f)
{
    long free_cores = sysconf(_SC_NPROCESSORS_ONLN) - dm_workers(f->layer->net->session);
    int64_t bytes = 1, fit;
    for (int i = 0; i < f->layer->tops; i++) {
        bytes += f->layer->top[i]->count * (is_images(f, i) ? 1 : (int64_t)sizeof(float));
    }
    fit = MOST_BYTES / bytes + 1;
    free_cores = free_cores > fit ? (long)fit : free_cores;
    int wanted = free_cores < 1 ? 1 : free_cores > MAX_THREADS ? MAX_THREADS : (int)free_cores;
    dm_status status = make_pages(f, wanted + 1);
    f->next = f->taken;
    while (status == DM_OK && f->threads < wanted) {
        if (pthread_create(&f->thread[f->threads], NULL, fill_pages, f) == 0) {
            f->threads++;
        } else if (f->threads > 0) {
            break;
        } else {
            status = dm_error_set(DM_ERR_IO, "no thread for the data can be started");
        }
    }
    return status;
}

/* --- opening and closing */
dm_status nn_feed_open(nn_layer *layer, const nn_feed_type *type, void *state, nn_images *images, nn_feed **out)
{
    nn_feed *f = calloc(1, sizeof *f);
    if (!f) {
        nn_images_close(images);
        type->close(state);
        return nn_no_memory();
    }
    f->layer = layer;
    f->type = type;
    f->state = state;
    f->images = images;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    *out = f;
    return DM_OK;
}

void nn_feed_close(nn_feed *f)
{
    if (!f) {
        return;
    }
    stop_threads(f);
    nn_images_close(f->images);
    f->type->close(f->state);
    for (int i = 0; i < MAX_PAGES; i++) {
        free(f->page[i].windows);
        free(f->page[i].places);
        for (int k = 0; k < NN_FEED_TOPS; k++) {
            free(f->page[i].top[k]);
        }
    }
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void nn_feed_seek(nn_feed *f, int64_t batch)
{
    if (batch != f->taken) {
        stop_threads(f);
        f->taken = batch;
    }
}

double nn_feed_waited(const nn_feed *f)
{
    return f->waited;
}

/* --- taking */
static nn_page *wait_for(nn_feed *f)
{
    nn_page *found = NULL;
    double start = now_s();
    pthread_mutex_lock(&f->lock);
    while (!found) {
        for (int i = 0; i < f->pages; i++) {
            if (f->page[i].ready && f->page[i].batch == f->taken) {
                found = &f->page[i];
            }
        }
        if (!found) {
            pthread_cond_wait(&f->changed, &f->lock);
        }
    }
    pthread_mutex_unlock(&f->lock);
    if (f->count > 0) { /* nothing can hide the first */
        f->waited += now_s() - start;
    } else {
        f->began = now_s();
    }
    f->count++;
    return found;
}

/* Says once that steps wait for data more than half of their time. */
static void watch(nn_feed *f)
{
    double seconds = now_s() - f->began;
    if (!f->said && f->count > SOON && seconds > 1 && f->waited > seconds / 2) {
        f->said = true;
        nn_log(f->layer->net, "layer '%s': loading data is the slowest part: steps waited %.0f %% of %.1f s",
               f->layer->name, 100 * f->waited / seconds, seconds);
    }
}

static void tell_damage(nn_feed *f, const nn_page *p)
{
    if (p->damaged) {
        f->damaged += p->damaged;
        nn_log(f->layer->net, "layer '%s': skipped %lld damaged records so far: %s", f->layer->name,
               (long long)f->damaged, p->first);
    }
}

dm_status nn_feed_next(nn_feed *f)
{
    dm_session *s = f->layer->net->session;
    dm_status status = f->threads ? DM_OK : start_threads(f);
    if (status != DM_OK) {
        return status;
    }
    nn_page *p = wait_for(f);
    watch(f);
    tell_damage(f, p);
    if (p->status != DM_OK) { /* the page stays: asked again, it says the same */
        return dm_error_set(p->status, "%s", p->error);
    }
    for (int i = 0; status == DM_OK && i < f->layer->tops; i++) {
        const dm_array top = f->layer->top[i]->data;
        status = is_images(f, i) ? nn_images_give(f->images, p->windows, p->places, top)
                                 : dm_write_as(s, top, p->top[i]);
    }
    pthread_mutex_lock(&f->lock);
    p->busy = p->ready = false;
    f->taken++;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return status;
}
