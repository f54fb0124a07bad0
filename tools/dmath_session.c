/* Sessions of the tool, and the description of its machine. */
#include "dmath.h"
#include "launch/job.h"

#include <dmath/dmath_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tool_runs(const tool_common *common)
{
    return common->nworkers > 0 ? common->nworkers : 1;
}

void tool_complain(dm_status status)
{
    if (status != DM_OK) {
        fflush(stdout);
        fprintf(stderr, "dmath: %s: %s\n", dm_status_name(status), dm_error_message());
    }
}

dm_status tool_series_begin(const tool_common *common, int sessions)
{
    int provided = 0, rank = 0;
    dmi_config loaded;
    if (tool_ranks() <= 1) {
        return DM_OK;
    }
    dm_status status = dmi_config_load(&loaded, common->options);
    if (status == DM_OK) {
        dmi_gpu_before_mpi(&loaded);
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
        return dmi_fail(DM_ERR_TRANSPORT, "MPI could not be initialised");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        return DM_OK;
    }
    for (int i = 0; i < sessions; i++) {
        dm_config config = DM_CONFIG_INIT;
        dm_session *none = NULL;
        config.options = common->options;
        (void)!dm_init_comm(MPI_COMM_WORLD, &config, &none); /* rank 0 reports what went wrong */
    }
    MPI_Finalize();
    exit(0);
}

void tool_series_end(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun && !ended) {
        MPI_Finalize();
    }
}

dm_status tool_open(const tool_common *common, int run_number, dm_session **out)
{
    dm_config config = DM_CONFIG_INIT;
    config.options = common->options;
    config.workers = common->nworkers > 0 ? (int)DMI_MIN(common->workers[run_number], INT32_MAX) : 0;
    dm_session *s = NULL;
    int series = 0;
    MPI_Initialized(&series);
    dm_status status = series ? dm_init_comm(MPI_COMM_WORLD, &config, &s) : dm_init(&config, &s);
    if (status == DM_OK && config.workers > 0 && config.workers != dm_workers(s)) {
        int have = dm_workers(s);
        status = dm_finalize(s, NULL);
        return dmi_fail(DM_ERR_CONFIG, "%d workers are asked for, but the launcher has started %d",
                        config.workers, have);
    }
    if (status == DM_OK) {
        *out = s;
    }
    return status;
}

int tool_close(dm_session *session, dm_status status)
{
    tool_complain(status);
    if (session) {
        int64_t alive = 0;
        dm_status end = dm_finalize(session, &alive);
        if (status == DM_OK) {
            tool_complain(end);
            status = end;
        }
    }
    return status == DM_OK ? 0 : TOOL_FAILED;
}

/* The transport from worker 0 to worker 1, as far as the master knows. */
static const char *transport_of(const dmi_session *s)
{
    static const char *const names[] = {"auto", "direct", "mpi"};
    const dmi_profile *p = &s->profile;
    const dmi_job *job = s->launch_state;
    if (p->gpu && s->workers > 1 && p->host_of && p->host_of[0] != p->host_of[1]) {
        return !p->one_space && job->gpu_messages ? "cuda_mpi" : "staged";
    }
    if (p->gpu || p->one_space) {
        return "direct";
    }
    if (s->config.transport != DMI_TRANSPORT_AUTO || s->workers < 2) {
        return names[s->config.transport];
    }
    if (job->host_of[0] != job->host_of[1]) {
        return "mpi";
    }
    /* The check of a pair is known at its two ends only; on the master's own host it stands for the others. */
    return job->host_of[0] == 0 ? (job->direct[0] ? "direct" : "mpi") : "auto";
}

dm_status tool_where_of(dm_session *session, tool_where *out)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK) {
        return status;
    }
    *out =
        (tool_where){.workers = s->workers, .cores = dmi_host_cores(), .blas_threads = s->config.blas_threads};
    snprintf(out->launch, sizeof out->launch, "%s", s->launch->name);
    snprintf(out->transport, sizeof out->transport, "%s", transport_of(s));
    return DM_OK;
}

int tool_no_json(const char *command)
{
    fprintf(stderr, "%s: --json: this has no lines of JSON\n", command);
    return TOOL_USAGE;
}
