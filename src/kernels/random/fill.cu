/* Fills. Items and their numbers are worked out from an element's row-major index, so that a thread makes all
 * the elements of a Philox counter. */
#include "kernels/cuda/dtypes.cuh"
#include "kernels/random/distributions.h"

enum { THREADS = DMI_CUDA_THREADS };

/* --- one value ------------------------------------------------------------------------- */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    constant(const __grid_constant__ dmi_cuda_box box, T value, T *__restrict__ out)
{
    int64_t at[1][1];
    bool valid[1];
    locate_all<1, 1>(box, at, valid);
    if (valid[0]) {
        out[at[0][0]] = value;
    }
}

/* --- the diagonal ------------------------------------------------------------------------ */
/* As dmi_dimset_index, dmi_dimset_contains and dmi_dimset_position, with indices of the base (origin 0). */
static __device__ __forceinline__ int64_t first_own(const dmi_dimset &set)
{
    int64_t block = set.lo / set.block, position = block % set.g; /* of the block in its period */
    return position == set.c ? set.lo : (block + (set.c - position + set.g) % set.g) * set.block;
}
static __device__ __forceinline__ int64_t base_index(const dmi_dimset &set, int64_t k)
{
    if (set.g == 1) {
        return set.lo + k;
    }
    int64_t first = first_own(set), block = first / set.block, beyond = first % set.block + k;
    return (block + beyond / set.block * set.g) * set.block + beyond % set.block;
}
static __device__ __forceinline__ bool has_base_index(const dmi_dimset &set, int64_t i)
{
    return i >= set.lo && i < set.hi && (set.g == 1 || i / set.block % set.g == set.c);
}
static __device__ __forceinline__ int64_t position_of(const dmi_dimset &set, int64_t i)
{
    return (set.g == 1 ? i : i / set.block / set.g * set.block + i % set.block) - set.lbase;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    diagonal(const __grid_constant__ dmi_cuda_diagonal p, T value, T *__restrict__ out)
{
    int64_t r = blockIdx.x * THREADS + threadIdx.x;
    if (r < p.count) {
        int64_t row = p.first_row + r, i = base_index(p.rows, row) - p.rows.origin + p.cols.origin;
        if (has_base_index(p.cols, i)) {
            out[(p.row_position + row) * p.row_stride + position_of(p.cols, i) * p.col_stride] = value;
        }
    }
}

/* --- by index ---------------------------------------------------------------------------- */
/* The elements of group `counter` of type T, N of them. */
template <typename T> struct maker; /* the type that a random T is made in */
template <> struct maker<double> {
    typedef double type;
};
template <> struct maker<float> {
    typedef float type;
};
template <> struct maker<f16> {
    typedef float type;
};
template <> struct maker<bf16> {
    typedef float type;
};
template <> struct maker<int64_t> {
    typedef int64_t type;
};
template <> struct maker<int32_t> {
    typedef int64_t type;
};
template <> struct maker<uint8_t> {
    typedef int64_t type;
};

static __device__ __forceinline__ void uniform(const dmi_cuda_fill &p, int64_t counter, double *x)
{
    dmi_words w = dmi_philox((uint64_t)counter, DMI_STREAM_UNIFORM, p.values.seed);
    x[0] = dmi_uniform64_at(&p.range64, w.w0, w.w1);
    x[1] = dmi_uniform64_at(&p.range64, w.w2, w.w3);
}
static __device__ __forceinline__ void uniform(const dmi_cuda_fill &p, int64_t counter, float *x)
{
    dmi_words w = dmi_philox((uint64_t)counter, DMI_STREAM_UNIFORM, p.values.seed);
    x[0] = dmi_uniform32_at(&p.range32, w.w0);
    x[1] = dmi_uniform32_at(&p.range32, w.w1);
    x[2] = dmi_uniform32_at(&p.range32, w.w2);
    x[3] = dmi_uniform32_at(&p.range32, w.w3);
}
static __device__ __forceinline__ void uniform(const dmi_cuda_fill &p, int64_t counter, int64_t *x)
{
    dmi_words w = dmi_philox((uint64_t)counter, DMI_STREAM_UNIFORM, p.values.seed);
    x[0] = dmi_uniform_int_at(p.values.i0, p.width, w.w0, w.w1);
    x[1] = dmi_uniform_int_at(p.values.i0, p.width, w.w2, w.w3);
}
static __device__ __forceinline__ void normal(const dmi_fill_values &v, int64_t counter, double *x)
{
    dmi_pair64 n = dmi_normal64(dmi_philox((uint64_t)counter, DMI_STREAM_NORMAL, v.seed));
    x[0] = DMI_FMA(v.p1, n.c, v.p0);
    x[1] = DMI_FMA(v.p1, n.s, v.p0);
}
static __device__ __forceinline__ void normal(const dmi_fill_values &v, int64_t counter, float *x)
{
    dmi_words w = dmi_philox((uint64_t)counter, DMI_STREAM_NORMAL, v.seed);
    dmi_pair32 a = dmi_normal32(w.w0, w.w1), b = dmi_normal32(w.w2, w.w3);
    float mean = (float)v.p0, deviation = (float)v.p1;
    x[0] = DMI_FMAF(deviation, a.c, mean);
    x[1] = DMI_FMAF(deviation, a.s, mean);
    x[2] = DMI_FMAF(deviation, b.c, mean);
    x[3] = DMI_FMAF(deviation, b.s, mean);
}
static __device__ __forceinline__ void normal(const dmi_fill_values &, int64_t, int64_t *)
{
}

/* Gamma and Poisson elements: one a counter. */
static __device__ __forceinline__ void single(const dmi_fill_values &v, int kind, int64_t index, double *x)
{
    double p0 = dmi_single_parameter(kind == DMI_FILL_GAMMA, &v);
    x[0] = kind == DMI_FILL_GAMMA ? DMI_MUL(v.p1, dmi_gamma_at(p0, (uint64_t)index, v.seed))
                                  : dmi_poisson_at(p0, (uint64_t)index, v.seed);
}
template <typename M> static __device__ __forceinline__ void single(const dmi_fill_values &, int, int64_t, M *)
{
}

/* An arithmetic progression is computed in f64 or i64. */
template <typename T, typename M> struct progression {
    static __device__ __forceinline__ T at(const dmi_fill_values &v, int64_t index)
    {
        return converted<T>(dmi_arange_at(v.p0, v.p1, index));
    }
};
template <typename T> struct progression<T, int64_t> {
    static __device__ __forceinline__ T at(const dmi_fill_values &v, int64_t index)
    {
        return converted<T>((int64_t)((uint64_t)v.i0 + (uint64_t)v.i1 * (uint64_t)index));
    }
};

template <int KIND, typename T, int N>
static __device__ __forceinline__ group<T, N> make_group(const dmi_cuda_fill &p, int64_t counter)
{
    typedef typename maker<T>::type M;
    group<T, N> g;
    M x[N] = {};
    if (KIND == DMI_FILL_ARANGE) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            g.v[e] = progression<T, M>::at(p.values, counter * N + e);
        }
        return g;
    }
    if (KIND == DMI_FILL_CLOCK) {
        uint64_t now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
#pragma unroll
        for (int e = 0; e < N; e++) {
            x[e] = (M)now;
        }
    } else if (KIND == DMI_FILL_UNIFORM) {
        uniform(p, counter, x);
    } else if (KIND == DMI_FILL_GAMMA || KIND == DMI_FILL_POISSON) {
        single(p.values, KIND, counter, x);
    } else {
        normal(p.values, counter, x);
    }
