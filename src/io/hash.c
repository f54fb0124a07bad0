#include "io/hash.h"

/* The functions themselves, so that programs need no library of that name. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t dmi_hash64(const void *data, int64_t bytes)
{
    return XXH3_64bits(data, (size_t)bytes);
}
