/* Reductions other than the sum: as reduce.cu, `along` with a team of threads on a result, `across` with a thread on each of
 * neighbouring results; in parts, which `join` combines. One element at a time, of any type, or, of f32 and bf16 where no
 * indices are kept, groups of 16 bytes. All orders are fixed. */
#include "kernels/reduce/reduction.cuh"

enum { THREADS = DMI_CUDA_THREADS, WARP = 32, DEPTH = 4, MOST_BLOCKS = 1 << 13 };

template <typename S> static __device__ __forceinline__ S shuffled(S a, int by)
{
    union words {
        S s;
        uint32_t word[sizeof(S) / 4];
        __device__ words() {}
    } u;
    u.s = a;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++) {
        u.word[i] = __shfl_down_sync(0xffffffffu, u.word[i], by);
    }
    return u.s;
}

/* The team's states combined, in its first thread; team: a power of two up to WARP, or THREADS. */
template <typename R> static __device__ __forceinline__ typename R::state team_state(typename R::state s, int team)
{
    typedef typename R::state S;
    __shared__ alignas(16) char memory[THREADS / WARP * sizeof(S)];
    S *warps = (S *)memory;
    for (int by = (team < WARP ? team : WARP) / 2; by > 0; by /= 2) {
        R::combine(s, shuffled(s, by));
    }
    if (team > WARP) {
        __syncthreads();
        if (threadIdx.x % WARP == 0) {
            warps[threadIdx.x / WARP] = s;
        }
        __syncthreads();
        for (int w = 1; threadIdx.x == 0 && w < THREADS / WARP; w++) {
            R::combine(s, warps[w]);
        }
    }
    return s;
}

/* The index of the element that is number `at` of those reduced over. */
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

/* A part's state to the workspace, or the result's to acc. */
template <typename R>
static __device__ __forceinline__ void put_state(const dmi_cuda_rows &p, void *out, uint32_t part, int64_t result,
                                                 typename R::state s)
{
    if (!p.last) {
        ((typename R::state *)out)[part * p.base.results + result] = s;
        return;
    }
    if constexpr (R::places) {
        s.at = s.at == NOWHERE ? s.at : index_of(p.places, s.at);
    }
    write_acc<R>(p.number, out, result, s);
}

