/* The executor: runs the plans of one endpoint (a worker or the master) on its lanes: COMPUTE, SEND and RECV,
 * and on a GPU more compute lanes, of which a command takes one.
 *
 * Two threads serve a worker's engine: the communication thread (SEND and RECV lanes, the command ring, all MPI
 * calls) and the compute thread (COMPUTE lane). The master's engine is driven by the user's thread alone,
 * within calls that wait.
 *
 * Order: a lane counts its finished steps from 1 on, over all commands. A stamp names one position of each
 * lane; a step starts when the lanes have reached the stamp it was given when its command was enqueued: the
 * waits of its plan, and for each memory it touches the stamp after which that is safe (reads: the last writes;
 * writes: the last writes and reads). Commands are enqueued in the order of the stream, on every worker alike.
 */
#ifndef DMI_ENGINE_H
#define DMI_ENGINE_H

#include "comm/hub.h"
#include "plan/plan.h"

#include <pthread.h>
#include <stdatomic.h>

#define DMI_LANE_ROOM 4096 /* steps a lane can hold; power of two */

enum { DMI_CLEAN, DMI_POISONED, DMI_NO_MEMORY };

/* Storage of one array on this worker. */
typedef struct dmi_memory {
    dmi_allocation allocation;
    dmi_hazards last;       /* writes and reads enqueued */
    int handles;            /* array and views: at zero the allocation goes back to the pool */
    int refs;               /* handles and commands in flight: at zero this struct goes */
    uint32_t number;
    int64_t elements;       /* of the whole array, on all workers together; a view's layout may have fewer */
    uint64_t rewritten;     /* the last command read that overwrites all of it */
    bool fresh;             /* nothing in it counts until a command that is read writes to it */
    atomic_int poisoned;    /* DMI_POISONED: holds (partly) the result of a command that failed; DMI_NO_MEMORY: there
                             * is nothing behind it, for good */
    atomic_uint_fast64_t culprit; /* POISONED: the command that failed first (dmi_culprit) */
} dmi_memory;

/* What the commands of a group have done on this worker. */
typedef struct dmi_group_counts {
    dmi_counts counts;
    uint32_t group; /* its number */
    int64_t commands;
    uint64_t last;                 /* the last command that was counted: parts of a program's run are one */
    int refs;                      /* commands in flight */
    struct dmi_group_counts *next; /* of those whose place a later group has */
} dmi_group_counts;

enum dmi_failed { DMI_FAILED_BY_OTHERS = 1, DMI_FAILED_HERE = 2 };

