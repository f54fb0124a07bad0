/* Every pair is tried with real data before it is trusted. */
#include "launch/job.h"

#include <stdlib.h>
#include <string.h>

enum { PROBE_BYTES = 256, TAG_PROBE = 2 };

static unsigned char pattern(int from, int to, int i)
{
    return (unsigned char)(from * 131 + to * 31 + i * 7 + 1);
}

static bool right(const unsigned char *p, int from, int to)
{
    for (int i = 0; i < PROBE_BYTES; i++) {
        if (p[i] != pattern(from, to, i)) {
            return false;
        }
    }
    return true;
}

/* Every endpoint writes into a slab of every endpoint on its host, as pushes will, and then checks its own
 * slab. got[from]: the bytes from `from` were right. */
static dm_status try_direct(dmi_job *job, dmi_engine *e, bool *got)
{
    dmi_allocation allocation;
    int n = job->workers + 1;
    dm_status status = DM_OK;
    if (e->host_memory) { /* beside a GPU this is where payloads of the master pass */
        allocation = (dmi_allocation){.base = e->host_memory, .slab = DMI_MAX_SLABS - 1};
    } else {
        status = dmi_pool_alloc(e->config.pool, (int64_t)n * PROBE_BYTES, DMI_OWNER_STAGING, &allocation);
    }
    status = dmi_job_agree(job, status);
    if (status != DM_OK) {
        return status;
    }
    int mine[2] = {allocation.slab, (int)allocation.offset}, *by_rank = calloc(2 * (size_t)n, sizeof *by_rank);
    memset(allocation.base, 0, (size_t)n * PROBE_BYTES);
    status = dmi_job_agree(job, by_rank ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a probe"));
    if (status == DM_OK) {
        DMI_MPI(MPI_Allgather(mine, 2, MPI_INT, by_rank, 2, MPI_INT,
                              job->ctl)); /* after it: all have cleared theirs */
        for (int to = 0; to < n; to++) {
            if (to != job->me && job->host_of[to] == job->host_of[job->me]) {
                const int *at = &by_rank[2 * job->rank_of[to]];
                unsigned char *base = dmi_direct_map(e, to, at[0]);
                for (int i = 0; base && i < PROBE_BYTES; i++) {
                    base[at[1] + job->me * PROBE_BYTES + i] = pattern(job->me, to, i);
                }
            }
        }
        DMI_MPI(MPI_Barrier(job->ctl));
        for (int from = 0; from < n; from++) {
            got[from] = from != job->me && job->host_of[from] == job->host_of[job->me] &&
                        right((unsigned char *)allocation.base + from * PROBE_BYTES, from, job->me);
        }
    }
    dmi_stamp now = {{0}};
    if (!e->host_memory) {
        (void)!dmi_pool_free(e->config.pool, &allocation, &now);
    }
    free(by_rank);
    return status;
}

static dm_status try_messages(dmi_job *job, const bool *direct)
{
    dm_status status = DM_OK;
    for (int t = 1; t <= job->workers; t++) { /* the same rounds on all: a permutation each */
        int n = job->workers + 1, to = (job->me + t) % n, from = (job->me - t + n) % n;
        unsigned char out[PROBE_BYTES], in[PROBE_BYTES] = {0};
        MPI_Request request[2];
        int count = 0;
        for (int i = 0; i < PROBE_BYTES; i++) {
            out[i] = pattern(job->me, to, i);
        }
        if (!direct[from]) {
            DMI_MPI(MPI_Irecv(in, PROBE_BYTES, MPI_BYTE, job->rank_of[from], TAG_PROBE, job->data,
                              &request[count++]));
        }
        if (!direct[to]) {
            DMI_MPI(MPI_Isend(out, PROBE_BYTES, MPI_BYTE, job->rank_of[to], TAG_PROBE, job->data,
                              &request[count++]));
        }
        int code = MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
        if (status == DM_OK && dmi_mpi_check(code, "MPI_Waitall") != DM_OK) {
            status = DM_ERR_TRANSPORT;
        } else if (status == DM_OK && !direct[from] && !right(in, from, job->me)) {
            status = dmi_fail(DM_ERR_TRANSPORT, "a message from endpoint %d to endpoint %d came out wrong",
                              from, job->me);
        }
    }
    return status;
}

dm_status dmi_job_probe(dmi_job *job, dmi_engine *e)
{
    int n = job->workers + 1;
    bool *got = calloc((size_t)n, sizeof *got), *back = calloc((size_t)n * (size_t)n, sizeof *back);
    dm_status status =
        dmi_job_agree(job, got && back ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a probe"));
    if (status == DM_OK && job->config.transport != DMI_TRANSPORT_MPI) {
        status = try_direct(job, e, got);
    }
    if (status == DM_OK) {
        DMI_MPI(
            MPI_Allgather(got, n * (int)sizeof *got, MPI_BYTE, back, n * (int)sizeof *got, MPI_BYTE, job->ctl));
        for (int p = 0; p < n; p++) { /* both ways, and the same decision at both ends */
            job->direct[p] = got[p] && back[job->rank_of[p] * n + job->me];
            if (p != job->me && !job->direct[p] && job->config.transport == DMI_TRANSPORT_DIRECT &&
                status == DM_OK) {
                status = dmi_fail(DM_ERR_TRANSPORT,
                                  "transport=direct, but endpoints %d and %d %s (endpoint %d is the master)",
                                  job->me, p,
                                  job->host_of[p] == job->host_of[job->me] ? "cannot write each other's memory"
                                                                           : "are on different hosts",
                                  job->workers);
            }
        }
        status = dmi_job_agree(job, status);
    }
    if (status == DM_OK) {
        status = dmi_job_agree(job, try_messages(job, job->direct));
    }
    e->mpi = &job->mpi;
    for (int p = 0; p < n && status == DM_OK; p++) {
        if (p != job->me) {
            e->peer[p].transport = job->direct[p] ? &dmi_transport_direct : &dmi_transport_mpi;
            job->messages = job->messages || !job->direct[p];
            dmi_log(DMI_LOG_DEBUG, "endpoint %d to %d: %s", job->me, p, e->peer[p].transport->name);
        }
    }
    free(got);
    free(back);
    status = status == DM_OK ? dmi_transport_check(&job->config, job->profile.gpu, true) : status;
    if (status == DM_OK && job->profile.gpu) {
        return dmi_job_probe_gpu(job, e);
    }
    job->profile.host_of = job->hosts > 1 ? job->host_of : NULL;
    return status;
}
