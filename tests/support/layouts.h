/* Layouts of every kind for an array of a given shape. */
#ifndef DMT_LAYOUTS_H
#define DMT_LAYOUTS_H

#include "support/host.h"

enum { DMT_WORKERS_MOST = 64 };

/* Holds what the layout points to; not to be copied. */
typedef struct dmt_layout {
    dm_layout layout;
    const dm_layout *use; /* what to give to dmath: &layout, or NULL */
    int workers[DMT_WORKERS_MOST];
    int64_t blocks; /* explicit maps */
    char text[512];
} dmt_layout;

/* The deterministic list, for trying them in pairs. A kind that makes no sense for the shape (a 0-d array
 * cannot be split) becomes the default layout. */
enum {
    DMT_DEFAULT,
    DMT_ROWS,
    DMT_LAST,        /* split along the last dim */
    DMT_CYCLIC_ONE,  /* dim 0, blocks of one element */
    DMT_CYCLIC_LAST, /* last dim, blocks of three */
    DMT_GRID_CYCLIC, /* two dims, block-cyclic */
    DMT_GRID_BLOCKS, /* two dims, one block a worker */
    DMT_REPLICATED,
    DMT_TWO_REPLICAS, /* each on half of the workers */
    DMT_SINGLE,       /* the last worker */
    DMT_REVERSED,     /* rows, workers from last to first */
    DMT_SUBSET,       /* rows over the upper half of the workers */
    DMT_MAP,          /* an explicit map that looks random */
    DMT_HUGE_BLOCK,   /* blocks larger than the array */
    DMT_KINDS
};
void dmt_layout_kind(dmt_layout *out, dmt_scratch *scratch, const dm_session *session, int ndim,
                     const int64_t *shape, int kind);
void dmt_layout_random(dmt_layout *out, dmt_scratch *scratch, dmt_random *r, const dm_session *session,
                       int ndim, const int64_t *shape);

#endif
