/* Sums by channel on GPUs, alone and behind the gradient of ReLU, and biases. Rows are dealt to thread blocks
 * in parts, whose sums are added in their order: both follow from the extents alone. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

/* PARTS: 8 on each of 132 multiprocessors. SIDE: sums of 8 bytes in a sector of memory */
enum { THREADS = DMI_CUDA_THREADS, PARTS = 1056, ROWS_LEAST = 2, WARP = 32, SIDE = 4 };

/* V elements from `at` on; ALIGNED: at once. */
template <typename T, typename S, int V, bool ALIGNED>
static __device__ __forceinline__ group<T, V> load(const S *at)
{
    if constexpr (ALIGNED) {
        return loaded<T, S, V>(at);
    } else {
        return gathered<T, S, V>(at);
    }
}

struct sums_params {
    int64_t rows, channels, pitch, part; /* pitch: channels of a row; part: rows of one */
    int lanes, teams;                    /* threads side by side on V channels each; how many rows at once */
    void *out; /* of f64, or f32: there is one part, whose sums these are; NULL: there are more */
    bool wide; /* out is f64 */
};

/* partial[part * channels + c] of the block's channels: the sums of its teams, in their order; or what they end
 * as. */
template <int V>
static __device__ void join_teams(const sums_params &p, const double (&sum)[V], double *partial)
{
    __shared__ double shared[THREADS * V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        shared[k * THREADS + threadIdx.x] = sum[k];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < p.lanes * V; i += THREADS) {
        int64_t channel = (int64_t)blockIdx.y * p.lanes * V + i;
        double all = 0;
        for (int t = 0; t < p.teams && channel < p.channels; t++) {
            all += shared[i % V * THREADS + t * p.lanes + i / V];
        }
        if (channel >= p.channels) {
            continue;
        }
        if (p.out == NULL) {
            partial[(int64_t)blockIdx.x * p.channels + channel] = all;
        } else if (p.wide) {
            ((double *)p.out)[channel] = all;
        } else {
            ((float *)p.out)[channel] = (float)all;
        }
    }
}

/* What a thread adds up: V channels from c on, of every `teams`-th row from `row` to `end`. */
struct portion {
    int64_t c, row, end;
};

/* blockIdx.x: part, .y: lanes * V channels */
template <int V> static __device__ __forceinline__ portion portion_of(const sums_params &p)
{
    int lane = (int)threadIdx.x % p.lanes, team = (int)threadIdx.x / p.lanes;
    int64_t begin = blockIdx.x * p.part, end = min(begin + p.part, p.rows);
    int64_t c = ((int64_t)blockIdx.y * p.lanes + lane) * V;
    bool works = team < p.teams && c < p.channels;
    return {c, begin + team, works ? end : 0};
}

/* Where x goes too: an image for each group, of `channels` channels. */
template <typename S> struct groups_of {
    S *at; /* NULL: nowhere */
    int64_t channels;
};

/* APART: x goes to the groups' images. */
template <typename T, typename S, int V, bool ALIGNED, bool APART>
static __global__ void __launch_bounds__(THREADS)
    sum_parts(const sums_params p, const S *x, const S *y, const groups_of<S> groups, double *partial)
{
    after_previous();
    portion mine = portion_of<V>(p);
    double sum[V] = {};
    S *to = NULL;
    if constexpr (APART) {
        int64_t group = mine.c / groups.channels;
        to = groups.at + group * p.rows * groups.channels + mine.c - group * groups.channels;
    }
#pragma unroll 4
    for (int64_t r = mine.row; r < mine.end; r += p.teams) {
        group<T, V> a = load<T, S, V, ALIGNED>(x + r * p.pitch + mine.c);
        if constexpr (APART) {
            stored<T, S, V>(to + r * groups.channels, a);
        }
        if (y != NULL) {
            group<T, V> b = load<T, S, V, ALIGNED>(y + r * p.pitch + mine.c);
#pragma unroll
            for (int k = 0; k < V; k++) {
                sum[k] += (double)a.v[k] * (double)b.v[k];
            }
        } else {
#pragma unroll
            for (int k = 0; k < V; k++) {
                sum[k] += (double)a.v[k];
            }
        }
    }
    join_teams<V>(p, sum, partial);
}

