/* Copies: strided boxes and products of runs, as they are or converted. */
#include "kernels/cuda/convert.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* Items a thread has under way at once. */
template <typename T> struct depth {
    static const int value = sizeof(T) >= 16 ? 4 : 8;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    move(const __grid_constant__ dmi_cuda_box box, const T *__restrict__ src, T *__restrict__ dst)
{
    const int DEPTH = depth<T>::value;
    uint32_t step = gridDim.x * (THREADS * DEPTH);
    for (uint32_t first = blockIdx.x * (THREADS * DEPTH) + threadIdx.x; first < box.items; first += step) {
        T v[DEPTH];
        int64_t to[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = first + k * THREADS;
            if (i < box.items) {
                int64_t at[2];
                locate<2>(box, i, at);
                v[k] = src[at[0]];
                to[k] = at[1];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * THREADS < box.items) {
                dst[to[k]] = v[k];
            }
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    move_runs(const __grid_constant__ dmi_cuda_runs runs, const T *__restrict__ src, T *__restrict__ dst)
{
    const int DEPTH = 4;
    uint32_t step = gridDim.x * (THREADS * DEPTH);
    for (uint32_t first = blockIdx.x * (THREADS * DEPTH) + threadIdx.x; first < runs.items; first += step) {
        T v[DEPTH];
        int64_t to[DEPTH];
        bool inside[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = first + k * THREADS;
            int64_t from;
            inside[k] = i < runs.items && locate(runs, i, &from, &to[k]);
            if (inside[k]) {
                v[k] = src[from];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (inside[k]) {
                dst[to[k]] = v[k];
            }
        }
    }
}

/* C holds every value of the source's type. */
template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert(const __grid_constant__ dmi_cuda_box box, dm_dtype from, dm_dtype to, const void *__restrict__ src,
            void *__restrict__ dst)
{
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < box.items; i += gridDim.x * THREADS) {
        int64_t at[2];
        C v;
        locate<2>(box, i, at);
        load_any<C, 1>(from, src, at[0], &v);
        store_any<C, 1>(to, dst, at[1], &v);
    }
}

template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert_runs(const __grid_constant__ dmi_cuda_runs runs, dm_dtype from, dm_dtype to,
                 const void *__restrict__ src, void *__restrict__ dst)
{
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < runs.items; i += gridDim.x * THREADS) {
        int64_t a, b;
        C v;
        if (locate(runs, i, &a, &b)) {
            load_any<C, 1>(from, src, a, &v);
            store_any<C, 1>(to, dst, b, &v);
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename T> static void move_box(dmi_queue *q, const dmi_cuda_box *box, const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, box->items, THREADS * depth<T>::value);
    move<T><<<blocks, THREADS, 0, stream_of(q)>>>(*box, (const T *)src, (T *)dst);
}

void dmi_cuda_launch_move(dmi_queue *q, int unit, const dmi_cuda_box *box, const void *src, void *dst)
{
    switch (unit) {
    case 1:
        move_box<uint8_t>(q, box, src, dst);
        break;
    case 2:
        move_box<uint16_t>(q, box, src, dst);
        break;
    case 4:
        move_box<uint32_t>(q, box, src, dst);
        break;
    case 8:
        move_box<uint64_t>(q, box, src, dst);
        break;
    default:
        move_box<uint4>(q, box, src, dst);
        break;
    }
    dmi_cuda_launched(q, "copy");
}

template <typename T>
static void move_all_runs(dmi_queue *q, const dmi_cuda_runs *runs, const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, runs->items, THREADS * 4);
    move_runs<T><<<blocks, THREADS, 0, stream_of(q)>>>(*runs, (const T *)src, (T *)dst);
}

void dmi_cuda_launch_move_runs(dmi_queue *q, int unit, const dmi_cuda_runs *runs, const void *src, void *dst)
{
    switch (unit) {
    case 1:
        move_all_runs<uint8_t>(q, runs, src, dst);
        break;
    case 2:
        move_all_runs<uint16_t>(q, runs, src, dst);
        break;
    case 4:
        move_all_runs<uint32_t>(q, runs, src, dst);
        break;
    case 8:
        move_all_runs<uint64_t>(q, runs, src, dst);
        break;
    default:
        move_all_runs<uint4>(q, runs, src, dst);
        break;
    }
    dmi_cuda_launched(q, "copy of runs");
}

void dmi_cuda_launch_convert(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box, const void *src,
                             void *dst)
{
    unsigned blocks = blocks_for(q, box->items, THREADS);
    if (from <= DM_BF16) {
        convert<double><<<blocks, THREADS, 0, stream_of(q)>>>(*box, from, to, src, dst);
    } else {
        convert<int64_t><<<blocks, THREADS, 0, stream_of(q)>>>(*box, from, to, src, dst);
    }
    dmi_cuda_launched(q, "conversion");
}

void dmi_cuda_launch_convert_runs(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_runs *runs,
                                  const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, runs->items, THREADS);
    if (from <= DM_BF16) {
        convert_runs<double><<<blocks, THREADS, 0, stream_of(q)>>>(*runs, from, to, src, dst);
    } else {
        convert_runs<int64_t><<<blocks, THREADS, 0, stream_of(q)>>>(*runs, from, to, src, dst);
    }
    dmi_cuda_launched(q, "conversion of runs");
}
