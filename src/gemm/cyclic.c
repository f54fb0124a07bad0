/* The cyclic product: at outer stage s a worker multiplies with the blocks of the worker s places on; the owner
 * pushes each block straight to the worker that needs it next, so that every stage is a permutation of the
 * workers. */
#include "gemm/gemm.h"

#include <string.h>

enum { MOST_BLOCKS = 64 }; /* inner blocks a worker before the stationary form is better */

/* The ring of owners of the moving operand that serve one worker: its replica's workers. */
typedef struct ring {
    const dmi_layout *layout;
    int size;
} ring;

static ring ring_of(const dmi_product *p, int which)
{
    const dmi_layout *l = p->op[which]->layout;
    return (ring){l, l->group};
}

/* An owner's place in the ring. */
static int place(const ring *r, int worker)
{
    return r->layout->position[worker] % r->size;
}

/* Where worker w, which holds part of c, begins: with its own block where it has one. Copies of c must come out
 * alike to the last bit, so where c is replicated the order depends on the part of c only. */
static int begin(const ring *r, const dmi_layout *c, int worker)
{
    int at = c->replicas > 1 ? -1 : r->layout->position[worker];
    return (at >= 0 ? at : c->position[worker] % c->group) % r->size;
}

static int owner_at(const ring *r, int replica, int at)
{
    return r->layout->workers[replica * r->size + at % r->size];
}

static dmi_dimset everything(int64_t count)
{
    return dmi_dimset_interval(0, count);
}

static bool whole_interval(const dmi_dimset *set, int64_t count)
{
    dmi_dimset all = everything(count);
    return dmi_dimset_same(set, &all);
}

bool dmi_cyclic_serves(const dmi_product *p, int which, int64_t *blocks)
{
    int stay = 1 - which;
    int64_t span = which == 0 ? p->m : p->n;
    const dmi_layout *moving = p->op[which]->layout;
    dmi_dimset inner = everything(p->k);
    *blocks = 0;
    if (p->c->layout->kind != DMI_LAYOUT_GRID || moving->kind != DMI_LAYOUT_GRID || moving->ndim != 2) {
        return false;
    }
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        dmi_product_c(p, w, &c);
        if (c.count > 0 && (!whole_interval(&c.dim[which], span) ||
                            !dmi_product_in_place(p, stay, w, &c.dim[stay], &inner, &at))) {
            return false;
        }
        if (dmi_desc_region_count(p->op[which], w) > 0) { /* intervals of blocks: a closed form of the runs */
            dmi_desc_region(p->op[which], w, 0, &at);
            int64_t n = at.count > 0;
            for (int d = 0; d < 2 && at.count > 0; d++) {
                n *= at.dim[d].g > 1 ? (at.dim[d].count + at.dim[d].block - 1) / at.dim[d].block + 1 : 1;
            }
            *blocks = DMI_MAX(*blocks, n);
        }
    }
    return *blocks <= MOST_BLOCKS;
}

bool dmi_cyclic_single(const dmi_product *p, int which)
{
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region at;
        if (dmi_desc_region_count(p->op[which], w) > 0) {
            dmi_desc_region(p->op[which], w, 0, &at);
            if (at.count > 0 && !whole_interval(&at.dim[p->inner_dim[which]], p->k)) {
                return false;
            }
        }
    }
    return true;
}

typedef struct rolling {
    dmi_product *p;
    int which, stay;
    ring r;
    int slots, next; /* landing places, used in turn */
    int slot_work;
    int64_t slot_bytes;
    dmi_mark *slot_free;  /* [slots] when a place may be written again */
    dmi_panel stay_panel; /* the operand that stays, in the computing type */
    dmi_mark stay_ready;
    int convert;        /* workspace for moved blocks of another type; -1 */
    int64_t (*seen)[2]; /* intervals of c already written */
    int seen_count;
} rolling;

/* Runs of both dims of an owner's region, as (index, position) pairs. */
typedef struct blocks {
    int64_t n[2];
    dmi_run *run[2];
    dmi_region region;
} blocks;

