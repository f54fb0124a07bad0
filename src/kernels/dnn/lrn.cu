/* Local response normalisation on GPUs. Windows across the channels of a pixel are summed in shared memory, of
 * a tile of whole pixels; other windows are read from memory by each thread. */
#include "kernels/dnn/lrn.cuh"

enum { THREADS = DMI_CUDA_THREADS, TILE = DMI_LRN_SHARED };

/* The sums of `in` over the windows of V elements from place j of a unit on, which begins at in[-j]. The unit's
 * extent is a multiple of V; HALF, at most V: known half of a window, 0: any. */
template <typename T, int V, int HALF>
static __device__ __forceinline__ group<T, V> window_sums(const T *in, int j, const params<T> &p)
{
    group<T, V> sum = {};
    const int unit = (int)p.unit.extent;
    if constexpr (HALF > 0) {
        T value[V + 2 * HALF];
        const group<T, V> own = *(const group<T, V> *)in;
#pragma unroll
        for (int k = 0; k < HALF; k++) {
            value[k] = j > 0 ? in[k - HALF] : (T)0;
            value[HALF + V + k] = j + V < unit ? in[V + k] : (T)0;
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            value[HALF + k] = own.v[k];
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
#pragma unroll
            for (int o = 0; o <= 2 * HALF; o++) {
                sum.v[k] += value[k + o];
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < V; k++) {
            for (int o = max(-p.half, -j - k); o <= min(p.half, unit - 1 - j - k); o++) {
                sum.v[k] += in[k + o];
            }
        }
    }
    return sum;
}

/* A thread block: a tile. dy NULL: forward. */
template <typename T, typename S, int V, int HALF, bool BACK>
static __global__ void __launch_bounds__(THREADS) tiles(const params<T> p, const S *x, const S *dy, S *out)
{
    after_previous();
    const int items = TILE / (THREADS * V);
    __shared__ alignas(32) T square[TILE], ratio[BACK ? TILE : 1];
    int64_t begin = (int64_t)blockIdx.x * p.tile;
    uint32_t n = (uint32_t)min((int64_t)p.tile, p.count - begin);
    group<T, V> own[items], given[items], made[items];
    int place[items];
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t e = (i * THREADS + threadIdx.x) * V;
        if (e < n) {
            own[i] = loaded<T, S, V>(x + begin + e);
            if (BACK) {
                given[i] = loaded<T, S, V>(dy + begin + e);
            }
            place[i] = (int)(e - divided(e, p.unit) * p.unit.extent);
            group<T, V> s;
#pragma unroll
            for (int k = 0; k < V; k++) {
                s.v[k] = own[i].v[k] * own[i].v[k];
            }
            *(group<T, V> *)(square + e) = s;
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t e = (i * THREADS + threadIdx.x) * V;
        if (e >= n) {
            continue;
        }
        group<T, V> sum = window_sums<T, V, HALF>(square + e, place[i], p), r;
#pragma unroll
        for (int k = 0; k < V; k++) {
            scaled_by<T, S>(p.k + p.factor * sum.v[k], p.beta, BACK ? given[i].v[k] : own[i].v[k], own[i].v[k],
                            &made[i].v[k], &r.v[k]);
        }
        if (BACK) {
            *(group<T, V> *)(ratio + e) = r;
        } else {
            stored<T, S, V>(out + begin + e, made[i]);
        }
    }
    if (!BACK) {
        return;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t e = (i * THREADS + threadIdx.x) * V;
        if (e < n) {
            group<T, V> sum = window_sums<T, V, HALF>(ratio + e, place[i], p);
#pragma unroll
            for (int k = 0; k < V; k++) {
                made[i].v[k] -= p.gradient * own[i].v[k] * sum.v[k];
                made[i].v[k] = p.relu && !(own[i].v[k] > 0) ? (T)0 : made[i].v[k];
            }
            stored<T, S, V>(out + begin + e, made[i]);
        }
    }
}

/* Of 16 bits: a thread has 8 channels and reads those beside them from memory again, which are near by then.
 * Gradients need the ratios of 2 HALF channels more. Sums are those of tiles<> to the bit. */
template <typename S, int HALF, bool BACK>
static __global__ void __launch_bounds__(THREADS)
    beside(const params<float> p, uint32_t items, const S *x, const S *dy, S *out)
{
    after_previous();
    const int V = 8, MORE = BACK ? 4 : 2, SIDE = BACK ? 2 : 0; /* channels of x beside the own; of ratios */
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    const int unit = (int)p.unit.extent * V;
    uint32_t row = divided(i, p.unit);
    int c = (int)(i - row * p.unit.extent) * V;
    int64_t begin = (int64_t)row * unit;
    float left[MORE], right[MORE], value[V + 2 * MORE], given[V + 2 * SIDE];
    group<float, V> own = loaded<float, S, V>(x + begin + c);
    pick<S, MORE>(x + begin, c - MORE, unit, left);
    pick<S, MORE>(x + begin, c + V, unit, right);
#pragma unroll
    for (int k = 0; k < V + 2 * MORE; k++) {
        value[k] = k < MORE ? left[k] : k < MORE + V ? own.v[k - MORE] : right[k - MORE - V];
    }
    if constexpr (BACK) {
        float before[SIDE], behind[SIDE];
        group<float, V> mine = loaded<float, S, V>(dy + begin + c);
        pick<S, SIDE>(dy + begin, c - SIDE, unit, before);
        pick<S, SIDE>(dy + begin, c + V, unit, behind);
#pragma unroll
        for (int k = 0; k < V + 2 * SIDE; k++) {
            given[k] = k < SIDE ? before[k] : k < SIDE + V ? mine.v[k - SIDE] : behind[k - SIDE - V];
        }
    }
    float made[V + 2 * SIDE], ratio[V + 2 * SIDE];
#pragma unroll
    for (int k = 0; k < V + 2 * SIDE; k++) {
        const int at = k + MORE - SIDE; /* in value */
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += value[at + o] * value[at + o];
        }
        scaled_by<float, S>(p.k + p.factor * sum, p.beta, BACK ? given[k] : value[at], value[at], &made[k],
                            &ratio[k]);
    }
    group<float, V> result;
#pragma unroll
    for (int k = 0; k < V; k++) {
        result.v[k] = made[k + SIDE];
        if constexpr (BACK) {
            float sum = 0;
#pragma unroll
            for (int o = -HALF; o <= HALF; o++) {
                sum += ratio[k + SIDE + o];
            }
            result.v[k] -= p.gradient * own.v[k] * sum;
            result.v[k] = p.relu && !(own.v[k] > 0) ? 0.0f : result.v[k];
        }
    }
    stored<float, S, V>(out + begin + c, result);
}

