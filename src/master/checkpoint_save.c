/* dm_checkpoint_save: copies, commands that write them in the background, and the thread that finishes. */
#include "base/sized.h"
#include "io/folder.h"
#include "io/hash.h"
#include "io/npy.h"
#include "master/checkpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the end of one */

void dmi_checkpoint_settle(dmi_session *s)
{
    dmi_checkpoint_job *job = s->checkpoint;
    if (!job || !atomic_load(&job->done)) {
        return;
    }
    s->checkpoint = NULL;
    pthread_join(job->thread, NULL);
    for (int i = 0; i < job->copies; i++) {
        dmi_array_drop(s, job->copy[i]);
    }
    (void)dmi_failures_take(s);
    if (job->status != DM_OK && !dmi_failure_of(s, job->first, job->last, 0)) { /* else a worker has said why */
        dmi_failure_add(s, job->last, UINT64_MAX, job->status, job->text);
    }
    dmi_checkpoint_free(job);
}

bool dmi_checkpoint_done(dmi_session *s, uint64_t number)
{
    (void)dmi_all_done(s); /* carries messages on */
    dmi_checkpoint_settle(s);
    return !s->checkpoint || s->checkpoint->number > number;
}

dm_status dmi_checkpoint_wait(dmi_session *s, uint64_t number, int64_t until_ns)
{
    dm_status status = DM_OK;
    if (!dmi_checkpoint_done(s, number)) {
        status = dmi_wait_flag(s, &s->checkpoint->done, until_ns);
        dmi_checkpoint_settle(s);
    }
    return status;
}

void dmi_checkpoint_end(dmi_session *s)
{
    if (s->checkpoint && (s->stuck || dmi_checkpoint_wait(s, s->checkpoint->number, 0) != DM_OK)) {
        atomic_store(&s->checkpoint->abandoned, 1);
        pthread_join(s->checkpoint->thread, NULL);
        dmi_checkpoint_free(s->checkpoint);
        s->checkpoint = NULL;
    }
}

/* --- the beginning */

static dm_status take_value(const dm_checkpoint_item *item, dmi_saved *out)
{
    out->dtype = item->dtype;
    out->count = item->count;
    out->value_bytes = dmi_item_bytes(item);
    out->value = malloc((size_t)out->value_bytes + 1);
    if (!out->value) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the value %s", item->name);
    }
    if (out->value_bytes > 0) {
        memcpy(out->value, item->value, (size_t)out->value_bytes);
    }
    return DM_OK;
}

/* Bytes of a part: so many that a worker's lane has room for all of its parts, and later commands need not wait
 * for it. A GPU's worker writes chunks, and a part is one. */
static int64_t part_bytes(dmi_session *s, int count, const dm_checkpoint_item *items)
{
    int64_t total = 0, part = DMI_PART_BYTES;
    for (int i = 0; i < count; i++) {
        const dmi_handle *h = items[i].array.id ? &s->handle[dmi_id_slot(items[i].array.id)] : NULL;
        int64_t bytes = h ? dmi_dtype_bytes(h->desc.dtype) : 0;
        for (int d = 0; h && d < h->desc.ndim; d++) {
            bytes *= h->desc.extent[d];
        }
        total += bytes;
    }
    if (s->profile.gpu) {
        return DMI_MIN(part, s->profile.file_chunk);
    }
    while (part < total / s->workers / (DMI_LANE_ROOM / 4)) {
        part *= 2;
    }
    return part;
}

/* What the manifest says of an array, and its empty file with the table of its parts. */
static dm_status take_array(dmi_session *s, const dm_checkpoint_item *item, const char *folder, int number,
                            int64_t part, dmi_saved *out)
{
    const dmi_desc *desc = &s->handle[dmi_id_slot(item->array.id)].desc;
    char header[512], table[300];
    dmi_parts_choose(desc->dtype, desc->ndim, desc->extent, part, &out->parts);
    out->dtype = desc->dtype;
    out->header_bytes = dmi_npy_format(desc->dtype, desc->ndim, desc->extent, false, header);
    out->header_hash = dmi_hash64(header, out->header_bytes);
    out->file_bytes = out->header_bytes + dmi_parts_bytes(&out->parts);
    out->file = dmi_manifest_file_name(item->name, number);
    out->hash = calloc((size_t)out->parts.count + 1, sizeof *out->hash);
    if (!out->file || !out->hash) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %s", item->name);
    }
    snprintf(table, sizeof table, "%s%s", out->file, DMI_PART_TABLE);
    dm_status status = dmi_folder_file(folder, out->file, header, out->header_bytes, out->file_bytes);
    if (status == DM_OK) {
        status = dmi_folder_file(folder, table, "", 0, out->parts.count * (int64_t)sizeof(dmi_part_entry));
    }
    return status == DM_OK ? dmi_layout_saved(s, desc, &out->layout) : status;
}

