/* A worker: reads commands, keeps its shards of arrays, runs its plans. */
#ifndef DMI_WORKER_H
#define DMI_WORKER_H

#include "base/config.h"
#include "comm/frames.h"
#include "exec/engine.h"
#include "plan/program.h"

typedef struct dmi_entry { /* what a handle means here */
    dmi_desc desc;
    dmi_memory *memory;
    bool whole; /* covers all of its memory */
} dmi_entry;

/* A part of a program with loops. */
typedef struct dmi_part {
    uint32_t program; /* which it is */
    int32_t *operand; /* its operands among those of the whole */
    int64_t number;   /* its first number among those of the whole */
    int64_t passes;   /* in a run of the whole, if that is known */
    bool mine;        /* this worker takes part */
} dmi_part;

/* The order in which the parts of a program run. */
typedef struct dmi_course {
    dmi_course_step *step;
    int steps;
    dmi_part *part; /* [parts]; NULL: the program has no loops, and is its only part itself */
    int parts, received;
} dmi_course;

/* Runs of a program, and where in its course they are. Loop 0 is that of the frame, the others are the
 * course's. */
typedef struct dmi_running {
    void *frame; /* a PROGRAM_RUN frame */
    const dmi_course *course;
    bool on;       /* there is more to run */
    bool begins;   /* the next part is the first of a run */
    uint32_t group, group_place; /* of the frame, or of the last part */
    bool looks;    /* next is a look whether the innermost loop goes on, */
    bool asks;     /* or the question whether the run was cancelled */
    bool asked;    /* the last decision was about that question */
    uint64_t spoiled; /* it was cut short: the command that failed first (dmi_culprit), until what the run
                       * writes is poisoned; 0: it was not */
    bool deciding; /* they look or ask now */
    uint64_t failed; /* the last run that has failed here */
    int at;        /* next step of the course */
    int depth;     /* the innermost loop */
    struct {
        int begin;           /* its step; -1: loop 0 */
        int64_t left, since, asked; /* passes to come; since the last look; since the last question */
    } loop[1 + DMI_COURSE_DEPTH];
} dmi_running;

typedef struct dmi_worker {
    int me;
    const dmi_config *config;
    dmi_profile profile;
    dmi_hub hub;               /* own copy of the mapping's pointers */
    dmi_engine engine;
    dmi_pool *pool;
    dmi_plan_maker *plan; /* dmi_plan_make, but in tests */
    dmi_plan_cache *plans;
    dmi_layout **layout;       /* [layout_room] by id */
    uint32_t layout_room;
    dmi_entry **entry;         /* [entry_room] by slot */
    uint32_t entry_room;
    char *spec;                /* a layout being received */
    int64_t spec_bytes, spec_total;
    uint32_t layouts;                    /* received: their ids count up */
    struct dmi_worker_program **program; /* [program_room] by number */
    uint32_t program_room;
    struct dmi_worker_program *receiving; /* NULL: none */
    dmi_running run;
    dmi_group_counts **of_group; /* [group_room] by place; NULL: no command of its group has come yet */
    uint32_t group_room;
    dmi_group_counts *former;  /* of groups whose places others have */
    uint64_t cursor;           /* in the command ring */
    uint64_t dispatched;       /* last command taken from the command ring */
    int in_flight;             /* commands handed to the executor and not retired */
    bool stopping;
    bool lost;                 /* a frame was damaged: where the next one begins, nobody knows */
    bool broken;               /* it has missed a command and takes no more */
    int64_t prepared;          /* for planted faults: commands it has tried to prepare */
    uint64_t sync_command;     /* last SYNC seen */
    bool polls;                /* payloads arrive by messages: these ring no bell and must be polled */
    bool listens;              /* so do commands: it passes them on to its host */
    /* Control messages, polled between frames; may be NULL. service: true if something moved; drained: nothing
     * is left to send. */
    bool (*service)(struct dmi_worker *w);
    bool (*drained)(struct dmi_worker *w);
    void *service_context;
} dmi_worker;

/* slabs: where memory comes from. device NULL: the CPU; else its GPU number device_number, and host_memory is
 * where payloads pass through host memory. */
DM_CHECKED dm_status dmi_worker_start(dmi_worker *w, int me, const dmi_config *config, const dmi_profile *profile,
                                      const dmi_hub *hub, const dmi_slab_ops *slabs, const dmi_device *device,
                                      int device_number, const dmi_slab_ops *host_memory);
/* Serves until a STOP frame, or until the command ring is closed. */
void dmi_worker_serve(dmi_worker *w);
/* Frees all of it, with commands in flight. No other worker may push to it after that. */
void dmi_worker_finish(dmi_worker *w);

/* --- insist.c */
/* What a frame needs of host memory. On DM_ERR_NOMEM nothing has changed, so it can be tried again. */
typedef dm_status dmi_attempt(dmi_worker *w, const void *frame, void *out);
/* Tries; where memory is short, frees some (waits for commands in flight, drops cached plans), waits a while for other processes,
 * and tries again. */
