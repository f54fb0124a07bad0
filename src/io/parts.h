/* The parts of an array's file in a checkpoint: blocks of the array whose elements are consecutive in C order,
 * so that a part is a range of the file, and an explicit layout of these blocks gives each worker whole parts.
 */
#ifndef DMI_PARTS_H
#define DMI_PARTS_H

#include "base/base.h"

enum { DMI_PART_BYTES = 2 << 20 };

typedef struct dmi_parts {
    dm_dtype dtype;
    int ndim;
    int64_t shape[DM_MAX_DIMS], block[DM_MAX_DIMS];
    int64_t count; /* of parts; 0: the array has no elements */
} dmi_parts;

/* Parts of at most so many bytes, but at least one element. */
void dmi_parts_choose(dm_dtype dtype, int ndim, const int64_t *shape, int64_t bytes, dmi_parts *out);
/* With these blocks; false: they do not make consecutive ranges. */
bool dmi_parts_of(dm_dtype dtype, int ndim, const int64_t *shape, const int64_t *block, dmi_parts *out);
/* Bytes of part `which`, and where they begin behind the header. */
void dmi_parts_range(const dmi_parts *parts, int64_t which, int64_t *offset, int64_t *bytes);
int64_t dmi_parts_bytes(const dmi_parts *parts); /* of all */

/* While a file is being written, what its workers say of their parts is in a table beside it: <file>.parts, an
 * entry for each. */
typedef struct dmi_part_entry {
    uint64_t hash, check; /* check: hash ^ DMI_PART_WRITTEN */
} dmi_part_entry;
#define DMI_PART_WRITTEN 0x77726974746e2121u
#define DMI_PART_TABLE ".parts"

/* Tail of a call: the path, its end, zeros up to a multiple of 8, then (loads) the hashes that parts must have.
 */
static inline int64_t dmi_part_tail(int64_t path_bytes)
{
    return (path_bytes + 1 + 7) / 8 * 8;
}

#endif
