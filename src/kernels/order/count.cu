/* Searches in sorted elements, and counts by bins, on GPUs. Numbers are compared as double or as 64-bit integers, which hold those
 * of the narrower types. */
#include "kernels/reduce/reduction.cuh"

extern "C" {
#include "kernels/order/order_cuda.h"
}

enum { THREADS = DMI_CUDA_THREADS, SHARED_BINS = 4096, NO_BIN = -1 };

template <typename N> static __device__ __forceinline__ bool comes_before(N a, N b, bool descending)
{
    N x = descending ? b : a, y = descending ? a : b;
    return x < y || (y != y && x == x);
}

/* How many of the sorted elements come before v (right: not behind it). */
template <typename N>
static __device__ __forceinline__ int64_t place_of(dm_dtype type, const void *sorted, int64_t count, bool right,
                                                   bool descending, N v)
{
    int64_t from = 0;
    while (count > 0) {
        int64_t half = count / 2;
        N a = element<N>(type, sorted, from + half);
        if (right ? !comes_before(v, a, descending) : comes_before(a, v, descending)) {
            from += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return from;
}

template <typename N>
static __global__ void __launch_bounds__(THREADS)
    search(const __grid_constant__ dmi_cuda_box box, const __grid_constant__ dmi_search d, const void *__restrict__ sorted,
           const void *__restrict__ v, int64_t *out)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<2, 1>(box, at, valid);
    if (valid[0]) {
        int64_t *to = &out[at[0][1]];
        int64_t place =
            place_of<N>(d.stored, sorted, d.count, d.right, d.descending, element<N>(d.dtype, v, at[0][0]));
        *to = d.adds ? *to + place : place;
    }
}

/* The bin of an element; NO_BIN. The arithmetic is the CPU's. */
template <typename N>
static __device__ __forceinline__ int64_t bin_of(const dmi_histogram &d, const void *edges, const void *x, int64_t at)
{
    N v = element<N>(d.dtype, x, at);
    if (d.kind == DMI_BINS_EDGES) {
        if (comes_before(element<N>(d.type, edges, d.bins), v, false)) {
            return NO_BIN;
        }
        return DMI_MIN(place_of<N>(d.type, edges, d.bins + 1, true, false, v) - 1, d.bins - 1);
    }
    if (d.kind == DMI_BINS_WHOLE) {
        return (int64_t)v >= 0 && (int64_t)v < d.bins ? (int64_t)v : NO_BIN;
    }
    double real = (double)v, step = (d.hi - d.lo) / (double)d.bins, scale = (double)d.bins / (d.hi - d.lo);
    if (!(real >= d.lo && real <= d.hi)) {
        return NO_BIN;
    }
    int64_t last = d.bins - 1, k = DMI_MIN((int64_t)((real - d.lo) * scale), last);
    k -= k > 0 && real < d.lo + (double)k * step;
    k += k < last && real >= d.lo + (double)(k + 1) * step;
    return k;
}

static __device__ __forceinline__ void add_one(const dmi_histogram &d, bool real, void *counts, int64_t bin,
                                               const void *weights, int64_t at)
{
    if (d.weights == 0) {
        atomicAdd((unsigned long long *)counts + bin, 1ull);
    } else if (real) {
        atomicAdd((double *)counts + bin, element<double>(d.weights, weights, at));
    } else {
        unsigned long long w = d.weights == DM_U64 ? (unsigned long long)((const uint64_t *)weights)[at]
                                                   : (unsigned long long)element<int64_t>(d.weights, weights, at);
        atomicAdd((unsigned long long *)counts + bin, w);
    }
}

/* few: the bins fit into shared memory; real: the counts are sums of weights in f64. */
template <typename N>
static __global__ void __launch_bounds__(THREADS)
    histogram(const __grid_constant__ dmi_cuda_box box, const __grid_constant__ dmi_histogram d, bool few, bool real,
              const void *__restrict__ x, const void *__restrict__ weights, const void *__restrict__ edges, void *counts)
{
    __shared__ unsigned long long own[SHARED_BINS];
    for (int64_t k = threadIdx.x; few && k < d.bins; k += THREADS) {
        own[k] = 0; /* 0.0 too */
    }
    __syncthreads();
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < box.items; i += gridDim.x * THREADS) {
        int64_t at[2];
        locate<2>(box, i, at);
        int64_t bin = bin_of<N>(d, edges, x, at[0]);
        if (bin >= 0) {
            add_one(d, real, few ? (void *)own : counts, bin, weights, at[1]);
        }
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; few && k < d.bins; k += THREADS) {
        if (own[k] == 0) {
            continue;
        }
        if (real) {
            atomicAdd((double *)counts + k, __longlong_as_double((long long)own[k]));
        } else {
            atomicAdd((unsigned long long *)counts + k, own[k]);
        }
    }
}

/* use(number) with a value of the type in which `type` is compared. */
template <typename F> static void with_number(dm_dtype type, F use)
{
    if (dmi_dtype_is_float(type)) {
        use(double());
    } else if (type == DM_U64) {
        use(uint64_t());
    } else {
        use(int64_t());
    }
}

void dmi_cuda_launch_search(dmi_queue *q, const dmi_cuda_box *box, const dmi_search *d, const void *sorted, const void *v,
                            int64_t *out)
{
    dmi_cuda_box here = *box;
    unsigned blocks = blocks_for(&here, 1);
    with_number(d->type, [&](auto number) {
        search<decltype(number)><<<blocks, THREADS, 0, stream_of(q)>>>(here, *d, sorted, v, out);
    });
    dmi_cuda_launched(q, "search in sorted elements");
}

void dmi_cuda_launch_histogram(dmi_queue *q, const dmi_cuda_box *box, const dmi_histogram *d, const void *x,
                               const void *weights, const void *edges, void *counts)
{
    bool real = d->weights != 0 && dmi_dtype_is_float(d->weights);
    unsigned blocks = DMI_MIN(blocks_for(box->items, THREADS), (unsigned)q->multiprocessors * 8);
    with_number(d->type, [&](auto number) {
        histogram<decltype(number)>
            <<<blocks, THREADS, 0, stream_of(q)>>>(*box, *d, d->bins <= SHARED_BINS, real, x, weights, edges, counts);
    });
    dmi_cuda_launched(q, "histogram");
}
