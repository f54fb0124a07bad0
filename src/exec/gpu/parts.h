/* The parts of the GPU executor that its files share. */
#ifndef DMI_GPU_PARTS_H
#define DMI_GPU_PARTS_H

#include "exec/gpu/gpu.h"
#include "plan/on_device.h"

enum {
    STREAM_GRANT =
        DMI_STAMP_LANES, /* the others are the lanes'; RECV's is for payloads that came through the host */
    STREAM_TABLES,
    STREAMS,
    EVENTS = 256,
    EVENT_EVERY = 16, /* steps that nobody waits for */
    /* the same for commands with transfers, more often: peers wait for their receive buffers */
    EVENT_TRANSFERS = 4,
    LOOK_EVERY = 16, /* rounds in which something was issued */
    STAGED = 8,      /* chunks in flight through host memory, in each direction */
/* Counters go round after as many payloads. Half as many must be more than are raised now and then (gpu.c) and
 * those in flight. Those of emulated GPUs go round earlier: every session makes the table, and tests get there.
 */
#ifdef DMATH_WITH_CUDA
    NUMBER_BITS = 20,
#else
    NUMBER_BITS = 16,
#endif
/* Bytes for the scratch of a step aside. Emulated GPUs of tests have little memory. */
#ifdef DMATH_WITH_CUDA
    ASIDE_SCRATCH = 16 << 20
#else
    ASIDE_SCRATCH = 256 << 10
#endif
};

typedef struct dmi_lane_event {
    dmi_event event;
    uint64_t seq; /* position of its lane when it was recorded */
} dmi_lane_event;
typedef struct dmi_lane_events {
    dmi_lane_event event[EVENTS];
    uint64_t head;   /* recorded so far */
    uint64_t looked; /* found to be reached, or not looked at any more */
} dmi_lane_events;

/* A chunk in flight through host memory, or as a message from device memory to device memory. */
enum dmi_chunk_state { CHUNK_ON_DEVICE, CHUNK_WITH_LINK, CHUNK_DONE };
typedef struct dmi_staged {
    char *pinned;    /* NULL: not through host memory */
    void *device;    /* the same bytes, packed */
    char *straight;  /* memory that MPI reads or writes in place; NULL: packed */
    dmi_event event; /* device part issued last */
    dmi_queued_step *work; /* NULL: free for the host */
    dmi_arena arena; /* of the packed geometry */
    int state;
    bool used; /* event has been recorded */
} dmi_staged;
typedef struct dmi_staging {
    dmi_staged buffer[STAGED];
    uint64_t head, tail; /* chunks head .. tail-1 are in flight, in order */
    char *memory; /* device memory of these buffers and of those of the other direction; the latter has NULL */
} dmi_staging;

/* Words in pinned memory, which kernels of a worker read and write. Executors of its process refer to them, and
 * the worker's own may end first. */
typedef struct dmi_gpu_words {
    atomic_int references;
    uint32_t *word; /* [WORDS] */
} dmi_gpu_words;
enum { WORD_GIVE_UP, WORD_AWAITS, WORDS }; /* not 0: nothing is waited for; the worker that is waited for + 1 */

typedef struct dmi_gpu_peer {
    /* Its counters that this device raises, of channel 0; those of the next channel stand `endpoints` further on. NULL: this
     * device does not reach them. */
    uint32_t *arrived, *freed;
    void *counters;            /* their mapping, if it is another process's */
    void **slab;               /* [DMI_MAX_SLABS] mapped slabs of another process */
    unsigned *slab_serial;
    unsigned *slab_kept;  /* places of programs in them that this worker uses: they stay mapped */
    dmi_gpu_words *words; /* of a worker of this process; NULL: of another, or not connected */
} dmi_gpu_peer;

