/* Small convolutions and inner products of f32, in one kernel each (adr/0081). A thread block copies the pixels
 * of an image that its windows have to shared memory, once, and its part of the other matrix. An element of a
 * window lies there at the sum of two offsets: of the row of the product, and of the place in its depth. Then
 * the sums of the warps of a thread block are added, those of the thread blocks of a cluster, and those of
 * clusters by the last that comes: always in this order. */
extern "C" {
#include "kernels/dnn/narrow_cuda.h"
}
#include "kernels/cuda/common.cuh"

enum { WARP = 32, THREADS = DMI_NARROW_WARPS * WARP, ROWS = DMI_NARROW_ROWS, OWN = ROWS / 8 };

template <int WIDE> struct tile {
    static const int COLS = 4 * WIDE;
    static const int SUMS = ROWS + 8; /* of a column of a warp's sums */
    static const int LINE = COLS | 1; /* of a row of the thread block's sums */
};

/* What a thread block has: pixels of windows from line `line` of image `image` on, and a range of the depth. */
struct portion {
    int32_t image, line, images, lines;
    int32_t column, columns; /* of the result */
    int32_t first, count;    /* rows of the product */
    int32_t begin, end, deep; /* of the depth; WEIGHTS: its pixels from 0 on. deep: how many */
    int32_t channel;         /* the patch's first */
};

/* Where a thread is. blockIdx.x: rank in the cluster, then the part; .y: of the tiles beside one another; .z:
 * of those below. */
struct whereabouts {
    int warp, lane, split, rank, part, down;
    int height; /* of the thread block's tile */
};

template <int CHUNK> static __device__ __forceinline__ void copy(float *to, const float *from, bool valid)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if (CHUNK == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(valid ? 4 : 0)
                     : "memory");
    }
}

/* The pixels of the image that the windows have, zeros beyond it. */
template <int KIND, int CHUNK>
static __device__ __forceinline__ void copy_patch(const dmi_narrow_job &j, const portion &p, float *to)
{
    int deep = min(j.deep, j.channels - p.channel), lines = j.patch[0] - (j.lines - p.lines) * j.stride[0];
    int chunks = (int)j.chunks[0].extent, all = p.images * j.patch[0] * j.patch[1] * chunks;
    for (int e = (int)threadIdx.x; e < all; e += THREADS) {
        int pixel = (int)divided(e, j.chunks[0]), c = (e - pixel * chunks) * CHUNK,
            row = (int)divided(pixel, j.columns_of), w = pixel - row * j.patch[1],
            n = (int)divided(row, j.lines_of), h = row - n * j.patch[0];
        int u = h + p.line * j.stride[0] - j.pad[0], v = w - j.pad[1];
        bool valid = (uint32_t)u < (uint32_t)j.in[0] && (uint32_t)v < (uint32_t)j.in[1];
        int32_t from = (((p.image + n) * j.in[0] + u) * j.in[1] + v) * j.channels + p.channel + c;
        float *at = to + pixel * j.patch_pitch;
        if (c < deep && h < lines) {
            copy<CHUNK>(at + c, j.image + (valid ? from : 0), valid);
        }
        if (KIND == DMI_NARROW_WEIGHTS && c == 0) {
            at[max(deep, 0)] = 1; /* a channel of ones, for the sums of the other matrix */
        }
    }
}

