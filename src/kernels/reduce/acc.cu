/* Accumulators: partial sums added up, and the sum written as a result. */
#include "kernels/reduce/sums.cuh"

#include <type_traits>

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
    if (finite_value(s) && e != 0) {
        uint64_t bits = (uint64_t)__double_as_longlong(s);
        if ((bits & 1) == 0) {
            bits = (e > 0) == (s > 0) ? bits + 1 : bits - 1;
        }
        return __longlong_as_double((long long)bits);
    }
    return s;
}
static __device__ __forceinline__ double scaled(double v, const dmi_cuda_store &p)
{
    return p.divides ? __ddiv_rn(v, p.scale) : __dmul_rn(p.scale, v);
}
/* What the sum gives with scale; plain: scale is 1 */
static __device__ __forceinline__ double scaled_value(sum_f64 a, const dmi_cuda_store &p)
{
    return scaled(a.s, p);
}
static __device__ __forceinline__ double scaled_value(sum_dd a, const dmi_cuda_store &p)
{
    if (!finite_value(a.hi)) {
        return scaled(a.hi, p);
    }
    if (dmi_is_scaled(a.hi, a.lo)) {
        return __dmul_rn(scaled(a.lo, p), DMI_SCALE_UP);
    }
    return p.plain && p.out_dtype != DM_F64 ? odd(a) : scaled(__dadd_rn(a.hi, a.lo), p);
}
static __device__ __forceinline__ double scaled_value(sum_i64 a, const dmi_cuda_store &p)
{
    return scaled(p.acc == DMI_ACC_U64 ? (double)a.s : (double)(int64_t)a.s, p);
}

/* scale * sum + beta * out, for the items at side SIDE: in doubles, and, of integers, in integers that wrap. */
template <int SIDE, typename S, int N, int DEPTH, int SIDES>
static __device__ __forceinline__ void store_sums(const dmi_cuda_store &p, const int64_t (&at)[DEPTH][SIDES],
                                                  const bool (&valid)[DEPTH], const S (&sum)[DEPTH][N],
                                                  void *out)
{
    double v[DEPTH][N], old[DEPTH][N] = {};
    if (p.beta != 0) {
        load_items(p.out_dtype, out, at, SIDE, valid, old);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            v[k][e] = scaled_value(sum[k][e], p);
            if (!p.plain) {
                v[k][e] = __dadd_rn(v[k][e], p.beta == 0 ? 0 : __dmul_rn(p.beta, old[k][e]));
            }
        }
    }
    store_items(p.out_dtype, out, at, SIDE, valid, v);
}
template <int SIDE, int N, int DEPTH, int SIDES>
static __device__ __forceinline__ void
store_integers(const dmi_cuda_store &p, const int64_t (&at)[DEPTH][SIDES], const bool (&valid)[DEPTH],
               const sum_i64 (&sum)[DEPTH][N], void *out)
{
    int64_t v[DEPTH][N], old[DEPTH][N] = {};
    if (!p.plain && p.beta != 0) {
        load_items(p.out_dtype, out, at, SIDE, valid, old);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            v[k][e] = (int64_t)sum[k][e].s;
            if (!p.plain) {
                v[k][e] = (int64_t)((uint64_t)p.iscale * sum[k][e].s + (uint64_t)p.ibeta * (uint64_t)old[k][e]);
            }
        }
    }
    store_items(p.out_dtype, out, at, SIDE, valid, v);
}

/* The same of one sum, for every type of out. */
static __device__ __forceinline__ double old_value(const dmi_cuda_store &p, const void *out, int64_t at)
{
    double v;
    int64_t whole;
    switch (p.out_dtype) {
    case DM_U64:
        return (double)((const uint64_t *)out)[at];
    case DM_F64:
    case DM_F32:
    case DM_F16:
    case DM_BF16:
    case DM_F8E4M3:
    case DM_F8E5M2:
        load_one(p.out_dtype, out, at, &v);
        return v;
    default:
        load_one(p.out_dtype, out, at, &whole);
        return (double)whole;
    }
}
static __device__ __forceinline__ void store_whole(const dmi_cuda_store &p, uint64_t sum, void *out, int64_t at)
{
    int64_t old = 0;
    if (p.plain && p.acc == DMI_ACC_U64) {
        store_one(p.out_dtype, out, at, sum);
        return;
    }
    if (!p.plain) {
        if (p.beta != 0) {
            load_one(p.out_dtype, out, at, &old);
        }
        sum = (uint64_t)p.iscale * sum + (uint64_t)p.ibeta * (uint64_t)old;
    }
    store_one(p.out_dtype, out, at, (int64_t)sum);
}
template <typename S>
static __device__ __forceinline__ void store_every(const dmi_cuda_store &p, S sum, void *out, int64_t at)
{
    if constexpr (std::is_same<S, sum_i64>::value) {
        if (p.integers) {
            store_whole(p, sum.s, out, at);
            return;
        }
    }
    double v = p.zero ? scaled(0, p) : scaled_value(sum, p);
    if (!p.plain) {
        v = __dadd_rn(v, p.beta == 0 ? 0 : __dmul_rn(p.beta, old_value(p, out, at)));
    }
    store_one(p.out_dtype, out, at, v);
}
template <typename S>
static __global__ void __launch_bounds__(THREADS)
    acc_store_every(const __grid_constant__ dmi_cuda_store p, const S *__restrict__ acc, void *out)
{
    int64_t at[1][2];
    bool valid[1];
    S sum;
    locate_all<2, 1>(p.box, at, valid);
    clear(&sum);
    if (valid[0]) {
        if (!p.zero) {
            sum = acc[at[0][0]];
        }
        store_every(p, sum, out, at[0][1]);
    }
}