struct dmi_gpu {
    int device;
    dmi_queue *queue[DMI_STAMP_LANES];
    dmi_queue
        *aside[DMI_STAMP_LANES]; /* of compute lanes but for the background: steps aside in their graphs */
    dmi_stream stream[STREAMS];
    dmi_stamp known[STREAMS];    /* positions of lanes a stream waits for already */
    uint64_t *arrivals[STREAMS]; /* [DMI_CHANNELS][endpoints] payloads of a peer a stream waits for already */
    dmi_lane_events events[DMI_STAMP_LANES];
    uint64_t issued[DMI_STAMP_LANES];  /* RECV: payloads in flight, whose waits may be issued */
    uint64_t reached[DMI_STAMP_LANES]; /* what the device has finished */
    uint32_t *arrived, *freed; /* [DMI_CHANNELS][endpoints] this device's counters */
    uint32_t *status;          /* [lanes][DMI_LANE_ROOM] in pinned memory: failures that kernels find, by step in flight */
    uint32_t *numbers;         /* [1 << NUMBER_BITS] what counters are raised to, in device memory */
    dmi_gpu_peer *peer;        /* [endpoints] */
    dmi_staging out, in;
    struct dmi_host_work *host_work; /* files and user functions: host_work.h; NULL: none yet */
    dmi_staging message_out, message_in;
    int64_t message_bytes; /* most of a message; 0: none, payloads to far workers pass through host memory */
    char *pinned;          /* host memory of all buffers */
    int64_t pinned_bytes, chunk_bytes;
    dmi_pool *tables; /* run tables of plans, in device memory */
    int64_t busy_ns;  /* when something last moved */
    int rounds; /* since the device was looked at */
    bool capturing;
    bool launching;           /* a section */
    bool holds;               /* dmi_gpu_holds was true when it was asked last, or this worker is ready since */
    int64_t way_ns,
        stands_ns; /* since when it gives way before a section, or stands for others'; 0: it does not */
    dmi_gpu_words *words;     /* this worker's */
    struct dmi_gpu_time *time;
    dmi_cu_ranges *ranges; /* NULL: no profiler listens */
};

/* --- order.c: waits */
bool dmi_gpu_issued(const dmi_engine *e, const dmi_stamp *stamp);
/* Does what comes next on a stream wait for all of this already, or for `also`, which may be NULL? */
bool dmi_gpu_waits_already(const dmi_engine *e, int stream, const dmi_stamp *stamp, const dmi_stamp *also);
/* What comes next on a stream waits for what the stamp names (all of it is issued). Tried again and again. */
dm_status dmi_gpu_after(dmi_engine *e, int stream, const dmi_stamp *stamp);
/* Others wait on their devices, or the host does, for what a call puts on a stream. So a call that has failed
 * is made again for a while, for its driver may only be short of memory; then the session has failed. pause_ns:
 * 0 before the first call. False: it has succeeded, or is not to be made again. */
bool dmi_gpu_again(dmi_engine *e, dm_status status, int64_t *pause_ns);
/* Records an event. Tried again and again. */
DM_CHECKED dm_status dmi_gpu_mark(dmi_engine *e, dmi_event event, int stream);
/* Raises a counter, of any device, to an ordinal when the stream gets there: a 4-byte copy, which follows a
 * payload's copy without a gap. */
dm_status dmi_gpu_raise(dmi_engine *e, int stream, uint32_t *counter, uint64_t ordinal);
uint32_t dmi_gpu_value(uint64_t ordinal); /* what a counter holds then */
const uint32_t *dmi_gpu_number(const dmi_engine *e, uint64_t ordinal); /* the same in device memory */
dm_status dmi_gpu_wait(dmi_engine *e, int stream, uint32_t *counter, uint64_t ordinal);
/* Several counters by one request. wait, raise: all of the batch, which is empty then. Tried again and again. */
typedef struct dmi_gpu_batch {
    dmi_cu_word word[DMI_CU_WORDS];
    int count;
} dmi_gpu_batch;
void dmi_gpu_add_word(dmi_gpu_batch *b, uint32_t *counter, uint64_t ordinal); /* there is room */
DM_CHECKED dm_status dmi_gpu_wait_batch(dmi_engine *e, int stream, dmi_gpu_batch *b);
DM_CHECKED dm_status dmi_gpu_raise_batch(dmi_engine *e, int stream, dmi_gpu_batch *b);
void dmi_gpu_record(dmi_engine *e, int lane, const dmi_queued_step *w); /* w has just been issued */
DM_CHECKED dm_status dmi_gpu_record_issued(dmi_engine *e, int lane);    /* behind all that has been */
/* Polls the device; true if it has advanced. idle: nothing was issued just now, so an event at the end of the
 * stream is worth its cost. */
bool dmi_gpu_look(dmi_engine *e, bool idle);
/* --- capture.c: called around the work that a step puts on a stream, without its waits and events. With the option `capture` that work becomes a CUDA graph. end: the status so far (begin's, if that failed), or why the step could not be
 * captured. */
DM_CHECKED dm_status dmi_gpu_work_begin(dmi_engine *e, int stream);
DM_CHECKED dm_status dmi_gpu_work_end(dmi_engine *e, int stream, const dmi_queued_step *w, dm_status status);
/* --- push.c: copies the payload of a PUSH to its destination. notified: it has raised the peer's `arrived`
 * too. */
