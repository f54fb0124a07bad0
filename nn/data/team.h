/* Threads that make the rows of one batch together, for a taker who waits for them. */
#ifndef NN_TEAM_H
#define NN_TEAM_H

#include "data/ring.h"

typedef struct nn_team nn_team;

/* Takes rows of the batch as soon as they are made, on any of the threads, several at once. page: of these rows
 * alone.
 */
typedef void (*nn_put_rows)(void *context, int64_t first, int64_t count, const nn_page *page);

/* For one taker. beside, sharing: as in nn_feed_threads. Does not take `state`. Errors: DM_ERR_NOMEM,
 * DM_ERR_IO. */
dm_status nn_team_open(const nn_feed_type *type, void *state, const nn_rows *rows, int beside, int sharing,
                       nn_team **out);
void nn_team_close(nn_team *team); /* accepts NULL */
/* Returns when all rows are put, or one has failed. told: its status, damaged and why are set, and error if it
 * failed; those of several rows in their order; of errors it has the one of the first row. */
void nn_team_make(nn_team *team, int64_t batch, nn_put_rows put, void *context, nn_page *told);

#endif
