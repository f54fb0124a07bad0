/* Scans on GPUs: every element is read once and written once (adr/0051). All orders are fixed by the descriptor.
 *
 * Rows are cut into tiles. A thread block makes the state of all of its tile, learns the state before it from what the
 * thread blocks of earlier tiles publish, and writes its results. Where there are rows enough to fill the device, a
 * thread block takes all tiles of its rows one after the other, and nothing is published.
 *
 * What is published: the state of tile t; of 8 tiles together, 8 t to 8 t + 7; of 64; and of each 512 tiles the state
 * behind them, from the beginning of the row on. So a thread block needs 22 of these states at most, always the same ones
 * whichever are there first, and has to wait for a chain of others only every 512 tiles. Thread blocks draw tickets and take
 * the tiles in that order, so all that one waits for are running or done. */
#ifndef DMI_SCAN_CUH
#define DMI_SCAN_CUH

#include "kernels/reduce/reduction.cuh"

#include <cuda_pipeline.h>

extern "C" {
#include "kernels/order/order_cuda.h"
}

enum { THREADS = DMI_CUDA_THREADS, LANES = 32, WARPS = THREADS / LANES, LEVELS = 3, FAN_BITS = 3, FAN = 1 << FAN_BITS };

/* A tile on its way through shared memory: elements come in early, results go out where elements lay. A chunk: 16 bytes of
 * them. */
struct alignas(16) chunk {
    char bytes[16];
};
static __device__ __forceinline__ void copy_async(void *to, const void *from, int bytes)
{
    if (bytes == 4) {
        __pipeline_memcpy_async(to, from, 4);
    } else if (bytes == 8) {
        __pipeline_memcpy_async(to, from, 8);
    } else {
        __pipeline_memcpy_async(to, from, 16);
    }
}

/* Doubles rounded to bf16, as made<bf16>::of rounds them, in fewer instructions where results are normal or infinite: by way of
 * floats, whose last bit is made odd by what they have no room for, so that the second rounding is as of the double itself. */
static __device__ __noinline__ bf16 rounded_seldom(double r)
{
    return made<bf16>::of(r);
}
template <int G> static __device__ __forceinline__ void round_all(const double (&r)[G], group<bf16, G> &g)
{
    bool usual = true;
#pragma unroll
    for (int e = 0; e < G; e++) {
        const float towards_0 = __double2float_rz(r[e]);
        const bool rest = (__double2loint(r[e]) & 0x1fffffff) != 0;
        usual = usual && (fabsf(towards_0) >= 0x1p-126f || r[e] == 0);
        g.v[e].bits = __bfloat16_as_ushort(__float2bfloat16_rn(__uint_as_float(__float_as_uint(towards_0) | (rest ? 1u : 0u))));
    }
    if (!usual) {
#pragma unroll
        for (int e = 0; e < G; e++) {
            g.v[e] = rounded_seldom(r[e]);
        }
    }
}

/* Elements and results of type T. */
template <typename R, typename T> struct typed {
    typedef T slot, source;
    typedef typename R::number number;
    static const bool direct = false;
    static __device__ __forceinline__ number open(T v)
    {
        if constexpr (same_type<number, double>::value && same_type<T, bf16>::value) {
            return (double)__uint_as_float((uint32_t)v.bits << 16);
        } else if constexpr (same_type<number, double>::value && sizeof(T) <= sizeof(float)) {
            return (double)converted<float>(v);
        } else {
            return converted<number>(v);
        }
    }
    static __device__ __forceinline__ T close(typename R::result r)
    {
        if constexpr (same_type<typename R::result, double>::value && same_type<T, float>::value) {
            return __double2float_rn(r);
        } else {
            return made<T>::of(r);
        }
    }
    static __device__ __forceinline__ void fetch(const dmi_cuda_scan &p, const void *in, int64_t at, T *to)
    {
        const T *x = (const T *)in + at;
        if constexpr (sizeof(T) >= 4) {
            copy_async(to, x, sizeof(T));
        } else {
            *to = *x;
        }
    }
    static __device__ __forceinline__ void store(const dmi_cuda_scan &p, void *out, int64_t at, T r) { ((T *)out)[at] = r; }
};
/* Elements of type E, which threads read for themselves, a chunk at a time; results, in chunks too, of type T. */
template <typename R, typename E, typename T> struct two_types : typed<R, T> {
    typedef E source;
    static const bool direct = true;
    static __device__ __forceinline__ typename R::number open(E v) { return (typename R::number)carried(v); }
};
/* Of any types: numbers, and results, which are as wide. */
template <typename R> struct any_type {
    typedef typename R::number slot, source;
    static const bool direct = false;
    static_assert(sizeof(typename R::number) == sizeof(typename R::result), "results take the place of numbers");
    static __device__ __forceinline__ slot open(slot v) { return v; }
    static __device__ __forceinline__ slot close(typename R::result r)
    {
        slot s;
        memcpy(&s, &r, sizeof s);
        return s;
    }
    static __device__ __forceinline__ void fetch(const dmi_cuda_scan &p, const void *in, int64_t at, slot *to)
    {
        *to = element<slot>(p.dtype, in, at);
    }
    static __device__ __forceinline__ void store(const dmi_cuda_scan &p, void *out, int64_t at, slot r)
    {
        typename R::result v;
        memcpy(&v, &r, sizeof v);
        put(p.out_dtype, out, at, v);
    }
};

