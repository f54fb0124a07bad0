/* The timeline: what each lane of an endpoint did when, written as Chrome's trace format (chrome://tracing,
 * Perfetto): a process an endpoint, a row a lane, an event a step; arrows from each push to its arrival; and rows for the
 * programs and the groups that had commands here, an event a command.
 *
 * A lane's buffer has one writer, the thread that runs the lane, so recording takes no lock. Every worker
 * writes its events to a worker file beside the timeline; once all have left, the master joins these files.
 * Times are those of the monotonic clock: the processes of one host share it, those of several hosts are
 * aligned by their clocks only. */
#ifndef DMI_TRACE_H
#define DMI_TRACE_H

#include "exec/engine.h"

typedef struct dmi_trace dmi_trace;
/* Keeps at most `most` events a lane, counts the rest. NULL (logged) when out of memory: no timeline then. */
dmi_trace *dmi_trace_create(int64_t most);
void dmi_trace_destroy(dmi_trace *trace);
enum { DMI_TRACE_MOST = 1000000 };

/* The op of a step; in a program that of the call which it is part of. In usage.c. */
int dmi_step_op(const dmi_queued_step *w);
uint16_t dmi_step_called(const dmi_queued_step *w); /* its public call (dmi_api_name), in the same way */

/* The worker file of the timeline `path`: <path>.<worker>.worker_file. What fails is logged. */
void dmi_trace_write_worker(const dmi_engine *e, const char *path);
/* At the start: can the file be written? DM_ERR_CONFIG. */
DM_CHECKED dm_status dmi_trace_try(const char *path);
/* Joins the worker files and the master's own events to `path`, and deletes the worker files. Missing ones are
 * named in a warning. */
void dmi_trace_join(const dmi_engine *e, const char *path);

#endif
