/* A plan: everything one worker will do for one command, decided before anything is done.
 *
 * A plan is a list of steps on three lanes, twice. A lane takes its steps in order; steps of different lanes run at
 * once unless one waits for the other. Every wait is "that lane has finished its first n steps of this plan".
 *   COMPUTE  kernels and file transfers on this worker's memory
 *   SEND     PUSH: a payload to a peer; starts when the peer has granted a destination; done when the source may
 *            change
 *   RECV     EXPECT: grants a destination to the peer once its own waits are met (nobody uses that memory any
 *            more); done when the payload has arrived. Grants run ahead; steps finish in order.
 * Large reductions, and large copies on CPUs, have lanes of their own (channel 1), so that what comes after them need not
 * wait for their transfers. All others are on channel 0.
 * The k-th PUSH of a worker to a peer meets the k-th EXPECT of that peer from it, in each channel: every plan function
 * walks the pairs in the same order on both sides. Waits between workers exist only through these pairs, and hazards
 * between commands only through this worker's own memory, so that no third worker is ever asked. */
#ifndef DMI_PLAN_H
#define DMI_PLAN_H

#include "kernels/ewise/ewise.h"
#include "kernels/kernel.h"
#include "layout/layout.h"
#include "memory/hazard.h"
#include "memory/pool.h"

#include <stdatomic.h>

enum { DMI_MAX_OPERANDS = 12, DMI_OPERAND_NAME = 15 /* bytes of a name of an operand, with its end */ };
/* DMI_LANES of pool.h. Channel 1 has lanes of its own: a step there does not queue behind others. */
enum { DMI_LANE_COMPUTE, DMI_LANE_SEND, DMI_LANE_RECV, DMI_LANE_COMPUTE_1, DMI_LANE_SEND_1, DMI_LANE_RECV_1 };
enum { DMI_CHANNEL_LANES = DMI_LANES / DMI_CHANNELS };
static inline int dmi_lane_channel(int lane) /* of a plan's lane */
{
    return lane / DMI_CHANNEL_LANES;
}
/* What steps of an executor's lane are: its first DMI_LANES are as a plan's, the others compute. */
static inline bool dmi_lane_sends(int lane)
{
    return lane == DMI_LANE_SEND || lane == DMI_LANE_SEND_1;
}
static inline bool dmi_lane_receives(int lane)
{
    return lane == DMI_LANE_RECV || lane == DMI_LANE_RECV_1;
}
static inline bool dmi_lane_computes(int lane)
{
    return !dmi_lane_sends(lane) && !dmi_lane_receives(lane);
}

/* Payloads arrive in a second workspace while a command before still uses the first; not in larger ones. */
#define DMI_TWO_SETS_MOST (INT64_C(1) << 30)

/* An array or view as an op sees it. */
typedef struct dmi_desc {
    dm_dtype dtype;
    int ndim;
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS]; /* the rectangle in the layout's coordinates */
    int64_t skip[DM_MAX_DIMS]; /* indices of the layout left out after each one of a view with steps */
    const dmi_layout *layout;
    uint32_t layout_id;
} dmi_desc;

typedef struct dmi_operand {
    dmi_desc desc;
    uint64_t id;
    uint32_t memory; /* which storage: equal for views of one array */
    int mode;        /* DMI_READ, DMI_WRITE, DMI_READWRITE; 0: operand not used by this call */
} dmi_operand;

enum { DMI_ARG_INTS = 20, DMI_CALL_NUMBERS = DMI_MAP_NUMBERS + 1 /* a program's, a scale */ };

