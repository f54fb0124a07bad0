/* Elements that are not zero, of an array whose rows the workers have in their order. Two commands: the number
 * that each worker has (DMI_NONZERO_COUNTS: row w of out0 is that of worker w); then their indices, an array
 * for each dim, where the tail has these numbers. So each worker knows which places of the results are its own
 * elements'. */
#include "ops/nonzero.h"

#include <string.h>

dm_status dmi_nonzero_check(dmi_call *call)
{
    (void)call; /* the library's own, made right */
    return DM_OK;
}

typedef struct finding {
    dmi_builder *b;
    const dmi_call *call;
    const int64_t *counts; /* [workers] */
    int dims;
} finding;

/* A range of places in the results. */
typedef struct range {
    int64_t lo, hi;
} range;

static range found_by(const finding *f, int worker)
{
    int64_t lo = 0;
    for (int w = 0; w < worker; w++) {
        lo += f->counts[w];
    }
    return (range){lo, lo + f->counts[worker]};
}

/* The places that a worker holds, and where the first of them is in its memory. */
static range held_by(const finding *f, int worker, int64_t *start)
{
    const dmi_desc *out = &f->call->operand[1].desc;
    dmi_region region;
    *start = 0;
    if (dmi_desc_region_count(out, worker) == 0) {
        return (range){0, 0};
    }
    dmi_desc_region(out, worker, 0, &region);
    if (region.count == 0) {
        return (range){0, 0};
    }
    *start = dmi_region_start(&region);
    int64_t lo = dmi_dimset_index(&region.dim[0], 0);
    return (range){lo, lo + region.count};
}

static range both(range a, range b)
{
    range r = {DMI_MAX(a.lo, b.lo), DMI_MIN(a.hi, b.hi)};
    return r.lo < r.hi ? r : (range){a.lo, a.lo};
}

/* What one worker has found and another one holds, of one dim. False: nothing. */
static bool passed(const finding *f, int from, int to, int dim, dmi_copy *out)
{
    int64_t start, unused;
    const range found = found_by(f, from), held = held_by(f, to, &start), r = both(found, held);
    const range own = both(found, held_by(f, from, &unused));
    const int64_t kept = found.hi - found.lo - (own.hi - own.lo);
    dmi_run *run = r.lo < r.hi ? dmi_build_alloc(f->b, sizeof *run) : NULL;
    if (!run) {
        return false;
    }
    *run = (dmi_run){.len = r.hi - r.lo};
    *out = (dmi_copy){.ndim = 1, .src_dtype = DM_I64, .dst_dtype = DM_I64, .count = r.hi - r.lo};
    out->nrun[0] = 1;
    out->run[0] = run;
    out->src_stride[0] = out->dst_stride[0] = 1;
    out->src_offset = dim * kept + r.lo - found.lo - (r.lo < own.hi ? 0 : own.hi - own.lo);
    out->dst_offset = start + r.lo - held.lo;
    return true;
}

/* The box of x at this worker. False: it has none. */
static bool box_of(const dmi_builder *b, const dmi_desc *x, dmi_nonzero *out)
{
    dmi_region region;
    if (dmi_desc_region_count(x, b->me) == 0) {
        return false;
    }
    dmi_desc_region(x, b->me, 0, &region);
    out->offset = dmi_region_start(&region);
    for (int d = 0; d < region.ndim && region.count > 0; d++) {
        out->extent[d] = region.dim[d].count;
        out->stride[d] = region.stride[d];
        out->first[d] = dmi_dimset_index(&region.dim[d], 0);
    }
    return region.count > 0;
}

static void count_them(dmi_builder *b, dmi_nonzero *k, bool some)
{
    dmi_ref refs[2] = {dmi_ref_operand(0, DMI_READ)};
    refs[some] = dmi_ref_operand(1, DMI_WRITE);
    dmi_build_kernel(b, DMI_KERNEL_nonzero, k, sizeof *k, refs, 1 + some, NULL);
}

/* Lists what this worker has found; at once to its place what it holds. */
static void list_them(const finding *f, dmi_nonzero *k, int lists, dmi_mark done)
{
    dmi_ref refs[2 + DM_MAX_DIMS] = {dmi_ref_operand(0, DMI_READ), dmi_ref_work(lists, DMI_WRITE)};
    int64_t start;
    const range found = found_by(f, f->b->me), held = held_by(f, f->b->me, &start), own = both(found, held);
    k->lists = true;
    k->count = found.hi - found.lo;
    k->own_from = own.lo - found.lo;
    k->own_to = own.hi - found.lo;
    k->out_at = own.lo < own.hi ? start + own.lo - held.lo : 0;
    for (int d = 0; d < f->dims; d++) {
        refs[2 + d] = dmi_ref_operand(1 + d, DMI_WRITE);
    }
    dmi_mark_step(done, dmi_build_kernel(f->b, DMI_KERNEL_nonzero, k, sizeof *k, refs, 2 + f->dims, NULL));
}

dm_status dmi_nonzero_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc;
    finding f = {.b = b, .call = call, .counts = call->tail, .dims = x->ndim};
    dmi_nonzero k = {.dtype = x->dtype, .ndim = x->ndim};
    const int workers = b->profile->workers, me = b->me;
    dmi_mark listed = {0};
    dmi_copy copy;
    if (me >= workers) {
        return DM_OK;
    }
    bool some = box_of(b, x, &k);
    if (call->args.i[DMI_NONZERO_COUNTS]) {
        count_them(b, &k, some);
        return DM_OK;
    }
    const range found = found_by(&f, me);
    int64_t start;
    const range own = both(found, held_by(&f, me, &start));
    int lists = dmi_build_work(b, (found.hi - found.lo - (own.hi - own.lo)) * 8 * f.dims);
    if (found.lo < found.hi) {
        list_them(&f, &k, lists, listed);
    }
    for (int i = 1; i < workers && !b->failed; i++) {
        int to = (me + i) % workers, from = (me - i + workers) % workers;
        dmi_build_round(b);
        for (int d = 0; d < f.dims; d++) {
            if (passed(&f, from, me, d, &copy)) {
                dmi_build_expect(b, from, dmi_ref_operand(1 + d, DMI_WRITE), &copy, NULL);
            }
        }
        for (int d = 0; d < f.dims; d++) {
            if (passed(&f, me, to, d, &copy)) {
                dmi_build_push(b, to, dmi_ref_work(lists, DMI_READ), &copy, listed);
            }
        }
    }
    return DM_OK;
}
