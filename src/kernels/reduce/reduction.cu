/* Reductions other than the sum: as reduce.cu, `along` with a team of threads on a result, `across` with a thread on each of
 * neighbouring results; in parts, which `join` combines. An item is one element, of any type, or a group of 16 bytes of f32
 * or bf16. All orders are fixed. */
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

/* --- items: what a thread loads at once, of N elements --- */
template <typename R> struct single {
    typedef typename R::number number;
    static const int N = 1;
    number x;
    int64_t at; /* number of the element among those reduced over */
    __device__ __forceinline__ void load(const dmi_cuda_rows &p, const void *in, int64_t base, uint32_t i)
    {
        int64_t place[2];
        locate<2>(p.base.summed, i, place);
        x = element<number>(p.base.dtype, in, base + place[0]);
        at = p.place + place[1];
    }
    __device__ __forceinline__ number value(int) const { return x; }
};

template <typename R, typename T, int COUNT> struct several {
    typedef typename R::number number;
    static const int N = COUNT;
    group<T, COUNT> v;
    int64_t at; /* of the first */
    __device__ __forceinline__ void load(const dmi_cuda_rows &p, const void *in, int64_t base, uint32_t i)
    {
        const int SIDES = R::places ? 2 : 1;
        int64_t place[SIDES];
        locate<SIDES>(p.base.summed, i, place);
        v = *(const group<T, COUNT> *)((const T *)in + base + place[0]);
        at = R::places ? p.place + place[SIDES - 1] : 0;
    }
    __device__ __forceinline__ number value(int e) const { return (number)opened<float, T>(v.v[e]); }
};

/* --- many elements into a state at once: fewer divisions and exponentials than one by one --- */
template <typename R, int M>
static __device__ __forceinline__ void take_moments(typename R::state &s, const double (&x)[M])
{
    double sum = x[0], squares = 0;
#pragma unroll
    for (int i = 1; i < M; i++) {
        sum += x[i];
    }
    const double mean = sum * (1.0 / M); /* M is a power of two */
#pragma unroll
    for (int i = 0; i < M; i++) {
        const double d = x[i] - mean;
        squares = __fma_rn(d, d, squares);
    }
    typename R::state many;
    many.n = M;
    many.mean = mean;
    many.squares = squares;
    R::combine(s, many);
}

template <typename R, int M>
static __device__ __forceinline__ void take_exponentials(typename R::state &s, const double (&x)[M])
{
    double top = s.top;
#pragma unroll
    for (int i = 0; i < M; i++) {
        top = x[i] > top ? x[i] : top;
    }
    if (top > s.top) {
        s.sum *= exp(s.top - top);
        s.top = top;
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
        s.sum += x[i] == top ? 1 : exp(x[i] - top);
    }
}

/* COUNT items; element e of each, or (e < 0) all. step: from the number of an element to the next one's. */
template <typename R, typename ITEM, int COUNT>
static __device__ __forceinline__ void take_items(typename R::state &s, const ITEM *v, int e, int64_t step)
{
    const int N = ITEM::N;
    if constexpr (R::moments || R::logsum) {
        if (e < 0) {
            double x[COUNT * N];
#pragma unroll
            for (int i = 0; i < COUNT * N; i++) {
                x[i] = v[i / N].value(i % N);
            }
            if constexpr (R::moments) {
                take_moments<R>(s, x);
            } else {
                take_exponentials<R>(s, x);
            }
        } else {
            double x[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                x[i] = v[i].value(e);
            }
            if constexpr (R::moments) {
                take_moments<R>(s, x);
            } else {
                take_exponentials<R>(s, x);
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
#pragma unroll
            for (int i = 0; i < N; i++) {
                if (e < 0 || e == i) {
                    R::take(s, v[k].value(i), v[k].at + (e < 0 ? i * step : 0));
                }
            }
        }
    }
}

/* The items first, first + by, ... before `end`, DEPTH at most. ACROSS: element e of an item goes to state e, else all to
 * the first. */
template <typename R, typename ITEM, bool ACROSS>
static __device__ __forceinline__ void take_some(const dmi_cuda_rows &p, const void *in, int64_t base, uint32_t first,
                                                 uint32_t by, uint32_t end, typename R::state *s)
{
    ITEM v[DEPTH];
    const int64_t step = p.base.summed.stride[1][0] / ITEM::N; /* of groups along: within the innermost dim */
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (first + k * by < end) {
            v[k].load(p, in, base, first + k * by);
        }
    }
#pragma unroll
    for (int e = ACROSS ? 0 : -1; e < (ACROSS ? ITEM::N : 0); e++) {
        if (first + (DEPTH - 1) * by < end) {
            take_items<R, ITEM, DEPTH>(s[e < 0 ? 0 : e], v, e, step);
        } else {
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (first + k * by < end) {
                    take_items<R, ITEM, 1>(s[e < 0 ? 0 : e], v + k, e, step);
                }
            }
        }
    }
}

template <typename R, typename ITEM>
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
        typename R::state s[1] = {R::start()};
        for (uint32_t first = begin + lane; first < end; first += team * DEPTH) {
            take_some<R, ITEM, false>(p, in, row, first, team, end, s);
        }
        if constexpr (ITEM::N > 1) { /* elements of the one row behind the last group */
            const int64_t step = p.base.summed.stride[1][0] / ITEM::N;
            for (uint32_t i = lane; active && part + 1 == p.base.parts && i < p.base.tail; i += team) {
                int64_t at = p.base.tail_at + i;
                R::take(s[0], element<typename R::number>(p.base.dtype, in, row + at), p.place + at * step);
            }
        }
        s[0] = team_state<R>(s[0], (int)team);
        if (active && lane == 0) {
            put_state<R>(p, out, part, result, s[0]);
        }
    }
}

template <typename R, typename ITEM>
static __global__ void __launch_bounds__(THREADS)
    across(const __grid_constant__ dmi_cuda_rows p, const void *__restrict__ in, void *out)
{
    typedef typename R::state S;
    const int N = ITEM::N;
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
        S s[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            s[e] = R::start();
        }
        for (uint32_t first = begin + y; active && first < end; first += rows * DEPTH) {
            take_some<R, ITEM, true>(p, in, column, first, rows, end, s);
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
template <typename R, typename ITEM>
static void launch_items(dmi_queue *q, const dmi_cuda_rows *p, unsigned blocks, const void *in, void *out)
{
    if (p->base.across) {
        across<R, ITEM><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, out);
    } else {
        along<R, ITEM><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, out);
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
            if constexpr (domain_of<typename R::number>::bits == domain_of<double>::bits) {
                p->base.dtype == DM_F32 ? launch_items<R, several<R, float, 4>>(q, p, blocks, in, out)
                                        : launch_items<R, several<R, bf16, 8>>(q, p, blocks, in, out);
            }
        } else {
            launch_items<R, single<R>>(q, p, blocks, in, out);
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