/* DEPTH elements at most, `by` items apart. */
template <typename R>
static __device__ __forceinline__ void take_some(const dmi_cuda_rows &p, const void *in, int64_t row, uint32_t first,
                                                 uint32_t by, uint32_t end, typename R::state &s)
{
    typename R::number x[DEPTH];
    int64_t at[DEPTH][2];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        uint32_t i = first + k * by;
        if (i < end) {
            locate<2>(p.base.summed, i, at[k]);
            x[k] = element<typename R::number>(p.base.dtype, in, row + at[k][0]);
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (first + k * by < end) {
            R::take(s, x[k], p.place + at[k][1]);
        }
    }
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    along(const __grid_constant__ dmi_cuda_rows p, const void *__restrict__ in, void *out)
{
    const uint32_t team = p.base.team, teams = THREADS / team, lane = threadIdx.x % team;
    const int64_t jobs = (int64_t)p.base.kept.items * p.base.parts;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < jobs; base += (int64_t)gridDim.x * teams) {
        int64_t job = base + threadIdx.x / team, row;
        bool active = job < jobs;
        uint32_t result = active ? (uint32_t)(job / p.base.parts) : 0, part = active ? (uint32_t)(job % p.base.parts) : 0;
        locate<1>(p.base.kept, result, &row);
        uint32_t begin = part * p.base.items_per_part, end = DMI_MIN(begin + p.base.items_per_part, p.base.summed.items);
        end = active ? end : begin;
        typename R::state s = R::start();
        for (uint32_t first = begin + lane; first < end; first += team * DEPTH) {
            take_some<R>(p, in, row, first, team, end, s);
        }
        s = team_state<R>(s, (int)team);
        if (active && lane == 0) {
            put_state<R>(p, out, part, result, s);
        }
    }
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    across(const __grid_constant__ dmi_cuda_rows p, const void *__restrict__ in, void *out)
{
    typedef typename R::state S;
    __shared__ alignas(16) char memory[THREADS * sizeof(S)];
    S *shared = (S *)memory;
    const uint32_t team = p.base.team, rows = THREADS / team, x = threadIdx.x % team, y = threadIdx.x / team;
    const uint32_t columns = (p.base.kept.items + team - 1) / team;
    for (int64_t job = blockIdx.x; job < (int64_t)columns * p.base.parts; job += gridDim.x) {
        uint32_t part = (uint32_t)(job / columns), result = (uint32_t)(job % columns) * team + x;
        bool active = result < p.base.kept.items;
        uint32_t begin = part * p.base.items_per_part, end = DMI_MIN(begin + p.base.items_per_part, p.base.summed.items);
        int64_t column;
        locate<1>(p.base.kept, active ? result : 0, &column);
        S s = R::start();
        for (uint32_t first = begin + y; active && first < end; first += rows * DEPTH) {
            take_some<R>(p, in, column, first, rows, end, s);
        }
        __syncthreads();
        shared[threadIdx.x] = s;
        for (uint32_t by = rows / 2; by > 0; by /= 2) {
            __syncthreads();
            if (y < by) {
                R::combine(shared[threadIdx.x], shared[threadIdx.x + by * team]);
            }
        }
        if (y == 0 && active) {
            put_state<R>(p, out, part, result, shared[threadIdx.x]);
        }
    }
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    join(const __grid_constant__ dmi_cuda_rows p, int64_t parts, uint32_t team, const typename R::state *__restrict__ in,
         void *out)
{
    const uint32_t teams = THREADS / team, lane = threadIdx.x % team;
    const int64_t results = p.base.results;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < results; base += (int64_t)gridDim.x * teams) {
        int64_t result = base + threadIdx.x / team;
        typename R::state s = R::start();
        for (int64_t part = lane; result < results && part < parts; part += team) {
            R::combine(s, in[part * results + result]);
        }
        s = team_state<R>(s, (int)team);
        if (result < results && lane == 0) {
            put_state<R>(p, out, 0, result, s);
        }
    }
}

/* Groups of N elements of type T along the rows. */
template <typename R, typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    along_groups(const __grid_constant__ dmi_cuda_rows p, const T *__restrict__ in, void *out)
{
    typedef typename R::number number;
    const uint32_t team = p.base.team, teams = THREADS / team, lane = threadIdx.x % team;
    const int64_t jobs = (int64_t)p.base.kept.items * p.base.parts;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < jobs; base += (int64_t)gridDim.x * teams) {
        int64_t job = base + threadIdx.x / team, row, at;
        bool active = job < jobs;
        uint32_t result = active ? (uint32_t)(job / p.base.parts) : 0, part = active ? (uint32_t)(job % p.base.parts) : 0;
        locate<1>(p.base.kept, result, &row);
        uint32_t begin = part * p.base.items_per_part, end = DMI_MIN(begin + p.base.items_per_part, p.base.summed.items);
        end = active ? end : begin;
        typename R::state s = R::start();
        for (uint32_t first = begin + lane; first < end; first += team * DEPTH) {
            group<T, N> v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (first + k * team < end) {
                    locate<1>(p.base.summed, first + k * team, &at);
                    v[k] = *(const group<T, N> *)(in + row + at);
                }
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
#pragma unroll
                for (int e = 0; first + k * team < end && e < N; e++) {
                    R::take(s, (number)opened<float, T>(v[k].v[e]), 0);
                }
            }
        }
        for (uint32_t i = lane; active && part + 1 == p.base.parts && i < p.base.tail; i += team) {
            R::take(s, (number)opened<float, T>(in[row + p.base.tail_at + i]), 0);
        }
        s = team_state<R>(s, (int)team);
        if (active && lane == 0) {
            put_state<R>(p, out, part, result, s);
        }
    }
}