typedef struct dmi_instance { /* a command in flight */
    dmi_plan *plan;
    uint64_t command, members; /* members: bit w % 64: worker w takes part */
    int op, noperand;
    uint16_t called;         /* public call (dmi_api_name), for messages; 0: not known */
    uint32_t group, program; /* for the timeline: numbers from 1, 0: none; */
    int64_t run;             /* of the program, which run */
    dmi_group_counts *of_group; /* where it counts beside the worker's counters; NULL: nowhere */
    int calls;                  /* of a program, for messages: as many as were recorded */
    int64_t pass;               /* from 1: of the innermost loop around the part; 0: there is none */
    dmi_memory **memory; /* of each operand, as what follows */
    uint8_t *mode;
    dmi_desc *desc; /* for error texts; layout NULL: not known here */
    bool *whole; /* a clean write makes all of this memory valid again */
    char (*name)[DMI_OPERAND_NAME]; /* for messages; "": the op's table has it */
    dmi_allocation *work;         /* [plan->nwork] */
    dmi_stamp *work_use;          /* [plan->nwork] last use, for the pool */
    dmi_hazard *use; /* by this command, */
    dmi_hazard *earlier; /* and by those before it in the same areas */
    dmi_stamp base, end;
    void *user;                   /* the caller's memory (master; workers of the same process) */
    int numbers;
    dmi_number *number;
    char *tail;
    int64_t tail_bytes;
    bool background;              /* runs on the lane for it, and later commands overtake it */
    int lane_of[DMI_LANES];       /* the executor's lane for each lane of the plan */
    uint64_t *before;             /* of a plan with FUSED steps: [endpoints] EXPECTs from each peer before this command */
    struct dmi_file_use *file;    /* GPU: the file that its FILE steps share */
    int next_step[DMI_LANES];     /* where each lane's next step is looked for */
    atomic_int failed;            /* no step does its work any more; all still complete. enum dmi_failed */
    atomic_int status;            /* of its first failure here */
    bool stop;                    /* DMI_DECIDES: a kernel has failed */
    atomic_uint_fast64_t culprit; /* failed: the command that failed first, this one or one before it */
    size_t room;                  /* bytes of it all */
    struct dmi_instance *next;    /* in order of commands */
} dmi_instance;
struct dmi_engine;
/* Zeros, with room for so many operands, and a copy of the numbers; NULL: no memory. */
dmi_instance *dmi_instance_create(struct dmi_engine *e, int operands, int numbers, const dmi_number *number);
/* Takes over a reference to the plan, and allocates what the plan's workspace needs on the host; false: no memory. */
bool dmi_instance_plan(dmi_instance *inst, dmi_plan *plan);
void dmi_instance_free(struct dmi_engine *e, dmi_instance *inst); /* NULL: nothing */
void dmi_instances_free(struct dmi_engine *e); /* those kept for the next commands */
/* Adds to a number of the endpoint's counters (dmi_counts), and to the same of the command's group. */
#define DMI_ADD_COUNT(e, inst, what, n)                                                                        \
    do {                                                                                                       \
        atomic_fetch_add_explicit(&(e)->port->tally.all.what, (n), memory_order_relaxed);                      \
        if ((inst)->of_group) {                                                                                \
            atomic_fetch_add_explicit(&(inst)->of_group->counts.what, (n), memory_order_relaxed);              \
        }                                                                                                      \
    } while (0)

typedef struct dmi_queued_step {
    const dmi_step *step;
    dmi_instance *inst;
    dmi_stamp wait;
    uint64_t ordinal;             /* PUSH, EXPECT: how many before it with this peer in its channel */
    int64_t run, at;              /* how far a transfer is */
    int64_t begun_ns, ended_ns;   /* of a timed engine: transfers */
    int64_t due_ns;               /* pretended links: when arrival may be signalled */
    struct dmi_message *message;  /* message transport: its state */
    bool started, finished;
    struct dmi_staged *staged;         /* GPU: its staging buffer */
    struct dmi_staging_buffer *buffer; /* GPU, file ranges: the same */
    uint64_t arrivals; /* FUSED: position in RECV of the last payload that the kernel itself waits for */
    uint64_t timing;              /* GPU: its events, from 1; 0: none */
    uint32_t *status;             /* GPU: where its kernel says that it has failed; NULL: it cannot */
} dmi_queued_step;

typedef struct dmi_lane {
    dmi_queued_step *queue;              /* [DMI_LANE_ROOM] */
    atomic_uint_fast64_t enqueued, done; /* steps; done <= started <= enqueued */
    uint64_t started;
    int64_t idle_since_ns;               /* with a profile: the next step may not start since; 0: it may */
} dmi_lane;

/* Workspace of a plan that has been enqueued, for the next command with that plan: allocation by allocation, so
 * that one that is free early can be written early. */
typedef struct dmi_workspace_set {
    dmi_plan *plan; /* NULL: nothing */
    dmi_allocation *work;
    uint64_t used;
} dmi_workspace_set;
enum { DMI_WORKSPACE_SETS = 8 };

static inline dmi_queued_step *dmi_lane_slot(const dmi_lane *lane,
                                             uint64_t index) /* the step before which index are */
{
    return &lane->queue[index & (DMI_LANE_ROOM - 1)];
}

/* How bytes move between a pair. All calls come from the communication thread and return at once. */
typedef struct dmi_transport {
    const char *name;
    bool (*push)(struct dmi_engine *e, dmi_queued_step *w);   /* true: the source may change again */
    bool (*grant)(struct dmi_engine *e, dmi_queued_step *w);  /* offers the destination; true: done */
    bool (*arrive)(struct dmi_engine *e, dmi_queued_step *w); /* true: the payload is here */
} dmi_transport;
extern const dmi_transport dmi_transport_direct, dmi_transport_mpi;

