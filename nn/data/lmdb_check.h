/* What the library of LMDB does not look at. */
#ifndef NN_LMDB_CHECK_H
#define NN_LMDB_CHECK_H

#include "base/base.h"

/* DM_ERR_FORMAT if the file of a database is cut, or a page of its tree makes no sense. DM_OK where the file is
 * not there or no LMDB: opening it says so. */
dm_status nn_lmdb_check(const char *folder);

#endif
