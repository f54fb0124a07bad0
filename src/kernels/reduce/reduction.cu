/* Reductions other than the sum: the loops of reduction_loops.cuh on elements in memory. An item is one element, of any type,
 * or a group of 16 bytes of f32, bf16 or f64. */
#include "kernels/reduce/reduction.cuh"

enum { THREADS = DMI_CUDA_THREADS, WARP = 32, MOST_BLOCKS = 1 << 13 };

/* An element as the number that a row takes. */
template <typename N, typename T> static __device__ __forceinline__ N as_number(T x) { return (N)x; }

#include "kernels/reduce/reduction_loops.cuh"

static_assert((int)REDUCE_THREADS == (int)THREADS, "the loops are for thread blocks of this size");

/* A part's state to the workspace, or the result's to acc. */
template <typename R>
static __device__ __forceinline__ void put_state(const dmi_cuda_rows &p, void *out, uint32_t part, int64_t result,
                                                 typename R::state s)
{
    if (!p.last) {
        ((typename R::state *)out)[part * p.base.results + result] = s;
        return;
    }
    if constexpr (R::kind == KIND_PLACE) {
        s.at = s.at == NOWHERE ? s.at : index_of(p.places, s.at);
    }
    write_acc<R>(p.number, out, result, s);
}

/* Floats of 16 and 32 bits are computed as float, which holds them all. */
template <typename T> struct opened_as {
    typedef float type;
};
template <> struct opened_as<double> {
    typedef double type;
};
template <typename T> using opened_type = typename opened_as<T>::type;

/* What items of all kinds have: their parameter is a dmi_cuda_rows with the elements' memory. */
struct rows_of_memory : dmi_cuda_rows {
    const void *in;
};
template <typename NATIVE, int COUNT> struct item_base {
    typedef NATIVE native;
    static const int N = COUNT, SIDES = 1, PLACE = 1;
    static __device__ __forceinline__ void locate_row(const rows_of_memory &p, uint32_t i, int64_t (&row)[1])
    {
        locate<1>(p.base.kept, i, row);
    }
    /* A part's state to the workspace, or the result's to acc. */
    template <typename R>
    static __device__ __forceinline__ void put(const rows_of_memory &p, void *out, uint32_t part, int64_t result,
                                               typename R::state s)
    {
        put_state<R>(p, out, part, result, s);
    }
};

template <typename R> struct single : item_base<typename R::number, 1> {
    typedef typename R::number number;
    number x;
    int64_t at; /* number of the element among those reduced over */
    __device__ __forceinline__ void load(const rows_of_memory &p, const int64_t (&row)[1], uint32_t i)
    {
        int64_t place[2];
        locate<2>(p.base.summed, i, place);
        x = element<number>(p.base.dtype, p.in, row[0] + place[0]);
        at = p.place + place[1];
    }
    __device__ __forceinline__ number get(int) const { return x; }
};

template <typename R, typename T, int COUNT> struct several : item_base<opened_type<T>, COUNT> {
    typedef opened_type<T> native;
    group<T, COUNT> v;
    int64_t at; /* of the first */
    __device__ __forceinline__ void load(const rows_of_memory &p, const int64_t (&row)[1], uint32_t i)
    {
        const int SIDES = R::kind == KIND_PLACE ? 2 : 1;
        int64_t place[SIDES];
        locate<SIDES>(p.base.summed, i, place);
        v = *(const group<T, COUNT> *)((const T *)p.in + row[0] + place[0]);
        at = R::kind == KIND_PLACE ? p.place + place[SIDES - 1] : 0;
    }
    __device__ __forceinline__ native get(int e) const { return opened<native, T>(v.v[e]); }
    static __device__ __forceinline__ native element(const rows_of_memory &p, const int64_t (&row)[1], int64_t at)
    {
        return opened<native, T>(((const T *)p.in)[row[0] + at]);
    }
};

/* Thread blocks of a multiprocessor: exponentials would take registers for two alone. */
template <typename R> constexpr int least_blocks() { return R::kind == KIND_LOGSUM ? 3 : 1; }

