/* Take and put where rows go between those who hold them and those who want or have them, by dmi_plan_exchange.
 */
#include "ops/common_index.h"

#include <string.h>

bool dmi_rows_held(const dmi_desc *x, int dim)
{
    const dmi_layout *y = x->layout;
    bool held = y->kind == DMI_LAYOUT_GRID && y->replicas == 1 && y->group == y->grid[dim] && x->skip[dim] == 0;
    for (int i = 0; i < y->nworkers && held; i++) {
        held = y->workers[i] == i;
    }
    return held;
}

dmi_index_owner dmi_rows_owner(const dmi_desc *x, int dim, int mode)
{
    const dmi_layout *y = x->layout;
    int64_t each = y->order[dim] == DMI_ORDER_CYCLIC ? 1 : (y->nblock[dim] + y->grid[dim] - 1) / y->grid[dim];
    return (dmi_index_owner){.n = x->extent[dim],
                             .origin = x->lo[dim],
                             .block = DMI_MAX(each * y->block[dim], 1),
                             .g = y->grid[dim],
                             .mode = mode};
}

bool dmi_rows_in_order(const dmi_desc *x, int dim)
{
    return dmi_rows_held(x, dim) && x->layout->order[dim] == DMI_ORDER_CONTIGUOUS;
}

/* What this worker does in an exchange. */
typedef struct rows {
    dmi_builder *b;
    const dmi_indexing *t;
    dmi_exchange x;
    dmi_region box, lines;    /* what it has of them; count 0 along dim: nothing */
    int64_t wanted, held;     /* indices that are its own, and those that come to it */
    int sorted, place, asked; /* workspace: see dmi_index_sort; the indices that come */
} rows;

/* The region of x at this worker: one, or none. */
static void region_of(const dmi_builder *b, const dmi_desc *x, dmi_region *out)
{
    memset(out, 0, sizeof *out);
    out->ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) {
        out->dim[d] = dmi_dimset_interval(0, 0);
    }
    if (dmi_desc_region_count(x, b->me) > 0) {
        dmi_desc_region(x, b->me, 0, out);
    }
}

/* Elements of a row: all dims but one. */
static int64_t row_elements(const dmi_indexing *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->lines->ndim; d++) {
        n *= d == t->dim ? 1 : t->lines->extent[d];
    }
    return n;
}

/* Sorts the indices of this worker by holder and sends them there; others: not to itself. */
static void ask(rows *r, const dmi_call *call, bool others)
{
    dmi_builder *b = r->b;
    dmi_region mine;
    dmi_mark done = {0};
    region_of(b, r->t->indices, &mine);
    r->wanted = mine.dim[0].count;
    r->x = (dmi_exchange){.rows = call->tail, .row_bytes = 8, .others = others};
    r->held = dmi_exchange_taken(&r->x, b->profile->workers, b->me, b->profile->workers);
    r->sorted = dmi_build_work(b, r->wanted * 8);
    r->place = dmi_build_work(b, r->wanted * 8);
    r->asked = dmi_build_work(b, r->held * 8);
    dmi_index_sort k = {.dtype = r->t->indices->dtype,
                        .owner = dmi_rows_owner(r->t->lines, r->t->dim, r->t->mode),
                        .count = r->wanted,
                        .stride = mine.stride[0],
                        .offset = r->wanted > 0 ? dmi_region_start(&mine) : 0};
    if (r->wanted > 0) {
        int scratch = dmi_build_work(b, k.owner.g * 8);
        dmi_ref refs[4] = {dmi_ref_operand(0, DMI_READ), dmi_ref_work(r->sorted, DMI_WRITE),
                           dmi_ref_work(r->place, DMI_WRITE), dmi_ref_work(scratch, DMI_WRITE)};
        dmi_build_kernel(b, DMI_KERNEL_index_sort, &k, sizeof k, refs, 4, NULL);
    }
    dmi_build_phase(b);
    r->x.from = dmi_ref_work(r->sorted, DMI_READ);
    r->x.to = dmi_ref_work(r->asked, DMI_WRITE);
    dmi_plan_exchange(b, &r->x, NULL, NULL, done);
    r->x.row_bytes = row_elements(r->t) * dmi_dtype_bytes(r->t->lines->dtype);
}