/* One call of an op: the same on the master and on every worker. */
typedef struct dmi_call {
    int op;
    int noperand;
    dmi_operand operand[DMI_MAX_OPERANDS];
    struct {
        int32_t i[DMI_ARG_INTS]; /* what the plan depends on: part of the plan key */
    } args;
    int compute;             /* what the call asks to compute in: enum dmi_compute; part of the plan key */
    int64_t workspace_limit; /* bytes a worker; 0: none. Part of the plan key. Set by admission, for ops of DMI_LIMITED */
    int numbers;
    dmi_number number[DMI_CALL_NUMBERS]; /* alpha, beta, bounds, ...: steps read them when they run */
    uint32_t seeds;   /* bit i: number i is a seed, which advances with the runs of a program; DMI_GIVEN_ANEW: see program.h */
    uint16_t turn;    /* of a program: as which of its calls it is planned; all 0: in the order as recorded */
    uint16_t recorded; /* of a program: the number of the call as recorded, from 1; of one that stands for
                          several: the first's */
    uint16_t called;  /* number of the public call (dmi_api_name), for messages; 0: not known. Read by dmi_call_name */
    const char *const *names; /* of its operands, on the master; NULL: those of the table */
    const void *tail; /* variable part (a path); plans may depend on its first tail_key bytes */
    int64_t tail_bytes, tail_key;
} dmi_call;

/* apply: args.i holds the function and modes; from here on two words: bit w % 64: worker w runs it, whatever it
 * holds. Then: not 0: it need not stand behind what was called before it. */
enum { DMI_APPLY_MEMBERS = 9, DMI_APPLY_EARLY = DMI_APPLY_MEMBERS + 2 };
static inline uint64_t dmi_apply_members(const dmi_call *call)
{
    const int32_t *word = &call->args.i[DMI_APPLY_MEMBERS];
    return (uint32_t)word[0] | (uint64_t)(uint32_t)word[1] << 32;
}

enum dmi_gemm_algorithm { DMI_GEMM_AUTO, DMI_GEMM_CYCLIC, DMI_GEMM_STATIONARY, DMI_GEMM_CONTRACT, DMI_GEMM_TWO_BLOCK,
                          DMI_GEMM_PANELS, DMI_GEMM_FUSED, DMI_GEMM_RING };

enum dmi_reduce_algorithm { DMI_REDUCE_AUTO, DMI_REDUCE_DIRECT, DMI_REDUCE_SCATTER }; /* see reduce.h */

enum dmi_compute { DMI_COMPUTE_DEFAULT, DMI_COMPUTE_F32, DMI_COMPUTE_TF32 }; /* as DM_COMPUTE_* */

/* Rates of a worker, per second, measured at the start of a session with GPUs; 0: unknown. */
typedef struct dmi_rates {
    double link;                 /* bytes that a worker pushes to another */
    double memory;               /* bytes read or written on the device */
    double f64, f32, tf32, half; /* operations on real numbers in large products, by the type of the operands */
} dmi_rates;

/* What plans may know of the machine and the session's settings. Settings of one op bear its name. */
typedef struct dmi_profile {
    int workers;             /* worker numbers 0 .. workers-1; number `workers` is the master */
    bool one_space;          /* master and workers share an address space */
    int64_t gemm_workspace;  /* limit on bytes in flight for one product, per worker; 0: chosen */
    int64_t gemm_transpose;  /* on GPUs: columns of c from which a transposed a is transposed in memory first */
    bool forced;             /* an option forces an algorithm: ops of DMI_FORCIBLE may refuse to plan a call */
    int gemm_algorithm;      /* enum dmi_gemm_algorithm */
    int reduce_algorithm;    /* enum dmi_reduce_algorithm */
    int64_t reduce_chunk;    /* minimum bytes of a chunk of a segment; 0: chosen */
    int64_t sum_bucket;      /* bytes of sums of layers that a program makes together; 0: chosen; 1: none */
    bool sort_wide;          /* sorts and searches go as those of more than 2^32 - 1 elements do */
    int gemm_compute;        /* enum dmi_compute: of products that do not say it themselves */
    bool gemm_fused;         /* every worker's GPU has the fused product */
    bool map_compiled;       /* on GPUs: elementwise programs are compiled at every worker */
    bool on_device; /* programs run on the workers' devices alone, where they can (on_device.h); of a program
                     * that is planned: it does */
    int64_t device_bytes;    /* free memory of the GPU of a worker that had least, at the start; rounded */
    dmi_rates rates;         /* of the slowest worker, rounded, alike everywhere */
    int64_t pace_bytes;      /* pushes of at least so much are paced (dmi_build_round); 0: none */
    int64_t chunk;           /* most bytes at once of data that goes through staging memory of the host */
    int64_t file_chunk;      /* on GPUs: most bytes of a file at once */
    dmi_device_facts facts;
    bool gpu;           /* workers hold arrays in device memory: what goes through the host goes in chunks */
    const int *host_of; /* [workers] or NULL: one host. On a GPU, payloads between two hosts go in chunks too */
    int64_t gpu_chunk; /* most bytes of such a chunk, if more than `chunk`: it does not pass through the host */
} dmi_profile;

