#include "ops/product/gemm.h"

#include <assert.h>
#include <string.h>

enum { MEMORY_SHARE = 16 };

/* The default without p->workspace. On H200 slices of 800 indices of k cost a fifth of the product's time. */
#define IN_FLIGHT (INT64_C(256) << 20)
#define GPU_IN_FLIGHT (INT64_C(4) << 30)

int64_t dmi_product_allowance(const dmi_product *p)
{
    const dmi_profile *profile = p->b->profile;
    return p->workspace > 0            ? p->workspace
           : profile->device_bytes > 0 ? profile->device_bytes / MEMORY_SHARE
                                       : INT64_MAX;
}

int64_t dmi_product_in_flight(const dmi_product *p)
{
    int64_t limit = dmi_product_allowance(p);
    return p->workspace > 0 ? limit : DMI_MIN(limit, p->b->profile->gpu ? GPU_IN_FLIGHT : IN_FLIGHT);
}

dm_dtype dmi_product_type(dm_dtype a, dm_dtype b, dm_dtype c)
{
    dm_dtype operand[3] = {a, b, c}, type = a == DM_F64 || b == DM_F64 || c == DM_F64 ? DM_F64 : DM_F32;
    for (int i = 0; i < 3; i++) {
        type = dmi_dtype_is_complex(operand[i]) ? dmi_dtype_promote(type, operand[i]) : type;
    }
    return type;
}

static bool is_f8(dm_dtype dtype)
{
    return dtype == DM_F8E4M3 || dtype == DM_F8E5M2;
}

/* GPUs multiply 16-bit floats of one type, and 8-bit floats. A 16-bit float holds every value of those. */
static void choose_narrow(dmi_product *p)
{
    dm_dtype a = p->op[0]->dtype, b = p->op[1]->dtype, longer = is_f8(a) ? b : a;
    if (is_f8(a) && is_f8(b)) {
        p->kernel_type = a;
        p->kernel_b = a == b ? 0 : b;
    } else if ((longer == DM_F16 || longer == DM_BF16) && (a == b || is_f8(a) || is_f8(b))) {
        p->kernel_type = longer;
    }
}

void dmi_product_operands(dmi_builder *b, const dmi_call *call, dmi_product *p)
{
    *p = (dmi_product){.b = b,
                       .op = {&call->operand[DMI_GEMM_A].desc, &call->operand[DMI_GEMM_B].desc},
                       .c = &call->operand[DMI_GEMM_C].desc,
                       .user_c = &call->operand[DMI_GEMM_C].desc,
                       .out = dmi_ref_operand(DMI_GEMM_C, DMI_READ),
                       .scalar = {DMI_SCALAR_S0, DMI_SCALAR_S1},
                       .trans = {call->args.i[0] != 0, call->args.i[1] != 0},
                       .conj = {call->args.i[0] == DMI_CONJUGATED, call->args.i[1] == DMI_CONJUGATED},
                       .beta_zero = call->args.i[2],
                       .acc_work = -1,
                       .workspace = b->profile->gemm_workspace,
                       .workspace_limit = call->workspace_limit};
    if (p->workspace_limit > 0 && (p->workspace == 0 || p->workspace_limit < p->workspace)) {
        p->workspace = p->workspace_limit;
    }
    p->replica = call->noperand > DMI_GEMM_REPLICA ? &call->operand[DMI_GEMM_REPLICA].desc : NULL;
    p->outer_dim[0] = p->trans[0] ? 1 : 0;
    p->inner_dim[0] = 1 - p->outer_dim[0];
    p->inner_dim[1] = p->trans[1] ? 1 : 0;
    p->outer_dim[1] = 1 - p->inner_dim[1];
    p->m = p->c->extent[p->c->ndim - 2];
    p->n = p->c->extent[p->c->ndim - 1];
    p->k = p->op[0]->extent[p->op[0]->ndim - 2 + p->inner_dim[0]];
    p->type = dmi_product_type(p->op[0]->dtype, p->op[1]->dtype, p->c->dtype);
    p->elem = dmi_dtype_bytes(p->type);
    p->kernel_type = p->type;
    if (b->profile->gpu && p->type == DM_F32) {
        choose_narrow(p);
    }
    int compute = call->compute == DMI_COMPUTE_DEFAULT ? b->profile->gemm_compute : call->compute;
    bool asked = compute == DMI_COMPUTE_TF32 && p->kernel_type == DM_F32 &&
                 (p->op[0]->dtype == DM_F32 || p->op[1]->dtype == DM_F32);
    p->tf32 = asked && b->profile->gpu;
    p->compute = p->tf32 ? "tf32" : asked ? "f32 (tf32 only on GPUs)" : NULL;
    p->direct = p->c->dtype == p->type;
}

