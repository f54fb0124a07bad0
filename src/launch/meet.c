/* How ranks become a session. */
#include "base/process.h"
#include "exec/trace.h"
#include "launch/job.h"
#include "ops/common_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first message of every rank. This struct never changes size or meaning, in any version. */
typedef struct hello {
    char magic[8];
    uint32_t protocol, config_bytes;
    uint64_t fingerprint; /* of the library's own operations */
    char version[32], host[64], boot[64];
    int32_t pid;
    char reserved[4];
    uint64_t tasks; /* of the functions that were registered */
    uint64_t start; /* of the process (dmi_process_start) */
    char more[48];
} hello;
_Static_assert(sizeof(hello) == 256, "ranks of different builds must understand each other's hello");

static void read_boot_id(char *out, size_t room)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (!fgets(out, (int)room, f)) {
            out[0] = 0;
        }
        fclose(f);
    }
}

static void say_hello(const dmi_config *config, hello *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->magic, "dmath", 6);
    out->protocol = DMI_PROTOCOL;
    out->config_bytes = sizeof(dmi_config);
    out->fingerprint = dmi_ops_fingerprint() ^ (strcmp(config->fault, "version") == 0);
    out->tasks = dmi_task_fingerprint();
    snprintf(out->version, sizeof out->version, "%s", dm_version());
    dmi_host_name(out->host, sizeof out->host);
    read_boot_id(out->boot, sizeof out->boot);
    out->pid = (int32_t)getpid();
    out->start = dmi_process_start(out->pid);
}

static dm_status compare(const hello *all, int ranks)
{
    for (int r = 1; r < ranks; r++) {
        const hello *a = &all[0], *b = &all[r];
        if (memcmp(a->magic, b->magic, sizeof a->magic) != 0 || a->protocol != b->protocol ||
            a->fingerprint != b->fingerprint || a->config_bytes != b->config_bytes ||
            strcmp(a->version, b->version) != 0) {
            return dmi_fail(
                DM_ERR_VERSION,
                "rank %d (%s) runs dmath %s (build %016llx), rank 0 (%s) runs dmath %s (build %016llx): all "
                "ranks must use the same library",
                r, b->host, b->version, (unsigned long long)b->fingerprint, a->host, a->version,
                (unsigned long long)a->fingerprint);
        }
    }
    return DM_OK;
}

/* Says in the error which rank refuses. */
static dm_status name_rank(int rank, dm_status status)
{
    char text[512], host[64];
    if (status == DM_OK || strncmp(dmi_error_text(), "rank ", 5) == 0) {
        return status;
    }
    dmi_host_name(host, sizeof host);
    snprintf(text, sizeof text, "%s", dmi_error_text());
    return dmi_fail(status, "rank %d (%s): %s", rank, host, text);
}

dm_status dmi_job_agree(dmi_job *job, dm_status status)
{
    struct {
        int status, rank;
    } mine = {status, job->rank}, worst;
    DMI_MPI(MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, job->ctl));
    if (worst.status == DM_OK) {
        return DM_OK;
    }
    char text[512] = "";
    if (worst.rank == job->rank) {
        (void)name_rank(job->rank, status);
        snprintf(text, sizeof text, "%s", dmi_error_text());
    }
    DMI_MPI(MPI_Bcast(text, sizeof text, MPI_CHAR, worst.rank, job->ctl));
    return dmi_fail((dm_status)worst.status, "%s", text);
}

/* Endpoints of one host share its name, the boot of its kernel and, with the option pretend_hosts, a simulated
 * host. */
static bool same_host(const dmi_job *job, const hello *all, int a, int b)
{
    const hello *x = &all[job->rank_of[a]], *y = &all[job->rank_of[b]];
    int parts = job->config.pretend_hosts;
    int pa = a == job->workers ? 0 : parts > 0 ? a * parts / job->workers : 0;
    int pb = b == job->workers ? 0 : parts > 0 ? b * parts / job->workers : 0;
    return strcmp(x->host, y->host) == 0 && strcmp(x->boot, y->boot) == 0 && pa == pb;
}

/* Numbers the hosts, the master's first; the first endpoint of each is its leader (the master on its own). */
static void group_hosts(dmi_job *job, const hello *all, bool apart)
{
    job->hosts = 0;
    for (int i = 0; i <= job->workers; i++) {
        int e = i == 0 ? job->workers : i - 1, host = -1;
        for (int h = 0; h < job->hosts && host < 0 && !apart; h++) {
            host = same_host(job, all, job->leader[h], e) ? h : -1;
        }
        if (host < 0) {
            host = job->hosts++;
            job->leader[host] = e;
        }
        job->host_of[e] = host;
    }
}

