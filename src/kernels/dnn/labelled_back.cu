/* Gradients of losses on GPUs: a thread for some elements of a row. */
#include "kernels/dnn/labelled.cuh"

enum { THREADS = DMI_CUDA_THREADS };
typedef dmi_cuda_labelled params;

template <typename T>
static __device__ __forceinline__ T gradient(const params &p, int what, double factor, T x, T target,
                                             int32_t label, int32_t c)
{
    if (what == DMI_CUDA_PAIR_BACK) {
        T s = 1 / (1 + exp(-x));
        return is_ignored(p.d, target) ? (T)0 : (T)(((double)s - (double)target) * factor);
    }
    bool ignored = what == DMI_CUDA_SOFTMAX_BACK && is_ignored(p.d, label),
         wrong = label < 0 || label >= p.d.classes;
    if (ignored || wrong) {
        return ignored ? (T)0 : (T)NAN;
    }
    if (what == DMI_CUDA_SOFTMAX_BACK) {
        return (x - (c == label ? (T)1 : (T)0)) * (T)factor;
    }
    double m = margin((double)x, c == label), g = p.d.loss == DMI_LOSS_HINGE_1 ? (m > 0 ? 1 : m) : 2 * m;
    return (T)((c == label ? -g : g) * factor);
}

/* An item: V elements, of one row. lanes: items of a row. */
template <typename T, int WHAT, int V>
static __global__ void __launch_bounds__(THREADS)
    gradients(const params p, uint32_t items, const dmi_cuda_divisor lanes, const T *x, const void *labels,
              T *dx)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    const bool pair = WHAT == DMI_CUDA_PAIR_BACK;
    uint32_t row = divided(i, lanes);
    double factor = p.ignored != NULL ? p.scale / divisor_of(p) : p.scale;
    int32_t label = pair ? 0 : label_at(p.d, labels, row), c = (int32_t)(i - row * lanes.extent) * V;
    group<T, V> value = *(const group<T, V> *)(x + (int64_t)i * V), target = {};
    if (pair) {
        target = *(const group<T, V> *)((const T *)labels + (int64_t)i * V);
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        value.v[k] = gradient<T>(p, WHAT, factor, value.v[k], target.v[k], label, c + k);
    }
    *(group<T, V> *)(dx + (int64_t)i * V) = value;
}

template <typename T, int WHAT, int V>
static void launch_items(dmi_queue *q, const params *p, const T *x, const void *labels, T *dx)
{
    const bool pair = WHAT == DMI_CUDA_PAIR_BACK;
    int64_t row = pair ? V : p->d.classes, rows = pair ? p->rows / V : p->rows, most = DMI_CUDA_ITEMS / row,
            width = pair ? V * sizeof(T) : 4; /* of i32, or f32 */
    for (int64_t r = 0; r < rows; r += most) {
        int64_t items = (rows - r < most ? rows - r : most) * (row / V);
        launch_after(q, gradients<T, WHAT, V>, dim3(blocks_for(items, THREADS)), *p, (uint32_t)items,
                     dmi_cuda_divide_by(row / V), x + r * row, (const char *)labels + r * width, dx + r * row);
    }
}

template <typename T, int WHAT>
static void launch_gradients(dmi_queue *q, const params *p, const T *x, const void *labels, T *dx)
{
    const int v = 16 / sizeof(T);
    bool pair = WHAT == DMI_CUDA_PAIR_BACK;
    uintptr_t at = (uintptr_t)x | (uintptr_t)dx | (pair ? (uintptr_t)labels : 0);
    bool grouped = at % 16 == 0 && (pair ? p->rows : p->d.classes) % v == 0;
    (grouped ? launch_items<T, WHAT, v> : launch_items<T, WHAT, 1>)(q, p, x, labels, dx);
}

template <typename T>
static void launch(dmi_queue *q, int what, const params *p, const void *x, const void *labels, void *dx)
{
    auto launch_one = what == DMI_CUDA_SOFTMAX_BACK ? launch_gradients<T, DMI_CUDA_SOFTMAX_BACK>
                      : what == DMI_CUDA_HINGE_BACK ? launch_gradients<T, DMI_CUDA_HINGE_BACK>
                                                    : launch_gradients<T, DMI_CUDA_PAIR_BACK>;
    launch_one(q, p, (const T *)x, labels, (T *)dx);
}

void dmi_cuda_launch_gradients(dmi_queue *q, int what, const params *p, const void *x, const void *labels,
                               void *dx)
{
    (p->d.dnn.dtype == DM_F64 ? launch<double> : launch<float>)(q, what, p, x, labels, dx);
}
