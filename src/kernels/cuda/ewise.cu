/* Elementwise operations on operands of one type. */
#include "kernels/cuda/ewise.cuh"

enum { THREADS = DMI_CUDA_THREADS };

template <int OP, typename T, typename C, int N>
static void launch(dmi_queue *q, const dmi_cuda_ewise *p, const void *a, const void *b, void *out)
{
    dmi_cuda_ewise here = *p;
    unsigned blocks = blocks_for(&here.box, ewise_depth<T, N>::value);
    ewise_same<OP, T, C, N><<<blocks, THREADS, 0, stream_of(q)>>>(here, (const T *)a, (const T *)b, (T *)out);
}

typedef void launch_fn(dmi_queue *q, const dmi_cuda_ewise *p, const void *a, const void *b, void *out);

template <typename T, typename C, int N> static launch_fn *launcher(int op)
{
    switch (op) {
    case DMI_EW_ADD:
        return launch<DMI_EW_ADD, T, C, N>;
    case DMI_EW_MUL:
        return launch<DMI_EW_MUL, T, C, N>;
    case DMI_EW_SCALE:
        return launch<DMI_EW_SCALE, T, C, N>;
    case DMI_EW_RELU:
        return launch<DMI_EW_RELU, T, C, N>;
    case DMI_EW_EXP:
        return launch<DMI_EW_EXP, T, C, N>;
    default:
        return launch<DMI_EW_TANH, T, C, N>;
    }
}
/* Without the functions, which integers do not have. */
template <typename T, typename C, int N> static launch_fn *integer_launcher(int op)
{
    switch (op) {
    case DMI_EW_ADD:
        return launch<DMI_EW_ADD, T, C, N>;
    case DMI_EW_MUL:
        return launch<DMI_EW_MUL, T, C, N>;
    case DMI_EW_SCALE:
        return launch<DMI_EW_SCALE, T, C, N>;
    default:
        return launch<DMI_EW_RELU, T, C, N>;
    }
}

void dmi_cuda_launch_ewise_same(dmi_queue *q, const dmi_cuda_ewise *p, bool groups, const void *a,
                                const void *b, void *out)
{
    launch_fn *fn = NULL;
    switch (p->out_dtype) {
    case DM_F64:
        fn = groups ? launcher<double, double, 2>(p->op) : launcher<double, double, 1>(p->op);
        break;
    case DM_F32:
        fn = groups ? launcher<float, float, 4>(p->op) : launcher<float, float, 1>(p->op);
        break;
    case DM_F16:
        fn = launcher<f16, float, 8>(p->op);
        break;
    case DM_BF16:
        fn = launcher<bf16, float, 8>(p->op);
        break;
    case DM_I64:
        fn = integer_launcher<int64_t, int64_t, 2>(p->op);
        break;
    case DM_I32:
        fn = integer_launcher<int32_t, int32_t, 4>(p->op);
        break;
    default:
        fn = integer_launcher<uint8_t, int32_t, 16>(p->op);
        break;
    }
    fn(q, p, a, b, out);
    dmi_cuda_launched(q, "elementwise kernel");
}
