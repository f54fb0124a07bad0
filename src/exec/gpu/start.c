/* Makes and ends the GPU side of an executor, and its connections to peers. */
#include "base/config.h"
#include "exec/gpu/host_work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TABLES_SLAB = 4 << 20 };

/* The queue of steps that run beside others in the lane's graphs. */
static dm_status make_aside(dmi_engine *e, int lane)
{
    dmi_gpu *g = e->gpu;
    dm_status status = dmi_cuda_queue_create(g->device, &g->aside[lane]);
    if (status == DM_OK) {
        g->aside[lane]->compile = e->config.map_compile;
        g->aside[lane]->cache_dir = e->config.cache_dir;
        g->aside[lane]->scratch = dmi_cu_malloc(ASIDE_SCRATCH);
        if (!g->aside[lane]->scratch) {
            status = dmi_gpu_no_memory(g, ASIDE_SCRATCH, "scratch of kernels that run beside others");
        } else if (!dmi_cuda_queue_libraries(g->aside[lane])) {
            status = dmi_fail(DM_ERR_INTERNAL, "%s", g->aside[lane]->error_text);
        }
    }
    return status;
}

/* Lets the libraries allocate now what they allocate at first use. Later, allocation would wait for the whole
 * device. */
static dm_status make_streams(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    dm_status status = DM_OK;
    for (int lane = 0; lane < e->lanes && status == DM_OK; lane++) {
        bool compute = dmi_lane_computes(lane), pushes = lane == DMI_LANE_SEND && e->config.push_kernel > 0;
        status = dmi_cuda_queue_create(g->device, &g->queue[lane]);
        if (status == DM_OK) {
            g->queue[lane]->compile = e->config.map_compile;
            g->queue[lane]->cache_dir = e->config.cache_dir;
        }
        /* so that payloads do not wait behind those of a product that has started */
        if (status == DM_OK && pushes) {
            status = dmi_cuda_queue_first(g->queue[lane]);
        }
        if (status == DM_OK && compute && !dmi_cuda_queue_libraries(g->queue[lane])) {
            status = dmi_fail(DM_ERR_INTERNAL, "%s", g->queue[lane]->error_text);
        }
        if (status == DM_OK && compute && lane != e->background) {
            status = make_aside(e, lane);
        }
        g->stream[lane] = status == DM_OK ? g->queue[lane]->stream : NULL;
        for (int i = 0; i < EVENTS && status == DM_OK; i++) {
            status = dmi_cu_event_create(false, &g->events[lane].event[i].event);
        }
    }
    status = status == DM_OK ? dmi_cu_stream_create(&g->stream[STREAM_GRANT]) : status;
    return status == DM_OK ? dmi_cu_stream_create(&g->stream[STREAM_TABLES]) : status;
}

dm_status dmi_gpu_no_memory(const dmi_gpu *g, int64_t bytes, const char *what)
{
    int64_t unused = -1, total = -1;
    bool known = dmi_cu_memory(&unused, &total) == DM_OK;
    return known ? dmi_fail(
                       DM_ERR_NOMEM,
                       "no memory on GPU %d for %s: %lld bytes were asked for, %lld of the GPU's %lld are free",
                       g->device, what, (long long)bytes, (long long)unused, (long long)total)
                 : dmi_fail(DM_ERR_NOMEM, "no memory on GPU %d for %s: %lld bytes were asked for", g->device,
                            what, (long long)bytes);
}

static dm_status make_buffer(dmi_staged *buffer, char *device, char *pinned, int64_t at)
{
    buffer->device = device + at;
    buffer->pinned = pinned ? pinned + at : NULL;
    return dmi_cu_event_create(false, &buffer->event);
}

