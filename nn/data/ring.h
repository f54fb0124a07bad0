/* Pages with rows of batches, which threads of their own make ahead of who takes them. */
#ifndef NN_RING_H
#define NN_RING_H

#include "base/base.h"
#include "data/pack.h"

enum { NN_FEED_TOPS = 8, NN_DAMAGE_TEXT = 2048 };

/* What a page holds of each row (sample) of a batch: so many floats of each top in the order of its array; but
 * of images the first top as bytes and the window's place in them (data/images.h): those of the window alone
 * or, whole, as many as a record has. */
typedef struct nn_rows {
    int tops;
    bool images, whole;
    int64_t each[NN_FEED_TOPS]; /* elements */
    int64_t first, count;       /* which rows of the batch */
} nn_rows;

typedef struct nn_page {
    float *top[NN_FEED_TOPS]; /* of row `first` on */
    unsigned char *windows;
    const unsigned char **lies; /* whole: where the source has the row's record, or NULL: it is in `windows` */
    int32_t *places;
    int64_t batch;
    bool busy, ready;
    dm_status status;
    char error[512];
    int64_t damaged;          /* records left out */
    char why[NN_DAMAGE_TEXT]; /* what is wrong with each, a line each, as far as they fit */
} nn_page;

/* A row depends on the numbers of the batch and of the row alone: any thread of any process may make it, and a
 * run may begin with any. */
typedef struct nn_feed_type {
    const char *name;
    /* The rows of a batch to the page; of any part of it, down to one row, in any order, by several threads at
     * once. */
    dm_status (*make)(void *state, int64_t batch, const nn_rows *rows, nn_page *page);
    void (*close)(void *state);
    /* What `open` needs to make the same state in another process. NULL: no other may read the source, for the
     * reason that `alone` gives, or NULL where there is none. */
    dm_status (*pack)(const void *state, nn_pack *out);
    const char *(*alone)(const void *state);
    dm_status (*open)(nn_unpack *in, void **state);
    /* Of a state of images: the memory of its source (nn_source_type), and the shape of a whole record.
     * NULL: there is none. */
    const void *(*memory)(const void *state, int64_t *bytes, int64_t shape[3]);
    bool in_order; /* rows are cheap only in their order, one at a time: a second thread gains nothing */
} nn_feed_type;

/* A record was left out of a page. why: one line. */
void nn_page_damaged(nn_page *page, const char *why);
/* Memory for rows; what a page has stays. Error: DM_ERR_NOMEM. */
dm_status nn_page_make(const nn_rows *rows, nn_page *page);
void nn_page_drop(nn_page *page);

typedef struct nn_ring nn_ring;

enum { NN_FEED_THREADS = 16 };
/* How many threads make rows: this part of the cores without a worker, at least one, at most NN_FEED_THREADS.
 * beside: workers of this host's cores; sharing: rings or teams that share what is left. */
int nn_feed_threads(int beside, int sharing);

/* For one taker. beside, sharing: as in nn_feed_threads. Does not take `state`. */
dm_status nn_ring_open(const nn_feed_type *type, void *state, const nn_rows *rows, int beside, int sharing,
                       nn_ring **out);
void nn_ring_close(nn_ring *ring); /* accepts NULL */
/* The page of a batch; waits for it. Threads go on behind the batch that was taken last. The page is the
 * taker's until it is given back. Error: DM_ERR_IO, DM_ERR_NOMEM; what went wrong in the page is in it. */
dm_status nn_ring_take(nn_ring *ring, int64_t batch, nn_page **out);
void nn_ring_give(nn_ring *ring, nn_page *page);
/* Seconds that takers have waited for batches behind the first. */
double nn_ring_waited(const nn_ring *ring);

#endif
