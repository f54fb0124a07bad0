/* One operand is split along k, and in nothing else. The other is split alike, or brought: each worker gets the
 * same indices of k of it. Every worker multiplies its part, for one holder of c after another, and sends the
 * partial product there; the holder adds arrivals in a fixed order (a reduce-scatter in P-1 rounds). If c is
 * replicated, its holders make a segment each and share them, or, if c is small, every worker sends everything
 * to every holder (plan/reduce.h). */
#include "ops/product/gemm.h"

#include <string.h>

enum { BUFFERS = 2 };

/* Worker w's indices of k in operand `which`. False if it has some, but not with all of m or n. */
static bool inner_of(const dmi_product *p, int which, int worker, dmi_dimset *out)
{
    *out = dmi_dimset_interval(0, 0);
    if (dmi_desc_region_count(p->op[which], worker) == 0) {
        return true;
    }
    dmi_region at;
    dmi_dimset all = dmi_dimset_interval(0, which == 0 ? p->m : p->n);
    dmi_desc_region(p->op[which], worker, 0, &at);
    *out = at.dim[p->inner_dim[which]];
    return out->count == 0 || dmi_dimset_same(&at.dim[p->outer_dim[which]], &all);
}

static dmi_dimset inner_set(const dmi_product *p, int worker)
{
    dmi_dimset inner;
    (void)inner_of(p, p->stays, worker, &inner);
    return inner;
}

/* What worker w needs of the other operand. */
static void other_want(const dmi_product *p, int worker, dmi_region *out)
{
    int other = 1 - p->stays;
    dmi_dimset inner = inner_set(p, worker), outer = dmi_dimset_interval(0, other == 0 ? p->m : p->n);
    dmi_product_want(p, other, &outer, &inner, out);
}

static int64_t missing_of_other(const dmi_product *p)
{
    int64_t missing = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region want, have;
        other_want(p, w, &want);
        missing += want.count;
        for (int64_t i = 0; i < dmi_desc_region_count(p->op[1 - p->stays], w); i++) {
            dmi_desc_region(p->op[1 - p->stays], w, i, &have);
            missing -=
                dmi_dimset_overlap(&have.dim[0], &want.dim[0]) * dmi_dimset_overlap(&have.dim[1], &want.dim[1]);
        }
    }
    return missing;
}

static bool may_stay(const dmi_product *p, int which)
{
    const dmi_layout *layout = p->op[which]->layout;
    bool serves = layout->kind == DMI_LAYOUT_GRID && layout->replicas == 1;
    for (int w = 0; w < p->b->profile->workers && serves; w++) {
        dmi_dimset inner;
        serves = inner_of(p, which, w, &inner);
    }
    return serves;
}

bool dmi_contract_serves(dmi_product *p)
{
    int64_t least = -1;
    int best = 0;
    for (int o = 0; o < 2; o++) {
        p->stays = o;
        int64_t missing = may_stay(p, o) ? missing_of_other(p) * dmi_dtype_bytes(p->op[1 - o]->dtype) : -1;
        if (missing >= 0 && (least < 0 || missing < least)) {
            least = missing;
            best = o;
        }
    }
    p->stays = best;
    p->brought = least;
    return least >= 0 && p->m > 0 && p->n > 0;
}

int64_t dmi_contract_traffic(const dmi_product *p)
{
    int64_t senders = 0, wanted = 0, own = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        bool gives = inner_set(p, w).count > 0;
        senders += gives;
        wanted += c.count;
        own += gives ? c.count : 0;
    }
    return senders * wanted - own;
}

int64_t dmi_contract_room(const dmi_product *p)
{
    int64_t most = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region want;
        other_want(p, w, &want);
        most = dmi_fetch_in_place(p->op[1 - p->stays], w, &want) ? most : DMI_MAX(most, want.count);
    }
    return most * dmi_dtype_bytes(p->op[1 - p->stays]->dtype);
}

typedef struct partial {
    dmi_product *p;
    dmi_dimset inner; /* own indices of k */
    dmi_region have[2]; /* the operands' parts with these indices, and where they lie */
    dmi_ref at[2];
    dmi_mark here[2];
    int gather[2];    /* workspaces for rows or columns that do not lie together; -1 */
    int convert[2];
} partial;

