/* Layers by slices: each worker fetches what its slices need and is not in place, runs the kernel once a slice,
 * and sends what it made to where it belongs. The slices and their workers follow from the call alone, and all
 * kernels of a worker run in the order of the slices. */
#include "ops/common_layer.h"

#include <string.h>

typedef struct cut {
    int64_t samples, size; /* of the batch; of a slice */
    int count;
    int *map; /* [count] the worker of each */
} cut;

/* How many slices where the caller leaves it open: one for each range of samples that the layout has on a
 * worker. */
static int64_t open_size(const dmi_builder *b, const dmi_desc *x, int64_t samples)
{
    const dmi_layout *y = x->layout;
    int64_t ranges =
        y->kind == DMI_LAYOUT_GRID ? (int64_t)y->grid[0] * DMI_MAX(y->replicas, 1) : b->profile->workers;
    if (y->kind == DMI_LAYOUT_GRID && y->replicas <= 1 && x->lo[0] == 0 &&
        y->order[0] == DMI_ORDER_CONTIGUOUS && x->extent[0] == y->shape[0]) {
        return (y->nblock[0] + y->grid[0] - 1) / y->grid[0] * y->block[0];
    }
    return (samples + ranges - 1) / ranges;
}

static void cut_batch(dmi_builder *b, const dmi_desc *x, int slices, cut *c)
{
    int64_t index[DM_MAX_DIMS];
    c->samples = x->extent[0];
    int64_t size = slices > 0 ? (c->samples + slices - 1) / slices : open_size(b, x, c->samples);
    c->size = DMI_MAX(size, 1);
    c->count = (int)DMI_MAX((c->samples + c->size - 1) / c->size, 1);
    c->map = dmi_build_alloc(b, (size_t)c->count * sizeof *c->map);
    for (int i = 0; i < c->count && c->map; i++) {
        memcpy(index, x->lo, sizeof index);
        index[0] += i * c->size;
        c->map[i] = dmi_layer_elements(x) == 0
                        ? x->layout->workers[i % x->layout->nworkers]
                        : dmi_layout_owner(x->layout, index,
                                           (int)((int64_t)i * DMI_MAX(x->layout->replicas, 1) / c->count));
    }
}

static int64_t length(const cut *c, int slice)
{
    return DMI_MIN(c->size, c->samples - slice * c->size);
}

/* An operand as its slices lie: an explicit layout, in which a slice is a block. The layout of an empty one has
 * no blocks. */
static dm_status lay_out(dmi_builder *b, const cut *c, const dmi_desc *x, dm_dtype dtype, dmi_desc *sliced)
{
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_EXPLICIT,
                            .ndim = x->ndim,
                            .session_workers = b->profile->workers,
                            .map = c->map,
                            .map_count = dmi_layer_elements(x) > 0 ? c->count : 0};
    const dmi_layout *layout;
    memcpy(spec.shape, x->extent, sizeof spec.shape);
    for (int d = 0; d < x->ndim; d++) {
        spec.block[d] = d == 0 ? c->size : DMI_MAX(x->extent[d], 1);
    }
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status == DM_OK) {
        *sliced = dmi_desc_whole(dtype, layout, 0);
    }
    return status;
}

/* Are they rows of the last dim that lie densely, each *pitch elements behind the one before it? */
static bool has_rows(const dmi_region *r, int64_t *pitch)
{
    int last = r->ndim - 1;
    int64_t stride = 0;
    *pitch = r->dim[last].count;
    for (int d = last - 1; d >= 0; d--) {
        if (r->dim[d].count > 1 && stride == 0) { /* the innermost dim that tells */
            stride = r->stride[d];
            *pitch = stride;
        } else if (r->dim[d].count > 1 && r->stride[d] != stride) {
            return false;
        }
        stride *= r->dim[d].count;
    }
    return *pitch >= r->dim[last].count && (r->dim[last].count < 2 || r->stride[last] == 1);
}

/* Do the region's elements lie densely, in row-major order? */
static bool is_dense(const dmi_region *r)
{
    int64_t pitch;
    return r->ndim == 0 || (has_rows(r, &pitch) && pitch == r->dim[r->ndim - 1].count);
}

static bool reads_slices(int role)
{
    return role == DMI_LAYER_SLICED || role == DMI_LAYER_ROWS;
}

static bool makes(int role)
{
    return role == DMI_LAYER_MADE || role == DMI_LAYER_MADE_ROWS;
}

static bool sums(int role)
{
    return role == DMI_LAYER_SUMMED || role == DMI_LAYER_SUMMED_BF16;
}

static bool in_rows(int role)
{
    return role == DMI_LAYER_ROWS || role == DMI_LAYER_MADE_ROWS;
}

