/* Calls of <dmath/layers.h> whose factors are elements: the call with the number 1, or 0, and an elementwise
 * call with the factor. */
#include "api/parts.h"
#include "base/sized.h"
#include "ops/inner_parts.h"
#include "ops/messages.h"

/* The factor of an output, what the call computes from, and where it goes without the factor. */
typedef struct factored {
    dm_session *session;
    const char *name, *out_name;
    const dm_factor *factor;
    dm_array out;
    bool sums; /* it is a sum, made in f64, and is added to out */
    int ins;   /* what it computes from, and outputs beside it: */
    const char *in_name[3];
    dm_array in[3];
    dm_array made; /* a temporary; out itself where that has the type that is computed in */
} factored;

/* Of an output that the call itself may not see. */
static dm_status check_out(const factored *f, const dmi_operand *out, dm_dtype *type)
{
    dmi_operand in;
    dm_status status = DM_OK;
    dm_dtype to = out->desc.dtype;
    if (to != DM_F64 && to != DM_F32 && to != DM_F16 && to != DM_BF16) {
        return dmi_refuse_dtype(f->out_name, to, DMI_DT_FLOAT);
    }
    for (int i = 0; i < f->ins && status == DM_OK; i++) {
        status = dmi_part_operand(f->session, f->in[i], f->in_name[i], &in);
        if (status == DM_OK && dmi_operands_overlap(&in, out) != DMI_APART) {
            status = dmi_fail(DM_ERR_OVERLAP, "%s: %s and %s share memory", dmi_api_called(), f->in_name[i],
                              f->out_name);
        }
        *type = status == DM_OK && in.desc.dtype == DM_F64 ? DM_F64 : *type;
    }
    return status;
}

/* Checks the factor and the output, and opens a scope. */
static dm_status begin(factored *f)
{
    dmi_operand out;
    dm_dtype type = f->sums ? DM_F64 : DM_F32;
    dm_status status = dmi_part_operand(f->session, f->out, f->out_name, &out);
    status = status == DM_OK ? check_out(f, &out, &type) : status;
    status =
        status == DM_OK ? dmi_part_factor(f->session, f->name, f->factor, DM_F64, f->out_name, &out) : status;
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
    factored f = {session, "scale", "out", &scale, out, true, y.id != 0 ? 2 : 1, {"x", "y"}, {x, y}, {0}};
    if (dmi_factor_real(&scale) && dmi_factor_real(&beta)) {
        return dm_channel_sums(session, slices, scale.value, x, y, beta.value, out);
    }
    dm_status status = dmi_part_operand(session, out, "out", &to);
    status = status == DM_OK ? dmi_part_factor(session, "beta", &beta, DM_F64, "out", &to) : status;
    status = status == DM_OK ? begin(&f) : status;
    if (status != DM_OK) {
        return status;
    }
    /* a scale of 0 reads x and y too */
    dm_factor left = dmi_factor_real(&scale) ? dm_value(1) : scale;
    status = dm_channel_sums(session, slices, scale.element ? 1 : scale.value, x, y, 0, f.made);
    return dmi_part_end(session, status == DM_OK ? add(session, left, f.made, beta, out) : status);
}

dm_status dm_relu_backward_sums_by(dm_session *session, int slices, dm_array x, dm_array dy, dm_array dx,
                                   dm_factor beta, dm_array db)
{
    factored f = {session, "beta", "db", &beta, db, true, 3, {"x", "dy", "dx"}, {x, dy, dx}, {0}};
    if (dmi_factor_real(&beta)) {
        return dm_relu_backward_sums(session, slices, x, dy, dx, beta.value, db);
    }
    dmi_operand made;
    dm_status status = dmi_part_operand(session, dx, "dx", &made);
    status = status == DM_OK ? dmi_part_factor(session, "beta", &beta, DM_F64, "dx", &made) : status;
    status = status == DM_OK ? begin(&f) : status;
    if (status != DM_OK) {
        return status;
    }
    status = dm_relu_backward_sums(session, slices, x, dy, dx, 0, f.made);
    return dmi_part_end(session,
                        status == DM_OK ? dm_axpby_by(session, dm_value(1), f.made, beta, db) : status);
}

