/* Sessions over the ranks of an MPI job. */
#include "base/process.h"
#include "launch/job.h"
#include "launch/placements.h"

#include <dmath/dmath_mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of dm_init: the job whose session a death has ended (option on_death), until the next one begins. */
static dmi_job *ended;
/* A rank of this launch has died. MPI_Finalize, in which Open MPI waits for all of them, then returns or does not. */
static bool missing_rank;
static bool alone; /* this launch has one rank, as MPI has said */
static bool over;  /* this launch's last session has ended, without MPI_Finalize */

/* Nobody waits for this rank any more. */
static void finalize_mpi(void)
{
    if (dmi_mpi_check(MPI_Finalize(), "MPI_Finalize") != DM_OK) {
        dmi_log(DMI_LOG_WARN, "%s", dmi_error_text());
    }
}

static void end_mpi(void)
{
    if (missing_rank) {
        over = true;
    } else {
        finalize_mpi();
    }
}

/* --- master ----------------------------------------------------------------------------------------------- */

static bool master_progress(dmi_session *s)
{
    return dmi_forward_progress(s->launch_state);
}

static void master_published(dmi_session *s)
{
    (void)dmi_forward_progress(s->launch_state);
}

static void delete_end(dmi_job *job)
{
    if (job->at_finalize != MPI_KEYVAL_INVALID) { /* and then calls end_session, which does nothing */
        DMI_MPI(MPI_Comm_delete_attr(MPI_COMM_SELF, job->at_finalize));
    }
}

static void leave(dmi_job *job)
{
    bool owns = job->owns_mpi;
    DMI_MPI(MPI_Barrier(job->ctl));
    delete_end(job);
    dmi_job_free(job);
    if (owns) {
        end_mpi();
    }
}

/* Waits for all ranks, whose sessions have ended; false: one has died, and will not come. */
static bool all_have_ended(dmi_job *job)
{
    MPI_Request request;
    int here = 0;
    if (!job->outlives) {
        DMI_MPI(MPI_Barrier(job->ctl));
        return true;
    }
    if (atomic_load(&job->hub.ring->closed) == DMI_RING_DEAD) {
        return false;
    }
    DMI_MPI(MPI_Ibarrier(job->ctl, &request));
    while (!here && atomic_load(&job->hub.ring->closed) != DMI_RING_DEAD) {
        if (dmi_mpi_check(MPI_Test(&request, &here, MPI_STATUS_IGNORE), "MPI_Test") != DM_OK) {
            dmi_log(DMI_LOG_ERROR, "%s", dmi_error_text()); /* as some MPI libraries tell of a dead rank */
            return false;
        }
        if (!here) {
            usleep(200);
        }
    }
    return here;
}

/* A worker has died, and the session alone ends: the workers that are left have gone from it by themselves. */
static void leave_dead(dmi_session *s)
{
    dmi_job *job = s->launch_state;
    dmi_engine_stop(&s->engine);
    dmi_pool_destroy(s->staging);
    s->staging = NULL;
    s->engine.port = NULL;
    dmi_job_leave(job);
    memset(&s->hub, 0, sizeof s->hub);
    delete_end(job);
    if (job->owns_mpi) {
        ended = job;
        missing_rank = true;
    } else { /* the program may make a communicator of those that are left, and call dm_init_comm again */
        dmi_job_forget(job);
    }
}

static void master_stop(dmi_session *s)
{
    dmi_job *job = s->launch_state;
    dmi_backoff backoff = {0};
    dmi_liveness_tell(job, NULL);
    if (job->outlives && atomic_load(&s->died)) {
        leave_dead(s);
        return;
    }
    while (job->forward && !dmi_forward_drained(job)) {
        if (dmi_forward_progress(job)) {
            dmi_backoff_reset(&backoff);
        } else if (dmi_backoff_step(&backoff, &job->hub) == DMI_WAIT_SLEEP) {
            usleep(100);
        }
    }
    dmi_engine_stop(&s->engine);
    dmi_pool_destroy(s->staging);
    s->staging = NULL;
    (void)all_have_ended(job); /* from here on a death ends the job */
    leave(job);
}

