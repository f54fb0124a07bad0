/* What recording a timeline and writing it share. */
#ifndef DMI_TRACE_PARTS_H
#define DMI_TRACE_PARTS_H

#include "exec/trace.h"

#include <stdio.h>

typedef struct dmi_trace_event {
    int64_t begin_ns, end_ns;
    /* transfers: time between the real start and the shown start, because it overlapped with the transfer
     * before */
    int64_t ahead_ns;
    uint64_t command, ordinal; /* ordinal: of transfers, with this peer */
    int64_t bytes, flops, run; /* run: of a program */
    uint32_t program, group;   /* numbers from 1; 0: none */
    int32_t peer;
    uint16_t op, called; /* called: public call (dmi_api_name); 0: not known */
    uint8_t kind, channel;
    bool part; /* a payload of the exchange before it: an arrow alone; ordinal: its number in the run */
} dmi_trace_event;

typedef struct dmi_trace_track {
    dmi_trace_event *event;
    int64_t count, room, dropped;
    int64_t last_ns; /* end of the last event */
} dmi_trace_track;

struct dmi_trace {
    int64_t most;
    dmi_trace_track track[DMI_STAMP_LANES];
};

/* --- trace_write.c */
/* All tracks of an endpoint as events in a list; `end` comes behind the last one. */
void dmi_trace_put(FILE *to, const dmi_engine *e, const char *end);

#endif
