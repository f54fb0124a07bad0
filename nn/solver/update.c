/* The updates. A row for each solver: what it computes of w (the weights), d (the gradient, with decay), h and
 * k (its histories), and the numbers r (rate), m (momentum), b (momentum2), q (rms_decay), e (delta). */
#include "solver/solver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4 };

/* No steps: dm_momentum_step does it all in one pass, and where weights have a rounded copy that too. */
struct nn_rule {
    const char *type;
    int histories;
    unsigned needs; /* fields that others have no use for */
    struct {
        char target;
        const char *text;
    } steps[STEPS];
};

enum { MOMENTUM = 1, MOMENTUM2 = 2, RMS_DECAY = 4, DELTA = 8 };

static const nn_rule rules[] = {
    {"SGD", 1, MOMENTUM, {{0}}},
    {"Nesterov", 1, MOMENTUM, {{'w', "w - (m * m * h + (1 + m) * r * d)"}, {'h', "m * h + r * d"}}},
    {"AdaGrad", 1, DELTA, {{'h', "h + d * d"}, {'w', "w - r * d / (sqrt(h) + e)"}}},
    {"RMSProp", 1, DELTA | RMS_DECAY, {{'h', "q * h + (1 - q) * d * d"}, {'w', "w - r * d / (sqrt(h) + e)"}}},
    {"AdaDelta",
     2,
     DELTA | MOMENTUM,
     {{'h', "m * h + (1 - m) * d * d"},
      {'d', "d * sqrt((k + e) / (h + e))"},
      {'k', "m * k + (1 - m) * d * d"},
      {'w', "w - r * d"}}},
    {"Adam",
     2,
     DELTA | MOMENTUM | MOMENTUM2,
     {{'h', "m * h + (1 - m) * d"}, {'k', "b * k + (1 - b) * d * d"}, {'w', "w - r * h / (sqrt(k) + e)"}}},
};

dm_status nn_solver_rule(dm_solver *s)
{
    static const char *const fields[] = {"momentum", "momentum2", "rms_decay", "delta"};
    const char *type = nn_string(s->m, "SolverParameter", "type");
    for (int i = 0; i < NN_COUNT(rules); i++) {
        s->rule = strcmp(rules[i].type, type) == 0 ? &rules[i] : s->rule;
    }
    if (!s->rule) {
        return nn_fail_at(s->m, nn_line(s->m, "type"), DM_ERR_UNSUPPORTED, "there is no solver '%s'", type);
    }
    for (int i = 0; i < NN_COUNT(fields); i++) {
        double value = nn_real(s->m, "SolverParameter", fields[i]);
        if (!(s->rule->needs >> i & 1) && nn_has(s->m, fields[i]) && value != 0) {
            return nn_fail_at(s->m, nn_line(s->m, fields[i]), DM_ERR_FORMAT, "the solver %s has no use for %s",
                              type, fields[i]);
        }
    }
    s->net->histories = s->rule->histories;
    s->net->copies = !s->rule->steps[0].text;
    s->history_count = s->rule->histories * s->net->param_count; /* h of all parameters, then k of all */
    return DM_OK;
}

static bool has_loss(const nn_net *net)
{
    bool any = net->own.function != NULL;
    for (int i = 0; i < net->blob_count; i++) {
        any = any || net->blobs[i]->loss_weight != 0;
    }
    return any;
}

dm_status nn_solver_histories(dm_solver *s)
{
    nn_net *n = s->net;
    dm_layout one = dm_layout_single(0);
    int64_t single = 1;
    if (n->param_count == 0) {
        return nn_fail_at(s->m, s->m->line, DM_ERR_FORMAT, "the net has no parameters to train");
    }
    if (!has_loss(n)) {
        return nn_fail_at(n->document->root, 0, DM_ERR_FORMAT,
                          "the net has no loss to train by: no layer makes one, and none has a loss_weight");
    }
    s->flat_history_count = s->rule->histories * n->flat_count;
    s->history = calloc((size_t)s->history_count, sizeof *s->history);
    s->flat_history = calloc((size_t)s->flat_history_count + 1, sizeof *s->flat_history);
    if (!s->history || !s->flat_history) {
        return dm_error_no_memory("the histories of parameters",
                                  ((size_t)s->history_count + (size_t)s->flat_history_count + 1) *
                                      sizeof *s->history);
    }
    dm_status status = dm_array_create(s->session, DM_F64, 1, &single, &one, &s->norm);
    for (int i = 0; status == DM_OK && i < s->flat_history_count; i++) {
        status = nn_flat_array(n, &n->flats[i % n->flat_count], DM_F32, &s->flat_history[i]);
    }
    for (int i = 0; status == DM_OK && i < s->history_count; i++) {
        const nn_param *p = n->params[i % n->param_count];
        if (p->flat) {
            int64_t at = i / n->param_count * n->flat_count + (p->flat - n->flats);
            status = nn_flat_part(n, p, s->flat_history[at], &s->history[i]);
        } else {
            status = nn_param_array(n, p, &s->history[i]);
            status = status == DM_OK ? dm_fill(s->session, s->history[i], 0) : status;
        }
    }
    return status;
}

