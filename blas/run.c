/* A request on the session: operands become arrays, the call is made, and the result goes back. */
#include "blas.h"

dm_status dmb_make(dm_session *s, dm_dtype dtype, const dmb_matrix *x, dm_array *out)
{
    dm_layout rows = dm_layout_rows(s); /* small ones too */
    return dm_array_create(s, dtype, 2, (int64_t[]){x->rows, x->cols}, &rows, out);
}

dm_status dmb_put(dm_session *s, dm_dtype dtype, const dmb_matrix *x, dm_array *out)
{
    dm_status status = dmb_make(s, dtype, x, out);
    return status == DM_OK ? dm_array_write(s, *out, NULL, NULL, x->at, x->ld) : status;
}

bool dmb_run(dmb_request *r)
{
    bool vectors = r->kind < DMB_GEMM; /* to bring them to the workers takes longer than to compute with them */
    double each = dmb_is_complex(r->dtype) ? 4 : 1;
    if (vectors ? dmb_threshold() > 0 || !dmb_vectors_valid(r)
                : !dmb_matrices_valid(r) || each * dmb_matrices_flops(r) < dmb_threshold()) {
        return false;
    }
    dm_session *s = dmb_enter();
    if (!s) {
        return false;
    }
    dm_status status = dm_scope_begin(s);
    if (status == DM_OK) {
        status = vectors ? dmb_vectors_compute(s, r) : dmb_matrices_compute(s, r);
        if (status != DM_OK) {
            dmb_say_once("a call failed: %s", dm_error_message());
        }
        dm_status ended = dm_scope_end(s, NULL, 0);
        status = status == DM_OK ? ended : status;
    }
    dmb_leave();
    return status == DM_OK;
}
