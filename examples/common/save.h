/* Results of an example as .npy files, for check_examples.py. */
#ifndef SAVE_H
#define SAVE_H

#include <dmath/check.h>

/* FOLDER/NAME.npy; nothing where folder is NULL. */
static inline void save(dm_session *s, const char *folder, const char *name, dm_array a)
{
    char path[1024];
    if (folder) {
        snprintf(path, sizeof path, "%s/%s.npy", folder, name);
        DM_CHECK(dm_array_save(s, a, path));
    }
}

#endif
