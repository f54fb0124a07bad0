/* Making and ending the GPU part of an executor; kernels, files and tasks on it. */
#include "exec/gpu_parts.h"
#include "io/file.h"
#include "ops/common_task.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_BYTES = 64 << 20 };

static dm_status make_streams(dmi_gpu *g)
{
    dm_status status = dmi_cuda_queue_create(g->device, &g->queue);
    status = status == DM_OK ? dmi_cuda_queue_create(g->device, &g->send_queue) : status;
    status = status == DM_OK ? dmi_cuda_queue_create(g->device, &g->host_queue) : status;
    if (status == DM_OK && !dmi_cuda_queue_blas(g->queue)) { /* later it would wait for the whole device */
        status = dmi_fail(DM_ERR_INTERNAL, "%s", g->queue->error_text);
    }
    if (status == DM_OK) {
        g->stream[DMI_LANE_COMPUTE] = g->queue->stream;
        g->stream[DMI_LANE_SEND] = g->send_queue->stream;
        g->stream[STREAM_HOST] = g->host_queue->stream;
        status = dmi_cu_stream_create(&g->stream[STREAM_GRANT]);
    }
    status = status == DM_OK ? dmi_cu_stream_create(&g->stream[STREAM_MARK]) : status;
    status = status == DM_OK ? dmi_cu_stream_create(&g->stream[STREAM_TABLES]) : status;
    status = status == DM_OK ? dmi_cu_event_create(&g->marker) : status;
    for (int i = 0; i < 2 * MARKS && status == DM_OK; i++) {
        status =
            dmi_cu_event_create(&g->marks[i < MARKS ? DMI_LANE_COMPUTE : DMI_LANE_SEND].event[i % MARKS].event);
    }
    return status;
}

static dm_status make_memory(dmi_gpu *g, int endpoints, int64_t staging)
{
    int64_t counters = 2 * (int64_t)endpoints * (int64_t)sizeof(uint32_t);
    g->host_bytes = staging / HOST_SLOTS;
    g->arrived = dmi_cu_malloc(counters);
    g->freed = g->arrived ? g->arrived + endpoints : NULL;
    g->pinned_numbers = dmi_cu_malloc_host(NUMBERS * (int64_t)sizeof(uint32_t));
    g->peer_arrived = calloc((size_t)endpoints, sizeof *g->peer_arrived);
    g->peer_freed = calloc((size_t)endpoints, sizeof *g->peer_freed);
    g->tables = dmi_cu_malloc(TABLE_BYTES);
    bool ok = g->tables && g->arrived && g->pinned_numbers && g->peer_arrived && g->peer_freed;
    dm_status status = DM_OK;
    for (int i = 0; i < HOST_SLOTS && ok && status == DM_OK; i++) {
        g->host[i].pinned = dmi_cu_malloc_host(g->host_bytes);
        g->host[i].device = dmi_cu_malloc(g->host_bytes);
        ok = g->host[i].pinned && g->host[i].device;
        status = dmi_cu_event_create(&g->host[i].event);
    }
    if (!ok) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of GPU %d", g->device);
    }
    return status == DM_OK ? dmi_cu_zero(g->arrived, counters) : status;
}

dm_status dmi_gpu_start(dmi_engine *e, int device)
{
    dmi_gpu *g = calloc(1, sizeof *g);
    if (!g) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of GPU %d", device);
    }
    e->gpu = g;
    g->device = device;
    dm_status status = dmi_cu_use(device);
    status = status == DM_OK ? make_streams(g) : status;
    status = status == DM_OK ? make_memory(g, e->config.endpoints, e->config.staging) : status;
    if (status != DM_OK) {
        dmi_gpu_stop(e);
    } else {
        e->queue = g->queue;
    }
    return status;
}

void dmi_gpu_stop(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    if (!g) {
        return;
    }
    for (int i = 0; i < MARKS; i++) {
        dmi_cu_event_destroy(g->marks[DMI_LANE_COMPUTE].event[i].event);
        dmi_cu_event_destroy(g->marks[DMI_LANE_SEND].event[i].event);
    }
    for (int i = 0; i < HOST_SLOTS; i++) {
        dmi_cu_release_host(g->host[i].pinned);
        dmi_cu_release(g->host[i].device);
        dmi_cu_event_destroy(g->host[i].event);
        dmi_arena_free(&g->host[i].arena);
    }
    dmi_cu_event_destroy(g->marker);
    dmi_cu_stream_destroy(g->stream[STREAM_GRANT]);
    dmi_cu_stream_destroy(g->stream[STREAM_MARK]);
    dmi_cu_stream_destroy(g->stream[STREAM_TABLES]);
    dmi_cu_release(g->tables);
    dmi_cuda_queue_destroy(g->queue);
    dmi_cuda_queue_destroy(g->send_queue);
    dmi_cuda_queue_destroy(g->host_queue);
    dmi_cu_release(g->arrived);
    dmi_cu_release_host(g->pinned_numbers);
    free(g->peer_arrived);
    free(g->peer_freed);
    free(g);
    e->gpu = NULL;
}

dm_status dmi_gpu_connect(dmi_engine *e, dmi_engine *peer)
{
    dmi_gpu *g = e->gpu, *p = peer->gpu;
    g->peer_arrived[peer->config.me] = p->arrived + e->config.me;
    g->peer_freed[peer->config.me] = p->freed + e->config.me;
    dm_status status = dmi_cu_use(g->device);
    return status == DM_OK && p->device != g->device ? dmi_cu_peer(p->device) : status;
}

