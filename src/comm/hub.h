/* The memory that the endpoints of one host share: the command ring, and a port per endpoint. Endpoints 0 ..
 * P-1 are the workers, endpoint P is the master. In process it is ordinary memory; between processes a memfd,
 * mapped through /proc. Every counter in it has one writer and only grows. */
#ifndef DMI_HUB_H
#define DMI_HUB_H

#include "memory/pool.h"

#include <stdalign.h>
#include <stdatomic.h>

#define DMI_LINE 64
#define DMI_SLOTS 32       /* grants that may be outstanding in a channel of a pair */
#define DMI_MAX_SLABS 1024 /* slabs of one endpoint that others can map */
#define DMI_ERROR_TEXT 448

/* Eventcount: a waiter announces itself, checks once more, then sleeps; a ringer makes a system call only if
 * someone sleeps. Works between processes. */
typedef struct dmi_bell {
    alignas(DMI_LINE) atomic_uint count;
    atomic_uint sleeping;
} dmi_bell;

/* A grant: where the receiver wants a payload. */
typedef struct dmi_slot {
    uint64_t address; /* slab < 0: a pointer, else the offset in that slab of the receiver */
    uint64_t poisoned; /* set by the sender: the failed command whose result arrived (dmi_culprit); 0: none */
    int32_t slab;
    int32_t refused;  /* set by the receiver: there is no destination (its command failed), send nothing */
    int32_t free; /* set by a receiver with streams: the destination is free already, nothing to wait for on the
                     device */
} dmi_slot;

typedef struct dmi_mailbox {
    alignas(DMI_LINE) atomic_uint_fast64_t granted; /* by the receiver: grants so far */
    alignas(DMI_LINE) atomic_uint_fast64_t arrived; /* by the sender: payloads delivered so far */
    atomic_uint_fast64_t announced;                 /* by a sender with streams: copies issued so far */
    alignas(DMI_LINE) dmi_slot slot[DMI_SLOTS];     /* grant k uses slot k % DMI_SLOTS */
} dmi_mailbox;

/* A failure that the master has not taken yet. */
enum { DMI_RECORD_EMPTY, DMI_RECORD_FULL, DMI_RECORD_FILLING };
enum { DMI_ERROR_RECORDS = 4, DMI_ERROR_WRITES = 8 };
typedef struct dmi_error_record {
    atomic_int present; /* FULL: filled by the worker; EMPTY: the master has taken it */
    int32_t status;
    uint64_t command, culprit; /* culprit: dmi_culprit */
    uint64_t members;          /* bit w % 64: worker w takes part in the command */
    int32_t writes;            /* memories that the command writes, by number: no worker's part of them may be read */
    uint32_t write[DMI_ERROR_WRITES];
    char text[DMI_ERROR_TEXT];
} dmi_error_record;

/* What an endpoint is doing, for messages about it: the command, its public call (dmi_api_name), and the step's number in
 * the plan of so many.
 * Written in passing, so a reader may see parts of two steps. */
typedef struct dmi_doing {
    atomic_uint_fast64_t command; /* 0: nothing */
    atomic_uint_fast64_t step;    /* call << 48 | number << 24 | steps of the plan */
} dmi_doing;
static inline void dmi_doing_set(dmi_doing *doing, uint64_t command, uint16_t called, int64_t number, int steps)
{
    atomic_store_explicit(&doing->command, command, memory_order_relaxed);
    atomic_store_explicit(&doing->step, (uint64_t)called << 48 | (uint64_t)(number & 0xffffff) << 24 | (uint64_t)(steps & 0xffffff),
                          memory_order_relaxed);
}

