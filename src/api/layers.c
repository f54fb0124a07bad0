/* Calls of layers that are not written yet. */
#include "base/base.h"

#include <dmath/layers.h>

dm_status dm_conv_shape(const dm_conv *conv, const int64_t *x, const int64_t *w, int64_t *y)
{
    (void)conv, (void)x, (void)w, (void)y;
    return dmi_fail(DM_ERR_UNSUPPORTED, "conv_shape: not written yet");
}

dm_status dm_conv_forward(dm_session *session, const dm_conv *conv, dm_array x, dm_array w, dm_array bias,
                          dm_array y)
{
    (void)session, (void)conv, (void)x, (void)w, (void)bias, (void)y;
    return dmi_fail(DM_ERR_UNSUPPORTED, "conv_forward: not written yet");
}

dm_status dm_conv_backward_data(dm_session *session, const dm_conv *conv, dm_array dy, dm_array w, dm_array dx)
{
    (void)session, (void)conv, (void)dy, (void)w, (void)dx;
    return dmi_fail(DM_ERR_UNSUPPORTED, "conv_backward_data: not written yet");
}

dm_status dm_conv_backward_weights(dm_session *session, const dm_conv *conv, dm_array x, dm_array dy,
                                   double beta, dm_array dw, dm_array db)
{
    (void)session, (void)conv, (void)x, (void)dy, (void)beta, (void)dw, (void)db;
    return dmi_fail(DM_ERR_UNSUPPORTED, "conv_backward_weights: not written yet");
}

dm_status dm_pool_shape(const dm_pool *pool, const int64_t *x, int64_t *y)
{
    (void)pool, (void)x, (void)y;
    return dmi_fail(DM_ERR_UNSUPPORTED, "pool_shape: not written yet");
}

dm_status dm_pool_forward(dm_session *session, const dm_pool *pool, dm_array x, dm_array y, dm_array which)
{
    (void)session, (void)pool, (void)x, (void)y, (void)which;
    return dmi_fail(DM_ERR_UNSUPPORTED, "pool_forward: not written yet");
}

dm_status dm_pool_backward(dm_session *session, const dm_pool *pool, dm_array x, dm_array dy, dm_array dx)
{
    (void)session, (void)pool, (void)x, (void)dy, (void)dx;
    return dmi_fail(DM_ERR_UNSUPPORTED, "pool_backward: not written yet");
}

dm_status dm_inner_forward(dm_session *session, int slices, dm_array x, dm_array w, dm_array bias, dm_array y)
{
    (void)session, (void)slices, (void)x, (void)w, (void)bias, (void)y;
    return dmi_fail(DM_ERR_UNSUPPORTED, "inner_forward: not written yet");
}

dm_status dm_inner_backward_data(dm_session *session, int slices, dm_array dy, dm_array w, dm_array dx)
{
    (void)session, (void)slices, (void)dy, (void)w, (void)dx;
    return dmi_fail(DM_ERR_UNSUPPORTED, "inner_backward_data: not written yet");
}

dm_status dm_inner_backward_weights(dm_session *session, int slices, dm_array x, dm_array dy, double beta,
                                    dm_array dw, dm_array db)
{
    (void)session, (void)slices, (void)x, (void)dy, (void)beta, (void)dw, (void)db;
    return dmi_fail(DM_ERR_UNSUPPORTED, "inner_backward_weights: not written yet");
}

dm_status dm_channel_sums(dm_session *session, int slices, double scale, dm_array x, dm_array y, double beta,
                          dm_array out)
{
    (void)session, (void)slices, (void)scale, (void)x, (void)y, (void)beta, (void)out;
    return dmi_fail(DM_ERR_UNSUPPORTED, "channel_sums: not written yet");
}

dm_status dm_softmax_loss(dm_session *session, const dm_loss *options, dm_array x, dm_array labels,
                          dm_array prob, dm_array loss)
{
    (void)session, (void)options, (void)x, (void)labels, (void)prob, (void)loss;
    return dmi_fail(DM_ERR_UNSUPPORTED, "softmax_loss: not written yet");
}

dm_status dm_softmax_loss_backward(dm_session *session, const dm_loss *options, dm_array prob, dm_array labels,
                                   double scale, dm_array dx)
{
    (void)session, (void)options, (void)prob, (void)labels, (void)scale, (void)dx;
    return dmi_fail(DM_ERR_UNSUPPORTED, "softmax_loss_backward: not written yet");
}

dm_status dm_accuracy(dm_session *session, const dm_loss *options, int top_k, dm_array x, dm_array labels,
                      dm_array out)
{
    (void)session, (void)options, (void)top_k, (void)x, (void)labels, (void)out;
    return dmi_fail(DM_ERR_UNSUPPORTED, "accuracy: not written yet");
}
