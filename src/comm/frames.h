/* The frames of the command ring. Fixed widths, no pointers. */
#ifndef DMI_FRAMES_H
#define DMI_FRAMES_H

#include "comm/hub.h"
#include "plan/program.h"

#define DMI_PROTOCOL 6

enum dmi_frame_kind {
    DMI_FRAME_PAD = 1, /* fills the end of the command ring */
    DMI_FRAME_NOOP,
    DMI_FRAME_LAYOUT, /* a fragment of a serialised layout spec; the last fragment makes the layout */
    DMI_FRAME_CREATE,
    DMI_FRAME_VIEW,
    DMI_FRAME_DESTROY,
    DMI_FRAME_OP,
    DMI_FRAME_PROGRAM,        /* a program begins */
    DMI_FRAME_PROGRAM_ARRAY,  /* one of its arrays */
    DMI_FRAME_PROGRAM_CALL,   /* one of its calls, as an op frame; ids are numbers of arrays */
    DMI_FRAME_PROGRAM_END,    /* it is complete */
    DMI_FRAME_PROGRAM_COURSE, /* a program with loops: its parts are programs that have come before */
    DMI_FRAME_PROGRAM_PART,   /* one of them */
    DMI_FRAME_PROGRAM_RUN,
    DMI_FRAME_PROGRAM_DESTROY,
    DMI_FRAME_UNMAP, /* unmap other processes' device memory, before they return it */
    DMI_FRAME_TRIM,
    DMI_FRAME_CANCEL, /* to other hosts: commands up to that number are cancelled */
    DMI_FRAME_POISON, /* a command has failed somewhere: what it writes may be read nowhere */
    DMI_FRAME_GROUP,  /* what the commands of a group have done is asked for */
    DMI_FRAME_SYNC,   /* workers of other hosts report when they have done everything before it */
    DMI_FRAME_STOP
};

/* Handles: session (24 bits), generation (16), slot (24). A slot whose generations are used up is not used
 * again, and session numbers differ over 16 million sessions of a process. So a destroyed handle never becomes
 * valid again. */
enum { DMI_ID_SLOT_BITS = 24, DMI_ID_GENERATION_BITS = 16 };
enum { DMI_ID_MOST_SLOTS = 1 << DMI_ID_SLOT_BITS, DMI_ID_LAST_GENERATION = (1 << DMI_ID_GENERATION_BITS) - 1 };
static inline uint32_t dmi_id_slot(uint64_t id)
{
    return (uint32_t)id & (DMI_ID_MOST_SLOTS - 1);
}
static inline uint32_t dmi_id_session(uint64_t id)
{
    return (uint32_t)(id >> (DMI_ID_SLOT_BITS + DMI_ID_GENERATION_BITS));
}
static inline uint64_t dmi_id_make(uint32_t session, uint32_t generation, uint32_t slot)
{
    return ((uint64_t)session << DMI_ID_GENERATION_BITS | generation) << DMI_ID_SLOT_BITS | slot;
}

enum { DMI_MOST_GROUPS = 1 << 20 }; /* of a session at once */

typedef struct dmi_layout_frame {
    dmi_frame head;
    uint32_t layout_id;
    int32_t last;         /* 1: all of it has been sent with this fragment */
    int64_t total, bytes; /* of the serialised spec; of this fragment, which follows */
} dmi_layout_frame;

typedef struct dmi_create_frame {
    dmi_frame head;
    uint64_t id;
    uint32_t layout_id;
    uint32_t memory; /* its number, by which poison frames and failures name it */
    int16_t dtype, owner; /* owner: enum dmi_owner */
} dmi_create_frame;

typedef struct dmi_view_frame {
    dmi_frame head;
    uint64_t id, base;
    uint32_t layout_id;
    int32_t ndim;
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS], skip[DM_MAX_DIMS];
} dmi_view_frame;

typedef struct dmi_cancel_frame {
    dmi_frame head;
    uint64_t until;
} dmi_cancel_frame;

typedef struct dmi_poison_frame {
    dmi_frame head;
    uint64_t culprit; /* dmi_culprit */
    uint32_t memory[DMI_ERROR_WRITES]; /* by number; 0: none */
} dmi_poison_frame;

typedef struct dmi_group_frame {
    dmi_frame head;
    uint32_t group, group_place; /* as of an op */
} dmi_group_frame;

typedef struct dmi_destroy_frame {
    dmi_frame head;
    uint64_t id;
} dmi_destroy_frame;

typedef struct dmi_operand_ref {
    uint64_t id; /* of a program's call: number of its array, or its element type where mode is 0 */
    uint8_t mode;
    char name[DMI_OPERAND_NAME]; /* for messages; "": the op's table has it */
} dmi_operand_ref;
/* The operands, the numbers and the tail follow. */
typedef struct dmi_op_frame {
    dmi_frame head;
    int16_t noperand, numbers;
    int32_t args[DMI_ARG_INTS], compute;
    uint32_t seeds; /* of a program's call: dmi_call.seeds */
    uint32_t turn, recorded; /* the same: dmi_call.turn, dmi_call.recorded */
    uint32_t group; /* number of the group in which it was called; 0: none */
    uint32_t group_place; /* which place of the session's table that has: a later one may have it too */
    uint64_t members; /* bit w % 64: worker w may take part; others skip the command */
    int64_t workspace_limit;
    int64_t tail_bytes, tail_key;
    uint64_t user; /* one address space: the caller's memory */
} dmi_op_frame;
static inline const dmi_operand_ref *dmi_op_frame_operands(const dmi_op_frame *f)
{
    return (const dmi_operand_ref *)(f + 1);
}
static inline const dmi_number *dmi_op_frame_numbers(const dmi_op_frame *f)
{
    return (const dmi_number *)(dmi_op_frame_operands(f) + f->noperand);
}
static inline const void *dmi_op_frame_tail(const dmi_op_frame *f)
{
    return dmi_op_frame_numbers(f) + f->numbers;
}

