/* Elementwise programs without complex values. */
#include "kernels/ewise/map_program.cuh"

void dmi_cuda_launch_map_program(dmi_queue *q, const dmi_cuda_program *p)
{
    launch_program<real_value>(q, p);
}