typedef struct dmi_counts { /* numbers of dm_counters */
    atomic_int_fast64_t steps, bytes_sent, bytes_received, messages_sent, messages_received, flops;
    atomic_int_fast64_t workspace_peak, plans_made, plans_reused;
} dmi_counts;
typedef struct dmi_tally { /* written by the endpoint, relaxed */
    dmi_counts all;
    atomic_int_fast64_t memory[8]; /* dmi_memory_slot */
    /* of the group whose counters were asked for last: its number, commands, and the rest */
    atomic_int_fast64_t group, group_commands;
    dmi_counts of_group;
} dmi_tally;
enum { DMI_COUNTS = sizeof(dmi_counts) / sizeof(atomic_int_fast64_t) };
enum { DMI_MEM_ARRAYS, DMI_MEM_WORKSPACE, DMI_MEM_REPLICAS, DMI_MEM_STAGING, DMI_MEM_PEAK, DMI_MEM_HELD, DMI_MEM_CALLS };

/* The numbers of dm_profile_rows of one op; written by the endpoint, relaxed. Times in ns. */
enum { DMI_USAGE_OPS = 96, DMI_USAGE_FLOPS = 4 };
typedef struct dmi_usage {
    atomic_int_fast64_t calls, kernel_ns, send_ns, receive_ns, idle_ns, bytes, sent;
    atomic_int_fast64_t flops[DMI_USAGE_FLOPS]; /* enum dmi_usage_flops */
} dmi_usage;
typedef struct dmi_usage_rates { /* what its device reaches, a second; 0: not known */
    atomic_int_fast64_t memory, flops[DMI_USAGE_FLOPS];
} dmi_usage_rates;
enum dmi_usage_flops { DMI_FLOPS_F64, DMI_FLOPS_F32, DMI_FLOPS_TF32, DMI_FLOPS_HALF };

/* What a worker with a GPU tells the others of its host about programs that run on their devices alone
 * (exec/gpu/exchange.c). A program has members, and two workers count the programs, runs and sections of which
 * both are. Each tells the other of number n + 1 only when that one has told of n, so two of each are enough.
 */
enum { DMI_MEETING_WORKERS = 16 };
typedef struct dmi_vote {
    bool yes;
    void *base;        /* of its words and places, for workers of its process; */
    int slab;          /* for others: in this slab, */
    int64_t offset;    /* so many bytes from its start */
    int64_t place;     /* bytes from the base to its first place */
    uint32_t payloads; /* of a run, from whom it tells this */
    int64_t flag;      /* bytes from the base to the first of their flags */
} dmi_vote;
typedef struct dmi_meeting_with {         /* one other worker */
    atomic_uint_fast64_t votes, runs;     /* told so far */
    atomic_uint_fast64_t ready, launched; /* sections that are prepared, and on the stream */
    dmi_vote vote[2];
    uint64_t culprit[2]; /* of a run: the command that failed first; 0: none */
} dmi_meeting_with;
enum dmi_stands { DMI_STANDS = 1, DMI_STANDS_LONG };
typedef struct dmi_meeting {
    dmi_meeting_with with[DMI_MEETING_WORKERS];
    alignas(DMI_LINE)
        atomic_int calls; /* it may be in a call that waits for a device: others do not launch then; */
    atomic_int awaited;   /* one of them waits for that */
    alignas(DMI_LINE) atomic_int launches; /* it puts a section on its stream in which not all workers take
                                              part, or other members still do */
    atomic_int stands;                     /* it would call, but others launch (enum dmi_stands) */
    atomic_int give_up;                    /* its kernels are to wait for nothing any more */
} dmi_meeting;

