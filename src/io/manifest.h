/* The manifest of a checkpoint: what its files are, and what every byte of them must be. */
#ifndef DMI_MANIFEST_H
#define DMI_MANIFEST_H

#include "io/parts.h"

#include <inttypes.h>

enum { DMI_CHECKPOINT_VERSION = 1, DMI_NAME_BYTES = 200, DMI_VALUE_BYTES = 1 << 20 };

/* Readers take no larger one, and so none is written. */
#define DMI_MANIFEST_BYTES (INT64_C(1) << 30)

/* Its begin, and its end: the hash of all bytes before. */
#define DMI_MANIFEST_HEAD "{\n \"dmath_checkpoint\":"
#define DMI_MANIFEST_TAIL_FORMAT ",\n \"manifest_xxh3\": \"%016" PRIx64 "\"\n}\n"
enum { DMI_MANIFEST_TAIL = 41 };

typedef struct dmi_saved_layout {
    bool is_explicit;
    int grid[DM_MAX_DIMS], order[DM_MAX_DIMS];
    int64_t block[DM_MAX_DIMS];
    int replicas, nworkers;
    int *workers; /* [nworkers] */
    int64_t map_count;
    int *map; /* [map_count] */
} dmi_saved_layout;

typedef struct dmi_saved {
    char *name;
    char *file;     /* NULL: a value */
    dm_dtype dtype; /* 0: bytes */
    dmi_parts parts;
    uint64_t *hash; /* [parts.count] */
    int64_t header_bytes, file_bytes;
    uint64_t header_hash;
    dmi_saved_layout layout;
    unsigned char *value; /* [value_bytes] */
    int64_t value_bytes, count;
} dmi_saved;

typedef struct dmi_manifest {
    int version, workers, items;
    dmi_saved *item; /* [items] */
} dmi_manifest;

/* DM_ERR_UNSUPPORTED: this build has no checkpoints. */
DM_CHECKED dm_status dmi_manifest_possible(void);
/* Would one with so many bytes of values and hashes of parts fit, if it had nothing else? path, in messages: of
 * what. DM_ERR_LIMIT: not. */
DM_CHECKED dm_status dmi_manifest_fits(const char *path, int64_t value_bytes, int64_t hashes);
/* What manifest.json holds, bytes of it; to be freed. path, in messages: where it is, or will be. DM_ERR_LIMIT:
 * it would be too large. */
DM_CHECKED dm_status dmi_manifest_text(const dmi_manifest *manifest, const char *path, char **text,
                                       int64_t *bytes);
DM_CHECKED dm_status dmi_manifest_parse(const char *path, const char *text, int64_t bytes, dmi_manifest *out);
/* Writes it into the folder; it is not on the disk yet. */
DM_CHECKED dm_status dmi_manifest_write(const dmi_manifest *manifest, const char *folder);
/* DM_ERR_FORMAT: it is not what was written. */
DM_CHECKED dm_status dmi_manifest_read(const char *folder, dmi_manifest *out);
void dmi_manifest_free(dmi_manifest *manifest);
/* NULL: there is none of that name. */
const dmi_saved *dmi_manifest_find(const dmi_manifest *manifest, const char *name);
bool dmi_manifest_name_fits(const char *name); /* 1 to DMI_NAME_BYTES bytes, in UTF-8 */
/* The file of an array: its name, with %XX for what is no letter, digit or one of _.- ; NULL: no memory. */
char *dmi_manifest_file_name(const char *name, int number);
/* Size and header of an array's file. DM_ERR_FORMAT: not as saved. *swap: its elements are in the other byte
 * order. */
DM_CHECKED dm_status dmi_saved_check_file(const dmi_saved *saved, const char *folder, bool *swap);
/* Its parts, all of them; each(context, text) for each that differs. DM_ERR_FORMAT: the first. */
DM_CHECKED dm_status dmi_saved_verify(const dmi_saved *saved, const char *folder,
                                      void (*each)(void *, const char *), void *context);

#endif
