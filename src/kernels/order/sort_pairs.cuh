/* Sorting on GPUs: CUB's radix sort of keys with the places of their elements. P: the type of places. */
#ifndef DMI_SORT_PAIRS_CUH
#define DMI_SORT_PAIRS_CUH

#include "kernels/cuda/common.cuh"

#include <cub/device/device_radix_sort.cuh>

extern "C" {
#include "kernels/order/order_cuda.h"
}

enum { THREADS = DMI_CUDA_THREADS };

/* As dmi_sort_cpu's keys: NaN as the largest, -0 as 0. */
template <typename K> static __device__ __forceinline__ K key_of(const dmi_cuda_sort &p, K bits)
{
    const K top = (K)((K)1 << (8 * sizeof(K) - 1)), flip = p.descending ? (K) ~(K)0 : (K)0;
    if (p.kind != DMI_SORT_FLOAT) {
        return (K)(bits ^ (p.kind == DMI_SORT_SIGNED ? top : (K)0) ^ flip);
    }
    K size = (K)(bits & (K)~top), k = bits & top ? (K)(top - size) : (K)(bits | top);
    k = size > (K)p.most_bits ? (K) ~(K)0 : k;
    return (K)(k ^ flip);
}

template <typename K, typename P>
static __global__ void __launch_bounds__(THREADS)
    make_keys(const __grid_constant__ dmi_cuda_sort p, const K *__restrict__ x, K *key, P *place)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / p.n, at[4];
        locate<4>(p.rows, (uint32_t)row, at);
        key[i] = key_of<K>(p, x[at[0] + (i - row * p.n) * p.stride[0]]);
        place[i] = (P)i;
    }
}

template <typename P>
static __global__ void __launch_bounds__(THREADS)
    make_rows(int64_t count, int64_t n, const P *__restrict__ place, uint32_t *row)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
        row[i] = (uint32_t)(place[i] / (P)n);
    }
}

/* What is wanted of each row. The elements go to `dense` where they may not go to their places yet. */
template <typename K, typename P>
static __global__ void __launch_bounds__(THREADS)
    take(const __grid_constant__ dmi_cuda_sort p, const P *__restrict__ place, const K *x, K *values, K *dense,
         int64_t *indices, const int64_t *carried)
{
    const int64_t wanted = (int64_t)p.rows.items * p.most;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < wanted;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / p.most, k = i - row * p.most, at[4];
        int64_t from = (int64_t)place[row * p.n + k] - row * p.n;
        locate<4>(p.rows, (uint32_t)row, at);
        if (dense) {
            dense[i] = x[at[0] + from * p.stride[0]];
        } else if (values) {
            values[at[1] + k * p.stride[1]] = x[at[0] + from * p.stride[0]];
        }
        if (indices) {
            indices[at[2] + k * p.stride[2]] = carried ? carried[at[3] + from * p.stride[3]] : p.first + from;
        }
    }
}

/* The elements of one sorted row, from their keys; those whose key does not tell them, NaN and zeros, from x.
 */
template <typename K, typename P>
static __global__ void __launch_bounds__(THREADS)
    elements_of_keys(const __grid_constant__ dmi_cuda_sort p, const K *__restrict__ key,
                     const P *__restrict__ place, const K *x, K *values, K *dense)
{
    const K top = (K)((K)1 << (8 * sizeof(K) - 1)), flip = p.descending ? (K) ~(K)0 : (K)0;
    int64_t at[4];
    locate<4>(p.rows, 0, at);
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < p.most;
         i += (int64_t)gridDim.x * THREADS) {
        const K k = (K)(key[i] ^ flip);
        K bits = (K)(p.kind == DMI_SORT_SIGNED ? k ^ top : k);
        if (p.kind == DMI_SORT_FLOAT) {
            const bool tells = k != top && k != (K) ~(K)0;
            bits = !tells    ? x[at[0] + (int64_t)place[i] * p.stride[0]]
                   : k & top ? (K)(k ^ top)
                             : (K)(top | (K)(top - k));
        }
        (dense ? dense[i] : values[at[1] + i * p.stride[1]]) = bits;
    }
}

