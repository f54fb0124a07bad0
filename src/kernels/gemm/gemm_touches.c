/* What products touch. */
#include "kernels/kernel.h"

void dmi_gemm_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_gemm *g = t->desc;
    int64_t elem = dmi_dtype_bytes(g->dtype), c_elem = g->c_dtype == 0 ? elem : dmi_dtype_bytes(g->c_dtype);
    int64_t count = dmi_gemm_count(g);
    int64_t a[3] = {count, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k}, a_stride[3] = {g->a_step, g->lda, 1};
    int64_t b[3] = {count, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n}, b_stride[3] = {g->b_step, g->ldb, 1};
    int64_t c[3] = {count, g->m, g->n}, c_stride[3] = {g->c_step, g->ldc, 1};
    bool any = g->m > 0 && g->n > 0;
    dmi_touch_box(&out[0], 3, a, a_stride, g->a_offset, elem, any ? DMI_READ : 0);
    dmi_touch_box(&out[1], 3, b, b_stride, g->b_offset, elem, any ? DMI_READ : 0);
    dmi_touch_box(&out[2], 3, c, c_stride, g->c_offset, c_elem, t->zero[1] ? DMI_WRITE : DMI_READWRITE);
}

/* The worker's shard of operand `which`, which is not in the gathered operand. */
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
