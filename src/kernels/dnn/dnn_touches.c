/* What layers touch: each reference densely, or in rows that lie apart. */
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
TOUCHES(lrn_pool)
TOUCHES(lrn_pool_back)
TOUCHES(images)
TOUCHES(pair_loss)
TOUCHES(pair_back)
TOUCHES(hinge_loss)
TOUCHES(hinge_back)

/* Reference r has rows of so many elements. */
static void touch_rows(const dmi_touching *t, int r, int64_t elements, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_dnn *d = t->desc;
    if (r < t->refs && d->count[r] > 0 && d->pitch[r] > 0) {
        dmi_touch_box(&out[r], 2, (int64_t[]){d->count[r] / elements, elements}, (int64_t[]){d->pitch[r], 1},
                      d->offset[r], dmi_dtype_bytes(d->type[r]), d->mode[r]);
    }
}

void dmi_conv_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    touch_all(t, out);
    touch_rows(t, 2, ((const dmi_convolution *)t->desc)->out[2], out);
    out[4].scratch = true;
}

void dmi_conv_data_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    touch_all(t, out);
    out[3].scratch = true;
}

void dmi_conv_weights_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    touch_all(t, out);
    out[4].scratch = true;
}

void dmi_relu_sums_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const int64_t channels = ((const dmi_channel_rows *)t->desc)->channels;
    touch_all(t, out);
    touch_rows(t, 0, channels, out);
    touch_rows(t, 1, channels, out);
    touch_rows(t, 2, channels, out);
}