/* --- states between threads --- */
typedef unsigned long long word;
template <typename S> struct words {
    static_assert(sizeof(S) % sizeof(word) == 0, "states are whole words");
    static const int count = sizeof(S) / sizeof(word);
};

/* That of the lane `by` before this one, or (DOWN) behind it. */
template <bool DOWN, typename S> static __device__ __forceinline__ S shuffled(const S &s, int by)
{
    word w[words<S>::count];
    S r;
    memcpy(w, &s, sizeof s);
#pragma unroll
    for (int k = 0; k < words<S>::count; k++) {
        w[k] = DOWN ? __shfl_down_sync(0xffffffffu, w[k], by) : __shfl_up_sync(0xffffffffu, w[k], by);
    }
    memcpy(&r, w, sizeof r);
    return r;
}
/* Those of all lanes, in their order, in the first lane. */
template <typename R> static __device__ __forceinline__ typename R::state join_warp(typename R::state s)
{
    const int lane = threadIdx.x % LANES;
#pragma unroll(R::kind == KIND_LOGSUM ? 1 : 5)
    for (int by = 1; by < LANES; by *= 2) {
        const typename R::state behind = shuffled<true>(s, by);
        if (lane % (2 * by) == 0) {
            R::combine(s, behind);
        }
    }
    return s;
}
/* s: with those of the lanes before it. Returns the state of those alone. */
template <typename R> static __device__ __forceinline__ typename R::state scan_warp(typename R::state &s)
{
    const int lane = threadIdx.x % LANES;
#pragma unroll(R::kind == KIND_LOGSUM ? 1 : 5)
    for (int by = 1; by < LANES; by *= 2) {
        typename R::state before = shuffled<false>(s, by);
        if (lane >= by) {
            R::combine(before, s);
            s = before;
        }
    }
    typename R::state before = shuffled<false>(s, 1);
    return lane == 0 ? R::start() : before;
}

/* Results as elements of out. */
template <typename R, typename IO, int G>
static __device__ __forceinline__ group<typename IO::slot, G> closed(const typename R::result (&r)[G])
{
    group<typename IO::slot, G> g;
    if constexpr (same_type<typename R::result, double>::value && same_type<typename IO::slot, bf16>::value) {
        round_all(r, g);
    } else {
#pragma unroll
        for (int e = 0; e < G; e++) {
            g.v[e] = IO::close(r[e]);
        }
    }
    return g;
}

/* --- what a thread has of a row: V groups of G elements, of which the first `count` are there --- */
/* Of sums of pairs: every element is looked at once for the range. Where all are below 2^960 and the state before them below
 * 2^1000, no sum leaves it, and they are added without a look. */
template <typename R> struct pairs {
    static const bool are = R::kind == KIND_SUM && sizeof(typename R::state) == 16;
};
template <typename R, typename IO, int V, int G, bool WHOLE, bool PLAIN, typename LOAD>
static __device__ __forceinline__ void take_all(typename R::state &s, bool &small, int count, LOAD load)
{
#pragma unroll(V < 8 || IO::direct ? V : 8)
    for (int v = 0; v < V; v++) {
        const group<typename IO::source, G> g = load(v);
#pragma unroll
        for (int e = 0; e < G; e++) {
            if (WHOLE || v * G + e < count) {
                const typename R::number x = IO::open(g.v[e]);
                if constexpr (PLAIN) {
                    small = small && R::small(x);
                    R::take_plain(s, x);
                } else {
                    R::take(s, x, 0);
                }
            }
        }
    }
}
/* The state of them all. */
template <typename R, typename IO, int V, int G, typename LOAD>
static __device__ __forceinline__ typename R::state total_of(int count, bool &small, LOAD load)
{
    typename R::state s = R::start();
    small = true;
    if constexpr (pairs<R>::are) {
        if (count >= V * G) {
            take_all<R, IO, V, G, true, true>(s, small, count, load);
        } else {
            take_all<R, IO, V, G, false, true>(s, small, count, load);
        }
        s = R::settled(s);
        if (!small) {
            s = R::start();
            take_all<R, IO, V, G, false, false>(s, small, count, load);
        }
    } else if (R::kind != KIND_LOGSUM && count >= V * G) {
        take_all<R, IO, V, G, true, false>(s, small, count, load);
    } else {
        take_all<R, IO, V, G, false, false>(s, small, count, load);
    }
    return s;
}
template <typename R, typename IO, int V, int G, bool WHOLE, bool PLAIN, typename LOAD, typename STORE>
static __device__ __forceinline__ void give_all(typename R::state s, int count, LOAD load, STORE store)
{
#pragma unroll(V < 8 || IO::direct ? V : 8)
    for (int v = 0; v < V; v++) {
        if (WHOLE || v * G < count) {
            const group<typename IO::source, G> g = load(v);
            typename R::result r[G];
#pragma unroll
            for (int e = 0; e < G; e++) {
                if (WHOLE || v * G + e < count) {
                    if constexpr (PLAIN) {
                        R::take_plain(s, IO::open(g.v[e]));
                    } else {
                        R::take(s, IO::open(g.v[e]), 0);
                    }
                }
                if constexpr (PLAIN) {
                    r[e] = R::result_plain(s);
                } else {
                    r[e] = R::finish(s, 1);
                }
            }
            store(v, closed<R, IO>(r));
        }
    }
}
/* Their results, s being the state before them, and small what total_of said. */
template <typename R, typename IO, int V, int G, typename LOAD, typename STORE>
static __device__ __forceinline__ void results_of(const typename R::state &s, int count, bool small, LOAD load, STORE store)
{
    if constexpr (pairs<R>::are) {
        if (!(small && R::steady(s))) {
            give_all<R, IO, V, G, false, false>(s, count, load, store);
        } else if (count >= V * G) {
            give_all<R, IO, V, G, true, true>(s, count, load, store);
        } else {
            give_all<R, IO, V, G, false, true>(s, count, load, store);
        }
    } else if (R::kind != KIND_LOGSUM && count >= V * G) {
        give_all<R, IO, V, G, true, false>(s, count, load, store);
    } else {
        give_all<R, IO, V, G, false, false>(s, count, load, store);
    }
}