/* Only for jobs on one host, where all see that the command ring is closed. Elsewhere messages in flight would
 * arrive in freed memory. */
static bool abandon_ranks(dmi_session *s)
{
    dmi_job *job = s->launch_state;
    if (atomic_load(&s->died)) {
        if (job->outlives) {
            dmi_liveness_ignore(job, true);
            leave_dead(s);
        }
        return job->outlives;
    }
    if (job->hosts > 1 || job->messages || job->gpu_messages) {
        return false;
    }
    atomic_store(&job->hub.ring->closed, DMI_RING_BROKEN);
    for (int w = 0; w < job->workers; w++) {
        dmi_bell_ring(&dmi_hub_port(&job->hub, w)->bell);
    }
    master_stop(s);
    return true;
}

static const char left[] =
    "the other ranks do not return; where dm_init started MPI the job ends with this process, else "
    "MPI_Abort ends it";
static const dmi_launch one_host = {"mpi", NULL, NULL, master_stop, NULL, abandon_ranks, left};
static const dmi_launch many_hosts = {
    "mpi", master_progress, master_published, master_stop, NULL, abandon_ranks, left};
/* one host, but payloads go by message: waiting must poll */
static bool nothing_moves(dmi_session *s)
{
    (void)s;
    return false;
}
static const dmi_launch message_host = {"mpi", nothing_moves, NULL, master_stop, NULL, abandon_ranks, left};

/* Collective, with option placement: the placement reports of all workers, at the master. */
static dm_status gather_placements(dmi_job *job, const dmi_placement_report *mine, dmi_session *s)
{
    const dmi_placement_report nothing = {0};
    dmi_placement_report *all = s ? calloc((size_t)job->ranks, sizeof *all) : NULL;
    dm_status status =
        dmi_job_agree(job, !s || all ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %d ranks", job->ranks));
    if (status == DM_OK) {
        DMI_MPI(MPI_Gather(mine ? mine : &nothing, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0,
                           job->ctl));
    }
    if (status == DM_OK && s) { /* worker w is rank w + 1 */
        memmove(all, all + 1, (size_t)job->workers * sizeof *all);
        s->placement = all;
        return DM_OK;
    }
    free(all);
    return status;
}

/* Until every worker serves, or option meet_s is over. A worker that is still in a collective call of the start when another
 * one dies would wait there for ever: so deaths end the session alone only from here on. */
static void await_workers(const dmi_job *job)
{
    int64_t begin = dmi_now_ns(), most = (int64_t)(job->config.meet_s * 1e9);
    for (int w = 0; w < job->workers; w++) {
        const dmi_port *port = dmi_hub_port(&job->hub, w);
        while (atomic_load(&port->communication_thread) == 0 && (most <= 0 || dmi_now_ns() - begin < most)) {
            int flag = 0; /* of no use: MPI goes on with what the worker waits for */
            DMI_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job->ctl, &flag, MPI_STATUS_IGNORE));
            usleep(100);
        }
    }
}

static dm_status open_master(dmi_job *job, dmi_session **out)
{
    dmi_session *s = NULL;
    dmi_slab_ops slabs = dmi_slab_ops_shared(dmi_hub_port(&job->hub, job->me));
    dm_status status = dmi_job_agree(job, dmi_session_open(&job->config, &job->profile, &job->hub, &slabs,
                                                           job->consumer, job->nconsumer, &s));
    if (status == DM_OK) {
        status = dmi_job_probe(job, &s->engine);
        status = status == DM_OK ? dmi_job_outlives(job) : status;
        status = status == DM_OK ? dmi_heartbeat_start(job) : status;
        if (status == DM_OK && job->config.placement) {
            status = gather_placements(job, NULL, s);
        }
        if (status != DM_OK) {
            DMI_MPI(MPI_Barrier(job->ctl)); /* as a worker that ends */
        }
    }
    if (status != DM_OK) {
        dmi_session_close(s);
        return status;
    }
    if (job->outlives) {
        await_workers(job);
    }
    s->profile = job->profile; /* with what the probe has found */
    if (dmi_replicas_start(s) != DM_OK) { /* nobody else needs to know */
        dmi_log(DMI_LOG_WARN, "no cache of replicas: %s", dmi_error_text());
        dmi_replicas_stop(s);
    }
    s->launch = job->hosts > 1 ? &many_hosts : job->messages ? &message_host : &one_host;
    s->remote = job->hosts > 1;
    s->launch_state = job;
    dmi_liveness_tell(job, s);
    *out = s;
    return DM_OK;
}

