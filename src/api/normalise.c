/* Calls over dims of one array: normalisation, and the loss of a classifier. */
#include "api/parts.h"
#include "master/session.h"
#include "ops/messages.h"

#include <dmath/linalg.h>
#include <math.h>

/* x: real; out: a float. */
static dm_status check_types(dm_session *session, dm_array x, const char *out_name, dm_array out, bool whole)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, x, "x", &h)) != DM_OK) {
        return status;
    }
    const unsigned taken = DMI_DT_ANY_FLOAT | (whole ? DMI_DT_INT : 0);
    if (!(taken >> h->desc.dtype & 1)) {
        return dmi_refuse_dtype("x", h->desc.dtype, taken);
    }
    if ((status = dmi_handle_find(s, out, out_name, &h)) != DM_OK) {
        return status;
    }
    if (!dmi_dtype_is_float(h->desc.dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s has dtype %s, and must be a float", out_name,
                        dmi_dtype_name(h->desc.dtype));
    }
    return DM_OK;
}

dm_status dm_log_softmax(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out)
{
    const dmi_chain_name names[] = {{"x", .array = x}};
    const dmi_chain_text texts[] = {{"m", "max(x)"}, {"s", "sum(exp(x - m))"}, {NULL, "x - m - log(s)"}};
    const dmi_chain_call chain = {1, 3, names, texts, dims, ndims, 0};
    dm_status status = check_types(session, x, "out", out, true);
    return status == DM_OK ? dmi_chain_submit(session, &chain, out) : status;
}

dm_status dm_standardise(dm_session *session, dm_array x, const int *dims, int ndims, double correction,
                         dm_array out)
{
    const dmi_chain_name names[] = {{"x", .array = x}};
    const dmi_chain_text texts[] = {{"m", "mean(x)"}, {"d", "std(x)"}, {NULL, "where(d == 0, 0, (x - m) / d)"}};
    const dmi_chain_call chain = {1, 3, names, texts, dims, ndims, correction};
    dm_status status = check_types(session, x, "out", out, true);
    if (status == DM_OK && isnan(correction)) {
        status = dmi_fail(DM_ERR_ARG, "standardise: correction is NaN");
    }
    return status == DM_OK ? dmi_chain_submit(session, &chain, out) : status;
}

dm_status dm_layer_norm(dm_session *session, dm_array x, const int *dims, int ndims, dm_array gain,
                        dm_array bias, double eps, dm_array out)
{
    dmi_chain_name names[4] = {{"x", .array = x}, {"eps", .kind = DMI_CHAIN_NUMBER, .number = eps}};
    int count = 2, which = (gain.id != 0) + 2 * (bias.id != 0);
    static const char *const ends[] = {"(x - m) / sqrt(v + eps)", "(x - m) / sqrt(v + eps) * gain",
                                       "(x - m) / sqrt(v + eps) + bias",
                                       "(x - m) / sqrt(v + eps) * gain + bias"};
    const dmi_chain_text texts[] = {{"m", "mean(x)"}, {"v", "var(x)"}, {NULL, ends[which]}};
    if (gain.id) {
        names[count++] = (dmi_chain_name){"gain", .array = gain};
    }
    if (bias.id) {
        names[count++] = (dmi_chain_name){"bias", .array = bias};
    }
    const dmi_chain_call chain = {count, 3, names, texts, dims, ndims, 0};
    dm_status status = check_types(session, x, "out", out, true);
    if (status == DM_OK && !(eps >= 0)) {
        status = dmi_fail(DM_ERR_ARG, "layer_norm: eps is %g, not 0 or more", eps);
    }
    return status == DM_OK ? dmi_chain_submit(session, &chain, out) : status;
}

/* x: a matrix of floats; labels: integers, one for each row. */
static dm_status check_labels(dm_session *session, dm_array x, dm_array labels, const char *out_name,
                              dm_array out)
{
    dmi_session *s;
    dmi_handle *a, *b;
    dm_status status = check_types(session, x, out_name, out, false);
    if (status != DM_OK || (status = dmi_enter(session, &s)) != DM_OK ||
        (status = dmi_handle_find(s, x, "x", &a)) != DM_OK ||
        (status = dmi_handle_find(s, labels, "labels", &b)) != DM_OK) {
        return status;
    }
    if (dmi_dtype_is_float(b->desc.dtype) || dmi_dtype_is_complex(b->desc.dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "labels has dtype %s, and must be an integer",
                        dmi_dtype_name(b->desc.dtype));
    }
    if (a->desc.ndim != 2) {
        return dmi_fail(DM_ERR_SHAPE, "x has %d dims, not 2", a->desc.ndim);
    }
    return DM_OK;
}

dm_status dm_cross_entropy(dm_session *session, dm_array x, dm_array labels, dm_array loss)
{
    const dmi_chain_name names[] = {{"x", .array = x},
                                    {"labels", .kind = DMI_CHAIN_COLUMN, .array = labels},
                                    {"j", .kind = DMI_CHAIN_INDEX, .dim = 1}};
    const dmi_chain_text texts[] = {
        {"m", "max(x)"}, {"s", "sum(exp(x - m))"}, {NULL, "sum(where(j == labels, m - x + log(s), 0))"}};
    const dmi_chain_call chain = {3, 3, names, texts, (int[]){1}, 1, 0, "loss"};
    dm_status status = check_labels(session, x, labels, "loss", loss);
    return status == DM_OK ? dmi_chain_submit(session, &chain, loss) : status;
}

static dm_status gradient_call(dm_session *session, dm_array x, dm_array labels, dm_factor scale,
                               dm_array gradient)
{
    dmi_operand in, out;
    dm_status status = check_labels(session, x, labels, "gradient", gradient);
    status = status == DM_OK ? dmi_part_operand(session, x, "x", &in) : status;
    status = status == DM_OK ? dmi_part_operand(session, gradient, "gradient", &out) : status;
    dm_dtype type = status == DM_OK ? dmi_dtype_carrier(in.desc.dtype) : DM_F64;
    status = status == DM_OK ? dmi_part_factor(session, "scale", &scale, type, "gradient", &out) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dmi_factor_settle(session, type, &scale);
    const dmi_chain_name names[] = {{"x", .array = x},
                                    {"labels", .kind = DMI_CHAIN_COLUMN, .array = labels},
                                    {"j", .kind = DMI_CHAIN_INDEX, .dim = 1},
                                    dmi_chain_factor("scale", &scale),
                                    {"n", .kind = DMI_CHAIN_NUMBER, .number = (double)in.desc.extent[1]}};
    const dmi_chain_text texts[] = {
        {"m", "max(x)"},
        {"s", "sum(exp(x - m))"},
        {NULL,
         "where((labels >= 0) & (labels < n), scale * (exp(x - m) / s - where(j == labels, 1.0, 0.0)), 0)"}};
    const dmi_chain_call chain = {5, 3, names, texts, (int[]){1}, 1, 0, "gradient"};
    return dmi_part_end(session, status == DM_OK ? dmi_chain_submit(session, &chain, gradient) : status);
}

dm_status dm_cross_entropy_gradient(dm_session *session, dm_array x, dm_array labels, double scale,
                                    dm_array gradient)
{
    return gradient_call(session, x, labels, dm_value(scale), gradient);
}

dm_status dm_cross_entropy_gradient_by(dm_session *session, dm_array x, dm_array labels, dm_factor scale,
                                       dm_array gradient)
{
    return gradient_call(session, x, labels, scale, gradient);
}
