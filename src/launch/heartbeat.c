/* Life across hosts. Rank 0 sends a message to the leader of every other host now and then, and the leader
 * answers. Each side counts the time in which it looked and nothing came: no processor time, no clock of
 * another, and not the time in which it was itself stopped. On rank 0 the thread that watches processes does
 * this, so the program may be anywhere; it and the program's thread exclude each other from MPI. At a leader
 * the communication thread does. */
#include "launch/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_BEAT = 14, TAG_ANSWER = 15 };
#define LOOK_NS INT64_C(5000000) /* a leader's looks, at the closest */

typedef struct beat {
    int64_t number;
    int32_t died; /* of an answer: worker + 1 of that host whose process has died; 0: none */
    int32_t pad;
} beat;

/* What one side knows of another. */
typedef struct other {
    int rank;
    beat out, in;
    MPI_Request send, receive;
    int64_t sent_ns, looked_ns, silent_ns;
} other;

struct dmi_heartbeat {
    pthread_mutex_t mpi; /* rank 0: who may call MPI */
    int64_t limit_ns, period_ns;
    atomic_int died; /* a leader: worker + 1 that rank 0 is to be told of */
    int told;
    int others;
    other other[]; /* rank 0: the leaders; a leader: rank 0 */
};

static bool tested(MPI_Request *request)
{
    int flag = 0;
    if (*request != MPI_REQUEST_NULL) {
        DMI_MPI(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
    }
    return flag;
}

static void send_beat(dmi_job *job, other *o, int tag, int64_t now)
{
    o->out.number++;
    o->sent_ns = now;
    DMI_MPI(MPI_Isend(&o->out, sizeof o->out, MPI_BYTE, o->rank, tag, job->ctl, &o->send));
}

/* Has something come since the last look? Counts the silence. */
static bool heard(dmi_job *job, other *o, int tag, int64_t now)
{
    (void)tested(&o->send);
    bool came = tested(&o->receive);
    o->silent_ns = came ? 0 : o->silent_ns + (o->looked_ns ? DMI_MIN(now - o->looked_ns, DMI_SILENCE_MOST_NS) : 0);
    o->looked_ns = now;
    if (came) {
        DMI_MPI(MPI_Irecv(&o->in, sizeof o->in, MPI_BYTE, o->rank, tag, job->ctl, &o->receive));
    }
    return came;
}

/* One thread of a process calls MPI at a time, or, where the program may call it as well, any number. */
static bool may_use_thread(const dmi_job *job)
{
    int provided = MPI_THREAD_SINGLE;
    DMI_MPI(MPI_Query_thread(&provided));
    return provided >= (job->owns_mpi ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
}

dm_status dmi_heartbeat_start(dmi_job *job)
{
    double limit_s = job->config.liveness ? job->config.heartbeat_s : 0;
    int wanted = job->hosts > 1 && limit_s > 0 && may_use_thread(job);
    bool leads = job->rank != 0 && job->leader[job->host_of[job->me]] == job->me;
    DMI_MPI(MPI_Bcast(&wanted, 1, MPI_INT, 0, job->ctl));
    if (!wanted) {
        return DM_OK;
    }
    int others = job->rank == 0 ? job->hosts - 1 : leads;
    dmi_heartbeat *h = others ? calloc(1, sizeof *h + (size_t)others * sizeof *h->other) : NULL;
    dm_status status =
        dmi_job_agree(job, h || !others ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for heartbeats"));
    if (status == DM_OK && job->host_of[job->me] != 0 && !leads) {
        dmi_liveness_expect_looks(job);
    }
    if (status != DM_OK || !h) {
        free(h);
        return status;
    }
    pthread_mutex_init(&h->mpi, NULL);
    h->limit_ns = (int64_t)(limit_s * 1e9);
    h->period_ns = DMI_MIN(h->limit_ns / 8, INT64_C(1000000000));
    h->others = others;
    for (int i = 0; i < others; i++) {
        other *o = &h->other[i];
        o->rank = job->rank == 0 ? job->rank_of[job->leader[i + 1]] : 0;
        o->send = MPI_REQUEST_NULL;
        DMI_MPI(MPI_Irecv(&o->in, sizeof o->in, MPI_BYTE, o->rank, job->rank == 0 ? TAG_ANSWER : TAG_BEAT,
                          job->ctl, &o->receive));
    }
    job->mpi.lock = job->rank == 0 ? &h->mpi : NULL;
    job->heartbeat = h;
    return DM_OK;
}

int dmi_heartbeat_pause_ms(const dmi_job *job)
{
    return job->heartbeat ? (int)DMI_MAX(job->heartbeat->period_ns / 4000000, 1) : -1;
}

int dmi_heartbeat_look(dmi_job *job, bool *died)
{
    dmi_heartbeat *h = job->heartbeat;
    int found = -1;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_mutex_timedlock(&h->mpi, &until) != 0) {
        return -1; /* the program's thread has been in MPI, or stopped there, all that time */
    }
    int64_t now = dmi_now_ns();
    for (int i = 0; i < h->others; i++) {
        other *o = &h->other[i];
        if (heard(job, o, TAG_ANSWER, now) && o->in.died > 0) {
            found = o->in.died - 1;
            *died = true;
        }
        if (o->send == MPI_REQUEST_NULL && now - o->sent_ns >= h->period_ns) {
            send_beat(job, o, TAG_BEAT, now);
        }
        if (found < 0 && o->silent_ns > h->limit_ns) {
            found = job->leader[i + 1];
            *died = false;
        }
    }
    pthread_mutex_unlock(&h->mpi);
    return found;
}

bool dmi_heartbeat_answer(dmi_job *job)
{
    dmi_heartbeat *h = job->heartbeat;
    if (!h || job->rank == 0) {
        return false;
    }
    other *o = &h->other[0];
    int64_t now = dmi_now_ns();
    int died = atomic_load_explicit(&h->died, memory_order_relaxed);
    if (now - o->looked_ns < LOOK_NS && died == h->told) {
        return false;
    }
    dmi_port *port = dmi_hub_port(&job->hub, job->me);
    atomic_store_explicit(&port->looks, (atomic_load_explicit(&port->looks, memory_order_relaxed) + 1) | 1,
                          memory_order_relaxed);
    bool came = heard(job, o, TAG_BEAT, now);
    if ((came || died != h->told) && o->send == MPI_REQUEST_NULL) {
        o->out.died = died;
        h->told = died;
        send_beat(job, o, TAG_ANSWER, now);
    }
    if (o->silent_ns > h->limit_ns) {
        dmi_liveness_leave(job, "rank 0 has given no sign of life", (double)o->silent_ns / 1e9);
    }
    return came;
}

void dmi_heartbeat_rest(dmi_job *job)
{
    if (job->heartbeat) {
        atomic_store(&dmi_hub_port(&job->hub, job->me)->looks, 0);
    }
}

void dmi_heartbeat_died(dmi_job *job, int worker)
{
    if (job->heartbeat) {
        atomic_store(&job->heartbeat->died, worker + 1);
    }
}

static void cancel(MPI_Request *request)
{
    if (*request != MPI_REQUEST_NULL) {
        DMI_MPI(MPI_Cancel(request));
        DMI_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
}

void dmi_heartbeat_stop(dmi_job *job)
{
    dmi_heartbeat *h = job->heartbeat;
    if (!h) {
        return;
    }
    for (int i = 0; i < h->others; i++) {
        DMI_MPI(MPI_Wait(&h->other[i].send, MPI_STATUS_IGNORE)); /* some bytes, sent eagerly: long done */
        cancel(&h->other[i].receive);
    }
    pthread_mutex_destroy(&h->mpi);
    free(h);
    job->heartbeat = NULL;
    job->mpi.lock = NULL;
}
