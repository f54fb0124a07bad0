/* Making plans: steps, workspace, waits. */
#include "plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *dmi_step_name(int kind)
{
    return kind == DMI_STEP_PUSH                              ? "push"
           : kind == DMI_STEP_EXPECT                          ? "expect"
           : kind == DMI_STEP_EXCHANGE                        ? "exchange"
           : kind >= DMI_STEP_KERNEL && kind < DMI_STEP_KINDS ? dmi_kernels[kind - DMI_STEP_KERNEL].name
                                                              : "?";
}

void *dmi_build_alloc(dmi_builder *b, size_t bytes)
{
    void *p = b->failed ? NULL : dmi_arena_alloc(&b->plan->arena, bytes);
    b->failed = b->failed || !p;
    return p;
}

struct dmi_built_layout {
    dmi_layout *layout;
    struct dmi_built_layout *next;
};

dm_status dmi_build_layout(dmi_builder *b, const dmi_layout_spec *spec, const dmi_layout **out)
{
    struct dmi_built_layout *made = dmi_build_alloc(b, sizeof *made);
    if (!made) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a plan");
    }
    made->layout = NULL;
    dm_status status = dmi_layout_create(spec, &made->layout);
    if (status == DM_OK) {
        made->next = b->layouts;
        b->layouts = made;
        *out = made->layout;
    }
    return status;
}

dm_status dmi_build_like(dmi_builder *b, const dmi_desc *x, dm_dtype dtype, dmi_desc *desc, dmi_value *value)
{
    bool whole = memcmp(x->extent, x->layout->shape, (size_t)x->ndim * sizeof *x->extent) == 0;
    *desc = *x;
    if (!whole) {
        dmi_layout_spec spec;
        const dmi_layout *layout = NULL;
        dmi_desc_like(x, &spec);
        dm_status status = dmi_build_layout(b, &spec, &layout);
        if (status != DM_OK) {
            return status;
        }
        *desc = dmi_desc_whole(dtype, layout, 0);
    }
    desc->dtype = dtype;
    int64_t count = b->me < b->profile->workers ? dmi_layout_shard_count(desc->layout, b->me) : 0;
    int work = dmi_build_work(b, count * dmi_dtype_bytes(dtype));
    *value = (dmi_value){.desc = desc, .ref = dmi_ref_work(work, DMI_READ)};
    return DM_OK;
}

void dmi_build_end(dmi_builder *b)
{
    free(b->phase_end);
    for (; b->layouts; b->layouts = b->layouts->next) {
        dmi_layout_destroy(b->layouts->layout);
    }
}

int dmi_build_work(dmi_builder *b, int64_t bytes)
{
    dmi_plan *plan = b->plan;
    if (plan->nwork == b->work_room) {
        int room = b->work_room ? 2 * b->work_room : 8;
        int64_t *grown = realloc(plan->work_bytes, (size_t)room * sizeof *grown);
        if (!grown) {
            b->failed = true;
            return 0;
        }
        plan->work_bytes = grown;
        b->work_room = room;
    }
    plan->work_bytes[plan->nwork] = bytes;
    return plan->nwork++;
}

dmi_ref dmi_ref_work(int work, int mode)
{
    return (dmi_ref){.kind = DMI_REF_WORK, .mode = (uint8_t)mode, .index = (uint16_t)work, .number = (uint32_t)work};
}

dmi_ref dmi_ref_operand(int operand, int mode)
{
    return (dmi_ref){.kind = DMI_REF_OPERAND, .mode = (uint8_t)mode, .index = (uint16_t)operand};
}

static int lane_of(const dmi_builder *b, int lane)
{
    return b->channel * DMI_CHANNEL_LANES + lane;
}

void dmi_build_channel(dmi_builder *b, int channel)
{
    if (channel != b->channel) { /* paced pushes of the other count its own payloads */
        b->channel = channel;
        b->before_round = 0;
        b->pushed = false;
    }
}

/* After out-of-memory geometries may be incomplete, so nothing reads them. */
static dmi_step *scrap(dmi_builder *b)
{
    memset(&b->scrap, 0, sizeof b->scrap);
    b->scrap.ref = b->scrap_ref;
    return &b->scrap;
}