enum dmi_ref_kind { DMI_REF_NONE, DMI_REF_OPERAND, DMI_REF_WORK, DMI_REF_USER };
#define DMI_REF_VIEW (UINT32_C(1) << 31)
typedef struct dmi_ref {
    uint8_t kind;
    uint8_t mode;    /* DMI_READ, DMI_WRITE, DMI_READWRITE */
    uint16_t index;  /* operand or workspace number */
    uint32_t number; /* of workspace: which it was before several were given one; while a program is planned, of
                        a view of a temporary: DMI_REF_VIEW + the view's number */
    int64_t offset;  /* bytes from its start to where the descriptor's offset 0 lies */
    int64_t from, to; /* of a kernel: its array's bytes in that memory, as far as it has them: several
                         workspaces may share one */
} dmi_ref;

/* What a step is: a transfer, several of them at once (on_device.h), or a kernel of the table. */
enum { DMI_STEP_PUSH, DMI_STEP_EXPECT, DMI_STEP_EXCHANGE, DMI_STEP_KERNEL };
#define DMI_STEP(kernel) (DMI_STEP_KERNEL + DMI_KERNEL_##kernel)
enum { DMI_STEP_KINDS = DMI_STEP_KERNEL + DMI_KERNELS };
const char *dmi_step_name(int kind); /* "push", "expect", or the kernel's; "?" for a number that is no kind */

/* Where a kernel step takes a scalar from: the call's number of this index, or a constant. */
enum { DMI_SCALAR_S0 = 0, DMI_SCALAR_S1 = 1, DMI_SCALAR_ONE = 254, DMI_SCALAR_ZERO = 255 };
#define DMI_UNSCALED {DMI_SCALAR_ONE, DMI_SCALAR_ZERO} /* scale 1, beta 0 */

typedef struct dmi_step {
    uint8_t kind; /* DMI_STEP_PUSH, DMI_STEP_EXPECT, DMI_STEP_EXCHANGE, DMI_STEP(kernel) */
    uint8_t lane, nref;
    uint8_t of; /* EXPECT: operand + 1 of which a block comes; 0: none, or unknown. For messages about those
                   that wait */
    uint8_t scalar[2];
    uint16_t number; /* the command's number that is number 0 of the step */
    uint16_t call;   /* of a program: from 1; else 0 */
    bool advances;   /* of a program: a number of its call changes with the runs */
    /* another step may wait for this step by itself (set by dmi_plan_make) */
    bool awaited;
    int peer;              /* PUSH: to whom, EXPECT: from whom */
    uint32_t ordinal;      /* 1, 2, ... in its lane */
    uint32_t wait[DMI_LANES]; /* steps of each lane (ordinals) that must be done first; 0: none */
    uint32_t before;       /* of DMI_TRAIT_WAITS: the last EXPECT of an earlier phase among them; 0: none. For
                              the others, on a GPU, the kernel itself waits */
    uint32_t unpaced; /* of a push: as wait has it of the EXPECTs of its channel, but for those that it waits
                         for to keep pace with its peers */
    dmi_ref *ref;          /* [nref] */
    const void *desc;      /* the kernel's descriptor; PUSH, EXPECT: dmi_copy; EXCHANGE: dmi_exchange */
    int64_t workspace;     /* bytes that the kernel asked for: its last reference; 0: none */
    int64_t bytes;         /* PUSH, EXPECT: payload */
    int64_t flops;
} dmi_step;
static inline const dmi_kernel *dmi_step_kernel(const dmi_step *step) /* NULL: transfers */
{
    return step->kind < DMI_STEP_KERNEL ? NULL : &dmi_kernels[step->kind - DMI_STEP_KERNEL];
}

