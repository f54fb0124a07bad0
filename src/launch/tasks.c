/* Ranks that registered different functions: which. */
#include "launch/job.h"
#include "ops/common_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3 /* names of each side in the message */, TEXT = 256 };

typedef struct names {
    char *text; /* each name with a 0 behind it */
    int bytes;
} names;

static const char *next_name(const names *n, const char *name)
{
    const char *next = name ? name + strlen(name) + 1 : n->text;
    return next < n->text + n->bytes ? next : NULL;
}

static bool has_name(const names *n, const char *name)
{
    const char *at = NULL;
    while ((at = next_name(n, at)) && strcmp(at, name) != 0) {
    }
    return at != NULL;
}

/* "; only rank 2 has a, b and 5 more", or nothing. A name has at most 63 characters, so there is room. */
static int say_missing(int rank, const names *here, const names *there, char out[TEXT])
{
    int found = 0, n = 0;
    out[0] = 0;
    for (const char *at = NULL; (at = next_name(here, at));) {
        if (!has_name(there, at) && found++ < SHOWN) {
            n += found == 1 ? snprintf(out, TEXT, "; only rank %d has %s", rank, at)
                            : snprintf(out + n, (size_t)(TEXT - n), ", %s", at);
        }
    }
    if (found > SHOWN) {
        snprintf(out + n, (size_t)(TEXT - n), " and %d more", found - SHOWN);
    }
    return found;
}

static dm_status tell(int rank, const char *host, const names *theirs, const char *host0, const names *mine)
{
    char more[2][TEXT];
    int found = say_missing(0, mine, theirs, more[0]);
    found += say_missing(rank, theirs, mine, more[1]);
    if (found == 0) { /* the same names, then: at some place they differ */
        int number = 1;
        const char *a = next_name(mine, NULL), *b = next_name(theirs, NULL);
        for (; strcmp(a, b) == 0; number++) {
            a = next_name(mine, a);
            b = next_name(theirs, b);
        }
        snprintf(more[0], TEXT, " in another order: number %d is %s there and %s on rank 0", number, b, a);
    }
    return dmi_fail(
        DM_ERR_VERSION,
        "rank %d (%s) has registered other functions than rank 0 (%s)%s%s; dmath-worker takes them from "
        "--load or DMATH_LOAD",
        rank, host, host0, more[0], more[1]);
}

dm_status dmi_job_tell_tasks(dmi_job *job, int rank, const char *host, const char *host0)
{
    names mine = {.bytes = dmi_task_names(NULL)}, theirs = {.bytes = mine.bytes};
    DMI_MPI(MPI_Bcast(&theirs.bytes, 1, MPI_INT, rank, job->ctl));
    mine.text = calloc((size_t)mine.bytes + 1, 1);
    theirs.text = calloc((size_t)theirs.bytes + 1, 1);
    dm_status status =
        dmi_job_agree(job, mine.text && theirs.text ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for names"));
    if (status == DM_OK) {
        (void)dmi_task_names(job->rank == rank ? theirs.text : mine.text);
        DMI_MPI(MPI_Bcast(theirs.text, theirs.bytes, MPI_CHAR, rank, job->ctl));
        status = job->rank == 0 ? tell(rank, host, &theirs, host0, &mine) : DM_OK;
    }
    free(mine.text);
    free(theirs.text);
    return status;
}
