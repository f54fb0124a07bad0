/* Sums of what several workers have, left at all holders of a result.
 *
 * Two forms, for a result of n elements that P workers hold and P workers add to:
 *   direct   everybody sends what it has to every holder, which adds it up: one hop, (P-1) n elements out of a worker
 *   scatter  the holders of the same elements have a slice of them each. What belongs to a slice goes to its owner
 *            alone, which finishes it and pushes it to the other holders: two hops, 2 (P-1)/P n elements
 * In both, copies of the result agree to the last bit: they are added in the same order, or are copies of one.
 * Slices come in pieces, so that one is added up while the next is on its way. */
#ifndef DMI_REDUCE_H
#define DMI_REDUCE_H

#include "plan/plan.h"

enum { DMI_MOST_PIECES = 8 };

/* --- slices.c */
/* May a result of this layout be made in slices? */
bool dmi_slices_serve(const dmi_desc *out);
/* Piece `piece` of the slice of its part that worker, which holds one, makes: index sets and memory as there. The
 * slices of all holders of the same elements make up these. */
void dmi_slice_region(const dmi_desc *out, int worker, int pieces, int piece, dmi_region *region);
/* In how many pieces slices come; the same for all workers. bytes: of an element that travels. */
int dmi_slice_pieces(const dmi_profile *profile, const dmi_desc *out, int64_t bytes);
/* What is added up for a result, as far as the choice between the forms needs it. */
typedef struct dmi_load {
    int64_t addends; /* of an element */
    int64_t bytes;   /* of an addend on its way */
    int givers;      /* workers that have addends, */
    int replicas;    /* each of so many sets of them all addends */
} dmi_load;
/* Scatter, and not direct? By bytes and hops, unless an option forces one. */
bool dmi_scatter_pays(const dmi_profile *profile, const dmi_desc *out, const dmi_load *load);
/* A piece of every slice to the other holders of the same elements; `ready`: this worker's own is finished. */
void dmi_slices_share(dmi_builder *b, const dmi_desc *out, int operand, int pieces, int piece, const dmi_mark ready);

/* --- addends.c: every giver has one addend of each element of the result, all of them in one region */
typedef struct dmi_addends {
    const dmi_desc *out; /* of a grid layout */
    int operand;         /* its number */
    dm_dtype dtype;      /* of the addends */
    int count;           /* of an element */
    const int *row;      /* [workers] which of them a worker has: 0 .. count-1 in the order of addition; -1: none */
    bool (*serves)(const void *context, int giver, int taker); /* does taker get its addends from this giver? */
    void (*region)(const void *context, int giver, dmi_region *region); /* in out's coordinates; memory as there */
    const void *context;
    dmi_ref ref;           /* own addend */
    const uint32_t *ready; /* it is there; may be NULL */
    bool scatter;
} dmi_addends;
/* out = s0 * (sum of the addends) + s1 * out */
void dmi_plan_addends(dmi_builder *b, const dmi_addends *addends);

#endif