/* What a step waits for in any order of transfers: without what keeps pushes in pace. */
static inline uint32_t dmi_step_needs(const dmi_step *step, int lane)
{
    const bool paced = step->kind == DMI_STEP_PUSH && lane == step->lane - DMI_LANE_SEND + DMI_LANE_RECV;
    return paced ? step->unpaced : step->wait[lane];
}

/* Run tables of a step's geometry in device memory. */
typedef struct dmi_step_tables {
    dmi_allocation memory;
    const dmi_run *run[DM_MAX_DIMS];
} dmi_step_tables;

/* Bytes that came with a call, such as the arguments of a user function. */
typedef struct dmi_tail {
    const void *at;
    int64_t bytes;
} dmi_tail;

typedef struct dmi_plan {
    int me;
    char algorithm[32];  /* a word for explain: planners with a choice set it */
    bool once;           /* depends on data that hardly come again: the cache does not keep it */
    const char *compute; /* computing type in words, if more than the operands decides it; or NULL */
    /* number of the moving operand, if it comes whole to every worker of the output: a cached replica can
     * replace it; -1: none */
    int moving;
    int calls;           /* of a program, */
    const uint16_t *op;  /* [calls] their ops; NULL: none */
    const uint16_t *called; /* [calls] their public calls (dmi_api_name) */
    /* [calls] numbers, as recorded, of the first and the last call that each stands for */
    const uint16_t (*recorded)[2];
    const dmi_tail *tail; /* [calls] what their steps read of their tails (DMI_TAIL); NULL: none */
    bool waits; /* has kernels that wait for EXPECTs themselves (DMI_TRAIT_WAITS) */
    int noperand;
    /* [noperand] or NULL: whatever part of its memory the operand is, all of it is touched: on GPUs, functions
     * of the user get a copy of it, which goes back as a whole */
    const bool *whole;
    int nstep;
    dmi_step *step;
    int nwork;
    int64_t *work_bytes;
    uint32_t lane_steps[DMI_LANES];
    int64_t bytes_sent, bytes_received, messages_sent, messages_received, workspace, flops;
    dmi_arena arena;
    dmi_step_tables *device;  /* [nstep] or NULL: what a GPU keeps for the steps */
    dmi_pool *device_pool;    /* where they are */
    void (*device_free)(struct dmi_plan *plan);
    bool background; /* later commands overtake it: it has a lane of its own */
    bool between;    /* it computes when all that was enqueued before has, and what comes later follows it */
    bool beside; /* on GPUs: all its steps compute on channel 1 and have no workspace: hazards alone order it */
    bool repeats;                   /* it is likely to run again with the same memory: a GPU may keep graphs of its kernels, */
    struct dmi_plan_graphs *graphs; /* here */
    void (*graphs_free)(struct dmi_plan_graphs *graphs);
    struct dmi_on_device
        *on_device;          /* its transfers are steps of the compute lane (on_device.h); NULL: they are not */
    struct dmi_plan *origin; /* that it was made of, and whose memory it uses; NULL: none */
    atomic_int refs;
} dmi_plan;

/* A value that a planner takes: an array, a view or a temporary of this command. */
typedef struct dmi_value {
    const dmi_desc *desc;
    dmi_ref ref; /* mode READ; offset 0 of its memory */
} dmi_value;

