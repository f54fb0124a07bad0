/* Kernels that follow an array of indices. */
#include "kernels/box/convert.cuh"

extern "C" {
#include "kernels/index/index_cuda.h"
}

enum { THREADS = DMI_CUDA_THREADS };

/* Where the index at this position leads, along its dim; -1: nowhere here. */
static __device__ __forceinline__ int64_t place_of(const dmi_cuda_index &p, int64_t at)
{
    int64_t i = dmi_index_read(p.index_dtype, (const char *)p.indices + at * p.index_bytes, p.mode, p.n);
    return i < 0 ? -1 : dmi_index_place(&p.set, i);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) follow(const __grid_constant__ dmi_cuda_index p)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.box.items) {
        return;
    }
    int64_t at[3];
    locate<3>(p.box, i, at);
    int64_t place = place_of(p, at[0]);
    if (place < 0) {
        return;
    }
    T *line = (T *)p.lines + at[1] + place * p.step, *value = (T *)p.values + at[2];
    if (p.takes) {
        *value = *line;
    } else {
        *line = *value;
    }
}

struct assign {
    template <typename T> static __device__ __forceinline__ T of(T, T b)
    {
        return b;
    }
};
struct add_float {
    template <typename T> static __device__ __forceinline__ T of(T a, T b)
    {
        return converted<T>(converted<float>(a) + converted<float>(b));
    }
};
struct add_plain {
    template <typename T> static __device__ __forceinline__ T of(T a, T b)
    {
        return (T)(a + b);
    }
};
struct add_bool {
    static __device__ __forceinline__ uint8_t of(uint8_t a, uint8_t b)
    {
        return a | b;
    }
};
struct add_parts {
    template <typename T> static __device__ __forceinline__ T of(T a, T b)
    {
        a.x += b.x;
        a.y += b.y;
        return a;
    }
};

/* Each place belongs to one class, and so to one thread, which meets its positions in their order. */
template <typename T, typename OP>
static __global__ void __launch_bounds__(THREADS) ordered(const __grid_constant__ dmi_cuda_index p)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.box.items) {
        return;
    }
    int64_t at[4];
    locate<4>(p.box, i, at);
    T *line = (T *)p.lines + at[1];
    const T *value = (const T *)p.values + at[2];
    for (int64_t k = 0; k < p.along; k++) {
        int64_t place = place_of(p, at[0] + k * p.index_step);
        if (place >= 0 && (uint32_t)place % (uint32_t)p.classes == (uint32_t)at[3]) {
            T *to = line + place * p.step;
            *to = OP::of(*to, value[k * p.value_step]);
        }
    }
}

template <typename T, typename OP> static void launch_ordered(dmi_queue *q, const dmi_cuda_index *p)
{
    ordered<T, OP><<<blocks_for(p->box.items, THREADS), THREADS, 0, stream_of(q)>>>(*p);
}

void dmi_cuda_launch_index(dmi_queue *q, int unit, const dmi_cuda_index *p)
{
    unsigned blocks = blocks_for(p->box.items, THREADS);
#define CALL(T) follow<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)
    DMI_CUDA_BY_UNIT(q, "take", unit, CALL)
#undef CALL
    dmi_cuda_launched(q, "take");
}

void dmi_cuda_launch_put(dmi_queue *q, int unit, const dmi_cuda_index *p)
{
#define CALL(T) launch_ordered<T, assign>(q, p)
    DMI_CUDA_BY_UNIT(q, "put", unit, CALL)
#undef CALL
    dmi_cuda_launched(q, "put");
}

void dmi_cuda_launch_add(dmi_queue *q, dm_dtype dtype, const dmi_cuda_index *p)
{
    switch (dtype) {
    case DM_F64:
        launch_ordered<double, add_plain>(q, p);
        break;
    case DM_F32:
        launch_ordered<float, add_plain>(q, p);
        break;
    case DM_F16:
        launch_ordered<f16, add_float>(q, p);
        break;
    case DM_BF16:
        launch_ordered<bf16, add_float>(q, p);
        break;
    case DM_F8E4M3:
        launch_ordered<f8e4m3, add_float>(q, p);
        break;
    case DM_F8E5M2:
        launch_ordered<f8e5m2, add_float>(q, p);
        break;
    case DM_I64:
    case DM_U64:
        launch_ordered<uint64_t, add_plain>(q, p);
        break;
    case DM_I32:
    case DM_U32:
        launch_ordered<uint32_t, add_plain>(q, p);
        break;
    case DM_I16:
    case DM_U16:
        launch_ordered<uint16_t, add_plain>(q, p);
        break;
    case DM_I8:
    case DM_U8:
        launch_ordered<uint8_t, add_plain>(q, p);
        break;
    case DM_BOOL:
        launch_ordered<uint8_t, add_bool>(q, p);
        break;
    case DM_C64:
        launch_ordered<float2, add_parts>(q, p);
        break;
    case DM_C128:
        launch_ordered<double2, add_parts>(q, p);
        break;
    default:
        dmi_cuda_failed(q, "scatter add", cudaErrorInvalidValue, "not a type of elements");
    }
    dmi_cuda_launched(q, "scatter add");
}

