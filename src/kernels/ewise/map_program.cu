/* Whole elementwise programs, any types: every thread runs the steps on its elements. Slower than a kernel made for the
 * program, which needs NVRTC; this one is always there. */
#include "kernels/ewise/map.cuh"

enum { THREADS = DMI_CUDA_THREADS, ELEMENTS = 2 /* a thread */ };

/* A value in any carrier. */
union value {
    double f64;
    float f32;
    int64_t i64;
    uint64_t u64;
    int32_t i32;
    unsigned char truth;
};

template <typename C> static __device__ __forceinline__ C &part(value &v);
template <> __device__ __forceinline__ double &part<double>(value &v)
{
    return v.f64;
}
template <> __device__ __forceinline__ float &part<float>(value &v)
{
    return v.f32;
}
template <> __device__ __forceinline__ int64_t &part<int64_t>(value &v)
{
    return v.i64;
}
template <> __device__ __forceinline__ int32_t &part<int32_t>(value &v)
{
    return v.i32;
}
template <> __device__ __forceinline__ unsigned char &part<unsigned char>(value &v)
{
    return v.truth;
}

template <> __device__ __forceinline__ uint64_t &part<uint64_t>(value &v)
{
    return v.u64;
}

template <typename From> static __device__ __forceinline__ value in_carrier(int carrier, From x)
{
    value v;
    switch (carrier) {
    case DM_F64:
        v.f64 = made<double>::of(x);
        break;
    case DM_F32:
        v.f32 = made<float>::of(x);
        break;
    case DM_I64:
        v.i64 = made<int64_t>::of(x);
        break;
    case DM_I32:
        v.i32 = made<int32_t>::of(x);
        break;
    case DM_U64:
        v.u64 = made<uint64_t>::of(x);
        break;
    case DM_BOOL:
        v.truth = x != 0;
        break;
    default:
        __trap();
    }
    return v;
}

static __device__ __forceinline__ bool floating(int dtype)
{
    return dtype == DM_F64 || dtype == DM_F32 || dtype == DM_F16 || dtype == DM_BF16 || dtype == DM_F8E4M3 ||
           dtype == DM_F8E5M2;
}

/* An element as a value of a carrier. */
static __device__ __noinline__ value load_value(int dtype, int carrier, const void *p, int64_t at)
{
    if (floating(dtype)) {
        double x;
        load_one((dm_dtype)dtype, p, at, &x);
        return in_carrier(carrier, x);
    }
    if (dtype == DM_U64) {
        uint64_t x;
        load_one((dm_dtype)dtype, p, at, &x);
        return in_carrier(carrier, x);
    }
    int64_t x;
    load_one((dm_dtype)dtype, p, at, &x);
    return in_carrier(carrier, x);
}

static __device__ __noinline__ void store_value(int dtype, int carrier, void *p, int64_t at, value v)
{
    switch (carrier) {
    case DM_F64:
        store_one((dm_dtype)dtype, p, at, v.f64);
        break;
    case DM_F32:
        store_one((dm_dtype)dtype, p, at, widened(v.f32));
        break;
    case DM_I64:
        store_one((dm_dtype)dtype, p, at, v.i64);
        break;
    case DM_I32:
        store_one((dm_dtype)dtype, p, at, (int64_t)v.i32);
        break;
    case DM_U64:
        store_one((dm_dtype)dtype, p, at, v.u64);
        break;
    case DM_BOOL:
        store_one((dm_dtype)dtype, p, at, (int64_t)v.truth);
        break;
    default:
        __trap();
    }
}

/* By way of a type, as dm_copy converts; bool by x != 0. */
static __device__ __noinline__ value cast_value(value v, int of, int via, int type)
{
    uint64_t slot = 0;
    store_value(via, of, &slot, 0, v);
    return load_value(via, type, &slot, 0);
}

