/* The .npy format (NumPy format 1.0, 2.0, 3.0): header only; the data is read and written by position. */
#ifndef DMI_NPY_H
#define DMI_NPY_H

#include "base/base.h"

typedef struct dmi_npy_info {
    dm_dtype dtype;
    bool big_endian;    /* bytes of each element are swapped in the file */
    bool fortran_order; /* first index varies fastest */
    int ndim;
    int64_t shape[DM_MAX_DIMS];
    int64_t count;       /* elements */
    int64_t data_offset; /* bytes from the start of the file */
} dmi_npy_info;

/* Parses `bytes` bytes from the start of a file of file_bytes bytes. Accepts any key order, quote style and
 * white space that NumPy's own literal_eval would. descr: '<f8' '<f4' '<f2', '<i8' to '|i1', '<u8' to '|u1', '|b1',
 * '<c8' '<c16', '>' variants and '='; what NumPy has no code for is as ml_dtypes writes it: 'V2' with any byte-order
 * mark or 'bfloat16', 'V1' or 'float8_e4m3fn', 'f1' or 'float8_e5m2'. DM_ERR_FORMAT with a text that says what is
 * wrong: bad magic, unknown version, truncated header, header over 1 MiB, not a dict, missing or repeated or unknown
 * key, unsupported descr (named), more than 8 dims, negative or overflowing shape, file shorter than its data (numbers
 * named). If more bytes of the file
 * are needed to hold the header, *need is set (> bytes, <= 1 MiB + 12) and DM_OK returned with out->data_offset
 * == 0. */
DM_CHECKED dm_status dmi_npy_parse(const void *start, int64_t bytes, int64_t file_bytes, dmi_npy_info *out,
                                   int64_t *need);
/* Opens, reads and parses the header of a file (pread); the path is in every error text. */
DM_CHECKED dm_status dmi_npy_read_header(const char *path, dmi_npy_info *out);
/* Writes a header for dtype/shape (C or Fortran order) into buf: version 1.0, padded to a multiple of 64,
 * returns its length (always <= 512). bf16 is written as '<V2'. */
int dmi_npy_format(dm_dtype dtype, int ndim, const int64_t *shape, bool fortran_order, char buf[512]);

#endif
