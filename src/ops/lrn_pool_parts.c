/* What local response normalisation with pooling and its gradient share. */
#include "ops/lrn_pool_parts.h"
#include "kernels/dnn/dnn_parts.h"
#include "ops/lrn_parts.h"

#include <string.h>

enum { SIZE = DMI_POOLING_TAPS + 1, RELU }; /* places in args.i, behind pooling's */

dm_status dmi_lrn_pool_call(const dm_lrn *lrn, const dm_pool *pool, int op, dmi_call *call)
{
    const char *name = dmi_api_called() ? dmi_api_called() : "lrn_pool";
    dmi_call of_lrn;
    dm_status status = dmi_lrn_call(lrn, op, &of_lrn);
    status = status == DM_OK ? dmi_pooling_call(pool, op, call) : status;
    if (status == DM_OK && call->args.i[DMI_POOLING_METHOD] != DM_POOL_MAX) {
        status =
            dmi_fail(DM_ERR_ARG, "%s: method is %d, not DM_POOL_MAX", name, call->args.i[DMI_POOLING_METHOD]);
    }
    if (status == DM_OK && of_lrn.args.i[DMI_LRN_WITHIN]) {
        status = dmi_fail(DM_ERR_ARG, "%s: within is not 0: windows of LRN are of channels here", name);
    }
    if (status == DM_OK) {
        call->args.i[SIZE] = of_lrn.args.i[DMI_LRN_SIZE];
        call->args.i[RELU] = of_lrn.args.i[DMI_LRN_RELU];
        call->args.i[DMI_POOLING_SLICES] = of_lrn.args.i[DMI_LRN_SLICES];
        call->numbers = of_lrn.numbers;
        memcpy(call->number, of_lrn.number, sizeof call->number);
    }
    return status;
}

/* Does the GPU's kernel for both take it? Where windows lie, and that all begin at 16 bytes, follows from the
 * channels. */
static bool is_one(const dmi_builder *b, const dmi_lrn_pool *d)
{
    const dmi_pooling *p = &d->pooling;
    bool gpu = b->profile->facts.gpu && !b->profile->facts.emulated;
    bool square = p->kernel[0] == p->kernel[1] && p->stride[0] == p->stride[1];
    bool usual = (p->kernel[0] == 3 && (p->stride[0] == 1 || p->stride[0] == 2)) ||
                 (p->kernel[0] == 2 && p->stride[0] == 2);
    bool fits =
        p->in[2] % 8 == 0 && p->in[2] <= DMI_LRN_POOL_CHANNELS; /* a window's pixels lie in shared memory */
    return gpu && dmi_dtype_bytes(d->dnn.dtype) == 2 && square && usual && fits &&
           (d->lrn.size == 3 || d->lrn.size == 5);
}

void dmi_lrn_pool_describe(const dmi_builder *b, const dmi_call *call, int x, int y, unsigned operands,
                           dmi_lrn_pool *d)
{
    enum { MOST = 1 << 24 }; /* elements between the two, on GPUs, unless a sample has more */
    bool gpu = b->profile->facts.gpu && !b->profile->facts.emulated;
    *d = (dmi_lrn_pool){.lrn = {.size = call->args.i[SIZE], .relu = call->args.i[RELU]}};
    dmi_pooling_describe(b, call, x, y, operands, &d->pooling);
    d->pooling.taps = true;
    d->lrn.unit = d->pooling.in[2];
    d->dnn.dtype = d->lrn.unit <= DMI_LRN_SHARED ? d->pooling.dnn.dtype : dmi_layer_dtype(call);
    d->lrn.dnn.dtype = d->pooling.dnn.dtype = d->dnn.dtype;
    d->one = is_one(b, d);
    d->between = d->dnn.dtype;
    dm_dtype type = call->operand[x].desc.dtype;
    bool alike = true;
    for (int i = 0; i < call->noperand; i++) {
        alike = alike && (!(operands >> i & 1) || call->operand[i].desc.dtype == type);
    }
    if (alike && !gpu && dmi_dtype_bytes(type) == 2) {
        d->between = type;
    }
    int64_t sample = DMI_MAX(d->pooling.in[0] * d->pooling.in[1] * d->pooling.in[2], 1);
    d->step = gpu ? DMI_MAX(DMI_MIN(MOST / sample, call->operand[x].desc.extent[0]), 1) : 1;
}

dmi_layer_ref dmi_lrn_pool_scratch(const dmi_lrn_pool *d)
{
    int64_t sample = d->pooling.in[0] * d->pooling.in[1] * d->pooling.in[2];
    return (dmi_layer_ref){DMI_LAYER_SCRATCH, 0, d->dnn.dtype, d->one ? 0 : d->step * sample + 2 * d->lrn.unit};
}
