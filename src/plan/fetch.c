/* Fetch: brings elements of a source to the workers that need them, in rounds. In round t worker w sends to w +
 * t and receives from w - t, so that every round is a permutation of the workers. */
#include "plan/plan.h"

#include <string.h>

int dmi_fetch_replica(const dmi_desc *src, int worker)
{
    int own = dmi_layout_replica(src->layout, worker);
    return own >= 0 ? own : worker % DMI_MAX(src->layout->replicas, 1);
}

bool dmi_region_within(const dmi_region *have, dmi_region *want)
{
    int64_t at;
    if (!dmi_region_locate(have, want, &at)) {
        return false;
    }
    for (int d = 0; d < want->ndim; d++) {
        want->stride[d] = have->stride[d];
        at -= want->dim[d].count > 0 ? dmi_dimset_first_position(&want->dim[d]) * have->stride[d] : 0;
    }
    want->offset = at;
    return true;
}

bool dmi_fetch_in_place(const dmi_desc *src, int me, dmi_region *want)
{
    int64_t regions = dmi_desc_region_count(src, me), i = -1;
    while ((i = dmi_desc_region_next(src, me, want, i)) < regions) {
        dmi_region have;
        dmi_desc_region(src, me, i, &have);
        if (dmi_region_within(&have, want)) {
            return true;
        }
    }
    return false;
}

typedef struct fetching {
    dmi_builder *b;
    const dmi_fetch *f;
    const uint32_t *after;  /* the wanted memory is free */
    const uint32_t *source; /* the source is there */
    uint32_t *done;
    dm_dtype wire; /* what travels: the narrower of the two types */
    int convert;   /* workspace number of overlaps converted before sending or after arrival; -1: none yet */
    dmi_copy converted; /* the last one before sending: count 0: none yet; */
    dmi_ref packed;     /* where it is, */
    dmi_mark ready;     /* and when */
    dmi_late late; /* conversions of what arrives in this round */
} fetching;

static dmi_ref convert_space(fetching *g, const dmi_copy *overlap, int mode)
{
    if (g->convert < 0) {
        g->convert = dmi_build_work(g->b, 0);
    }
    dmi_ref ref = dmi_ref_work(g->convert, mode);
    if (!g->b->failed) {
        int64_t *bytes = &g->b->plan->work_bytes[g->convert];
        ref.offset = *bytes;
        *bytes += (overlap->count * dmi_dtype_bytes(g->wire) + 63) / 64 * 64;
    }
    return ref;
}

static void copy_local(fetching *g, const dmi_copy *overlap)
{
    dmi_ref refs[2] = {g->f->src_ref, g->f->dst_ref};
    dmi_mark ready = {0};
    dmi_mark_merge(ready, g->after);
    dmi_mark_merge(ready, g->source);
    dmi_mark_step(g->done, dmi_build_kernel(g->b, DMI_KERNEL_copy, overlap, sizeof *overlap, refs, 2, ready));
}

static void send_overlap(fetching *g, int peer, const dmi_copy *overlap)
{
    dm_dtype src = g->f->src->dtype, dst = g->f->dst_dtype;
    dmi_copy half = *overlap;
    if (src == dst) {
        dmi_build_push(g->b, peer, g->f->src_ref, overlap, g->source);
    } else if (g->wire == src) { /* the receiver converts: it arrives packed there */
        dmi_build_pack(g->b, overlap, &half);
        half.dst_dtype = src;
        dmi_build_push(g->b, peer, g->f->src_ref, &half, g->source);
    } else { /* convert here, into packed space, then push that to its destination; once for all that get the
                same */
        dmi_build_pack(g->b, overlap, &half);
        half.dst_dtype = dst;
        if (!dmi_copy_same(&half, &g->converted)) {
            dmi_ref refs[2] = {g->f->src_ref, convert_space(g, overlap, DMI_WRITE)};
            g->converted = half;
            g->packed = refs[1];
            memset(g->ready, 0, sizeof g->ready);
            dmi_mark_step(g->ready,
                          dmi_build_kernel(g->b, DMI_KERNEL_copy, &half, sizeof half, refs, 2, g->source));
        }
        dmi_build_unpack(g->b, overlap, &half);
        half.src_dtype = dst;
        dmi_build_push(g->b, peer, g->packed, &half, g->ready);
    }
}

