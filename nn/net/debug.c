/* What debug_info asks for: the means of the magnitudes of all blobs, parameters and gradients, in Caffe's
 * lines. */
#include "net/net.h"

#include <math.h>
#include <stdio.h>

/* A reduction of an array to one number, as "sum(abs(x))"; waits. */
static dm_status number_of(const nn_net *net, const char *text, dm_array a, double *out)
{
    dm_array one = DM_NO_ARRAY;
    dm_map_arg arg = DM_ARG("x", a);
    dm_status status = dm_array_create(net->session, DM_F64, 0, NULL, NULL, &one);
    status = status == DM_OK ? dm_map(net->session, text, 1, &arg, one) : status;
    status = status == DM_OK ? dm_item(net->session, one, NULL, out) : status;
    dm_status end = dm_array_destroy(net->session, one);
    return status == DM_OK ? end : status;
}

static const char mean[] = "mean(abs(x))";

/* The name that Caffe shows: its own, or its number. */
static const char *shown(const nn_param *p, int number, char text[16])
{
    snprintf(text, 16, "%d", number);
    return p->name ? p->name : text;
}

dm_status nn_debug_forward(const nn_layer *l)
{
    char number[16];
    double value = 0;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = number_of(l->net, mean, l->top[i]->data, &value);
        nn_log(l->net, "    [Forward] Layer %s, top blob %s data: %g", l->name, l->top[i]->name, value);
    }
    for (int i = 0; status == DM_OK && i < l->params; i++) {
        const nn_param *p = nn_param_itself(l->param[i]);
        status = number_of(l->net, mean, p->data, &value);
        nn_log(l->net, "    [Forward] Layer %s, param blob %s data: %g", l->name, shown(p, i, number), value);
    }
    return status;
}

dm_status nn_debug_backward(const nn_layer *l)
{
    double value = 0;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        if (l->down[i]) {
            status = number_of(l->net, mean, l->bottom[i]->diff, &value);
            nn_log(l->net, "    [Backward] Layer %s, bottom blob %s diff: %g", l->name, l->bottom[i]->name,
                   value);
        }
    }
    for (int i = 0; status == DM_OK && i < l->params; i++) {
        if (l->param[i]->lr_mult != 0) {
            status = number_of(l->net, mean, nn_param_itself(l->param[i])->diff, &value);
            nn_log(l->net, "    [Backward] Layer %s, param blob %d diff: %g", l->name, i, value);
        }
    }
    return status;
}

dm_status nn_debug_params(const nn_net *net)
{
    static const char *const texts[] = {"sum(abs(x))", "sum(x * x)"};
    double sums[2][2] = {{0, 0}, {0, 0}}; /* of magnitudes and squares, of data and gradients */
    dm_status status = DM_OK;
    for (int i = 0; i < net->param_count; i++) {
        const nn_param *p = net->params[i];
        for (int k = 0; status == DM_OK && k < 4; k++) {
            double value = 0;
            status = number_of(net, texts[k / 2], k % 2 ? p->diff : p->data, &value);
            sums[k / 2][k % 2] += value;
        }
    }
    nn_log(net, "    [Backward] All net params (data, diff): L1 norm = (%g, %g); L2 norm = (%g, %g)",
           sums[0][0], sums[0][1], sqrt(sums[1][0]), sqrt(sums[1][1]));
    return status;
}

/* A layer that uses the parameter of another tells its gradient alone, as Caffe does. */
static dm_status update_of(const nn_layer *l, int i)
{
    const nn_param *p = nn_param_itself(l->param[i]);
    char number[2][16];
    double data = 0, diff = 0;
    dm_status status = number_of(l->net, mean, p->diff, &diff);
    if (p->owner != l || p->number != i) {
        nn_log(l->net, "    [Update] Layer %s, param blob %s (owned by layer %s, param %s) diff: %g", l->name,
               shown(p, i, number[0]), p->owner->name, shown(p, p->number, number[1]), diff);
        return status;
    }
    status = status == DM_OK ? number_of(l->net, mean, p->data, &data) : status;
    nn_log(l->net, "    [Update] Layer %s, param %s data: %g; diff: %g", l->name, shown(p, i, number[0]), data,
           diff);
    return status;
}

dm_status nn_debug_update(const nn_net *net)
{
    dm_status status = DM_OK;
    for (int k = 0; k < net->layer_count; k++) {
        for (int i = 0; status == DM_OK && i < net->layers[k].params; i++) {
            status = update_of(&net->layers[k], i);
        }
    }
    return status;
}