/* A part of all rows, from element `begin` on. Of chained tiles the states are published in slots. A line: the rows of a
 * thread block, one (along) or LANES of them (across). */
struct piece {
    int64_t begin, end;
    uint32_t lines, tiles;
    int each;           /* across: elements of a row a thread has */
    uint32_t *ticket;   /* NULL: a thread block has all tiles of its line */
    ulonglong2 *slots;  /* each word of a state beside a 1; 0: not there yet */
    const void *before; /* the states before this piece; NULL: those that the call gives */
    void *behind;       /* those behind it, or NULL */
};

static __device__ __forceinline__ void store_slot(ulonglong2 *slot, ulonglong2 v)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(v.x), "l"(v.y) : "memory");
#else
    asm volatile("st.cg.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(v.x), "l"(v.y) : "memory");
#endif
}
static __device__ __forceinline__ ulonglong2 load_slot(const ulonglong2 *slot)
{
    ulonglong2 v;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(slot) : "memory");
#else
    asm volatile("ld.cg.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(slot) : "memory");
#endif
    return v;
}
/* Slot `number` of a level, for a row. Of level l < LEVELS there is one for each 8^l tiles, of level LEVELS for each 8^LEVELS. */
template <typename S>
static __device__ __forceinline__ ulonglong2 *slot_of(const dmi_cuda_scan &p, const piece &c, int level, uint32_t number,
                                                      int64_t row)
{
    int64_t at = number;
    for (int l = 0; l < level; l++) {
        at += c.tiles >> (FAN_BITS * l);
    }
    return c.slots + (at * p.rows.items + row) * words<S>::count;
}
template <typename S> static __device__ __forceinline__ void publish(ulonglong2 *slot, const S &s)
{
    word w[words<S>::count];
    memcpy(w, &s, sizeof s);
#pragma unroll
    for (int k = 0; k < words<S>::count; k++) {
        store_slot(slot + k, make_ulonglong2(w[k], 1));
    }
}
/* A state that is on its way. */
template <typename S> struct awaited {
    const ulonglong2 *slot;
    ulonglong2 v[words<S>::count];
    __device__ __forceinline__ void begin(const ulonglong2 *from)
    {
        slot = from;
#pragma unroll
        for (int k = 0; k < words<S>::count; k++) {
            v[k] = load_slot(slot + k);
        }
    }
    __device__ __forceinline__ S end()
    {
        word w[words<S>::count];
        S s;
#pragma unroll
        for (int k = 0; k < words<S>::count; k++) {
            while (v[k].y == 0) {
                v[k] = load_slot(slot + k);
            }
            w[k] = v[k].x;
        }
        memcpy(&s, w, sizeof s);
        return s;
    }
};

template <typename R>
static __device__ __forceinline__ typename R::state first_state(const dmi_cuda_scan &p, const piece &c, const void *starts,
                                                                int64_t row, int64_t number)
{
    if (c.before) {
        return ((const typename R::state *)c.before)[row];
    }
    if constexpr (same_type<typename R::number, float>::value) {
        typename R::state s = R::start();
        s.v = starts ? (float)element<double>(p.number, starts, number) : s.v;
        return s;
    } else {
        return starts ? read_acc<R>(p.number, starts, number) : R::start();
    }
}

/* Memory of a thread block for the states before its tile, of up to ROWS rows. */
template <typename S, int ROWS> struct neighbours {
    S of[LEVELS][FAN - 1][ROWS], first[ROWS];
};

/* The state before tile t of the row that this lane has; all threads call it, the first warp has the result, and `total` is
 * its state of the tile. here: the lane has a row. */
