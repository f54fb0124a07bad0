/* Several reductions and expressions, each a planner in a phase of its own. */
#include "ops/chain.h"
#include "ops/common.h"
#include "ops/product/gemm.h"
#include "plan/reduce.h"

#include <assert.h>
#include <string.h>

/* The tail, link by link. */
typedef struct reader {
    dmi_chain chain;
    const char *at;
} reader;

static void begin(reader *r, const dmi_call *call)
{
    memcpy(&r->chain, call->tail, sizeof r->chain);
    r->at = (const char *)call->tail + sizeof r->chain;
}

static void next(reader *r, dmi_chain_link *link, dmi_map_program *program)
{
    memcpy(link, r->at, sizeof *link);
    r->at += sizeof *link;
    if (link->row == DMI_CHAIN_MAP || link->made) {
        memcpy(program, r->at, sizeof *program - sizeof program->step);
        size_t bytes = dmi_map_program_bytes(program);
        memcpy(program, r->at, bytes);
        r->at += bytes;
    }
}

static bool reduces(const dmi_call *call, bool *last)
{
    reader r;
    dmi_chain_link link;
    dmi_map_program program;
    bool any = false;
    begin(&r, call);
    for (int i = 0; i < r.chain.links; i++) {
        next(&r, &link, &program);
        *last = link.row != DMI_CHAIN_MAP;
        any = any || *last;
    }
    return any;
}

static double elements_of(const dmi_call *call, const dmi_desc *x)
{
    double n = 1;
    for (int d = 0; d < x->ndim; d++) {
        n *= call->args.i[0] >> d & 1 ? (double)x->extent[d] : 1;
    }
    return n;
}

static void set_scales(dmi_call *call, const dmi_desc *x)
{
    reader r;
    dmi_chain_link link;
    dmi_map_program program;
    begin(&r, call);
    for (int i = 0; i < r.chain.links; i++) {
        next(&r, &link, &program);
        /* the compiler of the texts refuses types that a row does not take */
        assert(link.row == DMI_CHAIN_MAP ||
               dmi_acc_for(link.row, link.made ? (dm_dtype)link.made : call->operand[0].desc.dtype) >= 0);
        if (link.scale) {
            double less = elements_of(call, x) - call->number[link.scale - 1].re;
            call->number[link.scale - 1] = dmi_number_of(less > 0 ? less : 0);
        }
    }
}

/* An input of this kind against the shape of the elements. */
static dm_status check_input(const dmi_call *call, int kind, int i, const dmi_desc *full)
{
    dmi_desc x = call->operand[i].desc;
    bool fits = x.ndim <= full->ndim;
    if (kind == DMI_CHAIN_COLUMN) {
        fits = x.ndim == 1 && full->ndim == 2 && x.extent[0] == full->extent[0];
    } else if (kind == DMI_CHAIN_TRANSPOSED) {
        fits =
            x.ndim == 2 && full->ndim == 2 && x.extent[0] == full->extent[1] && x.extent[1] == full->extent[0];
    } else {
        for (int d = 0; fits && d < x.ndim; d++) {
            fits = x.extent[d] == 1 || x.extent[d] == full->extent[d + full->ndim - x.ndim];
        }
    }
    if (!fits) {
        char s[192], t[192];
        return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, which does not fit %s", dmi_call_name(call),
                        dmi_operand_name(call, i), dmi_shape_text(&x, s), dmi_shape_text(full, t));
    }
    return DM_OK;
}

dm_status dmi_chain_check(dmi_call *call)
{
    int out = call->noperand - 1;
    bool last = false, any = reduces(call, &last);
    const dmi_desc *full = &call->operand[any ? 0 : out].desc;
    reader r;
    dm_status status = dmi_check_dims(call, full);
    call->operand[out].mode = DMI_WRITE;
    begin(&r, call);
    for (int i = 0; i < r.chain.inputs && status == DM_OK; i++) {
        int kind = r.chain.kind[i], at = r.chain.at[i];
        if (kind != DMI_CHAIN_INDEX) {
            call->operand[at].mode = DMI_READ;
            status = check_input(call, kind, at, full);
            status =
                status == DM_OK ? dmi_check_overlap(call, at, out, kind == DMI_CHAIN_ARRAY && !last) : status;
        }
    }
    if (status == DM_OK && any) {
        status = last ? dmi_check_reduced(call, full, out) : dmi_check_same_shape(call, 0, out);
    }
    if (status == DM_OK) {
        set_scales(call, full);
    }
    return status;
}

typedef struct chain_plan {
    dmi_builder *b;
    const dmi_call *call;
    dmi_value value[DMI_CHAIN_NAMES + DMI_CHAIN_LINKS];
    dmi_desc desc[DMI_CHAIN_NAMES + DMI_CHAIN_LINKS];
    dmi_layout layout[DMI_CHAIN_NAMES];
} chain_plan;

