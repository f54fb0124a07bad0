/* The update of SGD: h = momentum h + rate (gradient + decay), w = w - h. */
#include "solver/solver.h"

#include <math.h>
#include <stdlib.h>

dm_status nn_solver_histories(dm_solver *s)
{
    nn_net *n = s->net;
    dm_layout one = dm_layout_single(0);
    int64_t single = 1;
    if (n->param_count == 0) {
        return nn_fail_at(s->m, s->m->line, DM_ERR_FORMAT, "the net has no parameters to train");
    }
    s->history = calloc((size_t)n->param_count, sizeof *s->history);
    if (!s->history) {
        return nn_no_memory();
    }
    dm_status status = dm_array_create(s->session, DM_F64, 1, &single, &one, &s->norm);
    for (int i = 0; status == DM_OK && i < n->param_count; i++) {
        status = nn_param_array(n, n->params[i], &s->history[i]);
        status = status == DM_OK ? dm_fill(s->session, s->history[i], 0) : status;
    }
    return status;
}

/* Adds the squares of a gradient to the norm, by slices: the same bits on any number of workers. */
static dm_status add_squares(dm_solver *s, const nn_param *p, double beta)
{
    dm_array column = DM_NO_ARRAY;
    dm_status status = dm_array_reshape(s->session, p->diff, 2, (int64_t[]){p->count, 1}, &column);
    if (status == DM_OK) {
        status = dm_channel_sums(s->session, DM_SLICES, 1, column, column, beta, s->norm);
    }
    dm_status end = dm_array_destroy(s->session, column);
    return status == DM_OK ? end : status;
}

/* The factor that brings the gradients to the length that clip_gradients allows: 1 if they are not longer.
 * Waits. */
static dm_status clip(dm_solver *s, double *factor)
{
    double squares = 0, beta = 0;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < s->net->param_count; i++) {
        if (s->net->params[i]->lr_mult != 0) { /* Caffe makes no gradients of others */
            status = add_squares(s, s->net->params[i], beta);
            beta = 1;
        }
    }
    if (status == DM_OK && beta != 0) {
        status = dm_item(s->session, s->norm, (int64_t[]){0}, &squares);
    }
    if (status == DM_OK) {
        double norm = sqrt(squares);
        *factor = norm > s->clip ? s->clip / norm : 1;
        if (norm > s->clip) {
            nn_solver_log(s, "Gradient clipping: scaling down gradients (L2 norm %g > %g) by scale factor %g",
                          norm, s->clip, *factor);
        }
    }
    return status;
}

static dm_status update(dm_solver *s, const nn_param *p, dm_array history, double rate, double factor)
{
    double decay = s->weight_decay * p->decay_mult;
    dm_map_arg args[] = {DM_ARG("h", history),
                         DM_ARG("g", p->diff),
                         DM_NUMBER("m", s->momentum),
                         DM_NUMBER("r", rate * p->lr_mult),
                         DM_NUMBER("c", factor / (double)s->iter_size),
                         DM_ARG("w", p->data),
                         DM_NUMBER("d", decay)};
    const char *step = decay == 0 ? "m * h + r * (c * g)"
                       : s->l1    ? "m * h + r * (c * g + d * sign(w))"
                                  : "m * h + r * (c * g + d * w)";
    dm_status status = dm_map(s->session, step, decay == 0 ? 5 : 7, args, history);
    return status == DM_OK ? dm_axpby(s->session, -1, history, 1, p->data) : status;
}

dm_status nn_solver_update(dm_solver *s)
{
    double rate = nn_solver_rate(s), factor = 1;
    if (s->display && s->iter % s->display == 0) {
        nn_solver_log(s, "Iteration %lld, lr = %g", (long long)s->iter, rate);
    }
    dm_status status = s->clip >= 0 ? clip(s, &factor) : DM_OK;
    for (int i = 0; status == DM_OK && i < s->net->param_count; i++) {
        if (s->net->params[i]->lr_mult != 0) {
            status = update(s, s->net->params[i], s->history[i], rate, factor);
        }
    }
    s->iter += status == DM_OK;
    return status;
}