template <typename R, int ROWS>
static __device__ __forceinline__ typename R::state
states_before(const dmi_cuda_scan &p, const piece &c, const void *starts, neighbours<typename R::state, ROWS> &m, uint32_t t,
              bool here, int64_t row, int64_t number, const typename R::state &total)
{
    typedef typename R::state S;
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    awaited<S> coming[LEVELS];
    S group = total, before = R::start();
    bool ends = true;
    if (warp == 0 && here) {
        publish(slot_of<S>(p, c, 0, t, row), total);
    }
#pragma unroll
    for (int l = 0; l < LEVELS; l++) {
        const uint32_t mine = t >> (FAN_BITS * l);
        if (here && warp < mine % FAN) {
            coming[l].begin(slot_of<S>(p, c, l, mine / FAN * FAN + warp, row));
        }
    }
#pragma unroll
    for (int l = 0; l < LEVELS; l++) {
        const uint32_t mine = t >> (FAN_BITS * l);
        if (here && warp < mine % FAN) {
            m.of[l][warp][lane] = coming[l].end();
        }
        ends = ends && mine % FAN == FAN - 1;
        if (ends && l < LEVELS - 1) { /* others wait for what ends with this tile */
            __syncthreads();
            if (warp == 0 && here) {
                S s = m.of[l][0][lane];
#pragma unroll 1
                for (int k = 1; k < FAN - 1; k++) {
                    R::combine(s, m.of[l][k][lane]);
                }
                R::combine(s, group);
                group = s;
                publish(slot_of<S>(p, c, l + 1, mine / FAN, row), group);
            }
        }
    }
    if (warp == WARPS - 1 && here) {
        const uint32_t whole = t >> (FAN_BITS * LEVELS);
        if (whole > 0) {
            awaited<S> s;
            s.begin(slot_of<S>(p, c, LEVELS, whole - 1, row));
            m.first[lane] = s.end();
        } else {
            m.first[lane] = first_state<R>(p, c, starts, row, number);
        }
    }
    __syncthreads();
    if constexpr (ROWS == 1) { /* a lane has one of these states, or none */
        static_assert(1 + LEVELS * (FAN - 1) <= LANES, "a warp has them all");
        if (warp == 0) {
            const uint32_t l = LEVELS - 1 - (lane - 1) / (FAN - 1) % LEVELS, k = (lane - 1) % (FAN - 1);
            if (lane == 0) {
                before = m.first[0];
            } else if (lane <= LEVELS * (FAN - 1) && k < (t >> (FAN_BITS * l)) % FAN) {
                before = m.of[l][k][0];
            }
            before = join_warp<R>(before);
        }
    } else if (warp == 0 && here) {
        before = m.first[lane];
#pragma unroll 1
        for (int l = LEVELS - 1; l >= 0; l--) {
#pragma unroll 1
            for (uint32_t k = 0; k < (t >> (FAN_BITS * l)) % FAN; k++) {
                R::combine(before, m.of[l][k][lane]);
            }
        }
    }
    if (warp == 0 && here) {
        S behind = before;
        R::combine(behind, total);
        if (ends) {
            publish(slot_of<S>(p, c, LEVELS, t >> (FAN_BITS * LEVELS), row), behind);
        }
        if (c.behind && t == c.tiles - 1) {
            ((S *)c.behind)[row] = behind;
        }
    }
    return before;
}

/* The first job of a thread block. A job is a tile of a line. A thread block of chained tiles has one alone: one that held a
 * ticket for later would keep others waiting. Else it has all of its line, and fetches the next while it works on one. */
static __device__ __forceinline__ uint32_t first_job(const piece &c)
{
    __shared__ uint32_t drawn;
    if (!c.ticket) {
        return blockIdx.x;
    }
    if (threadIdx.x == 0) {
        drawn = atomicAdd(c.ticket, 1);
    }
    __syncthreads();
    return drawn;
}
/* Thread blocks that the registers of a multiprocessor must suffice for: chained ones wait for others, and more of them hide
 * that. buffer: bytes of a tile. */
template <typename S, bool CHAINED> static constexpr int blocks_at_once(int buffer)
{
    return !CHAINED || sizeof(S) > 8 ? 3 : buffer > 32 << 10 ? 4 : 5;
}

/* --- along: a thread has V chunks of a row that follow one another --- */
/* Where a chunk lies, so that neither threads with neighbouring chunks nor those with chunks V apart get in each other's way. */
static __device__ __forceinline__ int place_of(int number) { return number ^ (number >> 3 & 7); }

/* TEAM threads, of which this is number `who`, have a tile. */
template <typename R, typename IO, int V, int TEAM>
static __device__ __forceinline__ void fetch_tile(const dmi_cuda_scan &p, const void *in, int64_t at, int64_t base, int64_t end,
                                                  int who, chunk *to)
{
    typedef typename IO::slot T;
    const int G = sizeof(chunk) / sizeof(T);
    if (p.wide) {
#pragma unroll(V < 8 ? V : 8)
        for (int k = 0; k < V; k++) {
            const int number = k * TEAM + who;
            const int64_t i = base + (int64_t)number * G;
            T *slot = (T *)(to + place_of(number));
            if (i + G <= end) {
                copy_async(slot, (const T *)in + at + i, sizeof(chunk));
            } else {
                for (int e = 0; i + e < end; e++) {
                    IO::fetch(p, in, at + i + e, slot + e);
                }
            }
        }
    } else {
#pragma unroll 4
        for (int k = 0; k < V * G; k++) {
            const int number = k * TEAM + who;
            if (base + number < end) {
                IO::fetch(p, in, at + (base + number) * p.in_stride, (T *)(to + place_of(number / G)) + number % G);
            }
        }
    }
}
template <typename R, typename IO, int V, int TEAM>
static __device__ __forceinline__ void store_tile(const dmi_cuda_scan &p, void *out, int64_t at, int64_t base, int64_t end,
                                                  int who, const chunk *from)
{
    typedef typename IO::slot T;
    const int G = sizeof(chunk) / sizeof(T);
    if (p.wide) {
#pragma unroll(V < 8 ? V : 8)
        for (int k = 0; k < V; k++) {
            const int number = k * TEAM + who;
            const int64_t i = base + (int64_t)number * G;
            const chunk g = from[place_of(number)];
            if (i + G <= end) {
                *(chunk *)((T *)out + at + i) = g;
            } else {
                for (int e = 0; i + e < end; e++) {
                    IO::store(p, out, at + i + e, ((const T *)&from[place_of(number)])[e]);
                }
            }
        }
    } else {
#pragma unroll 4
        for (int k = 0; k < V * G; k++) {
            const int number = k * TEAM + who;
            if (base + number < end) {
                IO::store(p, out, at + (base + number) * p.out_stride, ((const T *)(from + place_of(number / G)))[number % G]);
            }
        }
    }
}