/* The same of dx, which is made on the way: dy where x > 0. Rows of x are x_pitch elements apart, those of dy
 * dy_pitch, those of dx p.pitch. */
template <typename T, typename S, int V, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS)
    relu_parts(const sums_params p, int64_t x_pitch, int64_t dy_pitch, const S *x, const S *dy, S *dx,
               double *partial)
{
    after_previous();
    portion mine = portion_of<V>(p);
    double sum[V] = {};
#pragma unroll 4
    for (int64_t r = mine.row; r < mine.end; r += p.teams) {
        group<T, V> a = load<T, S, V, ALIGNED>(x + r * x_pitch + mine.c),
                    b = load<T, S, V, ALIGNED>(dy + r * dy_pitch + mine.c);
#pragma unroll
        for (int k = 0; k < V; k++) {
            b.v[k] = a.v[k] > 0 ? b.v[k] : (T)0;
            sum[k] += (double)b.v[k];
        }
        stored<T, S, V>(dx + r * p.pitch + mine.c, b);
    }
    join_teams<V>(p, sum, partial);
}

/* A thread block for SIDE channels, so that threads side by side read whole sectors: each thread adds up the
 * parts of one channel from its row on, every ROWS-th; then the sums of the rows are added. */
template <typename OUT>
static __global__ void __launch_bounds__(THREADS)
    join(int64_t channels, int parts, const double *partial, OUT *out)
{
    after_previous();
    const int ROWS = THREADS / SIDE, AHEAD = 6;
    __shared__ double shared[THREADS / WARP][SIDE];
    int row = (int)threadIdx.x / SIDE, side = (int)threadIdx.x % SIDE;
    int64_t c = (int64_t)blockIdx.x * SIDE + side;
    double sum = 0;
    for (int i = row; i < parts && c < channels; i += ROWS * AHEAD) {
        double part[AHEAD]; /* all on their way at once */
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            part[k] = i + k * ROWS < parts ? partial[(int64_t)(i + k * ROWS) * channels + c] : 0;
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            sum += part[k];
        }
    }
    for (int by = WARP / 2; by >= SIDE; by /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, by);
    }
    if (threadIdx.x % WARP < SIDE) {
        shared[threadIdx.x / WARP][side] = sum;
    }
    __syncthreads();
    if (row == 0 && c < channels) {
        double all = 0;
        for (int w = 0; w < THREADS / WARP; w++) {
            all += shared[w][side];
        }
        out[c] = (OUT)all;
    }
}

/* Parts for rows of `channels` channels, V by V, whose sums the queue's workspace has room for. out: where the
 * sums go, of f64 or f32. */
static sums_params deal(const dmi_queue *q, int64_t rows, int64_t channels, int64_t pitch, int v, void *out,
                        bool wide, dim3 *grid)
{
    sums_params p = {};
    int64_t groups = channels / v;
    p.rows = rows;
    p.channels = channels;
    p.pitch = pitch;
    p.lanes = (int)(groups < THREADS ? groups : THREADS);
    p.teams = THREADS / p.lanes;
    int64_t tiles = (groups + p.lanes - 1) / p.lanes, most = (PARTS + tiles - 1) / tiles,
            least = (int64_t)p.teams * ROWS_LEAST;
    int64_t parts = rows / least, room = q->workspace_bytes / (channels * (int64_t)sizeof(double));
    parts = parts < most ? parts : most;
    parts = parts < room ? parts : room;
    parts = parts > 1 ? parts : 1;
    p.part = (rows + parts - 1) / parts;
    parts = p.part > 0 ? (rows + p.part - 1) / p.part : 1;
    *grid = dim3((unsigned)parts, (unsigned)tiles);
    p.out = parts == 1 ? out : NULL;
    p.wide = wide;
    return p;
}

