/* Sorting on GPUs, where places have 32 bits. */
#include "kernels/order/sort_pairs.cuh"

void dmi_cuda_launch_sort(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct, int64_t *indices,
                          const int64_t *carried)
{
    sort_with_places<uint32_t>(q, p, x, values, direct, indices, carried);
}
