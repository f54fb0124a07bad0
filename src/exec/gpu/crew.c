#include "exec/gpu/crew.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dmi_crew {
    pthread_mutex_t lock;
    pthread_cond_t more;
    dmi_crew_job *first, **last;
    bool stop;
    dmi_bell *bell;
    char name[32];
    int threads; /* running */
    pthread_t thread[];
};

static dmi_crew_job *next_job(dmi_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (!crew->first && !crew->stop) {
        pthread_cond_wait(&crew->more, &crew->lock);
    }
    dmi_crew_job *job = crew->stop ? NULL : crew->first;
    if (job) {
        crew->first = job->next;
        crew->last = crew->first ? crew->last : &crew->first;
    }
    pthread_mutex_unlock(&crew->lock);
    return job;
}

static void *serve(void *arg)
{
    dmi_crew *crew = arg;
    dmi_thread_name(crew->name);
    for (dmi_crew_job *job; (job = next_job(crew)) != NULL;) {
        job->run(job);
        atomic_store_explicit(&job->done, 1, memory_order_release);
        dmi_bell_ring(crew->bell);
    }
    return NULL;
}

dm_status dmi_crew_start(int threads, dmi_bell *bell, const char *name, dmi_crew **out)
{
    dmi_crew *crew = calloc(1, sizeof *crew + (size_t)threads * sizeof crew->thread[0]);
    if (!crew) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d threads", threads);
    }
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->more, NULL);
    crew->last = &crew->first;
    crew->bell = bell;
    snprintf(crew->name, sizeof crew->name, "%s", name);
    while (crew->threads < threads) {
        int error = pthread_create(&crew->thread[crew->threads], NULL, serve, crew);
        if (error != 0 && crew->threads == 0) {
            dmi_crew_stop(crew);
            return dmi_fail(DM_ERR_NOMEM, "%s: cannot start a thread: %s", name, strerror(error));
        }
        if (error != 0) { /* fewer do as well */
            dmi_log(DMI_LOG_WARN, "%s: %d threads, not %d: %s", name, crew->threads, threads, strerror(error));
            break;
        }
        crew->threads++;
    }
    *out = crew;
    return DM_OK;
}

void dmi_crew_put(dmi_crew *crew, dmi_crew_job *job)
{
    atomic_store_explicit(&job->done, 0, memory_order_relaxed);
    job->next = NULL;
    pthread_mutex_lock(&crew->lock);
    *crew->last = job;
    crew->last = &job->next;
    pthread_cond_signal(&crew->more);
    pthread_mutex_unlock(&crew->lock);
}

void dmi_crew_stop(dmi_crew *crew)
{
    if (!crew) {
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->more);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->threads; i++) {
        pthread_join(crew->thread[i], NULL);
    }
    pthread_cond_destroy(&crew->more);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}