dm_status dmi_gpu_push_payload(dmi_engine *e, const dmi_queued_step *w, void *to, bool *notified);
/* --- exchange.c: programs that run on their devices alone */
DM_CHECKED dm_status dmi_gpu_words_create(dmi_engine *e);
void dmi_gpu_words_release(dmi_gpu_words *w); /* a reference; NULL is fine */
void dmi_gpu_heed(dmi_engine *e);             /* has another process told it to give up? */
/* Puts an EXCHANGE on the lane's stream. Peers wait for it, so also where its command has failed: then without
 * payloads. */
DM_CHECKED dm_status dmi_gpu_put_exchange(dmi_engine *e, int lane, const dmi_queued_step *w);
/* The device has done a run up to here: tells the others how it went; true when all have told. */
bool dmi_gpu_run_ended(dmi_engine *e, dmi_queued_step *w);
/* After that: takes over the failures of others. */
void dmi_gpu_settle_exchange(dmi_engine *e, const dmi_queued_step *w);
/* Puts the section that begins with w on the stream, all of it. How many steps that are; 0: w is in none; -1:
 * to be tried again later. */
int dmi_gpu_issue_section(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end);
/* Does this worker wait for others to do the same? Until then it calls nothing that may wait for a device. */
bool dmi_gpu_holds(const dmi_engine *e);
/* It does, or it has not entered (gpu.h), as others put sections of theirs on their streams. */
bool dmi_gpu_stands(dmi_engine *e);
int dmi_gpu_exchange_awaits(
    dmi_engine *e); /* the worker that a kernel or the end of a run waits for, + 1; 0: none */
/* --- graph.c: kernels of a program as graphs. Issues the run of steps that begins with w, where it has a graph
 * or gets one now. How many steps that are; 0: there is no graph, w is to be issued by itself; -1: to be tried
 * again later. */
int dmi_gpu_issue_graph(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end);
/* The same in two parts, for the run that begins with w, of a section. Prepares its graph, or where it gets
 * none, what its steps need of the host and the device. */
void dmi_gpu_prepare_run(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at);
/* Launches the graph; 0: there is none, or it cannot be launched, and its steps are to be issued one by one. */
int dmi_gpu_launch_run(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at);
/* Steps of the run that begins with w; 1 where none does. */
uint32_t dmi_gpu_run_length(const dmi_queued_step *w);
/* What those steps wait for, but for steps among them. */
dmi_stamp dmi_gpu_waits_of(const dmi_engine *e, int lane, uint64_t at, uint32_t length);
/* --- branch.c: steps of a graph that run beside others. What a step touches, in device memory. alone: nothing
 * runs beside it. */
typedef struct dmi_gpu_span {
    uintptr_t from, to;
    int rw;       /* DMI_READ, DMI_WRITE, DMI_READWRITE */
    bool scratch; /* of a step aside it lies elsewhere */
} dmi_gpu_span;
typedef struct dmi_gpu_work {
    int spans;
    bool alone;
    int64_t scratch; /* bytes */
    dmi_gpu_span span[DMI_MAX_REFS];
} dmi_gpu_work;
typedef struct dmi_gpu_place {
    bool aside;
    int after; /* of the main chain: it waits for the step aside of this number, from 1, and those before; 0:
                  for no more than the chain has waited for */
} dmi_gpu_place;
void dmi_gpu_work_of(const dmi_queued_step *w, dmi_gpu_work *work); /* it has its memory */
/* place: [count] of each step */
void dmi_gpu_branches(const dmi_gpu_work *work, int count, dmi_gpu_place *place);
/* --- kernel.c: compute lanes; run tables */
/* Puts the step's kernel on the queue, by itself or into a graph; an exchange on the lane's stream. */
DM_CHECKED dm_status dmi_gpu_put_kernel(dmi_engine *e, int lane, dmi_queue *queue, dmi_queued_step *w);
bool dmi_gpu_has_memory(const dmi_queued_step *w);
/* False: to be tried again later. */
bool dmi_gpu_issue_compute(dmi_engine *e, int lane, dmi_queued_step *w);
/* The step is done: has its kernel failed? */
void dmi_gpu_check_status(dmi_engine *e, const dmi_queued_step *w);
/* Run tables, in device memory, of the copy that a step makes; NULL: it needs none, or there is no memory for
 * them. */
