/* Encoded images to planes of bytes, and other sizes. */
#include "data/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_file = (size_t)1 << 30;
static const int64_t max_pixels = INT64_C(1) << 28;

dm_status nn_image_room(int64_t channels, int64_t height, int64_t width, nn_image *out)
{
    if (height < 1 || width < 1 || height > 1 << 20 || width > 1 << 20 || height * width > max_pixels) {
        return dm_error_set(DM_ERR_FORMAT, "has a size of %lld x %lld", (long long)height, (long long)width);
    }
    *out = (nn_image){channels, height, width, malloc((size_t)(channels * height * width))};
    return out->bytes ? DM_OK : dm_error_no_memory("an image", (size_t)(channels * height * width));
}

/* Planes out of pixels; one of gray where three are not wanted, three equal ones where one is too few. */
static dm_status to_planes(nn_image *in, nn_colour colour, nn_image *out)
{
    int64_t n = in->height * in->width, channels = colour == NN_AS_IS  ? in->channels
                                                   : colour == NN_GRAY ? 1
                                                                       : 3;
    dm_status status = nn_image_room(channels, in->height, in->width, out);
    if (status != DM_OK) {
        return status;
    }
    const unsigned char *from = in->bytes;
    for (int64_t i = 0; i < n; i++, from += in->channels) {
        if (in->channels == channels) {
            for (int64_t c = 0; c < channels; c++) {
                out->bytes[c * n + i] = from[c];
            }
        } else if (channels == 1) {
            out->bytes[i] = (unsigned char)lround(0.114 * from[0] + 0.587 * from[1] + 0.299 * from[2]);
        } else {
            out->bytes[i] = out->bytes[n + i] = out->bytes[2 * n + i] = from[0];
        }
    }
    return DM_OK;
}

dm_status nn_image_decode(const unsigned char *bytes, size_t length, const char *name, nn_colour colour,
                          nn_image *out)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G'};
    nn_image pixels = {0}, planes = {0};
    dm_status status = DM_OK;
    if (length > 3 && bytes[0] == 0xff && bytes[1] == 0xd8) {
        status = nn_jpeg_decode(bytes, length, colour, &pixels);
    } else if (length > 8 && memcmp(bytes, png, sizeof png) == 0) {
        status = nn_png_decode(bytes, length, &pixels);
    } else {
        return dm_error_set(DM_ERR_FORMAT, "%s: is no JPEG or PNG image", name);
    }
    status = status == DM_OK ? to_planes(&pixels, colour, &planes) : status;
    free(pixels.bytes);
    if (status != DM_OK) {
        return dm_error_set(status, "%s: %s", name, dm_error_message());
    }
    *out = planes;
    return DM_OK;
}

dm_status nn_image_read(const char *path, nn_colour colour, nn_image *out, char **file, size_t *length)
{
    char *bytes = NULL;
    size_t count = 0;
    dm_status status = nn_file_read(path, max_file, &bytes, &count);
    status = status == DM_OK ? nn_image_decode((const unsigned char *)bytes, count, path, colour, out) : status;
    if (status == DM_OK && file) {
        *file = bytes;
        *length = count;
    } else {
        free(bytes);
    }
    return status;
}

/* For each place of the new line: the two old places and the part of the second. */
typedef struct tap {
    int64_t a, b;
    float part;
} tap;

static tap *make_taps(int64_t from, int64_t to)
{
    tap *taps = malloc((size_t)to * sizeof *taps);
    for (int64_t i = 0; taps && i < to; i++) {
        double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
        double low = floor(at);
        int64_t a = (int64_t)low;
        taps[i].part = (float)(at - low);
        taps[i].a = a < 0 ? 0 : a;
        taps[i].b = a + 1 >= from ? from - 1 : a + 1;
        taps[i].a = taps[i].a >= from ? from - 1 : taps[i].a;
    }
    return taps;
}

dm_status nn_image_cut(const nn_image *image, int64_t top, int64_t left, int64_t rows, int64_t cols,
                       int64_t height, int64_t width, nn_image *out)
{
    nn_image new = {0};
    dm_status status = nn_image_room(image->channels, height, width, &new);
    if (status != DM_OK) {
        return status;
    }
    tap *down = make_taps(rows, height), *right = make_taps(cols, width);
    if (!down || !right) {
        status = dm_error_no_memory("the weights of a resized image", (size_t)(height + width) * sizeof(tap));
        goto out;
    }
    for (int64_t c = 0; c < image->channels; c++) {
        const unsigned char *plane = image->bytes + (c * image->height + top) * image->width + left;
        unsigned char *to = new.bytes + c *height *width;
        for (int64_t y = 0; y < height; y++) {
            const unsigned char *a = plane + down[y].a * image->width, *b = plane + down[y].b * image->width;
            for (int64_t x = 0; x < width; x++) {
                tap t = right[x];
                float above = (float)a[t.a] + t.part * (float)(a[t.b] - a[t.a]);
                float below = (float)b[t.a] + t.part * (float)(b[t.b] - b[t.a]);
                *to++ = (unsigned char)(above + down[y].part * (below - above) + 0.5F);
            }
        }
    }
    *out = new;
    new.bytes = NULL;
out:
    free(down);
    free(right);
    free(new.bytes);
    return status;
}

dm_status nn_image_resize(nn_image *image, int64_t height, int64_t width)
{
    nn_image new = {0};
    if (height == image->height && width == image->width) {
        return DM_OK;
    }
    dm_status status = nn_image_cut(image, 0, 0, image->height, image->width, height, width, &new);
    if (status == DM_OK) {
        free(image->bytes);
        *image = new;
    }
    return status;
}
