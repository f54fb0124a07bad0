/* What the convolution and its gradients share: arguments, shapes, descriptor. */
#include "ops/conv_parts.h"
#include "base/sized.h"
#include "kernels/dnn/dnn_parts.h"

#include <inttypes.h>
#include <string.h>

enum { STRIDE = 0, PAD = 2, DILATION = 4, GROUP = 6, ARGS = 7 };

static const char *const names[ARGS] = {"stride[0]",   "stride[1]",   "pad[0]", "pad[1]",
                                        "dilation[0]", "dilation[1]", "group"};

/* The fields of conv, in the order of names. */
static dm_status take(const dm_conv *conv, int32_t arg[DMI_ARG_INTS])
{
    const char *call = dmi_api_called() ? dmi_api_called() : "conv";
    dm_conv known;
    if (!conv) {
        return dmi_fail(DM_ERR_ARG, "%s: conv is NULL: start from DM_CONV_INIT", call);
    }
    dm_status status = dmi_sized_take(conv, DMI_SIZED_LEAST(dm_conv, slices), &known, sizeof known,
                                      "conv: start from DM_CONV_INIT");
    if (status != DM_OK) {
        return status;
    }
    for (int d = 0; d < 2; d++) {
        arg[STRIDE + d] = known.stride[d];
        arg[PAD + d] = known.pad[d];
        arg[DILATION + d] = known.dilation[d];
    }
    arg[GROUP] = known.group;
    arg[DMI_CONV_SLICES] = known.slices;
    arg[DMI_CONV_RELU] = known.relu != 0;
    arg[DMI_LAYER_WIRE] = (int32_t)known.wire;
    for (int i = 0; i < ARGS; i++) {
        int least = i == PAD || i == PAD + 1 ? 0 : 1;
        if (arg[i] < least) {
            return dmi_fail(DM_ERR_ARG, "%s: %s is %d, not %d or more", call, names[i], arg[i], least);
        }
    }
    return dmi_layer_wire_fits(call, known.wire);
}

/* The rows or columns of y; 0 or less: the kernel does not fit. */
static int64_t extent_of(const int32_t *arg, int d, int64_t x, int64_t kernel)
{
    int64_t span = (int64_t)arg[DILATION + d] * (kernel - 1) + 1, room = x + 2 * (int64_t)arg[PAD + d] - span;
    return room < 0 ? 0 : room / arg[STRIDE + d] + 1;
}

static dm_status shape_of(const char *call, const int32_t *arg, const int64_t *x, const int64_t *w, int64_t *y)
{
    if (w[1] < 1 || w[2] < 1 || w[3] * arg[GROUP] != x[3] || w[0] % arg[GROUP] != 0) {
        return dmi_fail(DM_ERR_SHAPE,
                        "%s: weights of %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
                        " in %d groups do not fit to %" PRId64 " channels of x",
                        call, w[0], w[1], w[2], w[3], arg[GROUP], x[3]);
    }
    y[0] = x[0];
    y[3] = w[0];
    for (int d = 0; d < 2; d++) {
        y[1 + d] = extent_of(arg, d, x[1 + d], w[1 + d]);
        if (y[1 + d] < 1) {
            return dmi_fail(DM_ERR_SHAPE,
                            "%s: a kernel of %" PRId64 "x%" PRId64 " does not fit into x of %" PRId64
                            "x%" PRId64,
                            call, w[1], w[2], x[1], x[2]);
        }
    }
    return DM_OK;
}

dm_status dm_conv_shape(const dm_conv *conv, const int64_t *x, const int64_t *w, int64_t *y)
{
    int32_t arg[DMI_ARG_INTS];
    int64_t made[4];
    dm_status status = take(conv, arg);
    if (status == DM_OK && (!x || !w || !y)) {
        return dmi_fail(DM_ERR_ARG, "conv_shape: %s is NULL", !x ? "x" : !w ? "w" : "y");
    }
    for (int d = 0; d < 4 && status == DM_OK; d++) {
        if (x[d] < 0 || w[d] < 0) {
            return dmi_fail(DM_ERR_ARG, "conv_shape: an extent is below 0");
        }
    }
    status = status == DM_OK ? shape_of("conv_shape", arg, x, w, made) : status;
    if (status == DM_OK) {
        memcpy(y, made, sizeof made);
    }
    return status;
}

