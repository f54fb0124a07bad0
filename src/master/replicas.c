/* The replica cache. An operand that a command has moved to every worker stays there, as an array of the
 * session with a replicated layout, until its source is written to or destroyed, memory is needed, or a command
 * fails. The master alone decides, in the order of the commands. To workers a replica is an array like others:
 * one command writes it, later ones read it instead of the source. */
#include "master/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct replica {
    dmi_storage *source;
    dmi_desc desc;      /* the view of the source */
    uint32_t layout_id; /* the array's */
    dm_array array;
    int64_t bytes; /* at each worker */
    uint64_t used;
} replica;

typedef struct dmi_replicas {
    int count;
    int64_t bytes, limit;
    uint64_t tick;
    replica entry[MOST];
} dmi_replicas;

/* CPU workers of several hosts: an eighth of a host's memory for the workers there, who would fetch operands again over the
 * network. Hosts are taken to be alike. On one host a replica would save a copy within the memory that it takes. */
static int64_t host_limit(const dmi_session *s)
{
    const int *host = s->profile.host_of;
    int most = 1;
    for (int w = 0; host && w < s->workers; w++) {
        int here = 0;
        for (int v = 0; v < s->workers; v++) {
            here += host[v] == host[w];
        }
        most = DMI_MAX(most, here);
    }
    return host ? (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 8 / most : 0;
}

dm_status dmi_replicas_start(dmi_session *s)
{
    int64_t limit = s->config.replica_limit;
    if (limit == 0) {
        limit = s->profile.gpu ? s->profile.device_bytes / 8 : host_limit(s);
    }
    if (!s->config.replicas || limit == 0 || s->replicas) {
        return DM_OK;
    }
    s->replicas = calloc(1, sizeof *s->replicas);
    if (!s->replicas) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    }
    s->replicas->limit = limit;
    return dmi_plan_cache_create((int)s->config.plan_cache, dmi_plan_make, &s->plans);
}

void dmi_replicas_stop(dmi_session *s)
{
    dmi_plan_cache_destroy(s->plans);
    free(s->replicas);
    s->plans = NULL;
    s->replicas = NULL;
}

static void drop(dmi_session *s, int at)
{
    dmi_replicas *r = s->replicas;
    replica gone = r->entry[at];
    r->entry[at] = r->entry[--r->count];
    r->bytes -= gone.bytes;
    gone.source->replicas--;
    dmi_array_drop(s, gone.array);
}

void dmi_replicas_forget(dmi_session *s, dmi_storage *storage)
{
    for (int i = s->replicas && storage->replicas > 0 ? s->replicas->count - 1 : -1; i >= 0; i--) {
        if (s->replicas->entry[i].source == storage) {
            drop(s, i);
        }
    }
}

void dmi_replicas_clear(dmi_session *s)
{
    while (s->replicas && s->replicas->count > 0) {
        drop(s, s->replicas->count - 1);
    }
}

/* Without memory for the replica the product would fail. So on GPUs a quarter of the memory is left for
 * workspace. */
static bool fits_device(const dmi_session *s, int64_t bytes)
{
    int64_t most = s->profile.device_bytes / 4 * 3;
    for (int w = 0; most > 0 && w < s->workers; w++) {
        if (s->live_bytes[w] > most - bytes) {
            return false;
        }
    }
    return true;
}

int64_t dmi_replicas_bytes(const dmi_session *s, int worker)
{
    int64_t bytes = 0;
    for (int i = 0; s->replicas && i < s->replicas->count; i++) {
        const dmi_desc *desc = &s->handle[dmi_id_slot(s->replicas->entry[i].array.id)].desc;
        bytes += dmi_array_bytes(s, desc->layout, desc->dtype, worker);
    }
    return bytes;
}

void dmi_replicas_yield(dmi_session *s)
{
    if (s->replicas && s->replicas->count > 0 && !fits_device(s, 0)) {
        dmi_replicas_clear(s);
    }
}

/* Payloads go only to workers with a region of the output. If a worker has none, its replica would have
 * holes. */
