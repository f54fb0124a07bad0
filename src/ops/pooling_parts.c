/* What pooling and its gradient share: arguments, shapes, descriptor. */
#include "ops/pooling_parts.h"
#include "base/sized.h"

#include <inttypes.h>
#include <string.h>

enum { KERNEL = 0, STRIDE = 2, PAD = 4, GLOBAL = 7, DOWN = 8, RELU = 10, ARGS = 11 };

static const char *const names[] = {"kernel[0]", "kernel[1]", "stride[0]", "stride[1]", "pad[0]", "pad[1]"};

static dm_status check_windows(const char *call, const int32_t *arg)
{
    for (int i = 0; i < PAD + 2; i++) {
        int least = i < PAD ? 1 : 0;
        if (arg[i] < least) {
            return dmi_fail(DM_ERR_ARG, "%s: %s is %d, not %d or more", call, names[i], arg[i], least);
        }
    }
    for (int d = 0; d < 2; d++) {
        if (arg[PAD + d] >= arg[KERNEL + d]) {
            return dmi_fail(DM_ERR_ARG, "%s: %s is %d, not less than %s, which is %d", call, names[PAD + d],
                            arg[PAD + d], names[KERNEL + d], arg[KERNEL + d]);
        }
    }
    return DM_OK;
}

static dm_status take(const dm_pool *pool, int32_t arg[ARGS], uint64_t *seed)
{
    const char *call = dmi_api_called() ? dmi_api_called() : "pool";
    dm_pool known;
    if (!pool) {
        return dmi_fail(DM_ERR_ARG, "%s: pool is NULL: start from DM_POOL_INIT", call);
    }
    dm_status status = dmi_sized_take(pool, DMI_SIZED_LEAST(dm_pool, slices), &known, sizeof known,
                                      "pool: start from DM_POOL_INIT");
    if (status != DM_OK) {
        return status;
    }
    for (int d = 0; d < 2; d++) {
        arg[KERNEL + d] = known.global ? 0 : known.kernel[d];
        arg[STRIDE + d] = known.global ? 1 : known.stride[d];
        arg[PAD + d] = known.global ? 0 : known.pad[d];
    }
    arg[DMI_POOLING_METHOD] = known.method;
    arg[GLOBAL] = known.global != 0;
    arg[DOWN] = known.round_down != 0;
    arg[DMI_POOLING_SLICES] = known.slices;
    arg[RELU] = known.relu != 0;
    *seed = known.seed;
    if (known.method < DM_POOL_MAX || known.method > DM_POOL_WEIGHTED) {
        return dmi_fail(DM_ERR_ARG, "%s: method is %d, not one of DM_POOL_*", call, known.method);
    }
    return known.global ? DM_OK : check_windows(call, arg);
}

/* Rows or columns of y; 0: the kernel does not fit. */
static int64_t extent_of(const int32_t *arg, int d, int64_t x)
{
    int64_t kernel = arg[GLOBAL] ? x : arg[KERNEL + d], stride = arg[STRIDE + d], pad = arg[PAD + d];
    int64_t room = x + 2 * pad - kernel;
    /* Rounded up, a kernel that is larger by less than a stride has one window, which is cut. */
    if (kernel < 1 || (room < 0 && (arg[DOWN] || x < 1 || room <= -stride))) {
        return 0;
    }
    int64_t y = (arg[DOWN] ? room / stride : (room + stride - 1) / stride) + 1;
    bool padded = arg[PAD] > 0 || arg[PAD + 1] > 0;
    return padded && (y - 1) * stride >= x + pad ? y - 1 : y;
}

static dm_status shape_of(const char *call, const int32_t *arg, const int64_t *x, int64_t *y)
{
    y[0] = x[0];
    y[3] = x[3];
    for (int d = 0; d < 2; d++) {
        y[1 + d] = extent_of(arg, d, x[1 + d]);
        if (y[1 + d] < 1) {
            return dmi_fail(DM_ERR_SHAPE, "%s: the kernel does not fit into x of %" PRId64 "x%" PRId64, call,
                            x[1], x[2]);
        }
    }
    return DM_OK;
}