/* The kernel between an array's region at this worker and packed rows, of which the k-th belongs to index k of
 * `numbers`. */
typedef struct packing {
    int kernel;
    int64_t from, rows, n; /* rows `from` on, so many */
    dmi_ref numbers, packed, array;
    const dmi_region *region;
    dmi_dimset set; /* what the numbers mean: indices of the array, or ordinals of the region */
    int64_t first;  /* memory position of the region's first index, if they are ordinals */
    bool adds, unique;
} packing;

static void move_rows(const rows *r, const packing *p)
{
    const dmi_region *region = p->region;
    int dim = r->t->dim;
    int64_t dense = 1;
    dmi_index k = {.dtype = r->t->lines->dtype,
                   .index_dtype = DM_I64,
                   .adds = p->adds,
                   .unique = p->unique,
                   .ndim = region->ndim,
                   .dim = dim,
                   .line_offset = dmi_region_start(region) - p->first * region->stride[dim],
                   .n = p->n,
                   .set = p->set};
    for (int d = k.ndim - 1; d >= 0; d--) {
        k.extent[d] = d == dim ? p->rows : r->t->lines->extent[d];
        k.line_stride[d] = region->stride[d];
        k.box_stride[d] = dense;
        dense *= d == dim ? 1 : k.extent[d];
    }
    k.box_stride[dim] = dense;
    k.box_offset = p->from * dense;
    k.index_stride[dim] = 1;
    k.index_offset = p->from;
    if (p->rows > 0 && dense > 0) {
        bool takes = p->kernel == DMI_KERNEL_take;
        dmi_ref refs[3] = {p->numbers, takes ? p->array : p->packed, takes ? p->packed : p->array};
        dmi_build_kernel(r->b, p->kernel, &k, sizeof k, refs, 3, NULL);
    }
}

/* All rows but `kept` ones from row `first` on. */
static void move_others(const rows *r, const packing *p, int64_t first, int64_t kept)
{
    packing before = *p, behind = *p;
    before.rows = first;
    behind.from = first + kept;
    behind.rows = p->rows - behind.from;
    move_rows(r, &before);
    move_rows(r, &behind);
}

/* Lines that this worker holds go at once to their places in box. */
static void take_own(const rows *r)
{
    const dmi_region *lines = &r->lines, *box = &r->box;
    dmi_region mine;
    int dim = r->t->dim;
    region_of(r->b, r->t->indices, &mine);
    dmi_index k = {.dtype = r->t->lines->dtype,
                   .index_dtype = r->t->indices->dtype,
                   .mode = r->t->mode,
                   .some = true,
                   .ndim = lines->ndim,
                   .dim = dim,
                   .index_offset = dmi_region_start(&mine),
                   .box_offset = dmi_region_start(box),
                   .line_offset = dmi_region_start(lines) -
                                  dmi_dimset_first_position(&lines->dim[dim]) * lines->stride[dim],
                   .n = r->t->lines->extent[dim],
                   .set = lines->dim[dim]};
    k.index_stride[dim] = mine.stride[0];
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = d == dim ? r->wanted : r->t->lines->extent[d];
        k.line_stride[d] = lines->stride[d];
        k.box_stride[d] = box->stride[d];
    }
    dmi_ref refs[3] = {dmi_ref_operand(0, DMI_READ), dmi_ref_operand(1, DMI_READ),
                       dmi_ref_operand(2, DMI_READWRITE)};
    dmi_build_kernel(r->b, DMI_KERNEL_take, &k, sizeof k, refs, 3, NULL);
}

/* By indices of the array itself, which came to this worker. */
static packing by_index(const rows *r, const dmi_region *region, int packed, int mode)
{
    const dmi_dimset *set = &region->dim[r->t->dim];
    return (packing){.rows = r->held,
                     .n = r->t->lines->extent[r->t->dim],
                     .numbers = dmi_ref_work(r->asked, DMI_READ),
                     .packed = dmi_ref_work(packed, mode),
                     .region = region,
                     .set = *set,
                     .first = set->count > 0 ? dmi_dimset_first_position(set) : 0};
}

