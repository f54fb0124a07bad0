/* How the ranks of an MPI job become a session: hosts, shared memory, transports. */
#ifndef DMI_JOB_H
#define DMI_JOB_H

#include "exec/mpi_link.h"
#include "launch/launch.h"
#include "worker/worker.h"

typedef struct dmi_forward dmi_forward;
typedef struct dmi_heartbeat dmi_heartbeat;

typedef struct dmi_job {
    MPI_Comm ctl, data;    /* own communicators */
    bool owns_mpi;         /* dm_init made MPI, so the session's end ends it */
    int at_finalize;       /* attribute of MPI_COMM_SELF by which MPI_Finalize ends the session */
    int ranks, rank;
    int workers;           /* ranks - 1; endpoint w is rank w + 1, endpoint `workers` (the master) rank 0 */
    int me;                /* own endpoint */
    int *rank_of;          /* [endpoints] */
    int *host_of;          /* [endpoints] number of its (pretended) host; the master's is 0 */
    int hosts;
    int *leader;           /* [hosts] endpoint that owns the host's hub */
    int *consumer; /* endpoints that read this host's command ring (and the forwarder, if it forwards) */
    int nconsumer;
    int *pid_of;           /* [endpoints] */
    uint64_t *start_of;    /* [endpoints] dmi_process_start */
    bool *near;            /* [endpoints] processes of this host */
    struct dmi_liveness *liveness; /* NULL: nobody watches */
    dmi_heartbeat *heartbeat;      /* rank 0 and leaders of other hosts; NULL: none */
    bool outlives;                 /* a worker's death ends the session and not the job */
    bool *direct;          /* [endpoints] direct transport to it passed its check */
    dmi_config config;     /* rank 0's */
    dmi_profile profile;
    dmi_hub hub;
    dmi_mpi_state mpi;
    dmi_forward *forward;  /* commands to and from other hosts; NULL on one host */
    const dmi_device *device; /* of this worker; NULL: the CPU */
    int device_number;
    bool shares_gpus;      /* some workers share one */
    int *far_of;           /* [endpoints] GPU workers with equal numbers push straight to each other */
    bool messages;         /* some pair of this process uses messages */
    bool gpu_messages;     /* GPUs with unequal far_of send messages from and to their memory; the same on all ranks */
} dmi_job;

/* --- control.c */
/* MPI calls by which the ranks agree and meet. Where one fails, the others may wait for ever: the process ends
 * with a line that names the call, as it does when a rank has died. Not for payloads, whose session alone
 * fails. */
#define DMI_MPI(call) dmi_mpi_control(call, #call)
void dmi_mpi_control(int code, const char *call);
/* --- arrive.c */
/* Collective: the job's own communicators; DM_ERR_TIMEOUT if a rank does not arrive. After that MPI may still
 * write into the job's buffers, so keep them. */
DM_CHECKED dm_status dmi_job_communicators(MPI_Comm comm, double limit_s, dmi_job *job);
/* --- meet.c */
/* Collective: the ranks compare their versions and functions, take rank 0's configuration, and share one hub
 * per host. The same status on all ranks. loaded: the status of loading config, with its text. */