/* --- who holds what ---------------------------------------------------------------------------- */

/* The k-th index of a set. */
static __device__ int64_t nth(const dmi_dimset &s, int64_t k)
{
    if (s.g == 1) {
        return s.lo + k - s.origin;
    }
    int64_t period = s.block * s.g, rest = s.lo % period - s.c * s.block;
    int64_t place = s.lo / period * s.block + (rest < 0 ? 0 : rest > s.block ? s.block : rest) + k;
    return (place / s.block * s.g + s.c) * s.block + place % s.block - s.origin;
}

static __global__ void begin_row(int64_t *row, int64_t holders)
{
    for (int64_t c = threadIdx.x; c < 1 + holders; c += blockDim.x) {
        row[c] = c == 0 ? INT64_MAX : 0;
    }
}

/* start: of the region in its memory. */
static __global__ void __launch_bounds__(THREADS)
    count_indices(const __grid_constant__ dmi_index_count d, const char *indices, int64_t bytes, int64_t start,
                  int64_t *row)
{
    int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < d.region.count; i += all) {
        int64_t rest = i, at = start, number = 0, weight = 1;
        for (int k = d.region.ndim - 1; k >= 0; k--) {
            int64_t ordinal = rest % d.region.dim[k].count;
            rest /= d.region.dim[k].count;
            at += ordinal * d.region.stride[k];
            number += nth(d.region.dim[k], ordinal) * weight;
            weight *= d.shape[k];
        }
        int64_t index = dmi_index_read(d.dtype, indices + at * bytes, d.owner.mode, d.owner.n);
        if (index < 0) {
            atomicMin((long long *)row, (long long)number);
        } else {
            atomicAdd((unsigned long long *)row + 1 + dmi_index_holder(&d.owner, index), 1ull);
        }
    }
}

void dmi_cuda_launch_index_count(dmi_queue *q, const dmi_index_count *d, const void *indices, int64_t *row)
{
    if (d->first) {
        begin_row<<<1, THREADS, 0, stream_of(q)>>>(row, d->owner.g);
    }
    if (d->region.count > 0) {
        int64_t blocks = (d->region.count + THREADS - 1) / THREADS, most = 8 * (int64_t)q->multiprocessors;
        count_indices<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream_of(q)>>>(
            *d, (const char *)indices, dmi_dtype_bytes(d->dtype), dmi_region_start(&d->region), row);
    }
    dmi_cuda_launched(q, "index count");
}

enum { SORT_THREADS = 1024, WARP = 32 };

/* Thread block c writes the indices of holder c, in their order, behind those of the holders before it. */
static __global__ void __launch_bounds__(SORT_THREADS)
    sort_indices(const __grid_constant__ dmi_index_sort d, const char *indices, int64_t bytes, int64_t *sorted,
                 int64_t *place)
{
    __shared__ unsigned long long before;
    __shared__ int counts[SORT_THREADS / WARP];
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    unsigned long long mine = 0;
    if (threadIdx.x == 0) {
        before = 0;
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < d.count; k += SORT_THREADS) {
        int64_t i = dmi_index_read(d.dtype, indices + k * d.stride * bytes, d.owner.mode, d.owner.n);
        mine += dmi_index_holder(&d.owner, i) < (int64_t)blockIdx.x;
    }
    atomicAdd(&before, mine);
    __syncthreads();
    int64_t base = (int64_t)before;
    for (int64_t first = 0; first < d.count; first += SORT_THREADS) {
        int64_t k = first + threadIdx.x, i = 0;
        bool here = k < d.count;
        if (here) {
            i = dmi_index_read(d.dtype, indices + k * d.stride * bytes, d.owner.mode, d.owner.n);
            here = dmi_index_holder(&d.owner, i) == (int64_t)blockIdx.x;
        }
        unsigned votes = __ballot_sync(0xffffffffu, here);
        if (lane == 0) {
            counts[warp] = __popc(votes);
        }
        __syncthreads();
        int ahead = 0, all = 0;
        for (int w = 0; w < SORT_THREADS / WARP; w++) {
            ahead += w < warp ? counts[w] : 0;
            all += counts[w];
        }
        if (here) {
            int64_t to = base + ahead + __popc(votes & ((1u << lane) - 1));
            sorted[to] = i;
            place[to] = k;
        }
        base += all;
        __syncthreads();
    }
}

void dmi_cuda_launch_index_sort(dmi_queue *q, const dmi_index_sort *d, const void *indices, int64_t *sorted,
                                int64_t *place)
{
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    sort_indices<<<(unsigned)d->owner.g, SORT_THREADS, 0, stream_of(q)>>>(
        *d, (const char *)indices + d->offset * bytes, bytes, sorted, place);
    dmi_cuda_launched(q, "index sort");
}
