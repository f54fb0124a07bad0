/* HDF5 files: arrays of f32 by name, numbers and texts. One thread at a time is inside the library. */
#ifndef NN_HDF5_H
#define NN_HDF5_H

#include "base/base.h"

typedef struct nn_hdf5 nn_hdf5;

/* Errors of all: DM_ERR_IO or DM_ERR_FORMAT with the file and the name; DM_ERR_UNSUPPORTED of a build without
 * HDF5. */
dm_status nn_hdf5_open(const char *path, nn_hdf5 **out);
/* The file gets its name when it is closed with status DM_OK; an old one stays until then. */
dm_status nn_hdf5_create(const char *path, nn_hdf5 **out);
dm_status nn_hdf5_close(nn_hdf5 *file, dm_status status); /* accepts NULL; returns status or what failed here */

const char *nn_hdf5_path(const nn_hdf5 *file);
bool nn_hdf5_has(nn_hdf5 *file, const char *name);
dm_status nn_hdf5_shape(nn_hdf5 *file, const char *name, int *ndim, int64_t shape[DM_MAX_DIMS]);
dm_status nn_hdf5_read(nn_hdf5 *file, const char *name, int64_t count, float *out); /* numbers of any type */
/* Row `row` of an array with this shape, which has count / shape[0] elements. */
dm_status nn_hdf5_read_row(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, int64_t row,
                           float *out);
dm_status nn_hdf5_read_int(nn_hdf5 *file, const char *name, int64_t *out);
dm_status nn_hdf5_read_text(nn_hdf5 *file, const char *name, char *out, size_t room);

/* The arrays below a group, by their paths from there, each with a 0 behind it and an empty one at the end;
 * free it. */
dm_status nn_hdf5_arrays(nn_hdf5 *file, const char *group, char **names);

/* Groups on the way to a name are made. */
dm_status nn_hdf5_write(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, const float *data);
dm_status nn_hdf5_write_int(nn_hdf5 *file, const char *name, int64_t value);
dm_status nn_hdf5_write_text(nn_hdf5 *file, const char *name, const char *text);
/* Behind the rows that are there. */
dm_status nn_hdf5_append(nn_hdf5 *file, const char *name, int ndim, const int64_t *shape, const float *data);

#endif
