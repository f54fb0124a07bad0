/* idx files. */
#include "data/idx.h"

#include "base/base.h"
#include "data/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNSIGNED_BYTES = 8 };
static const int64_t max_bytes = INT64_C(1) << 34;

/* zlib, called here alone; it reads files that are not compressed too. */
#ifdef NN_HAVE_ZLIB
#include <zlib.h>
typedef gzFile stream;
static stream open_stream(const char *path)
{
    return gzopen(path, "rb");
}
static int64_t read_stream(stream f, void *to, int64_t bytes)
{
    int64_t done = 0;
    while (done < bytes) {
        int n = gzread(f, (char *)to + done, bytes - done < 1 << 20 ? (unsigned)(bytes - done) : 1 << 20);
        if (n <= 0) {
            break;
        }
        done += n;
    }
    return done;
}
static void close_stream(stream f)
{
    gzclose(f);
}
static const char *const hint = "";
#else
typedef FILE *stream;
static stream open_stream(const char *path)
{
    return fopen(path, "rbe");
}
static int64_t read_stream(stream f, void *to, int64_t bytes)
{
    return (int64_t)fread(to, 1, (size_t)bytes, f);
}
static void close_stream(stream f)
{
    fclose(f);
}
static const char *const hint =
    " (compressed files need a build with zlib: install zlib1g-dev and build dmath again)";
#endif

static int64_t big_endian(const unsigned char *at)
{
    return (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | (int64_t)at[3];
}

static dm_status read_header(stream f, const char *path, nn_idx *out, int64_t *count)
{
    unsigned char head[4], extents[16];
    if (read_stream(f, head, 4) != 4 || head[0] || head[1] || head[2] != UNSIGNED_BYTES || head[3] < 1 ||
        head[3] > 4) {
        return dm_error_set(DM_ERR_FORMAT, "%s: is not an idx file of unsigned bytes in 1 to 4 dims%s", path,
                            hint);
    }
    out->ndim = head[3];
    if (read_stream(f, extents, 4 * out->ndim) != 4 * out->ndim) {
        return dm_error_set(DM_ERR_FORMAT, "%s: ends in its header", path);
    }
    *count = 1;
    for (int d = 0; d < out->ndim; d++) {
        out->shape[d] = big_endian(extents + (size_t)4 * (size_t)d);
        if (out->shape[d] > 0 && *count > max_bytes / out->shape[d]) {
            return dm_error_set(DM_ERR_FORMAT, "%s: its header asks for more than %lld bytes", path,
                                (long long)max_bytes);
        }
        *count *= out->shape[d];
    }
    return DM_OK;
}

dm_status nn_idx_read(const char *path, nn_idx *out)
{
    nn_idx idx = {0};
    int64_t count = 0;
    stream f = open_stream(path);
    if (!f) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be opened", path);
    }
    dm_status status = read_header(f, path, &idx, &count);
    if (status == DM_OK && !(idx.bytes = malloc((size_t)count + 1))) {
        status = dm_error_no_memory("the elements of a file", (size_t)count + 1);
    }
    if (status == DM_OK &&
        read_stream(f, idx.bytes, count + 1) != count) { /* a byte more: the file must end there */
        status = dm_error_set(DM_ERR_FORMAT, "%s: does not have the %lld bytes that its header says", path,
                              (long long)count);
    }
    close_stream(f);
    if (status != DM_OK) {
        free(idx.bytes);
        return status;
    }
    *out = idx;
    return DM_OK;
}

dm_status nn_convert_idx(const dm_data_options *o, nn_sink *sink, int64_t *count)
{
    nn_idx x = {0}, y = {0};
    dm_status status = nn_idx_read(o->inputs[0], &x);
    if (status == DM_OK) {
        status = nn_idx_read(o->inputs[1], &y);
    }
    if (status == DM_OK && x.ndim != 3) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has %d dims; images have 3", o->inputs[0], x.ndim);
    } else if (status == DM_OK && (y.ndim != 1 || y.shape[0] != x.shape[0])) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: does not have one label for each of the %lld images of %s",
                              o->inputs[1], (long long)x.shape[0], o->inputs[0]);
    }
    for (int64_t i = 0; status == DM_OK && i < x.shape[0]; i++) {
        size_t each = (size_t)(x.shape[1] * x.shape[2]);
        nn_put r = {.channels = 1,
                    .height = x.shape[1],
                    .width = x.shape[2],
                    .label = y.bytes[i],
                    .bytes = x.bytes + (size_t)i * each};
        status = nn_put_record(sink, (*count)++, &r);
    }
    free(x.bytes);
    free(y.bytes);
    return status;
}
