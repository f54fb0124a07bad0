/* The fused algorithm. c stays. b, and a if it is not in place, are gathered owner by owner while one kernel
 * multiplies. The kernel starts with the worker's own rows of b and waits for each chunk of the others when it
 * needs it. c is rounded once. Serves 16-bit operands whose shards are plain rectangles, where each owner of b
 * (and of a) holds one range of k. */
#include "ops/product/gemm.h"

#include <string.h>

enum { STEP_K = 64, STEP_N = 256, ALIGN = 8, MOST_PANELS = 8 };
#define PUSH_BYTES (INT64_C(16) << 20) /* of a panel from one owner, about */

static bool interval(const dmi_dimset *set)
{
    return set->count == 0 ||
           dmi_dimset_index(set, set->count - 1) - dmi_dimset_index(set, 0) == set->count - 1;
}

/* The one region of an operand that a worker holds; false: none, or several. */
static bool shard_of(const dmi_desc *desc, int worker, dmi_region *out)
{
    if (dmi_desc_region_count(desc, worker) != 1) {
        return false;
    }
    dmi_desc_region(desc, worker, 0, out);
    return out->count > 0;
}

/* Does every row begin at a multiple of 16 bytes? */
static bool aligned(const dmi_region *at)
{
    return at->stride[1] == 1 && at->stride[0] % ALIGN == 0 && dmi_region_start(at) % ALIGN == 0;
}

/* Can the owner's shard be pushed, as one rectangle, to whoever needs it? */
static bool pushable(const dmi_product *p, int which, int owner)
{
    dmi_region at;
    if (dmi_desc_region_count(p->op[which], owner) == 0) {
        return true;
    }
    if (dmi_desc_region_count(p->op[which], owner) > 1 || p->op[which]->layout->replicas > 1) {
        return false;
    }
    dmi_desc_region(p->op[which], owner, 0, &at);
    return at.count == 0 || (interval(&at.dim[0]) && interval(&at.dim[1]) && aligned(&at) &&
                             at.dim[p->outer_dim[which]].count == p->op[which]->extent[p->outer_dim[which]]);
}

static bool side_serves(const dmi_product *p, int which, int worker, const dmi_region *c)
{
    dmi_region at;
    if (dmi_product_gathered_in_place(p, which, worker, c, &at)) {
        return aligned(&at);
    }
    dmi_product_gathered(p, which, c, &at);
    for (int w = 0; w < p->b->profile->workers; w++) {
        if (!pushable(p, which, w)) {
            return false;
        }
    }
    return at.dim[1].count % ALIGN == 0;
}

int64_t dmi_fused_bytes(const dmi_product *p)
{
    int64_t most = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        int64_t bytes = 0;
        dmi_product_c(p, w, &c);
        for (int o = 0; o < 2 && c.count > 0; o++) {
            if (!dmi_product_gathered_in_place(p, o, w, &c, &at) && !(o == 1 && p->replica)) {
                dmi_product_gathered(p, o, &c, &at);
                bytes += at.count * dmi_dtype_bytes(p->kernel_type);
            }
        }
        most = DMI_MAX(most, bytes);
    }
    return most;
}

bool dmi_fused_serves(const dmi_product *p)
{
    bool comes = false;
    bool as_they_are = p->op[0]->dtype == p->kernel_type && p->op[1]->dtype == p->kernel_type;
    if (!p->b->profile->gemm_fused || !as_they_are || dmi_dtype_bytes(p->kernel_type) != 2 ||
        p->c != p->user_c || (p->c->dtype != p->kernel_type && p->c->dtype != DM_F32) ||
        p->b->profile->workers > DMI_FUSED_MOST / 2 || p->k > DMI_FUSED_MOST_K) {
        return false;
    }
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        dmi_product_c(p, w, &c);
        if (dmi_desc_region_count(p->c, w) > 1) {
            return false;
        }
        if (c.count == 0) {
            continue;
        }
        if (!interval(&c.dim[0]) || !interval(&c.dim[1]) || c.dim[0].count > DMI_FUSED_MOST_M ||
            c.dim[1].count > DMI_FUSED_MOST_N || !side_serves(p, 0, w, &c) || !side_serves(p, 1, w, &c)) {
            return false;
        }
        if (dmi_desc_region_count(p->user_c, w) == 1) {
            dmi_desc_region(p->user_c, w, 0, &at);
            if (!aligned(&at)) {
                return false;
            }
        }
        comes = comes || !dmi_product_gathered_in_place(p, 1, w, &c, &at);
    }
    return comes;
}

