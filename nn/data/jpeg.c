/* libjpeg-turbo: the one place that calls it. */
#include "data/image.h"

#ifdef NN_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct failure {
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
} failure;

static void on_error(j_common_ptr jpeg)
{
    failure *f = (failure *)jpeg->err;
    jpeg->err->format_message(jpeg, f->text);
    longjmp(f->back, 1);
}

/* What the library can work around is damage all the same. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0) {
        on_error(jpeg);
    }
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* Pixels of cyan, magenta, yellow and black as blue, green, red, in OpenCV's arithmetic. Photoshop writes the
 * inks inverted, and an Adobe marker that says so. */
static void from_inks(const unsigned char *in, bool inverted, int64_t count, unsigned char *out)
{
    for (int64_t i = 0; i < count; i++, in += 4, out += 3) {
        const int black = inverted ? in[3] : 255 - in[3];
        for (int c = 0; c < 3; c++) {
            const int ink = inverted ? in[c] : 255 - in[c];
            out[2 - c] = (unsigned char)(black - ((255 - ink) * black >> 8));
        }
    }
}

static dm_status decode(struct jpeg_decompress_struct *jpeg, const unsigned char *bytes, size_t length,
                        nn_colour colour, nn_image *image)
{
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, (unsigned long)length);
    jpeg_read_header(jpeg, TRUE);
    const bool inks = jpeg->num_components == 4;
    if (jpeg->num_components != 1 && jpeg->num_components != 3 && !inks) {
        return dm_error_set(DM_ERR_UNSUPPORTED, "has %d colour components; 1, 3 or 4 are supported",
                            jpeg->num_components);
    }
    bool gray = jpeg->num_components == 1 || (colour == NN_GRAY && !inks);
    jpeg->out_color_space = inks ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
    dm_status status =
        nn_image_room(gray ? 1 : 3, (int64_t)jpeg->image_height, (int64_t)jpeg->image_width, image);
    if (status != DM_OK) {
        return status;
    }
    jpeg_start_decompress(jpeg);
    JSAMPARRAY four =
        inks ? jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, 4 * jpeg->output_width, 1) : NULL;
    while (jpeg->output_scanline < jpeg->output_height) {
        unsigned char *row = image->bytes + (int64_t)jpeg->output_scanline * image->channels * image->width;
        jpeg_read_scanlines(jpeg, inks ? four : &row, 1);
        if (inks) {
            from_inks(four[0], jpeg->saw_Adobe_marker, image->width, row);
        }
    }
    jpeg_finish_decompress(jpeg);
    return DM_OK;
}

dm_status nn_jpeg_decode(const unsigned char *bytes, size_t length, nn_colour colour, nn_image *out)
{
    struct jpeg_decompress_struct jpeg = {0};
    failure f;
    nn_image *volatile image = out;
    volatile dm_status status = DM_OK;
    *image = (nn_image){0};
    jpeg.err = jpeg_std_error(&f.errors);
    f.errors.error_exit = on_error;
    f.errors.emit_message = on_message;
    f.errors.output_message = on_output;
    if (setjmp(f.back)) {
        status = dm_error_set(DM_ERR_FORMAT, "is a damaged JPEG image: %s", f.text);
    } else {
        status = decode(&jpeg, bytes, length, colour, image);
    }
    jpeg_destroy_decompress(&jpeg);
    if (status != DM_OK) {
        free(image->bytes);
        *image = (nn_image){0};
    }
    return status;
}

#else

dm_status nn_jpeg_decode(const unsigned char *bytes, size_t length, nn_colour colour, nn_image *out)
{
    (void)bytes, (void)length, (void)colour, (void)out;
    return dm_error_set(
        DM_ERR_UNSUPPORTED,
        "is a JPEG image, and dmath was built without libjpeg: install libjpeg-dev and build it again");
}
#endif
