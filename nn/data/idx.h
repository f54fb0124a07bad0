/* idx files, in which MNIST and Fashion-MNIST come: a magic number, the extents, and bytes. */
#ifndef NN_IDX_H
#define NN_IDX_H

#include <dmath/dmath.h>

typedef struct nn_idx {
    int ndim;
    int64_t shape[4];
    unsigned char *bytes; /* free() */
} nn_idx;

/* The file may be compressed by gzip. DM_ERR_FORMAT, DM_ERR_IO, DM_ERR_NOMEM. */
dm_status nn_idx_read(const char *path, nn_idx *out);

#endif