static void expect_overlap(fetching *g, int peer, const dmi_copy *overlap)
{
    dm_dtype src = g->f->src->dtype, dst = g->f->dst_dtype;
    dmi_copy half = *overlap;
    if (src == dst || g->wire == dst) {
        half.src_dtype = dst;
        dmi_mark_step(g->done, dmi_build_expect_of(g->b, peer, g->f->dst_ref, g->f->src_ref, &half, g->after));
        return;
    }
    dmi_ref refs[2] = {convert_space(g, overlap, DMI_WRITE), g->f->dst_ref};
    dmi_mark arrived = {0};
    dmi_mark_merge(arrived, g->after);
    dmi_build_pack(g->b, overlap, &half);
    half.dst_dtype = src;
    dmi_mark_step(arrived, dmi_build_expect_of(g->b, peer, refs[0], g->f->src_ref, &half, NULL));
    dmi_build_unpack(g->b, overlap, &half);
    half.src_dtype = src;
    refs[0].mode = DMI_READ;
    dmi_late_kernel(g->b, &g->late, DMI_KERNEL_copy, &half, sizeof half, refs, arrived);
}

/* Every overlap of a region that `receiver` needs with one that `sender` holds; both sides walk them in this
 * order. */
static void each_overlap(fetching *g, int sender, int receiver, int64_t wants,
                         void (*act)(fetching *, int, const dmi_copy *), int peer)
{
    int64_t gives = dmi_desc_region_count(g->f->src, sender), placed = 0;
    for (int64_t i = 0; i < wants && gives > 0; i++) {
        dmi_region want, have;
        g->f->want(g->f->context, receiver, i, &want);
        if (g->f->dense) {
            dmi_region_dense(&want, placed);
            placed += want.count;
        }
        if (sender == receiver && g->f->skip && g->f->skip[i]) {
            continue;
        }
        int64_t j = want.count > 0 ? -1 : gives;
        while ((j = dmi_desc_region_next(g->f->src, sender, &want, j)) < gives) {
            dmi_copy overlap;
            dmi_desc_region(g->f->src, sender, j, &have);
            if (have.count > 0 &&
                dmi_region_copy(g->b, &have, &want, g->f->src->dtype, g->f->dst_dtype, &overlap)) {
                act(g, peer, &overlap);
            }
        }
    }
}

static void local_overlap(fetching *g, int peer, const dmi_copy *overlap)
{
    (void)peer;
    copy_local(g, overlap);
}

void dmi_plan_fetch(dmi_builder *b, const dmi_fetch *fetch, const dmi_mark after, dmi_mark done)
{
    dmi_plan_fetch_after(b, fetch, after, NULL, done);
}

void dmi_plan_fetch_after(dmi_builder *b, const dmi_fetch *fetch, const dmi_mark after, const dmi_mark source,
                          dmi_mark done)
{
    static const dmi_mark nothing = {0};
    dm_dtype src = fetch->src->dtype, dst = fetch->dst_dtype;
    fetching g = {.b = b,
                  .f = fetch,
                  .after = after ? after : nothing,
                  .source = source ? source : nothing,
                  .done = done,
                  .wire = dmi_dtype_bytes(src) <= dmi_dtype_bytes(dst) ? src : dst,
                  .convert = -1};
    int workers = b->profile->workers, me = b->me;
    if (me >= workers) { /* the master holds no shard of any array */
        return;
    }
    int my_replica = dmi_layout_replica(fetch->src->layout, me), serves_me = dmi_fetch_replica(fetch->src, me);
    int64_t my_wants = fetch->count(fetch->context, me);
    if (my_replica == serves_me) {
        each_overlap(&g, me, me, my_wants, local_overlap, me);
    }
    for (int t = 1; t < workers && !b->failed; t++) {
        dmi_build_round(b);
        int to = (me + t) % workers, from = (me - t + workers) % workers;
        if (dmi_layout_replica(fetch->src->layout, from) == serves_me) {
            each_overlap(&g, from, me, my_wants, expect_overlap, from);
        }
        if (my_replica >= 0 && dmi_fetch_replica(fetch->src, to) == my_replica) {
            each_overlap(&g, me, to, fetch->count(fetch->context, to), send_overlap, to);
        }
        dmi_late_make(b, &g.late, done);
    }
}
