/* Exchanges: payloads into places of peers and out of places of this GPU, in one kernel. */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/exchange.h"

/* Few thread blocks, for a block waits for all pushes of its peers, and these for all blocks here: all must run
 * at once. */
enum { THREADS = DMI_CUDA_THREADS, DEPTH = 4, BLOCK_BYTES = 8192, MOST_BLOCKS = 32, RUNS_AHEAD = 2 };
enum { PUSHED = 1, DONE = 2 }; /* words of the queue's ticket; the first is that of other kernels */
enum { LOOK_EVERY = 1024, TELL_AFTER = 16 }; /* polls between two looks at the host's word; such looks */

static __device__ __forceinline__ uint32_t load_acquire_system(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ void store_release_system(uint32_t *p, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

static __device__ void await(const dmi_exchange_call &x, const uint32_t *word, uint32_t value, int peer)
{
    bool told = false;
    for (uint32_t polls = 1; (int32_t)(load_acquire_system(word) - value) < 0; polls++) {
        if (polls % LOOK_EVERY == 0) {
            if (*(const volatile uint32_t *)x.give_up) {
                break;
            }
            if (polls / LOOK_EVERY == TELL_AFTER && blockIdx.x == 0) {
                *(volatile uint32_t *)x.awaits = (uint32_t)peer + 1;
                told = true;
            }
        }
    }
    if (told) {
        *(volatile uint32_t *)x.awaits = 0;
    }
}

/* Rows here and rows one behind the other, in units of T. Places are read past the first-level cache, which
 * does not see what peers write. */
template <typename T>
static __device__ void move(const dmi_exchange_rows &r, char *place, bool push, uint32_t first, uint32_t all)
{
    const uint32_t row = (uint32_t)(r.width / (int64_t)sizeof(T)), items = row * (uint32_t)r.height;
    for (uint32_t i = first; i < items; i += all * DEPTH) {
        T v[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const uint32_t at = i + k * all;
            if (at < items) {
                const T *here = (const T *)(r.here + (r.height == 1 ? 0 : at / row * r.pitch)) +
                                (r.height == 1 ? at : at % row);
                v[k] = push ? *here : __ldcg((const T *)place + at);
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const uint32_t at = i + k * all;
            if (at < items) {
                T *here =
                    (T *)(r.here + (r.height == 1 ? 0 : at / row * r.pitch)) + (r.height == 1 ? at : at % row);
                *(push ? (T *)place + at : here) = v[k];
            }
        }
    }
}

static __device__ void move_rows(const dmi_exchange_rows &r, uint32_t run, bool push)
{
    const uint32_t first = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS;
    char *place = r.place + (run & 1) * r.half;
    const uint64_t bits = (uint64_t)r.here | (uint64_t)r.width | (r.height > 1 ? (uint64_t)r.pitch : 0);
    if (!r.here) {
        return;
    }
    if (bits % sizeof(uint4) == 0) {
        move<uint4>(r, place, push, first, all);
    } else if (bits % sizeof(uint32_t) == 0) {
        move<uint32_t>(r, place, push, first, all);
    } else {
        move<uint8_t>(r, place, push, first, all);
    }
}

/* Is this the last thread block to come here? Then all stores of all blocks are seen by who acquires what it
 * then releases. For thread 0, behind a barrier. */
static __device__ bool last_of_all(uint32_t *ticket)
{
    __threadfence_system();
    bool last = gridDim.x == 1 || atomicAdd(ticket, 1) == gridDim.x - 1;
    if (last) {
        *ticket = 0;
        __threadfence_system();
    }
    return last;
}

/* Order, as in push.cu: stores of a block, its barrier, thread 0's fence, its ticket; who draws the last one
 * releases the flags. The other way: the thread that has seen a flag acquires; the barrier hands that on to its
 * block. */
static __global__ void __launch_bounds__(THREADS)
    exchange(const __grid_constant__ dmi_exchange_call x, uint32_t *ticket)
{
    const int i = (int)threadIdx.x, all = x.pushes + x.arrivals;
    after_previous();
    const uint32_t run = *(const volatile uint32_t *)x.run;
    if (i < x.pushes && x.rows[i].gate) {
        await(x, x.rows[i].gate, run - RUNS_AHEAD, x.rows[i].peer);
    }
    __syncthreads();
    for (int k = 0; k < x.pushes; k++) {
        move_rows(x.rows[k], run, true);
    }
    __syncthreads();
    if (i == 0 && x.pushes > 0 && last_of_all(ticket + PUSHED)) {
        for (int k = 0; k < x.pushes; k++) {
            store_release_system(x.rows[k].flag, run);
        }
    }
    if (i >= x.pushes && i < all) {
        await(x, x.rows[i].flag, run, x.rows[i].peer);
    }
    __syncthreads();
    for (int k = x.pushes; k < all; k++) {
        move_rows(x.rows[k], run, false);
    }
    if (x.last) {
        __syncthreads();
        if (i == 0 && last_of_all(ticket + DONE)) {
            *x.run = run + 1;
            for (int k = 0; k < x.ends; k++) {
                store_release_system(x.ended[k], run);
            }
        }
    }
}

void dmi_cuda_launch_exchange(dmi_queue *q, const dmi_exchange_call *call)
{
    int64_t most = 0;
    for (int i = 0; i < call->pushes + call->arrivals; i++) {
        const int64_t bytes = call->rows[i].width * call->rows[i].height;
        most = bytes > most ? bytes : most;
    }
    int64_t blocks = (most + BLOCK_BYTES - 1) / BLOCK_BYTES;
    blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    launch_after(q, exchange, dim3((unsigned)blocks), *call, q->ticket);
    dmi_cuda_launched(q, "exchange");
}
