/* Accesses to the parts of one memory. */
#include "memory/hazard.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 16 };

typedef struct dmi_part_hazard {
    dmi_part part;
    dmi_hazard last;
} part_hazard;

bool dmi_part_disjoint(const dmi_part *a, const dmi_part *b)
{
    bool apart = false;
    for (int d = 0; d < a->ndim && a->ndim == b->ndim && a->layout == b->layout; d++) {
        apart = apart || a->hi[d] <= b->lo[d] || b->hi[d] <= a->lo[d];
    }
    return apart;
}

static bool same_part(const dmi_part *a, const dmi_part *b)
{
    size_t bytes = (size_t)a->ndim * sizeof *a->lo;
    return a->ndim == b->ndim && a->layout == b->layout && memcmp(a->lo, b->lo, bytes) == 0 &&
           memcmp(a->hi, b->hi, bytes) == 0;
}

void dmi_hazards_before(const dmi_hazards *h, const dmi_part *part, dmi_hazard *out)
{
    *out = h->rest;
    for (int i = 0; i < h->parts; i++) {
        if (!dmi_part_disjoint(&h->part[i].part, part)) {
            dmi_hazard_merge(out, &h->part[i].last);
        }
    }
}

/* The oldest `count` parts go to the rest. */
static void forget(dmi_hazards *h, int count)
{
    for (int i = 0; i < count; i++) {
        dmi_hazard_merge(&h->rest, &h->part[i].last);
    }
    h->parts -= count;
    if (count > 0) {
        memmove(h->part, h->part + count, (size_t)h->parts * sizeof *h->part);
    }
}

void dmi_hazards_add(dmi_hazards *h, const dmi_part *part, const dmi_hazard *use)
{
    if (part->ndim >= 0 && !h->part) {
        h->part = malloc(MOST_PARTS * sizeof *h->part);
    }
    if (part->ndim < 0 || !h->part) {
        forget(h, h->parts);
        dmi_hazard_merge(&h->rest, use);
        return;
    }
    int i = 0;
    while (i < h->parts && !same_part(&h->part[i].part, part)) {
        i++;
    }
    if (i == h->parts) {
        forget(h, h->parts == MOST_PARTS);
        i = h->parts++;
        h->part[i] = (part_hazard){.part = *part};
    }
    dmi_hazard_merge(&h->part[i].last, use);
}

dmi_stamp dmi_hazards_last(const dmi_hazards *h)
{
    dmi_hazard all;
    static const dmi_part whole = {.ndim = -1};
    dmi_hazards_before(h, &whole, &all);
    dmi_stamp_merge(&all.write, &all.read);
    return all.write;
}

void dmi_hazards_free(dmi_hazards *h)
{
    free(h->part);
    *h = (dmi_hazards){0};
}
