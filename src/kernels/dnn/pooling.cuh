/* What pooling and its gradient share: windows and items. */
#ifndef DMI_DNN_POOLING_CUH
#define DMI_DNN_POOLING_CUH

extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

#include <dmath/layers.h>

struct window {
    int from[2], lo[2], hi[2], size; /* from: with padding; size: elements up to H + pad */
};

static __device__ __forceinline__ window window_of(const dmi_cuda_pooling &p, const int (&at)[2])
{
    window w;
    w.size = 1;
#pragma unroll
    for (int a = 0; a < 2; a++) {
        w.from[a] = at[a] * (int)p.stride[a].extent - p.pad[a];
        int end = min(w.from[a] + p.kernel[a], p.in[a] + p.pad[a]);
        w.size *= max(end - w.from[a], 0);
        w.lo[a] = max(w.from[a], 0);
        w.hi[a] = min(end, p.in[a]);
    }
    return w;
}

/* Where an item is: sample, row and column; its first element among those of all places. */
static __device__ __forceinline__ int64_t place_of(const dmi_cuda_pooling &p, uint32_t i, int64_t *sample,
                                                   int (&at)[2], int64_t *channel)
{
    uint32_t place = divided(i, p.lanes), row = divided(place, p.side[1]), n = divided(row, p.side[0]);
    *channel = (int64_t)(i - place * p.lanes.extent) * p.group;
    at[1] = (int)(place - row * p.side[1].extent);
    at[0] = (int)(row - n * p.side[0].extent);
    *sample = n;
    return place * p.channels + *channel;
}

/* sum / by, correctly rounded, with inverse = 1 / by: by is a whole number up to 9, and a quotient of a product
 * and one correction is exact then, but for the smallest and the largest numbers. */
static __device__ __forceinline__ float shared_out(float sum, float by, float inverse)
{
    float quotient = sum * inverse, size = fabsf(sum);
    quotient = fmaf(fmaf(-quotient, by, sum), inverse, quotient);
    return sum == 0 || (size > 1e-25f && size < 1e37f) ? quotient : sum / by;
}
static __device__ __forceinline__ double shared_out(double sum, double by, double)
{
    return sum / by;
}

/* Two elements of 16 bits in a word. */
template <typename S> struct pair;
template <> struct pair<bf16> {
    static constexpr uint32_t lowest = 0xff80ff80u;
    static __device__ __forceinline__ __nv_bfloat162 of(uint32_t w)
    {
        return *(const __nv_bfloat162 *)&w;
    }
    static __device__ __forceinline__ uint32_t word(__nv_bfloat162 v)
    {
        return *(const uint32_t *)&v;
    }
    static __device__ __forceinline__ void open(uint32_t w, float &lo, float &hi)
    {
        lo = __uint_as_float(w << 16);
        hi = __uint_as_float(w & 0xffff0000u);
    }
};
template <> struct pair<f16> {
    static constexpr uint32_t lowest = 0xfc00fc00u;
    static __device__ __forceinline__ __half2 of(uint32_t w)
    {
        return *(const __half2 *)&w;
    }
    static __device__ __forceinline__ uint32_t word(__half2 v)
    {
        return *(const uint32_t *)&v;
    }
    static __device__ __forceinline__ void open(uint32_t w, float &lo, float &hi)
    {
        float2 f = __half22float2(of(w));
        lo = f.x;
        hi = f.y;
    }
};

/* The largest of a window, and which it is: of 16 bits, two elements in a word. */
template <typename S> struct largest_short {
    static constexpr int WORDS = 4;
    typedef pair<S> two;
    typedef group<uint32_t, WORDS> window_element;
    uint32_t best[WORDS], tap[WORDS];
    bool any;
    static __device__ __forceinline__ window_element load(const S *at)
    {
        return *(const window_element *)at;
    }
    template <bool ALL, int COUNT>
    __device__ __forceinline__ void take(const window_element (&value)[COUNT], const bool (&inside)[COUNT])
    {
        any = ALL;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            best[j] = two::lowest;
            tap[j] = 0xffffffffu;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            any = any || inside[i];
#pragma unroll
            for (int j = 0; j < WORDS && (ALL || inside[i]); j++) {
                best[j] = two::word(__hmax2_nan(two::of(best[j]), two::of(value[i].v[j])));
            }
        }
        uint32_t unordered = 0;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            unordered |= __hneu2_mask(two::of(best[j]), two::of(best[j]));
        }
        if (unordered == 0) {
            find<ALL, false>(value, inside);
        } else {
            find<ALL, true>(value, inside);
        }
    }
    /* The first that is the largest, or, where there are NaNs, the first of them. */
    template <bool ALL, bool NANS, int COUNT>
    __device__ __forceinline__ void find(const window_element (&value)[COUNT], const bool (&inside)[COUNT])
    {
#pragma unroll
        for (int i = COUNT - 1; i >= 0; i--) {
#pragma unroll
            for (int j = 0; j < WORDS && (ALL || inside[i]); j++) {
                uint32_t same = __heq2_mask(two::of(value[i].v[j]), two::of(best[j]));
                if (NANS) {
                    same |= __hneu2_mask(two::of(value[i].v[j]), two::of(value[i].v[j]));
                }
                tap[j] = (same & (uint32_t)(i * 0x10001)) | (~same & tap[j]);
            }
        }
    }
    __device__ __forceinline__ void store(S *y) const
    {
        group<uint32_t, WORDS> out;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            out.v[j] = any ? two::word(__hadd2(two::of(best[j]), two::of(0))) : 0; /* no -0 */
        }
        *(group<uint32_t, WORDS> *)y = out;
    }
    __device__ __forceinline__ void store_taps(bool relu, uint8_t *taps) const
    {
        group<uint32_t, 2> bytes;
        uint32_t kept[WORDS];
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            kept[j] = tap[j] | (relu ? ~__hgt2_mask(two::of(best[j]), two::of(0)) : 0);
        }
        bytes.v[0] = __byte_perm(kept[0], kept[1], 0x6420);
        bytes.v[1] = __byte_perm(kept[2], kept[3], 0x6420);
        *(group<uint32_t, 2> *)taps = bytes;
    }
};

/* Is element k of a K x K window in the image? */
template <int K> static __device__ __forceinline__ bool is_inside(const window &w, int k)
{
    int h = w.from[0] + k / K, v = w.from[1] + k % K;
    return h >= w.lo[0] && h < w.hi[0] && v >= w.lo[1] && v < w.hi[1];
}

/* An item of a strip: rows of one column of places, from one sample, V channels. */
struct strip {
    int64_t sample, channel;
    int column, first, last; /* rows first .. last - 1 */
};
static __device__ __forceinline__ strip strip_of(const dmi_cuda_strips &s, uint32_t i, int v)
{
    strip t;
    uint32_t place = divided(i, s.lanes), row = divided(place, s.columns), n = divided(row, s.strips);
    t.channel = (int64_t)(i - place * s.lanes.extent) * v;
    t.column = (int)(place - row * s.columns.extent);
    t.first = (int)(row - n * s.strips.extent) * s.rows;
    t.last = min(t.first + s.rows, s.all_rows);
    t.sample = n;
    return t;
}

#endif
