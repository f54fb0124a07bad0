#ifndef DMI_GPU_USERS_H
#define DMI_GPU_USERS_H

#include "base/base.h"
#include "base/config.h"

/* A session of this process uses GPUs, from number 0 on; alone: no other may while it does, as its kernels wait
 * for one another across GPUs (adr/0050). DM_ERR_CONFIG: another one is there. */
DM_CHECKED dm_status dmi_gpu_users_add(bool alone);
void dmi_gpu_users_remove(bool alone);

/* Are programs to run on the devices alone (option program_device)? */
bool dmi_gpu_wants_alone(const dmi_config *config, int workers);
/* May they, too? What waits on a device must not hold up what it waits for: so each worker has a GPU of its own
 * (adr/0050). shared: some GPU has several workers; direct: all reach the memory of all; say: warn where they
 * may not, if the option says `on`. */
bool dmi_gpu_alone(const dmi_config *config, int workers, bool shared, bool direct, bool say);

#endif