dm_status dmi_product_begin(dmi_builder *b, const dmi_call *call, dmi_product *p)
{
    dmi_product_operands(b, call, p);
    return dmi_product_place(p);
}

bool dmi_product_makes(const dmi_product *p, dm_dtype c)
{
    return c == p->kernel_type || dmi_gemm_takes_c(p->kernel_type, c);
}

void dmi_product_accumulate(dmi_product *p, bool single)
{
    p->direct = p->direct || (single && p->c == p->user_c && dmi_product_makes(p, p->c->dtype));
    if (!p->direct) {
        dmi_region own;
        dmi_product_c(p, p->b->me, &own);
        p->acc_work = dmi_build_work(p->b, own.count * p->elem);
    }
}

void dmi_product_c(const dmi_product *p, int worker, dmi_region *out)
{
    if (dmi_desc_region_count(p->c, worker) == 0) {
        memset(out, 0, sizeof *out);
        out->ndim = 2;
        out->dim[0] = out->dim[1] = dmi_dimset_interval(0, 0);
        out->stride[0] = out->stride[1] = 1;
        return;
    }
    if (p->scatter) {
        dmi_segment_region(p->c, worker, 1, 0, out);
    } else {
        dmi_desc_region(p->c, worker, 0, out);
    }
    if (!p->direct) {
        dmi_region_dense(out, 0);
    }
}

void dmi_product_want(const dmi_product *p, int which, const dmi_dimset *outer, const dmi_dimset *inner,
                      dmi_region *out)
{
    memset(out, 0, sizeof *out);
    out->ndim = 2;
    out->dim[p->outer_dim[which]] = *outer;
    out->dim[p->inner_dim[which]] = *inner;
    out->count = outer->count * inner->count;
    dmi_region_dense(out, 0);
}

bool dmi_product_in_place(const dmi_product *p, int which, int worker, const dmi_dimset *outer,
                          const dmi_dimset *inner, dmi_region *out)
{
    dmi_product_want(p, which, outer, inner, out);
    return dmi_fetch_in_place(p->op[which], worker, out);
}

void dmi_product_gathered(const dmi_product *p, int which, const dmi_region *c, dmi_region *out)
{
    dmi_dimset inner = dmi_dimset_interval(0, p->k);
    dmi_product_want(p, which, &c->dim[which], &inner, out);
}

bool dmi_product_gathered_in_place(const dmi_product *p, int which, int worker, const dmi_region *c,
                                   dmi_region *out)
{
    dmi_product_gathered(p, which, c, out);
    return dmi_fetch_in_place(p->op[which], worker, out);
}

bool dmi_product_takes_whole(const dmi_product *p, int which)
{
    int64_t span = which == 0 ? p->m : p->n;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        if (c.count > 0 && c.dim[which].count != span) {
            return false;
        }
    }
    return true;
}

/* If a is transposed and b is not, cuBLAS runs at little more than half its speed in TF32, because Hopper's
 * units take TF32 along k only. In f64 it is up to a tenth slower. */
static bool may_be_transposed(const dmi_product *p, int which)
{
    return p->b->profile->gpu && (p->tf32 || p->kernel_type == DM_F64) && which == 0 && p->trans[0] &&
           !p->trans[1];
}

/* Transposing a first is faster if c has enough columns and there is memory for the copy. All holders of a
 * region of c decide alike. */
static bool to_be_transposed(const dmi_product *p, int which, int64_t bytes)
{
    dmi_region c;
    if (!may_be_transposed(p, which) || bytes > dmi_product_allowance(p)) {
        return false;
    }
    dmi_product_c(p, p->b->me, &c);
    return (c.count > 0 ? c.dim[1].count : p->n) >= p->b->profile->gemm_transpose;
}

bool dmi_product_spread(const dmi_product *p, int which, const dmi_region *region)
{
    int rows = region->ndim - 2;
    return p->b->profile->gpu && p->inner_dim[which] == 0 && region->dim[rows + 1].count == 1 &&
           region->dim[rows].count > 1 && region->stride[rows] != 1;
}

