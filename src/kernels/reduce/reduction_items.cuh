/* Reductions other than the sum of elements in memory: what the loops of reduction_loops.cuh take as an item, which is one
 * element, of any type, or a group of 16 bytes of one type; and their kernels. */
#ifndef DMI_REDUCTION_ITEMS_CUH
#define DMI_REDUCTION_ITEMS_CUH

#include "kernels/reduce/reduction.cuh"

enum { THREADS = DMI_CUDA_THREADS, WARP = 32, MOST_BLOCKS = 1 << 13 };

/* An element as the number that a row takes; by rows of logic as 0 or 1. */
template <typename N, typename T> static __device__ __forceinline__ N as_number(T x)
{
    if constexpr (same_type<N, unsigned char>::value) {
        return x != 0;
    } else {
        return (N)x;
    }
}

#include "kernels/reduce/reduction_loops.cuh"

static_assert((int)REDUCE_THREADS == (int)THREADS, "the loops are for thread blocks of this size");

/* A part's state to the workspace, or (last) the result's to acc. */
template <typename R>
static __device__ __forceinline__ void put_state(const dmi_cuda_rows &p, bool last, void *out, uint32_t part, int64_t result,
                                                 typename R::state s)
{
    if (!last) {
        ((typename R::state *)out)[part * p.base.results + result] = s;
        return;
    }
    if constexpr (R::kind == KIND_PLACE) {
        s.at = s.at == NOWHERE ? s.at : index_of(p.places, s.at);
    }
    write_acc<R>(p.number, out, result, s);
}

/* Floats of 16 bits are computed as float, which holds them all. */
template <typename T> struct opened_as {
    typedef T type;
};
template <> struct opened_as<f16> {
    typedef float type;
};
template <> struct opened_as<bf16> {
    typedef float type;
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
    /* A part's state to the workspace, or (last) the result's to acc. */
    template <typename R>
    static __device__ __forceinline__ void put(const rows_of_memory &p, bool last, void *out, uint32_t part, int64_t result,
                                               typename R::state s)
    {
        put_state<R>(p, last, out, part, result, s);
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

/* Groups of integers, and groups for rows of logic (reduction_whole.cu). */
void dmi_cuda_launch_rows_whole(dmi_queue *q, const rows_of_memory *p, unsigned blocks, void *out);

/* Thread blocks of a multiprocessor. Left to itself the compiler takes registers for two or three, whose loads do not fill the
 * memory. */
template <typename R> constexpr int least_blocks() { return R::kind == KIND_LOGSUM || R::kind == KIND_MOMENTS ? 3 : 4; }

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

#endif
