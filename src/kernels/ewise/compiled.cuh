/* What a kernel compiled for one elementwise program is made of, beside the rows: values from and to memory, numbers of
 * the call, and places. Compiled at run time only (kernels/ewise/map_source.c), behind the files that it uses. */

/* A number of the call in a carrier. */
template <typename C> static __device__ __forceinline__ C number_in(const dmi_map_scalar &n)
{
    return (C)n.whole;
}
template <> __device__ __forceinline__ double number_in<double>(const dmi_map_scalar &n)
{
    return n.re;
}
template <> __device__ __forceinline__ float number_in<float>(const dmi_map_scalar &n)
{
    return (float)n.re;
}
template <> __device__ __forceinline__ unsigned char number_in<unsigned char>(const dmi_map_scalar &n)
{
    return n.re != 0;
}
template <> __device__ __forceinline__ c64 number_in<c64>(const dmi_map_scalar &n)
{
    return c64((float)n.re, (float)n.im);
}
template <> __device__ __forceinline__ c128 number_in<c128>(const dmi_map_scalar &n)
{
    return c128(n.re, n.im);
}

/* An element as a value of a carrier, and back. The carrier of bool is unsigned char, which is also the type u8. */
template <typename C> struct in_carrier {
    template <typename V> static __device__ __forceinline__ C of(V v)
    {
        return made<C>::of(v);
    }
};
template <> struct in_carrier<unsigned char> {
    template <typename V> static __device__ __forceinline__ unsigned char of(V v)
    {
        return v != 0;
    }
};
template <> struct in_carrier<c64> {
    template <typename V> static __device__ __forceinline__ c64 of(V v)
    {
        return c64(made<float>::of(v));
    }
};
template <> struct in_carrier<c128> {
    template <typename V> static __device__ __forceinline__ c128 of(V v)
    {
        return c128(made<double>::of(v));
    }
};
template <typename C, typename P> static __device__ __forceinline__ C of_parts(P re, P im)
{
    if constexpr (carrier_bit<C>::value == 1u << DM_BOOL) {
        return re != 0 || im != 0;
    } else {
        return made_of_parts<C>::of(re, im);
    }
}
template <typename C, typename T> static __device__ __forceinline__ C loaded(T v)
{
    return in_carrier<C>::of(carried(v));
}
template <typename C> static __device__ __forceinline__ C loaded(dm_c64 v)
{
    return of_parts<C>(v.re, v.im);
}
template <typename C> static __device__ __forceinline__ C loaded(dm_c128 v)
{
    return of_parts<C>(v.re, v.im);
}
template <> __device__ __forceinline__ float loaded<float, bf16>(bf16 v) /* a NaN need not be quiet here */
{
    return opened<float, bf16>(v);
}
template <typename V> static __device__ __forceinline__ V number_of(V v)
{
    return v;
}
static __device__ __forceinline__ int32_t number_of(unsigned char v)
{
    return v;
}
template <typename T, typename C> static __device__ __forceinline__ T stored(C v)
{
    return made<T>::of(number_of(v));
}
template <typename T, typename P> static __device__ __forceinline__ T stored(complex_number<P> v)
{
    return made_of_parts<T>::of(v.re, v.im);
}

/* The program's result as an element. 16-bit floats by one instruction: what kind of NaN it is does not matter any more. */
template <typename T, typename C> static __device__ __forceinline__ T result(C v)
{
    return stored<T>(v);
}
template <> __device__ __forceinline__ f16 result<f16, float>(float v)
{
    return closed<f16, float>(v);
}
template <> __device__ __forceinline__ bf16 result<bf16, float>(float v)
{
    return closed<bf16, float>(v);
}

/* N elements that are read and written at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) group {
    T v[N];
};
template <typename T, int N, typename ARGS>
static __device__ __forceinline__ group<T, N> load_group(const ARGS &p, int side, int64_t at)
{
    const T *from = (const T *)p.memory[side] + at;
    if (N > 1 && p.splat[side]) {
        group<T, N> g;
        T v = *from;
#pragma unroll
        for (int e = 0; e < N; e++) {
            g.v[e] = v;
        }
        return g;
    }
    return *(const group<T, N> *)from;
}
/* Elements of an input that is made, of numbers from `number` on. */
template <typename T, int KIND, int N, typename ARGS>
static __device__ __forceinline__ group<T, N> made_group(const ARGS &p, int64_t number, int64_t step, int64_t seed)
{
    group<T, N> g;
    maker<T> make(KIND, (uint64_t)seed);
#pragma unroll
    for (int e = 0; e < N; e++) {
        g.v[e] = make.at(linear_of(p.linear, number + e * step));
    }
    return g;
}
template <typename T, int N>
static __device__ __forceinline__ void store_group(const dmi_map_args &p, int side, int64_t at, group<T, N> g)
{
    *(group<T, N> *)((T *)p.memory[side] + at) = g;
}

static __device__ __forceinline__ uint32_t divided(uint32_t i, const dmi_map_divisor &by)
{
    return (uint32_t)((uint64_t)i * by.factor >> 31 >> by.shift);
}

/* Adds the place of item i of the dims from `first` on. */
template <int SIDES>
static __device__ __forceinline__ void advance(const dmi_map_args &p, int first, uint32_t i, int64_t (&at)[SIDES])
{
    for (int d = first; d < p.ndim; d++) {
        uint32_t q = d + 1 < p.ndim ? divided(i, p.extent[d]) : 0, r = i - q * p.extent[d].extent;
#pragma unroll
        for (int s = 0; s < SIDES; s++) {
            at[s] += r * p.stride[s][d];
        }
        i = q;
    }
}

/* Element positions of the DEPTH items of a thread. Where a box has long rows, all items of a thread block are
 * of one row, whose place is worked out once for all of them. */
template <int SIDES, int DEPTH>
static __device__ __forceinline__ void locate_all(const dmi_map_args &p, int64_t (&at)[DEPTH][SIDES],
                                                  bool (&valid)[DEPTH])
{
    const uint32_t threads = DMI_MAP_THREADS;
    bool rows = p.chunks.extent > 0;
    uint32_t row = rows ? divided(blockIdx.x, p.chunks) : 0;
    uint32_t first = (blockIdx.x - row * p.chunks.extent) * (threads * DEPTH) + threadIdx.x;
    int64_t begin[SIDES] = {};
    if (rows) {
        advance<SIDES>(p, 1, row, begin);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        uint32_t i = first + k * threads;
        valid[k] = i < (rows ? p.extent[0].extent : p.items);
#pragma unroll
        for (int s = 0; s < SIDES; s++) {
            at[k][s] = begin[s] + (rows ? i * p.stride[s][0] : 0);
        }
        if (!rows && valid[k]) {
            advance<SIDES>(p, 0, i, at[k]);
        }
    }
}