/* Does worker w hold these elements densely, or (pitch not NULL) in rows? *offset: of the first, in its
 * shard. */
static bool usable(const dmi_desc *x, int worker, const dmi_region *wanted, int64_t *offset, int64_t *pitch)
{
    dmi_region want = *wanted;
    if (!dmi_fetch_in_place(x, worker, &want) || !(pitch ? has_rows(&want, pitch) : is_dense(&want))) {
        return false;
    }
    *offset = dmi_region_start(&want);
    return true;
}

/* A reference of the kernel, as it is at this worker. */
typedef struct source {
    dmi_desc sliced;   /* SLICED, MADE */
    dmi_ref ref, work; /* its memory where it is in place; where it is not */
    bool *in_place;    /* a slice of this worker each */
    bool joint;        /* SUMMED: later, together with others */
    bool direct; /* MADE: all slices of all workers are in place; SUMMED: the only slice makes the operand */
    const dmi_desc *x;
    const cut *cut;
    dmi_mark done; /* MADE: it has been made */
} source;

static int64_t slice_count(const void *context, int worker)
{
    const source *s = context;
    return dmi_desc_region_count(&s->sliced, worker);
}

static void slice_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const source *s = context;
    dmi_desc_region(&s->sliced, worker, which, want);
}

static int64_t whole_count(const void *context, int worker)
{
    const source *s = context;
    for (int i = 0; i < s->cut->count; i++) {
        if (s->cut->map[i] == worker) {
            return dmi_layer_elements(s->x) > 0;
        }
    }
    return 0;
}

static void whole_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const source *s = context;
    (void)worker, (void)which;
    *want = (dmi_region){.ndim = s->x->ndim, .count = dmi_layer_elements(s->x)};
    for (int d = 0; d < want->ndim; d++) {
        want->dim[d] = dmi_dimset_interval(0, s->x->extent[d]);
    }
    dmi_region_dense(want, 0);
}

/* Makes the steps that fetch it, as a whole or in slices. */
static void fetch(dmi_builder *b, source *s, dm_dtype dtype, int role, dmi_mark done)
{
    bool whole = role == DMI_LAYER_WHOLE;
    int64_t (*count)(const void *, int) = whole ? whole_count : slice_count;
    void (*region)(const void *, int, int64_t, dmi_region *) = whole ? whole_region : slice_region;
    int64_t n = count(s, b->me), offset, pitch, elements = 0;
    bool all = true;
    s->in_place = dmi_build_alloc(b, (size_t)n + 1);
    for (int64_t i = 0; i < n && !b->failed; i++) {
        dmi_region want;
        region(s, b->me, i, &want);
        s->in_place[i] =
            s->x->dtype == dtype && usable(s->x, b->me, &want, &offset, in_rows(role) ? &pitch : NULL);
        all = all && s->in_place[i];
        elements += want.count;
    }
    if (!all) {
        s->work = dmi_ref_work(dmi_build_work(b, elements * dmi_dtype_bytes(dtype)), DMI_WRITE);
    }
    dmi_plan_fetch(b,
                   &(dmi_fetch){.src = s->x,
                                .src_ref = s->ref,
                                .dst_dtype = dtype,
                                .dst_ref = s->work,
                                .count = count,
                                .want = region,
                                .context = s,
                                .skip = s->in_place},
                   NULL, done);
    s->work.mode = DMI_READ;
}

/* Libraries write rows that lie apart only where all begin at 16 bytes. */
static bool is_aligned(const dmi_desc *x, int64_t offset, int64_t pitch)
{
    return pitch == x->extent[x->ndim - 1] || (offset | pitch) * dmi_dtype_bytes(x->dtype) % 16 == 0;
}

/* Is what is made written where it belongs, by all workers? All must agree. */
static bool is_direct(const dmi_builder *b, const source *s, dm_dtype dtype, bool rows)
{
    bool direct = s->x->dtype == dtype && s->x->layout->replicas <= 1;
    for (int w = 0; w < b->profile->workers && direct; w++) {
        for (int64_t i = 0; i < slice_count(s, w) && direct; i++) {
            dmi_region want;
            int64_t offset, pitch;
            slice_region(s, w, i, &want);
            direct = usable(s->x, w, &want, &offset, rows ? &pitch : NULL) &&
                     (!rows || is_aligned(s->x, offset, pitch));
        }
    }
    return direct;
}

static int64_t home_count(const void *context, int worker)
{
    return dmi_desc_region_count(((const source *)context)->x, worker);
}

static void home_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    dmi_desc_region(((const source *)context)->x, worker, which, want);
}

