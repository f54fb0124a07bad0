/* What triangular solves touch. */
#include "kernels/kernel.h"

void dmi_trsm_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_trsm *s = t->desc;
    int64_t elem = dmi_dtype_bytes(s->dtype), order = s->right ? s->n : s->m;
    int64_t a[2] = {order, order}, a_stride[2] = {s->lda, 1};
    int64_t b[2] = {s->m, s->n}, b_stride[2] = {s->ldb, 1};
    bool any = s->m > 0 && s->n > 0;
    dmi_touch_box(&out[0], 2, a, a_stride, s->a_offset, elem, any ? DMI_READ : 0);
    dmi_touch_box(&out[1], 2, b, b_stride, s->b_offset, elem, any ? DMI_READWRITE : 0);
}