static bool blocks_of(rolling *g, int owner, blocks *out)
{
    const dmi_desc *desc = g->p->op[g->which];
    memset(out, 0, sizeof *out);
    if (dmi_desc_region_count(desc, owner) == 0) {
        return false;
    }
    dmi_desc_region(desc, owner, 0, &out->region);
    if (out->region.count == 0) {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        dmi_dimset all = everything(desc->extent[d]);
        out->n[d] = dmi_dimset_intersect(&out->region.dim[d], &all, &g->p->b->plan->arena, &out->run[d]);
        if (out->n[d] < 0) {
            g->p->b->failed = true;
            return false;
        }
    }
    return true;
}

/* One block as a region: intervals of both dims, memory as it lies at its owner. */
static void block_region(const blocks *bl, int64_t i, int64_t j, dmi_region *out)
{
    int64_t lo[2] = {bl->run[0][i].index, bl->run[1][j].index};
    int64_t extent[2] = {bl->run[0][i].len, bl->run[1][j].len};
    dmi_region_window(&bl->region, lo, extent, out);
    for (int d = 0; d < 2; d++) { /* back to indices of the whole operand */
        out->dim[d].origin -= lo[d];
    }
}

static bool first_touch(rolling *g, int64_t lo, int64_t hi)
{
    for (int i = 0; i < g->seen_count; i++) {
        if (g->seen[i][0] == lo && g->seen[i][1] == hi) {
            return false;
        }
    }
    g->seen[g->seen_count][0] = lo;
    g->seen[g->seen_count++][1] = hi;
    return true;
}

/* own region of c (+)= product with one block that lies at `ref`, memory `block`. */
static void multiply(rolling *g, const dmi_region *block, dmi_ref ref, const dmi_mark arrived, dmi_mark used)
{
    dmi_product *p = g->p;
    dmi_region c;
    dmi_product_c(p, p->b->me, &c);
    dmi_mark ready = {0};
    dmi_panel moved = dmi_product_panel(p, block, ref, p->op[g->which]->dtype, &g->convert, arrived, ready);
    dmi_mark_merge(ready, g->stay_ready);
    const dmi_dimset *outer = &block->dim[p->outer_dim[g->which]], *inner = &block->dim[p->inner_dim[g->which]];
    int64_t o0 = dmi_dimset_index(outer, 0), k0 = dmi_dimset_index(inner, 0);
    dmi_panel stay = g->stay_panel; /* its columns (or rows) k0 .. */
    stay.offset += k0 * (p->inner_dim[g->stay] == 0 ? stay.ld : 1);
    bool first = first_touch(g, o0, o0 + outer->count);
    const dmi_panel *a = g->which == 0 ? &moved : &stay, *b = g->which == 0 ? &stay : &moved;
    if (g->which == 0) {
        dmi_product_step(p, a, b, o0, 0, outer->count, c.dim[1].count, inner->count, first, ready, used);
    } else {
        dmi_product_step(p, a, b, 0, o0, c.dim[0].count, outer->count, inner->count, first, ready, used);
    }
}

static void own_blocks(rolling *g, const blocks *bl)
{
    for (int64_t i = 0; i < bl->n[0]; i++) {
        for (int64_t j = 0; j < bl->n[1]; j++) {
            dmi_region block;
            dmi_mark nothing = {0};
            block_region(bl, i, j, &block);
            multiply(g, &block, dmi_ref_operand(g->which, DMI_READ), nothing, nothing);
        }
    }
}

/* A block's copy to worker `to`: into a landing place, packed, or to where it is kept. */
static void block_copy(rolling *g, int to, const dmi_region *block, dmi_copy *copy, dmi_region *landed)
{
    dm_dtype type = g->p->op[g->which]->dtype;
    *landed = *block;
    if (g->p->keep) {
        g->p->b->failed = g->p->b->failed || !dmi_fetch_in_place(g->p->keep, to, landed);
    } else {
        dmi_region_dense(landed, 0);
    }
    (void)dmi_region_copy(g->p->b, block, landed, type, type, copy);
    if (!g->p->keep) {
        dmi_build_pack(g->p->b, copy, copy);
    }
}