DM_CHECKED dm_status dmi_job_meet(MPI_Comm comm, const dmi_config *config, dm_status loaded, dmi_job **out);
void dmi_job_free(dmi_job *job); /* collective */
/* Of a job with a dead rank: what needs no other rank. The hub goes; who watches whom stays. */
void dmi_job_leave(dmi_job *job);
/* And the rest, when the next job is watched. MPI keeps the communicators: the dead rank cannot give them up. */
void dmi_job_forget(dmi_job *job);
/* The worst status of all ranks, with its text, on all ranks. */
DM_CHECKED dm_status dmi_job_agree(dmi_job *job, dm_status status);
/* --- tasks.c */
/* Collective, if rank `rank` has registered other functions than rank 0: an error on rank 0 that names them. */
DM_CHECKED dm_status dmi_job_tell_tasks(dmi_job *job, int rank, const char *host, const char *host0);
#define DMI_SILENCE_MOST_NS INT64_C(500000000) /* of silence, at a look that came late: this side may have been stopped */
/* --- liveness.c: notices when processes of this machine, or what started them, die */
DM_CHECKED dm_status dmi_liveness_start(dmi_job *job);
/* Rank 0 has a session: its calls say what has happened. NULL: it begins or ends, when a death ends the job. */
void dmi_liveness_tell(dmi_job *job, dmi_session *s);
/* Rank 0, the session has ended by a death. Until `ignore` is false again, others die unnoticed. */
void dmi_liveness_ignore(dmi_job *job, bool ignore);
/* Not rank 0: from now on this process leaves if the leader of its host (another one) stops looking for messages. */
void dmi_liveness_expect_looks(dmi_job *job);
void dmi_liveness_stop(dmi_job *job); /* collective: nobody's end is a death from then on */
void dmi_liveness_free(dmi_job *job); /* the same of this rank alone */
/* A line on stderr, where that does not block. */
void dmi_liveness_say(const char *text);
/* Not rank 0: says that something has been so for so many seconds, and ends the process. */
_Noreturn void dmi_liveness_leave(dmi_job *job, const char *what, double seconds);
/* --- heartbeat.c: signs of life between rank 0 and other hosts */
DM_CHECKED dm_status dmi_heartbeat_start(dmi_job *job); /* collective, behind the probe */
void dmi_heartbeat_stop(dmi_job *job);
/* Rank 0: how long its thread may sleep between two looks; -1: there are no heartbeats. */
int dmi_heartbeat_pause_ms(const dmi_job *job);
/* Rank 0: a worker of another host that has died, or whose host gives no sign of life; -1: none. */
int dmi_heartbeat_look(dmi_job *job, bool *died);
bool dmi_heartbeat_answer(dmi_job *job); /* a leader; true: something came */
void dmi_heartbeat_rest(dmi_job *job);   /* a leader: the others of its host are not to expect looks any more */
/* A leader: rank 0 is to be told that a worker of this host has died. For any thread. */
void dmi_heartbeat_died(dmi_job *job, int worker);
/* --- again.c: a session after one that a death has ended (option on_death) */
/* Collective, behind the probe: sets job->outlives, or says why a death would end more than the session. */
DM_CHECKED dm_status dmi_job_outlives(dmi_job *job);
/* Rank 0: a communicator of the ranks that are left of a job, in their order. DM_ERR_TIMEOUT: one that lives has
 * not come within limit_s (0: no limit). */
DM_CHECKED dm_status dmi_again_begin(dmi_job *last, double limit_s, MPI_Comm *out);
/* Any other rank: waits until rank 0 begins that session. The process ends with rank 0's. */
MPI_Comm dmi_again_wait(dmi_job *last);
/* --- probe.c */
/* Collective: tests every pair with real data and sets the engine's transports. */
DM_CHECKED dm_status dmi_job_probe(dmi_job *job, dmi_engine *engine);
/* --- gpu.c */
/* Open MPI wants the device chosen before it starts. */
void dmi_gpu_before_mpi(const dmi_config *config);
/* Collective: numbers the workers' GPUs by their order on a machine; machine[w]: equal for workers of one
 * machine. */
DM_CHECKED dm_status dmi_job_choose_gpu(dmi_job *job, const int *machine);
/* Collective: which GPUs reach each other's memory. */
DM_CHECKED dm_status dmi_job_probe_gpu(dmi_job *job, dmi_engine *engine);
/* --- gpu_message.c */
/* Collective: measures the rates of the GPUs and their links for the profile. */
DM_CHECKED dm_status dmi_job_rates(dmi_job *job, dmi_engine *e);
/* Collective: may MPI access device memory, for pairs without direct access (far_of)? */
DM_CHECKED dm_status dmi_job_probe_messages(dmi_job *job, dmi_engine *engine);
/* --- shared.c: slabs that the other processes of the host can map */
dmi_slab_ops dmi_slab_ops_shared(dmi_port *port);
/* --- forward.c: commands down a binomial tree of the hosts' leaders, reports straight to the master */
DM_CHECKED dm_status dmi_forward_start(dmi_job *job);
bool dmi_forward_progress(dmi_job *job); /* leaders and the master */
bool dmi_forward_drained(const dmi_job *job);
/* A worker of another host than the master's: reports once its last SYNC is reached (or once a second). */
bool dmi_forward_report(dmi_job *job, dmi_worker *w);
void dmi_forward_stop(dmi_job *job);

#endif
