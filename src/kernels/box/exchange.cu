/* Exchanges: payloads into places of peers and out of places of this GPU, in one kernel. */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/exchange.h"

/* A warp moves a chunk at a time, of whichever payload, so that all of a step are under way at once: a lane
 * loads `DEPTH` times 16 bytes before it stores them. Few bytes are dealt out to many warps; of many a warp has
 * more under way. Not more thread blocks than a device has multiprocessors, for a block waits for all pushes of
 * its peers, and these for all blocks here: all must run at once. */
enum { THREADS = DMI_CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP };
enum { FEW = 4, MANY = 8 }; /* depths */
enum { MOST_BLOCKS = 128 };
static const int64_t MANY_BYTES = 4 << 20;

template <int DEPTH> static __host__ __device__ constexpr uint32_t chunk_bytes()
{
    return DEPTH * WARP * sizeof(uint4);
}
enum { PUSHED = 1, DONE = 2 }; /* words of the queue's ticket; the first is that of other kernels */
enum { LOOK_EVERY = 1024, TELL_AFTER = 16 }; /* polls between two looks at the host's word; such looks */

static __device__ __forceinline__ uint32_t load_acquire_system(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* Behind a fence for the system: what was stored before that is seen by who acquires the value. */
static __device__ __forceinline__ void store_relaxed_system(uint32_t *p, uint32_t value)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
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

/* Rows here and rows one behind the other, in units of T: those of chunk `chunk`, by a warp. Places are read
 * past the first-level cache, which does not see what peers write. */
template <typename T, int DEPTH>
static __device__ void move(const dmi_exchange_rows &r, bool push, uint32_t chunk)
{
    const uint32_t row = (uint32_t)(r.width / (int64_t)sizeof(T)), items = row * (uint32_t)r.height;
    const uint32_t each = chunk_bytes<DEPTH>() / sizeof(T), begin = chunk * each,
                   end = min(begin + each, items);
    for (uint32_t i = begin + threadIdx.x % WARP; i < end; i += WARP * DEPTH) {
        T v[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const uint32_t at = i + k * WARP;
            if (at < end) {
                const T *here = (const T *)(r.here + (r.height == 1 ? 0 : at / row * r.pitch)) +
                                (r.height == 1 ? at : at % row);
                v[k] = push ? *here : __ldcg((const T *)r.place + at);
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const uint32_t at = i + k * WARP;
            if (at < end) {
                T *here =
                    (T *)(r.here + (r.height == 1 ? 0 : at / row * r.pitch)) + (r.height == 1 ? at : at % row);
                *(push ? (T *)r.place + at : here) = v[k];
            }
        }
    }
}

template <int DEPTH> static __device__ void move_chunk(const dmi_exchange_rows &r, bool push, uint32_t chunk)
{
    const uint64_t bits = (uint64_t)r.here | (uint64_t)r.width | (r.height > 1 ? (uint64_t)r.pitch : 0);
    if (bits % sizeof(uint4) == 0) {
        move<uint4, DEPTH>(r, push, chunk);
    } else if (bits % sizeof(uint32_t) == 0) {
        move<uint32_t, DEPTH>(r, push, chunk);
    } else {
        move<uint8_t, DEPTH>(r, push, chunk);
    }
}

static __host__ __device__ int64_t bytes_of(const dmi_exchange_rows &r)
{
    return r.width * r.height;
}

/* The chunks of `count` payloads one behind the other, dealt out to the warps of all thread blocks. */
template <int DEPTH> static __device__ void move_rows(const dmi_exchange_rows *rows, int count, bool push)
{
    uint32_t chunk = blockIdx.x * WARPS + threadIdx.x / WARP;
    for (int k = 0; k < count; k++) {
        const uint32_t chunks =
            (uint32_t)((bytes_of(rows[k]) + chunk_bytes<DEPTH>() - 1) / chunk_bytes<DEPTH>());
        for (; chunk < chunks; chunk += gridDim.x * WARPS) {
            if (rows[k].here) {
                move_chunk<DEPTH>(rows[k], push, chunk);
            }
        }
        chunk -= chunks;
    }
}

/* Is this the last thread block to come here? Then all stores of all blocks are seen by who acquires what it
 * stores next. For thread 0, behind a barrier. */
static __device__ bool last_of_all(uint32_t *ticket)
{
    __threadfence_system();
    if (gridDim.x > 1) {
        if (atomicAdd(ticket, 1) != gridDim.x - 1) {
            return false;
        }
        *ticket = 0;
        __threadfence_system();
    }
    return true;
}

/* Order, as in push.cu: stores of a block, its barrier, thread 0's fence, its ticket; who draws the last one
 * releases the flags. The other way: the thread that has seen a flag acquires; the barrier hands that on to its
 * block. */
template <int DEPTH>
static __global__ void __launch_bounds__(THREADS)
    exchange(const __grid_constant__ dmi_exchange_call x, uint32_t *ticket)
{
    const int i = (int)threadIdx.x, all = x.pushes + x.arrivals;
    after_previous();
    const uint32_t run = *(const volatile uint32_t *)x.run;
    if (i < x.pushes && x.rows[i].gate) {
        await(x, x.rows[i].gate, run - 1, x.rows[i].peer);
    }
    __syncthreads();
    move_rows<DEPTH>(x.rows, x.pushes, true);
    __syncthreads();
    if (i == 0 && x.pushes > 0 && last_of_all(ticket + PUSHED)) {
        for (int k = 0; k < x.pushes; k++) {
            store_relaxed_system(x.rows[k].flag, run);
        }
    }
    if (i >= x.pushes && i < all) {
        await(x, x.rows[i].flag, run, x.rows[i].peer);
    }
    __syncthreads();
    move_rows<DEPTH>(x.rows + x.pushes, x.arrivals, false);
    if (x.last) {
        __syncthreads();
        if (i == 0 && last_of_all(ticket + DONE)) {
            *x.run = run + 1;
            for (int k = 0; k < x.ends; k++) {
                store_relaxed_system(x.ended[k], run);
            }
        }
    }
}

template <int DEPTH> static void launch(dmi_queue *q, const dmi_exchange_call *call, int64_t bytes)
{
    const int64_t each = (int64_t)WARPS * chunk_bytes<DEPTH>(), blocks = (bytes + each - 1) / each;
    const int64_t most = DMI_MIN(MOST_BLOCKS, q->multiprocessors);
    launch_after(q, exchange<DEPTH>, dim3((unsigned)DMI_MAX(1, DMI_MIN(blocks, most))), *call, q->ticket);
}

void dmi_cuda_launch_exchange(dmi_queue *q, const dmi_exchange_call *call)
{
    int64_t bytes[2] = {0, 0}; /* of pushes, of arrivals */
    for (int i = 0; i < call->pushes + call->arrivals; i++) {
        bytes[i >= call->pushes] += bytes_of(call->rows[i]);
    }
    const int64_t more = DMI_MAX(bytes[0], bytes[1]);
    if (more < MANY_BYTES) {
        launch<FEW>(q, call, more);
    } else {
        launch<MANY>(q, call, more);
    }
    dmi_cuda_launched(q, "exchange");
}
