/* A step of training as one program: forward and backward pass and update are planned once and run as one
 * command. What changes from run to run: data, which come before it, seeds, which advance, and learning rates,
 * which are elements of arrays. Rounded copies of weights are those that the update of the run before wrote, or
 * are written before the run (nn_params_renew). Nets with calls that wait, iter_size above 1 and clip_gradients
 * go call by call. */
#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>

static bool recordable(const dm_solver *s)
{
    bool can = s->iter_size == 1 && s->clip < 0 && !s->debug;
    for (int i = 0; can && i < s->net->layer_count; i++) {
        can = !(s->net->layers[i].type->traits & NN_WAITS);
    }
    return can;
}

const nn_rate *nn_step_rate(const dm_solver *s, double mult)
{
    for (int i = 0; i < s->rate_count; i++) {
        if (s->rates[i].mult == mult) {
            return &s->rates[i];
        }
    }
    return NULL;
}

static dm_status make_rates(dm_solver *s)
{
    dm_layout everywhere = dm_layout_replicated(s->session);
    dm_status status = DM_OK;
    s->rates = calloc((size_t)s->net->param_count, sizeof *s->rates);
    if (!s->rates) {
        return dm_error_no_memory("the rates of parameters", (size_t)s->net->param_count * sizeof *s->rates);
    }
    for (int i = 0; status == DM_OK && i < s->net->param_count; i++) {
        double mult = s->net->params[i]->lr_mult;
        if (mult != 0 && !nn_step_rate(s, mult)) {
            nn_rate *r = &s->rates[s->rate_count++];
            r->mult = mult;
            r->now = -1; /* no rate yet */
            /* without dims, as some parameters are */
            status = dm_array_create(s->session, DM_F32, 0, NULL, &everywhere, &r->array);
        }
    }
    return status;
}

/* update: the backward pass and the update too. */
static dm_status record(dm_solver *s, bool update, dm_program *out)
{
    nn_net *net = s->net;
    dm_status status = nn_spares_end(net); /* of passes call by call */
    status = status == DM_OK && net->lean ? nn_blobs_end(net, true) : status;
    status = status == DM_OK ? dm_program_begin(s->session) : status;
    if (status != DM_OK) {
        return status;
    }
    net->recording = true;
    status = dm_program_advance_seeds(s->session);
    status = status == DM_OK && net->lean ? nn_blobs_make(net, true) : status;
    status = status == DM_OK ? nn_forward_part(net, false) : status;
    status = status == DM_OK && update ? nn_backward(net, false) : status;
    status = status == DM_OK && update ? nn_solver_move(s, 0, 1) : status;
    status = status == DM_OK && update ? nn_spares_end(net) : status;
    status = status == DM_OK && net->lean ? nn_blobs_end(net, true) : status;
    net->recording = false;
    if (status == DM_OK) {
        return dm_program_end(s->session, out);
    }
    char text[2048];
    snprintf(text, sizeof text, "%s", dm_error_message());
    return dm_program_end(s->session, NULL) == DM_OK ? dm_error_set(status, "%s", text) : status;
}

dm_status nn_step_of(dm_solver *s, dm_program *out)
{
    dm_status status = s->rates || !recordable(s) ? DM_OK : make_rates(s);
    return status == DM_OK && recordable(s) ? record(s, true, out) : status;
}

dm_status nn_step_record(dm_solver *s)
{
    dm_status status = nn_step_of(s, &s->program);
    return status == DM_OK && s->program.id ? dm_program_set_run(s->session, s->program, s->net->pass) : status;
}

dm_status nn_step_run(dm_solver *s)
{
    double rate = nn_solver_rate_of(s, s->rate);
    dm_status status = nn_forward_part(s->net, true);
    for (int i = 0; status == DM_OK && i < s->rate_count; i++) {
        nn_rate *r = &s->rates[i];
        if (r->now != rate * r->mult) {
            r->now = rate * r->mult;
            status = dm_fill(s->session, r->array, r->now);
        }
    }
    s->net->pass++;
    status = status == DM_OK ? nn_params_renew(s->net) : status;
    status = status == DM_OK ? dm_program_run(s->session, s->program, 1, 0, NULL) : status;
    s->net->current = s->net->current && status == DM_OK;
    return status;
}

dm_status nn_step_forward(dm_solver *s)
{
    dm_program program = {0};
    if (!s->net->lean || !s->program.id) {
        return nn_forward(s->net);
    }
    dm_status status = record(s, false, &program);
    status =
        status == DM_OK ? dm_memory_trim(s->session) : status; /* workers with GPUs keep that of the step */
    status = status == DM_OK ? dm_program_set_run(s->session, program, s->net->pass) : status;
    status = status == DM_OK ? nn_params_renew(s->net) : status;
    status = status == DM_OK ? nn_forward_part(s->net, true) : status; /* of this pass */
    s->net->pass++;
    status = status == DM_OK ? dm_program_run(s->session, program, 1, 0, NULL) : status;
    dm_status end = dm_program_destroy(s->session, program);
    return status == DM_OK ? end : status;
}

void nn_step_drop(dm_solver *s)
{
    if (dm_program_destroy(s->session, s->program) != DM_OK) {
        nn_solver_log(s, "the program of a step was gone before its solver ended: %s", dm_error_message());
    }
    for (int i = 0; i < s->rate_count; i++) {
        if (dm_array_destroy(s->session, s->rates[i].array) != DM_OK) {
            nn_solver_log(s, "an array was gone before its solver ended: %s", dm_error_message());
        }
    }
    free(s->rates);
    s->rates = NULL;
    s->rate_count = 0;
    s->program.id = 0;
}
