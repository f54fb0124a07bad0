/* Sums over slices. Every holder of the result would need what every slice made, so a large result with several
 * holders is made in segments: each worker adds up one and sends it to the holders. The addends of an element
 * are added in the order of the slices by whoever adds them. Addends may travel in a narrower type (`wire`):
 * then all are rounded to it, also those that stay where they are. */
#include "ops/common_layer.h"
#include "plan/reduce.h"

#include <string.h>

enum { SEGMENTS_PAY = 1 << 14 }; /* bytes of a result */

typedef struct summing {
    const dmi_layer_sum *s;
    dmi_desc parts; /* slice x the dims of out */
    dmi_desc to;    /* out, or a temporary with a segment for each worker */
    dmi_ref ref;    /* its memory */
    bool *skip;
    bool segments;
    dmi_mark made;
} summing;

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(&((const summing *)context)->to, worker);
}

/* All addends of a region of the result. */
static void want_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const summing *g = context;
    dmi_region region;
    dmi_desc_region(&g->to, worker, which, &region);
    *want = (dmi_region){.ndim = region.ndim + 1, .count = region.count * g->s->count};
    want->dim[0] = dmi_dimset_interval(0, g->s->count);
    memcpy(want->dim + 1, region.dim, (size_t)region.ndim * sizeof *want->dim);
}

static dm_status lay_out_parts(summing *g)
{
    const dmi_layer_sum *s = g->s;
    const dmi_layout *layout;
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_EXPLICIT,
                            .ndim = s->out->ndim + 1,
                            .shape = {s->count},
                            .block = {1},
                            .session_workers = s->b->profile->workers,
                            .map = s->map,
                            .map_count = dmi_layer_elements(s->out) > 0 ? s->count : 0};
    for (int d = 0; d < s->out->ndim; d++) {
        spec.shape[d + 1] = s->out->extent[d];
        spec.block[d + 1] = DMI_MAX(s->out->extent[d], 1);
    }
    dm_status status = dmi_build_layout(s->b, &spec, &layout);
    if (status == DM_OK) {
        g->parts = dmi_desc_whole(s->dtype, layout, 0);
    }
    return status;
}

/* A temporary, split along the longest dim over the workers that hold the result. */
static dm_status lay_out_segments(summing *g)
{
    const dmi_layer_sum *s = g->s;
    const dmi_layout *layout;
    int longest = 0;
    const dmi_layout *on = s->out->layout;
    int *holders = dmi_build_alloc(s->b, (size_t)on->nworkers * sizeof *holders);
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID,
                            .ndim = s->out->ndim,
                            .session_workers = on->session_workers,
                            .workers = holders};
    for (int i = 0; holders && i < on->nworkers; i++) { /* of a view: not all that hold the array */
        if (dmi_desc_local_count(s->out, on->workers[i]) > 0) {
            holders[spec.nworkers++] = on->workers[i];
        }
    }
    if (!holders) {
        return DM_OK; /* the builder knows */
    }
    for (int d = 0; d < s->out->ndim; d++) {
        spec.shape[d] = s->out->extent[d];
        spec.grid[d] = 1;
        longest = s->out->extent[d] > s->out->extent[longest] ? d : longest;
    }
    spec.grid[longest] = spec.nworkers;
    dm_status status = dmi_build_layout(s->b, &spec, &layout);
    if (status == DM_OK) {
        g->to = dmi_desc_whole(s->out->dtype, layout, 0);
        int64_t count = dmi_layout_shard_count(layout, s->b->me);
        g->ref = dmi_ref_work(dmi_build_work(s->b, count * dmi_dtype_bytes(s->out->dtype)), DMI_WRITE);
    }
    return status;
}

static int64_t segment_count(const void *context, int worker)
{
    return dmi_desc_region_count(context, worker);
}

static void segment_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    dmi_desc_region(context, worker, which, want);
}

/* Copies between out and the segments; the same shapes. */
static void move(const summing *g, const dmi_desc *from, dmi_ref from_ref, const dmi_desc *to, dmi_ref to_ref,
                 const dmi_mark source, dmi_mark done)
{
    from_ref.mode = DMI_READ;
    to_ref.mode = DMI_WRITE;
    dmi_plan_fetch_after(g->s->b,
                         &(dmi_fetch){.src = from,
                                      .src_ref = from_ref,
                                      .dst_dtype = to->dtype,
                                      .dst_ref = to_ref,
                                      .count = segment_count,
                                      .want = segment_region,
                                      .context = to},
                         NULL, source, done);
}

/* Does this worker have all addends already, as rows of the whole result? */
static bool has_all(const summing *g, const dmi_region *region)
{
    bool all = region->count == dmi_layer_elements(g->s->out);
    for (int i = 0; i < g->s->count; i++) {
        all = all && g->s->map[i] == g->s->b->me;
    }
    return all;
}

