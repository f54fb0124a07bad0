/* GPUs of an MPI job: the GPU of each worker, and the pairs with direct access. */
#include "launch/gpu_users.h"
#include "launch/job.h"
#include "launch/pairs.h"

#include <stdlib.h>
#include <string.h>

/* The first of these variables of launchers that is set, as a number; -1: none. */
static int launcher_number(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value) {
            return atoi(value);
        }
    }
    return -1;
}

void dmi_gpu_before_mpi(const dmi_config *config)
{
    const dmi_device *gpu = dmi_device_gpu((int)config->device);
    static const char *const locals[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                         "PMI_LOCAL_RANK", NULL};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    int local = launcher_number(locals), rank = launcher_number(ranks);
    int gpus = gpu && local >= 0 && rank != 0 ? gpu->count() : 0;
    bool with_master = rank == local; /* rank 0, which has no GPU, is on this host */
    /* A guess where ranks are not placed host by host; dmi_job_choose_gpu decides. */
    if (gpus > 0 && gpu->use((local - with_master) % gpus) != DM_OK) {
        dmi_log(DMI_LOG_WARN, "GPU %d before MPI_Init: %s", (local - with_master) % gpus, dmi_error_text());
    }
}

dm_status dmi_job_choose_gpu(dmi_job *job, const int *machine)
{
    const dmi_device *gpu = dmi_device_gpu((int)job->config.device);
    bool worker = job->me < job->workers;
    int gpus = gpu && worker ? gpu->count() : 0, before = 0, here = 0;
    int64_t memory = INT64_MAX;
    dm_status status = worker ? dmi_device_check(&job->config, gpus) : DM_OK;
    int have = !worker || gpus > 0, all = 0, any = worker && gpus > 0, some = 0;
    DMI_MPI(MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, job->ctl));
    DMI_MPI(MPI_Allreduce(&any, &some, 1, MPI_INT, MPI_MAX, job->ctl));
    status = dmi_job_agree(job, status);
    if (status == DM_OK && some && !all) {
        status = dmi_fail(DM_ERR_CONFIG, "some workers have GPUs and others do not: set device=cpu, or start "
                                         "workers only where there are GPUs");
    }
    for (int w = 0; w < job->workers && worker; w++) {
        here += machine[w] == machine[job->me];
        before += w < job->me && machine[w] == machine[job->me];
    }
    if (status == DM_OK && gpus > 0 && here > gpus && !job->config.share_gpu) {
        status = dmi_fail(DM_ERR_CONFIG,
                          "%d workers, but %d GPUs on this host: start fewer, or set share_gpu=1, "
                          "or device=cpu",
                          here, gpus);
    }
    if (status == DM_OK && some && worker) {
        job->device = gpu;
        job->device_number = before % gpus;
        status = dmi_device_free(gpu, job->device_number, &memory);
        memory /= (here + gpus - 1) / gpus; /* of each, where they share one */
    }
    int shares = worker && here > gpus, some_share = 0;
    DMI_MPI(MPI_Allreduce(&shares, &some_share, 1, MPI_INT, MPI_MAX, job->ctl));
    job->shares_gpus = some_share;
    DMI_MPI(MPI_Allreduce(&memory, &job->profile.device_bytes, 1, MPI_INT64_T, MPI_MIN, job->ctl));
    job->profile.device_bytes = some ? job->profile.device_bytes : 0;
    job->profile.gpu = some;
    job->profile.facts =
        (dmi_device_facts){.gpu = some, .emulated = some && dmi_device_gpu(DMI_DEVICE_EMULATED)};
    return dmi_job_agree(job, status);
}

/* --- which pairs can do without the host --- */

/* Every worker writes into device memory of every worker on its host, then checks its own memory. got[from]:
 * the bytes from `from` were right. */
