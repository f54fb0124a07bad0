/* A loss that is not a number stays so to the end of a training. The log says once where it came first, and, of
 * losses that labels choose in, whether a label is none of the classes. */
#include "solver/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Classes of a layer whose loss is NaN where a label is none of them; 0: it is another layer. */
static int64_t classes_of(const nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    if (strcmp(l->type->name, "SoftmaxWithLoss") == 0) {
        return x->count / l->bottom[1]->count;
    }
    return strcmp(l->type->name, "HingeLoss") == 0 ? x->count / x->shape[0] : 0;
}

static bool ignored(const nn_layer *l, double label)
{
    return strcmp(l->type->name, "SoftmaxWithLoss") == 0 && l->u.loss.ignores &&
           trunc(label) == l->u.loss.ignore_label;
}

static dm_status say(const dm_solver *s, const nn_layer *l)
{
    const int64_t classes = classes_of(l), iteration = s->iter;
    const nn_blob *labels = classes ? l->bottom[1] : NULL;
    if (!labels || !labels->data.id) {
        nn_solver_log(s, "layer '%s': loss is nan at iteration %lld: too high a base_lr is the usual cause",
                      l->name, (long long)iteration);
        return DM_OK;
    }
    float *elements = malloc((size_t)labels->count * sizeof *elements);
    dm_status status = elements ? nn_blob_read(l->net, labels, elements)
                                : dm_error_no_memory("labels", (size_t)labels->count * sizeof *elements);
    int64_t bad = -1;
    for (int64_t i = 0; status == DM_OK && i < labels->count && bad < 0; i++) {
        const double label = trunc((double)elements[i]);
        bad = !(label >= 0 && label < (double)classes) && !ignored(l, label) ? i : bad;
    }
    if (status == DM_OK && bad >= 0) {
        nn_solver_log(
            s,
            "layer '%s': loss is nan at iteration %lld: element %lld of '%s' is %g, and a label outside "
            "0..%lld has no class",
            l->name, (long long)iteration, (long long)bad, labels->name, (double)elements[bad],
            (long long)classes - 1);
    } else if (status == DM_OK) {
        nn_solver_log(s,
                      "layer '%s': loss is nan at iteration %lld: the labels of this batch are in 0..%lld; a "
                      "label outside in a batch before, or too high a base_lr, is the usual cause",
                      l->name, (long long)iteration, (long long)classes - 1);
    }
    free(elements);
    return status;
}

/* The loss of the program's own has no layer. */
static dm_status look_at_own(dm_solver *s)
{
    double value = 0;
    dm_status status = dm_item(s->session, s->net->value, NULL, &value);
    if (status == DM_OK && isnan(value)) {
        s->nan_said = true;
        nn_solver_log(s, "the loss of the program's own is nan at iteration %lld", (long long)s->iter);
    }
    return status;
}

dm_status nn_solver_loss(dm_solver *s, double *loss)
{
    dm_status status = nn_loss(s->net, loss);
    const bool look = status == DM_OK && isnan(*loss) && !s->nan_said;
    for (int i = 0; look && status == DM_OK && !s->nan_said && i < s->net->blob_count; i++) {
        const nn_blob *b = s->net->blobs[i];
        double value = 0;
        if (b->loss_weight != 0 && b->whole && b->count == 1) {
            status = dm_item(s->session, b->data, (int64_t[]){0}, &value);
        }
        if (status == DM_OK && isnan(value)) {
            s->nan_said = true;
            status = say(s, b->producer);
        }
    }
    return status == DM_OK && look && !s->nan_said && s->net->own.function ? look_at_own(s) : status;
}
