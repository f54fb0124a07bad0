/* Commands to other hosts. The hosts form a binomial tree, the master's at the root; each leader sends the
 * frames of its command ring to its children, and puts the frames from its parent into its command ring. A
 * parent has at most MOST_UNACKED unacknowledged messages to a child, so a slow host blocks the master as a
 * full command ring does, and MPI never queues unexpected messages. Reports go straight to the master, one per
 * SYNC. */
#include "base/process.h"
#include "launch/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_FRAMES = 11, TAG_ACK = 12, TAG_REPORT = 13, MOST_UNACKED = 4, MOST_CHILDREN = 32 };

typedef struct report {
    int32_t worker;
    uint64_t completed, background, reports, consumed, now_command, run_command, run_step, wait_command,
        wait_step, wait_number;
    int32_t now_op, now_step, now_peer, now_busy, waits_for, broken;
    int64_t now_flops, now_bytes, cpu_ns, waited_ns;
    dmi_error_record error[DMI_ERROR_RECORDS];
    int64_t tally[sizeof(dmi_tally) / sizeof(int64_t)];
    /* with the option profile only: */
    int64_t usage[DMI_USAGE_OPS * sizeof(dmi_usage) / sizeof(int64_t)];
    int64_t rates[sizeof(dmi_usage_rates) / sizeof(int64_t)];
} report; /* and then, with or without these, dmi_hub_sent's numbers */

static size_t fixed_bytes(const dmi_job *job)
{
    return dmi_config_profile(&job->config) ? sizeof(report) : offsetof(report, usage);
}

static int report_bytes(const dmi_job *job)
{
    return (int)(fixed_bytes(job) + (size_t)job->hub.endpoints * sizeof(int64_t));
}

static int64_t *sent_of(const dmi_job *job, report *r)
{
    return (int64_t *)(void *)((char *)r + fixed_bytes(job));
}

typedef struct child {
    int rank;
    uint64_t cursor;      /* in the command ring */
    int sending, unacked; /* sending: a send is in flight */
    char *buffer;
    MPI_Request send, ack;
    char ack_byte;
} child;

struct dmi_forward {
    child child[MOST_CHILDREN];
    int children;
    uint32_t room;       /* bytes of a message */
    int parent;          /* rank, or -1 */
    char *in;            /* from the parent */
    int in_bytes, in_at; /* frames in it, put into the command ring so far */
    MPI_Request receive, acknowledge;
    dmi_ring_writer ring; /* of this host (not the master's) */
    bool stopped;         /* the STOP frame has passed */
    bool refused;         /* a message was damaged */
    report *incoming, *outgoing;       /* with room for all */
    MPI_Request report_in, report_out; /* master; workers of other hosts */
    uint64_t reported_sync, reported_background, reported_failures;
    struct late_error *late; /* master: failures for whose worker there was no room, in order */
    bool reported_broken, behind; /* behind: something ran in the background at the last report */
    uint64_t *lost;               /* master: [workers] failures that found no memory */
    int64_t reported_ns;
};

static int leader_rank(const dmi_job *job, int host)
{
    return job->rank_of[job->leader[host]];
}

static void find_tree(dmi_job *job, dmi_forward *f)
{
    int host = job->host_of[job->me], top = 1;
    f->parent = -1;
    while (top <= host) {
        top *= 2;
    }
    if (host > 0) {
        f->parent = leader_rank(job, host - top / 2);
    }
    for (int step = top; host + step < job->hosts; step *= 2) {
        f->child[f->children++].rank = leader_rank(job, host + step);
    }
}

