/* Emulated GPUs: what device/runtime.h and device/queue.h declare, by threads and memory of this host, for
 * builds without CUDA. A stream is a thread that does one operation after another; memory of a device is a file
 * in memory that other processes can map. It is as strict as CUDA, to find mistakes: memory is never zero at
 * first, what is put on a stream runs later and beside other streams, and pointers that a GPU could not read
 * are refused.
 *
 * Settings, from the environment:
 *   DMATH_EMULATED_GPUS        how many devices there are, up to 64 (0)
 *   DMATH_EMULATED_GPU_MEMORY  bytes that a process may have of each (2G)
 *   DMATH_EMULATED_DELAY_US    one operation in four first sleeps at random, up to so long (0)
 *   DMATH_EMULATED_KERNEL_US   every kernel takes so long, and what it needs (0)
 *   DMATH_EMULATED_BUS_IDS     their PCI addresses, with commas between them (they have none)
 *   DMATH_EMULATED_WAITS       1: what allocates, gives back memory or makes a graph waits for all devices, and
 *                              keeps other threads from using them meanwhile (0)
 *   DMATH_EMULATED_RANGES      a file: ranges for a profiler are appended to it (none)
 *   DMATH_EMULATED_CUDA_MPI    0: the MPI library says that it takes no memory of devices (1: it does) */
#ifndef DMI_EMULATED_H
#define DMI_EMULATED_H

#include "device/runtime.h"

#include <stdatomic.h>

enum { DMI_EMU_DEVICES = 64 };

typedef struct dmi_emu_settings {
    int devices;
    int64_t memory_bytes, delay_us, kernel_us;
    bool waits;
} dmi_emu_settings;
dmi_emu_settings dmi_emu_settings_read(void);
int dmi_emu_current(void); /* device of the calling thread */

/* --- memory.c -------------------------------------------------------------------------- */
enum dmi_emu_kind { DMI_EMU_PAGEABLE, DMI_EMU_PINNED, DMI_EMU_DEVICE, DMI_EMU_OPENED };
typedef struct dmi_emu_place {
    int kind;
    int device;    /* DEVICE: whose */
    int64_t bytes; /* from the pointer to the end of its allocation; PAGEABLE: unknown, INT64_MAX */
} dmi_emu_place;
dmi_emu_place dmi_emu_find(const void *p);

/* --- stream.c: operations in order ------------------------------------------------------- */
typedef struct dmi_emu_stream dmi_emu_stream;
typedef struct dmi_emu_op dmi_emu_op;
/* An operation: the first member of a struct with its data; the stream frees it. */
struct dmi_emu_op {
    dmi_emu_op *next;
    void (*run)(dmi_emu_stream *s, dmi_emu_op *op); /* on the stream's thread; NULL: nothing */
    void (*drop)(dmi_emu_op *op);                   /* frees its resources, run or not; NULL: it has none */
};
/* A point in a stream: a word that is 1 when it has been reached. */
typedef struct dmi_emu_mark {
    atomic_int references;
    uint32_t reached;
    int64_t when_ns; /* set before */
} dmi_emu_mark;

/* Memory of an operation, zero; NULL: there is none, and the request that makes the operation fails. */
void *dmi_emu_op_new(size_t bytes);
void dmi_emu_put(dmi_emu_stream *s, dmi_emu_op *op);
int dmi_emu_device_of(const dmi_emu_stream *s);
void dmi_emu_kernel_time(const dmi_emu_stream *s); /* sleeps as long as a kernel takes at least */
/* Puts a mark on the stream; NULL: no memory. The caller has a reference. */
dmi_emu_mark *dmi_emu_mark_put(dmi_emu_stream *s);
void dmi_emu_mark_unref(dmi_emu_mark *mark); /* NULL is fine */
/* Later operations of the stream wait until *word has reached value; the mark (or NULL) whose word it is gets a
 * reference until then. */
DM_CHECKED dm_status dmi_emu_put_wait(dmi_emu_stream *s, uint32_t *word, uint32_t value, dmi_emu_mark *mark);
/* The host waits for all that is on a device's streams now. */
void dmi_emu_device_wait(int device);
/* A call of CUDA that may wait for all devices of the process, as their memory is mapped at each other: it does
 * where the settings say so. */
void dmi_emu_may_wait(void);

/* --- capture.c: what a thread captures ------------------------------------------------------- */
/* Keeps an operation that the calling thread puts on the stream that it captures; false: it captures no such one. */
bool dmi_emu_keep(dmi_emu_stream *s, dmi_emu_op *op);
/* For calls that a graph cannot hold. While the calling thread captures (s: this stream; NULL: any), its capture is
 * broken, and the status says by what. */
DM_CHECKED dm_status dmi_emu_refuse(const dmi_emu_stream *s, const char *call);

/* --- event.c: what an event of a capture is: the last operation; NULL: none --- */
void dmi_emu_event_capture(void *event, const dmi_emu_op *last);
const dmi_emu_op *dmi_emu_event_captured(const void *event);

/* --- words that are waited for: of this process or shared with others ---------------------- */
bool dmi_emu_has_reached(const uint32_t *word, uint32_t value); /* and what was written before is seen */
void dmi_emu_raise(uint32_t *word, uint32_t value);
void dmi_emu_sleep_on(const uint32_t *word, uint32_t value); /* returns when it has, or a while later */

/* From now on the device has failed, if none has before. Its work is still done. why NULL, for tests: none has.
 */
void dmi_emu_lose(int device, const char *why);

#endif