static bool all_take_part(const dmi_desc *out)
{
    for (int i = 0; i < out->layout->nworkers; i++) {
        if (dmi_desc_local_count(out, out->layout->workers[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void make_room(dmi_session *s, int64_t bytes)
{
    dmi_replicas *r = s->replicas;
    while (r->count == MOST || r->bytes + bytes > r->limit) {
        int oldest = 0;
        for (int i = 1; i < r->count; i++) {
            oldest = r->entry[i].used < r->entry[oldest].used ? i : oldest;
        }
        drop(s, oldest);
    }
}

static bool same_part(const dmi_desc *a, const dmi_desc *b)
{
    size_t bytes = (size_t)a->ndim * sizeof a->lo[0];
    return a->ndim == b->ndim && a->layout_id == b->layout_id && memcmp(a->lo, b->lo, bytes) == 0 &&
           memcmp(a->extent, b->extent, bytes) == 0 && memcmp(a->skip, b->skip, bytes) == 0;
}

static dmi_operand operand_of(dmi_session *s, dm_array a, int mode)
{
    const dmi_handle *h = &s->handle[dmi_id_slot(a.id)];
    return (dmi_operand){.desc = h->desc, .id = a.id, .memory = h->storage->number, .mode = mode};
}

/* The operand that moves in this call; -1: none. */
static dm_status find_moving(dmi_session *s, const dmi_call *call, int *which)
{
    dmi_plan *plan = NULL;
    bool reused;
    dm_status status = dmi_plan_cache_get(s->plans, call, &s->profile, 0, &plan, &reused);
    *which = status == DM_OK ? plan->moving : -1;
    dmi_plan_release(plan);
    return status;
}

/* A copy at every worker that the layout of `of` names. */
static dm_status replicated(dmi_session *s, const dmi_desc *source, const dmi_layout *of,
                            const dmi_layout **out, uint32_t *id)
{
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID,
                            .ndim = source->ndim,
                            .replicas = of->nworkers,
                            .workers = of->workers,
                            .nworkers = of->nworkers,
                            .session_workers = s->workers};
    for (int d = 0; d < source->ndim; d++) {
        spec.shape[d] = source->extent[d];
        spec.grid[d] = 1;
    }
    return dmi_layout_intern(s, &spec, out, id);
}

/* Replicas of an array that the call writes to are forgotten before. */
static bool written(const dmi_session *s, const dmi_call *call, const dmi_storage *storage)
{
    for (int i = 0; i < call->noperand; i++) {
        if ((call->operand[i].mode & DMI_WRITE) && s->handle[dmi_id_slot(call->operand[i].id)].storage == storage) {
            return true;
        }
    }
    return false;
}

dm_status dmi_replicas_use(dmi_session *s, dmi_call *call, bool pretend)
{
    dmi_replicas *r = s->replicas;
    const dmi_layout *layout = NULL;
    uint32_t layout_id = 0;
    int which = -1, place = dmi_op_replica(call->op);
    if (!r || place < 0 || call->noperand != place) {
        return DM_OK;
    }
    const dmi_desc *output = &call->operand[place - 1].desc;
    dm_status status = find_moving(s, call, &which);
    if (status != DM_OK || which < 0) {
        return status;
    }
    dmi_operand *source = &call->operand[which];
    dmi_storage *storage = s->handle[dmi_id_slot(source->id)].storage;
    status = replicated(s, &source->desc, output->layout, &layout, &layout_id);
    bool forgotten = written(s, call, storage);
    for (int i = 0; i < r->count && status == DM_OK && !forgotten; i++) {
        replica *e = &r->entry[i];
        if (e->source == storage && e->layout_id == layout_id && same_part(&e->desc, &source->desc)) {
            e->used = pretend ? e->used : ++r->tick;
            *source = operand_of(s, e->array, DMI_READ);
            return DM_OK;
        }
    }
    if (status == DM_OK && !all_take_part(output)) {
        return DM_OK;
    }
    int64_t bytes = dmi_dtype_bytes(source->desc.dtype);
    for (int d = 0; d < source->desc.ndim; d++) {
        bytes *= source->desc.extent[d];
    }
    if (status != DM_OK || bytes > r->limit || !fits_device(s, bytes)) {
        return status;
    }
    if (pretend) {
        call->operand[place] = (dmi_operand){.desc = dmi_desc_whole(source->desc.dtype, layout, layout_id),
                                             .memory = s->storages + 1,
                                             .mode = DMI_WRITE};
        call->noperand = place + 1;
        return DM_OK;
    }
    make_room(s, bytes);
    dm_array made;
    if (dmi_array_make(s, source->desc.dtype, layout, layout_id, true, &made) != DM_OK) {
        return DM_OK; /* it does not fit under the limit: the call runs without it */
    }
    storage = s->handle[dmi_id_slot(source->id)].storage;
    r->entry[r->count++] = (replica){.source = storage,
                                     .desc = source->desc,
                                     .layout_id = layout_id,
                                     .array = made,
                                     .bytes = bytes,
                                     .used = ++r->tick};
    r->bytes += bytes;
    storage->replicas++;
    call->operand[place] = operand_of(s, made, DMI_WRITE);
    call->noperand = place + 1;
    return DM_OK;
}
