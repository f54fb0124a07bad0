/* The fused product's loading warp: waits for the chunks of b, and keeps the stages full. */
#ifndef DMI_CUDA_FUSED_LOAD_CUH
#define DMI_CUDA_FUSED_LOAD_CUH

#include "kernels/gemm/fused_shape.cuh"

/* The chunks that one warp lane waits for, and which of them have arrived. */
enum { GROUPS = DMI_FUSED_CHUNKS / 32 };
typedef struct lane_chunks {
    const uint32_t *counter[GROUPS];
    uint32_t value[GROUPS];
    uint2 box[GROUPS]; /* dmi_fused_box */
    uint32_t here;
} lane_chunks;
static_assert(sizeof(dmi_fused_box) == 8 && offsetof(dmi_fused_job, wait) % 8 == 0, "a box is read at once");

/* Read once, and as memory: as parameters the warp lanes' different addresses would be read one after the
 * other. */
static __device__ __forceinline__ lane_chunks lane_chunks_of(const dmi_fused_job &job)
{
    lane_chunks p;
    p.here = 0;
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        int i = group * 32 + (int)(threadIdx.x & 31);
        p.counter[group] = (const uint32_t *)load_parameter_64(&job.counter[i]);
        p.value[group] = load_parameter_32(&job.value[i]);
        uint64_t box = load_parameter_64(&job.wait[i]);
        p.box[group] = make_uint2((uint32_t)box, (uint32_t)(box >> 32));
        p.here |= (uint32_t)(i >= job.waits) << group;
    }
    return p;
}

/* Until the chunks that the range's steps need for this column of tiles are here. The whole warp. */
static __device__ __forceinline__ void wait_for_chunks(lane_chunks *p, uint32_t step, uint32_t step_end,
                                                       uint32_t tile)
{
    uint32_t waited = 0;
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        uint2 box = p->box[group];
        bool meets =
            (box.x & 0xffff) < step_end && box.x >> 16 > step && (box.y & 0xffff) <= tile && tile < box.y >> 16;
        if (meets && !(p->here >> group & 1)) {
            while ((int32_t)(load_acquire_system(p->counter[group]) - p->value[group]) < 0) {
                __nanosleep(64);
            }
            p->here |= 1u << group;
            waited = 1;
        }
    }
    if (__any_sync(~0u, waited)) {
        __syncwarp();
        fence_async();
    }
}

typedef struct source {
    const CUtensorMap *map;
    int32_t n, k; /* of its first element in op(b), or k in op(a) */
} source;

/* One step's part of a, and this thread block's half of the step's part of b, which goes to both. By one
 * thread. */
template <bool trans_a, bool trans_b>
static __device__ __forceinline__ void load_stage(const source &a, const source &b, uint32_t to, uint32_t full,
                                                  int32_t m0, int32_t n0, int32_t k0)
{
    uint32_t half = pair_rank() * (B_BYTES / FUSED_PAIR), to_b = to + A_BYTES + half;
    int32_t n = n0 - b.n + (int32_t)pair_rank() * (FUSED_N / FUSED_PAIR), k = k0 - b.k, k_a = k0 - a.k;
    barrier_arrive_expecting(full, STAGE_BYTES);
    if (trans_a) {
        load_box(a.map, m0, k_a, to, full);
        load_box(a.map, m0 + FUSED_M / 2, k_a, to + BOX_BYTES, full);
    } else {
        load_box(a.map, k_a, m0, to, full);
    }
    if (trans_b) {
        load_box_both(b.map, k, n, to_b, full);
    } else {
        load_box_both(b.map, n, k, to_b, full);
        load_box_both(b.map, n + FUSED_N / 4, k, to_b + BOX_BYTES, full);
    }
}

template <bool trans_a, bool trans_b>
static __device__ __forceinline__ void load_all(const dmi_fused_job &job, const shared_places &s)
{
    bool one = (threadIdx.x & 31) == 0;
    ring r = {0, 1}; /* the first round waits for nobody */
    lane_chunks chunks = lane_chunks_of(job);
    for (walk w = walk_start(); walk_next(job, &w);) {
        int32_t n1 = min(w.n0 + FUSED_N, job.n);
        int32_t m0 = (w.row * FUSED_PAIR + (int32_t)pair_rank()) * FUSED_M;
        bool own_n = job.own_n0 <= w.n0 && n1 <= job.own_n1;
        for (int i = 0; i < job.ranges; i++) {
            int32_t k0 = job.range[i].first * FUSED_K, end = k0 + job.range[i].count * FUSED_K;
            int32_t k1 = min(end, job.k);
            source a = {&job.a, 0, 0}, b = {&job.b, 0, 0};
            bool own_k = job.own_k0 <= k0 && k1 <= job.own_k1;
            if (job.has_own_a && own_k) {
                a = source{&job.own_a, 0, job.own_k0};
            }
            if (own_n && own_k) {
                b = source{&job.own_b, job.own_n0, job.own_k0};
            } else {
                wait_for_chunks(&chunks, (uint32_t)k0 / FUSED_K, (uint32_t)end / FUSED_K,
                                (uint32_t)w.n0 / FUSED_N);
            }
            if (one) {
                for (int32_t k = k0; k < end; k += FUSED_K) {
                    barrier_wait(s.empty + 8 * r.at, r.parity);
                    load_stage<trans_a, trans_b>(a, b, s.stage + r.at * STAGE_BYTES, s.full + 8 * r.at, m0,
                                                 w.n0, k);
                    advance(&r);
                }
            }
            __syncwarp();
        }
    }
}

#endif
