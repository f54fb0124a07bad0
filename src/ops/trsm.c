/* op(a) x = b, or x op(a) = b, of one block of a: every worker solves for some of the right-hand sides, with
 * all of a. Solves with larger matrices are made of these and of products: api/triangular.c. */
#include "ops/common.h"
#include "ops/common_team.h"

#include <assert.h>
#include <string.h>

enum { RIGHT, UPPER, TRANS, UNIT }; /* args.i */

dm_status dmi_trsm_check(dmi_call *call)
{
    const dmi_desc *a = &call->operand[0].desc, *b = &call->operand[1].desc;
    /* dm_trsm has checked a and b, of which these are blocks */
    assert(a->ndim == 2 && b->ndim == 2 && a->extent[0] == a->extent[1]);
    assert(a->extent[0] == b->extent[call->args.i[RIGHT]] && a->dtype == b->dtype);
    (void)a, (void)b;
    return dmi_check_overlap(call, 0, 1, false);
}

/* A temporary of x's shape at the team: split along dim `split`, or (-1) replicated. */
static dm_status make(dmi_builder *b, const dmi_team *team, const dmi_desc *x, int split, dmi_desc *desc, int *work)
{
    const dmi_layout *layout;
    dmi_layout_spec spec;
    dmi_team_layout(team, x, split, &spec);
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status != DM_OK) {
        return status;
    }
    *desc = dmi_desc_whole(x->dtype, layout, 0);
    int64_t count = b->me < team->session ? dmi_layout_shard_count(layout, b->me) : 0;
    *work = dmi_build_work(b, count * dmi_dtype_bytes(x->dtype));
    return DM_OK;
}

static void solve(dmi_builder *b, const dmi_call *call, int a_work, const dmi_value *x)
{
    const dmi_desc *a = &call->operand[0].desc;
    dmi_region region;
    if (b->me >= b->profile->workers || dmi_desc_region_count(x->desc, b->me) == 0) {
        return;
    }
    dmi_desc_region(x->desc, b->me, 0, &region);
    dmi_trsm k = {.dtype = x->desc->dtype,
                  .right = call->args.i[RIGHT],
                  .upper = call->args.i[UPPER],
                  .trans = call->args.i[TRANS],
                  .unit = call->args.i[UNIT],
                  .m = region.dim[0].count,
                  .n = region.dim[1].count,
                  .lda = DMI_MAX(a->extent[0], 1),
                  .ldb = DMI_MAX(region.stride[0], 1),
                  .b_offset = region.count > 0 ? dmi_region_start(&region) : 0};
    dmi_ref refs[2] = {dmi_ref_work(a_work, DMI_READ), x->ref};
    refs[1].mode = DMI_READWRITE;
    if (region.count > 0) {
        dmi_step *step = dmi_build_kernel(b, DMI_KERNEL_trsm, &k, sizeof k, refs, 2, NULL);
        step->flops = k.m * k.n * a->extent[0] * dmi_multiply_add_flops(k.dtype) / 2;
    }
}

dm_status dmi_trsm_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *a = &call->operand[0].desc;
    dmi_value x = dmi_value_operand(call, 1);
    int along = call->args.i[RIGHT] ? 1 : 0, a_work, b_work = -1;
    bool in_place = x.desc->layout->kind == DMI_LAYOUT_GRID && x.desc->layout->grid[along] == 1;
    dmi_desc a_desc, b_desc;
    dmi_mark done = {0};
    dmi_team team;
    if (!dmi_build_team(b, call, &team)) {
        return DM_OK;
    }
    dm_status status = make(b, &team, a, -1, &a_desc, &a_work);
    if (status == DM_OK && !in_place) {
        status = make(b, &team, x.desc, 1 - along, &b_desc, &b_work);
    }
    if (status != DM_OK || b->failed) {
        return status;
    }
    dmi_value part = in_place ? x : (dmi_value){.desc = &b_desc, .ref = dmi_ref_work(b_work, DMI_READ)};
    status = dmi_plan_copy(b, a, dmi_ref_operand(0, DMI_READ), &a_desc, dmi_ref_work(a_work, DMI_WRITE), NULL,
                           NULL, done);
    if (status == DM_OK && !in_place) {
        status = dmi_plan_copy(b, x.desc, x.ref, &b_desc, dmi_ref_work(b_work, DMI_WRITE), NULL, NULL, done);
    }
    dmi_build_phase(b);
    solve(b, call, a_work, &part);
    if (status == DM_OK && !in_place) {
        dmi_build_phase(b);
        status = dmi_plan_copy(b, &b_desc, part.ref, x.desc, dmi_ref_operand(1, DMI_WRITE), NULL, NULL, done);
    }
    return status;
}
