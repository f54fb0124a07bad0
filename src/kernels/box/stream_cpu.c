/* Stores that go past the caches. */
#include "kernels/box/stream.h"
#include "kernels/cpu/simd.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { LINE = DMI_LINE };

#if defined(__SSE2__)
DMI_BODY void stream_line(char *to, const char *from)
{
    __m128i x[LINE / 16];
    for (int k = 0; k < LINE / 16; k++) {
        x[k] = _mm_loadu_si128((const __m128i *)(const void *)(from + 16 * k));
    }
    for (int k = 0; k < LINE / 16; k++) {
        _mm_stream_si128((__m128i *)(void *)(to + 16 * k), x[k]);
    }
}
#endif

/* ahead: reads ask for what comes so much later; 0: they do not. */
DMI_BODY void stream(char *to, const char *from, int64_t bytes, int ahead)
{
#if defined(__SSE2__)
    int64_t head = -(uintptr_t)to & (LINE - 1);
    head = head < bytes ? head : bytes;
    memcpy(to, from, (size_t)head);
    for (bytes -= head, to += head, from += head; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE) {
        if (ahead > 0) {
            DMI_PREFETCH(from, ahead, LINE)
        }
        stream_line(to, from);
    }
#endif
    (void)ahead;
    memcpy(to, from, (size_t)bytes);
}

void dmi_stream_row(void *to, const void *from, int64_t bytes)
{
    stream(to, from, bytes, 0);
}

void dmi_stream_copy(void *to, const void *from, int64_t bytes)
{
    stream(to, from, bytes, DMI_AHEAD);
    dmi_stream_fence();
}

void dmi_stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}
