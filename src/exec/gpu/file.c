/* File ranges on a GPU. The caller's memory may take the place of a file that is read (user_read).
 *
 * Reading: the crew reads ahead of the lane, as many file ranges of a command as there are staging buffers. A
 * step is issued when its buffer is full: its copy to the device goes on the lane's stream, behind the current
 * users of the memory. So nothing on a stream waits for a file. The buffer is free again when its event is
 * reached.
 *
 * Writing: a step is issued when it has a staging buffer: its copy from the device goes on the stream. The crew
 * writes the buffer when the event is reached and everything before the step is done, because only then is it
 * known whether the data is good. Then the step is done. */
#include "exec/gpu/host_work.h"
#include "kernels/direct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 2048 }; /* shorter rows are packed by a kernel: the copy engine takes its time for each */

/* --- the file of a command --- */

static void free_use(dmi_file_use *use)
{
    (void)!dmi_file_close(&use->file);
    pthread_mutex_destroy(&use->lock);
    free(use);
}

void dmi_gpu_file_free(dmi_engine *e)
{
    struct dmi_host_work *h = e->gpu->host_work;
    while (h->use) {
        dmi_file_use *use = h->use;
        h->use = use->next;
        free_use(use);
    }
}

static bool reads(const dmi_step *step)
{
    return step->kind == DMI_STEP(file_read) || step->kind == DMI_STEP(user_read);
}

static dmi_file_use *use_of(dmi_engine *e, dmi_queued_step *w)
{
    dmi_instance *inst = w->inst;
    const bool memory = w->step->kind == DMI_STEP(user_read);
    struct dmi_host_work *h = e->gpu->host_work;
    if (inst->file) {
        return inst->file;
    }
    dmi_file_use *use = calloc(1, sizeof *use);
    int steps = 0;
    for (int i = 0; i < inst->plan->nstep; i++) {
        const dmi_step *step = &inst->plan->step[i];
        steps += reads(step) || step->kind == DMI_STEP(file_write);
    }
    if (use) {
        pthread_mutex_init(&use->lock, NULL);
        use->file = memory ? dmi_file_of(dmi_ref_pointer(inst, &w->step->ref[1]))
                           : (dmi_file){.path = inst->tail, .reading = reads(w->step), .fd = -1};
        use->tried = memory;
        use->left = use->steps = steps;
        use->next = h->use;
        h->use = use;
        inst->file = use;
    }
    return use;
}

/* A file step is finished or cancelled. The last one closes the file; only closing may report that written data
 * was lost. */
static dm_status leave(dmi_file_use *use)
{
    dm_status status = DM_OK;
    pthread_mutex_lock(&use->lock);
    if (--use->left == 0) {
        status = dmi_file_close(&use->file);
    }
    pthread_mutex_unlock(&use->lock);
    return atomic_load(&use->stop) ? DM_OK : status;
}

/* A step releases the file. Its jobs are done, so no thread uses it. */
static void forget(dmi_engine *e, dmi_instance *inst)
{
    dmi_file_use *use = inst->file;
    if (--use->steps == 0) {
        dmi_file_use **at = &e->gpu->host_work->use;
        while (*at != use) {
            at = &(*at)->next;
        }
        *at = use->next;
        inst->file = NULL;
        free_use(use);
    }
}

static void skip(dmi_engine *e, dmi_instance *inst)
{
    (void)!leave(inst->file);
    forget(e, inst);
}

static dm_status open_once(dmi_file_use *use)
{
    dm_status status = DM_OK;
    pthread_mutex_lock(&use->lock);
    if (!use->tried) {
        use->tried = true;
        dmi_file opened;
        status = dmi_file_open(use->file.path, use->file.reading, &opened);
        use->file.fd = opened.fd; /* the rest is there already, and is read without the lock */
        if (status != DM_OK) {
            atomic_store(&use->stop, 1);
        }
    }
    pthread_mutex_unlock(&use->lock);
    return status;
}

/* --- a thread of the crew --- */

