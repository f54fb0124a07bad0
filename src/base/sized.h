/* Public structures that carry their own size, so that programs built with another version's header are
 * understood.
 *
 * A smaller structure is an older header's: what it lacks counts as zero, and is not written. A larger one is a
 * newer header's: an input is taken if what is unknown here is zero; of an output the rest is set to zero. A
 * structure is only ever extended at its end, and not into the padding there, and one that calls return by
 * value (dm_layout) not at all. */
#ifndef DMI_SIZED_H
#define DMI_SIZED_H

#include "base/base.h"

enum { DMI_SIZED_MOST = 4096 }; /* bytes; more is no size but a mistake */

/* Bytes of a structure of which `last` was the last field in the first version. */
#define DMI_SIZED_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* An input: *known = what is given. what: "config: start from DM_CONFIG_INIT", for the message of DM_ERR_ARG.
 */
DM_CHECKED dm_status dmi_sized_take(const void *given, size_t least, void *known, size_t known_bytes,
                                    const char *what);
/* An output: is its size one that can be written to? Then, when the call has succeeded, writes it; its size
 * stays. */
DM_CHECKED dm_status dmi_sized_check(const void *out, size_t least, const char *what);
void dmi_sized_give(const void *known, size_t known_bytes, void *out);

#endif
