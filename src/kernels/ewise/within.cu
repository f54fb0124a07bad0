/* Do all elements lie in a range? */
#include "kernels/cuda/dtypes.cuh"

enum { DEPTH = 4 };

static __device__ __forceinline__ bool inside(double v, double low, double high)
{
    return v >= low && v <= high;
}

/* Integers of 64 bits are compared as doubles, as on the CPU. */
static __device__ bool element_inside(dm_dtype dtype, const void *p, int64_t at, double low, double high)
{
    switch (dtype) {
    case DM_C64:
    case DM_C128: {
        dm_c128 z;
        load_one(dtype, p, at, &z);
        return inside(z.re, low, high) && inside(z.im, low, high);
    }
    case DM_U64: {
        uint64_t v;
        load_one(dtype, p, at, &v);
        return inside((double)v, low, high);
    }
    case DM_F64:
    case DM_F32:
    case DM_F16:
    case DM_BF16:
    case DM_F8E4M3:
    case DM_F8E5M2: {
        double v;
        load_one(dtype, p, at, &v);
        return inside(v, low, high);
    }
    default: { /* integers and bool; load_one refuses others */
        int64_t v;
        load_one(dtype, p, at, &v);
        return inside((double)v, low, high);
    }
    }
}

static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    within(const __grid_constant__ dmi_cuda_box box, dm_dtype dtype, const void *x,
           const __grid_constant__ dmi_cuda_bounds bounds, uint32_t *status)
{
    int64_t at[DEPTH][1];
    bool valid[DEPTH], all = true;
    double low = bounds.at[0] ? *bounds.at[0] : bounds.value[0],
           high = bounds.at[1] ? *bounds.at[1] : bounds.value[1];
    locate_all<1, DEPTH>(box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        all = all && (!valid[k] || element_inside(dtype, x, at[k][0], low, high));
    }
    if (!all) {
        *(volatile uint32_t *)status = 1;
    }
}

void dmi_cuda_launch_within(dmi_queue *q, dm_dtype dtype, const dmi_cuda_box *box, const void *x,
                            const dmi_cuda_bounds *bounds, uint32_t *status)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, DEPTH);
    within<<<blocks, DMI_CUDA_THREADS, 0, stream_of(q)>>>(b, dtype, x, *bounds, status);
    dmi_cuda_launched(q, "within");
}
