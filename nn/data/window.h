/* Windows of images that a file lists, for WindowData. */
#ifndef NN_WINDOW_H
#define NN_WINDOW_H

#include "base/base.h"

typedef struct nn_window {
    int64_t image; /* index */
    int64_t label; /* 0: background */
    double box[4]; /* x1, y1, x2, y2, both ends inside */
} nn_window;

typedef struct nn_windows {
    char *text, **image; /* paths */
    int64_t images;
    int64_t *line;     /* of each image in the file */
    nn_window *all[2]; /* background, foreground */
    int64_t count[2];
} nn_windows;

/* A window is foreground if its overlap is at least `foreground`, and background if it is below `background`.
 * Errors name the file and the line: DM_ERR_FORMAT, DM_ERR_IO, DM_ERR_NOMEM. */
dm_status nn_windows_read(const char *path, double foreground, double background, nn_windows *out);
void nn_windows_drop(nn_windows *windows);

/* Where a window comes from and goes to: `rows` x `cols` of the image from (top, left) on become height x
 * width, at (down, right) of a square of `crop`. */
typedef struct nn_placed {
    int64_t top, left, rows, cols, height, width, down, right;
} nn_placed;
/* Caffe's rule: with context and in a square, the window grows about its middle, so that `pad` pixels of the
 * crop are context. DM_ERR_FORMAT: nothing of it lies in the image. */
dm_status nn_window_place(const double box[4], int64_t image_rows, int64_t image_cols, int64_t crop,
                          int64_t pad, bool square, bool mirrored, nn_placed *out);

#endif