/* --- builder.c: making plans --------------------------------------------------------------------------------- */
typedef struct dmi_builder {
    const dmi_profile *profile;
    int me;
    dmi_plan *plan;
    int step_room, work_room;
    bool failed; /* out of memory: sticky */
    struct dmi_built_layout *layouts;
    int phases, phase_room, *phase_end; /* see phases.c: [phases] steps before the end of each */
    bool in_program;                    /* the call is one of a program, whose order is chosen (turns.c) */
    /* [plan->noperand] the first operand that is the same memory; NULL: found from their layouts */
    const int *same;
    /* [plan->noperand + views] where in its memory each operand is, then where in its temporary each view;
     * NULL: found from the call */
    const dmi_area *area;
    int views;
    int channel;           /* of the steps that come next: on its lanes */
    bool pushed;           /* in this round, a paced push */
    struct dmi_joint *joint; /* of a program: sums of layers that wait; NULL: none does (ops/common_layer.h) */
    int kernel_work[DMI_CHANNELS]; /* workspace that kernels asked for, from 1; 0: none */
    uint32_t before_round; /* EXPECTs up to the end of the last round with such a push */
    dmi_step scrap; /* what step calls return once failed */
    dmi_ref scrap_ref[DMI_MAX_REFS];
} dmi_builder;

typedef uint32_t dmi_mark[DMI_LANES]; /* a set of waits: highest ordinal a lane */

void *dmi_build_alloc(dmi_builder *b, size_t bytes); /* lives as long as the plan; NULL sets failed */
/* A layout for a temporary; lives until the plan is made: steps have no layouts. */
DM_CHECKED dm_status dmi_build_layout(dmi_builder *b, const dmi_layout_spec *spec, const dmi_layout **out);
/* A temporary of x's shape in another type. Of a whole array its elements are where x's are; of a rectangle it is dealt out
 * as an array of its own. One phase writes it and later ones read it. */
DM_CHECKED dm_status dmi_build_like(dmi_builder *b, const dmi_desc *x, dm_dtype dtype, dmi_desc *desc, dmi_value *value);
void dmi_build_end(dmi_builder *b); /* dmi_plan_make's: frees what does not live as long as the plan */
/* Workspace, live from the first phase whose steps name it to the last. Returns its number. */
int dmi_build_work(dmi_builder *b, int64_t bytes);
dmi_ref dmi_ref_work(int work, int mode);
dmi_ref dmi_ref_operand(int operand, int mode);
/* Steps. `after` may be NULL. The returned pointer is valid until the next step is made. geometry must have one
 * dtype on both sides; src side of EXPECT and dst side of PUSH through messages are packed. */
dmi_step *dmi_build_push(dmi_builder *b, int peer, dmi_ref src, const dmi_copy *geometry, const dmi_mark after);
dmi_step *dmi_build_expect(dmi_builder *b, int peer, dmi_ref dst, const dmi_copy *geometry, const dmi_mark after);
/* The same; what comes is a block of `from`, if that is an operand. */
dmi_step *dmi_build_expect_of(dmi_builder *b, int peer, dmi_ref dst, dmi_ref from, const dmi_copy *geometry,
                              const dmi_mark after);
/* The same; until it is done, `held` counts as read: others read it and say so by what comes. */
dmi_step *dmi_build_expect_holding(dmi_builder *b, int peer, dmi_ref dst, dmi_ref held,
                                   const dmi_copy *geometry, const dmi_mark after);
/* Begins a round. In a round every worker usually sends to at most one peer and receives from at most one. Both
 * ends of a transfer belong to the same round. */
void dmi_build_round(dmi_builder *b);
/* The steps that come next are on the lanes of this channel, which is the same at both ends of a transfer. */
void dmi_build_channel(dmi_builder *b, int channel);
/* desc is copied into the plan (size bytes); dmi_copy's runs must live in the plan (dmi_build_alloc). Workspace that the
 * kernel asks for (dmi_kernel_workspace) becomes one more reference. All kernels of a channel have the same one, for they
 * run one after another. */
dmi_step *dmi_build_kernel(dmi_builder *b, int kernel, const void *desc, size_t size, const dmi_ref *refs, int nref,
                           const dmi_mark after);
/* --- map.c: elementwise programs --- */
dmi_value dmi_value_operand(const dmi_call *call, int operand);
/* out = program(in...). out stays; inputs broadcast to it and are fetched if they are not in place. out: [1 + kept] what the
 * program keeps goes to values whose elements lie as out's do. */
void dmi_plan_map(dmi_builder *b, const dmi_map_program *program, const dmi_value *in, const dmi_value *out);

