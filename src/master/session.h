/* The master's side of a session; what ops need of it is in ops/session.h. */
#ifndef DMI_SESSION_H
#define DMI_SESSION_H

#include "base/config.h"
#include "comm/frames.h"
#include "exec/engine.h"
#include "ops/session.h"

#include <dmath/dmath.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct dmi_interned { /* a layout the workers know */
    dmi_layout *layout;
    uint32_t id;
    struct dmi_interned *chain;
} dmi_interned;
enum { DMI_LAYOUT_BUCKETS = 256 };

/* WAITING: a wait timed out and may be resumed. LOST: a command was not sent, because the command ring stayed
 * full. BROKEN: a worker could not take part in a command, or its process has died. */
enum dmi_stuck { DMI_NOT_STUCK, DMI_STUCK_WAITING, DMI_STUCK_LOST, DMI_STUCK_BROKEN };

enum { DMI_OPEN_GROUPS = 16 };
enum { DMI_RECENT = 4096 }; /* commands whose frames are looked for, for messages */

/* What the watchdog saw of a worker's threads. */
typedef struct dmi_watched {
    int64_t cpu_ns, waited_ns, moved_ns;    /* of its compute thread; when that ran last */
    int64_t begun_cpu_ns, begun_waited_ns;  /* when the session moved last */
    int64_t other_cpu_ns, other_waited_ns;  /* of its communication thread */
} dmi_watched;

/* A command that has failed. */
typedef struct dmi_failure {
    uint64_t command, members; /* members: bit w % 64: worker w takes part in it */
    dm_status status;
    bool reported; /* by a call that waits */
    bool cleared;  /* of the last: cached replicas have been dropped since */
    char text[DMI_ERROR_TEXT];
} dmi_failure;

/* A wait of the master. */
typedef struct dmi_watch {
    int64_t moved_ns;      /* when something moved last, later by the time in which nothing could */
    int64_t looked_ns;     /* last look at this */
    int64_t sampled_ns;    /* last look at the workers' threads; 0: none since something moved */
    int64_t late_ns;       /* since then: the master was late */
    uint64_t last_sum;     /* of what moves */
    bool warned;
} dmi_watch;

/* How the workers of a session live: threads of this process, or ranks of an MPI job. */
typedef struct dmi_launch {
    const char *name;
    bool (*progress)(dmi_session *s);  /* polls messages; true if something moved; NULL: there are none */
    void (*published)(dmi_session *s); /* a frame was put into the command ring; NULL: nobody else needs it */
    void (*stop)(dmi_session *s);      /* after the STOP frame: until all workers have left */
    void (*quiesce)(dmi_session *s);   /* the process ends before the session: no more kernels; may be NULL */
    /* Ends workers of which some wait for ever, and frees them; false: they cannot be ended. */
    bool (*abandon)(dmi_session *s);
    const char *left; /* what becomes of workers that are given up */
} dmi_launch;

