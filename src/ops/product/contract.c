/* a and b are split along k alike: every worker multiplies its shards, for one holder of c after another, and
 * sends the partial product there; the holder adds arrivals in a fixed order (a reduce-scatter in P-1 rounds).
 * If c is replicated, its holders make a segment each and share them, or, if c is small, every worker sends
 * everything to every holder (plan/reduce.h). */
#include "ops/product/gemm.h"

#include <string.h>

enum { BUFFERS = 2 };

/* Worker w's indices of k. False unless its shards have all of m in a, all of n in b, and the same indices of
 * k. */
static bool inner_set(const dmi_product *p, int worker, dmi_dimset *out)
{
    dmi_region at[2];
    for (int o = 0; o < 2; o++) {
        if (dmi_desc_region_count(p->op[o], worker) == 0) {
            memset(&at[o], 0, sizeof at[o]);
            at[o].dim[0] = at[o].dim[1] = dmi_dimset_interval(0, 0);
            continue;
        }
        dmi_desc_region(p->op[o], worker, 0, &at[o]);
        dmi_dimset all = dmi_dimset_interval(0, o == 0 ? p->m : p->n);
        if (at[o].dim[p->inner_dim[o]].count > 0 && !dmi_dimset_same(&at[o].dim[p->outer_dim[o]], &all)) {
            return false;
        }
    }
    *out = at[0].dim[p->inner_dim[0]];
    return dmi_dimset_same(out, &at[1].dim[p->inner_dim[1]]);
}

bool dmi_contract_serves(const dmi_product *p)
{
    for (int o = 0; o < 2; o++) {
        if (p->op[o]->layout->kind != DMI_LAYOUT_GRID || p->op[o]->layout->replicas != 1) {
            return false;
        }
    }
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_dimset inner;
        if (!inner_set(p, w, &inner)) {
            return false;
        }
    }
    return p->m > 0 && p->n > 0;
}

int64_t dmi_contract_traffic(const dmi_product *p)
{
    int64_t senders = 0, wanted = 0, own = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_dimset inner;
        dmi_product_c(p, w, &c);
        bool gives = inner_set(p, w, &inner) && inner.count > 0;
        senders += gives;
        wanted += c.count;
        own += gives ? c.count : 0;
    }
    return senders * wanted - own;
}

typedef struct partial {
    dmi_product *p;
    dmi_dimset inner; /* own indices of k */
    int gather[2];    /* workspaces for rows or columns that do not lie together; -1 */
    int convert[2];
} partial;

/* The worker's shard of operand `which` for the given rows or columns of c. */
static dmi_matrix_ref operand_part(partial *g, int which, const dmi_dimset *outer, dmi_mark ready)
{
    dmi_product *p = g->p;
    dmi_builder *b = p->b;
    dmi_region want;
    dm_dtype type = p->op[which]->dtype;
    if (dmi_product_in_place(p, which, b->me, outer, &g->inner, &want)) {
        return dmi_product_matrix(p, which, &want, dmi_ref_operand(which, DMI_READ), &g->convert[which], NULL,
                                  ready);
    }
    dmi_region have; /* c's rows are dealt out in blocks: gather them, and convert */
    dmi_copy copy;
    dmi_desc_region(p->op[which], b->me, 0, &have);
    dmi_product_want(p, which, outer, &g->inner, &want);
    if (g->gather[which] < 0) {
        g->gather[which] = dmi_build_work(b, 0);
    }
    if (!b->failed) {
        int64_t *bytes = &b->plan->work_bytes[g->gather[which]];
        *bytes = DMI_MAX(*bytes, want.count * dmi_dtype_bytes(p->kernel_type));
    }
    dmi_ref refs[2] = {dmi_ref_operand(which, DMI_READ), dmi_ref_work(g->gather[which], DMI_WRITE)};
    if (dmi_region_copy(b, &have, &want, type, dmi_product_kernel_type(p, which), &copy)) {
        dmi_mark_step(ready, dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, NULL));
    }
    refs[1].mode = DMI_READ;
    return (dmi_matrix_ref){refs[1], 0, DMI_MAX(want.dim[1].count, 1), false};
}

