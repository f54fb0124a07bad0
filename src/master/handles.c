/* Handles: creation, views, queries; layouts known to the workers. */
#include "base/sized.h"
#include "master/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t dmi_handle_id(const dmi_session *s, uint32_t slot)
{
    return dmi_id_make(s->number, s->handle[slot].generation, slot);
}

static dm_status no_handle(const char *what, const char *why)
{
    const char *call = dmi_api_called();
    return dmi_fail(DM_ERR_HANDLE, "%s%s%s %s", call ? call : "", call ? ": " : "", what, why);
}

dm_status dmi_operand_find(dmi_session *s, dm_array a, const char *what, dmi_operand *out)
{
    dmi_handle *h = NULL;
    dm_status status = dmi_handle_find(s, a, what, &h);
    if (status == DM_OK) {
        *out = (dmi_operand){.desc = h->desc, .id = a.id, .memory = h->storage->number, .mode = DMI_READ};
    }
    return status;
}

const dmi_desc *dmi_array_desc(const dmi_session *s, dm_array a)
{
    return &s->handle[dmi_id_slot(a.id)].desc;
}

dm_status dmi_handle_find(dmi_session *s, dm_array a, const char *what, dmi_handle **out)
{
    uint32_t slot = dmi_id_slot(a.id);
    if (a.id == 0) {
        return no_handle(what, "is a zero handle");
    }
    if (dmi_id_session(a.id) != s->number) {
        return no_handle(what, "belongs to another session");
    }
    if (slot == 0 || slot >= s->handles) {
        return no_handle(what, "is not a handle of this session");
    }
    if (!s->handle[slot].live || dmi_handle_id(s, slot) != a.id) {
        return no_handle(what, "has been destroyed");
    }
    *out = &s->handle[slot];
    return DM_OK;
}

/* The old table stays, all of them together as large as the new one: dmi_command_describe may be reading it. */
static bool grow_table(dmi_session *s, uint32_t room)
{
    void **old = realloc(s->old_handles, (size_t)(s->old_handle_tables + 1) * sizeof *old);
    dmi_handle *grown = old ? calloc(room, sizeof *grown) : NULL;
    s->old_handles = old ? old : s->old_handles;
    if (!grown) {
        return false;
    }
    if (s->handle_room > 0) {
        memcpy(grown, s->handle, s->handle_room * sizeof *grown);
    }
    old[s->old_handle_tables++] = s->handle;
    s->handle = grown;
    s->handle_room = room;
    return true;
}

dm_status dmi_handle_new(dmi_session *s, dm_array *out, dmi_handle **handle)
{
    if (s->handles == 0) {
        s->handles = 1;
    }
    uint32_t slot = s->free_handle;
    if (!slot) {
        if (s->handles >= DMI_ID_MOST_SLOTS) {
            return dmi_fail(DM_ERR_LIMIT,
                            "a session can have %d arrays and views at once, and they are all in use",
                            DMI_ID_MOST_SLOTS - 1);
        }
        if (s->handles >= s->handle_room) {
            uint32_t room = s->handle_room ? 2 * s->handle_room : 64;
            if (!grow_table(s, room)) {
                return dmi_fail(DM_ERR_NOMEM, "no memory for a handle");
            }
        }
        slot = s->handles++;
    } else {
        s->free_handle = s->handle[slot].next_free;
    }
    dmi_handle *h = &s->handle[slot];
    *h = (dmi_handle){.generation = h->generation + 1, .live = true};
    s->alive++;
    out->id = dmi_handle_id(s, slot);
    *handle = h;
    return DM_OK;
}

int64_t dmi_array_bytes(const dmi_session *s, const dmi_layout *layout, dm_dtype dtype, int worker)
{
    return dmi_pool_rounded(&s->pool_config, dmi_layout_shard_count(layout, worker) * dmi_dtype_bytes(dtype));
}

/* Adds (sign 1) or subtracts (-1) an array's bytes at every worker. */
static void count_live(dmi_session *s, const dmi_layout *layout, dm_dtype dtype, int sign)
{
    for (int w = 0; w < s->workers; w++) {
        s->live_bytes[w] += sign * dmi_array_bytes(s, layout, dtype, w);
    }
}

