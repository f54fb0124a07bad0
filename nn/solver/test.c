/* Tests in the middle of training. Outputs are added up where they are made, so that nobody waits for a batch.
 * With workers of their own (test_workers) the test nets have copies of the weights, made when the test is due,
 * and training goes on: while the workers of a step are at work, the program's thread gives those of the test
 * one batch after another, each when they have done the one before. */
#include "solver/solver.h"

#include <stdlib.h>

static const double look = 2e-4; /* seconds between two looks at both groups */

/* --- what is added up */
static bool is_loss(const dm_solver *s, const nn_blob *b)
{
    return s->test_loss && b->loss_weight != 0;
}

static dm_status make(const dm_solver *s, nn_test *t)
{
    const dm_layout one = dm_layout_single(0);
    dm_status status = DM_OK;
    for (int k = 0; status == DM_OK && k < t->net->output_count; k++) {
        status = dm_array_like(s->session, t->net->blobs[t->net->output[k]]->data, DM_F64, &t->sums[k]);
    }
    for (int i = 0; status == DM_OK && i < t->net->blob_count; i++) {
        status = is_loss(s, t->net->blobs[i])
                     ? dm_array_create(s->session, DM_F32, 1, &t->iterations, &one, &t->losses[i])
                     : DM_OK;
    }
    return status;
}

dm_status nn_test_make(dm_solver *s, nn_test *t)
{
    t->sums = calloc((size_t)t->net->output_count + 1, sizeof *t->sums);
    t->losses = calloc((size_t)t->net->blob_count + 1, sizeof *t->losses);
    dm_status status = t->sums && t->losses
                           ? nn_net_enter(t->net)
                           : dm_error_no_memory("the sums of a test",
                                                ((size_t)t->net->output_count + 1) * sizeof *t->sums +
                                                    ((size_t)t->net->blob_count + 1) * sizeof *t->losses);
    return status == DM_OK ? nn_net_leave(t->net, make(s, t)) : status;
}

void nn_test_free(dm_solver *s, nn_test *t)
{
    dm_status status = DM_OK;
    for (int k = 0; t->sums && k < t->net->output_count && status == DM_OK; k++) {
        status = dm_array_destroy(s->session, t->sums[k]);
    }
    for (int i = 0; t->losses && i < t->net->blob_count && status == DM_OK; i++) {
        status = dm_array_destroy(s->session, t->losses[i]);
    }
    if (status != DM_OK) {
        nn_solver_log(s, "an array was gone before its solver ended: %s", dm_error_message());
    }
    nn_net_free(t->net);
    free(t->sums);
    free(t->losses);
}

static dm_status add_outputs(const nn_test *t)
{
    dm_status status = DM_OK;
    for (int k = 0; status == DM_OK && k < t->net->output_count; k++) {
        const dm_map_arg args[] = {DM_ARG("t", t->sums[k]),
                                   DM_ARG("x", t->net->blobs[t->net->output[k]]->data)};
        status = dm_map(t->net->session, "t + x", 2, args, t->sums[k]);
    }
    return status;
}

/* Of batch number `batch`: the element, or the sum, of each blob that is a part of the loss. */
static dm_status keep_losses(const nn_test *t, int64_t batch)
{
    dm_session *s = t->net->session;
    const int64_t one = 1;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < t->net->blob_count; i++) {
        dm_array at = DM_NO_ARRAY, sum = DM_NO_ARRAY;
        const nn_blob *b = t->net->blobs[i];
        if (!t->losses[i].id) {
            continue;
        }
        status = dm_array_view(s, t->losses[i], &batch, &one, &at);
        if (status == DM_OK && !(b->whole && b->count == 1)) {
            status = dm_array_create(s, DM_F32, 0, NULL, NULL, &sum);
            const dm_map_arg args[] = {DM_ARG("x", sum)};
            status = status == DM_OK ? dm_sum(s, b->data, NULL, 0, 1, 0, sum) : status;
            status = status == DM_OK ? dm_map(s, "x", 1, args, at) : status;
        } else if (status == DM_OK) {
            status = dm_copy(s, b->data, at);
        }
        dm_status ends[] = {dm_array_destroy(s, sum), dm_array_destroy(s, at)};
        status = status != DM_OK ? status : ends[0] != DM_OK ? ends[0] : ends[1];
    }
    return status;
}

/* --- the lines of a net */
static void announce(const dm_solver *s)
{
    nn_solver_log(s, "Iteration %lld, Testing net (#%d)", (long long)s->testing.iteration, s->testing.net);
    nn_solver_tell_of(s, s->testing.iteration, (dm_train_event){.kind = DM_TRAIN_TEST, .test = s->testing.net});
}

/* The mean over the batches of the sum over the blobs, in this order. */
static dm_status report_loss(const dm_solver *s, const nn_test *t)
{
    double total = 0, *values = malloc((size_t)t->iterations * sizeof *values),
           *losses = calloc((size_t)t->iterations, sizeof *losses);
    dm_status status = values && losses ? DM_OK
                                        : dm_error_no_memory("the losses of a test",
                                                             2 * (size_t)t->iterations * sizeof *values);
    for (int i = 0; status == DM_OK && i < t->net->blob_count; i++) {
        if (t->losses[i].id) {
            status = dm_array_read_as(s->session, t->losses[i], NULL, NULL, DM_F64, values, 0);
            for (int64_t k = 0; status == DM_OK && k < t->iterations; k++) {
                losses[k] += t->net->blobs[i]->loss_weight * values[k];
            }
        }
    }
    for (int64_t k = 0; status == DM_OK && k < t->iterations; k++) {
        total += losses[k];
    }
    if (status == DM_OK) {
        nn_solver_log(s, "Test loss: %g", total / (double)t->iterations);
    }
    free(values);
    free(losses);
    return status;
}