typedef struct dmi_peer {
    const dmi_transport *transport;
    struct {
        uint64_t sent, granted; /* ordinals given to steps so far */
        uint64_t retired;       /* payloads from this peer whose arrival has been processed */
    } channel[DMI_CHANNELS];
    void **slab;            /* mapped slabs of this peer (other processes) */
    int64_t *slab_bytes;
    unsigned *slab_serial;
} dmi_peer;

/* Replaces the CPU's lanes if a worker owns a GPU. */
typedef struct dmi_device {
    dm_status (*settings)(void);                          /* DM_ERR_CONFIG: the environment's are not understood */
    int (*count)(void);                                   /* GPUs of this host */
    const char *(*why_none)(void);                        /* why count() is 0 */
    dm_status (*own_thread)(void);                        /* called once by every thread of the library */
    int (*current)(void);                                 /* the calling thread's device; -1: not known */
    const dmi_backend *(*backend)(void);
    dmi_slab_ops (*slabs)(dmi_port *port);                /* port: where other processes find them; or NULL */
    dm_status (*memory)(int64_t *free_bytes, int64_t *total_bytes); /* of the calling thread's device */
    dm_status (*use)(int number);                         /* makes it the calling thread's device */
    /* Its PCI address ("": it has none) and its model. */
    dm_status (*name)(int number, char *bus, size_t bus_room, char *model, size_t model_room);
    dm_status (*start)(struct dmi_engine *e, int number);
    /* Connects e to a peer: both in this process, or (peer NULL) by what the peer has published in its port.
     * After that, pushes to that peer go straight into its memory. */
    dm_status (*connect)(struct dmi_engine *e, int number, struct dmi_engine *peer);
    void (*disconnect)(struct dmi_engine *e);             /* before any peer frees what is mapped here */
    /* does the MPI library report support for device memory? */
    bool (*in_mpi)(void);
    /* From now on, pushes to workers that e is not connected to are messages from and to device memory, of at
     * most `chunk_bytes`; 0: no more. Only after MPI has passed the start-up test. */
    dm_status (*messages)(struct dmi_engine *e, int64_t chunk_bytes);
    /* memory of another process; NULL (logged): not possible */
    void *(*map)(struct dmi_engine *e, int peer, int slab);
    void (*unmap)(struct dmi_engine *e);                    /* all of it; nothing is in flight */
    void (*quiesce)(int64_t until_ns);                     /* the process ends: devices use no more of it */
    /* Copies on e's device from its own memory to that of a GPU that is mapped here, so many times; waits. */
    dm_status (*carry)(struct dmi_engine *e, void *to, const void *from, int64_t bytes, int times, double *seconds);
    dm_status (*rates)(struct dmi_engine *e, dmi_rates *out); /* of its device, before any command; not of links */
    /* Copy bytes to and from memory of any GPU that is mapped here, and wait. */
    dm_status (*put)(void *device, const void *host, int64_t bytes);
    dm_status (*get)(void *host, const void *device, int64_t bytes);
    /* For measurements: the first `gpus` GPUs of this host each copy to the next, all at once and `count` times,
     * with nothing of dmath in between; seconds a copy of the slowest. */
    dm_status (*bare_ring)(int gpus, int64_t bytes, int count, double *seconds);
    /* Agrees with the other members whether a program runs on their devices alone (plan/on_device.h); plan
     * NULL: not if it were for this worker. All workers ask for their programs in one order. Waits for
     * them, and serves them meanwhile. */
    bool (*agree)(struct dmi_engine *e, uint64_t members, dmi_plan *plan);
    /* Between the two the worker may call what waits for devices. False: not now, as others put parts of such
     * programs on their streams. They may be nested. */
    bool (*enter)(struct dmi_engine *e);
    void (*leave)(struct dmi_engine *e);
    void (*give_up)(struct dmi_engine *e); /* what kernels wait for will not come; for any thread */
    bool (*progress)(struct dmi_engine *e);
    void (*stop)(struct dmi_engine *e);
    /* For a profiler: the calling thread works for this command between the two calls. */
    void (*range_begin)(struct dmi_engine *e, int op, uint64_t command);
    void (*range_end)(struct dmi_engine *e);
} dmi_device;
/* The GPUs of a kind (enum dmi_config_device); NULL: not in this build. */
const dmi_device *dmi_device_gpu(int kind);

