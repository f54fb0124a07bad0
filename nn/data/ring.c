/* Threads fill pages, one taker takes them in order. */
#include "data/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PAGES = NN_FEED_THREADS + 1 };
static const int64_t MOST_BYTES = (int64_t)2
                                  << 30; /* of the pages behind the second, of all rings that share */

struct nn_ring {
    const nn_feed_type *type;
    void *state;
    nn_rows rows;
    int beside, sharing;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread[NN_FEED_THREADS];
    int threads, pages;
    bool stop, began;
    int64_t next, taken; /* batch that a thread begins next, that the taker takes next */
    nn_page page[MAX_PAGES];
    double waited; /* seconds */
};

void nn_page_damaged(nn_page *page, const char *why)
{
    const size_t used = strlen(page->why), room = sizeof page->why - used;
    page->damaged++;
    if (strlen(why) + 2 <= room) {
        snprintf(page->why + used, room, "%s\n", why);
    }
}

/* --- threads */
static nn_page *free_page(nn_ring *r)
{
    for (int i = 0; i < r->pages; i++) {
        if (!r->page[i].busy) {
            return &r->page[i];
        }
    }
    return NULL;
}

static void *fill_pages(void *context)
{
    nn_ring *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        nn_page *p = free_page(r);
        if (!p) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        p->busy = true;
        p->ready = false;
        p->batch = r->next++;
        p->damaged = 0;
        p->why[0] = 0;
        pthread_mutex_unlock(&r->lock);
        p->status = r->type->make(r->state, p->batch, &r->rows, p);
        snprintf(p->error, sizeof p->error, "%s", p->status == DM_OK ? "" : dm_error_message());
        pthread_mutex_lock(&r->lock);
        p->ready = true;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void stop_threads(nn_ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->threads; i++) {
        pthread_join(r->thread[i], NULL);
    }
    r->threads = 0;
    r->stop = false;
    for (int i = 0; i < r->pages; i++) {
        r->page[i].busy = r->page[i].ready = false;
    }
}

dm_status nn_page_make(const nn_rows *rows, nn_page *p)
{
    const size_t count = (size_t)rows->count;
    for (int i = 0; i < rows->tops; i++) {
        const size_t elements = count * (size_t)rows->each[i];
        const bool images = i == 0 && rows->images;
        if (images) {
            p->windows = p->windows ? p->windows : malloc(elements + 1);
            p->places = p->places ? p->places : malloc(count * 3 * sizeof *p->places + 1);
            p->lies = p->lies ? p->lies : calloc(count + 1, sizeof *p->lies);
        } else {
            p->top[i] = p->top[i] ? p->top[i] : malloc(elements * sizeof(float) + 1);
        }
        if (images ? !p->windows || !p->places || !p->lies : !p->top[i]) {
            return dm_error_no_memory("a batch", images ? elements + count * 3 * sizeof *p->places
                                                        : elements * sizeof(float));
        }
    }
    return DM_OK;
}

void nn_page_drop(nn_page *p)
{
    free(p->windows);
    free(p->lies);
    free(p->places);
    for (int k = 0; k < NN_FEED_TOPS; k++) {
        free(p->top[k]);
    }
}

int nn_feed_threads(int beside, int sharing)
{
    const long cores = (sysconf(_SC_NPROCESSORS_ONLN) - beside) / (sharing > 0 ? sharing : 1);
    return cores < 1 ? 1 : cores > NN_FEED_THREADS ? NN_FEED_THREADS : (int)cores;
}

static dm_status make_pages(nn_ring *r, int pages)
{
    dm_status status = DM_OK;
    while (status == DM_OK && r->pages < pages) {
        status = nn_page_make(&r->rows, &r->page[r->pages]);
        r->pages += status == DM_OK;
    }
    return status;
}

/* A page more than threads, as far as their memory goes. */
static dm_status start_threads(nn_ring *r)
{
    int64_t bytes = 1;
    for (int i = 0; i < r->rows.tops; i++) {
        bytes += r->rows.count * r->rows.each[i] * (i == 0 && r->rows.images ? 1 : (int64_t)sizeof(float));
    }
    const int64_t fit = MOST_BYTES / r->sharing / bytes + 1;
    const int threads = r->type->in_order ? 1 : nn_feed_threads(r->beside, r->sharing),
              wanted = threads > fit ? (int)fit : threads;
    dm_status status = make_pages(r, wanted + 1);
    r->next = r->taken;
    while (status == DM_OK && r->threads < wanted) {
        if (pthread_create(&r->thread[r->threads], NULL, fill_pages, r) == 0) {
            r->threads++;
        } else if (r->threads > 0) {
            break;
        } else {
            status = dm_error_set(DM_ERR_IO, "no thread for the data can be started");
        }
    }
    return status;
}

/* --- opening and closing */
dm_status nn_ring_open(const nn_feed_type *type, void *state, const nn_rows *rows, int beside, int sharing,
                       nn_ring **out)
{
    nn_ring *r = calloc(1, sizeof *r);
    if (!r) {
        return dm_error_no_memory("the batches of a data layer", sizeof *r);
    }
    r->type = type;
    r->state = state;
    r->rows = *rows;
    r->beside = beside;
    r->sharing = sharing > 0 ? sharing : 1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    *out = r;
    return DM_OK;
}

void nn_ring_close(nn_ring *r)
{
    if (!r) {
        return;
    }
    stop_threads(r);
    for (int i = 0; i < MAX_PAGES; i++) {
        nn_page_drop(&r->page[i]);
    }
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

double nn_ring_waited(const nn_ring *r)
{
    return r->waited;
}

/* --- taking */
static nn_page *wait_for(nn_ring *r)
{
    nn_page *found = NULL;
    double start = nn_now_s();
    pthread_mutex_lock(&r->lock);
    while (!found) {
        for (int i = 0; i < r->pages; i++) {
            if (r->page[i].ready && r->page[i].batch == r->taken) {
                found = &r->page[i];
            }
        }
        if (!found) {
            pthread_cond_wait(&r->changed, &r->lock);
        }
    }
    pthread_mutex_unlock(&r->lock);
    r->waited += r->began ? nn_now_s() - start : 0; /* nothing can hide the first */
    r->began = true;
    return found;
}

dm_status nn_ring_take(nn_ring *r, int64_t batch, nn_page **out)
{
    if (batch != r->taken) {
        stop_threads(r);
        r->taken = batch;
    }
    dm_status status = r->threads ? DM_OK : start_threads(r);
    if (status == DM_OK) {
        *out = wait_for(r);
    }
    return status;
}

void nn_ring_give(nn_ring *r, nn_page *p)
{
    pthread_mutex_lock(&r->lock);
    p->busy = p->ready = false;
    r->taken++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}
