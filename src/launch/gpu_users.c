/* Which GPUs the sessions of this process use. All begin with GPU 0. */
#include "launch/gpu_users.h"
#include "base/process.h"
#include "plan/on_device.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    int sessions, alone;
} users = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* They are the parent's. */
static void no_users(void)
{
    users.sessions = users.alone = 0;
}
DMI_FORK_KEEP(&users.lock, no_users)

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

bool dmi_gpu_wants_alone(const dmi_config *config, int workers)
{
    return config->program_device != DMI_PROGRAM_DEVICE_OFF && workers > 1;
}

bool dmi_gpu_alone(const dmi_config *config, int workers, bool shared, bool direct, bool say)
{
    bool asked = dmi_gpu_wants_alone(config, workers);
    const char *why = !asked                            ? NULL
                      : shared                          ? "workers share GPUs"
                      : config->capture                 ? "capture=1 makes a graph of each step"
                      : !direct                         ? "some GPUs have no direct access to others"
                      : workers > DMI_ON_DEVICE_WORKERS ? "there are too many workers"
                                                        : NULL;
    if (why && say && config->program_device == DMI_PROGRAM_DEVICE_ON) {
        dmi_log(DMI_LOG_WARN, "program_device=on, but %s: programs run as without it", why);
    }
    return asked && !why;
}
