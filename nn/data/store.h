/* Decoded images kept for later rounds, in memory or in a file on a local disk. */
#ifndef NN_STORE_H
#define NN_STORE_H

#include "data/record.h"

/* A source that reads each decoded record once from `inner` and then has it, as long as all that it has takes at most
 * `limit` bytes. Records that need no decoding are not kept. folder: where its file is, which has no name and ends with
 * it; NULL: in memory. Takes `inner`, also where it fails. */
dm_status nn_store_open(nn_source *inner, int64_t limit, const char *folder, nn_source **out);

#endif