#pragma unroll
    for (int e = 0; e < N; e++) {
        g.v[e] = converted<T>(x[e]);
    }
    return g;
}

/* Index of element k of a dim that is not the innermost. */
static __device__ __forceinline__ int64_t index_at(const dmi_cuda_dim_ranges &dim, int64_t k)
{
    if (k < dim.first_len) {
        return dim.start + k;
    }
    int64_t beyond = k - dim.first_len;
    return dim.jump_start + (1 + beyond / dim.block) * dim.jump + beyond % dim.block;
}

/* Where an item's group of N elements is: `at` in memory, the first `skip` of them, if negative, before the
 * item's range, which ends `len` elements after its begin. False: nothing of it is in the range. */
struct group_place {
    int64_t counter, at, skip, len;
};
template <int N> static __device__ __forceinline__ bool find_group(const dmi_cuda_fill &p, group_place *place)
{
    uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= p.items) {
        return false;
    }
    uint32_t rest = divided(item, p.groups), g = item - rest * p.groups.extent, i = divided(rest, p.ranges);
    int64_t s = rest - i * p.ranges.extent, linear = 0, at = 0;
    for (int d = 1; d < p.ndim; d++) {
        uint32_t next = divided(i, p.extent[d]), k = i - next * p.extent[d].extent;
        linear += index_at(p.dim[d], k) * p.dim[d].weight;
        at += k * p.dim[d].stride;
        i = next;
    }
    const dmi_cuda_dim_ranges &inner = p.dim[0];
    int64_t done = s == 0 ? 0 : inner.first_len + (s - 1) * inner.block;
    int64_t len = s == 0 ? inner.first_len : DMI_MIN(inner.block, inner.count - done);
    int64_t first = linear + (s == 0 ? inner.start : inner.jump_start + s * inner.jump);
    int64_t counter = (int64_t)((uint64_t)first / N) + g,
            skip = counter * N - first; /* < 0: it begins before */
    *place = {counter, at + (done + skip) * inner.stride, skip, len};
    return skip < len;
}