template <typename C>
static __device__ __noinline__ value step_value(int row, bool compare, bool choice, value a, value b, value c,
                                                const dmi_number &s, const dmi_number &t)
{
    C x[1] = {choice ? (C)(a.truth != 0) : part<C>(a)}, y[1] = {part<C>(b)}, z[1] = {part<C>(c)};
    value r = {};
    const C S = number_in<C>(s), T = number_in<C>(t);
    switch (row) {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    case DMI_EW_##name:                                                                                        \
        x[0] = row_##name<C>(x[0], y[0], z[0], S, T);                                                          \
        break;
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
    }
    if (compare) {
        r.truth = x[0] != (C)0;
    } else {
        part<C>(r) = x[0];
    }
    return r;
}

static __device__ __forceinline__ value run_step(const dmi_cuda_program &p, int step, value a, value b, value c)
{
    const dmi_cuda_step &s = p.step[step];
    const dmi_number &n0 = p.number[s.number[0]], &n1 = p.number[s.number[1]];
    if (s.row == DMI_EW_CAST) {
        return cast_value(a, s.of, s.via, s.type);
    }
    switch (s.type) {
    case DM_F64:
        return step_value<double>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    case DM_F32:
        return step_value<float>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    case DM_I64:
        return step_value<int64_t>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    case DM_I32:
        return step_value<int32_t>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    case DM_U64:
        return step_value<uint64_t>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    default:
        return step_value<unsigned char>(s.row, s.compare, s.choice, a, b, c, n0, n1);
    }
}

static __device__ __forceinline__ value constant_value(const dmi_cuda_program &p, int i)
{
    const dmi_number &n = p.number[p.constant_number[i]];
    value v = {};
    switch (p.constant_type[i]) {
    case DM_F64:
        v.f64 = number_in<double>(n);
        break;
    case DM_F32:
        v.f32 = number_in<float>(n);
        break;
    case DM_I64:
        v.i64 = number_in<int64_t>(n);
        break;
    case DM_I32:
        v.i32 = number_in<int32_t>(n);
        break;
    case DM_U64:
        v.u64 = number_in<uint64_t>(n);
        break;
    default:
        v.truth = number_in<unsigned char>(n);
    }
    return v;
}

static __global__ void __launch_bounds__(THREADS) map_program(const __grid_constant__ dmi_cuda_program p)
{
    for (int k = 0; k < ELEMENTS; k++) {
        uint32_t i = blockIdx.x * (THREADS * ELEMENTS) + k * THREADS + threadIdx.x;
        if (i >= p.items) {
            return;
        }
        int64_t at[DMI_MAP_INPUTS + 1];
        for (int s = 0; s <= p.inputs; s++) {
            at[s] = 0;
        }
        for (int d = 0; d < p.ndim; d++) {
            uint32_t q = d + 1 < p.ndim ? divided(i, p.extent[d]) : 0, r = i - q * p.extent[d].extent;
            for (int s = 0; s <= p.inputs; s++) {
                at[s] += r * p.stride[s][d];
            }
            i = q;
        }
        value in[DMI_MAP_INPUTS], temporary[DMI_MAP_TEMPORARIES], last = {};
        for (int s = 0; s < p.inputs; s++) {
            in[s] = load_value(p.dtype[s], p.input_type[s], p.memory[s], at[s]);
        }
        for (int s = 0; s < p.steps; s++) {
            value v[3] = {};
            for (int o = 0; o < p.step[s].operands; o++) {
                int from = p.step[s].from[o], index = from & DMI_AT_INDEX, kind = from & DMI_AT_KIND;
                v[o] = kind == DMI_AT_INPUT      ? in[index]
                       : kind == DMI_AT_CONSTANT ? constant_value(p, index)
                                                 : temporary[index];
            }
            last = run_step(p, s, v[0], v[1], v[2]);
            temporary[p.step[s].to] = last;
        }
        store_value(p.dtype[p.inputs], p.result, p.memory[p.inputs], at[p.inputs], last);
    }
}

void dmi_cuda_launch_map_program(dmi_queue *q, const dmi_cuda_program *p)
{
    map_program<<<blocks_for(p->items, THREADS * ELEMENTS), THREADS, 0, stream_of(q)>>>(*p);
    dmi_cuda_launched(q, "elementwise program");
}
