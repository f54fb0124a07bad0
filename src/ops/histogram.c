/* out = how many elements of x are in each bin, or the sum of their weights */
#include "ops/common_order.h"
#include "plan/reduce.h"

#include <dmath/order.h>

#include <math.h>
#include <string.h>

enum { KIND, WEIGHTS, LO, HI = LO + 2 }; /* args.i; LO, HI: two each */

static void put_double(int32_t *to, double value)
{
    memcpy(to, &value, sizeof value);
}

static double get_double(const int32_t *from)
{
    double value;
    memcpy(&value, from, sizeof value);
    return value;
}

static dm_status submit(dm_session *session, dmi_call *call, dm_array x, dm_array edges, dm_array weights,
                        dm_array out)
{
    static const char *const names[2][2][4] = {{{"x", "out"}, {"x", "weights", "out"}},
                                               {{"x", "edges", "out"}, {"x", "edges", "weights", "out"}}};
    bool has_edges = call->args.i[KIND] == DMI_BINS_EDGES, has_weights = weights.id != 0;
    dm_array arrays[4] = {x};
    int n = 1;
    call->op = DMI_OP_histogram;
    call->names = names[has_edges][has_weights];
    call->args.i[WEIGHTS] = has_weights;
    if (has_edges) {
        arrays[n++] = edges;
    }
    if (has_weights) {
        arrays[n++] = weights;
    }
    arrays[n++] = out;
    call->noperand = n;
    return dmi_call_submit(session, call, arrays);
}

dm_status dm_histogram(dm_session *session, dm_array x, double lo, double hi, dm_array weights, dm_array out)
{
    dmi_call call = {.args = {.i = {[KIND] = DMI_BINS_RANGE}}};
    if (!isfinite(lo) || !isfinite(hi) || lo > hi) {
        return dmi_fail(DM_ERR_ARG, "histogram: lo is %g and hi is %g: no range", lo, hi);
    }
    put_double(&call.args.i[LO], lo < hi ? lo : lo - 0.5);
    put_double(&call.args.i[HI], lo < hi ? hi : hi + 0.5);
    return submit(session, &call, x, DM_NO_ARRAY, weights, out);
}

dm_status dm_histogram_edges(dm_session *session, dm_array x, dm_array edges, dm_array weights, dm_array out)
{
    dmi_call call = {.args = {.i = {[KIND] = DMI_BINS_EDGES}}};
    return submit(session, &call, x, edges, weights, out);
}

dm_status dm_bincount(dm_session *session, dm_array x, dm_array weights, dm_array out)
{
    dmi_call call = {.args = {.i = {[KIND] = DMI_BINS_WHOLE}}};
    return submit(session, &call, x, DM_NO_ARRAY, weights, out);
}

dm_status dmi_histogram_check(dmi_call *call)
{
    int out = call->noperand - 1, kind = call->args.i[KIND];
    const dmi_desc *x = &call->operand[0].desc, *to = &call->operand[out].desc;
    dm_status status = DM_OK;
    if (to->ndim != 1) {
        return dmi_fail(DM_ERR_SHAPE, "%s: out has %d dims, not one", dmi_call_name(call), to->ndim);
    }
    if (kind == DMI_BINS_WHOLE && x->dtype != DM_BOOL && !dmi_dtype_is_integer(x->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s, not an integer one", dmi_call_name(call),
                        dmi_dtype_name(x->dtype));
    }
    const dmi_desc *edges = &call->operand[1].desc;
    if (kind == DMI_BINS_EDGES && (edges->ndim != 1 || edges->extent[0] != to->extent[0] + 1)) {
        char text[192];
        return dmi_fail(DM_ERR_SHAPE, "%s: edges is %s; out has %lld bins, between one edge more",
                        dmi_call_name(call), dmi_shape_text(edges, text), (long long)to->extent[0]);
    }
    call->operand[out].mode = DMI_WRITE;
    for (int i = 0; i < out && status == DM_OK; i++) {
        call->operand[i].mode = DMI_READ;
        status = dmi_check_overlap(call, i, out, false);
    }
    return status == DM_OK && call->args.i[WEIGHTS] ? dmi_check_same_shape(call, 0, out - 1) : status;
}

typedef struct counting {
    dmi_builder *b;
    dmi_team team;
    const dmi_call *call;
    dmi_value x, edges, counts;
    dmi_input weights;
    bool has_edges, has_weights;
    dm_dtype type;
    int64_t bins;
} counting;

