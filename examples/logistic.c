/* Logistic regression with a penalty on large weights, by gradient descent with Nesterov's momentum. A step is
 * a recorded program: a product with the samples, one with their transpose, and expressions between them.
 *
 *   logistic [FOLDER]        saves samples, labels, weights and loss to FOLDER */
#include "common/save.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>

enum { SAMPLES = 4000, FEATURES = 30, STEPS = 300 };
static const double rate = 1.0, momentum = 0.9, penalty = 1e-3;

/* Normal samples; a label is 1 with the probability that hidden weights give. */
static void make_samples(dm_session *s, dm_array x, dm_array labels)
{
    dm_array hidden, score;
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_vector(s, DM_F64, FEATURES, &hidden));
    DM_CHECK(dm_vector(s, DM_F64, SAMPLES, &score));
    DM_CHECK(dm_fill_normal(s, x, 0, 1, 1));
    DM_CHECK(dm_fill_normal(s, hidden, 0, 1, 2));
    DM_CHECK(dm_matmul(s, x, hidden, score));
    DM_CHECK(dm_map(s, "uniform(3) < sigmoid(score)", 1, (dm_map_arg[]){DM_ARG("score", score)}, labels));
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

/* Records a step on the weights w; v is their speed. */
static dm_program record_step(dm_session *s, dm_array x, dm_array labels, dm_array w, dm_array v)
{
    dm_program step;
    dm_array ahead, score, gradient;
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_array_like(s, w, 0, &ahead));
    DM_CHECK(dm_array_like(s, w, 0, &gradient));
    DM_CHECK(dm_vector(s, DM_F64, SAMPLES, &score));
    DM_CHECK(dm_add(s, 1, w, momentum, v, ahead));
    DM_CHECK(dm_matmul(s, x, ahead, score));
    dm_map_arg error[] = {DM_ARG("score", score), DM_ARG("y", labels)};
    DM_CHECK(dm_map(s, "sigmoid(score) - y", 2, error, score));
    DM_CHECK(dm_copy(s, ahead, gradient));
    DM_CHECK(dm_gemv(s, DM_T, 1.0 / SAMPLES, x, score, penalty, gradient)); /* xᵀ error / n + penalty ahead */
    DM_CHECK(dm_axpby(s, -rate, gradient, momentum, v));
    DM_CHECK(dm_axpy(s, 1, v, w));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_program_end(s, &step));
    return step;
}

/* The mean of -log p(label), and the share of labels that are the likelier ones. */
static void judge(dm_session *s, dm_array x, dm_array labels, dm_array w, dm_array loss, dm_array right)
{
    dm_array score;
    DM_CHECK(dm_vector(s, DM_F64, SAMPLES, &score));
    DM_CHECK(dm_matmul(s, x, w, score));
    dm_map_arg args[] = {DM_ARG("score", score), DM_ARG("y", labels)};
    DM_CHECK(dm_map(s, "mean(softplus(score) - y * score)", 2, args, loss));
    DM_CHECK(dm_map(s, "mean(f64((score > 0) == y))", 2, args, right));
    DM_CHECK(dm_array_destroy(s, score));
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    dm_session *s;
    dm_array x, labels, w, v, loss, right;
    double losses, rights;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, SAMPLES, FEATURES, &x));
    DM_CHECK(dm_vector(s, DM_BOOL, SAMPLES, &labels));
    DM_CHECK(dm_vector(s, DM_F64, FEATURES, &w));
    DM_CHECK(dm_array_like(s, w, 0, &v));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &loss));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &right));
    make_samples(s, x, labels);
    DM_CHECK(dm_fill(s, w, 0));
    DM_CHECK(dm_fill(s, v, 0));

    dm_program step = record_step(s, x, labels, w, v);
    DM_CHECK(dm_program_run(s, step, STEPS, 0, NULL));
    judge(s, x, labels, w, loss, right);
    DM_CHECK(dm_read(s, loss, &losses));
    DM_CHECK(dm_read(s, right, &rights));
    printf("%d workers, %d steps: loss %.6f, %.1f %% right\n", dm_workers(s), STEPS, losses, 100 * rights);

    save(s, folder, "samples", x);
    save(s, folder, "labels", labels);
    save(s, folder, "weights", w);
    save(s, folder, "loss", loss);
    DM_CHECK(dm_program_destroy(s, step));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
