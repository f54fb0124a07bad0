/* Sorting the elements of a long row on GPUs: floats. */
#include "kernels/order/sort_keys.cuh"

#include <cuda_fp16.h>

void dmi_cuda_launch_sort_floats(dmi_queue *q, const dmi_cuda_sort *p, const void *x, void *values, bool direct)
{
    switch (p->bytes) {
    case 2: /* the bits of both types are in the same order */
        sort_as<__half, uint16_t>(q, p, x, values, direct);
        break;
    case 4:
        sort_as<float, uint32_t>(q, p, x, values, direct);
        break;
    case 8:
        sort_as<double, unsigned long long>(q, p, x, values, direct);
        break;
    default:
        dmi_cuda_failed(q, "sort", -1, "no kernel for elements of this size");
    }
}
