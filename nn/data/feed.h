/* Batches made ahead of the step that needs them: by threads of the program's process, or by each worker for
 * its own rows (data/readers.h). */
#ifndef NN_FEED_H
#define NN_FEED_H

#include "data/images.h"
#include "data/ring.h"

typedef struct nn_feed nn_feed;

/* images: NULL, or by what the first top is made. Ends `state` and `images` also where it fails. The layer's
 * tops have their shapes. Waits, where workers may read. */
dm_status nn_feed_open(nn_layer *layer, const nn_feed_type *type, void *state, nn_images *images,
                       nn_feed **out);
void nn_feed_close(nn_feed *feed); /* accepts NULL */
/* Writes the next batch to the tops of the layer. Errors: those of make. */
dm_status nn_feed_next(nn_feed *feed);
/* Of all data layers of a net. Ahead: where workers read, the next batch is brought already, while the program
 * waits for something else. It should be sure that it will be wanted, for what is wrong with it is told by the
 * next call that waits. Forget: as if that had not been asked for, where it may have failed. Seek: goes on with
 * this batch. */
dm_status nn_feeds_ahead(const nn_net *net);
void nn_feeds_forget(const nn_net *net);
void nn_feeds_seek(const nn_net *net, int64_t batch);
/* Seconds that steps have waited for batches behind the first; where workers with GPUs read, nn_readers_waited.
 */
double nn_feed_waited(const nn_feed *feed);
bool nn_feed_by_workers(const nn_feed *feed);

#endif
