/* What all folders of libdmath_nn use. */
#ifndef NN_BASE_H
#define NN_BASE_H

#include <dmath/dmath.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NN_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

dm_status nn_no_memory(void); /* DM_ERR_NOMEM with its text */
/* A whole file, with a 0 behind its bytes; free() it. Refuses more than `limit` bytes. DM_ERR_IO, DM_ERR_NOMEM,
 * DM_ERR_LIMIT. */
dm_status nn_file_read(const char *path, size_t limit, char **bytes, size_t *length);
/* The file has its name only when it is whole; an old one stays until then. */
dm_status nn_file_write(const char *path, const void *bytes, size_t length);

/* dm_map with those of the arguments whose names, single letters, stand in the expression. */
dm_status nn_map(dm_session *session, const char *text, int count, const dm_map_arg *all, dm_array out);

#endif
