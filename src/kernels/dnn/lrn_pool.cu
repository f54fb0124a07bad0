/* Local response normalisation and pooling by the largest in one kernel, of 16 bits. A thread block normalises
 * the pixels of a tile of windows into shared memory, and takes the largest from there. Backward a thread
 * gathers what windows give to its channels of a pixel. What lies between the two is rounded as it would be in
 * memory, so results are those of the two kernels to the bit. */
#include "kernels/dnn/lrn.cuh"
#include "kernels/dnn/pooling.cuh"

/* ROOM: groups of 8 channels in shared memory, so that 5 thread blocks fit into a multiprocessor. ROWS: of
 * windows in a tile. */
enum { THREADS = DMI_CUDA_THREADS, V = 8, WORDS = V / 2, ROOM = 2560, ROWS = 2 };

/* The own channels of a pixel and two on each side, as they lie in memory. */
template <typename S> struct pixel {
    group<uint32_t, WORDS> own;
    uint32_t left, right;
    __device__ __forceinline__ void load(const S *at, int c, int unit)
    {
        own = *(const group<uint32_t, WORDS> *)at;
        left = c > 0 ? *(const uint32_t *)(at - 2) : 0;
        right = c + V < unit ? *(const uint32_t *)(at + V) : 0;
    }
    __device__ __forceinline__ void open(float (&value)[V + 4]) const
    {
        pair<S>::open(left, value[0], value[1]);
        pair<S>::open(right, value[V + 2], value[V + 3]);
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            pair<S>::open(own.v[j], value[2 + 2 * j], value[3 + 2 * j]);
        }
    }
};

/* Rounds a pair to S. */
template <typename S> static __device__ __forceinline__ uint32_t closed_pair(float lo, float hi)
{
    group<S, 2> two = {closed<S>(lo), closed<S>(hi)};
    return *(const uint32_t *)&two;
}

template <typename S, int HALF>
static __device__ __forceinline__ group<uint32_t, WORDS> normalised(const params<float> &p, const pixel<S> &x)
{
    group<uint32_t, WORDS> out;
    float value[V + 4], made[V], unused;
    x.open(value);
#pragma unroll
    for (int k = 0; k < V; k++) {
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += value[k + 2 + o] * value[k + 2 + o];
        }
        scaled_by<float, S>(p.k + p.factor * sum, p.beta, value[k + 2], value[k + 2], &made[k], &unused);
    }
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        out.v[j] = closed_pair<S>(made[2 * j], made[2 * j + 1]);
    }
    return out;
}

/* A tile of windows: `columns` of them in each of ROWS rows, and the pixels that they lie over. */
struct tile {
    int columns, wide;                                         /* wide: pixels in a row */
    dmi_cuda_divisor lanes, by_columns, by_wide, across, down; /* across, down: tiles of a row, of a column */
};

/* Windows K x K, STRIDE apart. */
template <typename S, int HALF, int K, int STRIDE>
static __global__ void __launch_bounds__(THREADS, 4)
    forward(const params<float> l, const dmi_cuda_pooling p, const tile t, const S *x, S *y, uint8_t *taps)
{
    after_previous();
    __shared__ group<uint32_t, WORDS> pixels[ROOM];
    const int lanes = (int)t.lanes.extent, unit = (int)p.channels;
    uint32_t row = divided(blockIdx.x, t.across), sample = divided(row, t.down);
    const int first[2] = {(int)(row - sample * t.down.extent) * ROWS,
                          (int)(blockIdx.x - row * t.across.extent) * t.columns};
    const int rows = min(ROWS, p.out[0] - first[0]), columns = min(t.columns, p.out[1] - first[1]);
    const S *image = x + (int64_t)sample * p.in[0] * p.in[1] * p.channels;
    for (uint32_t i = threadIdx.x; i < ((rows - 1) * STRIDE + K) * t.wide * lanes; i += THREADS) {
        uint32_t place = divided(i, t.lanes), down = divided(place, t.by_wide);
        int c = (int)(i - place * lanes) * V, h = first[0] * STRIDE - p.pad[0] + (int)down,
            v = first[1] * STRIDE - p.pad[1] + (int)(place - down * t.wide);
        if (h >= 0 && h < p.in[0] && v >= 0 && v < p.in[1]) {
            pixel<S> own;
            own.load(image + ((int64_t)h * p.in[1] + v) * p.channels + c, c, unit);
            pixels[i] = normalised<S, HALF>(l, own);
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows * t.columns * lanes; i += THREADS) {
        uint32_t place = divided(i, t.lanes), down = divided(place, t.by_columns);
        const int lane = (int)(i - place * lanes), across = (int)(place - down * t.columns);
        if (across >= columns) {
            continue;
        }
        int at[2] = {first[0] + (int)down, first[1] + across};
        window w = window_of(p, at);
        group<uint32_t, WORDS> value[K * K] = {};
        bool inside[K * K], whole = true;
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            inside[k] = is_inside<K>(w, k);
            whole = whole && inside[k];
            value[k] = pixels[((down * STRIDE + k / K) * t.wide + across * STRIDE + k % K) * lanes + lane];
        }
        largest_short<S> taken;
        if (whole) {
            taken.template take<true>(value, inside);
        } else {
            taken.template take<false>(value, inside);
        }
        int64_t to = (((int64_t)sample * p.out[0] + at[0]) * p.out[1] + at[1]) * p.channels + lane * V;
        taken.store(y + to);
        if (taps != NULL) {
            taken.store_taps(p.relu, taps + to);
        }
    }
}

