/* The update of SGD: h = momentum h + rate (gradient + decay), w = w - h; a few commands for all parameters. */
#include "solver/solver.h"

#include <math.h>
#include <stdlib.h>

static dm_status make_group(dm_solver *s, int64_t from, nn_group *g, int64_t *end)
{
    const nn_param *first = NULL;
    nn_net *n = s->net;
    dm_status status = nn_params_group(n, from, &first, end);
    if (status == DM_OK) {
        g->lr_mult = first->lr_mult;
        g->decay_mult = first->decay_mult;
        g->count = *end - from;
        status = dm_rows(s->session, n->weights, from, g->count, &g->weights);
    }
    status = status == DM_OK ? dm_rows(s->session, n->gradients, from, g->count, &g->gradients) : status;
    return status == DM_OK ? dm_rows(s->session, s->history, from, g->count, &g->history) : status;
}

dm_status nn_solver_groups(dm_solver *s)
{
    nn_net *n = s->net;
    dm_layout everywhere = dm_layout_replicated(s->session), one = dm_layout_single(0);
    int64_t single = 1, at = 0;
    if (n->weight_count == 0) {
        return nn_fail_at(s->m, s->m->line, DM_ERR_FORMAT, "the net has no parameters to train");
    }
    s->groups = calloc((size_t)n->param_count, sizeof *s->groups);
    s->param_history = calloc((size_t)n->param_count, sizeof *s->param_history);
    if (!s->groups || !s->param_history) {
        return nn_no_memory();
    }
    dm_status status = dm_array_create(s->session, DM_F32, 1, &n->weight_count, &everywhere, &s->history);
    status = status == DM_OK ? dm_fill(s->session, s->history, 0) : status;
    status = status == DM_OK ? dm_array_create(s->session, DM_F64, 1, &single, &one, &s->norm) : status;
    for (int i = 0; status == DM_OK && i < n->param_count; i++) {
        status = nn_param_part(n, n->params[i], s->history, &s->param_history[i]);
    }
    while (status == DM_OK && at < n->weight_count) {
        status = make_group(s, at, &s->groups[s->group_count++], &at);
    }
    return status;
}

/* The factor that brings the gradients to the length that clip_gradients allows: 1 if they are not longer.
 * Waits. */
static dm_status clip(dm_solver *s, double *factor)
{
    double squares = 0;
    dm_status status = DM_OK;
    bool begun = false;
    for (int i = 0; status == DM_OK && i < s->group_count; i++) {
        const nn_group *g = &s->groups[i];
        dm_array column = DM_NO_ARRAY;
        if (g->lr_mult == 0) {
            continue; /* whose gradients Caffe does not make */
        }
        status = dm_array_reshape(s->session, g->gradients, 2, (int64_t[]){g->count, 1}, &column);
        if (status == DM_OK) { /* by slices: the same bits on any number of workers */
            status = dm_channel_sums(s->session, DM_SLICES, 1, column, column, begun ? 1 : 0, s->norm);
        }
        dm_status end = dm_array_destroy(s->session, column);
        status = status == DM_OK ? end : status;
        begun = true;
    }
    if (status == DM_OK && begun) {
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

dm_status nn_solver_update(dm_solver *s)
{
    double rate = nn_solver_rate(s), factor = 1;
    if (s->display && s->iter % s->display == 0) {
        nn_solver_log(s, "Iteration %lld, lr = %g", (long long)s->iter, rate);
    }
    dm_status status = s->clip >= 0 ? clip(s, &factor) : DM_OK;
    for (int i = 0; status == DM_OK && i < s->group_count; i++) {
        const nn_group *g = &s->groups[i];
        double decay = s->weight_decay * g->decay_mult;
        dm_map_arg args[] = {DM_ARG("h", g->history),
                             DM_ARG("g", g->gradients),
                             DM_NUMBER("m", s->momentum),
                             DM_NUMBER("r", rate * g->lr_mult),
                             DM_NUMBER("c", factor / (double)s->iter_size),
                             DM_ARG("w", g->weights),
                             DM_NUMBER("d", decay)};
        const char *step = decay == 0 ? "m * h + r * (c * g)"
                           : s->l1    ? "m * h + r * (c * g + d * sign(w))"
                                      : "m * h + r * (c * g + d * w)";
        if (g->lr_mult == 0) {
            continue;
        }
        status = dm_map(s->session, step, decay == 0 ? 5 : 7, args, g->history);
        status = status == DM_OK ? dm_axpby(s->session, -1, g->history, 1, g->weights) : status;
    }
    s->iter += status == DM_OK;
    return status;
}
