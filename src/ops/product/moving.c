#include "ops/product/moving.h"

#include <string.h>

bool dmi_moving_blocks(const dmi_product *p, int which, int owner, dmi_blocks *out)
{
    const dmi_desc *desc = p->op[which];
    memset(out, 0, sizeof *out);
    if (dmi_desc_region_count(desc, owner) == 0) {
        return false;
    }
    dmi_desc_region(desc, owner, 0, &out->region);
    if (out->region.count == 0) {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        dmi_dimset all = dmi_dimset_interval(0, desc->extent[d]);
        out->n[d] = dmi_dimset_intersect(&out->region.dim[d], &all, &p->b->plan->arena, &out->run[d]);
        if (out->n[d] < 0) {
            p->b->failed = true;
            return false;
        }
    }
    return true;
}

/* One block as a region: intervals of both dims, memory as it lies at its owner. */
static void block_region(const dmi_blocks *bl, int64_t i, int64_t j, dmi_region *out)
{
    int64_t lo[2] = {bl->run[0][i].index, bl->run[1][j].index};
    int64_t extent[2] = {bl->run[0][i].len, bl->run[1][j].len};
    dmi_region_clip(&bl->region, lo, extent, out);
    for (int d = 0; d < 2; d++) { /* back to indices of the whole operand */
        out->dim[d].origin -= lo[d];
    }
}

static bool first_touch(dmi_moving *g, int64_t lo, int64_t hi)
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

/* The worker's region of c (+)= the product with one block, whose memory is `block` at `ref`. */
static void multiply(dmi_moving *g, const dmi_region *block, dmi_ref ref, const dmi_mark arrived, dmi_mark used)
{
    dmi_product *p = g->p;
    dmi_region c;
    dmi_product_c(p, p->b->me, &c);
    dmi_mark ready = {0};
    dmi_matrix_ref moved = dmi_product_matrix(p, g->which, block, ref, &g->convert, arrived, ready);
    dmi_mark_merge(ready, g->stay_ready);
    const dmi_dimset *outer = &block->dim[p->outer_dim[g->which]], *inner = &block->dim[p->inner_dim[g->which]];
    int64_t o0 = dmi_dimset_index(outer, 0), k0 = dmi_dimset_index(inner, 0);
    dmi_matrix_ref stay = g->stay_matrix; /* its columns (or rows) k0 .. */
    stay.offset += k0 * dmi_matrix_step_k(p, g->stay, &stay);
    bool first = first_touch(g, o0, o0 + outer->count);
    const dmi_matrix_ref *a = g->which == 0 ? &moved : &stay, *b = g->which == 0 ? &stay : &moved;
    if (g->which == 0) {
        dmi_product_step(p, a, b, o0, 0, outer->count, c.dim[1].count, inner->count, first, ready, used);
    } else {
        dmi_product_step(p, a, b, 0, o0, c.dim[0].count, outer->count, inner->count, first, ready, used);
    }
}

void dmi_moving_own(dmi_moving *g, const dmi_blocks *bl)
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

/* The copy of a block to worker `to`: packed into a receive buffer, or into the cached replica. */
static void block_copy(dmi_moving *g, int to, const dmi_region *block, dmi_copy *copy, dmi_region *received)
{
    dm_dtype type = g->p->op[g->which]->dtype;
    *received = *block;
    if (g->p->replica) {
        g->p->b->failed = g->p->b->failed || !dmi_fetch_in_place(g->p->replica, to, received);
    } else {
        dmi_region_dense(received, 0);
    }
    (void)dmi_region_copy(g->p->b, block, received, type, type, copy);
    if (!g->p->replica) {
        dmi_build_pack(g->p->b, copy, copy);
    }
}

void dmi_moving_expect(dmi_moving *g, int peer, const dmi_blocks *theirs, int64_t at, dmi_coming *in)
{
    dmi_region block;
    dmi_copy copy;
    block_region(theirs, at / theirs->n[1], at % theirs->n[1], &block);
    block_copy(g, g->p->b->me, &block, &copy, &in->received);
    in->buffer = g->next++ % g->buffers;
    in->ref = g->p->replica ? dmi_ref_operand(DMI_GEMM_REPLICA, DMI_WRITE)
                            : dmi_ref_work(g->buffer_work + in->buffer, DMI_WRITE);
    memset(in->arrived, 0, sizeof in->arrived);
    dmi_mark_step(in->arrived, dmi_build_expect_of(g->p->b, peer, in->ref, dmi_ref_operand(g->which, DMI_READ),
                                                   &copy, g->p->replica ? NULL : g->buffer_free[in->buffer]));
    in->ref.mode = DMI_READ;
}

