/* Small convolutions of f32 on GPUs, forward and by the weights: one kernel reads the windows of x where they
 * are, multiplies and adds the bias, or makes its gradient. Larger ones are left to cuBLAS, which multiplies
 * faster, but needs the windows as a matrix and several kernels. Orders of sums follow from the extents alone.
 */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

/* A thread block makes a tile of ROWS x COLUMNS, DEPTH terms at a time, loading the next ones while it
 * multiplies. A thread has 4 x 4 elements, and of the terms every team of threads that have the whole tile its
 * part. */
enum { THREADS = DMI_CUDA_THREADS, ROWS = 32, DEPTH = 32, WARP = 32, WARPS = THREADS / WARP };
/* Elements from one row in shared memory to the next, so that a warp that writes 4 rows of 8 meets each bank
 * once. */
enum { ROWS_PITCH = ROWS + 8 };
template <int COLUMNS> struct tile {
    static constexpr int PITCH = COLUMNS + 8, TEAM = ROWS * COLUMNS / 16, TEAMS = THREADS / TEAM,
                         PART = DEPTH / TEAMS;
    int team, member, row, column; /* row, column: of the thread's 4 x 4 elements */
    __device__ __forceinline__ tile()
    {
        team = (int)threadIdx.x / TEAM;
        member = (int)threadIdx.x % TEAM;
        row = member / (COLUMNS / 4) * 4;
        column = member % (COLUMNS / 4) * 4;
    }
    /* sum += the products of the team's part of the rows of a and b. */
    __device__ __forceinline__ void multiply(const float *a, const float *b, float (&sum)[4][4]) const
    {
#pragma unroll
        for (int k = 0; k < PART; k++) {
            const group<float, 4> u = *(const group<float, 4> *)(a + (team * PART + k) * ROWS_PITCH + row),
                                  v = *(const group<float, 4> *)(b + (team * PART + k) * PITCH + column);
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[i][j] = fmaf(u.v[i], v.v[j], sum[i][j]);
                }
            }
        }
    }
    /* The first team's sums: those of all teams, in their order. room: TEAM * 16 elements. */
    __device__ __forceinline__ void join(float *room, float (&sum)[4][4]) const
    {
        for (int from = 1; from < TEAMS; from++) {
            __syncthreads();
#pragma unroll
            for (int e = 0; e < 16 && team == from; e++) {
                room[e * TEAM + member] = sum[e / 4][e % 4];
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < 16 && team == 0; e++) {
                sum[e / 4][e % 4] += room[e * TEAM + member];
            }
        }
    }
};

typedef dmi_cuda_small_conv params;

/* An element of a window: where it is from the window's first element on, and its row and column. */
struct place {
    int offset;
    short row, column;
};
static __device__ __forceinline__ place place_of(const params &p, uint32_t k)
{
    uint32_t tap = divided(k, p.channels), row = divided(tap, p.columns);
    place at;
    at.row = (short)(row * p.dilation[0]);
    at.column = (short)((tap - row * p.columns.extent) * p.dilation[1]);
    at.offset = (at.row * p.in[1] + at.column) * (int)p.channels.extent + (int)(k - tap * p.channels.extent);
    return at;
}

/* A window: its first element, which may lie beyond the image, and where that is. There is none: row is so low
 * that no element is inside. */
struct window {
    int offset, row, column;
};
static __device__ __forceinline__ window window_of(const params &p, uint32_t m)
{
    uint32_t line = divided(m, p.out[1]), n = divided(line, p.out[0]);
    window w;
    w.row = (int)(line - n * p.out[0].extent) * p.stride[0] - p.pad[0];
    w.column = (int)(m - line * p.out[1].extent) * p.stride[1] - p.pad[1];
    w.offset = (((int)n * p.in[0] + w.row) * p.in[1] + w.column) * (int)p.channels.extent;
    w.row = m < (uint32_t)p.windows ? w.row : -(1 << 24);
    return w;
}
static __device__ __forceinline__ float element(const params &p, const float *x, const window &w,
                                                const place &at)
{
    int row = w.row + at.row, column = w.column + at.column;
    bool inside = row >= 0 && row < p.in[0] && column >= 0 && column < p.in[1];
    return inside ? x[w.offset + at.offset] : 0.0f;
}