/* What a block that is on its way here needs: its place, and when it is there. */
typedef struct coming {
    dmi_region landed;
    dmi_ref ref;
    dmi_mark arrived;
    int slot;
} coming;

static void expect_block(rolling *g, int owner, const blocks *bl, int64_t at, coming *in)
{
    dmi_region block;
    dmi_copy copy;
    block_region(bl, at / bl->n[1], at % bl->n[1], &block);
    block_copy(g, g->p->b->me, &block, &copy, &in->landed);
    in->slot = g->next++ % g->slots;
    in->ref = g->p->keep ? dmi_ref_operand(DMI_KEEP, DMI_WRITE) : dmi_ref_work(g->slot_work + in->slot, DMI_WRITE);
    memset(in->arrived, 0, sizeof in->arrived);
    dmi_mark_step(in->arrived,
                  dmi_build_expect(g->p->b, owner, in->ref, &copy, g->p->keep ? NULL : g->slot_free[in->slot]));
    in->ref.mode = DMI_READ;
}

static void send_block(rolling *g, int to, const blocks *bl, int64_t at)
{
    dmi_region block, landed;
    dmi_copy copy;
    block_region(bl, at / bl->n[1], at % bl->n[1], &block);
    block_copy(g, to, &block, &copy, &landed);
    dmi_build_push(g->p->b, to, dmi_ref_operand(g->which, DMI_READ), &copy, NULL);
}

/* One outer stage: block by block grant, push, multiply, so that one queue could take the steps in this order.
 * takers: list of the workers my blocks go to (1-based, through next[]). */
static void stage(rolling *g, int owner, const blocks *theirs, const blocks *own, int takers, const int *next)
{
    int64_t in = theirs ? theirs->n[0] * theirs->n[1] : 0, out = own ? own->n[0] * own->n[1] : 0;
    for (int64_t at = 0; at < DMI_MAX(in, out) && !g->p->b->failed; at++) {
        coming block;
        if (at < in) {
            expect_block(g, owner, theirs, at, &block);
        }
        for (int w = at < out ? takers : 0; w > 0; w = next[w - 1]) {
            send_block(g, w - 1, own, at);
        }
        if (at < in) {
            memset(g->slot_free[block.slot], 0, sizeof g->slot_free[block.slot]);
            /* the product (and a conversion before it, on the same lane) is the last to read the place */
            multiply(g, &block.landed, block.ref, block.arrived, g->slot_free[block.slot]);
        }
    }
}

/* Landing places: two, or as many as the workspace allows up to four; each holds the largest block of all
 * owners. */
static void make_slots(rolling *g, bool two_block)
{
    dmi_builder *b = g->p->b;
    int64_t most = 0;
    for (int w = 0; w < b->profile->workers; w++) {
        blocks bl;
        if (!blocks_of(g, w, &bl)) {
            continue;
        }
        int64_t rows = 0, cols = 0;
        for (int64_t i = 0; i < bl.n[0]; i++) {
            rows = DMI_MAX(rows, bl.run[0][i].len);
        }
        for (int64_t j = 0; j < bl.n[1]; j++) {
            cols = DMI_MAX(cols, bl.run[1][j].len);
        }
        most = DMI_MAX(most, rows * cols);
    }
    g->slot_bytes = (most * dmi_dtype_bytes(g->p->op[g->which]->dtype) + 255) / 256 * 256;
    g->slots = 2;
    if (g->p->keep) {
        g->slot_bytes = 0; /* places of their own */
    }
    if (!two_block && g->slot_bytes > 0) {
        int64_t limit = b->profile->gemm_workspace > 0 ? b->profile->gemm_workspace : 4 * g->slot_bytes;
        g->slots = (int)DMI_MAX(2, DMI_MIN(4, limit / g->slot_bytes));
    }
    for (int i = g->slots - 1; i >= 0;
         i--) { /* workspaces of their own: each is free for the next command early */
        int work = dmi_build_work(b, g->slot_bytes);
        g->slot_work = i == g->slots - 1 ? work : g->slot_work;
    }
    g->slot_free = dmi_build_alloc(b, (size_t)g->slots * sizeof *g->slot_free);
}

