/* Cheap elementwise rows, which share kernels. */
#include "kernels/ewise/map.cuh"

map_launcher *dmi_cuda_map_warm_same(int inputs, dm_dtype dtype, bool groups)
{
    return inputs == 0   ? same_launcher<-1, 0>(dtype, groups)
           : inputs == 1 ? same_launcher<-1, 1>(dtype, groups)
           : inputs == 2 ? same_launcher<-1, 2>(dtype, groups)
           : inputs == 3 ? same_launcher<-1, 3>(dtype, groups)
                         : NULL;
}

void dmi_cuda_map_warm_any(dmi_queue *q, dmi_cuda_map *p, bool groups)
{
    switch (p->inputs) {
    case 0:
        launch_any_in<-1, DMI_WARM, 0>(q, p, groups);
        break;
    case 1:
        launch_any_in<-1, DMI_WARM, 1>(q, p, groups);
        break;
    case 2:
        launch_any_in<-1, DMI_WARM, 2>(q, p, groups);
        break;
    case 3:
        launch_any_in<-1, DMI_WARM, 3>(q, p, groups);
        break;
    default:
        dmi_cuda_failed(q, "elementwise kernel", -1, "no kernel for so many inputs");
    }
}
