/* Copies: strided boxes and products of runs, as they are or converted. */
#include "kernels/cuda/dtypes.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* Items that a thread has in flight. */
template <typename T> struct depth {
    static const int value = sizeof(T) == 16 ? 1 : sizeof(T) == 8 ? 2 : sizeof(T) == 4 ? 4 : 8;
};
enum { RUNS_DEPTH = 2, CONVERT_DEPTH = 4 };

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    move(const __grid_constant__ dmi_cuda_box box, const T *__restrict__ src, T *__restrict__ dst)
{
    const int DEPTH = depth<T>::value;
    int64_t at[DEPTH][2];
    bool valid[DEPTH];
    T v[DEPTH];
    locate_all<2, DEPTH>(box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            v[k] = src[at[k][0]];
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            dst[at[k][1]] = v[k];
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    move_runs(const __grid_constant__ dmi_cuda_runs runs, const T *__restrict__ src, T *__restrict__ dst)
{
    int64_t at[RUNS_DEPTH][2];
    bool valid[RUNS_DEPTH];
    T v[RUNS_DEPTH];
    locate_all<RUNS_DEPTH>(runs, at, valid);
#pragma unroll
    for (int k = 0; k < RUNS_DEPTH; k++) {
        if (valid[k]) {
            v[k] = src[at[k][0]];
        }
    }
#pragma unroll
    for (int k = 0; k < RUNS_DEPTH; k++) {
        if (valid[k]) {
            dst[at[k][1]] = v[k];
        }
    }
}

/* C holds every value of the source's type. */
template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert(const __grid_constant__ dmi_cuda_box box, dm_dtype from, dm_dtype to, const void *__restrict__ src,
            void *__restrict__ dst)
{
    int64_t at[CONVERT_DEPTH][2];
    bool valid[CONVERT_DEPTH];
    C v[CONVERT_DEPTH][1];
    locate_all<2, CONVERT_DEPTH>(box, at, valid);
    load_items(from, src, at, 0, valid, v);
    store_items(to, dst, at, 1, valid, v);
}

template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert_runs(const __grid_constant__ dmi_cuda_runs runs, dm_dtype from, dm_dtype to,
                 const void *__restrict__ src, void *__restrict__ dst)
{
    int64_t at[RUNS_DEPTH][2];
    bool valid[RUNS_DEPTH];
    C v[RUNS_DEPTH][1];
    locate_all<RUNS_DEPTH>(runs, at, valid);
    load_items(from, src, at, 0, valid, v);
    store_items(to, dst, at, 1, valid, v);
}

/* The same for every type, an item at a time. */
template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert_every(const __grid_constant__ dmi_cuda_box box, dm_dtype from, dm_dtype to,
                  const void *__restrict__ src, void *__restrict__ dst)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<2, 1>(box, at, valid);
    if (valid[0]) {
        C v;
        load_one(from, src, at[0][0], &v);
        store_one(to, dst, at[0][1], v);
    }
}
template <typename C>
static __global__ void __launch_bounds__(THREADS)
    convert_every_runs(const __grid_constant__ dmi_cuda_runs runs, dm_dtype from, dm_dtype to,
                       const void *__restrict__ src, void *__restrict__ dst)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<1>(runs, at, valid);
    if (valid[0]) {
        C v;
        load_one(from, src, at[0][0], &v);
        store_one(to, dst, at[0][1], v);
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename T> static void move_box(dmi_queue *q, const dmi_cuda_box *box, const void *src, void *dst)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, depth<T>::value);
    move<T><<<blocks, THREADS, 0, stream_of(q)>>>(b, (const T *)src, (T *)dst);
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
    dmi_cuda_runs here = *runs;
    unsigned blocks = blocks_for(&here, RUNS_DEPTH);
    move_runs<T><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const T *)src, (T *)dst);
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

static bool is_complex(dm_dtype t)
{
    return t == DM_C64 || t == DM_C128;
}

template <typename C>
static void every_box(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box, const void *src,
                      void *dst)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, 1);
    convert_every<C><<<blocks, THREADS, 0, stream_of(q)>>>(b, from, to, src, dst);
}
template <typename C>
static void every_runs(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_runs *runs, const void *src,
                       void *dst)
{
    dmi_cuda_runs here = *runs;
    unsigned blocks = blocks_for(&here, 1);
    convert_every_runs<C><<<blocks, THREADS, 0, stream_of(q)>>>(here, from, to, src, dst);
}
/* FN by the carrier of the source. */
#define BY_CARRIER(FN, q, from, to, geometry, src, dst)                                                        \
    do {                                                                                                       \
        if (is_complex(from) && (is_complex(to) || (to) == DM_BOOL)) {                                         \
            FN<dm_c128>(q, from, to, geometry, src, dst);                                                      \
        } else if ((from) == DM_U64) {                                                                         \
            FN<uint64_t>(q, from, to, geometry, src, dst);                                                     \
        } else if (is_complex(from) || dmi_dtype_is_float(from)) {                                             \
            FN<double>(q, from, to, geometry, src, dst);                                                       \
        } else {                                                                                               \
            FN<int64_t>(q, from, to, geometry, src, dst);                                                      \
        }                                                                                                      \
    } while (0)

void dmi_cuda_launch_convert(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box, const void *src,
                             void *dst)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, CONVERT_DEPTH);
    if (!dmi_cuda_hot(from) || !dmi_cuda_hot(to)) {
        BY_CARRIER(every_box, q, from, to, box, src, dst);
    } else if (from == DM_F64) {
        convert<double><<<blocks, THREADS, 0, stream_of(q)>>>(b, from, to, src, dst);
    } else if (from <= DM_BF16) {
        convert<float><<<blocks, THREADS, 0, stream_of(q)>>>(b, from, to, src, dst);
    } else {
        convert<int64_t><<<blocks, THREADS, 0, stream_of(q)>>>(b, from, to, src, dst);
    }
    dmi_cuda_launched(q, "conversion");
}

void dmi_cuda_launch_convert_runs(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_runs *runs,
                                  const void *src, void *dst)
{
    dmi_cuda_runs here = *runs;
    unsigned blocks = blocks_for(&here, RUNS_DEPTH);
    if (!dmi_cuda_hot(from) || !dmi_cuda_hot(to)) {
        BY_CARRIER(every_runs, q, from, to, runs, src, dst);
    } else if (from == DM_F64) {
        convert_runs<double><<<blocks, THREADS, 0, stream_of(q)>>>(here, from, to, src, dst);
    } else if (from <= DM_BF16) {
        convert_runs<float><<<blocks, THREADS, 0, stream_of(q)>>>(here, from, to, src, dst);
    } else {
        convert_runs<int64_t><<<blocks, THREADS, 0, stream_of(q)>>>(here, from, to, src, dst);
    }
    dmi_cuda_launched(q, "conversion of runs");
}
