/* Reads and writes a file by threads of this process only: the reference for loads and saves. */
#ifndef DMATH_TOOL_PLAIN_FILE_H
#define DMATH_TOOL_PLAIN_FILE_H

#include "dmath.h"

typedef struct tool_plain_file {
    const char *path;
    int64_t offset, bytes; /* of the data in the file */
    int64_t piece;         /* a thread moves so many bytes at once */
    int threads;
    char *memory; /* bytes of it */
} tool_plain_file;

/* Memory for it, of large pages where the host has them. */
dm_status tool_plain_begin(tool_plain_file *f);
void tool_plain_end(tool_plain_file *f);
/* Seconds from the moment all threads are there until all are done. Writing makes the file anew. */
dm_status tool_plain_time(const tool_plain_file *f, bool reading, double *seconds);

#endif