/* What a thread reads for itself: the first `count` of N elements from x on; chunks of them are aligned. */
template <typename E, int N> struct own_elements {
    alignas(16) E v[N];
    __device__ __forceinline__ void read(const E *x, int count)
    {
        if (count >= N) {
#pragma unroll
            for (int k = 0; k < N * (int)sizeof(E) / (int)sizeof(chunk); k++) {
                ((uint4 *)v)[k] = ((const uint4 *)x)[k];
            }
        } else {
#pragma unroll
            for (int i = 0; i < N; i++) {
                v[i] = i < count ? x[i] : E();
            }
        }
    }
};
template <typename E> struct own_elements<E, 0> {
    __device__ __forceinline__ void read(const E *, int) {}
};

template <typename R, typename IO, int V, bool CHAINED>
static __global__ void
    __launch_bounds__(THREADS, (blocks_at_once<typename R::state, CHAINED>(THREADS *V * sizeof(chunk))))
    scan_along(const __grid_constant__ dmi_cuda_scan p, const __grid_constant__ piece c, const void *in, const void *starts,
               void *out)
{
    typedef typename R::state S;
    typedef typename IO::slot T;
    typedef typename IO::source E;
    const int G = sizeof(chunk) / sizeof(T), TILE = THREADS * V * G;
    extern __shared__ chunk room[];
    __shared__ S totals[WARPS];
    __shared__ neighbours<S, 1> m;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t jobs = c.lines * c.tiles;
    uint32_t job = first_job(c);
    int64_t at[3], to[3] = {0, 0, 0};
    locate<3>(p.rows, job % c.lines, at);
    if (!IO::direct) {
        fetch_tile<R, IO, V, THREADS>(p, in, at[0], c.begin + (int64_t)(job / c.lines) * TILE, c.end, threadIdx.x, room);
    }
    __pipeline_commit();
    S running = R::start();
    if (!CHAINED && threadIdx.x == 0) {
        running = first_state<R>(p, c, starts, job % c.lines, at[2]);
    }
    for (int here = 0; job < jobs; here ^= 1) {
        chunk *tile = room + here * (THREADS * V);
        const uint32_t t = job / c.lines, row = job % c.lines;
        const int64_t base = c.begin + (int64_t)t * TILE;
        __pipeline_wait_prior(0);
        __syncthreads();
        const uint32_t next = CHAINED ? jobs : job + c.lines;
        if (next < jobs) {
            locate<3>(p.rows, next % c.lines, to);
            if (!IO::direct) {
                fetch_tile<R, IO, V, THREADS>(p, in, to[0], c.begin + (int64_t)(next / c.lines) * TILE, c.end, threadIdx.x,
                                              room + (here ^ 1) * (THREADS * V));
            }
        }
        __pipeline_commit();
        const int64_t left = c.end - base - (int64_t)threadIdx.x * (V * G);
        const int count = left < 0 ? 0 : left < V * G ? (int)left : V * G;
        own_elements<E, IO::direct ? V * G : 0> own;
        own.read((const E *)in + at[0] + base + threadIdx.x * (V * G), count);
        auto load = [&](int v) {
            if constexpr (IO::direct) {
                group<E, G> g;
#pragma unroll
                for (int e = 0; e < G; e++) {
                    g.v[e] = own.v[v * G + e];
                }
                return g;
            } else {
                return *(const group<T, G> *)(tile + place_of(threadIdx.x * V + v));
            }
        };
        bool small;
        S s = total_of<R, IO, V, G>(count, small, load);
        const S before_lane = scan_warp<R>(s);
        if (lane == LANES - 1) {
            totals[warp] = s;
        }
        __syncthreads();
        S all = R::start(), before_warp = R::start(), before = running;
        if (warp == 0) {
            all = lane < WARPS ? totals[lane] : R::start();
            before_warp = scan_warp<R>(all);
            __syncwarp();
            if (lane == LANES - 1) { /* to the lane that has the row */
                totals[0] = all;
            }
            __syncwarp();
            all = totals[0];
        }
        if (CHAINED) {
            before = states_before<R, 1>(p, c, starts, m, t, lane == 0, row, at[2], all);
        }
        if (warp == 0) {
            if (lane == 0) {
                m.first[0] = before;
                running = before;
                R::combine(running, all);
            }
            __syncwarp();
            before = m.first[0];
            R::combine(before, before_warp);
            if (lane < WARPS) {
                totals[lane] = before;
            }
        }
        __syncthreads();
        s = totals[warp];
        R::combine(s, before_lane);
        results_of<R, IO, V, G>(s, count, small, load, [&](int v, const group<T, G> &g) {
            *(group<T, G> *)(tile + place_of(threadIdx.x * V + v)) = g;
        });
        __syncthreads();
        store_tile<R, IO, V, THREADS>(p, out, at[1], base, c.end, threadIdx.x, tile);
        job = next;
        at[0] = to[0];
        at[1] = to[1];
        at[2] = to[2];
    }
}

