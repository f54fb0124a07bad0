/* Packing: a copy's elements laid out one after the other, in row-major order of its dims. */
#include "layout/copy.h"

#include <string.h>

bool dmi_copy_same(const dmi_copy *a, const dmi_copy *b)
{
    bool same = a->ndim == b->ndim && a->count == b->count && a->src_dtype == b->src_dtype &&
                a->dst_dtype == b->dst_dtype && a->src_offset == b->src_offset &&
                a->dst_offset == b->dst_offset;
    for (int d = 0; same && d < a->ndim; d++) {
        same = a->nrun[d] == b->nrun[d] && a->src_stride[d] == b->src_stride[d] &&
               a->dst_stride[d] == b->dst_stride[d];
        for (int64_t r = 0; same && r < a->nrun[d]; r++) {
            const dmi_run *x = &a->run[d][r], *y = &b->run[d][r];
            same = x->a == y->a && x->b == y->b && x->len == y->len;
        }
    }
    return same;
}

/* Elements along dim d. */
static int64_t dim_count(const dmi_copy *d, int dim)
{
    int64_t count = 0;
    for (int64_t r = 0; r < d->nrun[dim]; r++) {
        count += d->run[dim][r].len;
    }
    return count;
}

/* Runs of one dim with the ordinals of a dense side in place of its positions. */
static const dmi_run *dense_runs(const dmi_copy *d, int dim, bool replace_dst, dmi_arena *arena)
{
    dmi_run *runs = dmi_arena_alloc(arena, (size_t)DMI_MAX(d->nrun[dim], 1) * sizeof *runs);
    if (runs == NULL) {
        return NULL;
    }
    int64_t ordinal = 0;
    for (int64_t r = 0; r < d->nrun[dim]; r++) {
        runs[r] = d->run[dim][r];
        if (replace_dst) {
            runs[r].b = ordinal;
        } else {
            runs[r].a = ordinal;
        }
        ordinal += runs[r].len;
    }
    return runs;
}

static bool replace_side(const dmi_copy *d, bool replace_dst, dmi_copy *out, dmi_arena *arena)
{
    dmi_copy result = *d; /* out may be d */
    int64_t stride = 1;
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        result.run[dim] = dense_runs(d, dim, replace_dst, arena);
        if (result.run[dim] == NULL) {
            return false;
        }
        *(replace_dst ? &result.dst_stride[dim] : &result.src_stride[dim]) = stride;
        stride *= DMI_MAX(dim_count(d, dim), 1);
    }
    *(replace_dst ? &result.dst_offset : &result.src_offset) = 0;
    *out = result;
    return true;
}

bool dmi_copy_pack(const dmi_copy *d, dmi_copy *packed, dmi_arena *arena)
{
    return replace_side(d, true, packed, arena);
}

bool dmi_copy_unpack(const dmi_copy *d, dmi_copy *unpacked, dmi_arena *arena)
{
    return replace_side(d, false, unpacked, arena);
}
