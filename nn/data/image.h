/* Images: JPEG and PNG to bytes, and their sizes. */
#ifndef NN_IMAGE_H
#define NN_IMAGE_H

#include "base/base.h"
#include "data/record.h"

/* Rows of a channel one after another, channel after channel: blue, green, red, or gray alone. */
typedef struct nn_image {
    int64_t channels, height, width;
    unsigned char *bytes; /* free() */
} nn_image;

/* What decoders give: pixels of 1 channel, or of 3: blue green red. DM_ERR_FORMAT says what is wrong and names
 * nothing. */
dm_status nn_jpeg_decode(const unsigned char *bytes, size_t length, nn_colour colour, nn_image *out);
dm_status nn_png_decode(const unsigned char *bytes, size_t length, nn_image *out);
/* Room for the pixels of an image of this size. Refuses sizes that no image has. */
dm_status nn_image_room(int64_t channels, int64_t height, int64_t width, nn_image *out);

/* An encoded image, with the colours asked for. Errors, which begin with `name`: DM_ERR_FORMAT,
 * DM_ERR_UNSUPPORTED (a build without the library), DM_ERR_NOMEM. */
dm_status nn_image_decode(const unsigned char *bytes, size_t length, const char *name, nn_colour colour,
                          nn_image *out);
/* file: the bytes of the file, for free(); NULL: not wanted. */
dm_status nn_image_read(const char *path, nn_colour colour, nn_image *out, char **file, size_t *length);
/* Bilinear, pixel centres at halves, edges repeated. Replaces the bytes. */
dm_status nn_image_resize(nn_image *image, int64_t height, int64_t width);
/* The same of a part of the image, from row top and column left on. */
dm_status nn_image_cut(const nn_image *image, int64_t top, int64_t left, int64_t rows, int64_t cols,
                       int64_t height, int64_t width, nn_image *out);

#endif
