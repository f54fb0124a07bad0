/* Which GPUs the sessions of this process use. All begin with GPU 0. */
#include "launch/gpu_users.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    int sessions, alone;
} users = {.lock = PTHREAD_MUTEX_INITIALIZER};

dm_status dmi_gpu_users_add(bool alone)
{
    dm_status status = DM_OK;
    pthread_mutex_lock(&users.lock);
    if (users.alone > 0 || (alone && users.sessions > 0)) {
        status = dmi_fail(DM_ERR_CONFIG,
                          "%s: a session with program_device=on must be the only one of its process with GPUs",
                          alone ? "program_device=on, but another session uses the GPUs"
                                : "another session uses the GPUs, with program_device=on");
    } else {
        users.sessions++;
        users.alone += alone;
    }
    pthread_mutex_unlock(&users.lock);

    return status;
}

void dmi_gpu_users_remove(bool alone)
{

    pthread_mutex_lock(&users.lock);
    users.sessions--;
    users.alone -= alone;
    pthread_mutex_unlock(&users.lock);
}