/* Adds up the regions of the result that this worker makes. rows: addends that were fetched. */
static void add_up(summing *g, dmi_ref rows, const dmi_mark ready, dmi_mark done)
{
    const dmi_layer_sum *s = g->s;
    int64_t elem = dmi_dtype_bytes(s->wire);
    for (int64_t i = 0; i < want_count(g, s->b->me) && !s->b->failed; i++) {
        dmi_region region;
        dmi_desc_region(&g->to, s->b->me, i, &region);
        dmi_fold k = {.addends = s->count,
                      .own = -1,
                      .dtype = s->wire,
                      .pitch = region.count,
                      .store = {.acc = dmi_acc_of(s->wire),
                                .ndim = region.ndim,
                                .out_dtype = g->to.dtype,
                                .out_offset = region.count > 0 ? dmi_region_start(&region) : 0}};
        for (int d = 0; d < region.ndim; d++) {
            k.store.extent[d] = region.dim[d].count;
            k.store.out_stride[d] = region.stride[d];
        }
        dmi_ref refs[2] = {g->skip[i] ? dmi_ref_work(s->work, DMI_READ) : rows, g->ref};
        refs[1].mode = s->keeps ? DMI_READWRITE : DMI_WRITE;
        rows.offset += region.count * s->count * elem;
        if (region.count > 0) {
            dmi_step *step = dmi_build_kernel(s->b, DMI_KERNEL_fold, &k, sizeof k, refs, 2, ready);
            step->scalar[0] = s->unscaled ? DMI_SCALAR_ONE : DMI_SCALAR_S0;
            step->scalar[1] = s->keeps ? DMI_SCALAR_S1 : DMI_SCALAR_ZERO;
            dmi_mark_step(done, step);
        }
    }
}

/* Large sums are beside what comes after them, as those of reductions are. On CPUs all are, where a thread
 * serves the kernels of both channels: the layers' next kernels need not wait for the other workers. */
int dmi_layer_sum_channel(const dmi_layer_sum *s)
{
    int senders = 0;
    for (int i = 0; i < s->count; i++) {
        int before = 0;
        while (before < i && s->map[before] != s->map[i]) {
            before++;
        }
        senders += before == i;
    }
    if (!s->b->profile->gpu && senders > 1) {
        return 1;
    }
    return dmi_reduction_channel(
        s->b->profile, s->out,
        &(dmi_load){.addends = s->count, .bytes = dmi_dtype_bytes(s->wire), .senders = senders, .replicas = 1});
}

/* Fetches addends and adds them up. */
static dm_status add(summing *g)
{
    const dmi_layer_sum *s = g->s;
    dmi_builder *b = s->b;
    dmi_mark ready = {0};
    int64_t bytes = dmi_layer_elements(s->out) * dmi_dtype_bytes(s->dtype), room = 0;
    g->segments = s->out->layout->replicas > 1 && s->count > 1 && bytes >= SEGMENTS_PAY;
    dm_status status = lay_out_parts(g);
    status = status == DM_OK && g->segments ? lay_out_segments(g) : status;
    int64_t regions = want_count(g, b->me);
    g->skip = dmi_build_alloc(b, (size_t)regions + 1);
    if (status != DM_OK || b->failed) {
        return status;
    }
    for (int64_t i = 0; i < regions; i++) {
        dmi_region region;
        dmi_desc_region(&g->to, b->me, i, &region);
        g->skip[i] = s->wire == s->dtype && has_all(g, &region);
        room = g->skip[i] ? room : 1;
    }
    dmi_ref rows = dmi_ref_work(0, DMI_WRITE);
    if (room) {
        int64_t count = dmi_desc_local_count(&g->to, b->me) * s->count;
        rows = dmi_ref_work(dmi_build_work(b, count * dmi_dtype_bytes(s->wire)), DMI_WRITE);
    }
    if (g->segments && s->keeps) {
        static const dmi_mark nothing = {0};
        move(g, s->out, s->ref, &g->to, g->ref, nothing, ready);
    }
    dmi_plan_fetch_after(b,
                         &(dmi_fetch){.src = &g->parts,
                                      .src_ref = dmi_ref_work(s->work, DMI_READ),
                                      .dst_dtype = s->wire,
                                      .dst_ref = rows,
                                      .count = want_count,
                                      .want = want_region,
                                      .context = g,
                                      .dense = true,
                                      .skip = g->skip},
                         NULL, s->ready, ready);
    dmi_mark_merge(ready, s->ready);
    rows.mode = DMI_READ;
    add_up(g, rows, ready, g->made);
    return DM_OK;
}

/* Sends finished segments to those that hold the result. */
static void share(summing *g)
{
    dmi_mark done = {0};
    if (g->segments) {
        move(g, &g->to, g->ref, g->s->out, g->s->ref, g->made, done);
    }
}

dm_status dmi_plan_layer_sums(const dmi_layer_sum *sums, int count)
{
    dmi_builder *b = sums->b;
    summing *g = dmi_build_alloc(b, (size_t)count * sizeof *g);
    dm_status status = DM_OK;
    for (int i = 0; i < count && status == DM_OK && !b->failed; i++) {
        g[i] = (summing){.s = &sums[i], .to = *sums[i].out, .ref = sums[i].ref};
        dmi_build_channel(b, dmi_layer_sum_channel(&sums[i]));
        status = add(&g[i]);
    }
    for (int i = 0; i < count && status == DM_OK && !b->failed; i++) {
        dmi_build_channel(b, dmi_layer_sum_channel(&sums[i]));
        share(&g[i]);
    }
    dmi_build_channel(b, 0);
    return status;
}
