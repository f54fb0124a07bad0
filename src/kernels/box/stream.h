/* Stores that go past the caches. Such a store does not read the line first, which a store through the cache
 * does: a third of the traffic of an addition. It pays where what is written would not stay in the caches
 * anyway. */
#ifndef DMI_CPU_STREAM_H
#define DMI_CPU_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum { DMI_STREAM_BYTES = 8 << 20 }; /* from this size on */

/* Whole lines of `to` are streamed, its ends stored as usual. */
void dmi_stream_row(void *to, const void *from, int64_t bytes);
/* memcpy of that much. */
void dmi_stream_copy(void *to, const void *from, int64_t bytes);
/* Streamed lines are not ordered with what follows: a flag that says "arrived" must not overtake them. */
void dmi_stream_fence(void);

#endif
