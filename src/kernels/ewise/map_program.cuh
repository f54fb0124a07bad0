/* Whole elementwise programs, any types: every thread runs the steps on its elements. Slower than a kernel made for the
 * program, which needs NVRTC; this one is always there. */
#ifndef DMI_CUDA_MAP_PROGRAM_CUH
#define DMI_CUDA_MAP_PROGRAM_CUH

#include "kernels/ewise/map.cuh"

#include "kernels/ewise/made.cuh"

enum { THREADS = DMI_CUDA_THREADS, ELEMENTS = 2 /* a thread */ };

/* A value in any real carrier, and in any carrier: what is larger is slower. */
struct real_value {
    static const bool complex = false;
    union {
        double f64;
        float f32;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        unsigned char truth;
    };
};
struct any_value {
    static const bool complex = true;
    union {
        double f64;
        float f32;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        unsigned char truth;
        dm_c64 c64;
        dm_c128 c128;
    };
};

/* The value as a number of carrier C, and back. */
template <typename C> struct carrier_in;
#define CARRIER_IN(type, member)                                                                               \
    template <> struct carrier_in<type> {                                                                      \
        template <typename V> static __device__ __forceinline__ type get(const V &v) { return v.member; }      \
        template <typename V> static __device__ __forceinline__ void set(V &v, type x) { v.member = x; }       \
    };
CARRIER_IN(double, f64)
CARRIER_IN(float, f32)
CARRIER_IN(int64_t, i64)
CARRIER_IN(uint64_t, u64)
CARRIER_IN(int32_t, i32)
CARRIER_IN(unsigned char, truth)
#undef CARRIER_IN
#define CARRIER_IN(type, memory_type, member)                                                                  \
    template <> struct carrier_in<type> {                                                                      \
        template <typename V> static __device__ __forceinline__ type get(const V &v)                           \
        {                                                                                                      \
            return type(v.member.re, v.member.im);                                                             \
        }                                                                                                      \
        template <typename V> static __device__ __forceinline__ void set(V &v, type x)                         \
        {                                                                                                      \
            v.member = memory_type{x.re, x.im};                                                                \
        }                                                                                                      \
    };
CARRIER_IN(c64, dm_c64, c64)
CARRIER_IN(c128, dm_c128, c128)
#undef CARRIER_IN

template <typename V, typename From> static __device__ __forceinline__ V in_carrier(int carrier, From x)
{
    V v = {};
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
        if constexpr (V::complex) {
            if (carrier == DM_C64) {
                v.c64 = dm_c64{made<float>::of(x), 0};
            } else {
                v.c128 = dm_c128{made<double>::of(x), 0};
            }
        } else {
            __trap();
        }
    }
    return v;
}

static __device__ __forceinline__ bool floating(int dtype)
{
    return dtype == DM_F64 || dtype == DM_F32 || dtype == DM_F16 || dtype == DM_BF16 || dtype == DM_F8E4M3 ||
           dtype == DM_F8E5M2;
}

/* An element as a value of a carrier. */
template <typename V> static __device__ __noinline__ V load_value(int dtype, int carrier, const void *p, int64_t at)
{
    if constexpr (V::complex) {
        if (dtype == DM_C64 || dtype == DM_C128) {
            dm_c128 z;
            load_one((dm_dtype)dtype, p, at, &z);
            V v = in_carrier<V>(carrier, z.re);
            if (carrier == DM_BOOL) {
                v.truth = z.re != 0 || z.im != 0;
            } else if (carrier == DM_C64) {
                v.c64.im = narrowed(z.im);
            } else if (carrier == DM_C128) {
                v.c128.im = z.im;
            }
            return v;
        }
    }
    if (floating(dtype)) {
        double x;
        load_one((dm_dtype)dtype, p, at, &x);
        return in_carrier<V>(carrier, x);
    }
    if (dtype == DM_U64) {
        uint64_t x;
        load_one((dm_dtype)dtype, p, at, &x);
        return in_carrier<V>(carrier, x);
    }
    int64_t x;
    load_one((dm_dtype)dtype, p, at, &x);
    return in_carrier<V>(carrier, x);
}

static __device__ __forceinline__ void store_parts(int dtype, void *p, int64_t at, dm_c128 z)
{
    if (dtype == DM_C64 || dtype == DM_C128 || dtype == DM_BOOL) {
        store_one((dm_dtype)dtype, p, at, z);
    } else {
        store_one((dm_dtype)dtype, p, at, z.re);
    }
}

template <typename V> static __device__ __noinline__ void store_value(int dtype, int carrier, void *p, int64_t at, V v)
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
        if constexpr (V::complex) {
            store_parts(dtype, p, at, carrier == DM_C64 ? dm_c128{widened(v.c64.re), widened(v.c64.im)} : v.c128);
        } else {
            __trap();
        }
    }
}

/* By way of a type, as dm_copy converts; bool by x != 0. */
template <typename V> static __device__ __noinline__ V cast_value(V v, int of, int via, int type)
{
    V slot = {};
    store_value(via, of, &slot, 0, v);
    return load_value<V>(via, type, &slot, 0);
}

