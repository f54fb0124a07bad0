/* Losses and accuracy on GPUs. A warp takes a row, the scores of one label; sums of rows are made by warp, by
 * thread block and over all of these, in an order that follows from the extents alone. */
#include "kernels/dnn/labelled.cuh"

enum { THREADS = DMI_CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP, BLOCKS = 512, GROUP = 4 };
#define ALL 0xffffffffu
typedef dmi_cuda_labelled params;

template <typename L>
static __global__ void __launch_bounds__(THREADS)
    count_ignored(const dmi_labelled d, const L *label, unsigned long long *out)
{
    int64_t n = d.batch * d.places;
    unsigned long long count = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) {
        count += is_ignored(d, label[i]);
    }
    for (int by = WARP / 2; by > 0; by /= 2) {
        count += __shfl_down_sync(ALL, count, by);
    }
    if (threadIdx.x % WARP == 0 && count > 0) {
        atomicAdd(out, count);
    }
}

/* The sum of all threads' values, at thread 0, in one order. */
static __device__ double block_sum(double value)
{
    __shared__ double shared[WARPS];
    for (int by = WARP / 2; by > 0; by /= 2) {
        value += __shfl_down_sync(ALL, value, by);
    }
    if (threadIdx.x % WARP == 0) {
        shared[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    value = 0;
    for (int w = 0; w < WARPS && threadIdx.x == 0; w++) {
        value += shared[w];
    }
    return value;
}

static __global__ void __launch_bounds__(THREADS)
    join(const params p, int parts, const double *partial, double *sum)
{
    double value = 0;
    for (int i = (int)threadIdx.x; i < parts; i += THREADS) {
        value += partial[i];
    }
    value = block_sum(value);
    if (threadIdx.x == 0) {
        value /= divisor_of(p);
        *sum = p.d.loss == DMI_LOSS_EUCLIDEAN ? value / 2 : value;
    }
}

template <typename T> static __device__ __forceinline__ T warp_max(T value)
{
    for (int by = WARP / 2; by > 0; by /= 2) {
        T other = __shfl_xor_sync(ALL, value, by);
        value = other > value ? other : value;
    }
    return value;
}
template <typename T> static __device__ __forceinline__ T warp_sum(T value)
{
    for (int by = WARP / 2; by > 0; by /= 2) {
        value += __shfl_xor_sync(ALL, value, by);
    }
    return value;
}

/* What a row adds to the sum: the same value in all lanes. lane: of the warp. R: a lane has up to R elements,
 * in registers; 0: any number. */
template <typename T, int R>
static __device__ double softmax_row(const params &p, int lane, const T *x, int32_t label, T *prob)
{
    int64_t n = p.d.classes;
    bool ignored = is_ignored(p.d, label), wrong = label < 0 || label >= n;
    T own[R > 0 ? R : 1], top = lane < n ? x[lane] : x[0], sum = 0;
#pragma unroll
    for (int k = 0; k < R; k++) {
        own[k] = lane + k * WARP < n ? x[lane + k * WARP] : top;
        top = own[k] > top ? own[k] : top;
    }
    for (int64_t c = lane; R == 0 && c < n; c += WARP) {
        top = x[c] > top ? x[c] : top;
    }
    top = warp_max(top);
#pragma unroll
    for (int k = 0; k < R; k++) {
        own[k] = exp(own[k] - top);
        sum += lane + k * WARP < n ? own[k] : (T)0;
    }
    for (int64_t c = lane; R == 0 && c < n; c += WARP) {
        sum += exp(x[c] - top);
    }
    sum = warp_sum(sum);
#pragma unroll
    for (int k = 0; k < R; k++) {
        if (prob != NULL && lane + k * WARP < n) {
            prob[lane + k * WARP] = own[k] / sum;
        }
    }
    for (int64_t c = lane; R == 0 && c < n && prob != NULL; c += WARP) {
        prob[c] = exp(x[c] - top) / sum;
    }
    if (ignored || wrong) {
        return ignored ? 0 : (double)NAN;
    }
    T at = exp(x[label] - top) / sum;
    return -(double)log(at < (T)FLT_MIN ? (T)FLT_MIN : at);
}

template <typename T>
static __device__ double accuracy_row(const params &p, int lane, const T *x, int32_t label)
{
    int better = 0;
    if (is_ignored(p.d, label) || label < 0 || label >= p.d.classes) {
        return is_ignored(p.d, label) ? 0 : (double)NAN;
    }
    for (int64_t c = lane; c < p.d.classes; c += WARP) {
        better += c != label && !(x[c] < x[label]);
    }
    return warp_sum(better) < p.d.top_k;
}

template <typename T> static __device__ double hinge_row(const params &p, int lane, const T *x, int32_t label)
{
    double sum = 0;
    for (int64_t c = lane; c < p.d.classes; c += WARP) {
        double m = margin((double)x[c], c == label);
        sum += p.d.loss == DMI_LOSS_HINGE_1 ? m : m * m;
    }
    sum = warp_sum(sum);
    return label < 0 || label >= p.d.classes ? (double)NAN : sum;
}

template <typename T, int WHAT, int R>
static __global__ void __launch_bounds__(THREADS)
    row_sums(const params p, const T *x, const int32_t *label, T *prob, double *partial)
{
    int lane = (int)threadIdx.x % WARP;
    double sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < p.rows;
         i += (int64_t)gridDim.x * WARPS) {
        const T *row = x + i * p.d.classes;
        sum += WHAT == DMI_CUDA_SOFTMAX
                   ? softmax_row<T, R>(p, lane, row, label[i], prob != NULL ? prob + i * p.d.classes : prob)
               : WHAT == DMI_CUDA_ACCURACY ? accuracy_row(p, lane, row, label[i])
                                           : hinge_row(p, lane, row, label[i]);
    }
    sum = block_sum(lane == 0 ? sum : 0);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

/* Sigmoid cross-entropy of an element: -(t log s + (1 - t) log(1 - s)), s = 1 / (1 + e^-a). */
template <typename T> static __device__ __forceinline__ double pair_term(const params &p, T a, T t)
{
    double wide = (double)a, target = (double)t;
    if (p.d.loss == DMI_LOSS_EUCLIDEAN) {
        return (wide - target) * (wide - target);
    }
    return is_ignored(p.d, t) ? 0 : (wide > 0 ? wide : 0) - wide * target + (double)log1p(exp(-fabs(a)));
}

/* A thread takes GROUP elements at once; which ones does not depend on whether they are aligned. */
template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS)
    pair_sums(const params p, const T *x, const T *target, double *partial)
{
    double sum = 0;
    for (int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * GROUP; i < p.rows;
         i += (int64_t)gridDim.x * THREADS * GROUP) {
        group<T, GROUP> a = {}, t = {};
        int most = (int)min((int64_t)GROUP, p.rows - i);
        if (ALIGNED && most == GROUP) {
            a = *(const group<T, GROUP> *)(x + i);
            t = *(const group<T, GROUP> *)(target + i);
        }
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            if (k < most && (!ALIGNED || most < GROUP)) {
                a.v[k] = x[i + k];
                t.v[k] = target[i + k];
            }
            sum += k < most ? pair_term<T>(p, a.v[k], t.v[k]) : 0;
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

template <typename T>
static void launch_sums(dmi_queue *q, int what, const params *p, const void *scores, const void *labels,
                        double *sum, void *prob)
{
    const int32_t *label = (const int32_t *)labels;
    const T *x = (const T *)scores;
    T *made = (T *)prob;
    const T *target = (const T *)labels;
    double *partial = (double *)q->workspace + 1;
    int64_t wanted = what == DMI_CUDA_PAIR ? (p->rows + THREADS * GROUP - 1) / (THREADS * GROUP)
                                           : (p->rows + WARPS - 1) / WARPS;
    unsigned blocks = (unsigned)(wanted < 1 ? 1 : wanted > BLOCKS ? BLOCKS : wanted);
    bool aligned = (((uintptr_t)x | (uintptr_t)labels) & (sizeof(group<T, GROUP>) - 1)) == 0;
    cudaStream_t stream = stream_of(q);
    int64_t each = (p->d.classes + WARP - 1) / WARP; /* elements of a lane */
    if (what != DMI_CUDA_PAIR) {
        auto kernel = what == DMI_CUDA_ACCURACY ? row_sums<T, DMI_CUDA_ACCURACY, 0>
                      : what == DMI_CUDA_HINGE  ? row_sums<T, DMI_CUDA_HINGE, 0>
                      : each <= 4               ? row_sums<T, DMI_CUDA_SOFTMAX, 4>
                      : each <= 32              ? row_sums<T, DMI_CUDA_SOFTMAX, 32>
                                                : row_sums<T, DMI_CUDA_SOFTMAX, 0>;
        kernel<<<blocks, THREADS, 0, stream>>>(*p, x, label, made, partial);
    } else if (aligned) {
        pair_sums<T, true><<<blocks, THREADS, 0, stream>>>(*p, x, target, partial);
    } else {
        pair_sums<T, false><<<blocks, THREADS, 0, stream>>>(*p, x, target, partial);
    }
    join<<<1, THREADS, 0, stream>>>(*p, (int)blocks, partial, sum);
}

/* Counts the labels of the batch, and steps to those of the slice. */
template <typename L> static const void *counted(dmi_queue *q, params *p, const void *labels)
{
    unsigned long long *count = (unsigned long long *)q->workspace;
    int64_t n = p->d.batch * p->d.places, blocks = (n + THREADS - 1) / THREADS;
    cudaMemsetAsync(count, 0, sizeof *count, stream_of(q));
    if (n > 0) {
        count_ignored<<<(unsigned)(blocks < BLOCKS ? blocks : BLOCKS), THREADS, 0, stream_of(q)>>>(
            p->d, (const L *)labels, count);
    }
    p->ignored = count;
    return (const L *)labels + p->d.dnn.first * p->d.places;
}

void dmi_cuda_launch_labelled(dmi_queue *q, int what, const dmi_labelled *d, double scale, const void *x,
                              const void *labels, double *sum, void *made)
{
    bool pair = what == DMI_CUDA_PAIR || what == DMI_CUDA_PAIR_BACK, wide = d->dnn.dtype == DM_F64;
    params p = {};
    p.d = *d;
    p.rows = d->dnn.samples * d->places;
    p.divisor = dmi_labelled_divisor(d, d->batch * d->places);
    p.scale = d->whole ? scale : scale / p.divisor;
    if (d->whole) {
        labels = !pair  ? counted<int32_t>(q, &p, labels)
                 : wide ? counted<double>(q, &p, labels)
                        : counted<float>(q, &p, labels);
    }
    if (what == DMI_CUDA_SOFTMAX_BACK || what == DMI_CUDA_HINGE_BACK || what == DMI_CUDA_PAIR_BACK) {
        dmi_cuda_launch_gradients(q, what, &p, x, labels, made);
    } else {
        (wide ? launch_sums<double> : launch_sums<float>)(q, what, &p, x, labels, sum, made);
    }
    dmi_cuda_launched(q, "labels");
}
