/* What the tests of .npy headers share: a folder, files made by hand, and Python to ask. */
#ifndef NPY_CASES_H
#define NPY_CASES_H

#include "io/npy.h"

/* cmocka wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
enum { HEADER_MOST = (1 << 20) + 12 };

static char folder[] = "/tmp/dmath-npy-XXXXXX";

static inline bool numpy_there(void)
{
    return system(PYTHON " -c 'import numpy' >/dev/null 2>&1") == 0;
}

static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Runs a Python program in the folder; what it prints must be empty. */
static inline void python_agrees(const char *program)
{
    char command[300], printed[4000];
    write_file("program.py", program, strlen(program));
    snprintf(command, sizeof command, "cd %s && " PYTHON " program.py 2>&1", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(printed, 1, sizeof printed - 1, pipe);
    printed[got] = 0;
    int rc = pclose(pipe);
    if (got > 0 || rc != 0) {
        fail_msg("python (rc %d): %s", rc, printed);
    }
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int drop_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* A file's beginning, made by hand: the header padded with nothing. */
typedef struct sample {
    char *bytes;
    int64_t count;
} sample;

static inline sample sample_of(int version, const char *dict, int64_t length, int64_t data)
{
    int prelude = version == 1 ? 10 : 12;
    sample made = {malloc((size_t)(prelude + length + data)), prelude + length + data};
    assert_non_null(made.bytes);
    memcpy(made.bytes, "\223NUMPY", 6);
    made.bytes[6] = (char)version;
    made.bytes[7] = 0;
    for (int i = 0; i < prelude - 8; i++) {
        made.bytes[8 + i] = (char)(length >> (8 * i) & 0xff);
    }
    memcpy(made.bytes + prelude, dict, (size_t)length);
    memset(made.bytes + prelude + length, 0, (size_t)data);
    return made;
}

static inline dm_status parse_dict(int version, const char *dict, int64_t data, dmi_npy_info *info)
{
    sample made = sample_of(version, dict, (int64_t)strlen(dict), data);
    int64_t need = -1;
    dm_status status = dmi_npy_parse(made.bytes, made.count, made.count, info, &need);
    assert_true(status != DM_OK || need == 0);
    assert_true(status != DM_OK || info->data_offset == made.count - data);
    free(made.bytes);
    return status;
}

static inline void assert_same(const dmi_npy_info *a, const dmi_npy_info *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->big_endian, b->big_endian);
    assert_int_equal(a->fortran_order, b->fortran_order);
    assert_int_equal(a->ndim, b->ndim);
    assert_memory_equal(a->shape, b->shape, sizeof a->shape);
    assert_true(a->count == b->count && a->data_offset == b->data_offset);
}

static inline uint64_t next(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

#endif
