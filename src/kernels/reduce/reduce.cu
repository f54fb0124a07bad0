/* Sums over dims. `along`: a team of threads on a result, side by side on the elements that are summed.
 * `across`: a thread on a group of neighbouring results, and several such rows of threads, each with a share of
 * the elements. Several thread blocks may make partial sums of one result, which `join` adds up, or, of one
 * result, the last of them. All orders are fixed.
 */
#include "kernels/reduce/sums.cuh"

enum { THREADS = DMI_CUDA_THREADS, WARP = 32 };

/* The sum of a team's sums, in its first thread; team: a power of two up to WARP, or THREADS. */
template <typename S> static __device__ __forceinline__ S team_sum(S s, int team)
{
    __shared__ S warps[THREADS / WARP];
    for (int by = (team < WARP ? team : WARP) / 2; by > 0; by /= 2) {
        s = joined(s, shuffled(s, by));
    }
    if (team > WARP) {
        __syncthreads();
        if (threadIdx.x % WARP == 0) {
            warps[threadIdx.x / WARP] = s;
        }
        __syncthreads();
        for (int w = 1; threadIdx.x == 0 && w < THREADS / WARP; w++) {
            s = joined(s, warps[w]);
        }
    }
    return s;
}

/* What a thread of a team has of the parts of a result, added up. */
template <typename S>
static __device__ __forceinline__ S joined_parts(const S *sums, int64_t parts, int64_t results, int64_t result,
                                                 uint32_t lane, uint32_t team)
{
    const int DEPTH = 8;
    S s;
    clear(&s);
    for (int64_t part = lane; part < parts; part += DEPTH * team) {
        S v[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) { /* all on their way at once */
            clear(&v[k]);
            if (part + k * team < parts) {
                v[k] = sums[(part + k * team) * results + result];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            s = joined(s, v[k]);
        }
    }
    return s;
}

template <typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    along(const __grid_constant__ dmi_cuda_reduce p, const void *__restrict__ in, void *sums)
{
    typedef typename sum_of<T>::type S;
    const int CHAINS = N < 4 ? N : 4, DEPTH = 4;
    const uint32_t teams = THREADS / p.team, lane = threadIdx.x % p.team;
    const int64_t jobs = (int64_t)p.kept.items * p.parts;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < jobs; base += (int64_t)gridDim.x * teams) {
        int64_t job = base + threadIdx.x / p.team;
        bool active = job < jobs;
        uint32_t result = active ? (uint32_t)(job / p.parts) : 0, part = active ? (uint32_t)(job % p.parts) : 0;
        int64_t at;
        locate<1>(p.kept, result, &at);
        uint32_t begin = part * p.items_per_part, end = DMI_MIN(begin + p.items_per_part, p.summed.items);
        end = active ? end : begin;
        const int64_t row = at;
        S s[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; c++) {
            clear(&s[c]);
        }
        for (uint32_t first = begin + lane; first < end; first += p.team * DEPTH) {
            group<T, N> v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                uint32_t i = first + k * p.team;
                if (i < end) {
                    locate<1>(p.summed, i, &at);
                    v[k] = fetched<T, N>::from(p.dtype, in, row + at);
                }
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (first + k * p.team < end) {
                    add_to_chains(s, v[k]);
                }
            }
        }
        if (active && part + 1 == p.parts) {
            for (uint32_t i = lane; i < p.tail; i += p.team) {
                add_element(&s[0], fetched<T, 1>::from(p.dtype, in, row + p.tail_at + i).v[0]);
            }
        }
        close_sums(s, [&](auto take) {
            for (uint32_t i = begin + lane; i < end; i += p.team) {
                locate<1>(p.summed, i, &at);
                const group<T, N> v = fetched<T, N>::from(p.dtype, in, row + at);
                for (int e = 0; e < N; e++) {
                    take(opened<typename summand<T>::type, T>(v.v[e]));
                }
            }
            for (uint32_t i = lane; active && part + 1 == p.parts && i < p.tail; i += p.team) {
                take(opened<typename summand<T>::type, T>(
                    fetched<T, 1>::from(p.dtype, in, row + p.tail_at + i).v[0]));
            }
        });
#pragma unroll
        for (int c = 1; c < CHAINS; c++) {
            s[0] = joined(s[0], s[c]);
        }
        s[0] = team_sum(s[0], (int)p.team);
        if (active && lane == 0) {
            ((S *)sums)[part * p.results + result] = s[0];
        }
    }
    if (p.ticket && last_block(p.ticket)) {
        const S all = team_sum(joined_parts((const S *)sums, p.parts, 1, 0, threadIdx.x, THREADS), THREADS);
        if (threadIdx.x == 0) {
            *(S *)p.acc = all;
        }
    }
}

