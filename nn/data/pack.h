/* Settings in a row of bytes, for other processes. */
#ifndef NN_PACK_H
#define NN_PACK_H

#include "base/base.h"

#include <string.h>

typedef struct nn_pack {
    unsigned char *bytes; /* free() */
    size_t length, room;
    size_t missed; /* bytes that there was no memory for; 0: there was */
} nn_pack;

void nn_pack_bytes(nn_pack *pack, const void *bytes, size_t count);
void nn_pack_text(nn_pack *pack, const char *text); /* NULL: as "" */

static inline void nn_pack_int(nn_pack *pack, int64_t value)
{
    nn_pack_bytes(pack, &value, sizeof value);
}

typedef struct nn_unpack {
    const unsigned char *at, *end;
    bool failed; /* there is less than was asked for */
} nn_unpack;

/* A place in the bytes themselves; NULL: they end before. */
const void *nn_unpack_bytes(nn_unpack *in, size_t count);
const char *nn_unpack_text(nn_unpack *in); /* "" where it has failed */
int64_t nn_unpack_int(nn_unpack *in);      /* 0 where it has failed */

#endif