struct dmi_session {
    dm_session *public_handle;
    uint32_t number; /* in handles */
    int pid;         /* of the process that it belongs to */
    atomic_bool waiting; /* its thread, inside a call */
    char *here;      /* a page that is empty in a child of fork; NULL: the kernel cannot do that */
    dmi_config config;
    dmi_profile profile;
    int workers;
    dmi_hub hub;
    dmi_ring_writer ring;
    dmi_frame *ring_frame; /* being filled in */
    uint64_t command; /* last one sent */
    uint64_t synced;  /* the last SYNC frame */
    uint64_t marked;  /* the last command that an event covers */
    uint64_t late_transfer; /* the last transfer to or from the caller that outlived its call */
    uint64_t *taken;  /* [workers + 1] reports of failures taken from each port */
    dmi_failure *failure; /* [failures], as they were reported */
    int failures, failure_room;
    struct dmi_checkpoint_job *checkpoint; /* the one being written; NULL: none */
    struct dmi_kept *kept;                 /* what dm_keep has named */
    uint64_t checkpoints;                  /* begun so far */
    int poisons; /* results of failed commands that the workers are to be told of */
    dmi_poison_frame poison[2 * DMI_ERROR_RECORDS];
    dmi_engine engine;
    dmi_pool *staging;
    const dmi_launch *launch;
    void *launch_state;
    bool remote; /* some workers are on other hosts: they report on SYNC frames only */
    dmi_handle *handle;
    uint32_t handles, handle_room, free_handle; /* slot 0 is never used */
    uint32_t storages;
    int64_t alive;
    uint32_t *scope; /* [scopes] first handle of each open scope, 0: none */
    uint32_t scopes, scope_room;
    dmi_interned *layout[DMI_LAYOUT_BUCKETS];
    uint32_t layouts;
    int64_t *live_bytes; /* [workers] arrays, rounded: admission */
    dmi_pool_config pool_config;
    struct dmi_journal *journal;     /* NULL: there is none */
    struct dmi_profiling *profiling; /* the same, of option profile */
    struct dm_feed *feeds;           /* a list; they stay the caller's */
    struct dmi_recording *recording; /* NULL: calls run */
    struct dmi_numbered *program;    /* [programs] by number */
    uint32_t programs, program_room, free_program; /* free_program: number + 1; 0: none */
    uint32_t recorded;                             /* programs so far */
    uint64_t seen[32]; /* by dtype, a bit of a word in ops.h: an array in which all workers see a value; 0: none yet */
    uint64_t random_seed, random_next; /* the generator: dm_random_next */
    struct dmi_group **group;          /* [group_places] NULL: a free place */
    uint32_t group_places, groups;     /* groups: made so far */
    struct dmi_group *open_group[DMI_OPEN_GROUPS]; /* [open_groups] the innermost last */
    int open_groups;
    const int *awaited; /* [awaiting] the workers that a wait is for; NULL: all */
    int awaiting;
    bool explaining;
    char *explain_text;
    size_t explain_bytes;
    int explain_calls;
    bool limited; /* dm_session_limit: */
    double limit_s;
    uint64_t limited_call; /* the call that limit_ns is for */
    int64_t limit_ns;      /* its end */
    dmi_rest *rests;       /* what calls have left whose time was over */
    int stuck;           /* enum dmi_stuck: the watchdog's time was over */
    int broken;          /* the endpoint, where it is DMI_STUCK_BROKEN */
    atomic_uint_fast64_t cancel; /* the last command that dm_cancel has cancelled; */
    uint64_t cancel_sent;        /* of which other hosts know */
    atomic_int died;     /* worker + 1 whose process has died, or that of a launcher: set by another thread */
    char death[1024];    /* and how, set before */
    bool death_told;     /* some call has returned it */
    uint64_t *recent;    /* [DMI_RECENT] where the frame of command number % DMI_RECENT was put in the command ring */
    dmi_watched *watched; /* [workers] */
    void **old_handles;  /* tables that were replaced: another thread may describe a handle */
    int old_handle_tables;
    void *scrap;         /* where frames go that no worker will get */
    dmi_plan_cache *plans; /* worker 0's plans, for the replica cache; NULL: there is none */
    struct dmi_replicas *replicas;
    /* the failed command whose result the last transfer to or from the caller met; 0: none */
    uint64_t transfer_culprit;
    struct dmi_placement_report *placement; /* [workers] with option placement: where they are; else NULL */
};

/* A number of a program, which its frames bear. It is used again when the program has been destroyed: workers
 * take frames in order, and a handle has the generation, too. */
typedef struct dmi_numbered {
    struct dmi_recorded *recorded;  /* NULL: a part of another program has it, or nothing */
    uint32_t generation, next_free; /* next_free: number + 1; 0: none */
} dmi_numbered;

/* The program's error handler; call NULL: nothing. */
typedef struct dmi_error_handler {
    dm_error_function call;
    void *context;
} dmi_error_handler;

/* The public handle: never freed, so that use after finalize is an error and not undefined behaviour. Threads
 * other than the owner look at no more than this, or hold the session. */
struct dm_session {
    atomic_uintptr_t live;  /* dmi_session, 0 after finalize */
    atomic_uintptr_t owner; /* the thread that may call */
    atomic_int holds;       /* calls of any thread that use the session now: it is freed after them */
    dmi_session *given_up; /* its workers did not end and still use its memory */
    atomic_bool interrupts; /* SIGINT cancels its commands */
    bool quiesced;         /* the program is ending; its workers do nothing more */
    int pid;               /* of the process that made it */
    dmi_error_handler on_error;
    struct dm_session *next;
};