/* --- worker ----------------------------------------------------------------------------------------------- */

static bool worker_service(dmi_worker *w)
{
    dmi_job *job = w->service_context;
    bool moved = dmi_forward_progress(job);
    return job->host_of[job->me] != 0 ? dmi_forward_report(job, w) || moved : moved;
}

static bool worker_drained(dmi_worker *w)
{
    return dmi_forward_drained(w->service_context);
}

/* The launcher may have bound the process to one core: the compute thread stays there, this one may go
 * anywhere. Not with a GPU, which has no such thread: there the launcher's binding is never widened. */
static void unbind(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < CPU_SETSIZE && i < sysconf(_SC_NPROCESSORS_CONF); i++) {
        CPU_SET(i, &all);
    }
    (void)sched_setaffinity(0, sizeof all, &all);
}

/* The worker's thread moves to its CPUs before it makes anything, so that pinned memory is first touched there
 * and threads of the device's library start there. */
static bool take_placement(const dmi_job *job, dmi_placement_report *report, cpu_set_t *before)
{
    dmi_placements placements;
    dmi_placement placement;
    dmi_placements_begin(&job->config, job->device, &placements);
    dmi_placements_choose(&placements, job->me, job->device_number, &placement, report);
    dmi_placements_end(&placements);
    return dmi_placement_enter(&placement, before);
}

/* Serves until the session ends. */
static dm_status serve_session(dmi_job *job, dmi_worker *w, dmi_placement_report *report)
{
    if (!job->device && job->config.bind == DMI_BIND_AUTO) {
        unbind();
    }
    int blas = dmi_cpu_blas_threads(job->config.blas_threads);
    dm_status status = dmi_job_probe(job, &w->engine);
    status = status == DM_OK ? dmi_job_outlives(job) : status;
    status = status == DM_OK ? dmi_heartbeat_start(job) : status;
    if (status == DM_OK && job->config.placement) {
        dmi_placements_peers(&w->engine, report);
        status = gather_placements(job, report, NULL);
    }
    if (status == DM_OK) {
        w->profile = job->profile; /* with what the probe has found */
        w->polls = job->messages || job->gpu_messages || job->hosts > 1;
        w->listens = job->forward && job->leader[job->host_of[job->me]] == job->me;
        w->service = job->forward ? worker_service : NULL;
        w->drained = job->forward ? worker_drained : NULL;
        w->service_context = job;
        dmi_signals_ignore(&job->config);
        dmi_worker_serve(w);
        dmi_heartbeat_rest(job);
    }
    (void)dmi_cpu_blas_threads(blas);
    return status;
}

static dm_status serve(dmi_job *job)
{
    dmi_worker *w = dmi_alloc_lines(1, sizeof *w);
    dm_status status = w ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a worker");
    dmi_placement_report report;
    cpu_set_t before;
    bool moved = take_placement(job, &report, &before);
    if (w) {
        dmi_port *port = dmi_hub_port(&job->hub, job->me);
        dmi_slab_ops host = dmi_slab_ops_shared(port), slabs = job->device ? job->device->slabs(port) : host;
        status = dmi_worker_start(w, job->me, &job->config, &job->profile, &job->hub, &slabs, job->device,
                                  job->device_number, &host);
    }
    status = dmi_job_agree(job, status);
    if (status == DM_OK) {
        status = serve_session(job, w, &report);
        if (job->device) {
            job->device->disconnect(&w->engine);
        }
        if (!all_have_ended(job)) { /* else nobody has memory of others mapped any more */
            status = dmi_fail(DM_ERR_DIED, "a worker has died, and with it the session");
        }
        if (job->messages && atomic_load(&job->hub.ring->closed)) {
            dmi_engine_stop(&w->engine);
            w = NULL; /* messages may still come into its memory */
        } else {
            dmi_worker_finish(w);
        }
    } else if (w) {
        dmi_worker_finish(w);
    }
    if (moved) { /* dm_init_comm gives the thread back to the program */
        dmi_placement_leave(&before);
    }
    free(w);
    return status;
}

