/* x = constant, identity, arange, uniform, normal, gamma, Poisson; or the time */
#include "ops/by.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { X, ELEMENT }; /* operands; ELEMENT: the first parameter of GAMMA or POISSON */

static dm_status submit(dm_session *session, dm_array x, int kind, double p0, double p1, uint64_t seed)
{
    dmi_call call = {.op = DMI_OP_fill,
                     .noperand = 1,
                     .args = {.i = {kind}},
                     .numbers = 3,
                     .seeds = kind >= DMI_FILL_UNIFORM ? 1u << 2 : 0,
                     .number = {{.re = p0}, {.re = p1}, {.whole = (int64_t)seed}}};
    return dmi_call_submit(session, &call, (dm_array[]){x});
}

dm_status dm_fill(dm_session *session, dm_array x, double value)
{
    return submit(session, x, DMI_FILL_CONST, value, 0, 0);
}

dm_status dm_fill_identity(dm_session *session, dm_array x, double value)
{
    return submit(session, x, DMI_FILL_IDENTITY, value, 0, 0);
}

dm_status dm_fill_arange(dm_session *session, dm_array x, double start, double step)
{
    return submit(session, x, DMI_FILL_ARANGE, start, step, 0);
}

dm_status dm_fill_uniform(dm_session *session, dm_array x, double lo, double hi, uint64_t seed)
{
    return submit(session, x, DMI_FILL_UNIFORM, lo, hi, seed);
}

dm_status dm_fill_normal(dm_session *session, dm_array x, double mean, double deviation, uint64_t seed)
{
    return submit(session, x, DMI_FILL_NORMAL, mean, deviation, seed);
}

dm_status dm_fill_gamma(dm_session *session, dm_array x, double shape, double scale, uint64_t seed)
{
    return submit(session, x, DMI_FILL_GAMMA, shape, scale, seed);
}

dm_status dm_fill_poisson(dm_session *session, dm_array x, double rate, uint64_t seed)
{
    return submit(session, x, DMI_FILL_POISSON, rate, 0, seed);
}

dm_status dm_clock(dm_session *session, dm_array x)
{
    dmi_call call = {
        .op = DMI_OP_fill, .noperand = 1, .args = {.i = {DMI_FILL_CLOCK}}, .numbers = 3, .number = {{.re = 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){x});
}

/* The first parameter is an element. */
static dm_status submit_element(dm_session *session, dm_array x, int kind, const char *name, dm_factor p0,
                                double p1, uint64_t seed)
{
    dmi_by by;
    dm_status status = dmi_by_begin(&by, session, DMI_OP_fill);
    by.type = DM_F64;
    dmi_by_operand(&by, "x", x, NULL, 0);
    status = status == DM_OK ? dmi_by_factor(&by, "p", name, &p0) : status;
    if (status != DM_OK) {
        return status;
    }
    by.call.args.i[0] = kind;
    by.call.numbers = 3;
    by.call.seeds = 1u << 2;
    by.call.number[1].re = p1;
    by.call.number[2].whole = (int64_t)seed;
    return dmi_by_submit(&by, session);
}

dm_status dm_fill_poisson_by(dm_session *session, dm_array x, dm_factor rate, uint64_t seed)
{
    return dmi_factor_real(&rate) ? dm_fill_poisson(session, x, rate.value, seed)
                                  : submit_element(session, x, DMI_FILL_POISSON, "rate", rate, 0, seed);
}

/* An element as scale: by a call of its own. */
dm_status dm_fill_gamma_by(dm_session *session, dm_array x, dm_factor shape, dm_factor scale, uint64_t seed)
{
    dmi_session *s;
    dmi_operand o;
    bool scaled = !dmi_factor_real(&scale);
    double number = scaled ? 1 : scale.value;
    dm_status status = dmi_enter(session, &s);
    status = status == DM_OK ? dmi_operand_find(s, x, "x", &o) : status;
    status = status == DM_OK && scaled ? dmi_factor_apart(s, "scale", &scale, DM_F64, "x", &o) : status;
    if (status == DM_OK) {
        status = dmi_factor_real(&shape)
                     ? dm_fill_gamma(session, x, shape.value, number, seed)
                     : submit_element(session, x, DMI_FILL_GAMMA, "shape", shape, number, seed);
    }
    return status == DM_OK && scaled ? dm_scale_by(session, scale, x, x) : status;
}

/* Those that an integer dtype must have. */
static const char *const parameter[DMI_FILL_KINDS][2] = {
    {"value", NULL}, {"value", NULL}, {"start", "step"}, {"lo", "hi"}, {"mean", "deviation"}, {NULL}, {NULL}};

/* Range of an integer dtype, or of bool; of 64 bits the last double in it. hi of a uniform fill may be one past
 * it. */
static void int_range(dm_dtype dtype, double *lo, double *hi)
{
    bool sign = dmi_dtype_kind(dtype) == DMI_KIND_INT;
    int bits = dtype == DM_BOOL ? 1 : 8 * (int)dmi_dtype_bytes(dtype) - sign;
    *lo = sign ? -ldexp(1, bits) : 0;
    *hi = bits > 53 ? ldexp(1, bits) - ldexp(1, bits - 53) : ldexp(1, bits) - 1;
}

/* The bits of a whole number in the range of an integer dtype. */
static int64_t whole_of(double p)
{
    return p >= 0x1p63 ? (int64_t)(uint64_t)p : (int64_t)p;
}

/* Does an arange of an integer dtype stay in its range, from the first element to the last? */
static bool arange_fits(dm_dtype dtype, const dmi_fill_values *v, int64_t count)
{
    int64_t way = 0, last = 0;
    double lo, hi;
    int_range(dtype, &lo, &hi);
    if (dtype == DM_U64) { /* down to 0, or up to 2^64 - 1 */
        uint64_t start = (uint64_t)v->i0, steps = (uint64_t)(count - 1), size = 0;
        bool down = v->p1 < 0;
        uint64_t step = down ? 0 - (uint64_t)v->i1 : (uint64_t)v->i1;
        return !__builtin_mul_overflow(step, steps, &size) && size <= (down ? start : UINT64_MAX - start);
    }
    return !__builtin_mul_overflow(v->i1, count - 1, &way) && !__builtin_add_overflow(way, v->i0, &last) &&
           (dtype == DM_I64 || ((double)last >= lo && (double)last <= hi));
}

static dm_status check_clock(const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    if (x->dtype != DM_I64) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s, not i64", dmi_call_name(call),
                        dmi_dtype_name(x->dtype));
    }
    return x->layout->replicas > 1
               ? dmi_fail(DM_ERR_LAYOUT, "%s: x has %d replicas, whose workers have other times",
                          dmi_call_name(call), x->layout->replicas)
               : DM_OK;
}

