/* The order of records: as they lie, or shuffled anew in each round. */
#ifndef NN_ORDER_H
#define NN_ORDER_H

#include <stdint.h>

/* Place `i` of `count` under the permutation that the seed gives. No table: any place can be asked for. */
int64_t nn_shuffled(uint64_t seed, int64_t count, int64_t i);

#endif
