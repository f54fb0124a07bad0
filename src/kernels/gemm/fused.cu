/* The fused product's kernel. A thread block has three warpgroups: one that loads, of which one warp works, and
 * two that multiply, each its 64 rows of the thread block's tile. Thread blocks stay, and take the tiles of c
 * in a fixed order: one tile column after another, as b arrives. */
#include "kernels/gemm/fused_load.cuh"
#include "kernels/gemm/fused_store.cuh"

/* --- multiplying -------------------------------------------------------------------------------------- */
/* All steps of one tile, into the warpgroup's 64 rows. */
template <bool f16, bool trans_a, bool trans_b>
static __device__ __forceinline__ void multiply_tile(const shared_places &s, int group, int steps, ring *r,
                                                     float (&d)[128])
{
    /* Bytes from 16 of the sum to the next 16: along a row, or 16 rows on. */
    const uint32_t a_next = trans_a ? 16 * FUSED_ROW : 32, b_next = trans_b ? 32 : 16 * FUSED_ROW;
    uint32_t lane = threadIdx.x & 31, last = 0;
    for (int step = 0; step < steps; step++) {
        barrier_wait(s.full + 8 * r->at, r->parity);
        uint32_t at = s.stage + r->at * STAGE_BYTES;
        uint64_t a = operand(at + (uint32_t)group * (A_BYTES / 2), BOX_BYTES);
        uint64_t b = operand(at + A_BYTES, BOX_BYTES);
        products_begin();
#pragma unroll
        for (int i = 0; i < FUSED_K / 16; i++) {
            product<f16, trans_a, !trans_b>(d, a + (uint64_t)i * (a_next >> 4), b + (uint64_t)i * (b_next >> 4),
                                            step > 0 || i > 0);
        }
        products_commit();
        if (step > 0) { /* the step before is read */
            products_wait<1>();
            if (lane < FUSED_PAIR) {
                barrier_arrive_at(s.empty + 8 * last, lane);
            }
        }
        last = r->at;
        advance(r);
    }
    products_wait<0>();
    if (lane < FUSED_PAIR) {
        barrier_arrive_at(s.empty + 8 * last, lane);
    }
#pragma unroll
    for (int i = 0; i < 128; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}

template <bool f16, bool trans_a, bool trans_b>
static __device__ __forceinline__ void multiply_all(const dmi_fused_job &job, const shared_places &s)
{
    int group = (int)(threadIdx.x / GROUP) - 1, warp = (int)(threadIdx.x / 32) - GROUP / 32;
    int steps = (job.k + FUSED_K - 1) / FUSED_K;
    uint32_t buffer = s.store + (uint32_t)warp * (STORE_BUFFERS * STORE_BYTES);
    ring r = {0, 0};
    float d[128];
    for (walk w = walk_start(); walk_next(job, &w);) {
        int32_t row0 = (w.row * FUSED_PAIR + (int32_t)pair_rank()) * FUSED_M + warp * FUSED_STORE_ROWS;
        multiply_tile<f16, trans_a, trans_b>(s, group, steps, &r, d);
        if (job.alpha != 1 || job.beta != 0) {
            scale<f16>(job, d, row0, w.n0);
        }
        if (job.c_f32) {
            store_rows<f16, true>(job, d, buffer, row0, w.n0);
        } else {
            store_rows<f16, false>(job, d, buffer, row0, w.n0);
        }
    }
    if ((threadIdx.x & 31) == 0) {
        stores_have_read<0>(); /* the end of the kernel waits for the rest */
    }
}

/* --- the kernel --------------------------------------------------------------------------------------- */
template <bool f16, bool trans_a, bool trans_b>
static __global__ void __cluster_dims__(FUSED_PAIR) __launch_bounds__(THREADS, 1)
    fused_product(const __grid_constant__ dmi_fused_job job)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char memory[];
    shared_places s = places_of(memory);
    if (threadIdx.x == 0) {
        map_prefetch(&job.a);
        map_prefetch(&job.b);
        map_prefetch(&job.c);
        if (job.own_k1 > 0) {
            map_prefetch(&job.own_b);
        }
        if (job.has_own_a) {
            map_prefetch(&job.own_a);
        }
        for (int i = 0; i < FUSED_STAGES; i++) {
            barrier_init(s.full + 8 * (uint32_t)i, 1);
            barrier_init(s.empty + 8 * (uint32_t)i, FUSED_PAIR * WARPS);
        }
        barriers_ready();
    }
    pair_sync();
    if (threadIdx.x < GROUP) {
        registers_fewer<LOADER_REGISTERS>();
        if (threadIdx.x < 32) {
            load_all<trans_a, trans_b>(job, s);
        }
    } else {
        registers_more<MULTIPLIER_REGISTERS>();
        multiply_all<f16, trans_a, trans_b>(job, s);
    }
    pair_sync(); /* while the other may still load into this one's memory, this one stays */
#else
    __trap();
#endif
}

/* --- launcher ----------------------------------------------------------------------------------------- */
bool dmi_cuda_fused_built(void)
{
#ifdef DMATH_CUDA_SM90A
    return true;
#else
    return false;
#endif
}

template <bool f16, bool trans_a, bool trans_b>
static void enqueue(dmi_queue *q, const dmi_fused_job *job, int blocks)
{
    cudaError_t e = cudaFuncSetAttribute(fused_product<f16, trans_a, trans_b>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaFuncSetAttribute", (int)e, cudaGetErrorString(e));
        return;
    }
    fused_product<f16, trans_a, trans_b><<<(unsigned)blocks, THREADS, SHARED_BYTES, stream_of(q)>>>(*job);
    dmi_cuda_launched(q, "fused product");
}

template <bool f16>
static void enqueue_form(dmi_queue *q, const dmi_fused_job *job, int trans_a, int trans_b, int blocks)
{
    if (trans_a && trans_b) {
        enqueue<f16, true, true>(q, job, blocks);
    } else if (trans_a) {
        enqueue<f16, true, false>(q, job, blocks);
    } else if (trans_b) {
        enqueue<f16, false, true>(q, job, blocks);
    } else {
        enqueue<f16, false, false>(q, job, blocks);
    }
}

void dmi_cuda_fused_enqueue(dmi_queue *q, const dmi_fused_job *job, dm_dtype dtype, int trans_a, int trans_b,
                            int blocks)
{
    if (dtype == DM_F16) {
        enqueue_form<true>(q, job, trans_a, trans_b, blocks);
    } else {
        enqueue_form<false>(q, job, trans_a, trans_b, blocks);
    }
}