int64_t dmi_product_copied(const dmi_product *p, int which, int64_t count)
{
    bool copied = p->op[which]->dtype != dmi_product_kernel_type(p, which) || may_be_transposed(p, which);
    return copied ? count * dmi_dtype_bytes(p->kernel_type) : 0;
}

int64_t dmi_matrix_step_k(const dmi_product *p, int which, const dmi_matrix_ref *matrix)
{
    return (p->inner_dim[which] == 0) != matrix->transposed ? matrix->ld : 1;
}

dmi_matrix_ref dmi_product_matrix(dmi_product *p, int which, const dmi_region *region, dmi_ref ref, int *work,
                                  const dmi_mark after, dmi_mark done)
{
    dmi_matrix_ref matrix = {ref, region->count > 0 ? dmi_region_start(region) : 0,
                             DMI_MAX(region->stride[0], 1), false};
    dm_dtype from = p->op[which]->dtype;
    bool transposed = to_be_transposed(p, which, region->count * p->elem);
    dm_dtype to = dmi_product_kernel_type(p, which);
    bool as_it_lies = from == to && !transposed && !dmi_product_spread(p, which, region);
    if (after) {
        dmi_mark_merge(done, after);
    }
    if (as_it_lies || region->count == 0) {
        return matrix;
    }
    dmi_builder *b = p->b;
    dmi_region dense = *region;
    dmi_copy copy;
    dmi_region_dense(&dense, 0);
    int64_t ld = DMI_MAX(dense.dim[transposed ? 0 : 1].count, 1);
    if (transposed) {
        dense.stride[0] = 1;
        dense.stride[1] = ld;
        dense.offset = 0;
        dense.offset = -dmi_region_start(&dense);
    }
    if (*work < 0) {
        *work = dmi_build_work(b, 0);
    }
    if (!b->failed) {
        int64_t *bytes = &b->plan->work_bytes[*work];
        *bytes = DMI_MAX(*bytes, region->count * dmi_dtype_bytes(p->kernel_type));
    }
    if (dmi_region_copy(b, region, &dense, from, to, &copy)) {
        /* products before this one may still read the workspace: they are on the same lane */
        dmi_ref refs[2] = {ref, dmi_ref_work(*work, DMI_WRITE)};
        refs[0].mode = DMI_READ;
        dmi_mark_step(done, dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, after));
    }
    return (dmi_matrix_ref){dmi_ref_work(*work, DMI_READ), 0, ld, transposed};
}

dmi_matrix_ref dmi_product_acc(const dmi_product *p)
{
    dmi_region own;
    dmi_product_c(p, p->b->me, &own);
    dmi_ref ref = p->direct ? p->out : dmi_ref_work(p->acc_work, DMI_READWRITE);
    ref.mode = DMI_READWRITE;
    return (dmi_matrix_ref){ref, own.count > 0 ? dmi_region_start(&own) : 0, DMI_MAX(own.stride[0], 1), false};
}

void dmi_product_step(dmi_product *p, const dmi_matrix_ref *a, const dmi_matrix_ref *b, int64_t m0, int64_t n0,
                      int64_t m, int64_t n, int64_t k, bool first, const dmi_mark after, dmi_mark done)
{
    dmi_matrix_ref c = dmi_product_acc(p);
    dmi_gemm g = {.dtype = p->kernel_type,
                  .b_dtype = p->kernel_b,
                  .c_dtype = p->direct ? p->c->dtype : p->type,
                  .tf32 = p->tf32,
                  .trans_a = p->trans[0] != a->transposed,
                  .trans_b = p->trans[1] != b->transposed,
                  .conj_a = p->conj[0],
                  .conj_b = p->conj[1],
                  .m = m,
                  .n = n,
                  .k = k,
                  .lda = a->ld,
                  .ldb = b->ld,
                  .ldc = c.ld,
                  .a_offset = a->offset,
                  .b_offset = b->offset,
                  .c_offset = c.offset + m0 * c.ld + n0};
    dmi_ref refs[3] = {a->ref, b->ref, c.ref};
    dmi_step *step = dmi_build_kernel(p->b, DMI_KERNEL_gemm, &g, sizeof g, refs, 3, after);
    step->scalar[0] = p->direct ? p->scalar[0] : DMI_SCALAR_ONE;
    step->scalar[1] = !first ? DMI_SCALAR_ONE : p->direct && !p->beta_zero ? p->scalar[1] : DMI_SCALAR_ZERO;
    step->flops = dmi_gemm_flops(&g);
    dmi_mark_step(p->finished, step);
    if (done) {
        dmi_mark_step(done, step);
    }
}

