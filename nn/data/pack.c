/* Settings in a row of bytes. */
#include "data/pack.h"

#include <stdlib.h>

void nn_pack_bytes(nn_pack *p, const void *bytes, size_t count)
{
    if (!p->missed && p->room - p->length < count) {
        size_t room = 2 * p->room + count + 256;
        unsigned char *more = realloc(p->bytes, room);
        p->missed = more ? 0 : room;
        p->bytes = more ? more : p->bytes;
        p->room = more ? room : p->room;
    }
    if (!p->missed && count > 0) {
        memcpy(p->bytes + p->length, bytes, count);
        p->length += count;
    }
}

void nn_pack_text(nn_pack *p, const char *text)
{
    nn_pack_bytes(p, text ? text : "", text ? strlen(text) + 1 : 1);
}

const void *nn_unpack_bytes(nn_unpack *in, size_t count)
{
    const unsigned char *at = in->at;
    if (in->failed || (size_t)(in->end - at) < count) {
        in->failed = true;
        return NULL;
    }
    in->at += count;
    return at;
}

const char *nn_unpack_text(nn_unpack *in)
{
    const unsigned char *end = in->failed ? NULL : memchr(in->at, 0, (size_t)(in->end - in->at));
    const char *text = end ? (const char *)in->at : "";
    in->failed = !end;
    in->at = end ? end + 1 : in->at;
    return text;
}

int64_t nn_unpack_int(nn_unpack *in)
{
    int64_t value = 0;
    const void *at = nn_unpack_bytes(in, sizeof value);
    if (at) {
        memcpy(&value, at, sizeof value);
    }
    return value;
}
