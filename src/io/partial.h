/* Files that appear whole or not at all: written under another name in the same folder, brought to the disk,
 * renamed. */
#ifndef DMI_PARTIAL_H
#define DMI_PARTIAL_H

#include "base/base.h"

#include <sys/types.h>

typedef struct dmi_partial {
    char *path; /* where it is written until it is done */
    int fd;
    bool kept; /* mode and group are those of the file that it replaces */
    mode_t mode;
    gid_t group;
} dmi_partial;

/* The file that is to have this name, or that a link of this name leads to, from the root. To be freed. */
DM_CHECKED dm_status dmi_partial_target(const char *path, char **out);
/* Makes the file of so many bytes with its first ones. Removes what savers of this host left in that folder
 * that are dead by now. */
DM_CHECKED dm_status dmi_partial_begin(const char *target, const void *header, int64_t header_bytes,
                                       int64_t bytes, dmi_partial *out);
/* Everything is written: gives it its name. When this returns, file and name are on the disk. */
DM_CHECKED dm_status dmi_partial_finish(dmi_partial *p, const char *target);
/* Removes the file unless it is finished, and frees. Keeps the error's text. */
void dmi_partial_end(dmi_partial *p);
/* --- shared with folders that appear whole: folder.c */
/* ".partial-" and who writes it. */
void dmi_partial_tag(char *out, size_t room);
/* Who writes what has such a tag at the end of its name? ELSEWHERE: a process of another host, or of a
 * container whose processes this one does not see. pid may be NULL. */
typedef enum dmi_partial_writer {
    DMI_WRITER_NONE, /* no tag */
    DMI_WRITER_LIVES,
    DMI_WRITER_DEAD,
    DMI_WRITER_ELSEWHERE,
} dmi_partial_writer;
dmi_partial_writer dmi_partial_by(const char *name, uint64_t place, int *pid);
/* Was it written by a process of this host, which is that place, that is dead? */
static inline bool dmi_partial_is_left(const char *name, uint64_t place)
{
    return dmi_partial_by(name, place, NULL) == DMI_WRITER_DEAD;
}
/* First bytes and size of a file. errno */
bool dmi_partial_lay_out(int fd, const void *header, int64_t header_bytes, int64_t bytes);
/* Brings a file or folder to the disk. errno */
bool dmi_partial_sync(int fd);

#endif