template <typename T, typename S, int V, int HALF>
static void launch_tiles(dmi_queue *q, const dmi_cuda_lrn *l, const S *x, const S *dy, S *out)
{
    params<T> p = params_of<T>(l);
    p.unit = dmi_cuda_divide_by(l->unit);
    p.tile = (uint32_t)(TILE / l->unit * l->unit);
    unsigned blocks = blocks_for(l->count, (int64_t)p.tile);
    if (dy != NULL) {
        launch_after(q, tiles<T, S, V, HALF, true>, dim3(blocks), p, x, dy, out);
    } else {
        launch_after(q, tiles<T, S, V, HALF, false>, dim3(blocks), p, x, dy, out);
    }
}

/* --- any windows --- */

/* Calls f with every element of the window of element i, in order. */
template <typename F>
static __device__ __forceinline__ void each_of_window(const dmi_cuda_lrn &p, int64_t i, F f)
{
    int64_t half = p.size / 2, place = i % p.unit, begin = i - place;
    if (!p.within) {
        for (int64_t c = max((int64_t)0, place - half); c <= min(p.unit - 1, place + half); c++) {
            f(begin + c);
        }
        return;
    }
    int64_t c = place % p.in[2], v = place / p.in[2] % p.in[1], h = place / p.in[2] / p.in[1];
    for (int64_t row = max((int64_t)0, h - half); row <= min(p.in[0] - 1, h + half); row++) {
        for (int64_t col = max((int64_t)0, v - half); col <= min(p.in[1] - 1, v + half); col++) {
            f(begin + (row * p.in[1] + col) * p.in[2] + c);
        }
    }
}