/* What windows K x K, STRIDE apart, give to 8 channels of a pixel, in the order of the windows. */
template <typename S, int K, int STRIDE>
static __device__ __forceinline__ group<uint32_t, WORDS>
gathered_from(const dmi_cuda_pooling &p, int h, int v, int64_t from, const uint8_t *taps, const S *dy)
{
    const int N = (K + STRIDE - 1) / STRIDE;
    const int down = (h + p.pad[0]) / STRIDE, across = (v + p.pad[1]) / STRIDE;
    float sum[V] = {};
#pragma unroll
    for (int n = 0; n < N * N; n++) {
        const int r = down - (N - 1) + n / N, c = across - (N - 1) + n % N;
        const int row = h + p.pad[0] - r * STRIDE, column = v + p.pad[1] - c * STRIDE;
        if (r >= 0 && r < p.out[0] && c >= 0 && c < p.out[1] && row < K && column < K) {
            int64_t at = from + ((int64_t)r * p.out[1] + c) * p.channels;
            group<uint32_t, WORDS> given = *(const group<uint32_t, WORDS> *)(dy + at);
            group<uint32_t, 2> tap = *(const group<uint32_t, 2> *)(taps + at);
            uint32_t element = (uint32_t)(row * K + column) * 0x01010101u;
#pragma unroll
            for (int j = 0; j < WORDS; j++) {
                uint32_t mask = __byte_perm(__vcmpeq4(tap.v[j / 2], element), 0, j % 2 == 0 ? 0x1100 : 0x3322);
                float a, b;
                pair<S>::open(given.v[j] & mask, a, b);
                sum[2 * j] += a;
                sum[2 * j + 1] += b;
            }
        }
    }
    group<uint32_t, WORDS> out;
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        out.v[j] = closed_pair<S>(sum[2 * j], sum[2 * j + 1]);
    }
    return out;
}

/* A thread block: some pixels, one behind the other. */
struct pixels_of {
    uint32_t each, all; /* of a thread block; of all samples */
    dmi_cuda_divisor lanes, image, row;
};

/* A thread has 8 channels of a pixel; those beside it have the ratios of the channels next to these. */
template <typename S, int HALF, int K, int STRIDE>
static __global__ void __launch_bounds__(THREADS, 4)
    backward(const params<float> l, const dmi_cuda_pooling p, const pixels_of q, const S *x,
             const uint8_t *taps, const S *dy, S *dx)
{
    after_previous();
    __shared__ group<float, 4> edge[THREADS]; /* the first two ratios of a thread, and the last two */
    const int lanes = (int)q.lanes.extent, unit = (int)p.channels;
    const uint32_t begin = blockIdx.x * q.each, t = threadIdx.x, items = min(q.each, q.all - begin) * lanes;
    uint32_t place = divided(t, q.lanes), pixel_at = begin + place;
    const int lane = (int)(t - place * lanes);
    const int64_t at = (int64_t)pixel_at * p.channels + lane * V;
    float value[V + 4], given[V], made[V], ratio[V + 4];
    if (t < items) {
        uint32_t sample = divided(pixel_at, q.image), in_image = pixel_at - sample * q.image.extent,
                 h = divided(in_image, q.row);
        pixel<S> own;
        own.load(x + at, lane * V, unit);
        int64_t from = (int64_t)sample * p.out[0] * p.out[1] * p.channels + lane * V;
        group<uint32_t, WORDS> got =
            gathered_from<S, K, STRIDE>(p, (int)h, (int)(in_image - h * q.row.extent), from, taps, dy);
        own.open(value);
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            pair<S>::open(got.v[j], given[2 * j], given[2 * j + 1]);
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            float sum = 0;
#pragma unroll
            for (int o = -HALF; o <= HALF; o++) {
                sum += value[k + 2 + o] * value[k + 2 + o];
            }
            scaled_by<float, S>(l.k + l.factor * sum, l.beta, given[k], value[k + 2], &made[k], &ratio[k + 2]);
        }
        edge[t] = {ratio[2], ratio[3], ratio[V], ratio[V + 1]};
    }
    __syncthreads();
    if (t >= items) {
        return;
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
        ratio[k] = lane > 0 ? edge[t - 1].v[2 + k] : 0.0f;
        ratio[V + 2 + k] = lane + 1 < lanes ? edge[t + 1].v[k] : 0.0f;
    }
    group<float, V> out;
