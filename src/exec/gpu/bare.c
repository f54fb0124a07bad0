/* Rates of the links between GPUs without dmath: a reference for measurements. */
#include "exec/gpu/gpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* All begin at once. */
typedef struct bare_start {
    atomic_int ready, go;
} bare_start;

typedef struct bare_gpu {
    int device, next; /* the GPU that it copies to */
    char *from, *to;  /* own memory; the next one's */
    int64_t bytes;
    int count;
    bare_start *start;
    double seconds;
    dm_status status;
    char text[DMI_ERROR_TEXT];
    pthread_t thread;
} bare_gpu;

static dm_status copies(const bare_gpu *b, dmi_stream stream, int count)
{
    dm_status status = DM_OK;
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dmi_cu_copy(stream, b->to, b->from, b->bytes);
    }
    return status;
}

/* A thread for each GPU, so that none waits for the host to serve the others. */
static void *drive(void *arg)
{
    bare_gpu *b = arg;
    dmi_stream stream = NULL;
    dmi_event begin = NULL, end = NULL;
    dm_status status = dmi_cu_use(b->device);
    if (status == DM_OK && dmi_cu_can_peer(b->device, b->next)) {
        status = dmi_cu_peer(b->next);
    }
    status = status == DM_OK ? dmi_cu_stream_create(&stream) : status;
    status = status == DM_OK ? dmi_cu_event_create(true, &begin) : status;
    status = status == DM_OK ? dmi_cu_event_create(true, &end) : status;
    status = status == DM_OK ? copies(b, stream, 1) : status; /* the first makes mappings */
    status = status == DM_OK ? dmi_cu_stream_wait(stream) : status;
    atomic_fetch_add(&b->start->ready, 1);
    while (!atomic_load(&b->start->go)) {
        sched_yield();
    }
    status = status == DM_OK ? dmi_cu_event_record(begin, stream) : status;
    status = status == DM_OK ? copies(b, stream, b->count) : status;
    status = status == DM_OK ? dmi_cu_event_record(end, stream) : status;
    status = status == DM_OK ? dmi_cu_stream_wait(stream) : status;
    status = status == DM_OK ? dmi_cu_event_between(begin, end, &b->seconds) : status;
    b->seconds /= b->count;
    b->status = status;
    if (status != DM_OK) {
        snprintf(b->text, sizeof b->text, "%s", dmi_error_text());
    }
    dmi_cu_event_destroy(begin);
    dmi_cu_event_destroy(end);
    dmi_cu_stream_destroy(stream);
    return NULL;
}

static dm_status make_memory(bare_gpu *b)
{
    dm_status status = dmi_cu_use(b->device);
    b->from = status == DM_OK ? dmi_cu_malloc(b->bytes) : NULL;
    status = status == DM_OK ? dmi_cu_use(b->next) : status;
    b->to = status == DM_OK ? dmi_cu_malloc(b->bytes) : NULL;
    return status == DM_OK && !(b->from && b->to)
               ? dmi_fail(DM_ERR_NOMEM,
                          "no memory for copies between GPUs %d and %d: %lld bytes were asked for on each",
                          b->device, b->next, (long long)b->bytes)
               : status;
}

static dm_status drive_all(bare_gpu *all, int gpus, bare_start *start, double *seconds)
{
    int made = 0;
    while (made < gpus && pthread_create(&all[made].thread, NULL, drive, &all[made]) == 0) {
        made++;
    }
    while (atomic_load(&start->ready) < made) {
        sched_yield();
    }
    atomic_store(&start->go, 1);
    dm_status status = made == gpus ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no thread for GPU %d", made);
    for (int g = 0; g < made; g++) {
        pthread_join(all[g].thread, NULL);
        *seconds = g == 0 ? all[g].seconds : DMI_MAX(*seconds, all[g].seconds);
        status =
            status == DM_OK && all[g].status != DM_OK ? dmi_fail(all[g].status, "%s", all[g].text) : status;
    }
    return status;
}

dm_status dmi_gpu_bare_ring(int gpus, int64_t bytes, int count, double *seconds)
{
    bare_start start = {0};
    bare_gpu *all = calloc((size_t)gpus, sizeof *all);
    if (!all) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a measurement");
    }
    dm_status status = DM_OK;
    for (int g = 0; g < gpus && status == DM_OK; g++) {
        all[g] = (bare_gpu){.device = g, .next = (g + 1) % gpus, .bytes = bytes, .count = count};
        all[g].start = &start;
        status = make_memory(&all[g]);
    }
    if (status == DM_OK) {
        status = drive_all(all, gpus, &start, seconds);
    }
    for (int g = 0; g < gpus; g++) {
        dmi_cu_release(all[g].from);
        dmi_cu_release(all[g].to);
    }
    free(all);
    return status;
}