/* blockIdx.x: ROWS windows; .y: COLUMNS outputs. */
template <int COLUMNS>
static __global__ void __launch_bounds__(THREADS)
    forward(const params p, const float *x, const float *w, const float *bias, float *y)
{
    after_previous();
    const int PITCH = tile<COLUMNS>::PITCH, EACH = COLUMNS * DEPTH / THREADS, STEP = THREADS / COLUMNS;
    __shared__ alignas(16) float a[DEPTH * ROWS_PITCH], b[DEPTH * PITCH];
    __shared__ place places[DMI_SMALL_TERMS];
    const tile<COLUMNS> mine;
    const int terms = p.terms, thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    for (int k = thread; k < terms; k += THREADS) {
        places[k] = place_of(p, (uint32_t)k);
    }
    /* What the thread loads: of one window every fourth term of a half, and of one output every STEP-th. */
    const int m = warp % 4 * 8 + lane % 8, a_first = warp / 4 * (DEPTH / 2) + lane / 8;
    const int n = warp % (COLUMNS / 8) * 8 + lane % 8, b_first = warp / (COLUMNS / 8) * 4 + lane / 8,
              output = (int)blockIdx.y * COLUMNS + n;
    const window own = window_of(p, blockIdx.x * ROWS + (uint32_t)m);
    const float *row = w + (int64_t)output * terms;
    float sum[4][4] = {}, a_next[4], b_next[EACH];
    auto load = [&](int first) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int k = first + a_first + 4 * i;
            a_next[i] = k < terms ? element(p, x, own, places[k]) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int k = first + b_first + STEP * i;
            b_next[i] = k < terms && output < p.outputs ? row[k] : 0.0f;
        }
    };
    __syncthreads();
    load(0);
    for (int first = 0; first < terms; first += DEPTH) {
        __syncthreads(); /* what was loaded before has been used */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a[(a_first + 4 * i) * ROWS_PITCH + m] = a_next[i];
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            b[(b_first + STEP * i) * PITCH + n] = b_next[i];
        }
        __syncthreads();
        if (first + DEPTH < terms) {
            load(first + DEPTH);
        }
        mine.multiply(a, b, sum);
    }
    mine.join(b, sum);
    for (int e = 0; e < 16 && mine.team == 0; e++) {
        int64_t at = (int64_t)blockIdx.x * ROWS + mine.row + e / 4;
        int c = (int)blockIdx.y * COLUMNS + mine.column + e % 4;
        if (at < p.windows && c < p.outputs) {
            float value = sum[e / 4][e % 4] + (bias != NULL ? bias[c] : 0.0f);
            y[at * p.pitch + c] = p.relu && value < 0 ? 0.0f : value;
        }
    }
}

/* Of a part of the windows: partial[part][output][term] = the sum over windows of dy x; sums[part][output] =
 * that of dy, where sums is not NULL. blockIdx.x: part; .y: COLUMNS terms; .z: ROWS outputs. */
template <int COLUMNS>
static __global__ void __launch_bounds__(THREADS)
    weights(const params p, int each, const float *x, const float *dy, float *partial, double *sums)
{
    after_previous();
    const int PITCH = tile<COLUMNS>::PITCH, WIDE = COLUMNS / WARP, LOADS = DEPTH / WARPS;
    __shared__ alignas(16) float a[DEPTH * ROWS_PITCH], b[DEPTH * PITCH];
    __shared__ double part[THREADS];
    const tile<COLUMNS> mine;
    const int terms = p.terms, thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const int begin = (int)blockIdx.x * each, end = min(begin + each, (int)p.windows);
    /* What the thread loads: of one output and of WIDE terms every eighth window. */
    const int output = (int)blockIdx.z * ROWS + lane;
    place at[WIDE];
    bool there[WIDE];
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
        int k = (int)blockIdx.y * COLUMNS + lane + j * WARP;
        there[j] = k < terms;
        at[j] = place_of(p, (uint32_t)(there[j] ? k : 0));
    }
    float sum[4][4] = {}, a_next[LOADS], b_next[WIDE][LOADS];
    double bias = 0;
    auto load = [&](int from) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int m = from + warp + i * WARPS;
            window own = window_of(p, (uint32_t)m);
            a_next[i] = m < end && output < p.outputs ? dy[(int64_t)m * p.outputs + output] : 0.0f;
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                b_next[j][i] = m < end && there[j] ? element(p, x, own, at[j]) : 0.0f;
            }
        }
    };
    load(begin);
    for (int from = begin; from < end; from += DEPTH) {
        __syncthreads(); /* what was loaded before has been used */
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int m = warp + i * WARPS;
            a[m * ROWS_PITCH + lane] = a_next[i];
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                b[m * PITCH + lane + j * WARP] = b_next[j][i];
            }
            bias += (double)a_next[i];
        }
        __syncthreads();
        if (from + DEPTH < end) {
            load(from + DEPTH);
        }
        mine.multiply(a, b, sum);
    }
    mine.join(b, sum);
    for (int e = 0; e < 16 && mine.team == 0; e++) {
        int n = (int)blockIdx.z * ROWS + mine.row + e / 4, k = (int)blockIdx.y * COLUMNS + mine.column + e % 4;
        if (n < p.outputs && k < terms) {
            partial[((int64_t)blockIdx.x * p.outputs + n) * terms + k] = sum[e / 4][e % 4];
        }
    }
    if (sums != NULL && blockIdx.y == 0) {
        part[thread] = bias;
        __syncthreads();
        double all = 0;
        for (int i = 0; i < WARPS && thread < WARP; i++) {
            all += part[i * WARP + lane];
        }
        if (thread < WARP && output < p.outputs) {
            sums[(int64_t)blockIdx.x * p.outputs + output] = all;
        }
    }
}