typedef struct dmi_port {
    dmi_bell bell;                                    /* its communication thread sleeps here */
    alignas(DMI_LINE) atomic_uint_fast64_t consumed;  /* bytes of the command ring it has read */
    alignas(DMI_LINE) atomic_uint_fast64_t completed; /* commands done, in order, but for those in the background: */
    atomic_uint_fast64_t background;                  /* of these all up to this number are done */
    atomic_uint_fast64_t reports;                     /* failures reported so far, some of them perhaps not in error[] yet */
    dmi_error_record error[DMI_ERROR_RECORDS];
    dmi_tally tally;
    /* for the watchdog and for messages about a death: the command that was read last, and its op */
    alignas(DMI_LINE) atomic_uint_fast64_t now_command;
    atomic_int now_op;
    atomic_int now_peer;   /* endpoint + 1 whose payload or grant it waits for; 0: none */
    dmi_doing waits;       /* for a peer, in this step; */
    atomic_int waits_for;  /* payload: operand + 1, or 0; grant: -1 */
    atomic_uint_fast64_t waits_number; /* the payload's number << 32 | payloads of the command in that lane */
    alignas(DMI_LINE) atomic_int now_step; /* kind of the last COMPUTE step */
    atomic_int now_busy;   /* inside a kernel, a file transfer or a user function: */
    dmi_doing runs;
    atomic_int_fast64_t now_flops,
        now_bytes;     /* bytes: at most so many of memory that it may touch; 0: not known */
    atomic_int broken; /* a status: it could not take part in a command, and others wait for it: the session has failed */
    atomic_uint looks; /* of a host's leader: grows while it listens to rank 0; 0: it does not */
    int32_t pid;
    atomic_int compute_thread, communication_thread; /* as the kernel numbers them; 0: none */
    /* of a worker of another host, from its reports: processor time of its compute thread, and the time that it was
     * ready and had no processor */
    atomic_int_fast64_t cpu_ns, waited_ns;
    char host[64];
    char last_words[96]; /* why this process ends by itself; nothing: it does not */
    atomic_int slab_fd[DMI_MAX_SLABS];                /* fd + 1 in process pid; 0: none */
    atomic_int_fast64_t slab_bytes[DMI_MAX_SLABS];
    atomic_uint slab_serial[DMI_MAX_SLABS];           /* grows with every new slab of that number */
    atomic_uint slab_users[DMI_MAX_SLABS];            /* processes that have this slab of device memory mapped */
    unsigned char slab_handle[DMI_MAX_SLABS][64];      /* of slabs in device memory, in place of slab_fd */
    unsigned char counter_handle[64];                  /* of a GPU's counters (exec/gpu/gpu.h) */
    atomic_int gpu;                                    /* number of its GPU on this host + 1; 0: none */
    dmi_usage usage[DMI_USAGE_OPS];                    /* by op, with the option profile */
    dmi_usage_rates rates;                             /* with the option profile */
    alignas(DMI_LINE) dmi_meeting meeting;
    /* [DMI_CHANNELS][endpoints], one for each sender; the numbers of dmi_hub_sent lie behind them */
    alignas(DMI_LINE) dmi_mailbox mailbox[];
} dmi_port;

/* A session that has failed: its workers leave at once. DEAD: and no call that all of them make can end. */
enum dmi_ring_closed { DMI_RING_OPEN, DMI_RING_BROKEN, DMI_RING_DEAD };

typedef struct dmi_ring {
    alignas(DMI_LINE) atomic_uint_fast64_t head; /* bytes published */
    uint64_t size;                               /* power of two */
    atomic_uint_fast64_t cancelled;              /* commands up to this number stop at their next step */
    atomic_int closed;                           /* enum dmi_ring_closed */
    alignas(DMI_LINE) char data[];
} dmi_ring;

typedef struct dmi_hub_header {
    uint64_t magic;
    int32_t endpoints;
    int32_t pad;
    uint64_t ring_offset, port_offset, port_bytes, total_bytes;
} dmi_hub_header;

/* One process's mapping of a hub. */
typedef struct dmi_hub {
    dmi_hub_header *header;
    dmi_ring *ring;
    char *ports;
    int endpoints;
    int fd;           /* memfd, or -1 in process */
    bool oversubscribed; /* more endpoints on this host than cores: yield before spinning */
    bool fits;           /* every worker of this host computes on a core of its own */
    bool tight;          /* a core for every kernel, and not one for every thread beside */
    int64_t spin_ns;
} dmi_hub;

static inline dmi_port *dmi_hub_port(const dmi_hub *hub, int endpoint)
{
    return (dmi_port *)(void *)(hub->ports + (size_t)endpoint * hub->header->port_bytes);
}

/* [endpoints], of an endpoint: bytes that it has sent to each other one; written by it, relaxed. */
static inline atomic_int_fast64_t *dmi_hub_sent(const dmi_hub *hub, int endpoint)
{
    return (atomic_int_fast64_t *)(void *)&dmi_hub_port(hub, endpoint)->mailbox[DMI_CHANNELS * hub->endpoints];
}