template <int KIND, int CHUNK>
static __device__ __forceinline__ void copy_matrix(const dmi_narrow_job &j, const portion &p, float *to)
{
    int deep = p.end - p.begin, chunks = (int)j.chunks[1].extent;
    if (KIND == DMI_NARROW_FORWARD) { /* columns one after the other */
        for (int e = (int)threadIdx.x; e < chunks * p.columns; e += THREADS) {
            int c = (int)divided(e, j.chunks[1]), k = (e - c * chunks) * CHUNK;
            if (k < deep) {
                copy<CHUNK>(to + c * j.matrix_pitch + k, j.matrix + (p.column + c) * j.depth + p.begin + k,
                            true);
            }
        }
        return;
    }
    int32_t first = (p.image * (int32_t)j.height.extent + p.line) * (int32_t)j.width.extent;
    if (KIND == DMI_NARROW_WEIGHTS && j.flat) {
        for (int e = (int)threadIdx.x * CHUNK; e < deep * j.columns; e += THREADS * CHUNK) {
            copy<CHUNK>(to + e, j.matrix + first * j.columns + e, true);
        }
        return;
    }
    for (int e = (int)threadIdx.x; e < chunks * deep; e += THREADS) {
        int k = (int)divided(e, j.chunks[1]), c = (e - k * chunks) * CHUNK;
        int32_t row = KIND == DMI_NARROW_DATA ? p.begin + k : first + k;
        if (c < p.columns) {
            copy<CHUNK>(to + k * j.matrix_pitch + c, j.matrix + row * j.columns + p.column + c, true);
        }
    }
}

/* Where the window of a pixel begins in the patch; i: its number among those of the thread block. */
static __device__ __forceinline__ int32_t pixel_at(const dmi_narrow_job &j, int32_t i)
{
    int32_t row = (int32_t)divided(i, j.width), q = i - row * (int32_t)j.width.extent,
            n = j.images > 1 ? (int32_t)divided(row, j.height) : 0, p = row - n * j.lines;
    return ((n * j.patch[0] + p * j.stride[0]) * j.patch[1] + q * j.stride[1]) * j.patch_pitch;
}
/* Where a place of the window lies, from there on. */
static __device__ __forceinline__ int32_t place_at(const dmi_narrow_job &j, const portion &p, int32_t i)
{
    int32_t rest = (int32_t)divided(i, j.channel), c = i - rest * j.channels,
            r = (int32_t)divided(rest, j.column), s = rest - r * (int32_t)j.column.extent;
    return (r * j.dilation[0] * j.patch[1] + s * j.dilation[1]) * j.patch_pitch + c - p.channel;
}

/* Row i of a lane in its warp's tile. FOURS: four channels lie together, at once: those of a row, or rows. */
template <int KIND, bool FOURS> static __device__ __forceinline__ int row_of(int lane, int i)
{
    return KIND == DMI_NARROW_WEIGHTS && FOURS ? i / 4 * 32 + lane / 4 * 4 + i % 4 : lane / 4 + 8 * i;
}

/* A lane has these rows and columns lane % 4 + 4 i. */
template <int KIND, int WIDE, bool FOURS, int DEEP>
static __device__ __forceinline__ void multiply(const float *patch, const float *matrix, int pitch,
                                                const int32_t (&row)[OWN], const int32_t *deep,
                                                float (&sum)[OWN][WIDE])
{
    float x[DEEP][OWN];
    int32_t at[DEEP];
    if (DEEP == 4) {
        *(int4 *)at = *(const int4 *)deep;
    } else {
        at[0] = deep[0];
    }
    if (KIND == DMI_NARROW_WEIGHTS && FOURS) {
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
#pragma unroll
            for (int i = 0; i < OWN; i += 4) {
                float4 v = *(const float4 *)(patch + row[i] + at[d]);
                x[d][i] = v.x;
                x[d][i + 1] = v.y;
                x[d][i + 2] = v.z;
                x[d][i + 3] = v.w;
            }
        }
    } else if (FOURS && DEEP == 4) {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            float4 v = *(const float4 *)(patch + row[i] + at[0]);
            x[0][i] = v.x;
            x[1 % DEEP][i] = v.y;
            x[2 % DEEP][i] = v.z;
            x[3 % DEEP][i] = v.w;
        }
    } else {
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                x[d][i] = patch[row[i] + at[d]];
            }
        }
    }
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
        float w[DEEP];
        if (KIND == DMI_NARROW_FORWARD) {
            if (DEEP == 4) {
                *(float4 *)w = *(const float4 *)(matrix + 4 * c * pitch);
            } else {
                w[0] = matrix[4 * c * pitch];
            }
        } else {
#pragma unroll
            for (int d = 0; d < DEEP; d++) {
                w[d] = matrix[d * pitch + 4 * c];
            }
        }
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                sum[i][c] = __fmaf_rn(x[d][i], w[d], sum[i][c]);
            }
        }
    }
}

