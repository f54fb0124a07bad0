/* Parts of a file's data to and from a worker's memory, by position (pread, pwrite). */
#ifndef DMI_FILE_H
#define DMI_FILE_H

#include "kernels/backend.h"

/* One side of the geometry is the file: elements from data_offset on. Reading: src is the file, dst the memory;
 * writing: src the memory, dst the file. One dtype. */
typedef struct dmi_file_part {
    dmi_copy geometry;
    int64_t data_offset; /* bytes */
    bool swap;           /* elements are byte-swapped in the file */
} dmi_file_part;

DM_CHECKED dm_status dmi_file_read(const dmi_file_part *part, const char *path, void *memory);
DM_CHECKED dm_status dmi_file_write(const dmi_file_part *part, const char *path, const void *memory);

#endif
