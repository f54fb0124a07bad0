/* Cumulative sums on GPUs. */
#include "kernels/order/scan.cuh"
#include "kernels/reduce/sums.cuh"

/* Sums as rows of reduce.def are. */
template <typename S, typename N, typename RESULT> struct sums_of {
    typedef S state;
    typedef N number;
    typedef RESULT result;
    static const int kind = KIND_SUM;
    static __device__ __forceinline__ S start()
    {
        S a;
        clear(&a);
        return a;
    }
    static __device__ __forceinline__ void take(S &a, N x, int64_t)
    {
        take_one(&a, x);
    }
    static __device__ __forceinline__ void combine(S &a, const S &b)
    {
        a = joined(a, b);
    }
    static __device__ __forceinline__ RESULT finish(const S &a, double)
    {
        return result_one(a);
    }
    /* Of pairs, between which there is no look at the range. settled: as it is kept. */
    static __device__ __forceinline__ bool small(N x)
    {
        return fabs(x) < 0x1p960;
    }
    static __device__ __forceinline__ bool steady(const S &a)
    {
        return fabs(a.hi) < 0x1p1000 && !dmi_is_scaled(a.hi, a.lo);
    }
    static __device__ __forceinline__ void take_plain(S &a, N x)
    {
        add(&a, x);
    }
    static __device__ __forceinline__ S settled(const S &a)
    {
        return kept(a);
    }
    static __device__ __forceinline__ RESULT result_plain(const S &a)
    {
        return __dadd_rn(a.hi, a.lo);
    }

  private:
    static __device__ __forceinline__ void take_one(sum_f64 *a, double x)
    {
        a->s = __dadd_rn(a->s, x);
    }
    static __device__ __forceinline__ void take_one(sum_dd *a, double x)
    {
        *a = joined(*a, {x, 0});
    }
    static __device__ __forceinline__ void take_one(sum_i64 *a, int64_t x)
    {
        add(a, x);
    }
    static __device__ __forceinline__ double result_one(const sum_f64 &a)
    {
        return a.s;
    }
    static __device__ __forceinline__ double result_one(const sum_dd &a)
    {
        if (!finite_value(a.hi)) {
            return a.hi;
        }
        return dmi_is_scaled(a.hi, a.lo) ? __dmul_rn(a.lo, DMI_SCALE_UP) : __dadd_rn(a.hi, a.lo);
    }
    static __device__ __forceinline__ RESULT result_one(const sum_i64 &a)
    {
        return (RESULT)a.s;
    }
};

void dmi_cuda_launch_scan_sum(dmi_queue *q, const dmi_cuda_scan *p, const void *in, const void *starts,
                              void *out)
{
    if (p->acc == DMI_ACC_DD) {
        launch_scan<sums_of<sum_dd, double, double>>(q, p, in, starts, out);
    } else if (p->acc == DMI_ACC_F64) {
        launch_scan<sums_of<sum_f64, double, double>>(q, p, in, starts, out);
    } else if (p->acc == DMI_ACC_U64) {
        launch_scan<sums_of<sum_i64, int64_t, uint64_t>>(q, p, in, starts, out);
    } else {
        launch_scan<sums_of<sum_i64, int64_t, int64_t>>(q, p, in, starts, out);
    }
    dmi_cuda_launched(q, "scan");
}
