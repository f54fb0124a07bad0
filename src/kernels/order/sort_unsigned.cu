/* Sorting the elements of a long row on GPUs: integers without a sign. */
#include "kernels/order/sort_keys.cuh"

void dmi_cuda_launch_sort_unsigned(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values,
                                   bool direct)
{
    switch (p->bytes) {
    case 4:
        sort_as<uint32_t, uint32_t>(q, p, x, values, direct);
        break;
    case 8:
        sort_as<unsigned long long, unsigned long long>(q, p, x, values, direct);
        break;
    default:
        dmi_cuda_failed(q, "sort", -1, "no kernel for elements of this size");
    }
}
