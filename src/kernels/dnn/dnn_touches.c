/* What layers touch: each reference densely. */
#include "kernels/kernel.h"

static void touch_all(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_dnn *d = t->desc; /* every descriptor begins with one */
    for (int r = 0; r < DMI_DNN_REFS && r < t->refs; r++) {
        int64_t elem = dmi_dtype_bytes(d->type[r]);
        dmi_touch_dense(&out[r], d->count[r], elem, d->mode[r]);
        out[r].offset = d->offset[r] * elem;
    }
}

#define TOUCHES(name)                                                                                          \
    void dmi_##name##_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])                              \
    {                                                                                                          \
        touch_all(t, out);                                                                                     \
    }
TOUCHES(conv)
TOUCHES(conv_data)
TOUCHES(conv_weights)
TOUCHES(pooling)
TOUCHES(pooling_back)
TOUCHES(inner)
TOUCHES(inner_data)
TOUCHES(inner_weights)
TOUCHES(channel_sums)
TOUCHES(softmax_loss)
TOUCHES(softmax_back)
TOUCHES(accuracy)
TOUCHES(lrn)
TOUCHES(lrn_back)
TOUCHES(pair_loss)
TOUCHES(pair_back)
TOUCHES(hinge_loss)
TOUCHES(hinge_back)

void dmi_relu_sums_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_channel_rows *d = t->desc;
    touch_all(t, out);
    if (t->refs > 1 && d->dnn.count[1] > 0) { /* the rows of dy */
        dmi_touch_box(&out[1], 2, (int64_t[]){d->rows * d->dnn.samples, d->channels},
                      (int64_t[]){d->dnn.pitch, 1}, d->dnn.offset[1], dmi_dtype_bytes(d->dnn.type[1]),
                      DMI_READ);
    }
}