/* --- owner.c */
/* Calls come from one thread: the one that started the session, or took it over (dm_session_take). */
static inline uintptr_t dmi_thread_self(void) /* without a call, as every public call asks */
{
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 11
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
}
static inline bool dmi_owner_is(const dm_session *session)
{
    return atomic_load_explicit(&((dm_session *)(uintptr_t)session)->owner, memory_order_relaxed) ==
           dmi_thread_self();
}
DM_CHECKED dm_status dmi_owner_refuse(void);
void dmi_owner_take(dm_session *session);
/* In a signal handler: cancels the commands of all sessions that ask for it. */
void dmi_cancel_interrupted(void);
/* Workers of other hosts learn by a frame, which the session's thread sends while it waits. */
void dmi_cancel_send(dmi_session *s);
/* --- stuck.c: what workers are doing, in words */
/* "command 812 gemm (a f32 4096x4096 on 4, ...), step 4 of 8". For any thread, at any time: it may be wrong then, not
 * harmful. */
void dmi_command_describe(const dmi_session *s, uint64_t command, uint64_t step, char *text, size_t room);
/* "worker 3 (b, process 77, CPU) has died in command ...". how: "has died". */
void dmi_death_describe(const dmi_session *s, int worker, const char *how, char *text, size_t room);
/* Who holds the others up, and how many wait for it. */
void dmi_stuck_describe(const dmi_session *s, double seconds, char *text, size_t room);
/* --- report.c */
/* Writes a file with the last commands of each worker (option report_dir), and its name behind the text, which
 * says why. Where there can be no file the text stays as it is; where it cannot be written, that is behind the
 * text. For any thread. */
void dmi_report(const dmi_session *s, char *text, size_t room);
/* --- watchdog.c */
/* Called by a wait now and then; true when a worker has made no progress for longer than it may. */
bool dmi_watchdog_bites(dmi_session *s, dmi_watch *w);

/* --- session.c */
/* DM_ERR_STATE inside a function given to dm_register. */
DM_CHECKED dm_status dmi_session_outside(void);
/* By any thread: the session is there until dmi_release. Not for long, dm_finalize waits for it. */
DM_CHECKED dm_status dmi_hold(dm_session *session, dmi_session **out);
void dmi_release(dm_session *session);
/* The same without a message, for signal handlers: false: the session has ended, or is another process's. */
bool dmi_hold_now(dm_session *session, dmi_session **out);
/* The first of all sessions ever made; the next ones by `next`. */
dm_session *dmi_session_first(void);
/* By its owner, who alone can end it. Also where a worker is stuck. */
DM_CHECKED dm_status dmi_enter_stuck(const dm_session *session, dmi_session **out);
/* Is this process a child by fork, and the session its parent's? */
bool dmi_session_forked(const dmi_session *s);
/* DM_ERR_STATE once exit() has ended the sessions with GPUs of this process. */
DM_CHECKED dm_status dmi_session_may_begin(void);
/* A session around a hub whose workers are there (or are about to serve); on failure everything is freed. */
DM_CHECKED dm_status dmi_session_open(const dmi_config *config, const dmi_profile *profile, const dmi_hub *hub,
                                      const dmi_slab_ops *slabs, const int *consumers, int nconsumers,
                                      dmi_session **out);
/* Public handle for an opened session; where there is no memory for one, the session ends. */
DM_CHECKED dm_status dmi_session_publish(dmi_session *s, const dmi_error_handler *on_error, dm_session **out);
void dmi_session_close(dmi_session *s);
/* --- wait.c */
/* Puts a frame into the command ring (blocking while it is full): reserve, fill in behind the head, send. */
void *dmi_frame_begin(dmi_session *s, uint32_t bytes, int kind, int op);
void dmi_frame_send(dmi_session *s);
/* Are all commands done? (one poll) */
bool dmi_all_done(dmi_session *s);
/* The error of a session in which a worker could not take part in a command, or has died. */
DM_CHECKED dm_status dmi_broken(dmi_session *s);
/* Waits until all workers have done command `command`; then takes and returns their first error. */
DM_CHECKED dm_status dmi_wait(dmi_session *s, uint64_t command);
/* The same until a time of dmi_now_ns; 0: without a limit. DM_ERR_PENDING: it was over. */
DM_CHECKED dm_status dmi_wait_until(dmi_session *s, uint64_t command, int64_t until_ns);
/* Under dm_session_limit: room in the command ring for a frame of any size, before anything of a call is sent.
 */