const dmi_run *const *dmi_gpu_runs(dmi_engine *e, const dmi_queued_step *w, const dmi_copy *c);
/* --- packed.c: chunks in flight, packed beside the arrays */
dmi_staged *dmi_gpu_packed_next(dmi_staging *s); /* a free buffer, or NULL */
void dmi_gpu_packed_take(dmi_staging *s, dmi_staged *buffer, dmi_queued_step *w, int state);
/* Records the buffer's event at the end of the lane's stream. */
void dmi_gpu_packed_record(dmi_engine *e, dmi_queued_step *w, int lane);
/* Packs the source's elements into the buffer, and copies them to its pinned memory if it has any; on SEND's
 * stream. */
void dmi_gpu_packed_pack(dmi_engine *e, dmi_staged *buffer, dmi_queued_step *w);
/* Polls a chunk that is to arrive. arrived(): 1: its bytes are here, 0: not yet, -1: the sender's command
 * failed. True: the next chunk may be polled too. */
bool dmi_gpu_packed_receive(dmi_engine *e, dmi_staged *buffer, int (*arrived)(dmi_engine *, dmi_queued_step *));
/* Polls the chunks in flight, in order, until each() is false. */
bool dmi_gpu_packed_progress(dmi_engine *e, dmi_staging *s, bool (*each)(dmi_engine *, dmi_staged *));
/* --- staged.c: payloads through host memory */
bool dmi_gpu_send_staged(dmi_engine *e, dmi_queued_step *w);
bool dmi_gpu_grant_staged(dmi_engine *e, dmi_queued_step *w);
bool dmi_gpu_staged_progress(dmi_engine *e);
/* --- message.c: payloads that MPI carries from device memory to device memory */
bool dmi_gpu_send_message(dmi_engine *e, dmi_queued_step *w);
bool dmi_gpu_grant_message(dmi_engine *e, dmi_queued_step *w);
bool dmi_gpu_message_progress(dmi_engine *e);
/* MPI still reads this push's source, which therefore counts as not issued. */
bool dmi_gpu_held(const dmi_queued_step *w);
/* --- time.c: begin and end of a step's work on the device, for the timeline (without one: nothing) and for a
 * profiler */
dm_status dmi_gpu_time_start(dmi_engine *e);
void dmi_gpu_time_stop(dmi_engine *e);
void dmi_gpu_time_begin(dmi_engine *e, int stream, dmi_queued_step *w);
void dmi_gpu_time_end(dmi_engine *e, int stream, dmi_queued_step *w);
void dmi_gpu_time_take(dmi_engine *e, const dmi_queued_step *w); /* the step is done: into the timeline */
/* --- range.c: ranges for a profiler; nothing where none listens */
void dmi_gpu_ranges_start(dmi_engine *e);
void dmi_gpu_range_step(dmi_engine *e, const dmi_queued_step *w); /* until range_end; the same thread */
/* --- start.c */
/* DM_ERR_NOMEM: what so many bytes of the GPU, or of pinned memory, were for, and what the GPU has. */
dm_status dmi_gpu_no_memory(const dmi_gpu *g, int64_t bytes, const char *what);
/* The buffers of both, of so many bytes each, beside those of pinned memory, if that is given. */
dm_status dmi_gpu_packed_make(dmi_gpu *g, dmi_staging *out, dmi_staging *in, char *pinned, int64_t bytes);
void dmi_gpu_packed_free(dmi_staging *out, dmi_staging *in);
void dmi_gpu_failed(dmi_engine *e, const dmi_queued_step *w, dm_status status);

/* The status of calls that put something into a queue. Clears the queue's first error, so that no later step
 * reports it. */
static inline dm_status dmi_gpu_queued(dmi_queue *queue, dm_status status)
{
    bool failed = queue->error != 0;
    queue->error = 0;
    return status == DM_OK && failed ? dmi_fail(DM_ERR_INTERNAL, "%s", queue->error_text) : status;
}

/* The peer's counters of a step's channel. */
static inline uint32_t *dmi_gpu_arrived_at(const dmi_engine *e, const dmi_queued_step *w)
{
    return e->gpu->peer[w->step->peer].arrived + dmi_engine_pair(e, 0, w);
}
static inline uint32_t *dmi_gpu_freed_at(const dmi_engine *e, const dmi_queued_step *w)
{
    return e->gpu->peer[w->step->peer].freed + dmi_engine_pair(e, 0, w);
}

static inline bool dmi_gpu_direct(const dmi_engine *e, int peer)
{
    return e->gpu->peer[peer].arrived != NULL;
}
/* By messages from and to device memory? */
static inline bool dmi_gpu_far(const dmi_engine *e, int peer)
{
    return e->gpu->message_bytes > 0 && peer < e->config.endpoints - 1 && !dmi_gpu_direct(e, peer);
}

#endif
