/* The CUDA runtime and driver as C code of ours calls them: each call wrapped once, errors as statuses with the
 * call's name. Handles are opaque here, so that no other file needs CUDA's headers. */
#ifndef DMI_CUDA_RUNTIME_H
#define DMI_CUDA_RUNTIME_H

#include "base/base.h"

typedef void *dmi_stream; /* cudaStream_t */
typedef void *dmi_event;  /* cudaEvent_t */
/* Memory of a device as another process may map it. */
typedef struct dmi_cu_handle {
    unsigned char bytes[64];
} dmi_cu_handle;

bool dmi_cu_timed(void);                     /* do measured times mean anything? (not on emulated GPUs) */
/* DM_ERR_CONFIG: bad settings of emulated GPUs in the environment */
DM_CHECKED dm_status dmi_cu_settings(void);
int dmi_cu_devices(void);                    /* 0 where there is no GPU or no driver */
const char *dmi_cu_why_none(void);           /* why there is none; "": no more is known */
DM_CHECKED dm_status dmi_cu_use(int device); /* of the calling thread; makes the context */
/* The calling thread is one of the library's: what it allocates does not end a capture that the program makes in a
 * thread of its own. In one that it makes itself it still may not. */
DM_CHECKED dm_status dmi_cu_own_thread(void);
int dmi_cu_current(void);                    /* the calling thread's; -1: not known */
/* The address space of `peer` may be read and written by kernels and copies of the current device. */
DM_CHECKED dm_status dmi_cu_peer(int peer);
bool dmi_cu_can_peer(int device, int peer);
/* Its place on the PCI bus, as 0000:1b:00.0 ("": it has none, for it is emulated), and its model (model_room 0: not
 * asked for). */
DM_CHECKED dm_status dmi_cu_name(int device, char *bus, size_t bus_room, char *model, size_t model_room);
DM_CHECKED dm_status dmi_cu_memory(int64_t *free_bytes, int64_t *total_bytes); /* of the current device */
/* Does the MPI library of this process say that it takes pointers to device memory? After MPI_Init. */
bool dmi_cu_in_mpi(void);
/* Between processes: memory of dmi_cu_malloc, its start; opened once a process, closed before the owner frees it. */
DM_CHECKED dm_status dmi_cu_export(void *p, dmi_cu_handle *out);
DM_CHECKED dm_status dmi_cu_open(const dmi_cu_handle *handle, void **out);
void dmi_cu_close(void *p);
void *dmi_cu_malloc(int64_t bytes); /* NULL when there is no memory */
void dmi_cu_release(void *p);
void *dmi_cu_malloc_host(int64_t bytes); /* pinned */
void dmi_cu_release_host(void *p);
DM_CHECKED dm_status dmi_cu_pin(void *p, int64_t bytes); /* memory of the host that is there already */
void dmi_cu_unpin(void *p);
/* The same for memory that the device only reads, such as pages of a file, by the addresses of the host. */
DM_CHECKED dm_status dmi_cu_pin_to_read(const void *p, int64_t bytes);
DM_CHECKED dm_status dmi_cu_move(void *dst, const void *src, int64_t bytes); /* any memory; waits for it */
DM_CHECKED dm_status dmi_cu_set(void *p, int byte, int64_t bytes); /* and waits for it */
DM_CHECKED dm_status dmi_cu_zero(void *p, int64_t bytes); /* the same */
DM_CHECKED dm_status dmi_cu_stream_create(dmi_stream *out); /* of the highest priority; waits for no other */
void dmi_cu_stream_destroy(dmi_stream s);
/* The process is ending. Operations on streams of emulated GPUs must not use its memory or libraries any more.
 * Waits for running ones, at most until the given time. */