template <typename R, typename ITEM>
static __global__ void __launch_bounds__(THREADS, least_blocks<R>()) along(const __grid_constant__ rows_of_memory p, void *out)
{
    along_rows<R, ITEM>(p, out);
}
template <typename R, typename ITEM>
static __global__ void __launch_bounds__(THREADS, least_blocks<R>()) across(const __grid_constant__ rows_of_memory p, void *out)
{
    across_rows<R, ITEM>(p, out);
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    join(const __grid_constant__ dmi_cuda_rows p, int64_t parts, uint32_t team, const typename R::state *__restrict__ in,
         void *out)
{
    const int DEPTH = 8;
    const uint32_t teams = THREADS / team, lane = threadIdx.x % team;
    const int64_t results = p.base.results;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < results; base += (int64_t)gridDim.x * teams) {
        int64_t result = base + threadIdx.x / team;
        typename R::state s = R::start();
        for (int64_t part = lane; result < results && part < parts; part += DEPTH * team) {
            typename R::state v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) { /* all on their way at once */
                v[k] = part + k * team < parts ? in[(part + k * team) * results + result] : R::start();
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (part + k * team < parts) {
                    R::combine(s, v[k]);
                }
            }
        }
        s = team_state<R>(s, (int)team);
        if (result < results && lane == 0) {
            put_state<R>(p, out, 0, result, s);
        }
    }
}

/* What no elements give: of narrow types the largest or smallest there is, to which a double saturates; of bool 1 or 0. */
template <typename R>
static __global__ void __launch_bounds__(THREADS) start(dm_dtype number, int64_t results, void *out)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < results; i += (int64_t)gridDim.x * THREADS) {
        if constexpr (R::kind == KIND_VALUE) {
            double v = (double)R::start().v;
            put(number, out, i, number == DM_BOOL ? (double)(v > 0) : v);
        } else {
            write_acc<R>(number, out, i, R::start());
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename R, typename ITEM>
static void launch_items(dmi_queue *q, const rows_of_memory *p, unsigned blocks, void *out)
{
    if (p->base.across) {
        across<R, ITEM><<<blocks, THREADS, 0, stream_of(q)>>>(*p, out);
    } else {
        along<R, ITEM><<<blocks, THREADS, 0, stream_of(q)>>>(*p, out);
    }
}

/* The row for elements that are computed as float: in f32 where it keeps them as they are. */
template <typename R> struct narrow_row {
    static const bool narrows = (R::kind == KIND_VALUE || R::kind == KIND_PLACE) && same_type<typename R::number, double>::value;
    template <typename Q, bool YES> struct choice {
        typedef Q row;
    };
    template <typename Q> struct choice<Q, true> {
        typedef typename Q::template of<float>::row row;
    };
    typedef typename choice<R, narrows>::row row;
};

void dmi_cuda_launch_rows(dmi_queue *q, const dmi_cuda_rows *p, const void *in, void *out)
{
    unsigned blocks = dmi_cuda_reduce_blocks(&p->base);
    rows_of_memory with;
    memcpy(static_cast<dmi_cuda_rows *>(&with), p, sizeof *p);
    with.in = in;
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        if (p->base.group > 1) {
            if constexpr (same_type<typename R::number, double>::value) {
                typedef typename narrow_row<R>::row F;
                p->base.dtype == DM_F64   ? launch_items<R, several<R, double, 2>>(q, &with, blocks, out)
                : p->base.dtype == DM_F32 ? launch_items<F, several<F, float, 4>>(q, &with, blocks, out)
                                          : launch_items<F, several<F, bf16, 8>>(q, &with, blocks, out);
            }
        } else {
            launch_items<R, single<R>>(q, &with, blocks, out);
        }
    });
    dmi_cuda_launched(q, "reduction");
}

void dmi_cuda_launch_rows_join(dmi_queue *q, const dmi_cuda_rows *p, int64_t parts, const void *in, void *out)
{
    int64_t results = p->base.results;
    uint32_t team = results >= 4096 || parts < WARP ? 1 : results == 1 ? THREADS : WARP;
    unsigned blocks = blocks_for(results, THREADS / team);
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        if constexpr (narrow_row<R>::narrows) {
            typedef typename narrow_row<R>::row F;
            if (p->narrow) {
                join<F><<<blocks, THREADS, 0, stream_of(q)>>>(*p, parts, team, (const typename F::state *)in, out);
                return;
            }
        }
        join<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, parts, team, (const typename R::state *)in, out);
    });
    dmi_cuda_launched(q, "reduction of parts");
}

void dmi_cuda_launch_rows_start(dmi_queue *q, int acc, int64_t results, void *out)
{
    with_row(acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        unsigned blocks = DMI_MIN(blocks_for(results, THREADS), MOST_BLOCKS);
        start<R><<<blocks, THREADS, 0, stream_of(q)>>>(dmi_acc_number(acc), results, out);
    });
    dmi_cuda_launched(q, "start of a reduction");
}
