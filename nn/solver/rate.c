/* Learning rate policies. */
#include "solver/solver.h"

#include <math.h>
#include <string.h>

static const char S[] = "SolverParameter";

enum { GAMMA = 1, POWER = 2, STEPSIZE = 4, STEPVALUE = 8 };

static const struct policy {
    const char *name;
    unsigned needs;
} policies[] = {{"fixed", 0},
                {"step", GAMMA | STEPSIZE},
                {"exp", GAMMA},
                {"inv", GAMMA | POWER},
                {"multistep", GAMMA | STEPVALUE},
                {"poly", POWER},
                {"sigmoid", GAMMA | STEPSIZE}};

dm_status nn_solver_rate_check(const dm_solver *s)
{
    static const char *const fields[] = {"gamma", "power", "stepsize", "stepvalue"};
    const char *name = nn_string(s->m, S, "lr_policy");
    const struct policy *p = NULL;
    for (int i = 0; i < NN_COUNT(policies); i++) {
        p = strcmp(name, policies[i].name) == 0 ? &policies[i] : p;
    }
    if (!p) {
        return nn_fail_at(s->m, nn_line(s->m, "lr_policy"), DM_ERR_FORMAT,
                          "lr_policy '%s' is none of fixed, step, exp, inv, multistep, poly, sigmoid", name);
    }
    if ((p->needs & STEPSIZE) && nn_int(s->m, S, "stepsize") < 1) {
        return nn_fail_at(s->m, nn_line(s->m, "stepsize"), DM_ERR_FORMAT,
                          "lr_policy '%s' needs a stepsize above 0", name);
    }
    if ((p->needs & GAMMA) && nn_real(s->m, S, "gamma") < 0) {
        return nn_fail_at(s->m, nn_line(s->m, "gamma"), DM_ERR_FORMAT, "gamma may not be negative");
    }
    for (int i = 0; i < NN_COUNT(fields); i++) {
        if (!(p->needs >> i & 1) && nn_has(s->m, fields[i])) {
            nn_solver_log(s, "%s:%d: %s has no effect with lr_policy '%s'", s->m->file,
                          nn_line(s->m, fields[i]), fields[i], name);
        }
        nn_use(s->m, fields[i]);
        if ((p->needs >> i & 1) && !nn_has(s->m, fields[i])) {
            nn_solver_log(s, "%s: lr_policy '%s' uses %s, which is not there%s", s->m->file, name, fields[i],
                          1 << i == STEPVALUE ? ": the rate stays" : " and so is 0");
        }
    }
    if (!nn_has(s->m, "base_lr")) {
        nn_solver_log(s, "%s: there is no base_lr: the rate is 0", s->m->file);
    }
    return DM_OK;
}

double nn_solver_rate(dm_solver *s)
{
    const char *policy = nn_string(s->m, S, "lr_policy");
    double iter = (double)s->iter, stepsize = (double)nn_int(s->m, S, "stepsize");
    if (strcmp(policy, "step") == 0) {
        s->step = s->iter / (int64_t)stepsize;
        return s->base_lr * pow(s->gamma, (double)s->step);
    }
    if (strcmp(policy, "exp") == 0) {
        return s->base_lr * pow(s->gamma, iter);
    }
    if (strcmp(policy, "inv") == 0) {
        return s->base_lr * pow(1 + s->gamma * iter, -s->power);
    }
    if (strcmp(policy, "multistep") == 0) { /* at most one step a call, as Caffe */
        if (s->step < nn_count(s->m, "stepvalue") && s->iter >= nn_int_at(s->m, "stepvalue", s->step)) {
            s->step++;
            nn_solver_log(s, "MultiStep Status: Iteration %lld, step = %lld", (long long)s->iter,
                          (long long)s->step);
        }
        return s->base_lr * pow(s->gamma, (double)s->step);
    }
    if (strcmp(policy, "poly") == 0) {
        return s->base_lr * pow(1 - iter / (double)s->max_iter, s->power);
    }
    if (strcmp(policy, "sigmoid") == 0) {
        return s->base_lr / (1 + exp(-s->gamma * (iter - stepsize)));
    }
    return s->base_lr;
}