#pragma unroll
    for (int k = 0; k < V; k++) {
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += ratio[k + 2 + o];
        }
        out.v[k] = made[k] - l.gradient * value[k + 2] * sum;
        out.v[k] = l.relu && !(value[k + 2] > 0) ? 0.0f : out.v[k];
    }
    stored<float, S, V>(dx + at, out);
}

template <typename S, int HALF, int K, int STRIDE>
static void launch(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x, void *y,
                   void *taps)
{
    const int tall = (ROWS - 1) * STRIDE + K, lanes = (int)p->channels / V;
    const int most = (ROOM / (tall * lanes) - K) / STRIDE + 1; /* windows in a row, at least 1: is_one */
    const int across = (p->out[1] + most - 1) / most, down = (p->out[0] + ROWS - 1) / ROWS;
    tile t = {};
    t.columns = (p->out[1] + across - 1) / across;
    t.wide = (t.columns - 1) * STRIDE + K;
    t.lanes = dmi_cuda_divide_by(lanes);
    t.by_columns = dmi_cuda_divide_by(t.columns);
    t.by_wide = dmi_cuda_divide_by(t.wide);
    t.across = dmi_cuda_divide_by(across);
    t.down = dmi_cuda_divide_by(down);
    launch_after(q, forward<S, HALF, K, STRIDE>, dim3((unsigned)(p->samples * across * down)),
                 params_of<float>(l), *p, t, (const S *)x, (S *)y, (uint8_t *)taps);
}

template <typename S, int HALF, int K, int STRIDE>
static void launch_back(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                        const void *taps, const void *dy, void *dx)
{
    const int64_t lanes = p->channels / V, image = (int64_t)p->in[0] * p->in[1];
    pixels_of o = {};
    o.each = (uint32_t)(THREADS / lanes);
    o.all = (uint32_t)(p->samples * image);
    o.lanes = dmi_cuda_divide_by(lanes);
    o.image = dmi_cuda_divide_by(image);
    o.row = dmi_cuda_divide_by(p->in[1]);
    launch_after(q, backward<S, HALF, K, STRIDE>, dim3(blocks_for((int64_t)o.all, (int64_t)o.each)),
                 params_of<float>(l), *p, o, (const S *)x, (const uint8_t *)taps, (const S *)dy, (S *)dx);
}

template <typename S, int HALF>
static void launch_of(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x, void *y,
                      void *taps)
{
    auto by_shape = p->kernel[0] == 2          ? launch<S, HALF, 2, 2>
                    : p->stride[0].extent == 1 ? launch<S, HALF, 3, 1>
                                               : launch<S, HALF, 3, 2>;
    by_shape(q, l, p, x, y, taps);
}

template <typename S, int HALF>
static void launch_back_of(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                           const void *taps, const void *dy, void *dx)
{
    auto by_shape = p->kernel[0] == 2          ? launch_back<S, HALF, 2, 2>
                    : p->stride[0].extent == 1 ? launch_back<S, HALF, 3, 1>
                                               : launch_back<S, HALF, 3, 2>;
    by_shape(q, l, p, x, taps, dy, dx);
}

void dmi_cuda_launch_lrn_pool(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                              void *y, void *taps)
{
    auto of = p->dtype == DM_BF16 ? (l->size == 3 ? launch_of<bf16, 1> : launch_of<bf16, 2>)
                                  : (l->size == 3 ? launch_of<f16, 1> : launch_of<f16, 2>);
    of(q, l, p, x, y, taps);
    dmi_cuda_launched(q, "lrn_pool");
}

void dmi_cuda_launch_lrn_pool_back(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p,
                                   const void *x, const void *taps, const void *dy, void *dx)
{
    auto of = p->dtype == DM_BF16 ? (l->size == 3 ? launch_back_of<bf16, 1> : launch_back_of<bf16, 2>)
                                  : (l->size == 3 ? launch_back_of<f16, 1> : launch_back_of<f16, 2>);
    of(q, l, p, x, taps, dy, dx);
    dmi_cuda_launched(q, "lrn_pool_back");
}
