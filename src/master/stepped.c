/* Views with steps, for ops that do not take them: the call gets arrays of their own with the same elements. */
#include "master/session.h"

#include <string.h>

static const dmi_desc *stepped_desc(dm_session *session, dm_array a)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    bool known = a.id != 0 && dmi_enter(session, &s) == DM_OK && dmi_handle_find(s, a, "array", &h) == DM_OK;
    return known && dmi_desc_steps(&h->desc) ? &h->desc : NULL; /* the call itself says what is wrong with it */
}

bool dmi_stepped(dm_session *session, const dmi_call *call, const dm_array *arrays)
{
    bool any = false;
    for (int i = 0; i < call->noperand && !(dmi_ops[call->op].attributes & DMI_STEPS); i++) {
        any = any || stepped_desc(session, arrays[i]);
    }
    return any;
}

/* Is this the view, or one of the same elements, of an operand before it? -1: of none. */
static int first_of(dm_session *session, const dm_array *arrays, int i)
{
    dmi_session *s;
    if (dmi_enter(session, &s) != DM_OK) {
        return -1;
    }
    const dmi_handle *x = &s->handle[dmi_id_slot(arrays[i].id)];
    for (int k = 0; k < i; k++) {
        const dmi_handle *y = &s->handle[dmi_id_slot(arrays[k].id)];
        if (arrays[k].id == arrays[i].id ||
            (arrays[k].id != 0 && stepped_desc(session, arrays[k]) && x->storage == y->storage &&
             x->desc.layout_id == y->desc.layout_id && x->desc.ndim == y->desc.ndim &&
             memcmp(x->desc.lo, y->desc.lo, sizeof x->desc.lo) == 0 &&
             memcmp(x->desc.extent, y->desc.extent, sizeof x->desc.extent) == 0 &&
             memcmp(x->desc.skip, y->desc.skip, sizeof x->desc.skip) == 0)) {
            return k;
        }
    }
    return -1;
}

dm_status dmi_stepped_submit(dm_session *session, dmi_call *call, const dm_array *arrays, void *const *user)
{
    dm_array use[DMI_MAX_OPERANDS], made[DMI_MAX_OPERANDS] = {{0}};
    int count = call->noperand; /* submitting may add some */
    dmi_call checked = *call;   /* copies of operands that share memory would not */
    dm_status status = dmi_call_check(session, &checked, arrays);
    for (int i = 0; i < count && status == DM_OK; i++) {
        use[i] = arrays[i];
        if (!stepped_desc(session, arrays[i])) {
            continue;
        }
        int first = first_of(session, arrays, i);
        bool read = checked.operand[i].mode & DMI_READ;
        if (first >= 0) {
            read = read && !(checked.operand[first].mode & DMI_READ);
        } else {
            status = dm_array_like(session, arrays[i], (dm_dtype)0, &made[i]);
        }
        use[i] = first >= 0 ? use[first] : made[i];
        if (status == DM_OK && read) {
            status = dm_copy(session, arrays[i], use[i]);
        }
    }
    if (status == DM_OK) {
        status = user ? dmi_call_wait(session, call, use, *user) : dmi_call_submit(session, call, use);
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        if (use[i].id != arrays[i].id && call->operand[i].mode & DMI_WRITE) {
            status = dm_copy(session, use[i], arrays[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        status = dmi_array_release(session, made[i], status);
    }
    return status;
}