/* PROGRAM, PROGRAM_END and PROGRAM_DESTROY */
typedef struct dmi_program_frame {
    dmi_frame head;
    uint32_t program;
    int32_t arrays, operands, calls; /* PROGRAM: how many */
    int32_t recorded;                /* PROGRAM: dmi_program.recorded */
    uint64_t members;                /* PROGRAM: as of its runs; the others skip the frames that follow */
} dmi_program_frame;

typedef struct dmi_program_array_frame {
    dmi_frame head;
    uint32_t program, memory, layout_id;
    int32_t mode, dtype, ndim;
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS], skip[DM_MAX_DIMS];
} dmi_program_array_frame;

/* The steps follow. */
typedef struct dmi_course_frame {
    dmi_frame head;
    uint32_t program;
    int32_t parts, steps;
    int32_t operands, numbers; /* of the whole */
    uint64_t members;          /* as of its runs */
} dmi_course_frame;
static inline const dmi_course_step *dmi_course_frame_steps(const dmi_course_frame *f)
{
    return (const dmi_course_step *)(f + 1);
}
static inline size_t dmi_course_frame_bytes(int steps)
{
    return sizeof(dmi_course_frame) + (size_t)steps * sizeof(dmi_course_step);
}

/* The operands follow: their numbers among those of the whole program. */
typedef struct dmi_part_frame {
    dmi_frame head;
    uint32_t program, runs; /* the whole; the program that is its part */
    int32_t part, operands;
    int64_t number; /* its first number among those of the whole */
    int64_t passes; /* in a run of the whole, if that is known */
    uint64_t members;
} dmi_part_frame;
static inline const int32_t *dmi_part_frame_operands(const dmi_part_frame *f)
{
    return (const int32_t *)(f + 1);
}

/* A number of a program that is given anew. */
typedef struct dmi_given_number {
    int64_t at; /* among the numbers of all its calls */
    dmi_number value;
} dmi_given_number;

/* What a run does to an operand. */
typedef struct dmi_run_use {
    uint32_t memory;
    uint16_t mode;  /* DMI_* */
    uint16_t fresh; /* 1: made in the run, so it holds nothing that counts when the run begins */
} dmi_run_use;

/* The ids of the operands follow, then the numbers given anew, then the use of each operand. */
typedef struct dmi_program_run_frame {
    dmi_frame head;
    uint32_t program;
    int32_t operands, numbers;
    uint32_t group, group_place; /* as of an op */
    uint32_t ordinal;            /* for the timeline: its number among all of the session */
    int64_t times;
    int64_t first;        /* the number of the first of them; -1: they are counted on */
    uint64_t members;     /* as of an op */
    int64_t every;        /* so many runs, then the workers look whether to go on; 0: they never look */
    uint64_t value, seen; /* arrays of `until` */
    double below;
    int64_t asks;   /* as of dmi_course_step */
    uint64_t asked; /* id of the array in which all see the answer; 0: they never ask */
} dmi_program_run_frame;
static inline const uint64_t *dmi_run_frame_operands(const dmi_program_run_frame *f)
{
    return (const uint64_t *)(f + 1);
}
static inline const dmi_given_number *dmi_run_frame_numbers(const dmi_program_run_frame *f)
{
    return (const dmi_given_number *)(dmi_run_frame_operands(f) + f->operands);
}
static inline const dmi_run_use *dmi_run_frame_uses(const dmi_program_run_frame *f)
{
    return (const dmi_run_use *)(dmi_run_frame_numbers(f) + f->numbers);
}
static inline size_t dmi_run_frame_bytes(int operands, int numbers)
{
    return sizeof(dmi_program_run_frame) + (size_t)operands * (sizeof(uint64_t) + sizeof(dmi_run_use)) +
           (size_t)numbers * sizeof(dmi_given_number);
}
/* What a worker gives itself between runs. */
typedef struct dmi_until_frame {
    dmi_op_frame op;
    dmi_operand_ref operand[2];
    dmi_number number[5];
} dmi_until_frame;

/* --- frame.c */
/* What is wrong with a frame by itself, of which so many bytes can be read; NULL: nothing. All that it holds
 * lies within it then. */
const char *dmi_frame_wrong(const dmi_frame *frame, int64_t room);
/* Puts the frame at *at of a message of so many bytes into a command ring, and moves *at behind it. false: the
 * ring is full, or *wrong says what is wrong with the frame. */
bool dmi_frames_pass(dmi_ring_writer *ring, const char *message, int bytes, int *at, const char **wrong,
                     const dmi_frame **passed);

/* A layout spec as bytes: the struct, then workers[], then map[]. */
static inline int64_t dmi_layout_spec_bytes(const dmi_layout_spec *spec)
{
    int64_t n = (int64_t)sizeof *spec + (spec->workers ? (int64_t)spec->nworkers * (int64_t)sizeof(int) : 0);
    return n + (spec->map ? spec->map_count * (int64_t)sizeof(int) : 0);
}

#endif
