/* prob = softmax of x over its last dim; loss = -(sum of log(prob at the label)) / normaliser */
#include "base/sized.h"
#include "ops/softmax_loss_parts.h"

#include <inttypes.h>

enum { IGNORES = 1, IGNORE_LABEL };
enum { X, LABELS, LOSS, PROB };

dm_status dmi_labelled_call(const dm_loss *options, int op, dmi_call *call)
{
    const char *name = dmi_api_called() ? dmi_api_called() : "loss";
    dm_loss known;
    if (!options) {
        return dmi_fail(DM_ERR_ARG, "%s: options is NULL: start from DM_LOSS_INIT", name);
    }
    dm_status status = dmi_sized_take(options, DMI_SIZED_LEAST(dm_loss, slices), &known, sizeof known,
                                      "options: start from DM_LOSS_INIT");
    if (status == DM_OK && (known.normalize < DM_NORMALIZE_FULL || known.normalize > DM_NORMALIZE_NONE)) {
        status = dmi_fail(DM_ERR_ARG, "%s: normalize is %d, not one of DM_NORMALIZE_*", name, known.normalize);
    }
    if (status == DM_OK) {
        *call = (dmi_call){.op = op};
        call->args.i[DMI_LABELLED_NORMALIZE] = known.normalize;
        call->args.i[IGNORES] = known.ignores != 0;
        call->args.i[IGNORE_LABEL] = known.ignores ? known.ignore_label : 0;
        call->args.i[DMI_LABELLED_SLICES] = known.slices;
    }
    return status;
}

static int64_t classes_of(const dmi_desc *x)
{
    return x->extent[x->ndim - 1];
}

dm_status dmi_labelled_fits(const dmi_call *call, int x)
{
    const dmi_desc *scores = &call->operand[x].desc, *labels = &call->operand[LABELS].desc;
    if (scores->ndim < 2 || classes_of(scores) < 1 || classes_of(scores) > INT32_MAX) {
        char text[192];
        return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, not N x ... x C", dmi_call_name(call),
                        dmi_operand_name(call, x), dmi_shape_text(scores, text));
    }
    if (labels->ndim < 1 || labels->extent[0] != scores->extent[0] ||
        dmi_layer_elements(labels) * classes_of(scores) != dmi_layer_elements(scores)) {
        char s[192], t[192];
        return dmi_fail(DM_ERR_SHAPE,
                        "%s: labels is %s, not one label for each %" PRId64 " elements of %s, which is %s",
                        dmi_call_name(call), dmi_shape_text(labels, s), classes_of(scores),
                        dmi_operand_name(call, x), dmi_shape_text(scores, t));
    }
    return dmi_layer_check(call, call->args.i[DMI_LABELLED_SLICES]);
}

bool dmi_labelled_counts(const dmi_call *call)
{
    return call->args.i[IGNORES] && call->args.i[DMI_LABELLED_NORMALIZE] == DM_NORMALIZE_VALID;
}

void dmi_labelled_options(const dmi_call *call, dmi_labelled *d)
{
    d->normalize = call->args.i[DMI_LABELLED_NORMALIZE];
    d->ignores = call->args.i[IGNORES];
    d->ignore_label = call->args.i[IGNORE_LABEL];
}

void dmi_labelled_describe(const dmi_builder *b, const dmi_call *call, int x, dmi_labelled *d,
                           dmi_layer_ref *labels)
{
    const dmi_desc *scores = &call->operand[x].desc;
    bool counted = dmi_labelled_counts(call);
    *d = (dmi_labelled){.dnn = {.dtype = dmi_layer_dtype(call)},
                        .places = dmi_layer_sample(scores) / classes_of(scores),
                        .classes = classes_of(scores),
                        .batch = scores->extent[0],
                        .whole = counted,
                        .top_k = call->args.i[DMI_LABELLED_TOP]};
    dmi_labelled_options(call, d);
    bool gpu = b->profile->facts.gpu &&
               !b->profile->facts.emulated; /* whose kernels take labels of f32, as nets have them */
    dm_dtype type = gpu && call->operand[LABELS].desc.dtype == DM_F32 ? DM_F32 : DM_I32;
    *labels = (dmi_layer_ref){counted ? DMI_LAYER_WHOLE : DMI_LAYER_SLICED, LABELS, type, 0};
}

dm_status dm_softmax_loss(dm_session *session, const dm_loss *options, dm_array x, dm_array labels,
                          dm_array prob, dm_array loss)
{
    dmi_call call;
    dm_status status = dmi_labelled_call(options, DMI_OP_softmax_loss, &call);
    if (status != DM_OK) {
        return status;
    }
    call.noperand = 4;
    dmi_layer_sums(&call, 1, 0);
    return dmi_layer_submit(session, &call, (dm_array[]){x, labels, loss, prob});
}

dm_status dmi_softmax_loss_check(dmi_call *call)
{
    dm_status status = dmi_labelled_fits(call, X);
    status = status == DM_OK ? dmi_layer_count(call, LOSS, 1, "losses") : status;
    return status == DM_OK && call->noperand > PROB ? dmi_check_same_shape(call, PROB, X) : status;
}

dm_status dmi_softmax_loss_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref labels;
    dmi_labelled_describe(b, call, X, &d, &labels);
    int prob = call->noperand > PROB ? DMI_LAYER_MADE : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_softmax_loss,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_LABELLED_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               labels,
                                               {DMI_LAYER_SUMMED, LOSS, DM_F64, 0},
                                               {prob, PROB, d.dnn.dtype, 0}}});
}