typedef struct dmi_engine_config {
    int me, endpoints;
    dmi_hub *hub;
    const dmi_backend *backend;
    dmi_pool *pool;
    bool one_space;       /* all endpoints share this address space */
    bool compute_thread;
    const dmi_device *device; /* NULL: the CPU */
    int device_number;
    bool timeline;            /* there will be one, or a profile */
    int compute_lanes;        /* with a device; at least 1 */
    int64_t chunk;            /* with a device: most bytes of a payload that goes through host memory */
    int64_t file_chunk;       /* with a device: most bytes of a file, or of a task's operand, at once */
    int file_threads;         /* with a device: how many threads move such chunks on the host */
    dmi_slab_ops host_memory; /* with a device: where such payloads pass; other processes of the host map it as
                               * slab DMI_MAX_SLABS - 1 */
    int64_t push_kernel;      /* with a device: payloads of at most so many bytes go to peers by a kernel */
    int map_compile;          /* with a device: enum dmi_config_map_compile */
    const char *cache_dir;    /* with a device: the option; lives as long as the engine */
    double link_gbps, link_latency_us;
    bool pool_debug; /* an allocation is reused only when its last user is done */
    bool pool_own;
    bool capture;  /* with a device: each step's work runs as a graph */
    /* planted fault of tests: "compute:N" fails the N-th kernel step, "overrun:N" lets it write beyond its
     * output, "alloc:N" fails the N-th allocation, on a GPU "file:N" the N-th file range */
    const char *fault;
    void (*retired)(void *context, dmi_instance *inst); /* a command's last step is done; may be NULL */
    /* Called while the executor waits for commands in flight: does this endpoint's work for others. 1:
     * something moved, 0: nothing, -1: the session is over. NULL: there is none. */
    int (*meanwhile)(void *context);
    void *context;
} dmi_engine_config;

typedef struct dmi_engine {
    dmi_engine_config config;
    dmi_port *port;
    int lanes;                       /* in use: DMI_LANES, the background, and more compute lanes */
    int behind;                      /* commands in flight whose plan is for the background */
    int background;                  /* the lane of plans that later commands overtake; 0: there is none */
    dmi_workspace_set workspace_sets[DMI_WORKSPACE_SETS]; /* on a GPU, where transfers run ahead of products */
    uint64_t workspace_tick;
    int next_compute; /* counts the choices of the next compute lane */
    bool held;        /* a GPU's: no frames are taken and no memory given back, for that may wait for devices
                         (exec/gpu/exchange.c) */
    bool sections;    /* a GPU's: there may be programs that run on their devices alone */
    int inside;       /* config.device->enter without leave */
    uint64_t fence;   /* of the compute lane: the end of the last program on its device alone, or plan between
                         others; what comes later waits for it */
    dmi_lane lane[DMI_STAMP_LANES];
    dmi_peer *peer;                  /* [endpoints] */
    dmi_instance *first, *last;      /* enqueued and not retired, in order */
    dmi_instance *pending;           /* the one being enqueued, or NULL */
    dmi_instance *spare;             /* memory of commands that have retired */
    size_t spare_bytes;
    dmi_bell compute_bell;           /* its compute thread sleeps here */
    atomic_uint_fast64_t
        wakes_at[DMI_STAMP_LANES];   /* the communication thread sleeps until that lane is so far */
    struct dmi_gpu *gpu;             /* with config.device */
    bool fused;                      /* its GPU has fused products */
    bool compiles;                   /* its elementwise programs are compiled */
    char *host_memory;               /* of a GPU's worker: slab DMI_MAX_SLABS - 1 */
    pthread_t thread, background_thread; /* the second of a CPU's worker, from the first such plan on */
    bool thread_runs;
    atomic_bool background_runs;
    dmi_bell background_bell;
    atomic_int stop;
    atomic_int busy, quiesced;       /* a kernel runs, or a GPU is served; neither may begin any more */
    int64_t link_free_ns;            /* pretended link: when the last byte has gone */
    int64_t wake_ns;                 /* look again at this time even if nobody rings; 0: no need */
    bool awaits_feed;                /* the compute thread looks for a buffer of a feed, which rings no bell */
    atomic_int_fast64_t kernel_steps; /* for planted faults */
    int64_t allocations;              /* the same */
    struct dmi_mpi_state *mpi;       /* message transport, or NULL */
    bool timed;                      /* steps are timed: for one of these */
    struct dmi_trace *trace;         /* timeline, or NULL */
    dmi_usage *usage;                /* [DMI_USAGE_OPS] of its port, with a profile; or NULL */
    int64_t usage_until_ns[DMI_STAMP_LANES]; /* end of the last step that was counted */
    pthread_mutex_t unreported_lock;
    _Atomic(struct dmi_unreported *) unreported; /* failures that the port had no room for, in order */
} dmi_engine;