void dmi_moving_send(dmi_moving *g, int to, const dmi_blocks *own, int64_t at)
{
    dmi_region block, received;
    dmi_copy copy;
    block_region(own, at / own->n[1], at % own->n[1], &block);
    block_copy(g, to, &block, &copy, &received);
    dmi_build_push(g->p->b, to, dmi_ref_operand(g->which, DMI_READ), &copy, NULL);
}

void dmi_moving_pass(dmi_moving *g, int to, const dmi_coming *in, dmi_mark gone)
{
    dmi_region received;
    dmi_copy copy;
    block_copy(g, to, &in->received, &copy, &received);
    dmi_mark_step(gone, dmi_build_push(g->p->b, to, in->ref, &copy, in->arrived));
}

void dmi_moving_use(dmi_moving *g, const dmi_coming *in, const dmi_mark gone)
{
    /* the product is the last kernel to read the buffer (a conversion comes before it, on the same lane) */
    memset(g->buffer_free[in->buffer], 0, sizeof g->buffer_free[in->buffer]);
    multiply(g, &in->received, in->ref, in->arrived, g->buffer_free[in->buffer]);
    if (gone) {
        dmi_mark_merge(g->buffer_free[in->buffer], gone);
    }
}

int64_t dmi_moving_buffer_bytes(const dmi_product *p, int which, int64_t *most)
{
    int64_t largest = 0, blocks = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_blocks bl;
        if (!dmi_moving_blocks(p, which, w, &bl)) {
            continue;
        }
        int64_t rows = 0, cols = 0;
        for (int64_t i = 0; i < bl.n[0]; i++) {
            rows = DMI_MAX(rows, bl.run[0][i].len);
        }
        for (int64_t j = 0; j < bl.n[1]; j++) {
            cols = DMI_MAX(cols, bl.run[1][j].len);
        }
        largest = DMI_MAX(largest, rows * cols);
        blocks = DMI_MAX(blocks, dmi_moving_count(&bl));
    }
    if (most) {
        *most = blocks;
    }
    return (largest * dmi_dtype_bytes(p->op[which]->dtype) + 255) / 256 * 256;
}

/* Workspaces of their own: each is free for the next command early. */
static void make_buffers(dmi_moving *g, int buffers, int more_buffers)
{
    dmi_builder *b = g->p->b;
    /* in a cached replica every block has memory of its own */
    g->buffer_bytes = g->p->replica ? 0 : dmi_moving_buffer_bytes(g->p, g->which, NULL);
    g->buffers = buffers;
    if (more_buffers > 0 && g->buffer_bytes > 0) {
        int64_t most = buffers + more_buffers, limit = g->p->workspace;
        g->buffers = (int)(limit > 0 ? DMI_MAX(buffers, DMI_MIN(most, limit / g->buffer_bytes)) : most);
    }
    for (int i = g->buffers - 1; i >= 0; i--) {
        int work = dmi_build_work(b, g->buffer_bytes);
        g->buffer_work = i == g->buffers - 1 ? work : g->buffer_work;
    }
    g->buffer_free = dmi_build_alloc(b, (size_t)g->buffers * sizeof *g->buffer_free);
}

void dmi_moving_begin(dmi_moving *g, dmi_product *p, int which, int buffers, int more_buffers)
{
    const dmi_layout *l = p->op[which]->layout;
    dmi_region c, stay;
    *g = (dmi_moving){.p = p, .which = which, .stay = 1 - which, .owners = l, .size = l->group, .convert = -1};
    dmi_product_c(p, p->b->me, &c);
    g->seen = dmi_build_alloc(p->b, (size_t)g->size * (DMI_MOVING_BLOCKS + 1) * sizeof *g->seen);
    if (c.count > 0) {
        int work = -1;
        make_buffers(g, buffers, more_buffers);
        (void)dmi_product_gathered_in_place(p, g->stay, p->b->me, &c, &stay);
        g->stay_matrix = dmi_product_matrix(p, g->stay, &stay, dmi_ref_operand(g->stay, DMI_READ), &work, NULL,
                                            g->stay_ready);
    }
}

/* Copies the worker's shard into the cached replica after the products, which do not need it there. */
void dmi_moving_replicate(dmi_moving *g, const dmi_blocks *own)
{
    dmi_product *p = g->p;
    dm_dtype type = p->op[g->which]->dtype;
    dmi_region at_home;
    dmi_copy copy;
    dmi_desc_region(p->replica, p->b->me, 0, &at_home);
    if (dmi_region_copy(p->b, &own->region, &at_home, type, type, &copy)) {
        dmi_ref refs[2] = {dmi_ref_operand(g->which, DMI_READ), dmi_ref_operand(DMI_GEMM_REPLICA, DMI_WRITE)};
        dmi_build_kernel(p->b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, NULL);
    }
}