/* Both sides. The master gets its session; a worker has served when this returns. */
static dm_status run(MPI_Comm comm, const dmi_config *config, dm_status loaded, bool owns_mpi,
                     dmi_session **out, bool *worker)
{
    dmi_job *job = NULL;
    int rank = 0;
    DMI_MPI(MPI_Comm_rank(comm, &rank));
    *worker = rank != 0;
    dm_status status = dmi_job_meet(comm, config, loaded, &job);
    if (status != DM_OK) {
        return status;
    }
    job->owns_mpi = owns_mpi;
    if (owns_mpi && ended) { /* who watches whom is settled anew */
        dmi_job_forget(ended);
        ended = NULL;
    }
    if (rank != 0) {
        status = serve(job);
        if (job->outlives && status == DM_ERR_DIED) {
            dmi_job_leave(job);
            if (owns_mpi) {
                ended = job;
                missing_rank = true;
            } else {
                dmi_job_forget(job);
            }
            return status;
        }
    } else {
        status = open_master(job, out);
        if (status == DM_OK) {
            return DM_OK; /* the session keeps the job */
        }
    }
    if (status == DM_OK) {
        job->owns_mpi = false; /* the caller ends MPI for a worker */
        leave(job);
    } else {
        dmi_job_free(job);
    }
    return status;
}

/* The only place where the library ends a process. Rank 0 reports the error. The exit status here is 0, because any
 * other would make the launcher kill rank 0 before it reports. */
static void serve_all(const dmi_config *config, dm_status loaded, dm_status status)
{
    while (status == DM_ERR_DIED && ended) {
        MPI_Comm comm = dmi_again_wait(ended);
        bool worker = true;
        status = run(comm, config, loaded, true, NULL, &worker);
        DMI_MPI(MPI_Comm_free(&comm));
    }
    end_mpi();
    exit(0);
}

/* The session before was ended by a death: another one on the ranks that are left. */
static dm_status launch_again(const dmi_config *config, dm_status loaded, dmi_session **out)
{
    MPI_Comm comm = MPI_COMM_NULL;
    bool worker = false;
    dm_status status = loaded == DM_OK ? dmi_again_begin(ended, config->meet_s, &comm) : loaded;
    if (status != DM_OK) { /* they still wait, and this may be tried again */
        return status;
    }
    status = run(comm, config, loaded, true, out, &worker);
    DMI_MPI(MPI_Comm_free(&comm));
    if (status != DM_OK) {
        end_mpi();
    }
    return status;
}