/* The gradients by weights, of a convolution or (conv NULL) an inner product. */
static dm_status weights(dm_session *session, const dm_conv *conv, const dm_inner *inner, dm_array x,
                         dm_array dy, dm_factor beta, dm_array dw, dm_array db)
{
    factored f[2] = {{session, "beta", "dw", &beta, dw, true, 2, {"x", "dy"}, {x, dy}, {0}},
                     {session, "beta", "db", &beta, db, true, 3, {"x", "dy", "dw"}, {x, dy, dw}, {0}}};
    int outs = db.id != 0 ? 2 : 1, begun = 0;
    dm_status status = DM_OK;
    for (int i = 0; i < outs && status == DM_OK; i++) {
        status = begin(&f[i]);
        begun += status == DM_OK;
    }
    if (status == DM_OK) {
        status = conv ? dm_conv_backward_weights(session, conv, x, dy, 0, f[0].made, f[1].made)
                      : dmi_inner_weights(session, inner, x, dy, 0, f[0].made, f[1].made);
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
                                           : weights(session, conv, NULL, x, dy, beta, dw, db);
}

static dm_status inner_weights(dm_session *session, const dm_inner *inner, dm_array x, dm_array dy,
                               dm_factor beta, dm_array dw, dm_array db)
{
    return dmi_factor_real(&beta) ? dmi_inner_weights(session, inner, x, dy, beta.value, dw, db)
                                  : weights(session, NULL, inner, x, dy, beta, dw, db);
}

dm_status dm_inner_backward_weights_by(dm_session *session, int slices, dm_array x, dm_array dy, dm_factor beta,
                                       dm_array dw, dm_array db)
{
    return inner_weights(session, &(dm_inner){.slices = slices}, x, dy, beta, dw, db);
}

dm_status dm_inner_backward_weights_with(dm_session *session, const dm_inner *inner, dm_array x, dm_array dy,
                                         dm_factor beta, dm_array dw, dm_array db)
{
    const char *call = dmi_api_called() ? dmi_api_called() : "inner_backward_weights_with";
    dm_inner known;
    if (!inner) {
        return dmi_fail(DM_ERR_ARG, "%s: inner is NULL: start from DM_INNER_INIT", call);
    }
    dm_status status = dmi_sized_take(inner, DMI_SIZED_LEAST(dm_inner, wire), &known, sizeof known,
                                      "inner: start from DM_INNER_INIT");
    status = status == DM_OK ? dmi_layer_wire_fits(call, known.wire) : status;
    return status == DM_OK ? inner_weights(session, &known, x, dy, beta, dw, db) : status;
}

/* The end of a call whose part without the factor had this status. */
static dm_status scaled(const factored *f, dm_status status)
{
    status = status == DM_OK ? dm_scale_by(f->session, *f->factor, f->made, f->out) : status;
    return dmi_part_end(f->session, status);
}

dm_status dm_softmax_loss_backward_by(dm_session *session, const dm_loss *options, dm_array prob,
                                      dm_array labels, dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, false, 2, {"prob", "labels"}, {prob, labels}, {0}};
    if (dmi_factor_real(&scale)) {
        return dm_softmax_loss_backward(session, options, prob, labels, scale.value, dx);
    }
    dm_status status = begin(&f);
    return status == DM_OK ? scaled(&f, dm_softmax_loss_backward(session, options, prob, labels, 1, f.made))
                           : status;
}

dm_status dm_sigmoid_loss_backward_by(dm_session *session, const dm_loss *options, dm_array x, dm_array targets,
                                      dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, false, 2, {"x", "targets"}, {x, targets}, {0}};
    if (dmi_factor_real(&scale)) {
        return dm_sigmoid_loss_backward(session, options, x, targets, scale.value, dx);
    }
    dm_status status = begin(&f);
    return status == DM_OK ? scaled(&f, dm_sigmoid_loss_backward(session, options, x, targets, 1, f.made))
                           : status;
}

dm_status dm_hinge_loss_backward_by(dm_session *session, int norm, int slices, dm_array x, dm_array labels,
                                    dm_factor scale, dm_array dx)
{
    factored f = {session, "scale", "dx", &scale, dx, false, 2, {"x", "labels"}, {x, labels}, {0}};
    if (dmi_factor_real(&scale)) {
        return dm_hinge_loss_backward(session, norm, slices, x, labels, scale.value, dx);
    }
    dm_status status = begin(&f);
    return status == DM_OK ? scaled(&f, dm_hinge_loss_backward(session, norm, slices, x, labels, 1, f.made))
                           : status;
}
