/* Whether GPUs are to fetch records from where their source has them. */
#ifndef NN_FETCH_H
#define NN_FETCH_H

#include "base/base.h"

/* NULL: they are. Else why not: the records are small, or their memory, which would be held there, is too large
 * or not there yet. */
const char *nn_fetch_wrong(const void *memory, int64_t bytes, const int64_t record[3]);

#endif
