/* Pushes: bytes into a peer's memory and a counter behind them, in one kernel. */
#include "kernels/cuda/common.cuh"

/* A few thread blocks, for they take multiprocessors from products, and 16 write as fast as small payloads
 * need. */
enum { THREADS = DMI_CUDA_THREADS, DEPTH = 4, BLOCK_BYTES = 8192, MOST_BLOCKS = 16 };

static __device__ __forceinline__ void store_release_system(uint32_t *p, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

/* Order: the stores of a thread block come before its barrier, the barrier before thread 0's fence, the fence
 * before its ticket; the thread block that draws the last ticket has so seen all others, and its fence and
 * release put all their stores, at any GPU, before the counter. The next kernel of the stream finds the ticket
 * at 0. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    push(const __grid_constant__ dmi_cuda_box box, const T *src, T *dst, uint32_t *ticket, uint32_t *counter,
         const uint32_t *value)
{
    const uint32_t all = gridDim.x * THREADS;
    for (uint32_t first = blockIdx.x * THREADS + threadIdx.x; first < box.items; first += all * DEPTH) {
        int64_t at[DEPTH][2];
        T v[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * all < box.items) {
                locate<2>(box, first + k * all, at[k]);
                v[k] = src[at[k][0]];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * all < box.items) {
                dst[at[k][1]] = v[k];
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        if (gridDim.x == 1 || atomicAdd(ticket, 1) == gridDim.x - 1) {
            *ticket = 0;
            __threadfence_system();
            store_release_system(counter, *value);
        }
    }
}

template <typename T> static void push_box(dmi_queue *q, const dmi_cuda_box *box, const dmi_push *p)
{
    int64_t blocks = ((int64_t)box->items * (int64_t)sizeof(T) + BLOCK_BYTES - 1) / BLOCK_BYTES;
    blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    push<T><<<(unsigned)blocks, THREADS, 0, stream_of(q)>>>(*box, (const T *)p->src, (T *)p->dst, q->ticket,
                                                            p->counter, p->value);
}

void dmi_cuda_launch_push(dmi_queue *q, int unit, const dmi_cuda_box *box, const dmi_push *p)
{
#define CALL(T) push_box<T>(q, box, p)
    DMI_CUDA_BY_UNIT(q, "push", unit, CALL)
#undef CALL
    dmi_cuda_launched(q, "push");
}
