/* A worker's tables: layouts by id, handles by slot, memory behind them. */
#include "comm/frames.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(void *table, uint32_t *room, uint32_t index, size_t size)
{
    void **at = table;
    if (index < *room) {
        return true;
    }
    uint32_t n = *room ? *room : 64;
    while (n <= index) {
        n *= 2;
    }
    char *grown = realloc(*at, n * size);
    if (!grown) {
        return false;
    }
    memset(grown + *room * size, 0, (n - *room) * size);
    *at = grown;
    *room = n;
    return true;
}

/* what: its name if the public call is not known. */
static void report(dmi_worker *w, const dmi_frame *head, const char *what, dm_status status)
{
    char text[DMI_ERROR_TEXT];
    const char *name = dmi_api_name(head->called);
    snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
             (unsigned long long)head->command, name ? name : what, w->me, w->engine.port->host,
             dmi_error_text());
    dmi_engine_report(&w->engine, head->command, status, text);
}

/* For good, in spite of all: others have it, so this worker can take part in nothing any more. */
static void give_up(dmi_worker *w, const dmi_frame *head, const char *what, dm_status status)
{
    report(w, head, what, status);
    dmi_worker_break(w, status);
}

static dm_status make_spec(dmi_worker *w, const void *frame, void *out)
{
    const dmi_layout_frame *f = frame;
    (void)out;
    int64_t before = w->spec ? w->spec_bytes : 0;
    char *grown = realloc(w->spec, (size_t)(before + f->bytes) +
                                       1); /* by what has come, whatever the frame says of all */
    w->spec_bytes = before;
    w->spec = grown ? grown : w->spec;
    return grown ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a layout of %lld bytes", (long long)f->total);
}

static dm_status make_layout(dmi_worker *w, const void *frame, void *out)
{
    const dmi_layout_frame *f = frame;
    dmi_layout_spec spec;
    (void)out;
    memcpy(&spec, w->spec, sizeof spec);
    if (spec.nworkers < 0 || spec.map_count < 0 || spec.map_count > f->total ||
        dmi_layout_spec_bytes(&spec) != f->total || spec.ndim < 0 || spec.ndim > DM_MAX_DIMS ||
        spec.session_workers != w->profile.workers) {
        return dmi_fail(DM_ERR_TRANSPORT, "the layout is damaged");
    }
    char *at = w->spec + sizeof spec;
    if (spec.workers) { /* pointers mean only "present" in the serialised form */
        spec.workers = (const int *)(void *)at;
        at += (size_t)spec.nworkers * sizeof(int);
    }
    spec.map = spec.map ? (const int *)(void *)at : NULL;
    if (!grow(&w->layout, &w->layout_room, f->layout_id, sizeof *w->layout)) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the layout table");
    }
    dm_status status = dmi_layout_create(&spec, &w->layout[f->layout_id]);
    w->layouts += status == DM_OK;
    return status;
}

void dmi_store_layout(dmi_worker *w, const void *frame)
{
    const dmi_layout_frame *f = frame;
    w->spec_total = f->total;
    dm_status status = dmi_insist(w, make_spec, frame, NULL);
    if (status == DM_OK) {
        memcpy(w->spec + w->spec_bytes, f + 1, (size_t)f->bytes);
        w->spec_bytes += f->bytes;
    }
    if (status == DM_OK &&
        f->last) { /* the master has made the same layout, so only out-of-memory is possible */
        status = dmi_insist(w, make_layout, frame, NULL);
    }
    if (status != DM_OK || f->last) {
        free(w->spec);
        w->spec = NULL;
    }
    if (status != DM_OK) {
        give_up(w, &f->head, "layout", status);
    }
}

dmi_entry *dmi_store_find(const dmi_worker *w, uint64_t id)
{
    uint32_t slot = dmi_id_slot(id);
    return slot < w->entry_room ? w->entry[slot] : NULL;
}

const dmi_layout *dmi_store_layout_of(const dmi_worker *w, uint32_t id)
{
    return id < w->layout_room ? w->layout[id] : NULL;
}

static dmi_entry *put_entry(dmi_worker *w, uint64_t id)
{
    uint32_t slot = dmi_id_slot(id);
    dmi_entry *entry = calloc(1, sizeof *entry);
    if (!entry || !grow(&w->entry, &w->entry_room, slot, sizeof *w->entry)) {
        free(entry);
        return NULL;
    }
    assert(!w->entry[slot]);
    w->entry[slot] = entry;
    return entry;
}

static dm_status make_entry(dmi_worker *w, const void *frame, void *out)
{
    const dmi_create_frame *f = frame;
    dmi_entry *entry = dmi_store_layout_of(w, f->layout_id) ? put_entry(w, f->id) : NULL;
    dmi_memory *memory = entry ? calloc(1, sizeof *memory) : NULL;
    if (memory) {
        entry->memory = memory;
        *(dmi_entry **)out = entry;
        return DM_OK;
    }
    if (entry) {
        w->entry[dmi_id_slot(f->id)] = NULL;
        free(entry);
    }
    return dmi_fail(DM_ERR_NOMEM, "no memory for a handle");
}

