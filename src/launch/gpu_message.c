/* May MPI get pointers to device memory? Many MPIs crash on them. So ask the library first, and test its answer
 * with real data. */
#include "launch/job.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The last size is above MPI's eager limit, and is no round number. */
static const int64_t sizes[] = {24, 4096, (3 << 20) + 1000};
enum { TAG_PROBE = 3, SIZES = sizeof sizes / sizeof *sizes };
/* As one MPI message, and near the full rate of links inside a host. */
#define CHUNK_BYTES (INT64_C(8) << 20)

/* Eight bytes that no other pair, size or position has. */
static uint64_t value(int from, int to, int64_t bytes, int64_t i)
{
    uint64_t x = ((uint64_t)from << 48) ^ ((uint64_t)to << 32) ^ ((uint64_t)bytes << 8) ^ (uint64_t)i;
    return (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

typedef struct trial {
    char *out, *in; /* device memory */
    uint64_t *host;
    bool planted; /* a fault: what is sent is wrong */
    bool stuck;   /* MPI still has the memory */
} trial;

static dm_status wait_for(dmi_job *job, trial *t, MPI_Request *request, int count)
{
    double limit_s = job->config.meet_s;
    int64_t begin = dmi_now_ns();
    for (int flag = 0; !flag;) {
        dm_status status = dmi_mpi_check(MPI_Testall(count, request, &flag, MPI_STATUSES_IGNORE),
                                         "a message of device memory");
        if (status != DM_OK) {
            return status;
        }
        t->stuck = !flag && limit_s > 0 && (double)(dmi_now_ns() - begin) > limit_s * 1e9;
        if (t->stuck) {
            return dmi_fail(DM_ERR_TIMEOUT,
                            "MPI says that it takes device memory, but a message between GPUs has not come "
                            "in %g s: set transport=staged, or transport=direct on one host",
                            limit_s);
        }
        if (!flag) {
            sched_yield();
        }
    }
    return DM_OK;
}

/* One message to `to` and one from `from`, device memory to device memory; -1: none. */
static dm_status exchange(dmi_job *job, trial *t, int to, int from, int64_t bytes)
{
    MPI_Request request[2];
    int64_t n = bytes / 8;
    int count = 0;
    dm_status status = DM_OK;
    memset(t->host, 0xa5, (size_t)bytes);
    status = job->device->put(t->in, t->host, bytes); /* nothing right may lie there before */
    for (int64_t i = 0; i < n; i++) {
        t->host[i] = value(job->me, to, bytes, i) + (t->planted && i == n / 2);
    }
    status = status == DM_OK ? job->device->put(t->out, t->host, bytes) : status;
    /* sends empty messages, so that nobody waits; the peer sees that they are not the expected ones */
    if (status != DM_OK) {
        n = bytes = 0;
    }
    if (from >= 0) {
        int64_t room = sizes[SIZES - 1];
        DMI_MPI(
            MPI_Irecv(t->in, (int)room, MPI_BYTE, job->rank_of[from], TAG_PROBE, job->data, &request[count++]));
    }
    if (to >= 0) {
        DMI_MPI(
            MPI_Isend(t->out, (int)bytes, MPI_BYTE, job->rank_of[to], TAG_PROBE, job->data, &request[count++]));
    }
    dm_status moved = wait_for(job, t, request, count);
    if (moved != DM_OK || status != DM_OK || from < 0) {
        return moved != DM_OK ? moved : status;
    }
    status = job->device->get(t->host, t->in, bytes);
    for (int64_t i = 0; i < n && status == DM_OK; i++) {
        if (t->host[i] != value(from, job->me, bytes, i)) {
            status = dmi_fail(
                DM_ERR_TRANSPORT,
                "MPI says that it takes device memory, but %lld bytes from the GPU of worker %d to that "
                "of worker %d came out wrong",
                (long long)bytes, from, job->me);
        }
    }
    return status;
}

/* The same rounds on all workers: a permutation each. After a failure the others' messages are taken all the
 * same. */
static dm_status try_all(dmi_job *job, trial *t)
{
    dm_status status = DM_OK;
    int n = job->workers;
    char text[DMI_ERROR_TEXT] = "";
    for (int round = 1; round < n && !t->stuck; round++) {
        int to = (job->me + round) % n, from = (job->me - round + n) % n;
        to = job->far_of[to] == job->far_of[job->me] ? -1 : to;
        from = job->far_of[from] == job->far_of[job->me] ? -1 : from;
        for (int i = 0; i < SIZES && (to >= 0 || from >= 0) && !t->stuck; i++) {
            dm_status one = exchange(job, t, to, from, sizes[i]);
            if (one != DM_OK && (status == DM_OK || t->stuck)) {
                status = one;
                snprintf(text, sizeof text, "%s", dmi_error_text());
            }
        }
    }
    return status == DM_OK ? status : dmi_fail(status, "%s", text);
}

static dm_status try_device(dmi_job *job, dmi_engine *e)
{
    dmi_allocation allocation = {0};
    dmi_stamp now = {{0}};
    int64_t most = (sizes[SIZES - 1] + 4095) / 4096 * 4096;
    trial t = {.planted = strcmp(job->config.fault, "cuda_mpi") == 0};
    dm_status status = DM_OK;
    if (e->gpu) {
        t.host = malloc((size_t)most);
        status = t.host ? dmi_pool_alloc(e->config.pool, 2 * most, DMI_OWNER_STAGING, &allocation)
                        : dmi_fail(DM_ERR_NOMEM, "no memory for a probe");
        t.out = allocation.base;
        t.in = t.out ? t.out + most : NULL;
    }
    status = dmi_job_agree(job, status);
    if (status == DM_OK) {
        int mine = 0, stuck = 0;
        status = e->gpu ? try_all(job, &t) : DM_OK;
        mine = t.stuck;
        DMI_MPI(MPI_Allreduce(&mine, &stuck, 1, MPI_INT, MPI_MAX, job->ctl));
        status = dmi_job_agree(job, stuck && !mine ? DM_OK : status); /* DM_ERR_TIMEOUT, if there is one */
        t.stuck = stuck; /* of the others' messages some may still be in flight to here */
    }
    if (allocation.base && !t.stuck) {
        (void)!dmi_pool_free(e->config.pool, &allocation, &now);
    }
    free(t.host);
    return status;
}

dm_status dmi_job_probe_messages(dmi_job *job, dmi_engine *e)
{
    bool forced = job->config.transport == DMI_TRANSPORT_CUDA_MPI, apart = false;
    int says = !e->gpu || job->device->in_mpi(), all = 0;
    for (int w = 1; w < job->workers; w++) {
        apart = apart || job->far_of[w] != job->far_of[0];
    }
    if (!forced && (!apart || job->config.transport != DMI_TRANSPORT_AUTO)) {
        return DM_OK;
    }
    DMI_MPI(MPI_Allreduce(&says, &all, 1, MPI_INT, MPI_MIN, job->ctl));
    dm_status status =
        all ? try_device(job, e)
            : dmi_fail(DM_ERR_TRANSPORT, "the MPI library does not report support for device memory");
    if (status == DM_OK) {
        status = dmi_job_agree(job, e->gpu ? job->device->messages(e, CHUNK_BYTES) : DM_OK);
        if (status != DM_OK && e->gpu) {
            (void)!job->device->messages(e, 0);
        }
    }
    if (status == DM_OK) {
        job->gpu_messages = true;
        job->profile.gpu_chunk = CHUNK_BYTES;
        if (job->rank == 0) {
            dmi_log(DMI_LOG_INFO, "cuda_mpi: MPI sends payloads between GPUs%s from device memory",
                    forced ? "" : " of different hosts");
        }
    } else if (forced && status != DM_ERR_TIMEOUT) {
        char text[DMI_ERROR_TEXT];
        snprintf(text, sizeof text, "%s", dmi_error_text());
        status = dmi_fail(status, "transport=cuda_mpi, but %s", text);
    } else if (status != DM_ERR_TIMEOUT) {
        if (job->rank == 0) { /* the same on all */
            dmi_log(all ? DMI_LOG_WARN : DMI_LOG_INFO, "%s: payloads between GPUs pass through host memory",
                    dmi_error_text());
        }
        status = DM_OK;
    }
    return status;
}