dm_status dmi_forward_start(dmi_job *job)
{
    dmi_forward *f = calloc(1, sizeof *f);
    if (!f) {
        return dmi_job_agree(job, dmi_fail(DM_ERR_NOMEM, "no memory for forwarding commands"));
    }
    bool leads = job->leader[job->host_of[job->me]] == job->me, ok = true;
    report **r = job->rank == 0 ? &f->incoming : &f->outgoing;
    *r = malloc(sizeof **r + (size_t)job->hub.endpoints * sizeof(int64_t));
    ok = *r != NULL;
    if (job->rank == 0) {
        f->lost = calloc((size_t)job->workers, sizeof *f->lost);
        ok = ok && f->lost;
    }
    job->forward = f;
    f->room = (uint32_t)(job->hub.ring->size / 4);
    f->parent = -1;
    f->receive = f->acknowledge = f->report_in = f->report_out = MPI_REQUEST_NULL;
    if (leads) {
        find_tree(job, f);
        for (int i = 0; i < f->children; i++) {
            f->child[i].buffer = malloc(f->room);
            f->child[i].send = f->child[i].ack = MPI_REQUEST_NULL;
            ok = ok && f->child[i].buffer;
        }
        /* the forwarder reads the command ring too; its position is stored in the master's port */
        if (f->children > 0) {
            job->consumer[job->nconsumer++] = job->workers;
        }
        f->ring = (dmi_ring_writer){.hub = &job->hub, .consumer = job->consumer, .nconsumer = job->nconsumer};
        f->in = f->parent >= 0 ? malloc(f->room) : NULL;
        ok = ok && (f->parent < 0 || f->in);
    }
    dm_status status =
        dmi_job_agree(job, ok ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for forwarding commands"));
    if (status != DM_OK) {
        return status;
    }
    if (f->in) {
        DMI_MPI(MPI_Irecv(f->in, (int)f->room, MPI_BYTE, f->parent, TAG_FRAMES, job->ctl, &f->receive));
    }
    if (job->rank == 0) {
        DMI_MPI(MPI_Irecv(f->incoming, report_bytes(job), MPI_BYTE, MPI_ANY_SOURCE, TAG_REPORT, job->ctl,
                          &f->report_in));
    }
    return DM_OK;
}

static bool tested(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    if (*request == MPI_REQUEST_NULL) {
        return false;
    }
    DMI_MPI(MPI_Test(request, &flag, status));
    return flag;
}

/* Packs as many whole frames from the command ring into one message as fit. */
static int collect(const dmi_job *job, child *c, uint32_t room)
{
    int bytes = 0;
    for (;;) {
        const dmi_frame *frame = dmi_ring_peek(&job->hub, &c->cursor);
        if (!frame || (uint32_t)bytes + frame->bytes > room) {
            return bytes;
        }
        memcpy(c->buffer + bytes, frame, frame->bytes);
        bytes += (int)frame->bytes;
        c->cursor += frame->bytes;
    }
}

static bool serve_child(dmi_job *job, child *c)
{
    bool moved = false;
    if (c->sending && tested(&c->send, MPI_STATUS_IGNORE)) {
        c->sending = 0;
        moved = true;
    }
    if (c->ack != MPI_REQUEST_NULL && tested(&c->ack, MPI_STATUS_IGNORE)) {
        c->unacked--;
        moved = true;
    }
    if (c->ack == MPI_REQUEST_NULL && c->unacked > 0) {
        DMI_MPI(MPI_Irecv(&c->ack_byte, 1, MPI_BYTE, c->rank, TAG_ACK, job->ctl, &c->ack));
    }
    if (!c->sending && c->unacked < MOST_UNACKED) {
        int bytes = collect(job, c, job->forward->room);
        if (bytes > 0) {
            DMI_MPI(MPI_Isend(c->buffer, bytes, MPI_BYTE, c->rank, TAG_FRAMES, job->ctl, &c->send));
            c->sending = 1;
            c->unacked++;
            moved = true;
        }
    }
    return moved;
}

static void note_forwarded(dmi_job *job)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < job->forward->children; i++) {
        least = DMI_MIN(least, job->forward->child[i].cursor);
    }
    if (job->forward->children > 0) {
        atomic_store_explicit(&dmi_hub_port(&job->hub, job->workers)->consumed, least, memory_order_release);
    }
}

/* Nothing more is taken of a parent whose messages are damaged; the session has failed. */
static bool refuse_message(dmi_job *job, const char *wrong)
{
    dmi_forward *f = job->forward;
    dmi_log(DMI_LOG_ERROR, "a frame in a message from rank %d is damaged: %s; the session cannot go on",
            f->parent, wrong);
    f->in_at = f->in_bytes;
    f->refused = true;
    atomic_store(&dmi_hub_port(&job->hub, job->me)->broken, DM_ERR_TRANSPORT);
    return true;
}