/* Measured on H200: smaller shards arrive so fast that products of slices of k, without a gathered operand, are
 * faster. */
bool dmi_fused_pays(const dmi_product *p)
{
    return p->n * p->k * dmi_dtype_bytes(p->kernel_type) / p->op[1]->layout->group >= INT64_C(16) << 20;
}

int dmi_fused_moving(const dmi_product *p)
{
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        dmi_product_c(p, w, &c);
        if (c.count > 0 && (c.dim[1].count != p->n || !dmi_product_gathered_in_place(p, 0, w, &c, &at) ||
                            dmi_product_gathered_in_place(p, 1, w, &c, &at))) {
            return -1; /* b does not move, or not whole */
        }
    }
    return 1;
}

typedef struct gathering {
    dmi_product *p;
    dmi_region c;
    dmi_ref gathered[2];   /* of a and b here */
    int64_t panels, width; /* number of panels, and their width in columns of the widest c */
    dmi_fused_chunk *chunk;
    int chunks;
    uint32_t *received; /* [workers] EXPECTs from each so far in the plan */
    dmi_mark arrived, ready;
} gathering;

/* Panel q of what worker `to` needs of operand `which`, with its memory there; false: nothing. */
static bool wanted(const gathering *g, int which, int to, int64_t q, dmi_region *out)
{
    const dmi_product *p = g->p;
    dmi_region c, gathered, at;
    dmi_product_c(p, to, &c);
    if (c.count == 0 || dmi_product_gathered_in_place(p, which, to, &c, &at)) {
        return false;
    }
    dmi_product_gathered(p, which, &c, &gathered);
    if (which == 1 && p->replica && !dmi_fetch_in_place(p->replica, to, &gathered)) {
        p->b->failed = true;
        return false;
    }
    if (which == 0) {
        *out = gathered;
        return true;
    }
    int64_t lo[2] = {0, 0}, extent[2] = {gathered.dim[0].count, gathered.dim[1].count}, from = q * g->width;
    int d = p->outer_dim[1];
    if (from >= extent[d]) {
        return false;
    }
    int64_t first = dmi_dimset_index(&gathered.dim[d], 0);
    lo[d] = first + from;
    extent[d] = DMI_MIN(g->width, extent[d] - from);
    dmi_region_clip(&gathered, lo, extent, out);
    out->dim[d].origin -= lo[d]; /* back to indices of the whole operand */
    return true;
}

/* The overlap of the owner's shard and the panel that `to` needs. */
static bool share(const gathering *g, int which, int owner, int to, int64_t q, dmi_copy *copy, dmi_region *have)
{
    dmi_region want;
    dm_dtype type = g->p->op[which]->dtype;
    return shard_of(g->p->op[which], owner, have) && wanted(g, which, to, q, &want) &&
           dmi_region_copy(g->p->b, have, &want, type, type, copy);
}

static void exchange_round(gathering *g, int which, int64_t q, int t)
{
    dmi_product *p = g->p;
    int workers = p->b->profile->workers, me = p->b->me, from = (me - t + workers) % workers,
        to = (me + t) % workers;
    dmi_copy copy;
    dmi_region have;
    if (share(g, which, from, me, q, &copy, &have)) {
        dmi_mark_step(g->arrived, dmi_build_expect_of(p->b, from, g->gathered[which],
                                                      dmi_ref_operand(which, DMI_READ), &copy, NULL));
        g->received[from]++;
        /* The kernel waits for a's rows like for b's rows of the same k, for all columns: their owners may
         * differ. */
        int64_t k0 = dmi_dimset_index(&have.dim[p->inner_dim[which]], 0), n0 = which == 1 ? q * g->width : 0;
        int64_t n1 = which == 1 ? DMI_MIN(n0 + g->width, g->c.dim[1].count) : g->c.dim[1].count;
        g->chunk[g->chunks++] = (dmi_fused_chunk){.k0 = k0,
                                                  .k1 = k0 + have.dim[p->inner_dim[which]].count,
                                                  .n0 = n0,
                                                  .n1 = n1,
                                                  .peer = from,
                                                  .nth = g->received[from]};
    }
    if (share(g, which, me, to, q, &copy, &have)) {
        dmi_build_push(p->b, to, dmi_ref_operand(which, DMI_READ), &copy, NULL);
    }
}

