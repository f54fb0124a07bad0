/* The gradient of pooling by the largest and by the mean of 2 x 2 and 3 x 3 windows: a thread takes blocks of
 * pixels as large as the stride, one under the other, and keeps what the windows give that two of them share.
 * Results are those of pooling_back.cu to the bit. */
#include "kernels/dnn/pooling.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* What a window gives: `given` to the element that was taken. */
template <typename T, typename S, int V> struct from_largest {
    typedef T number;
    group<T, V> given;
    group<uint8_t, V> tap;
    __device__ __forceinline__ void none()
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            given.v[k] = 0;
            tap.v[k] = UINT8_MAX;
        }
    }
    __device__ __forceinline__ void load(const S *dy, const uint8_t *taps, int)
    {
        given = loaded<T, S, V>(dy);
        tap = *(const group<uint8_t, V> *)taps;
    }
    __device__ __forceinline__ void add(int element, T (&sum)[V]) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum[k] += tap.v[k] == element ? given.v[k] : (T)0;
        }
    }
};

/* The same of 16 bits, two elements in a word. */
template <typename S> struct from_largest_short {
    static constexpr int WORDS = 4;
    typedef float number;
    group<uint32_t, WORDS> given;
    group<uint32_t, 2> tap;
    __device__ __forceinline__ void none()
    {
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            given.v[j] = 0;
            tap.v[j / 2] = 0xffffffffu;
        }
    }
    __device__ __forceinline__ void load(const S *dy, const uint8_t *taps, int)
    {
        given = *(const group<uint32_t, WORDS> *)dy;
        tap = *(const group<uint32_t, 2> *)taps;
    }
    __device__ __forceinline__ void add(int element, float (&sum)[2 * WORDS]) const
    {
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            uint32_t same = __vcmpeq4(tap.v[j / 2], (uint32_t)element * 0x01010101u);
            uint32_t mask = __byte_perm(same, 0, j % 2 == 0 ? 0x1100 : 0x3322);
            float a, b;
            pair<S>::open(given.v[j] & mask, a, b);
            sum[2 * j] += a;
            sum[2 * j + 1] += b;
        }
    }
};

/* Or its part to each element. */
template <typename T, typename S, int V> struct from_mean {
    typedef T number;
    group<T, V> given;
    __device__ __forceinline__ void none()
    {
        given = {};
    }
    __device__ __forceinline__ void load(const S *dy, const uint8_t *, int size)
    {
        T by = (T)size, inverse = 1 / by;
        given = loaded<T, S, V>(dy);
#pragma unroll
        for (int k = 0; k < V; k++) {
            given.v[k] = shared_out(given.v[k], by, inverse);
        }
    }
    __device__ __forceinline__ void add(int, T (&sum)[V]) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum[k] += given.v[k];
        }
    }
};

/* Windows K x K, STRIDE apart: pixels of a block are in windows of N rows and N columns, the last of which
 * begin with the block. What the next block needs is loaded before this one is made. */
template <typename GIVEN, typename S, int V, int K, int STRIDE>
static __global__ void __launch_bounds__(THREADS)
    backward(const dmi_cuda_pooling p, const dmi_cuda_strips s, const uint8_t *taps, const S *dy, S *dx)
{
    after_previous();
    const int N = (K + STRIDE - 1) / STRIDE;
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.items) {
        return;
    }
    strip t = strip_of(s, i, V);
    int64_t from = t.sample * p.out[0] * p.out[1] * p.channels + t.channel;
    S *image = dx + t.sample * p.in[0] * p.in[1] * p.channels + t.channel;
    GIVEN given[N][N], next[N];
    auto load = [&](int h, int c, GIVEN *window) {
        int corner[2] = {h, t.column - (N - 1) + c};
        if (h >= 0 && h < p.out[0] && corner[1] >= 0 && corner[1] < p.out[1]) {
            int64_t at = from + ((int64_t)h * p.out[1] + corner[1]) * p.channels;
            window->load(dy + at, taps + at, window_of(p, corner).size);
        } else {
            window->none();
        }
    };
