/* Every worker pushes a payload to the next one, all at once: the rate of the transport when all links are in
 * use. */
#include "dmath_bench.h"

#include <stdlib.h>

enum { MOST_TARGETS = 4 };

typedef struct ring {
    dm_array from, to[MOST_TARGETS]; /* a row on each worker; the same rows, each on the next worker */
    int targets;
} ring;

static dm_status make_ring(dm_session *s, int64_t bytes, ring *r)
{
    int workers = dm_workers(s);
    const int64_t shape[2] = {workers, bytes};
    dm_layout here = dm_layout_split(s, 0), next = here;
    int *turned = calloc((size_t)workers, sizeof *turned);
    if (!turned) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d workers", workers);
    }
    for (int w = 0; w < workers; w++) {
        turned[w] = (w + 1) % workers;
    }
    next.workers = turned;
    next.nworkers = workers;
    r->targets = bytes <= (16 << 20) ? MOST_TARGETS : 2; /* so that copies follow one another without a pause */
    dm_status status = dm_array_create(s, DM_U8, 2, shape, &here, &r->from);
    for (int i = 0; i < r->targets && status == DM_OK; i++) {
        status = dm_array_create(s, DM_U8, 2, shape, &next, &r->to[i]);
    }
    free(turned);
    return status == DM_OK ? dm_fill_uniform(s, r->from, 0, 256, 11) : status;
}

static dm_status check_ring(dm_session *s, const ring *r)
{
    bool same = false;
    dm_status status = dm_fill(s, r->to[0], 0);
    status = status == DM_OK ? dm_copy(s, r->from, r->to[0]) : status;
    status = status == DM_OK ? tool_same_contents(s, r->from, r->to[0], &same) : status;
    return status == DM_OK && !same ? dmi_fail(DM_ERR_INTERNAL, "what has gone round is not what was sent")
                                    : status;
}

static dm_status push(dm_session *s, const ring *r, int count, double *seconds)
{
    dm_status status = dm_sync(s);
    int64_t begin = dmi_now_ns();
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dm_copy(s, r->from, r->to[i % r->targets]);
    }
    status = status == DM_OK ? dm_sync(s) : status;
    *seconds = tool_seconds_since(begin) / count;
    return status;
}

/* The GPUs of this host, if they are the workers'; else NULL. */
static const dmi_device *gpus_of(dm_session *session)
{
    dmi_session *s = NULL;
    if (dmi_enter(session, &s) != DM_OK || !s->profile.gpu || s->workers < 2) {
        return NULL;
    }
    const dmi_device *gpu = dmi_device_gpu((int)s->config.device);
    return gpu && gpu->count() >= s->workers ? gpu : NULL;
}

dm_status tool_ring_measure(dm_session *s, const tool_measure *measure, int64_t bytes, tool_ring *out)
{
    ring r = {.from = DM_NO_ARRAY};
    int64_t repeats = measure->repeats;
    const dmi_device *gpu = gpus_of(s);
    int64_t all = INT64_C(2) << (gpu ? 32 : 30); /* so that the wait at the end hardly counts */
    int count = (int)DMI_MIN(DMI_MAX(all / bytes, 8), 256);
    double *times[2] = {calloc((size_t)repeats, sizeof(double)), calloc((size_t)repeats, sizeof(double))};
    dm_status status = times[0] && times[1] ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the measurements");
    status = status == DM_OK ? make_ring(s, bytes, &r) : status;
    status = status == DM_OK ? check_ring(s, &r) : status;
    for (int64_t i = -measure->warmup; i < repeats && status == DM_OK; i++) {
        double seconds = 0, bare = 0;
        status = push(s, &r, count, &seconds);
        if (status == DM_OK && gpu) {
            status = gpu->bare_ring(dm_workers(s), bytes, count, &bare);
        }
        if (i >= 0) {
            times[0][i] = seconds;
            times[1][i] = bare;
        }
    }
    if (status == DM_OK) {
        *out = (tool_ring){.seconds = tool_stats_of(times[0], repeats), .has_bare = gpu != NULL};
        out->bare = tool_stats_of(times[1], repeats);
    }
    free(times[0]);
    free(times[1]);
    status = tool_free_arrays(s, &r.from, 1, status);
    return tool_free_arrays(s, r.to, r.targets, status);
}
