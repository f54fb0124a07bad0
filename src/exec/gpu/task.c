/* User functions on a GPU: they work on the host, on copies of all the memory of their operands.
 *
 * When everything before the step is done and its operands are good, their memory is copied to the host, but
 * for operands that the function overwrites altogether. Where these are all, it is enough that everything
 * before is on a stream. A thread, always the same one, calls the function; then the operands that it may have
 * written are copied back. The step is issued with the last copy to the device, so that nothing on a stream
 * waits for the function. Its lane waits meanwhile; other lanes go on.
 *
 * The copies are pinned memory that later functions use again. Where that would be too much, they are other
 * memory, and go through staging buffers chunk by chunk. */
#include "base/process.h"
#include "exec/gpu/host_work.h"
#include "ops/common_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMES, RUNS, GOES };
enum { FEED_LOOK_NS = 200000, ALIGNED = 256 };
static const int64_t MOST_PINNED = (int64_t)512 << 20; /* of a worker */

/* Pinned memory: of a function, then of the copies from it to the device, then free. */
typedef struct dmi_task_memory {
    struct dmi_task_memory *next;
    char *pinned;
    int64_t bytes;
    bool taken, going; /* going: free when the event is reached */
    dmi_event event;
} dmi_task_memory;

typedef struct dmi_gpu_task {
    dmi_crew_job job;
    dmi_engine *e;
    dmi_queued_step *work;
    int lane, phase;
    char *host[DMI_MAX_REFS];
    dmi_task_memory *memory; /* where these are; NULL: in memory of their own */
    bool coming;             /* the copies to it are on the stream, and its event behind them */
    int operand; /* the next chunk: of this one, from byte `at` on */
    int64_t at;
    int in_flight; /* chunks that staging buffers hold */
    dmi_task_asks asks;
    dm_status status;
    char text[DMI_ERROR_TEXT];
} dmi_gpu_task;

static void free_task(dmi_gpu_task *t)
{
    for (int i = 0; t && !t->memory && i < DMI_MAX_REFS; i++) {
        for (int j = i + 1; j < DMI_MAX_REFS; j++) { /* views of one array share a copy */
            t->host[j] = t->host[j] == t->host[i] ? NULL : t->host[j];
        }
        free(t->host[i]);
    }
    if (t) {
        dmi_gpu_asks_end(&t->asks);
    }
    free(t);
}

void dmi_gpu_task_free(dmi_engine *e)
{
    for (int lane = 0; lane < DMI_STAMP_LANES; lane++) {
        free_task(e->gpu->host_work->task[lane]);
    }
    while (e->gpu->host_work->task_memory) {
        dmi_task_memory *m = e->gpu->host_work->task_memory;
        e->gpu->host_work->task_memory = m->next;
        dmi_cu_event_destroy(m->event);
        dmi_cu_release_host(m->pinned);
        free(m);
    }
}

/* The memory of an operand. */
typedef struct range {
    char *device;
    int64_t bytes;
} range;

static range range_of(const dmi_gpu_task *t, int operand)
{
    const dmi_instance *inst = t->work->inst;
    const dmi_ref *ref = &t->work->step->ref[operand]; /* workspace: an array that lives only in a program */
    const dmi_allocation *a =
        ref->kind == DMI_REF_WORK ? &inst->work[ref->index] : &inst->memory[ref->index]->allocation;
    int64_t from = a->base ? ref->from : 0;
    return (range){(char *)a->base + from, DMI_MIN(ref->to, a->bytes) - from};
}

static bool same_memory(const dmi_gpu_task *t, int i, int j)
{
    range x = range_of(t, i), y = range_of(t, j);
    return x.device == y.device && x.bytes == y.bytes;
}

/* The first operand with the same memory: views of one array have one copy. */
static int shared_with(const dmi_gpu_task *t, int operand)
{
    int i = 0;
    while (!same_memory(t, i, operand)) {
        i++;
    }
    return i;
}

/* --- the memory --- */

/* Is it still copied from? */
static bool is_going(dmi_task_memory *m)
{
    m->going = m->going && !dmi_cu_event_reached(m->event);
    return m->going;
}

/* What pinned memory there is. */
typedef struct pinned {
    dmi_task_memory *free; /* the smallest that nobody has and that is large enough; NULL: there is none */
    int64_t bytes;         /* of all */
    bool large;            /* some is large enough */
} pinned;