static dm_status check_distribution(const dmi_call *call, double p0, double p1)
{
    int kind = call->args.i[0];
    const dmi_desc *x = &call->operand[0].desc;
    bool gamma = kind == DMI_FILL_GAMMA, poisson = kind == DMI_FILL_POISSON, element = call->noperand > ELEMENT;
    bool taken = gamma ? dmi_dtype_is_float(x->dtype) : !dmi_dtype_is_complex(x->dtype) && x->dtype != DM_BOOL;
    if ((gamma || poisson) && !taken) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s; only %s are taken", dmi_call_name(call),
                        dmi_dtype_name(x->dtype), gamma ? "floating types" : "floating types and integers");
    }
    if (gamma && !((element || (p0 > 0 && isfinite(p0))) && p1 >= 0 && isfinite(p1))) {
        return element
                   ? dmi_fail(DM_ERR_ARG, "%s: scale is %g, not 0 or more and finite", dmi_call_name(call), p1)
                   : dmi_fail(
                         DM_ERR_ARG,
                         "%s: shape is %g, scale is %g: shape must be above 0, scale 0 or more, both finite",
                         dmi_call_name(call), p0, p1);
    }
    if (poisson && !element && !(p0 >= 0 && p0 <= 1e15)) {
        return dmi_fail(DM_ERR_ARG, "%s: rate is %g, not 0 to 1e15", dmi_call_name(call), p0);
    }
    return DM_OK;
}

/* Is parameter i a value of this integer type? */
static dm_status check_whole(const char *call, int kind, int i, dm_dtype dtype, double value)
{
    double lo, hi;
    int_range(dtype, &lo, &hi);
    if (kind == DMI_FILL_ARANGE && i == 1) { /* where it leads is checked elsewhere */
        lo = -9223372036854775808.0;
        hi = DMI_MAX(hi, 9223372036854774784.0);
    }
    hi += kind == DMI_FILL_UNIFORM && i == 1 && dmi_dtype_bytes(dtype) < 8;
    if (value == floor(value) && value >= lo && value <= hi) {
        return DM_OK;
    }
    return dmi_fail(DM_ERR_ARG, "%s: %s is %g, which is no value of dtype %s", call, parameter[kind][i], value,
                    dmi_dtype_name(dtype));
}

