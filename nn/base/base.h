/* What all folders of libdmath_nn use. */
#ifndef NN_BASE_H
#define NN_BASE_H

#include <dmath/dmath.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NN_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

double nn_now_s(void); /* of a clock that nobody sets */

/* A whole file, with a 0 behind its bytes; free() it. Refuses more than `limit` bytes. DM_ERR_IO, DM_ERR_NOMEM,
 * DM_ERR_LIMIT. */
dm_status nn_file_read(const char *path, size_t limit, char **bytes, size_t *length);
/* dm_file_begin and dm_file_finish, with errors that name the file. */
dm_status nn_file_begin(const char *path, dm_file **out);
dm_status nn_file_finish(const char *path, dm_file *file);
/* The file has its name only when it is whole; an old one stays until then. */
dm_status nn_file_write(const char *path, const void *bytes, size_t length);

/* Options of a caller whose header is older, where what it lacks is 0, or newer, where what is not known here
 * must be 0. `least`: the smallest size that there was. False: it is none of these. */
bool nn_sized_take(const void *given, size_t least, void *known, size_t bytes);
/* Results for such a caller; it says its size in *out. */
bool nn_sized_give(const void *known, size_t bytes, size_t least, void *out);

/* dm_map with those of the arguments whose names, single letters, stand in the expression. */
dm_status nn_map(dm_session *session, const char *text, int count, const dm_map_arg *all, dm_array out);

#endif
