/* The cyclic product: at outer stage s a worker multiplies with the blocks of the owner s positions on; the
 * owner pushes each block straight to the worker that needs it next, so that every stage is a permutation of
 * the workers. */
#include "ops/product/moving.h"

/* The owner with whose blocks worker w begins: itself if it owns a block. Replicas of c must be equal to
 * the last bit, so where c is replicated the order depends on the region of c only. */
static int begin(const dmi_moving *g, int worker)
{
    const dmi_layout *c = g->p->c->layout;
    int at = c->replicas > 1 ? -1 : g->owners->position[worker];
    return (at >= 0 ? at : c->position[worker] % c->group) % g->size;
}

static int owner_at(const dmi_moving *g, int replica, int at)
{
    return g->owners->workers[replica * g->size + at % g->size];
}

static bool whole_interval(const dmi_dimset *set, int64_t count)
{
    dmi_dimset all = dmi_dimset_interval(0, count);
    return dmi_dimset_same(set, &all);
}

bool dmi_cyclic_serves(const dmi_product *p, int which, int64_t *blocks)
{
    int stay = 1 - which;
    const dmi_layout *moving = p->op[which]->layout;
    *blocks = 0;
    if (p->c->layout->kind != DMI_LAYOUT_GRID || moving->kind != DMI_LAYOUT_GRID || moving->ndim != 2 ||
        !dmi_product_takes_whole(p, which)) {
        return false;
    }
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        dmi_product_c(p, w, &c);
        if (c.count > 0 && !dmi_product_gathered_in_place(p, stay, w, &c, &at)) {
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
    return *blocks <= DMI_MOVING_BLOCKS;
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

/* One outer stage: block by block grant, push, multiply, so that one queue could take the steps in this order.
 * receivers: list of the workers my blocks go to (1-based, through next[]). */
static void stage(dmi_moving *g, int owner, const dmi_blocks *theirs, const dmi_blocks *own, int receivers,
                  const int *next)
{
    int64_t in = theirs ? dmi_moving_count(theirs) : 0, out = own ? dmi_moving_count(own) : 0;
    for (int64_t at = 0; at < DMI_MAX(in, out) && !g->p->b->failed; at++) {
        dmi_coming block;
        if (at < in) {
            dmi_moving_expect(g, owner, theirs, at, &block);
        }
        for (int w = at < out ? receivers : 0; w > 0; w = next[w - 1]) {
            dmi_moving_send(g, w - 1, own, at);
        }
        if (at < in) {
            dmi_moving_use(g, &block, NULL);
        }
    }
}

/* Receive buffers: two, or as many as the workspace allows up to four. */
void dmi_cyclic_plan(dmi_product *p, int which, bool two_block)
{
    dmi_builder *b = p->b;
    int me = b->me, workers = b->profile->workers;
    dmi_moving g;
    dmi_region c;
    dmi_blocks own;
    dmi_product_c(p, me, &c);
    dmi_moving_begin(&g, p, which, 2, two_block ? 0 : 2);
    int my_number = g.owners->position[me] >= 0 ? g.owners->position[me] % g.size : -1; /* as an owner */
    int my_replica = dmi_layout_replica(g.owners, me), serves_me = dmi_fetch_replica(p->op[which], me);
    bool have_own = dmi_moving_blocks(p, which, me, &own);
    int *next = dmi_build_alloc(b, ((size_t)workers + (size_t)g.size) * sizeof *next),
        *head = next ? next + workers : NULL;
    if (b->failed) {
        return;
    }
    /* The workers that I serve, by the owner with which they begin (lists through next[], 1-based). */
    for (int w = workers - 1; w >= 0; w--) {
        dmi_region theirs;
        dmi_product_c(p, w, &theirs);
        if (w != me && theirs.count > 0 && my_replica >= 0 &&
            dmi_fetch_replica(p->op[which], w) == my_replica) {
            int at = begin(&g, w);
            next[w] = head[at];
            head[at] = w + 1;
        }
    }
    for (int s = 0; s < g.size && !b->failed; s++) {
        dmi_build_round(b);
        int receivers = my_number >= 0 && have_own ? head[((my_number - s) % g.size + g.size) % g.size] : 0;
        int owner = c.count > 0 ? owner_at(&g, serves_me, begin(&g, me) + s) : -1;
        dmi_blocks theirs;
        bool comes = owner >= 0 && owner != me && dmi_moving_blocks(p, which, owner, &theirs);
        if (owner == me && have_own) {
            dmi_moving_own(&g, &own);
        }
        stage(&g, owner, comes ? &theirs : NULL, receivers ? &own : NULL, receivers, next);
    }
    if (p->replica && c.count > 0 && have_own) {
        dmi_moving_replicate(&g, &own);
    }
}
