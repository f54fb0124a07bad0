/* Take where workers share an address space: rows stay where they are, and who wants them reads them there.
 *
 * Who holds rows tells the others where its memory is, in 8 bytes. They answer, in 8 bytes, when they have read
 * it. Until then the rows count as read at their holder, so nothing there writes to them. */
#include "ops/common_index.h"

#include <string.h>

bool dmi_rows_lent(const dmi_indexing *t, const dmi_profile *profile)
{
    const dmi_layout *y = t->box->layout;
    bool can = profile->one_space && !profile->gpu && !profile->host_of && t->gathers &&
               dmi_rows_held(t->lines, t->dim) && !dmi_desc_steps(t->lines) && !dmi_desc_steps(t->box);
    for (int d = 0; d < t->box->ndim && can; d++) { /* what a worker has of the other dims is one range */
        can =
            d == t->dim || y->kind != DMI_LAYOUT_GRID || y->grid[d] == 1 || y->order[d] == DMI_ORDER_CONTIGUOUS;
    }
    return can;
}

typedef struct lending {
    dmi_builder *b;
    const dmi_indexing *t;
    dmi_index_owner owner;
    int table, done; /* workspace: addresses, a word that is written when all is read */
    int64_t *place;  /* [workers] of its address in the table; -1: it lends nothing */
    int64_t addresses;
} lending;

static bool lender_region(const lending *l, int worker, dmi_region *out)
{
    if (dmi_desc_region_count(l->t->lines, worker) > 0) {
        dmi_desc_region(l->t->lines, worker, 0, out);
        return out->count > 0;
    }
    return false;
}

static bool borrows(const lending *l, int worker)
{
    return dmi_desc_local_count(l->t->box, worker) > 0;
}

static void find_places(lending *l)
{
    int workers = l->b->profile->workers;
    dmi_region region;
    l->place = dmi_build_alloc(l->b, (size_t)workers * sizeof *l->place);
    for (int w = 0; w < workers && l->place; w++) {
        l->place[w] = lender_region(l, w, &region) ? l->addresses++ : -1;
    }
}

/* A word from one workspace to another. */
static void word(dmi_builder *b, int64_t from, int64_t to, dmi_copy *out)
{
    dmi_run *run = dmi_build_alloc(b, sizeof *run);
    *out = (dmi_copy){
        .ndim = 1, .src_dtype = DM_I64, .dst_dtype = DM_I64, .count = 1, .src_offset = from, .dst_offset = to};
    if (run) {
        *run = (dmi_run){.len = 1};
    }
    out->nrun[0] = 1;
    out->run[0] = run;
    out->src_stride[0] = out->dst_stride[0] = 1;
}

/* Every worker learns where the rows of the others are. */
static void tell_addresses(lending *l)
{
    dmi_builder *b = l->b;
    const int workers = b->profile->workers, me = b->me;
    const bool lent = l->place[me] >= 0;
    dmi_mark told = {0};
    dmi_copy copy;
    if (lent) {
        dmi_ref refs[2] = {dmi_ref_operand(1, DMI_READ), dmi_ref_work(l->table, DMI_WRITE)};
        dmi_lend k = {.place = l->place[me]};
        dmi_mark_step(told, dmi_build_kernel(b, DMI_KERNEL_lend, &k, sizeof k, refs, 2, NULL));
    }
    for (int i = 1; i < workers && !b->failed; i++) {
        dmi_build_round(b);
        int to = (me + i) % workers, from = (me - i + workers) % workers;
        if (borrows(l, me) && l->place[from] >= 0) {
            word(b, l->place[from], l->place[from], &copy);
            dmi_build_expect_of(b, from, dmi_ref_work(l->table, DMI_WRITE), dmi_ref_operand(1, DMI_READ), &copy,
                                NULL);
        }
        if (lent && borrows(l, to)) {
            word(b, l->place[me], l->place[me], &copy);
            dmi_build_push(b, to, dmi_ref_work(l->table, DMI_READ), &copy, told);
        }
    }
}

