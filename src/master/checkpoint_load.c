/* dm_checkpoint_load: each worker reads whole parts, and checks them; a copy brings the elements to where they
 * belong. */
#include "io/folder.h"
#include "master/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HASHES = 8192 /* in one command */ };

static dm_status find(const dmi_checkpoint_opened *o, const char *name, bool array, const dmi_saved **out)
{
    const dmi_saved *saved = dmi_manifest_find(&o->manifest, name);
    if (!saved) {
        return dmi_fail(DM_ERR_ARG, "%s: the checkpoint %s has no %s", dmi_api_called(), o->folder, name);
    }
    if (array != (saved->file != NULL)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %s in the checkpoint %s", dmi_api_called(), name,
                        array ? "a value, not an array," : "an array, not a value,", o->folder);
    }
    *out = saved;
    return DM_OK;
}

/* Commands that read the file's parts into an array of parts. checked: the workers need not look at hashes. */
static dm_status read_parts(dmi_session *s, const dmi_saved *saved, const char *path, bool swap, bool checked,
                            dm_array into)
{
    int64_t path_bytes = dmi_part_tail((int64_t)strlen(path)),
            room = (int64_t)(s->hub.ring->size / 8) - path_bytes;
    int64_t step = checked ? INT32_MAX : DMI_MAX(DMI_MIN(room / (int64_t)sizeof(uint64_t), MOST_HASHES), 1);
    dm_status status = DM_OK;
    for (int64_t first = 0; first < saved->parts.count && status == DM_OK; first += step) {
        int64_t count = DMI_MIN(step, saved->parts.count - first),
                hash_bytes = checked ? 0 : count * (int64_t)sizeof(uint64_t);
        char *tail = calloc(1, (size_t)(path_bytes + hash_bytes));
        if (!tail) {
            return dmi_fail(DM_ERR_NOMEM, "%s: no memory", path);
        }
        strcpy(tail, path);
        if (!checked) {
            memcpy(tail + path_bytes, saved->hash + first, (size_t)hash_bytes);
        }
        dmi_call call = {.op = DMI_OP_load, .noperand = 1, .tail = tail, .tail_bytes = path_bytes + hash_bytes};
        call.args.i[0] = (int32_t)saved->header_bytes;
        call.args.i[2] = swap;
        call.args.i[3] = checked ? 0 : (int32_t)(first + 1);
        call.args.i[4] = checked ? 0 : (int32_t)(first + count);
        status = dmi_call_submit(s->public_handle, &call, &into);
        free(tail);
    }
    return status;
}

dm_status dmi_checkpoint_fill(const dmi_checkpoint_opened *o, const dmi_saved *saved, dm_array target)
{
    dmi_session *s = o->s;
    dm_array parts;
    bool swap = false;
    int64_t largest = dmi_dtype_bytes(saved->dtype);
    for (int d = 0; d < saved->parts.ndim; d++) {
        largest *= saved->parts.block[d];
    }
    dm_status status = dmi_saved_check_file(saved, o->folder, &swap);
    /* a GPU's worker moves chunks: of parts that are larger, or of another byte order, the hash is taken here
     */
    bool here = swap || (s->profile.gpu && largest > s->profile.file_chunk);
    if (status == DM_OK && here) {
        status = dmi_saved_verify(saved, o->folder, NULL, NULL);
    }
    char *folder = NULL, *path = NULL;
    status = status == DM_OK ? dmi_folder_absolute(o->folder, &folder) : status;
    if (status == DM_OK && !(path = dmi_folder_path(folder, saved->file))) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a path");
    }
    free(folder);
    if (status == DM_OK && (status = dmi_parts_array(s, &saved->parts, 0, &parts)) == DM_OK) {
        status = read_parts(s, saved, path, swap, here, parts);
        status = status == DM_OK ? dm_copy(s->public_handle, parts, target) : status;
        dmi_array_drop(s, parts);
    }
    free(path);
    return status;
}

static dm_status check_shape(const dmi_saved *saved, const dmi_desc *desc)
{
    bool same = desc->ndim == saved->parts.ndim;
    for (int d = 0; d < desc->ndim && same; d++) {
        same = desc->extent[d] == saved->parts.shape[d];
    }
    return same ? DM_OK
                : dmi_fail(DM_ERR_SHAPE, "%s: %s has another shape than in the checkpoint", dmi_api_called(),
                           saved->name);
}

dm_status dmi_checkpoint_check(const dmi_checkpoint_opened *o, const dm_checkpoint_item *item)
{
    const dmi_saved *saved = NULL;
    dm_status status = find(o, item->name, item->array.id != 0, &saved);
    if (status != DM_OK) {
        return status;
    }
    if (item->array.id) {
        return check_shape(saved, &o->s->handle[dmi_id_slot(item->array.id)].desc);
    }
    if (item->dtype != saved->dtype) {
        return dmi_fail(DM_ERR_DTYPE, "%s: the value %s is %s in the checkpoint", dmi_api_called(), item->name,
                        saved->dtype ? dmi_dtype_name(saved->dtype) : "bytes");
    }
    return item->count == saved->count
               ? DM_OK
               : dmi_fail(DM_ERR_SHAPE,
                          "%s: the value %s has %" PRId64 " numbers, %" PRId64 " in the checkpoint",
                          dmi_api_called(), item->name, item->count, saved->count);
}