template <typename S, bool INTEGERS>
static __global__ void __launch_bounds__(THREADS)
    acc_store(const __grid_constant__ dmi_cuda_store p, const S *__restrict__ acc, void *out)
{
    int64_t at[STORE_DEPTH][2];
    bool valid[STORE_DEPTH];
    S sum[STORE_DEPTH][1];
    locate_all<2, STORE_DEPTH>(p.box, at, valid);
#pragma unroll
    for (int k = 0; k < STORE_DEPTH; k++) {
        clear(&sum[k][0]);
        if (valid[k]) {
            sum[k][0] = acc[at[k][0]];
        }
    }
    if constexpr (INTEGERS) {
        store_integers<1>(p, at, valid, sum, out);
    } else {
        store_sums<1>(p, at, valid, sum, out);
    }
}

/* Addends of type T, N to an item. */
template <typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    fold(const __grid_constant__ dmi_cuda_fold_rows p, const T *__restrict__ rows, const T *own, void *out)
{
    typedef typename sum_of<T>::type S;
    const int ROWS = 0, OUT = 1, OWN = 2;
    int64_t at[STORE_DEPTH][3];
    bool valid[STORE_DEPTH];
    S sum[STORE_DEPTH][N];
    locate_all<3, STORE_DEPTH>(p.store.box, at, valid);
#pragma unroll
    for (int k = 0; k < STORE_DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            clear(&sum[k][e]);
        }
    }
    const T *next = rows;
    for (int i = 0; i < p.addends; i++) {
        bool here = i == p.own;
        const T *from = here ? own : next;
        next += here ? 0 : p.pitch;
        group<T, N> v[STORE_DEPTH];
#pragma unroll
        for (int k = 0; k < STORE_DEPTH; k++) {
            if (valid[k]) {
                v[k] = *(const group<T, N> *)(from + (here ? at[k][OWN] : at[k][ROWS]));
            }
        }
#pragma unroll
        for (int k = 0; k < STORE_DEPTH; k++) {
#pragma unroll
            for (int e = 0; valid[k] && e < N; e++) {
                add_element(&sum[k][e], v[k].v[e]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < STORE_DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            S one[1] = {sum[k][e]};
            close_sums(one, [&](auto take) {
                const T *row = rows;
                for (int i = 0; valid[k] && i < p.addends; i++) {
                    const T v = i == p.own ? own[at[k][OWN] + e] : row[at[k][ROWS] + e];
                    take(opened<typename summand<T>::type, T>(v));
                    row += i == p.own ? 0 : p.pitch;
                }
            });
            sum[k][e] = one[0];
        }
    }
    if constexpr (std::is_same<S, sum_i64>::value) {
        if (p.store.integers) {
            store_integers<OUT>(p.store, at, valid, sum, out);
            return;
        }
    }
    store_sums<OUT>(p.store, at, valid, sum, out);
}

/* Addends and results of every type. T: every_float, every_whole or double. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    fold_every(const __grid_constant__ dmi_cuda_fold_rows p, const void *__restrict__ rows, const void *own,
               void *out)
{
    typedef typename sum_of<T>::type S;
    int64_t at[1][3], row = 0;
    bool valid[1];
    S sum[1];
    locate_all<3, 1>(p.store.box, at, valid);
    if (!valid[0]) {
        return;
    }
    clear(&sum[0]);
    auto each = [&](auto take) {
        row = 0;
        for (int i = 0; i < p.addends; i++) {
            bool here = i == p.own;
            const T v = fetched<T, 1>::from(p.dtype, here ? own : rows, here ? at[0][2] : row + at[0][0]).v[0];
            take(opened<typename summand<T>::type, T>(v));
            row += here ? 0 : p.pitch;
        }
    };
    each([&](auto v) { add(&sum[0], v); });
    close_sums(sum, each);
    store_every(p.store, sum[0], out, at[0][1]);
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
    if (acc_kind == DMI_ACC_C64) {
        add_box<sum_complex<sum_f64>>(q, box, part, acc);
    } else if (acc_kind == DMI_ACC_C128) {
        add_box<sum_complex<sum_dd>>(q, box, part, acc);
    } else if (acc_kind == DMI_ACC_DD) {
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
    if (acc_kind == DMI_ACC_C64) {
        add_runs<sum_complex<sum_f64>>(q, runs, part, acc);
    } else if (acc_kind == DMI_ACC_C128) {
        add_runs<sum_complex<sum_dd>>(q, runs, part, acc);
    } else if (acc_kind == DMI_ACC_DD) {
        add_runs<sum_dd>(q, runs, part, acc);
    } else if (acc_kind == DMI_ACC_F64) {
        add_runs<sum_f64>(q, runs, part, acc);
    } else {
        add_runs<sum_i64>(q, runs, part, acc);
    }
    dmi_cuda_launched(q, "addition of sums in runs");
}

template <typename S> static void store_all(dmi_queue *q, const dmi_cuda_store *p, const void *acc, void *out)
{
    dmi_cuda_store here = *p;
    unsigned blocks = blocks_for(&here.box, 1);
    acc_store_every<S><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const S *)acc, out);
}

void dmi_cuda_launch_acc_store(dmi_queue *q, const dmi_cuda_store *p, const void *acc, void *out)
{
    dmi_cuda_store here = *p;
    unsigned blocks = blocks_for(&here.box, STORE_DEPTH);
    if (!dmi_cuda_hot(p->out_dtype) || p->acc == DMI_ACC_U64 || p->zero) {
        if (p->acc == DMI_ACC_DD) {
            store_all<sum_dd>(q, p, acc, out);
        } else if (p->acc == DMI_ACC_F64) {
            store_all<sum_f64>(q, p, acc, out);
        } else {
            store_all<sum_i64>(q, p, acc, out);
        }
    } else if (p->integers) {
        acc_store<sum_i64, true><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_i64 *)acc, out);
    } else if (p->acc == DMI_ACC_DD) {
        acc_store<sum_dd, false><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_dd *)acc, out);
    } else if (p->acc == DMI_ACC_F64) {
        acc_store<sum_f64, false><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_f64 *)acc, out);
    } else {
        acc_store<sum_i64, false><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const sum_i64 *)acc, out);
    }
    dmi_cuda_launched(q, "storing of sums");
}

template <typename T, int N>
static void launch_fold(dmi_queue *q, const dmi_cuda_fold_rows *p, const void *rows, const void *own, void *out)
{
    dmi_cuda_fold_rows here = *p;
    unsigned blocks = blocks_for(&here.store.box, STORE_DEPTH);
    fold<T, N><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const T *)rows, (const T *)own, out);
}

template <typename T>
static void launch_fold_every(dmi_queue *q, const dmi_cuda_fold_rows *p, const void *rows, const void *own,
                              void *out)
{
    dmi_cuda_fold_rows here = *p;
    unsigned blocks = blocks_for(&here.store.box, 1);
    fold_every<T><<<blocks, THREADS, 0, stream_of(q)>>>(here, rows, own, out);
}

void dmi_cuda_launch_fold(dmi_queue *q, const dmi_cuda_fold_rows *p, bool groups, const void *rows,
                          const void *own, void *out)
{
#define CALL(type)                                                                                             \
    do {                                                                                                       \
        if (groups) {                                                                                          \
            launch_fold<type, DMI_CUDA_FOLD_GROUP(sizeof(type))>(q, p, rows, own, out);                        \
        } else {                                                                                               \
            launch_fold<type, 1>(q, p, rows, own, out);                                                        \
        }                                                                                                      \
    } while (0)
    if (dmi_cuda_hot(p->dtype) && dmi_cuda_hot(p->store.out_dtype)) {
        DMI_CUDA_BY_TYPE(p->dtype, CALL)
    } else if (p->dtype == DM_F64) {
        launch_fold_every<double>(q, p, rows, own, out);
    } else if (dmi_dtype_is_float(p->dtype)) {
        launch_fold_every<every_float>(q, p, rows, own, out);
    } else {
        launch_fold_every<every_whole>(q, p, rows, own, out);
    }
#undef CALL
    dmi_cuda_launched(q, "sum of addends");
}
