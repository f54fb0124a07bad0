/* Rates of the machine, for the profile. */
#include "launch/job.h"
#include "launch/pairs.h"

#include <math.h>
#include <stdlib.h>

#define LINK_BYTES (INT64_C(32) << 20)

void dmi_rates_round(dmi_rates *r)
{
    double *rate[] = {&r->link, &r->memory, &r->f64, &r->f32, &r->tf32, &r->half};
    for (int i = 0; i < DMI_COUNT(rate); i++) {
        *rate[i] = *rate[i] > 0 ? exp2(round(4 * log2(*rate[i])) / 4) : 0;
    }
}

/* Takes the rates of the slowest worker, alike on all ranks; the master has none. */
static void agree(dmi_job *job, bool worker, const dmi_rates *mine)
{
    double of[6] = {mine->link, mine->memory, mine->f64, mine->f32, mine->tf32, mine->half}, least[6];
    for (int i = 0; i < 6 && !worker; i++) {
        of[i] = INFINITY;
    }
    DMI_MPI(MPI_Allreduce(of, least, 6, MPI_DOUBLE, MPI_MIN, job->ctl));
    job->profile.rates = (dmi_rates){least[0], least[1], least[2], least[3], least[4], least[5]};
    dmi_rates_round(&job->profile.rates);
}

/* Measures the link to the next worker, if it has direct access; all workers at once. */
static dm_status link_rate(dmi_job *job, dmi_engine *e, const dmi_allocation *allocation, double *rate)
{
    enum { TAG_PLACE = 4 };
    int n = job->workers, next = (job->me + 1) % n, before = (job->me + n - 1) % n;
    int64_t mine[2] = {allocation->slab, allocation->offset}, place[2] = {0};
    dm_status status = DM_OK;
    char *base = NULL;
    double seconds = 0;
    if (e->gpu) { /* its memory, to the one that writes there */
        DMI_MPI(MPI_Sendrecv(mine, 2, MPI_INT64_T, job->rank_of[before], TAG_PLACE, place, 2, MPI_INT64_T,
                             job->rank_of[next], TAG_PLACE, job->ctl, MPI_STATUS_IGNORE));
        bool near = n > 1 && job->far_of[next] == job->far_of[job->me];
        base = near ? job->device->map(e, next, (int)place[0]) : NULL;
    }
    for (int times = 1; times <= 4; times += 3) { /* the first makes the mapping */
        DMI_MPI(MPI_Barrier(job->ctl));
        status = base && status == DM_OK
                     ? job->device->carry(e, base + place[1], allocation->base, LINK_BYTES, times, &seconds)
                     : status;
    }
    *rate = base ? 4 * (double)LINK_BYTES / seconds : 0;
    return dmi_job_agree(job, status);
}

dm_status dmi_job_rates(dmi_job *job, dmi_engine *e)
{
    dmi_rates mine = {0};
    dmi_allocation allocation = {0};
    dmi_stamp now = {{0}};
    dm_status status = dmi_job_agree(job, e->gpu ? job->device->rates(e, &mine) : DM_OK);
    bool timed = status == DM_OK && mine.memory > 0;
    if (timed && dmi_pool_alloc(e->config.pool, LINK_BYTES, DMI_OWNER_STAGING, &allocation) != DM_OK) {
        allocation.base = NULL; /* too little memory to measure with: plans choose by bytes */
    }
    int have = !e->gpu || allocation.base != NULL, all = 0;
    DMI_MPI(MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, job->ctl));
    if (status == DM_OK && all) {
        status = link_rate(job, e, &allocation, &mine.link);
        agree(job, e->gpu != NULL, &mine);
    }
    if (allocation.base) {
        (void)!dmi_pool_free(e->config.pool, &allocation, &now);
    }
    return status;
}