static void run_part(dmi_crew_job *job)
{
    dmi_staging_buffer *p = (dmi_staging_buffer *)job;
    dmi_file_use *use = p->use;
    const dmi_file_range *range = p->work->step->desc;
    dm_status status = DM_OK;
    if (p->planted) {
        status = dmi_fail(DM_ERR_IO, "%s: planted fault", use->file.path);
    } else if (!atomic_load(&use->stop)) {
        status = open_once(use);
    }
    p->skipped = status == DM_OK && atomic_load(&use->stop);
    if (status == DM_OK && !p->skipped) {
        status = dmi_file_move(&use->file, range, &range->packed, p->pinned);
    }
    if (status != DM_OK) {
        atomic_store(&use->stop, 1);
        snprintf(p->text, sizeof p->text, "%s", dmi_error_text());
    }
    dm_status left = leave(use);
    if (status == DM_OK && left != DM_OK) {
        status = left;
        snprintf(p->text, sizeof p->text, "%s", dmi_error_text());
    }
    p->status = status;
}

/* Tests plant faults: "file:N" makes the N-th file range of this worker fail. */
static bool planted(dmi_engine *e)
{
    const char *fault = e->config.fault;
    return fault && strncmp(fault, "file:", 5) == 0 &&
           ++e->gpu->host_work->ranges == strtoll(fault + 5, NULL, 10);
}

static void begin_job(dmi_engine *e, dmi_staging_buffer *p, dmi_queued_step *w)
{
    p->work = w;
    p->use = w->inst->file;
    p->planted = planted(e);
    dmi_gpu_buffer_to_crew(e, p, run_part);
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
}

/* --- between a staging buffer and the worker's memory --- */

static bool in_rows(const dmi_copy *c, int64_t *src, int64_t *dst, int64_t v[4])
{
    int64_t elem = dmi_dtype_bytes(c->src_dtype);
    bool rows = dmi_copy_as_rows(c, elem, src, dst, v) && (v[1] == 1 || v[0] >= ROW_BYTES);
    *src *= elem;
    *dst *= elem;
    return rows;
}

static dm_status move(dmi_engine *e, int lane, dmi_queued_step *w, dmi_staging_buffer *p)
{
    dmi_queue *queue = e->gpu->queue[lane];
    const dmi_file_range *range = w->step->desc;
    const dmi_copy *rest = &range->rest;
    bool reading = reads(w->step);
    int64_t bytes = rest->count * dmi_dtype_bytes(rest->src_dtype), src, dst, v[4];
    char *memory = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    if (in_rows(rest, &src, &dst, v)) {
        char *from = (reading ? p->pinned : memory) + src, *to = (reading ? memory : p->pinned) + dst;
        return v[1] == 1 ? dmi_cu_copy(queue->stream, to, from, v[0])
                         : dmi_cu_copy_2d(queue->stream, to, v[3], from, v[2], v[0], v[1]);
    }
    dm_status status = dmi_gpu_buffer_packed(e);
    queue->device_run = status == DM_OK ? dmi_gpu_runs(e, w, rest) : NULL;
    if (status == DM_OK && reading) {
        status = dmi_cu_copy(queue->stream, p->device, p->pinned, bytes);
    }
    if (status == DM_OK) {
        dmi_run_copy(e->config.backend, queue, rest, reading ? p->device : memory, reading ? memory : p->device);
        status = dmi_gpu_queued(queue, DM_OK);
    }
    if (status == DM_OK && !reading) {
        status = dmi_cu_copy(queue->stream, p->pinned, p->device, bytes);
    }
    return status;
}

/* The lane's stream waits for what the step waits for, all of which has been issued; then the copy. */
static void put_on_stream(dmi_engine *e, int lane, dmi_queued_step *w, dmi_staging_buffer *p,
                          dmi_buffer_list *list)
{
    dm_status status = dmi_gpu_after(e, lane, &w->wait);
    dmi_gpu_time_begin(e, lane, w);
    dmi_gpu_failed(e, w, status == DM_OK ? move(e, lane, w, p) : status);
    dmi_gpu_time_end(e, lane, w);
    dmi_gpu_buffer_on_device(e, lane, list, p);
}

/* --- reading --- */