static int64_t one_if_needed(const void *context, int worker)
{
    return inner_set(context, worker).count > 0;
}

static void region_of_other(const void *context, int worker, int64_t which, dmi_region *out)
{
    (void)which;
    other_want(context, worker, out);
}

static void begin(partial *g, dmi_product *p)
{
    dmi_builder *b = p->b;
    int other = 1 - p->stays;
    *g = (partial){.p = p,
                   .inner = inner_set(p, b->me),
                   .at = {dmi_ref_operand(0, DMI_READ), dmi_ref_operand(1, DMI_READ)},
                   .gather = {-1, -1},
                   .convert = {-1, -1}};
    if (g->inner.count > 0) {
        dmi_desc_region(p->op[p->stays], b->me, 0, &g->have[p->stays]);
    }
    other_want(p, b->me, &g->have[other]);
    bool in_place = g->inner.count > 0 && dmi_fetch_in_place(p->op[other], b->me, &g->have[other]);
    if (dmi_contract_room(p) == 0) {
        return;
    }
    dm_dtype type = p->op[other]->dtype;
    dmi_ref room = g->at[other];
    room.mode = DMI_WRITE;
    if (g->inner.count > 0 && !in_place) {
        room = dmi_ref_work(dmi_build_work(b, g->have[other].count * dmi_dtype_bytes(type)), DMI_WRITE);
    }
    dmi_fetch fetch = {.src = p->op[other],
                       .src_ref = dmi_ref_operand(other, DMI_READ),
                       .dst_dtype = type,
                       .dst_ref = room,
                       .count = one_if_needed,
                       .want = region_of_other,
                       .context = p,
                       .skip = in_place ? (bool[]){true} : NULL};
    dmi_plan_fetch(b, &fetch, NULL, g->here[other]);
    room.mode = DMI_READ;
    g->at[other] = room;
}

/* The worker's part of operand `which` for the given rows or columns of c. */
static dmi_matrix_ref operand_part(partial *g, int which, const dmi_dimset *outer, dmi_mark ready)
{
    dmi_product *p = g->p;
    dmi_builder *b = p->b;
    dmi_region want;
    dmi_copy copy;
    dmi_product_want(p, which, outer, &g->inner, &want);
    if (dmi_region_within(&g->have[which], &want)) {
        return dmi_product_matrix(p, which, &want, g->at[which], &g->convert[which], g->here[which], ready);
    }
    /* c's rows are dealt out in blocks: gather them, and convert */
    if (g->gather[which] < 0) {
        g->gather[which] = dmi_build_work(b, 0);
    }
    if (!b->failed) {
        int64_t *bytes = &b->plan->work_bytes[g->gather[which]];
        *bytes = DMI_MAX(*bytes, want.count * dmi_dtype_bytes(p->kernel_type));
    }
    dmi_ref refs[2] = {g->at[which], dmi_ref_work(g->gather[which], DMI_WRITE)};
    if (dmi_region_copy(b, &g->have[which], &want, p->op[which]->dtype, dmi_product_kernel_type(p, which),
                        &copy)) {
        dmi_mark_step(ready, dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, g->here[which]));
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
    partial g;
    dmi_region mine;
    int64_t largest = 0;
    begin(&g, p);
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
        dmi_copy copy;
        dmi_product_c(p, to, &c);
        /* Order of steps: product, grant, push, addition, so that one queue could run them (see late.c in
         * plan.h). */
        dmi_ref out = dmi_ref_work(out_work, DMI_WRITE), in = dmi_ref_work(in_work, DMI_WRITE);
        int out_buffer = sent % BUFFERS, in_buffer = received % BUFFERS;
        dmi_mark ready = {0}, arrived = {0};
        bool gives = g.inner.count > 0 && c.count > 0;
        bool takes = mine.count > 0 && inner_set(p, from).count > 0;
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
    partial g;
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
    begin(&g, p);
    for (int w = 0; w < b->profile->workers && !b->failed; w++) {
        row[w] = inner_set(p, w).count > 0 ? addends.count++ : -1;
    }
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