void dmi_product_store(dmi_product *p, const dmi_region *region, dmi_ref t, int64_t t_offset,
                       const dmi_mark after, dmi_mark done)
{
    if (region->count == 0) {
        return;
    }
    dmi_region dense = *region;
    int64_t extent[DM_MAX_DIMS];
    dmi_region_dense(&dense, 0);
    for (int d = 0; d < region->ndim; d++) {
        extent[d] = region->dim[d].count;
    }
    dmi_side c = {p->user_c->dtype, region->stride, dmi_region_start(region), p->out};
    dmi_side term[2] = {{p->type, dense.stride, t_offset, t}, c};
    dmi_map_program program;
    if (p->scalar[0] == DMI_SCALAR_ONE) {
        dmi_convert_program(p->type, c.dtype, &program);
    } else {
        (void)dmi_linear_program((dm_dtype[]){p->type, c.dtype}, (bool[]){true, !p->beta_zero}, c.dtype, &program);
    }
    dmi_step *step = dmi_build_map(p->b, &program, region->ndim, extent, NULL, term, &c, after);
    if (done) {
        dmi_mark_step(done, step);
    }
}

/* c has the accumulator's regions: only the type differs, and replicas may be in segments. */
static void end_in_place(dmi_product *p)
{
    dmi_mark stored = {0};
    if (!p->direct && dmi_desc_region_count(p->user_c, p->b->me) > 0) {
        dmi_region region;
        p->direct = true; /* where in the caller's c */
        dmi_product_c(p, p->b->me, &region);
        p->direct = false;
        dmi_product_store(p, &region, dmi_ref_work(p->acc_work, DMI_READ), 0, p->finished, stored);
    }
    if (p->scatter) {
        dmi_value out = {.desc = p->user_c, .ref = p->out};
        dmi_segments_share(p->b, &out, 1, 0, p->direct ? p->finished : stored);
    }
}

/* The destination of the temporary: c's own regions. */
static int64_t received_count(const void *context, int worker)
{
    return dmi_desc_region_count(context, worker);
}

static void received_region(const void *context, int worker, int64_t which, dmi_region *out)
{
    dmi_desc_region(context, worker, which, out);
}

void dmi_product_end(dmi_product *p)
{
    dmi_builder *b = p->b;
    if (b->me >= b->profile->workers) {
        return;
    }
    if (p->c == p->user_c) {
        end_in_place(p);
        return;
    }
    dmi_ref acc = dmi_ref_work(p->acc_work, DMI_READ);
    dmi_region region;
    /* Another layout: fetch the temporary to c's blocks, then round once. */
    dmi_ref received =
        dmi_ref_work(dmi_build_work(b, dmi_desc_local_count(p->user_c, b->me) * p->elem), DMI_WRITE);
    dmi_fetch fetch = {.src = p->c,
                       .src_ref = acc,
                       .dst_dtype = p->type,
                       .dst_ref = received,
                       .count = received_count,
                       .want = received_region,
                       .context = p->user_c,
                       .dense = true};
    dmi_mark here = {0};
    dmi_plan_fetch_after(b, &fetch, NULL, p->finished, here);
    int64_t offset = 0;
    received.mode = DMI_READ;
    for (int64_t i = 0; i < dmi_desc_region_count(p->user_c, b->me); i++) {
        dmi_desc_region(p->user_c, b->me, i, &region);
        dmi_product_store(p, &region, received, offset, here, NULL);
        offset += region.count;
    }
}

int64_t dmi_product_traffic(const dmi_product *p, int which)
{
    int64_t total = 0;
    dmi_dimset inner = dmi_dimset_interval(0, p->k);
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, want, have;
        dmi_product_c(p, w, &c);
        if (c.count == 0) {
            continue;
        }
        dmi_product_want(p, which, &c.dim[which], &inner, &want);
        int64_t local = 0;
        for (int64_t i = 0; i < dmi_desc_region_count(p->op[which], w); i++) {
            dmi_desc_region(p->op[which], w, i, &have);
            local +=
                dmi_dimset_overlap(&have.dim[0], &want.dim[0]) * dmi_dimset_overlap(&have.dim[1], &want.dim[1]);
        }
        total += want.count - local;
    }
    return total;
}
