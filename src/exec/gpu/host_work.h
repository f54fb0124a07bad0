/* Host work of a GPU worker, outside the communication thread: files and user functions.
 *
 * The bytes pass through staging buffers of pinned memory. One side fills a staging buffer and the other
 * empties it: the device (a copy with an event behind it) and a thread of the crew. The list that a buffer is
 * in names its user. It changes lists only when the event is reached or the job is done. The communication
 * thread polls both and never waits, so other lanes go on.
 *
 * Buffers and threads are made when the first step needs them, and live to the end: (2 * file_threads + 2) *
 * file_chunk bytes of pinned memory, and as many of device memory if a file range is no stack of rows in the
 * worker's memory. */
#ifndef DMI_GPU_HOST_WORK_H
#define DMI_GPU_HOST_WORK_H

#include "exec/gpu/crew.h"
#include "exec/gpu/parts.h"
#include "io/file.h"
#include "ops/common_task.h"

#include <pthread.h>
#include <stdatomic.h>

/* The file of a command, open for all its ranges here: from the first that needs it to the last. */
typedef struct dmi_file_use {
    struct dmi_file_use *next;
    pthread_mutex_t lock; /* of file, tried and left */
    dmi_file file;
    bool tried;      /* to open it */
    int left;        /* ranges that are still to be moved: the last one closes it */
    atomic_int stop; /* one has failed: the rest do nothing */
    int steps;       /* whose end the communication thread has not seen; the last one frees this */
} dmi_file_use;

typedef struct dmi_staging_buffer {
    dmi_crew_job job; /* the first member: what the crew knows of a staging buffer */
    struct dmi_staging_buffer *next;
    char *pinned, *device;
    dmi_event event;
    dmi_queued_step *work;
    dmi_file_use *use; /* a file range */
    bool skipped, planted;
    struct dmi_gpu_task *task; /* else a chunk of its operand, at `host` */
    char *host;
    int64_t bytes;
    dm_status status; /* of the job */
    char text[DMI_ERROR_TEXT];
} dmi_staging_buffer;

typedef struct dmi_buffer_list {
    dmi_staging_buffer *first, **last;
} dmi_buffer_list;

struct dmi_host_work {
    int count;
    dmi_staging_buffer *buffer;
    int64_t bytes; /* of a staging buffer */
    char *pinned, *device;
    dmi_buffer_list free;
    dmi_buffer_list to_device; /* copied there */
    dmi_buffer_list to_host;   /* copied here, then for the crew */
    dmi_buffer_list with_crew; /* but those read from files, which their steps know */
    dmi_crew *crew;
    dmi_crew *caller; /* one thread, which calls the user's functions */
    dmi_file_use *use;
    uint64_t ahead[DMI_STAMP_LANES]; /* steps of a lane before this one have been looked at for reading ahead */
    struct dmi_gpu_task *task[DMI_STAMP_LANES];
    struct dmi_task_memory *task_memory;
    dmi_task_map map[DMI_TASK_MAPS]; /* what functions have had mapped */
    int maps;
    int coming;    /* functions that wait for copies to the host */
    int jobs;      /* with the crew or the caller, for the watchdog */
    int64_t ranges; /* of files, for planted faults */
};

/* --- host_work.c */
DM_CHECKED dm_status dmi_gpu_host_work(dmi_engine *e); /* makes them, the first time */
void dmi_gpu_host_work_stop(dmi_engine *e);            /* no thread of it runs any more */
void dmi_gpu_host_work_free(dmi_engine *e);            /* when the streams have ended */
/* A staging buffer that nobody has; NULL: none now. */
dmi_staging_buffer *dmi_gpu_buffer_take(dmi_engine *e);
void dmi_gpu_buffer_free(dmi_engine *e, dmi_staging_buffer *p);
void dmi_gpu_buffer_append(dmi_buffer_list *list, dmi_staging_buffer *p);
/* Records the staging buffer's event behind what the lane's stream does with it. */
void dmi_gpu_buffer_on_device(dmi_engine *e, int lane, dmi_buffer_list *list, dmi_staging_buffer *p);
void dmi_gpu_buffer_to_crew(dmi_engine *e, dmi_staging_buffer *p, void (*run)(dmi_crew_job *job));
/* Device memory for packed elements, for all staging buffers. */
DM_CHECKED dm_status dmi_gpu_buffer_packed(dmi_engine *e);
bool dmi_gpu_host_work_progress(dmi_engine *e);
/* True: all waits are for jobs, whose end rings the bell, so nobody has to poll. */
bool dmi_gpu_host_work_rings(const dmi_engine *e);

/* --- file.c. False: to be tried again later */
bool dmi_gpu_issue_file(dmi_engine *e, int lane, dmi_queued_step *w);
void dmi_gpu_file_arrived(dmi_engine *e, dmi_staging_buffer *p); /* the data to write is here, and final */
void dmi_gpu_file_written(dmi_engine *e, dmi_staging_buffer *p);
void dmi_gpu_file_free(dmi_engine *e);

/* --- task.c */
bool dmi_gpu_issue_task(dmi_engine *e, int lane, dmi_queued_step *w);
void dmi_gpu_task_arrived(dmi_engine *e, dmi_staging_buffer *p);
void dmi_gpu_task_copied(dmi_engine *e, dmi_staging_buffer *p);
void dmi_gpu_task_free(dmi_engine *e);
/* Do copies of functions still read memory of the host? */
bool dmi_gpu_task_reads(const dmi_engine *e);

/* --- fetch.c: what functions have had mapped, and fetch */
/* Before the function is called. */
void dmi_gpu_asks_begin(const dmi_engine *e, dmi_task_asks *asks);
void dmi_gpu_asks_end(dmi_task_asks *asks);
/* When it has returned: maps and unmaps, and puts its pieces in order; false: to be tried again later. */
bool dmi_gpu_asks_serve(dmi_engine *e, dmi_task_asks *asks);
/* The memory of an operand goes to the device, with what is fetched in place of what is there. */
DM_CHECKED dm_status dmi_gpu_asks_copy(dmi_engine *e, int lane, const dmi_task_asks *asks, char *device,
                                       const char *host, int64_t bytes);
void dmi_gpu_maps_free(dmi_engine *e);

#endif
