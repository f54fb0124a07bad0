/* Elementwise programs with complex values. */
#include "kernels/ewise/map_program.cuh"

void dmi_cuda_launch_map_program_complex(dmi_queue *q, const dmi_cuda_program *p)
{
    launch_program<any_value>(q, p);
}