void dmi_cu_quiesce(int64_t until_ns);
DM_CHECKED dm_status dmi_cu_stream_wait(dmi_stream s); /* host waits for all of it */
DM_CHECKED dm_status dmi_cu_event_create(bool timing, dmi_event *out);
/* Between two events that have been reached, both with timing. */
DM_CHECKED dm_status dmi_cu_event_between(dmi_event from, dmi_event to, double *seconds);
void dmi_cu_event_destroy(dmi_event e);
DM_CHECKED dm_status dmi_cu_event_record(dmi_event e, dmi_stream s);
DM_CHECKED dm_status dmi_cu_event_after(dmi_stream s, dmi_event e); /* what comes next on s waits for e */
bool dmi_cu_event_reached(dmi_event e); /* or its device has failed: dmi_cu_lost() then says so */
/* The first asynchronous failure of a device of this process, and which device it is; NULL: none has failed. */
const char *dmi_cu_lost(int *device);
/* Any memory to any memory, by the copy engine where it can. */
DM_CHECKED dm_status dmi_cu_copy(dmi_stream s, void *dst, const void *src, int64_t bytes);
DM_CHECKED dm_status dmi_cu_copy_2d(dmi_stream s, void *dst, int64_t dst_pitch, const void *src,
                                    int64_t src_pitch, int64_t width, int64_t height);
/* Pieces from memory of the host that is pinned, in any order. */
typedef struct dmi_cu_piece {
    void *to;
    const void *from;
    int64_t bytes;
} dmi_cu_piece;
DM_CHECKED dm_status dmi_cu_fetch(dmi_stream s, const dmi_cu_piece *piece, int64_t count);
/* Ranges of time for a profiler, in a domain of that name, each with one of the names; of the calling thread, and
 * nested. create gives NULL where no profiler listens (or there is no memory): then there are none. */
typedef struct dmi_cu_ranges dmi_cu_ranges;
dmi_cu_ranges *dmi_cu_ranges_create(const char *domain, const char *const *names, int count);
void dmi_cu_ranges_destroy(dmi_cu_ranges *r);
void dmi_cu_range_push(const dmi_cu_ranges *r, int name, uint64_t number);
void dmi_cu_range_pop(const dmi_cu_ranges *r);
/* Later operations of s wait until *flag (device memory of this device) has reached value (cyclic compare). */
DM_CHECKED dm_status dmi_cu_wait_value(dmi_stream s, uint32_t *flag, uint32_t value);
/* Several words by one request: the stream waits until each has reached its value, as above; or sets each,
 * which may be memory of any device that this one reaches. Who sees one set sees all that the stream has done
 * before. */
enum { DMI_CU_WORDS = 16 };
typedef struct dmi_cu_word {
    uint32_t *word;
    uint32_t value;
} dmi_cu_word;
DM_CHECKED dm_status dmi_cu_wait_words(dmi_stream s, const dmi_cu_word *word, int count);
DM_CHECKED dm_status dmi_cu_set_words(dmi_stream s, const dmi_cu_word *word, int count);

/* Between begin and end nothing of what this thread puts on the stream is done: it is captured as a graph. A call in between
 * that cannot be captured (one that allocates, waits, or asks how far the device is) fails, and so does end, which always ends
 * the capture. A graph that is destroyed while it is on a stream still runs. */
typedef struct dmi_graph dmi_graph;
DM_CHECKED dm_status dmi_cu_capture_begin(dmi_stream s);
DM_CHECKED dm_status dmi_cu_capture_end(dmi_stream s, dmi_graph **out);
/* A second stream of the capture. The event is what is on s now, which is captured; what comes next on s
 * follows what the event is, and is captured too. In the end the first stream follows all of the second. Events
 * of a capture are nothing outside of it. */
DM_CHECKED dm_status dmi_cu_capture_mark(dmi_event e, dmi_stream s);
DM_CHECKED dm_status dmi_cu_capture_after(dmi_stream s, dmi_event e);
/* Does what the first launch would do for the graph itself, which may wait for devices. */
DM_CHECKED dm_status dmi_cu_graph_upload(dmi_graph *graph, dmi_stream s);
DM_CHECKED dm_status dmi_cu_graph_launch(dmi_graph *graph, dmi_stream s);
void dmi_cu_graph_destroy(dmi_graph *graph); /* NULL is fine */

#endif