dm_status dmi_launch_mpi(const dmi_config *config, dm_status loaded, dmi_session **out)
{
    int flag = 0, provided = 0, ranks = 0;
    if (alone) {
        return loaded == DM_OK ? dmi_launch_threads(config, dmi_thread_workers(config), out) : loaded;
    }
    MPI_Finalized(&flag);
    if (flag || over) {
        return dmi_fail(DM_ERR_STATE, "%sthe worker processes of this launch have left with the earlier session",
                        flag ? "MPI has been finalized: " : "");
    }
    if (ended) {
        return launch_again(config, loaded, out);
    }
    MPI_Initialized(&flag);
    if (flag) {
        return dmi_fail(DM_ERR_STATE,
                        "MPI is initialised already: by a session of this launch that is still open (there "
                        "can be one at a time), or by the program itself, which then calls dm_init_comm "
                        "(dmath/dmath_mpi.h)");
    }
    dmi_gpu_before_mpi(config);
    dmi_file_limit held; /* its shared memory may be files, too */
    dmi_file_limit_enter(&held);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    dmi_file_limit_leave(&held);
    if (code != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED) {
        if (code == MPI_SUCCESS) {
            finalize_mpi();
        }
        return dmi_fail(DM_ERR_TRANSPORT, "MPI could not be initialised with thread support");
    }
    DMI_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (ranks == 1) { /* a launcher that did not say how many there are */
        finalize_mpi();
        alone = true;
        return dmi_launch_mpi(config, loaded, out);
    }
    bool worker = false;
    dm_status status = run(MPI_COMM_WORLD, config, loaded, true, out, &worker);
    if (worker) {
        serve_all(config, loaded, status);
    }
    if (status != DM_OK) {
        finalize_mpi();
    }
    return status;
}

/* MPI_Finalize begins with the attributes of MPI_COMM_SELF. A session that is open then would leave the other
 * ranks serving, and MPI_Finalize waiting for them. */
static int end_session(MPI_Comm comm, int key, void *value, void *extra)
{
    dm_session *session = value;
    dmi_session *s = NULL;
    (void)comm;
    (void)key;
    (void)extra;
    if (dmi_hold(session, &s) == DM_OK) {
        dmi_owner_take(session);
        dmi_release(session);
        dmi_log(DMI_LOG_WARN, "MPI_Finalize is called, but dm_finalize was not: the session ends here");
        ((dmi_job *)s->launch_state)->at_finalize = MPI_KEYVAL_INVALID; /* is being deleted */
        if (dm_finalize(session, NULL) != DM_OK) {
            dmi_log(DMI_LOG_ERROR, "%s", dmi_error_text());
        }
    }
    return MPI_SUCCESS;
}

static void end_with_mpi(dmi_session *s, dm_session *session)
{
    dmi_job *job = s->launch_state;
    int key = MPI_KEYVAL_INVALID;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_session, &key, NULL) == MPI_SUCCESS) {
        job->at_finalize = key;
        DMI_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, key, session));
    }
}

dm_status dm_init_comm(MPI_Comm comm, const dm_config *config, dm_session **session)
{
    dmi_config loaded = {0};
    dmi_session *s = NULL;
    int flag = 0, ranks = 0;
    if (!session) {
        return dmi_fail(DM_ERR_ARG, "session is NULL");
    }
    dm_status status = dmi_session_outside();
    if (status != DM_OK) {
        return status;
    }
    MPI_Initialized(&flag);
    if (!flag || comm == MPI_COMM_NULL) {
        return dmi_fail(DM_ERR_ARG, flag ? "comm is MPI_COMM_NULL" : "MPI has not been initialised");
    }
    status = dmi_config_from(config, &loaded);
    status = status == DM_OK ? dmi_stack_suffices() : status;
    dmi_error_handler on_error = dmi_error_handler_of(config);
    if (dmi_mpi_check(MPI_Comm_size(comm, &ranks), "comm: MPI_Comm_size") != DM_OK) {
        return DM_ERR_TRANSPORT;
    }
    if (ranks == 1) {
        status = status == DM_OK ? dmi_launch_threads(&loaded, dmi_thread_workers(&loaded), &s) : status;
        status = status == DM_OK ? dmi_session_publish(s, &on_error, session) : status;
        if (status == DM_OK) {
            dmi_placement_print(s, stderr);
        }
        return status;
    }
    bool worker =
        false; /* with a bad configuration it still takes part, so that all ranks get the same status */
    status = run(comm, &loaded, status, false, &s, &worker);
    if (status == DM_OK) {
        if (worker) {
            *session = NULL;
        } else {
            status = dmi_session_publish(s, &on_error, session);
            if (status == DM_OK) {
                dmi_placement_print(s, stderr);
                end_with_mpi(s, *session);
            }
        }
    }
    return status;
}