static dm_status share_hub(dmi_job *job)
{
    int mine[2] = {(int)getpid(), -1}, *all = calloc((size_t)job->ranks, sizeof mine);
    dm_status status = all ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %d ranks", job->ranks);
    int leader = job->leader[job->host_of[job->me]];
    if (status == DM_OK && leader == job->me) {
        status = dmi_hub_create(job->workers + 1, job->config.ring, true, &job->hub);
        mine[1] = job->hub.fd;
    }
    status = dmi_job_agree(job, status);
    if (status == DM_OK) {
        DMI_MPI(MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, job->ctl));
        if (leader != job->me) {
            const int *theirs = &all[2 * job->rank_of[leader]];
            status = dmi_hub_attach(theirs[0], theirs[1], &job->hub);
        }
    }
    status = dmi_job_agree(job, status);
    if (status != DM_OK) {
        dmi_hub_close(&job->hub);
    }
    free(all);
    return status;
}

static void find_consumers(dmi_job *job)
{
    int host = job->host_of[job->me];
    for (int e = 0; e < job->workers; e++) {
        if (job->host_of[e] == host) {
            job->consumer[job->nconsumer++] = e;
        }
    }
}

static dm_status make_tables(dmi_job *job)
{
    size_t n = (size_t)job->workers + 2;
    job->rank_of = calloc(n, sizeof(int));
    job->host_of = calloc(n, sizeof(int));
    job->leader = calloc(n, sizeof(int));
    job->consumer = calloc(n, sizeof(int));
    job->direct = calloc(n, sizeof(bool));
    job->far_of = calloc(n, sizeof(int));
    job->pid_of = calloc(n, sizeof(int));
    job->start_of = calloc(n, sizeof(uint64_t));
    job->near = calloc(n, sizeof(bool));
    if (!job->rank_of || !job->host_of || !job->leader || !job->consumer || !job->direct || !job->far_of ||
        !job->pid_of || !job->start_of || !job->near) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d ranks", job->ranks);
    }
    for (int w = 0; w < job->workers; w++) {
        job->rank_of[w] = w + 1;
    }
    job->rank_of[job->workers] = 0;
    return DM_OK;
}

