/* Programs: recorded calls that are planned as one command. */
#ifndef DMI_PROGRAM_H
#define DMI_PROGRAM_H

#include "plan/plan.h"

/* An array or view that the calls use. */
typedef struct dmi_program_array {
    uint64_t id; /* when it was recorded */
    dmi_desc desc;
    uint32_t memory;        /* which storage, */
    const dmi_layout *base; /* and the layout of the array that it was made for; known to the master alone */
    int32_t mode;    /* DMI_*: what the program needs of its old contents, and does to it */
    bool temporary;  /* lives in the program only: workspace */
} dmi_program_array;

/* In dmi_call.seeds: the caller may give number 0 anew before a run (dm_program_number). */
#define DMI_GIVEN_ANEW (UINT32_C(1) << 31)
_Static_assert(DMI_CALL_NUMBERS < 32, "a bit for each number, and this one");

typedef struct dmi_program {
    int arrays, operands, calls, numbers; /* arrays: the operands first, then the temporaries */
    int recorded;                         /* calls of the whole program before some were joined: for messages */
    dmi_program_array *array;
    dmi_call *call;     /* [calls] the id of an operand is the number of its array; mode 0: it has none */
    dmi_number *number; /* [numbers] of all calls, one after the other */
} dmi_program;

/* A program with loops is cut at their begins and ends. What lies between is a program of its own, a part, and
 * the course says in which order the parts run. */
enum dmi_course_kind { DMI_COURSE_RUN, DMI_COURSE_REPEAT, DMI_COURSE_END };
enum { DMI_COURSE_DEPTH = 16 }; /* loops in loops */
typedef struct dmi_course_step {
    int32_t kind;
    int32_t other; /* RUN: the part; REPEAT, END: the step where the loop ends, begins */
    int64_t times; /* REPEAT: at most */
    int64_t every; /* REPEAT: after so many passes the workers look whether to go on; 0: they never look */
    int64_t value; /* which operand of the program they look at */
    uint64_t seen; /* id of the array in which all see it */
    double below;  /* the loop ends when it is below this */
    int64_t asks; /* REPEAT: after so many passes those who follow the loop ask whether the run was cancelled */
    uint64_t members; /* REPEAT: who they are */
} dmi_course_step;

/* A seed in run number `run`: itself in run 0, and then mixed (the finalizer of splitmix64). */
static inline uint64_t dmi_program_seed(uint64_t seed, int64_t run)
{
    uint64_t x = seed + (uint64_t)run * UINT64_C(0x9e3779b97f4a7c15);
    if (run == 0) {
        return seed;
    }
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* --- turns.c: in which order the calls are planned --- */
/* What a call takes of a worker that it takes most of, about. */
typedef struct dmi_call_time {
    double link, compute; /* seconds: of its transfers, of its kernels */
    int channel;          /* of the transfers, and of the kernels behind them */
    bool computes_first;  /* the transfers wait for kernels; else kernels wait for the transfers */
    bool keeps_order;     /* among the calls that have this: they do more than write their operands */
    bool everywhere;      /* it may touch more of a memory than its operand is */
} dmi_call_time;
enum { DMI_TURNS_MOST = 1000 }; /* calls of a program that gets turns: each is compared with each */
/* Calls with long transfers may be overtaken by later ones that wait for nothing of them. Sets the turns of the
 * calls (dmi_call.turn), or leaves them as they are: where no order of those that were tried is expected to end
 * early enough. *recorded, *best: seconds that a run takes about in the order as recorded and in that of the
 * turns. False: no memory. */
DM_CHECKED bool dmi_program_turns(dmi_program *p, const dmi_call_time *time, double *recorded, double *best);
/* order[i]: which call is planned as number i. */
void dmi_program_order(const dmi_program *p, int *order);

/* The call of the op `program`, for its planner. */
static inline dmi_call dmi_program_call(const dmi_program *p, int op)
{
    return (dmi_call){.op = op, .noperand = p->operands, .tail = p};
}

#endif
