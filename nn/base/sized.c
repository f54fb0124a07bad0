/* Structures of callers that were built with another header: their first field is their size. */
#include "base/base.h"

#include <string.h>

enum { MOST = 4096 };

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

bool nn_sized_take(const void *given, size_t least, void *known, size_t bytes)
{
    size_t size = size_of(given);
    bool good = size >= least && size <= MOST;
    for (size_t i = bytes; good && i < size; i++) {
        good = ((const unsigned char *)given)[i] == 0;
    }
    if (good) {
        memset(known, 0, bytes);
        memcpy(known, given, size < bytes ? size : bytes);
    }
    return good;
}

bool nn_sized_give(const void *known, size_t bytes, size_t least, void *out)
{
    size_t size = size_of(out);
    bool good = size >= least && size <= MOST;
    if (good) {
        memset(out, 0, size);
        memcpy(out, known, size < bytes ? size : bytes);
        memcpy(out, &size, sizeof size);
    }
    return good;
}