/* Pretended hosts share the machine, and so its GPUs. */
static dm_status choose_gpu(dmi_job *job, const hello *all)
{
    int *machine = calloc((size_t)job->workers + 1, sizeof *machine);
    for (int w = 0; machine && w < job->workers; w++) {
        const hello *x = &all[job->rank_of[w]], *y = x;
        int first = 0;
        do {
            y = &all[job->rank_of[first]];
        } while ((strcmp(x->host, y->host) != 0 || strcmp(x->boot, y->boot) != 0) && ++first < w);
        machine[w] = first;
    }
    dm_status status =
        dmi_job_agree(job, machine ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %d ranks", job->ranks));
    status = status == DM_OK ? dmi_job_choose_gpu(job, machine) : status;
    free(machine);
    return status;
}

/* Only of its own host a process is told by the kernel. */
static void find_processes(dmi_job *job, const hello *all)
{
    for (int e = 0; e <= job->workers; e++) {
        const hello *x = &all[job->rank_of[e]];
        job->pid_of[e] = x->pid;
        job->start_of[e] = x->start;
        job->near[e] = same_host(job, all, job->me, e);
    }
}

static dm_status settle(dmi_job *job, const hello *all)
{
    group_hosts(job, all, false);
    dm_status status = share_hub(job);
    if (status != DM_OK && job->config.transport != DMI_TRANSPORT_DIRECT) {
        if (job->rank == 0) {
            dmi_log(DMI_LOG_WARN, "%s: all ranks talk through messages", dmi_error_text());
        }
        group_hosts(job, all, true);
        status = share_hub(job);
    }
    if (status != DM_OK) {
        return status;
    }
    int threads = 0;
    for (int e = 0; e <= job->workers; e++) {
        threads += job->host_of[e] == job->host_of[job->me];
    }
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    dmi_hub_tune(&job->hub, threads, cores, job->config.spin_us);
    job->config.file_threads =
        dmi_file_threads(&job->config, threads - (job->host_of[job->workers] == job->host_of[job->me]), cores);
    dmi_port *port = dmi_hub_port(&job->hub, job->me);
    port->pid = (int32_t)getpid();
    for (int e = 0; e <= job->workers; e++) { /* other hosts' ports are mirrors here */
        dmi_port *other = dmi_hub_port(&job->hub, e);
        if (job->host_of[e] != job->host_of[job->me] || e == job->me) {
            snprintf(other->host, sizeof other->host, "%s", all[job->rank_of[e]].host);
        }
    }
    find_consumers(job);
    status = job->hosts > 1 ? dmi_forward_start(job) : DM_OK;
    return status == DM_OK ? choose_gpu(job, all) : status;
}

static dmi_job spare; /* of a process without memory, to say so */

/* The other ranks wait for this one, and MPI_Finalize here would wait for them: so it tries for about a second, and then
 * takes part all the same, to fail with them. */
static dmi_job *insist_on_job(void)
{
    dmi_job *job = calloc(1, sizeof *job);
    for (long pause_ns = 1000000; !job && pause_ns < 1000000000; pause_ns *= 4) {
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        job = calloc(1, sizeof *job);
    }
    if (!job) {
        memset(&spare, 0, sizeof spare);
        job = &spare;
    }
    return job;
}

dm_status dmi_job_meet(MPI_Comm comm, const dmi_config *config, dm_status loaded, dmi_job **out)
{
    dmi_job *job = insist_on_job();
    hello mine, *all = NULL;
    if (job == &spare && loaded == DM_OK) {
        loaded = dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    }
    job->hub.fd = -1;
    job->at_finalize = MPI_KEYVAL_INVALID;
    say_hello(config, &mine);
    DMI_MPI(MPI_Comm_rank(comm, &job->rank));
    if (loaded == DM_OK && job->rank == 0 && config->trace[0]) {
        loaded = dmi_trace_try(config->trace);
    }
    if (loaded != DM_OK) {
        loaded = name_rank(job->rank, loaded);
        dmi_log_set_who(job->rank == 0 ? "master" : "worker");
        if (job->rank != 0) { /* rank 0 returns it to the program, which may not print it */
            dmi_log(DMI_LOG_ERROR, "%s", dmi_error_text());
        }
    }
    if (dmi_job_communicators(comm, config->meet_s, job) != DM_OK) {
        return DM_ERR_TIMEOUT; /* the job stays: MPI may still write into it */
    }
    DMI_MPI(MPI_Comm_set_errhandler(job->ctl, MPI_ERRORS_RETURN));
    DMI_MPI(MPI_Comm_set_errhandler(job->data, MPI_ERRORS_RETURN));
    DMI_MPI(MPI_Comm_size(comm, &job->ranks));
    job->workers = job->ranks - 1;
    job->me = job->rank == 0 ? job->workers : job->rank - 1;
    all = calloc((size_t)job->ranks, sizeof *all);
    dm_status status = all ? make_tables(job) : dmi_fail(DM_ERR_NOMEM, "no memory for %d ranks", job->ranks);
    status = dmi_job_agree(job, status);
    if (status == DM_OK) {
        DMI_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, job->ctl));
        status = compare(all, job->ranks);
    }
    if (status == DM_OK) {
        status = dmi_job_agree(job, loaded);
    }
    for (int r = 1; r < job->ranks && status == DM_OK; r++) {
        if (all[r].tasks != all[0].tasks) { /* on all ranks alike */
            status = dmi_job_agree(job, dmi_job_tell_tasks(job, r, all[r].host, all[0].host));
        }
    }
    if (status == DM_OK) {
        char fault[DMI_CONFIG_TEXT]; /* faults are planted in single ranks */
        memcpy(fault, config->fault, sizeof fault);
        job->config = *config;
        DMI_MPI(MPI_Bcast(&job->config, sizeof job->config, MPI_BYTE, 0, job->ctl));
        memcpy(job->config.fault, fault, sizeof fault);
        job->profile = dmi_profile_from(&job->config, job->workers, false);
        find_processes(job, all);
        status = dmi_job_agree(job, job->config.liveness ? dmi_liveness_start(job) : DM_OK);
    }
    if (status == DM_OK) {
        status = settle(job, all);
    }
    free(all);
    if (status != DM_OK) {
        dmi_job_free(job);
        return status;
    }
    job->mpi = (dmi_mpi_state){.data = job->data, .rank = job->rank_of};
    *out = job;
    return DM_OK;
}

static void free_tables(dmi_job *job)
{
    free(job->rank_of);
    free(job->host_of);
    free(job->leader);
    free(job->consumer);
    free(job->direct);
    free(job->far_of);
    free(job->pid_of);
    free(job->start_of);
    free(job->near);
    if (job != &spare) {
        free(job);
    }
}

void dmi_job_free(dmi_job *job)
{
    dmi_liveness_stop(job);
    dmi_heartbeat_stop(job);
    if (job->forward) {
        dmi_forward_stop(job);
    }
    dmi_hub_close(&job->hub);
    DMI_MPI(MPI_Comm_free(&job->ctl));
    DMI_MPI(MPI_Comm_free(&job->data));
    free_tables(job);
}

void dmi_job_leave(dmi_job *job)
{
    dmi_liveness_ignore(job, true);
    dmi_hub_close(&job->hub);
    memset(&job->hub, 0, sizeof job->hub);
}

void dmi_job_forget(dmi_job *job)
{
    dmi_liveness_free(job);
    free_tables(job);
}
