/* Accumulators of reductions other than the sum: combined with those of other workers, and finished. */
#include "kernels/reduce/reduction.cuh"

enum { THREADS = DMI_CUDA_THREADS };

template <typename R>
static __device__ __forceinline__ void combine_one(dm_dtype number, const void *part, int64_t from, void *acc, int64_t at)
{
    typename R::state s = read_acc<R>(number, acc, at);
    R::combine(s, read_acc<R>(number, part, from));
    write_acc<R>(number, acc, at, s);
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    combine_box(const __grid_constant__ dmi_cuda_box box, dm_dtype number, const void *part, void *acc)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<2, 1>(box, at, valid);
    if (valid[0]) {
        combine_one<R>(number, part, at[0][0], acc, at[0][1]);
    }
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    combine_runs(const __grid_constant__ dmi_cuda_runs runs, dm_dtype number, const void *part, void *acc)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<1>(runs, at, valid);
    if (valid[0]) {
        combine_one<R>(number, part, at[0][0], acc, at[0][1]);
    }
}

/* What out has, as a state of a row whose state is its result. */
template <typename R>
static __device__ __forceinline__ typename R::state state_of(dm_dtype dtype, const void *out, int64_t at)
{
    typename R::state s = R::start();
    if constexpr (R::kind == KIND_VALUE || R::kind == KIND_WIDE) {
        s.v = element<decltype(s.v)>(dtype, out, at);
    } else if constexpr (R::kind == KIND_COUNT) {
        s.n = element<int64_t>(dtype, out, at);
    }
    return s;
}

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    finish(const __grid_constant__ dmi_cuda_box box, dm_dtype number, double scale, const void *acc,
           bool accumulates, dm_dtype out_dtype, void *out)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<2, 1>(box, at, valid);
    if (valid[0]) {
        typename R::state s = read_acc<R>(number, acc, at[0][0]);
        if (accumulates) {
            typename R::state old = state_of<R>(out_dtype, out, at[0][1]);
            R::combine(old, s);
            s = old;
        }
        put(out_dtype, out, at[0][1], R::finish(s, scale));
    }
}

void dmi_cuda_launch_rows_combine(dmi_queue *q, int acc_kind, const dmi_cuda_box *box, const void *part, void *acc)
{
    dmi_cuda_box here = *box;
    unsigned blocks = blocks_for(&here, 1);
    with_row(acc_kind, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        combine_box<R><<<blocks, THREADS, 0, stream_of(q)>>>(here, dmi_acc_number(acc_kind), part, acc);
    });
    dmi_cuda_launched(q, "combination of partial results");
}

void dmi_cuda_launch_rows_combine_runs(dmi_queue *q, int acc_kind, const dmi_cuda_runs *runs, const void *part, void *acc)
{
    dmi_cuda_runs here = *runs;
    unsigned blocks = blocks_for(&here, 1);
    with_row(acc_kind, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        combine_runs<R><<<blocks, THREADS, 0, stream_of(q)>>>(here, dmi_acc_number(acc_kind), part, acc);
    });
    dmi_cuda_launched(q, "combination of partial results in runs");
}

void dmi_cuda_launch_rows_finish(dmi_queue *q, int acc_kind, double scale, const dmi_cuda_box *box,
                                 const void *acc, bool accumulates, dm_dtype out_dtype, void *out)
{
    dmi_cuda_box here = *box;
    unsigned blocks = blocks_for(&here, 1);
    with_row(acc_kind, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        finish<R><<<blocks, THREADS, 0, stream_of(q)>>>(here, dmi_acc_number(acc_kind), scale, acc, accumulates,
                                                        out_dtype, out);
    });
    dmi_cuda_launched(q, "results of a reduction");
}