/* Forward; or backward the first part: out = dy s^-beta, and the ratios. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    scaled(const dmi_cuda_lrn l, const params<T> p, const T *x, const T *dy, T *out, T *ratio)
{
    after_previous();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.count) {
        return;
    }
    T sum = 0;
    each_of_window(l, i, [&](int64_t at) { sum += x[at] * x[at]; });
    T scale = p.k + p.factor * sum, low = lowered<T>(scale, p.beta), made = (dy != NULL ? dy[i] : x[i]) * low;
    out[i] = made;
    if (dy != NULL) {
        ratio[i] = made * x[i] / scale;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    corrected(const dmi_cuda_lrn l, const params<T> p, const T *x, const T *ratio, T *out)
{
    after_previous();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.count) {
        return;
    }
    T sum = 0;
    each_of_window(l, i, [&](int64_t at) { sum += ratio[at]; });
    out[i] = p.relu && !(x[i] > 0) ? (T)0 : out[i] - p.gradient * x[i] * sum;
}

template <typename T>
static void launch_any(dmi_queue *q, const dmi_cuda_lrn *l, const T *x, const T *dy, T *out, T *ratio)
{
    params<T> p = params_of<T>(l);
    unsigned blocks = blocks_for(l->count, THREADS);
    launch_after(q, scaled<T>, dim3(blocks), *l, p, x, dy, out, ratio);
    if (dy != NULL) {
        launch_after(q, corrected<T>, dim3(blocks), *l, p, x, ratio, out);
    }
}

template <typename S, int HALF>
static void launch_beside(dmi_queue *q, const dmi_cuda_lrn *l, const S *x, const S *dy, S *out)
{
    params<float> p = params_of<float>(l);
    int64_t rows = l->count / l->unit, lanes = l->unit / 8, most = DMI_CUDA_ITEMS / lanes;
    p.unit = dmi_cuda_divide_by(lanes);
    for (int64_t r = 0; r < rows; r += most) {
        int64_t items = (rows - r < most ? rows - r : most) * lanes, at = r * l->unit;
        unsigned blocks = blocks_for(items, THREADS);
        if (dy != NULL) {
            launch_after(q, beside<S, HALF, true>, dim3(blocks), p, (uint32_t)items, x + at, dy + at, out + at);
        } else {
            launch_after(q, beside<S, HALF, false>, dim3(blocks), p, (uint32_t)items, x + at, (const S *)NULL,
                         out + at);
        }
    }
}

/* Of 16 bits there are only these: the planner takes f32 for windows that are not summed in shared memory. */
template <typename T, typename S, int V>
static void launch_tiled(dmi_queue *q, const dmi_cuda_lrn *p, const void *x, const void *dy, void *out)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)dy | (uintptr_t)out) & 15) == 0 && p->unit % V == 0;
    if constexpr (sizeof(S) == 2) {
        if (aligned && (p->size == 3 || p->size == 5)) {
            (p->size == 3 ? launch_beside<S, 1> : launch_beside<S, 2>)(q, p, (const S *)x, (const S *)dy,
                                                                       (S *)out);
            return;
        }
    }
    auto tiled = !aligned                 ? launch_tiles<T, S, 1, 0>
                 : p->size == 3           ? launch_tiles<T, S, V, 1>
                 : p->size == 5 && V >= 2 ? launch_tiles<T, S, V, 2>
                                          : launch_tiles<T, S, V, 0>;
    tiled(q, p, (const S *)x, (const S *)dy, (S *)out);
}

template <typename T, int V>
static void launch(dmi_queue *q, const dmi_cuda_lrn *p, const void *x, const void *dy, void *out, void *ratio)
{
    if (p->within || p->unit > TILE) {
        launch_any<T>(q, p, (const T *)x, (const T *)dy, (T *)out, (T *)ratio);
    } else {
        launch_tiled<T, T, V>(q, p, x, dy, out);
    }
}

void dmi_cuda_launch_lrn(dmi_queue *q, const dmi_cuda_lrn *p, const void *x, const void *dy, void *out,
                         void *ratio)
{
    if (p->dtype == DM_F64) {
        launch<double, 2>(q, p, x, dy, out, ratio);
    } else if (p->dtype == DM_BF16) {
        launch_tiled<float, bf16, 8>(q, p, x, dy, out);
    } else if (p->dtype == DM_F16) {
        launch_tiled<float, f16, 8>(q, p, x, dy, out);
    } else {
        launch<float, 4>(q, p, x, dy, out, ratio);
    }
    dmi_cuda_launched(q, "lrn");
}