DM_CHECKED dm_status dmi_wait_room(dmi_session *s);
/* Without a look at errors. The command is that of a mark, where there are other hosts. */
DM_CHECKED dm_status dmi_wait_done(dmi_session *s, uint64_t command, int64_t until_ns);
/* The number of the last command, which other hosts will report when it is done. */
uint64_t dmi_wait_mark(dmi_session *s);
bool dmi_done(dmi_session *s, uint64_t command); /* one poll */
/* Until another thread of this process has set the flag and rung the master's bell; without the watchdog. */
DM_CHECKED dm_status dmi_wait_flag(dmi_session *s, atomic_int *flag, int64_t until_ns);
/* --- rests.c */
/* Ends what waited for commands up to this one, which are done; `status`: DM_OK, or why none of it can be. */
void dmi_rests_end(dmi_session *s, uint64_t command, dm_status status);
/* --- failures.c */
/* Memory for the first of them, so that none is lost where there is no more. */
DM_CHECKED dm_status dmi_failures_start(dmi_session *s);
/* Takes the reports that are there; false: there are more. */
bool dmi_failures_take(dmi_session *s);
/* The same while commands are not done: what they were to write is left to them. */
bool dmi_failures_take_early(dmi_session *s);
/* Workers that did their part of a failed command have results that look right: tells them. */
void dmi_failures_spread(dmi_session *s);
void dmi_failure_add(dmi_session *s, uint64_t command, uint64_t members, dm_status status, const char *text);
/* The earliest that was not reported yet, of these commands, in which one of these workers takes part (bit w %
 * 64; UINT64_MAX: whoever does); the text counts the others. */
DM_CHECKED dm_status dmi_failures_report(dmi_session *s, uint64_t first, uint64_t last, uint64_t members);
/* The failures of these commands, by number from 0 on; NULL: there are no more. */
const dmi_failure *dmi_failure_of(const dmi_session *s, uint64_t first, uint64_t last, int index);
/* --- handles.c */
/* Bytes that an array takes at a worker. */
int64_t dmi_array_bytes(const dmi_session *s, const dmi_layout *layout, dm_dtype dtype, int worker);
DM_CHECKED dm_status dmi_handle_new(dmi_session *s, dm_array *out, dmi_handle **handle);
/* The frames that make an array or a view known to the workers. */
void dmi_array_send(dmi_session *s, const dmi_handle *h, uint64_t id);
/* What became workspace of a program is an array again: DM_ERR_LIMIT, if it does not fit. */
DM_CHECKED dm_status dmi_storage_count(dmi_session *s, dmi_storage *storage);
/* Frees a handle that dmi_array_drop has hidden. */
void dmi_hidden_drop(dmi_session *s, uint32_t slot);
uint64_t dmi_handle_id(const dmi_session *s, uint32_t slot);
/* A handle on a range of base's memory, described by desc. */
DM_CHECKED dm_status dmi_view_make(dmi_session *s, dm_array base, const dmi_desc *desc, dm_array *out);
/* --- scopes.c: arrays and views that go together */
/* A new handle joins the innermost open scope. */
void dmi_scope_join(dmi_session *s, uint32_t slot);
void dmi_scope_leave(dmi_session *s, uint32_t slot);
/* --- replicas.c: the replica cache: operands that a command has moved to all workers, until they are written
 * to */
/* Where the profile says that there is memory for them, and they are not started. */
DM_CHECKED dm_status dmi_replicas_start(dmi_session *s);
void dmi_replicas_stop(dmi_session *s);
/* Before a call is sent: replaces the moving operand by its cached replica, or adds an operand for a new
 * replica. pretend: changes the call only; makes, drops and records nothing; a new replica has no id. */
DM_CHECKED dm_status dmi_replicas_use(dmi_session *s, dmi_call *call, bool pretend);
int64_t dmi_replicas_bytes(const dmi_session *s, int worker); /* what all of them take at a worker */
/* The storage is about to change or to be freed. */
void dmi_replicas_forget(dmi_session *s, dmi_storage *storage);
/* Frees all of them if arrays fill the GPUs. */
void dmi_replicas_yield(dmi_session *s);
/* Frees all of them: they may hold the result of a failed command, or memory is needed. */
void dmi_replicas_clear(dmi_session *s);
/* --- groups.c */
/* How many workers layouts count: of the innermost group that has begun, or all. */
int dmi_group_size(const dmi_session *s);
/* Layouts count the workers of the session, whatever group has begun, until dmi_groups_back gets what
 * dmi_groups_leave returned. */
int dmi_groups_leave(dmi_session *s);
void dmi_groups_back(dmi_session *s, int open);
/* Puts a spec made from `layout` (NULL: the default) on the workers of that group. */
DM_CHECKED dm_status dmi_group_place(dmi_session *s, const dm_layout *layout, dmi_layout_spec *spec);
/* The number of that group, 0: none has begun, and its place among those there are, for frames. */
void dmi_group_mark(const dmi_session *s, uint32_t *group, uint32_t *place);
/* Who runs a user function. */
DM_CHECKED dm_status dmi_group_apply(dmi_session *s, dmi_call *call);
/* Waits for a transfer from or to an array: for the workers of that group alone, if the array lies on these. */
DM_CHECKED dm_status dmi_group_transferred(dmi_session *s, const dmi_layout *layout, uint64_t command,
                                           int64_t until_ns);
