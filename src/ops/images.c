/* y = (x - mean) * scale, mirrored, with the channels of x as the last dim */
#include "base/sized.h"
#include "ops/common_layer.h"

#include <inttypes.h>

enum { X, PLACES, Y, MEAN };
enum { SLICES };

dm_status dm_images_forward(dm_session *session, const dm_images *images, dm_array x, dm_array places,
                            dm_array mean, dm_array y)
{
    dm_images known;
    if (!images) {
        return dmi_fail(DM_ERR_ARG, "images_forward: images is NULL: start from DM_IMAGES_INIT");
    }
    dm_status status = dmi_sized_take(images, DMI_SIZED_LEAST(dm_images, slices), &known, sizeof known,
                                      "images_forward: start from DM_IMAGES_INIT");
    if (status != DM_OK) {
        return status;
    }
    dmi_call call = {.op = DMI_OP_images, .noperand = 4, .args = {.i = {known.slices}}, .numbers = 1};
    call.number[0] = dmi_number_of(known.scale);
    return dmi_layer_submit(session, &call, (dm_array[]){x, places, y, mean});
}

static bool has_mean(const dmi_call *call)
{
    return call->noperand > MEAN;
}

/* A mean for each element, not for each channel? */
static bool has_plane(const dmi_call *call)
{
    return has_mean(call) && call->operand[MEAN].desc.ndim == 3;
}

/* Is x what y shows, and no larger image? */
static bool is_window(const dmi_desc *x, const dmi_desc *y)
{
    return x->extent[2] == y->extent[1] && x->extent[3] == y->extent[2];
}

static dm_status check_mean(const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc, *y = &call->operand[Y].desc, *mean = &call->operand[MEAN].desc;
    bool plane = has_plane(call);
    char text[192];
    if (!plane) {
        return dmi_layer_count(call, MEAN, y->extent[3], "channels");
    }
    bool fits =
        mean->extent[0] == y->extent[3] && mean->extent[1] >= y->extent[1] && mean->extent[2] >= y->extent[2];
    if (fits && (is_window(x, y) || (mean->extent[1] == x->extent[2] && mean->extent[2] == x->extent[3]))) {
        return DM_OK;
    }
    return dmi_fail(DM_ERR_SHAPE,
                    "%s: mean is %s, neither an element for each channel nor an image of x or larger than y",
                    dmi_call_name(call), dmi_shape_text(mean, text));
}

dm_status dmi_images_check(dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc, *places = &call->operand[PLACES].desc,
                   *y = &call->operand[Y].desc;
    char one[192], two[192];
    dm_status status = dmi_layer_dims(call, X, 4);
    status = status == DM_OK ? dmi_layer_dims(call, Y, 4) : status;
    if (status != DM_OK) {
        return status;
    }
    if (y->extent[0] != x->extent[0] || y->extent[3] != x->extent[1] || y->extent[1] > x->extent[2] ||
        y->extent[2] > x->extent[3]) {
        return dmi_fail(DM_ERR_SHAPE,
                        "%s: y is %s, which is no window of x, samples x channels x rows x columns %s",
                        dmi_call_name(call), dmi_shape_text(y, one), dmi_shape_text(x, two));
    }
    if (places->ndim != 2 || places->extent[0] != x->extent[0] || places->extent[1] != 3) {
        return dmi_fail(DM_ERR_SHAPE, "%s: places is %s, not 3 for each of %" PRId64 " samples",
                        dmi_call_name(call), dmi_shape_text(places, one), x->extent[0]);
    }
    status = has_mean(call) ? check_mean(call) : DM_OK;
    return status == DM_OK ? dmi_layer_check(call, call->args.i[SLICES]) : status;
}

dm_status dmi_images_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc, *y = &call->operand[Y].desc;
    const dm_dtype t = dmi_layer_kernel_dtype(b, call, 1u << Y), wide = dmi_layer_wide(t);
    const bool mean = has_mean(call), plane = has_plane(call);
    const dmi_desc *whole = plane ? &call->operand[MEAN].desc : x;
    const int first = whole->ndim - 2;
    dmi_images d = {.dnn = {.dtype = t},
                    .in = {x->extent[2], x->extent[3]},
                    .whole = {whole->extent[first], whole->extent[first + 1]},
                    .out = {y->extent[1], y->extent[2], y->extent[3]},
                    .plane = plane};
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_images,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[SLICES],
                                       .like = Y,
                                       .ref = {{DMI_LAYER_SLICED, X, x->dtype == DM_U8 ? DM_U8 : wide, 0},
                                               {DMI_LAYER_SLICED, PLACES, DM_I32, 0},
                                               {mean ? DMI_LAYER_WHOLE : DMI_LAYER_NONE, MEAN, wide, 0},
                                               {DMI_LAYER_MADE, Y, t, 0}}});
}