dm_status dmi_checkpoint_reading(dm_session *session, dmi_session **out)
{
    dm_status status = dmi_enter(session, out);
    return status == DM_OK && ((*out)->recording || (*out)->explaining)
               ? dmi_fail(DM_ERR_STATE, "%s: not while %s", dmi_api_called(),
                          (*out)->recording ? "a program is recorded" : "explaining")
               : status;
}

dm_status dmi_checkpoint_filled(const dmi_checkpoint_opened *o, dm_status before)
{
    char text[DMI_ERROR_TEXT];
    if (before != DM_OK && o->s->command < o->first) { /* none has been sent since */
        return before;
    }
    snprintf(text, sizeof text, "%s", before == DM_OK ? "" : dmi_error_text());
    dm_status status = dmi_wait_done(o->s, o->s->remote ? dmi_wait_mark(o->s) : o->s->command, 0);
    if (before != DM_OK) {
        if (status == DM_OK) {
            (void)!dmi_failures_report(o->s, o->first, UINT64_MAX, UINT64_MAX);
        }
        return dmi_fail(before, "%s", text);
    }
    status = status == DM_OK ? dmi_failures_report(o->s, o->first, UINT64_MAX, UINT64_MAX) : status;
    return status == DM_OK ? dmi_wait(o->s, o->s->command) : status;
}

static dm_status load(dmi_checkpoint_opened *o, const char *path, int count, const dm_checkpoint_item *items)
{
    dm_status status = dmi_checkpoint_open(path, o);
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dmi_checkpoint_check(o, &items[i]);
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        if (items[i].array.id) {
            status = dmi_checkpoint_fill(o, dmi_manifest_find(&o->manifest, items[i].name), items[i].array);
        }
    }
    status = dmi_checkpoint_filled(o, status);
    for (int i = 0; i < count && status == DM_OK; i++) {
        const dmi_saved *saved = dmi_manifest_find(&o->manifest, items[i].name);
        if (!items[i].array.id && saved->value_bytes > 0) {
            memcpy(items[i].value, saved->value, (size_t)saved->value_bytes);
        }
    }
    return status;
}

dm_status dm_checkpoint_load(dm_session *session, const char *path, int count, const dm_checkpoint_item *items)
{
    dmi_checkpoint_opened o = {0};
    dm_checkpoint_item *owned = NULL;
    int tries = 0;
    bool again = true;
    dm_status status = dmi_checkpoint_reading(session, &o.s);
    status = status == DM_OK ? dmi_items_take(o.s, count, items, &items, &count, &owned) : status;
    while (status == DM_OK && again) {
        status = load(&o, path, count, items);
        again = status != DM_OK && dmi_checkpoint_lost(path, &o, &tries);
        status = again ? DM_OK : status;
        dmi_checkpoint_close(&o);
    }
    free(owned);
    return status;
}

dm_status dmi_checkpoint_make(const dmi_checkpoint_opened *o, const dmi_saved *saved, dm_dtype dtype,
                              const dm_layout *layout, dm_array *out)
{
    dm_layout kept;
    bool restores = !layout && dmi_layout_restored(o->s, &o->manifest, saved, &kept);
    int open = restores ? dmi_groups_leave(o->s) : 0; /* it counts in the session */
    dm_status status = dm_array_create(o->s->public_handle, dtype ? dtype : saved->dtype, saved->parts.ndim,
                                       saved->parts.shape, restores ? &kept : layout, out);
    if (restores) {
        dmi_groups_back(o->s, open);
    }
    return status;
}

dm_status dmi_checkpoint_array(const dmi_checkpoint_opened *o, const dmi_saved *saved, dm_dtype dtype,
                               const dm_layout *layout, dm_array *out)
{
    dm_array a;
    dm_status status = dmi_checkpoint_make(o, saved, dtype, layout, &a);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_checkpoint_filled(o, dmi_checkpoint_fill(o, saved, a));
    if (status != DM_OK) {
        return dmi_array_release(o->s->public_handle, a, status);
    }
    *out = a;
    return DM_OK;
}

dm_status dm_checkpoint_array(dm_session *session, const char *path, const char *name, dm_dtype dtype,
                              const dm_layout *layout, dm_array *out)
{
    dmi_checkpoint_opened o = {0};
    int tries = 0;
    bool again = true;
    dm_status status = dmi_checkpoint_reading(session, &o.s);
    if (status == DM_OK && (!name || !out)) {
        status = dmi_fail(DM_ERR_ARG, "checkpoint_array: %s is NULL", name ? "out" : "name");
    }
    while (status == DM_OK && again) {
        const dmi_saved *saved = NULL;
        status = dmi_checkpoint_open(path, &o);
        status = status == DM_OK ? find(&o, name, true, &saved) : status;
        status = status == DM_OK ? dmi_checkpoint_array(&o, saved, dtype, layout, out) : status;
        again = status != DM_OK && dmi_checkpoint_lost(path, &o, &tries);
        status = again ? DM_OK : status;
        dmi_checkpoint_close(&o);
    }
    return status;
}
