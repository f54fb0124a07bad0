/* Transpositions through tiles in shared memory, so that both sides are read and written along their dense dim.
 */
#include "kernels/cuda/dtypes.cuh"

enum { THREADS = DMI_CUDA_THREADS, SIDE = DMI_CUDA_TRANSPOSE_SIDE };

/* Tile number t: where its plane lies in src and dst, and its first i and j. Tiles beside one another in dst
 * follow each other: of the two, writes gain more from that. */
struct tile_place {
    int64_t src, dst, i, j;
};
static __device__ __forceinline__ tile_place place(const dmi_cuda_planes &p, uint32_t t, int64_t side)
{
    int64_t at[2];
    tile_place r;
    uint32_t u = divided(t, p.tiles_j), v = divided(u, p.tiles_i);
    locate<2>(p.outer, v, at);
    r.src = at[0];
    r.dst = at[1];
    r.i = side * (u - v * p.tiles_i.extent);
    r.j = side * (t - u * p.tiles_j.extent);
    return r;
}

/* Edge of the tiles that are moved in accesses of 16 bytes, as dmi_cuda_transpose_side has it, and threads for
 * one. `unused`: extra shared memory, requested so that fewer tiles run on a multiprocessor at once. The rows
 * of more tiles lie in more DRAM pages than the memory keeps open. The best of a few, measured on H200. */
template <typename T> struct tile_of {
    static const int edge = sizeof(T) <= 2 ? 128 : sizeof(T) == 8 ? 32 : 64;
    static const int threads = sizeof(T) == 2 ? 256 : 128;
    static const int unused = sizeof(T) == 2   ? 16 << 10
                              : sizeof(T) == 4 ? 12 << 10
                              : sizeof(T) == 8 ? 0
                                               : 8 << 10;
};

