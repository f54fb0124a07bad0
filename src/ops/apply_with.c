/* dm_apply on operands in matching layouts: others are copied to temporaries and back. */
#include "base/sized.h"
#include "ops/apply_parts.h"

#include <string.h>

/* How each operand is handed out: in place, or as a temporary. */
typedef struct aligned {
    int count;
    dmi_desc desc[DM_APPLY_OPERANDS];
    bool temporary[DM_APPLY_OPERANDS];
    dm_array made[DM_APPLY_OPERANDS]; /* the temporary, where there is one */
} aligned;

static void replace(aligned *x, int i, const dmi_layout *layout, uint32_t id)
{
    x->desc[i] = dmi_desc_whole(x->desc[i].dtype, layout, id);
    x->temporary[i] = true;
}

static dm_status take_rows(dmi_session *s, aligned *x, int i)
{
    const dmi_layout *layout = NULL;
    uint32_t id = 0;
    dm_layout rows = {.size = sizeof rows, .grid = {dmi_session_facts(s).workers}};
    dmi_layout_spec spec;
    if (dmi_blocks_whole_rows(&x->desc[i])) {
        return DM_OK;
    }
    dm_status status =
        dmi_layout_spec_from(s, &rows, x->desc[i].dtype, x->desc[i].ndim, x->desc[i].extent, &spec);
    if (status == DM_OK) {
        status = dmi_layout_intern(s, &spec, &layout, &id);
    }
    if (status == DM_OK) {
        replace(x, i, layout, id);
    }
    return status;
}

/* Operands of operand 0's shape get its rectangles. If operand 0 is a rectangle of another array, and some
 * operands have other rectangles, all get those of dm_array_like. */
static dm_status align(dmi_session *s, aligned *x)
{
    int unused;
    bool differ = false;
    for (int i = 1; i < x->count; i++) {
        differ = differ || (dmi_same_extents(&x->desc[i], &x->desc[0]) &&
                            !dmi_blocks_alike(&x->desc[i], &x->desc[0], &unused));
    }
    if (!differ) {
        return DM_OK;
    }
    const dmi_layout *layout = NULL;
    uint32_t id = 0;
    dm_status status = dmi_layout_like(s, &x->desc[0], &layout, &id);
    if (status != DM_OK) {
        return status;
    }
    dmi_desc want = dmi_desc_whole(x->desc[0].dtype, layout, id);
    for (int i = 0; i < x->count; i++) {
        if (dmi_same_extents(&x->desc[i], &want) && !dmi_blocks_alike(&x->desc[i], &want, &unused)) {
            replace(x, i, layout, id);
        }
    }
    return DM_OK;
}

/* The operands of the call; makes and sends only layouts. */
static dm_status resolve(dmi_session *s, dmi_call *call, const dm_array *arrays,
                         const dm_apply_options *options, aligned *x)
{
    static const char *const names[DM_APPLY_OPERANDS] = {"arrays[0]", "arrays[1]", "arrays[2]", "arrays[3]",
                                                         "arrays[4]", "arrays[5]", "arrays[6]", "arrays[7]"};
    *x = (aligned){.count = call->noperand};
    for (int i = 0; i < x->count; i++) {
        dmi_handle *h = NULL;
        dm_status status = dmi_handle_find(s, arrays[i], names[i], &h);
        if (status != DM_OK) {
            return status;
        }
        x->desc[i] = h->desc;
        call->operand[i] = (dmi_operand){
            .desc = h->desc, .id = arrays[i].id, .memory = h->storage->number, .mode = call->args.i[1 + i]};
    }
    dm_status status = dmi_apply_check_overlap(call);
    for (int i = 0; i < x->count && status == DM_OK && options->whole_rows; i++) {
        status = take_rows(s, x, i);
    }
    return status == DM_OK && options->align ? align(s, x) : status;
}

static dm_status copy_in(dmi_session *s, dm_session *session, const dmi_call *call, const dm_array *arrays,
                         aligned *x)
{
    dm_status status = DM_OK;
    for (int i = 0; i < x->count && status == DM_OK; i++) {
        const dmi_desc *d = &x->desc[i];
        if (x->temporary[i]) {
            status = dmi_array_make(s, d->dtype, d->layout, d->layout_id, false, &x->made[i]);
        }
        if (status == DM_OK && x->temporary[i] && (call->args.i[1 + i] & DM_READ)) {
            status = dm_copy(session, arrays[i], x->made[i]);
        }
    }
    return status;
}

static dm_status copy_out(dm_session *session, const dmi_call *call, const dm_array *arrays, const aligned *x)
{
    dm_status status = DM_OK;
    for (int i = 0; i < x->count && status == DM_OK; i++) {
        if (x->temporary[i] && (call->args.i[1 + i] & DM_WRITE)) {
            status = dm_copy(session, x->made[i], arrays[i]);
        }
    }
    return status;
}

dm_status dm_apply_with(dm_session *session, const char *name, int count, const dm_array *arrays,
                        const int *modes, const void *args, int64_t args_bytes, const dm_apply_options *options)
{
    dm_apply_options known = DM_APPLY_OPTIONS_INIT;
    dmi_session *s;
    dmi_call call;
    aligned x = {0};
    dm_array use[DM_APPLY_OPERANDS];
    dm_status status =
        options ? dmi_sized_take(options, DMI_SIZED_LEAST(dm_apply_options, whole_rows), &known, sizeof known,
                                 "apply_with: options: start from DM_APPLY_OPTIONS_INIT")
                : DM_OK;
    if (status != DM_OK || (status = dmi_enter(session, &s)) != DM_OK ||
        (status = dmi_apply_make(name, count, arrays, modes, args, args_bytes, &call)) != DM_OK ||
        (status = resolve(s, &call, arrays, &known, &x)) != DM_OK) {
        return status;
    }
    call.args.i[DMI_APPLY_EARLY] = known.early != 0;
    status = copy_in(s, session, &call, arrays, &x);
    for (int i = 0; i < count; i++) {
        use[i] = x.temporary[i] ? x.made[i] : arrays[i];
    }
    if (status == DM_OK) {
        status = dmi_call_submit(session, &call, use);
    }
    if (status == DM_OK) {
        status = copy_out(session, &call, arrays, &x);
    }
    for (int i = 0; i < count; i++) {
        status = dmi_array_release(session, x.made[i], status);
    }
    return status;
}
