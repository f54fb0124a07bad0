#ifndef DMI_GPU_USERS_H
#define DMI_GPU_USERS_H

#include "base/base.h"

/* A session of this process uses GPUs, from number 0 on; alone: no other may while it does, as its kernels wait
 * for one another across GPUs (adr/0050). DM_ERR_CONFIG: another one is there. */
DM_CHECKED dm_status dmi_gpu_users_add(bool alone);
void dmi_gpu_users_remove(bool alone);

#endif
