/* What the forms share in which one operand's blocks roll round the workers: cyclic.c and ring.c. */
#ifndef DMI_ROLLING_H
#define DMI_ROLLING_H

#include "ops/product/gemm.h"

enum { DMI_ROLLING_BLOCKS = 64 }; /* inner blocks a worker before the stationary form is better */

typedef struct dmi_rolling {
    dmi_product *p;
    int which, stay;
    const dmi_layout *ring; /* the moving operand's: its workers, in order, are the owners */
    int size;               /* owners that serve one worker: a replica's */
    int slots, next;        /* landing places, used in turn */
    int slot_work;
    int64_t slot_bytes;
    dmi_mark *slot_free;  /* [slots] when a place may be written again */
    dmi_panel stay_panel; /* the operand that stays, in the computing type */
    dmi_mark stay_ready;
    int convert;        /* workspace for moved blocks of another type; -1 */
    int64_t (*seen)[2]; /* intervals of c already written */
    int seen_count;
} dmi_rolling;

/* Runs of both dims of an owner's region, as (index, position) pairs. */
typedef struct dmi_blocks {
    int64_t n[2];
    dmi_run *run[2];
    dmi_region region;
} dmi_blocks;

/* A block in flight to this worker: its receive buffer and the mark of its arrival. */
typedef struct dmi_coming {
    dmi_region landed;
    dmi_ref ref;
    dmi_mark arrived;
    int slot;
} dmi_coming;

/* Prepares to move operand `which`: the stationary operand in kernel form and, if this worker has a region of
 * c, the receive buffers. slots: how many places at least, slots_more: as many more where the workspace
 * allows. */
void dmi_rolling_begin(dmi_rolling *g, dmi_product *p, int which, int slots, int slots_more);
/* Bytes of a landing place: the largest block of all owners; most: blocks of one owner, or NULL. */
int64_t dmi_rolling_slot(const dmi_product *p, int which, int64_t *most);
/* False: the owner has nothing. */
bool dmi_rolling_blocks(const dmi_product *p, int which, int owner, dmi_blocks *out);
static inline int64_t dmi_rolling_count(const dmi_blocks *bl)
{
    return bl->n[0] * bl->n[1];
}
/* Products with the own blocks. */
void dmi_rolling_own(dmi_rolling *g, const dmi_blocks *own);
/* Block `at` of an owner comes from a peer that has it. */
void dmi_rolling_expect(dmi_rolling *g, int peer, const dmi_blocks *theirs, int64_t at, dmi_coming *in);
/* One's own block to another worker; a block that came, from where it lies, to the next (the place is free only when
 * it has gone). */
void dmi_rolling_send(dmi_rolling *g, int to, const dmi_blocks *own, int64_t at);
void dmi_rolling_pass(dmi_rolling *g, int to, const dmi_coming *in, dmi_mark gone);
/* The product with a block that came. gone: other steps that read its place, or NULL. */
void dmi_rolling_use(dmi_rolling *g, const dmi_coming *in, const dmi_mark gone);
/* Copies the worker's shard into the cached replica, beside the received blocks. */
void dmi_rolling_replicate(dmi_rolling *g, const dmi_blocks *own);

#endif
