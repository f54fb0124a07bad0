/* The rectangles that workers hold of arrays: the same for two arrays? */
#include "ops/apply_parts.h"

#include <string.h>

bool dmi_same_extents(const dmi_desc *a, const dmi_desc *b)
{
    return a->ndim == b->ndim && memcmp(a->extent, b->extent, (size_t)a->ndim * sizeof *a->extent) == 0;
}

static bool next_region(const dmi_desc *desc, int worker, int64_t *at, dmi_region *out)
{
    while (*at < dmi_desc_region_count(desc, worker)) {
        dmi_desc_region(desc, worker, (*at)++, out);
        if (out->count > 0) {
            return true;
        }
    }
    return false;
}

static bool alike_at(const dmi_desc *a, const dmi_desc *b, int worker)
{
    int64_t i = 0, j = 0;
    for (;;) {
        dmi_region x, y;
        bool more = next_region(a, worker, &i, &x);
        if (more != next_region(b, worker, &j, &y)) {
            return false;
        }
        for (int d = 0; d < a->ndim && more; d++) {
            if (!dmi_dimset_same(&x.dim[d], &y.dim[d])) {
                return false;
            }
        }
        if (!more) {
            return true;
        }
    }
}

bool dmi_blocks_alike(const dmi_desc *a, const dmi_desc *b, int *worker)
{
    bool same = a->layout == b->layout && memcmp(a->lo, b->lo, (size_t)a->ndim * sizeof *a->lo) == 0 &&
                memcmp(a->skip, b->skip, (size_t)a->ndim * sizeof *a->skip) == 0;
    for (int w = 0; w < a->layout->session_workers && !same; w++) {
        if (!alike_at(a, b, w)) {
            *worker = w;
            return false;
        }
    }
    return true;
}

bool dmi_blocks_whole_rows(const dmi_desc *a)
{
    for (int w = 0; w < a->layout->session_workers; w++) {
        dmi_region region;
        for (int64_t at = 0; next_region(a, w, &at, &region);) {
            for (int d = 1; d < a->ndim; d++) {
                if (region.dim[d].count != a->extent[d]) {
                    return false;
                }
            }
        }
    }
    return true;
}