void dmi_store_create(dmi_worker *w, const void *frame)
{
    const dmi_create_frame *f = frame;
    const dmi_layout *layout = dmi_store_layout_of(w, f->layout_id);
    dmi_entry *entry = NULL;
    if (dmi_insist(w, make_entry, frame, &entry) != DM_OK) {
        give_up(w, &f->head, "create", DM_ERR_NOMEM);
        return;
    }
    dmi_memory *memory = entry->memory;
    entry->desc = dmi_desc_whole((dm_dtype)f->dtype, layout, f->layout_id);
    entry->whole = true;
    memory->refs = memory->handles = 1;
    memory->number = f->memory;
    memory->elements = layout->count;
    int64_t bytes = dmi_layout_shard_count(layout, w->me) * dmi_dtype_bytes((dm_dtype)f->dtype);
    if (w->engine.config.pool_debug && w->config->memory_limit > 0) {
        dmi_engine_drain(&w->engine); /* as before a command with workspace */
    }
    dm_status status = dmi_engine_alloc(&w->engine, bytes, f->owner, &memory->allocation);
    if (status != DM_OK) {
        memset(&memory->allocation, 0, sizeof memory->allocation);
        atomic_store(&memory->poisoned, DMI_NO_MEMORY);
        report(w, &f->head, "create", status);
    }
    memory->last.rest.write = memory->allocation.ready;
}

static dm_status make_view(dmi_worker *w, const void *frame, void *out)
{
    const dmi_view_frame *f = frame;
    dmi_entry *entry =
        dmi_store_find(w, f->base) && dmi_store_layout_of(w, f->layout_id) ? put_entry(w, f->id) : NULL;
    *(dmi_entry **)out = entry;
    return entry ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a handle");
}

void dmi_store_view(dmi_worker *w, const void *frame)
{
    const dmi_view_frame *f = frame;
    const dmi_entry *base = dmi_store_find(w, f->base);
    const dmi_layout *layout = dmi_store_layout_of(w, f->layout_id);
    dmi_entry *entry = NULL;
    if (dmi_insist(w, make_view, frame, &entry) != DM_OK) {
        give_up(w, &f->head, "view", DM_ERR_NOMEM);
        return;
    }
    entry->desc =
        (dmi_desc){.dtype = base->desc.dtype, .ndim = f->ndim, .layout = layout, .layout_id = f->layout_id};
    memcpy(entry->desc.lo, f->lo, sizeof f->lo);
    memcpy(entry->desc.extent, f->extent, sizeof f->extent);
    memcpy(entry->desc.skip, f->skip, sizeof f->skip);
    entry->whole = layout->count == base->memory->elements;
    for (int d = 0; d < f->ndim; d++) {
        entry->whole = entry->whole && f->extent[d] == layout->shape[d];
    }
    entry->memory = base->memory;
    entry->memory->refs++;
    entry->memory->handles++;
}

void dmi_memory_unref(dmi_memory *memory)
{
    if (--memory->refs == 0) {
        dmi_hazards_free(&memory->last);
        free(memory);
    }
}

static void release_handle(dmi_worker *w, dmi_memory *memory)
{
    if (--memory->handles == 0) {
        /* Commands before this one may still use it: whoever gets the allocation next waits for them. With red
         * zones the next owner's zones are written at once, so those commands must be done first. */
        if (w->engine.config.pool_debug) {
            dmi_engine_drain(&w->engine);
        }
        dmi_stamp last = dmi_hazards_last(&memory->last);
        if (memory->allocation.base && dmi_pool_free(w->pool, &memory->allocation, &last) != DM_OK) {
            dmi_engine_report(&w->engine, w->dispatched, DM_ERR_INTERNAL, dmi_error_text());
        }
    }
    dmi_memory_unref(memory);
}

void dmi_store_destroy(dmi_worker *w, const void *frame)
{
    const dmi_destroy_frame *f = frame;
    dmi_entry *entry = dmi_store_find(w, f->id);
    if (entry) {
        w->entry[dmi_id_slot(f->id)] = NULL;
        release_handle(w, entry->memory);
        free(entry);
    }
}

/* Nothing is in flight: the master has waited for all commands. */
void dmi_store_poison(dmi_worker *w, const void *frame)
{
    const dmi_poison_frame *f = frame;
    for (uint32_t i = 0; i < w->entry_room; i++) {
        dmi_memory *memory = w->entry[i] ? w->entry[i]->memory : NULL;
        bool named = false;
        for (int k = 0; memory && k < DMI_ERROR_WRITES; k++) {
            named = named || memory->number == f->memory[k];
        }
        if (named && memory->rewritten <= f->culprit >> 16) {
            dmi_memory_poison(memory, f->culprit);
        }
    }
}

void dmi_store_clear(dmi_worker *w)
{
    for (uint32_t i = 0; i < w->entry_room; i++) {
        if (w->entry[i]) {
            release_handle(w, w->entry[i]->memory);
            free(w->entry[i]);
        }
    }
    free(w->entry);
    for (uint32_t i = 0; i < w->layout_room; i++) {
        dmi_layout_destroy(w->layout[i]);
    }
    free(w->layout);
    free(w->spec);
    w->entry = NULL;
    w->layout = NULL;
    w->spec = NULL;
    w->entry_room = w->layout_room = 0;
}