/* All threads of the cluster: what they have written before is seen behind it. */
static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
/* An address of this thread block's shared memory in that of another of the cluster, and a word there. */
static __device__ __forceinline__ uint32_t peer_at(const float *at, int rank)
{
    uint32_t peer;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(peer)
                 : "r"((uint32_t)__cvta_generic_to_shared(at)), "r"(rank));
    return peer;
}
static __device__ __forceinline__ float of_peer(uint32_t at)
{
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(at) : "memory");
    return value;
}

template <int KIND>
static __device__ __forceinline__ void store(const dmi_narrow_job &j, int64_t row, int32_t column, float bias,
                                             float sum)
{
    if (KIND == DMI_NARROW_WEIGHTS) {
        if (row < j.rows) {
            j.out[(int64_t)column * j.rows + row] = sum;
        } else if (row == j.rows && j.sums != NULL) {
            j.sums[column] = sum;
        }
        return;
    }
    sum += bias;
    j.out[row * j.pitch + column] = j.relu && sum < 0 ? 0 : sum;
}

static __device__ __forceinline__ whereabouts find_thread(const dmi_narrow_job &j)
{
    whereabouts t;
    t.warp = (int)threadIdx.x / WARP;
    t.lane = (int)threadIdx.x % WARP;
    t.split = (int)blockIdx.x;
    t.rank = t.split & (j.cluster - 1);
    t.part = t.split / j.cluster;
    t.down = (int)blockIdx.z;
    t.height = DMI_NARROW_WARPS / j.spread * ROWS;
    return t;
}

template <int KIND, int COLS>
static __device__ __forceinline__ portion find_portion(const dmi_narrow_job &j, const whereabouts &t)
{
    int unit = KIND == DMI_NARROW_WEIGHTS ? t.split : t.down;
    int image = (int)divided(unit, j.bands);
    portion p;
    p.image = image * j.images;
    p.line = (unit - image * (int)j.bands.extent) * j.lines;
    p.images = max(0, min(j.images, j.batch - p.image));
    p.lines = min(j.lines, (int)j.height.extent - p.line);
    p.column = (int)blockIdx.y * COLS;
    p.columns = min(COLS, j.columns - p.column);
    int32_t pixels = p.images * p.lines * (int32_t)j.width.extent;
    if (KIND == DMI_NARROW_WEIGHTS) {
        p.begin = 0;
        p.end = pixels;
        p.first = t.down * ROWS;
        p.count = min(ROWS, j.rows + 1 - p.first);
        p.channel = j.one ? p.first : 0;
    } else {
        p.begin = min(j.depth, t.split * j.deep_of);
        p.end = min(j.depth, p.begin + j.deep_of);
        p.first = (p.image * (int32_t)j.height.extent + p.line) * (int32_t)j.width.extent;
        p.count = pixels;
        p.channel = j.one ? p.begin : 0;
    }
    p.deep = p.end - p.begin;
    return p;
}

/* The two offsets of an element: of its place in the depth, in shared memory, and of this lane's rows. */
template <int KIND, bool FOURS>
static __device__ __forceinline__ void find_offsets(const dmi_narrow_job &j, const whereabouts &t,
                                                    const portion &p, int32_t *offset, int32_t (&row)[OWN])
{
    for (int e = (int)threadIdx.x; e < p.deep; e += THREADS) {
        offset[e] = KIND == DMI_NARROW_WEIGHTS ? pixel_at(j, e) : place_at(j, p, p.begin + e);
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int32_t r = min(t.warp / j.spread * ROWS + row_of<KIND, FOURS>(t.lane, i), max(p.count, 1) - 1);
        row[i] = KIND != DMI_NARROW_WEIGHTS ? pixel_at(j, r)
                 : p.first + r == j.rows    ? max(0, min(j.deep, j.channels - p.channel))
                                            : place_at(j, p, p.first + r);
    }
}