static dmi_step *new_step(dmi_builder *b, int kind, int lane, int nref, const dmi_mark after)
{
    dmi_plan *plan = b->plan;
    dmi_ref *refs = dmi_build_alloc(b, (size_t)nref * sizeof *refs);
    if (!b->failed && plan->nstep == b->step_room) {
        int room = b->step_room ? 2 * b->step_room : 16;
        dmi_step *grown = realloc(plan->step, (size_t)room * sizeof *grown);
        if (grown) {
            plan->step = grown;
            b->step_room = room;
        } else {
            b->failed = true;
        }
    }
    if (b->failed) {
        return scrap(b);
    }
    dmi_step *step = &plan->step[plan->nstep++];
    memset(step, 0, sizeof *step);
    step->kind = (uint8_t)kind;
    step->lane = (uint8_t)lane;
    step->peer = -1;
    step->nref = (uint8_t)nref;
    step->ref = refs;
    step->ordinal = ++plan->lane_steps[lane];
    step->scalar[0] = DMI_SCALAR_ONE;
    step->scalar[1] = DMI_SCALAR_ZERO;
    if (after) {
        memcpy(step->wait, after, sizeof step->wait);
    }
    return step;
}

static void *keep(dmi_builder *b, const void *from, size_t size)
{
    void *p = dmi_build_alloc(b, size);
    if (p) {
        memcpy(p, from, size);
    }
    return p;
}

/* A transfer between GPUs without direct access is cut into chunks, the same ones at both ends. */
typedef struct chunks {
    dmi_builder *b;
    dmi_step *(*each)(dmi_builder *b, int peer, dmi_ref ref, const dmi_copy *geometry, const dmi_mark after);
    int peer;
    dmi_ref ref;
    const uint32_t *after;
    uint8_t of;
    dmi_step *last;
} chunks;

static void one_chunk(void *context, const dmi_copy *geometry)
{
    chunks *p = context;
    p->last = p->each(p->b, p->peer, p->ref, geometry, p->after);
    p->last->of = p->of;
}

static dmi_step *in_chunks(chunks p, const dmi_copy *geometry)
{
    const dmi_profile *profile = p.b->profile;
    bool far = profile->gpu && profile->host_of && p.peer < profile->workers && p.b->me < profile->workers &&
               profile->host_of[p.peer] != profile->host_of[p.b->me];
    if (!far || p.b->failed) {
        one_chunk(&p, geometry);
        return p.last;
    }
    dmi_copy_split(p.b, geometry, DMI_MAX(profile->chunk, profile->gpu_chunk), one_chunk, &p);
    return p.last ? p.last : scrap(p.b);
}

/* Pacing: a large push waits for all payloads that came to this worker up to the end of the round of its last
 * large push. Without pacing, senders drift apart until two push to one receiver. Each then gets half of the
 * link. Both go on to the same next receiver, so they stay together, and other links rest. A worker without a
 * push in a round does not wait for that round; otherwise workers that send in different rounds would send one
 * after another. A push waits only for EXPECTs of earlier rounds, and those wait for pushes of their own round,
 * so every round ends. */
void dmi_build_round(dmi_builder *b)
{
    if (b->pushed) {
        b->before_round = b->plan->lane_steps[lane_of(b, DMI_LANE_RECV)];
        b->pushed = false;
    }
}

static dmi_step *push(dmi_builder *b, int peer, dmi_ref src, const dmi_copy *geometry, const dmi_mark after)
{
    if (b->failed) {
        return scrap(b);
    }
    assert(peer != b->me && geometry->src_dtype == geometry->dst_dtype && geometry->count > 0);
    dmi_step *step = new_step(b, DMI_STEP_PUSH, lane_of(b, DMI_LANE_SEND), 1, after);
    step->peer = peer;
    step->desc = keep(b, geometry, sizeof *geometry);
    step->bytes = geometry->count * dmi_dtype_bytes(geometry->src_dtype);
    step->ref[0] = src;
    step->ref[0].mode = DMI_READ;
    uint32_t *wait = &step->wait[lane_of(b, DMI_LANE_RECV)];
    step->unpaced = *wait;
    if (b->profile->pace_bytes > 0 && step->bytes >= b->profile->pace_bytes) {
        *wait = DMI_MAX(*wait, b->before_round);
        b->pushed = true;
    }
    b->plan->bytes_sent += step->bytes;
    b->plan->messages_sent++;
    return step;
}

