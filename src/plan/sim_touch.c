/* Which bytes a step touches: from its descriptor, not from what its references claim. */
#include "plan/sim_parts.h"

#include "io/file.h"

#include <string.h>

/* Trailing dims that are packed become part of the stretch, dims that repeat (stride 0) or hold one index go.
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

static void touch_copy(dmi_touch *t, const dmi_copy *copy, bool dst, int64_t elem, int rw)
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

static void touch_box(dmi_touch *t, int ndim, const int64_t *extent, const int64_t *stride, int64_t offset,
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

static void touch_dense(dmi_touch *t, int64_t count, int64_t elem, int rw)
{
    *t = (dmi_touch){.rw = count > 0 ? rw : 0, .inner = count * elem};
}

static double scalar(const dmi_step *step, const dmi_args *args, int which)
{
    int from = step->scalar[which];
    return from == DMI_SCALAR_ONE ? 1.0 : from == DMI_SCALAR_ZERO ? 0.0 : args->s[from];
}

static void touch_gemm(const dmi_step *step, const dmi_args *args, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_gemm *g = step->desc;
    int64_t elem = dmi_dtype_bytes(g->dtype), c_elem = g->c_dtype == 0 ? elem : dmi_dtype_bytes(g->c_dtype);
    int64_t a[2] = {g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k}, a_stride[2] = {g->lda, 1};
    int64_t b[2] = {g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n}, b_stride[2] = {g->ldb, 1};
    int64_t c[2] = {g->m, g->n}, c_stride[2] = {g->ldc, 1};
    bool any = g->m > 0 && g->n > 0;
    touch_box(&out[0], 2, a, a_stride, g->a_offset, elem, any ? DMI_READ : 0);
    touch_box(&out[1], 2, b, b_stride, g->b_offset, elem, any ? DMI_READ : 0);
    touch_box(&out[2], 2, c, c_stride, g->c_offset, c_elem,
              scalar(step, args, 1) != 0 ? DMI_READWRITE : DMI_WRITE);
}

static void touch_own(const dmi_step *step, int which, dmi_touch *out)
{
    const dmi_fused_gemm *f = step->desc;
    int64_t own = f->own_k1 - f->own_k0, other = which == 0 ? f->gemm.m : f->gemm.n;
    int64_t extent[2] = {own, other}, stride[2] = {f->ld_own[which], 1};
    bool by_rows = which == 0 ? !f->gemm.trans_a : f->gemm.trans_b; /* k runs along its rows */
    if (by_rows) {
        extent[0] = other;
        extent[1] = own;
    }
    touch_box(out, 2, extent, stride, f->own_offset[which], dmi_dtype_bytes(f->gemm.dtype),
              own > 0 && f->ld_own[which] > 0 ? DMI_READ : 0);
}

static void touch_ewise(const dmi_step *step, const dmi_args *args, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_ewise *e = step->desc;
    bool sum = e->op == DMI_EW_ADD; /* its terms with factor 0 are not read */
    bool any = true;
    for (int d = 0; d < e->ndim; d++) {
        any = any && e->extent[d] > 0;
    }
    bool a = any && (!sum || scalar(step, args, 0) != 0);
    bool b = any && step->nref > 2 && (e->op == DMI_EW_MUL || (sum && scalar(step, args, 1) != 0));
    touch_box(&out[0], e->ndim, e->extent, e->a_stride, e->a_offset, dmi_dtype_bytes(e->a_dtype),
              a ? DMI_READ : 0);
    touch_box(&out[1], e->ndim, e->extent, e->out_stride, e->out_offset, dmi_dtype_bytes(e->out_dtype),
              DMI_WRITE);
    touch_box(&out[2], e->ndim, e->extent, e->b_stride, e->b_offset, dmi_dtype_bytes(e->b_dtype),
              b ? DMI_READ : 0);
}

static void touch_fill(const dmi_step *step, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fill *f = step->desc;
    int64_t extent[DM_MAX_DIMS] = {0};
    for (int d = 0; d < f->region.ndim; d++) {
        extent[d] = f->region.dim[d].count;
    }
    touch_box(&out[0], f->region.ndim, extent, f->region.stride, dmi_region_start(&f->region),
              dmi_dtype_bytes(f->dtype), DMI_WRITE);
}

static void touch_reduce(const dmi_step *step, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_reduce *r = step->desc;
    int64_t kept = 1;
    for (int d = 0; d < r->ndim; d++) {
        kept *= r->reduced >> d & 1 ? 1 : r->extent[d];
    }
    touch_box(&out[0], r->ndim, r->extent, r->stride, r->offset, dmi_dtype_bytes(r->dtype), DMI_READ);
    touch_dense(&out[1], kept, dmi_acc_bytes(dmi_acc_of(r->dtype)), DMI_WRITE);
}

static void touch_acc_store(const dmi_step *step, const dmi_args *args, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_acc_store *s = step->desc;
    int64_t count = 1;
    for (int d = 0; d < s->ndim; d++) {
        count *= s->extent[d];
    }
    touch_dense(&out[0], count, dmi_acc_bytes(s->acc), DMI_READ);
    touch_box(&out[1], s->ndim, s->extent, s->out_stride, s->out_offset, dmi_dtype_bytes(s->out_dtype),
              scalar(step, args, 1) != 0 ? DMI_READWRITE : DMI_WRITE);
}