/* Both operands and the bias, to shared memory. */
template <int KIND, int COLS, bool FOURS>
static __device__ __forceinline__ void copy_operands(const dmi_narrow_job &j, const portion &p, float *patch,
                                                     float *matrix, float *bias)
{
    if (threadIdx.x < COLS) {
        bias[threadIdx.x] = KIND == DMI_NARROW_FORWARD && j.bias != NULL && (int)threadIdx.x < p.columns
                                ? j.bias[p.column + threadIdx.x]
                                : 0;
    }
    if (FOURS) {
        copy_patch<KIND, 4>(j, p, patch);
    } else {
        copy_patch<KIND, 1>(j, p, patch);
    }
    if (j.chunk[1] == 4) {
        copy_matrix<KIND, 4>(j, p, matrix);
    } else {
        copy_matrix<KIND, 1>(j, p, matrix);
    }
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncthreads();
}

/* The sums of a lane, over its warp's part of the thread block's depth. */
template <int KIND, int WIDE, bool FOURS>
static __device__ __forceinline__ void
make_sums(const dmi_narrow_job &j, const whereabouts &t, const portion &p, const float *patch,
          const float *matrix, const int32_t *offset, const int32_t (&row)[OWN], float (&sum)[OWN][WIDE])
{
    int32_t groups = (p.deep + 3) / 4, k = groups * (t.warp % j.spread) / j.spread * 4,
            end = min(p.deep, groups * (t.warp % j.spread + 1) / j.spread * 4);
    const float *w = matrix + (KIND == DMI_NARROW_FORWARD ? t.lane % 4 * j.matrix_pitch : t.lane % 4);
    int32_t step = KIND == DMI_NARROW_FORWARD ? 1 : j.matrix_pitch;
    for (; k + 4 <= end; k += 4) {
        multiply<KIND, WIDE, FOURS, 4>(patch, w + k * step, j.matrix_pitch, row, offset + k, sum);
    }
    for (; k < end; k++) {
        multiply<KIND, WIDE, FOURS, 1>(patch, w + k * step, j.matrix_pitch, row, offset + k, sum);
    }
}

/* Of a lane that has all of the depth. */
template <int KIND, int WIDE, bool FOURS>
static __device__ __forceinline__ void store_sums(const dmi_narrow_job &j, const whereabouts &t,
                                                  const portion &p, const float *bias,
                                                  const float (&sum)[OWN][WIDE])
{
#pragma unroll
    for (int i = 0; i < OWN; i++) {
#pragma unroll
        for (int c = 0; c < WIDE; c++) {
            int r = t.warp * ROWS + row_of<KIND, FOURS>(t.lane, i), column = t.lane % 4 + 4 * c;
            if (r < p.count && column < p.columns) {
                store<KIND>(j, p.first + r, p.column + column, bias[column], sum[i][c]);
            }
        }
    }
}

/* The warps' sums, by columns, where the operands were; then the thread block's, by rows, to `block`. */
template <int KIND, int WIDE, bool FOURS>
static __device__ __forceinline__ void add_warps(const dmi_narrow_job &j, const whereabouts &t, float *shared,
                                                 float *block, const float (&sum)[OWN][WIDE])
{
    typedef tile<WIDE> T;
    float *mine = shared + t.warp * T::COLS * T::SUMS;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < OWN; i++) {
#pragma unroll
        for (int c = 0; c < WIDE; c++) {
            mine[(t.lane % 4 + 4 * c) * T::SUMS + row_of<KIND, FOURS>(t.lane, i)] = sum[i][c];
        }
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < t.height * T::COLS; e += THREADS) {
        int c = divided(e, j.tile), r = e - c * t.height;
        const float *at = shared + (r / ROWS * j.spread * T::COLS + c) * T::SUMS + r % ROWS;
        float part_of[DMI_NARROW_WARPS], all = 0;
#pragma unroll
        for (int i = 0; i < DMI_NARROW_WARPS; i++) {
            part_of[i] = i < j.spread ? at[i * T::COLS * T::SUMS] : 0;
        }
#pragma unroll
        for (int i = 0; i < DMI_NARROW_WARPS; i++) {
            all += part_of[i];
        }
        block[r * T::LINE + c] = all;
    }
}

