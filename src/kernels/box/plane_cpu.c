/* Planes: the two innermost dims of a strided copy, moved as bits. */
#include "kernels/box/convert.h"
#include "kernels/box/stream.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"
#include <assert.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Rows of a size known to the compiler become a few moves in place of a call. */
#define ROWS_OF(size)                                                                                          \
    case size:                                                                                                 \
        for (int64_t i = 0; i < n0; i++) {                                                                     \
            memcpy(d + i * d0, s + i * s0, size);                                                              \
        }                                                                                                      \
        break

static void move_dense_rows(int64_t n0, int64_t row, const char *s, int64_t s0, char *d, int64_t d0)
{
    switch (row) {
        ROWS_OF(2);
        ROWS_OF(4);
        ROWS_OF(8);
        ROWS_OF(12);
        ROWS_OF(16);
        ROWS_OF(24);
        ROWS_OF(32);
        ROWS_OF(64);
    default:
        for (int64_t i = 0; i < n0; i++) {
            if (row >= DMI_STREAM_BYTES) {
                dmi_stream_copy(d + i * d0, s + i * s0, row);
            } else {
                memcpy(d + i * d0, s + i * s0, (size_t)row);
            }
        }
    }
}

/* A transpose goes by tiles through a buffer: reads run along dim 0, where the source is dense or nearly so,
 * and writes along dim 1, each over whole cache lines at once: with strides that are powers of two the lines of
 * a tile evict one another before a second visit. */
enum { SIDE = 64, PANEL = 512 };
/* From this size on the written lines go past the caches: the two would not fit there anyway. */
enum { STREAM_BYTES = 4 << 20 };

