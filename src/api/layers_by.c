/* Calls of <dmath/layers.h> whose factors are elements: the call with the number 1, or 0, and an elementwise
 * call with the factor. */
#include "api/parts.h"

#include <dmath/layers.h>

/* The factor of an output, what the call computes from, and where it goes without the factor. */
typedef struct factored {
    dm_session *session;
    const char *name, *out_name;
    const dm_factor *factor;
    dm_array out, in[2]; /* in: what it computes from, or DM_NO_ARRAY */
    bool sums;           /* it is a sum, made in f64, and is added to out */
    dm_array made;       /* a temporary; out itself where that has the type that is computed in */
} factored;

/* Checks the factor and opens a scope. */
static dm_status begin(factored *f)
{
    dmi_operand out, in;
    dm_dtype type = f->sums ? DM_F64 : DM_F32;
    dm_status status = dmi_part_operand(f->session, f->out, f->out_name, &out);
    status =
        status == DM_OK ? dmi_part_factor(f->session, f->name, f->factor, DM_F64, f->out_name, &out) : status;
    for (int i = 0; i < 2 && status == DM_OK && f->in[i].id != 0; i++) {
        status = dmi_part_operand(f->session, f->in[i], "x", &in);
        type = in.desc.dtype == DM_F64 ? DM_F64 : type;
    }
    if (status != DM_OK || (status = dm_scope_begin(f->session)) != DM_OK) {
        return status;
    }
    type = out.desc.dtype == DM_F64 ? DM_F64 : type;
    f->made = f->out;
    if (f->sums || type != out.desc.dtype) {
        status = dm_array_like(f->session, f->out, type, &f->made);
    }
    return status == DM_OK ? DM_OK : dmi_part_end(f->session, status);
}

/* out = scale * made + beta * out */
static dm_status add(dm_session *session, dm_factor scale, dm_array made, dm_factor beta, dm_array out)
{
    return dmi_factor_zero(&beta) ? dm_scale_by(session, scale, made, out)
                                  : dm_axpby_by(session, scale, made, beta, out);
}

dm_status dm_channel_sums_by(dm_session *session, int slices, dm_factor scale, dm_array x, dm_array y,
                             dm_factor beta, dm_array out)
{
    dmi_operand to;
    factored f = {session, "scale", "out", &scale, out, {x, y}, true};
    if (dmi_factor_real(&scale) && dmi_factor_real(&beta)) {
        return dm_channel_sums(session, slices, scale.value, x, y, beta.value, out);
    }
    dm_status status = dmi_part_operand(session, out, "out", &to);
    status = status == DM_OK ? dmi_part_factor(session, "beta", &beta, DM_F64, "out", &to) : status;
    status = status == DM_OK ? begin(&f) : status;
    if (status != DM_OK) {
        return status;
    }
    status = dm_channel_sums(session, slices, 1, x, y, 0, f.made);
    return dmi_part_end(session, status == DM_OK ? add(session, scale, f.made, beta, out) : status);
}

/* The gradients by weights, of a convolution or (conv NULL) an inner product. */
static dm_status weights(dm_session *session, const dm_conv *conv, int slices, dm_array x, dm_array dy,
                         dm_factor beta, dm_array dw, dm_array db)
{
    factored f[2] = {{session, "beta", "dw", &beta, dw, {x, dy}, true},
                     {session, "beta", "db", &beta, db, {x, dy}, true}};
    int outs = db.id != 0 ? 2 : 1, begun = 0;
    dm_status status = DM_OK;
    for (int i = 0; i < outs && status == DM_OK; i++) {
        status = begin(&f[i]);
        begun += status == DM_OK;
    }
    if (status == DM_OK) {
        status = conv ? dm_conv_backward_weights(session, conv, x, dy, 0, f[0].made, f[1].made)
                      : dm_inner_backward_weights(session, slices, x, dy, 0, f[0].made, f[1].made);
    }
    for (int i = 0; i < outs && status == DM_OK; i++) {
        status = dm_axpby_by(session, dm_value(1), f[i].made, beta, f[i].out);
    }
    while (begun-- > 0) {
        status = dmi_part_end(session, status);
    }
    return status;
}

dm_status dm_conv_backward_weights_by(dm_session *session, const dm_conv *conv, dm_array x, dm_array dy,
                                      dm_factor beta, dm_array dw, dm_array db)
{
    return dmi_factor_real(&beta) || !conv ? dm_conv_backward_weights(session, conv, x, dy, beta.value, dw, db)
                                           : weights(session, conv, 0, x, dy, beta, dw, db);
}

dm_status dm_inner_backward_weights_by(dm_session *session, int slices, dm_array x, dm_array dy, dm_factor beta,
                                       dm_array dw, dm_array db)
{
    return dmi_factor_real(&beta) ? dm_inner_backward_weights(session, slices, x, dy, beta.value, dw, db)
                                  : weights(session, NULL, slices, x, dy, beta, dw, db);
}

dm_status dm_softmax_loss_backward_by(dm_session *session, const dm_loss *options, dm_array prob,
                                      dm_array labels, dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, {prob, labels}, false};
    if (dmi_factor_real(&scale)) {
        return dm_softmax_loss_backward(session, options, prob, labels, scale.value, dx);
    }
    dm_status status = begin(&f);
    if (status != DM_OK) {
        return status;
    }
    status = dm_softmax_loss_backward(session, options, prob, labels, 1, f.made);
    return dmi_part_end(session, status == DM_OK ? dm_scale_by(session, scale, f.made, dx) : status);
}

dm_status dm_sigmoid_loss_backward_by(dm_session *session, const dm_loss *options, dm_array x, dm_array targets,
                                      dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, {x, targets}, false};
    if (dmi_factor_real(&scale)) {
        return dm_sigmoid_loss_backward(session, options, x, targets, scale.value, dx);
    }
    dm_status status = begin(&f);
    if (status != DM_OK) {
        return status;
    }
    status = dm_sigmoid_loss_backward(session, options, x, targets, 1, f.made);
    return dmi_part_end(session, status == DM_OK ? dm_scale_by(session, scale, f.made, dx) : status);
}

dm_status dm_hinge_loss_backward_by(dm_session *session, int norm, int slices, dm_array x, dm_array labels,
                                    dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, {x, labels}, false};
    if (dmi_factor_real(&scale)) {
        return dm_hinge_loss_backward(session, norm, slices, x, labels, scale.value, dx);
    }
    dm_status status = begin(&f);
    if (status != DM_OK) {
        return status;
    }
    status = dm_hinge_loss_backward(session, norm, slices, x, labels, 1, f.made);
    return dmi_part_end(session, status == DM_OK ? dm_scale_by(session, scale, f.made, dx) : status);
}
