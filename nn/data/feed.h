/* Batches made ahead of the step that needs them, by threads of their own. */
#ifndef NN_FEED_H
#define NN_FEED_H

#include "data/images.h"

enum { NN_FEED_TOPS = 8 };

/* One batch on its way: the elements of each top in the order of its array, but of a feed with images those of
 * the first as windows and places (data/images.h). */
typedef struct nn_page {
    float *top[NN_FEED_TOPS];
    unsigned char *windows;
    int32_t *places;
    int64_t batch;
    bool busy, ready;
    dm_status status;
    char error[512];
    int64_t damaged; /* records left out */
    char first[512]; /* what is wrong with the first of them */
} nn_page;

/* A batch depends on its number alone, so that any thread may make it, and a run may begin with any. */
typedef struct nn_feed_type {
    dm_status (*make)(void *state, int64_t batch, nn_page *page); /* by several threads at once */
    void (*close)(void *state);
} nn_feed_type;

typedef struct nn_feed nn_feed;

/* images: NULL, or by what the first top is made. Ends `state` and `images` also where it fails. The layer's
 * tops have their shapes. */
dm_status nn_feed_open(nn_layer *layer, const nn_feed_type *type, void *state, nn_images *images,
                       nn_feed **out);
void nn_feed_close(nn_feed *feed); /* accepts NULL */
/* Writes the next batch to the tops of the layer. Errors: those of make. */
dm_status nn_feed_next(nn_feed *feed);
/* Goes on with this batch. */
void nn_feed_seek(nn_feed *feed, int64_t batch);
/* A record was left out of a page. why: one line. */
void nn_page_damaged(nn_page *page, const char *why);
/* Seconds that steps have waited for batches behind the first. */
double nn_feed_waited(const nn_feed *feed);

#endif