DM_CHECKED dm_status dmi_insist(dmi_worker *w, dmi_attempt *attempt, const void *frame, void *out);
/* The worker has missed a frame: all commands after it are lost to it, and the session learns it. */
void dmi_worker_break(dmi_worker *w, dm_status status);
/* --- check.c */
/* What is wrong with a frame of the command ring, by itself or because of what came before; NULL: nothing. */
const char *dmi_worker_frame_wrong(const dmi_worker *w, const dmi_frame *frame);
/* Takes no more frames; the session learns it. */
void dmi_worker_refuse(dmi_worker *w, const dmi_frame *frame, const char *wrong);
/* Takes frames of the command ring; true: there were some. */
bool dmi_worker_take_frames(dmi_worker *w);
/* --- store.c: handles, layouts, memory */
void dmi_store_layout(dmi_worker *w, const void *frame);
void dmi_store_create(dmi_worker *w, const void *frame);
void dmi_store_view(dmi_worker *w, const void *frame);
void dmi_store_destroy(dmi_worker *w, const void *frame);
void dmi_store_poison(dmi_worker *w, const void *frame);
dmi_entry *dmi_store_find(const dmi_worker *w, uint64_t id);
const dmi_layout *dmi_store_layout_of(const dmi_worker *w, uint32_t id); /* NULL: there is none */
void dmi_store_clear(dmi_worker *w);
void dmi_memory_unref(dmi_memory *memory);
/* --- dispatch.c */
void dmi_dispatch(dmi_worker *w, const dmi_frame *frame);
/* An op frame's call but for its operands. Its tail is in the frame. */
void dmi_call_from(const dmi_op_frame *f, dmi_call *call);
/* An operand of a command. */
void dmi_instance_operand(dmi_instance *inst, int i, const dmi_entry *entry, int mode, uint64_t command);
/* Plans the command of an op frame, and hands it to the executor. */
void dmi_dispatch_op(dmi_worker *w, const dmi_op_frame *f);
/* Hands a command to the executor. */
void dmi_worker_submit(dmi_worker *w, dmi_instance *inst, const dmi_frame *head);
/* Does it take part in a command with these members? */
static inline bool dmi_worker_takes_part(const dmi_worker *w, uint64_t members)
{
    return members >> w->me % 64 & 1;
}
/* Is it this one of a command's workers that counts its calls for the profile? The first is. */
static inline bool dmi_worker_counts(const dmi_worker *w, uint64_t members)
{
    return w->me < 64 && !(members & ((UINT64_C(1) << w->me) - 1));
}
void dmi_publish_memory(dmi_worker *w);
/* --- groups.c: what the commands of each group do */
/* Where the commands of a group count. NULL: it is none (number 0), or has been destroyed. DM_ERR_NOMEM:
 * nothing has changed. */
DM_CHECKED dm_status dmi_group_counts_of(dmi_worker *w, uint32_t group, uint32_t place, dmi_group_counts **out);
void dmi_worker_count_plan(dmi_worker *w, dmi_group_counts *of_group, bool reused);
/* The command begins, or a part of it; it has retired. */
void dmi_group_begun(dmi_instance *inst);
void dmi_group_retired(dmi_instance *inst);
/* Puts the group's counters where the master reads them. */
void dmi_group_tell(dmi_worker *w, const void *frame);
void dmi_group_counts_clear(dmi_worker *w);
/* --- runs.c */
void dmi_run_begin(dmi_worker *w, const dmi_program_run_frame *f);
/* The next part of the run, or a look whether to go on; there is room for a command. */
void dmi_run_go_on(dmi_worker *w);
/* That look has ended. */
void dmi_run_decided(dmi_worker *w, const dmi_instance *inst);
/* Before the worker goes on: poisons what a run writes of which passes were dropped. Others may have done them,
 * and what does not depend on the failure would look right. */
void dmi_run_spoil(dmi_worker *w);
/* --- programs.c */
/* What this worker knows of a program. plan NULL: it is being received. */
typedef struct dmi_worker_program {
    dmi_program p;
    int arrays, calls; /* received */
    int64_t run;       /* number of the next run */
    int seeds, *seed;  /* [seeds] numbers that advance with it */
    uint32_t group, group_place; /* of its calls, if all have one */
    bool skipped;      /* it takes no part */
    uint64_t members;  /* who takes part (dmi_worker_takes_part) */
    dmi_plan *plan;
    dmi_course course; /* of a program with loops, which has no plan of its own */
} dmi_worker_program;
void dmi_program_receive(dmi_worker *w, const dmi_frame *frame); /* every PROGRAM frame but PROGRAM_RUN */
/* The course of a program's runs. */
const dmi_course *dmi_program_course(const dmi_worker *w, uint32_t program);
/* A command that runs the next part of the program of a PROGRAM_RUN frame. */
DM_CHECKED dm_status dmi_program_instance(dmi_worker *w, const void *frame, void *instance);
/* What comes with the runs of a frame: the number of the first, and numbers given anew. */
void dmi_program_begin_runs(dmi_worker *w, const dmi_program_run_frame *f);
/* Before each run: what it makes for itself holds nothing yet. */
void dmi_program_begin_run(dmi_worker *w, const dmi_program_run_frame *f);
void dmi_programs_clear(dmi_worker *w);

#endif
