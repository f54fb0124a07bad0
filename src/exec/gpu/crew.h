/* Threads of a GPU worker for slow host work: reading and writing files, user functions. Jobs start in the
 * order in which they are given and end in any order. */
#ifndef DMI_CREW_H
#define DMI_CREW_H

#include "comm/hub.h"

#include <stdatomic.h>

typedef struct dmi_crew dmi_crew;
typedef struct dmi_crew_job {
    void (*run)(struct dmi_crew_job *job);
    struct dmi_crew_job *next;
    atomic_int done; /* set after run() with release order: whoever reads 1 sees everything run() wrote */
} dmi_crew_job;

/* bell: rung when a job is done. name: of the threads, in the log. */
DM_CHECKED dm_status dmi_crew_start(int threads, dmi_bell *bell, const char *name, dmi_crew **out);
/* The job is the crew's until it is done. */
void dmi_crew_put(dmi_crew *crew, dmi_crew_job *job);
static inline bool dmi_crew_done(dmi_crew_job *job)
{
    return atomic_load_explicit(&job->done, memory_order_acquire) != 0;
}
/* Ends the threads; waits for jobs that have begun, others are never run. NULL is fine. */
void dmi_crew_stop(dmi_crew *crew);

#endif
