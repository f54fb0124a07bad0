/* XXH3-64, by which files are compared with what was written. */
#ifndef DMI_HASH_H
#define DMI_HASH_H

#include <stdint.h>

uint64_t dmi_hash64(const void *data, int64_t bytes);

#endif