/* dw = the sums of the parts, and bias likewise. A warp's lanes have an element each; warps share the parts. */
template <typename B>
static __global__ void __launch_bounds__(THREADS)
    join(int parts, int elements, int outputs, const float *partial, const double *sums, float *dw, B *bias)
{
    after_previous();
    __shared__ double part[THREADS];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int e = (int)blockIdx.x * WARP + lane, c = e - elements;
    double sum = 0;
    for (int i = warp; i < parts; i += WARPS) {
        if (e < elements) {
            sum += (double)partial[(int64_t)i * elements + e];
        } else if (c < outputs) {
            sum += sums[(int64_t)i * outputs + c];
        }
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < WARPS && warp == 0; i++) {
        sum += part[i * WARP + lane];
    }
    if (warp == 0 && e < elements) {
        dw[e] = (float)sum;
    } else if (warp == 0 && c < outputs) {
        bias[c] = (B)sum;
    }
}

template <int COLUMNS>
static void launch_forward(dmi_queue *q, const params *p, const float *x, const float *w, const float *bias,
                           float *y)
{
    dim3 blocks(blocks_for(p->windows, ROWS), blocks_for(p->outputs, COLUMNS));
    launch_after(q, forward<COLUMNS>, blocks, *p, x, w, bias, y);
}

void dmi_cuda_launch_small_conv(dmi_queue *q, const params *p, const float *x, const float *w,
                                const float *bias, float *y)
{
    (p->outputs <= 32 ? launch_forward<32> : launch_forward<64>)(q, p, x, w, bias, y);
    dmi_cuda_launched(q, "small_conv");
}

/* Parts of the windows: enough for all multiprocessors, of at most MOST windows, which are added in f32. */
template <int COLUMNS>
static void launch_weights(dmi_queue *q, const params *p, const float *x, const float *dy, float *dw,
                           dm_dtype bias_dtype, void *bias)
{
    enum { BLOCKS = 264, LEAST = 4 * DEPTH, MOST = 1 << 13 };
    const int elements = p->outputs * p->terms, outputs = bias != NULL ? p->outputs : 0;
    const dim3 tiles(1, blocks_for(p->terms, COLUMNS), blocks_for(p->outputs, ROWS));
    const int64_t room = q->workspace_bytes / (((int64_t)p->outputs + elements) * (int64_t)sizeof(double));
    int64_t parts = BLOCKS / (tiles.y * tiles.z);
    parts = parts < p->windows / LEAST ? parts : p->windows / LEAST;
    parts = parts > p->windows / MOST ? parts : p->windows / MOST;
    parts = parts < room ? parts : room;
    parts = parts > 1 ? parts : 1;
    int each = (int)((p->windows + parts - 1) / parts);
    parts = (p->windows + each - 1) / each;
    double *sums = (double *)q->workspace;
    float *partial = (float *)(sums + parts * outputs);
    launch_after(q, weights<COLUMNS>, dim3((unsigned)parts, tiles.y, tiles.z), *p, each, x, dy, partial,
                 bias != NULL ? sums : NULL);
    unsigned rest = blocks_for((int64_t)elements + outputs, WARP);
    if (bias_dtype == DM_F64) {
        launch_after(q, join<double>, rest, (int)parts, elements, outputs, partial, sums, dw, (double *)bias);
    } else {
        launch_after(q, join<float>, rest, (int)parts, elements, outputs, partial, sums, dw, (float *)bias);
    }
}

void dmi_cuda_launch_small_weights(dmi_queue *q, const params *p, const float *x, const float *dy, float *dw,
                                   dm_dtype bias_dtype, void *bias)
{
    (p->terms <= 32 ? launch_weights<32> : launch_weights<64>)(q, p, x, dy, dw, bias_dtype, bias);
    dmi_cuda_launched(q, "small_weights");
}
