/* A network of two layers, with its gradients by hand: it learns to read handwritten digits. A step on a batch
 * is a recorded program. Before each run, a batch, which is a view of the images, is copied to where the
 * program reads.
 *
 *   two_layers DIGITS.npy LABELS.npy [FOLDER]        saves the weights and the losses to FOLDER */
#include "common/save.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

enum { HIDDEN = 40, CLASSES = 10, BATCHES = 7, BATCH = 256, EPOCHS = 15 };
static const double rate = 0.5;

typedef struct network {
    dm_array w1, b1, w2, b2, loss;
} network;

static network make_network(dm_session *s, int64_t features)
{
    network net;
    DM_CHECK(dm_matrix(s, DM_F64, features, HIDDEN, &net.w1));
    DM_CHECK(dm_vector(s, DM_F64, HIDDEN, &net.b1));
    DM_CHECK(dm_matrix(s, DM_F64, HIDDEN, CLASSES, &net.w2));
    DM_CHECK(dm_vector(s, DM_F64, CLASSES, &net.b2));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &net.loss));
    DM_CHECK(dm_fill_normal(s, net.w1, 0, 0.1, 1));
    DM_CHECK(dm_fill_normal(s, net.w2, 0, 0.1, 2));
    DM_CHECK(dm_fill(s, net.b1, 0));
    DM_CHECK(dm_fill(s, net.b2, 0));
    return net;
}

/* Records a step of gradient descent on a batch x with its labels. */
static dm_program record_step(dm_session *s, const network *net, dm_array x, dm_array labels)
{
    dm_program step;
    dm_array hidden, scores, losses, back;
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, BATCH, HIDDEN, &hidden));
    DM_CHECK(dm_matrix(s, DM_F64, BATCH, CLASSES, &scores));
    DM_CHECK(dm_vector(s, DM_F64, BATCH, &losses));
    DM_CHECK(dm_array_like(s, hidden, 0, &back));

    DM_CHECK(dm_matmul(s, x, net->w1, hidden));
    dm_map_arg activation[] = {DM_ARG("h", hidden), DM_ARG("b", net->b1)};
    DM_CHECK(dm_map(s, "tanh(h + b)", 2, activation, hidden));
    DM_CHECK(dm_matmul(s, hidden, net->w2, scores));
    DM_CHECK(dm_add(s, 1, scores, 1, net->b2, scores)); /* the bias is repeated for every row */
    DM_CHECK(dm_cross_entropy(s, scores, labels, losses));
    DM_CHECK(dm_mean(s, losses, NULL, 0, net->loss));

    DM_CHECK(dm_cross_entropy_gradient(s, scores, labels, 1.0 / BATCH, scores));
    DM_CHECK(dm_gemm(s, DM_N, DM_T, 1, scores, net->w2, 0, back));
    dm_map_arg derivative[] = {DM_ARG("g", back), DM_ARG("h", hidden)};
    DM_CHECK(dm_map(s, "g * (1 - h * h)", 2, derivative, back));
    DM_CHECK(dm_gemm(s, DM_T, DM_N, -rate, hidden, scores, 1, net->w2)); /* w2 -= rate hiddenᵀ scores */
    DM_CHECK(dm_sum(s, scores, (int[]){0}, 1, -rate, 1, net->b2));
    DM_CHECK(dm_gemm(s, DM_T, DM_N, -rate, x, back, 1, net->w1));
    DM_CHECK(dm_sum(s, back, (int[]){0}, 1, -rate, 1, net->b1));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_program_end(s, &step));
    return step;
}

int main(int argc, char **argv)
{
    dm_session *s;
    dm_array raw, labels, images, x, y, from_x[BATCHES], from_y[BATCHES], history, place;
    dm_array_info info = {.size = sizeof info};
    double loss[EPOCHS];
    DM_CHECK(dm_init(NULL, &s));
    if (argc < 3) {
        fprintf(stderr, "usage: two_layers DIGITS.npy LABELS.npy [FOLDER]\n");
        exit(EXIT_FAILURE);
    }
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_array_load(s, argv[1], NULL, &raw));
    DM_CHECK(dm_array_load(s, argv[2], NULL, &labels));
    DM_CHECK(dm_array_query(s, raw, &info));
    DM_CHECK(dm_array_like(s, raw, DM_F64, &images));
    DM_CHECK(dm_map(s, "raw / 16.0", 1, (dm_map_arg[]){DM_ARG("raw", raw)}, images));
    DM_CHECK(dm_vector(s, DM_F64, EPOCHS, &history));
    DM_CHECK(dm_matrix(s, DM_F64, BATCH, info.shape[1], &x));
    DM_CHECK(dm_vector(s, DM_U8, BATCH, &y));
    network net = make_network(s, info.shape[1]);
    for (int i = 0; i < BATCHES; i++) {
        DM_CHECK(dm_rows(s, images, (int64_t)i * BATCH, BATCH, &from_x[i]));
        DM_CHECK(dm_rows(s, labels, (int64_t)i * BATCH, BATCH, &from_y[i]));
    }
    const char *folder = argc > 3 ? argv[3] : NULL;
    save(s, folder, "w1_first", net.w1);
    save(s, folder, "w2_first", net.w2);

    dm_program step = record_step(s, &net, x, y);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < BATCHES; i++) {
            DM_CHECK(dm_copy(s, from_x[i], x));
            DM_CHECK(dm_copy(s, from_y[i], y));
            DM_CHECK(dm_program_run(s, step, 1, 0, NULL));
        }
        DM_CHECK(dm_rows(s, history, epoch, 1, &place));
        DM_CHECK(dm_copy(s, net.loss, place));
    }
    DM_CHECK(dm_read(s, history, loss));
    printf("%d workers, loss %.6f after one epoch, %.6f after %d\n", dm_workers(s), loss[0], loss[EPOCHS - 1],
           EPOCHS);
    save(s, folder, "w1", net.w1);
    save(s, folder, "w2", net.w2);
    save(s, folder, "history", history);
    DM_CHECK(dm_program_destroy(s, step));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
