/* Losses and accuracy on GPUs. A warp takes a row, the scores of one label, and of few classes several rows;
 * sums of rows are made by warp, by thread block and over all of these, in an order that follows from the
 * extents alone. */
#include "kernels/dnn/labelled.cuh"

#include <type_traits>

enum { THREADS = DMI_CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP, BLOCKS = 512, GROUP = 4 };
/* Rows of at most FEW classes: a team of up to 8 lanes has OWN elements each. SHORT_BLOCKS: 8 on each of 132
 * multiprocessors. */
enum { FEW = 128, OWN = 16, SHORT_BLOCKS = 1056 };
#define ALL 0xffffffffu
typedef dmi_cuda_labelled params;

/* L void: labels of classes; else targets of this type. */
template <typename L>
static __global__ void __launch_bounds__(THREADS)
    count_ignored(const dmi_labelled d, const L *label, unsigned long long *out)
{
    int64_t n = d.batch * d.places;
    unsigned long long count = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) {
        if constexpr (std::is_void<L>::value) {
            count += is_ignored(d, label_at(d, label, i));
        } else {
            count += is_ignored(d, label[i]);
        }
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

/* What a thread block's sum becomes: the loss, where there is but one thread block. */
static __device__ void finish(const params &p, double value, double *sum)
{
    value /= divisor_of(p);
    *sum = p.d.loss == DMI_LOSS_EUCLIDEAN ? value / 2 : value;
}

static __device__ void keep_sum(const params &p, double value, double *partial, double *sum)
{
    value = block_sum(value);
    if (threadIdx.x == 0 && gridDim.x == 1) {
        finish(p, value, sum);
    } else if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
    }
}

static __global__ void __launch_bounds__(THREADS)
    join(const params p, int parts, const double *partial, double *sum)
{
    after_previous();
    double value = 0;
    for (int i = (int)threadIdx.x; i < parts; i += THREADS) {
        value += partial[i];
    }
    value = block_sum(value);
    if (threadIdx.x == 0) {
        finish(p, value, sum);
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

/* GROUP elements of a row of n, from c on; -infinity beyond it. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ group<T, GROUP> part_of_row(const T *x, int c, int n)
{
    group<T, GROUP> out;
    if (ALIGNED && c < n) {
        return *(const group<T, GROUP> *)(x + c); /* n is a multiple of GROUP */
    }
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        out.v[k] = c + k < n ? x[c + k] : (T)-INFINITY;
    }
    return out;
}

/* Softmax of rows of few classes: each team of lanes has one, of a warp WARP / team rows at once. ALIGNED: rows
 * are whole aligned groups; which elements a lane has does not depend on it. */
template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS)
    short_rows(const params p, int team, const T *x, const void *labels, T *prob, double *partial, double *out)
{
    after_previous();
    const int parts = OWN / GROUP, lane = (int)threadIdx.x % WARP, member = lane % team, n = (int)p.d.classes;
    const int64_t rows = WARP / team;
    double sum_of_rows = 0;
    for (int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / WARP) * rows; first < p.rows;
         first += (int64_t)gridDim.x * WARPS * rows) {
        bool there = first + lane / team < p.rows;
        int64_t row = there ? first + lane / team : first;
        const T *from = x + row * n;
        int32_t label = label_at(p.d, labels, row);
        group<T, GROUP> own[parts];
        T top = (T)-INFINITY, sum = 0;
#pragma unroll
        for (int i = 0; i < parts; i++) {
            own[i] = part_of_row<T, ALIGNED>(from, (i * team + member) * GROUP, n);
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            T value = own[i / GROUP].v[i % GROUP];
            top = value > top ? value : top;
        }
        for (int by = team / 2; by > 0; by /= 2) {
            T other = __shfl_xor_sync(ALL, top, by);
            top = other > top ? other : top;
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            T *value = &own[i / GROUP].v[i % GROUP];
            *value = exp(*value - top);
            sum += (i / GROUP * team + member) * GROUP + i % GROUP < n ? *value : (T)0;
        }
        for (int by = team / 2; by > 0; by /= 2) {
            sum += __shfl_xor_sync(ALL, sum, by);
        }
        T inverse = 1 / sum;
#pragma unroll
        for (int i = 0; i < OWN && prob != NULL; i++) { /* divided by sum: a product and a correction */
            T *value = &own[i / GROUP].v[i % GROUP], quotient = *value * inverse;
            *value = fma(fma(-quotient, sum, *value), inverse, quotient);
        }
#pragma unroll
        for (int i = 0; i < parts && prob != NULL && there; i++) {
            int c = (i * team + member) * GROUP;
            if (ALIGNED && c < n) {
                *(group<T, GROUP> *)(prob + row * n + c) = own[i];
            }
#pragma unroll
            for (int k = 0; k < GROUP && !ALIGNED; k++) {
                if (c + k < n) {
                    prob[row * n + c + k] = own[i].v[k];
                }
            }
        }
        if (there && member == 0 && !is_ignored(p.d, label)) {
            bool wrong = label < 0 || label >= n;
            T at = wrong ? (T)NAN : exp(from[label] - top) / sum;
            sum_of_rows -= (double)log(at < (T)FLT_MIN ? (T)FLT_MIN : at);
        }
    }
    keep_sum(p, sum_of_rows, partial, out);
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
    row_sums(const params p, const T *x, const void *labels, T *prob, double *partial, double *out)
{
    after_previous();
    int lane = (int)threadIdx.x % WARP;
    double sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < p.rows;
         i += (int64_t)gridDim.x * WARPS) {
        const T *row = x + i * p.d.classes;
        int32_t label = label_at(p.d, labels, i);
        sum += WHAT == DMI_CUDA_SOFTMAX
                   ? softmax_row<T, R>(p, lane, row, label, prob != NULL ? prob + i * p.d.classes : prob)
               : WHAT == DMI_CUDA_ACCURACY ? accuracy_row(p, lane, row, label)
                                           : hinge_row(p, lane, row, label);
    }
    keep_sum(p, lane == 0 ? sum : 0, partial, out);
}

