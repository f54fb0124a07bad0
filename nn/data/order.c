/* A permutation of any number of places out of a seed: four rounds of a Feistel network on the next even power
 * of two, repeated until the place is one of the `count` (J. Black and P. Rogaway, Ciphers with arbitrary
 * finite domains, 2002). */
#include "data/order.h"

#include "net/net.h"

enum { ROUNDS = 4 };

int64_t nn_shuffled(uint64_t seed, int64_t count, int64_t i)
{
    int half = 1;
    while (half < 31 && INT64_C(1) << (2 * half) < count) {
        half++;
    }
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t place = (uint64_t)i;
    do {
        uint64_t left = place >> half, right = place & mask;
        for (uint64_t k = 0; k < ROUNDS; k++) {
            uint64_t next = left ^ (nn_hash(nn_hash(seed, k), right) >> 20 & mask);
            left = right;
            right = next;
        }
        place = left << half | right;
    } while (place >= (uint64_t)count);
    return (int64_t)place;
}
