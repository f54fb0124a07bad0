/* What kernels of convolutions on Hopper GPUs share beyond the fused product's instructions. */
#ifndef DMI_DNN_HOPPER_CUH
#define DMI_DNN_HOPPER_CUH

#include "kernels/gemm/fused_ptx.cuh"

/* Pixels from place (n, h, w) of y on, in row-major order, of 64 channels from c on, `right` and `down` of them in x. */
static __device__ __forceinline__ void load_window(const CUtensorMap *map, int32_t c, int32_t w, int32_t h, int32_t n,
                                                   uint16_t right, uint16_t down, uint32_t to, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
                 "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(barrier), "h"(right), "h"(down)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

#define SUMS_4(d, i) "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define SUMS_8(d, i) SUMS_4(d, i), SUMS_4(d, i + 4)
#define SUMS_24(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16)

#endif