static void drop_handle(dmi_session *s, uint32_t slot)
{
    dmi_handle *h = &s->handle[slot];
    if (h->live) {
        s->alive -= !h->storage->replica;
        h->storage->alive--;
        dmi_scope_leave(s, slot);
    }
    if (--h->storage->handles == 0) {
        dmi_replicas_forget(s, h->storage);
        if (!h->storage->uncounted) {
            count_live(s, h->storage->layout, h->storage->dtype, -1);
        }
        free(h->storage);
    }
    h->live = h->hidden = false;
    if (h->generation < DMI_ID_LAST_GENERATION) { /* else the slot stays unused */
        h->next_free = s->free_handle;
        s->free_handle = slot;
    }
}

/* --- layouts ---------------------------------------------------------------------------------------------- */

static void send_layout(dmi_session *s, const dmi_layout_spec *spec, uint32_t id)
{
    int64_t total = dmi_layout_spec_bytes(spec), room = (int64_t)(s->hub.ring->size / 8);
    const struct {
        const void *at;
        int64_t bytes;
    } fragment[3] = {{spec, (int64_t)sizeof *spec},
                     {spec->workers, spec->workers ? spec->nworkers * (int64_t)sizeof(int) : 0},
                     {spec->map, spec->map ? spec->map_count * (int64_t)sizeof(int) : 0}};
    int64_t sent = 0;
    for (int i = 0; i < 3; i++) {
        for (int64_t at = 0; at < fragment[i].bytes;) {
            int64_t bytes = DMI_MIN(fragment[i].bytes - at, room);
            dmi_layout_frame *f =
                dmi_frame_begin(s, (uint32_t)(sizeof *f + (size_t)bytes), DMI_FRAME_LAYOUT, 0);
            f->layout_id = id;
            f->total = total;
            f->bytes = bytes;
            memcpy(f + 1, (const char *)fragment[i].at + at, (size_t)bytes);
            at += bytes;
            sent += bytes;
            f->last = sent == total;
            dmi_frame_send(s);
        }
    }
}

dm_status dmi_layout_intern(dmi_session *s, const dmi_layout_spec *spec, const dmi_layout **out, uint32_t *id)
{
    dmi_layout *layout = NULL;
    dm_status status = dmi_layout_create(spec, &layout);
    if (status != DM_OK) {
        return status;
    }
    dmi_interned **bucket = &s->layout[layout->hash % DMI_LAYOUT_BUCKETS];
    dmi_interned *entry = *bucket;
    while (entry && !dmi_layout_equal(entry->layout, layout)) {
        entry = entry->chain;
    }
    if (entry) {
        dmi_layout_destroy(layout);
    } else {
        entry = malloc(sizeof *entry);
        if (!entry) {
            dmi_layout_destroy(layout);
            return dmi_fail(DM_ERR_NOMEM, "no memory for a layout");
        }
        *entry = (dmi_interned){layout, s->layouts++, *bucket};
        *bucket = entry;
        send_layout(s, spec, entry->id);
    }
    *out = entry->layout;
    *id = entry->id;
    return DM_OK;
}

dm_status dmi_layout_spec_from(dmi_session *s, const dm_layout *layout, dm_dtype dtype, int ndim,
                               const int64_t *shape, dmi_layout_spec *out)
{
    /* read in place: it points into `single`, and the caller's structure is not changed (base/sized.h) */
    dm_layout known;
    dm_status status = layout ? dmi_sized_take(layout, DMI_SIZED_LEAST(dm_layout, map_count), &known, sizeof known,
                                               "layout: start from one of the dm_layout_* makers")
                              : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    if (!layout || layout->kind == -1) {
        dmi_layout_default(ndim, shape, dmi_dtype_bytes(dtype), dmi_group_size(s), out);
        out->session_workers = s->workers;
        return dmi_group_place(s, NULL, out);
    }
    if (layout->kind < 0 || layout->kind > 2) {
        return dmi_fail(DM_ERR_LAYOUT,
                        "layout: kind is %d, not 0 (grid), 1 (explicit), 2 (single) or -1 (default)",
                        layout->kind);
    }
    *out = (dmi_layout_spec){.kind = layout->kind == 1 ? DMI_LAYOUT_EXPLICIT : DMI_LAYOUT_GRID,
                             .ndim = ndim,
                             .session_workers = s->workers,
                             .workers = layout->workers,
                             .replicas = layout->replicas,
                             .nworkers = layout->nworkers,
                             .map = layout->map,
                             .map_count = layout->map_count};
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        if (d < ndim) {
            out->shape[d] = shape[d];
            out->block[d] = layout->block[d];
            out->grid[d] = layout->grid[d] ? layout->grid[d] : 1;
            out->order[d] = layout->order[d];
        } else if (layout->kind == 0 && layout->grid[d] > 1) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: grid[%d] is %d, but the array has %d dims", d,
                            layout->grid[d], ndim);
        }
    }
    if (layout->kind == 2) {
        if (layout->single < 0 || layout->single >= dmi_group_size(s)) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: single is %d, not 0 to %d", layout->single,
                            dmi_group_size(s) - 1);
        }
        out->workers = &layout->single;
        out->nworkers = 1;
    }
    return dmi_group_place(s, layout, out);
}

