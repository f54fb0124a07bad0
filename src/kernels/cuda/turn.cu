/* Transpositions through tiles in shared memory, so that both sides are read and written along their dense dim.
 */
#include "kernels/cuda/convert.cuh"

enum { THREADS = DMI_CUDA_THREADS, SIDE = DMI_CUDA_TURN_SIDE };

/* Tile number t: where its plane lies in src and dst, and its first i and j. */
struct tile_place {
    int64_t src, dst, i, j;
};
static __device__ __forceinline__ tile_place place(const dmi_cuda_planes &p, uint32_t t, int64_t side)
{
    int64_t at[2];
    tile_place r;
    uint32_t u = divided(t, p.tiles_i), v = divided(u, p.tiles_j);
    locate<2>(p.outer, v, at);
    r.src = at[0];
    r.dst = at[1];
    r.i = side * (t - u * p.tiles_i.extent);
    r.j = side * (u - v * p.tiles_j.extent);
    return r;
}

/* Both sides in accesses of 16 bytes: `EACH` elements. In shared memory row j of the tile has its groups in an
 * order that depends on j / EACH, so that a warp, which gathers 4 columns from 8 such bands, meets all banks
 * once. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    turn_aligned(const __grid_constant__ dmi_cuda_planes p, const T *__restrict__ src, T *__restrict__ dst)
{
    const int EACH = 16 / sizeof(T),
              EDGE = sizeof(T) == 1   ? 128
                     : sizeof(T) == 8 ? 32
                                      : 64,
              GROUPS = EDGE / EACH;
    const int EACH_THREAD = EDGE * GROUPS / THREADS;
    __shared__ group<T, EACH> tile[EDGE * GROUPS];
    const T *element = (const T *)tile;
    for (uint32_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        tile_place o = place(p, t, EDGE);
        const T *from = src + o.src + o.j * p.src_stride_j + o.i;
        T *to = dst + o.dst + o.i * p.dst_stride_i + o.j;
        int ni = (int)DMI_MIN(EDGE, p.ni - o.i), nj = (int)DMI_MIN(EDGE, p.nj - o.j);
        group<T, EACH> v[EACH_THREAD];
#pragma unroll
        for (int k = 0; k < EACH_THREAD; k++) {
            int x = k * THREADS + threadIdx.x, j = x / GROUPS, g = x % GROUPS;
            if (j < nj && g * EACH < ni) {
                v[k] = *(const group<T, EACH> *)(from + j * p.src_stride_j + g * EACH);
            }
        }
#pragma unroll
        for (int k = 0; k < EACH_THREAD; k++) {
            int x = k * THREADS + threadIdx.x, j = x / GROUPS, g = x % GROUPS;
            tile[j * GROUPS + (g ^ (j / EACH % GROUPS))] = v[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH_THREAD; k++) {
            int x = k * THREADS + threadIdx.x, band = x >> 5;
            int h = (x & 7) + 8 * (band % (GROUPS / 8)), i = (x >> 3 & 3) + 4 * (band / (GROUPS / 8));
            if (i < ni && h * EACH < nj) {
                group<T, EACH> w;
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    w.v[e] = element[((h * EACH + e) * GROUPS + ((i / EACH) ^ (h % GROUPS))) * EACH + i % EACH];
                }
                *(group<T, EACH> *)(to + i * p.dst_stride_i + h * EACH) = w;
            }
        }
        __syncthreads();
    }
}

/* Element by element, for any alignment; CONVERT: through a carrier C that holds the source's values. */
template <typename T, bool CONVERT>
static __global__ void __launch_bounds__(THREADS)
    turn_any(const __grid_constant__ dmi_cuda_planes p, dm_dtype from, dm_dtype to,
             const void *__restrict__ src, void *__restrict__ dst)
{
    const int STEP = THREADS / SIDE;
    __shared__ T tile[SIDE][SIDE + 1];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    for (uint32_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        tile_place o = place(p, t, SIDE);
        int64_t a = o.src + o.j * p.src_stride_j + o.i, b = o.dst + o.i * p.dst_stride_i + o.j;
        int ni = (int)DMI_MIN(SIDE, p.ni - o.i), nj = (int)DMI_MIN(SIDE, p.nj - o.j);
        T v[SIDE / STEP];
#pragma unroll
        for (int k = 0; k < SIDE / STEP; k++) {
            int j = y + k * STEP;
            if (j < nj && x < ni) {
                int64_t at = a + j * p.src_stride_j + x;
                if constexpr (CONVERT) {
                    load_any<T, 1>(from, src, at, &v[k]);
                } else {
                    v[k] = ((const T *)src)[at];
                }
            }
        }
#pragma unroll
        for (int k = 0; k < SIDE / STEP; k++) {
            tile[y + k * STEP][x] = v[k];
        }
        __syncthreads();
#pragma unroll
        for (int i = y; i < SIDE; i += STEP) {
            if (i < ni && x < nj) {
                int64_t at = b + i * p.dst_stride_i + x;
                if constexpr (CONVERT) {
                    store_any<T, 1>(to, dst, at, &tile[x][i]);
                } else {
                    ((T *)dst)[at] = tile[x][i];
                }
            }
        }
        __syncthreads();
    }
}

template <typename T>
static void turn(dmi_queue *q, bool aligned, const dmi_cuda_planes *p, const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, p->tiles, 1);
    if (aligned) {
        turn_aligned<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const T *)src, (T *)dst);
    } else {
        turn_any<T, false><<<blocks, THREADS, 0, stream_of(q)>>>(*p, DM_U8, DM_U8, src, dst);
    }
}

void dmi_cuda_launch_turn(dmi_queue *q, dm_dtype from, dm_dtype to, bool aligned, const dmi_cuda_planes *p,
                          const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, p->tiles, 1);
    if (from != to && from <= DM_BF16) {
        turn_any<double, true><<<blocks, THREADS, 0, stream_of(q)>>>(*p, from, to, src, dst);
    } else if (from != to) {
        turn_any<int64_t, true><<<blocks, THREADS, 0, stream_of(q)>>>(*p, from, to, src, dst);
    } else {
        switch (dmi_dtype_bytes(from)) {
        case 1:
            turn<uint8_t>(q, aligned, p, src, dst);
            break;
        case 2:
            turn<uint16_t>(q, aligned, p, src, dst);
            break;
        case 4:
            turn<uint32_t>(q, aligned, p, src, dst);
            break;
        default:
            turn<uint64_t>(q, aligned, p, src, dst);
            break;
        }
    }
    dmi_cuda_launched(q, "transposition");
}