template <typename C, typename V>
static __device__ __noinline__ V step_value(const dmi_cuda_step &step, V a, V b, V c, const dmi_number &s,
                                            const dmi_number &t)
{
    C x = step.choice ? (C)(a.truth != 0) : carrier_in<C>::get(a), y = carrier_in<C>::get(b), z = carrier_in<C>::get(c);
    V r = {};
    const C S = number_in<C>(s), T = number_in<C>(t);
    switch (step.row) {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    case DMI_EW_##name:                                                                                        \
        x = row_##name<C>(x, y, z, S, T);                                                                      \
        break;
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
    }
    if (step.compare) {
        r.truth = x != (C)0;
        return r;
    }
    if constexpr (complex_carrier<C>::value) {
        if (step.part) {
            carrier_in<typename complex_carrier<C>::part>::set(r, x.re);
            return r;
        }
    }
    carrier_in<C>::set(r, x);
    return r;
}

template <typename V>
static __device__ __forceinline__ V run_step(const dmi_cuda_program &p, int step, V a, V b, V c)
{
    const dmi_cuda_step &s = p.step[step];
    const dmi_number &n0 = p.number[s.number[0]], &n1 = p.number[s.number[1]];
    if (s.row == DMI_EW_CAST) {
        return cast_value(a, s.of, s.via, s.type);
    }
    switch (s.type) {
    case DM_F64:
        return step_value<double>(s, a, b, c, n0, n1);
    case DM_F32:
        return step_value<float>(s, a, b, c, n0, n1);
    case DM_I64:
        return step_value<int64_t>(s, a, b, c, n0, n1);
    case DM_I32:
        return step_value<int32_t>(s, a, b, c, n0, n1);
    case DM_U64:
        return step_value<uint64_t>(s, a, b, c, n0, n1);
    case DM_BOOL:
        return step_value<unsigned char>(s, a, b, c, n0, n1);
    default:
        if constexpr (V::complex) {
            return s.type == DM_C64 ? step_value<c64>(s, a, b, c, n0, n1) : step_value<c128>(s, a, b, c, n0, n1);
        }
        __trap();
        return a;
    }
}

static_assert((int)MADE_INDEX == (int)DMI_MADE_INDEX && (int)MADE_UNIFORM == (int)DMI_MADE_UNIFORM &&
                  (int)MADE_NORMAL == (int)DMI_MADE_NORMAL,
              "made.cuh has the kinds of ewise.h");

template <typename V> static __device__ __noinline__ V made_value(const dmi_cuda_program &p, int input, int64_t at)
{
    const int64_t index = linear_of(p.linear, p.linear.first[input] + at);
    const uint64_t seed = (uint64_t)p.number[p.seed[input]].whole;
    V v = {};
    if (p.made[input] == MADE_INDEX) {
        v.i64 = index;
    } else if (p.input_type[input] == DM_F32) {
        v.f32 = maker<float>(p.made[input], seed).at(index);
    } else {
        v.f64 = maker<double>(p.made[input], seed).at(index);
    }
    return v;
}

template <typename V> static __device__ __forceinline__ V constant_value(const dmi_cuda_program &p, int i)
{
    const dmi_number &n = p.number[p.constant_number[i]];
    V v = {};
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
    case DM_BOOL:
        v.truth = number_in<unsigned char>(n);
        break;
    default:
        if constexpr (V::complex) {
            if (p.constant_type[i] == DM_C64) {
                v.c64 = dm_c64{(float)n.re, (float)n.im};
            } else {
                v.c128 = dm_c128{n.re, n.im};
            }
        }
    }
    return v;
}

template <typename V>
static __global__ void __launch_bounds__(THREADS) map_program(const __grid_constant__ dmi_cuda_program p)
{
    after_previous();
    for (int k = 0; k < ELEMENTS; k++) {
        uint32_t i = blockIdx.x * (THREADS * ELEMENTS) + k * THREADS + threadIdx.x;
        if (i >= p.items) {
            return;
        }
        const int sides = p.inputs + 1 + p.kept;
        int64_t at[DMI_MAP_SIDES];
        for (int s = 0; s < sides; s++) {
            at[s] = 0;
        }
        for (int d = 0; d < p.ndim; d++) {
            uint32_t q = d + 1 < p.ndim ? divided(i, p.extent[d]) : 0, r = i - q * p.extent[d].extent;
            for (int s = 0; s < sides; s++) {
                at[s] += r * p.stride[s][d];
            }
            i = q;
        }
        V in[DMI_MAP_INPUTS], temporary[DMI_MAP_TEMPORARIES], last = {};
        for (int s = 0; s < p.inputs; s++) {
            in[s] = p.made[s] ? made_value<V>(p, s, at[s])
                              : load_value<V>(p.dtype[s], p.input_type[s], p.memory[s], at[s]);
        }
        for (int s = 0; s < p.steps; s++) {
            V v[3] = {};
            for (int o = 0; o < p.step[s].operands; o++) {
                int from = p.step[s].from[o], index = from & DMI_AT_INDEX, kind = from & DMI_AT_KIND;
                v[o] = kind == DMI_AT_INPUT      ? in[index]
                       : kind == DMI_AT_CONSTANT ? constant_value<V>(p, index)
                                                 : temporary[index];
            }
            last = run_step(p, s, v[0], v[1], v[2]);
            temporary[p.step[s].to] = last;
        }
        store_value(p.dtype[p.inputs], p.result, p.memory[p.inputs], at[p.inputs], last);
        for (int s = p.inputs + 1; s < sides; s++) {
            const int kept = s - p.inputs - 1;
            store_value(p.dtype[s], p.kept_type[kept], p.memory[s], at[s], temporary[p.keeps[kept]]);
        }
    }
}

template <typename V> static void launch_program(dmi_queue *q, const dmi_cuda_program *p)
{
    launch_after(q, map_program<V>, blocks_for(p->items, THREADS * ELEMENTS), *p);
    dmi_cuda_launched(q, "elementwise program");
}

#endif
