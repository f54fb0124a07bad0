/* Host memory for frames that a worker must not miss: without them its arrays, layouts or plans are other ones
 * than those of the other workers. */
#include "worker/worker.h"

#include <time.h>

enum { FIRST_PAUSE_NS = 1000000, LAST_PAUSE_NS = 1000000000 };

dm_status dmi_insist(dmi_worker *w, dmi_attempt *attempt, const void *frame, void *out)
{
    dmi_memory_missed(0); /* what an earlier command went without */
    dm_status status = attempt(w, frame, out);
    for (int64_t pause_ns = FIRST_PAUSE_NS; status == DM_ERR_NOMEM && pause_ns < LAST_PAUSE_NS; pause_ns *= 4) {
        dmi_log(DMI_LOG_INFO, "command %llu: %s; tried again",
                (unsigned long long)((const dmi_frame *)frame)->command, dmi_error_text());
        dmi_engine_drain(&w->engine);
        dmi_plan_cache_destroy(w->plans);
        w->plans = NULL;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        status = attempt(w, frame, out);
    }
    return status;
}

void dmi_worker_break(dmi_worker *w, dm_status status)
{
    w->broken = true;
    if (w->engine.config.device) { /* others would wait on their devices for what this one does no more */
        w->engine.config.device->give_up(&w->engine);
    }
    dmi_engine_break(&w->engine, status);
}
