/* Places in sorted elements, by halving. */
#ifndef DMI_SEARCH_CPU_H
#define DMI_SEARCH_CPU_H

#include "base/base.h"

/* place[i] = how many of the sorted elements come before x[i] (right: not behind it); all dense, of a carrier
 * other than c64 and c128. */
void dmi_search_row(dm_dtype type, const void *sorted, int64_t count, bool right, bool descending,
                    const void *x, int64_t n, int64_t *place);

#endif