dmi_step *dmi_build_push(dmi_builder *b, int peer, dmi_ref src, const dmi_copy *geometry, const dmi_mark after)
{
    return in_chunks((chunks){.b = b, .each = push, .peer = peer, .ref = src, .after = after}, geometry);
}

static dmi_step *expect_of(dmi_builder *b, int peer, int nref, dmi_ref dst, const dmi_copy *geometry,
                           const dmi_mark after)
{
    if (b->failed) {
        return scrap(b);
    }
    assert(peer != b->me && geometry->src_dtype == geometry->dst_dtype && geometry->count > 0);
    dmi_step *step = new_step(b, DMI_STEP_EXPECT, lane_of(b, DMI_LANE_RECV), nref, after);
    step->peer = peer;
    step->desc = keep(b, geometry, sizeof *geometry);
    step->bytes = geometry->count * dmi_dtype_bytes(geometry->src_dtype);
    step->ref[0] = dst;
    step->ref[0].mode = DMI_WRITE;
    b->plan->bytes_received += step->bytes;
    b->plan->messages_received++;
    return step;
}

static dmi_step *expect(dmi_builder *b, int peer, dmi_ref dst, const dmi_copy *geometry, const dmi_mark after)
{
    return expect_of(b, peer, 1, dst, geometry, after);
}

dmi_step *dmi_build_expect_holding(dmi_builder *b, int peer, dmi_ref dst, dmi_ref held,
                                   const dmi_copy *geometry, const dmi_mark after)
{
    assert(b->profile->one_space && !b->profile->gpu); /* GPUs' executors know one reference of a transfer */
    dmi_step *step = expect_of(b, peer, 2, dst, geometry, after);
    step->ref[1] = held;
    step->ref[1].mode = DMI_READ;
    return step;
}

dmi_step *dmi_build_expect(dmi_builder *b, int peer, dmi_ref dst, const dmi_copy *geometry,
                           const dmi_mark after)
{
    return dmi_build_expect_of(b, peer, dst, dst, geometry, after);
}

dmi_step *dmi_build_expect_of(dmi_builder *b, int peer, dmi_ref dst, dmi_ref from, const dmi_copy *geometry,
                              const dmi_mark after)
{
    uint8_t of = from.kind == DMI_REF_OPERAND ? (uint8_t)(from.index + 1) : 0;
    return in_chunks((chunks){.b = b, .each = expect, .peer = peer, .ref = dst, .after = after, .of = of},
                     geometry);
}

/* The workspace of the channel's kernels, of at least so many bytes. */
static dmi_ref kernel_work(dmi_builder *b, int64_t bytes)
{
    int *work = &b->kernel_work[b->channel];
    *work = *work ? *work : dmi_build_work(b, 0) + 1;
    if (!b->failed) {
        int64_t *most = &b->plan->work_bytes[*work - 1];
        *most = DMI_MAX(*most, bytes);
    }
    return dmi_ref_work(*work - 1, DMI_WRITE);
}

dmi_step *dmi_build_kernel(dmi_builder *b, int kernel, const void *desc, size_t size, const dmi_ref *refs,
                           int nref, const dmi_mark after)
{
    if (b->failed) {
        return scrap(b);
    }
    int64_t workspace = dmi_kernel_workspace(kernel, desc, &b->profile->facts);
    int total = nref + (workspace > 0);
    assert(total <= DMI_MAX_REFS && size == dmi_kernels[kernel].desc_bytes);
    dmi_step *step = new_step(b, DMI_STEP_KERNEL + kernel, lane_of(b, DMI_LANE_COMPUTE), total, after);
    step->desc = keep(b, desc, size);
    b->plan->waits = b->plan->waits || dmi_kernels[kernel].traits & DMI_TRAIT_WAITS;
    step->workspace = workspace;
    for (int i = 0; i < total; i++) {
        step->ref[i] = i < nref ? refs[i] : kernel_work(b, workspace);
        step->ref[i].from = 0;
        step->ref[i].to = INT64_MAX;
    }
    return step;
}

void dmi_mark_step(dmi_mark mark, const dmi_step *step)
{
    mark[step->lane] = DMI_MAX(mark[step->lane], step->ordinal);
}

void dmi_mark_merge(dmi_mark into, const dmi_mark from)
{
    for (int i = 0; i < DMI_LANES; i++) {
        into[i] = DMI_MAX(into[i], from[i]);
    }
}
