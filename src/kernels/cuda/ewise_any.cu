/* Elementwise operations on operands of different types. */
#include "kernels/cuda/ewise.cuh"

enum { THREADS = DMI_CUDA_THREADS };

template <int OP, typename C>
static void launch(dmi_queue *q, const dmi_cuda_ewise *p, bool groups, const void *a, const void *b, void *out)
{
    dmi_cuda_ewise here = *p;
    unsigned blocks = blocks_for(&here.box, groups ? 2 : 4);
    if (groups) {
        ewise_any<OP, C, 4, 2><<<blocks, THREADS, 0, stream_of(q)>>>(here, a, b, out);
    } else {
        ewise_any<OP, C, 1, 4><<<blocks, THREADS, 0, stream_of(q)>>>(here, a, b, out);
    }
}

template <typename C>
static void launch_op(dmi_queue *q, const dmi_cuda_ewise *p, bool groups, const void *a, const void *b,
                      void *out)
{
    switch (p->op) {
    case DMI_EW_ADD:
        launch<DMI_EW_ADD, C>(q, p, groups, a, b, out);
        break;
    case DMI_EW_MUL:
        launch<DMI_EW_MUL, C>(q, p, groups, a, b, out);
        break;
    case DMI_EW_SCALE:
        launch<DMI_EW_SCALE, C>(q, p, groups, a, b, out);
        break;
    case DMI_EW_RELU:
        launch<DMI_EW_RELU, C>(q, p, groups, a, b, out);
        break;
    case DMI_EW_EXP:
        launch<DMI_EW_EXP, C>(q, p, groups, a, b, out);
        break;
    default:
        launch<DMI_EW_TANH, C>(q, p, groups, a, b, out);
        break;
    }
}

void dmi_cuda_launch_ewise_any(dmi_queue *q, const dmi_cuda_ewise *p, bool groups, const void *a, const void *b,
                               void *out)
{
    if (p->compute == DM_F64) {
        launch_op<double>(q, p, groups, a, b, out);
    } else if (p->compute == DM_F32) {
        launch_op<float>(q, p, groups, a, b, out);
    } else {
        launch_op<int64_t>(q, p, groups, a, b, out);
    }
    dmi_cuda_launched(q, "elementwise kernel");
}
