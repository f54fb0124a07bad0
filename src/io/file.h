/* Moves file ranges to and from a worker's memory, by position (pread, pwrite). Several threads may move ranges
 * of one open file at once. */
#ifndef DMI_FILE_H
#define DMI_FILE_H

#include "layout/copy.h"

/* One side of a geometry is the file: elements from data_offset on. Reading: src is the file, dst the memory;
 * writing: src the memory, dst the file. One dtype. */
typedef struct dmi_file_range {
    dmi_copy geometry;
    /* For GPU workers, the same in two copies: between the file and a staging buffer, which has the elements in
     * the order of the file, and between the staging buffer and the worker's memory. */
    dmi_copy packed, rest;
    int64_t data_offset; /* bytes */
    bool swap;           /* elements are byte-swapped in the file */
    /* A part of a checkpoint's file (parts.h): its number, from 1; 0: none. It is hashed when it is moved. */
    int64_t part;
    int64_t first, begin; /* reading: the part whose hash is the first in the tail; where it begins behind data_offset */
} dmi_file_range;

typedef struct dmi_file {
    const char *path; /* the caller's */
    bool reading;
    int fd;
    const char *memory; /* reading: read in place of a file; NULL: the file */
} dmi_file;

DM_CHECKED dm_status dmi_file_open(const char *path, bool reading, dmi_file *out);
/* Some file systems report only at close that written data did not reach the disk. */
DM_CHECKED dm_status dmi_file_close(dmi_file *file);
/* Moves what `geometry`, one of the part's, says. */
DM_CHECKED dm_status dmi_file_move(const dmi_file *file, const dmi_file_range *part, const dmi_copy *geometry,
                                   void *memory);

/* A part has been moved: --- part_file.c */
DM_CHECKED dm_status dmi_part_moved(const dmi_file *file, const dmi_file_range *range, const dmi_copy *geometry,
                                    const void *memory);
/* DM_ERR_FORMAT, with a text. */
dm_status dmi_part_differs(const char *file, int64_t part, int64_t from, int64_t bytes, uint64_t hash, uint64_t want);

/* Memory to read in place of a file. */
static inline dmi_file dmi_file_of(const void *memory)
{
    return (dmi_file){.path = "memory", .reading = true, .fd = -1, .memory = (const char *)memory};
}

/* Opens, moves part->geometry, closes. */
DM_CHECKED dm_status dmi_file_read(const dmi_file_range *part, const char *path, void *memory);
DM_CHECKED dm_status dmi_file_write(const dmi_file_range *part, const char *path, const void *memory);

#endif
