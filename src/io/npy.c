/* Framing of .npy files: magic, version, length, and the checks of the sizes against the file. */
#include "io/npy.h"
#include "io/npy_dict.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC_BYTES = 6, PRELUDE_LARGEST = 12, FIRST_READ = 4096, HEADER_LARGEST = 1 << 20, ALIGN = 64 };
static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* Magic, version, length. *need as in dmi_npy_parse, then *header_bytes and *prelude are not set. */
static dm_status parse_prelude(const unsigned char *start, int64_t have, int64_t file_bytes, int *prelude,
                               int64_t *header_bytes, int64_t *need)
{
    if (memcmp(start, magic, (size_t)DMI_MIN(have, MAGIC_BYTES)) != 0) {
        return dmi_fail(DM_ERR_FORMAT, "not a .npy file: it does not begin with \\x93NUMPY");
    }
    if (have >= MAGIC_BYTES + 2) {
        int major = start[6], minor = start[7];
        if (major < 1 || major > 3 || minor != 0) {
            return dmi_fail(DM_ERR_FORMAT, ".npy version %d.%d is unknown: 1.0, 2.0 and 3.0 are known", major,
                            minor);
        }
    }
    int bytes = have >= MAGIC_BYTES + 2 && start[6] == 1 ? 10 : PRELUDE_LARGEST;
    if (have < bytes) {
        if (have < file_bytes) {
            *need = DMI_MIN(bytes, file_bytes);
            return DM_OK;
        }
        return dmi_fail(DM_ERR_FORMAT, "the header is cut short: the file has only %" PRId64 " bytes",
                        file_bytes);
    }
    uint32_t length = start[8] | (uint32_t)start[9] << 8;
    if (bytes == PRELUDE_LARGEST) {
        length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    }
    if (length > HEADER_LARGEST) {
        return dmi_fail(DM_ERR_FORMAT, "the header has %" PRIu32 " bytes, at most %d are accepted", length,
                        HEADER_LARGEST);
    }
    *prelude = bytes;
    *header_bytes = length;
    return DM_OK;
}

/* Elements, and whether the file is long enough for them. Extents of zero count as one for the overflow check,
 * so that strides of an empty array fit too. */
static dm_status check_size(dmi_npy_info *info, int64_t file_bytes)
{
    int64_t nonzero = dmi_dtype_bytes(info->dtype);
    info->count = 1;
    bool fits = true;
    for (int d = 0; d < info->ndim; d++) {
        fits = fits && dmi_mul_fits(nonzero, DMI_MAX(info->shape[d], 1), &nonzero);
    }
    if (!fits) {
        return dmi_fail(DM_ERR_FORMAT, "the shape holds more than 2^63 - 1 bytes");
    }
    for (int d = 0; d < info->ndim; d++) {
        info->count = info->shape[d] == 0 ? 0 : info->count * info->shape[d];
    }
    int64_t data = info->count * dmi_dtype_bytes(info->dtype), there = file_bytes - info->data_offset;
    if (there < data) {
        return dmi_fail(DM_ERR_FORMAT,
                        "the file is too short: %" PRId64 " elements of %s take %" PRId64 " bytes, %" PRId64
                        " follow the header",
                        info->count, dmi_dtype_name(info->dtype), data, there);
    }
    return DM_OK;
}

dm_status dmi_npy_parse(const void *start, int64_t bytes, int64_t file_bytes, dmi_npy_info *out, int64_t *need)
{
    const unsigned char *at = start;
    int64_t have = DMI_MIN(bytes, file_bytes), more = 0, header_bytes = 0;
    int prelude = 0;
    dm_status status = parse_prelude(at, have, file_bytes, &prelude, &header_bytes, &more);
    if (status != DM_OK) {
        return status;
    }
    if (more == 0 && prelude + header_bytes > file_bytes) {
        return dmi_fail(DM_ERR_FORMAT,
                        "the header is cut short: it takes %" PRId64 " bytes, the file has only %" PRId64,
                        prelude + header_bytes, file_bytes);
    }
    if (more == 0 && prelude + header_bytes > have) {
        more = prelude + header_bytes;
    }
    dmi_npy_info info = {0};
    if (more == 0) {
        info.data_offset = prelude + header_bytes;
        status = dmi_npy_dict_parse((const char *)at + prelude, header_bytes, at[6] < 3, &info);
        if (status == DM_OK) {
            status = check_size(&info, file_bytes);
        }
    }
    if (status == DM_OK) {
        *out = info;
        *need = more;
    }
    return status;
}

static dm_status read_fully(int file, const char *path, void *into, int64_t bytes)
{
    for (int64_t have = 0; have < bytes;) {
        ssize_t got = pread(file, (char *)into + have, (size_t)(bytes - have), (off_t)have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return dmi_fail(DM_ERR_IO, "%s: reading byte %" PRId64 ": %s", path, have,
                            got < 0 ? strerror(errno) : "the file has become shorter");
        }
        have += got;
    }
    return DM_OK;
}

dm_status dmi_npy_read_header(const char *path, dmi_npy_info *out)
{
    dm_status status = DM_OK;
    char *text = NULL;
    int64_t have = 0, need = FIRST_READ;
    dmi_npy_info info = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not wait for its writer */
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) {
        status = dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(about.st_mode)) {
        status = dmi_fail(DM_ERR_IO, "%s: not a regular file", path);
        goto out;
    }
    while (need > have && status == DM_OK) {
        have = DMI_MIN(need, (int64_t)about.st_size);
        char *larger = realloc(text, (size_t)DMI_MAX(have, 1));
        if (!larger) {
            status = dmi_fail(DM_ERR_NOMEM, "%s: no memory for a header of %" PRId64 " bytes", path, have);
            goto out;
        }
        text = larger;
        status = read_fully(file, path, text, have);
        if (status != DM_OK) {
            goto out;
        }
        need = 0;
        status = dmi_npy_parse(text, have, about.st_size, &info, &need);
    }
    if (status != DM_OK) {
        dmi_fail(status, "%s: %s", path, dmi_error_text());
        goto out;
    }
    assert(info.data_offset > 0);
    *out = info;
out:
    if (file >= 0) {
        close(file);
    }
    free(text);
    return status;
}

int dmi_npy_format(dm_dtype dtype, int ndim, const int64_t *shape, bool fortran_order, char buf[512])
{
    assert(ndim >= 0 && ndim <= DM_MAX_DIMS);
    enum { PRELUDE = 10, ROOM = 512 };
    char mark = dmi_dtype_bytes(dtype) == 1 ? '|' : __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? '>' : '<';
    int used =
        PRELUDE + snprintf(buf + PRELUDE, ROOM - PRELUDE, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                           mark, dmi_npy_type_code(dtype), fortran_order ? "True" : "False");
    for (int d = 0; d < ndim; d++) {
        used += snprintf(buf + used, (size_t)(ROOM - used), d == 0 ? "%" PRId64 : ", %" PRId64, shape[d]);
    }
    used += snprintf(buf + used, (size_t)(ROOM - used), ndim == 1 ? ",), }" : "), }");
    /* Spaces up to a multiple of 64 bytes, the last of which is a newline. */
    int total = (used + 1 + ALIGN - 1) / ALIGN * ALIGN;
    assert(total <= ROOM);
    memset(buf + used, ' ', (size_t)(total - used - 1));
    buf[total - 1] = '\n';
    memcpy(buf, magic, MAGIC_BYTES);
    buf[6] = 1;
    buf[7] = 0;
    buf[8] = (char)((total - PRELUDE) & 0xff);
    buf[9] = (char)((total - PRELUDE) >> 8);
    return total;
}