void dmi_groups_free(dmi_session *s);
/* --- profile.c */
DM_CHECKED dm_status dmi_profiling_start(dmi_session *s);
void dmi_profiling_stop(dmi_session *s);
/* The table, to where the option says; all commands are done. */
void dmi_profile_write(dmi_session *s);
/* With a profile: a call of that op took the program's thread the time since begin_ns, of which it waited since the clock of
 * waits (dmi_profile_waited) was at waited_ns. */
void dmi_profile_called(dmi_session *s, int op, int64_t begin_ns, int64_t waited_ns);
int64_t dmi_profile_waited(const dmi_session *s);
/* The program's thread has waited since. */
void dmi_profile_waited_since(dmi_session *s, int64_t begin_ns);
/* --- explain.c */
dm_counters dmi_counters_from(const dmi_counts *counts, int64_t commands);
/* --- recording.c: calls that become a program */
/* Adds a call that has been checked. */
DM_CHECKED dm_status dmi_record(dmi_session *s, const dmi_call *call);
/* The part that is being recorded: how many begins and ends of loops there are before it. */
int dmi_record_part(const dmi_session *s);
/* Keeps a handle that the program has destroyed until the recording ends; false: no memory. */
bool dmi_record_hidden(dmi_session *s, uint32_t slot);
/* May a scope end? Not one that was open before the recording. */
bool dmi_record_outside(const dmi_session *s);
void dmi_recording_free(struct dmi_recording *r);
/* --- feeds.c */
/* Nobody waits any more for a buffer of a feed of this session. */
void dmi_feeds_stop(dmi_session *s);
/* Is it a feed's, and none of the program's? */
bool dmi_feeds_own(const dmi_session *s, dm_array a);
/* --- programs.c */
void dmi_programs_free(dmi_session *s);
/* Poisons at all workers what a run has written, beyond the few arrays that its error names. */
void dmi_program_poison(dmi_session *s, uint64_t culprit);
/* --- submit.c */
/* Bit w % 64: worker w may take part in the call. */
uint64_t dmi_call_members(const dmi_call *call);
/* The frame of a call: of kind DMI_FRAME_OP, or as part of a program. */
void dmi_call_send(dmi_session *s, const dmi_call *call, int kind, void *user);
/* Bytes that worker w has left under the memory limit; cleared: without cached replicas. */
int64_t dmi_left_at(const dmi_session *s, int w, bool cleared);
/* Session and handles, the table's rules and the op's check. */
DM_CHECKED dm_status dmi_call_check(dm_session *session, dmi_call *call, const dm_array *arrays);
void dmi_transfer_retired(void *context, dmi_instance *inst);
/* --- stepped.c */
/* Is an operand a view with steps, and does the op not take such? */
bool dmi_stepped(dm_session *session, const dmi_call *call, const dm_array *arrays);
/* The call with copies in place of such operands; what is written is copied back. user: dmi_call_wait's; NULL: it does not
 * wait. */
DM_CHECKED dm_status dmi_stepped_submit(dm_session *session, dmi_call *call, const dm_array *arrays, void *const *user);
/* --- signals.c: the options catch_signals and interrupt */
DM_CHECKED dm_status dmi_signals_begin(const dmi_config *config, dm_session *session);
void dmi_signals_end(const dmi_config *config, dm_session *session);
void dmi_signals_ignore(const dmi_config *config); /* in a rank that is a worker: rank 0 has them */
/* --- explain.c */
void dmi_explain_printf(dmi_session *s, const char *format, ...) DMI_PRINTF(2, 3);
DM_CHECKED dm_status dmi_explain_call(dmi_session *s, const dmi_call *call);
/* Option explain: the plan of a call that is about to run, to stderr. */
void dmi_explain_log(dmi_session *s, dm_status explained);
/* --- config.c */
/* Environment, options and fields of the public struct (NULL: none); sets the log up. On failure *out has what the
 * meeting of ranks needs, the rest is zero. */
DM_CHECKED dm_status dmi_config_from(const dm_config *config, dmi_config *out);
/* The configuration's handler; none if it is NULL or of no valid size. */
dmi_error_handler dmi_error_handler_of(const dm_config *config);

#endif
