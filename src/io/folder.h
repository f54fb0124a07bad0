/* Series of folders that appear whole or not at all, by number: written under another name in the series,
 * brought to the disk, renamed. Each holds plain files. */
#ifndef DMI_FOLDER_H
#define DMI_FOLDER_H

#include "base/base.h"
#include "io/partial.h"

/* "folder/name"; NULL: no memory. */
char *dmi_folder_path(const char *folder, const char *name);
/* The path from the root, as this process sees it now. What other processes open, or this one opens later, is
 * named so: they may be in other folders, and the program may go to another one. To be freed. */
DM_CHECKED dm_status dmi_folder_absolute(const char *path, char **out);
/* Makes the series if it is not there, and in it a folder to write to. Removes what dead processes of this host
 * have left. DM_ERR_ARG: it has a manifest, and is no series. */
DM_CHECKED dm_status dmi_folder_begin(const char *series, char **out);
/* A new file in it, of so many bytes with its first ones. */
DM_CHECKED dm_status dmi_folder_file(const char *folder, const char *name, const void *header,
                                     int64_t header_bytes, int64_t bytes);
/* Brings a file, or (name NULL) the folder, to the disk. */
DM_CHECKED dm_status dmi_folder_sync(const char *folder, const char *name);
/* All is on the disk: gives it the next number. When this returns, that is on the disk too. */
DM_CHECKED dm_status dmi_folder_publish(const char *series, const char *folder, int64_t *number);
/* Removes all but the `keep` newest of the series, and of a folder only files that its manifest names: one with
 * others stays. What fails is left for the next time. */
void dmi_folder_thin(const char *series, int keep);
/* One that has no number yet: its files by their endings. */
void dmi_folder_remove(const char *folder);
/* The folders of a series that have no number yet, and who writes them. Nothing where it cannot be read. */
void dmi_folder_unfinished(const char *series,
                           void (*one)(void *context, const char *name, dmi_partial_writer writer, int pid),
                           void *context);
/* The folder of a checkpoint: path itself, or the newest of that series. DM_ERR_IO: there is none. */
DM_CHECKED dm_status dmi_folder_find(const char *path, char **out);

#define DMI_MANIFEST "manifest.json"

#endif