/* Moves frames from the parent into the command ring; acknowledges a message when all of it is in. */
static bool serve_parent(dmi_job *job)
{
    dmi_forward *f = job->forward;
    MPI_Status status;
    bool moved = false;
    if (f->refused) {
        return false;
    }
    if (f->in_bytes == 0 && !f->stopped && tested(&f->receive, &status)) {
        DMI_MPI(MPI_Get_count(&status, MPI_BYTE, &f->in_bytes));
        f->in_at = 0;
        moved = true;
    }
    while (f->in_at < f->in_bytes) {
        const dmi_frame *frame = NULL;
        const char *wrong = NULL;
        if (!dmi_frames_pass(&f->ring, f->in, f->in_bytes, &f->in_at, &wrong, &frame)) {
            return wrong ? refuse_message(job, wrong) : moved;
        }
        f->stopped = f->stopped || frame->kind == DMI_FRAME_STOP;
        if (frame->kind == DMI_FRAME_CANCEL) { /* workers may be busy with what comes before it */
            dmi_engine_cancel(&job->hub, ((const dmi_cancel_frame *)(const void *)frame)->until);
        }
        moved = true;
    }
    if (f->in_bytes > 0) {
        dmi_ring_wake(&f->ring);
        f->in_bytes = 0;
        DMI_MPI(MPI_Wait(&f->acknowledge, MPI_STATUS_IGNORE)); /* one byte, sent eagerly: long done */
        DMI_MPI(MPI_Isend(f->in, 1, MPI_BYTE, f->parent, TAG_ACK, job->ctl, &f->acknowledge));
        if (!f->stopped) {
            /* the acknowledgement's byte may still be read from f->in: it is the first thing a receive would
             * overwrite, and its value means nothing */
            DMI_MPI(MPI_Irecv(f->in, (int)f->room, MPI_BYTE, f->parent, TAG_FRAMES, job->ctl, &f->receive));
        }
    }
    return moved;
}

/* Between records of two processes: only one thread of this one looks at `to`. */
static void copy_error(const dmi_error_record *from, dmi_error_record *to)
{
    to->status = from->status;
    to->command = from->command;
    to->culprit = from->culprit;
    to->members = from->members;
    to->writes = from->writes;
    memcpy(to->write, from->write, sizeof to->write);
    memcpy(to->text, from->text, sizeof to->text);
    atomic_store(&to->present, DMI_RECORD_FULL);
}

static bool take_error(const dmi_error_record *from, dmi_port *port)
{
    for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
        if (atomic_load(&port->error[i].present) == DMI_RECORD_EMPTY) {
            copy_error(from, &port->error[i]);
            return true;
        }
    }
    return false;
}

typedef struct late_error {
    dmi_error_record record;
    int worker;
    struct late_error *next;
} late_error;

/* false: there is no memory. Only the log of its worker has the failure then, and the session has failed. */
static bool keep_late(dmi_forward *f, int worker, const dmi_error_record *from)
{
    late_error **at = &f->late;
    while (*at) {
        at = &(*at)->next;
    }
    *at = calloc(1, sizeof **at);
    if (*at) {
        (*at)->worker = worker;
        copy_error(from, &(*at)->record);
    }
    return *at != NULL;
}

static bool take_late(dmi_job *job)
{
    bool moved = false;
    for (late_error **at = &job->forward->late; *at;) {
        late_error *late = *at;
        if (take_error(&late->record, dmi_hub_port(&job->hub, late->worker))) {
            *at = late->next;
            free(late);
            moved = true;
        } else {
            at = &late->next;
        }
    }
    return moved;
}

