/* The thread block that comes last. Compiled at run time too, so that it includes nothing. */
#ifndef DMI_LAST_BLOCK_CUH
#define DMI_LAST_BLOCK_CUH

/* Is this thread block the last one of the grid to come here? Then it sees what all have written before. ticket: 0 between
 * kernels. Order: the stores of a thread block come before its barrier, the barrier before thread 0's fence, the fence before its
 * ticket; who draws the last ticket has so seen all others, and the second barrier hands that on to its other threads. */
static __device__ __forceinline__ bool last_block(uint32_t *ticket)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        if (last) {
            *ticket = 0;
            __threadfence();
        }
    }
    __syncthreads();
    return last;
}

#endif