template <typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    across(const __grid_constant__ dmi_cuda_reduce p, const void *__restrict__ in, void *sums)
{
    typedef typename sum_of<T>::type S;
    const int DEPTH = 4, PITCH = THREADS + 1; /* of the sums e: neighbours' banks differ */
    __shared__ S shared[PITCH * N];
    const uint32_t rows = THREADS / p.team, x = threadIdx.x % p.team, y = threadIdx.x / p.team;
    const uint32_t columns = (p.kept.items + p.team - 1) / p.team;
    for (int64_t job = blockIdx.x; job < (int64_t)columns * p.parts; job += gridDim.x) {
        uint32_t part = (uint32_t)(job / columns), result = (uint32_t)(job % columns) * p.team + x;
        bool active = result < p.kept.items;
        uint32_t begin = part * p.items_per_part, end = DMI_MIN(begin + p.items_per_part, p.summed.items);
        int64_t at;
        locate<1>(p.kept, active ? result : 0, &at);
        const int64_t column = at;
        S s[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            clear(&s[e]);
        }
        for (uint32_t first = begin + y; active && first < end; first += rows * DEPTH) {
            group<T, N> v[DEPTH];
            bool valid[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                uint32_t i = first + k * rows;
                valid[k] = i < end;
                if (valid[k]) {
                    locate<1>(p.summed, i, &at);
                    v[k] = fetched<T, N>::from(p.dtype, in, column + at);
                }
            }
            add_rows(s, v, valid);
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            S one[1] = {s[e]};
            close_sums(one, [&](auto take) {
                for (uint32_t i = begin + y; active && i < end; i += rows) {
                    locate<1>(p.summed, i, &at);
                    take(opened<typename summand<T>::type, T>(
                        fetched<T, N>::from(p.dtype, in, column + at).v[e]));
                }
            });
            s[e] = one[0];
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < N; e++) {
            shared[e * PITCH + threadIdx.x] = s[e];
        }
        for (uint32_t by = rows / 2; by > 0; by /= 2) {
            __syncthreads();
#pragma unroll
            for (int e = 0; y < by && e < N; e++) {
                S *sum = shared + e * PITCH + threadIdx.x;
                *sum = joined(sum[0], sum[by * p.team]);
            }
        }
        __syncthreads();
        const uint32_t first = result - x, count = DMI_MIN(p.team, p.kept.items - first) * N;
        S *place = (S *)sums + part * p.results + (int64_t)first * N;
        for (uint32_t i = threadIdx.x; i < count; i += THREADS) { /* the thread block's results lie together */
            place[i] = shared[i % N * PITCH + i / N];
        }
    }
}

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    join(int64_t parts, int64_t results, uint32_t team, const S *__restrict__ sums, S *__restrict__ acc)
{
    const uint32_t teams = THREADS / team, lane = threadIdx.x % team;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < results; base += (int64_t)gridDim.x * teams) {
        int64_t result = base + threadIdx.x / team;
        S s = joined_parts(sums, result < results ? parts : 0, results, result, lane, team);
        s = team_sum(s, (int)team);
        if (result < results && lane == 0) {
            acc[result] = s;
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename T, int N>
static void launch(dmi_queue *q, const dmi_cuda_reduce *p, const void *in, void *sums)
{
    unsigned blocks = dmi_cuda_reduce_blocks(p);
    if (p->across) {
        across<T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, sums);
    } else {
        along<T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, sums);
    }
}

void dmi_cuda_launch_reduce(dmi_queue *q, const dmi_cuda_reduce *p, const void *in, void *sums)
{
    const dm_dtype dtype = p->dtype;
#define CALL(type)                                                                                             \
    do {                                                                                                       \
        if (p->group > 1) {                                                                                    \
            launch<type, 16 / sizeof(type)>(q, p, in, sums);                                                   \
        } else {                                                                                               \
            launch<type, 1>(q, p, in, sums);                                                                   \
        }                                                                                                      \
    } while (0)
    if (!dmi_cuda_hot(dtype) && dmi_dtype_is_float(dtype)) {
        launch<every_float, 1>(q, p, in, sums);
    } else if (!dmi_cuda_hot(dtype)) {
        launch<every_whole, 1>(q, p, in, sums);
    } else {
        DMI_CUDA_BY_TYPE(dtype, CALL)
    }
#undef CALL
    dmi_cuda_launched(q, "sum");
}

template <typename S>
static void launch_join(dmi_queue *q, int64_t parts, int64_t results, const void *sums, void *acc)
{
    uint32_t team = results >= 4096 || parts < WARP ? 1 : results == 1 ? THREADS : WARP;
    unsigned blocks = blocks_for(results, THREADS / team);
    join<S><<<blocks, THREADS, 0, stream_of(q)>>>(parts, results, team, (const S *)sums, (S *)acc);
}

void dmi_cuda_launch_join(dmi_queue *q, int acc_kind, int64_t parts, int64_t results, const void *sums,
                          void *acc)
{
    if (acc_kind == DMI_ACC_DD) {
        launch_join<sum_dd>(q, parts, results, sums, acc);
    } else if (acc_kind == DMI_ACC_F64) {
        launch_join<sum_f64>(q, parts, results, sums, acc);
    } else {
        launch_join<sum_i64>(q, parts, results, sums, acc);
    }
    dmi_cuda_launched(q, "sum of parts");
}