template <typename T, typename S, int V>
static void launch_part(dmi_queue *q, int64_t rows, int64_t channels, int64_t pitch, const S *x, const S *y,
                        const groups_of<S> &groups, dm_dtype out_dtype, void *out)
{
    dim3 grid;
    sums_params p = deal(q, rows, channels, pitch, V, out, out_dtype == DM_F64, &grid);
    bool aligned = (((uintptr_t)x | (uintptr_t)y) & 15) == 0;
    double *partial = (double *)q->workspace;
    auto kernel = groups.at != NULL ? sum_parts<T, S, V, true, true>
                  : aligned         ? sum_parts<T, S, V, true, false>
                                    : sum_parts<T, S, V, false, false>;
    launch_after(q, kernel, grid, p, x, y, groups, partial);
    unsigned blocks = blocks_for(channels, SIDE);
    if (p.out != NULL) {
        return;
    }
    if (out_dtype == DM_F64) {
        launch_after(q, join<double>, dim3(blocks), channels, (int)grid.x, partial, (double *)out);
    } else {
        launch_after(q, join<float>, dim3(blocks), channels, (int)grid.x, partial, (float *)out);
    }
}

/* As many channels at once as the workspace has room for. */
template <typename T, typename S, int V>
static void launch_sums(dmi_queue *q, int64_t rows, int64_t channels, const void *x, const void *y,
                        dm_dtype out_dtype, void *out)
{
    int64_t most = q->workspace_bytes / (int64_t)sizeof(double) / V * V;
    for (int64_t c = 0; c < channels; c += most) {
        launch_part<T, S, V>(q, rows, channels - c < most ? channels - c : most, channels, (const S *)x + c,
                             y != NULL ? (const S *)y + c : NULL, groups_of<S>{}, out_dtype,
                             (char *)out + c * dmi_dtype_bytes(out_dtype));
    }
}

void dmi_cuda_launch_channels(dmi_queue *q, dm_dtype dtype, int64_t rows, int64_t channels, const void *x,
                              const void *y, dm_dtype out_dtype, void *out)
{
    bool even = channels % 2 == 0, four = channels % 4 == 0, eight = channels % 8 == 0;
    auto launch = dtype == DM_F64    ? (even ? launch_sums<double, double, 2> : launch_sums<double, double, 1>)
                  : dtype == DM_BF16 ? (eight  ? launch_sums<float, bf16, 8>
                                        : four ? launch_sums<float, bf16, 4>
                                               : launch_sums<float, bf16, 1>)
                  : dtype == DM_F16  ? (eight  ? launch_sums<float, f16, 8>
                                        : four ? launch_sums<float, f16, 4>
                                               : launch_sums<float, f16, 1>)
                                     : (four ? launch_sums<float, float, 4> : launch_sums<float, float, 1>);
    launch(q, rows, channels, x, y, out_dtype, out);
    dmi_cuda_launched(q, "channel_sums");
}

template <typename T, typename S, int V>
static void launch_apart(dmi_queue *q, int64_t rows, int64_t channels, int64_t groups, const void *x, void *to,
                         dm_dtype out_dtype, void *out)
{
    launch_part<T, S, V>(q, rows, channels, channels, (const S *)x, NULL,
                         groups_of<S>{(S *)to, channels / groups}, out_dtype, out);
}

void dmi_cuda_launch_groups_sums(dmi_queue *q, dm_dtype dtype, int64_t rows, int64_t channels, int64_t groups,
                                 const void *x, void *to, dm_dtype out_dtype, void *out)
{
    if (channels * (int64_t)sizeof(double) > q->workspace_bytes) {
        dmi_cuda_launch_groups(q, rows, channels * dmi_dtype_bytes(dtype), groups, false, x, to);
        dmi_cuda_launch_channels(q, dtype, rows, channels, x, NULL, out_dtype, out);
        return;
    }
    auto launch = dtype == DM_BF16  ? launch_apart<float, bf16, 8>
                  : dtype == DM_F16 ? launch_apart<float, f16, 8>
                                    : launch_apart<float, float, 4>;
    launch(q, rows, channels, groups, x, to, out_dtype, out);
    dmi_cuda_launched(q, "groups_sums");
}

template <typename T, typename S, int V> static void launch_relu(dmi_queue *q, const dmi_cuda_relu_sums *r)
{
    int64_t room = q->workspace_bytes / (int64_t)sizeof(double) / V * V;
    for (int64_t c = 0; c < r->channels; c += room) {
        dim3 grid;
        int64_t channels = r->channels - c < room ? r->channels - c : room;
        sums_params p = deal(q, r->rows, channels, r->dx_pitch, V, r->sums + c, true, &grid);
        double *partial = (double *)q->workspace;
        launch_after(q, relu_parts<T, S, V, (V > 1)>, grid, p, r->x_pitch, r->pitch, (const S *)r->x + c,
                     (const S *)r->dy + c, (S *)r->dx + c, partial);
        if (p.out == NULL) {
            launch_after(q, join<double>, dim3(blocks_for(channels, SIDE)), channels, (int)grid.x, partial,
                         r->sums + c);
        }
    }
}