/* Counts one region; which -1: nothing, so that the counts are zeros. */
static void count_region(counting *s, int64_t which, bool adds, const dmi_mark ready)
{
    int64_t stride[DM_MAX_DIMS];
    dmi_side side = {.dtype = 0};
    dmi_region region = {.ndim = 1};
    dmi_histogram k = {.kind = s->call->args.i[KIND],
                       .dtype = s->x.desc->dtype,
                       .type = s->type,
                       .adds = adds,
                       .bins = s->bins,
                       .lo = get_double(&s->call->args.i[LO]),
                       .hi = get_double(&s->call->args.i[HI])};
    dmi_ref refs[4] = {s->x.ref, s->counts.ref};
    int nref = 2;
    if (which >= 0) {
        dmi_desc_region(s->x.desc, s->b->me, which, &region);
        k.offset = region.count > 0 ? dmi_region_start(&region) : 0;
    }
    k.ndim = region.ndim;
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = region.dim[d].count;
        k.stride[d] = region.stride[d];
    }
    if (s->has_weights && which >= 0) { /* for empty regions too: sides are counted off one after the other */
        dmi_input_side(&side, stride, &s->weights, s->b->me, which, &region);
    }
    if (region.count == 0) { /* GPUs skip steps of which a reference has no memory */
        refs[0] = s->counts.ref;
    } else if (s->has_weights) {
        k.weights = side.dtype;
        k.weight_offset = side.offset;
        memcpy(k.weight_stride, stride, (size_t)k.ndim * sizeof *stride);
        refs[nref++] = side.ref;
    }
    if (s->has_edges) {
        refs[nref++] = s->edges.ref;
    }
    for (int i = 0; i < nref; i++) {
        refs[i].mode = i != 1 ? DMI_READ : adds ? DMI_READWRITE : DMI_WRITE;
    }
    dmi_build_kernel(s->b, DMI_KERNEL_histogram, &k, sizeof k, refs, nref, ready);
}

/* The counts of each worker of the team, a row each. */
static dm_status build_counts(counting *s, dm_dtype dtype, dmi_desc *desc)
{
    const dmi_desc shape = {.ndim = 2, .extent = {s->team.count, s->bins}};
    dmi_layout_spec spec;
    dmi_team_layout(&s->team, &shape, 0, &spec);
    const dmi_layout *layout;
    dm_status status = dmi_build_layout(s->b, &spec, &layout);
    if (status == DM_OK) {
        *desc = dmi_desc_whole(dtype, layout, 0);
        int work = dmi_build_work(s->b, dmi_team_has(&s->team, s->b->me) ? s->bins * 8 : 0);
        s->counts = (dmi_value){.desc = desc, .ref = dmi_ref_work(work, DMI_READ)};
    }
    return status;
}

/* Each element counts once: replicas beyond the first count nothing. */
static void count_here(counting *s, const dmi_value *weights)
{
    dmi_builder *b = s->b;
    dmi_mark ready = {0};
    if (s->has_weights) {
        dmi_plan_input(b, &s->weights, weights, s->x.desc, ready);
    }
    bool counts = dmi_layout_replica(s->x.desc->layout, b->me) == 0;
    int64_t regions = counts ? dmi_desc_region_count(s->x.desc, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        count_region(s, i, i > 0, ready);
    }
    if (regions == 0) {
        count_region(s, -1, false, ready);
    }
}

dm_status dmi_histogram_plan(dmi_builder *b, const dmi_call *call)
{
    int last = call->noperand - 1, kind = call->args.i[KIND];
    dmi_value out = dmi_value_operand(call, last), weights = dmi_value_operand(call, last - 1), edges;
    dmi_desc edges_desc, desc;
    bool phase = false;
    counting s = {.b = b,
                  .call = call,
                  .x = dmi_value_operand(call, 0),
                  .has_edges = kind == DMI_BINS_EDGES,
                  .has_weights = call->args.i[WEIGHTS],
                  .type = kind == DMI_BINS_RANGE ? DM_F64 : DM_I64,
                  .bins = out.desc->extent[0]};
    dm_status status = DM_OK;
    if (!dmi_build_team(b, call, &s.team)) {
        return DM_OK;
    }
    if (s.has_edges) {
        edges = dmi_value_operand(call, 1);
        s.type = dmi_dtype_carrier(dmi_dtype_promote(s.x.desc->dtype, edges.desc->dtype));
        status = dmi_build_brought(b, &s.team, &edges, true, s.type, &edges_desc, &s.edges, &phase);
    }
    bool real = s.has_weights && dmi_dtype_is_float(weights.desc->dtype);
    status = status == DM_OK ? build_counts(&s, real ? DM_F64 : DM_I64, &desc) : status;
    if (status != DM_OK || b->failed || s.bins == 0) {
        return status;
    }
    if (phase) {
        dmi_build_phase(b);
    }
    if (dmi_team_has(&s.team, b->me)) {
        count_here(&s, &weights);
    }
    dmi_build_phase(b);
    dmi_reducing sum = {.reduced = 1, .inputs = 1, .in = &s.counts, .out = &out, .scalar = DMI_UNSCALED};
    return dmi_plan_reduce(b, &sum);
}