/* Of a transfer: its channel, and that number among those of all pairs. */
static inline int dmi_step_channel(const dmi_queued_step *w)
{
    return dmi_lane_channel(w->step->lane);
}
static inline int dmi_engine_pair(const dmi_engine *e, int endpoint, const dmi_queued_step *w)
{
    return dmi_step_channel(w) * e->config.endpoints + endpoint;
}
/* Where this endpoint finds grants for what it sends; where the peer of a step finds its own. */
static inline dmi_mailbox *dmi_box_to(const dmi_engine *e, const dmi_queued_step *w)
{
    return &dmi_hub_port(e->config.hub, w->step->peer)->mailbox[dmi_engine_pair(e, e->config.me, w)];
}
static inline dmi_mailbox *dmi_box_from(const dmi_engine *e, const dmi_queued_step *w)
{
    return &e->port->mailbox[dmi_engine_pair(e, w->step->peer, w)];
}
/* A payload has gone to a peer. */
static inline void dmi_count_sent(const dmi_engine *e, const dmi_instance *inst, int peer, int64_t bytes)
{
    atomic_fetch_add_explicit(&dmi_hub_sent(e->config.hub, e->config.me)[peer], bytes, memory_order_relaxed);
    DMI_ADD_COUNT(e, inst, bytes_sent, bytes);
}
static inline uint64_t *dmi_retired(const dmi_engine *e, const dmi_queued_step *w)
{
    return &e->peer[w->step->peer].channel[dmi_step_channel(w)].retired;
}

DM_CHECKED dm_status dmi_engine_start(dmi_engine *e, const dmi_engine_config *config);
void dmi_engine_stop(dmi_engine *e); /* lanes must be empty */

/* Takes over an instance (plan reference included). operand memory, user, numbers must be set; workspace is taken
 * here. On DM_ERR_NOMEM/LIMIT the instance runs as a failed one: it keeps its transfers, so that nobody hangs. */
void dmi_engine_submit(dmi_engine *e, dmi_instance *inst);
/* Room for another command? (the one before is enqueued entirely) */
bool dmi_engine_ready(const dmi_engine *e);
/* One look at everything the communication thread serves; true if something moved. */
bool dmi_engine_progress(dmi_engine *e);
/* All commands retired? */
bool dmi_engine_idle(const dmi_engine *e);
/* The oldest command in flight; NULL: none. background: of those whose plan is for the background, also where there was no memory
 * for its thread; else of those that are not there. */
