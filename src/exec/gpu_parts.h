/* The parts of the GPU executor that its files share. */
#ifndef DMI_GPU_PARTS_H
#define DMI_GPU_PARTS_H

#include "exec/gpu.h"

enum {
    STREAM_GRANT = DMI_LANES,
    STREAM_MARK,
    STREAM_HOST,
    STREAM_TABLES,
    STREAMS,
    MARKS = 256,
    NUMBERS = 65536,
    HOST_SLOTS = 8
};

typedef struct dmi_mark_event {
    dmi_event event;
    uint64_t seq; /* position of its lane when it was recorded */
} dmi_mark_event;
typedef struct dmi_marks {
    dmi_mark_event event[MARKS];
    uint64_t head; /* recorded so far */
} dmi_marks;

/* A block on its way to or from the master, through pinned memory. */
typedef struct dmi_host_slot {
    char *pinned;
    void *device;    /* the same bytes, packed */
    dmi_event event; /* device part done */
    dmi_work *work;
    dmi_arena arena; /* of the packed geometry */
    bool busy;       /* work is under way */
    bool draining;   /* only the device still uses it */
} dmi_host_slot;

struct dmi_gpu {
    int device;
    dmi_queue *queue, *send_queue, *host_queue; /* of COMPUTE, SEND and STREAM_HOST */
    dmi_stream stream[STREAMS];                 /* RECV has none */
    dmi_stamp known[STREAMS];                   /* positions a stream has waited for already */
    dmi_marks marks[DMI_LANES];
    uint64_t issued[DMI_LANES];
    uint32_t *arrived, *freed;             /* [endpoints] this device's counters */
    uint32_t **peer_arrived, **peer_freed; /* [endpoints] counters of peers that this device raises */
    char *tables;                          /* run tables of plans: taken from here, never given back singly */
    int64_t tables_used;
    uint32_t *pinned_numbers; /* [NUMBERS] sources of raises */
    uint64_t next_number;
    dmi_instance *inst; /* being issued */
    int next;           /* its next step */
    dmi_event marker;
    dmi_stamp marker_stamp;
    bool marker_set;
    dmi_host_slot host[HOST_SLOTS];
    uint64_t host_head, host_tail; /* in order: slots head .. tail-1 are under way */
    int64_t host_bytes;            /* room of a slot */
};

dm_status dmi_gpu_after(dmi_engine *e, int stream, const dmi_stamp *stamp);
dm_status dmi_gpu_raise(dmi_engine *e, int stream, uint32_t *counter, uint32_t value);
const dmi_run *const *dmi_gpu_runs(dmi_engine *e, const dmi_work *w, const dmi_copy *c);
dm_status dmi_gpu_execute(dmi_engine *e, dmi_work *w);
/* --- gpu_host.c */
bool dmi_gpu_push_host(dmi_engine *e, dmi_work *w);
bool dmi_gpu_expect_host(dmi_engine *e, dmi_work *w);
bool dmi_gpu_host_progress(dmi_engine *e);
bool dmi_gpu_host_pending(const dmi_engine *e);

#endif
