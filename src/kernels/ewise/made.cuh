/* Inputs of elementwise programs that are made: the row-major index of an element in its array, and the random
 * numbers that fills (kernels/random/fill.cu) have there. Compiled at run time too, behind map_args.h and
 * random.h, so that it includes nothing else. */
#ifndef DMI_MADE_CUH
#define DMI_MADE_CUH

#include "kernels/ewise/map_args.h"
#include "kernels/random/random.h"

enum { MADE_INDEX = 1, MADE_UNIFORM, MADE_NORMAL }; /* DMI_MADE_* */

/* The index of the element that is number `at`. */
static __device__ __forceinline__ int64_t index_of(const dmi_cuda_places &places, int64_t at)
{
    int64_t index = 0, scale = 1;
    for (int d = 0; d < places.ndim; d++) { /* the innermost first */
        const dmi_cuda_place &p = places.dim[d];
        int64_t k = at % p.extent, i = p.first + k;
        if (p.g > 1) {
            int64_t place = p.place + k;
            i = (place / p.block * p.g + p.c) * p.block + place % p.block - p.origin;
        }
        index += i * scale;
        at /= p.extent;
        scale *= p.whole;
    }
    return index;
}
static __device__ __forceinline__ int64_t linear_of(const dmi_map_linear &l, int64_t number)
{
    return l.plain ? l.base + number : index_of(l.places, number);
}

/* The numbers of one counter. */
struct made_floats {
    float x[4];
};
struct made_doubles {
    double x[2];
};
static __device__ __noinline__ made_floats random_floats(int kind, uint64_t counter, uint64_t seed)
{
    made_floats r;
    dmi_words w = dmi_philox(counter, kind == MADE_NORMAL ? DMI_STREAM_NORMAL : DMI_STREAM_UNIFORM, seed);
    if (kind == MADE_NORMAL) {
        dmi_pair32 a = dmi_normal32(w.w0, w.w1), b = dmi_normal32(w.w2, w.w3);
        r.x[0] = DMI_FMAF(1.0f, a.c, 0.0f);
        r.x[1] = DMI_FMAF(1.0f, a.s, 0.0f);
        r.x[2] = DMI_FMAF(1.0f, b.c, 0.0f);
        r.x[3] = DMI_FMAF(1.0f, b.s, 0.0f);
    } else {
        dmi_uniform32 u = dmi_uniform32_make(0, 1);
        r.x[0] = dmi_uniform32_at(&u, w.w0);
        r.x[1] = dmi_uniform32_at(&u, w.w1);
        r.x[2] = dmi_uniform32_at(&u, w.w2);
        r.x[3] = dmi_uniform32_at(&u, w.w3);
    }
    return r;
}
static __device__ __noinline__ made_doubles random_doubles(int kind, uint64_t counter, uint64_t seed)
{
    made_doubles r;
    dmi_words w = dmi_philox(counter, kind == MADE_NORMAL ? DMI_STREAM_NORMAL : DMI_STREAM_UNIFORM, seed);
    if (kind == MADE_NORMAL) {
        dmi_pair64 a = dmi_normal64(w);
        r.x[0] = DMI_FMA(1.0, a.c, 0.0);
        r.x[1] = DMI_FMA(1.0, a.s, 0.0);
    } else {
        dmi_uniform64 u = dmi_uniform64_make(0, 1);
        r.x[0] = dmi_uniform64_at(&u, w.w0, w.w1);
        r.x[1] = dmi_uniform64_at(&u, w.w2, w.w3);
    }
    return r;
}

/* Numbers of elements one after the other; those of one counter are made once. */
template <typename T> struct maker;
template <> struct maker<float> {
    int kind;
    uint64_t seed, have;
    made_floats made;
    __device__ __forceinline__ maker(int k, uint64_t s) : kind(k), seed(s), have(~0ull)
    {
    }
    __device__ __forceinline__ float at(int64_t index)
    {
        const uint64_t counter = (uint64_t)index / 4;
        const int which = (int)(index & 3);
        if (counter != have) {
            made = random_floats(kind, counter, seed);
            have = counter;
        }
        return which < 2 ? which ? made.x[1] : made.x[0] : which == 2 ? made.x[2] : made.x[3];
    }
};
template <> struct maker<double> {
    int kind;
    uint64_t seed, have;
    made_doubles made;
    __device__ __forceinline__ maker(int k, uint64_t s) : kind(k), seed(s), have(~0ull)
    {
    }
    __device__ __forceinline__ double at(int64_t index)
    {
        const uint64_t counter = (uint64_t)index / 2;
        if (counter != have) {
            made = random_doubles(kind, counter, seed);
            have = counter;
        }
        return index & 1 ? made.x[1] : made.x[0];
    }
};
template <> struct maker<int64_t> {
    __device__ __forceinline__ maker(int, uint64_t)
    {
    }
    __device__ __forceinline__ int64_t at(int64_t index)
    {
        return index;
    }
};

#endif
