/* Layers on GPUs: not written yet. The master refuses such calls (attribute DMI_LAYER). */
#include "kernels/cuda/launch.h"
#include "kernels/kernel.h"

#define REFUSES(name)                                                                                          \
    dm_status dmi_##name##_cuda(const dmi_kernel_call *call)                                                   \
    {                                                                                                          \
        dmi_cuda_failed(call->queue, #name, -1, "not written for GPUs");                                       \
        return DM_OK;                                                                                          \
    }
REFUSES(conv)
REFUSES(conv_data)
REFUSES(conv_weights)
REFUSES(pooling)
REFUSES(pooling_back)
REFUSES(inner)
REFUSES(inner_data)
REFUSES(inner_weights)
REFUSES(channel_sums)
REFUSES(softmax_loss)
REFUSES(softmax_back)
REFUSES(accuracy)
REFUSES(lrn)
REFUSES(lrn_back)
REFUSES(pair_loss)
REFUSES(pair_back)
REFUSES(hinge_loss)
REFUSES(hinge_back)
