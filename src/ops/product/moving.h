/* Shared by the algorithms that move the blocks of one operand: cyclic.c and ring.c. */
#ifndef DMI_MOVING_H
#define DMI_MOVING_H

#include "ops/product/gemm.h"

enum { DMI_MOVING_BLOCKS = 64 }; /* inner blocks a worker before the stationary algorithm is better */

typedef struct dmi_moving {
    dmi_product *p;
    int which, stay;
    const dmi_layout *owners; /* the moving operand's: its workers, in order, are the owners */
    int size;                 /* owners that serve one worker: a replica's */
    int buffers, next;        /* receive buffers, used one after another */
    int buffer_work;
    int64_t buffer_bytes;
    dmi_mark *buffer_free;      /* [buffers] when one may be written again */
    dmi_matrix_ref stay_matrix; /* the operand that stays, in the computing type */
    dmi_mark stay_ready;
    int convert;        /* workspace for moved blocks of another type; -1 */
    int64_t (*seen)[2]; /* intervals of c already written */
    int seen_count;
} dmi_moving;

/* Runs of both dims of an owner's region, as (index, position) pairs. */
typedef struct dmi_blocks {
    int64_t n[2];
    dmi_run *run[2];
    dmi_region region;
} dmi_blocks;

/* A block in flight to this worker: its receive buffer and the mark of its arrival. */
typedef struct dmi_coming {
    dmi_region received;
    dmi_ref ref;
    dmi_mark arrived;
    int buffer;
} dmi_coming;

/* Prepares to move operand `which`: the stationary operand in kernel form and, if this worker has a region of
 * c, the receive buffers. buffers: at least so many, and up to more_buffers more if the workspace allows. */
void dmi_moving_begin(dmi_moving *g, dmi_product *p, int which, int buffers, int more_buffers);
/* Bytes of a receive buffer: the largest block of all owners; most: blocks of one owner, or NULL. */
int64_t dmi_moving_buffer_bytes(const dmi_product *p, int which, int64_t *most);
/* False: the owner has nothing. */
bool dmi_moving_blocks(const dmi_product *p, int which, int owner, dmi_blocks *out);
static inline int64_t dmi_moving_count(const dmi_blocks *bl)
{
    return bl->n[0] * bl->n[1];
}
/* Products with the worker's own blocks. */
void dmi_moving_own(dmi_moving *g, const dmi_blocks *own);
/* Block `at` of an owner comes from a peer that has it. */
void dmi_moving_expect(dmi_moving *g, int peer, const dmi_blocks *theirs, int64_t at, dmi_coming *in);
/* Pushes an own block to another worker; passes a received block on from its buffer, which is free only after
 * that. */
void dmi_moving_send(dmi_moving *g, int to, const dmi_blocks *own, int64_t at);
void dmi_moving_pass(dmi_moving *g, int to, const dmi_coming *in, dmi_mark gone);
/* The product with a received block. gone: other steps that read its buffer, or NULL. */
void dmi_moving_use(dmi_moving *g, const dmi_coming *in, const dmi_mark gone);
/* Copies the worker's shard into the cached replica, beside the received blocks. */
void dmi_moving_replicate(dmi_moving *g, const dmi_blocks *own);

#endif