/* What is made goes from workspace to where it belongs. */
static void bring_home(dmi_builder *b, const source *s)
{
    dmi_mark done = {0};
    dmi_ref from = s->work, to = s->ref;
    from.mode = DMI_READ;
    to.mode = DMI_WRITE;
    dmi_plan_fetch_after(b,
                         &(dmi_fetch){.src = &s->sliced,
                                      .src_ref = from,
                                      .dst_dtype = s->x->dtype,
                                      .dst_ref = to,
                                      .count = home_count,
                                      .want = home_region,
                                      .context = s},
                         NULL, s->done, done);
}

/* Have its sums no scale? */
static bool is_plain(int kernel)
{
    return kernel == DMI_KERNEL_conv_weights || kernel == DMI_KERNEL_inner_weights ||
           kernel == DMI_KERNEL_relu_sums;
}

/* Does the only slice make the whole operand where it lies? Sums by factors of the call, and those of rounded
 * addends, are made by a kernel. */
static bool is_only(const dmi_builder *b, const dmi_call *call, const dmi_layer *layer, const source *s,
                    const dmi_layer_ref *ref)
{
    dmi_region want;
    int64_t offset;
    bool plain = is_plain(layer->kernel) && layer->kernel != DMI_KERNEL_relu_sums;
    if (!plain || s->cut->count != 1 || b->profile->workers != 1 || call->args.i[DMI_LAYER_KEEPS] ||
        s->x->dtype != ref->dtype || ref->role != DMI_LAYER_SUMMED || dmi_layer_elements(s->x) == 0) {
        return false;
    }
    whole_region(s, b->me, 0, &want);
    return usable(s->x, b->me, &want, &offset, NULL);
}

typedef struct planning {
    dmi_builder *b;
    const dmi_call *call;
    const dmi_layer *layer;
    cut cut;
    int refs, nothing; /* nothing: workspace that stands for what the call, or a slice, has nothing of */
    source source[DMI_DNN_REFS];
    dmi_mark ready; /* what the kernels read is there */
    dmi_mark done;  /* they have run */
} planning;

/* What is to be added up, but for when and where it is there. */
static dmi_layer_sum sum_of(const planning *p, int r)
{
    const dmi_layer_ref *ref = &p->layer->ref[r];
    const source *s = &p->source[r];
    return (dmi_layer_sum){.b = p->b,
                           .out = s->x,
                           .ref = s->ref,
                           .count = p->cut.count,
                           .map = p->cut.map,
                           .dtype = ref->dtype,
                           .wire = ref->role == DMI_LAYER_SUMMED ? ref->dtype : DM_BF16,
                           .keeps = p->call->args.i[DMI_LAYER_KEEPS],
                           .unscaled = is_plain(p->layer->kernel)};
}

static dm_status prepare(planning *p, int r)
{
    dmi_builder *b = p->b;
    const dmi_layer_ref *ref = &p->layer->ref[r];
    source *s = &p->source[r];
    int64_t mine = 0;
    s->cut = &p->cut;
    if (ref->role == DMI_LAYER_NONE || b->failed) {
        return DM_OK;
    }
    for (int i = 0; i < p->cut.count; i++) {
        mine += p->cut.map[i] == b->me;
    }
    if (ref->role == DMI_LAYER_SCRATCH) {
        s->work =
            dmi_ref_work(dmi_build_work(b, mine > 0 ? ref->count * dmi_dtype_bytes(ref->dtype) : 0), DMI_WRITE);
        return DM_OK;
    }
    s->x = &p->call->operand[ref->operand].desc;
    s->ref = dmi_ref_operand(ref->operand, DMI_READ);
    if (sums(ref->role)) {
        s->direct = is_only(b, p->call, p->layer, s, ref);
        if (s->direct) {
            return DM_OK;
        }
        dmi_layer_sum sum = sum_of(p, r);
        int work = 0;
        s->joint = dmi_joint_add(b, p->call, ref->operand, &sum, &work);
        int64_t bytes = dmi_layer_elements(s->x) * dmi_dtype_bytes(ref->dtype);
        s->work = dmi_ref_work(s->joint ? work : dmi_build_work(b, mine * bytes), DMI_WRITE);
        return DM_OK;
    }
    if (ref->role != DMI_LAYER_WHOLE) {
        dm_status status = lay_out(b, &p->cut, s->x, ref->dtype, &s->sliced);
        if (status != DM_OK || b->failed) {
            return status;
        }
    }
    if (makes(ref->role)) {
        s->direct = is_direct(b, s, ref->dtype, ref->role == DMI_LAYER_MADE_ROWS);
        if (!s->direct) {
            int64_t count = dmi_layout_shard_count(s->sliced.layout, b->me);
            s->work = dmi_ref_work(dmi_build_work(b, count * dmi_dtype_bytes(ref->dtype)), DMI_WRITE);
        }
        return DM_OK;
    }
    fetch(b, s, ref->dtype, ref->role, p->ready);
    return DM_OK;
}