static dm_status describe(dmi_session *s, int count, const dm_checkpoint_item *items, dmi_checkpoint_job *job)
{
    dm_status status = DM_OK;
    int64_t part = part_bytes(s, count, items), value_bytes = 0, hashes = 0;
    job->manifest.workers = s->workers;
    job->manifest.item = calloc((size_t)count + 1, sizeof *job->manifest.item);
    job->copy = calloc((size_t)count + 1, sizeof *job->copy);
    if (!job->manifest.item || !job->copy) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a manifest");
    }
    for (int i = 0; i < count; i++) {
        value_bytes += items[i].array.id ? 0 : dmi_item_bytes(&items[i]);
    }
    status = dmi_manifest_fits(job->series, value_bytes, 0); /* before they are copied */
    for (int i = 0; i < count && status == DM_OK; i++) {
        dmi_saved *saved = &job->manifest.item[job->manifest.items++];
        saved->name = strdup(items[i].name);
        status = !saved->name        ? dmi_fail(DM_ERR_NOMEM, "no memory for a name")
                 : items[i].array.id ? take_array(s, &items[i], job->folder, i, part, saved)
                                     : take_value(&items[i], saved);
        hashes += saved->parts.count;
    }
    return status == DM_OK ? dmi_manifest_fits(job->series, value_bytes, hashes) : status;
}

