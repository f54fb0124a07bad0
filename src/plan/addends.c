/* Sums of addends at several workers, each for all of the result. The addends are pushed to the rows of a
 * receive buffer at the worker that makes this region of the result. It sums them in one pass, in the order of
 * the rows, and rounds once. */
#include "plan/reduce.h"

#include <string.h>

typedef struct adding {
    dmi_builder *b;
    const dmi_addends *a;
    int chunks;
    int buffer[DMI_MOST_CHUNKS]; /* workspaces: a chunk's rows; each is free early for the next command */
    dmi_mark copied[DMI_MOST_CHUNKS], made[DMI_MOST_CHUNKS]; /* own addends, and sums */
} adding;

/* The region of the result that `worker` makes; false: none. */
static bool makes(const adding *g, int worker, int chunk, dmi_region *region)
{
    const dmi_desc *out = g->a->out->desc;
    if (dmi_desc_region_count(out, worker) == 0) {
        return false;
    }
    if (g->a->scatter) {
        dmi_segment_region(out, worker, g->chunks, chunk, region);
    } else {
        dmi_desc_region(out, worker, 0, region);
    }
    return region->count > 0;
}

/* From one row to the next, in elements: rows begin at full lines of memory. */
static int64_t pitch(const adding *g, int64_t count)
{
    int64_t bytes = dmi_dtype_bytes(g->a->dtype);
    return (count * bytes + 255) / 256 * 256 / bytes;
}

/* Has the sender an addend of the receiver's region? */
static bool gives(const adding *g, int sender, int receiver, int chunk, dmi_region *have, dmi_region *want)
{
    const dmi_addends *a = g->a;
    if (a->row[sender] < 0 || !a->serves(a->context, sender, receiver) || !makes(g, receiver, chunk, want)) {
        return false;
    }
    a->region(a->context, sender, have);
    return true;
}

/* Is the worker's own addend one strided box? Then fold reads it in place, from *offset. Otherwise, and if it
 * is the only addend, it is copied to a row like the others. */
static bool in_place(const adding *g, int worker, int chunk, dmi_region *have, int64_t *offset)
{
    dmi_region want;
    if (g->a->count < 2 || !gives(g, worker, worker, chunk, have, &want)) {
        return false;
    }
    *offset = dmi_region_start(have);
    for (int d = 0; d < want.ndim; d++) {
        int64_t first = dmi_dimset_range_within(&have->dim[d], &want.dim[d]);
        if (first < 0) {
            return false;
        }
        *offset += first * have->stride[d];
    }
    return true;
}

/* The copy of the sender's addend of the receiver's region to its row there. */
static bool addend(const adding *g, int sender, int receiver, int chunk, dmi_copy *copy)
{
    const dmi_addends *a = g->a;
    dmi_region want, have, own;
    int64_t unused;
    if (g->b->failed || !gives(g, sender, receiver, chunk, &have, &want)) {
        return false;
    }
    bool without = sender != receiver && in_place(g, receiver, chunk, &own, &unused);
    int row = a->row[sender] - (without && a->row[sender] > a->row[receiver]);
    dmi_region_dense(&want, row * pitch(g, want.count));
    return dmi_region_copy(g->b, &have, &want, a->dtype, a->dtype, copy);
}

static void take_buffers(adding *g)
{
    int me = g->b->me;
    for (int q = 0; q < g->chunks; q++) {
        dmi_region region, own;
        dmi_copy copy;
        int64_t unused;
        g->buffer[q] = -1;
        if (!makes(g, me, q, &region)) {
            continue;
        }
        bool here = in_place(g, me, q, &own, &unused);
        g->buffer[q] =
            dmi_build_work(g->b, (g->a->count - here) * pitch(g, region.count) * dmi_dtype_bytes(g->a->dtype));
        if (!here && addend(g, me, me, q, &copy)) { /* while the others' are in flight */
            dmi_ref refs[2] = {g->a->ref, dmi_ref_work(g->buffer[q], DMI_WRITE)};
            dmi_mark_step(g->copied[q],
                          dmi_build_kernel(g->b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, g->a->ready));
        }
    }
}

/* No deadlock: no other step of this command uses the receive buffer, so its grant waits for nothing and comes
 * before the push of the same round. A push waits for kernels of this worker only (for none if it pushes from
 * an array) and, if paced, for payloads of earlier rounds. */
static void collect(adding *g, int chunk, dmi_mark arrived)
{
    dmi_builder *b = g->b;
    int workers = b->profile->workers, me = b->me;
    dmi_copy copy;
    for (int t = 1; t < workers && !b->failed; t++) {
        dmi_build_round(b);
        int to = (me + t) % workers, from = (me - t + workers) % workers;
        if (addend(g, from, me, chunk, &copy)) {
            dmi_ref ref = dmi_ref_work(g->buffer[chunk], DMI_WRITE);
            dmi_mark_step(arrived, dmi_build_expect(b, from, ref, &copy, NULL));
        }
        if (addend(g, me, to, chunk, &copy)) {
            dmi_build_push(b, to, g->a->ref, &copy, g->a->ready);
        }
    }
}

static void finish(adding *g, int chunk, const dmi_mark arrived)
{
    const dmi_addends *a = g->a;
    int me = g->b->me;
    dmi_region region, own;
    if (g->b->failed || !makes(g, me, chunk, &region)) {
        return;
    }
    dmi_mark ready = {0};
    dmi_mark_merge(ready, arrived);
    dmi_mark_merge(ready, g->copied[chunk]);
    dmi_fold k = {.addends = a->count,
                  .own = -1,
                  .dtype = a->dtype,
                  .pitch = pitch(g, region.count),
                  .store = {.acc = dmi_acc_of(a->dtype),
                            .divides = a->divides,
                            .ndim = region.ndim,
                            .out_dtype = a->out->desc->dtype,
                            .out_offset = dmi_region_start(&region)}};
    for (int d = 0; d < region.ndim; d++) {
        k.store.extent[d] = region.dim[d].count;
        k.store.out_stride[d] = region.stride[d];
    }
    if (in_place(g, me, chunk, &own, &k.own_offset)) {
        k.own = a->row[me];
        memcpy(k.own_stride, own.stride, sizeof k.own_stride);
        if (a->ready) {
            dmi_mark_merge(ready, a->ready);
        }
    }
    dmi_ref refs[3] = {dmi_ref_work(g->buffer[chunk], DMI_READ), a->out->ref, a->ref};
    refs[1].mode = DMI_READWRITE;
    dmi_step *step = dmi_build_kernel(g->b, DMI_KERNEL_fold, &k, sizeof k, refs, k.own >= 0 ? 3 : 2, ready);
    memcpy(step->scalar, a->scalar, sizeof step->scalar);
    dmi_mark_step(g->made[chunk], step);
}

void dmi_plan_addends(dmi_builder *b, const dmi_addends *addends)
{
    adding g = {.b = b, .a = addends, .chunks = 1};
    dmi_build_channel(b, addends->channel);
    if (addends->scatter) {
        g.chunks = dmi_segment_chunks(b->profile, addends->out->desc, dmi_dtype_bytes(addends->dtype));
    }
    take_buffers(&g);
    for (int q = 0; q <= g.chunks && !b->failed; q++) {
        dmi_mark arrived = {0};
        if (q < g.chunks) {
            collect(&g, q, arrived);
            finish(&g, q, arrived);
        }
        if (addends->scatter && q > 0) { /* behind the next chunk's pushes: these need not wait for a sum */
            dmi_segments_share(b, addends->out, g.chunks, q - 1, g.made[q - 1]);
        }
    }
}
