/* Scans on GPUs. All orders are fixed by the descriptor. */
#include "kernels/reduce/reduction.cuh"
#include "kernels/reduce/sums.cuh"

extern "C" {
#include "kernels/order/order_cuda.h"
}

#include <cub/block/block_scan.cuh>

enum { THREADS = DMI_CUDA_THREADS };

/* Sums as rows of reduce.def are. */
template <typename S, typename N, typename RESULT> struct sums_of {
    typedef S state;
    typedef N number;
    typedef RESULT result;
    static const int kind = KIND_SUM;
    static __device__ __forceinline__ S start()
    {
        S a;
        clear(&a);
        return a;
    }
    static __device__ __forceinline__ void take(S &a, N x, int64_t) { take_one(&a, x); }
    static __device__ __forceinline__ void combine(S &a, const S &b) { a = joined(a, b); }
    static __device__ __forceinline__ RESULT finish(const S &a, double) { return result_one(a); }

  private:
    static __device__ __forceinline__ void take_one(sum_f64 *a, double x) { a->s = __dadd_rn(a->s, x); }
    static __device__ __forceinline__ void take_one(sum_dd *a, double x) { add(a, x); }
    static __device__ __forceinline__ void take_one(sum_i64 *a, int64_t x) { add(a, x); }
    static __device__ __forceinline__ double result_one(const sum_f64 &a) { return a.s; }
    static __device__ __forceinline__ double result_one(const sum_dd &a)
    {
        return finite_value(a.hi) ? __dadd_rn(a.hi, a.lo) : a.hi;
    }
    static __device__ __forceinline__ RESULT result_one(const sum_i64 &a) { return (RESULT)a.s; }
};

template <typename R> struct combined {
    __device__ __forceinline__ typename R::state operator()(const typename R::state &a, const typename R::state &b) const
    {
        typename R::state s = a;
        R::combine(s, b);
        return s;
    }
};

/* One thread's elements of a tile. Elements and results lie in shared memory, 20 kilobytes at most, with a gap behind those of
 * each thread, so that all threads of a warp reach theirs at once. */
template <typename R> struct tile {
    static const int size = sizeof(typename R::number) > sizeof(typename R::result) ? sizeof(typename R::number)
                                                                                    : sizeof(typename R::result);
    static const int items = size > 8 ? 4 : 8;
    static __device__ __forceinline__ int place(int i) { return i + i / items; }
};

template <typename R> static __device__ __forceinline__ typename R::number read(const dmi_cuda_scan &p, const void *in, int64_t at)
{
    return element<typename R::number>(p.dtype, in, at);
}

template <typename R>
static __device__ __forceinline__ typename R::state first_state(const dmi_cuda_scan &p, const void *starts, int64_t row)
{
    return starts ? read_acc<R>(p.number, starts, row) : R::start();
}

/* --- along: a thread block has a part of a row --- */
template <typename R>
static __global__ void __launch_bounds__(THREADS)
    totals_along(const __grid_constant__ dmi_cuda_scan p, const void *__restrict__ in, typename R::state *states)
{
    typedef typename R::state S;
    typedef cub::BlockScan<S, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage memory;
    const int64_t row = blockIdx.x / p.parts, part = blockIdx.x % p.parts;
    const int64_t from = part * p.part, to = DMI_MIN(from + p.part, p.n);
    int64_t at[3];
    locate<3>(p.rows, (uint32_t)row, at);
    S s = R::start(), before, all;
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        R::take(s, read<R>(p, in, at[0] + i * p.in_stride), 0);
    }
    block_scan(memory).ExclusiveScan(s, before, R::start(), combined<R>(), all);
    if (threadIdx.x == 0) {
        states[row * p.parts + part] = all;
    }
}

/* The states before each part of a row, from what the parts make: a thread block has a row, and takes as many parts at once as
 * it has threads. */