static void put_row(char *to, const char *from, int64_t bytes, bool stream)
{
    if (stream) { /* the ends of the row share their lines with the next tiles */
        dmi_stream_row(to, from, bytes);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}

#if defined(__SSE2__)
/* A square of 16 bytes a side: interleaving row i with row i + half, log2(side) times, transposes it. */
#define TRANSPOSE_SQUARE(type, stages, low, high)                                                              \
    DMI_BODY void square_##type(const type *s, int64_t s1, type *d, int64_t d0)                                \
    {                                                                                                          \
        enum { N = 1 << (stages) };                                                                            \
        __m128i x[N], y[N];                                                                                    \
        for (int i = 0; i < N; i++) {                                                                          \
            x[i] = _mm_loadu_si128((const __m128i *)(const void *)(s + i * s1));                               \
        }                                                                                                      \
        for (int k = 0; k < (stages); k++) {                                                                   \
            for (int i = 0; i < N / 2; i++) {                                                                  \
                y[2 * i] = low(x[i], x[i + N / 2]);                                                            \
                y[2 * i + 1] = high(x[i], x[i + N / 2]);                                                       \
            }                                                                                                  \
            memcpy(x, y, sizeof x);                                                                            \
        }                                                                                                      \
        for (int i = 0; i < N; i++) {                                                                          \
            _mm_storeu_si128((__m128i *)(void *)(d + i * d0), x[i]);                                           \
        }                                                                                                      \
    }
#else
#define TRANSPOSE_SQUARE(type, stages, low, high)                                                              \
    DMI_BODY void square_##type(const type *s, int64_t s1, type *d, int64_t d0)                                \
    {                                                                                                          \
        for (int i = 0; i < 1 << (stages); i++) {                                                              \
            for (int j = 0; j < 1 << (stages); j++) {                                                          \
                d[i * d0 + j] = s[i + j * s1];                                                                 \
            }                                                                                                  \
        }                                                                                                      \
    }
#endif
TRANSPOSE_SQUARE(dmi_raw8, 4, _mm_unpacklo_epi8, _mm_unpackhi_epi8)
TRANSPOSE_SQUARE(dmi_raw16, 3, _mm_unpacklo_epi16, _mm_unpackhi_epi16)
TRANSPOSE_SQUARE(dmi_raw32, 2, _mm_unpacklo_epi32, _mm_unpackhi_epi32)
TRANSPOSE_SQUARE(dmi_raw64, 1, _mm_unpacklo_epi64, _mm_unpackhi_epi64)
TRANSPOSE_SQUARE(dmi_raw128, 0, _mm_unpacklo_epi64, _mm_unpackhi_epi64) /* one element: moved as it is */

#define TRANSPOSE(type)                                                                                        \
    /* buffer[i][j] = s[i * s0 + j * s1] */                                                                    \
    static void gather_##type(int64_t n0, int64_t n1, const type *s, int64_t s0, int64_t s1, type *buffer)     \
    {                                                                                                          \
        const int64_t square = 16 / (int64_t)sizeof(type);                                                     \
        int64_t whole0 = s0 == 1 ? n0 / square * square : 0, whole1 = n1 / square * square;                    \
        for (int64_t j = 0; j < whole1 && whole0 > 0; j += square) {                                           \
            for (int64_t i = 0; i < whole0; i += square) {                                                     \
                square_##type(s + i + j * s1, s1, buffer + i * SIDE + j, SIDE);                                \
            }                                                                                                  \
        }                                                                                                      \
        for (int64_t j = 0; j < n1; j++) {                                                                     \
            for (int64_t i = j < whole1 ? whole0 : 0; i < n0; i++) {                                           \
                buffer[i * SIDE + j] = s[i * s0 + j * s1];                                                     \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    static void scatter_##type(int64_t n0, int64_t n1, const type *buffer, type *d, int64_t d0, int64_t d1,    \
                               bool stream)                                                                    \
    {                                                                                                          \
        for (int64_t i = 0; i < n0; i++) {                                                                     \
            if (d1 == 1) {                                                                                     \
                put_row((char *)(d + i * d0), (const char *)(buffer + i * SIDE), n1 *(int64_t)sizeof(type),    \
                        stream);                                                                               \
                continue;                                                                                      \
            }                                                                                                  \
            for (int64_t j = 0; j < n1; j++) {                                                                 \
                d[i * d0 + j * d1] = buffer[i * SIDE + j];                                                     \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    static void transpose_##type(int64_t n0, int64_t n1, const type *s, int64_t s0, int64_t s1, type *d,       \
                                 int64_t d0, int64_t d1, bool stream)                                          \
    {                                                                                                          \
        type buffer[SIDE * SIDE];                                                                              \
        for (int64_t i = 0; i < n0; i += SIDE) {                                                               \
            for (int64_t j = 0; j < n1; j += SIDE) {                                                           \
                int64_t m0 = DMI_MIN(SIDE, n0 - i), m1 = DMI_MIN(SIDE, n1 - j);                                \
                gather_##type(m0, m1, s + i * s0 + j * s1, s0, s1, buffer);                                    \
                scatter_##type(m0, m1, buffer, d + i * d0 + j * d1, d0, d1, stream);                           \
            }                                                                                                  \
        }                                                                                                      \
    }
TRANSPOSE(dmi_raw8)
TRANSPOSE(dmi_raw16)
TRANSPOSE(dmi_raw32)
TRANSPOSE(dmi_raw64)
TRANSPOSE(dmi_raw128)

static void transpose(int64_t bytes, int64_t n0, int64_t n1, const void *src, int64_t s0, int64_t s1, void *dst,
                      int64_t d0, int64_t d1, bool stream)
{
    switch (bytes) {
    case 1:
        transpose_dmi_raw8(n0, n1, src, s0, s1, dst, d0, d1, stream);
        break;
    case 2:
        transpose_dmi_raw16(n0, n1, src, s0, s1, dst, d0, d1, stream);
        break;
    case 4:
        transpose_dmi_raw32(n0, n1, src, s0, s1, dst, d0, d1, stream);
        break;
    case 8:
        transpose_dmi_raw64(n0, n1, src, s0, s1, dst, d0, d1, stream);
        break;
    default:
        assert(bytes == 16);
        transpose_dmi_raw128(n0, n1, src, s0, s1, dst, d0, d1, stream);
        break;
    }
}

void dmi_move_plane(int64_t bytes, int64_t n0, int64_t n1, const void *src, int64_t s0, int64_t s1, void *dst,
                    int64_t d0, int64_t d1)
{
    if (s1 == 1 && d1 == 1) {
        move_dense_rows(n0, n1 * bytes, src, s0 * bytes, dst, d0 * bytes);
        return;
    }
    if (s1 > s0 && s0 > 0 && n0 > 1 && n1 > 1) {
        bool stream = n0 * n1 >= STREAM_BYTES / bytes;
        for (int64_t i = 0; i < n0; i += PANEL) {
            for (int64_t j = 0; j < n1; j += PANEL) {
                transpose(bytes, DMI_MIN(PANEL, n0 - i), DMI_MIN(PANEL, n1 - j),
                          dmi_at(src, (i * s0 + j * s1) * bytes), s0, s1,
                          dmi_at_mut(dst, (i * d0 + j * d1) * bytes), d0, d1, stream);
            }
        }
        if (stream) {
            dmi_stream_fence();
        }
        return;
    }
    if (n1 < 8 && n1 < n0) { /* short rows: along the other dim */
        for (int64_t j = 0; j < n1; j++) {
            dmi_move_row(bytes, dmi_at(src, j * s1 * bytes), s0, dmi_at_mut(dst, j * d1 * bytes), d0, n0);
        }
        return;
    }
    for (int64_t i = 0; i < n0; i++) {
        dmi_move_row(bytes, dmi_at(src, i * s0 * bytes), s1, dmi_at_mut(dst, i * d0 * bytes), d1, n1);
    }
}