/* Both sides in accesses of 16 bytes: `EACH` elements. In shared memory row j of the tile has its groups in an
 * order that depends on j / EACH, so that a warp, which gathers 4 columns from 8 such bands, meets all banks
 * once. WHOLE: the tile has ni = nj = EDGE. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ void transpose_tile(const T *__restrict__ from, int64_t src_stride_j,
                                                      T *__restrict__ to, int64_t dst_stride_i, int ni, int nj,
                                                      group<T, 16 / sizeof(T)> *tile)
{
    const int EACH = 16 / sizeof(T), EDGE = tile_of<T>::edge, GROUPS = EDGE / EACH;
    const int THREADS_HERE = tile_of<T>::threads, EACH_THREAD = EDGE * GROUPS / THREADS_HERE;
    const T *element = (const T *)tile;
    group<T, EACH> v[EACH_THREAD];
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int x = k * THREADS_HERE + threadIdx.x, j = x / GROUPS, g = x % GROUPS;
        if (WHOLE || (j < nj && g * EACH < ni)) {
            *(uint4 *)&v[k] = __ldcs((const uint4 *)(from + j * src_stride_j + g * EACH));
        }
    }
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int x = k * THREADS_HERE + threadIdx.x, j = x / GROUPS, g = x % GROUPS;
        tile[j * GROUPS + (g ^ (j / EACH % GROUPS))] = v[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int x = k * THREADS_HERE + threadIdx.x, band = x >> 5;
        int h = (x & 7) + 8 * (band % (GROUPS / 8)), i = (x >> 3 & 3) + 4 * (band / (GROUPS / 8));
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            v[k].v[e] = element[((h * EACH + e) * GROUPS + ((i / EACH) ^ (h % GROUPS))) * EACH + i % EACH];
        }
    }
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int x = k * THREADS_HERE + threadIdx.x, band = x >> 5;
        int h = (x & 7) + 8 * (band % (GROUPS / 8)), i = (x >> 3 & 3) + 4 * (band / (GROUPS / 8));
        if (WHOLE || (i < ni && h * EACH < nj)) {
            __stcs((uint4 *)(to + i * dst_stride_i + h * EACH), *(uint4 *)&v[k]);
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(tile_of<T>::threads)
    transpose_aligned(const __grid_constant__ dmi_cuda_planes p, const T *__restrict__ src, T *__restrict__ dst)
{
    const int EDGE = tile_of<T>::edge;
    __shared__ group<T, 16 / sizeof(T)> tile[EDGE * EDGE * sizeof(T) / 16];
    tile_place o = place(p, blockIdx.x, EDGE);
    const T *from = src + o.src + o.j * p.src_stride_j + o.i;
    T *to = dst + o.dst + o.i * p.dst_stride_i + o.j;
    int ni = (int)DMI_MIN(EDGE, p.ni - o.i), nj = (int)DMI_MIN(EDGE, p.nj - o.j);
    if (ni == EDGE && nj == EDGE) {
        transpose_tile<T, true>(from, p.src_stride_j, to, p.dst_stride_i, ni, nj, tile);
    } else {
        transpose_tile<T, false>(from, p.src_stride_j, to, p.dst_stride_i, ni, nj, tile);
    }
}

/* Element by element, for any alignment; CONVERT: through a carrier T that holds the source's values. */
template <typename T, bool CONVERT>
static __global__ void __launch_bounds__(THREADS)
    transpose_any(const __grid_constant__ dmi_cuda_planes p, dm_dtype from, dm_dtype to,
                  const void *__restrict__ src, void *__restrict__ dst)
{
    const int STEP = THREADS / SIDE, EACH_THREAD = SIDE / STEP;
    __shared__ T tile[SIDE][SIDE + 1];
    tile_place o = place(p, blockIdx.x, SIDE);
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    int ni = (int)DMI_MIN(SIDE, p.ni - o.i), nj = (int)DMI_MIN(SIDE, p.nj - o.j);
    int64_t at[EACH_THREAD][1];
    bool valid[EACH_THREAD];
    T v[EACH_THREAD][1];
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int j = y + k * STEP;
        valid[k] = j < nj && x < ni;
        at[k][0] = o.src + (o.j + j) * p.src_stride_j + o.i + x;
    }
    if constexpr (CONVERT) {
        load_items(from, src, at, 0, valid, v);
    } else {
#pragma unroll
        for (int k = 0; k < EACH_THREAD; k++) {
            if (valid[k]) {
                v[k][0] = ((const T *)src)[at[k][0]];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        tile[y + k * STEP][x] = v[k][0];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH_THREAD; k++) {
        int i = y + k * STEP;
        valid[k] = i < ni && x < nj;
        at[k][0] = o.dst + (o.i + i) * p.dst_stride_i + o.j + x;
        v[k][0] = tile[x][i];
    }
    if constexpr (CONVERT) {
        store_items(to, dst, at, 0, valid, v);
    } else {
#pragma unroll
        for (int k = 0; k < EACH_THREAD; k++) {
            if (valid[k]) {
                ((T *)dst)[at[k][0]] = v[k][0];
            }
        }
    }
}

template <typename T>
static void transpose(dmi_queue *q, bool aligned, const dmi_cuda_planes *p, const void *src, void *dst)
{
    unsigned blocks = (unsigned)p->tiles;
    if (aligned) {
        transpose_aligned<T>
            <<<blocks, tile_of<T>::threads, tile_of<T>::unused, stream_of(q)>>>(*p, (const T *)src, (T *)dst);
    } else {
        transpose_any<T, false><<<blocks, THREADS, 0, stream_of(q)>>>(*p, DM_U8, DM_U8, src, dst);
    }
}

void dmi_cuda_launch_transpose(dmi_queue *q, dm_dtype from, dm_dtype to, bool aligned, const dmi_cuda_planes *p,
                               const void *src, void *dst)
{
    unsigned blocks = (unsigned)p->tiles;
    if (from != to && from <= DM_BF16) {
        transpose_any<double, true><<<blocks, THREADS, 0, stream_of(q)>>>(*p, from, to, src, dst);
    } else if (from != to) {
        transpose_any<int64_t, true><<<blocks, THREADS, 0, stream_of(q)>>>(*p, from, to, src, dst);
    } else {
        switch (dmi_dtype_bytes(from)) {
        case 1:
            transpose<uint8_t>(q, aligned, p, src, dst);
            break;
        case 2:
            transpose<uint16_t>(q, aligned, p, src, dst);
            break;
        case 4:
            transpose<uint32_t>(q, aligned, p, src, dst);
            break;
        case 8:
            transpose<uint64_t>(q, aligned, p, src, dst);
            break;
        default:
            dmi_cuda_failed(q, "transposition", -1, "no kernel for elements of this size");
        }
    }
    dmi_cuda_launched(q, "transposition");
}
