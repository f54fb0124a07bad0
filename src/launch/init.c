/* dm_init: which kind of launch this is. */
#include "launch/launch.h"
#include "launch/placement/placement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of the launcher that started this process, from its environment; 0: none. */
static int launched_ranks(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_SIZE"};
    for (int i = 0; i < DMI_COUNT(sizes); i++) {
        const char *value = getenv(sizes[i]);
        if (value && atoi(value) > 0) {
            return atoi(value);
        }
    }
    if (getenv("PMIX_RANK") || getenv("PMI_RANK")) { /* Slurm with PMIx or PMI-2 */
        const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
        tasks = tasks ? tasks : getenv("SLURM_NTASKS");
        return tasks && atoi(tasks) > 0 ? atoi(tasks) : 2; /* unknown: ask MPI */
    }
    return 0;
}

/* By default one worker per GPU; without GPUs one per core, up to four. */
int dmi_thread_workers(const dmi_config *config)
{
    if (config->workers > 0) {
        return (int)config->workers;
    }
    const dmi_device *gpu = dmi_device_gpu((int)config->device);
    int gpus = gpu ? gpu->count() : 0;
    return gpus > 0 ? gpus : DMI_MIN(dmi_host_cores(), 4);
}

/* Transposes and plans have tables on it. Threads of the library's own have more. */
dm_status dmi_stack_suffices(void)
{
    const int64_t least = 192 << 10, left = dmi_stack_left();
    return left < 0 || left >= least
               ? DM_OK
               : dmi_fail(DM_ERR_NOMEM,
                          "the calling thread has %" PRId64 " KiB of stack left, and dmath needs %" PRId64
                          " KiB: see `ulimit -s', or how the program starts the thread",
                          left >> 10, least >> 10);
}

dm_status dmi_session_start(const dmi_config *config, dm_status loaded, const dmi_error_handler *on_error,
                            dm_session **session)
{
    dmi_session *s = NULL;
    dm_status status = loaded == DM_OK ? dmi_session_may_begin() : loaded;
    if (launched_ranks() > 1) {
        status = dmi_launch_mpi(config, loaded, &s);
    } else if (status == DM_OK) {
        status = dmi_launch_threads(config, dmi_thread_workers(config), &s);
    }
    return status == DM_OK ? dmi_session_publish(s, on_error, session) : status;
}

void dmi_placement_print(const dmi_session *s, FILE *to)
{
    for (int w = 0; s->placement && w < s->workers; w++) {
        char line[DMI_PLACEMENT_LINE + 1];
        dmi_placement_line(&s->placement[w], line);
        strcat(line, "\n");
        fputs(line, to); /* one write per line, so that lines of several processes do not mix */
    }
}

dm_status dm_init(const dm_config *config, dm_session **session)
{
    dmi_config loaded;
    if (!session) {
        return dmi_fail(DM_ERR_ARG, "session is NULL");
    }
    dm_status status = dmi_session_outside();
    if (status != DM_OK) {
        return status;
    }
    status = dmi_config_from(config, &loaded);
    status = status == DM_OK ? dmi_stack_suffices() : status;
    dmi_error_handler on_error = dmi_error_handler_of(config);
    status = dmi_session_start(&loaded, status, &on_error, session);
    if (status == DM_OK) {
        dmi_placement_print((dmi_session *)atomic_load(&(*session)->live), stderr);
    }
    return status;
}
