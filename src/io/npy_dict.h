/* The dictionary of a .npy header: a Python literal with three known keys. */
#ifndef DMI_NPY_DICT_H
#define DMI_NPY_DICT_H

#include "io/npy.h"

/* Parses exactly the text and fills dtype, big_endian, fortran_order, ndim and shape of *out. `long_suffix`:
 * sizes may end in L, as files written by Python 2 have it. DM_ERR_FORMAT with a text. */
DM_CHECKED dm_status dmi_npy_dict_parse(const char *text, int64_t bytes, bool long_suffix, dmi_npy_info *out);
/* As in "descr", without the byte order: "f8". */
const char *dmi_npy_type_code(dm_dtype dtype);

#endif