static pinned look_at_pinned(const dmi_engine *e, int64_t bytes)
{
    const struct dmi_host_work *h = e->gpu->host_work;
    pinned p = {0};
    for (dmi_task_memory *m = h ? h->task_memory : NULL; m; m = m->next) {
        const bool going = is_going(m);
        p.bytes += m->bytes;
        p.large = p.large || m->bytes >= bytes;
        if (!m->taken && !going && m->bytes >= bytes && (!p.free || m->bytes < p.free->bytes)) {
            p.free = m;
        }
    }
    return p;
}

bool dmi_gpu_task_reads(const dmi_engine *e)
{
    bool reads = false;
    for (dmi_task_memory *m = e->gpu->host_work->task_memory; m; m = m->next) {
        reads = is_going(m) || reads;
    }
    return reads;
}

static bool may_pin(const pinned *p, int64_t bytes)
{
    return p->bytes + bytes <= MOST_PINNED;
}

static dmi_task_memory *pin(dmi_engine *e, int64_t bytes)
{
    struct dmi_host_work *h = e->gpu->host_work;
    dmi_task_memory *m = calloc(1, sizeof *m);
    if (!m) {
        return NULL;
    }
    m->pinned = dmi_cu_malloc_host(bytes);
    if (!m->pinned || dmi_cu_event_create(false, &m->event) != DM_OK) {
        dmi_cu_release_host(m->pinned);
        free(m);
        return NULL;
    }
    m->bytes = bytes;
    m->next = h->task_memory;
    h->task_memory = m;
    return m;
}

/* NULL: there would be too much of it, or there is none. */
static dmi_task_memory *take_pinned(dmi_engine *e, int64_t bytes)
{
    const pinned p = look_at_pinned(e, bytes);
    dmi_task_memory *m = p.free ? p.free : may_pin(&p, bytes) ? pin(e, bytes) : NULL;
    if (m) {
        m->taken = true;
    }
    return m;
}

