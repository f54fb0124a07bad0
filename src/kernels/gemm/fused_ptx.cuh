/* Hopper's own instructions as the fused product uses them: barriers in shared memory, copies of boxes,
 * products of a warpgroup. Addresses of shared memory are 32-bit. */
#ifndef DMI_CUDA_FUSED_PTX_CUH
#define DMI_CUDA_FUSED_PTX_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* --- the pair of thread blocks ----------------------------------------------------------------------------- */
static __device__ __forceinline__ uint32_t pair_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void pair_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* --- barriers ----------------------------------------------------------------------------------------- */
static __device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barriers_ready(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* The barrier's phase also waits for so many bytes. */
static __device__ __forceinline__ void barrier_arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* At the barrier of the pair's thread block `rank`, at the same address as this one. What the barriers of a
 * stage order are products and copies, whose ends are waited for. So the scope is the thread block's, the
 * default: a wider one would have every arrival wait for all of the thread's memory, and every wait empty a
 * cache. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, uint32_t rank)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Until the phase of this parity has ended. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* --- memory ------------------------------------------------------------------------------------------- */
static __device__ __forceinline__ uint32_t load_acquire_system(const uint32_t *p)
{
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

/* Loads of the kernel's parameters, by addresses that differ from warp lane to warp lane. */
static __device__ __forceinline__ uint64_t load_parameter_64(const void *p)
{
    uint64_t v;
    asm("ld.u64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}

static __device__ __forceinline__ uint32_t load_parameter_32(const void *p)
{
    uint32_t v;
    asm("ld.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

/* What this thread has seen written, the copies of boxes it starts from now on see too. */
static __device__ __forceinline__ void fence_async(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

static __device__ __forceinline__ void fence_async_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void map_prefetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* --- copies of boxes ------------------------------------------------------------------------------- */
static __device__ __forceinline__ void load_box(const CUtensorMap *map, int32_t x, int32_t y, uint32_t to,
                                                uint32_t barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

/* Into both thread blocks of the pair, at the same address, with an arrival at the barrier of each. */
static __device__ __forceinline__ void load_box_both(const CUtensorMap *map, int32_t x, int32_t y, uint32_t to,
                                                     uint32_t barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((uint16_t)3)
        : "memory");
}

static __device__ __forceinline__ void store_box(const CUtensorMap *map, int32_t x, int32_t y, uint32_t from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(x), "r"(y), "r"(from)
                 : "memory");
}

/* This thread's stores since the last call are a group. */
static __device__ __forceinline__ void stores_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Until of this thread's groups of stores all but the last `left` have read their memory. */
template <int left> static __device__ __forceinline__ void stores_have_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

/* Four matrices of 8 x 8 16-bit items, which the warp holds as products leave them; warp lane 8 i + r: the
 * address of row r of matrix i. */
static __device__ __forceinline__ void store_matrices(uint32_t to, const uint32_t (&v)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]),
                 "r"(v[1]), "r"(v[2]), "r"(v[3])
                 : "memory");
}

static __device__ __forceinline__ void store_two(uint32_t to, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

static __device__ __forceinline__ uint32_t load_shared_32(uint32_t from)
{
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
    return v;
}

static __device__ __forceinline__ uint16_t load_shared_16(uint32_t from)
{
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(from) : "memory");
    return v;
}

/* --- products ----------------------------------------------------------------------------------------- */
/* Registers a thread of this warpgroup may use from now on. */
template <int count> static __device__ __forceinline__ void registers_fewer(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> static __device__ __forceinline__ void registers_more(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* How a product finds its operand: the address of its first row, rows of 128 bytes in groups of 8 that lie 1024
 * bytes apart, swizzled over 128 bytes; `next`: bytes to the next 64 columns, where a row is 64 elements of m
 * or n. */
static __device__ __forceinline__ uint64_t operand(uint32_t address, uint32_t next)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(next >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

static __device__ __forceinline__ void products_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void products_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int left> static __device__ __forceinline__ void products_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

#define FUSED_4(d, i) "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define FUSED_16(d, i) FUSED_4(d, i), FUSED_4(d, i + 4), FUSED_4(d, i + 8), FUSED_4(d, i + 12)
#define FUSED_64(d, i) FUSED_16(d, i), FUSED_16(d, i + 16), FUSED_16(d, i + 32), FUSED_16(d, i + 48)
#define FUSED_PRODUCT(type)                                                                                    \
    asm volatile(                                                                                              \
        "{\n"                                                                                                  \
        ".reg .pred add;\n"                                                                                    \
        "setp.ne.b32 add, %130, 0;\n"                                                                          \
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " "                                       \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                              \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                     \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                     \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                     \
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                     \
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                     \
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "         \
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127},"     \
        " %128, %129, add, 1, 1, %131, %132;\n"                                                                \
        "}"                                                                                                    \
        : FUSED_64(d, 0), FUSED_64(d, 64)                                                                      \
        : "l"(a), "l"(b), "r"(add), "n"(a_by_m), "n"(b_by_n))

/* d (64 x 256 of f32) = a (64 x 16) b (16 x 256) + (add ? d : 0); a_by_m, b_by_n: rows in shared memory run
 * along m and n, else along the sum. */
template <bool f16, int a_by_m, int b_by_n>
static __device__ __forceinline__ void product(float (&d)[128], uint64_t a, uint64_t b, uint32_t add)
{
    if (f16) {
        FUSED_PRODUCT("f16");
    } else {
        FUSED_PRODUCT("bf16");
    }
}

#undef FUSED_PRODUCT
#undef FUSED_64
#undef FUSED_16
#undef FUSED_4

#endif
