/* Accumulators: partial sums added up, and the sum written as a result. */
#include "kernels/cuda/sums.cuh"

enum { THREADS = DMI_CUDA_THREADS, STORE_DEPTH = 2 };

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    acc_add(const __grid_constant__ dmi_cuda_box box, const S *__restrict__ part, S *__restrict__ acc)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<2, 1>(box, at, valid);
    if (valid[0]) {
        acc[at[0][1]] = joined(acc[at[0][1]], part[at[0][0]]);
    }
}

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    acc_add_runs(const __grid_constant__ dmi_cuda_runs runs, const S *__restrict__ part, S *__restrict__ acc)
{
    int64_t at[1][2];
    bool valid[1];
    locate_all<1>(runs, at, valid);
    if (valid[0]) {
        acc[at[0][1]] = joined(acc[at[0][1]], part[at[0][0]]);
    }
}

/* hi + lo rounded to odd: a further rounding to a shorter type then gives what rounding the pair once would. */
static __device__ __forceinline__ double odd(sum_dd a)
{
    double e, s = two_sum(a.hi, a.lo, &e);
    if (!finite_value(a.hi)) {
        return a.hi;
    }
    if (finite_value(s) && e != 0) {
        uint64_t bits = (uint64_t)__double_as_longlong(s);
        if ((bits & 1) == 0) {
            bits = (e > 0) == (s > 0) ? bits + 1 : bits - 1;
        }
        return __longlong_as_double((long long)bits);
    }
    return s;
}
static __device__ __forceinline__ double value_of(sum_f64 a, const dmi_cuda_store &)
{
    return a.s;
}
static __device__ __forceinline__ double value_of(sum_dd a, const dmi_cuda_store &p)
{
    if (p.plain && p.out_dtype != DM_F64) {
        return odd(a);
    }
    return finite_value(a.hi) ? __dadd_rn(a.hi, a.lo) : a.hi;
}
static __device__ __forceinline__ double value_of(sum_i64 a, const dmi_cuda_store &)
{
    return (double)(int64_t)a.s;
}

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    acc_store(const __grid_constant__ dmi_cuda_store p, const S *__restrict__ acc, void *out)
{
    int64_t at[STORE_DEPTH][2];
    bool valid[STORE_DEPTH];
    double v[STORE_DEPTH][1], old[STORE_DEPTH][1] = {};
    S sum[STORE_DEPTH];
    locate_all<2, STORE_DEPTH>(p.box, at, valid);
    if (p.beta != 0) {
        load_items(p.out_dtype, out, at, 1, valid, old);
    }
#pragma unroll
    for (int k = 0; k < STORE_DEPTH; k++) {
        if (valid[k]) {
            sum[k] = acc[at[k][0]];
        }
    }
#pragma unroll
    for (int k = 0; k < STORE_DEPTH; k++) {
        v[k][0] = value_of(sum[k], p);
        if (!p.plain) {
            double term = p.beta == 0 ? 0 : __dmul_rn(p.beta, old[k][0]);
            v[k][0] = __dadd_rn(__dmul_rn(p.scale, v[k][0]), term);
        }
    }
    store_items(p.out_dtype, out, at, 1, valid, v);
}

/* Integer sums of integer results, and those that are converted as they are. */
static __global__ void __launch_bounds__(THREADS)
    acc_store_integers(const __grid_constant__ dmi_cuda_store p, const int64_t *__restrict__ acc, void *out)
{
    int64_t at[STORE_DEPTH][2], v[STORE_DEPTH][1], old[STORE_DEPTH][1] = {};
    bool valid[STORE_DEPTH];
    locate_all<2, STORE_DEPTH>(p.box, at, valid);
    load_items_typed<int64_t, 1, int64_t>(acc, at, 0, valid, v);
    if (!p.plain) {
        if (p.beta != 0) {
            load_items(p.out_dtype, out, at, 1, valid, old);
        }
#pragma unroll
        for (int k = 0; k < STORE_DEPTH; k++) {
            v[k][0] =
                (int64_t)((uint64_t)p.iscale * (uint64_t)v[k][0] + (uint64_t)p.ibeta * (uint64_t)old[k][0]);
        }
    }
    store_items(p.out_dtype, out, at, 1, valid, v);
}

/* --- launchers ------------------------------------------------------------------------- */
template <typename S> static void add_box(dmi_queue *q, const dmi_cuda_box *box, const void *part, void *acc)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, 1);
    acc_add<S><<<blocks, THREADS, 0, stream_of(q)>>>(b, (const S *)part, (S *)acc);
}
template <typename S> static void add_runs(dmi_queue *q, const dmi_cuda_runs *runs, const void *part, void *acc)
{
    dmi_cuda_runs here = *runs;
    unsigned blocks = blocks_for(&here, 1);
    acc_add_runs<S><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const S *)part, (S *)acc);
}

void dmi_cuda_launch_acc_add(dmi_queue *q, int acc_kind, const dmi_cuda_box *box, const void *part, void *acc)
{
    if (acc_kind == DMI_ACC_DD) {
        add_box<sum_dd>(q, box, part, acc);
    } else if (acc_kind == DMI_ACC_F64) {
        add_box<sum_f64>(q, box, part, acc);
    } else {
        add_box<sum_i64>(q, box, part, acc);
    }
    dmi_cuda_launched(q, "addition of sums");
}

void dmi_cuda_launch_acc_add_runs(dmi_queue *q, int acc_kind, const dmi_cuda_runs *runs, const void *part,
                                  void *acc)
{
    if (acc_kind == DMI_ACC_DD) {
        add_runs<sum_dd>(q, runs, part, acc);
    } else if (acc_kind == DMI_ACC_F64) {
        add_runs<sum_f64>(q, runs, part, acc);
    } else {
        add_runs<sum_i64>(q, runs, part, acc);
    }
    dmi_cuda_launched(q, "addition of sums in runs");
}

void dmi_cuda_launch_acc_store(dmi_queue *q, const dmi_cuda_store *p, const void *acc, void *out)
{
    dmi_cuda_store here = *p;
    unsigned blocks = blocks_for(&here.box, STORE_DEPTH);
    if (p->integers) {
        acc_store_integers<<<blocks, THREADS, 0, stream_of(q)>>>(here, (const int64_t *)acc, out);
    } else if (p->acc == DMI_ACC_DD) {
        acc_store<sum_dd><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_dd *)acc, out);
    } else if (p->acc == DMI_ACC_F64) {
        acc_store<sum_f64><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_f64 *)acc, out);
    } else {
        acc_store<sum_i64><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_i64 *)acc, out);
    }
    dmi_cuda_launched(q, "storing of sums");
}