/* --- along short rows: a warp has a row, whose only tile is its own --- */
template <typename R, typename IO, int V>
static __global__ void __launch_bounds__(THREADS)
    scan_rows(const __grid_constant__ dmi_cuda_scan p, const __grid_constant__ piece c, const void *in, const void *starts,
              void *out)
{
    typedef typename R::state S;
    typedef typename IO::slot T;
    const int G = sizeof(chunk) / sizeof(T), warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    extern __shared__ chunk room[];
    chunk *tile = room + warp * (LANES * V);
    const uint32_t row = blockIdx.x * WARPS + warp;
    int64_t at[3];
    if (row >= c.lines) {
        return;
    }
    locate<3>(p.rows, row, at);
    fetch_tile<R, IO, V, LANES>(p, in, at[0], c.begin, c.end, lane, tile);
    __pipeline_commit();
    S s = first_state<R>(p, c, starts, row, at[2]);
    __pipeline_wait_prior(0);
    __syncwarp();
    const int left = (int)(c.end - c.begin) - lane * (V * G), count = left < 0 ? 0 : left < V * G ? left : V * G;
    auto load = [&](int v) { return *(const group<T, G> *)(tile + place_of(lane * V + v)); };
    bool small;
    S mine = total_of<R, IO, V, G>(count, small, load);
    R::combine(s, scan_warp<R>(mine));
    results_of<R, IO, V, G>(s, count, small, load,
                            [&](int v, const group<T, G> &g) { *(group<T, G> *)(tile + place_of(lane * V + v)) = g; });
    __syncwarp();
    store_tile<R, IO, V, LANES>(p, out, at[1], c.begin, c.end, lane, tile);
}

/* --- across: a lane has a row, and each warp the next `each` elements of all of them --- */
template <typename R, typename IO, int V>
static __device__ __forceinline__ void fetch_across(const dmi_cuda_scan &p, const void *in, int64_t at, int64_t from, int64_t to,
                                                    typename IO::slot *slots)
{
#pragma unroll 8
    for (int v = 0; v < V; v++) {
        if (from + v < to) {
            IO::fetch(p, in, at + (from + v) * p.in_stride, slots + v * THREADS + threadIdx.x);
        }
    }
}

template <typename R, typename IO, int V, bool CHAINED>
static __global__ void
    __launch_bounds__(THREADS, (blocks_at_once<typename R::state, CHAINED>(THREADS *V * sizeof(typename IO::slot))))
    scan_across(const __grid_constant__ dmi_cuda_scan p, const __grid_constant__ piece c, const void *in, const void *starts,
                void *out)
{
    typedef typename R::state S;
    typedef typename IO::slot T;
    extern __shared__ chunk room[];
    __shared__ S totals[WARPS][LANES];
    __shared__ neighbours<S, LANES> m;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t jobs = c.lines * c.tiles;
    uint32_t job = first_job(c);
    int64_t row = (int64_t)(job % c.lines) * LANES + lane, at[3] = {0, 0, 0}, to[3] = {0, 0, 0};
    int64_t from = c.begin + ((int64_t)(job / c.lines) * WARPS + warp) * c.each, end = from;
    if (row < p.rows.items) {
        locate<3>(p.rows, (uint32_t)row, at);
        end = DMI_MIN(from + c.each, c.end);
    }
    fetch_across<R, IO, V>(p, in, at[0], from, end, (T *)room);
    __pipeline_commit();
    S running = R::start();
    if (!CHAINED && warp == 0 && row < p.rows.items) {
        running = first_state<R>(p, c, starts, row, at[2]);
    }
    for (int here = 0; job < jobs; here ^= 1) {
        const T *x = (const T *)room + here * (THREADS * V) + threadIdx.x;
        __pipeline_wait_prior(0); /* a thread's elements are its own */
        __syncthreads();
        const uint32_t next = CHAINED ? jobs : job + c.lines;
        int64_t next_row = 0, next_from = 0, next_end = 0;
        if (next < jobs) {
            next_row = (int64_t)(next % c.lines) * LANES + lane;
            next_from = next_end = c.begin + ((int64_t)(next / c.lines) * WARPS + warp) * c.each;
            if (next_row < p.rows.items) {
                locate<3>(p.rows, (uint32_t)next_row, to);
                next_end = DMI_MIN(next_from + c.each, c.end);
            }
            fetch_across<R, IO, V>(p, in, to[0], next_from, next_end, (T *)room + (here ^ 1) * (THREADS * V));
        }
        __pipeline_commit();
        const int count = (int)(end - from);
        auto load = [&](int v) { return group<T, 1>{{x[v * THREADS]}}; };
        bool small;
        S s = total_of<R, IO, V, 1>(count, small, load);
        totals[warp][lane] = s;
        __syncthreads();
        S all = R::start(), before = running;
        if (warp == 0) {
#pragma unroll 1
            for (int w = 0; w < WARPS; w++) {
                S other = totals[w][lane];
                totals[w][lane] = all;
                R::combine(all, other);
            }
        }
        if (CHAINED) {
            before = states_before<R, LANES>(p, c, starts, m, job / c.lines, row < p.rows.items, row, at[2], all);
        }
        if (warp == 0) {
            m.first[lane] = before;
            running = before;
            R::combine(running, all);
        }
        __syncthreads();
        s = m.first[lane];
        R::combine(s, totals[warp][lane]);
        results_of<R, IO, V, 1>(s, count, small, load, [&](int v, const group<T, 1> &g) {
            IO::store(p, out, at[1] + (from + v) * p.out_stride, g.v[0]);
        });
        job = next;
        row = next_row;
        from = next_from;
        end = next_end;
        at[0] = to[0];
        at[1] = to[1];
        at[2] = to[2];
    }
}

