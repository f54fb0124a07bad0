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
/* N elements of an input. Short ones stay packed in words until they are used: were they taken apart where they are read, a thread
 * would wait for each read before the next. */
template <typename T, int N, bool PACKED = (sizeof(T) < 4 && sizeof(T) * N % 4 == 0)> struct operands {
    group<T, N> g;
    __device__ __forceinline__ void read(const T *from) { g = *(const group<T, N> *)from; }
    __device__ __forceinline__ void fill(T v)
    {
#pragma unroll
        for (int e = 0; e < N; e++) {
            g.v[e] = v;
        }
    }
    __device__ __forceinline__ void set(int e, T v) { g.v[e] = v; }
    __device__ __forceinline__ T at(int e) const { return g.v[e]; }
};
template <typename T, int N> struct operands<T, N, true> {
    static const int EACH = 4 / sizeof(T), WORDS = N / EACH;
    union word {
        uint32_t bits;
        T v[EACH];
        __device__ word() {}
    };
    group<uint32_t, WORDS> g;
    __device__ __forceinline__ void read(const T *from) { g = *(const group<uint32_t, WORDS> *)from; }
    __device__ __forceinline__ void fill(T v)
    {
        word w;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            w.v[e] = v;
        }
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            g.v[k] = w.bits;
        }
    }
    __device__ __forceinline__ void set(int e, T v)
    {
        word w;
        w.bits = g.v[e / EACH];
        w.v[e % EACH] = v;
        g.v[e / EACH] = w.bits;
    }
    __device__ __forceinline__ T at(int e) const
    {
        word w;
        w.bits = g.v[e / EACH];
        return w.v[e % EACH];
    }
};
template <typename T, int N, typename ARGS>
static __device__ __forceinline__ operands<T, N> load_group(const ARGS &p, int side, int64_t at)
{
    const T *from = (const T *)p.memory[side] + at;
    operands<T, N> x;
    if (N > 1 && p.splat[side]) {
        x.fill(*from);
    } else {
        x.read(from);
    }
    return x;
}
/* Elements of an input that is made, of numbers from `number` on. */
template <typename T, int KIND, int N, typename ARGS>
static __device__ __forceinline__ operands<T, N> made_group(const ARGS &p, int64_t number, int64_t step, int64_t seed)
{
    operands<T, N> x;
    maker<T> make(KIND, (uint64_t)seed);
#pragma unroll
    for (int e = 0; e < N; e++) {
        x.g.v[e] = make.at(linear_of(p.linear, number + e * step));
    }
    return x;
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

/* --- tiles, where an input is dense along another dim than out: x is the dim in which out is dense, y the other ---
 * A thread has GROUPS groups of a tile, which for an input that is turned are read along y, and exchanged through shared memory. */
template <int N, int EDGE> struct tile_of {
    static const int IN_ROW = EDGE / N, GROUPS = EDGE * IN_ROW / DMI_MAP_THREADS;
    int64_t begin[DMI_MAP_ARG_SIDES]; /* places of its first elements */
    int nx, ny;
    /* Of group k: a row, and its first element there. */
    static __device__ __forceinline__ void along_y(int k, int &x, int &y)
    {
        const int i = k * DMI_MAP_THREADS + threadIdx.x;
        x = i / IN_ROW;
        y = i % IN_ROW * N;
    }
    /* A warp has 8 groups of each of 4 rows, which it finds in all banks of shared memory at once; single elements of one row. */
    static __device__ __forceinline__ void along_x(int k, int &x, int &y)
    {
        const int i = k * DMI_MAP_THREADS + threadIdx.x, warp = i / 32;
        if (N == 1) {
            x = i % EDGE;
            y = i / EDGE;
        } else {
            x = ((i & 7) + 8 * (warp % (IN_ROW / 8))) * N;
            y = (i >> 3 & 3) + 4 * (warp / (IN_ROW / 8));
        }
    }
    __device__ __forceinline__ tile_of(const dmi_tile_args &a, int sides)
    {
        const dmi_map_args &p = a.map;
        const uint32_t row = divided(blockIdx.x, a.tiles[0]), plane = divided(row, a.tiles[1]);
        const int64_t x = (int64_t)(blockIdx.x - row * a.tiles[0].extent) * EDGE, y = (int64_t)(row - plane * a.tiles[1].extent) * EDGE;
        nx = (int)(a.edge[0] - x < EDGE ? a.edge[0] - x : EDGE);
        ny = (int)(a.edge[1] - y < EDGE ? a.edge[1] - y : EDGE);
        for (int s = 0; s < sides; s++) {
            begin[s] = x * p.stride[s][0] + y * p.stride[s][1];
        }
        uint32_t i = plane;
        for (int d = 2; d < p.ndim; d++) {
            const uint32_t q = d + 1 < p.ndim ? divided(i, p.extent[d]) : 0, r = i - q * p.extent[d].extent;
            for (int s = 0; s < sides; s++) {
                begin[s] += r * p.stride[s][d];
            }
            i = q;
        }
    }
    /* `along` of the two extents is the one of a group's elements. */
    template <typename T>
    static __device__ __forceinline__ void read(operands<T, N> &g, const T *from, int64_t step, bool dense, int first, int along)
    {
        if (step == 0 && first < along) {
            g.fill(*from);
            return;
        }
        if (dense && first + N <= along) {
            g.read(from);
            return;
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            if (first + e < along) {
                g.set(e, from[e * step]);
            }
        }
    }
    template <int S, typename T> __device__ __forceinline__ void load(const dmi_tile_args &a, operands<T, N> (&g)[GROUPS]) const
    {
        const dmi_map_args &p = a.map;
        const T *from = (const T *)p.memory[S] + begin[S];
        const bool turned = a.turned[S];
#pragma unroll
        for (int k = 0; k < GROUPS; k++) {
            int x, y;
            if (turned) {
                along_y(k, x, y);
                if (x < nx) {
                    read(g[k], from + x * p.stride[S][0] + y, 1, true, y, ny);
                }
            } else {
                along_x(k, x, y);
                if (y < ny) {
                    read(g[k], from + y * p.stride[S][1] + x * p.stride[S][0], p.stride[S][0], p.stride[S][0] == 1, x, nx);
                }
            }
        }
    }
    template <int S, int KIND, typename T>
    __device__ __forceinline__ void make(const dmi_map_args &p, int64_t seed, operands<T, N> (&g)[GROUPS]) const
    {
#pragma unroll
        for (int k = 0; k < GROUPS; k++) {
            int x, y;
            along_x(k, x, y);
            if (x < nx && y < ny) {
                g[k] = made_group<T, KIND, N>(p, p.linear.first[S] + begin[S] + x * p.stride[S][0] + y * p.stride[S][1], p.stride[S][0], seed);
            }
        }
    }
    /* From groups along y to groups along x, by all threads. Row x of the tile has its groups in an order that depends on x; rows of
     * single elements lie one element further each. */
    template <typename T> static __device__ __forceinline__ void turn(char *memory, operands<T, N> (&g)[GROUPS])
    {
        const int PITCH = EDGE + (N == 1);
        operands<T, N> *groups = (operands<T, N> *)memory;
        T *elements = (T *)memory;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < GROUPS; k++) {
            int x, y;
            along_y(k, x, y);
            if constexpr (N == 1) {
                elements[x * PITCH + y] = g[k].at(0);
            } else {
                groups[x * IN_ROW + (y / N ^ x / N % IN_ROW)] = g[k];
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < GROUPS; k++) {
            int x, y;
            along_x(k, x, y);
#pragma unroll
            for (int e = 0; e < N; e++) {
                g[k].set(e, N == 1 ? elements[x * PITCH + y] : elements[(x + e) * EDGE + (y / N ^ x / N % IN_ROW) * N + y % N]);
            }
        }
    }
    template <int S, typename T> __device__ __forceinline__ void store(const dmi_map_args &p, int k, const group<T, N> &r) const
    {
        int x, y;
        along_x(k, x, y);
        T *to = (T *)p.memory[S] + begin[S] + y * p.stride[S][1] + x;
        if (y < ny && x + N <= nx) {
            *(group<T, N> *)to = r;
            return;
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            if (y < ny && x + e < nx) {
                to[e] = r.v[e];
            }
        }
    }
};