static void *get_slab(void *context, int index, int64_t bytes)
{
    (void)context;
    (void)index;
    return dmi_cu_malloc(bytes);
}

static void give_back_slab(void *context, int index, void *base, int64_t bytes)
{
    (void)context;
    (void)index;
    (void)bytes;
    dmi_cu_release(base);
}

dmi_slab_ops dmi_gpu_slabs(void)
{
    return (dmi_slab_ops){.get = get_slab, .give_back = give_back_slab};
}

/* Run tables of a step in device memory: made when it is first issued, kept with its plan. */
const dmi_run *const *dmi_gpu_runs(dmi_engine *e, const dmi_work *w, const dmi_copy *c)
{
    dmi_gpu *g = e->gpu;
    int64_t runs = 0;
    for (int d = 0; d < c->ndim; d++) {
        runs += c->nrun[d] > 1 ? c->nrun[d] : 0;
    }
    if (runs == 0) {
        return NULL;
    }
    dmi_plan *plan = w->inst->plan;
    if (!plan->device) {
        plan->device = calloc((size_t)plan->nstep, sizeof *plan->device);
        plan->device_free = NULL;
    }
    size_t at = (size_t)(w->step - plan->step);
    if (plan->device && !plan->device[at].memory) {
        int64_t bytes = runs * (int64_t)sizeof(dmi_run);
        dmi_run *host = malloc((size_t)bytes);
        dmi_run *device =
            g->tables_used + bytes <= TABLE_BYTES ? (dmi_run *)(void *)(g->tables + g->tables_used) : NULL;
        g->tables_used += device ? bytes : 0;
        int64_t n = 0;
        for (int d = 0; host && device && d < c->ndim; d++) {
            if (c->nrun[d] > 1) {
                memcpy(host + n, c->run[d], (size_t)c->nrun[d] * sizeof *host);
                plan->device[at].run[d] = device + n;
                n += c->nrun[d];
            }
        }
        if (host && device &&
            dmi_cu_copy(g->stream[STREAM_TABLES], device, host, runs * (int64_t)sizeof *host) == DM_OK &&
            dmi_cu_stream_wait(g->stream[STREAM_TABLES]) == DM_OK) {
            plan->device[at].memory = device;
        }
        free(host);
    }
    return plan->device && plan->device[at].memory ? plan->device[at].run : NULL;
}

/* Part of a file: through host memory of its size; the host waits. */
static dm_status file_step(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    const dmi_file_part *part = w->step->desc;
    dmi_file_part dense = *part;
    dmi_copy rest;
    dmi_arena arena = {0};
    bool reading = w->step->kind == DMI_STEP_FILE_READ;
    int64_t bytes = part->geometry.count * dmi_dtype_bytes(part->geometry.src_dtype);
    char *host = dmi_cu_malloc_host(bytes), *device = dmi_cu_malloc(bytes);
    void *memory = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status =
        host && device ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %lld bytes of a file", (long long)bytes);
    g->queue->device_run = dmi_gpu_runs(e, w, &part->geometry);
    if (status == DM_OK && reading) {
        status = dmi_copy_pack(&part->geometry, &dense.geometry, &arena) &&
                         dmi_copy_unpack(&part->geometry, &rest, &arena)
                     ? dmi_file_read(&dense, w->inst->tail, host)
                     : dmi_fail(DM_ERR_NOMEM, "no memory for a file's geometry");
        status = status == DM_OK ? dmi_cu_copy(g->queue->stream, device, host, bytes) : status;
        if (status == DM_OK) {
            e->config.backend->copy(g->queue, &rest, device, memory);
        }
        status = status == DM_OK ? dmi_cu_stream_wait(g->queue->stream) : status;
    } else if (status == DM_OK) {
        status = dmi_copy_pack(&part->geometry, &rest, &arena) &&
                         dmi_copy_unpack(&part->geometry, &dense.geometry, &arena)
                     ? DM_OK
                     : dmi_fail(DM_ERR_NOMEM, "no memory for a file's geometry");
        if (status == DM_OK) {
            e->config.backend->copy(g->queue, &rest, memory, device);
            status = dmi_cu_copy(g->queue->stream, host, device, bytes);
        }
        status = status == DM_OK ? dmi_cu_stream_wait(g->queue->stream) : status;
        status = status == DM_OK ? dmi_file_write(&dense, w->inst->tail, host) : status;
    }
    dmi_cu_release_host(host);
    dmi_cu_release(device);
    dmi_arena_free(&arena);
    return status;
}

dm_status dmi_gpu_execute(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    dm_status status = DM_OK;
    switch (w->step->kind) {
    case DMI_STEP_FILE_READ:
    case DMI_STEP_FILE_WRITE:
        return file_step(e, w);
    case DMI_STEP_TASK: /* the function sees finished data, and what it does is done when it returns */
        status = dmi_cu_stream_wait(g->queue->stream);
        break;
    case DMI_STEP_COPY:
        g->queue->device_run = dmi_gpu_runs(e, w, w->step->desc);
        break;
    case DMI_STEP_ACC_ADD:
        g->queue->device_run = dmi_gpu_runs(e, w, &((const dmi_acc_add *)w->step->desc)->geometry);
        break;
    default:
        break;
    }
    return status == DM_OK ? dmi_execute(e, w) : status;
}
