/* Starting sessions: workers as threads, or as ranks of an MPI job. */
#ifndef DMI_LAUNCH_H
#define DMI_LAUNCH_H

#include "master/session.h"

DM_CHECKED dm_status dmi_launch_threads(const dmi_config *config, int workers, dmi_session **out);
/* Over the ranks of MPI_COMM_WORLD; returns on rank 0 only. loaded: the status of loading config, with its
 * text; the other ranks must learn it. */
DM_CHECKED dm_status dmi_launch_mpi(const dmi_config *config, dm_status loaded, dmi_session **out);
/* DM_ERR_NOMEM: what is left of the calling thread's stack is too little. */
DM_CHECKED dm_status dmi_stack_suffices(void);
/* A session of a configuration; `loaded` is the status of loading it. As dm_init, but says nothing on
 * stderr. */
DM_CHECKED dm_status dmi_session_start(const dmi_config *config, dm_status loaded, const dmi_error_handler *on_error,
                                       dm_session **session);
/* With option placement: a line a worker, in their order. */
void dmi_placement_print(const dmi_session *s, FILE *to);
int dmi_host_cores(void);
/* Number of workers of a session without a launcher: by the configuration, or by the machine's GPUs or
 * cores. */
int dmi_thread_workers(const dmi_config *config);
/* An error with the reason if the configuration asks for GPUs and there are none. */
DM_CHECKED dm_status dmi_device_check(const dmi_config *config, int gpus);
/* Free memory of a GPU, rounded to sixteenths of its memory. Plans depend on it, and runs that differ by some
 * megabytes should make the same plans. Makes the GPU current for the thread. */
DM_CHECKED dm_status dmi_device_free(const dmi_device *gpu, int number, int64_t *bytes);
/* Checks the option transport against GPUs and processes. */
DM_CHECKED dm_status dmi_transport_check(const dmi_config *config, bool gpus, bool processes);
dmi_profile dmi_profile_from(const dmi_config *config, int workers, bool one_space);
/* The option pace_bytes, for workers that push to each other's GPUs; 0 if no two senders can share a
 * receiver. */
int64_t dmi_profile_pace(const dmi_config *config, int workers);
/* The option file_threads, or its default for so many workers and cores. */
int dmi_file_threads(const dmi_config *config, int workers, int cores);
/* How to wait on this host, with `threads` endpoints: workers, which have two threads each, and the master. */
void dmi_hub_tune(dmi_hub *hub, int threads, int cores, double spin_us);

#endif
