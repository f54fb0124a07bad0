/* The cyclic product for workers on several hosts: a worker multiplies with a block and passes it on to the
 * worker before it, so that a block goes over the boundary of a host once and not once for each worker there.
 */
#include "ops/product/moving.h"

#include <string.h>

/* No deadlock: a block stays in its receive buffer until it has been passed on, and the next worker must have a
 * free buffer for it. Worker w grants the buffer for its block i when its block i - buffers has left. That
 * block leaves when the worker before w grants a buffer, for its block i - buffers + (own blocks of w), which
 * is the same block. With more buffers than any worker has blocks, that number is less than i. So the chain of
 * waits goes down to the first blocks and ends. */
static int64_t buffers_for(int64_t most_blocks)
{
    return most_blocks + 1;
}

bool dmi_ring_serves(const dmi_product *p, int which)
{
    int64_t blocks;
    const dmi_layout *l = p->op[which]->layout;
    if (!dmi_cyclic_serves(p, which, &blocks) || l->replicas != 1 || p->c->layout->replicas != 1 ||
        l->group < 2) {
        return false;
    }
    for (int w = 0; w < p->b->profile->workers; w++) { /* all who own blocks, and no others, multiply */
        dmi_region c;
        dmi_product_c(p, w, &c);
        if ((c.count > 0) != (l->position[w] >= 0)) {
            return false;
        }
    }
    return true;
}

/* Elements of the moving operand that cross from host to host: when each comes from its owner, and in the ring.
 */
static void crossing(const dmi_product *p, int which, int64_t *direct, int64_t *ring)
{
    const dmi_layout *l = p->op[which]->layout;
    const int *host = p->b->profile->host_of;
    int64_t total = p->op[which]->extent[0] * p->op[which]->extent[1];
    *direct = *ring = 0;
    for (int i = 0; i < l->group; i++) {
        int me = l->workers[i], after = l->workers[(i + 1) % l->group];
        *ring += host[me] != host[after] ? total - dmi_desc_local_count(p->op[which], me) : 0;
        for (int j = 0; j < l->group; j++) {
            *direct += host[me] != host[l->workers[j]] ? dmi_desc_local_count(p->op[which], l->workers[j]) : 0;
        }
    }
}

bool dmi_ring_pays(const dmi_product *p, int which)
{
    int64_t direct, ring, most, limit = p->workspace;
    if (!p->b->profile->host_of || !dmi_ring_serves(p, which)) {
        return false;
    }
    int64_t bytes = dmi_moving_buffer_bytes(p, which, &most);
    if (limit > 0 && bytes * buffers_for(most) > limit) {
        return false;
    }
    crossing(p, which, &direct, &ring);
    return ring < direct;
}

typedef struct passing {
    dmi_moving g;
    int before, behind; /* to whom blocks go, from whom they come */
    dmi_coming *held;   /* what came last, or is coming: two stages in turn */
    int64_t most;
} passing;

/* Blocks come in, those of the stage before go on to the worker before, and are multiplied with: block by block
 * grant, push, multiply, so that one queue could take the steps in this order. */
static void stage(passing *r, int s, const dmi_blocks *in, const dmi_blocks *out)
{
    dmi_coming *now = r->held + s % 2 * r->most, *last = r->held + (s - 1) % 2 * r->most;
    int64_t comes = in ? dmi_moving_count(in) : 0, goes = out ? dmi_moving_count(out) : 0;
    for (int64_t at = 0; at < DMI_MAX(comes, goes) && !r->g.p->b->failed; at++) {
        dmi_mark gone = {0};
        if (at < comes) {
            dmi_moving_expect(&r->g, r->behind, in, at, &now[at]);
        }
        if (at < goes && s == 1) {
            dmi_moving_send(&r->g, r->before, out, at);
        } else if (at < goes && s < r->g.size) {
            dmi_moving_pass(&r->g, r->before, &last[at], gone);
        }
        if (at < goes && s > 1) {
            dmi_moving_use(&r->g, &last[at], gone);
        }
    }
    if (s == 1 && goes > 0) {
        dmi_moving_own(&r->g, out);
    }
}

void dmi_ring_plan(dmi_product *p, int which)
{
    dmi_builder *b = p->b;
    const dmi_layout *owners = p->op[which]->layout;
    int at = owners->position[b->me], size = owners->group;
    if (at < 0) {
        return;
    }
    passing r = {.before = owners->workers[(at + size - 1) % size], .behind = owners->workers[(at + 1) % size]};
    dmi_blocks held, coming = {0};
    (void)dmi_moving_buffer_bytes(p, which, &r.most);
    dmi_moving_begin(&r.g, p, which, (int)buffers_for(r.most), 1);
    r.held = dmi_build_alloc(b, 2 * (size_t)r.most * sizeof *r.held);
    bool have_own = dmi_moving_blocks(p, which, b->me, &held), have = have_own;
    for (int s = 1; s <= size && !b->failed; s++) {
        bool comes = s < size && dmi_moving_blocks(p, which, owners->workers[(at + s) % size], &coming);
        stage(&r, s, comes ? &coming : NULL, have ? &held : NULL);
        held = coming;
        have = comes;
    }
    if (p->replica && have_own && dmi_moving_blocks(p, which, b->me, &held)) {
        dmi_moving_replicate(&r.g, &held);
    }
}