/* Groups of N neighbouring results. */
template <typename R, typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    across_groups(const __grid_constant__ dmi_cuda_rows p, const T *__restrict__ in, void *out)
{
    typedef typename R::state S;
    typedef typename R::number number;
    __shared__ alignas(16) char memory[THREADS * sizeof(S)];
    S *shared = (S *)memory;
    const uint32_t team = p.base.team, rows = THREADS / team, x = threadIdx.x % team, y = threadIdx.x / team;
    const uint32_t columns = (p.base.kept.items + team - 1) / team;
    for (int64_t job = blockIdx.x; job < (int64_t)columns * p.base.parts; job += gridDim.x) {
        uint32_t part = (uint32_t)(job / columns), result = (uint32_t)(job % columns) * team + x;
        bool active = result < p.base.kept.items;
        uint32_t begin = part * p.base.items_per_part, end = DMI_MIN(begin + p.base.items_per_part, p.base.summed.items);
        int64_t column, at;
        locate<1>(p.base.kept, active ? result : 0, &column);
        S s[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            s[e] = R::start();
        }
        for (uint32_t first = begin + y; active && first < end; first += rows * DEPTH) {
            group<T, N> v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (first + k * rows < end) {
                    locate<1>(p.base.summed, first + k * rows, &at);
                    v[k] = *(const group<T, N> *)(in + column + at);
                }
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
#pragma unroll
                for (int e = 0; first + k * rows < end && e < N; e++) {
                    R::take(s[e], (number)opened<float, T>(v[k].v[e]), 0);
                }
            }
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            __syncthreads();
            shared[threadIdx.x] = s[e];
            for (uint32_t by = rows / 2; by > 0; by /= 2) {
                __syncthreads();
                if (y < by) {
                    R::combine(shared[threadIdx.x], shared[threadIdx.x + by * team]);
                }
            }
            if (y == 0 && active) {
                put_state<R>(p, out, part, (int64_t)result * N + e, shared[threadIdx.x]);
            }
        }
    }
}

/* What no elements give: of narrow types the largest or smallest there is, to which a double saturates; of bool 1 or 0. */
template <typename R>
static __global__ void __launch_bounds__(THREADS) start(dm_dtype number, int64_t results, void *out)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < results; i += (int64_t)gridDim.x * THREADS) {
        if constexpr (R::value) {
            double v = (double)R::start().v;
            put(number, out, i, number == DM_BOOL ? (double)(v > 0) : v);
        } else {
            write_acc<R>(number, out, i, R::start());
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename R, typename T, int N>
static void launch_groups(dmi_queue *q, const dmi_cuda_rows *p, unsigned blocks, const void *in, void *out)
{
    if (p->base.across) {
        across_groups<R, T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const T *)in, out);
    } else {
        along_groups<R, T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const T *)in, out);
    }
}

void dmi_cuda_launch_rows(dmi_queue *q, const dmi_cuda_rows *p, const void *in, void *out)
{
    int64_t jobs = (int64_t)p->base.kept.items * p->base.parts;
    unsigned blocks = blocks_for(jobs, THREADS / p->base.team);
    if (p->base.across) {
        jobs = ((int64_t)p->base.kept.items + p->base.team - 1) / p->base.team * p->base.parts;
        blocks = blocks_for(jobs, 1);
    } else if (p->base.team < THREADS) {
        blocks = DMI_MIN(blocks, MOST_BLOCKS);
    }
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        if (p->base.group > 1) {
            if constexpr (!R::places && domain_of<typename R::number>::bits == domain_of<double>::bits) {
                p->base.dtype == DM_F32 ? launch_groups<R, float, 4>(q, p, blocks, in, out)
                                        : launch_groups<R, bf16, 8>(q, p, blocks, in, out);
            }
        } else if (p->base.across) {
            across<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, out);
        } else {
            along<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, out);
        }
    });
    dmi_cuda_launched(q, "reduction");
}

void dmi_cuda_launch_rows_join(dmi_queue *q, const dmi_cuda_rows *p, int64_t parts, const void *in, void *out)
{
    int64_t results = p->base.results;
    uint32_t team = results >= 4096 || parts < WARP ? 1 : results == 1 ? THREADS : WARP;
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        unsigned blocks = blocks_for(results, THREADS / team);
        join<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, parts, team, (const typename R::state *)in, out);
    });
    dmi_cuda_launched(q, "reduction of parts");
}

void dmi_cuda_launch_rows_start(dmi_queue *q, int acc, int64_t results, void *out)
{
    with_row(acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        unsigned blocks = DMI_MIN(blocks_for(results, THREADS), MOST_BLOCKS);
        start<R><<<blocks, THREADS, 0, stream_of(q)>>>(dmi_acc_number(acc), results, out);
    });
    dmi_cuda_launched(q, "start of a reduction");
}