dm_status dmi_fill_check_number(int kind, int i, dm_dtype dtype, double value)
{
    const char *call = dmi_api_called();
    if (kind == DMI_FILL_UNIFORM && !isfinite(value)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %g", call, parameter[kind][i], value);
    }
    if (kind == DMI_FILL_NORMAL && i == 1 && !(value >= 0)) {
        return dmi_fail(DM_ERR_ARG, "%s: deviation is %g", call, value);
    }
    return kind > DMI_FILL_NORMAL || dmi_dtype_is_float(dmi_dtype_part(dtype))
               ? DM_OK
               : check_whole(call, kind, i, dtype, value);
}

dm_status dmi_fill_check(dmi_call *call)
{
    int kind = call->args.i[0];
    const dmi_desc *x = &call->operand[0].desc;
    double p[2] = {call->number[0].re, call->number[1].re};
    if (kind == DMI_FILL_CLOCK) {
        return check_clock(call);
    }
    if (kind == DMI_FILL_IDENTITY && x->ndim != 2) {
        return dmi_fail(DM_ERR_SHAPE, "%s: x has %d dims, not 2", dmi_call_name(call), x->ndim);
    }
    if (kind == DMI_FILL_NORMAL && !dmi_dtype_is_float(x->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s; only floating types are taken", dmi_call_name(call),
                        dmi_dtype_name(x->dtype));
    }
    if (kind == DMI_FILL_UNIFORM && dmi_dtype_is_complex(x->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s; complex types are not taken", dmi_call_name(call),
                        dmi_dtype_name(x->dtype));
    }
    if (kind == DMI_FILL_UNIFORM && !(p[0] <= p[1])) {
        return dmi_fail(DM_ERR_ARG, "%s: lo is %g, hi is %g: lo must be at most hi", dmi_call_name(call), p[0],
                        p[1]);
    }
    if (kind == DMI_FILL_UNIFORM && !isfinite(p[1] - p[0])) {
        return dmi_fail(DM_ERR_ARG, "%s: lo is %g, hi is %g: from one to the other must be a number of f64",
                        dmi_call_name(call), p[0], p[1]);
    }
    if (kind == DMI_FILL_NORMAL && !(p[1] >= 0)) {
        return dmi_fail(DM_ERR_ARG, "%s: deviation is %g, not 0 or more", dmi_call_name(call), p[1]);
    }
    dm_status status = check_distribution(call, p[0], p[1]);
    status = status == DM_OK && call->noperand > ELEMENT ? dmi_check_element(call, ELEMENT, X) : status;
    if (status != DM_OK || kind > DMI_FILL_NORMAL || dmi_dtype_is_float(dmi_dtype_part(x->dtype))) {
        return status;
    }
    for (int i = 0; i < 2 && parameter[kind][i]; i++) {
        if ((status = check_whole(dmi_call_name(call), kind, i, x->dtype, p[i])) != DM_OK) {
            return status;
        }
    }
    dmi_fill_values v = {.p0 = p[0], .p1 = p[1], .i0 = whole_of(p[0]), .i1 = whole_of(p[1])};
    call->number[0].whole = v.i0;
    call->number[1].whole = v.i1;
    int64_t count = 1;
    for (int d = 0; d < x->ndim; d++) {
        count *= x->extent[d];
    }
    if (kind == DMI_FILL_ARANGE && count > 0 && !arange_fits(x->dtype, &v, count)) {
        return dmi_fail(DM_ERR_ARG,
                        "%s: with start %g and step %g the last of %" PRId64
                        " elements leaves dtype %s",
                        dmi_call_name(call), p[0], p[1], count, dmi_dtype_name(x->dtype));
    }
    return DM_OK;
}

dm_status dmi_fill_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    bool element = call->noperand > ELEMENT;
    b->plan->between = b->plan->between || call->args.i[0] == DMI_FILL_CLOCK;
    dmi_ref ref[2] = {dmi_ref_operand(X, DMI_WRITE)};
    if (element) {
        dmi_value value = dmi_value_operand(call, ELEMENT);
        dmi_plan_number(b, &value, x, &ref[1]);
    }
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(x, b->me) && !b->failed; i++) {
        dmi_fill k = {.kind = call->args.i[0], .element = element, .dtype = x->dtype};
        dmi_desc_region(x, b->me, i, &k.region);
        memcpy(k.shape, x->extent, sizeof k.shape);
        if (k.region.count > 0) {
            dmi_build_kernel(b, DMI_KERNEL_fill, &k, sizeof k, ref, 1 + element, NULL);
        }
    }
    return DM_OK;
}