/* What a thread block of a cluster adds of the tile: a range of rows, or columns where these are apart in
 * memory. */
struct share {
    int begin, count; /* the first row or column; elements */
    int64_t tile;
    float *partial; /* of the first part, where there are several */
};

template <int KIND, int COLS>
static __device__ __forceinline__ share find_share(const dmi_narrow_job &j, const whereabouts &t,
                                                   const portion &p)
{
    const bool BY_ROW = KIND != DMI_NARROW_WEIGHTS;
    int extent = BY_ROW ? p.count : p.columns;
    share s;
    s.begin = extent * t.rank / j.cluster;
    s.count = (extent * (t.rank + 1) / j.cluster - s.begin) * (BY_ROW ? COLS : ROWS);
    s.tile = (int64_t)t.down * gridDim.y + blockIdx.y;
    s.partial = j.partial + (s.tile * j.parts * t.height * COLS + s.begin * (BY_ROW ? COLS : ROWS));
    return s;
}

/* Element e of the share; false: the result has none there. */
template <int KIND, int COLS>
static __device__ __forceinline__ bool element_of(const portion &p, const share &s, int e, int *r, int *c)
{
    const bool BY_ROW = KIND != DMI_NARROW_WEIGHTS;
    *r = BY_ROW ? s.begin + e / COLS : e % ROWS;
    *c = BY_ROW ? e % COLS : s.begin + e / ROWS;
    return BY_ROW ? *c < p.columns : *r < p.count;
}

/* Adds the thread blocks' sums of the cluster: to the result, or a part of it. */
template <int KIND, int COLS, int LINE>
static __device__ __forceinline__ void add_cluster(const dmi_narrow_job &j, const whereabouts &t,
                                                   const portion &p, const share &s, const float *block,
                                                   const float *bias)
{
    uint32_t peers[DMI_NARROW_CLUSTER];
#pragma unroll
    for (int i = 0; i < DMI_NARROW_CLUSTER; i++) {
        peers[i] = peer_at(block, i < j.cluster ? i : 0);
    }
#pragma unroll 2
    for (int e = (int)threadIdx.x; e < s.count; e += THREADS) {
        int r, c;
        if (!element_of<KIND, COLS>(p, s, e, &r, &c)) {
            continue;
        }
        float part_of[DMI_NARROW_CLUSTER], total = 0;
#pragma unroll
        for (int i = 0; i < DMI_NARROW_CLUSTER; i++) {
            part_of[i] = i < j.cluster ? of_peer(peers[i] + (r * LINE + c) * 4) : 0;
        }
#pragma unroll
        for (int i = 0; i < DMI_NARROW_CLUSTER; i++) {
            total += part_of[i];
        }
        if (j.parts == 1) {
            store<KIND>(j, p.first + r, p.column + c, bias[c], total);
        } else {
            s.partial[(int64_t)t.part * t.height * COLS + e] = total;
        }
    }
}

/* Adds the clusters' parts, in the thread block that comes last. */
template <int KIND, int COLS>
static __device__ __forceinline__ void add_parts(const dmi_narrow_job &j, const whereabouts &t,
                                                 const portion &p, const share &s, const float *bias)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *ticket = j.ticket + s.tile * j.cluster + t.rank;
        __threadfence();
        last = atomicAdd(ticket, 1u) == (uint32_t)j.parts - 1;
        if (last) {
            *ticket = 0;
            __threadfence();
        }
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; last && e < s.count; e += THREADS) {
        int r, c;
        if (!element_of<KIND, COLS>(p, s, e, &r, &c)) {
            continue;
        }
        float total = 0;
#pragma unroll 8
        for (int i = 0; i < j.parts; i++) {
            total += __ldcg(s.partial + (int64_t)i * t.height * COLS + e);
        }
        store<KIND>(j, p.first + r, p.column + c, bias[c], total);
    }
}

