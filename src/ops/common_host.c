#include "ops/common_host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t ld_of(const dmi_call *call)
{
    return (int64_t)((uint64_t)(uint32_t)call->args.i[0] | (uint64_t)(uint32_t)call->args.i[1] << 32);
}

dm_status dmi_host_check_call(const dmi_session *s, const char *call, const dmi_desc *a, const int64_t *lo,
                              const int64_t *extent, const void *host)
{
    if (dmi_session_facts(s).explaining) {
        return dmi_fail(DM_ERR_STATE, "%s moves data, which it cannot while explaining", call);
    }
    if (!lo != !extent) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is NULL, but %s is not", call, lo ? "extent" : "lo", lo ? "lo" : "extent");
    }
    bool any = true;
    const int64_t *shape = extent ? extent : a->extent;
    for (int d = 0; d < a->ndim; d++) {
        any = any && shape[d] > 0;
    }
    return host || !any ? DM_OK : dmi_fail(DM_ERR_ARG, "%s: host is NULL", call);
}

dm_status dmi_host_check_ld(const char *call, const dmi_desc *a, dm_dtype dtype, int64_t ld)
{
    int64_t least = a->ndim > 0 ? a->extent[a->ndim - 1] : 1;
    if (ld != 0 && ld < least) {
        return dmi_fail(DM_ERR_ARG, "%s: ld is %" PRId64 ", less than a row of %" PRId64, call, ld, least);
    }
    int64_t most;
    bool fits = dmi_mul_fits(DMI_MAX(ld, 1), dmi_dtype_bytes(dtype), &most);
    for (int d = 0; d < a->ndim - 1 && fits; d++) {
        fits = dmi_mul_fits(most, DMI_MAX(a->extent[d], 1), &most);
    }
    return fits ? DM_OK : dmi_fail(DM_ERR_ARG, "%s: ld is %" PRId64 ", more than any memory holds", call, ld);
}

/* Under a time limit the library transfers to or from memory of its own, which outlives the call. */
typedef struct loan {
    dmi_rest rest;
    _Alignas(16) char data[]; /* as malloc aligns */
} loan;

static dm_status end_loan(dmi_rest *rest, dm_status status)
{
    (void)status;
    free(rest);
    return DM_OK;
}

/* Rows of the caller's memory to the dense one, or back. */
static void move_rows(const dmi_desc *a, char *dense, char *host, int64_t ld, bool back)
{
    int64_t each = dmi_dtype_bytes(a->dtype), rows = 1;
    int64_t row = a->ndim > 0 ? a->extent[a->ndim - 1] : 1, step = ld != 0 ? ld : row;
    for (int d = 0; d < a->ndim - 1; d++) {
        rows *= a->extent[d];
    }
    for (int64_t i = 0; i < rows && row > 0; i++) {
        char *here = dense + i * row * each, *there = host + i * step * each;
        memcpy(back ? there : here, back ? here : there, (size_t)(row * each));
    }
}

static dm_status transfer_limited(dm_session *session, dmi_session *s, dmi_call *call, const dm_array *a,
                                  void *host)
{
    const dmi_desc desc = *dmi_array_desc(s, *a); /* commands may move the handle */
    int64_t ld = ld_of(call), bytes = dmi_dtype_bytes(desc.dtype);
    dm_status status = dmi_host_check_ld(dmi_call_name(call), &desc, desc.dtype, ld);
    if (status != DM_OK) {
        return status;
    }
    for (int d = 0; d < desc.ndim; d++) {
        bytes *= desc.extent[d];
    }
    loan *own = malloc(sizeof *own + (size_t)bytes);
    if (!own) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a transfer with a time limit");
    }
    own->rest.first = UINT64_MAX; /* of no concern */
    own->rest.end = end_loan;
    if (call->op == DMI_OP_write) {
        move_rows(&desc, own->data, host, ld, false);
    }
    call->args.i[0] = call->args.i[1] = 0;
    status = dmi_call_wait_until(session, call, a, own->data, 0);
    if (status != DM_OK) { /* the command may still be on its way */
        dmi_rest_keep(s, &own->rest);
        return status;
    }
    if (call->op == DMI_OP_read) {
        move_rows(&desc, own->data, host, ld, true);
    }
    free(own);
    return DM_OK;
}

static dm_status transfer(dm_session *session, dmi_session *s, dmi_call *call, const dm_array *a, void *host,
                          int64_t until_ns)
{
    return dmi_session_facts(s).limited && until_ns == 0 && host && !dmi_session_facts(s).recording
               ? transfer_limited(session, s, call, a, host)
               : dmi_call_wait_until(session, call, a, host, until_ns);
}

dm_status dmi_host_transfer(dm_session *session, int op, dm_array a, const int64_t *lo, const int64_t *extent,
                            void *host, int64_t ld, int64_t until_ns)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK ||
        (status = dmi_host_check_call(s, dmi_api_called(), &h->desc, lo, extent, host)) != DM_OK) {
        return status;
    }
    dmi_call call = {.op = op, .noperand = 1};
    call.args.i[0] = (int32_t)(uint32_t)(uint64_t)ld;
    call.args.i[1] = (int32_t)(uint32_t)((uint64_t)ld >> 32);
    if (!lo) {
        return transfer(session, s, &call, &a, host, until_ns);
    }
    dm_array part;
    if ((status = dm_array_view(session, a, lo, extent, &part)) != DM_OK) {
        return status;
    }
    return dmi_array_release(session, part, transfer(session, s, &call, &part, host, until_ns));
}

dm_status dmi_host_check(const dmi_call *call)
{
    const dmi_desc *a = &call->operand[0].desc;
    return dmi_host_check_ld(dmi_call_name(call), a, a->dtype, ld_of(call));
}

void dmi_host_region(const dmi_call *call, dmi_region *out)
{
    const dmi_desc *a = &call->operand[0].desc;
    memset(out, 0, sizeof *out);
    out->ndim = a->ndim;
    out->count = 1;
    int64_t ld = ld_of(call), stride = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        out->dim[d] = dmi_dimset_interval(0, a->extent[d]);
        out->count *= a->extent[d];
        out->stride[d] = stride;
        stride *= d == a->ndim - 1 && ld != 0 ? ld : a->extent[d];
    }
}

dmi_ref dmi_ref_user(int mode)
{
    return (dmi_ref){.kind = DMI_REF_USER, .mode = (uint8_t)mode};
}