/* And says when it has read them. */
static void give_back(lending *l)
{
    dmi_builder *b = l->b;
    const int workers = b->profile->workers, me = b->me;
    int back = dmi_build_work(b, (int64_t)workers * 8);
    dmi_copy copy;
    for (int i = 1; i < workers && !b->failed; i++) {
        dmi_build_round(b);
        int to = (me + i) % workers, from = (me - i + workers) % workers;
        if (l->place[me] >= 0 && borrows(l, from)) {
            word(b, 0, from, &copy);
            dmi_build_expect_holding(b, from, dmi_ref_work(back, DMI_WRITE), dmi_ref_operand(1, DMI_READ),
                                     &copy, NULL);
        }
        if (borrows(l, me) && l->place[to] >= 0) {
            word(b, 0, me, &copy);
            dmi_build_push(b, to, dmi_ref_work(l->done, DMI_READ), &copy, NULL);
        }
    }
}

/* The lines of all holders, as the positions of a region of box need them. */
static dmi_lender *lenders_for(const lending *l, const dmi_region *positions)
{
    const dmi_indexing *t = l->t;
    dmi_lender *lender = dmi_build_alloc(l->b, (size_t)l->owner.g * sizeof *lender);
    for (int w = 0; w < l->owner.g && lender; w++) {
        dmi_region lines;
        lender[w] = (dmi_lender){.place = l->place[w]};
        if (!lender_region(l, w, &lines)) {
            continue;
        }
        lender[w].set = lines.dim[t->dim];
        lender[w].offset = lines.offset;
        for (int d = 0; d < lines.ndim; d++) {
            lender[w].stride[d] = lines.stride[d];
            lender[w].offset +=
                d == t->dim ? 0
                            : dmi_dimset_position(&lines.dim[d], dmi_dimset_index(&positions->dim[d], 0)) *
                                  lines.stride[d];
        }
    }
    return lender;
}

/* One kernel: the positions of one region of box. */
static void borrow_region(const lending *l, int64_t which, dmi_bring *bring)
{
    const dmi_indexing *t = l->t;
    dmi_region p, box, indices;
    dmi_ref refs[5];
    dmi_indexing_positions(t, l->b->me, which, &p);
    dmi_desc_region(t->box, l->b->me, which, &box);
    refs[0] = dmi_bring_region(bring, l->b->me, which, &indices);
    refs[1] = dmi_ref_work(l->table, DMI_READ);
    refs[2] = dmi_ref_operand(2, DMI_WRITE);
    refs[3] = dmi_ref_work(l->done, DMI_WRITE);
    refs[4] = dmi_ref_operand(1, DMI_READ);
    if (p.count == 0) {
        return;
    }
    dmi_borrow k = {.index = {.dtype = t->lines->dtype,
                              .index_dtype = t->indices->dtype,
                              .mode = t->mode,
                              .ndim = p.ndim,
                              .dim = t->dim,
                              .index_offset = dmi_region_start(&indices),
                              .box_offset = dmi_region_start(&box),
                              .n = t->lines->extent[t->dim]},
                    .owner = l->owner,
                    .lender = lenders_for(l, &p),
                    .addresses = l->addresses};
    dmi_indexing_strides(t, &indices, k.index.index_stride);
    for (int d = 0; d < p.ndim; d++) {
        k.index.extent[d] = p.dim[d].count;
        k.index.box_stride[d] = box.stride[d];
    }
    dmi_build_kernel(l->b, DMI_KERNEL_borrow, &k, sizeof k, refs, l->place[l->b->me] >= 0 ? 5 : 4, NULL);
}

dm_status dmi_plan_take_lent(dmi_builder *b, const dmi_call *call, const dmi_indexing *t)
{
    lending l = {.b = b, .t = t, .owner = dmi_rows_owner(t->lines, t->dim, t->mode)};
    dmi_bring indices = dmi_indexing_bring(t, true);
    dmi_mark ready = {0};
    (void)call;
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    strcpy(b->plan->algorithm, "lend");
    find_places(&l);
    if (!l.place) {
        return DM_OK;
    }
    l.table = dmi_build_work(b, l.addresses * 8);
    l.done = dmi_build_work(b, 8);
    tell_addresses(&l);
    dmi_plan_bring(b, &indices, ready);
    dmi_build_phase(b);
    int64_t regions = borrows(&l, b->me) ? dmi_desc_region_count(t->box, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        borrow_region(&l, i, &indices);
    }
    dmi_build_phase(b);
    give_back(&l);
    return DM_OK;
}