static int64_t room_of(const dmi_gpu_task *t, int operand)
{
    return shared_with(t, operand) < operand ? 0
                                             : (range_of(t, operand).bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static int64_t room_of_all(const dmi_gpu_task *t)
{
    int64_t all = 0;
    for (int i = 0; i < t->work->step->nref; i++) {
        all += room_of(t, i);
    }
    return DMI_MAX(all, ALIGNED);
}

/* Is all pinned memory of that size in use, and no more to be had? */
static bool waits_for_memory(const dmi_engine *e, const dmi_gpu_task *t)
{
    const int64_t bytes = room_of_all(t);
    const pinned p = look_at_pinned(e, bytes);
    return !p.free && p.large && !may_pin(&p, bytes);
}

static dm_status take_memory(dmi_engine *e, dmi_gpu_task *t)
{
    const int count = t->work->step->nref;
    int64_t at = 0;
    t->memory = take_pinned(e, room_of_all(t));
    for (int i = 0; i < count; i++) {
        const int same = shared_with(t, i);
        const int64_t bytes = range_of(t, i).bytes;
        t->host[i] = same < i    ? t->host[same]
                     : t->memory ? t->memory->pinned + at
                                 : malloc((size_t)DMI_MAX(bytes, 1));
        at += room_of(t, i);
        if (!t->host[i]) {
            return dmi_fail(DM_ERR_NOMEM, "no memory on the host for %lld bytes of an operand",
                            (long long)bytes);
        }
    }
    return DM_OK;
}

static dm_status begin(dmi_engine *e, int lane, dmi_queued_step *w)
{
    dm_status status = dmi_gpu_host_work(e);
    struct dmi_host_work *h = e->gpu->host_work;
    if (status == DM_OK && !h->caller) {
        char name[32];
        snprintf(name, sizeof name, "worker %d tasks", e->config.me);
        status = dmi_crew_start(1, &e->port->bell, name, &h->caller);
    }
    if (status != DM_OK) {
        return status;
    }
    dmi_gpu_task *t = calloc(1, sizeof *t);
    if (!t) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a function");
    }
    *t = (dmi_gpu_task){.e = e, .work = w, .lane = lane};
    dmi_gpu_asks_begin(e, &t->asks);
    status = take_memory(e, t);
    t->asks.fetches = t->memory != NULL;
    if (status != DM_OK) {
        free_task(t);
        return status;
    }
    h->task[lane] = t;
    return dmi_gpu_after(e, lane, &w->wait);
}

/* --- chunks --- */

static int64_t bytes_of_blocks(const dmi_task_desc *task, int operand)
{
    int64_t all = 0;
    for (int64_t k = 0; k < task->blocks[operand]; k++) {
        const dm_block *b = &task->block[operand][k];
        int64_t bytes = dmi_dtype_bytes(b->dtype);
        for (int d = 0; d < b->ndim; d++) {
            bytes *= b->extent[d];
        }
        all += bytes;
    }
    return all;
}

/* Is the memory of an operand to be copied in this phase? To the host, unless the function overwrites all of
 * it. */
static bool is_wanted(const dmi_gpu_task *t, int operand)
{
    const dmi_step *step = t->work->step;
    int64_t written = 0;
    int modes = 0;
    for (int i = 0; i < step->nref; i++) {
        if (same_memory(t, i, operand)) {
            modes |= step->ref[i].mode;
            written += bytes_of_blocks(step->desc, i);
        }
    }
    return shared_with(t, operand) == operand &&
           (t->phase == GOES ? (modes & DMI_WRITE) != 0
                             : (modes & DMI_READ) || written < range_of(t, operand).bytes);
}

/* Does nothing come to the host? */
static bool overwrites_all(const dmi_gpu_task *t)
{
    bool all = true;
    for (int i = 0; i < t->work->step->nref; i++) {
        all = all && !is_wanted(t, i);
    }
    return all;
}

/* The next one: false when all have been begun. */
static bool next_chunk(dmi_gpu_task *t, char **device, char **host, int64_t *bytes)
{
    const int64_t most = t->memory ? INT64_MAX : t->e->gpu->host_work->bytes;
    for (; t->operand < t->work->step->nref; t->operand++, t->at = 0) {
        range memory = range_of(t, t->operand);
        const bool wanted = is_wanted(t, t->operand);
        if (wanted && t->at < memory.bytes) {
            *device = memory.device + t->at;
            *host = t->host[t->operand] + t->at;
            *bytes = DMI_MIN(memory.bytes - t->at, most);
            return true;
        }
    }
    return false;
}

static void copy_in(dmi_crew_job *job)
{
    dmi_staging_buffer *p = (dmi_staging_buffer *)job;
    memcpy(p->host, p->pinned, (size_t)p->bytes);
}

static void copy_out(dmi_crew_job *job)
{
    dmi_staging_buffer *p = (dmi_staging_buffer *)job;
    memcpy(p->pinned, p->host, (size_t)p->bytes);
}

static void fail(dmi_gpu_task *t, dm_status status)
{
    if (status != DM_OK && t->status == DM_OK) {
        t->status = status;
        snprintf(t->text, sizeof t->text, "%s", dmi_error_text());
    }
}

/* Pinned memory goes as it is. To the host: false until all is there. */
static bool copies_done(dmi_engine *e, dmi_gpu_task *t)
{
    struct dmi_host_work *h = e->gpu->host_work;
    dmi_task_memory *m = t->memory;
    char *device, *host;
    int64_t bytes;
    bool any = false;
    while (t->status == DM_OK && !t->coming && next_chunk(t, &device, &host, &bytes)) {
        const bool comes = t->phase == COMES;
        fail(t, comes ? dmi_cu_copy(e->gpu->stream[t->lane], host, device, bytes)
                      : dmi_gpu_asks_copy(e, t->lane, &t->asks, device, host, bytes));
        t->at += bytes;
        any = true;
    }
    if (any) {
        fail(t, dmi_gpu_mark(e, m->event, t->lane));
        t->coming = t->phase == COMES;
        m->going = t->phase == GOES;
        h->coming += t->coming;
    }
    if (t->coming && !dmi_cu_event_reached(m->event)) {
        return false;
    }
    h->coming -= t->coming;
    t->coming = false;
    return true;
}

/* Begins as many as there are staging buffers for; false while some are missing or in use. */
static bool chunks_done(dmi_engine *e, dmi_gpu_task *t)
{
    struct dmi_host_work *h = e->gpu->host_work;
    char *device, *host;
    int64_t bytes;
    while (t->status == DM_OK && next_chunk(t, &device, &host, &bytes)) {
        dmi_staging_buffer *p = dmi_gpu_buffer_take(e);
        if (!p) {
            return false;
        }
        p->work = t->work;
        p->task = t;
        p->host = host;
        p->bytes = bytes;
        t->at += bytes;
        t->in_flight++;
        if (t->phase == COMES) {
            fail(t, dmi_cu_copy(e->gpu->stream[t->lane], p->pinned, device, bytes));
            dmi_gpu_buffer_on_device(e, t->lane, &h->to_host, p);
        } else {
            dmi_gpu_buffer_to_crew(e, p, copy_out);
            dmi_gpu_buffer_append(&h->with_crew, p);
        }
    }
    return t->in_flight == 0;
}

void dmi_gpu_task_arrived(dmi_engine *e, dmi_staging_buffer *p)
{
    dmi_gpu_buffer_to_crew(e, p, copy_in);
    dmi_gpu_buffer_append(&e->gpu->host_work->with_crew, p);
}

/* Where on the device a chunk belongs. */
static char *device_of(const dmi_staging_buffer *p)
{
    const dmi_gpu_task *t = p->task;
    int i = 0;
    while (p->host < t->host[i] || p->host >= t->host[i] + range_of(t, i).bytes) {
        i++;
    }
    return range_of(t, i).device + (p->host - t->host[i]);
}

void dmi_gpu_task_copied(dmi_engine *e, dmi_staging_buffer *p)
{
    dmi_gpu_task *t = p->task;
    t->in_flight--;
    if (t->phase == COMES) {
        dmi_gpu_buffer_free(e, p);
        return;
    }
    fail(t, dmi_cu_copy(e->gpu->stream[t->lane], device_of(p), p->pinned, p->bytes));
    dmi_gpu_buffer_on_device(e, t->lane, &e->gpu->host_work->to_device, p);
}

/* --- the call --- */

static void call(dmi_crew_job *job)
{
    dmi_gpu_task *t = (dmi_gpu_task *)job;
    const dmi_queued_step *w = t->work;
    void *host[DMI_MAX_REFS];
    for (int i = 0; i < w->step->nref; i++) {
        host[i] = t->host[i] + (w->step->ref[i].offset - w->step->ref[i].from);
    }
    dm_status status = dmi_cu_own_thread();
    status = status == DM_OK ? dmi_cu_use(t->e->gpu->device) : status; /* the function may use it too */
    if (status == DM_OK) {
        /* for the watchdog: time without a processor does not count */
        atomic_store(&t->e->port->compute_thread, dmi_thread_number());
        const dmi_tail tail = dmi_step_tail(w);
        status =
            dmi_task_run(w->step->desc, t->e->config.me, w->step->nref, host, tail.at, tail.bytes, &t->asks);
        atomic_store(&t->e->port->compute_thread, 0);
    }
    fail(t, status);
}

static bool moved(dmi_engine *e, dmi_gpu_task *t)
{
    return t->memory ? copies_done(e, t) : chunks_done(e, t);
}

static bool advance(dmi_engine *e, dmi_gpu_task *t)
{
    struct dmi_host_work *h = e->gpu->host_work;
    if (t->phase == COMES) {
        if (!moved(e, t)) {
            return false;
        }
        t->phase = RUNS;
        if (t->status == DM_OK) {
            t->job.run = call;
            h->jobs++;
            dmi_crew_put(h->caller, &t->job);
        }
    }
    if (t->phase == RUNS && t->job.run) {
        if (!dmi_crew_done(&t->job)) {
            return false;
        }
        h->jobs--;
    }
    if (t->phase == RUNS) {
        if (!dmi_gpu_asks_serve(e, &t->asks)) {
            t->job.run = NULL; /* it is done */
            return false;
        }
        t->phase = GOES;
        t->operand = 0;
        t->at = 0;
    }
    return moved(e, t);
}

bool dmi_gpu_issue_task(dmi_engine *e, int lane, dmi_queued_step *w)
{
    dmi_gpu_task *t = e->gpu->host_work ? e->gpu->host_work->task[lane] : NULL;
    if (!t) {
        /* A function that only writes need not see what was done before: the copies to the device stand behind
         * that. */
        const dmi_gpu_task asked = {.e = e, .work = w, .lane = lane, .phase = COMES};
        if (!(dmi_engine_reached(e, &w->wait) || (dmi_gpu_issued(e, &w->wait) && overwrites_all(&asked))) ||
            waits_for_memory(e, &asked)) {
            return false;
        }
        dmi_compute_check_inputs(e, w);
        if (atomic_load(&w->inst->failed)) {
            return true;
        }
        if (!dmi_step_may_begin(e, w)) {
            e->wake_ns = dmi_now_ns() + FEED_LOOK_NS;
            return false;
        }
        atomic_store_explicit(&e->port->now_step, DMI_STEP(task), memory_order_relaxed);
        dmi_gpu_time_begin(e, lane, w);
        dm_status status = begin(e, lane, w);
        t = e->gpu->host_work ? e->gpu->host_work->task[lane] : NULL;
        if (!t) {
            dmi_gpu_failed(e, w, status);
            return true;
        }
        fail(t, status);
    }
    if (!advance(e, t)) {
        return false;
    }
    dmi_gpu_time_end(e, lane, w);
    if (t->status != DM_OK) {
        dmi_gpu_failed(e, w, dmi_fail(t->status, "%s", t->text));
    }
    e->gpu->host_work->task[lane] = NULL;
    if (t->memory) {
        t->memory->taken = false;
    }
    free_task(t);
    return true;
}
