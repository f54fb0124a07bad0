/* Tests in the middle of training. */
#include "solver/solver.h"

#include <stdlib.h>
#include <string.h>

/* Adds all elements of all outputs to the scores. Waits. */
static dm_status add_scores(nn_test *t)
{
    dm_status status = DM_OK;
    int64_t at = 0;
    for (int k = 0; status == DM_OK && k < t->net->output_count; k++) {
        const nn_blob *b = t->net->blobs[t->net->output[k]];
        double one = 0, *values = b->count == 1 ? &one : malloc((size_t)b->count * sizeof *values);
        status =
            values ? dm_array_read_as(t->net->session, b->data, NULL, NULL, DM_F64, values, 0) : nn_no_memory();
        for (int64_t i = 0; status == DM_OK && i < b->count; i++) {
            t->scores[at++] += values[i];
        }
        if (values != &one) {
            free(values);
        }
    }
    return status;
}

static void report(const dm_solver *s, const nn_test *t, int number)
{
    int64_t at = 0;
    for (int k = 0; k < t->net->output_count; k++) {
        const nn_blob *b = t->net->blobs[t->net->output[k]];
        for (int64_t i = 0; i < b->count; i++, at++) {
            double mean = t->scores[at] / (double)t->iterations;
            nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_TESTED,
                                               .test = number,
                                               .name = b->name,
                                               .element = i,
                                               .value = mean,
                                               .weight = b->loss_weight});
            if (b->loss_weight != 0) {
                nn_solver_log(s, "    Test net output #%lld: %s = %g (* %g = %g loss)", (long long)at, b->name,
                              mean, b->loss_weight, b->loss_weight * mean);
            } else {
                nn_solver_log(s, "    Test net output #%lld: %s = %g", (long long)at, b->name, mean);
            }
        }
    }
}

static dm_status run_test(dm_solver *s, int number)
{
    nn_test *t = &s->tests[number];
    double total = 0, loss = 0;
    dm_status status = DM_OK;
    int64_t elements = 0;
    for (int k = 0; k < t->net->output_count; k++) {
        elements += t->net->blobs[t->net->output[k]]->count;
    }
    memset(t->scores, 0, (size_t)elements * sizeof *t->scores);
    nn_solver_log(s, "Iteration %lld, Testing net (#%d)", (long long)s->iter, number);
    nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_TEST, .test = number});
    for (int64_t i = 0; status == DM_OK && i < t->iterations; i++) {
        status = nn_forward(t->net);
        status = status == DM_OK && s->test_loss ? nn_loss(t->net, &loss) : status;
        status = status == DM_OK ? add_scores(t) : status;
        total += loss;
    }
    if (status == DM_OK && s->test_loss) {
        nn_solver_log(s, "Test loss: %g", total / (double)t->iterations);
    }
    if (status == DM_OK) {
        report(s, t, number);
    }
    return status;
}

dm_status nn_solver_test(dm_solver *s)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < s->test_count; i++) {
        status = run_test(s, i);
    }
    return status;
}