dm_status dmi_gpu_packed_make(dmi_gpu *g, dmi_staging *out, dmi_staging *in, char *pinned, int64_t bytes)
{
    out->memory = dmi_cu_malloc(2 * STAGED * bytes); /* one allocation: each takes a while */
    dm_status status = out->memory ? DM_OK : dmi_gpu_no_memory(g, 2 * STAGED * bytes, "staging buffers");
    for (int i = 0; i < STAGED && status == DM_OK; i++) {
        status = make_buffer(&out->buffer[i], out->memory, pinned, i * bytes);
        status =
            status == DM_OK ? make_buffer(&in->buffer[i], out->memory, pinned, (STAGED + i) * bytes) : status;
    }
    return status;
}

static dm_status make_staging(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    const dmi_slab_ops *host = &e->config.host_memory;
    g->chunk_bytes = e->config.chunk;
    g->pinned_bytes = 2 * STAGED * g->chunk_bytes;
    g->pinned = host->get(host->context, DMI_MAX_SLABS - 1, g->pinned_bytes);
    e->host_memory = g->pinned;
    if (!g->pinned) {
        dmi_memory_missed((size_t)g->pinned_bytes); /* whatever it failed for */
    }
    dm_status status = g->pinned
                           ? dmi_cu_pin(g->pinned, g->pinned_bytes)
                           : dmi_fail(DM_ERR_NOMEM, "no host memory for the executor of GPU %d", g->device);
    /* keep these pages out of forked children: after a fork, copy-on-write would give the process new pages
     * while the device uses the old ones */
    if (status == DM_OK) {
        (void)madvise(g->pinned, (size_t)g->pinned_bytes, MADV_DONTFORK);
    }
    return status == DM_OK ? dmi_gpu_packed_make(g, &g->out, &g->in, g->pinned, g->chunk_bytes) : status;
}

/* This device's counters, all zero, and the table of numbers that raise the peers' counters. */
static dm_status make_counters(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    int64_t n = DMI_CHANNELS * (int64_t)e->config.endpoints, numbers = INT64_C(1) << NUMBER_BITS;
    uint32_t *host = dmi_cu_malloc_host(numbers * (int64_t)sizeof *host);
    g->arrived = dmi_cu_malloc(2 * n * (int64_t)sizeof *g->arrived);
    g->freed = g->arrived ? g->arrived + n : NULL;
    g->numbers = dmi_cu_malloc(numbers * (int64_t)sizeof *g->numbers);
    g->status = dmi_cu_malloc_host((int64_t)e->lanes * DMI_LANE_ROOM * (int64_t)sizeof *g->status);
    g->peer = calloc((size_t)n, sizeof *g->peer);
    dm_status status =
        host && g->arrived && g->numbers && g->status && g->peer
            ? dmi_cu_zero(g->arrived, 2 * n * (int64_t)sizeof *g->arrived)
            : dmi_gpu_no_memory(g, (2 * n + numbers) * (int64_t)sizeof *g->numbers, "its executor");
    for (int s = 0; s < STREAMS && status == DM_OK; s++) {
        g->arrivals[s] = calloc((size_t)n, sizeof *g->arrivals[s]);
        status = g->arrivals[s] ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for an executor");
    }
    if (status == DM_OK) {
        for (int64_t i = 0; i < numbers; i++) {
            host[i] = (uint32_t)i << (32 - NUMBER_BITS);
        }
        status = dmi_cu_copy(g->stream[STREAM_TABLES], g->numbers, host, numbers * (int64_t)sizeof *host);
        status = status == DM_OK ? dmi_cu_stream_wait(g->stream[STREAM_TABLES]) : status;
    }
    dmi_cu_release_host(host);
    return status;
}