/* shared: back it by a memfd that other processes can map. */
DM_CHECKED dm_status dmi_hub_create(int endpoints, int64_t ring_bytes, bool shared, dmi_hub *out);
/* Maps the hub that process pid holds as descriptor fd. */
DM_CHECKED dm_status dmi_hub_attach(int pid, int fd, dmi_hub *out);
void dmi_hub_close(dmi_hub *hub);

/* Full barrier between publishing and looking at `sleeping` (and the reverse); also understood by TSan. */
void dmi_bell_ring(dmi_bell *bell);
/* The two halves of it: does anybody wait? */
bool dmi_bell_awaited(dmi_bell *bell);
void dmi_bell_wake(dmi_bell *bell);
/* Waiting: token = dmi_bell_announce(); check again; then dmi_bell_sleep (at most timeout_ns) or
 * dmi_bell_cancel. */
unsigned dmi_bell_announce(dmi_bell *bell);
void dmi_bell_sleep(dmi_bell *bell, unsigned token, int64_t timeout_ns);
void dmi_bell_cancel(dmi_bell *bell);

/* Spin, yield, then sleep on a bell. Reset after progress. */
typedef struct dmi_backoff {
    int64_t since_ns; /* when waiting began; 0: not waiting */
    uint64_t running; /* tight: a step that a worker is in; 0: none */
    int64_t running_since_ns; /* when it was seen first */
    unsigned round;
    int longs; /* 4 for each long wait, -1 for each other one */
} dmi_backoff;
enum { DMI_LONG_WAIT_NS = 150000, DMI_MOSTLY_LONG = 8 };
enum { DMI_WAIT_AGAIN, DMI_WAIT_SLEEP };
/* One step of waiting; DMI_WAIT_SLEEP: time to announce, check again and sleep. */
int dmi_backoff_step(dmi_backoff *backoff, const dmi_hub *hub);
/* A wait has ended. */
static inline void dmi_backoff_reset(dmi_backoff *backoff)
{
    if (backoff->since_ns != 0) {
        bool was_long = dmi_now_ns() - backoff->since_ns > DMI_LONG_WAIT_NS;
        backoff->longs = DMI_MAX(0, DMI_MIN(backoff->longs + (was_long ? 4 : -1), 2 * DMI_MOSTLY_LONG));
    }
    backoff->since_ns = 0;
    backoff->round = 0;
}

/* --- ring.c: frames from the master to the workers of a host ------------------------------------------------ */
#define DMI_FRAME_ALIGN 16
typedef struct dmi_frame {
    uint32_t bytes;   /* of the whole frame, a multiple of DMI_FRAME_ALIGN */
    uint8_t kind;     /* enum dmi_frame_kind */
    uint8_t op;       /* enum dmi_op for DMI_FRAME_OP */
    uint16_t called;  /* number of the public call that sent it, for messages (dmi_api_name); 0: not known */
    uint64_t command; /* number of the command, from 1 */
} dmi_frame;

/* Producer's side. */
typedef struct dmi_ring_writer {
    const dmi_hub *hub;
    const int *consumer; /* endpoints that read this command ring */
    int nconsumer;
    uint64_t head, room_until; /* head may grow to room_until without asking */
} dmi_ring_writer;
/* Space for a frame of `bytes` (rounded up), contiguous; NULL if the command ring is full. At most size/4. */
void *dmi_ring_reserve(dmi_ring_writer *w, uint32_t bytes);
void dmi_ring_publish(dmi_ring_writer *w, uint32_t bytes);
/* Wakes sleeping consumers. */
void dmi_ring_wake(dmi_ring_writer *w);

/* Consumer's side: the next frame or NULL; then consume it. */
const dmi_frame *dmi_ring_peek(const dmi_hub *hub, uint64_t *cursor);
static inline void dmi_ring_consume(const dmi_hub *hub, int endpoint, uint64_t *cursor, const dmi_frame *frame)
{
    *cursor += frame->bytes;
    atomic_store_explicit(&dmi_hub_port(hub, endpoint)->consumed, *cursor, memory_order_release);
}

#endif