#pragma unroll
    for (int n = 0; n < N * N; n++) {
        load(t.first - (N - 1) + n / N, n % N, &given[n / N][n % N]);
    }
    for (int b = t.first; b < t.last; b++) {
#pragma unroll
        for (int c = 0; c < N; c++) {
            if (b + 1 < t.last) {
                load(b + 1, c, &next[c]);
            }
        }
#pragma unroll
        for (int e = 0; e < STRIDE * STRIDE; e++) {
            const int y = e / STRIDE, x = e % STRIDE;
            int h = b * STRIDE + y - p.pad[0], v = t.column * STRIDE + x - p.pad[1];
            if (h < 0 || h >= p.in[0] || v < 0 || v >= p.in[1]) {
                continue;
            }
            typename GIVEN::number sum[V] = {};
#pragma unroll
            for (int r = 0; r < N; r++) {
#pragma unroll
                for (int c = 0; c < N; c++) {
                    const int row = (N - 1 - r) * STRIDE + y, column = (N - 1 - c) * STRIDE + x;
                    if (row < K && column < K) {
                        given[r][c].add(row * K + column, sum);
                    }
                }
            }
            group<typename GIVEN::number, V> out;
#pragma unroll
            for (int k = 0; k < V; k++) {
                out.v[k] = sum[k];
            }
            stored<typename GIVEN::number, S, V>(image + ((int64_t)h * p.in[1] + v) * p.channels, out);
        }
#pragma unroll
        for (int n = 0; n < N * N; n++) {
            given[n / N][n % N] = n / N + 1 < N ? given[n / N + 1 < N ? n / N + 1 : 0][n % N] : next[n % N];
        }
    }
}

template <typename GIVEN, typename S, int V, int K, int STRIDE>
static void launch(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy, void *dx)
{
    int blocks[2];
    for (int a = 0; a < 2; a++) {
        blocks[a] = (p->in[a] + p->pad[a] + STRIDE - 1) / STRIDE;
    }
    dmi_cuda_strips s = dmi_cuda_strips_of(p, V, blocks[0], blocks[1]);
    launch_after(q, backward<GIVEN, S, V, K, STRIDE>, dim3(blocks_for((int64_t)s.items, THREADS)), *p, s,
                 (const uint8_t *)taps, (const S *)dy, (S *)dx);
}

template <typename GIVEN, typename S, int V>
static void launch_windows(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy, void *dx)
{
    auto by_shape = p->kernel[0] == 2          ? launch<GIVEN, S, V, 2, 2>
                    : p->stride[0].extent == 1 ? launch<GIVEN, S, V, 3, 1>
                                               : launch<GIVEN, S, V, 3, 2>;
    by_shape(q, p, taps, dy, dx);
}

bool dmi_cuda_launch_pooling_back_strips(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps,
                                         const void *dy, void *dx)
{
    int k = p->kernel[0], stride = (int)p->stride[0].extent;
    bool square = k == p->kernel[1] && stride == (int)p->stride[1].extent;
    /* blocks of pixels, of padding too */
    int64_t items = p->samples * (p->in[0] + p->pad[0]) * (p->in[1] + p->pad[1]) * (p->channels / p->group);
    bool usual = (k == 3 && (stride == 1 || stride == 2)) || (k == 2 && stride == 2);
    if (p->group == 1 || !square || !usual || items > DMI_CUDA_ITEMS) {
        return false;
    }
    auto of_max = p->dtype == DM_F64    ? launch_windows<from_largest<double, double, 2>, double, 2>
                  : p->dtype == DM_BF16 ? launch_windows<from_largest_short<bf16>, bf16, 8>
                  : p->dtype == DM_F16  ? launch_windows<from_largest_short<f16>, f16, 8>
                                        : launch_windows<from_largest<float, float, 4>, float, 4>;
    auto of_mean = p->dtype == DM_F64    ? launch_windows<from_mean<double, double, 2>, double, 2>
                   : p->dtype == DM_BF16 ? launch_windows<from_mean<float, bf16, 8>, bf16, 8>
                   : p->dtype == DM_F16  ? launch_windows<from_mean<float, f16, 8>, f16, 8>
                                         : launch_windows<from_mean<float, float, 4>, float, 4>;
    (taps == NULL ? of_mean : of_max)(q, p, taps, dy, dx);
    dmi_cuda_launched(q, "pooling_back");
    return true;
}