/* The loss of `most` elements. Sigmoid cross-entropy of one: -(t log s + (1 - t) log(1 - s)), s = 1 / (1 +
 * e^-a), which is max(a, 0) - a t + log(1 + e^-|a|). One logarithm serves them all: (1 + r) (1 + e) = 1 + (r +
 * e + r e), whose terms are not negative, so that small losses lose no digits. */
template <typename T>
static __device__ __forceinline__ double pair_terms(const params &p, const group<T, GROUP> &a,
                                                    const group<T, GROUP> &t, int most)
{
    double sum = 0;
    T raised = 0;
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        if (k < most && p.d.loss == DMI_LOSS_EUCLIDEAN) {
            double apart = (double)a.v[k] - (double)t.v[k];
            sum += apart * apart;
        } else if (k < most && !is_ignored(p.d, t.v[k])) {
            T e = exp(-fabs(a.v[k]));
            raised = fma(raised, e, raised + e);
            sum += (double)fma(-a.v[k], t.v[k], a.v[k] > 0 ? a.v[k] : (T)0);
        }
    }
    return p.d.loss == DMI_LOSS_EUCLIDEAN ? sum : sum + (double)log1p(raised);
}

/* A thread takes GROUP elements at once; which ones does not depend on whether they are aligned. */
template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS)
    pair_sums(const params p, const T *x, const T *target, double *partial, double *out)
{
    after_previous();
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
        }
        sum += pair_terms<T>(p, a, t, most);
    }
    keep_sum(p, sum, partial, out);
}

template <typename T>
static void launch_sums(dmi_queue *q, int what, const params *p, const void *scores, const void *labels,
                        double *sum, void *prob)
{
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
    if (what == DMI_CUDA_SOFTMAX && p->d.classes <= FEW) {
        int team = 1;
        while (team * OWN < p->d.classes) {
            team *= 2;
        }
        wanted = (p->rows + THREADS / team - 1) / (THREADS / team);
        blocks = (unsigned)(wanted < 1 ? 1 : wanted > SHORT_BLOCKS ? SHORT_BLOCKS : wanted);
        bool whole = (((uintptr_t)x | (uintptr_t)prob) & (sizeof(group<T, GROUP>) - 1)) == 0 &&
                     p->d.classes % GROUP == 0;
        auto kernel = whole ? short_rows<T, true> : short_rows<T, false>;
        launch_after(q, kernel, dim3(blocks), *p, team, x, labels, made, partial, sum);
    } else if (what != DMI_CUDA_PAIR) {
        auto kernel = what == DMI_CUDA_ACCURACY ? row_sums<T, DMI_CUDA_ACCURACY, 0>
                      : what == DMI_CUDA_HINGE  ? row_sums<T, DMI_CUDA_HINGE, 0>
                      : each <= 32              ? row_sums<T, DMI_CUDA_SOFTMAX, 32>
                                                : row_sums<T, DMI_CUDA_SOFTMAX, 0>;
        launch_after(q, kernel, dim3(blocks), *p, x, labels, made, partial, sum);
    } else if (aligned) {
        launch_after(q, pair_sums<T, true>, dim3(blocks), *p, x, target, partial, sum);
    } else {
        launch_after(q, pair_sums<T, false>, dim3(blocks), *p, x, target, partial, sum);
    }
    if (blocks > 1) {
        launch_after(q, join, dim3(1), *p, (int)blocks, partial, sum);
    }
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
    const int64_t width = std::is_same<L, double>::value ? 8 : 4;
    return (const char *)labels + p->d.dnn.first * p->d.places * width;
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
        labels = !pair  ? counted<void>(q, &p, labels)
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
