/* Costly elementwise rows, which share kernels. */
#include "kernels/ewise/map.cuh"

void dmi_cuda_map_cold_any(dmi_queue *q, dmi_cuda_map *p, bool groups)
{
    switch (p->inputs) {
    case 1:
        launch_any_in<-1, DMI_COLD, 1>(q, p, groups);
        break;
    case 2:
        launch_any_in<-1, DMI_COLD, 2>(q, p, groups);
        break;
    case 3:
        launch_any_in<-1, DMI_COLD, 3>(q, p, groups);
        break;
    default:
        dmi_cuda_failed(q, "elementwise kernel", -1, "no kernel for so many inputs");
    }
}