/* One side of an elementwise step: a strided box. */
typedef struct dmi_side {
    dm_dtype dtype;
    const int64_t *stride;
    int64_t offset;
    dmi_ref ref;
} dmi_side;
/* An input of a program, fetched to where the elements of `out` are. */
typedef struct dmi_input {
    const dmi_desc *x, *out;
    dmi_ref source, received; /* its memory, and the workspace for elements that are not in place */
    bool *in_place;          /* a region of out each */
    int64_t received_elements; /* elements of `received` that regions so far take */
} dmi_input;
/* Makes the steps that fetch it; done: the mark of its arrival. */
void dmi_plan_input(dmi_builder *b, dmi_input *in, const dmi_value *value, const dmi_desc *out, dmi_mark done);
/* Its elements for region number `index` of out at this worker; call it for one region after the other. stride:
 * memory for the side's strides. */
void dmi_input_side(dmi_side *side, int64_t *stride, dmi_input *in, int me, int64_t index, const dmi_region *out);
/* An element, which is a value of one element, as f64 where the elements of `out` are: fetched and converted.
 * *number: 8 bytes of workspace, which the compute steps that come next may read; without a worker's part of
 * out nothing is made. */
void dmi_plan_number(dmi_builder *b, const dmi_value *element, const dmi_desc *out, dmi_ref *number);
/* One step: the program over a box. out: [1 + kept] */
dmi_step *dmi_build_map(dmi_builder *b, const dmi_map_program *program, int ndim, const int64_t *extent,
                        const dmi_map_places *places, const dmi_side *in, const dmi_side *out, const dmi_mark after);

/* --- linear.c: elementwise programs with the factors of the call, whose numbers are {alpha, beta, 0} --- */
void dmi_call_factors(dmi_call *call, double alpha, double beta); /* sets them */
/* What the elements of a region are in their array, for a program that makes some of its inputs; NULL: it makes none. */
const dmi_map_places *dmi_build_places(dmi_builder *b, const dmi_map_program *program, const dmi_desc *x,
                                       const dmi_region *region);
/* The side of an input that is made. */
void dmi_made_side(dmi_side *side, int64_t *stride, const dmi_map_places *places, dm_dtype dtype, dmi_ref ref);
/* out = alpha * value[0] + beta * value[1]; used: is this term read? Both terms count for the type computed in. */
void dmi_plan_linear(dmi_builder *b, const dmi_value value[2], const bool used[2], const dmi_value *out);
/* The program of that, and the first term that is its input. */
int dmi_linear_program(const dm_dtype dtype[2], const bool used[2], dm_dtype out, dmi_map_program *program);
/* The type that linear programs of inputs of these types compute in. */
dm_dtype dmi_linear_type(const dm_dtype *dtype, int inputs, dm_dtype out);
/* The program of out = its only input, converted. */
void dmi_convert_program(dm_dtype from, dm_dtype to, dmi_map_program *program);
/* The program of alpha * x (row `scale`) or alpha * x * y (`product`); not used: 0, of no inputs. */
void dmi_scaled_program(int row, int inputs, const dm_dtype *dtype, bool used, dm_dtype out, dmi_map_program *program);

void dmi_mark_step(dmi_mark mark, const dmi_step *step); /* adds "step is done" to the set */
void dmi_mark_merge(dmi_mark into, const dmi_mark from);

/* --- phases.c: ops made of several planners --- */
/* The planner before has ended. What follows waits for its steps where it touches the same memory, without marks. */
void dmi_build_phase(dmi_builder *b);
void dmi_build_phases_end(dmi_builder *b, const dmi_call *call); /* dmi_plan_make_by's */

/* --- late.c: kernel steps delayed to the end of a round --------------------------------------------------- */
/* A kernel that waits for an arrival of a round comes after the round's pushes. So even an executor with a
 * single queue could take the steps in their order: grant, push, then wait for the granted payload. */
