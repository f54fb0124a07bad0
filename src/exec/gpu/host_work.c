/* Pinned staging buffers, and who has them. */
#include "exec/gpu/host_work.h"

#include <stdio.h>
#include <stdlib.h>

static void clear(dmi_buffer_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

void dmi_gpu_buffer_append(dmi_buffer_list *list, dmi_staging_buffer *p)
{
    p->next = NULL;
    *list->last = p;
    list->last = &p->next;
}

static dmi_staging_buffer *remove_at(dmi_buffer_list *list, dmi_staging_buffer **at)
{
    dmi_staging_buffer *p = *at;
    *at = p->next;
    if (!*at) {
        list->last = at;
    }
    return p;
}

static dm_status make_buffers(dmi_engine *e, struct dmi_host_work *h)
{
    dm_status status = DM_OK;
    h->pinned = dmi_cu_malloc_host(h->count * h->bytes);
    h->buffer = calloc((size_t)h->count, sizeof *h->buffer);
    if (!h->pinned || !h->buffer) {
        return dmi_fail(DM_ERR_NOMEM,
                        "cannot pin %d staging buffers of %lld bytes (options file_threads, file_chunk)",
                        h->count, (long long)h->bytes);
    }
    for (int i = 0; i < h->count && status == DM_OK; i++) {
        h->buffer[i].pinned = h->pinned + i * h->bytes;
        status = dmi_cu_event_create(false, &h->buffer[i].event);
        dmi_gpu_buffer_append(&h->free, &h->buffer[i]);
    }
    char name[32];
    snprintf(name, sizeof name, "worker %d files", e->config.me);
    return status == DM_OK ? dmi_crew_start(e->config.file_threads, &e->port->bell, name, &h->crew) : status;
}

dm_status dmi_gpu_host_work(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    if (g->host_work) {
        return DM_OK;
    }
    struct dmi_host_work *h = calloc(1, sizeof *h);
    if (!h) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the files of GPU %d", g->device);
    }
    h->bytes = e->config.file_chunk;
    h->count = 2 * e->config.file_threads + 2;
    clear(&h->free);
    clear(&h->to_device);
    clear(&h->to_host);
    clear(&h->with_crew);
    g->host_work = h;
    dm_status status = make_buffers(e, h);
    if (status != DM_OK) { /* the next command tries again */
        dmi_gpu_host_work_stop(e);
        dmi_gpu_host_work_free(e);
    }
    return status;
}

void dmi_gpu_host_work_stop(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    if (h) {
        dmi_crew_stop(h->crew);
        dmi_crew_stop(h->caller);
        h->crew = h->caller = NULL;
    }
}

void dmi_gpu_host_work_free(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    if (!h) {
        return;
    }
    dmi_gpu_file_free(e);
    dmi_gpu_task_free(e);
    dmi_gpu_maps_free(e);
    for (int i = 0; h->buffer && i < h->count; i++) {
        dmi_cu_event_destroy(h->buffer[i].event);
    }
    dmi_cu_release_host(h->pinned);
    dmi_cu_release(h->device);
    free(h->buffer);
    free(h);
    e->gpu->host_work = NULL;
}

dm_status dmi_gpu_buffer_packed(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    if (!h->device) {
        h->device = dmi_cu_malloc(h->count * h->bytes);
        if (!h->device) { /* the pool may hold memory that nothing uses */
            dmi_engine_trim_all(e);
            h->device = dmi_cu_malloc(h->count * h->bytes);
        }
        for (int i = 0; h->device && i < h->count; i++) {
            h->buffer[i].device = h->device + i * h->bytes;
        }
    }
    return h->device ? DM_OK
                     : dmi_gpu_no_memory(e->gpu, h->count * h->bytes,
                                         "buffers of files (options file_threads, file_chunk)");
}

/* Copies of one lane finish in order. With several lanes a later copy may finish first; it then waits for the
 * first. */
dmi_staging_buffer *dmi_gpu_buffer_take(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    while (h->to_device.first && dmi_cu_event_reached(h->to_device.first->event)) {
        dmi_gpu_buffer_append(&h->free, remove_at(&h->to_device, &h->to_device.first));
    }
    dmi_staging_buffer *p = h->free.first ? remove_at(&h->free, &h->free.first) : NULL;
    if (p) {
        p->use = NULL;
        p->task = NULL;
        p->skipped = p->planted = false;
        p->status = DM_OK;
    }
    return p;
}

void dmi_gpu_buffer_free(dmi_engine *e, dmi_staging_buffer *p)
{
    dmi_gpu_buffer_append(&e->gpu->host_work->free, p);
}

void dmi_gpu_buffer_on_device(dmi_engine *e, int lane, dmi_buffer_list *list, dmi_staging_buffer *p)
{
    dmi_gpu_failed(e, p->work, dmi_gpu_mark(e, p->event, lane));
    dmi_gpu_buffer_append(list, p);
}

void dmi_gpu_buffer_to_crew(dmi_engine *e, dmi_staging_buffer *p, void (*run)(dmi_crew_job *job))
{
    p->job.run = run;
    e->gpu->host_work->jobs++;
    dmi_crew_put(e->gpu->host_work->crew, &p->job);
}

/* What has come from the device is given to the crew, in the order of the copies. */
static bool look_to_host(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    bool moved = false;
    while (h->to_host.first && dmi_cu_event_reached(h->to_host.first->event)) {
        dmi_staging_buffer *p = h->to_host.first;
        if (!p->task &&
            !dmi_engine_reached(e, &p->work->wait)) { /* its data may still turn out to be poisoned */
            break;
        }
        (void)remove_at(&h->to_host, &h->to_host.first);
        if (p->task) {
            dmi_gpu_task_arrived(e, p);
        } else {
            dmi_gpu_file_arrived(e, p);
        }
        moved = true;
    }
    return moved;
}

static bool look_at_crew(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    bool moved = false;
    for (dmi_staging_buffer **at = &h->with_crew.first; *at;) {
        if (!dmi_crew_done(&(*at)->job)) {
            at = &(*at)->next;
            continue;
        }
        dmi_staging_buffer *p = remove_at(&h->with_crew, at);
        h->jobs--;
        if (p->task) {
            dmi_gpu_task_copied(e, p);
        } else {
            dmi_gpu_file_written(e, p);
        }
        moved = true;
    }
    return moved;
}

bool dmi_gpu_host_work_progress(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    if (!h) {
        return false;
    }
    bool moved = look_to_host(e);
    moved = look_at_crew(e) || moved;
    atomic_store_explicit(&e->port->now_busy, h->jobs > 0, memory_order_relaxed);
    return moved;
}

bool dmi_gpu_host_work_rings(const dmi_engine *e)
{
    const dmi_gpu *g = e->gpu;
    bool rings =
        g->host_work && g->host_work->jobs > 0 && !g->host_work->to_host.first && g->host_work->coming == 0;
    for (int i = 0; i < e->lanes && rings; i++) {
        const dmi_lane *lane = &e->lane[i];
        rings = !dmi_lane_computes(i) ? atomic_load_explicit(&lane->done, memory_order_relaxed) ==
                            atomic_load_explicit(&lane->enqueued, memory_order_relaxed)
                      : g->issued[i] == g->reached[i];
    }
    return rings;
}