/* By where indices of this worker's own were before they were sorted. */
static packing by_place(const rows *r, const dmi_region *region, int packed, int mode)
{
    return (packing){.rows = r->wanted,
                     .n = r->wanted,
                     .numbers = dmi_ref_work(r->place, DMI_READ),
                     .packed = dmi_ref_work(packed, mode),
                     .region = region,
                     .set = dmi_dimset_interval(0, r->wanted),
                     .unique = true};
}

/* The lines go, packed, from those who hold them to those who asked; those that a worker holds itself go while
 * the others are on their way. */
dm_status dmi_plan_take_rows(dmi_builder *b, const dmi_call *call, const dmi_indexing *t)
{
    rows r = {.b = b, .t = t};
    dmi_mark done = {0};
    int workers = b->profile->workers, me = b->me;
    if (me >= workers) {
        return DM_OK;
    }
    strcpy(b->plan->algorithm, "exchange");
    region_of(b, t->box, &r.box);
    region_of(b, t->lines, &r.lines);
    ask(&r, call, true);
    int64_t own_taken = dmi_exchange_taken(&r.x, workers, me, me),
            own_given = dmi_exchange_given(&r.x, workers, me, me);
    int64_t own = dmi_exchange_taken(&r.x, workers, me, me + 1) - own_taken;
    int given = dmi_build_work(b, r.held * r.x.row_bytes), taken = dmi_build_work(b, r.wanted * r.x.row_bytes);
    dmi_build_phase(b);
    packing gather = by_index(&r, &r.lines, given, DMI_WRITE);
    gather.kernel = DMI_KERNEL_take;
    gather.array = dmi_ref_operand(1, DMI_READ);
    move_others(&r, &gather, own_taken, own);
    dmi_build_phase(b);
    r.x.back = true;
    r.x.from = dmi_ref_work(given, DMI_READ);
    r.x.to = dmi_ref_work(taken, DMI_WRITE);
    dmi_plan_exchange(b, &r.x, NULL, NULL, done);
    if (own > 0 && r.x.row_bytes > 0) {
        take_own(&r);
    }
    dmi_build_phase(b);
    packing scatter = by_place(&r, &r.box, taken, DMI_READ);
    scatter.kernel = DMI_KERNEL_put;
    scatter.array = dmi_ref_operand(2, DMI_READWRITE);
    move_others(&r, &scatter, own_given, own);
    return DM_OK;
}

/* The values go, packed, with their indices to those who hold the lines, and come there in the order of the
 * indices. */
dm_status dmi_plan_put_rows(dmi_builder *b, const dmi_call *call, const dmi_indexing *t)
{
    rows r = {.b = b, .t = t};
    dmi_mark done = {0};
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    strcpy(b->plan->algorithm, "exchange");
    region_of(b, t->box, &r.box);
    region_of(b, t->lines, &r.lines);
    ask(&r, call, false);
    int given = dmi_build_work(b, r.wanted * r.x.row_bytes), taken = dmi_build_work(b, r.held * r.x.row_bytes);
    packing gather = by_place(&r, &r.box, given, DMI_WRITE);
    gather.kernel = DMI_KERNEL_take;
    gather.array = dmi_ref_operand(1, DMI_READ);
    move_rows(&r, &gather);
    dmi_build_phase(b);
    r.x.from = dmi_ref_work(given, DMI_READ);
    r.x.to = dmi_ref_work(taken, DMI_WRITE);
    dmi_plan_exchange(b, &r.x, NULL, NULL, done);
    dmi_build_phase(b);
    packing scatter = by_index(&r, &r.lines, taken, DMI_READ);
    scatter.kernel = DMI_KERNEL_put;
    scatter.array = dmi_ref_operand(2, DMI_READWRITE);
    scatter.adds = call->args.i[DMI_INDEX_ADDS] != 0;
    move_rows(&r, &scatter);
    return DM_OK;
}