/* The own part beside the blocks that have come: behind the products, which do not need it there. */
static void keep_own(rolling *g, const blocks *own)
{
    dmi_product *p = g->p;
    dm_dtype type = p->op[g->which]->dtype;
    dmi_region place;
    dmi_copy copy;
    dmi_desc_region(p->keep, p->b->me, 0, &place);
    if (dmi_region_copy(p->b, &own->region, &place, type, type, &copy)) {
        dmi_ref refs[2] = {dmi_ref_operand(g->which, DMI_READ), dmi_ref_operand(DMI_KEEP, DMI_WRITE)};
        dmi_build_kernel(p->b, DMI_STEP_COPY, &copy, sizeof copy, refs, 2, NULL);
    }
}

void dmi_cyclic_plan(dmi_product *p, int which, bool two_block)
{
    dmi_builder *b = p->b;
    int me = b->me, workers = b->profile->workers;
    rolling g = {.p = p, .which = which, .stay = 1 - which, .r = ring_of(p, which), .convert = -1};
    dmi_region c, stay_region;
    blocks own;
    dmi_product_c(p, me, &c);
    int my_place = g.r.layout->position[me] >= 0 ? place(&g.r, me) : -1; /* as an owner */
    int my_replica = dmi_layout_replica(g.r.layout, me), serves_me = dmi_fetch_replica(p->op[which], me);
    bool have_own = blocks_of(&g, me, &own);
    g.seen = dmi_build_alloc(b, (size_t)g.r.size * (MOST_BLOCKS + 1) * sizeof *g.seen);
    int *next = dmi_build_alloc(b, ((size_t)workers + (size_t)g.r.size) * sizeof *next),
        *head = next ? next + workers : NULL;
    if (c.count > 0) {
        make_slots(&g, two_block);
        dmi_dimset inner = everything(p->k);
        (void)dmi_product_in_place(p, g.stay, me, &c.dim[g.stay], &inner, &stay_region);
        int work = -1;
        g.stay_panel = dmi_product_panel(p, &stay_region, dmi_ref_operand(g.stay, DMI_READ),
                                         p->op[g.stay]->dtype, &work, NULL, g.stay_ready);
    }
    if (b->failed) {
        return;
    }
    /* Workers I serve, by their place in the ring (lists through next[], 1-based). */
    for (int w = workers - 1; w >= 0; w--) {
        dmi_region theirs;
        dmi_product_c(p, w, &theirs);
        if (w != me && theirs.count > 0 && my_replica >= 0 &&
            dmi_fetch_replica(p->op[which], w) == my_replica) {
            int at = begin(&g.r, p->c->layout, w);
            next[w] = head[at];
            head[at] = w + 1;
        }
    }
    for (int s = 0; s < g.r.size && !b->failed; s++) {
        int takers = my_place >= 0 && have_own ? head[((my_place - s) % g.r.size + g.r.size) % g.r.size] : 0;
        int owner = c.count > 0 ? owner_at(&g.r, serves_me, begin(&g.r, p->c->layout, me) + s) : -1;
        blocks theirs;
        bool comes = owner >= 0 && owner != me && blocks_of(&g, owner, &theirs);
        if (owner == me && have_own) {
            own_blocks(&g, &own);
        }
        stage(&g, owner, comes ? &theirs : NULL, takers ? &own : NULL, takers, next);
    }
    if (p->keep && c.count > 0 && have_own) {
        keep_own(&g, &own);
    }
}