template <int KIND, int WIDE, bool FOURS>
static __global__ void __launch_bounds__(THREADS) narrow(const __grid_constant__ dmi_narrow_job j)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    typedef tile<WIDE> T;
    extern __shared__ float4 shared4[];
    __shared__ float bias[T::COLS];
    float *shared = (float *)shared4, *matrix = shared + j.matrix_from;
    int32_t *offset = (int32_t *)(shared + j.offsets_from), row[OWN];
    const whereabouts t = find_thread(j);
    const portion p = find_portion<KIND, T::COLS>(j, t);
    find_offsets<KIND, FOURS>(j, t, p, offset, row);
    after_previous();
    copy_operands<KIND, T::COLS, FOURS>(j, p, shared, matrix, bias);

    float sum[OWN][WIDE] = {};
    make_sums<KIND, WIDE, FOURS>(j, t, p, shared, matrix, offset, row, sum);
    if (KIND != DMI_NARROW_WEIGHTS && j.spread * j.cluster * j.parts == 1) {
        store_sums<KIND, WIDE, FOURS>(j, t, p, bias, sum);
        return;
    }
    float *block = shared + max(j.floats, DMI_NARROW_WARPS * T::COLS * T::SUMS);
    add_warps<KIND, WIDE, FOURS>(j, t, shared, block, sum);
    if (j.cluster > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    const share s = find_share<KIND, T::COLS>(j, t, p);
    add_cluster<KIND, T::COLS, T::LINE>(j, t, p, s, block, bias);
    if (j.cluster > 1) {
        /* others may still read; what was stored is not for them */
        asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
    }
    if (j.parts != 1) {
        add_parts<KIND, T::COLS>(j, t, p, s, bias);
    }
#endif
}

template <int KIND, int WIDE, bool FOURS> static void launch(dmi_queue *q, const dmi_narrow_job *job)
{
    auto kernel = narrow<KIND, WIDE, FOURS>;
    cudaLaunchAttribute set[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(job->parts * job->cluster), (unsigned)job->across, (unsigned)job->down);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = (size_t)dmi_narrow_bytes(job);
    config.stream = stream_of(q);
    config.attrs = set;
    if (job->cluster > 1) {
        set[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        set[config.numAttrs].val.clusterDim.x = (unsigned)job->cluster;
        set[config.numAttrs].val.clusterDim.y = set[config.numAttrs].val.clusterDim.z = 1;
        config.numAttrs++;
    }
    if (q->overlaps) {
        set[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        set[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)config.dynamicSmemBytes);
    cudaLaunchKernelEx(&config, kernel, *job);
}

template <int KIND> static void launch_kind(dmi_queue *q, const dmi_narrow_job *job)
{
    bool fours = job->chunk[0] == 4, three = job->wide == 3;
    auto form = three ? (fours ? launch<KIND, 3, true> : launch<KIND, 3, false>)
                      : (fours ? launch<KIND, 5, true> : launch<KIND, 5, false>);
    form(q, job);
}

void dmi_cuda_launch_narrow(dmi_queue *q, const dmi_narrow_job *job)
{
    auto kind = job->kind == DMI_NARROW_DATA      ? launch_kind<DMI_NARROW_DATA>
                : job->kind == DMI_NARROW_WEIGHTS ? launch_kind<DMI_NARROW_WEIGHTS>
                                                  : launch_kind<DMI_NARROW_FORWARD>;
    kind(q, job);
    dmi_cuda_launched(q, "narrow product");
}

bool dmi_cuda_narrow_built(void)
{
    cudaFuncAttributes code;
    return cudaFuncGetAttributes(&code, narrow<DMI_NARROW_FORWARD, 5, true>) == cudaSuccess &&
           code.ptxVersion >= 90;
}