dm_status dmi_conv_call(const dm_conv *conv, int op, dmi_call *call)
{
    *call = (dmi_call){.op = op};
    return take(conv, call->args.i);
}

dm_status dmi_conv_fits(const dmi_call *call, dmi_conv_roles roles)
{
    int64_t y[4];
    char have[192], want[192];
    const dmi_desc *x = &call->operand[roles.x].desc, *w = &call->operand[roles.w].desc;
    const dmi_desc *to = &call->operand[roles.y].desc;
    dm_status status = dmi_layer_dims(call, roles.x, 4);
    status = status == DM_OK ? dmi_layer_dims(call, roles.w, 4) : status;
    status = status == DM_OK ? dmi_layer_dims(call, roles.y, 4) : status;
    status = status == DM_OK ? shape_of(dmi_call_name(call), call->args.i, x->extent, w->extent, y) : status;
    if (status == DM_OK && memcmp(y, to->extent, sizeof y) != 0) {
        dmi_desc wanted = {.ndim = 4};
        memcpy(wanted.extent, y, sizeof y);
        status =
            dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, but the convolution makes %s", dmi_call_name(call),
                     dmi_operand_name(call, roles.y), dmi_shape_text(to, have), dmi_shape_text(&wanted, want));
    }
    if (status == DM_OK && roles.bias >= 0 && roles.bias < call->noperand) {
        status = dmi_layer_count(call, roles.bias, w->extent[0], "out channels");
    }
    return status == DM_OK ? dmi_layer_check(call, call->args.i[DMI_CONV_SLICES]) : status;
}

dm_dtype dmi_conv_dtype(const dmi_builder *b, const dmi_call *call, dmi_conv_roles roles)
{
    unsigned all = 1u << roles.x | 1u << roles.y;
    all |= call->op == DMI_OP_conv_weights ? 0 : 1u << roles.w;
    return dmi_cudnn_is_built() ? dmi_layer_kernel_dtype(b, call, all) : dmi_layer_dtype(call);
}

void dmi_conv_describe(const dmi_builder *b, const dmi_call *call, dmi_conv_roles roles, dmi_convolution *d,
                       int64_t *scratch)
{
    const int64_t *x = call->operand[roles.x].desc.extent, *w = call->operand[roles.w].desc.extent,
                  *y = call->operand[roles.y].desc.extent;
    *d = (dmi_convolution){.dnn = {.dtype = dmi_conv_dtype(b, call, roles)}, .group = call->args.i[GROUP]};
    memcpy(d->in, x + 1, sizeof d->in);
    memcpy(d->out, y + 1, sizeof d->out);
    for (int i = 0; i < 2; i++) {
        d->kernel[i] = w[1 + i];
        d->stride[i] = call->args.i[STRIDE + i];
        d->pad[i] = call->args.i[PAD + i];
        d->dilation[i] = call->args.i[DILATION + i];
    }
    d->tf32 = dmi_layer_tf32(b);
    d->relu = call->op == DMI_OP_conv && call->args.i[DMI_CONV_RELU];
    bool halves = dmi_dtype_bytes(d->dnn.dtype) == 2;
    int64_t most = b->profile->gpu && !d->tf32 && !halves ? DMI_CONV_SCRATCH_GPU : DMI_CONV_SCRATCH;
    d->columns[1] = w[1] * w[2] * w[3];
    d->columns[0] = DMI_MAX(most / DMI_MAX(d->columns[1], 1), 1);
    if (halves) { /* whole samples: gradients by x are rounded once */
        d->columns[0] = (d->columns[0] + y[1] * y[2] - 1) / (y[1] * y[2]) * y[1] * y[2];
    }
    d->columns[0] = DMI_MIN(d->columns[0], DMI_MAX(x[0] * y[1] * y[2], 1));
    *scratch = dmi_convolution_is_product(d) ? 0 : d->columns[0] * d->columns[1];
}
