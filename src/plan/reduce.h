/* Reductions over the elements of several workers, with the result at all its holders.
 *
 * dmi_plan_reduce chooses the algorithm. For a result of n elements that P workers hold and P workers add to:
 *   direct   every worker sends its addends to every holder, which adds them up: one hop, each worker sends (P-1) n
 *            elements
 *   scatter  each holder of the same elements owns a segment of them. Addends go to the owner of their segment only;
 *            it finishes the segment and pushes it to the other holders: two hops, 2 (P-1)/P n elements
 * In both, replicas of the result agree to the last bit: they are added in the same order, or copied from one.
 * Segments come in chunks, so that one is added up while the next is in flight. */
#ifndef DMI_REDUCE_H
#define DMI_REDUCE_H

#include "plan/plan.h"

enum { DMI_MOST_CHUNKS = 8 };

/* --- segments.c */
/* May a result of this layout be made in segments? */
bool dmi_segments_serve(const dmi_desc *out);
/* Chunk `chunk` of the worker's segment, as a region of the worker's shard. The segments of all holders of the
 * same elements cover those elements. */
void dmi_segment_region(const dmi_desc *out, int worker, int chunks, int chunk, dmi_region *region);
/* Number of chunks of a segment; the same for all workers. bytes: of an element in a payload. */
int dmi_segment_chunks(const dmi_profile *profile, const dmi_desc *out, int64_t bytes);
/* The addends of a result, as the choice of the algorithm needs them. */
typedef struct dmi_load {
    int64_t addends; /* of an element */
    int64_t bytes;   /* of an addend in a payload */
    int senders;     /* workers with addends */
    int replicas;    /* replicas of the addends: each replica's workers have all of them */
} dmi_load;
/* Scatter, and not direct? By bytes and hops, unless an option forces one. */
bool dmi_scatter_pays(const dmi_builder *b, const dmi_desc *out, const dmi_load *load);
/* Are so many bytes of a worker a large transfer, which would hold up what comes after it? */
bool dmi_is_large(const dmi_profile *profile, double bytes);
/* The channel of a reduction's transfers, and of the kernels that wait for them: 1 for a large result, which would hold up
 * what comes after it. A small one is faster on the lanes on which its elements were made and its result is used. GPUs that do
 * not all reach each other's memory share buffers of the host, so there all transfers go one way. */
int dmi_reduction_channel(const dmi_profile *profile, const dmi_desc *out, const dmi_load *load);
/* Sends chunk `chunk` of every segment to the other holders of the same elements. ready: this worker's own
 * chunk is finished. */
void dmi_segments_share(dmi_builder *b, const dmi_value *out, int chunks, int chunk, const dmi_mark ready);

/* --- addends.c: each sender has one addend of each element of the result, all in one region */
typedef struct dmi_addends {
    const dmi_value *out; /* of a grid layout */
    dm_dtype dtype;      /* of the addends */
    int count;           /* of an element */
    const int *row;      /* [workers] which of them a worker has: 0 .. count-1 in the order of addition; -1: none */
    bool (*serves)(const void *context, int sender,
                   int receiver); /* does receiver get its addends from this sender? */
    void (*region)(const void *context, int sender,
                   dmi_region *region); /* in out's coordinates; memory as there */
    const void *context;
    dmi_ref ref;           /* this worker's addend */
    const uint32_t *ready; /* it is there; may be NULL */
    bool scatter;
    int channel;
    uint8_t scalar[2]; /* DMI_SCALAR_* */
    bool divides;      /* as of dmi_reducing */
} dmi_addends;
/* out = scale * (sum of the addends) + beta * out. */
void dmi_plan_addends(dmi_builder *b, const dmi_addends *addends);

/* --- reduce.c: the planner */
/* out = scale * (reduction of the elements over dims) + beta * out. The elements are x's, or those that a
 * program makes of several inputs, which broadcast: one of them has the full shape, and the elements are
 * reduced where it is. Rows other than the sum take `scale` as the divisor of reduce.def; their beta is
 * DMI_SCALAR_ZERO, or DMI_SCALAR_ONE where the row accumulates. */
typedef struct dmi_reducing {
    int row;          /* DMI_REDUCTION_* */
    unsigned reduced; /* bit d: dim d */
    const dmi_map_program *program; /* NULL: in[0] has the elements */
    dm_dtype made;                  /* the type of those that it makes */
    int inputs;
    const dmi_value *in;
    const dmi_value *out;
    uint8_t scalar[2]; /* scale, beta: DMI_SCALAR_* */
    bool divides;      /* the sum is divided by `scale`: a mean */
} dmi_reducing;
DM_CHECKED dm_status dmi_plan_reduce(dmi_builder *b, const dmi_reducing *r);
/* The array that the elements of a program would be, of this type: laid out as an input of the full shape, or, *own, where
 * none has it, by the default on the first one's workers; without inputs, on those of out. */
DM_CHECKED dm_status dmi_build_frame(dmi_builder *b, int inputs, const dmi_value *in, const dmi_value *out, dm_dtype dtype,
                                     dmi_desc *frame, bool *own);
/* A temporary that has a reduction of x over dims, with extents of 1 there. Every worker that has elements of x has
 * those that belong to them. A planner writes it, and a later phase reads it. */
DM_CHECKED dm_status dmi_build_reduced(dmi_builder *b, const dmi_desc *x, unsigned reduced, dm_dtype dtype, dmi_desc *desc,
                                       dmi_value *value);

/* --- partials.c: every worker reduces its elements into accumulators, which are sent and combined */
typedef struct dmi_partials {
    dmi_builder *b;
    const dmi_reducing *r;
    const dmi_desc *x, *out; /* x: the elements */
    bool keeps;   /* out has all dims */
    int acc;      /* kind of accumulator */
    int64_t elem; /* its bytes */
    dm_dtype narrow; /* of addends */
    bool scatter; /* out is made in segments, of so many chunks */
    bool alone; /* this worker makes its results of its own accumulators alone, which are stored from where they
                   are */
    int chunks;
    int channel;  /* of all steps but the reductions of local elements */
    int partial_work, acc_work, receive_work;
    int64_t *partial_at; /* in partial_work: where the accumulators of each own region of x begin */
    dmi_late late;    /* additions of this round */
} dmi_partials;
void dmi_plan_partials(dmi_partials *s);
/* Of a sum or a count whose x and out have grid layouts: this worker's results in the type `narrow`, dense over
 * the kept dims. Returns their memory; ready: when they are there. */
dmi_ref dmi_plan_narrow(dmi_partials *s, dmi_mark ready);

#endif