/* --- launchers --- */
enum {
    ENOUGH = 2048, /* lines that fill a device several times */
    SHORT = 2,     /* chunks that a thread has of a short row */
    LANE = 8,      /* of a row that a warp has */
    TICKET_BYTES = 256
};

/* Pieces of chained tiles, for whose slots there is room; as a rule one. A tile has `tile` elements of a row. */
template <typename S, typename F>
static void launch_pieces(dmi_queue *q, const dmi_cuda_scan *p, uint32_t lines, int64_t tile, int each, F launch)
{
    const int64_t rows = p->rows.items;
    piece c = {0, p->n, lines, 0, each, NULL, NULL, NULL, NULL};
    char *memory = (char *)q->workspace, *states[2] = {memory, memory + rows * (int64_t)sizeof(S)};
    int64_t used = (2 * rows * (int64_t)sizeof(S) + TICKET_BYTES - 1) / TICKET_BYTES * TICKET_BYTES;
    const int64_t slot = rows * words<S>::count * (int64_t)sizeof(ulonglong2);
    const int64_t room = (q->workspace_bytes - used - TICKET_BYTES) / slot * 7 / 8; /* tiles */
    const int64_t most = DMI_MIN(room, INT32_MAX / (int64_t)lines);
    assert(room > 0);
    c.ticket = (uint32_t *)(memory + used);
    c.slots = (ulonglong2 *)(memory + used + TICKET_BYTES);
    for (int k = 0; c.begin < p->n; k++) {
        c.end = DMI_MIN(c.begin + most * tile, p->n);
        c.tiles = (uint32_t)((c.end - c.begin + tile - 1) / tile);
        c.behind = c.end < p->n ? states[k % 2] : NULL;
        int64_t slots = 0;
        for (int l = 0; l <= LEVELS; l++) {
            slots += c.tiles >> (FAN_BITS * l);
        }
        cudaError_t e = cudaMemsetAsync(c.ticket, 0, (size_t)(TICKET_BYTES + slots * slot), stream_of(q));
        if (e != cudaSuccess) {
            dmi_cuda_failed(q, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
            return;
        }
        launch(c);
        c.before = c.behind;
        c.begin = c.end;
    }
}

/* One launch. buffer: bytes of shared memory of a tile. */
template <typename K>
static void launch_kernel(dmi_queue *q, K *kernel, int buffer, const dmi_cuda_scan *p, const piece &c, const void *in,
                          const void *starts, void *out)
{
    const int bytes = c.tiles == 1 || c.ticket ? buffer : 2 * buffer; /* two, where a thread block has more than one tile */
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e != cudaSuccess) { /* before compute capability 8.0 */
        dmi_cuda_failed(q, "scan", (int)e, "the GPU has too little shared memory for a thread block");
        return;
    }
    kernel<<<c.ticket ? c.lines * c.tiles : c.lines, THREADS, bytes, stream_of(q)>>>(*p, c, in, starts, out);
}
/* Of lines enough, or of a tile each, no tiles are chained. */
static bool chains(const dmi_cuda_scan *p, uint32_t lines, int64_t tile, int each, piece *c)
{
    const int64_t tiles = (p->n + tile - 1) / tile;
    *c = {0, p->n, lines, (uint32_t)tiles, each, NULL, NULL, NULL, NULL};
    return tiles > 1 && lines < ENOUGH;
}
/* V: chunks of a thread; LONG: of chained tiles. */
template <typename R, typename IO, int V, int LONG>
static void launch_along(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    const int buffer = THREADS * V * (int)sizeof(chunk), wide = THREADS * LONG * (int)sizeof(chunk);
    const int size = sizeof(typename IO::slot);
    piece all;
    if (!chains(p, p->rows.items, buffer / size, 0, &all)) {
        launch_kernel(q, scan_along<R, IO, V, false>, buffer, p, all, in, starts, out);
        return;
    }
    launch_pieces<typename R::state>(q, p, p->rows.items, wide / size, 0, [&](const piece &c) {
        launch_kernel(q, scan_along<R, IO, LONG, true>, wide, p, c, in, starts, out);
    });
}
template <typename R, typename IO>
static void launch_across(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    const int size = sizeof(typename IO::slot), V = size <= 4 ? 32 : 128 / size, buffer = THREADS * V * size;
    const int64_t each = DMI_MIN((p->n + WARPS - 1) / WARPS, V);
    const uint32_t lines = blocks_for(p->rows.items, LANES);
    piece all;
    if (!chains(p, lines, WARPS * each, (int)each, &all)) {
        launch_kernel(q, scan_across<R, IO, V, false>, buffer, p, all, in, starts, out);
        return;
    }
    launch_pieces<typename R::state>(q, p, lines, WARPS * each, (int)each, [&](const piece &c) {
        launch_kernel(q, scan_across<R, IO, V, true>, buffer, p, c, in, starts, out);
    });
}

/* May rows be read and written a chunk at a time? Of elements a chunk has `n`, of results `m`. */
static bool in_chunks(const dmi_cuda_scan *p, const void *in, const void *out, int n, int m)
{
    bool yes = p->in_stride == 1 && p->out_stride == 1 && (uintptr_t)in % 16 == 0 && (uintptr_t)out % 16 == 0;
    for (int d = 0; d < p->rows.ndim; d++) {
        bool one = p->rows.extent[d].extent == 1;
        yes = yes && (one || (p->rows.stride[0][d] % n == 0 && p->rows.stride[1][d] % m == 0));
    }
    return yes;
}

