#include "support/npyfile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[200];

const char *dmt_folder(void)
{
    const char *base = getenv("TMPDIR");
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/dmath-test-XXXXXX", base && *base ? base : "/tmp");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

void dmt_path(char path[300], const char *name)
{
    snprintf(path, 300, "%s/%s", dmt_folder(), name);
}

static int each_name(bool removing)
{
    int count = 0;
    DIR *dir = opendir(dmt_folder());
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[512];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (removing) {
            unlink(path);
        }
    }
    closedir(dir);
    return count;
}

int dmt_folder_count(void)
{
    return each_name(false);
}

int dmt_folder_remove(void **state)
{
    if (folder[0]) {
        each_name(true);
        rmdir(folder);
        folder[0] = 0;
    }
    return dmt_finish(state);
}

const char *dmt_npy_descr(dm_dtype dtype, bool big_endian)
{
    static const char *const little[] = {"?",   "<f8", "<f4", "<f2", "<V2", "<i8", "<i4",  "|u1", "|b1",
                                         "|i1", "<i2", "<u2", "<u4", "<u8", "<c8", "<c16", "|V1", "|f1"};
    static const char *const big[] = {"?",   ">f8", ">f4", ">f2", ">V2", ">i8", ">i4",  "|u1", "|b1",
                                      "|i1", ">i2", ">u2", ">u4", ">u8", ">c8", ">c16", "|V1", "|f1"};
    return (big_endian ? big : little)[dtype];
}

void dmt_bytes_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(bytes, 1, count, file) == count);
    assert_int_equal(fclose(file), 0);
}

static int make_header(char *header, int bytes, const dmt_host *h, dmt_npy how)
{
    int used = snprintf(header, (size_t)bytes, "{%s'descr': '%s', 'fortran_order': %s, 'shape': (",
                        how.before ? how.before : "", dmt_npy_descr(h->dtype, how.big_endian),
                        how.fortran_order ? "True" : "False");
    for (int d = 0; d < h->ndim; d++) {
        used += snprintf(header + used, (size_t)(bytes - used), "%" PRId64 ",%s", h->shape[d],
                         d < h->ndim - 1 ? " " : "");
    }
    used += snprintf(header + used, (size_t)(bytes - used), "), }");
    int start = how.version == 1 ? 10 : 12;
    while ((start + used + 1) % 64 != 0) {
        header[used++] = ' ';
    }
    header[used++] = '\n';
    return used;
}

/* The place of row-major element i in a file whose first index runs fastest. */
static int64_t fortran_place(const dmt_host *h, int64_t i)
{
    int64_t index[DM_MAX_DIMS], place = 0;
    dmt_unlinear(h->ndim, h->shape, i, index);
    for (int d = h->ndim - 1; d >= 0; d--) {
        place = place * h->shape[d] + index[d];
    }
    return place;
}

void dmt_npy_write(const char *path, const dmt_host *h, dmt_npy how)
{
    char header[1200];
    int length = make_header(header, (int)sizeof header, h, how);
    int64_t size = dmt_bytes(h->dtype), start = (how.version == 1 ? 10 : 12) + length;
    unsigned char *file = calloc(1, (size_t)(start + h->count * size));
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)how.version;
    for (int i = 0; i < (how.version == 1 ? 2 : 4); i++) {
        file[8 + i] = (unsigned char)(length >> (8 * i));
    }
    memcpy(file + start - length, header, (size_t)length);
    for (int64_t i = 0; i < h->count; i++) {
        unsigned char element[8], *at = file + start + (how.fortran_order ? fortran_place(h, i) : i) * size;
        dmt_encode(h->dtype, h->v[i], element);
        for (int64_t k = 0; k < size; k++) {
            at[k] = element[how.big_endian ? size - 1 - k : k];
        }
    }
    dmt_bytes_write(path, file, (size_t)(start + h->count * size));
    free(file);
}

/* The whole file, a zero behind it. */
static char *whole_file(const char *path, int64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *memory = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *bytes = ftell(file);
        memory = calloc(1, (size_t)*bytes + 1);
        rewind(file);
        assert_non_null(memory);
        assert_true(fread(memory, 1, (size_t)*bytes, file) == (size_t)*bytes);
    }
    if (file) {
        fclose(file);
    }
    return memory;
}

/* The header without its white space, as it should be. */
static void plain_header(char *out, int bytes, const dmt_host *h)
{
    int used = snprintf(out, (size_t)bytes, "{'descr':'%s','fortran_order':False,'shape':(",
                        dmt_npy_descr(h->dtype, false));
    for (int d = 0; d < h->ndim; d++) {
        used += snprintf(out + used, (size_t)(bytes - used), "%" PRId64 "%s", h->shape[d],
                         d < h->ndim - 1 || h->ndim == 1 ? "," : "");
    }
    snprintf(out + used, (size_t)(bytes - used), "),}");
}

static void without_space(const char *from, int count, char *out)
{
    for (int i = 0; i < count; i++) {
        if (from[i] != ' ' && from[i] != '\n') {
            *out++ = from[i];
        }
    }
    *out = 0;
}

bool dmt_npy_read(const char *path, dmt_host *h, char *text, int bytes)
{
    char want[600], got[600];
    int64_t count = 0, size = h->count * dmt_bytes(h->dtype);
    bool right = false;
    char *file = whole_file(path, &count);
    if (!file || count < 10 || memcmp(file, "\x93NUMPY\x01\x00", 8) != 0) {
        snprintf(text, (size_t)bytes, "%s does not begin as a version 1.0 file (%s)", path, strerror(errno));
        goto out;
    }
    int length = (unsigned char)file[8] | (unsigned char)file[9] << 8;
    if ((10 + length) % 64 != 0 || length > 500 || count != 10 + length + size) {
        snprintf(text, (size_t)bytes, "%s has %" PRId64 " bytes, %d of header, want %" PRId64 " of data", path,
                 count, length, size);
        goto out;
    }
    plain_header(want, (int)sizeof want, h);
    without_space(file + 10, length, got);
    if (strcmp(got, want) != 0) {
        snprintf(text, (size_t)bytes, "%s has the header %s, not %s", path, got, want);
        goto out;
    }
    dmt_host_unpack(h, file + 10 + length);
    right = true;
out:
    free(file);
    return right;
}