template <int KIND, typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    by_index(const __grid_constant__ dmi_cuda_fill p, T *__restrict__ out)
{
    group_place o;
    if (!find_group<N>(p, &o)) {
        return;
    }
    const int64_t stride = p.dim[0].stride;
    group<T, N> v = make_group<KIND, T, N>(p, o.counter);
    T *to = out + o.at;
    if (stride == 1 && o.skip >= 0 && o.skip + N <= o.len && (uintptr_t)to % sizeof v == 0) {
        *(group<T, N> *)to = v;
        return;
    }
#pragma unroll
    for (int e = 0; e < N; e++) {
        if (o.skip + e >= 0 && o.skip + e < o.len) {
            to[e * stride] = v.v[e];
        }
    }
}

/* Any type, made in M. */
template <int KIND, typename M, int N>
static __global__ void __launch_bounds__(THREADS)
    by_index_every(const __grid_constant__ dmi_cuda_fill p, void *__restrict__ out)
{
    group_place o;
    if (!find_group<N>(p, &o)) {
        return;
    }
    group<M, N> v = make_group<KIND, M, N>(p, o.counter);
#pragma unroll
    for (int e = 0; e < N; e++) {
        if (o.skip + e >= 0 && o.skip + e < o.len) {
            store_one(p.dtype, out, o.at + e * p.dim[0].stride, v.v[e]);
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename T>
static void launch_constant(dmi_queue *q, const dmi_cuda_box *box, const uint64_t *value, void *out)
{
    T v;
    memcpy(&v, value, sizeof v);
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, 1);
    constant<T><<<blocks, THREADS, 0, stream_of(q)>>>(b, v, (T *)out);
}

void dmi_cuda_launch_constant(dmi_queue *q, int unit, const dmi_cuda_box *box, const uint64_t *value, void *out)
{
#define CALL(T) launch_constant<T>(q, box, value, out)
    DMI_CUDA_BY_UNIT(q, "fill", unit, CALL)
#undef CALL
    dmi_cuda_launched(q, "fill");
}

template <typename T>
static void launch_diagonal(dmi_queue *q, const dmi_cuda_diagonal *p, const uint64_t *value, void *out)
{
    T v;
    memcpy(&v, value, sizeof v);
    unsigned blocks = blocks_for(p->count, THREADS);
    diagonal<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p, v, (T *)out);
}

void dmi_cuda_launch_diagonal(dmi_queue *q, int64_t bytes, const dmi_cuda_diagonal *p, const uint64_t *value,
                              void *out)
{
#define CALL(T) launch_diagonal<T>(q, p, value, out)
    DMI_CUDA_BY_UNIT(q, "fill of a diagonal", bytes, CALL)
#undef CALL
    dmi_cuda_launched(q, "fill of a diagonal");
}

static void refuse(dmi_queue *q)
{
    dmi_cuda_failed(q, "fill", -1, "no kernel for this fill of this type");
}

template <typename T, int N> static void launch_by_index(dmi_queue *q, const dmi_cuda_fill *p, void *out)
{
    unsigned blocks = blocks_for(p->items, THREADS);
    switch (p->kind) {
    case DMI_FILL_ARANGE:
        by_index<DMI_FILL_ARANGE, T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (T *)out);
        break;
    case DMI_FILL_UNIFORM:
        by_index<DMI_FILL_UNIFORM, T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (T *)out);
        break;
    case DMI_FILL_NORMAL:
        by_index<DMI_FILL_NORMAL, T, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (T *)out);
        break;
    default:
        refuse(q);
    }
}

