/* A step of gradient descent with momentum. */
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

typedef struct numbers {
    double scale, decay, momentum, rate;
    bool decays, l1;
} numbers;

/* n elements; strides: of the gradient, of the others. Each operation is rounded, as in dm_map. */
#define ROW(T, name)                                                                                           \
    static void name(const numbers *p, int64_t n, const int64_t stride[2], const T *g, T *h, T *w)             \
    {                                                                                                          \
        const T scale = (T)p->scale, decay = (T)p->decay, momentum = (T)p->momentum, rate = (T)p->rate;        \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            const int64_t at = i * stride[1];                                                                  \
            const T old = w[at], sign = (T)((old > 0) - (old < 0));                                            \
            T step = scale * g[i * stride[0]];                                                                 \
            if (p->decays) {                                                                                   \
                const T more = decay * (p->l1 ? (old != old ? old : sign) : old);                              \
                step += more;                                                                                  \
            }                                                                                                  \
            const T kept = momentum * h[at], moved = rate * step;                                              \
            h[at] = kept + moved;                                                                              \
            w[at] = old - h[at];                                                                               \
        }                                                                                                      \
    }
ROW(float, row_f32)
ROW(double, row_f64)

/* A row of w, rounded. */
static void round_row(const float *w, dm_dtype to, void *out, int64_t stride, int64_t n)
{
    dmi_chunk buffer;
    for (int64_t i = 0; i < n; i += DMI_CHUNK) {
        const int64_t m = DMI_MIN(n - i, DMI_CHUNK);
        dmi_row_store(DM_F32, dmi_row_load(DM_F32, w + i * stride, stride, DM_F32, &buffer, m), to,
                      dmi_at_mut(out, i * stride * dmi_dtype_bytes(to)), stride, m);
    }
}

bool dmi_momentum_box(const dmi_momentum *d, dmi_box *box, int64_t *at)
{
    *box = (dmi_box){.ndim = d->ndim, .sides = 2};
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0) {
            return false;
        }
        box->extent[k] = d->extent[k];
        box->stride[0][k] = d->stride[0][k];
        box->stride[1][k] = d->stride[1][k];
    }
    at[0] = d->offset[0];
    at[1] = d->offset[1];
    dmi_box_simplify(box, 0);
    return true;
}

dm_status dmi_momentum_cpu(const dmi_kernel_call *call)
{
    const dmi_momentum *d = call->desc;
    const dmi_number *number = call->number;
    dmi_box box;
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES], bytes = dmi_dtype_bytes(d->dtype);
    numbers p = {number[DMI_MOMENTUM_SCALE].re,
                 number[DMI_MOMENTUM_DECAY].re,
                 number[DMI_MOMENTUM_MOMENTUM].re,
                 number[DMI_MOMENTUM_RATE].re,
                 d->decays,
                 d->l1};
    if (!dmi_momentum_box(d, &box, at)) {
        return DM_OK;
    }
    if (d->rate != 0) {
        const void *rate = dmi_at(call->at[3], d->rate_offset * dmi_dtype_bytes(d->rate));
        p.rate = d->rate == DM_F32 ? (double)*(const float *)rate : *(const double *)rate;
    }
    int inner = box.ndim - 1;
    const int64_t stride[2] = {box.stride[0][inner], box.stride[1][inner]};
    do {
        const void *g = dmi_at(call->at[0], at[0] * bytes);
        void *h = dmi_at_mut(call->at[1], at[1] * bytes), *w = dmi_at_mut(call->at[2], at[1] * bytes);
        if (d->dtype == DM_F64) {
            row_f64(&p, box.extent[inner], stride, g, h, w);
        } else {
            row_f32(&p, box.extent[inner], stride, g, h, w);
        }
        if (d->rounded != 0) {
            round_row(w, d->rounded,
                      dmi_at_mut(call->at[dmi_momentum_copy(d)], at[1] * dmi_dtype_bytes(d->rounded)),
                      stride[1], box.extent[inner]);
        }
    } while (dmi_box_next(&box, inner, index, at));
    return DM_OK;
}
