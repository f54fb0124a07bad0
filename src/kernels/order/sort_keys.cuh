/* Sorting one long row of which only the elements are wanted: CUB's radix sort of the elements themselves, without places
 * (adr/0051). It takes -0 and 0 for equal and keeps their order. NaN, which it puts at both ends by their bits, are set right
 * afterwards; without NaN the kernels for that look at both ends and are done. */
#ifndef DMI_SORT_KEYS_CUH
#define DMI_SORT_KEYS_CUH

#include "kernels/cuda/common.cuh"

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

extern "C" {
#include "kernels/order/order_cuda.h"
}

enum { THREADS = DMI_CUDA_THREADS, PARTS = 1024 };

/* The row, once it is sorted by bits; x: as it was. */
template <typename K> struct sorted_row {
    const K *x;
    K *values, *copy; /* copy: room for the row */
    unsigned long long *counts; /* [PARTS + 1]: NaN of a part of x; then, of those before it; last: all */
    int64_t n, part;
    K most_bits;
    bool descending;
    __device__ __forceinline__ bool nan(K bits) const
    {
        return (K)(bits & (K)~(K)((K)1 << (8 * sizeof(K) - 1))) > most_bits;
    }
    __device__ __forceinline__ bool has_nan() const { return nan(values[0]) || nan(values[n - 1]); }
};

template <typename K> static __global__ void __launch_bounds__(THREADS) count_nan(const __grid_constant__ sorted_row<K> r)
{
    if (!r.has_nan()) {
        return;
    }
    const int64_t from = blockIdx.x * r.part, to = DMI_MIN(from + r.part, r.n);
    unsigned long long mine = 0;
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
        mine += r.nan(r.x[i]);
        r.copy[i] = r.values[i];
    }
    typedef cub::BlockScan<unsigned long long, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage memory;
    unsigned long long before, all;
    block_scan(memory).ExclusiveSum(mine, before, all);
    if (threadIdx.x == 0) {
        r.counts[blockIdx.x] = all;
    }
}

template <typename K> static __global__ void __launch_bounds__(THREADS) add_nan(const __grid_constant__ sorted_row<K> r)
{
    if (!r.has_nan()) {
        return;
    }
    typedef cub::BlockScan<unsigned long long, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage memory;
    unsigned long long v[PARTS / THREADS], all;
    for (int k = 0; k < PARTS / THREADS; k++) {
        v[k] = r.counts[threadIdx.x * (PARTS / THREADS) + k];
    }
    block_scan(memory).ExclusiveSum(v, v, all);
    for (int k = 0; k < PARTS / THREADS; k++) {
        r.counts[threadIdx.x * (PARTS / THREADS) + k] = v[k];
    }
    if (threadIdx.x == 0) {
        r.counts[PARTS] = all;
    }
}

/* NaN in their order at one end, all others, which are sorted, at the other. */
template <typename K> static __global__ void __launch_bounds__(THREADS) place_nan(const __grid_constant__ sorted_row<K> r)
{
    if (r.counts[PARTS] == 0) {
        return;
    }
    const int64_t from = blockIdx.x * r.part, to = DMI_MIN(from + r.part, r.n), all = (int64_t)r.counts[PARTS],
                  numbers = r.n - all;
    int64_t low = 0, high = all; /* NaN at the beginning of the copy */
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (r.nan(r.copy[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    K *nans = r.descending ? r.values : r.values + numbers, *others = r.descending ? r.values + all : r.values;
    for (int64_t i = from + threadIdx.x; i < DMI_MIN(to, numbers); i += THREADS) {
        others[i] = r.copy[i + low];
    }
    typedef cub::BlockScan<uint32_t, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage memory;
    int64_t next = (int64_t)r.counts[blockIdx.x];
    for (int64_t base = from; base < to; base += THREADS) {
        const int64_t i = base + threadIdx.x;
        const bool is = i < to && r.nan(r.x[i]);
        uint32_t before, here;
        block_scan(memory).ExclusiveSum((uint32_t)is, before, here);
        if (is) {
            nans[next + before] = r.x[i];
        }
        next += here;
        __syncthreads();
    }
}

/* T: the type as CUB orders it; N: that of its counts. CUB is faster with 32 bits. Without memory: how much it
 * takes. */
template <typename T, typename N>
static cudaError_t sort_keys(dmi_queue *q, bool descending, void *memory, size_t *bytes, const T *from, T *to,
                             N n)
{
    const int bits = 8 * (int)sizeof(T);
    return descending
               ? cub::DeviceRadixSort::SortKeysDescending(memory, *bytes, from, to, n, 0, bits, stream_of(q))
               : cub::DeviceRadixSort::SortKeys(memory, *bytes, from, to, n, 0, bits, stream_of(q));
}

template <typename T, typename K>
static void sort_as(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct)
{
    const int64_t bytes_of_row = p->n * (int64_t)sizeof(K);
    const bool is_float = p->kind == DMI_SORT_FLOAT;
    char *room = (char *)p->key[1]; /* what follows up to the end of the scratch memory is free too */
    size_t bytes = 0, most = (size_t)((char *)p->temporary + p->temporary_bytes - room);
    const bool wide = p->wide || p->n > INT32_MAX;
    const T *from = (const T *)x;
    T *to = (T *)values;
    cudaError_t e = cudaSuccess;
    if (!direct) { /* the row goes to its own place */
        e = cudaMemcpyAsync(p->key[0], x, (size_t)bytes_of_row, cudaMemcpyDeviceToDevice, stream_of(q));
        from = (const T *)p->key[0];
    }
    for (int run = 0; run < 2 && e == cudaSuccess; run++) { /* first only the bytes */
        void *memory = run == 0 ? NULL : room;
        e = wide ? sort_keys(q, p->descending, memory, &bytes, from, to, p->n)
                 : sort_keys(q, p->descending, memory, &bytes, from, to, (int)p->n);
        if (e == cudaSuccess && bytes > most) {
            dmi_cuda_failed(q, "sort", -1, "CUB needs more memory than a plan gives");
            return;
        }
    }
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cub::DeviceRadixSort", (int)e, cudaGetErrorString(e));
        return;
    }
    if (is_float) {
        sorted_row<K> r = {(const K *)(const void *)from,
                           (K *)values,
                           (K *)(void *)room,
                           (unsigned long long *)p->place[0],
                           p->n,
                           (p->n + PARTS - 1) / PARTS,
                           (K)p->most_bits,
                           p->descending};
        static_assert((PARTS + 1) * sizeof *r.counts <= DMI_SORT_COUNTS, "counts lie where places would");
        assert(room + bytes_of_row <= (char *)p->place[0]);
        e = cudaMemsetAsync(r.counts + PARTS, 0, sizeof *r.counts, stream_of(q));
        if (e != cudaSuccess) {
            dmi_cuda_failed(q, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
            return;
        }
        count_nan<K><<<PARTS, THREADS, 0, stream_of(q)>>>(r);
        add_nan<K><<<1, THREADS, 0, stream_of(q)>>>(r);
        place_nan<K><<<PARTS, THREADS, 0, stream_of(q)>>>(r);
    }
    dmi_cuda_launched(q, "sort");
}

#endif
