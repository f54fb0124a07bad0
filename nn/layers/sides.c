/* What Convolution, Deconvolution and Im2col read of spatial dims. */
#include "layers/layers.h"

#include <stdio.h>

static const char C[] = "ConvolutionParameter";

/* The value of a field for spatial dim d: of NAME_h and NAME_w where there are two such dims and these are
 * given (stem: NAME; NULL: there are none), else of a repeated field, of one value or one for each dim. */
static dm_status read(const nn_layer *l, const char *field, const char *stem, int d, int spatial, int otherwise,
                      int least, int64_t *out)
{
    const int64_t given = nn_count(l->own, field);
    int value = otherwise;
    char name[32];
    for (int k = 0; stem && k < 2; k++) {
        snprintf(name, sizeof name, "%s_%c", stem, "hw"[k]);
        if (nn_has(l->own, name) && spatial != 2) {
            return nn_layer_fail(l, name, DM_ERR_FORMAT, "has %s, but its bottom has %d spatial dims", name,
                                 spatial);
        }
        if (nn_has(l->own, name) && given) {
            return nn_layer_fail(l, name, DM_ERR_FORMAT, "has %s and %s; only one of the two may be there",
                                 field, name);
        }
    }
    if (given > 1 && given != spatial) {
        return nn_layer_fail(l, field, DM_ERR_FORMAT, "has %lld values of %s; its bottom has %d spatial dims",
                             (long long)given, field, spatial);
    }
    dm_status status = DM_OK;
    if (given) {
        status = nn_to_int(l, field, nn_int_at(l->own, field, given == 1 ? 0 : d), least, &value);
    } else if (stem && spatial == 2) {
        snprintf(name, sizeof name, "%s_%c", stem, "hw"[d]);
        status = nn_has(l->own, name) ? nn_to_int(l, name, nn_int(l->own, C, name), least, &value) : DM_OK;
    }
    *out = value;
    return status;
}

/* Windows in `from` elements, or with `back` elements in which there are so many windows. */
static dm_status fit(const nn_layer *l, int dim, bool back, nn_side *s)
{
    const int64_t extent = l->bottom[0]->shape[dim], window = s->dilation * (s->kernel - 1) + 1;
    if (back) {
        const bool fits = s->stride <= (INT64_C(1) << 61) / extent;
        s->windows = extent;
        s->from = fits ? s->stride * (extent - 1) + window - 2 * s->pad : INT64_MAX;
        return DM_OK;
    }
    const int64_t room = extent + 2 * s->pad - window;
    s->from = extent;
    s->windows = room / s->stride + 1;
    return room >= 0 ? DM_OK
                     : nn_layer_fail(l, "convolution_param", DM_ERR_SHAPE,
                                     "has a kernel of %lld along dim %d, which has %lld with its padding",
                                     (long long)window, dim, (long long)(extent + 2 * s->pad));
}

static dm_status read_side(const nn_layer *l, int d, int spatial, nn_side *s)
{
    dm_status status = read(l, "kernel_size", "kernel", d, spatial, 0, 1, &s->kernel);
    status = status == DM_OK ? read(l, "stride", "stride", d, spatial, 1, 1, &s->stride) : status;
    status = status == DM_OK ? read(l, "pad", "pad", d, spatial, 0, 0, &s->pad) : status;
    status = status == DM_OK ? read(l, "dilation", NULL, d, spatial, 1, 1, &s->dilation) : status;
    return status == DM_OK && s->kernel == 0
               ? nn_layer_fail(l, "convolution_param", DM_ERR_FORMAT, "has no kernel_size")
               : status;
}

/* Without spatial dims a kernel has one element, which a file may say. */
static dm_status read_none(const nn_layer *l)
{
    int64_t kernel = 1;
    dm_status status = read(l, "kernel_size", "kernel", 0, 0, 1, 1, &kernel);
    return status == DM_OK && kernel != 1
               ? nn_layer_fail(l, "kernel_size", DM_ERR_FORMAT,
                               "has kernel_size %lld, but its bottom has no spatial dims", (long long)kernel)
               : status;
}

dm_status nn_sides_read(const nn_layer *l, bool back, nn_sides *out)
{
    const int ndim = l->bottom[0]->ndim;
    *out = (nn_sides){0};
    dm_status status = nn_axis(l, "axis", ndim, &out->axis);
    if (status == DM_OK && out->axis == 0) {
        return nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                             "has axis 0, but dim 0 is the batch, which workers share out");
    }
    out->spatial = ndim - out->axis - 1;
    status = status == DM_OK && out->spatial == 0 ? read_none(l) : status;
    for (int d = 0; status == DM_OK && d < out->spatial; d++) {
        status = read_side(l, d, out->spatial, &out->side[d]);
        status = status == DM_OK ? fit(l, out->axis + 1 + d, back, &out->side[d]) : status;
    }
    return status;
}

int64_t nn_side_reach(const nn_side *s, int64_t tap, int64_t *first, int64_t *element)
{
    const int64_t shift = tap * s->dilation - s->pad;
    const int64_t lo = shift < 0 ? (s->stride - 1 - shift) / s->stride : 0;
    const int64_t past = s->from > shift ? (s->from - shift + s->stride - 1) / s->stride : 0;
    const int64_t hi = past < s->windows ? past : s->windows;
    *first = lo;
    *element = lo * s->stride + shift;
    return hi > lo ? hi - lo : 0;
}