/* t (+ offset) = the worker's product op(a) op(b) for a region of c. */
static void multiply_for(partial *g, const dmi_region *c, dmi_ref t, const dmi_mark free, dmi_mark done)
{
    dmi_product *p = g->p;
    dmi_mark ready = {0};
    dmi_mark_merge(ready, free);
    dmi_matrix_ref a = operand_part(g, 0, &c->dim[0], ready), b = operand_part(g, 1, &c->dim[1], ready);
    dmi_gemm k = {.dtype = p->kernel_type,
                  .b_dtype = p->kernel_b,
                  .c_dtype = p->type,
                  .tf32 = p->tf32,
                  .trans_a = p->trans[0] != a.transposed,
                  .trans_b = p->trans[1] != b.transposed,
                  .conj_a = p->conj[0],
                  .conj_b = p->conj[1],
                  .m = c->dim[0].count,
                  .n = c->dim[1].count,
                  .k = g->inner.count,
                  .lda = a.ld,
                  .ldb = b.ld,
                  .ldc = DMI_MAX(c->dim[1].count, 1),
                  .a_offset = a.offset,
                  .b_offset = b.offset};
    dmi_ref refs[3] = {a.ref, b.ref, t};
    dmi_step *step = dmi_build_kernel(p->b, DMI_KERNEL_gemm, &k, sizeof k, refs, 3, ready);
    step->scalar[0] = p->direct ? p->scalar[0] : DMI_SCALAR_ONE;
    step->scalar[1] = DMI_SCALAR_ZERO;
    step->flops = dmi_gemm_flops(&k);
    dmi_mark_step(done, step);
}

/* The product into the worker's region of c: applies the call's alpha and beta. */
static void multiply_own(partial *g, const dmi_region *c)
{
    dmi_mark ready = {0};
    dmi_matrix_ref a = {.ref = dmi_product_acc(g->p).ref,
                        .ld = DMI_MAX(g->p->trans[0] ? c->dim[0].count : g->inner.count, 1)},
                   b = a;
    b.ld = DMI_MAX(g->p->trans[1] ? g->inner.count : c->dim[1].count, 1);
    if (g->inner.count > 0) {
        a = operand_part(g, 0, &c->dim[0], ready);
        b = operand_part(g, 1, &c->dim[1], ready);
    } else {
        a.ref.mode = b.ref.mode = DMI_READ; /* k == 0: only beta applies, neither is read */
    }
    dmi_product_step(g->p, &a, &b, 0, 0, c->dim[0].count, c->dim[1].count, g->inner.count, true, ready, NULL);
}

static void add_arrived(partial *g, const dmi_region *c, dmi_ref t, const dmi_mark arrived, dmi_mark done)
{
    dmi_product *p = g->p;
    dmi_matrix_ref acc = dmi_product_acc(p);
    int64_t extent[2] = {c->dim[0].count, c->dim[1].count}, dense[2] = {extent[1], 1}, stride[2] = {acc.ld, 1};
    dmi_side sum = {p->type, stride, acc.offset, acc.ref}, term[2] = {{p->type, dense, 0, t}, sum};
    dmi_map_program add;
    dm_status status = dmi_map_row(DMI_EW_add, (dm_dtype[]){p->type, p->type}, NULL, p->type, &add);
    p->b->failed = p->b->failed || status != DM_OK; /* it takes every type */
    dmi_step *step = dmi_build_map(p->b, &add, 2, extent, NULL, term, &sum, arrived);
    dmi_mark_step(done, step);
    dmi_mark_step(p->finished, step);
}

static void packed_copy(partial *g, const dmi_region *c, dmi_copy *out)
{
    dmi_region dense = *c;
    dmi_region_dense(&dense, 0);
    (void)dmi_region_copy(g->p->b, &dense, &dense, g->p->type, g->p->type, out);
    dmi_build_pack(g->p->b, out, out);
}