static bool take_report(dmi_job *job)
{
    dmi_forward *f = job->forward;
    MPI_Status from;
    int bytes = 0;
    if (!tested(&f->report_in, &from)) {
        return false;
    }
    report *r = f->incoming;
    DMI_MPI(MPI_Get_count(&from, MPI_BYTE, &bytes));
    if (bytes != report_bytes(job) || r->worker < 0 || r->worker >= job->workers) {
        dmi_log(DMI_LOG_ERROR, "a report from rank %d is damaged and left out", from.MPI_SOURCE);
        DMI_MPI(MPI_Irecv(f->incoming, report_bytes(job), MPI_BYTE, MPI_ANY_SOURCE, TAG_REPORT, job->ctl,
                          &f->report_in));
        return true;
    }
    dmi_port *port = dmi_hub_port(&job->hub, r->worker);
    int64_t *tally = (int64_t *)(void *)&port->tally;
    for (int i = 0; i < DMI_COUNT(r->tally); i++) {
        tally[i] = r->tally[i]; /* a mirror: only this thread touches it */
    }
    memcpy(dmi_hub_sent(&job->hub, r->worker), sent_of(job, r), (size_t)job->hub.endpoints * sizeof(int64_t));
    if (dmi_config_profile(&job->config)) {
        memcpy(port->usage, r->usage, sizeof r->usage);
        memcpy(&port->rates, r->rates, sizeof r->rates);
    }
    atomic_store(&port->consumed, r->consumed);
    atomic_store(&port->now_command, r->now_command);
    atomic_store(&port->now_op, r->now_op);
    atomic_store(&port->now_step, r->now_step);
    atomic_store(&port->now_peer, r->now_peer);
    atomic_store(&port->now_busy, r->now_busy);
    atomic_store(&port->now_flops, r->now_flops);
    atomic_store(&port->now_bytes, r->now_bytes);
    atomic_store(&port->runs.command, r->run_command);
    atomic_store(&port->runs.step, r->run_step);
    atomic_store(&port->waits.command, r->wait_command);
    atomic_store(&port->waits.step, r->wait_step);
    atomic_store(&port->waits_for, r->waits_for);
    atomic_store(&port->waits_number, r->wait_number);
    atomic_store(&port->cpu_ns, r->cpu_ns);
    atomic_store(&port->waited_ns, r->waited_ns);
    uint64_t lost = 0;
    for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
        if (atomic_load(&r->error[i].present) == DMI_RECORD_FULL && !take_error(&r->error[i], port)) {
            lost += !keep_late(f, r->worker, &r->error[i]);
        }
    }
    f->lost[r->worker] += lost;
    atomic_store(&port->reports, r->reports - f->lost[r->worker]);
    atomic_store(&port->background, r->background);
    atomic_store(&port->broken, r->broken ? r->broken : f->lost[r->worker] > 0 ? (int)DM_ERR_NOMEM : 0);
    atomic_store(&port->completed, r->completed);
    DMI_MPI(MPI_Irecv(f->incoming, report_bytes(job), MPI_BYTE, MPI_ANY_SOURCE, TAG_REPORT, job->ctl,
                      &f->report_in));
    return true;
}

static bool progress(dmi_job *job)
{
    dmi_forward *f = job->forward;
    bool moved = f->parent >= 0 ? serve_parent(job) : false;
    for (int i = 0; i < f->children; i++) {
        moved = serve_child(job, &f->child[i]) || moved;
    }
    note_forwarded(job);
    if (job->rank == 0) {
        moved = take_late(job) || moved;
        moved = take_report(job) || moved;
    }
    return moved;
}

bool dmi_forward_progress(dmi_job *job)
{
    dmi_mpi_enter(&job->mpi);
    bool moved = progress(job);
    dmi_mpi_leave(&job->mpi);
    return dmi_heartbeat_answer(job) || moved;
}

bool dmi_forward_drained(const dmi_job *job)
{
    const dmi_forward *f = job->forward;
    for (int i = 0; i < f->children; i++) {
        if (f->child[i].sending || f->child[i].unacked > 0 ||
            f->child[i].cursor != atomic_load(&job->hub.ring->head)) {
            return false;
        }
    }
    return true;
}