static void plan_index(chain_plan *p, int i, int dim, const dmi_desc *full)
{
    dmi_builder *b = p->b;
    unsigned others = ((1u << full->ndim) - 1) & ~(1u << dim);
    dm_status status = dmi_build_reduced(b, full, others, DM_I64, &p->desc[i], &p->value[i]);
    b->failed = b->failed || status != DM_OK;
    dmi_ref ref = p->value[i].ref;
    ref.mode = DMI_WRITE;
    for (int64_t k = 0;
         !b->failed && b->me < b->profile->workers && k < dmi_desc_region_count(&p->desc[i], b->me); k++) {
        dmi_fill fill = {.kind = DMI_FILL_ARANGE, .dtype = DM_I64};
        dmi_desc_region(&p->desc[i], b->me, k, &fill.region);
        memcpy(fill.shape, p->desc[i].extent, sizeof fill.shape);
        if (fill.region.count > 0) {
            dmi_build_kernel(b, DMI_KERNEL_fill, &fill, sizeof fill, &ref, 1, NULL);
        }
    }
}

/* A temporary that lies as `full` does, with the transposed elements of x. */
static dm_status plan_transposed(chain_plan *p, int i, int operand, const dmi_desc *full)
{
    dmi_builder *b = p->b;
    const dmi_desc *x = &p->call->operand[operand].desc;
    p->desc[i] = *full;
    p->desc[i].dtype = x->dtype;
    int64_t count = b->me < b->profile->workers ? dmi_layout_shard_count(full->layout, b->me) : 0;
    int work = dmi_build_work(b, count * dmi_dtype_bytes(x->dtype));
    p->value[i] = (dmi_value){.desc = &p->desc[i], .ref = dmi_ref_work(work, DMI_READ)};
    dmi_mark done = {0};
    return dmi_plan_copy(b, x, dmi_ref_operand(operand, DMI_READ), &p->desc[i], dmi_ref_work(work, DMI_WRITE),
                         (int[]){1, 0}, NULL, done);
}

/* like: of the elements' shape, and laid out as indices are wanted. */
static dm_status plan_inputs(chain_plan *p, const dmi_chain *chain, const dmi_desc *full, const dmi_desc *like)
{
    bool steps = false;
    for (int i = 0; i < chain->inputs; i++) {
        int at = chain->at[i];
        dm_status status = DM_OK;
        switch (chain->kind[i]) {
        case DMI_CHAIN_INDEX:
            plan_index(p, i, at, like);
            steps = true;
            break;
        case DMI_CHAIN_TRANSPOSED:
            status = plan_transposed(p, i, at, full);
            steps = true;
            break;
        case DMI_CHAIN_COLUMN:
            p->desc[i] = p->call->operand[at].desc;
            dmi_desc_add_dim(&p->desc[i], 1, &p->layout[i]);
            p->value[i] = (dmi_value){.desc = &p->desc[i], .ref = dmi_ref_operand(at, DMI_READ)};
            break;
        default:
            assert(chain->kind[i] == DMI_CHAIN_ARRAY);
            p->value[i] = dmi_value_operand(p->call, at);
        }
        if (status != DM_OK) {
            return status;
        }
    }
    if (steps) {
        dmi_build_phase(p->b);
    }
    return DM_OK;
}

static dm_status plan_link(chain_plan *p, const dmi_chain_link *link, const dmi_map_program *program,
                           const dmi_desc *full, const dmi_value *out)
{
    dmi_value in[DMI_MAP_INPUTS];
    for (int i = 0; i < link->inputs; i++) {
        in[i] = p->value[link->in[i]];
    }
    if (link->row == DMI_CHAIN_MAP) {
        dmi_plan_map(p->b, program, in, out);
        return DM_OK;
    }
    dmi_reducing r = {
        .row = link->row,
        .reduced = (unsigned)p->call->args.i[0] & ((1u << full->ndim) - 1),
        .inputs = link->inputs,
        .in = in,
        .out = out,
        .program = link->made ? program : NULL,
        .made = (dm_dtype)link->made,
        .scalar = {link->scale ? (uint8_t)(DMI_SCALAR_S0 + link->scale - 1) : DMI_SCALAR_ONE, DMI_SCALAR_ZERO},
        .divides = link->scale != 0};
    return dmi_plan_reduce(p->b, &r);
}

dm_status dmi_chain_plan(dmi_builder *b, const dmi_call *call)
{
    reader r;
    bool last = false, any = reduces(call, &last);
    dmi_value out = dmi_value_operand(call, call->noperand - 1);
    const dmi_desc *full = any ? &call->operand[0].desc : out.desc;
    chain_plan p = {.b = b, .call = call};
    begin(&r, call);
    dm_status status = plan_inputs(&p, &r.chain, full, last ? full : out.desc);
    for (int i = 0; i < r.chain.links && status == DM_OK && !b->failed; i++) {
        dmi_chain_link link;
        dmi_map_program program;
        int to = r.chain.inputs + i;
        next(&r, &link, &program);
        if (i == r.chain.links - 1) {
            return plan_link(&p, &link, &program, full, &out);
        }
        unsigned reduced = link.row == DMI_CHAIN_MAP ? 0 : (unsigned)call->args.i[0];
        status = dmi_build_reduced(b, full, reduced, (dm_dtype)link.type, &p.desc[to], &p.value[to]);
        status = status == DM_OK && !b->failed ? plan_link(&p, &link, &program, full, &p.value[to]) : status;
        dmi_build_phase(b);
    }
    return status;
}