const dmi_instance *dmi_engine_oldest(const dmi_engine *e, bool background);
bool dmi_engine_reached(const dmi_engine *e, const dmi_stamp *stamp);
dmi_stamp dmi_engine_done(const dmi_engine *e);
/* The communication thread, before it announces that it sleeps: what kernels' ends wake it. */
void dmi_engine_note_wakes(dmi_engine *e);
/* A thread of kernels, behind each: the lane has done so many. */
void dmi_engine_wake(dmi_engine *e, int lane, uint64_t done);
/* Marks the instance failed; keeps the first report for the master. status 0: the consequence of an earlier failure,
 * nothing new to report. Its outputs are poisoned step by step: */
void dmi_engine_fail(dmi_engine *e, dmi_instance *inst, dm_status status, const char *text);
/* A command that failed, with its public call (dmi_api_name), as one number: never 0. */
static inline uint64_t dmi_culprit(uint64_t command, uint16_t called)
{
    return command << 16 | called;
}
/* The culprit of a failed command; 0: it has not failed. */
uint64_t dmi_engine_culprit(const dmi_instance *inst);
/* The same, with the thread's error text; of a program it names the call. */
void dmi_engine_fail_step(dmi_engine *e, const dmi_queued_step *w, dm_status status);
/* Others wait for what this endpoint could not do, or nobody would hear that it failed: the session has failed.
 * The first status stays. */
void dmi_engine_break(dmi_engine *e, dm_status status);
/* A kernel step has said that it failed: its text, or DM_OK where that is the answer of the op. */
DM_CHECKED dm_status dmi_step_failed(const dmi_queued_step *w, uint32_t failure);
/* Marks the instance failed as a consequence of that culprit. */
void dmi_engine_inherit(dmi_engine *e, dmi_instance *inst, uint64_t culprit);
/* The same, because an operand is poisoned. Reports it if no output inherits the poison, as in reads and
 * saves. */
void dmi_engine_fail_by_input(dmi_engine *e, dmi_instance *inst, int operand);
/* Commands up to that number stop at their next step, on all endpoints of the hub. For any thread. */
void dmi_engine_cancel(const dmi_hub *hub, uint64_t until);
/* Is the command cancelled? Then it has failed. */
void dmi_engine_check_cancelled(dmi_engine *e, dmi_instance *inst);
/* What was written there is not to be read, but in an array without memory, which stays one. */
void dmi_memory_poison(dmi_memory *memory, uint64_t culprit);
/* "a holds the result of command 7 (gemm), which failed" */
void dmi_culprit_text(const char *operand, uint64_t culprit, char *text, size_t room);
/* A step is done: what it was to write is poisoned if its command has failed, clean again if it is wholly rewritten.
 * Not earlier: commands before this one may still use that memory until the step may begin. */
void dmi_engine_settle(const dmi_queued_step *w);
/* Returns the workspace sets to the pool. */
void dmi_engine_trim(dmi_engine *e);
/* That, and slabs of the pool that nothing uses any more, unless peers have mapped them. */
void dmi_engine_trim_all(dmi_engine *e);
/* Waits until all commands are done but one that is being enqueued, or until the session is over. */
void dmi_engine_drain(dmi_engine *e);
/* Does this endpoint's work until that is true; false: the session is over. */
DM_CHECKED bool dmi_engine_await(dmi_engine *e, bool (*is_true)(dmi_engine *e));
/* Memory from the pool, unless a planted fault says no. A GPU that has none left waits for what earlier commands give back
 * before that is an error. */
DM_CHECKED dm_status dmi_engine_alloc(dmi_engine *e, int64_t bytes, int owner, dmi_allocation *out);
/* A failure of the worker, for the master. members: who takes part in the command; written: memories that it
 * writes, by number. */
void dmi_engine_report_writes(dmi_engine *e, uint64_t culprit, uint64_t members, dm_status status,
                              const char *text, const uint32_t *written, int count);
/* The same of a command that is not known, or concerns this endpoint alone. */
void dmi_engine_report(dmi_engine *e, uint64_t command, dm_status status, const char *text);
/* Puts reports that the port had no room for where the master has made some; true if it did. */
bool dmi_engine_report_rest(dmi_engine *e);
static inline bool dmi_engine_report_more(dmi_engine *e)
{
    return atomic_load_explicit(&e->unreported, memory_order_relaxed) && dmi_engine_report_rest(e);
}