dm_status dmi_gpu_start(dmi_engine *e, int device)
{
    dmi_gpu *g = calloc(1, sizeof *g);
    dmi_pool_config tables = {.ops = dmi_gpu_slabs(NULL),
                              .slab_bytes = TABLES_SLAB,
                              .align = 64,
                              .own = e->config.pool_own};
    if (!g) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of GPU %d", device);
    }
    e->gpu = g;
    g->device = device;
    dm_status status = dmi_cu_use(device);
    status = status == DM_OK ? make_streams(e) : status;
    e->fused = status == DM_OK && dmi_cuda_fused_take(g->queue[DMI_LANE_COMPUTE]);
    e->compiles = e->config.map_compile != DMI_COMPILE_NEVER && dmi_cuda_compiles();
    status = status == DM_OK ? make_counters(e) : status;
    status = status == DM_OK ? dmi_gpu_words_create(e) : status;
    status = status == DM_OK ? make_staging(e) : status;
    status = status == DM_OK ? dmi_pool_create(&tables, &g->tables) : status;
    if (status == DM_OK && e->config.timeline) {
        status = dmi_gpu_time_start(e);
    }
    dmi_gpu_ranges_start(e);
    if (status == DM_OK) {
        dmi_cu_handle handle;
        atomic_store(&e->port->gpu, device + 1);
        if (!e->config.one_space && (status = dmi_cu_export(g->arrived, &handle)) == DM_OK) {
            memcpy(e->port->counter_handle, handle.bytes, sizeof handle.bytes);
        }
    }
    if (status != DM_OK) {
        dmi_gpu_stop(e);
    }
    return status;
}

static void free_buffers(dmi_staging *s)
{
    for (int i = 0; i < STAGED; i++) {
        dmi_cu_event_destroy(s->buffer[i].event);
        dmi_arena_free(&s->buffer[i].arena);
    }
    dmi_cu_release(s->memory);
    memset(s, 0, sizeof *s);
}

void dmi_gpu_packed_free(dmi_staging *out, dmi_staging *in)
{
    free_buffers(in);
    free_buffers(out);
}

static void free_staging(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    const dmi_slab_ops *host = &e->config.host_memory;
    dmi_gpu_packed_free(&g->out, &g->in);
    if (g->pinned) {
        dmi_cu_unpin(g->pinned);
        host->give_back(host->context, DMI_MAX_SLABS - 1, g->pinned, g->pinned_bytes);
    }
}

void dmi_gpu_stop(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    if (!g) {
        return;
    }
    (void)!dmi_cu_use(g->device);
    dmi_gpu_host_work_stop(e);
    for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
        dmi_cuda_queue_destroy(g->queue[lane]); /* waits for its work */
        if (g->aside[lane]) {
            dmi_cu_release(g->aside[lane]->scratch);
        }
        dmi_cuda_queue_destroy(g->aside[lane]);
        for (int i = 0; i < EVENTS; i++) {
            dmi_cu_event_destroy(g->events[lane].event[i].event);
        }
    }
    dmi_gpu_disconnect(e);
    dmi_gpu_time_stop(e);
    dmi_gpu_host_work_free(e);
    (void)!dmi_gpu_messages(e, 0);
    free_staging(e);
    dmi_cu_stream_destroy(g->stream[STREAM_GRANT]);
    dmi_cu_stream_destroy(g->stream[STREAM_TABLES]);
    for (int s = 0; s < STREAMS; s++) {
        free(g->arrivals[s]);
    }
    dmi_cu_release(g->arrived);
    dmi_cu_release(g->numbers);
    dmi_cu_release_host(g->status);
    dmi_gpu_words_release(g->words);
    free(g->peer);
    dmi_pool_destroy(g->tables);
    dmi_cu_ranges_destroy(g->ranges);
    free(g);
    e->gpu = NULL;
}

/* --- peers --- */

/* A peer in another process: maps its counters now, its slabs when a payload goes there. */
static dm_status connect_process(dmi_engine *e, int number)
{
    dmi_gpu_peer *p = &e->gpu->peer[number];
    const dmi_port *port = dmi_hub_port(e->config.hub, number);
    dmi_cu_handle handle;
    memcpy(handle.bytes, port->counter_handle, sizeof handle.bytes);
    p->slab = calloc(DMI_MAX_SLABS, sizeof *p->slab);
    p->slab_serial = calloc(DMI_MAX_SLABS, sizeof *p->slab_serial);
    p->slab_kept = calloc(DMI_MAX_SLABS, sizeof *p->slab_kept);
    dm_status status = p->slab && p->slab_serial && p->slab_kept
                           ? dmi_cu_open(&handle, &p->counters)
                           : dmi_fail(DM_ERR_NOMEM, "no memory for a peer");
    if (status == DM_OK) {
        uint32_t *counters = p->counters;
        p->arrived = counters + e->config.me;
        p->freed = counters + DMI_CHANNELS * e->config.endpoints + e->config.me;
    }
    return status;
}