typedef struct dmi_late {
    struct dmi_late_step *first, *last;
} dmi_late;
/* As dmi_build_kernel with two refs, but makes no step yet. */
void dmi_late_kernel(dmi_builder *b, dmi_late *late, int kernel, const void *desc, size_t size, const dmi_ref refs[2],
                     const dmi_mark after);
/* Makes the delayed steps, adds them to `done`, and empties the list. */
void dmi_late_make(dmi_builder *b, dmi_late *late, dmi_mark done);

/* --- geometry.c ---------------------------------------------------------------------------------------------- */
dmi_desc dmi_desc_whole(dm_dtype dtype, const dmi_layout *layout, uint32_t layout_id);
/* The shape that arrays broadcast to, as in NumPy. Returns the number of the first array that does not fit; -1: all do. */
int dmi_desc_broadcast(int count, const dmi_desc *const *x, int *ndim, int64_t extent[DM_MAX_DIMS]);
/* The default layout of a shape on the workers of another array: those that take part where it is an operand. */
void dmi_default_on(const dmi_layout *of, int ndim, const int64_t *extent, dm_dtype dtype, dmi_layout_spec *out);
/* The layout of a rectangle of an array, as an array of its own: dealt out as the whole array is; with an explicit map, by the
 * default on its workers. */
void dmi_desc_like(const dmi_desc *desc, dmi_layout_spec *out);
/* "f64 40x30 on 2x1": type, shape and layout in words. */
void dmi_desc_describe(const dmi_desc *desc, char *text, size_t room);
/* How the first differs from the second, where one text describes both; else "". */
void dmi_desc_difference(const dmi_desc *a_desc, const dmi_desc *b_desc, char *text, size_t room);
/* The same with the operand's name and mode: "a: f64 40x30 on 2x1, read". */
void dmi_operand_describe(const char *name, const dmi_operand *operand, char *text, size_t room);
/* One line of a plan's counts. */
void dmi_plan_describe(const dmi_plan *plan, char *text, size_t room);
/* Which elements of its memory. */
void dmi_desc_area(const dmi_desc *desc, dmi_area *out);
/* The bytes from its first element to its last, at the same place in the shard of every worker that holds any
 * of it. False: the layout splits it, or it is empty. *run: there are no others between them. */
bool dmi_desc_span(const dmi_desc *desc, int64_t *from, int64_t *to, bool *run);
/* Has it steps other than 1? */
bool dmi_desc_steps(const dmi_desc *desc);
/* Regions of worker w's shard of a (possibly clipped) array, in caller-visible coordinates; empty ones too. Of a grid layout
 * there is one at most, but of a view with steps there may be one for each block. */
int64_t dmi_desc_region_count(const dmi_desc *desc, int worker);
void dmi_desc_region(const dmi_desc *desc, int worker, int64_t which, dmi_region *out);
/* The next region after number `after` (-1: the first) that may share elements with `box`; the count of regions or
 * more when there is none. For an empty box: simply the next. */
int64_t dmi_desc_region_next(const dmi_desc *desc, int worker, const dmi_region *box, int64_t after);
int64_t dmi_desc_count(const dmi_desc *desc); /* elements */
/* Elements of worker w's shard. */
int64_t dmi_desc_local_count(const dmi_desc *desc, int worker);
/* Is every element of `want` in `have`, at consecutive memory positions along each dim? Then *offset is the
 * element offset of want's first element and have->stride its strides. */
bool dmi_region_locate(const dmi_region *have, const dmi_region *want, int64_t *offset);
/* Gives a region dense row-major memory of its own, starting at element `offset`. */
void dmi_region_dense(dmi_region *region, int64_t offset);
/* Copy of the elements two regions share, from `from`'s memory to `to`'s. Returns false when they share none.
 * Runs are in the plan's arena. */
bool dmi_region_copy(dmi_builder *b, const dmi_region *from, const dmi_region *to, dm_dtype from_dtype, dm_dtype to_dtype,
                     dmi_copy *out);
/* Splits a copy into chunks of at most max_bytes (of the source dtype) where its rows allow; the same on every
 * worker. Calls each(context, chunk) in order. */
