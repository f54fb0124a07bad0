/* What each kernel touches. */
#include "kernels/kernel.h"

#include "io/file.h"
#include "kernels/task.h"

void dmi_copy_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_copy *copy = t->desc;
    dmi_touch_copy(&out[0], copy, false, dmi_dtype_bytes(copy->src_dtype), DMI_READ);
    dmi_touch_copy(&out[1], copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
}

void dmi_gemm_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_gemm *g = t->desc;
    int64_t elem = dmi_dtype_bytes(g->dtype), c_elem = g->c_dtype == 0 ? elem : dmi_dtype_bytes(g->c_dtype);
    int64_t a[2] = {g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k}, a_stride[2] = {g->lda, 1};
    int64_t b[2] = {g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n}, b_stride[2] = {g->ldb, 1};
    int64_t c[2] = {g->m, g->n}, c_stride[2] = {g->ldc, 1};
    bool any = g->m > 0 && g->n > 0;
    dmi_touch_box(&out[0], 2, a, a_stride, g->a_offset, elem, any ? DMI_READ : 0);
    dmi_touch_box(&out[1], 2, b, b_stride, g->b_offset, elem, any ? DMI_READ : 0);
    dmi_touch_box(&out[2], 2, c, c_stride, g->c_offset, c_elem, t->zero[1] ? DMI_WRITE : DMI_READWRITE);
}

/* The own part of operand `which`, which is not in its image. */
static void touch_own(const dmi_fused_gemm *f, int which, dmi_touch *out)
{
    int64_t own = f->own_k1 - f->own_k0, other = which == 0 ? f->gemm.m : f->gemm.n;
    int64_t extent[2] = {own, other}, stride[2] = {f->ld_own[which], 1};
    bool by_rows = which == 0 ? !f->gemm.trans_a : f->gemm.trans_b; /* k runs along its rows */
    if (by_rows) {
        extent[0] = other;
        extent[1] = own;
    }
    dmi_touch_box(out, 2, extent, stride, f->own_offset[which], dmi_dtype_bytes(f->gemm.dtype),
                  own > 0 && f->ld_own[which] > 0 ? DMI_READ : 0);
}

void dmi_fused_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    dmi_gemm_touches(t, out); /* its descriptor begins with one */
    touch_own(t->desc, 1, &out[3]);
    touch_own(t->desc, 0, &out[4]);
}

void dmi_map_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_map *m = t->desc;
    for (int i = 0; i <= m->program.inputs; i++) {
        dmi_touch_box(&out[i], m->ndim, m->extent, m->stride[i], m->offset[i], dmi_dtype_bytes(m->dtype[i]),
                      i < m->program.inputs ? DMI_READ : DMI_WRITE);
    }
}

void dmi_fill_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fill *f = t->desc;
    int64_t extent[DM_MAX_DIMS] = {0};
    for (int d = 0; d < f->region.ndim; d++) {
        extent[d] = f->region.dim[d].count;
    }
    dmi_touch_box(&out[0], f->region.ndim, extent, f->region.stride, dmi_region_start(&f->region),
                  dmi_dtype_bytes(f->dtype), DMI_WRITE);
}

void dmi_reduce_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_reduce *r = t->desc;
    int64_t kept = 1;
    for (int d = 0; d < r->ndim; d++) {
        kept *= r->reduced >> d & 1 ? 1 : r->extent[d];
    }
    int inputs = r->map ? r->map->program.inputs : 1;
    for (int i = 0; i < inputs && r->map; i++) {
        dmi_touch_box(&out[i], r->ndim, r->extent, r->map->stride[i], r->map->offset[i],
                      dmi_dtype_bytes(r->map->dtype[i]), DMI_READ);
    }
    if (!r->map) {
        dmi_touch_box(&out[0], r->ndim, r->extent, r->stride, r->offset, dmi_dtype_bytes(r->dtype), DMI_READ);
    }
    dmi_touch_dense(&out[inputs], kept, dmi_acc_bytes(dmi_acc_for(r->row, r->dtype)), DMI_WRITE);
}

void dmi_acc_add_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_acc_add *add = t->desc;
    dmi_touch_copy(&out[0], &add->geometry, false, dmi_acc_bytes(add->acc), DMI_READ);
    dmi_touch_copy(&out[1], &add->geometry, true, dmi_acc_bytes(add->acc), DMI_READWRITE);
}

static void touch_stored(const dmi_touching *t, const dmi_acc_store *s, dmi_touch *out)
{
    dmi_touch_box(out, s->ndim, s->extent, s->out_stride, s->out_offset, dmi_dtype_bytes(s->out_dtype),
                  t->zero[1] ? DMI_WRITE : DMI_READWRITE);
}

void dmi_acc_store_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_acc_store *s = t->desc;
    int64_t count = 1;
    for (int d = 0; d < s->ndim; d++) {
        count *= s->extent[d];
    }
    dmi_touch_dense(&out[0], count, dmi_acc_bytes(s->acc), DMI_READ);
    touch_stored(t, s, &out[1]);
}

void dmi_fold_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fold *f = t->desc;
    const dmi_acc_store *s = &f->store;
    int64_t elem = dmi_dtype_bytes(f->dtype), rows[2] = {f->addends - (f->own >= 0), 1},
            stride[2] = {f->pitch, 1};
    for (int d = 0; d < s->ndim; d++) {
        rows[1] *= s->extent[d];
    }
    dmi_touch_box(&out[0], 2, rows, stride, 0, elem, DMI_READ);
    touch_stored(t, s, &out[1]);
    dmi_touch_box(&out[2], s->ndim, s->extent, f->own_stride, f->own_offset, elem, f->own >= 0 ? DMI_READ : 0);
}

void dmi_file_read_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_file_part *part = t->desc;
    dmi_touch_copy(&out[0], &part->geometry, true, dmi_dtype_bytes(part->geometry.src_dtype), DMI_WRITE);
}

void dmi_file_write_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_file_part *part = t->desc;
    dmi_touch_copy(&out[0], &part->geometry, false, dmi_dtype_bytes(part->geometry.src_dtype), DMI_READ);
}

/* From the first byte of all blocks of an operand to the last: views leave gaps, which nobody else uses
 * meanwhile. */
void dmi_task_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_task_desc *task = t->desc;
    for (int i = 0; i < t->refs; i++) {
        int64_t from = INT64_MAX, to = INT64_MIN;
        for (int64_t k = 0; k < task->blocks[i]; k++) {
            const dm_block *block = &task->block[i][k];
            int64_t elem = dmi_dtype_bytes(block->dtype), last = task->offset[i][k];
            for (int d = 0; d < block->ndim; d++) {
                last += (block->extent[d] - 1) * block->stride[d];
            }
            from = DMI_MIN(from, task->offset[i][k] * elem);
            to = DMI_MAX(to, (last + 1) * elem);
        }
        out[i] = (dmi_touch){.rw = to > from ? task->mode[i] : 0, .offset = from, .inner = to - from};
    }
}