static dm_status try_pairs(dmi_job *job, dmi_engine *e, const dmi_allocation *allocation, bool *got)
{
    int mine[2] = {allocation->slab, (int)allocation->offset}, n = job->workers + 1;
    int *at = calloc(2 * (size_t)n, sizeof *at);
    unsigned char bytes[DMI_PROBE_BYTES] = {0};
    dm_status status = at ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a probe");
    for (int w = 0; w < job->workers && e->gpu && status == DM_OK; w++) {
        status = job->device->put((char *)allocation->base + w * DMI_PROBE_BYTES, bytes, sizeof bytes);
    }
    status = dmi_job_agree(job, status);
    if (status == DM_OK) {
        DMI_MPI(
            MPI_Allgather(mine, 2, MPI_INT, at, 2, MPI_INT, job->ctl)); /* after it: all have cleared theirs */
    }
    for (int to = 0; to < job->workers && e->gpu && status == DM_OK; to++) {
        if (to == job->me || job->host_of[to] != job->host_of[job->me]) {
            continue;
        }
        const int *place = &at[2 * job->rank_of[to]];
        char *base = job->device->connect(e, to, NULL) == DM_OK ? job->device->map(e, to, place[0]) : NULL;
        for (int i = 0; i < DMI_PROBE_BYTES; i++) {
            bytes[i] = dmi_probe_byte(job->me, to, i);
        }
        if (!base ||
            job->device->put(base + place[1] + job->me * DMI_PROBE_BYTES, bytes, sizeof bytes) != DM_OK) {
            dmi_log(DMI_LOG_INFO, "worker %d cannot write memory of the GPU of worker %d: %s", job->me, to,
                    dmi_error_text());
        }
    }
    DMI_MPI(MPI_Barrier(job->ctl));
    for (int from = 0; from < job->workers && e->gpu && status == DM_OK; from++) {
        got[from] =
            from != job->me &&
            job->device->get(bytes, (char *)allocation->base + from * DMI_PROBE_BYTES, sizeof bytes) == DM_OK;
        for (int i = 0; i < DMI_PROBE_BYTES && got[from]; i++) {
            got[from] = bytes[i] == dmi_probe_byte(from, job->me, i);
        }
    }
    free(at);
    return dmi_job_agree(job, status);
}

static bool may_be_direct(const dmi_job *job)
{
    return job->config.transport == DMI_TRANSPORT_AUTO || job->config.transport == DMI_TRANSPORT_DIRECT;
}

/* Planners know hosts, not pairs. So if one pair of a host has no direct access, no pair of any host uses
 * it. */
static dm_status decide(dmi_job *job, dmi_engine *e, const bool *got)
{
    bool good = may_be_direct(job);
    for (int w = 0; w < job->workers && e->gpu && good; w++) {
        good = w == job->me || job->host_of[w] != job->host_of[job->me] || got[w];
    }
    int mine = good || !e->gpu, all = 0;
    DMI_MPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, job->ctl));
    if (!all && job->config.transport == DMI_TRANSPORT_DIRECT) {
        return dmi_fail(DM_ERR_TRANSPORT,
                        "transport=direct, but GPUs of one host cannot reach each other's memory");
    }
    if (!all && e->gpu) {
        job->device->disconnect(e);
    }
    for (int w = 0; w < job->workers; w++) {
        job->far_of[w] = all ? job->host_of[w] : w;
    }
    job->profile.host_of = job->far_of;
    job->profile.pace_bytes = all && job->hosts == 1 ? dmi_profile_pace(&job->config, job->workers) : 0;
    const bool near = all && job->hosts == 1;
    int can[2] = {job->me == job->workers || (e->fused && near), job->me == job->workers || e->compiles},
        all_can[2];
    DMI_MPI(MPI_Allreduce(can, all_can, 2, MPI_INT, MPI_MIN, job->ctl));
    job->profile.gemm_fused = all_can[0];
    job->profile.map_compiled = all_can[1];
    job->profile.on_device =
        dmi_gpu_alone(&job->config, job->workers, job->shares_gpus, near, job->me == job->workers);
    return DM_OK;
}

dm_status dmi_job_probe_gpu(dmi_job *job, dmi_engine *e)
{
    bool *got = calloc((size_t)job->workers + 1, sizeof *got);
    dmi_allocation allocation = {0};
    dm_status status = got ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a probe");
    if (status == DM_OK && e->gpu) {
        status = dmi_pool_alloc(e->config.pool, (int64_t)job->workers * DMI_PROBE_BYTES, DMI_OWNER_STAGING,
                                &allocation);
    }
    status = dmi_job_agree(job, status);
    if (status == DM_OK && may_be_direct(job)) {
        status = try_pairs(job, e, &allocation, got);
    }
    if (status == DM_OK) {
        status = dmi_job_agree(job, decide(job, e, got));
    }
    if (status == DM_OK) {
        status = dmi_job_probe_messages(job, e);
    }
    status = dmi_job_agree(job, status == DM_OK ? dmi_job_rates(job, e) : status);
    if (allocation.base) {
        dmi_stamp now = {{0}};
        (void)!dmi_pool_free(e->config.pool, &allocation, &now);
    }
    free(got);
    return status;
}
