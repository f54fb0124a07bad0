/* Sorting on GPUs, where places have 64 bits. */
#include "kernels/order/sort_pairs.cuh"

void dmi_cuda_launch_sort_wide(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct,
                               int64_t *indices, const int64_t *carried)
{
    sort_with_places<unsigned long long>(q, p, x, values, direct, indices, carried);
}
