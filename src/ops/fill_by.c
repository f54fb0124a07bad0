/* Fills with parameters that may be elements of arrays: a fill with 0 and 1, and an expression of it, run by
 * the op map */
#include "ops/by.h"

/* Which parameters, and the temporary `t` that the expression has besides. */
typedef struct filling {
    int kind; /* DMI_FILL_*; CONST: without a temporary */
    int parameters;
    const char *name[2];
    dm_factor factor[2];
    uint64_t seed;
    dm_dtype type, made; /* type: computed in; made: of the temporary */
    const char *text;
} filling;

static dm_status submit(dm_session *session, dmi_by *by, dm_array x, dm_dtype dtype, const filling *f)
{
    static const char *const variable[2] = {"p", "q"};
    dm_status status = DM_OK;
    by->type = f->type;
    for (int i = 0; i < f->parameters && status == DM_OK; i++) {
        status = dmi_by_factor(by, variable[i], f->name[i], &f->factor[i]);
        if (status == DM_OK && dmi_factor_real(&f->factor[i])) {
            status = dmi_fill_check_number(f->kind, i, dtype, f->factor[i].value);
        }
    }
    if (f->kind != DMI_FILL_CONST) {
        dmi_by_variable(by, "t", f->made);
    }
    status = status == DM_OK ? dmi_by_program(by, f->text, dtype) : status;
    if (status != DM_OK) {
        return status;
    }
    if (f->kind != DMI_FILL_CONST) {
        by->call.number[by->call.numbers] = (dmi_number){.whole = (int64_t)f->seed};
        dmi_call_filled(&by->call, f->kind, by->call.numbers++, f->made);
    }
    dmi_by_operand(by, "x", x, NULL, 0);
    return dmi_by_submit(by, session);
}

static dm_status begin(dmi_by *by, dm_session *session, dm_array x, const dmi_desc **out)
{
    dm_status status = dmi_by_begin(by, session, DMI_OP_map);
    return status == DM_OK ? dmi_by_find(by, "x", x, out) : status;
}

static dm_dtype any_for(dm_dtype dtype) /* a type that takes all parameters which can be stored as this one */
{
    return dmi_dtype_is_complex(dtype) ? DM_C128 : DM_F64;
}

dm_status dm_fill_by(dm_session *session, dm_array x, dm_factor value)
{
    dmi_by by;
    const dmi_desc *to;
    if (dmi_factor_real(&value)) {
        return dm_fill(session, x, value.value);
    }
    dm_status status = begin(&by, session, x, &to);
    if (status != DM_OK) {
        return status;
    }
    filling f = {DMI_FILL_CONST, 1, {"value"}, {value}, .type = any_for(to->dtype), .text = "p"};
    return submit(session, &by, x, to->dtype, &f);
}

dm_status dm_fill_identity_by(dm_session *session, dm_array x, dm_factor value)
{
    dmi_by by;
    const dmi_desc *to;
    if (dmi_factor_real(&value)) {
        return dm_fill_identity(session, x, value.value);
    }
    dm_status status = begin(&by, session, x, &to);
    if (status == DM_OK && to->ndim != 2) {
        status = dmi_fail(DM_ERR_SHAPE, "%s: x has %d dims, not 2", dmi_api_called(), to->ndim);
    }
    if (status != DM_OK) {
        return status;
    }
    filling f = {DMI_FILL_IDENTITY, 1, {"value"}, {value}, .type = any_for(to->dtype), .made = DM_BOOL};
    f.text = "where(t, p, 0)";
    return submit(session, &by, x, to->dtype, &f);
}

static bool is_whole(dmi_by *by, const char *name, const dm_factor *f)
{
    const dmi_desc *x;
    if (f->element == 0) {
        return dmi_factor_real(f) && dmi_is_whole(f->value);
    }
    return dmi_by_find(by, name, f->array, &x) == DM_OK && !dmi_dtype_is_float(x->dtype) &&
           !dmi_dtype_is_complex(x->dtype);
}

dm_status dm_fill_arange_by(dm_session *session, dm_array x, dm_factor start, dm_factor step)
{
    dmi_by by;
    const dmi_desc *to;
    if (dmi_factor_real(&start) && dmi_factor_real(&step)) {
        return dm_fill_arange(session, x, start.value, step.value);
    }
    dm_status status = begin(&by, session, x, &to);
    if (status != DM_OK) {
        return status;
    }
    bool whole = !dmi_dtype_is_float(dmi_dtype_part(to->dtype)) && is_whole(&by, "start", &start) &&
                 is_whole(&by, "step", &step);
    filling f = {DMI_FILL_ARANGE, 2, {"start", "step"}, {start, step}};
    f.type = f.made = whole ? DM_I64 : DM_F64;
    f.text = whole ? "i64(p) + i64(q) * t" : "f64(p) + f64(q) * t";
    return submit(session, &by, x, to->dtype, &f);
}

/* lo + (hi - lo) * t of a type, and lo where that is rounded to hi, or hi is not above lo. */
#define BETWEEN(type)                                                                                          \
    "where(" type "(p) + (" type "(q) - " type "(p)) * t < " type "(q), " type "(p) + (" type "(q) - " type    \
    "(p)) * t, " type "(p))"

dm_status dm_fill_uniform_by(dm_session *session, dm_array x, dm_factor lo, dm_factor hi, uint64_t seed)
{
    dmi_by by;
    const dmi_desc *to;
    if (dmi_factor_real(&lo) && dmi_factor_real(&hi)) {
        return dm_fill_uniform(session, x, lo.value, hi.value, seed);
    }
    dm_status status = begin(&by, session, x, &to);
    if (status == DM_OK && dmi_dtype_is_complex(to->dtype)) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s; complex types are not taken", dmi_api_called(),
                          dmi_dtype_name(to->dtype));
    }
    if (status != DM_OK) {
        return status;
    }
    bool floats = dmi_dtype_is_float(to->dtype), narrow = floats && to->dtype != DM_F64;
    filling f = {DMI_FILL_UNIFORM, 2, {"lo", "hi"}, {lo, hi}, .seed = seed};
    f.type = f.made = narrow ? DM_F32 : DM_F64;
    f.text = narrow ? BETWEEN("f32") : floats ? BETWEEN("f64") : "floor(" BETWEEN("f64") ")";
    return submit(session, &by, x, to->dtype, &f);
}

dm_status dm_fill_normal_by(dm_session *session, dm_array x, dm_factor mean, dm_factor deviation, uint64_t seed)
{
    dmi_by by;
    const dmi_desc *to;
    if (dmi_factor_real(&mean) && dmi_factor_real(&deviation)) {
        return dm_fill_normal(session, x, mean.value, deviation.value, seed);
    }
    dm_status status = begin(&by, session, x, &to);
    if (status == DM_OK && !dmi_dtype_is_float(to->dtype)) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s; only floating types are taken", dmi_api_called(),
                          dmi_dtype_name(to->dtype));
    }
    if (status != DM_OK) {
        return status;
    }
    bool narrow = to->dtype != DM_F64;
    filling f = {DMI_FILL_NORMAL, 2, {"mean", "deviation"}, {mean, deviation}, .seed = seed};
    f.type = f.made = narrow ? DM_F32 : DM_F64;
    f.text = narrow ? "f32(p) + f32(q) * t" : "f64(p) + f64(q) * t";
    return submit(session, &by, x, to->dtype, &f);
}
