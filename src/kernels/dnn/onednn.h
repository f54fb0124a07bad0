/* Convolutions by oneDNN, where the build has it and it is faster than the product of matrices. */
#ifndef DMI_DNN_ONEDNN_H
#define DMI_DNN_ONEDNN_H

#include "kernels/kernel.h"

enum { DMI_ONEDNN_FORWARD, DMI_ONEDNN_DATA, DMI_ONEDNN_WEIGHTS };
/* Runs the kernel (its bias gradient excepted); false: nothing was done. Which of the two runs depends on the
 * descriptor alone, so that a slice has the same bits on every worker. */
bool dmi_onednn_conv(int which, const dmi_kernel_call *call);

#endif