bool dmi_forward_report(dmi_job *job, dmi_worker *w)
{
    dmi_forward *f = job->forward;
    dmi_port *port = w->engine.port;
    if (f->report_out != MPI_REQUEST_NULL) {
        return tested(&f->report_out, MPI_STATUS_IGNORE);
    }
    uint64_t done = atomic_load(&port->completed);
    bool due = w->sync_command > f->reported_sync && done >= w->sync_command;
    bool beat = w->sync_command > f->reported_sync && dmi_now_ns() - f->reported_ns > 1000000000;
    int broken = atomic_load(&port->broken);
    uint64_t background = atomic_load(&port->background), failures = atomic_load(&port->reports);
    bool behind = dmi_engine_oldest(&w->engine, true) != NULL;
    bool news = failures > f->reported_failures || ((f->behind || behind) && background > f->reported_background);
    if (!due && !beat && !news && (!broken || f->reported_broken)) {
        return false;
    }
    report *r = f->outgoing;
    *r = (report){.worker = job->me,
                  .completed = done,
                  .background = background,
                  .reports = failures,
                  .broken = broken,
                  .consumed = atomic_load(&port->consumed),
                  .now_command = atomic_load(&port->now_command),
                  .now_op = atomic_load(&port->now_op),
                  .now_step = atomic_load(&port->now_step),
                  .now_peer = atomic_load(&port->now_peer),
                  .now_busy = atomic_load(&port->now_busy),
                  .now_flops = atomic_load(&port->now_flops),
                  .now_bytes = atomic_load(&port->now_bytes),
                  .run_command = atomic_load(&port->runs.command),
                  .run_step = atomic_load(&port->runs.step),
                  .wait_command = atomic_load(&port->waits.command),
                  .wait_step = atomic_load(&port->waits.step),
                  .waits_for = atomic_load(&port->waits_for),
                  .wait_number = atomic_load(&port->waits_number)};
    dmi_thread_times times;
    if (dmi_thread_times_get((int)getpid(), atomic_load(&port->compute_thread), &times)) {
        r->cpu_ns = times.cpu_ns;
        r->waited_ns = times.waited_ns;
    }
    for (int i = 0; i < DMI_ERROR_RECORDS; i++) {
        if (atomic_load(&port->error[i].present) == DMI_RECORD_FULL) {
            copy_error(&port->error[i], &r->error[i]);
            atomic_store(&port->error[i].present, DMI_RECORD_EMPTY);
            f->reported_failures++;
        }
    }
    f->reported_background = background;
    f->behind = behind;
    const atomic_int_fast64_t *tally = (const atomic_int_fast64_t *)(const void *)&port->tally;
    for (int i = 0; i < DMI_COUNT(r->tally); i++) {
        r->tally[i] = atomic_load_explicit(&tally[i], memory_order_relaxed);
    }
    const atomic_int_fast64_t *sent = dmi_hub_sent(&job->hub, job->me);
    for (int i = 0; i < job->hub.endpoints; i++) {
        sent_of(job, r)[i] = atomic_load_explicit(&sent[i], memory_order_relaxed);
    }
    const atomic_int_fast64_t *usage = (const atomic_int_fast64_t *)(const void *)port->usage;
    for (int i = 0; w->engine.usage && i < DMI_COUNT(r->usage); i++) {
        r->usage[i] = atomic_load_explicit(&usage[i], memory_order_relaxed);
    }
    const atomic_int_fast64_t *rates = (const atomic_int_fast64_t *)(const void *)&port->rates;
    for (int i = 0; w->engine.usage && i < DMI_COUNT(r->rates); i++) {
        r->rates[i] = atomic_load_explicit(&rates[i], memory_order_relaxed);
    }
    f->reported_broken = broken != 0;
    f->reported_ns = dmi_now_ns();
    f->reported_sync = due ? w->sync_command : f->reported_sync;
    DMI_MPI(MPI_Isend(r, report_bytes(job), MPI_BYTE, 0, TAG_REPORT, job->ctl, &f->report_out));
    return true;
}

static void cancel(MPI_Request *request)
{
    if (*request != MPI_REQUEST_NULL) {
        DMI_MPI(MPI_Cancel(request));
        DMI_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
}

void dmi_forward_stop(dmi_job *job)
{
    dmi_forward *f = job->forward;
    cancel(&f->receive);
    cancel(&f->report_in);
    DMI_MPI(MPI_Wait(&f->acknowledge, MPI_STATUS_IGNORE));
    DMI_MPI(MPI_Wait(&f->report_out, MPI_STATUS_IGNORE));
    for (int i = 0; i < f->children; i++) {
        cancel(&f->child[i].ack);
        DMI_MPI(MPI_Wait(&f->child[i].send, MPI_STATUS_IGNORE));
        free(f->child[i].buffer);
    }
    while (f->late) {
        late_error *late = f->late;
        f->late = late->next;
        free(late);
    }
    free(f->lost);
    free(f->incoming);
    free(f->outgoing);
    free(f->in);
    free(f);
    job->forward = NULL;
}