/* --- arrays ----------------------------------------------------------------------------------------------- */

static dm_status admit_array(dmi_session *s, const dmi_layout *layout, dm_dtype dtype)
{
    for (int w = 0; w < s->workers; w++) {
        int64_t bytes;
        if (!dmi_mul_fits(dmi_layout_shard_count(layout, w), dmi_dtype_bytes(dtype), &bytes)) {
            return dmi_fail(DM_ERR_ARG, "the array has more than 2^63 bytes");
        }
        int64_t need = dmi_pool_rounded(&s->pool_config, bytes);
        int64_t limit = s->config.memory_limit > 0 ? s->config.memory_limit : INT64_MAX;
        if (need > limit - s->live_bytes[w]) {
            return dmi_fail(DM_ERR_LIMIT,
                            "worker %d: the array needs %" PRId64 " bytes, %" PRId64 " of the limit of %" PRId64
                            " are taken",
                            w, need, s->live_bytes[w], limit);
        }
    }
    count_live(s, layout, dtype, 1);
    return DM_OK;
}

dm_status dmi_storage_count(dmi_session *s, dmi_storage *storage)
{
    dm_status status = storage->uncounted ? admit_array(s, storage->layout, storage->dtype) : DM_OK;
    storage->uncounted = storage->uncounted && status != DM_OK;
    return status;
}

static dm_status check_shape(int ndim, const int64_t *shape)
{
    if (ndim < 0 || ndim > DM_MAX_DIMS) {
        return dmi_fail(DM_ERR_ARG, "ndim is %d, not 0 to %d", ndim, DM_MAX_DIMS);
    }
    if (ndim > 0 && !shape) {
        return dmi_fail(DM_ERR_ARG, "shape is NULL");
    }
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) {
            return dmi_fail(DM_ERR_ARG, "shape[%d] is %" PRId64, d, shape[d]);
        }
    }
    return DM_OK;
}

static void send_view(dmi_session *s, const dmi_desc *desc, uint64_t base, uint64_t id)
{
    dmi_view_frame *f = dmi_frame_begin(s, sizeof *f, DMI_FRAME_VIEW, 0);
    f->id = id;
    f->base = base;
    f->layout_id = desc->layout_id;
    f->ndim = desc->ndim;
    memcpy(f->lo, desc->lo, sizeof f->lo);
    memcpy(f->extent, desc->extent, sizeof f->extent);
    memcpy(f->skip, desc->skip, sizeof f->skip);
    dmi_frame_send(s);
}

void dmi_array_send(dmi_session *s, const dmi_handle *h, uint64_t id)
{
    if (h->view) {
        send_view(s, &h->desc, h->storage->base, id);
        return;
    }
    dmi_create_frame *f = dmi_frame_begin(s, sizeof *f, DMI_FRAME_CREATE, 0);
    f->id = id;
    f->layout_id = h->desc.layout_id;
    f->memory = h->storage->number;
    f->dtype = (int16_t)h->desc.dtype;
    f->owner = h->storage->replica ? DMI_OWNER_REPLICA : DMI_OWNER_ARRAY;
    dmi_frame_send(s);
}