template <typename R>
static __global__ void __launch_bounds__(THREADS)
    states_before(const __grid_constant__ dmi_cuda_scan p, const void *starts, typename R::state *states)
{
    typedef typename R::state S;
    typedef cub::BlockScan<S, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage memory;
    for (int64_t row = blockIdx.x; row < p.rows.items; row += gridDim.x) {
        int64_t at[3];
        locate<3>(p.rows, (uint32_t)row, at);
        S running = first_state<R>(p, starts, at[2]);
        for (int64_t base = 0; base < p.parts; base += THREADS) {
            const int64_t part = base + threadIdx.x;
            S s = part < p.parts ? states[row * p.parts + part] : R::start(), before, all;
            block_scan(memory).ExclusiveScan(s, before, running, combined<R>(), all);
            R::combine(running, all);
            if (part < p.parts) {
                states[row * p.parts + part] = before;
            }
            __syncthreads();
        }
    }
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    scan_along(const __grid_constant__ dmi_cuda_scan p, const void *in, const void *starts,
               const typename R::state *states, void *out)
{
    typedef typename R::state S;
    typedef typename R::number number;
    typedef typename R::result result;
    typedef cub::BlockScan<S, THREADS> block_scan;
    const int ITEMS = tile<R>::items;
    __shared__ typename block_scan::TempStorage memory;
    __shared__ alignas(16) char elements[THREADS * (tile<R>::items + 1) * tile<R>::size];
    number *x = (number *)elements;
    result *made = (result *)elements;
    const int64_t row = blockIdx.x / p.parts, part = blockIdx.x % p.parts;
    const int64_t from = part * p.part, to = DMI_MIN(from + p.part, p.n);
    int64_t at[3];
    locate<3>(p.rows, (uint32_t)row, at);
    S running = states ? states[row * p.parts + part] : first_state<R>(p, starts, at[2]);
    for (int64_t base = from; base < to; base += THREADS * ITEMS) {
        number mine[ITEMS];
        result results[ITEMS];
        S s = R::start(), before, all;
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int64_t i = base + k * THREADS + threadIdx.x;
            if (i < to) {
                x[tile<R>::place(k * THREADS + threadIdx.x)] = read<R>(p, in, at[0] + i * p.in_stride);
            }
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            int i = threadIdx.x * ITEMS + e;
            if (base + i < to) {
                mine[e] = x[tile<R>::place(i)];
                R::take(s, mine[e], 0);
            }
        }
        block_scan(memory).ExclusiveScan(s, before, running, combined<R>(), all);
        R::combine(running, all);
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            if (base + threadIdx.x * ITEMS + e < to) {
                R::take(before, mine[e], 0);
                results[e] = R::finish(before, 1);
            }
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            if (base + threadIdx.x * ITEMS + e < to) {
                made[tile<R>::place(threadIdx.x * ITEMS + e)] = results[e];
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int64_t i = base + k * THREADS + threadIdx.x;
            if (i < to) {
                put(p.out_dtype, out, at[1] + i * p.out_stride, made[tile<R>::place(k * THREADS + threadIdx.x)]);
            }
        }
        __syncthreads();
    }
}

/* --- across: a thread has a part of a row, and its neighbours those of neighbouring rows --- */
template <typename R>
static __global__ void __launch_bounds__(THREADS)
    totals_across(const __grid_constant__ dmi_cuda_scan p, const void *__restrict__ in, typename R::state *states)
{
    int64_t job = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = job % p.rows.items, part = job / p.rows.items;
    if (part >= p.parts) {
        return;
    }
    int64_t at[3], to = DMI_MIN((part + 1) * p.part, p.n);
    locate<3>(p.rows, (uint32_t)row, at);
    typename R::state s = R::start();
    for (int64_t i = part * p.part; i < to; i++) {
        R::take(s, read<R>(p, in, at[0] + i * p.in_stride), 0);
    }
    states[row * p.parts + part] = s;
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    scan_across(const __grid_constant__ dmi_cuda_scan p, const void *in, const void *starts,
                const typename R::state *states, void *out)
{
    int64_t job = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = job % p.rows.items, part = job / p.rows.items;
    if (part >= p.parts) {
        return;
    }
    int64_t at[3], to = DMI_MIN((part + 1) * p.part, p.n);
    locate<3>(p.rows, (uint32_t)row, at);
    typename R::state s = states ? states[row * p.parts + part] : first_state<R>(p, starts, at[2]);
    for (int64_t i = part * p.part; i < to; i++) {
        R::take(s, read<R>(p, in, at[0] + i * p.in_stride), 0);
        put(p.out_dtype, out, at[1] + i * p.out_stride, R::finish(s, 1));
    }
}

template <typename R>
static void launch(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *memory, void *out)
{
    typedef typename R::state S;
    const int64_t jobs = (int64_t)p->rows.items * p->parts;
    const unsigned blocks = p->across ? blocks_for(jobs, THREADS) : (unsigned)jobs;
    S *states = p->parts > 1 ? (S *)memory : NULL;
    assert((int64_t)sizeof(S) == dmi_cuda_scan_bytes(p->acc));
    if (states) {
        if (p->across) {
            totals_across<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, states);
        } else {
            totals_along<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, states);
        }
        states_before<R><<<DMI_MIN(p->rows.items, 65535u), THREADS, 0, stream_of(q)>>>(*p, starts, states);
    }
    if (p->across) {
        scan_across<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, starts, states, out);
    } else {
        scan_along<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, in, starts, states, out);
    }
}

#define ROW(name, domain)                                                                                      \
    case DMI_REDUCTION_##name:                                                                                 \
        use_row<reduction_##name, DMI_DOMAIN_##domain>(dmi_acc_takes(p->acc), [&](auto tag) {                  \
            launch<typename decltype(tag)::row>(q, p, in, starts, states, out);                                \
        });                                                                                                    \
        break;

void dmi_cuda_launch_scan(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts, void *states, void *out)
{
    switch (dmi_acc_row(p->acc)) {
    case DMI_REDUCTION_sum:
        if (p->acc == DMI_ACC_DD) {
            launch<sums_of<sum_dd, double, double>>(q, p, in, starts, states, out);
        } else if (p->acc == DMI_ACC_F64) {
            launch<sums_of<sum_f64, double, double>>(q, p, in, starts, states, out);
        } else if (p->acc == DMI_ACC_U64) {
            launch<sums_of<sum_i64, int64_t, uint64_t>>(q, p, in, starts, states, out);
        } else {
            launch<sums_of<sum_i64, int64_t, int64_t>>(q, p, in, starts, states, out);
        }
        break;
        ROW(prod, ANY)
        ROW(min, REAL)
        ROW(max, REAL)
        ROW(logsumexp, FLOAT)
    default:
        dmi_cuda_failed(q, "scan", -1, "a plan has made one that the kernel does not do");
    }
    dmi_cuda_launched(q, "scan");
}
