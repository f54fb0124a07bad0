/* Touched bytes in their simplest form. */
#include "kernels/touch.h"

#include <string.h>

/* Trailing dims that are packed become part of the range, dims that repeat (stride 0) or hold one index go.
 */
static void simplify(dmi_touch *t)
{
    int n = 0;
    for (int d = 0; d < t->ndim; d++) {
        int64_t len = t->run[d] ? t->run[d][0].len : t->len[d];
        bool single = t->nrun[d] == 1 && (len == 1 || t->stride[d] == 0);
        if (single) {
            int64_t at = !t->run[d] ? 0 : t->dst ? t->run[d][0].b : t->run[d][0].a;
            t->offset += at * t->stride[d];
            continue;
        }
        t->nrun[n] = t->nrun[d];
        t->stride[n] = t->stride[d];
        t->run[n] = t->run[d];
        t->len[n++] = t->len[d];
    }
    t->ndim = n;
    while (t->ndim > 0 && t->nrun[t->ndim - 1] == 1 && t->stride[t->ndim - 1] == t->inner) {
        int d = --t->ndim;
        t->offset += !t->run[d] ? 0 : (t->dst ? t->run[d][0].b : t->run[d][0].a) * t->stride[d];
        t->inner *= t->run[d] ? t->run[d][0].len : t->len[d];
    }
}

void dmi_touch_copy(dmi_touch *t, const dmi_copy *copy, bool dst, int64_t elem, int rw)
{
    memset(t, 0, sizeof *t);
    if (copy->count == 0) {
        return;
    }
    t->rw = rw;
    t->dst = dst;
    t->ndim = copy->ndim;
    t->inner = elem;
    t->offset = (dst ? copy->dst_offset : copy->src_offset) * elem;
    for (int d = 0; d < copy->ndim; d++) {
        t->nrun[d] = copy->nrun[d];
        t->run[d] = copy->run[d];
        t->stride[d] = (dst ? copy->dst_stride[d] : copy->src_stride[d]) * elem;
    }
    simplify(t);
}

void dmi_touch_box(dmi_touch *t, int ndim, const int64_t *extent, const int64_t *stride, int64_t offset,
                   int64_t elem, int rw)
{
    memset(t, 0, sizeof *t);
    t->rw = rw;
    t->ndim = ndim;
    t->inner = elem;
    t->offset = offset * elem;
    for (int d = 0; d < ndim; d++) {
        t->nrun[d] = 1;
        t->len[d] = extent[d];
        t->stride[d] = stride[d] * elem;
        if (extent[d] == 0) {
            t->rw = 0;
        }
    }
    simplify(t);
}

void dmi_touch_dense(dmi_touch *t, int64_t count, int64_t elem, int rw)
{
    *t = (dmi_touch){.rw = count > 0 ? rw : 0, .inner = count * elem};
}
