#include "support/part.h"

#include <string.h>

enum { PATTERN = 0x5a };

dmt_part dmt_part_random(dmt_case *c, const dmt_host *h)
{
    dmt_part p = {.rows = 1, .length = 1};
    for (int d = 0; d < h->ndim; d++) {
        p.lo[d] = dmt_int(&c->random, 0, h->shape[d]);
        p.extent[d] = dmt_int(&c->random, 0, h->shape[d] - p.lo[d]);
        if (dmt_chance(&c->random, 30)) {
            p.lo[d] = 0;
            p.extent[d] = h->shape[d];
        }
        p.rows *= d < h->ndim - 1 ? p.extent[d] : 1;
        p.length = p.extent[d];
    }
    p.ld = dmt_chance(&c->random, 40) ? 0 : p.length + dmt_int(&c->random, 0, 5);
    int64_t step = p.ld ? p.ld : p.length;
    p.bytes = p.rows > 0 ? ((p.rows - 1) * step + p.length) * dmt_bytes(h->dtype) : 0;
    p.value = dmt_host_make(&c->scratch, h->dtype, h->ndim, p.extent);
    return p;
}

void dmt_part_say(dmt_case *c, const char *verb, const dmt_part *p)
{
    char lo[160], extent[160];
    dmt_say(c, "\n    %s %s at %s, ld %d", verb, dmt_shape_text(p->value->ndim, p->extent, extent),
            dmt_shape_text(p->value->ndim, p->lo, lo), (int)p->ld);
}

char *dmt_part_place(const dmt_part *p, char *memory, int64_t i)
{
    int64_t step = p->ld ? p->ld : p->length;
    return memory + ((i / p->length) * step + i % p->length) * dmt_bytes(p->value->dtype);
}

char *dmt_part_spread(dmt_case *c, const dmt_part *p)
{
    char *memory = dmt_alloc(&c->scratch, p->bytes);
    memset(memory, PATTERN, (size_t)p->bytes);
    for (int64_t i = 0; i < p->value->count; i++) {
        dmt_encode(p->value->dtype, p->value->v[i], dmt_part_place(p, memory, i));
    }
    return memory;
}

bool dmt_part_gather(const dmt_part *p, char *memory, dmt_host *seen)
{
    int64_t size = dmt_bytes(p->value->dtype);
    for (int64_t i = 0; i < seen->count; i++) {
        char *at = dmt_part_place(p, memory, i);
        seen->v[i] = dmt_decode(seen->dtype, at);
        memset(at, PATTERN, (size_t)size);
    }
    for (int64_t i = 0; i < p->bytes; i++) {
        if (memory[i] != PATTERN) {
            return false;
        }
    }
    return true;
}