/* Reference r of the kernel for slice `slice`, this worker's `own`th. */
static dmi_ref refer(planning *p, int r, int slice, int64_t own)
{
    const dmi_layer_ref *ref = &p->layer->ref[r];
    dmi_dnn *desc = p->layer->desc;
    source *s = &p->source[r];
    bool whole = ref->role == DMI_LAYER_WHOLE, made = makes(ref->role), rows = in_rows(ref->role);
    bool sliced = reads_slices(ref->role);
    dmi_ref out = s->work;
    dmi_region want;
    desc->type[r] = ref->dtype;
    desc->mode[r] = sliced || whole ? DMI_READ : DMI_WRITE;
    desc->offset[r] = 0;
    desc->count[r] = ref->role == DMI_LAYER_NONE      ? 0
                     : ref->role == DMI_LAYER_SCRATCH ? ref->count
                                                      : dmi_layer_elements(s->x);
    bool only = sums(ref->role) && s->direct;
    if (sums(ref->role) && !only) {
        desc->offset[r] = own * desc->count[r];
    }
    if (sliced || made) {
        desc->count[r] = length(&p->cut, slice) * dmi_layer_sample(s->x);
    }
    if (desc->count[r] == 0) {
        return dmi_ref_work(p->nothing, DMI_READ);
    }
    if (rows) {
        desc->pitch[r] = s->x->extent[s->x->ndim - 1];
    }
    if (sliced || made || whole || only) {
        (whole || only ? whole_region : slice_region)(s, p->b->me, whole ? 0 : own, &want);
        bool here = made || only ? s->direct : s->in_place[whole ? 0 : own];
        if (here) {
            out = s->ref;
            (void)usable(s->x, p->b->me, &want, &desc->offset[r], rows ? &desc->pitch[r] : NULL);
        } else {
            desc->offset[r] = dmi_region_start(&want);
        }
    }
    out.mode = (uint8_t)desc->mode[r];
    return out;
}

static void run_slices(planning *p)
{
    dmi_builder *b = p->b;
    int64_t own = 0;
    for (int i = 0; i < p->cut.count && !b->failed; i++) {
        dmi_ref refs[DMI_DNN_REFS];
        if (p->cut.map[i] != b->me) {
            continue;
        }
        for (int r = 0; r < p->refs; r++) {
            refs[r] = refer(p, r, i, own);
        }
        p->layer->desc->first = i * p->cut.size;
        p->layer->desc->samples = length(&p->cut, i);
        dmi_mark after = {0};
        dmi_mark_merge(after, p->ready);
        dmi_mark_merge(after, p->done); /* scratch is shared */
        dmi_step *step = dmi_build_kernel(b, p->layer->kernel, p->layer->desc,
                                          dmi_kernels[p->layer->kernel].desc_bytes, refs, p->refs, after);
        dmi_mark_step(p->done, step);
        own++;
    }
}

dm_status dmi_plan_layer(dmi_builder *b, const dmi_call *call, const dmi_layer *layer)
{
    planning p = {.b = b, .call = call, .layer = layer};
    dm_status status = DM_OK;
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    p.nothing = dmi_build_work(b, 16);
    while (p.refs < DMI_DNN_REFS && layer->ref[p.refs].dtype != 0) {
        p.refs++;
    }
    cut_batch(b, &call->operand[layer->like].desc, layer->slices, &p.cut);
    for (int r = 0; r < p.refs && status == DM_OK && !b->failed; r++) {
        status = prepare(&p, r);
    }
    if (status != DM_OK || b->failed) {
        return status;
    }
    int first = b->plan->nstep;
    run_slices(&p);
    for (int r = 0; r < p.refs && status == DM_OK && !b->failed; r++) {
        source *s = &p.source[r];
        memcpy(s->done, p.done, sizeof s->done);
        if (makes(layer->ref[r].role) && !s->direct) {
            bring_home(b, s);
        } else if (sums(layer->ref[r].role) && !s->direct) {
            dmi_layer_sum sum = sum_of(&p, r);
            sum.work = s->work.index;
            memcpy(sum.ready, p.done, sizeof sum.ready);
            if (s->joint) {
                dmi_joint_made(b, sum.work, first, r);
            } else {
                status = dmi_plan_layer_sums(&sum, 1);
            }
        }
    }
    return status;
}
