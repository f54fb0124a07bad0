/* Files and folders that are being written, for a process that ends in the middle. */
#ifndef DMI_UNFINISHED_H
#define DMI_UNFINISHED_H

#include "base/base.h"

#include <sys/types.h>

/* Makes a file or folder, which did not exist, and notes it before the process can end. remove: how it goes;
 * NULL: it goes with its folder. The result of make; -1 with errno: ECANCELED, the process ends. */
int dmi_unfinished_make(const char *path, mode_t mode, int (*make)(const char *path, mode_t mode),
                        void (*remove)(const char *path));
/* It has been removed, or has another name. */
void dmi_unfinished_forget(const char *path);
/* The process ends at once: removes all of them, and no more are made. For any thread. */
void dmi_unfinished_remove_all(void);
/* Makes a file that did not exist: a `make` for files. errno */
int dmi_unfinished_file(const char *path, mode_t mode);

#endif