template <int KIND, typename M, int N> static void launch_every(dmi_queue *q, const dmi_cuda_fill *p, void *out)
{
    unsigned blocks = blocks_for(p->items, THREADS);
    by_index_every<KIND, M, N><<<blocks, THREADS, 0, stream_of(q)>>>(*p, out);
}

/* Types without kernels of their own: N is dmi_cuda_fill_group's. */
static void launch_shared(dmi_queue *q, const dmi_cuda_fill *p, void *out)
{
    bool real = dmi_dtype_is_float(p->dtype);
    if (p->kind == DMI_FILL_ARANGE && real) {
        launch_every<DMI_FILL_ARANGE, double, 4>(q, p, out);
    } else if (p->kind == DMI_FILL_ARANGE && dmi_dtype_is_complex(p->dtype)) {
        launch_every<DMI_FILL_ARANGE, double, 2>(q, p, out);
    } else if (p->kind == DMI_FILL_ARANGE) {
        launch_every<DMI_FILL_ARANGE, int64_t, 2>(q, p, out);
    } else if (p->kind == DMI_FILL_NORMAL) {
        launch_every<DMI_FILL_NORMAL, float, 4>(q, p, out);
    } else if (p->kind == DMI_FILL_UNIFORM && real) {
        launch_every<DMI_FILL_UNIFORM, float, 4>(q, p, out);
    } else if (p->kind == DMI_FILL_UNIFORM) {
        launch_every<DMI_FILL_UNIFORM, int64_t, 2>(q, p, out);
    } else {
        refuse(q);
    }
}

void dmi_cuda_launch_fill(dmi_queue *q, const dmi_cuda_fill *p, void *out)
{
    if (p->kind >= DMI_FILL_GAMMA) { /* made in one type: f64, a clock i64 */
        if (p->kind == DMI_FILL_CLOCK) {
            launch_every<DMI_FILL_CLOCK, int64_t, 2>(q, p, out);
        } else if (p->kind == DMI_FILL_GAMMA) {
            launch_every<DMI_FILL_GAMMA, double, 1>(q, p, out);
        } else {
            launch_every<DMI_FILL_POISSON, double, 1>(q, p, out);
        }
        dmi_cuda_launched(q, "fill");
        return;
    }
    switch (p->dtype) {
    case DM_F64:
        launch_by_index<double, 2>(q, p, out);
        break;
    case DM_F32:
        launch_by_index<float, 4>(q, p, out);
        break;
    case DM_F16:
        launch_by_index<f16, 4>(q, p, out);
        break;
    case DM_BF16:
        launch_by_index<bf16, 4>(q, p, out);
        break;
    case DM_I64:
        launch_by_index<int64_t, 2>(q, p, out);
        break;
    case DM_I32:
        launch_by_index<int32_t, 2>(q, p, out);
        break;
    case DM_U8:
        launch_by_index<uint8_t, 2>(q, p, out);
        break;
    default: /* any other type */
        launch_shared(q, p, out);
        break;
    }
    dmi_cuda_launched(q, "fill");
}