dm_status dmi_array_make(dmi_session *s, dm_dtype dtype, const dmi_layout *layout, uint32_t layout_id,
                         bool replica, dm_array *out)
{
    dmi_handle *h = NULL;
    dm_array a;
    dm_status status = dmi_wait_room(s);
    status = status == DM_OK ? admit_array(s, layout, dtype) : status;
    if (status == DM_ERR_LIMIT && !replica) { /* replicas give way */
        dmi_replicas_clear(s);
        status = admit_array(s, layout, dtype);
    }
    if (status != DM_OK) {
        return status;
    }
    if (!replica) {
        dmi_replicas_yield(s);
    }
    dmi_storage *storage = calloc(1, sizeof *storage);
    status = storage ? dmi_handle_new(s, &a, &h) : dmi_fail(DM_ERR_NOMEM, "no memory for a handle");
    if (status != DM_OK) {
        count_live(s, layout, dtype, -1);
        free(storage);
        return status;
    }
    *storage = (dmi_storage){.handles = 1,
                             .alive = 1,
                             .number = ++s->storages,
                             .layout = layout,
                             .dtype = dtype,
                             .replica = replica,
                             .part = dmi_record_part(s)};
    s->alive -= replica;
    h->storage = storage;
    h->desc = dmi_desc_whole(dtype, layout, layout_id);
    if (!replica) {
        dmi_scope_join(s, dmi_id_slot(a.id));
    }
    storage->base = a.id;
    storage->unsent = s->recording && !replica;
    if (!storage->unsent) {
        dmi_array_send(s, h, a.id);
    }
    *out = a;
    return DM_OK;
}

dm_status dm_array_create(dm_session *session, dm_dtype dtype, int ndim, const int64_t *shape,
                          const dm_layout *layout, dm_array *out)
{
    dmi_session *s;
    dmi_layout_spec spec;
    const dmi_layout *made = NULL;
    uint32_t layout_id = 0;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK) {
        return status;
    }
    if (!out) {
        return dmi_fail(DM_ERR_ARG, "out is NULL");
    }
    if (!dmi_dtype_bytes(dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "dtype %d is unknown", (int)dtype);
    }
    if ((status = check_shape(ndim, shape)) != DM_OK ||
        (status = dmi_layout_spec_from(s, layout, dtype, ndim, shape, &spec)) != DM_OK ||
        (status = dmi_layout_intern(s, &spec, &made, &layout_id)) != DM_OK) {
        return status;
    }
    return dmi_array_make(s, dtype, made, layout_id, false, out);
}

dm_status dm_array_destroy(dm_session *session, dm_array a)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || a.id == 0 || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (s->recording && !h->view && !h->storage->unsent) {
        return dmi_fail(DM_ERR_STATE, "a was made before the program that is being recorded, and cannot be destroyed in it");
    }
    dmi_array_drop(s, a);
    return DM_OK;
}

dm_status dmi_array_release(dm_session *session, dm_array a, dm_status status)
{
    if (status == DM_OK) {
        return dm_array_destroy(session, a);
    }
    char *text = strdup(dmi_error_text());
    (void)!dm_array_destroy(session, a);
    status = dmi_fail(status, "%s", text ? text : "no memory for the reason");
    free(text);
    return status;
}

static void send_destroy(dmi_session *s, uint64_t id)
{
    dmi_destroy_frame *f = dmi_frame_begin(s, sizeof *f, DMI_FRAME_DESTROY, 0);
    f->id = id;
    dmi_frame_send(s);
}

void dmi_array_drop(dmi_session *s, dm_array a)
{
    uint32_t slot = dmi_id_slot(a.id);
    dmi_handle *h = &s->handle[slot];
    if (s->recording && !h->storage->replica && dmi_record_hidden(s, slot)) {
        s->alive--;
        dmi_scope_leave(s, slot);
        h->live = false;
        h->hidden = true;
        if (--h->storage->alive == 0 && h->storage->unsent) { /* its place comes from the run's workspace */
            h->storage->uncounted = true;
            count_live(s, h->storage->layout, h->storage->dtype, -1);
        }
        return;
    }
    drop_handle(s, slot);
    send_destroy(s, a.id);
}

void dmi_hidden_drop(dmi_session *s, uint32_t slot)
{
    uint64_t id = dmi_handle_id(s, slot);
    bool sent = !s->handle[slot].storage->unsent;
    drop_handle(s, slot);
    if (sent) {
        send_destroy(s, id);
    }
}

dm_status dmi_view_make(dmi_session *s, dm_array base, const dmi_desc *desc, dm_array *out)
{
    dmi_handle *h = NULL;
    dm_array a;
    dm_status status = dmi_handle_new(s, &a, &h); /* may move the table: look the base up afterwards */
    if (status != DM_OK) {
        return status;
    }
    h->storage = s->handle[dmi_id_slot(base.id)].storage;
    h->storage->handles++;
    h->storage->alive++;
    h->desc = *desc;
    h->view = true;
    dmi_scope_join(s, dmi_id_slot(a.id));
    if (!h->storage->unsent) {
        send_view(s, desc, base.id, a.id);
    }
    *out = a;
    return DM_OK;
}