/* All copies first: what the program does next waits for them, and not for files. */
static dm_status copy_arrays(dmi_session *s, const dm_checkpoint_item *items, dmi_checkpoint_job *job)
{
    for (int i = 0; i < job->manifest.items; i++) {
        if (!job->manifest.item[i].file) {
            continue;
        }
        dm_status status = dmi_parts_array(s, &job->manifest.item[i].parts, i, &job->copy[job->copies]);
        if (status != DM_OK) {
            return status;
        }
        if ((status = dm_copy(s->public_handle, items[i].array, job->copy[job->copies++])) != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

static dm_status write_arrays(dmi_session *s, dmi_checkpoint_job *job)
{
    int copy = 0;
    dm_status status = DM_OK;
    for (int i = 0; i < job->manifest.items && status == DM_OK; i++) {
        const dmi_saved *saved = &job->manifest.item[i];
        if (!saved->file) {
            continue;
        }
        char *path = dmi_folder_path(job->folder, saved->file);
        if (!path) {
            return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
        }
        dmi_call call = {
            .op = DMI_OP_save, .noperand = 1, .tail = path, .tail_bytes = (int64_t)strlen(path) + 1};
        call.args.i[0] = (int32_t)saved->header_bytes;
        call.args.i[1] = 1; /* in parts */
        status = dmi_call_submit(s->public_handle, &call, &job->copy[copy++]);
        free(path);
    }
    return status;
}

/* Signals are the program's threads' business. */
static dm_status start_thread(dmi_checkpoint_job *job)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&job->thread, NULL, dmi_checkpoint_finish, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? dmi_fail(DM_ERR_NOMEM, "cannot start a thread") : DM_OK;
}

/* Commands that were sent go on: what they write to is not there any more, and nobody misses it. */
static void drop(dmi_session *s, dmi_checkpoint_job *job)
{
    char text[DMI_ERROR_TEXT];
    snprintf(text, sizeof text, "%s", dmi_error_text());
    for (int i = 0; i < job->copies; i++) {
        dmi_array_drop(s, job->copy[i]);
    }
    if (job->folder) {
        dmi_folder_remove(job->folder);
    }
    dmi_checkpoint_free(job);
    (void)dmi_fail(DM_ERR_INTERNAL, "%s", text);
}

static dm_status begin(dmi_session *s, const char *path, int count, const dm_checkpoint_item *items, int keep)
{
    dmi_checkpoint_job *job = calloc(1, sizeof *job);
    if (!job) {
        return dmi_fail(DM_ERR_NOMEM, "no memory");
    }
    dm_status status = dmi_folder_absolute(path, &job->series);
    if (status != DM_OK) {
        free(job);
        return status;
    }
    job->session = s;
    job->keep = keep;
    job->first = s->command + 1;
    status = dmi_folder_begin(job->series, &job->folder);
    status = status == DM_OK ? describe(s, count, items, job) : status;
    status = status == DM_OK ? copy_arrays(s, items, job) : status;
    status = status == DM_OK ? write_arrays(s, job) : status;
    if (s->command < job->first) { /* values alone: its failure needs a command as well */
        (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_NOOP, 0);
        dmi_frame_send(s);
    }
    job->last = dmi_wait_mark(s);
    job->number = s->checkpoints + 1;
    status = status == DM_OK ? start_thread(job) : status;
    if (status != DM_OK) {
        drop(s, job);
        return status;
    }
    s->checkpoints++;
    s->checkpoint = job;
    return DM_OK;
}

dm_status dmi_checkpoint_enter(dm_session *session, const char *path, const dm_checkpoint_options *options,
                               dmi_session **out, dm_checkpoint_options *known)
{
    *known = (dm_checkpoint_options)DM_CHECKPOINT_OPTIONS_INIT;
    dm_status status = dmi_manifest_possible();
    status = status == DM_OK ? dmi_enter(session, out) : status;
    if (status == DM_OK && (!path || !path[0])) {
        return dmi_fail(DM_ERR_ARG, "path is %s", path ? "empty" : "NULL");
    }
    if (status == DM_OK && options) {
        status = dmi_sized_take(options, DMI_SIZED_LEAST(dm_checkpoint_options, keep), known, sizeof *known,
                                "options: start from DM_CHECKPOINT_OPTIONS_INIT");
    }
    if (status == DM_OK && (known->keep < 0 || known->named < 0 || known->named > 1)) {
        return known->keep < 0 ? dmi_fail(DM_ERR_ARG, "options.keep is %d", known->keep)
                               : dmi_fail(DM_ERR_ARG, "options.named is %d, not 0 or 1", known->named);
    }
    if (status == DM_OK && ((*out)->recording || (*out)->explaining)) {
        return dmi_fail(DM_ERR_STATE, "not while %s",
                        (*out)->recording ? "a program is recorded" : "explaining");
    }
    if (status == DM_OK && (*out)->checkpoint) {
        status = dmi_checkpoint_wait(*out, (*out)->checkpoints, 0);
        if (status == DM_ERR_PENDING) {
            return dmi_fail(status, "the checkpoint before is still being written, and no other was begun");
        }
    }
    return status;
}

dm_status dmi_checkpoint_write(dmi_session *s, const char *path, int count, const dm_checkpoint_item *items,
                               int keep, dm_event *event)
{
    dm_status status = begin(s, path, count, items, keep);
    if (status != DM_OK) {
        return status;
    }
    dm_event saved = {s->number, s->checkpoint->first, s->checkpoint->last, s->checkpoint->number};
    if (event) {
        *event = saved;
        return DM_OK;
    }
    return dm_event_wait(s->public_handle, saved, -1);
}

dm_status dm_checkpoint_save(dm_session *session, const char *path, int count, const dm_checkpoint_item *items,
                             const dm_checkpoint_options *options, dm_event *event)
{
    dmi_session *s = NULL;
    dm_checkpoint_options known;
    dm_checkpoint_item *owned = NULL;
    dm_status status = dmi_checkpoint_enter(session, path, options, &s, &known);
    status = status == DM_OK ? dmi_items_take(s, count, items, &items, &count, &owned) : status;
    status = status == DM_OK ? dmi_checkpoint_write(s, path, count, items, known.keep, event) : status;
    free(owned);
    return status;
}