/* Copies the worker's shard into the gathered operand, for this kernel or for a later product. */
static void copy_own(gathering *g, int which, dmi_ref into, dmi_mark done)
{
    dmi_copy copy;
    dmi_region have;
    for (int64_t q = 0; q < (which == 1 ? g->panels : 1); q++) {
        if (share(g, which, g->p->b->me, g->p->b->me, q, &copy, &have)) {
            dmi_ref refs[2] = {dmi_ref_operand(which, DMI_READ), into};
            dmi_mark_step(done, dmi_build_kernel(g->p->b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, NULL));
        }
    }
}

/* own: the kernel reads the worker's own rows of b (and of a) in its shard. */
static void multiply(gathering *g, const bool own[2], const dmi_region mine[2])
{
    dmi_product *p = g->p;
    dmi_region at[2];
    dmi_matrix_ref c = dmi_product_acc(p);
    dmi_ref refs[5];
    for (int o = 0; o < 2; o++) {
        if (dmi_product_gathered_in_place(p, o, p->b->me, &g->c, &at[o])) {
            refs[o] = dmi_ref_operand(o, DMI_READ);
        } else {
            dmi_product_gathered(p, o, &g->c, &at[o]);
            if (o == 1 && p->replica) {
                (void)dmi_fetch_in_place(p->replica, p->b->me, &at[o]);
            }
            refs[o] = g->gathered[o];
            refs[o].mode = DMI_READ;
        }
    }
    dmi_fused_gemm f = {.gemm = {.dtype = p->kernel_type,
                                 .c_dtype = p->c->dtype,
                                 .trans_a = p->trans[0],
                                 .trans_b = p->trans[1],
                                 .m = g->c.dim[0].count,
                                 .n = g->c.dim[1].count,
                                 .k = p->k,
                                 .lda = at[0].stride[0],
                                 .ldb = at[1].stride[0],
                                 .ldc = c.ld,
                                 .a_offset = dmi_region_start(&at[0]),
                                 .b_offset = dmi_region_start(&at[1]),
                                 .c_offset = c.offset},
                        .chunks = g->chunks,
                        .chunk = g->chunk};
    for (int o = 0; o < 2; o++) {
        if (own[o]) {
            f.own_k0 = dmi_dimset_index(&mine[o].dim[p->inner_dim[o]], 0);
            f.own_k1 = f.own_k0 + mine[o].dim[p->inner_dim[o]].count;
            f.ld_own[o] = mine[o].stride[0];
            f.own_offset[o] = dmi_region_start(&mine[o]) +
                              dmi_dimset_index(&g->c.dim[o], 0) * mine[o].stride[p->outer_dim[o]];
        }
    }
    refs[2] = c.ref;
    refs[3] = dmi_ref_operand(1, DMI_READ);
    refs[4] = dmi_ref_operand(0, DMI_READ);
    dmi_mark_merge(g->ready, g->arrived);
    dmi_step *step = dmi_build_kernel(p->b, DMI_KERNEL_fused, &f, sizeof f, refs, 3 + own[1] + own[0], g->ready);
    step->scalar[0] = p->scalar[0];
    step->scalar[1] = p->beta_zero ? DMI_SCALAR_ZERO : p->scalar[1];
    step->flops = dmi_gemm_flops(&f.gemm);
    dmi_mark_step(p->finished, step);
}

static bool steps_fit(const gathering *g, int which, const dmi_region *mine)
{
    const dmi_product *p = g->p;
    int64_t k0 = dmi_dimset_index(&mine->dim[p->inner_dim[which]], 0),
            k1 = k0 + mine->dim[p->inner_dim[which]].count;
    return k0 % STEP_K == 0 && (k1 % STEP_K == 0 || k1 == p->k) &&
           dmi_dimset_index(&g->c.dim[which], 0) % ALIGN == 0;
}