dm_status dm_pool_shape(const dm_pool *pool, const int64_t *x, int64_t *y)
{
    int32_t arg[ARGS];
    int64_t made[4];
    uint64_t seed;
    dm_status status = take(pool, arg, &seed);
    if (status == DM_OK && (!x || !y)) {
        return dmi_fail(DM_ERR_ARG, "pool_shape: %s is NULL", !x ? "x" : "y");
    }
    status = status == DM_OK ? shape_of("pool_shape", arg, x, made) : status;
    if (status == DM_OK) {
        memcpy(y, made, sizeof made);
    }
    return status;
}

dm_status dmi_pooling_call(const dm_pool *pool, int op, dmi_call *call)
{
    uint64_t seed = 0;
    *call = (dmi_call){.op = op, .numbers = 1};
    dm_status status = take(pool, call->args.i, &seed);
    /* of other methods no step changes from run to run */
    call->seeds = call->args.i[DMI_POOLING_METHOD] == DM_POOL_STOCHASTIC;
    call->number[0] = (dmi_number){.whole = (int64_t)seed};
    return status;
}

dm_status dmi_pooling_fits(const dmi_call *call, int x, int y)
{
    int64_t made[4];
    char have[192], want[192];
    dm_status status = dmi_layer_dims(call, x, 4);
    status = status == DM_OK ? dmi_layer_dims(call, y, 4) : status;
    status = status == DM_OK ? shape_of(dmi_call_name(call), call->args.i, call->operand[x].desc.extent, made)
                             : status;
    if (status == DM_OK && memcmp(made, call->operand[y].desc.extent, sizeof made) != 0) {
        dmi_desc wanted = {.ndim = 4};
        memcpy(wanted.extent, made, sizeof made);
        status = dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, but pooling makes %s", dmi_call_name(call),
                          dmi_operand_name(call, y), dmi_shape_text(&call->operand[y].desc, have),
                          dmi_shape_text(&wanted, want));
    }
    return status == DM_OK ? dmi_layer_check(call, call->args.i[DMI_POOLING_SLICES]) : status;
}

dm_status dmi_pooling_fits_taps(const dmi_call *call, int x, int taps)
{
    const int32_t *arg = call->args.i;
    const int64_t *in = call->operand[x].desc.extent + 1;
    int64_t elements = arg[GLOBAL] ? in[0] * in[1] : (int64_t)arg[KERNEL] * arg[KERNEL + 1];
    return elements <= UINT8_MAX
               ? DM_OK
               : dmi_fail(DM_ERR_DTYPE, "%s: %s is u8, but windows have %" PRId64 " elements, more than %d",
                          dmi_call_name(call), dmi_operand_name(call, taps), elements, UINT8_MAX);
}

void dmi_pooling_describe(const dmi_builder *b, const dmi_call *call, int x, int y, unsigned operands,
                          dmi_pooling *d)
{
    const dmi_desc *from = &call->operand[x].desc;
    *d = (dmi_pooling){.dnn = {.dtype = dmi_layer_kernel_dtype(b, call, operands)},
                       .method = call->args.i[DMI_POOLING_METHOD],
                       .relu = call->args.i[RELU]};
    memcpy(d->in, from->extent + 1, sizeof d->in);
    memcpy(d->out, call->operand[y].desc.extent + 1, sizeof d->out);
    for (int i = 0; i < 2; i++) {
        d->kernel[i] = call->args.i[GLOBAL] ? from->extent[1 + i] : call->args.i[KERNEL + i];
        d->stride[i] = call->args.i[STRIDE + i];
        d->pad[i] = call->args.i[PAD + i];
    }
}
