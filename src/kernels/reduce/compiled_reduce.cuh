/* What a kernel compiled for the reduction of an elementwise program is made of, beside the rows and the loops.
 * Compiled at run time only (reduce_source.c), behind the files that it uses. */

/* A value of the program as the number that a row takes. */
template <typename N> struct number_of_value {
    template <typename V> static __device__ __forceinline__ N of(V v)
    {
        return (N)v;
    }
};
template <> struct number_of_value<unsigned char> {
    template <typename V> static __device__ __forceinline__ unsigned char of(V v)
    {
        return v != 0;
    }
    static __device__ __forceinline__ unsigned char of(c64 v)
    {
        return v.re != 0 || v.im != 0;
    }
    static __device__ __forceinline__ unsigned char of(c128 v)
    {
        return v.re != 0 || v.im != 0;
    }
};
template <> struct number_of_value<wide_complex> {
    template <typename V> static __device__ __forceinline__ wide_complex of(V v)
    {
        return wide_complex(v.re, v.im);
    }
};
template <typename N, typename V> static __device__ __forceinline__ N as_number(V v)
{
    return number_of_value<N>::of(v);
}

/* Sums as a row. */
template <typename C> struct sum_state {
    typedef sum_i64 type;
};
template <> struct sum_state<float> {
    typedef sum_f64 type;
};
template <> struct sum_state<double> {
    typedef sum_dd type;
};
template <> struct sum_state<c64> {
    typedef sum_complex<sum_f64> type;
};
template <> struct sum_state<c128> {
    typedef sum_complex<sum_dd> type;
};
template <> struct number_of_value<c64> {
    static __device__ __forceinline__ c64 of(c64 v)
    {
        return v;
    }
};
template <> struct number_of_value<c128> {
    static __device__ __forceinline__ c128 of(c128 v)
    {
        return v;
    }
};
template <typename C> struct reduction_sum {
    typedef C number;
    typedef typename sum_state<C>::type state;
    static const int kind = KIND_SUM;
    static __device__ __forceinline__ state start()
    {
        state a;
        clear(&a);
        return a;
    }
    static __device__ __forceinline__ void take(state &a, C x, int64_t)
    {
        add(&a, x);
    }
    static __device__ __forceinline__ void combine(state &a, const state &b)
    {
        a = joined(a, b);
    }
};

/* Adds the place of item i of a box. */
template <int SIDES>
static __device__ __forceinline__ void advance_in(const dmi_reduce_box &box, uint32_t i, int64_t (&at)[SIDES])
{
    for (int d = 0; d < box.ndim; d++) {
        uint32_t q = d + 1 < box.ndim ? divided(i, box.extent[d]) : 0, r = i - q * box.extent[d].extent;
#pragma unroll
        for (int s = 0; s < SIDES; s++) {
            at[s] += r * box.stride[s][d];
        }
        i = q;
    }
}

/* What items of programs have, whatever the program; `wide_number`: in which accumulators of places keep
 * elements. */
template <typename NATIVE, typename ACC, int INPUTS, int COUNT> struct item_base {
    typedef NATIVE native;
    static const int N = COUNT, SIDES = INPUTS > 0 ? INPUTS : 1, PLACE = INPUTS;
    static __device__ __forceinline__ void locate_row(const dmi_reduce_args &p, uint32_t i,
                                                      int64_t (&row)[SIDES])
    {
#pragma unroll
        for (int s = 0; s < SIDES; s++) {
            row[s] = 0;
        }
        advance_in<SIDES>(p.base.kept, i, row);
    }
    template <typename R>
    static __device__ __forceinline__ void put(const dmi_reduce_args &p, bool last, void *out, uint32_t part,
                                               int64_t result, typename R::state s)
    {
        typedef typename R::state S;
        if constexpr (R::kind == KIND_SUM) {
            ((S *)out)[(last ? 0 : part * p.base.results) + result] = s;
        } else if (!last) {
            ((S *)out)[part * p.base.results + result] = s;
        } else if constexpr (R::kind == KIND_VALUE) {
            ((ACC *)out)[result] = stored<ACC>(s.v);
        } else if constexpr (R::kind == KIND_PLACE) {
            s.at = s.at == NOWHERE ? s.at : index_of(p.places, s.at);
            if constexpr (same_type<typename R::number, float>::value) {
                ((state_PLACE<double> *)out)[result] = {(double)s.v, s.at};
            } else {
                ((S *)out)[result] = s;
            }
        } else {
            ((S *)out)[result] = s;
        }
    }
};
