/* Checks that layers share. */
#include "ops/common_layer.h"

#include <inttypes.h>

dm_dtype dmi_layer_dtype(const dmi_call *call)
{
    dm_dtype dtype = DM_F32;
    for (int i = 0; i < call->noperand; i++) {
        dtype = call->operand[i].desc.dtype == DM_F64 ? DM_F64 : dtype;
    }
    return dtype;
}

dm_dtype dmi_layer_kernel_dtype(const dmi_builder *b, const dmi_call *call, unsigned operands)
{
    dm_dtype short_type = 0, wide = dmi_layer_dtype(call);
    for (int i = 0; i < call->noperand; i++) {
        dm_dtype type = call->operand[i].desc.dtype;
        if (operands >> i & 1) {
            bool fits = (type == DM_F16 || type == DM_BF16) && (short_type == 0 || short_type == type);
            short_type = type;
            if (!fits) {
                return wide;
            }
        }
    }
    bool gpu = b->profile->facts.gpu && !b->profile->facts.emulated;
    return gpu && wide == DM_F32 && short_type != 0 ? short_type : wide;
}

dm_status dmi_layer_check(const dmi_call *call, int slices)
{
    if (slices < 0) {
        return dmi_fail(DM_ERR_ARG, "%s: slices is %d, not 0 or more", dmi_call_name(call), slices);
    }
    for (int i = 0; i < call->noperand; i++) {
        for (int k = 0; k < call->noperand && call->operand[i].mode & DMI_WRITE; k++) {
            dm_status status = k == i ? DM_OK : dmi_check_overlap(call, k, i, false);
            if (status != DM_OK) {
                return status;
            }
        }
        if (call->operand[i].mode & DMI_WRITE && call->operand[i].desc.ndim == DM_MAX_DIMS) {
            return dmi_fail(DM_ERR_SHAPE, "%s: %s has %d dims; layers take %d at most", dmi_call_name(call),
                            dmi_operand_name(call, i), DM_MAX_DIMS, DM_MAX_DIMS - 1);
        }
    }
    return DM_OK;
}

dm_status dmi_layer_dims(const dmi_call *call, int i, int ndim)
{
    int have = call->operand[i].desc.ndim;
    return have == ndim ? DM_OK
                        : dmi_fail(DM_ERR_SHAPE, "%s: %s has %d dims, not %d", dmi_call_name(call),
                                   dmi_operand_name(call, i), have, ndim);
}

dm_status dmi_layer_count(const dmi_call *call, int i, int64_t count, const char *of)
{
    char text[192];
    const dmi_desc *x = &call->operand[i].desc;
    return dmi_layer_elements(x) == count
               ? DM_OK
               : dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, not one element for each of %" PRId64 " %s",
                          dmi_call_name(call), dmi_operand_name(call, i), dmi_shape_text(x, text), count, of);
}

dm_status dmi_layer_channels(const dmi_call *call, int x, int sums)
{
    const dmi_desc *of = &call->operand[x].desc;
    return of->ndim < 2 ? dmi_fail(DM_ERR_SHAPE, "%s: %s has %d dims, not 2 or more", dmi_call_name(call),
                                   dmi_operand_name(call, x), of->ndim)
                        : dmi_layer_count(call, sums, of->extent[of->ndim - 1], "channels");
}

int64_t dmi_layer_rows(const dmi_desc *x)
{
    int64_t channels = x->extent[x->ndim - 1];
    return channels > 0 ? dmi_layer_sample(x) / channels : 0;
}

int64_t dmi_layer_elements(const dmi_desc *x)
{
    return x->ndim > 0 ? x->extent[0] * dmi_layer_sample(x) : 1;
}

int64_t dmi_layer_sample(const dmi_desc *x)
{
    int64_t count = 1;
    for (int d = 1; d < x->ndim; d++) {
        count *= x->extent[d];
    }
    return count;
}

dm_status dmi_layer_submit(dm_session *session, dmi_call *call, const dm_array *arrays)
{
    call->noperand -= arrays[call->noperand - 1].id == 0;
    return dmi_call_submit(session, call, arrays);
}

void dmi_layer_sums(dmi_call *call, double scale, double beta)
{
    dmi_call_factors(call, scale, beta);
    call->args.i[DMI_LAYER_KEEPS] = beta != 0;
}

dm_status dmi_layer_wire_fits(const char *call, dm_dtype wire)
{
    return wire == 0 || wire == DM_BF16 ? DM_OK
                                        : dmi_fail(DM_ERR_ARG, "%s: wire is %s (%d), not 0 or DM_BF16", call,
                                                   dmi_dtype_name(wire), (int)wire);
}

dm_status dmi_layer_wire_check(const dmi_call *call, unsigned operands)
{
    for (int i = 0; i < call->noperand && call->args.i[DMI_LAYER_WIRE]; i++) {
        if (operands >> i & 1 && call->operand[i].desc.dtype == DM_F16) {
            return dmi_fail(DM_ERR_DTYPE, "%s: %s is f16, whose gradients do not travel as bf16",
                            dmi_call_name(call), dmi_operand_name(call, i));
        }
    }
    return DM_OK;
}

int dmi_layer_wire_role(const dmi_call *call, dm_dtype made)
{
    return call->args.i[DMI_LAYER_WIRE] && made != DM_BF16 ? DMI_LAYER_SUMMED_BF16 : DMI_LAYER_SUMMED;
}

void dmi_layer_sums_check(dmi_call *call, int first)
{
    for (int i = first; i < call->noperand; i++) {
        call->operand[i].mode = call->args.i[DMI_LAYER_KEEPS] ? DMI_READWRITE : DMI_WRITE;
    }
}