dm_status dmi_gpu_connect(dmi_engine *e, int number, dmi_engine *peer)
{
    dmi_gpu *g = e->gpu;
    dm_status status = dmi_cu_use(g->device);
    if (status != DM_OK || !peer) {
        return status == DM_OK ? connect_process(e, number) : status;
    }
    if (peer->gpu->device != g->device) {
        status = dmi_cu_can_peer(g->device, peer->gpu->device)
                     ? dmi_cu_peer(peer->gpu->device)
                     : dmi_fail(DM_ERR_TRANSPORT, "GPU %d cannot reach the memory of GPU %d", g->device,
                                peer->gpu->device);
    }
    if (status == DM_OK) {
        g->peer[number].arrived = peer->gpu->arrived + e->config.me;
        g->peer[number].freed = peer->gpu->freed + e->config.me;
        dmi_gpu_words_release(g->peer[number].words);
        g->peer[number].words = peer->gpu->words;
        atomic_fetch_add(&peer->gpu->words->references, 1);
    }
    return status;
}

static void unmap(dmi_engine *e, int peer, int slab)
{
    dmi_gpu_peer *p = &e->gpu->peer[peer];
    if (p->slab[slab]) {
        dmi_cu_close(p->slab[slab]);
        p->slab[slab] = NULL;
        atomic_fetch_sub(&dmi_hub_port(e->config.hub, peer)->slab_users[slab], 1);
    }
}

static void unmap_all(dmi_engine *e, bool kept)
{
    for (int i = 0; e->gpu->peer && i < e->config.endpoints; i++) {
        for (int j = 0; e->gpu->peer[i].slab && j < DMI_MAX_SLABS; j++) {
            if (kept || e->gpu->peer[i].slab_kept[j] == 0) {
                unmap(e, i, j);
            }
        }
    }
}

void dmi_gpu_unmap(dmi_engine *e)
{
    unmap_all(e, false);
}

void dmi_gpu_disconnect(dmi_engine *e)
{
    if (e->gpu) {
        unmap_all(e, true);
    }
    for (int i = 0; e->gpu && e->gpu->peer && i < e->config.endpoints; i++) {
        dmi_gpu_peer *p = &e->gpu->peer[i];
        if (p->counters) {
            dmi_cu_close(p->counters);
        }
        dmi_gpu_words_release(p->words);
        free(p->slab);
        free(p->slab_serial);
        free(p->slab_kept);
        memset(p, 0, sizeof *p);
    }
}

void *dmi_gpu_map(dmi_engine *e, int peer, int slab)
{
    dmi_gpu_peer *p = &e->gpu->peer[peer];
    dmi_port *port = dmi_hub_port(e->config.hub, peer);
    unsigned serial = atomic_load(&port->slab_serial[slab]);
    if (p->slab_serial[slab] != serial) { /* given back and made anew since */
        unmap(e, peer, slab);
    }
    if (!p->slab[slab]) {
        dmi_cu_handle handle;
        memcpy(handle.bytes, port->slab_handle[slab], sizeof handle.bytes);
        if (dmi_cu_open(&handle, &p->slab[slab]) == DM_OK) {
            atomic_fetch_add(&port->slab_users[slab], 1);
        } else {
            dmi_log(DMI_LOG_WARN, "worker %d: slab %d of worker %d: %s", e->config.me, slab, peer,
                    dmi_error_text());
            p->slab[slab] = NULL;
        }
        p->slab_serial[slab] = serial;
    }
    return p->slab[slab];
}
