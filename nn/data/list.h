/* Images that a text file lists, a path and a label a line. */
#ifndef NN_LIST_H
#define NN_LIST_H

#include "data/record.h"

typedef struct nn_list_setup {
    const char *folder;    /* put before each path */
    bool colour;           /* else gray */
    int64_t height, width; /* that images are brought to; 0: as they are */
    bool keep;             /* records have the files, too */
} nn_list_setup;

dm_status nn_list_open(const char *path, const nn_list_setup *setup, nn_source **out);

/* Lines of a file; free() both. */
dm_status nn_lines_read(const char *path, char **text, char ***lines, int64_t *count);

#endif
