/* A program while it is recorded, and the master's part of one that is complete. */
#ifndef DMI_RECORDING_H
#define DMI_RECORDING_H

#include "master/session.h"
#include "plan/program.h"

/* A number of a program that the caller may give anew. */
typedef struct dmi_named {
    char name[64];
    int call;   /* which fills its array with it */
    int at;     /* place of the number among those of all calls */
    bool given; /* anew, since the last run */
} dmi_named;

/* A loop begins or ends before this call. */
typedef struct dmi_loop_mark {
    int call;
    int64_t times; /* -1: here it ends */
    int64_t every; /* as of dmi_course_step */
    double below;
    uint64_t value; /* id; 0: none */
} dmi_loop_mark;

typedef struct dmi_recording {
    dmi_program p;
    int array_room, call_room, number_room;
    dmi_loop_mark *mark; /* [marks] */
    int marks, mark_room;
    int loop[DMI_COURSE_DEPTH]; /* [loops] marks of the loops that are open */
    int loops;
    uint32_t scopes;  /* open at the begin */
    bool advance;     /* seeds of calls from now on advance */
    uint32_t *hidden; /* [hiddens] slots of handles that were destroyed meanwhile */
    int hiddens, hidden_room;
    dmi_named *named;   /* [nameds] */
    uint64_t *named_id; /* [nameds] their arrays, which end with the recording */
    int nameds, named_room, named_id_room;
    bool lost; /* an array was destroyed that the program may need: there was no memory to keep it */
} dmi_recording;

/* A part of a program with loops. */
typedef struct dmi_piece {
    dmi_program p;    /* calls and numbers are those of the whole */
    uint32_t program; /* its number */
    int marks;        /* begins and ends of loops before it */
    int32_t *operand; /* [p.operands] among those of the whole */
    int64_t number;   /* its first number */
    int64_t passes;   /* in a run of the whole; -1: not known before */
    double pass_us;   /* of a pass that is cancelled, about */
} dmi_piece;

typedef struct dmi_recorded {
    dmi_program p;
    dmi_course_step *step; /* [steps]; NULL: it has no loops */
    dmi_piece *piece;      /* [pieces] */
    int steps, pieces;
    uint32_t ordinal; /* for the timeline: the first program of the session is 1 */
    uint32_t *hidden; /* [hiddens] slots of views that only the program still has */
    int hiddens;
    dmi_named *named;   /* [nameds] */
    int nameds, given;  /* given: how many were given anew since the last run */
    int64_t next;       /* number of the next run, for those who do not count as it was set; -1: it was not */
    int64_t *workspace; /* [workers] rounded bytes; NULL: there is no memory limit */
    int64_t asks;       /* as of dmi_course_step, for runs in a row */
    uint64_t members;   /* who takes part in a run */
} dmi_recorded;

void dmi_program_free(dmi_program *p);
/* The number of an operand's array in the recording; -1: no memory. */
int dmi_record_array(dmi_recording *r, const dmi_operand *o);
/* What calls need of an array and do to it, with one more: what is read after all of it was written does not
 * count. */
static inline int dmi_record_mode(int mode, int more)
{
    return mode | (mode == DMI_WRITE ? more & DMI_WRITE : more);
}
/* Room for `more` elements behind `count`; *table is a pointer to elements of this size. */
bool dmi_record_room(void *table, int *room, int count, int more, size_t size);
/* Alive, or kept for the calls of a program (dmi_array_drop). */
static inline bool dmi_handle_there(const dmi_handle *h)
{
    return h->live || h->hidden;
}
/* --- program_loops.c */
/* Cuts a recording at its loops. Arrays that more than one part needs, or more than one pass, get storage of
 * their own. */
DM_CHECKED dm_status dmi_loops_cut(dmi_session *s, const dmi_recording *from, dmi_recorded *r);
/* With its arrays sorted: makes the parts. */
DM_CHECKED dm_status dmi_loops_make(dmi_recorded *r);
/* How often those who follow a loop ask whether the run was cancelled; run_us: of a run without loops. */
void dmi_loops_pace(dmi_recorded *r, double run_us);
/* Sends the parts and the course. */
void dmi_loops_send(dmi_session *s, const dmi_recorded *r, uint32_t program);
DM_CHECKED dm_status dmi_loops_explain(dmi_session *s, const dmi_recorded *r);
/* Do all seeds follow from the number of a run? Not where they advance in a loop that may end early. */
bool dmi_loops_know_run(const dmi_recorded *r);
void dmi_loops_free(dmi_recorded *r);
/* --- program_turns.c: sets the turns of the calls of a program without loops, or of a part */
DM_CHECKED dm_status dmi_turns_choose(const dmi_session *s, dmi_program *p);
/* --- program_runs.c: arguments of a loop that ends by a value */
DM_CHECKED dm_status dmi_look_check(int64_t every, double below);
DM_CHECKED dm_status dmi_look_check_value(const dmi_desc *value);
/* An array of the session in which every worker sees such a value. */
DM_CHECKED dm_status dmi_look_seen(dmi_session *s, dm_dtype dtype, uint64_t *out);
/* --- programs.c: who takes part in a run of it */
uint64_t dmi_program_members(const dmi_program *p);
void dmi_program_send(dmi_session *s, const dmi_program *p, uint32_t program);
/* --- program_bindings.c: the operands of a run */
typedef struct dmi_run_operands {
    uint64_t *id;
    const dmi_handle **h; /* in whose memory each is */
    bool *other; /* a view of h's memory that stands for another part of what is replaced; before it is made id
                    is h's */
} dmi_run_operands;
/* Checks the bindings, and finds the operands. */
DM_CHECKED dm_status dmi_operands_bind(dmi_session *s, const dmi_program *p, int count,
                                       const dm_program_binding *bindings, dmi_run_operands *o);
/* Makes the views, which last until they are dropped: for this run. May move the table of handles. */
DM_CHECKED dm_status dmi_operands_make(dmi_session *s, const dmi_program *p, dmi_run_operands *o);
void dmi_operands_drop(dmi_session *s, const dmi_run_operands *o, int count);
void dmi_operands_free(dmi_run_operands *o);
/* --- program_runs.c: the program's place in the table of the session; call: for messages */
DM_CHECKED dm_status dmi_program_find(dmi_session *s, dm_program program, const char *call, uint32_t *out);
/* --- program_numbers.c */
/* The recording ends: destroys the arrays of its numbers. */
void dmi_numbers_end(dmi_session *s, dmi_recording *r);
/* Checks a number of the program, and keeps it for the next run. */
DM_CHECKED dm_status dmi_number_set(dmi_recorded *r, const char *name, double value);
/* Writes the numbers that were given anew, of which r->given says how many, and forgets that they were. */
void dmi_numbers_put(dmi_recorded *r, dmi_given_number *to);

#endif