/* Columns come in panels of about PUSH_BYTES from each owner, the same for all workers. */
static void choose_panels(gathering *g)
{
    const dmi_product *p = g->p;
    int64_t widest = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        widest = c.count > 0 ? DMI_MAX(widest, c.dim[1].count) : widest;
    }
    int64_t bytes = widest * p->k * dmi_dtype_bytes(p->kernel_type) / p->op[1]->layout->group;
    int64_t most = DMI_MAX(1, DMI_MIN(MOST_PANELS, DMI_FUSED_MOST / p->b->profile->workers - 1));
    g->panels = DMI_MAX(1, DMI_MIN(most, bytes / PUSH_BYTES));
    g->width = ((widest + g->panels - 1) / g->panels + STEP_N - 1) / STEP_N * STEP_N;
    g->panels = (widest + g->width - 1) / g->width;
}

/* What comes from each worker in the plan so far: those of earlier calls of a program come first. */
static void count_received(const dmi_builder *b, uint32_t *received)
{
    memset(received, 0, (size_t)b->profile->workers * sizeof *received);
    for (int i = 0; i < b->plan->nstep; i++) {
        const dmi_step *step = &b->plan->step[i];
        if (step->lane == DMI_LANE_RECV && step->peer < b->profile->workers) {
            received[step->peer]++;
        }
    }
}

void dmi_fused_plan(dmi_product *p)
{
    dmi_builder *b = p->b;
    gathering g = {.p = p};
    dmi_region mine[2], at;
    bool comes[2], own[2] = {false, false};
    dmi_product_c(p, b->me, &g.c);
    choose_panels(&g);
    g.chunk = dmi_build_alloc(b, DMI_FUSED_MOST * sizeof *g.chunk);
    g.received = dmi_build_alloc(b, (size_t)b->profile->workers * sizeof *g.received);
    if (b->failed) {
        return;
    }
    count_received(b, g.received);
    for (int o = 0; o < 2 && g.c.count > 0; o++) {
        if (dmi_product_gathered_in_place(p, o, b->me, &g.c, &at)) {
            continue;
        }
        dmi_product_gathered(p, o, &g.c, &at);
        g.gathered[o] =
            o == 1 && p->replica
                ? dmi_ref_operand(DMI_GEMM_REPLICA, DMI_WRITE)
                : dmi_ref_work(dmi_build_work(b, at.count * dmi_dtype_bytes(p->kernel_type)), DMI_WRITE);
    }
    /* The kernel reads the worker's own rows of b, and a's of the same k, in place if its steps fit them. */
    for (int o = 1; o >= 0; o--) {
        comes[o] = g.c.count > 0 && !dmi_product_gathered_in_place(p, o, b->me, &g.c, &at);
        own[o] = comes[o] && shard_of(p->op[o], b->me, &mine[o]) && steps_fit(&g, o, &mine[o]);
    }
    /* The kernel does not wait in its own range of k, so no payload of a may belong to that range. */
    own[0] = own[0] && own[1] && dmi_dimset_same(&mine[0].dim[p->inner_dim[0]], &mine[1].dim[p->inner_dim[1]]);
    own[1] = own[1] && (own[0] || !comes[0]);
    for (int o = 0; o < 2; o++) {
        if (comes[o] && !own[o]) {
            copy_own(&g, o, g.gathered[o], g.ready);
        }
    }
    for (int64_t q = 0; q < g.panels && !b->failed; q++) {
        for (int t = 1; t < b->profile->workers; t++) {
            dmi_build_round(b);
            if (q == 0) {
                exchange_round(&g, 0, 0, t);
            }
            exchange_round(&g, 1, q, t);
        }
    }
    if (g.c.count > 0) {
        multiply(&g, own, mine);
    }
    if (p->replica && own[1]) { /* beside the received chunks, for later products */
        dmi_mark done = {0};
        copy_own(&g, 1, g.gathered[1], done);
    }
}
