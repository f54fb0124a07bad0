/* Accesses to the areas of one memory. */
#include "memory/hazard.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AREAS = 32 }; /* where nothing is said */

typedef struct dmi_area_hazard {
    dmi_area area;
    dmi_hazard last;
} area_hazard;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Two rows of indices with steps meet only where their beginnings differ by a multiple of what divides both. */
static bool interleaved(const dmi_area *a, const dmi_area *b, int d)
{
    return a->step[d] > 1 && b->step[d] > 1 &&
           (a->lo[d] - b->lo[d]) % common_divisor(a->step[d], b->step[d]) != 0;
}

bool dmi_area_disjoint(const dmi_area *a, const dmi_area *b)
{
    bool apart = false;
    for (int d = 0; d < a->ndim && a->ndim == b->ndim && a->layout == b->layout; d++) {
        apart = apart || a->hi[d] <= b->lo[d] || b->hi[d] <= a->lo[d] || interleaved(a, b, d);
    }
    return apart || (a->to > 0 && b->to > 0 && (a->to <= b->from || b->to <= a->from));
}

static bool same_area(const dmi_area *a, const dmi_area *b)
{
    size_t bytes = (size_t)a->ndim * sizeof *a->lo;
    return a->ndim == b->ndim && a->layout == b->layout && memcmp(a->lo, b->lo, bytes) == 0 &&
           memcmp(a->hi, b->hi, bytes) == 0 && memcmp(a->step, b->step, bytes) == 0;
}

void dmi_hazards_before(const dmi_hazards *h, const dmi_area *area, dmi_hazard *out)
{
    *out = h->rest;
    for (int i = 0; i < h->areas; i++) {
        if (!dmi_area_disjoint(&h->area[i].area, area)) {
            dmi_hazard_merge(out, &h->area[i].last);
        }
    }
}

/* The oldest `count` areas go to the rest. */
static void forget(dmi_hazards *h, int count)
{
    for (int i = 0; i < count; i++) {
        dmi_hazard_merge(&h->rest, &h->area[i].last);
    }
    h->areas -= count;
    memmove(h->area, h->area + count, (size_t)h->areas * sizeof *h->area);
}

void dmi_hazards_add(dmi_hazards *h, const dmi_area *area, const dmi_hazard *use)
{
    int most = h->most ? h->most : MOST_AREAS;
    if (area->ndim >= 0 && !h->area) {
        h->area = malloc((size_t)most * sizeof *h->area);
    }
    if (area->ndim < 0 || !h->area) {
        if (h->areas > 0) {
            forget(h, h->areas);
        }
        dmi_hazard_merge(&h->rest, use);
        return;
    }
    int i = 0;
    while (i < h->areas && !same_area(&h->area[i].area, area)) {
        i++;
    }
    if (i == h->areas) {
        if (h->areas == most) {
            forget(h, 1);
        }
        i = h->areas++;
        h->area[i] = (area_hazard){.area = *area};
    }
    dmi_hazard_merge(&h->area[i].last, use);
}

dmi_stamp dmi_hazards_last(const dmi_hazards *h)
{
    dmi_hazard all;
    static const dmi_area whole = {.ndim = -1};
    dmi_hazards_before(h, &whole, &all);
    dmi_stamp_merge(&all.write, &all.read);
    return all.write;
}

void dmi_hazards_free(dmi_hazards *h)
{
    free(h->area);
    *h = (dmi_hazards){0};
}
