/* .npy files written and read by the test itself, and a directory for them. */
#ifndef DMT_NPYFILE_H
#define DMT_NPYFILE_H

#include "support/cases.h"

/* A directory of this test's own. */
const char *dmt_folder(void);
void dmt_path(char path[300], const char *name);
/* Names in the folder: a save must leave nothing but its file. */
int dmt_folder_count(void);
/* Ends a group of tests as dmt_finish does, after removing the folder. */
int dmt_folder_remove(void **state);

typedef struct dmt_npy {
    int version; /* 1, 2 or 3 */
    bool big_endian, fortran_order;
    const char *before; /* put between '{' and the first key; "" as a rule */
} dmt_npy;
/* Writes h as a file of that kind. */
void dmt_npy_write(const char *path, const dmt_host *h, dmt_npy how);
void dmt_bytes_write(const char *path, const void *bytes, size_t count);
/* Reads a C-order, little-endian file of that type and shape; says what is wrong with it otherwise. */
bool dmt_npy_read(const char *path, dmt_host *h, char *text, int bytes);
/* '<f4' and the like. */
const char *dmt_npy_descr(dm_dtype dtype, bool big_endian);

#endif
