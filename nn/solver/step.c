/* A step of training as one program: forward and backward pass and update are planned once and run as one
 * command. What changes from run to run: data, which come before it, seeds, which advance, and learning rates,
 * which are elements of arrays. Rounded copies of weights are those that the update of the run before wrote, or
 * are written before the run (nn_params_renew). Nets with calls that wait, iter_size above 1 and clip_gradients
 * go call by call. */
#include "solver/solver.h"

#include <stdlib.h>

static bool recordable(const dm_solver *s)
{
    return s->iter_size == 1 && s->clip < 0 && !s->debug && nn_recordable(s->net);
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

static dm_status forward_calls(void *solver)
{
    const dm_solver *s = solver;
    return nn_forward_part(s->net, false);
}

static dm_status step_calls(void *solver)
{
    dm_solver *s = solver;
    dm_status status = nn_forward_part(s->net, false);
    status = status == DM_OK ? nn_backward(s->net, false) : status;
    return status == DM_OK ? nn_solver_move(s, 0, 1) : status;
}

dm_status nn_step_of(dm_solver *s, dm_program *out)
{
    dm_status status = s->rates || !recordable(s) ? DM_OK : make_rates(s);
    return status == DM_OK && recordable(s) ? nn_program_record(s->net, step_calls, s, out) : status;
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
    dm_status status = nn_program_record(s->net, forward_calls, s, &program);
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