template <typename K>
static __global__ void __launch_bounds__(THREADS)
    spread(const __grid_constant__ dmi_cuda_sort p, const K *__restrict__ dense, K *values)
{
    const int64_t wanted = (int64_t)p.rows.items * p.most;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < wanted;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / p.most, at[4];
        locate<4>(p.rows, (uint32_t)row, at);
        values[at[1] + (i - row * p.most) * p.stride[1]] = dense[i];
    }
}

/* Sorts the pairs; afterwards they are in the first buffers. */
template <typename K, typename P>
static bool sort_pairs(dmi_queue *q, const dmi_cuda_sort *p, void *(&key)[2], P *(&place)[2], int bits)
{
    cub::DoubleBuffer<K> keys((K *)key[0], (K *)key[1]);
    cub::DoubleBuffer<P> places(place[0], place[1]);
    size_t bytes = 0;
    cudaError_t e = cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, places, p->count, 0, bits, stream_of(q));
    if (e == cudaSuccess && (int64_t)bytes > p->temporary_bytes) {
        dmi_cuda_failed(q, "sort", -1, "CUB needs more memory than a plan gives");
        return false;
    }
    if (e == cudaSuccess) {
        e = cub::DeviceRadixSort::SortPairs(p->temporary, bytes, keys, places, p->count, 0, bits, stream_of(q));
    }
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cub::DeviceRadixSort", (int)e, cudaGetErrorString(e));
        return false;
    }
    key[0] = keys.Current();
    key[1] = keys.Alternate();
    place[0] = places.Current();
    place[1] = places.Alternate();
    return true;
}

static unsigned blocks_of(const dmi_queue *q, int64_t items)
{
    return (unsigned)DMI_MAX(DMI_MIN((items + THREADS - 1) / THREADS, (int64_t)q->multiprocessors * 32), 1);
}

template <typename K, typename P>
static void sort_all(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                     int64_t *indices, const int64_t *carried)
{
    void *key[2] = {p->key[0], p->key[1]};
    P *place[2] = {(P *)p->place[0], (P *)p->place[1]};
    int bits = 0;
    make_keys<K, P>
        <<<blocks_of(q, p->count), THREADS, 0, stream_of(q)>>>(*p, (const K *)x, (K *)key[0], place[0]);
    if (!sort_pairs<K, P>(q, p, key, place, 8 * sizeof(K))) {
        return;
    }
    while (bits < 32 && p->rows.items > UINT64_C(1) << bits) {
        bits++;
    }
    if (bits > 0) { /* stable: within a row the keys stay in order */
        make_rows<P><<<blocks_of(q, p->count), THREADS, 0, stream_of(q)>>>(p->count, p->n, place[0],
                                                                           (uint32_t *)key[0]);
        if (!sort_pairs<uint32_t, P>(q, p, key, place, bits)) {
            return;
        }
    }
    const int64_t wanted = (int64_t)p->rows.items * p->most;
    K *dense = values && !direct ? (K *)key[1] : NULL;
    if (bits == 0 && values && !indices) {
        elements_of_keys<K, P><<<blocks_of(q, wanted), THREADS, 0, stream_of(q)>>>(
            *p, (const K *)key[0], place[0], (const K *)x, (K *)values, dense);
    } else {
        take<K, P><<<blocks_of(q, wanted), THREADS, 0, stream_of(q)>>>(*p, place[0], (const K *)x, (K *)values,
                                                                       dense, indices, carried);
    }
    if (dense) {
        spread<K><<<blocks_of(q, wanted), THREADS, 0, stream_of(q)>>>(*p, dense, (K *)values);
    }
    dmi_cuda_launched(q, "sort");
}

template <typename P>
static void sort_with_places(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                             int64_t *indices, const int64_t *carried)
{
    switch (p->bytes) {
    case 1:
        sort_all<uint8_t, P>(q, p, x, values, direct, indices, carried);
        break;
    case 2:
        sort_all<uint16_t, P>(q, p, x, values, direct, indices, carried);
        break;
    case 4:
        sort_all<uint32_t, P>(q, p, x, values, direct, indices, carried);
        break;
    case 8:
        sort_all<unsigned long long, P>(q, p, x, values, direct, indices, carried);
        break;
    default:
        dmi_cuda_failed(q, "sort", -1, "no kernel for elements of this size");
    }
}

#endif