/* --- workspace.c */
void dmi_workspace_take(dmi_engine *e, dmi_instance *inst);
void dmi_workspace_return(dmi_engine *e, dmi_instance *inst);
/* --- transfers.c: SEND and RECV lanes of the CPU */
bool dmi_transfers_progress(dmi_engine *e);
void dmi_lane_advance(dmi_engine *e, int lane);
/* Before a push: a command that sends what a failed one has made has failed itself. */
void dmi_transfer_check_source(dmi_engine *e, const dmi_queued_step *w);
/* --- exec/direct.c: slab `index` of a peer in another process, mapped here; NULL (logged) where that fails */
void *dmi_direct_map(dmi_engine *e, int peer, int index);
void dmi_direct_unmap(dmi_engine *e);
/* --- transport.c */
/* The transport to a peer: "direct", "mpi"; between GPUs also "ipc", and "staged ..." through host memory. */
const char *dmi_engine_transport(const dmi_engine *e, int peer);
/* --- execute.c */
double dmi_step_scalar(const dmi_queued_step *w, int which);
void *dmi_ref_pointer(const dmi_instance *inst, const dmi_ref *ref);
/* The bytes that came with the step's call. */
dmi_tail dmi_step_tail(const dmi_queued_step *w);
/* May a step whose waits are over begin? One that takes a buffer of a feed when it is there: it would hold up what others
 * wait for. */
bool dmi_step_may_begin(const dmi_engine *e, const dmi_queued_step *w);
/* What a kernel's step touches, by reference. */
void dmi_step_touches(const dmi_step *step, dmi_touch out[DMI_MAX_REFS]);
/* Of its scratch, where a queue has memory for that; 0: the touch is none. */
int64_t dmi_scratch_bytes(const dmi_touch *t);
/* A COMPUTE step as its kernel is called. */
void dmi_step_call(const dmi_engine *e, const dmi_queued_step *w, dmi_queue *q, dmi_kernel_call *out);
/* The work of a COMPUTE step, put into q where that is a GPU's. */
dm_status dmi_execute(dmi_engine *e, dmi_queue *q, dmi_queued_step *w);
/* --- compute.c */
/* Fails the step's command where it reads what a failed one has made. */
void dmi_compute_check_inputs(dmi_engine *e, const dmi_queued_step *w);
/* Runs the next step of the compute lane of each channel, if it may start. */
bool dmi_compute_any(dmi_engine *e);
void *dmi_compute_thread(void *engine);
void *dmi_background_thread(void *engine);
/* A lane has come on: a step in the background may have waited for that. */
void dmi_background_wake(dmi_engine *e);
/* Around what calls libraries, on the one thread of the worker that does: the compute thread, or with a GPU the other. */
void dmi_compute_enter(dmi_engine *e); /* does not return once the process ends */
void dmi_compute_leave(dmi_engine *e);
/* For the end of the process: nobody enters any more; waits until nobody is in, or that time. */
void dmi_compute_quiesce(dmi_engine *e, int64_t until_ns);
/* --- rates.c */
/* With a profile: measures what the device reaches, unless that is known, and writes it into the port. Before
 * the first command. */
DM_CHECKED dm_status dmi_engine_rates(dmi_engine *e, const dmi_rates *known);
/* --- usage.c */
/* What happens to the endpoint's steps from now on is counted, or (NULL) no longer. */
void dmi_engine_count(dmi_engine *e, struct dmi_trace *trace, bool usage);
/* Of a timed engine: a step has taken this time. */
void dmi_step_took(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns);
/* With a profile: the step, which may start now, could not for a while. */
void dmi_usage_idle(dmi_engine *e, dmi_lane *lane, const dmi_queued_step *w);
/* The same: a call, at one of its workers. */
void dmi_usage_call(dmi_engine *e, const dmi_call *call);
/* --- trace.c */
void dmi_trace_step(dmi_engine *e, const dmi_queued_step *w, int64_t begin_ns, int64_t end_ns);

#endif