void dmi_contract_plan(dmi_product *p)
{
    dmi_builder *b = p->b;
    int workers = b->profile->workers, me = b->me, sent = 0, received = 0;
    partial g = {.p = p, .gather = {-1, -1}, .convert = {-1, -1}};
    dmi_region mine;
    int64_t largest = 0;
    (void)inner_set(p, me, &g.inner);
    dmi_product_c(p, me, &mine);
    for (int w = 0; w < workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        largest = w == me ? largest : DMI_MAX(largest, c.count);
    }
    int64_t out_bytes = (largest * p->elem + 255) / 256 * 256,
            in_bytes = (mine.count * p->elem + 255) / 256 * 256;
    int out_work = g.inner.count > 0 ? dmi_build_work(b, BUFFERS * out_bytes) : -1;
    int in_work = mine.count > 0 ? dmi_build_work(b, BUFFERS * in_bytes) : -1;
    dmi_mark out_free[BUFFERS] = {{0}}, in_free[BUFFERS] = {{0}};
    if (mine.count > 0 && workers == 1) {
        multiply_own(&g, &mine);
    }
    for (int t = 1; t < workers && !b->failed; t++) {
        dmi_build_round(b);
        int to = (me + t) % workers, from = (me - t + workers) % workers;
        dmi_region c;
        dmi_dimset inner;
        dmi_copy copy;
        dmi_product_c(p, to, &c);
        /* Order of steps: product, grant, push, addition, so that one queue could run them (see late.c in
         * plan.h). */
        dmi_ref out = dmi_ref_work(out_work, DMI_WRITE), in = dmi_ref_work(in_work, DMI_WRITE);
        int out_buffer = sent % BUFFERS, in_buffer = received % BUFFERS;
        dmi_mark ready = {0}, arrived = {0};
        bool gives = g.inner.count > 0 && c.count > 0;
        bool takes = mine.count > 0 && inner_set(p, from, &inner) && inner.count > 0;
        out.offset = out_buffer * out_bytes;
        in.offset = in_buffer * in_bytes;
        if (gives) {
            multiply_for(&g, &c, out, out_free[out_buffer], ready);
            sent++;
        }
        if (takes) {
            packed_copy(&g, &mine, &copy);
            dmi_mark_step(arrived, dmi_build_expect(b, from, in, &copy, in_free[in_buffer]));
            received++;
        }
        if (gives) {
            packed_copy(&g, &c, &copy);
            memset(out_free[out_buffer], 0, sizeof out_free[out_buffer]);
            dmi_mark_step(out_free[out_buffer], dmi_build_push(b, to, out, &copy, ready));
        }
        if (t == 1 && mine.count > 0) { /* beside the first transfer */
            multiply_own(&g, &mine);
        }
        if (takes) {
            memset(in_free[in_buffer], 0, sizeof in_free[in_buffer]);
            add_arrived(&g, &mine, in, arrived, in_free[in_buffer]);
        }
    }
}

static bool anybody(const void *context, int sender, int receiver)
{
    (void)context, (void)sender, (void)receiver;
    return true;
}

static void whole_region(const void *context, int sender, dmi_region *out)
{
    const dmi_product *p = context;
    (void)sender;
    *out = (dmi_region){.ndim = 2, .count = p->m * p->n};
    out->dim[0] = dmi_dimset_interval(0, p->m);
    out->dim[1] = dmi_dimset_interval(0, p->n);
    dmi_region_dense(out, 0);
}

void dmi_contract_direct_plan(dmi_product *p)
{
    dmi_builder *b = p->b;
    partial g = {.p = p, .gather = {-1, -1}, .convert = {-1, -1}};
    dmi_value out = {.desc = p->user_c, .ref = p->out};
    dmi_addends addends = {.out = &out,
                           .dtype = p->type,
                           .serves = anybody,
                           .region = whole_region,
                           .context = p,
                           .scalar = {p->scalar[0], p->scalar[1]}};
    dmi_region whole;
    dmi_mark ready = {0}, nothing = {0};
    int *row = dmi_build_alloc(b, (size_t)b->profile->workers * sizeof *row);
    for (int w = 0; w < b->profile->workers && !b->failed; w++) {
        row[w] = inner_set(p, w, &g.inner) && g.inner.count > 0 ? addends.count++ : -1;
    }
    (void)inner_set(p, b->me, &g.inner);
    p->direct = false; /* alpha and beta apply to the sum */
    whole_region(p, b->me, &whole);
    if (!b->failed && row[b->me] >= 0) {
        addends.ref = dmi_ref_work(dmi_build_work(b, whole.count * p->elem), DMI_WRITE);
        multiply_for(&g, &whole, addends.ref, nothing, ready);
        addends.ref.mode = DMI_READ;
    }
    addends.row = row;
    addends.ready = ready;
    dmi_plan_addends(b, &addends);
}