void dmi_copy_split(dmi_builder *b, const dmi_copy *copy, int64_t max_bytes,
                    void (*each)(void *context, const dmi_copy *chunk), void *context);
/* dmi_copy_pack and dmi_copy_unpack with the plan's memory; out of memory fails the plan. */
void dmi_build_pack(dmi_builder *b, const dmi_copy *copy, dmi_copy *packed);
void dmi_build_unpack(dmi_builder *b, const dmi_copy *copy, dmi_copy *unpacked);
/* Are both sides of a copy stacks of rows? Then *src and *dst: where they begin (elements); v: bytes of a row,
 * number of rows, bytes from one row to the next in the source and in the destination. */
bool dmi_copy_as_rows(const dmi_copy *c, int64_t elem, int64_t *src, int64_t *dst, int64_t v[4]);

/* --- fetch.c: bringing elements to where they are wanted ------------------------------------------------------ */
/* Every worker w needs some regions of a source, each with its memory at w. The source is operand `operand` of
 * the call, or (work >= 0) a temporary with the same index sets whose memory is this workspace. */
typedef struct dmi_fetch {
    const dmi_desc *src;
    dmi_ref src_ref;      /* mode READ */
    dm_dtype dst_dtype;
    dmi_ref dst_ref;      /* mode WRITE; offset 0 of the wanted regions' memory */
    /* The number of regions that worker w needs, and each of them: index sets in the source's coordinates,
     * memory at w. */
    int64_t (*count)(const void *context, int worker);
    void (*want)(const void *context, int worker, int64_t which, dmi_region *out);
    const void *context;
    bool dense;           /* the regions lie one after the other, each densely; `want` need not set their memory */
    /* NULL, or for each region that this worker needs: it is used in place, without a local copy */
    const bool *skip;
} dmi_fetch;
/* Makes the steps of this worker: local copies, pushes, expects. after: the wanted memory may be written then.
 * done: the mark of the arrival of everything. */
void dmi_plan_fetch(dmi_builder *b, const dmi_fetch *fetch, const dmi_mark after, dmi_mark done);
/* The same for a source that is ready only after `source` (a temporary). */
void dmi_plan_fetch_after(dmi_builder *b, const dmi_fetch *fetch, const dmi_mark after, const dmi_mark source,
                          dmi_mark done);
/* Does this worker hold all of `want` (source coordinates)? Then sets want's memory: offset, stride and
 * positions in its shard. */
bool dmi_fetch_in_place(const dmi_desc *src, int me, dmi_region *want);
/* Is `want` in the memory of `have`? Then sets want's memory in the same way. */
bool dmi_region_within(const dmi_region *have, dmi_region *want);
/* The replica of src that serves worker w: its own if it has one. */
int dmi_fetch_replica(const dmi_desc *src, int worker);

/* --- plan.c ------------------------------------------------------------------------------------------------- */
/* An op's: emits the steps of builder->me. */
typedef dm_status dmi_planner(dmi_builder *b, const dmi_call *call);
/* Plans `call` of the op with that name for worker `me`; dmi_plan_make (ops/ops.h) calls it. On failure: the op's status
 * and text. */
DM_CHECKED dm_status dmi_plan_make_by(dmi_planner *planner, const char *op, const dmi_call *call, const dmi_profile *profile,
                                      int me, dmi_plan **out);
void dmi_plan_release(dmi_plan *plan); /* one reference; frees at zero */

/* --- cache.c ------------------------------------------------------------------------------------------------ */
typedef struct dmi_plan_cache dmi_plan_cache;
typedef dm_status dmi_plan_maker(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out);
/* make: makes a plan that the cache lacks. */
DM_CHECKED dm_status dmi_plan_cache_create(int capacity, dmi_plan_maker *make, dmi_plan_cache **out);
void dmi_plan_cache_destroy(dmi_plan_cache *cache);
/* The plan for this call, from the cache or made now; the caller holds a reference. */
DM_CHECKED dm_status dmi_plan_cache_get(dmi_plan_cache *cache, const dmi_call *call, const dmi_profile *profile, int me,
                                        dmi_plan **out, bool *reused);

#endif
