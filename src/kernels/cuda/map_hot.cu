/* One hot row on operands of any types. */
#include "kernels/cuda/map.cuh"

enum { THREADS = DMI_CUDA_THREADS };

template <typename C> static void launch(dmi_queue *q, const dmi_cuda_map *p, bool groups, void *const *at)
{
    dmi_cuda_map here = *p;
    unsigned blocks = blocks_for(&here.box, groups ? 2 : 4);
    if (groups) {
        map_any<true, C, 4, 2><<<blocks, THREADS, 0, stream_of(q)>>>(here, at[0], at[1], at[2], at[3]);
    } else {
        map_any<true, C, 1, 4><<<blocks, THREADS, 0, stream_of(q)>>>(here, at[0], at[1], at[2], at[3]);
    }
}

void dmi_cuda_launch_map_hot(dmi_queue *q, const dmi_cuda_map *p, bool groups, void *const *at)
{
    switch ((int)p->compute) {
    case DM_F64:
        launch<double>(q, p, groups, at);
        break;
    case DM_F32:
        launch<float>(q, p, groups, at);
        break;
    case DM_I32:
        launch<int32_t>(q, p, groups, at);
        break;
    case DM_I64:
        launch<int64_t>(q, p, groups, at);
        break;
    default:
        dmi_cuda_failed(q, "elementwise kernel", -1, "no kernel for this type");
        return;
    }
    dmi_cuda_launched(q, "elementwise kernel");
}