static void report_element(const dm_solver *s, const nn_blob *b, int64_t element, int64_t score, double mean)
{
    nn_solver_tell_of(s, s->testing.iteration,
                      (dm_train_event){.kind = DM_TRAIN_TESTED,
                                       .test = s->testing.net,
                                       .name = b->name,
                                       .element = element,
                                       .value = mean,
                                       .weight = b->loss_weight});
    if (b->loss_weight != 0) {
        nn_solver_log(s, "    Test net output #%lld: %s = %g (* %g = %g loss)", (long long)score, b->name, mean,
                      b->loss_weight, b->loss_weight * mean);
    } else {
        nn_solver_log(s, "    Test net output #%lld: %s = %g", (long long)score, b->name, mean);
    }
}

/* Waits for the workers of the test. */
static dm_status report(const dm_solver *s, const nn_test *t)
{
    dm_status status = s->test_loss ? report_loss(s, t) : DM_OK;
    int64_t score = 0;
    for (int k = 0; status == DM_OK && k < t->net->output_count; k++) {
        const nn_blob *b = t->net->blobs[t->net->output[k]];
        double *sums = malloc((size_t)b->count * sizeof *sums);
        status = sums ? dm_array_read_as(s->session, t->sums[k], NULL, NULL, DM_F64, sums, 0)
                      : dm_error_no_memory("the elements of an output", (size_t)b->count * sizeof *sums);
        for (int64_t i = 0; status == DM_OK && i < b->count; i++) {
            report_element(s, b, i, score++, sums[nn_blob_place(b, i)] / (double)t->iterations);
        }
        free(sums);
    }
    return status;
}

/* --- the steps of a test */
static dm_status start_net(const dm_solver *s, const nn_test *t)
{
    dm_status status = nn_params_follow(t->net);
    for (int k = 0; status == DM_OK && k < t->net->output_count; k++) {
        status = dm_fill(s->session, t->sums[k], 0);
    }
    return status;
}

static dm_status one_batch(const dm_solver *s, const nn_test *t)
{
    dm_status status = nn_forward(t->net);
    status = status == DM_OK ? keep_losses(t, s->testing.batch) : status;
    return status == DM_OK ? add_outputs(t) : status;
}

/* The next batch of the net that is tested, or what came of it. Lines of a test beside training stay together.
 */
static dm_status advance(dm_solver *s)
{
    const nn_test *t = &s->tests[s->testing.net];
    const bool last = s->testing.batch == t->iterations;
    if (last ? s->test_workers > 0 : s->test_workers == 0 && s->testing.batch == 0) {
        announce(s);
    }
    dm_status status = nn_net_enter(t->net);
    if (status != DM_OK) {
        return status;
    }
    status = nn_net_leave(t->net, last ? report(s, t) : one_batch(s, t));
    s->testing.batch = last ? 0 : s->testing.batch + 1;
    s->testing.net += last;
    s->testing.going = status == DM_OK && s->testing.net < s->test_count;
    return status;
}

dm_status nn_test_finish(dm_solver *s)
{
    const bool heard = s->test_workers == 0; /* a test beside training is finished in any case */
    dm_status status = DM_OK;
    while (status == DM_OK && s->testing.going && !(heard && s->stopped)) {
        const bool batch = s->testing.batch < s->tests[s->testing.net].iterations;
        status = heard && batch ? nn_solver_hear(s) : DM_OK;
        status = status == DM_OK && !(heard && s->stopped) ? advance(s) : status;
    }
    if (status == DM_OK && s->testing.going) {
        nn_solver_log(s, "Test interrupted.");
        s->testing.going = false;
    }
    return status;
}

/* Training waits for a test that is not over. */
static dm_status finish_late(dm_solver *s)
{
    const double begin = nn_now_s();
    const int64_t iteration = s->testing.iteration;
    const bool going = s->testing.going;
    dm_status status = nn_test_finish(s);
    if (status == DM_OK && going && !s->testing.late) {
        s->testing.late = true;
        nn_solver_log(
            s,
            "The test of iteration %lld was not over when the next was due: training waited %.3g s. (Said "
            "once.)",
            (long long)iteration, nn_now_s() - begin);
    }
    return status;
}

dm_status nn_test_begin(dm_solver *s)
{
    dm_status status = finish_late(s);
    s->testing.iteration = s->iter;
    s->testing.net = 0;
    s->testing.batch = 0;
    for (int i = 0; status == DM_OK && i < s->test_count; i++) {
        const nn_test *t = &s->tests[i];
        status = nn_net_enter(t->net);
        status = status == DM_OK ? nn_net_leave(t->net, start_net(s, t)) : status;
    }
    s->testing.going = status == DM_OK && s->test_count > 0;
    return status == DM_OK && s->test_workers == 0 ? nn_test_finish(s) : status;
}

dm_status nn_test_beside(dm_solver *s)
{
    int stepped = 0;
    dm_status status = DM_OK;
    while (status == DM_OK && s->testing.going && !stepped) {
        int ready = 0;
        status = dm_group_wait(s->session, s->test_on, look, &ready);
        status = status == DM_OK && ready ? advance(s) : status;
        status = status == DM_OK ? dm_group_wait(s->session, s->train_on, 0, &stepped) : status;
    }
    return status;
}
