/* One hot row on operands of one type. */
#include "kernels/cuda/map.cuh"

enum { THREADS = DMI_CUDA_THREADS };

template <typename T, typename C, int N>
static void launch(dmi_queue *q, const dmi_cuda_map *p, void *const *at)
{
    dmi_cuda_map here = *p;
    unsigned blocks = blocks_for(&here.box, map_depth<T, N>::value);
    map_same<T, C, N><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const T *)at[0], (const T *)at[1],
                                                            (const T *)at[2], (T *)at[3]);
}

typedef void launch_fn(dmi_queue *q, const dmi_cuda_map *p, void *const *at);

static launch_fn *launcher(dm_dtype dtype, bool groups)
{
    switch ((int)dtype) {
    case DM_F64:
        return groups ? launch<double, double, 2> : launch<double, double, 1>;
    case DM_F32:
        return groups ? launch<float, float, 4> : launch<float, float, 1>;
    case DM_F16:
        return groups ? launch<f16, float, 8> : NULL;
    case DM_BF16:
        return groups ? launch<bf16, float, 8> : NULL;
    case DM_I64:
        return groups ? launch<int64_t, int64_t, 2> : NULL;
    case DM_I32:
        return groups ? launch<int32_t, int32_t, 4> : NULL;
    case DM_U8:
        return groups ? launch<uint8_t, int32_t, 16> : NULL;
    default:
        return NULL;
    }
}

bool dmi_cuda_map_same_has(dm_dtype dtype, bool groups)
{
    return launcher(dtype, groups) != NULL;
}

void dmi_cuda_launch_map_same(dmi_queue *q, const dmi_cuda_map *p, bool groups, void *const *at)
{
    launcher(p->dtype[3], groups)(q, p, at);
    dmi_cuda_launched(q, "elementwise kernel");
}
