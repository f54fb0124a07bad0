/* Parameter: a parameter as a blob. */
#include "layers/layers.h"

dm_status nn_parameter_setup(nn_layer *l)
{
    const nn_message *shape = nn_sub(l->own, "shape");
    int64_t dims[DM_MAX_DIMS], ndim = nn_count(shape, "dim");
    nn_param *p = NULL;
    if (ndim < 1 || ndim > DM_MAX_DIMS) {
        return nn_layer_fail(l, "parameter_param", DM_ERR_FORMAT, "needs a shape of 1 to 8 dims, not %lld",
                             (long long)ndim);
    }
    for (int d = 0; d < ndim; d++) {
        dims[d] = nn_int_at(shape, "dim", d);
    }
    dm_status status = nn_top_shape(l, 0, (int)ndim, dims);
    status = status == DM_OK ? nn_new_folded(l, (int)ndim, dims, ndim == 4 ? dims : NULL, NULL, &p) : status;
    return status == DM_OK ? nn_wire_refuse(l) : status;
}

dm_status nn_parameter_forward(nn_layer *l)
{
    return dm_copy(l->net->session, l->param[0]->data, l->top[0]->data);
}

dm_status nn_parameter_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    return nn_param_beta(l, 0) == 0 ? dm_copy(s, l->top[0]->diff, l->param[0]->diff)
                                    : dm_axpby(s, 1, l->top[0]->diff, 1, l->param[0]->diff);
}