/* Adds the squares of a gradient to the norm, by slices: the same bits on any number of workers. */
static dm_status add_squares(dm_solver *s, const nn_param *p, double beta)
{
    dm_array column = DM_NO_ARRAY, rows = DM_NO_ARRAY;
    dm_array_info info = {.size = sizeof info};
    dm_status status = DM_OK;
    if (p->range &&
        (p->dealt || p->range_dim > 0)) { /* a worker has rows from several places, or parts of rows */
        status = dm_array_query(s->session, p->diff, &info);
        status =
            status == DM_OK ? dm_array_create(s->session, DM_F32, info.ndim, info.shape, NULL, &rows) : status;
        status = status == DM_OK ? dm_copy(s->session, p->diff, rows) : status;
    }
    status = status == DM_OK
                 ? dm_array_reshape(s->session, rows.id ? rows : p->diff, 2, (int64_t[]){p->count, 1}, &column)
                 : status;
    if (status == DM_OK) {
        status = dm_channel_sums(s->session, DM_SLICES, 1, column, column, beta, s->norm);
    }
    const dm_status ends[] = {dm_array_destroy(s->session, column), dm_array_destroy(s->session, rows)};
    return status != DM_OK ? status : ends[0] != DM_OK ? ends[0] : ends[1];
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

/* Arrays that move alike: one parameter's, or those of several. */
typedef struct moving {
    double lr_mult, decay_mult;
    dm_array data, diff, history[2];
    dm_array rounded; /* in a recorded step: the copy that is written too, or none */
} moving;

static dm_status update(dm_solver *s, const moving *p, double rate, double factor)
{
    const nn_rate *recorded = s->net->recording ? nn_step_rate(s, p->lr_mult) : NULL;
    double decay = s->weight_decay * p->decay_mult;
    double scale = factor / (double)s->iter_size, now = rate * p->lr_mult;
    double m = s->momentum, b = nn_real(s->m, "SolverParameter", "momentum2");
    const char *gradient = decay == 0 ? "c * d" : s->l1 ? "c * d + x * sign(w)" : "c * d + x * w";
    dm_array h = p->history[0], k = s->rule->histories > 1 ? p->history[1] : h;
    const dm_map_arg all[] = {DM_ARG("w", p->data),
                              DM_ARG("d", p->diff),
                              DM_ARG("h", h),
                              DM_ARG("k", k),
                              recorded ? (dm_map_arg)DM_ARG("r", recorded->array)
                                       : (dm_map_arg)DM_NUMBER("r", now),
                              DM_NUMBER("m", m),
                              DM_NUMBER("b", b),
                              DM_NUMBER("q", nn_real(s->m, "SolverParameter", "rms_decay")),
                              DM_NUMBER("e", nn_real(s->m, "SolverParameter", "delta")),
                              DM_NUMBER("c", scale),
                              DM_NUMBER("x", decay)};
    if (!s->rule->steps[0].text) {
        dm_factor r = recorded ? dm_element(recorded->array) : dm_value(now);
        return p->rounded.id ? dm_momentum_step_rounded(s->session, scale, decay, s->l1, m, r, p->diff, h,
                                                        p->data, p->rounded)
                             : dm_momentum_step(s->session, scale, decay, s->l1, m, r, p->diff, h, p->data);
    }
    dm_status status = nn_map(s->session, gradient, NN_COUNT(all), all, p->diff);
    for (int n = 0; status == DM_OK && n < STEPS && s->rule->steps[n].text; n++) {
        const char target = s->rule->steps[n].target;
        status = nn_map(s->session, s->rule->steps[n].text, NN_COUNT(all), all,
                        target == 'w'   ? p->data
                        : target == 'd' ? p->diff
                        : target == 'h' ? h
                                        : k);
    }
    return status;
}

/* With Adam's correction, which is not for e, as in Caffe. */
double nn_solver_rate_of(const dm_solver *s, double rate)
{
    double t = (double)s->iter + 1, b = nn_real(s->m, "SolverParameter", "momentum2");
    return strcmp(s->rule->type, "Adam") == 0 ? rate * sqrt(1 - pow(b, t)) / (1 - pow(s->momentum, t)) : rate;
}

dm_status nn_solver_move(dm_solver *s, double rate, double factor)
{
    const nn_net *n = s->net;
    dm_status status = DM_OK;
    bool two = s->rule->histories > 1;
    s->net->current = n->current && n->recording; /* forward passes call by call round by themselves */
    for (int i = 0; status == DM_OK && i < n->flat_count; i++) {
        const nn_flat *f = &n->flats[i];
        moving all = {f->lr_mult, f->decay_mult, f->data, f->diff, {s->flat_history[i]}, DM_NO_ARRAY};
        all.rounded = n->recording && nn_flat_copied(n, f) ? f->rounded : DM_NO_ARRAY;
        all.history[1] = two ? s->flat_history[i + n->flat_count] : DM_NO_ARRAY;
        status = update(s, &all, rate, factor);
    }
    for (int i = 0; status == DM_OK && i < n->param_count; i++) {
        const nn_param *p = n->params[i];
        moving one = {p->lr_mult, p->decay_mult, p->data, p->diff, {s->history[i]}, DM_NO_ARRAY};
        one.rounded = n->recording && nn_param_copied(n, p) ? p->rounded : DM_NO_ARRAY;
        one.history[1] = two ? s->history[i + n->param_count] : DM_NO_ARRAY;
        status = p->flat || p->lr_mult == 0 ? status : update(s, &one, rate, factor);
    }
    return status;
}

dm_status nn_solver_update(dm_solver *s)
{
    double factor = 1;
    if (s->display && s->iter % s->display == 0) {
        nn_solver_log(s, "Iteration %lld, lr = %g", (long long)s->iter, s->rate);
    }
    dm_status status = s->clip >= 0 ? clip(s, &factor) : DM_OK;
    status = status == DM_OK && s->net->debug ? nn_debug_update(s->net) : status;
    if (status == DM_OK && s->program.id == 0) {
        status = nn_solver_move(s, nn_solver_rate_of(s, s->rate), factor);
    }
    s->iter += status == DM_OK;
    s->at = s->iter;
    return status;
}
