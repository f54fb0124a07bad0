/* Take where all workers know which rows are wanted: each goes from where it is to its place in one copy. */
#include "ops/common_index.h"

#include <string.h>

bool dmi_rows_listed(const dmi_indexing *t)
{
    bool one = t->box->layout->kind == DMI_LAYOUT_GRID && !dmi_desc_steps(t->box) && !dmi_desc_steps(t->lines);
    return t->gathers && !t->along && one && dmi_rows_held(t->lines, t->dim);
}

typedef struct listed {
    dmi_builder *b;
    const dmi_indexing *t;
    const int64_t *row; /* of each index */
    dmi_index_owner owner;
} listed;

/* A worker's region: one, or none. */
static bool region_of(const dmi_desc *x, int worker, dmi_region *out)
{
    if (dmi_desc_region_count(x, worker) > 0) {
        dmi_desc_region(x, worker, 0, out);
        return out->count > 0;
    }
    return false;
}

/* The runs along dim: rows that worker `from` holds, at their places among those of `to`. */
static dmi_run *runs_of(const listed *l, int from, const dmi_dimset *lines, const dmi_dimset *box,
                        int64_t *count, int64_t *rows)
{
    int64_t first = dmi_dimset_first_position(lines), made = 0;
    *rows = 0;
    for (int64_t k = 0; k < box->count; k++) {
        *rows += dmi_index_holder(&l->owner, l->row[dmi_dimset_index(box, k)]) == from;
    }
    dmi_run *run = *rows > 0 ? dmi_build_alloc(l->b, (size_t)*rows * sizeof *run) : NULL;
    for (int64_t k = 0; k < box->count && run; k++) {
        int64_t index = l->row[dmi_dimset_index(box, k)];
        if (dmi_index_holder(&l->owner, index) != from) {
            continue;
        }
        int64_t at = dmi_dimset_position(lines, index) - first;
        if (made > 0 && run[made - 1].a + run[made - 1].len == at && run[made - 1].b + run[made - 1].len == k) {
            run[made - 1].len++;
        } else {
            run[made++] = (dmi_run){.a = at, .b = k, .len = 1};
        }
    }
    *count = made;
    return run;
}

/* The elements that `to` wants of `from`. False: there are none. */
static bool listed_copy(const listed *l, int from, int to, dmi_copy *out)
{
    dmi_region lines, box;
    int64_t rows;
    if (!region_of(l->t->lines, from, &lines) || !region_of(l->t->box, to, &box)) {
        return false;
    }
    *out = (dmi_copy){.ndim = lines.ndim,
                      .src_dtype = l->t->lines->dtype,
                      .dst_dtype = l->t->box->dtype,
                      .src_offset = dmi_region_start(&lines),
                      .dst_offset = dmi_region_start(&box),
                      .count = 1};
    for (int d = 0; d < lines.ndim; d++) {
        dmi_run *runs = NULL;
        if (d == l->t->dim) {
            runs = runs_of(l, from, &lines.dim[d], &box.dim[d], &out->nrun[d], &rows);
        } else {
            rows = dmi_dimset_overlap(&lines.dim[d], &box.dim[d]);
            out->nrun[d] =
                rows > 0 ? dmi_dimset_intersect(&lines.dim[d], &box.dim[d], &l->b->plan->arena, &runs) : 0;
            l->b->failed = l->b->failed || out->nrun[d] < 0;
        }
        if (rows == 0 || !runs || l->b->failed) {
            return false;
        }
        out->run[d] = runs;
        out->count *= rows;
        out->src_stride[d] = lines.stride[d];
        out->dst_stride[d] = box.stride[d];
    }
    return true;
}

dm_status dmi_plan_take_listed(dmi_builder *b, const dmi_call *call, const dmi_indexing *t)
{
    listed l = {.b = b, .t = t, .row = call->tail, .owner = dmi_rows_owner(t->lines, t->dim, t->mode)};
    dmi_ref lines = dmi_ref_operand(1, DMI_READ), box = dmi_ref_operand(2, DMI_WRITE);
    int workers = b->profile->workers, me = b->me;
    dmi_copy copy;
    if (me >= workers) {
        return DM_OK;
    }
    strcpy(b->plan->algorithm, "list");
    b->plan->once = true;
    for (int i = 1; i < workers && !b->failed; i++) {
        dmi_build_round(b);
        int to = (me + i) % workers, from = (me - i + workers) % workers;
        if (listed_copy(&l, from, me, &copy)) {
            dmi_build_expect_of(b, from, box, lines, &copy, NULL);
        }
        if (listed_copy(&l, me, to, &copy)) {
            dmi_build_push(b, to, lines, &copy, NULL);
        }
    }
    if (listed_copy(&l, me, me, &copy)) {
        dmi_ref refs[2] = {lines, box};
        dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, NULL);
    }
    return DM_OK;
}