/* Rows of a warp each. */
template <typename R, typename IO, int V>
static void launch_rows(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    const piece c = {0, p->n, p->rows.items, 1, 0, NULL, NULL, NULL, NULL};
    scan_rows<R, IO, V><<<blocks_for(p->rows.items, WARPS), THREADS, THREADS * V * sizeof(chunk), stream_of(q)>>>(*p, c, in,
                                                                                                             starts, out);
}
/* Rows of one small tile each. */
template <typename R, typename IO, int V>
static void launch_short(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    const piece c = {0, p->n, p->rows.items, 1, 0, NULL, NULL, NULL, NULL};
    launch_kernel(q, scan_along<R, IO, V, false>, THREADS * V * (int)sizeof(chunk), p, c, in, starts, out);
}

template <typename R, typename T>
static void launch_typed(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    const int G = sizeof(chunk) / sizeof(T);
    dmi_cuda_scan with = *p;
    with.wide = in_chunks(p, in, out, G, G);
    if (p->across) {
        launch_across<R, typed<R, T>>(q, &with, in, starts, out);
    } else if (p->n <= LANES * SHORT * G) {
        launch_rows<R, typed<R, T>, SHORT>(q, &with, in, starts, out);
    } else if (p->n <= LANES * LANE * G) {
        launch_rows<R, typed<R, T>, LANE>(q, &with, in, starts, out);
    } else if (p->n <= THREADS * SHORT * G) {
        launch_short<R, typed<R, T>, SHORT>(q, &with, in, starts, out);
    } else {
        launch_along<R, typed<R, T>, 8, sizeof(T) == 2 ? 8 : 16>(q, &with, in, starts, out);
    }
}
/* Elements of type E into 64-bit integers; false: they do not lie in chunks. */
template <typename R, typename E>
static bool launch_two_types(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    dmi_cuda_scan with = *p;
    with.wide = in_chunks(p, in, out, sizeof(chunk) / sizeof(E), sizeof(chunk) / sizeof(int64_t));
    if (p->across || !with.wide) {
        return false;
    }
    launch_along<R, two_types<R, E, int64_t>, 8, 16>(q, &with, in, starts, out);
    return true;
}
template <typename R>
static void launch_any(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    if (p->across) {
        launch_across<R, any_type<R>>(q, p, in, starts, out);
    } else {
        launch_along<R, any_type<R>, 4, 4>(q, p, in, starts, out);
    }
}

/* The row that keeps floats of 32 bits as they are, where it keeps elements. */
template <typename R, bool KEEPS> struct row_of_floats {
    typedef R row;
};
template <typename R> struct row_of_floats<R, true> {
    typedef typename R::template of<float>::row row;
};

/* Kernels of their own have the types of most data. */
template <typename R>
static void launch_scan(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *out)
{
    typedef typename R::number number;
    assert((int64_t)sizeof(typename R::state) == dmi_cuda_scan_bytes(p->acc));
    const bool same = p->dtype == p->out_dtype && R::kind != KIND_LOGSUM;
    if constexpr (R::kind == KIND_SUM && sizeof(typename R::state) == 16) { /* pairs */
        if (same && p->dtype == DM_F64) {
            launch_typed<R, double>(q, p, in, starts, out);
            return;
        }
    } else if constexpr (same_type<number, double>::value && R::kind != KIND_LOGSUM) {
        typedef typename row_of_floats<R, R::kind == KIND_VALUE>::row F;
        if (same && p->dtype == DM_F64 && R::kind != KIND_SUM) {
            launch_typed<R, double>(q, p, in, starts, out);
            return;
        }
        if (same && p->dtype == DM_F32) {
            launch_typed<F, float>(q, p, in, starts, out);
            return;
        }
        if (same && p->dtype == DM_BF16) {
            launch_typed<F, bf16>(q, p, in, starts, out);
            return;
        }
        if (same && p->dtype == DM_F16) {
            launch_typed<F, f16>(q, p, in, starts, out);
            return;
        }
    } else if constexpr (same_type<number, int64_t>::value) {
        if (same && p->dtype == DM_I64) {
            launch_typed<R, int64_t>(q, p, in, starts, out);
            return;
        }
        if (same && p->dtype == DM_I32) {
            launch_typed<R, int32_t>(q, p, in, starts, out);
            return;
        }
        if constexpr (R::kind == KIND_SUM && same_type<typename R::result, int64_t>::value) {
            const bool widens = p->out_dtype == DM_I64;
            if ((widens && p->dtype == DM_U8 && launch_two_types<R, uint8_t>(q, p, in, starts, out)) ||
                (widens && p->dtype == DM_BOOL && launch_two_types<R, bool8>(q, p, in, starts, out)) ||
                (widens && p->dtype == DM_I32 && launch_two_types<R, int32_t>(q, p, in, starts, out))) {
                return;
            }
        }
    }
    launch_any<R>(q, p, in, starts, out);
}

/* The launcher of a row of reduce.def. */
#define DMI_SCAN_OF_ROW(name, domain)                                                                          \
    void dmi_cuda_launch_scan_##name(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, \
                                     void *out)                                                                \
    {                                                                                                          \
        use_row<reduction_##name, DMI_DOMAIN_##domain>(dmi_acc_takes(p->acc), [&](auto tag) {                  \
            launch_scan<typename decltype(tag)::row>(q, p, in, starts, out);                                   \
        });                                                                                                    \
        dmi_cuda_launched(q, "scan");                                                                          \
    }

#endif