static void read_ahead(dmi_engine *e, int lane, const dmi_queued_step *w)
{
    struct dmi_host_work *h = e->gpu->host_work;
    uint64_t end = atomic_load_explicit(&e->lane[lane].enqueued, memory_order_relaxed);
    h->ahead[lane] = DMI_MAX(h->ahead[lane], e->gpu->issued[lane]);
    while (h->ahead[lane] < end && !atomic_load(&w->inst->failed)) {
        dmi_queued_step *next = dmi_lane_slot(&e->lane[lane], h->ahead[lane]);
        dmi_staging_buffer *p = next->inst == w->inst && reads(next->step) ? dmi_gpu_buffer_take(e) : NULL;
        if (!p) {
            return;
        }
        next->buffer = p;
        begin_job(e, p, next);
        h->ahead[lane]++;
    }
}

static bool issue_read(dmi_engine *e, int lane, dmi_queued_step *w)
{
    struct dmi_host_work *h = e->gpu->host_work;
    read_ahead(e, lane, w);
    dmi_staging_buffer *p = w->buffer;
    if (!p) {
        if (!atomic_load(&w->inst->failed)) {
            return false; /* all staging buffers are in use */
        }
        skip(e, w->inst);
        return true;
    }
    if (!dmi_crew_done(&p->job)) {
        return false;
    }
    w->buffer = NULL;
    h->jobs--;
    forget(e, w->inst);
    if (p->status != DM_OK) {
        dmi_gpu_failed(e, w, dmi_fail(p->status, "%s", p->text));
    }
    if (!p->skipped && !atomic_load(&w->inst->failed) && dmi_ref_pointer(w->inst, &w->step->ref[0])) {
        put_on_stream(e, lane, w, p, &h->to_device);
    } else {
        dmi_gpu_buffer_free(e, p);
    }
    return true;
}

/* --- writing --- */

static bool issue_write(dmi_engine *e, int lane, dmi_queued_step *w)
{
    struct dmi_host_work *h = e->gpu->host_work;
    bool nothing = atomic_load(&w->inst->failed) || !dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dmi_staging_buffer *p = nothing ? NULL : dmi_gpu_buffer_take(e);
    if (nothing) {
        skip(e, w->inst);
        w->finished = true;
    } else if (p) {
        p->work = w;
        put_on_stream(e, lane, w, p, &h->to_host);
    }
    return nothing || p;
}

void dmi_gpu_file_arrived(dmi_engine *e, dmi_staging_buffer *p)
{
    dmi_queued_step *w = p->work;
    dmi_compute_check_inputs(e, w);
    if (atomic_load(&w->inst->failed)) {
        skip(e, w->inst);
        w->finished = true;
        dmi_gpu_buffer_free(e, p);
        return;
    }
    begin_job(e, p, w);
    dmi_gpu_buffer_append(&e->gpu->host_work->with_crew, p);
}

void dmi_gpu_file_written(dmi_engine *e, dmi_staging_buffer *p)
{
    if (p->status != DM_OK) {
        dmi_gpu_failed(e, p->work, dmi_fail(p->status, "%s", p->text));
    }
    forget(e, p->work->inst);
    p->work->finished = true;
    dmi_gpu_buffer_free(e, p);
}

/* True if the step must wait because earlier commands hold the device memory for packed staging buffers. */
static bool waits_for_memory(dmi_engine *e, const dmi_queued_step *w)
{
    const dmi_file_range *range = w->step->desc;
    int64_t src, dst, v[4];
    return !atomic_load(&w->inst->failed) && e->first != w->inst && !e->gpu->host_work->device &&
           !in_rows(&range->rest, &src, &dst, v) && dmi_gpu_buffer_packed(e) != DM_OK;
}

bool dmi_gpu_issue_file(dmi_engine *e, int lane, dmi_queued_step *w)
{
    bool reading = reads(w->step);
    dm_status status = atomic_load(&w->inst->failed) && !w->inst->file ? DM_ERR_POISONED : dmi_gpu_host_work(e);
    if (status == DM_OK && !use_of(e, w)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a file");
    }
    if (status == DM_OK && waits_for_memory(e, w)) {
        return false;
    }
    if (status == DM_OK) {
        return reading ? issue_read(e, lane, w) : issue_write(e, lane, w);
    }
    if (!atomic_load(&w->inst->failed)) {
        dmi_gpu_failed(e, w, status);
    }
    w->finished = true;
    return true;
}
