/* libpng: the one place that calls it. */
#include "data/image.h"

#ifdef NN_HAVE_PNG
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const unsigned char *bytes;
    size_t length, at;
    char text[128];
} reader;

static void on_error(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof r->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void take(png_structp png, png_bytep to, size_t length)
{
    reader *r = png_get_io_ptr(png);
    if (length > r->length - r->at) {
        png_error(png, "it ends too early");
    }
    memcpy(to, r->bytes + r->at, length);
    r->at += length;
}

/* Eight bits a channel, one channel or blue green red. Transparency is left out. */
static dm_status decode(png_structp png, png_infop info, nn_image *image)
{
    png_read_info(png, info);
    int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
    bool gray = !(png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR);
    dm_status status = nn_image_room(gray ? 1 : 3, height, width, image);
    if (status != DM_OK) {
        return status;
    }
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_bgr(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if ((int64_t)png_get_rowbytes(png, info) != image->channels * width) {
        return dm_error_set(DM_ERR_FORMAT, "is a damaged PNG image");
    }
    for (int k = 0; k < passes; k++) {
        for (int64_t y = 0; y < height; y++) {
            png_read_row(png, image->bytes + y * image->channels * width, NULL);
        }
    }
    png_read_end(png, NULL);
    return DM_OK;
}

dm_status nn_png_decode(const unsigned char *bytes, size_t length, nn_image *out)
{
    reader r = {bytes, length, 0, ""};
    nn_image *volatile image = out;
    volatile dm_status status = DM_OK;
    *image = (nn_image){0};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return dm_error_no_memory("an image's reader", BUFSIZ);
    }
    png_set_read_fn(png, &r, take);
    if (setjmp(png_jmpbuf(png))) {
        status = dm_error_set(DM_ERR_FORMAT, "is a damaged PNG image: %s", r.text);
    } else {
        status = decode(png, info, image);
    }
    png_destroy_read_struct(&png, &info, NULL);
    if (status != DM_OK) {
        free(image->bytes);
        *image = (nn_image){0};
    }
    return status;
}

#else

dm_status nn_png_decode(const unsigned char *bytes, size_t length, nn_image *out)
{
    (void)bytes, (void)length, (void)out;
    return dm_error_set(
        DM_ERR_UNSUPPORTED,
        "is a PNG image, and dmath was built without libpng: install libpng-dev and build it again");
}
#endif