/* V elements at once where all are aligned. */
template <typename T, typename S, int V> static void launch_relu_sums(dmi_queue *q, const dmi_cuda_relu_sums *r)
{
    bool aligned = (((uintptr_t)r->x | (uintptr_t)r->dy | (uintptr_t)r->dx) & 15) == 0;
    (aligned && r->channels % V == 0 && (r->x_pitch | r->pitch | r->dx_pitch) % V == 0
         ? launch_relu<T, S, V>
         : launch_relu<T, S, 1>)(q, r);
}

void dmi_cuda_launch_relu_sums(dmi_queue *q, const dmi_cuda_relu_sums *r)
{
    auto launch = r->dtype == DM_F64    ? launch_relu_sums<double, double, 2>
                  : r->dtype == DM_BF16 ? launch_relu_sums<float, bf16, 8>
                  : r->dtype == DM_F16  ? launch_relu_sums<float, f16, 8>
                                        : launch_relu_sums<float, float, 4>;
    launch(q, r);
    dmi_cuda_launched(q, "relu_sums");
}

/* F: the type of from. Rows of from are from_pitch elements apart. */
template <typename T, typename S, typename F, int V>
static __global__ void __launch_bounds__(THREADS)
    biased(uint32_t items, const dmi_cuda_divisor lanes, bool relu, int64_t from_pitch, int64_t pitch,
           const F *from, const T *bias, S *y)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    uint32_t row = divided(i, lanes), c = i - row * lanes.extent;
    group<T, V> b = {};
    if (bias != NULL) {
        b = gathered<T, T, V>(bias + (int64_t)c * V);
    }
    if (from != NULL) {
        group<T, V> old = loaded<T, F, V>(from + row * from_pitch + (int64_t)c * V);
#pragma unroll
        for (int k = 0; k < V; k++) {
            b.v[k] += old.v[k];
        }
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        b.v[k] = relu && b.v[k] < 0 ? (T)0 : b.v[k];
    }
    stored<T, S, V>(y + row * pitch + (int64_t)c * V, b);
}

template <typename T, typename S, typename F, int V>
static void launch_biased(dmi_queue *q, const dmi_cuda_bias *b)
{
    int64_t lanes = b->channels / V, most = DMI_CUDA_ITEMS / lanes,
            apart = b->from == b->y ? b->pitch : b->channels;
    for (int64_t r = 0; r < b->rows; r += most) {
        int64_t items = (b->rows - r < most ? b->rows - r : most) * lanes;
        const F *from = b->from != NULL ? (const F *)b->from + r * apart : NULL;
        launch_after(q, biased<T, S, F, V>, dim3(blocks_for(items, THREADS)), (uint32_t)items,
                     dmi_cuda_divide_by(lanes), b->relu, apart, b->pitch, from, (const T *)b->bias,
                     (S *)b->y + r * b->pitch);
    }
}

template <typename T, typename S, int V> static void launch_bias(dmi_queue *q, const dmi_cuda_bias *b)
{
    bool grouped =
        (((uintptr_t)b->y | (uintptr_t)b->from) & 15) == 0 && b->channels % V == 0 && b->pitch % V == 0;
    auto own = grouped ? launch_biased<T, S, S, V> : launch_biased<T, S, S, 1>;
    auto wide = grouped ? launch_biased<T, S, T, V> : launch_biased<T, S, T, 1>;
    (b->from == b->y ? own : wide)(q, b);
}

void dmi_cuda_launch_bias(dmi_queue *q, const dmi_cuda_bias *b)
{
    auto launch = b->dtype == DM_F64    ? launch_bias<double, double, 2>
                  : b->dtype == DM_BF16 ? launch_bias<float, bf16, 8>
                  : b->dtype == DM_F16  ? launch_bias<float, f16, 8>
                                        : launch_bias<float, float, 4>;
    launch(q, b);
    dmi_cuda_launched(q, "bias");
}