static void touch_fold(const dmi_step *step, const dmi_args *args, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fold *f = step->desc;
    const dmi_acc_store *s = &f->store;
    int64_t elem = dmi_dtype_bytes(f->dtype), rows[2] = {f->addends - (f->own >= 0), 1},
            stride[2] = {f->pitch, 1};
    for (int d = 0; d < s->ndim; d++) {
        rows[1] *= s->extent[d];
    }
    touch_box(&out[0], 2, rows, stride, 0, elem, DMI_READ);
    touch_box(&out[1], s->ndim, s->extent, s->out_stride, s->out_offset, dmi_dtype_bytes(s->out_dtype),
              scalar(step, args, 1) != 0 ? DMI_READWRITE : DMI_WRITE);
    touch_box(&out[2], s->ndim, s->extent, f->own_stride, f->own_offset, elem, f->own >= 0 ? DMI_READ : 0);
}

void dmi_sim_touches(const dmi_step *step, const dmi_args *args, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_copy *copy = step->desc;
    memset(out, 0, DMI_MAX_REFS * sizeof *out);
    switch (step->kind) {
    case DMI_STEP_PUSH:
        touch_copy(&out[0], copy, false, dmi_dtype_bytes(copy->src_dtype), DMI_READ);
        break;
    case DMI_STEP_EXPECT:
        touch_copy(&out[0], copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
        break;
    case DMI_STEP_COPY:
        touch_copy(&out[0], copy, false, dmi_dtype_bytes(copy->src_dtype), DMI_READ);
        touch_copy(&out[1], copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
        break;
    case DMI_STEP_GEMM:
        touch_gemm(step, args, out);
        break;
    case DMI_STEP_FUSED:
        touch_gemm(step, args, out); /* begins with one */
        touch_own(step, 1, &out[3]);
        touch_own(step, 0, &out[4]);
        break;
    case DMI_STEP_EWISE:
        touch_ewise(step, args, out);
        break;
    case DMI_STEP_FILL:
        touch_fill(step, out);
        break;
    case DMI_STEP_REDUCE:
        touch_reduce(step, out);
        break;
    case DMI_STEP_ACC_ADD: {
        const dmi_acc_add *add = step->desc;
        touch_copy(&out[0], &add->geometry, false, dmi_acc_bytes(add->acc), DMI_READ);
        touch_copy(&out[1], &add->geometry, true, dmi_acc_bytes(add->acc), DMI_READWRITE);
        break;
    }
    case DMI_STEP_ACC_STORE:
        touch_acc_store(step, args, out);
        break;
    case DMI_STEP_FOLD:
        touch_fold(step, args, out);
        break;
    case DMI_STEP_FILE_READ:
    case DMI_STEP_FILE_WRITE: {
        const dmi_file_part *part = step->desc;
        bool read = step->kind == DMI_STEP_FILE_READ; /* the file, that is */
        touch_copy(&out[0], &part->geometry, read, dmi_dtype_bytes(part->geometry.src_dtype),
                   read ? DMI_WRITE : DMI_READ);
        break;
    }
    default:
        break;
    }
}

/* --- walking --- */

typedef struct walker {
    const dmi_touch *t;
    void (*each)(void *context, int64_t from, int64_t to);
    void *context;
    int64_t from, to; /* not yet told */
} walker;

static void stretch(walker *w, int64_t from)
{
    if (from != w->to) {
        if (w->from < w->to) {
            w->each(w->context, w->from, w->to);
        }
        w->from = from;
    }
    w->to = from + w->t->inner;
}

static void walk_dim(walker *w, int d, int64_t at)
{
    const dmi_touch *t = w->t;
    if (d == t->ndim) {
        stretch(w, at);
        return;
    }
    for (int64_t r = 0; r < t->nrun[d]; r++) {
        int64_t first = !t->run[d] ? 0 : t->dst ? t->run[d][r].b : t->run[d][r].a;
        int64_t len = t->run[d] ? t->run[d][r].len : t->len[d];
        for (int64_t i = 0; i < len; i++) {
            walk_dim(w, d + 1, at + (first + i) * t->stride[d]);
        }
    }
}

void dmi_sim_walk(const dmi_touch *touch, void (*each)(void *context, int64_t from, int64_t to), void *context)
{
    walker w = {.t = touch, .each = each, .context = context, .from = INT64_MIN, .to = INT64_MIN};
    if (touch->rw == 0 || touch->inner == 0) {
        return;
    }
    walk_dim(&w, 0, touch->offset);
    each(context, w.from, w.to);
}

static void hash_stretch(void *context, int64_t from, int64_t to)
{
    uint64_t *h = context;
    *h = (*h ^ (uint64_t)from) * UINT64_C(0x9e3779b97f4a7c15);
    *h = ((*h ^ *h >> 29) ^ (uint64_t)to) * UINT64_C(0xbf58476d1ce4e5b9);
    *h ^= *h >> 32;
}

uint64_t dmi_sim_landing_hash(const dmi_step *step)
{
    const dmi_copy *copy = step->desc;
    dmi_touch t;
    uint64_t hash = (uint64_t)copy->dst_dtype + 1;
    touch_copy(&t, copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
    dmi_sim_walk(&t, hash_stretch, &hash);
    return hash;
}
